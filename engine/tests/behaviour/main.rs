//! The behaviour of a database while nothing fails, and the stability of its format.

mod both_ends;
mod compressed;
mod convert;
mod dictionaries;
mod freeing;
mod golden;
mod in_order;
mod interval_syncs;
mod isolation;
mod key_heap;
mod large_commit;
mod long_keys;
mod metrics;
mod model;
mod regressions;
mod shared_transaction;
mod strategies;
mod untyped;

#[path = "../workload/mod.rs"]
mod workload;

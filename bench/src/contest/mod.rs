//! The common parts of the benchmarks that run one workload on several stores: the interface of a store, and runs in
//! turn, each in a process of its own.

mod contestant;
mod duramen;
mod figures;
pub(crate) mod memory;
mod rounds;
mod threads;
mod verify;

pub use contestant::{Config, Contestant, DiskKind, Durability, Reader, Writer};
pub use duramen::Duramen;
pub use figures::Figures;
pub(crate) use figures::quantile;
pub(crate) use rounds::in_turn;
pub use rounds::{Entrant, Format};
pub(crate) use threads::{note_speed, on_threads, timed};
pub(crate) use verify::{verify, wrong_answer};

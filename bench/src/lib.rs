//! Workloads, and what runs and measures them: shared by `duramen-bench` and by the programs that set other stores
//! beside Duramen. No other store is in here.

mod bars;
pub mod basic;
mod chart;
mod clock;
pub mod codecs;
pub mod integers;
pub mod keys;
mod keyset;
mod options;
mod page;
mod random;
mod stats;
mod value;
pub mod writes;

/// What goes wrong in a benchmark ends it; the words are for whoever started it.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

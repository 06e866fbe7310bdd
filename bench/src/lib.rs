//! Workloads and their measurement, shared by `duramen-bench` and by the programs that measure other stores beside
//! Duramen. This crate contains no other store.
// An `expect` says what the measurement relies on, and counts become floating-point numbers and back. So `expect_used`
// and casts are not denied here.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::panic))]

mod bars;
pub mod basic;
mod chart;
mod claims;
mod clock;
pub mod codecs;
pub mod contest;
pub mod integers;
pub mod kept;
pub mod keys;
mod keyset;
pub mod larger;
mod options;
mod page;
pub mod progress;
mod random;
mod stats;
pub mod tpcc;
mod value;
pub mod writes;

pub use duramen_size as size;

/// An error ends a benchmark. Its message is for the user.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

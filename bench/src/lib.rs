//! Workloads and their measurement, shared by `duramen-bench` and by the programs that measure other stores beside
//! Duramen. This crate contains no other store.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::cast_possible_truncation
    )
)]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a wrong assumption about a store or a measurement must end it, and not change its result"
)]

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
mod numbers;
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

//! One fuzz target per decoder, as plain functions.
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
#![allow(clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a target reports an error by a panic")]

pub mod codec;
pub mod dictionary;
pub mod log;
pub mod page;
pub mod shadow;
pub mod store;

//! One fuzz target per decoder, as plain functions.
//!
//! A target reports an error by a panic, from an assertion or from `expect`.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::cast_possible_truncation))]

pub mod codec;
pub mod dictionary;
pub mod log;
pub mod page;
pub mod shadow;
pub mod store;

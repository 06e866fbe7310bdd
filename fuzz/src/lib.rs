//! One fuzz target per decoder, as plain functions.

pub mod log;
pub mod store;

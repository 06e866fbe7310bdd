//! One fuzz target per decoder, as plain functions.

pub mod codec;
pub mod dictionary;
pub mod log;
pub mod page;
pub mod shadow;
pub mod store;

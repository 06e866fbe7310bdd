//! Read transactions and writing transactions, and the tables that a read transaction opens.

mod commit;
mod dictionary;
#[cfg(test)]
mod kept_tests;
pub(super) mod read;
pub(super) mod table_state;
pub(super) mod unlogged_writer;
pub(super) mod write;

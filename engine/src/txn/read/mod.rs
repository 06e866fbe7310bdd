//! Reading single entries, entries in order, and whole leaves, as a snapshot or the writing transaction sees them.
//! Nothing here changes the database.

pub(super) mod cursor;
mod cursor_leaf;
pub(super) mod get;
pub(super) mod leaves;
pub(super) mod pages;

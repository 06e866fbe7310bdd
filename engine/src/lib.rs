//! Duramen: an embedded, ordered, transactional key-value store, compressed at every level.
//!
//! The folders are layers, lowest first: [`base`], [`page`], [`tree`], [`io`], [`store`], [`log`], `txn`, [`db`].
//! A layer uses only those below it; `tests/layers.rs` holds that.

pub mod base;
pub mod db;
pub mod io;
pub mod log;
pub mod page;
pub mod store;
pub mod tree;
mod txn;

pub use base::{Error, Result};
pub use db::types::{Key, TableDef, TableOptions, Value};
pub use db::{
    Builder, Database, Entry, Guard, Range, ReadOnlyTable, ReadTransaction, Table, TableInfo, WriteTransaction,
};
pub use txn::Durability;

//! Duramen: an embedded, ordered, transactional key-value store. Its B+-tree keeps keys compressed in every page.
//!
//! ```
//! use duramen::{Database, TableDef};
//! const TREES: TableDef<&str, u64> = TableDef::new("trees");
//!
//! let db = Database::in_memory()?; // or Database::create("forest.duramen")
//! let tx = db.begin_write()?;
//! {
//!     let mut trees = tx.open_table(TREES)?;
//!     trees.insert("oak", 700)?;
//!     trees.insert("yew", 3000)?;
//! }
//! tx.commit()?;
//!
//! let trees = db.begin_read()?.open_table(TREES)?;
//! assert_eq!(trees.get("oak")?.map(|years| years.value()), Some(700));
//! for entry in trees.range("p"..) {
//!     let (name, years) = entry?;
//!     assert_eq!((name.value(), years.value()), ("yew", 3000));
//! }
//! # Ok::<(), duramen::Error>(())
//! ```
//!
//! The modules are layers, lowest first: [`base`], `page`, `tree`, [`io`], `store`, `log`, `txn`, [`db`], [`query`]. A
//! layer uses only layers below it; `tests/layers/` enforces this. The public API is what this reference shows. Hidden
//! modules are public for benchmarks and tests only, and change without notice.
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

pub mod base;
pub mod db;
pub mod io;
#[doc(hidden)]
pub mod log;
#[doc(hidden)]
pub mod page;
pub mod query;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub mod tree;
mod txn;

pub use base::{Error, Result};
pub use db::types::{Key, TableDef, TableOptions, Value};
pub use db::{
    Builder, Database, Entry, Guard, Range, ReadOnlyTable, ReadTransaction, Table, TableInfo, WriteTransaction,
};
pub use page::{Codec, UnknownCodec};
pub use txn::Durability;

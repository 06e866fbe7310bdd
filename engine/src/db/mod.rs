//! Databases and tables, the public API of the engine: opening and recovery, the catalog, typed tables, transactions,
//! options, check, compaction, salvage.
//!
//! The layout of pages and the bytes of the log must not be in this layer.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation
)]

mod bounds;
mod bulk;
mod bytes;
mod catalog;
mod check;
mod compact;
mod create;
mod database;
mod entry;
mod entry_rules;
mod gaps;
mod guard;
mod info;
mod keys;
mod maintenance;
mod open;
mod options;
mod range;
mod read;
mod rescue;
mod salvage;
mod shared;
mod spec;
mod stats;
mod stream;
mod table;
#[cfg(test)]
mod tests;
pub mod types;
mod untyped;
mod write;

pub use crate::base::Damage;
pub use crate::tree::{LevelStats, TreeStats};
pub(crate) use bounds::encode as encode_bounds;
pub use bulk::{BulkTable, DEFAULT_FILL};
pub use check::{CheckReport, Finding};
pub use compact::{CompactProgress, CompactReport};
pub use create::NewDatabase;
pub use database::Database;
pub use entry::Entry;
pub use guard::Guard;
pub use info::TableInfo;
pub use keys::Keys;
pub use options::{Builder, DEFAULT_CACHE, DEFAULT_VERSION_MEMORY, MIN_CACHE_PAGES};
pub use range::{Range, UntypedRange};
pub use read::{ReadOnlyTable, ReadOnlyUntypedTable, ReadTransaction};
pub use salvage::{Lost, Salvage, Salvaged};
pub use stats::DatabaseStats;
pub use stream::ValueStream;
pub use table::Table;
pub use untyped::UntypedTable;
pub use write::WriteTransaction;

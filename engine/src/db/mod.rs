//! Databases and tables, the public API of the engine: opening and recovery, the catalog, typed tables, transactions,
//! options, check, compaction, salvage.
//!
//! This layer does not know the layout of pages or the bytes of the log.

mod catalog;
mod check;
mod database;
mod maintenance;
mod open;
#[cfg(test)]
mod reused_ids_tests;
mod shared;
mod table;
#[cfg(test)]
mod tests;
mod transaction;
pub mod types;

pub use crate::base::Damage;
pub use crate::log::LogShape;
pub use crate::store::superblock::MAGIC as FILE_MAGIC;
pub use crate::store::{Compression, CompressionTotals, DeltaBlocks, Overflow, StoreKind, Target, WriteTotals};
pub use crate::tree::{LevelStats, TreeStats};
pub use crate::txn::{DatabaseStats, Metrics, Recovery};
pub use catalog::info::TableInfo;
pub use check::salvage::{Lost, Salvage, Salvaged};
pub use check::{CheckReport, Finding};
pub use database::Database;
pub use maintenance::bulk::{BulkTable, DEFAULT_FILL};
pub use maintenance::compact::CompactReport;
pub use maintenance::dictionaries::DictionaryInfo;
pub use maintenance::progress::{Phase, Progress};
pub use maintenance::strategy::{CompressionPlan, DictionaryAnalysis, MethodAnalysis, Reason, Strategy, TableAnalysis};
pub use open::bounds::{DEFAULT_CHECKPOINT_BYTES, DEFAULT_CHECKPOINT_PAGES};
pub use open::create::NewDatabase;
pub use open::options::{Builder, DEFAULT_CACHE, DEFAULT_VERSION_MEMORY, MIN_CACHE_PAGES};
pub use table::Table;
pub(crate) use table::bounds::encode as encode_bounds;
pub use table::entry::Entry;
pub use table::guard::Guard;
pub use table::keys::Keys;
pub use table::range::{Range, UntypedRange};
pub use table::read_only::ReadOnlyTable;
pub use table::read_only_untyped::ReadOnlyUntypedTable;
pub use table::stream::ValueStream;
pub use table::untyped::UntypedTable;
pub use transaction::read::ReadTransaction;
pub use transaction::write::WriteTransaction;

//! Transactions: batches of page changes, the versions and snapshots that isolate readers from them, and redo.
//!
//! A writing transaction keeps its writes in memory until it commits. The commit turns them into page operations,
//! appends these to the log as one batch, and stores before-images for the open snapshots. The names of tables and the
//! meaning of their bytes belong to `db`.

mod checkpoint;
mod commit;
mod compression;
mod durability;
mod engine;
mod entry_arena;
pub(crate) mod large;
mod log_slot;
mod metrics;
mod open_close;
mod read;
mod redo;
mod redo_work;
mod space;
mod stats;
mod versions;

pub(crate) use crate::tree::KeyRange;
pub(crate) use commit::entry_delta::{EntryDelta, push_steps};
pub(crate) use commit::steps::{Step, Steps};
pub(crate) use commit::write_set::{LastWrite, WriteSet};
pub(crate) use commit::{CATALOG_ROOT, DICTIONARY_PREFIX};
pub use durability::Durability;
pub(crate) use engine::{Engine, WriterGuard};
pub(crate) use log_slot::LogSlot;
pub use metrics::Metrics;
pub(crate) use open_close::catalog_is_gone;
pub(crate) use read::cursor::{Cursor, ReadView};
pub(crate) use read::leaves::{Latched, VisibleEntries};
pub(crate) use redo::layout::{LAYOUT_BYTES, layout_from_bytes, layout_to_bytes};
pub(crate) use redo::logical::LogicalTransaction;
pub(crate) use redo::{Redo, RedoResult};
pub(crate) use redo_work::RedoBounds;
pub(crate) use space::maps::map_damaged;
pub(crate) use space::page_ids::{PageIds, ids_per_map};
pub(crate) use space::reclaim::LargeValues;
pub(crate) use space::unlogged::UNLOGGED_BATCH;
pub use stats::{DatabaseStats, Recovery};
pub(crate) use versions::OwnedRecord;

//! Transactions: batches of page changes, the versions and snapshots that isolate readers from them, and redo.
//!
//! A writing transaction keeps its writes to itself until it commits; then its steps become page operations (`commit`,
//! `applier`), one batch in the log, and before-images for the snapshots that are open (`versions`). What tables are
//! called and what their bytes mean is for `db`.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation
)]

mod appends;
mod applier;
mod checkpoint;
mod commit;
mod count;
mod cursor;
mod detached_ranges;
mod engine;
mod get;
mod kept_events;
mod key_events;
pub(crate) mod large;
mod layout;
mod leaves;
mod logical;
mod need;
mod page_ids;
mod pieces;
mod point_writes;
mod range_pieces;
mod reclaim;
mod record;
mod redo;
mod snapshots;
mod steps;
mod version_run;
mod versions;
mod write_arrays;
mod write_set;

pub(crate) use crate::tree::KeyRange;
pub(crate) use appends::{EntryDelta, push_steps};
pub(crate) use applier::Pages;
pub(crate) use checkpoint::Segments;
pub(crate) use commit::{CATALOG_ROOT, DETACHED_PREFIX};
pub(crate) use cursor::{Cursor, View};
pub use engine::Durability;
pub(crate) use engine::{Engine, LogSlot, WriterGuard};
pub(crate) use layout::{LAYOUT_BYTES, layout_from_bytes, layout_to_bytes};
pub(crate) use leaves::{Latched, Part};
pub(crate) use logical::LogicalTransaction;
pub(crate) use page_ids::{PageIds, ids_per_map};
pub(crate) use reclaim::{Runs, Waiting};
pub(crate) use redo::{Redo, Redone};
pub(crate) use steps::{Step, Steps};
pub(crate) use versions::{HeldBack, OwnedRecord};
pub(crate) use write_set::{WriteSet, Written};

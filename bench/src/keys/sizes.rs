//! What the pages of a table hold, in the paper's terms and in this engine's. Nothing is timed here.

use super::contestant::Table;
use crate::Result;
use crate::keyset::Keys;
use serde::Serialize;

/// Bytes that the paper's program keeps beside each key of an uncompressed page: its offset and its length.
const PAPER_HEADER: f64 = 4.0;

/// The sizes of a loaded table.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sizes {
    /// Pages times the size of a page, to a key.
    pub(super) page_bytes_per_key: f64,
    /// Levels, leaves included.
    pub(super) height: usize,
    /// Children of an inner page.
    pub(super) fanout: f64,
    /// All pages of the tree, inner ones and leaves.
    pub(super) pages: u64,
    /// Pages of the key heap, where leaves keep their keys there.
    pub(super) heap_pages: u64,
    /// Those that are not leaves.
    pub(super) inner_pages: u64,
    /// Entries of a leaf.
    pub(super) leaf_entries: f64,
    /// The part of the leaves that is in use.
    pub(super) leaf_fill: f64,
    /// Bytes of an entry's key in whatever page, as if it were not compressed.
    pub(super) key_bytes: f64,
    /// Bytes of the key lists, slots and other fields included, and of the key heap, to an entry of whatever page.
    pub(super) list_bytes: f64,
    /// Bytes of the key lists that are bytes of keys, to an entry of whatever page; the rest of [`Sizes::list_bytes`] is slots,
    /// lengths and the like.
    pub(super) kept_bytes: f64,
    /// Bytes of page headers and fences, to an entry of whatever page.
    pub(super) front_bytes: f64,
    /// Average bytes of a whole key, and four, divided by [`Sizes::list_bytes`]: what the paper calls the compression ratio.
    pub(super) ratio: f64,
    /// Bytes of the cache with all that belongs to it.
    pub(super) resident_bytes: u64,
    /// Bytes of page images on the disk; 0 in memory.
    pub(super) device_bytes: u64,
    /// Bytes written to the disk for each entry, the log's among them, where that is counted.
    pub(super) written_bytes_per_insert: Option<f64>,
    /// Pages read from the disk for each search.
    pub(super) read_pages_per_search: f64,
    /// Bytes read for each search, where that is counted.
    pub(super) read_bytes_per_search: Option<f64>,
}

impl Sizes {
    /// The sizes of a table that has all the keys.
    pub(super) fn of(table: &Table, keys: &Keys, page_size: usize) -> Result<Sizes> {
        let resident_bytes = table.cache_bytes();
        let device_bytes = table.device_bytes()?;
        let written = table.traffic().map(|(_, written)| written as f64 / keys.len() as f64);
        let stats = table.stats()?;
        let sum = |part: fn(&duramen::db::LevelStats) -> u64| stats.levels.iter().map(part).sum::<u64>() as f64;
        let (pages, entries) = (sum(|level| level.pages), sum(|level| level.entries));
        let leaves = stats.levels.first().copied().unwrap_or_default();
        let inner_pages = pages as u64 - leaves.pages;
        let list_bytes = (sum(|level| level.key_list_bytes) + stats.heap_used_bytes as f64) / entries;
        let whole = keys.bytes() as f64 / keys.len() as f64;
        Ok(Sizes {
            page_bytes_per_key: (pages + (stats.run_pages + stats.heap_pages) as f64) * page_size as f64
                / keys.len() as f64,
            height: stats.levels.len(),
            fanout: (entries - leaves.entries as f64) / (inner_pages as f64).max(1.0),
            pages: pages as u64,
            heap_pages: stats.heap_pages,
            inner_pages,
            leaf_entries: leaves.entries as f64 / leaves.pages as f64,
            leaf_fill: leaves.used_bytes as f64 / (leaves.pages as f64 * page_size as f64),
            key_bytes: sum(|level| level.raw_key_bytes) / entries,
            list_bytes,
            kept_bytes: sum(|level| level.kept_key_bytes) / entries,
            front_bytes: sum(|level| level.front_bytes) / entries,
            ratio: (whole + PAPER_HEADER) / list_bytes,
            resident_bytes,
            device_bytes,
            written_bytes_per_insert: written,
            read_pages_per_search: 0.0,
            read_bytes_per_search: None,
        })
    }
}

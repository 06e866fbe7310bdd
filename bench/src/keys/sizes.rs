//! The sizes of the pages of a table, in the terms of the paper and of this engine. Nothing is timed here.

use super::contestant::Table;
use crate::Result;
use crate::keyset::Keys;
use serde::Serialize;

/// Bytes that the program of the paper needs besides each key of an uncompressed page: its offset and its length.
const PAPER_HEADER: f64 = 4.0;

/// The sizes of a loaded table.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Sizes {
    /// Bytes of all pages for each key.
    pub(super) page_bytes_per_key: f64,
    /// The number of levels, including the leaves.
    pub(super) height: usize,
    /// The average number of children of an inner page.
    pub(super) fanout: f64,
    /// All pages of the tree, inner pages and leaves.
    pub(super) pages: u64,
    /// Pages of the key heap, if there is one.
    pub(super) heap_pages: u64,
    /// Inner pages.
    pub(super) inner_pages: u64,
    /// The average number of entries of a leaf.
    pub(super) leaf_entries: f64,
    /// The part of the leaves that is in use.
    pub(super) leaf_fill: f64,
    /// Average bytes of the key of an entry, without compression, in all pages.
    pub(super) key_bytes: f64,
    /// Average bytes of an entry in the key lists, including slots and other fields, and in the key heap, in all pages.
    pub(super) list_bytes: f64,
    /// Average bytes of keys of an entry in the key lists. The rest of [`Sizes::list_bytes`] is slots, lengths and
    /// other fields.
    pub(super) kept_bytes: f64,
    /// Average bytes of page headers and fences for each entry of all pages.
    pub(super) front_bytes: f64,
    /// The average length of a key plus four, divided by [`Sizes::list_bytes`]: the compression ratio of the paper.
    pub(super) ratio: f64,
    /// Bytes of the cache, including its tables.
    pub(super) resident_bytes: u64,
    /// Bytes of page images on the disk. 0 in memory.
    pub(super) device_bytes: u64,
    /// Bytes written to the disk for each entry, including the log, if that is counted.
    pub(super) written_bytes_per_insert: Option<f64>,
    /// Pages read from the disk for each search.
    pub(super) read_pages_per_search: f64,
    /// Bytes read for each search, if that is counted.
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
        let pages: u64 = stats.levels.iter().map(|level| level.pages).sum();
        let entries = sum(|level| level.entries);
        let leaves = stats.levels.first().copied().unwrap_or_default();
        let inner_pages = pages - leaves.pages;
        let list_bytes = (sum(|level| level.key_list_bytes) + stats.heap_used_bytes as f64) / entries;
        let whole = keys.bytes() as f64 / keys.len() as f64;
        Ok(Sizes {
            page_bytes_per_key: (pages + stats.run_pages + stats.heap_pages) as f64 * page_size as f64
                / keys.len() as f64,
            height: stats.levels.len(),
            fanout: (entries - leaves.entries as f64) / (inner_pages as f64).max(1.0),
            pages,
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

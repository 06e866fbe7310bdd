//! Limits: page sizes, keys, values. They are in one place, so that the API, the tree and the documents agree.

use super::error::{Error, Result};

/// The smallest page size, in bytes (memory only; see [`MIN_FILE_PAGE_SIZE`]).
pub const MIN_PAGE_SIZE: usize = 256;
/// The smallest page size of a database in a file.
pub const MIN_FILE_PAGE_SIZE: usize = 4096;
/// The largest page size, in bytes.
pub const MAX_PAGE_SIZE: usize = 65536;
/// The page size of a database created without naming one.
pub const DEFAULT_PAGE_SIZE: usize = 8192;
/// The longest key, in bytes.
///
/// ```
/// use duramen::{Database, Error, TableDef, base::limits::MAX_KEY};
/// const TREES: TableDef<&[u8], u64> = TableDef::new("trees");
///
/// let db = Database::in_memory()?;
/// let tx = db.begin_write()?;
/// let mut trees = tx.open_table(TREES)?;
/// trees.put([7; MAX_KEY].as_slice(), 0)?;
/// let too_long = trees.put([7; MAX_KEY + 1].as_slice(), 0);
/// assert!(matches!(too_long, Err(Error::KeyTooLong { .. })));
/// # Ok::<(), duramen::Error>(())
/// ```
pub const MAX_KEY: usize = 65536;
/// The longest value, in bytes.
pub const MAX_VALUE: u64 = u32::MAX as u64;
/// The longest name of a table, in bytes.
pub const MAX_TABLE_NAME: usize = 1024;
/// Bytes of a page's header; see `page::header`.
pub(crate) const PAGE_HEADER: usize = 38;
/// Bytes that stand for the rest of a long key inside a page: first page of its run, length, checksum.
pub(crate) const LONG_KEY_TAIL: usize = 12;
/// Bytes that stand for a large value inside a page: first page of its run, length, checksum.
pub(crate) const LARGE_RECORD: usize = 12;

/// The fewest bytes that a key counts as; see [`max_record`].
pub(crate) const LEAST_KEY: usize = 8;

/// The longest key kept whole inside a page: such that two fences and two entries of this size always fit.
pub fn max_inline_key(page_size: usize) -> usize {
    match page_size {
        ..512 => page_size / 8,
        // A fifth leaves no room for that beside the header.
        512 => 101,
        _ => page_size / 5,
    }
}

/// How many bytes of a key longer than [`max_inline_key`] stay in the page. With the 12 bytes that stand for the rest, the image
/// of a long key is one byte longer than the longest inline key; that length marks it as long.
pub fn long_key_head(page_size: usize) -> usize {
    (max_inline_key(page_size) + 1).saturating_sub(LONG_KEY_TAIL)
}

/// The granule that the capacity of slotted lists is rounded up to, in entries: a power of two, for pages with and without a
/// [`SLOT_TRAILER`].
#[inline(always)]
pub(crate) fn granule(page_size: usize) -> usize {
    ((page_size + SLOT_TRAILER) / 512).clamp(1, 16)
}

/// The most that key image and record bytes of one entry may sum to; see [`max_record`].
pub(crate) fn max_entry(page_size: usize) -> usize {
    let slack = granule(page_size) * 8;
    let content = page_size - PAGE_HEADER - 2 * (max_inline_key(page_size) + 1) - slack;
    content / 2 - 16
}

/// The most bytes of a record beside a key of `key` bytes; a value that is longer goes to a run. A key counts as
/// [`LEAST_KEY`] bytes at least: so many its entry may take though it is shorter.
pub(crate) fn max_record(page_size: usize, key: usize) -> usize {
    max_entry(page_size).saturating_sub(key.clamp(LEAST_KEY, max_inline_key(page_size) + 1))
}

/// Bytes that a store with slots keeps behind each page: checksum, generation, turn, geometry.
pub(crate) const SLOT_TRAILER: usize = 16;

/// Whether a page can have this many bytes: a page size, or one less a [`SLOT_TRAILER`].
pub(crate) fn is_page_len(len: usize) -> bool {
    check_page_size(len, true).is_ok() || check_page_size(len.saturating_add(SLOT_TRAILER), false).is_ok()
}

/// Accepts a power of two from [`MIN_PAGE_SIZE`] to [`MAX_PAGE_SIZE`]; below [`MIN_FILE_PAGE_SIZE`] in memory only.
pub(crate) fn check_page_size(page_size: usize, in_memory: bool) -> Result<()> {
    let least = if in_memory { MIN_PAGE_SIZE } else { MIN_FILE_PAGE_SIZE };
    if page_size.is_power_of_two() && (least..=MAX_PAGE_SIZE).contains(&page_size) {
        return Ok(());
    }
    Err(Error::Option {
        option: "page_size",
        value: page_size.to_string(),
        expected: format!("a power of two from {least} to {MAX_PAGE_SIZE}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inline_key_always_leaves_room_for_a_large_record() {
        for size in (8..=16).map(|shift| 1 << shift).chain((12..=16).map(|shift| (1 << shift) - SLOT_TRAILER)) {
            assert!(granule(size).is_power_of_two());
            assert!(max_inline_key(size) + 1 + LARGE_RECORD <= max_entry(size), "page size {size}");
        }
    }

    #[test]
    fn odd_page_sizes_are_refused() {
        assert!(is_page_len(4096) && is_page_len(4080) && is_page_len(256) && !is_page_len(240) && !is_page_len(4088));
        assert!(check_page_size(4096, false).is_ok());
        assert!(check_page_size(256, true).is_ok());
        for (size, memory) in [(0, true), (100, true), (256, false), (4097, false), (131_072, true)] {
            assert!(check_page_size(size, memory).is_err(), "{size}");
        }
    }
}

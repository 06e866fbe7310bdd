//! Limits: page sizes, keys, values. They are in one place, so that the API, the tree and the documents agree.

use super::error::{Error, Result};

/// The smallest page size in bytes, for databases in memory. The smallest one in files is [`MIN_FILE_PAGE_SIZE`].
pub const MIN_PAGE_SIZE: usize = 256;
/// The smallest page size of a database in a file, in bytes.
pub const MIN_FILE_PAGE_SIZE: usize = 4096;
/// The largest page size, in bytes.
pub const MAX_PAGE_SIZE: usize = 65536;
/// The page size of a new database if its creator names none, in bytes.
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
/// The length of a page header in bytes.
pub(crate) const PAGE_HEADER: usize = 38;
/// Bytes at the front of a page that a search probably reads, and that are prefetched together: in a page of a few KiB
/// the header, the fences and the heads of its keys.
pub(crate) const PAGE_FRONT: usize = 768;
/// The length in bytes of the reference to the rest of a long key in a page: first page of its run, length, checksum.
pub(crate) const LONG_KEY_TAIL: usize = 12;
/// The length in bytes of the reference to a large value in a page: first page of its run, length, checksum.
pub(crate) const LARGE_RECORD: usize = 12;

/// The smallest number of bytes that a key counts as in [`max_record`].
pub(crate) const MIN_COUNTED_KEY: usize = 8;

/// The longest key in bytes that is stored whole in a page. Two fences and two entries of this size always fit in a
/// page.
pub fn max_inline_key(page_size: usize) -> usize {
    match page_size {
        ..512 => page_size / 8,
        // With a fifth of the page, they would not fit beside the header.
        512 => 101,
        _ => page_size / 5,
    }
}

/// The number of bytes of a long key that stay in the page. A key is long if it is longer than [`max_inline_key`]. With
/// the reference of 12 bytes, the image of a long key is one byte longer than the longest inline key. This length marks
/// it as long.
pub fn long_key_head(page_size: usize) -> usize {
    (max_inline_key(page_size) + 1).saturating_sub(LONG_KEY_TAIL)
}

/// The unit in entries by which the capacity of slotted lists is rounded up. It is a power of two, for pages with and
/// without a [`SLOT_TRAILER`].
#[inline(always)]
pub(crate) fn granule(page_size: usize) -> usize {
    ((page_size + SLOT_TRAILER) / 512).clamp(1, 16)
}

/// The largest sum of the key image and the record of one entry, in bytes.
pub(crate) fn max_entry(page_size: usize) -> usize {
    let slack = granule(page_size) * 8;
    let content = page_size - PAGE_HEADER - 2 * (max_inline_key(page_size) + 1) - slack;
    content / 2 - 16
}

/// The length in bytes of the longest record beside a key of `key` bytes. A longer value goes to a run. A key counts as
/// at least [`MIN_COUNTED_KEY`] bytes, because the entry of a shorter key may also take that many.
pub(crate) fn max_record(page_size: usize, key: usize) -> usize {
    max_entry(page_size).saturating_sub(key.clamp(MIN_COUNTED_KEY, max_inline_key(page_size) + 1))
}

/// The length in bytes of the trailer that a store with slots keeps after each page: checksum, generation, turn,
/// geometry.
pub(crate) const SLOT_TRAILER: usize = 16;

/// Whether a page can have this length: a page size, or a page size less [`SLOT_TRAILER`].
pub(crate) fn is_page_len(len: usize) -> bool {
    check_page_size(len, true).is_ok() || check_page_size(len.saturating_add(SLOT_TRAILER), false).is_ok()
}

/// Accepts a power of two from [`MIN_PAGE_SIZE`] to [`MAX_PAGE_SIZE`]; sizes below [`MIN_FILE_PAGE_SIZE`] only in
/// memory.
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

//! The 38 bytes at the front of every page, of any kind: the place of each field and how it is read and written.
//!
//! Little-endian: LSN u64 @0, page id u32 @8, table id u32 @12, right u32 @16, entry count u16 @20, bytes of the key
//! list u16 @22, bytes of the record list u16 @24, kind u8 @26, level u8 @27, tag of the key list @28 (kind u8, codec
//! u8, variant u8), tag of the record list u8 @31, length of the lower fence u16 @32, of the upper fence's rest u16
//! @34, of the common prefix u16 @36.

use crate::base::limits::PAGE_HEADER;
use crate::base::{Lsn, PageId, bytes};

pub(super) const LSN: usize = 0;
pub(super) const ID: usize = 8;
pub(super) const TABLE: usize = 12;
pub(super) const RIGHT: usize = 16;
pub(super) const COUNT: usize = 20;
pub(super) const KEY_BYTES: usize = 22;
pub(super) const RECORD_BYTES: usize = 24;
pub(super) const KIND: usize = 26;
pub(super) const LEVEL: usize = 27;
pub(super) const KEY_LIST: usize = 28;
pub(super) const RECORD_LIST: usize = 31;
pub(super) const LOWER: usize = 32;
pub(super) const UPPER_REST: usize = 34;
pub(super) const PREFIX: usize = 36;

/// The value of the field `UPPER_REST` if there is no upper fence: the page is the rightmost of its level.
pub(super) const NO_UPPER: u16 = 0xFFFF;

/// The use of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum PageKind {
    /// A page of entries: keys and their records.
    Leaf = 1,
    /// A page of separators and the ids of its child pages.
    Inner = 2,
    /// One page of a chain that holds a large value or the whole of a long key.
    Run = 3,
    /// An allocation map: one bit for each page.
    Map = 4,
    /// A page of the key heap: whole keys, of which the leaves hold only parts.
    Heap = 5,
}

impl PageKind {
    /// Returns the kind with this number.
    pub(super) fn from_tag(tag: u8) -> Option<PageKind> {
        let kinds = [PageKind::Leaf, PageKind::Inner, PageKind::Run, PageKind::Map, PageKind::Heap];
        kinds.into_iter().find(|kind| *kind as u8 == tag)
    }
}

/// A page's header, read without bounds checks. A page that is too short has a header of zeros.
#[derive(Clone, Copy)]
pub(super) struct Header<'a>(&'a [u8; PAGE_HEADER]);

impl<'a> Header<'a> {
    #[inline(always)]
    pub(super) fn of(page: &'a [u8]) -> Header<'a> {
        Header(page.first_chunk().unwrap_or(&[0; PAGE_HEADER]))
    }

    #[inline(always)]
    pub(super) fn u8(self, at: usize) -> u8 {
        bytes::get_u8(self.0, at)
    }

    /// Returns the tag of the key list.
    #[inline(always)]
    pub(super) fn key_list(self) -> [u8; 3] {
        [self.u8(KEY_LIST), self.u8(KEY_LIST + 1), self.u8(KEY_LIST + 2)]
    }

    #[inline(always)]
    pub(super) fn u16(self, at: usize) -> usize {
        usize::from(bytes::get_u16(self.0, at))
    }

    #[inline(always)]
    pub(super) fn u32(self, at: usize) -> u32 {
        bytes::get_u32(self.0, at)
    }

    #[inline(always)]
    pub(super) fn u64(self, at: usize) -> u64 {
        bytes::get_u64(self.0, at)
    }
}

/// Writes the entry count and the list sizes, which change together.
#[inline(always)]
pub(super) fn set_lists(page: &mut [u8], count: usize, key_bytes: usize, record_bytes: usize) {
    // The three fields are adjacent: one write has one bounds check, and one assertion covers all three.
    bytes::must_fit(count.max(key_bytes).max(record_bytes) <= usize::from(u16::MAX));
    let [[a, b], [c, d], [e, f]] =
        [count, key_bytes, record_bytes].map(|number| bytes::u16_clamped(number).to_le_bytes());
    bytes::put_array(page, COUNT, [a, b, c, d, e, f]);
}

/// Writes the LSN of the last operation. Also works on a packed page, which begins with the same header.
pub fn set_lsn(page: &mut [u8], lsn: Lsn) {
    bytes::put_u64(page, LSN, lsn.0);
}

/// Writes the right sibling.
pub(super) fn set_right(page: &mut [u8], right: PageId) {
    bytes::put_u32(page, RIGHT, right.0);
}

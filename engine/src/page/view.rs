//! The read-only view of a page. It never changes a byte, never allocates (except in the caller's buffers) and never
//! panics, whatever the bytes. [`Page::check`] finds out whether the bytes are a sound page.

use super::header::{self, Header, NO_UPPER, PageKind};
use super::keys::{KeyList, KeyListKind, KeyWalk, USUAL_SUFFIX, granule};
use super::records::{self, Record, RecordList, RecordListKind};
use crate::base::limits::{PAGE_FRONT, PAGE_HEADER};
use crate::base::{Lsn, PageId, TableId, bytes};
use std::ops::Range;

/// How the integers of blocks are encoded as keys.
#[derive(Clone, Copy, Debug)]
pub struct IntegerEncoding {
    width: usize,
}

impl IntegerEncoding {
    /// Calls `look` with the key of an integer.
    #[inline]
    pub fn with_key<R>(self, integer: u64, look: impl FnOnce(&[u8]) -> R) -> R {
        let bytes = integer.to_be_bytes();
        look(bytes.get(bytes.len().saturating_sub(self.width)..).unwrap_or_default())
    }
}

/// A page to read. Any bytes are safe: a field outside the page reads as zero or empty, and the fields of a hostile
/// page are bounded. The answers are right only for a page that has passed [`Page::check`], which runs once, when bytes
/// come from a device.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    bytes: &'a [u8],
    header: Header<'a>,
}

impl<'a> Page<'a> {
    /// Makes a view of `bytes`, a whole page, without a check.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Page<'a> {
        Page { bytes, header: Header::of(bytes) }
    }

    /// Returns the bytes of the page.
    #[inline(always)]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the LSN of the last operation.
    #[inline(always)]
    pub fn lsn(&self) -> Lsn {
        Lsn(self.header.u64(header::LSN))
    }

    /// Returns the page's own id.
    #[inline(always)]
    pub fn id(&self) -> PageId {
        PageId(self.header.u32(header::ID))
    }

    /// Returns the table that the page belongs to.
    #[inline(always)]
    pub fn table(&self) -> TableId {
        TableId(self.header.u32(header::TABLE))
    }

    /// Returns the right sibling of a leaf, or the next page of a run; [`PageId::NONE`] at the end.
    #[inline(always)]
    pub fn right(&self) -> PageId {
        PageId(self.header.u32(header::RIGHT))
    }

    /// Returns the number of entries.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.header.u16(header::COUNT)
    }

    /// Returns the kind of the page; [`PageKind::Run`] if the number is unknown.
    #[inline(always)]
    pub fn kind(&self) -> PageKind {
        PageKind::from_tag(self.header.u8(header::KIND)).unwrap_or(PageKind::Run)
    }

    /// True for a leaf.
    #[inline(always)]
    pub fn is_leaf(&self) -> bool {
        self.header.u8(header::KIND) == PageKind::Leaf as u8
    }

    /// True for an inner page.
    #[inline(always)]
    pub fn is_inner(&self) -> bool {
        self.header.u8(header::KIND) == PageKind::Inner as u8
    }

    /// Returns the level: 0 for leaves, 1 for their parents.
    #[inline(always)]
    pub fn level(&self) -> u8 {
        self.header.u8(header::LEVEL)
    }

    /// Returns the kind of the key list. This function does not report an unknown tag, because a test would slow down
    /// every search. Every page is [checked](Page::check) when it comes from a device or from the log, and no page with
    /// an unknown tag is changed. In an unchecked page an unknown tag reads as [`KeyListKind::USUAL`].
    #[inline(always)]
    pub fn keys(&self) -> KeyListKind {
        KeyListKind::from_tag(self.header.key_list()).unwrap_or(KeyListKind::USUAL)
    }

    /// Returns true if the page holds only parts of its keys: see [`KeyListKind::keys_are_out_of_line`].
    #[inline(always)]
    pub(super) fn keys_are_out_of_line(&self) -> bool {
        self.keys().keys_are_out_of_line()
    }

    /// Returns true if a search in this page leads to other pages: for an inner page, and for a leaf that holds only
    /// parts of its keys.
    #[inline]
    pub fn refers_to_pages(&self) -> bool {
        self.is_inner() || self.is_leaf() && self.keys_are_out_of_line()
    }

    /// Returns the kind of the record list; [`RecordListKind::None`] if the tag is unknown.
    #[inline(always)]
    pub fn records(&self) -> RecordListKind {
        RecordListKind::from_tag(self.header.u8(header::RECORD_LIST)).unwrap_or(RecordListKind::None)
    }

    #[inline(always)]
    pub(super) fn header(&self) -> Header<'a> {
        self.header
    }

    #[inline(always)]
    pub(super) fn granule(&self) -> usize {
        granule(self.bytes.len())
    }

    /// Returns the prefix that the page cuts off every key; empty for lists that cut no prefix.
    #[inline(always)]
    pub fn prefix(&self) -> &'a [u8] {
        bytes::slice(self.bytes, PAGE_HEADER, PAGE_HEADER + self.header.u16(header::PREFIX))
    }

    /// Returns the lower fence: no key of the page is below it.
    #[inline(always)]
    pub fn lower_fence(&self) -> &'a [u8] {
        bytes::slice(self.bytes, PAGE_HEADER, PAGE_HEADER + self.header.u16(header::LOWER))
    }

    /// Returns the length of the upper fence's rest, the part after the prefix.
    #[inline(always)]
    pub(super) fn upper_rest_len(&self) -> usize {
        match self.header.u16(header::UPPER_REST) {
            len if len == usize::from(NO_UPPER) => 0,
            len => len,
        }
    }

    #[inline(always)]
    pub(super) fn upper_rest(&self) -> &'a [u8] {
        let at = PAGE_HEADER + self.header.u16(header::LOWER);
        bytes::slice(self.bytes, at, at + self.upper_rest_len())
    }

    /// Returns false for the rightmost page of a level.
    #[inline(always)]
    pub fn has_upper_fence(&self) -> bool {
        self.header.u16(header::UPPER_REST) != usize::from(NO_UPPER)
    }

    /// Replaces `out` by the upper fence, which is above every key of the page. Returns false, with `out` empty, if
    /// there is no upper fence.
    pub fn upper_fence_into(&self, out: &mut Vec<u8>) -> bool {
        out.clear();
        if self.has_upper_fence() {
            out.reserve(self.prefix().len() + self.upper_rest_len());
            out.extend_from_slice(self.prefix());
            out.extend_from_slice(self.upper_rest());
        }
        self.has_upper_fence()
    }

    /// Returns true if `key` lies between the fences. Images compare bytewise.
    #[inline]
    pub fn covers(&self, key: &[u8]) -> bool {
        let prefix = self.prefix();
        // Both fences begin with the prefix, and so do all keys between them.
        let Some(suffix) = bytes::strip_prefix(key, prefix) else { return false };
        let lower = self.lower_fence().get(prefix.len()..).unwrap_or_default();
        !bytes::is_below(suffix, lower) && (!self.has_upper_fence() || bytes::is_below(suffix, self.upper_rest()))
    }

    /// Returns true if `key` is below the upper fence or there is none. Images compare bytewise.
    #[inline]
    pub fn below_upper(&self, key: &[u8]) -> bool {
        if !self.has_upper_fence() {
            return true;
        }
        let prefix = self.prefix();
        match bytes::strip_prefix(key, prefix) {
            Some(suffix) => bytes::compare(suffix, self.upper_rest()).is_lt(),
            None => key < prefix,
        }
    }

    /// Returns the bytes of header and fences, which a page without entries also has.
    #[inline]
    pub fn front(&self) -> usize {
        self.keys_at().min(self.bytes.len())
    }

    /// Returns the offset of the key list.
    #[inline(always)]
    pub(super) fn keys_at(&self) -> usize {
        PAGE_HEADER + self.header.u16(header::LOWER) + self.upper_rest_len()
    }

    /// Returns the bytes of the key list alone.
    #[inline(always)]
    pub(super) fn key_bytes(&self) -> &'a [u8] {
        let at = self.keys_at();
        bytes::slice(self.bytes, at, at + self.header.u16(header::KEY_BYTES))
    }

    /// Returns the bytes of the record list alone.
    #[inline(always)]
    pub(super) fn record_bytes(&self) -> &'a [u8] {
        let from = self.bytes.len().wrapping_sub(self.header.u16(header::RECORD_BYTES));
        self.bytes.get(from..).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn key_list(&self) -> KeyList<'a> {
        KeyList::new(self.keys(), self.key_bytes(), self.count(), self.granule())
    }

    /// For a parent of leaves with these lists: predicts which bytes of the child at `slot` a search for `key` reads.
    /// `None` if these are no more than its first [`PAGE_FRONT`] bytes, or if they cannot be predicted. The caller can
    /// prefetch both parts together, and then waits for memory once.
    ///
    /// Without records, this works where keys and bytes are spread so evenly that the separators around the child are
    /// enough. Of records of any length, the second part is the slots.
    #[inline]
    pub fn likely_parts(
        &self,
        (leaves, records): (KeyListKind, RecordListKind),
        slot: usize,
        key: &[u8],
    ) -> Option<[Range<usize>; 2]> {
        if records != RecordListKind::None {
            return records.first_slots(self.bytes.len()).map(|slots| [0..PAGE_FRONT, slots]);
        }
        leaves.likely_parts(self.bytes.len(), || {
            // The first key of an inner page stands for the lower fence.
            let from = if slot == 0 { Some(self.lower_fence()) } else { None };
            self.key_list().part_of_way(from, slot, key)
        })
    }

    /// Returns the sum of the integer keys of some slots of a leaf, read as numbers; `None` if the keys are not
    /// integers in blocks. The function that `ahead` makes receives the bytes that are read, if it pays to prefetch the
    /// same bytes of the next page.
    pub fn sum_of_integers<A: Fn(&[u8])>(
        &self,
        slots: &Range<usize>,
        ahead: impl FnOnce() -> Option<A>,
    ) -> Option<u128> {
        Some(self.key_list().blocks()?.sum(slots, ahead))
    }

    /// Appends integer keys in blocks to `keys`, from `slot` to the end of its block. Returns their encoding; `None` if
    /// the keys are not integers in blocks.
    pub fn rest_of_block(&self, slot: usize, keys: &mut Vec<u64>) -> Option<IntegerEncoding> {
        self.key_list().blocks()?.rest_of_block(slot, keys);
        self.keys().key_len().map(|width| IntegerEncoding { width })
    }

    /// Returns the number of keys in the longest block of a leaf; `None` without blocks.
    #[cfg(test)]
    pub(crate) fn longest_block(&self) -> Option<usize> {
        self.key_list().blocks().map(|blocks| blocks.longest())
    }

    /// Returns `Ok(slot)` of the key image equal to `key`, or `Err(slot)` with the slot where it would be inserted.
    /// Keys compare bytewise; the tree compares long keys.
    #[inline]
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.prefix();
        match bytes::strip_prefix(key, prefix) {
            Some(suffix) => self.key_list().search(suffix),
            None if key < prefix => Err(0),
            None => Err(self.count()),
        }
    }

    /// Returns true if the key image of `slot` is above `key`, bytewise. `slot` is not the first of an inner page. Also
    /// returns false if there is no such slot, or if the list has no quick way to one of its keys.
    #[inline]
    pub fn is_above(&self, slot: usize, key: &[u8]) -> bool {
        let Some(suffix) = bytes::strip_prefix(key, self.prefix()) else { return false };
        slot < self.count() && self.key_list().is_above(slot, suffix)
    }

    /// For an inner page: returns the slot of the child whose range contains `key`.
    #[inline]
    pub fn child_for(&self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(slot) => slot,
            Err(slot) => slot.saturating_sub(1),
        }
    }

    /// Replaces `out` by the key image of `slot` (the bare prefix for slot 0 of an inner page); empty if there is no
    /// such slot.
    #[inline]
    pub fn key_into(&self, slot: usize, out: &mut Vec<u8>) {
        out.clear();
        if slot >= self.count() {
            return;
        }
        // Reserves room for most keys at once.
        out.reserve(self.prefix().len() + USUAL_SUFFIX);
        out.extend_from_slice(self.prefix());
        if slot > 0 || !self.is_inner() {
            self.key_list().append(slot, out);
        }
    }

    /// Returns the length of the key image of `slot`.
    #[inline]
    pub fn key_len(&self, slot: usize) -> usize {
        if slot >= self.count() {
            return 0;
        }
        let suffix = if slot == 0 && self.is_inner() { 0 } else { self.key_list().suffix_len(slot) };
        self.prefix().len() + suffix
    }

    /// Returns the total length of the key images; 0 if the page holds only parts of its keys.
    pub fn raw_key_bytes(&self) -> usize {
        if self.keys_are_out_of_line() {
            return 0;
        }
        let mut keys = KeyWalk::new(self.key_list(), 0, self.count());
        let (mut sum, mut bare) = (self.count() * self.prefix().len(), self.is_inner());
        while let Some(entry) = keys.step() {
            sum += if std::mem::take(&mut bare) { 0 } else { entry.suffix.len() };
        }
        sum
    }

    /// Returns how many bytes of the key list are bytes of keys. The others are slots, lengths and similar fields.
    pub fn kept_key_bytes(&self) -> usize {
        self.key_list().kept_bytes(self.count())
    }

    /// Returns the first slot from `from` on whose key image is longer than `len`. For slot 0 of an inner page the
    /// answer may be too early: it may count as longer than it is.
    pub fn first_longer(&self, from: usize, len: usize) -> Option<usize> {
        match len.checked_sub(self.prefix().len()) {
            Some(suffix) => self.key_list().first_longer(from, suffix),
            None => (from < self.count()).then_some(from),
        }
    }

    /// Returns the record of `slot`; an empty record if there is no such slot.
    #[inline]
    pub fn record(&self, slot: usize) -> Record<'a> {
        self.record_list().get(slot)
    }

    #[inline(always)]
    pub(super) fn record_list(&self) -> RecordList<'a> {
        let (kind, list) = (self.records(), self.record_bytes());
        RecordList { kind, list, count: self.count(), granule: self.granule() }
    }

    /// For an inner page: returns the child at `slot`; [`PageId::NONE`] if there is none.
    #[inline]
    pub fn child(&self, slot: usize) -> PageId {
        PageId(bytes::get_u32(records::child(self.record_bytes(), slot), 0))
    }

    /// Returns the bytes in use, including the header.
    #[inline]
    pub fn used(&self) -> usize {
        let used = self.keys_at() + self.header.u16(header::KEY_BYTES) + self.header.u16(header::RECORD_BYTES);
        used.min(self.bytes.len())
    }

    /// Returns the bytes of the record list, including slots.
    #[inline]
    pub fn record_list_bytes(&self) -> usize {
        self.record_bytes().len()
    }

    /// Returns the number of free bytes between the two lists.
    #[inline]
    pub fn free(&self) -> usize {
        self.bytes.len() - self.used()
    }

    /// Returns the bytes that the entry of `slot` takes in both lists, including slots.
    #[inline]
    pub fn entry_bytes(&self, slot: usize) -> usize {
        self.key_list().entry_bytes(slot) + self.record_list().entry_bytes(slot)
    }
}

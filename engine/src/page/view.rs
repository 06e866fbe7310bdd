//! The reading view of a page. It never changes a byte, never allocates (but for the caller's buffers) and never
//! panics, whatever the bytes; [`Page::check`] says whether they make sense.

use super::header::{self, Header, NO_UPPER, PageKind};
use super::keys::{KeyList, KeyListKind, KeyWalk, USUAL_SUFFIX, granule};
use super::records::{self, Record, RecordList, RecordListKind};
use crate::base::limits::PAGE_HEADER;
use crate::base::{Lsn, PageId, TableId, bytes};
use std::ops::Range;

/// A page to read. Any bytes are safe: what lies outside them reads as zero or empty, and what a hostile page says is
/// bounded. [`Page::check`] once, when bytes come from a device, makes the answers right as well.
#[derive(Clone, Copy)]
pub struct Page<'a> {
    bytes: &'a [u8],
    header: Header<'a>,
}

impl<'a> Page<'a> {
    /// Views `bytes`, a whole page, unchecked.
    #[inline(always)]
    pub fn new(bytes: &'a [u8]) -> Page<'a> {
        Page { bytes, header: Header::of(bytes) }
    }

    /// The bytes of the page.
    #[inline(always)]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The LSN of the last operation.
    #[inline(always)]
    pub fn lsn(&self) -> Lsn {
        Lsn(self.header.u64(header::LSN))
    }

    /// The page's own id.
    #[inline(always)]
    pub fn id(&self) -> PageId {
        PageId(self.header.u32(header::ID))
    }

    /// The table that the page belongs to.
    #[inline(always)]
    pub fn table(&self) -> TableId {
        TableId(self.header.u32(header::TABLE))
    }

    /// The right sibling of a leaf, the next page of a run; [`PageId::NONE`] at the end.
    #[inline(always)]
    pub fn right(&self) -> PageId {
        PageId(self.header.u32(header::RIGHT))
    }

    /// The number of entries.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.header.u16(header::COUNT)
    }

    /// What the page is for; [`PageKind::Run`] where the number is unknown.
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

    /// The level: 0 for leaves, 1 for their parents.
    #[inline(always)]
    pub fn level(&self) -> u8 {
        self.header.u8(header::LEVEL)
    }

    /// The kind of the key list. Reading does not ask whether there is one of that tag, which would cost each search: every page
    /// is [checked](Page::check) when it is read from a device or comes from the log, and no page is changed whose tag is
    /// unknown. Of a page that is neither, an unknown tag stands for [`KeyListKind::USUAL`].
    #[inline(always)]
    pub fn keys(&self) -> KeyListKind {
        KeyListKind::from_tag(self.header.key_list()).unwrap_or(KeyListKind::USUAL)
    }

    /// True where the page has parts of its keys only: see [`KeyListKind::keys_are_out_of_line`].
    #[inline(always)]
    pub fn keys_are_out_of_line(&self) -> bool {
        self.keys().keys_are_out_of_line()
    }

    /// The kind of the record list; [`RecordListKind::None`] where the tag is unknown.
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

    /// What is cut off the front of every key in this page; empty for lists that cut nothing.
    #[inline(always)]
    pub fn prefix(&self) -> &'a [u8] {
        bytes::slice(self.bytes, PAGE_HEADER, PAGE_HEADER + self.header.u16(header::PREFIX))
    }

    /// The lower fence: no key of the page is below it.
    #[inline(always)]
    pub fn lower_fence(&self) -> &'a [u8] {
        bytes::slice(self.bytes, PAGE_HEADER, PAGE_HEADER + self.header.u16(header::LOWER))
    }

    /// The bytes of the upper fence's rest.
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

    /// False for the rightmost page of a level.
    #[inline(always)]
    pub fn has_upper_fence(&self) -> bool {
        self.header.u16(header::UPPER_REST) != usize::from(NO_UPPER)
    }

    /// Replaces `out` by the upper fence, which every key of the page is below. False, and `out` empty: there is
    /// none.
    pub fn upper_fence_into(&self, out: &mut Vec<u8>) -> bool {
        out.clear();
        if self.has_upper_fence() {
            out.reserve(self.prefix().len() + self.upper_rest_len());
            out.extend_from_slice(self.prefix());
            out.extend_from_slice(self.upper_rest());
        }
        self.has_upper_fence()
    }

    /// True where `key` lies between the fences, bytewise on images.
    #[inline]
    pub fn covers(&self, key: &[u8]) -> bool {
        let prefix = self.prefix();
        // Both fences begin with the prefix, and so do all keys between them.
        let Some(suffix) = bytes::strip_prefix(key, prefix) else { return false };
        let lower = self.lower_fence().get(prefix.len()..).unwrap_or_default();
        !bytes::is_below(suffix, lower) && (!self.has_upper_fence() || bytes::is_below(suffix, self.upper_rest()))
    }

    /// True where `key` is below the upper fence, bytewise on images, or where there is none.
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

    /// Bytes of header and fences, which a page has without entries, too.
    #[inline]
    pub fn front(&self) -> usize {
        self.keys_at().min(self.bytes.len())
    }

    /// Where the key list begins.
    #[inline(always)]
    pub(super) fn keys_at(&self) -> usize {
        PAGE_HEADER + self.header.u16(header::LOWER) + self.upper_rest_len()
    }

    /// The bytes of the key list alone.
    #[inline(always)]
    pub(super) fn key_bytes(&self) -> &'a [u8] {
        let at = self.keys_at();
        bytes::slice(self.bytes, at, at + self.header.u16(header::KEY_BYTES))
    }

    /// The bytes of the record list alone.
    #[inline(always)]
    pub(super) fn record_bytes(&self) -> &'a [u8] {
        let from = self.bytes.len().wrapping_sub(self.header.u16(header::RECORD_BYTES));
        self.bytes.get(from..).unwrap_or_default()
    }

    #[inline(always)]
    pub(super) fn key_list(&self) -> KeyList<'a> {
        KeyList::new(self.keys(), self.key_bytes(), self.count(), self.granule())
    }

    /// Of a parent of leaves with that key list and without records: where in the child at `slot` a search for `key` will
    /// read, where keys and bytes lie so evenly that the separators around the child tell. So the key's bytes and the index that
    /// leads to them are waited for once.
    #[inline]
    pub fn likely_parts(&self, leaves: KeyListKind, slot: usize, key: &[u8]) -> Option<[Range<usize>; 2]> {
        leaves.likely_parts(self.bytes.len(), || {
            // The first key of an inner page is whatever the page begins with.
            let from = if slot == 0 { Some(self.lower_fence()) } else { None };
            self.key_list().part_of_way(from, slot, key)
        })
    }

    /// The sum of the integer keys of some slots of a leaf, as the numbers that their bytes are; `None` where keys are not integers in
    /// blocks. What `ahead` makes is handed the bytes that are read, where it pays to ask for the like in the next page.
    pub fn sum_of_integers<A: Fn(&[u8])>(
        &self,
        slots: &Range<usize>,
        ahead: impl FnOnce() -> Option<A>,
    ) -> Option<u128> {
        Some(self.key_list().blocks()?.sum(slots, ahead))
    }

    /// Appends integer keys in blocks to `keys`, from `slot` to the end of its block; gives their width in bytes. `None` where
    /// keys are not such.
    pub fn rest_of_block(&self, slot: usize, keys: &mut Vec<u64>) -> Option<usize> {
        self.key_list().blocks()?.rest_of_block(slot, keys);
        self.keys().key_len()
    }

    /// The most keys that a block of a leaf has; `None` without blocks.
    #[cfg(test)]
    pub(crate) fn longest_block(&self) -> Option<usize> {
        self.key_list().blocks().map(|blocks| blocks.longest())
    }

    /// `Ok(slot)` of the key image equal to `key`, or `Err(slot)` where it would be inserted. Keys compare bytewise;
    /// long keys are the tree's to compare.
    #[inline]
    pub fn search(&self, key: &[u8]) -> Result<usize, usize> {
        let prefix = self.prefix();
        match bytes::strip_prefix(key, prefix) {
            Some(suffix) => self.key_list().search(suffix),
            None if key < prefix => Err(0),
            None => Err(self.count()),
        }
    }

    /// True where the key image of `slot`, which is not an inner page's first, is above `key`, bytewise. False also where
    /// there is no such slot or its list has no quick way to one of its keys.
    #[inline]
    pub fn is_above(&self, slot: usize, key: &[u8]) -> bool {
        let Some(suffix) = bytes::strip_prefix(key, self.prefix()) else { return false };
        slot < self.count() && self.key_list().is_above(slot, suffix)
    }

    /// Of an inner page: the slot of the child whose range `key` falls in.
    #[inline]
    pub fn child_for(&self, key: &[u8]) -> usize {
        match self.search(key) {
            Ok(slot) => slot,
            Err(slot) => slot.saturating_sub(1),
        }
    }

    /// Replaces `out` by the key image of `slot` (of an inner page's slot 0: the bare prefix); empty where there is no
    /// such slot.
    #[inline]
    pub fn key_into(&self, slot: usize, out: &mut Vec<u8>) {
        out.clear();
        if slot >= self.count() {
            return;
        }
        // Room for most keys at once.
        out.reserve(self.prefix().len() + USUAL_SUFFIX);
        out.extend_from_slice(self.prefix());
        if slot > 0 || !self.is_inner() {
            self.key_list().append(slot, out);
        }
    }

    /// The length of the key image of `slot`.
    #[inline]
    pub fn key_len(&self, slot: usize) -> usize {
        if slot >= self.count() {
            return 0;
        }
        let suffix = if slot == 0 && self.is_inner() { 0 } else { self.key_list().suffix_len(slot) };
        self.prefix().len() + suffix
    }

    /// Bytes that the key images take side by side.
    pub fn raw_key_bytes(&self) -> usize {
        let mut keys = KeyWalk::new(self.key_list(), 0, self.count());
        let (mut sum, mut bare) = (self.count() * self.prefix().len(), self.is_inner());
        while let Some(entry) = keys.step() {
            sum += if std::mem::take(&mut bare) { 0 } else { entry.suffix.len() };
        }
        sum
    }

    /// Bytes of the key list that are bytes of keys: the others are slots, lengths and the like.
    pub fn kept_key_bytes(&self) -> usize {
        self.key_list().kept_bytes(self.count())
    }

    /// The first slot from `from` on whose key image is longer than `len`. An inner page's slot 0 may be said to be
    /// longer than it is.
    pub fn first_longer(&self, from: usize, len: usize) -> Option<usize> {
        match len.checked_sub(self.prefix().len()) {
            Some(suffix) => self.key_list().first_longer(from, suffix),
            None => (from < self.count()).then_some(from),
        }
    }

    /// The record of `slot`; an empty one where there is no such slot.
    #[inline]
    pub fn record(&self, slot: usize) -> Record<'a> {
        self.record_list().get(slot)
    }

    #[inline(always)]
    pub(super) fn record_list(&self) -> RecordList<'a> {
        let (kind, list) = (self.records(), self.record_bytes());
        RecordList { kind, list, count: self.count(), granule: self.granule() }
    }

    /// Of an inner page: the child at `slot`; [`PageId::NONE`] where there is none.
    #[inline]
    pub fn child(&self, slot: usize) -> PageId {
        PageId(bytes::get_u32(records::child(self.record_bytes(), slot), 0))
    }

    /// Bytes in use, the header's among them.
    #[inline]
    pub fn used(&self) -> usize {
        let used = self.keys_at() + self.header.u16(header::KEY_BYTES) + self.header.u16(header::RECORD_BYTES);
        used.min(self.bytes.len())
    }

    /// Bytes of the record list, slots included.
    #[inline]
    pub fn record_list_bytes(&self) -> usize {
        self.record_bytes().len()
    }

    /// Bytes between the two lists.
    #[inline]
    pub fn free(&self) -> usize {
        self.bytes.len() - self.used()
    }

    /// Bytes that the entry of `slot` takes in both lists, slots included.
    #[inline]
    pub fn entry_bytes(&self, slot: usize) -> usize {
        self.key_list().entry_bytes(slot) + self.record_list().entry_bytes(slot)
    }
}

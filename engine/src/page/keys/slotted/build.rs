//! Building a slotted key list entry by entry, in order. How many entries come is not known beforehand, so its
//! three parts grow apart and meet in the end.

use super::{Entry, FIXED_PART, HEAD, head_of, heap_bytes};
use crate::base::bytes;
use crate::page::keys::capacity;
use crate::page::varint;

/// A slotted key list under construction.
pub(crate) struct SlottedBuilder {
    granule: usize,
    heads: Vec<u8>,
    slots: Vec<u8>,
    heap: Vec<u8>,
}

impl SlottedBuilder {
    pub(in crate::page::keys) fn new(granule: usize) -> SlottedBuilder {
        SlottedBuilder { granule, heads: Vec::new(), slots: Vec::new(), heap: Vec::new() }
    }

    /// Bytes of the list with one more suffix of that length.
    #[inline]
    pub(in crate::page::keys) fn bytes_with(&self, suffix_len: usize) -> usize {
        FIXED_PART * capacity(self.heads.len() / 4 + 1, self.granule) + self.heap.len() + heap_bytes(suffix_len)
    }

    #[inline]
    pub(in crate::page::keys) fn push(&mut self, suffix: &[u8]) {
        let rest = suffix.get(HEAD..).unwrap_or_default();
        self.push_entry(Entry { head: head_of(suffix), len: suffix.len(), rest });
    }

    #[inline]
    pub(super) fn push_entry(&mut self, entry: Entry<'_>) {
        self.heads.extend_from_slice(&entry.head.to_le_bytes());
        self.slots.extend_from_slice(&bytes::u16_of(self.heap.len()).to_le_bytes());
        varint::push(&mut self.heap, entry.len);
        self.heap.extend_from_slice(entry.rest);
    }

    pub(in crate::page::keys) fn finish(self, out: &mut Vec<u8>) {
        let cap = capacity(self.heads.len() / 4, self.granule);
        let start = out.len();
        out.extend_from_slice(&self.heads);
        out.resize(start + 4 * cap, 0);
        out.extend_from_slice(&self.slots);
        out.resize(start + FIXED_PART * cap, 0);
        out.extend_from_slice(&self.heap);
    }
}

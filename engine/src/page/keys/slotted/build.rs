//! Building a slotted key list entry by entry, in order. How many entries come is not known beforehand, so what comes
//! before the heap grows apart from it and meets it in the end.

use super::{Entry, FIXED_PART, HEAD, head_of, heap_bytes};
use crate::base::bytes;
use crate::page::keys::capacity;
use crate::page::varint;

/// A slotted key list under construction.
pub(crate) struct SlottedBuilder {
    granule: usize,
    /// The head of each entry and its offset in the heap.
    fixed: Vec<(u32, u16)>,
    heap: Vec<u8>,
}

impl SlottedBuilder {
    /// Begins a list of up to some `bytes`, for which it takes memory at once.
    pub(in crate::page::keys) fn new(granule: usize, bytes: usize) -> SlottedBuilder {
        SlottedBuilder { granule, fixed: Vec::with_capacity(bytes / 16), heap: Vec::with_capacity(bytes) }
    }

    /// Bytes of the list with one more suffix of that length.
    #[inline]
    pub(in crate::page::keys) fn bytes_with(&self, suffix_len: usize) -> usize {
        FIXED_PART * capacity(self.fixed.len() + 1, self.granule) + self.heap.len() + heap_bytes(suffix_len)
    }

    /// Bytes of the list.
    pub(in crate::page::keys) fn bytes(&self) -> usize {
        FIXED_PART * capacity(self.fixed.len(), self.granule) + self.heap.len()
    }

    #[inline]
    pub(in crate::page::keys) fn push(&mut self, suffix: &[u8]) {
        let rest = suffix.get(HEAD..).unwrap_or_default();
        self.push_entry(Entry { head: head_of(suffix), len: suffix.len(), rest });
    }

    #[inline]
    pub(in crate::page::keys) fn push_entry(&mut self, entry: Entry<'_>) {
        self.fixed.push((entry.head, bytes::u16_of(self.heap.len())));
        varint::push(&mut self.heap, entry.len);
        self.heap.extend_from_slice(entry.rest);
    }

    pub(in crate::page::keys) fn finish(self, out: &mut Vec<u8>) {
        let cap = capacity(self.fixed.len(), self.granule);
        let start = out.len();
        out.extend(self.fixed.iter().flat_map(|(head, _)| head.to_le_bytes()));
        out.resize(start + 4 * cap, 0);
        out.extend(self.fixed.iter().flat_map(|(_, offset)| offset.to_le_bytes()));
        out.resize(start + FIXED_PART * cap, 0);
        out.extend_from_slice(&self.heap);
    }
}

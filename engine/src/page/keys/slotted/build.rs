//! Builds a slotted key list entry by entry, in order. The number of entries is not known beforehand, so heads and
//! slots grow separately from the heap, and `finish` joins them.

use super::{FIXED_PART, HEAD, Slotted, Suffix, head_of, heap_bytes, is_short, short_len};
use crate::base::{bytes, varint};
use crate::page::keys::capacity;
use crate::page::keys::scheme::Build;
use std::ops::Range;

/// A slotted key list under construction.
pub(crate) struct SlottedBuilder {
    granule: usize,
    /// The list may be dense, and all suffixes so far are short.
    dense: bool,
    /// The head of each entry and its offset in the heap.
    fixed: Vec<(u32, u16)>,
    heap: Vec<u8>,
}

impl SlottedBuilder {
    /// Begins a list for a page of up to `bytes` bytes, and allocates memory for it at once. `dense`: the list may be
    /// dense.
    pub(crate) fn new(granule: usize, bytes: usize, dense: bool) -> SlottedBuilder {
        SlottedBuilder { granule, dense, fixed: Vec::with_capacity(bytes / 16), heap: Vec::with_capacity(bytes) }
    }

    /// Returns the bytes of the list with one more suffix of that length, if the list is not dense.
    #[inline]
    pub(crate) fn slotted_bytes_with(&self, suffix_len: usize) -> usize {
        FIXED_PART * capacity(self.fixed.len() + 1, self.granule) + self.heap.len() + heap_bytes(suffix_len)
    }

    #[inline]
    pub(crate) fn push_entry(&mut self, entry: Suffix<'_>) {
        self.dense = self.dense && short_len(entry.head) == entry.len;
        self.fixed.push((entry.head, bytes::u16_clamped(self.heap.len())));
        varint::push(&mut self.heap, entry.len as u64);
        self.heap.extend_from_slice(entry.rest);
    }

    /// Removes all entries from a list that may not be dense.
    pub(crate) fn clear(&mut self) {
        self.fixed.clear();
        self.heap.clear();
    }
}

impl Build for SlottedBuilder {
    type List<'a> = Slotted<'a>;

    fn bytes(&self) -> usize {
        if self.dense {
            return HEAD * self.fixed.len();
        }
        FIXED_PART * capacity(self.fixed.len(), self.granule) + self.heap.len()
    }

    #[inline]
    fn bytes_with(&self, suffix: &[u8]) -> Option<usize> {
        if self.dense && is_short(suffix) {
            return Some(HEAD * (self.fixed.len() + 1));
        }
        Some(self.slotted_bytes_with(suffix.len()))
    }

    #[inline]
    fn push(&mut self, suffix: &[u8]) {
        let rest = suffix.get(HEAD..).unwrap_or_default();
        self.push_entry(Suffix { head: head_of(suffix), len: suffix.len(), rest });
    }

    fn take(&mut self, from: &Slotted<'_>, slots: Range<usize>, cut: usize) -> bool {
        if cut > 0 {
            return slots.into_iter().all(|slot| {
                let entry = from.entry(slot);
                self.push_entry(entry.without(cut));
                entry.len >= cut
            });
        }
        for slot in slots {
            let (head, kept) = from.kept(slot);
            self.dense = self.dense && kept.first().map(|len| usize::from(*len)) == Some(short_len(head));
            self.fixed.push((head, bytes::u16_clamped(self.heap.len())));
            self.heap.extend_from_slice(kept);
        }
        true
    }

    fn finish(self, _room: usize, out: &mut Vec<u8>) {
        if self.dense {
            out.extend(self.fixed.iter().flat_map(|(head, _)| head.to_le_bytes()));
            return;
        }
        let cap = capacity(self.fixed.len(), self.granule);
        let start = out.len();
        out.resize(start + FIXED_PART * cap, 0);
        let (heads, slots) = out.get_mut(start..).unwrap_or_default().split_at_mut_checked(4 * cap).unwrap_or_default();
        let places = heads.as_chunks_mut().0.iter_mut().zip(slots.as_chunks_mut().0);
        for ((head, slot), (this, offset)) in places.zip(&self.fixed) {
            (*head, *slot) = (this.to_le_bytes(), offset.to_le_bytes());
        }
        out.extend_from_slice(&self.heap);
    }
}

//! Builds a PkB key list entry by entry, in order.

use super::{FIELD, Pkb, fixed, heap_bytes, part_of};
use crate::base::{bytes, varint};
use crate::page::keys::capacity;
use crate::page::keys::scheme::Build;
use std::ops::Range;

/// A PkB key list under construction.
pub(crate) struct PkbBuilder {
    granule: usize,
    part: usize,
    count: usize,
    parts: Vec<u8>,
    slots: Vec<[u8; 2]>,
    heap: Vec<u8>,
    /// The heap offset of the last key.
    last: usize,
}

impl PkbBuilder {
    /// Begins a list for a page of up to `bytes` bytes.
    pub(crate) fn new(granule: usize, part: usize, bytes: usize) -> PkbBuilder {
        let (parts, slots) = (Vec::with_capacity(bytes / 4), Vec::with_capacity(bytes / 16));
        PkbBuilder { granule, part, count: 0, parts, slots, heap: Vec::with_capacity(bytes), last: 0 }
    }

    #[inline]
    fn push_heap(&mut self, key: &[u8]) {
        self.slots.push(bytes::u16_clamped(self.heap.len()).to_le_bytes());
        varint::push(&mut self.heap, key.len() as u64);
        self.last = self.heap.len();
        self.heap.extend_from_slice(key);
        self.count += 1;
    }
}

impl Build for PkbBuilder {
    type List<'a> = Pkb<'a>;

    fn bytes(&self) -> usize {
        fixed(self.part) * capacity(self.count, self.granule) + self.heap.len()
    }

    #[inline]
    fn bytes_with(&self, suffix: &[u8]) -> Option<usize> {
        Some(fixed(self.part) * capacity(self.count + 1, self.granule) + self.heap.len() + heap_bytes(suffix.len()))
    }

    #[inline]
    fn push(&mut self, key: &[u8]) {
        let before = self.heap.get(self.last..).filter(|_| self.count > 0);
        let part = part_of(before, key);
        self.parts.extend_from_slice(part.get(..FIELD + self.part).unwrap_or_default());
        self.push_heap(key);
    }

    fn take(&mut self, from: &Pkb<'_>, slots: Range<usize>, cut: usize) -> bool {
        if from.part != self.part {
            return false;
        }
        slots.enumerate().all(|(index, slot)| {
            let key = from.key(slot);
            let Some(suffix) = key.get(cut..) else { return false };
            if index == 0 {
                self.push(suffix);
                return true;
            }
            let offset = from.offset(slot).saturating_sub(cut);
            self.parts.extend_from_slice(&bytes::u16_of(offset).to_le_bytes());
            self.parts.extend_from_slice(from.part(slot));
            self.push_heap(suffix);
            true
        })
    }

    fn finish(self, _room: usize, out: &mut Vec<u8>) {
        let (cap, start) = (capacity(self.count, self.granule), out.len());
        out.extend_from_slice(&self.parts);
        out.resize(start + cap * (fixed(self.part) - 2), 0);
        out.extend_from_slice(self.slots.as_flattened());
        out.resize(start + cap * fixed(self.part), 0);
        out.extend_from_slice(&self.heap);
    }
}

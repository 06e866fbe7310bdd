//! Building a PkB key list entry by entry, in order.

use super::{fixed, heap_bytes, push_part};
use crate::base::bytes;
use crate::page::keys::capacity;
use crate::page::varint;

/// A PkB key list under construction.
pub(crate) struct PkbBuilder {
    granule: usize,
    part: usize,
    count: usize,
    parts: Vec<u8>,
    slots: Vec<[u8; 2]>,
    heap: Vec<u8>,
    /// Where the last key is in the heap.
    last: usize,
}

impl PkbBuilder {
    /// Begins a list of up to some `bytes`.
    pub(in crate::page::keys) fn new(granule: usize, part: usize, bytes: usize) -> PkbBuilder {
        let (parts, slots, heap) = (Vec::with_capacity(bytes / 4), Vec::new(), Vec::with_capacity(bytes));
        PkbBuilder { granule, part, count: 0, parts, slots, heap, last: 0 }
    }

    /// Bytes of the list with one more suffix of that length.
    #[inline]
    pub(in crate::page::keys) fn bytes_with(&self, len: usize) -> usize {
        fixed(self.part) * capacity(self.count + 1, self.granule) + self.heap.len() + heap_bytes(len)
    }

    #[inline]
    pub(in crate::page::keys) fn push(&mut self, key: &[u8]) {
        let before = self.heap.get(self.last..).filter(|_| self.count > 0);
        push_part(&mut self.parts, before, key, self.part);
        self.slots.push(bytes::u16_of(self.heap.len()).to_le_bytes());
        varint::push(&mut self.heap, key.len());
        self.last = self.heap.len();
        self.heap.extend_from_slice(key);
        self.count += 1;
    }

    pub(in crate::page::keys) fn finish(self, out: &mut Vec<u8>) {
        let (cap, start) = (capacity(self.count, self.granule), out.len());
        out.extend_from_slice(&self.parts);
        out.resize(start + cap * (fixed(self.part) - 2), 0);
        out.extend_from_slice(self.slots.as_flattened());
        out.resize(start + cap * fixed(self.part), 0);
        out.extend_from_slice(&self.heap);
    }
}

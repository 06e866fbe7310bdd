//! The slotted key list, which is both *plain* and *head*: reading, searching and checking it. Changing it is in
//! `edit`. What a prefix is, and whether one was cut, must never be known here.
//!
//! `[head u32; cap] [slot u16; cap] [heap]`. A head is the first 4 bytes of the suffix as a big-endian number, zero
//! padded; the slot is the heap offset of `varint(suffix length) | the suffix behind its first 4 bytes`. Suffixes
//! compare as (head, rest, length): two that agree in head and rest differ in length only by zero bytes within the
//! padding of the head. There is never garbage in the heap: its entries tile it.

mod build;
pub(super) mod edit;

use super::capacity;
use crate::base::bytes;
use crate::page::varint;
pub(super) use build::SlottedBuilder;
use std::cmp::Ordering;

/// Bytes of head and slot together.
pub(super) const FIXED_PART: usize = 6;
/// Bytes of a suffix that its head holds.
pub(super) const HEAD: usize = 4;

/// The head of a suffix.
#[inline(always)]
pub(super) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk() {
        Some(first) => u32::from_be_bytes(*first),
        None => suffix.iter().fold((0, 24), |(head, shift), &byte| (head | u32::from(byte) << shift, shift - 8)).0,
    }
}

/// Bytes of the heap that a suffix of that length takes.
#[inline(always)]
pub(super) fn heap_bytes(suffix_len: usize) -> usize {
    varint::size(suffix_len) + suffix_len.saturating_sub(HEAD)
}

/// Bytes of the whole list that a suffix of that length takes.
#[inline(always)]
pub(super) fn entry_bytes(suffix_len: usize) -> usize {
    FIXED_PART + heap_bytes(suffix_len)
}

/// An entry's suffix in its two parts.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    /// The head.
    pub(super) head: u32,
    /// The length of the whole suffix.
    pub(super) len: usize,
    /// The suffix behind its first 4 bytes.
    pub(super) rest: &'a [u8],
}

/// A slotted key list to read.
#[derive(Clone, Copy)]
pub(crate) struct Slotted<'a> {
    heads: &'a [[u8; 4]],
    slots: &'a [[u8; 2]],
    heap: &'a [u8],
}

impl<'a> Slotted<'a> {
    #[inline(always)]
    pub(super) fn new(list: &'a [u8], count: usize, granule: usize) -> Slotted<'a> {
        let cap = capacity(count, granule);
        let (heads, rest) = list.split_at_checked(4 * cap).unwrap_or_default();
        let (slots, heap) = rest.split_at_checked(2 * cap).unwrap_or_default();
        Slotted {
            heads: heads.as_chunks().0.get(..count).unwrap_or_default(),
            slots: slots.as_chunks().0.get(..count).unwrap_or_default(),
            heap,
        }
    }

    #[inline(always)]
    fn head(&self, slot: usize) -> Option<u32> {
        self.heads.get(slot).map(|head| u32::from_le_bytes(*head))
    }

    /// The heap entry at offset `at`: the suffix length and the rest.
    #[inline(always)]
    fn heap_entry(&self, at: usize) -> (usize, &'a [u8]) {
        let entry = self.heap.get(at..).unwrap_or_default();
        let (len, size) = varint::get(entry);
        (len, bytes::slice(entry, size, size + len.saturating_sub(HEAD)))
    }

    #[inline(always)]
    fn offset(&self, slot: usize) -> usize {
        self.slots.get(slot).map_or(0, |slot| usize::from(u16::from_le_bytes(*slot)))
    }

    /// The entry of `slot`; an empty one where there is no such slot.
    #[inline(always)]
    pub(super) fn entry(&self, slot: usize) -> Entry<'a> {
        let Some(head) = self.head(slot) else { return Entry { head: 0, len: 0, rest: &[] } };
        let (len, rest) = self.heap_entry(self.offset(slot));
        Entry { head, len, rest }
    }

    #[inline]
    pub(super) fn append(&self, slot: usize, out: &mut Vec<u8>) {
        let entry = self.entry(slot);
        let head = entry.head.to_be_bytes();
        out.extend_from_slice(bytes::slice(&head, 0, entry.len.min(HEAD)));
        out.extend_from_slice(entry.rest);
    }

    #[inline]
    pub(super) fn suffix_len(&self, slot: usize) -> usize {
        self.entry(slot).len
    }

    #[inline]
    pub(super) fn entry_bytes(&self, slot: usize) -> usize {
        entry_bytes(self.suffix_len(slot))
    }

    #[inline]
    pub(super) fn common_with_previous(&self, slot: usize) -> usize {
        let Some(previous) = slot.checked_sub(1) else { return 0 };
        let (a, b) = (self.entry(previous), self.entry(slot));
        let heads = (a.head ^ b.head).leading_zeros() / 8;
        if heads < 4 {
            // Zero padding counts as no byte: a shorter suffix ends the common part.
            return usize::min(heads as usize, a.len.min(b.len));
        }
        a.len.min(b.len).min(HEAD) + bytes::common_prefix(a.rest, b.rest)
    }

    #[inline(always)]
    pub(super) fn search(&self, suffix: &[u8]) -> Result<usize, usize> {
        let head = head_of(suffix);
        let at = lower_bound(self.heads, head);
        if self.head(at) != Some(head) {
            return Err(at);
        }
        let end = if self.head(at + 1) == Some(head) { at + self.equal_heads(at, head) } else { at + 1 };
        self.search_rest(at, end, suffix)
    }

    /// How many heads from slot `at` on equal `head`.
    fn equal_heads(&self, at: usize, head: u32) -> usize {
        let from = self.heads.get(at..).unwrap_or_default();
        match head.checked_add(1) {
            Some(next) => lower_bound(from, next),
            None => from.len(),
        }
    }

    /// Binary search among the slots `[low, high)`, whose heads all equal that of `suffix`.
    #[inline(always)]
    fn search_rest(&self, mut low: usize, mut high: usize, suffix: &[u8]) -> Result<usize, usize> {
        let rest = suffix.get(HEAD..).unwrap_or_default();
        while low < high {
            let middle = low.midpoint(high);
            let (len, there) = self.heap_entry(self.offset(middle));
            match there.cmp(rest).then(len.cmp(&suffix.len())) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Structure: the sizes add up, unused slots are zero, slots and heap entries are one to one, and the entries
    /// tile the heap.
    pub(super) fn check(&self, list: &[u8], count: usize, granule: usize) -> Result<(), String> {
        let cap = capacity(count, granule);
        if list.len() < FIXED_PART * cap {
            return Err(format!("{} bytes cannot hold {count} slots", list.len()));
        }
        let unused = [bytes::slice(list, 4 * count, 4 * cap), bytes::slice(list, 4 * cap + 2 * count, 6 * cap)];
        if unused.iter().any(|range| range.iter().any(|&byte| byte != 0)) {
            return Err("an unused slot is not zero".into());
        }
        crate::page::records::check_tiling(self.heap, (0..count).map(|slot| self.offset(slot)), |entry| {
            let (len, size) = varint::get(entry);
            (size == varint::size(len)).then_some(heap_bytes(len))
        })?;
        for slot in 0..count {
            let entry = self.entry(slot);
            if entry.len < HEAD && entry.head << (8 * entry.len) != 0 {
                return Err(format!("the head of slot {slot} is not padded with zeros"));
            }
        }
        Ok(())
    }
}

/// The first slot whose head is not below `head`: a binary search without a branch that depends on the data.
#[inline(always)]
fn lower_bound(heads: &[[u8; 4]], head: u32) -> usize {
    let below = |at: usize| heads.get(at).is_some_and(|there| u32::from_le_bytes(*there) < head);
    let (mut base, mut size) = (0, heads.len());
    while size > 1 {
        let half = size / 2;
        base = std::hint::select_unpredictable(below(base + half), base + half, base);
        size -= half;
    }
    base + usize::from(below(base))
}

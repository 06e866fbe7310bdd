//! The slotted key list, which is both *plain* and *head*. This file reads, searches and checks it; `edit` changes it.
//! The list works in the same way whether or not the page has a prefix.
//!
//! The layout is `[head u32; cap] [slot u16; cap] [heap]`. A head is the first 4 bytes of the suffix as a big-endian
//! number, padded with zeros. A slot is the heap offset of `varint(suffix length) | the suffix after its first 4
//! bytes`. Suffixes compare as (head, rest, length): two suffixes with equal head and rest differ only in length, by
//! zero bytes within the padding of the head. There is never garbage in the heap: its entries cover it without gaps.
//!
//! A suffix is *short* if it has at most 4 bytes and does not end in a zero. If all suffixes of a head list in an inner
//! page are short, the heads determine them, and the list is *dense*: `[head u32; count]` and nothing else. No other
//! list is so small.

mod build;
pub(super) mod edit;
mod scheme;

use super::row::KeyFront;
use super::scheme::List;
use super::{AdjacentKeys, WalkPosition, capacity};
use crate::base::{bytes, varint};
use crate::page::check::{cannot_hold, check_unused};
pub(super) use build::SlottedBuilder;
pub(super) use scheme::SlottedScheme;
use std::cmp::Ordering;
use std::ops::Range;

/// The bytes of a head and a slot together.
pub(super) const FIXED_PART: usize = 6;
/// The bytes of a suffix that its head holds.
pub(super) const HEAD: usize = 4;

/// Returns the head of a suffix.
#[inline(always)]
pub(super) fn head_of(suffix: &[u8]) -> u32 {
    match suffix.first_chunk() {
        Some(first) => u32::from_be_bytes(*first),
        None => suffix.iter().fold((0, 24), |(head, shift), &byte| (head | u32::from(byte) << shift, shift - 8)).0,
    }
}

/// The heap entries of suffixes whose heads hold all their bytes.
static SHORT: [u8; HEAD + 1] = [0, 1, 2, 3, 4];

/// Returns the length of the short suffix with this head.
#[inline(always)]
fn short_len(head: u32) -> usize {
    HEAD - head.trailing_zeros() as usize / 8
}

/// Returns true if a dense list can hold the suffix.
#[inline(always)]
pub(super) fn is_short(suffix: &[u8]) -> bool {
    suffix.len() <= HEAD && suffix.last() != Some(&0)
}

/// Returns the bytes of the heap that a suffix of that length takes.
#[inline(always)]
pub(super) fn heap_bytes(suffix_len: usize) -> usize {
    varint::size(suffix_len) + suffix_len.saturating_sub(HEAD)
}

/// Returns the bytes of the whole list that a suffix of that length takes.
#[inline(always)]
pub(super) fn entry_bytes(suffix_len: usize) -> usize {
    FIXED_PART + heap_bytes(suffix_len)
}

/// An entry's suffix in its two parts.
#[derive(Clone, Copy)]
pub(crate) struct Suffix<'a> {
    /// The head.
    pub(super) head: u32,
    /// The length of the whole suffix.
    pub(super) len: usize,
    /// The suffix after its first 4 bytes.
    pub(super) rest: &'a [u8],
}

impl Suffix<'_> {
    /// Returns the suffix without its first `cut` bytes.
    #[inline(always)]
    pub(super) fn without(self, cut: usize) -> Self {
        let head = match cut {
            0 => self.head,
            1..HEAD => self.head << (8 * cut) | head_of(self.rest) >> (32 - 8 * cut),
            _ => head_of(self.rest.get(cut - HEAD..).unwrap_or_default()),
        };
        Suffix { head, len: self.len.saturating_sub(cut), rest: self.rest.get(cut..).unwrap_or_default() }
    }
}

/// A slotted key list to read.
#[derive(Clone, Copy)]
pub(crate) struct Slotted<'a> {
    list: &'a [u8],
    heads: &'a [[u8; 4]],
    cap: usize,
    dense: bool,
}

impl<'a> Slotted<'a> {
    #[inline(always)]
    pub(super) fn new(list: &'a [u8], count: usize, granule: usize) -> Slotted<'a> {
        let heads = list.get(..4 * count).unwrap_or_default().as_chunks().0;
        Slotted { list, heads, cap: capacity(count, granule), dense: is_dense(list.len(), count) }
    }

    #[inline(always)]
    fn head(&self, slot: usize) -> Option<u32> {
        self.heads.get(slot).map(|head| u32::from_le_bytes(*head))
    }

    /// Returns the heap offset of the entry of `slot`.
    #[inline(always)]
    fn offset(&self, slot: usize) -> usize {
        usize::from(bytes::get_u16(self.list, 4 * self.cap + 2 * slot))
    }

    /// Returns the suffix length and the rest of the entry of `slot`.
    #[inline(always)]
    fn heap_entry(&self, slot: usize) -> (usize, &'a [u8]) {
        if self.dense {
            return (self.head(slot).map_or(0, short_len), &[]);
        }
        let entry = self.list.get(FIXED_PART * self.cap + self.offset(slot)..).unwrap_or_default();
        let (len, size) = varint::get(entry);
        (len, bytes::slice(entry, size, size + len.saturating_sub(HEAD)))
    }

    /// Returns the entry of `slot`; an empty entry if there is no such slot.
    #[inline(always)]
    pub(super) fn entry(&self, slot: usize) -> Suffix<'a> {
        let Some(head) = self.head(slot) else { return Suffix { head: 0, len: 0, rest: &[] } };
        let (len, rest) = self.heap_entry(slot);
        Suffix { head, len, rest }
    }

    /// Returns the head of the entry of `slot` and its bytes in the heap; nothing if there is no such slot.
    #[inline(always)]
    fn kept(&self, slot: usize) -> (u32, &'a [u8]) {
        let Some(head) = self.head(slot) else { return (0, &[]) };
        if self.dense {
            return (head, short_entry(head));
        }
        let entry = self.list.get(FIXED_PART * self.cap + self.offset(slot)..).unwrap_or_default();
        let (len, size) = varint::get(entry);
        (head, bytes::slice(entry, 0, size + len.saturating_sub(HEAD)))
    }

    /// Returns the head of each of these slots, and the list from the entry on. Slots that do not exist give nothing.
    #[inline(always)]
    pub(super) fn parts(&self, slots: Range<usize>) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a> {
        let (heap, dense) = (self.heap(), self.dense);
        let heads = self.heads.get(slots.clone()).unwrap_or_default();
        // A dense list has no offsets; the values in their place are not used.
        let offsets = if dense { heads.as_flattened().as_chunks().0 } else { self.offsets(slots.start, slots.end) };
        heads.iter().zip(offsets).map(move |(head, offset)| {
            let head = u32::from_le_bytes(*head);
            let at = usize::from(u16::from_le_bytes(*offset));
            (head, if dense { short_entry(head) } else { heap.get(at..).unwrap_or_default() })
        })
    }

    #[inline(always)]
    fn heap(&self) -> &'a [u8] {
        self.list.get(FIXED_PART * self.cap..).unwrap_or_default()
    }

    /// Returns the heap offsets of the entries of the slots `[from, to)`.
    #[inline(always)]
    fn offsets(&self, from: usize, to: usize) -> &'a [[u8; 2]] {
        bytes::slice(self.list, 4 * self.cap + 2 * from, 4 * self.cap + 2 * to).as_chunks().0
    }

    /// Searches as [`Slotted::search`] does, among the slots `[from, to)` alone.
    #[inline]
    pub(super) fn search_in(&self, from: usize, to: usize, suffix: &[u8]) -> Result<usize, usize> {
        let (head, heads) = (head_of(suffix), self.heads.get(from..to).unwrap_or_default());
        let at = from + lower_bound(heads, head);
        if at >= to || self.head(at) != Some(head) {
            return Err(at);
        }
        let end = match head.checked_add(1) {
            Some(next) => from + lower_bound(heads, next),
            None => to,
        };
        self.search_rest(at, end, suffix)
    }

    /// Compares the suffix of `slot` with `suffix`.
    #[inline]
    pub(super) fn compare(&self, slot: usize, suffix: &[u8]) -> Ordering {
        let entry = self.entry(slot);
        let rest = suffix.get(HEAD..).unwrap_or_default();
        let heads = entry.head.cmp(&head_of(suffix));
        heads.then_with(|| bytes::compare(entry.rest, rest).then(entry.len.cmp(&suffix.len())))
    }

    /// Returns the first slot from `from` on whose head is above `head`. All heads from `from` to that slot are equal
    /// to `head`.
    #[inline(never)]
    fn end_of_equal(&self, from: usize, head: u32) -> usize {
        match head.checked_add(1) {
            Some(next) => from + lower_bound(self.heads.get(from..).unwrap_or_default(), next),
            None => self.heads.len(),
        }
    }

    /// Binary search among the slots `[low, high)`, whose heads all equal the head of `suffix`.
    #[inline(always)]
    fn search_rest(&self, mut low: usize, mut high: usize, suffix: &[u8]) -> Result<usize, usize> {
        let rest = suffix.get(HEAD..).unwrap_or_default();
        while low < high {
            let middle = low.midpoint(high);
            let (len, there) = self.heap_entry(middle);
            match bytes::compare(there, rest).then(len.cmp(&suffix.len())) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }
}

impl<'a> List<'a> for Slotted<'a> {
    #[inline(always)]
    fn search(&self, suffix: &[u8]) -> Result<usize, usize> {
        let head = head_of(suffix);
        let at = lower_bound(self.heads, head);
        if self.head(at) != Some(head) {
            return Err(at);
        }
        // Usually only one or a few entries have this head.
        let mut end = at + 1;
        while self.head(end) == Some(head) {
            end += 1;
            if end - at > FEW {
                end = self.end_of_equal(end, head);
                break;
            }
        }
        self.search_rest(at, end, suffix)
    }

    #[inline]
    fn append(&self, slot: usize, out: &mut Vec<u8>) {
        let entry = self.entry(slot);
        let head = entry.head.to_be_bytes();
        out.extend_from_slice(bytes::slice(&head, 0, entry.len.min(HEAD)));
        out.extend_from_slice(entry.rest);
    }

    #[inline]
    fn entry_bytes(&self, slot: usize) -> usize {
        if self.dense { HEAD } else { entry_bytes(self.suffix_len(slot)) }
    }

    #[inline]
    fn suffix_len(&self, slot: usize) -> usize {
        if slot < self.heads.len() { self.heap_entry(slot).0 } else { 0 }
    }

    fn first_longer(&self, from: usize, len: usize) -> Option<usize> {
        if self.dense {
            return (from..self.heads.len()).find(|slot| self.suffix_len(*slot) > len);
        }
        // This runs for every leaf that a cursor visits.
        let (heap, short) = (self.heap(), u8::try_from(len).unwrap_or(u8::MAX).min(ONE_BYTE));
        let is_longer = |offset: &[u8; 2]| {
            let at = usize::from(u16::from_le_bytes(*offset));
            let is_short = heap.get(at).is_some_and(|byte| *byte <= short);
            !is_short && varint::get(heap.get(at..).unwrap_or_default()).0 > len
        };
        self.offsets(from, self.heads.len()).iter().position(is_longer).map(|found| from + found)
    }

    #[inline]
    fn common_with_previous(&self, slot: usize) -> usize {
        let Some(previous) = slot.checked_sub(1) else { return 0 };
        if let (Some(left), Some(right)) = (self.head(previous), self.head(slot)) {
            let agreed = (left ^ right).leading_zeros() / 8;
            // If the last byte that agrees is not padding, heads that differ determine the result.
            if left != right && (agreed == 0 || left >> (32 - 8 * agreed) & 0xff != 0) {
                return agreed as usize;
            }
        }
        common_of(self.entry(previous), self.entry(slot))
    }

    #[inline]
    fn is_above_previous(&self, slot: usize) -> bool {
        let Some(previous) = slot.checked_sub(1) else { return true };
        let (a, b) = (self.entry(previous), self.entry(slot));
        a.head < b.head || (a.head == b.head && bytes::compare(a.rest, b.rest).then(a.len.cmp(&b.len)).is_lt())
    }

    fn is_dense_without(&self, suffix: &[u8]) -> bool {
        self.dense && !is_short(suffix)
    }

    fn check(&self, _list: &[u8], count: usize) -> Result<(), String> {
        let (list, cap) = (self.list, self.cap);
        if self.dense {
            // A dense list is valid with any heads: they are heads of short suffixes.
            return Ok(());
        }
        if list.len() < FIXED_PART * cap {
            return Err(cannot_hold(list.len(), count, "slots"));
        }
        check_unused(&[bytes::slice(list, 4 * count, 4 * cap), bytes::slice(list, 4 * cap + 2 * count, 6 * cap)])?;
        let heap = list.get(FIXED_PART * cap..).unwrap_or_default();
        crate::page::records::check_tiling(heap, (0..count).map(|slot| self.offset(slot)), |entry| {
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

    #[inline(always)]
    fn is_above(&self, slot: usize, suffix: &[u8]) -> bool {
        self.compare(slot, suffix).is_gt()
    }

    fn add_to(&self, row: &mut AdjacentKeys, prefix: &[u8], _place: &mut WalkPosition, from: usize, to: usize) {
        row.push_slotted(&KeyFront::new([prefix, &[]]), self, from..to);
    }
}

/// Returns true if the list of `count` entries with that many bytes is dense.
#[inline(always)]
pub(super) fn is_dense(bytes: usize, count: usize) -> bool {
    bytes == HEAD * count && count > 0
}

/// Returns the heap entry that a short suffix would have.
#[inline(always)]
fn short_entry(head: u32) -> &'static [u8] {
    let len = short_len(head);
    SHORT.get(len..=len).unwrap_or_default()
}

/// Returns the length of the common prefix of two suffixes.
#[inline(always)]
fn common_of(a: Suffix<'_>, b: Suffix<'_>) -> usize {
    let heads = (a.head ^ b.head).leading_zeros() as usize / 8;
    // Zero padding does not count: the shorter suffix ends the common part.
    let in_head = heads.min(a.len).min(b.len);
    if heads < HEAD { in_head } else { in_head + bytes::common_prefix(a.rest, b.rest) }
}

/// The greatest length that takes one byte.
const ONE_BYTE: u8 = 0x7f;
/// The number of equal heads that are compared one by one.
const FEW: usize = 8;
/// The number of heads that the last step of a search compares at once.
const WINDOW: usize = 32;

/// Returns the first slot whose head is not below `head`. Halves the range without a branch that depends on the data
/// until a window is left, and counts the smaller heads of the window in vector lanes. This saves the last dependent
/// steps, which cost the most.
#[inline(always)]
fn lower_bound(heads: &[[u8; 4]], head: u32) -> usize {
    let (mut base, mut size) = (0, heads.len());
    while size > WINDOW {
        let half = size / 2;
        // The load comes before the comparison: a branch on the bounds alone is always predicted right.
        let there = heads.get(base + half).map_or(u32::MAX, |there| u32::from_le_bytes(*there));
        base = std::hint::select_unpredictable(there < head, base + half, base);
        size -= half;
    }
    // All heads before `base` are below, and all from `base + size` on are not. The window may therefore begin earlier
    // and end later.
    let from = base.min(heads.len().saturating_sub(WINDOW));
    let window = heads.get(from..).unwrap_or_default();
    let window = window.first_chunk::<WINDOW>().map_or(window, |window| window);
    let mut lanes = [0u32; 4];
    let (fours, rest) = window.as_chunks::<4>();
    for four in fours {
        for (lane, there) in lanes.iter_mut().zip(four) {
            *lane += u32::from(u32::from_le_bytes(*there) < head);
        }
    }
    let rest = rest.iter().filter(|there| u32::from_le_bytes(**there) < head).count();
    from + lanes.iter().sum::<u32>() as usize + rest
}

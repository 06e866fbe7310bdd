//! The variable-size record list: records of any length. The large flag is beside the length.
//!
//! From the page's end downwards: `[slot u16; cap]`, slot 0 last, with the same capacity as a slotted key list; then
//! the heap, whose entries are `varint(length << 1 | large) | bytes`. A slot is the distance from the heap's upper
//! border down to the entry's front. New entries go below all others. There is never garbage between the entries.

use super::{Record, RecordRemoval, RecordState, check_tiling, slots_bytes};
use crate::base::{bytes, limits::LARGE_RECORD, varint};
use crate::page::check::{cannot_hold, check_unused};
use std::ops::Range;

#[inline(always)]
fn heap_entry_bytes(len: usize) -> usize {
    varint::size(len << 1) + len
}

/// Returns the bytes that a record of `len` bytes takes, including its slot.
#[inline(always)]
pub(super) fn entry_bytes(len: usize) -> usize {
    2 + heap_entry_bytes(len)
}

/// Returns the offset of an entry's slot from the list's front.
#[inline(always)]
fn slot_at(list_len: usize, slot: usize) -> usize {
    list_len.saturating_sub(2 * (slot + 1))
}

/// Returns the bytes from the heap entry of `slot` to the end of the heap.
#[inline(always)]
fn entry(list: &[u8], count: usize, granule: usize, slot: usize) -> &[u8] {
    let top = list.len().saturating_sub(slots_bytes(count, granule));
    let distance = usize::from(bytes::get_u16(list, slot_at(list.len(), slot)));
    bytes::slice(list, top.saturating_sub(distance), top)
}

#[inline]
pub(super) fn get(list: &[u8], count: usize, granule: usize, slot: usize) -> Record<'_> {
    let entry = entry(list, count, granule, slot);
    let (length, size) = varint::get(entry);
    Record { bytes: bytes::slice(entry, size, size + (length >> 1)), large: length & 1 == 1 }
}

/// Returns the distance of the entry of `slot` from the heap's upper border, and its length; an error if the entry is
/// not wholly inside the heap.
fn place(list: &[u8], state: RecordState, slot: usize) -> Result<(usize, usize), String> {
    let heap = state.bytes.saturating_sub(slots_bytes(state.count, state.granule));
    let distance = usize::from(bytes::get_u16(list, slot_at(list.len(), slot)));
    let (length, _) = varint::get(entry(list, state.count, state.granule, slot));
    let size = heap_entry_bytes(length >> 1);
    if size <= distance && distance <= heap {
        return Ok((distance, size));
    }
    Err(format!("the record of slot {slot} is not within the heap"))
}

/// Returns where the bytes of the record of `slot` are; `None` if it is a large one or not wholly inside the heap.
pub(super) fn inline_range(list: &[u8], state: RecordState, slot: usize) -> Option<Range<usize>> {
    let (distance, _) = place(list, state, slot).ok()?;
    let top = list.len().saturating_sub(slots_bytes(state.count, state.granule));
    let from = top.saturating_sub(distance);
    let (length, size) = varint::get(bytes::slice(list, from, top));
    let end = from + size + (length >> 1);
    (length & 1 == 0 && end <= top).then_some(from + size..end)
}

pub(super) fn bytes_with(state: RecordState, len: usize) -> usize {
    let grown = slots_bytes(state.count + 1, state.granule) - slots_bytes(state.count, state.granule);
    state.bytes + grown + heap_entry_bytes(len)
}

pub(super) fn bytes_replacing(list: &[u8], state: RecordState, slot: usize, len: usize) -> Result<usize, String> {
    place(list, state, slot).map(|(_, old)| state.bytes + heap_entry_bytes(len) - old)
}

/// Writes an entry with its front at `at`.
fn put_entry(list: &mut [u8], at: usize, record: Record<'_>) {
    let bytes_at = varint::put(list, at, record.bytes.len() << 1 | usize::from(record.large));
    bytes::put(list, bytes_at, record.bytes);
}

pub(super) fn insert(list: &mut [u8], state: RecordState, slot: usize, record: Record<'_>) {
    let len = list.len();
    let slots = slots_bytes(state.count, state.granule);
    let new_slots = slots_bytes(state.count + 1, state.granule);
    let low = len.saturating_sub(state.bytes);
    let top = len.saturating_sub(new_slots);
    let heap = state.bytes.saturating_sub(slots);
    if new_slots > slots {
        // The new slots are cut from the upper border of the heap, which moves down.
        bytes::shift(list, low, low + heap, top.saturating_sub(heap));
        bytes::zero(list, top, len.saturating_sub(slots));
    }
    let (last, first) = (len.saturating_sub(2 * state.count), slot_at(len, slot) + 2);
    bytes::shift(list, last, first, last.saturating_sub(2));
    let distance = heap + heap_entry_bytes(record.bytes.len());
    bytes::put_u16(list, slot_at(len, slot), bytes::u16_of(distance));
    put_entry(list, top.saturating_sub(distance), record);
}

pub(super) fn replace(list: &mut [u8], state: RecordState, slot: usize, record: Record<'_>) {
    let top = list.len().saturating_sub(slots_bytes(state.count, state.granule));
    let distance = usize::from(bytes::get_u16(list, slot_at(list.len(), slot)));
    let old = heap_entry_bytes(varint::get(entry(list, state.count, state.granule, slot)).0 >> 1);
    let new = heap_entry_bytes(record.bytes.len());
    if old == new {
        return put_entry(list, top.saturating_sub(distance), record);
    }
    close_up(list, state, distance, old);
    let heap = state.bytes.saturating_sub(slots_bytes(state.count, state.granule) + old);
    bytes::put_u16(list, slot_at(list.len(), slot), bytes::u16_of(heap + new));
    put_entry(list, top.saturating_sub(heap + new), record);
}

/// Removes the entry of `size` bytes at `distance` from the heap's upper border: the entries below it move up, and the
/// freed bytes become zero. The plan of the change has verified that heap, entry and slots are inside the list. A
/// difference that wraps is outside of `list`, so the assertions of `bytes` find it.
fn close_up(list: &mut [u8], state: RecordState, distance: usize, size: usize) {
    let len = list.len();
    let low = len.wrapping_sub(state.bytes);
    let at = len.wrapping_sub(slots_bytes(state.count, state.granule) + distance);
    let new_low = low.wrapping_add(size);
    bytes::must_fit(size <= distance);
    bytes::shift(list, low, at, new_low);
    bytes::zero(list, low, new_low);
    for slot in bytes::range_mut(list, len.wrapping_sub(2 * state.count)..len).as_chunks_mut().0 {
        let there = u16::from_le_bytes(*slot);
        let moved = if usize::from(there) > distance { bytes::u16_of(size) } else { 0 };
        *slot = there.wrapping_sub(moved).to_le_bytes();
    }
}

pub(super) fn plan_removal(list: &[u8], state: RecordState, from: usize, to: usize) -> Result<RecordRemoval, String> {
    match to.saturating_sub(from) {
        1 => place(list, state, from).map(|(distance, size)| RecordRemoval::One(distance, size)),
        _ => left_without(list, state, from, to).map(RecordRemoval::Anew),
    }
}

pub(super) fn remove_one(list: &mut [u8], state: RecordState, slot: usize, distance: usize, size: usize) -> usize {
    let len = list.len();
    close_up(list, state, distance, size);
    let last = len.saturating_sub(2 * state.count);
    bytes::shift(list, last, slot_at(len, slot), last + 2);
    bytes::zero(list, last, last + 2);
    let mut left = state.bytes.saturating_sub(size);
    let freed = slots_bytes(state.count, state.granule) - slots_bytes(state.count - 1, state.granule);
    if freed > 0 {
        let low = len.saturating_sub(left);
        bytes::shift(list, low, len.saturating_sub(slots_bytes(state.count, state.granule)), low + freed);
        bytes::zero(list, low, low + freed);
        left = left.saturating_sub(freed);
    }
    left
}

/// Returns the list with the remaining records laid out again, in slot order; an error if they take more bytes than the
/// whole list did.
fn left_without(list: &[u8], state: RecordState, from: usize, to: usize) -> Result<Vec<u8>, String> {
    let mut builder = VariableBuilder::new(state.granule, state.bytes);
    for slot in (0..from).chain(to..state.count) {
        builder.push(get(list, state.count, state.granule, slot));
    }
    let mut left = Vec::with_capacity(state.bytes);
    builder.finish(&mut left);
    if left.len() <= state.bytes {
        return Ok(left);
    }
    Err(format!("some records of a list of {} bytes take {} bytes", state.bytes, left.len()))
}

/// Writes the list that a removal leaves over the old list.
pub(super) fn put_left(list: &mut [u8], left: &[u8]) -> usize {
    let at = list.len().saturating_sub(left.len());
    bytes::zero(list, 0, at);
    bytes::put(list, at, left);
    left.len()
}

pub(super) fn check(list: &[u8], count: usize, granule: usize) -> Result<(), String> {
    let slots = slots_bytes(count, granule);
    let Some(top) = list.len().checked_sub(slots) else {
        return Err(cannot_hold(list.len(), count, "slots"));
    };
    check_unused(&[bytes::slice(list, top, list.len().saturating_sub(2 * count))])?;
    // A distance beyond the heap's lower border becomes an offset beyond its upper border, which the check refuses.
    let offsets = (0..count)
        .map(|slot| top.wrapping_sub(usize::from(bytes::get_u16(list, slot_at(list.len(), slot)))).min(top + 1));
    check_tiling(bytes::slice(list, 0, top), offsets, |entry| {
        let (length, size) = varint::get(entry);
        let large = length & 1 == 1;
        (size == varint::size(length) && (!large || length >> 1 == LARGE_RECORD)).then_some(size + (length >> 1))
    })
}

/// A variable-size record list under construction.
pub(crate) struct VariableBuilder {
    granule: usize,
    slots: Vec<u16>,
    /// The heap in slot order; the finished list has it in reverse order.
    heap: Vec<u8>,
}

impl VariableBuilder {
    /// Begins a list for a page of up to `bytes` bytes. Allocates memory for it at once.
    pub(super) fn new(granule: usize, bytes: usize) -> VariableBuilder {
        VariableBuilder { granule, slots: Vec::with_capacity(bytes / 16), heap: Vec::with_capacity(bytes) }
    }

    pub(super) fn bytes(&self) -> usize {
        slots_bytes(self.slots.len(), self.granule) + self.heap.len()
    }

    pub(super) fn bytes_with(&self, len: usize) -> usize {
        slots_bytes(self.slots.len() + 1, self.granule) + self.heap.len() + heap_entry_bytes(len)
    }

    pub(super) fn push(&mut self, record: Record<'_>) {
        varint::push(&mut self.heap, (record.bytes.len() as u64) << 1 | u64::from(record.large));
        self.heap.extend_from_slice(record.bytes);
        self.slots.push(bytes::u16_clamped(self.heap.len()));
    }

    pub(super) fn finish(self, out: &mut Vec<u8>) {
        let mut end = self.heap.len();
        for &slot in self.slots.iter().rev().skip(1).chain(&[0]) {
            let from = usize::from(slot);
            out.extend_from_slice(bytes::slice(&self.heap, from, end));
            end = from;
        }
        let cap = slots_bytes(self.slots.len(), self.granule);
        out.resize(out.len() + cap - 2 * self.slots.len(), 0);
        for slot in self.slots.iter().rev() {
            out.extend_from_slice(&slot.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::records::RecordListKind;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// An entry, a heap or slots outside of the list are not removed silently.
    #[test]
    fn closing_up_outside_of_the_list_panics() {
        let state = |bytes, count| RecordState { kind: RecordListKind::Variable, bytes, count, granule: 1 };
        let closed = |state, distance, size| {
            let mut list = [0; 20];
            catch_unwind(AssertUnwindSafe(|| close_up(&mut list, state, distance, size))).is_ok()
        };
        assert!(closed(state(20, 2), 16, 4), "everything is inside");
        assert!(!closed(state(21, 2), 16, 4), "the heap begins before the list");
        assert!(!closed(state(20, 2), 17, 4), "the entry begins before the list");
        assert!(!closed(state(20, 2), 3, 4), "the entry reaches into the slots");
        assert!(!closed(state(0, 11), 0, 0), "the slots begin before the list");
    }
}

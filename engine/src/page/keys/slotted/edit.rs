//! Changes a slotted key list in place: inserts an entry, or removes entries and moves those after them. The caller
//! knows the slot.

use super::{FIXED_PART, HEAD, Slotted, SlottedBuilder, head_of, heap_bytes, is_dense, is_short};
use crate::base::{bytes, varint};
use crate::page::keys::scheme::{Build, List};
use crate::page::keys::{KeyState, capacity, no_suffix};

/// Returns the bytes of the list with `suffix`. `may_be_dense`: an empty list may become dense.
pub(crate) fn bytes_with(state: KeyState, may_be_dense: bool, suffix: &[u8]) -> usize {
    if stays_dense(state, may_be_dense, suffix) {
        return HEAD * (state.count + 1);
    }
    let state = if is_dense(state.bytes, state.count) { slotted_state(state) } else { state };
    let grown = capacity(state.count + 1, state.granule) - capacity(state.count, state.granule);
    state.bytes + FIXED_PART * grown + heap_bytes(suffix.len())
}

/// Returns true if the list is dense with this suffix.
#[inline]
fn stays_dense(state: KeyState, may_be_dense: bool, suffix: &[u8]) -> bool {
    let dense = is_dense(state.bytes, state.count) || (state.count == 0 && may_be_dense);
    dense && is_short(suffix)
}

/// Returns the state of a dense list after it has received slots and a heap.
fn slotted_state(state: KeyState) -> KeyState {
    let slots = FIXED_PART * capacity(state.count, state.granule);
    KeyState { bytes: slots + heap_bytes(0) * state.count, ..state }
}

/// Gives a dense list slots and a heap. Returns its new state.
#[cold]
fn make_slotted(list: &mut [u8], state: KeyState) -> KeyState {
    let view = Slotted::new(bytes::slice(list, 0, state.bytes), state.count, state.granule);
    let mut builder = SlottedBuilder::new(state.granule, slotted_state(state).bytes, false);
    builder.take(&view, 0..state.count, 0);
    let mut slotted = Vec::new();
    builder.finish(0, &mut slotted);
    bytes::put(list, 0, &slotted);
    slotted_state(state)
}

/// Inserts `suffix` at `slot`; see [`crate::page::keys::insert`].
pub(crate) fn insert(list: &mut [u8], state: KeyState, may_be_dense: bool, slot: usize, suffix: &[u8]) {
    if stays_dense(state, may_be_dense, suffix) {
        bytes::shift(list, HEAD * slot, HEAD * state.count, HEAD * (slot + 1));
        return bytes::put_u32(list, HEAD * slot, head_of(suffix));
    }
    let state = if is_dense(state.bytes, state.count) { make_slotted(list, state) } else { state };
    let count = state.count;
    let cap = capacity(count, state.granule);
    let new_cap = capacity(count + 1, state.granule);
    let grown = FIXED_PART * (new_cap - cap);
    let (slots, new_slots) = (4 * cap, 4 * new_cap);
    let heap_end = state.bytes + grown;
    if grown > 0 {
        bytes::shift(list, FIXED_PART * cap, state.bytes, FIXED_PART * new_cap);
    }
    // The shifts run from the back: in each part the bytes after the new entry's place move, and those before it stay.
    bytes::shift(list, slots + 2 * slot, slots + 2 * count, new_slots + 2 * slot + 2);
    if grown > 0 {
        bytes::shift(list, slots, slots + 2 * slot, new_slots);
    }
    bytes::shift(list, 4 * slot, 4 * count, 4 * slot + 4);
    if new_cap - cap > 1 {
        // The old capacity was fully used, so only the added part must be cleared.
        bytes::zero(list, 4 * count + 4, new_slots);
        bytes::zero(list, new_slots + 2 * count + 2, FIXED_PART * new_cap);
    }
    bytes::put_u32(list, 4 * slot, head_of(suffix));
    bytes::put_u16(list, new_slots + 2 * slot, bytes::u16_of(heap_end.saturating_sub(FIXED_PART * new_cap)));
    let rest = varint::put(list, heap_end, suffix.len());
    bytes::put(list, rest, suffix.get(HEAD..).unwrap_or_default());
}

/// See [`crate::page::keys::remove`].
pub(crate) fn remove(list: &mut [u8], state: KeyState, from: usize, to: usize) -> Result<usize, String> {
    Ok(match to.saturating_sub(from) {
        _ if is_dense(state.bytes, state.count) => {
            let left = HEAD * (state.count - (to - from));
            bytes::shift(list, HEAD * to, state.bytes, HEAD * from);
            bytes::zero(list, left, state.bytes);
            left
        }
        1 => remove_one(list, state, from)?,
        _ => remove_many(list, state, from, to)?,
    })
}

/// Removes one entry from all three parts and moves the bytes after it.
fn remove_one(list: &mut [u8], state: KeyState, slot: usize) -> Result<usize, String> {
    let count = state.count;
    let cap = capacity(count, state.granule);
    let new_cap = capacity(count - 1, state.granule);
    let view = Slotted::new(list, count, state.granule);
    let at = view.offset(slot);
    let size = heap_bytes(view.suffix_len(slot));
    let heap = FIXED_PART * cap;
    if heap + at + size > state.bytes {
        return Err(no_suffix(slot));
    }
    bytes::shift(list, heap + at + size, state.bytes, heap + at);
    let slots = 4 * cap;
    for slot in bytes::range_mut(list, slots..slots + 2 * count).as_chunks_mut().0 {
        let offset = u16::from_le_bytes(*slot);
        let moved = if usize::from(offset) > at { bytes::u16_of(size) } else { 0 };
        *slot = offset.wrapping_sub(moved).to_le_bytes();
    }
    bytes::shift(list, 4 * slot + 4, 4 * count, 4 * slot);
    bytes::zero(list, 4 * count - 4, 4 * count);
    bytes::shift(list, slots + 2 * slot + 2, slots + 2 * count, slots + 2 * slot);
    bytes::zero(list, slots + 2 * count - 2, slots + 2 * count);
    let mut end = state.bytes.saturating_sub(size);
    if new_cap < cap {
        // The freed granule is after the heads and after the slots; the remaining bytes move up.
        bytes::shift(list, slots, slots + 2 * new_cap, 4 * new_cap);
        bytes::shift(list, heap, end, FIXED_PART * new_cap);
        end = end.saturating_sub(FIXED_PART * (cap - new_cap));
    }
    bytes::zero(list, end, state.bytes);
    Ok(end)
}

/// Lays the remaining entries out again, in slot order.
fn remove_many(list: &mut [u8], state: KeyState, from: usize, to: usize) -> Result<usize, String> {
    let view = Slotted::new(list, state.count, state.granule);
    let mut builder = SlottedBuilder::new(state.granule, state.bytes, false);
    for slot in (0..from).chain(to..state.count) {
        builder.push_entry(view.entry(slot));
    }
    let mut left = Vec::with_capacity(state.bytes);
    builder.finish(0, &mut left);
    put_left(list, state, &left)
}

/// Writes the list that a removal leaves over the old list. Only overlapping entries can take more bytes than before.
pub(crate) fn put_left(list: &mut [u8], state: KeyState, left: &[u8]) -> Result<usize, String> {
    if left.len() > state.bytes {
        return Err(format!("some entries of a list of {} bytes take {} bytes", state.bytes, left.len()));
    }
    bytes::put(list, 0, left);
    bytes::zero(list, left.len(), state.bytes);
    Ok(left.len())
}

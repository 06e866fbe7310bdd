//! Changes a PkB key list in place: the part of the new entry and the part of the entry after it are made from the
//! whole keys in the heap.

use super::{FIELD, Pkb, PkbBuilder, fixed, heap_bytes, part_of};
use crate::base::{bytes, varint};
use crate::page::keys::scheme::Build;
use crate::page::keys::slotted::edit::put_left;
use crate::page::keys::{KeyState, capacity, no_suffix};

/// See [`crate::page::keys::plan`].
pub(crate) fn bytes_with(state: KeyState, part: usize, suffix: &[u8]) -> usize {
    let grown = capacity(state.count + 1, state.granule) - capacity(state.count, state.granule);
    state.bytes + fixed(part) * grown + heap_bytes(suffix.len())
}

/// See [`crate::page::keys::insert`].
pub(crate) fn insert(list: &mut [u8], state: KeyState, part: usize, slot: usize, suffix: &[u8]) {
    let (count, width) = (state.count, FIELD + part);
    let view = Pkb::new(bytes::slice(list, 0, state.bytes), count, state.granule, part);
    let own = part_of(slot.checked_sub(1).map(|left| view.key(left)), suffix);
    let next = part_of(Some(suffix), view.key(slot));
    let (cap, new_cap) = (capacity(count, state.granule), capacity(count + 1, state.granule));
    let mut heap_end = state.bytes;
    if new_cap > cap {
        // The old capacity was fully used, so only the added part must be cleared.
        let shift = fixed(part) * (new_cap - cap);
        bytes::shift(list, fixed(part) * cap, state.bytes, fixed(part) * cap + shift);
        bytes::shift(list, width * cap, fixed(part) * cap, width * new_cap);
        bytes::zero(list, width * cap, width * new_cap);
        bytes::zero(list, width * new_cap + FIELD * cap, fixed(part) * new_cap);
        heap_end += shift;
    }
    bytes::shift(list, width * slot, width * count, width * (slot + 1));
    bytes::put(list, width * slot, bytes::slice(&own, 0, width));
    if slot < count {
        bytes::put(list, width * (slot + 1), bytes::slice(&next, 0, width));
    }
    let slots = width * new_cap;
    bytes::shift(list, slots + FIELD * slot, slots + FIELD * count, slots + FIELD * (slot + 1));
    bytes::put_u16(list, slots + FIELD * slot, bytes::u16_of(heap_end.saturating_sub(fixed(part) * new_cap)));
    let rest = varint::put(list, heap_end, suffix.len());
    bytes::put(list, rest, suffix);
}

/// See [`crate::page::keys::remove`].
pub(crate) fn remove(list: &mut [u8], state: KeyState, part: usize, from: usize, to: usize) -> Result<usize, String> {
    match to.saturating_sub(from) {
        1 => remove_one(list, state, part, from),
        _ => remove_many(list, state, part, from, to),
    }
}

/// Removes one entry from all three parts and moves the bytes after it.
fn remove_one(list: &mut [u8], state: KeyState, part: usize, slot: usize) -> Result<usize, String> {
    let (count, width) = (state.count, FIELD + part);
    let (cap, new_cap) = (capacity(count, state.granule), capacity(count - 1, state.granule));
    let view = Pkb::new(list, count, state.granule, part);
    let (at, size) = (view.place(slot), heap_bytes(view.key(slot).len()));
    let next = part_of(slot.checked_sub(1).map(|left| view.key(left)), view.key(slot + 1));
    let (heap, slots) = (fixed(part) * cap, width * cap);
    if heap + at + size > state.bytes {
        return Err(no_suffix(slot));
    }
    if slot + 1 < count {
        bytes::put(list, width * (slot + 1), bytes::slice(&next, 0, width));
    }
    bytes::shift(list, heap + at + size, state.bytes, heap + at);
    for slot in bytes::range_mut(list, slots..slots + FIELD * count).as_chunks_mut().0 {
        let offset = u16::from_le_bytes(*slot);
        let moved = if usize::from(offset) > at { bytes::u16_of(size) } else { 0 };
        *slot = offset.wrapping_sub(moved).to_le_bytes();
    }
    bytes::shift(list, width * (slot + 1), width * count, width * slot);
    bytes::zero(list, width * (count - 1), width * count);
    bytes::shift(list, slots + FIELD * (slot + 1), slots + FIELD * count, slots + FIELD * slot);
    bytes::zero(list, slots + FIELD * (count - 1), slots + FIELD * count);
    let mut end = state.bytes.saturating_sub(size);
    if new_cap < cap {
        // The freed granule is after the parts and after the slots; the remaining bytes move up.
        bytes::shift(list, slots, slots + FIELD * new_cap, width * new_cap);
        bytes::shift(list, heap, end, fixed(part) * new_cap);
        end = end.saturating_sub(fixed(part) * (cap - new_cap));
    }
    bytes::zero(list, end, state.bytes);
    Ok(end)
}

/// Lays the remaining entries out again, in slot order.
fn remove_many(list: &mut [u8], state: KeyState, part: usize, from: usize, to: usize) -> Result<usize, String> {
    let view = Pkb::new(list, state.count, state.granule, part);
    let mut builder = PkbBuilder::new(state.granule, part, state.bytes);
    for slot in (0..from).chain(to..state.count) {
        builder.push(view.key(slot));
    }
    let mut left = Vec::with_capacity(state.bytes);
    builder.finish(0, &mut left);
    put_left(list, state, &left)
}

//! Changes a list of blocks in place: inserts a key, removes keys, splits and merges blocks, lays the list out again.
//! The block of a key depends only on the key's value, so that redo repeats what commit did.

use super::build::IntegerBlocksBuilder;
use super::codec::IntKey;
use super::in_place;
use super::index::{FRONT, Index, entry_bytes, is_packed};
use super::policy::{append_cost, most_growth, pieces};
use super::rule::BlockRule;
use crate::base::bytes;
use crate::page::keys::scheme::EditResult;
use duramen_codec::{Block, Codec, Edit, Error, MAX_BLOCK};
use std::ops::Range;

/// The state of a list before a change: its length in bytes, its number of keys, the most bytes that it may take.
#[derive(Clone, Copy)]
pub(super) struct EditState {
    pub(super) rule: BlockRule,
    pub(super) used: usize,
    pub(super) count: usize,
    pub(super) room: usize,
}

/// A block to be written to the list.
pub(super) type Piece<'p, T> = (Block<T>, &'p [u8]);

/// The error of an insert of a key that the list has.
const KEY_EXISTS: &str = "an insert of a key that exists";

pub(super) fn damaged(error: Error) -> String {
    format!("its blocks: {error}")
}

impl EditState {
    pub(super) fn codec(&self) -> Codec {
        self.rule.codec()
    }

    pub(super) fn index<'a, T: IntKey>(&self, list: &'a [u8]) -> Index<'a, T> {
        Index::new(self.codec(), bytes::slice(list, 0, self.used), self.count)
    }

    /// Copies the bytes of a block to `scratch`, which has room for changes, and returns the descriptor; an error if
    /// the block has more bytes than any valid one.
    fn copy<T: IntKey>(&self, index: &Index<'_, T>, at: usize, scratch: &mut T::Scratch) -> Result<Block<T>, String> {
        let (block, body) = index.block(at);
        if body.len() > scratch.as_ref().len() {
            return Err(format!("block {at} has {} bytes", body.len()));
        }
        bytes::put(scratch.as_mut(), 0, body);
        Ok(block)
    }

    pub(super) fn used_of<'s, T: IntKey>(&self, block: &Block<T>, scratch: &'s [u8]) -> Result<&'s [u8], String> {
        let len = T::used(self.codec(), block).map_err(damaged)?;
        Ok(bytes::slice(scratch, 0, len))
    }
}

/// The error of an insert of a key at another slot than its own, which is `at`.
#[cold]
pub(super) fn wrong_slot(at: usize, slot: usize) -> String {
    format!("the key belongs at slot {at}, not at slot {slot}")
}

/// Inserts `key` at `slot`. The bytes of `list` after those in use are zero up to the room.
pub(super) fn insert<T: IntKey>(list: &mut [u8], place: EditState, slot: usize, key: T) -> EditResult {
    let index = place.index::<T>(list);
    let alone = [(Block { first: key, last: key, count: 1, extent: 0 }, &[][..])];
    let expect = |at: usize| if at == slot { Ok(()) } else { Err(wrong_slot(at, slot)) };
    if index.is_empty() {
        expect(0)?;
        return splice(list, place, 0..0, &alone);
    }
    let at = index.block_of_key(key);
    let (block, _) = index.block(at);
    if key > block.last {
        expect(index.start(at + 1))?;
        return insert_behind(list, place, at, key);
    }
    if usize::from(block.count) >= place.rule.most() {
        if key < block.first {
            expect(0)?;
            return splice(list, place, 0..0, &alone);
        }
        return insert_splitting(list, place, at, slot, key);
    }
    if in_place::insert(list, place, slot, key) {
        return Ok(Some(place.used));
    }
    let index = place.index::<T>(list);
    let (old, mut scratch) = (index.block(at).1.len(), T::scratch());
    let mut block = place.copy(&index, at, &mut scratch)?;
    let front = key < block.first;
    match T::insert(place.codec(), &mut block, scratch.as_mut(), key).map_err(damaged)? {
        Edit::Done(found) => expect(index.start(at) + found)?,
        Edit::Unchanged(_) => return Err(KEY_EXISTS.to_owned()),
    }
    let body = place.used_of(&block, scratch.as_ref())?;
    if front && body.len() > old + most_growth::<T>(place.codec()) {
        return splice(list, place, 0..0, &alone);
    }
    splice(list, place, at..at + 1, &[(block, body)])
}

/// Inserts a key between the blocks `at` and `at + 1`: into the first if that is cheap, otherwise into the second,
/// otherwise as a block of its own.
fn insert_behind<T: IntKey>(list: &mut [u8], place: EditState, at: usize, key: T) -> EditResult {
    let index = place.index::<T>(list);
    let (block, body) = index.block(at);
    if append_cost(place.rule, &block, key).is_some() {
        if at + 1 == index.len() {
            let from = place.used - body.len();
            return append(list, place, at, block, from, key);
        }
        let mut scratch = T::scratch();
        let mut block = place.copy(&index, at, &mut scratch)?;
        T::append(place.codec(), &mut block, scratch.as_mut(), key).map_err(damaged)?;
        let body = place.used_of(&block, scratch.as_ref())?;
        return splice(list, place, at..at + 1, &[(block, body)]);
    }
    if at + 1 < index.len() && index.keys_in(at + 1) < place.rule.most() {
        let (old, mut scratch) = (index.block(at + 1).1.len(), T::scratch());
        let mut block = place.copy(&index, at + 1, &mut scratch)?;
        T::insert(place.codec(), &mut block, scratch.as_mut(), key).map_err(damaged)?;
        let body = place.used_of(&block, scratch.as_ref())?;
        if body.len() <= old + most_growth::<T>(place.codec()) {
            return splice(list, place, at + 1..at + 2, &[(block, body)]);
        }
    }
    let alone = (Block { first: key, last: key, count: 1, extent: 0 }, &[][..]);
    splice(list, place, at + 1..at + 1, &[alone])
}

/// Appends a key in place, for keys that arrive in order: the last block, whose bytes begin at `from`, grows.
fn append<T: IntKey>(
    list: &mut [u8],
    place: EditState,
    at: usize,
    mut block: Block<T>,
    from: usize,
    key: T,
) -> EditResult {
    if place.room < place.used {
        return Ok(None);
    }
    let blocks = usize::from(bytes::get_u16(list, 0));
    let room = list.get_mut(from..place.room).unwrap_or_default();
    match T::append(place.codec(), &mut block, room, key) {
        Ok(()) => {}
        Err(Error::NoRoom { .. }) => return Ok(None),
        Err(error) => return Err(damaged(error)),
    }
    let used = from + T::used(place.codec(), &block).map_err(damaged)?;
    put_block(list, place.codec(), blocks, at, &block);
    Ok(Some(used))
}

/// Inserts a key into a full block, which becomes two blocks.
fn insert_splitting<T: IntKey>(list: &mut [u8], place: EditState, at: usize, slot: usize, key: T) -> EditResult {
    let index = place.index::<T>(list);
    let mut buffer = [T::default(); MAX_BLOCK];
    let mut keys = index.decode(at, &mut buffer).to_vec();
    let Err(found) = keys.binary_search(&key) else { return Err(KEY_EXISTS.to_owned()) };
    if index.start(at) + found != slot {
        return Err(format!("the key does not belong at slot {slot}"));
    }
    keys.insert(found, key);
    let (left, right) = keys.split_at_checked(keys.len() / 2).unwrap_or_default();
    two(list, place, at..at + 1, left, right)
}

/// Replaces the blocks of `range` by up to two blocks with these keys.
fn two<T: IntKey>(list: &mut [u8], place: EditState, range: Range<usize>, left: &[T], right: &[T]) -> EditResult {
    let [mut a, mut b] = [T::scratch(), T::scratch()];
    let left = encode(place.codec(), left, a.as_mut())?;
    let right = encode(place.codec(), right, b.as_mut())?;
    match (left, right) {
        (Some(left), Some(right)) => splice(list, place, range, &[left, right]),
        (Some(one), None) | (None, Some(one)) => splice(list, place, range, &[one]),
        (None, None) => splice::<T>(list, place, range, &[]),
    }
}

fn encode<'s, T: IntKey>(codec: Codec, keys: &[T], scratch: &'s mut [u8]) -> Result<Option<Piece<'s, T>>, String> {
    if keys.is_empty() {
        return Ok(None);
    }
    let block = T::encode(codec, keys, scratch).map_err(damaged)?;
    let len = T::used(codec, &block).map_err(damaged)?;
    Ok(Some((block, bytes::slice(scratch, 0, len))))
}

/// Removes the keys of the slots `[from, to)`. If the codec is not delete-stable, the list may need more room than
/// there is.
pub(super) fn remove<T: IntKey>(list: &mut [u8], place: EditState, from: usize, to: usize) -> EditResult {
    let index = place.index::<T>(list);
    let (first, last) = (index.block_of_slot(from), index.block_of_slot(to - 1));
    if to - from == 1 {
        return remove_one::<T>(list, place, first, from.wrapping_sub(index.start(first)));
    }
    let mut buffers = [[T::default(); MAX_BLOCK]; 2];
    let [a, b] = &mut buffers;
    let left = index.decode(first, a).get(..from.wrapping_sub(index.start(first)));
    let right = index.decode(last, b).get(to.wrapping_sub(index.start(last))..);
    let (Some(left), Some(right)) = (left, right) else {
        return Err("a block has fewer keys than its count".to_owned());
    };
    if first == last {
        let (keys, mut scratch) = ([left, right].concat(), T::scratch());
        let old = index.block(first).1.len();
        if let Some(whole) = encode(place.codec(), &keys, scratch.as_mut())?
            && whole.1.len() <= old + entry_bytes::<T>(place.codec())
        {
            return splice(list, place, first..first + 1, &[whole]);
        }
    }
    two(list, place, first..last + 1, left, right)
}

fn remove_one<T: IntKey>(list: &mut [u8], place: EditState, at: usize, position: usize) -> EditResult {
    let index = place.index::<T>(list);
    let mut scratch = T::scratch();
    let mut block = place.copy(&index, at, &mut scratch)?;
    let old = index.block(at).1.len();
    if block.count == 1 && position == 0 {
        return splice::<T>(list, place, at..at + 1, &[]);
    }
    T::remove_at(place.codec(), &mut block, scratch.as_mut(), position).map_err(damaged)?;
    let body = place.used_of(&block, scratch.as_ref())?;
    if body.len() > old + entry_bytes::<T>(place.codec()) {
        // The joined gap costs more than a border between two blocks, which needs no gap.
        let mut keys = [T::default(); MAX_BLOCK];
        let keys = index.decode(at, &mut keys);
        let (left, right) = (keys.get(..position), keys.get(position + 1..));
        return two(list, place, at..at + 1, left.unwrap_or_default(), right.unwrap_or_default());
    }
    let few = place.rule.most() / 8;
    if usize::from(block.count) <= few {
        let together = |other: usize| index.keys_in(other) + usize::from(block.count) <= 4 * few;
        let left = at.checked_sub(1).filter(|left| together(*left));
        let right = (at + 1 < index.len() && together(at + 1)).then_some(at);
        if let Some(left) = left.or(right) {
            return merge(list, place, left, at, (block, body));
        }
    }
    splice(list, place, at..at + 1, &[(block, body)])
}

/// Replaces block `at` by `changed`. Joins it with its neighbour if the result takes no more bytes. `left` is the lower
/// of the two blocks.
fn merge<T: IntKey>(list: &mut [u8], place: EditState, left: usize, at: usize, changed: Piece<'_, T>) -> EditResult {
    let index = place.index::<T>(list);
    let mut keys = Vec::with_capacity(MAX_BLOCK);
    for block in [left, left + 1] {
        let (block, body) = if block == at { changed } else { index.block(block) };
        let mut buffer = [T::default(); MAX_BLOCK];
        keys.extend_from_slice(T::decode(place.codec(), &block, body, &mut buffer).map_err(damaged)?);
    }
    let other = index.block(if left == at { at + 1 } else { left }).1.len();
    let mut scratch = T::scratch();
    match encode(place.codec(), &keys, scratch.as_mut())? {
        Some(whole) if whole.1.len() <= other + changed.1.len() + entry_bytes::<T>(place.codec()) => {
            splice(list, place, left..left + 2, &[whole])
        }
        _ => splice(list, place, at..at + 1, &[changed]),
    }
}

/// Returns the list with its keys in as few blocks as possible, if that frees at least a sixteenth.
pub(super) fn vacuumized<T: IntKey>(list: &[u8], place: EditState) -> Option<Vec<u8>> {
    let index = place.index::<T>(list);
    if index.len() <= 1 + place.count.div_ceil(place.rule.most()) * 9 / 8 {
        return None;
    }
    let (mut keys, mut block) = (Vec::with_capacity(place.count), [T::default(); MAX_BLOCK]);
    for at in 0..index.len() {
        keys.extend_from_slice(index.decode(at, &mut block));
    }
    let mut builder = IntegerBlocksBuilder::<T>::new(place.rule);
    for piece in pieces(place.rule, &keys, place.rule.most()) {
        builder.push_block(keys.get(piece).unwrap_or_default());
    }
    let sound = keys.len() == place.count && keys.is_sorted_by(|a, b| a < b);
    let worth = builder.bytes() + place.used / 16 <= place.used;
    (sound && worth).then(|| {
        let mut out = Vec::with_capacity(builder.bytes());
        builder.finish(&mut out);
        out
    })
}

/// Writes a block's fields of the index, except the offset of its bytes.
fn put_block<T: IntKey>(list: &mut [u8], codec: Codec, blocks: usize, at: usize, block: &Block<T>) {
    let key = |list: &mut [u8], part: usize, key: T| {
        let bytes = key.widen().to_le_bytes();
        bytes::put(list, FRONT + T::BYTES * (part * blocks + at), bytes::slice(&bytes, 0, T::BYTES));
    };
    key(list, 0, block.first);
    key(list, 1, block.last);
    if is_packed(codec) {
        let widths = FRONT + blocks * (2 * T::BYTES + 4);
        bytes::put_u8(list, widths + at, bytes::u8_of(block.extent.into()));
    }
}

/// Replaces the blocks of `range` by `pieces`. Returns `None` and changes nothing if there is no room.
pub(super) fn splice<T: IntKey>(
    list: &mut [u8],
    place: EditState,
    range: Range<usize>,
    pieces: &[Piece<'_, T>],
) -> EditResult {
    let (codec, EditState { used, room, .. }) = (place.codec(), place);
    let index = place.index::<T>(list);
    let blocks = index.len();
    let (from, to) = (index.offset(range.start), index.offset(range.end));
    let body_at = used - index.body().len();
    let (start, end) = (index.start(range.start), index.start(range.end));
    let added: usize = pieces.iter().map(|(_, body)| body.len()).sum();
    let keys: usize = pieces.iter().map(|(block, _)| usize::from(block.count)).sum();
    if from > to || to > index.body().len() || start + keys > usize::from(u16::MAX) {
        return Err(format!("blocks {range:?} are not within the list"));
    }
    if pieces.len() != range.len() {
        // Offsets of a list that is longer than any page have no 16 bits.
        let index_bytes = |blocks: usize| blocks * entry_bytes::<T>(codec);
        if used + added + index_bytes(pieces.len()) > room + (to - from) + index_bytes(range.len()) {
            return Ok(None);
        }
        let out = spliced(list, &place, &index, range, pieces);
        return Ok(put_all(list, &out, used, room));
    }
    let total = used + added - (to - from);
    if total > room {
        return Ok(None);
    }
    if total != used {
        bytes::shift(list, body_at + to, used, body_at + from + added);
    }
    let (mut slot, mut offset) = (start, from);
    let starts = FRONT + blocks * 2 * T::BYTES;
    let offsets = starts + blocks * 2;
    for (at, (block, body)) in range.clone().zip(pieces) {
        put_block(list, codec, blocks, at, block);
        bytes::put_u16(list, starts + 2 * at, bytes::u16_of(slot));
        bytes::put_u16(list, offsets + 2 * at, bytes::u16_of(offset));
        bytes::put(list, body_at + offset, body);
        slot += usize::from(block.count);
        offset += body.len();
    }
    add_to_all(list, starts + 2 * range.end..offsets, slot.wrapping_sub(end));
    add_to_all(list, offsets + 2 * range.end..offsets + 2 * blocks, offset.wrapping_sub(to));
    bytes::zero(list, total, used);
    Ok(Some(total))
}

/// Returns the list with `pieces` in place of the blocks of `range`; the numbers of blocks may differ. The parts that
/// stay are copied whole, whatever the number of blocks: a page may have more than a thousand.
fn spliced<T: IntKey>(
    list: &[u8],
    place: &EditState,
    index: &Index<'_, T>,
    range: Range<usize>,
    pieces: &[Piece<'_, T>],
) -> Vec<u8> {
    let (codec, blocks) = (place.codec(), index.len());
    let after = blocks - range.len() + pieces.len();
    if after == 0 {
        return Vec::new();
    }
    let body_at = place.used - index.body().len();
    let (start, end) = (index.start(range.start), index.start(range.end));
    let (from, to) = (index.offset(range.start), index.offset(range.end));
    let (mut slot, mut offset) = (start, from);
    let places: Vec<[u16; 2]> = pieces
        .iter()
        .map(|(block, body)| {
            let here = [bytes::u16_of(slot), bytes::u16_of(offset)];
            slot += usize::from(block.count);
            offset += body.len();
            here
        })
        .collect();
    let mut out = Vec::with_capacity(place.used + offset + pieces.len() * entry_bytes::<T>(codec));
    out.extend_from_slice(&bytes::u16_of(after).to_le_bytes());
    let mut at = FRONT;
    // Copies an array of the index, with the fields of the pieces in the middle. Returns the offset of the fields
    // after them.
    let mut array = |out: &mut Vec<u8>, width: usize, piece: &dyn Fn(usize, &mut Vec<u8>)| {
        out.extend_from_slice(bytes::slice(list, at, at + width * range.start));
        (0..pieces.len()).for_each(|i| piece(i, out));
        let behind = out.len();
        out.extend_from_slice(bytes::slice(list, at + width * range.end, at + width * blocks));
        at += width * blocks;
        behind
    };
    let key = |key: Option<T>, out: &mut Vec<u8>| {
        out.extend_from_slice(bytes::slice(&key.unwrap_or_default().widen().to_le_bytes(), 0, T::BYTES));
    };
    array(&mut out, T::BYTES, &|i, out| key(pieces.get(i).map(|(block, _)| block.first), out));
    array(&mut out, T::BYTES, &|i, out| key(pieces.get(i).map(|(block, _)| block.last), out));
    let number = |i: usize, which: usize| places.get(i).and_then(|place| place.get(which)).copied().unwrap_or_default();
    for (which, change) in [(0, slot.wrapping_sub(end)), (1, offset.wrapping_sub(to))] {
        let behind = array(&mut out, 2, &|i, out| out.extend_from_slice(&number(i, which).to_le_bytes()));
        let all = behind..out.len();
        add_to_all(&mut out, all, change);
    }
    if is_packed(codec) {
        let width = |i: usize| pieces.get(i).map_or(0, |(block, _)| bytes::u8_of(block.extent.into()));
        array(&mut out, 1, &|i, out| out.push(width(i)));
    }
    out.extend_from_slice(bytes::slice(list, body_at, body_at + from));
    pieces.iter().for_each(|(_, body)| out.extend_from_slice(body));
    out.extend_from_slice(bytes::slice(list, body_at + to, place.used));
    out
}

/// Adds a number to every number of an array in the list, modulo 2^16.
#[allow(clippy::cast_possible_truncation)]
fn add_to_all(list: &mut [u8], range: Range<usize>, change: usize) {
    // Only the low bits are needed, because the change may be negative.
    let change = change as u16;
    if change == 0 {
        return;
    }
    let numbers = list.get_mut(range);
    bytes::must_fit(numbers.is_some());
    for number in numbers.unwrap_or_default().as_chunks_mut().0 {
        *number = u16::from_le_bytes(*number).wrapping_add(change).to_le_bytes();
    }
}

/// Replaces the whole list, if the new one fits.
pub(super) fn put_all(list: &mut [u8], new: &[u8], used: usize, room: usize) -> Option<usize> {
    if new.len() > room.min(list.len()) {
        return None;
    }
    bytes::put(list, 0, new);
    bytes::zero(list, new.len(), used);
    Some(new.len())
}

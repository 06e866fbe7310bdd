//! The key list of blocks: integer keys of 4 or 8 bytes in compressed blocks of up to 256 or 128, under an index
//! that keeps each block's place, count, first and last key (Upscaledb paper, section 3). The codecs' own bytes are the
//! crate `duramen-codec`'s affair; the layout with an example is in `docs/layouts/integers.md`.
//!
//! Keys come and go as big-endian bytes, as the page sees them. Blocks lie side by side without gaps: one that grows or
//! shrinks moves those behind it. Here the list's two widths become one interface; nothing here knows of records.

mod build;
mod codec;
mod edit;
mod in_place;
mod index;
mod policy;
mod rule;
mod run;
mod spread;

use super::KeyState;
use crate::base::bytes;
use build::Builder;
pub use codec::IntKey;
use edit::Place;
pub use index::Index;
use index::{integer, push_key};
pub use rule::BlockRule;
pub(crate) use spread::Spread;
use std::cmp::Ordering;
use std::ops::Range;

/// A list of blocks to read. Any bytes are safe.
#[derive(Clone, Copy)]
pub(crate) struct Blocks<'a> {
    rule: BlockRule,
    wide: bool,
    list: &'a [u8],
    count: usize,
}

/// Runs `$call` with `$index` being the index of the width that the list has.
macro_rules! each_width {
    ($list:expr, $index:ident => $call:expr) => {
        if $list.wide {
            let $index = Index::<u64>::new($list.rule.codec(), $list.list, $list.count);
            $call
        } else {
            let $index = Index::<u32>::new($list.rule.codec(), $list.list, $list.count);
            $call
        }
    };
}

impl<'a> Blocks<'a> {
    /// The list of `count` keys in `list` (its bytes alone); `wide` ones have 8 bytes.
    #[inline(always)]
    pub(super) fn new(rule: BlockRule, wide: bool, list: &'a [u8], count: usize) -> Blocks<'a> {
        Blocks { rule, wide, list, count }
    }

    /// The index, if the keys are of that width.
    #[inline(always)]
    pub(in crate::page) fn index<T: IntKey>(&self) -> Option<Index<'a, T>> {
        let wide = T::BITS == 64;
        (wide == self.wide).then(|| Index::new(self.rule.codec(), self.list, self.count))
    }

    /// The length of each key.
    #[inline(always)]
    pub(super) fn key_len(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// `Ok(slot)` of the equal key, or `Err(slot)` of the first greater one. Keys of other lengths are never equal.
    #[inline]
    pub(super) fn search(&self, key: &[u8]) -> Result<usize, usize> {
        each_width!(self, index => search(&index, key))
    }

    /// Appends the key of `slot` to `out`.
    #[inline]
    pub(super) fn append(&self, slot: usize, out: &mut Vec<u8>) {
        if slot < self.count {
            each_width!(self, index => push_key(index.select(slot), out));
        }
    }

    /// Bytes of the block of `slot` and of its place in the index, shared out among its keys so that those of all slots
    /// sum to the list's, but for its front.
    pub(in crate::page) fn entry_bytes(&self, slot: usize) -> usize {
        each_width!(self, index => {
            let at = index.block_of_slot(slot);
            let (block, body) = index.block(at);
            let bytes = index::entry_bytes_of(&index) + body.len();
            let (count, place) = (usize::from(block.count).max(1), slot.wrapping_sub(index.start(at)));
            let before = |place: usize| place.wrapping_mul(bytes) / count;
            if place < count { before(place + 1) - before(place) } else { 0 }
        })
    }

    /// Appends to `left` the bytes of the keys up to each slot: see [`Blocks::entry_bytes`].
    pub(in crate::page) fn sizes(&self, out: &mut Vec<usize>) {
        each_width!(self, index => {
            for at in 0..index.len() {
                let (block, body) = index.block(at);
                let bytes = index::entry_bytes_of(&index) + body.len();
                let count = usize::from(block.count).min(index.codec().max_count());
                // What is over goes to the keys that it has come to a byte at.
                let (each, over, mut gathered) = (bytes / count.max(1), bytes % count.max(1), 0);
                out.extend((0..count).map(|_| {
                    gathered += over;
                    let one = usize::from(gathered >= count);
                    gathered -= one * count;
                    each + one
                }));
            }
        });
        out.resize(self.count, 0);
    }

    /// Bytes that the keys of some slots would take in a list of their own.
    pub(in crate::page) fn bytes_of(&self, slots: Range<usize>) -> usize {
        each_width!(self, index => bytes_of(&index, self.rule, slots))
    }

    /// The slot where the block of `slot` begins.
    pub(in crate::page) fn block_start(&self, slot: usize) -> usize {
        each_width!(self, index => index.start(index.block_of_slot(slot)))
    }

    /// The most bytes that one more key costs a list.
    pub(in crate::page) fn most_growth(&self) -> usize {
        if self.wide { policy::dear::<u64>(self.rule.codec()) } else { policy::dear::<u32>(self.rule.codec()) }
    }

    /// See [`super::KeyList::first_longer`].
    pub(super) fn first_longer(&self, from: usize, len: usize) -> Option<usize> {
        (from < self.count && self.key_len() > len).then_some(from)
    }

    /// Says what is wrong with the list, the order of its keys included.
    pub(super) fn check(&self) -> Result<(), String> {
        each_width!(self, index => index.check(self.list, self.rule.most()))
    }
}

/// See [`Blocks::search`].
#[inline(always)]
fn search<T: IntKey>(index: &Index<'_, T>, key: &[u8]) -> Result<usize, usize> {
    match key.len().cmp(&T::BYTES) {
        Ordering::Equal => {
            let found = index.lower_bound(integer(key).unwrap_or_default());
            if found.exact { Ok(found.index) } else { Err(found.index) }
        }
        // A key that begins with this one is above it.
        Ordering::Less => {
            let mut whole = key.to_vec();
            whole.resize(T::BYTES, 0);
            Err(index.lower_bound(integer(&whole).unwrap_or_default()).index)
        }
        // A key that this one begins with is below it.
        Ordering::Greater => {
            let found = index.lower_bound(integer(bytes::slice(key, 0, T::BYTES)).unwrap_or_default());
            Err(found.index + usize::from(found.exact))
        }
    }
}

fn bytes_of<T: IntKey>(index: &Index<'_, T>, rule: BlockRule, slots: Range<usize>) -> usize {
    let mut builder = Builder::new(rule);
    builder.take(index, slots);
    builder.bytes()
}

/// True where the list's bytes can hold the index that it claims to have, and it has one exactly if it has keys.
pub(super) fn is_changeable(list: &[u8], rule: BlockRule, wide: bool, count: usize) -> bool {
    let blocks = Blocks::new(rule, wide, list, count);
    each_width!(blocks, index => index.is_empty() == (count == 0) && (count == 0) == list.is_empty())
}

fn place(rule: BlockRule, state: KeyState) -> Place {
    Place { rule, used: state.bytes, count: state.count, room: state.room }
}

/// Inserts a key; where there is no room for it as the list stands, the list is laid out anew, if that pays.
pub(super) fn insert(
    list: &mut [u8],
    (rule, wide): (BlockRule, bool),
    state: KeyState,
    slot: usize,
    key: &[u8],
) -> edit::Changed {
    if wide {
        insert_wide::<u64>(list, place(rule, state), slot, key)
    } else {
        insert_wide::<u32>(list, place(rule, state), slot, key)
    }
}

fn insert_wide<T: IntKey>(list: &mut [u8], place: Place, slot: usize, key: &[u8]) -> edit::Changed {
    let key = integer::<T>(key).ok_or_else(|| no_key::<T>(key))?;
    if let Some(used) = edit::insert(list, place, slot, key)? {
        return Ok(Some(used));
    }
    let Some(packed) = edit::vacuumized::<T>(list, place) else { return Ok(None) };
    let mut trial = list.to_vec();
    let Some(used) = edit::put_all(&mut trial, &packed, place.used, place.room) else { return Ok(None) };
    let changed = edit::insert(&mut trial, Place { used, ..place }, slot, key)?;
    if changed.is_some() {
        bytes::put(list, 0, &trial);
    }
    Ok(changed)
}

/// How many of these keys go to the same block as the first.
pub(super) fn together<'k>(
    list: &[u8],
    (rule, wide): (BlockRule, bool),
    count: usize,
    keys: impl Iterator<Item = &'k [u8]>,
) -> usize {
    let blocks = Blocks::new(rule, wide, list, count);
    each_width!(blocks, index => run::together(&index, keys.map(integer)))
}

/// Inserts the first of these keys, each at its slot of the list with those before it, as long as that changes nothing of the
/// list's length and not `worth` of them go to one block; says how many.
pub(super) fn insert_in_place<'k>(
    list: &mut [u8],
    (rule, wide): (BlockRule, bool),
    state: KeyState,
    worth: usize,
    keys: impl Iterator<Item = (usize, &'k [u8])> + Clone,
) -> usize {
    let place = place(rule, state);
    match wide {
        true => in_place::insert_some::<u64>(list, place, worth, keys.map(|(slot, key)| (slot, integer(key)))),
        false => in_place::insert_some::<u32>(list, place, worth, keys.map(|(slot, key)| (slot, integer(key)))),
    }
}

/// Inserts keys that are [`together`], each at its slot of the list as it is now; all or none.
pub(super) fn insert_run<'k>(
    list: &mut [u8],
    (rule, wide): (BlockRule, bool),
    state: KeyState,
    keys: impl Iterator<Item = (usize, &'k [u8])>,
) -> edit::Changed {
    fn integers<'k, T: IntKey>(keys: impl Iterator<Item = (usize, &'k [u8])>) -> Result<Vec<(usize, T)>, String> {
        let integer = |(slot, key): (usize, &[u8])| integer(key).map(|key| (slot, key)).ok_or_else(|| no_key::<T>(key));
        keys.map(integer).collect()
    }
    match wide {
        true => run::insert::<u64>(list, place(rule, state), &integers(keys)?),
        false => run::insert::<u32>(list, place(rule, state), &integers(keys)?),
    }
}

fn no_key<T: IntKey>(key: &[u8]) -> String {
    format!("a key of {} bytes does not belong in a list of keys of {}", key.len(), T::BYTES)
}

/// Takes the keys of some slots out; a codec that is not delete-stable may need more room than there is.
pub(super) fn remove(
    list: &mut [u8],
    (rule, wide): (BlockRule, bool),
    state: KeyState,
    from: usize,
    to: usize,
) -> edit::Changed {
    let place = place(rule, state);
    if wide { edit::remove::<u64>(list, place, from, to) } else { edit::remove::<u32>(list, place, from, to) }
}

/// Lays the list out anew to make room for records. `None`: it would not fit, or not pay.
pub(super) fn vacuumize(list: &mut [u8], (rule, wide): (BlockRule, bool), state: KeyState) -> Option<usize> {
    let place = place(rule, state);
    let packed = if wide { edit::vacuumized::<u64>(list, place) } else { edit::vacuumized::<u32>(list, place) };
    edit::put_all(list, &packed?, place.used, place.room)
}

/// A list of blocks under construction.
pub(crate) enum BlocksBuilder {
    /// Of keys of 4 bytes.
    Narrow(Builder<u32>),
    /// Of keys of 8 bytes.
    Wide(Builder<u64>),
}

impl BlocksBuilder {
    pub(super) fn new(rule: BlockRule, wide: bool) -> BlocksBuilder {
        if wide { BlocksBuilder::Wide(Builder::new(rule)) } else { BlocksBuilder::Narrow(Builder::new(rule)) }
    }

    /// Bytes that the list takes now.
    pub(super) fn bytes(&self) -> usize {
        match self {
            BlocksBuilder::Narrow(list) => list.bytes(),
            BlocksBuilder::Wide(list) => list.bytes(),
        }
    }

    #[inline]
    pub(super) fn bytes_with(&self, key: &[u8]) -> Option<usize> {
        match self {
            BlocksBuilder::Narrow(list) => list.bytes_with(integer(key)?),
            BlocksBuilder::Wide(list) => list.bytes_with(integer(key)?),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, key: &[u8]) {
        match self {
            BlocksBuilder::Narrow(list) => integer(key).into_iter().for_each(|key| list.push(key)),
            BlocksBuilder::Wide(list) => integer(key).into_iter().for_each(|key| list.push(key)),
        }
    }

    /// Takes over the keys of some slots of another list; false where they are none that this list can hold.
    pub(super) fn take(&mut self, from: &Blocks<'_>, slots: Range<usize>) -> bool {
        match self {
            BlocksBuilder::Narrow(list) => from.index().is_some_and(|index| list.take(&index, slots)),
            BlocksBuilder::Wide(list) => from.index().is_some_and(|index| list.take(&index, slots)),
        }
    }

    pub(super) fn finish(self, out: &mut Vec<u8>) {
        match self {
            BlocksBuilder::Narrow(list) => list.finish(out),
            BlocksBuilder::Wide(list) => list.finish(out),
        }
    }
}

//! The key list of blocks: integer keys of 4 or 8 bytes in compressed blocks of up to 256 or 128 keys, below an index
//! with each block's place, count, first and last key (Upscaledb paper, section 3). The crate `duramen-codec` defines
//! the bytes of a block; the layout with an example is in `docs/layouts/integers.md`.
//!
//! Callers pass and receive keys as big-endian bytes. Blocks are adjacent: a block that grows or shrinks moves those
//! after it. This file joins the list's two widths in one interface.

/// Runs `$call` with `$index` bound to the index of the list's width.
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

mod build;
mod codec;
mod edit;
mod in_place;
mod index;
mod likely;
mod many;
mod policy;
mod rule;
mod run;
mod scheme;

use super::scheme::{Build, List};
use crate::base::bytes;
use build::IntegerBlocksBuilder;
use codec::IntKey;
use duramen_codec::Codec;
use index::{Index, integer, push_key};
pub use rule::BlockRule;
pub(super) use scheme::BlocksScheme;
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

impl<'a> Blocks<'a> {
    /// Returns the list of `count` keys in `list` (the bytes of the list alone). `wide` keys have 8 bytes.
    #[inline(always)]
    pub(super) fn new(rule: BlockRule, wide: bool, list: &'a [u8], count: usize) -> Blocks<'a> {
        Blocks { rule, wide, list, count }
    }

    /// Returns the index, if the keys have that width.
    #[inline(always)]
    fn index<T: IntKey>(&self) -> Option<Index<'a, T>> {
        let wide = T::BITS == 64;
        (wide == self.wide).then(|| Index::new(self.rule.codec(), self.list, self.count))
    }

    /// Returns the length of each key.
    #[inline(always)]
    pub(super) fn key_len(&self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// Appends to `out` the bytes of each key: the bytes of its block, divided evenly among the block's keys.
    pub(crate) fn sizes(&self, out: &mut Vec<usize>) {
        each_width!(self, index => {
            for at in 0..index.len() {
                let (block, body) = index.block(at);
                let bytes = index::entry_bytes_of(&index) + body.len();
                let count = usize::from(block.count).min(index.codec().max_count());
                // The remainder of the division goes to keys at even distances.
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

    /// Returns the bytes that the keys of some slots would take in a list of their own.
    pub(crate) fn bytes_of(&self, slots: Range<usize>) -> usize {
        each_width!(self, index => bytes_of(&index, self.rule, slots))
    }

    /// Returns the first slot of the block of `slot`.
    pub(crate) fn block_start(&self, slot: usize) -> usize {
        each_width!(self, index => index.start(index.block_of_slot(slot)))
    }

    /// Returns the most bytes that one more key costs a list if no block is split: in a block, or as a block of its
    /// own.
    pub(crate) fn most_growth(&self) -> usize {
        if self.wide {
            policy::most_growth::<u64>(self.rule.codec())
        } else {
            policy::most_growth::<u32>(self.rule.codec())
        }
    }
}

/// Returns the most bytes that one more key costs a list of any width, wherever the key goes. A block that is split
/// gives two blocks, each with its descriptor.
pub(super) fn most_growth(codec: Codec) -> usize {
    2 * policy::most_growth::<u64>(codec)
}

impl<'a> List<'a> for Blocks<'a> {
    #[inline]
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        each_width!(self, index => search(&index, key))
    }

    #[inline]
    fn append(&self, slot: usize, out: &mut Vec<u8>) {
        if slot < self.count {
            each_width!(self, index => push_key(index.select(slot), out));
        }
    }

    fn entry_bytes(&self, slot: usize) -> usize {
        each_width!(self, index => {
            let at = index.block_of_slot(slot);
            let (block, body) = index.block(at);
            let bytes = index::entry_bytes_of(&index) + body.len();
            let (count, place) = (usize::from(block.count).max(1), slot.wrapping_sub(index.start(at)));
            let before = |place: usize| place.wrapping_mul(bytes) / count;
            if place < count { before(place + 1) - before(place) } else { 0 }
        })
    }

    fn first_longer(&self, from: usize, len: usize) -> Option<usize> {
        (from < self.count && self.key_len() > len).then_some(from)
    }

    fn check(&self, _list: &[u8], _count: usize) -> Result<(), String> {
        each_width!(self, index => index.check(self.list, self.rule.most()))
    }

    #[inline]
    fn suffix_len(&self, _slot: usize) -> usize {
        self.key_len()
    }

    fn checks_order(&self) -> bool {
        true
    }

    fn kept_bytes(&self, _count: usize) -> usize {
        self.list.len()
    }

    #[inline(always)]
    fn blocks(&self) -> Option<Blocks<'a>> {
        Some(*self)
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
        // A longer key that begins with the sought one is above it.
        Ordering::Less => {
            let mut whole = key.to_vec();
            whole.resize(T::BYTES, 0);
            Err(index.lower_bound(integer(&whole).unwrap_or_default()).index)
        }
        // A shorter key that the sought one begins with is below it.
        Ordering::Greater => {
            let found = index.lower_bound(integer(bytes::slice(key, 0, T::BYTES)).unwrap_or_default());
            Err(found.index + usize::from(found.exact))
        }
    }
}

fn bytes_of<T: IntKey>(index: &Index<'_, T>, rule: BlockRule, slots: Range<usize>) -> usize {
    let mut builder = IntegerBlocksBuilder::new(rule);
    builder.take(index, slots);
    builder.bytes()
}

/// A list of blocks under construction.
pub(crate) enum BlocksBuilder {
    /// Keys have 4 bytes.
    Narrow(IntegerBlocksBuilder<u32>),
    /// Keys have 8 bytes.
    Wide(IntegerBlocksBuilder<u64>),
}

impl BlocksBuilder {
    pub(super) fn new(rule: BlockRule, wide: bool) -> BlocksBuilder {
        if wide {
            BlocksBuilder::Wide(IntegerBlocksBuilder::new(rule))
        } else {
            BlocksBuilder::Narrow(IntegerBlocksBuilder::new(rule))
        }
    }
}

impl Build for BlocksBuilder {
    type List<'a> = Blocks<'a>;

    fn bytes(&self) -> usize {
        match self {
            BlocksBuilder::Narrow(list) => list.bytes(),
            BlocksBuilder::Wide(list) => list.bytes(),
        }
    }

    #[inline]
    fn bytes_with(&self, key: &[u8]) -> Option<usize> {
        match self {
            BlocksBuilder::Narrow(list) => list.bytes_with(integer(key)?),
            BlocksBuilder::Wide(list) => list.bytes_with(integer(key)?),
        }
    }

    #[inline]
    fn push(&mut self, key: &[u8]) {
        match self {
            BlocksBuilder::Narrow(list) => integer(key).into_iter().for_each(|key| list.push(key)),
            BlocksBuilder::Wide(list) => integer(key).into_iter().for_each(|key| list.push(key)),
        }
    }

    fn take(&mut self, from: &Blocks<'_>, slots: Range<usize>, _cut: usize) -> bool {
        match self {
            BlocksBuilder::Narrow(list) => from.index().is_some_and(|index| list.take(&index, slots)),
            BlocksBuilder::Wide(list) => from.index().is_some_and(|index| list.take(&index, slots)),
        }
    }

    fn finish(self, _room: usize, out: &mut Vec<u8>) {
        match self {
            BlocksBuilder::Narrow(list) => list.finish(out),
            BlocksBuilder::Wide(list) => list.finish(out),
        }
    }
}

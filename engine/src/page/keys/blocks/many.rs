//! Operations on many keys of a list of blocks: sums computed block by block, and blocks decoded once for all their
//! keys.

use super::Blocks;
use super::codec::IntKey;
use super::index::{Index, push_key};
use crate::page::keys::AdjacentKeys;
use duramen_codec::MAX_BLOCK;
use std::ops::Range;

/// The least average length of blocks, in bytes, whose sums are limited by memory: two bytes for each key of the
/// largest block.
const LONG_BLOCK: usize = 2 * MAX_BLOCK;

impl Blocks<'_> {
    /// Returns the sum of the keys of some slots. Whole blocks are summed in registers, those at the edges are decoded.
    /// The function that `ahead` makes receives the bytes that are read, if it pays to prefetch the same bytes of the
    /// next page. If blocks are short, it does not: memory is quicker than the computation of their sums.
    pub(crate) fn sum<A: Fn(&[u8])>(&self, slots: &Range<usize>, ahead: impl FnOnce() -> Option<A>) -> u128 {
        each_width!(self, index => sum(&index, slots, ahead))
    }

    /// Appends the keys from `slot` to the end of its block to `keys`.
    pub(crate) fn rest_of_block(&self, slot: usize, keys: &mut Vec<u64>) {
        each_width!(self, index => rest_of_block(&index, slot, keys));
    }

    /// Adds the keys of the block of `slot` to a row. Returns the slot of the first one.
    pub(crate) fn add_block_to(&self, row: &mut AdjacentKeys, slot: usize) -> usize {
        each_width!(self, index => add_block_to(&index, row, slot))
    }

    /// Returns the number of keys in the longest block.
    #[cfg(test)]
    pub(crate) fn longest(&self) -> usize {
        each_width!(self, index => (0..index.len()).map(|at| index.keys_in(at)).max().unwrap_or(0))
    }
}

fn sum<T: IntKey, A: Fn(&[u8])>(index: &Index<'_, T>, slots: &Range<usize>, ahead: impl FnOnce() -> Option<A>) -> u128 {
    let mut sum = 0;
    if slots.is_empty() {
        return sum;
    }
    let ahead = if index.usual_bytes() < LONG_BLOCK { None } else { ahead() };
    for at in index.block_of_slot(slots.start)..index.len() {
        let (start, end) = (index.start(at), index.start(at + 1));
        if start >= slots.end {
            break;
        }
        if slots.start <= start && end <= slots.end {
            sum += index.sum(at);
            if let Some(ahead) = &ahead {
                ahead(index.summed(at));
            }
            continue;
        }
        let mut buffer = [T::default(); MAX_BLOCK];
        let keys = index.decode(at, &mut buffer);
        let (from, to) = (slots.start.saturating_sub(start), slots.end.saturating_sub(start).min(keys.len()));
        let keys = keys.get(from..to).unwrap_or_default();
        sum += keys.iter().map(|key| u128::from(key.widen())).sum::<u128>();
    }
    sum
}

fn rest_of_block<T: IntKey>(index: &Index<'_, T>, slot: usize, keys: &mut Vec<u64>) {
    let at = index.block_of_slot(slot);
    let mut buffer = [T::default(); MAX_BLOCK];
    let block = index.decode(at, &mut buffer);
    let from = slot.saturating_sub(index.start(at));
    keys.extend(block.get(from..).unwrap_or_default().iter().map(|key| key.widen()));
}

fn add_block_to<T: IntKey>(index: &Index<'_, T>, row: &mut AdjacentKeys, slot: usize) -> usize {
    let at = index.block_of_slot(slot);
    let mut keys = [T::default(); MAX_BLOCK];
    let mut bytes = Vec::with_capacity(size_of::<T>());
    for &key in index.decode(at, &mut keys) {
        bytes.clear();
        push_key(key, &mut bytes);
        row.push(&bytes);
    }
    index.start(at)
}

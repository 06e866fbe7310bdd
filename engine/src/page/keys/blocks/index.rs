//! The block index at the front of a key list of blocks: the place of each block and its first and last key, read
//! without decoding a block.
//!
//! `[blocks u16] [first key; n] [last key; n] [first slot u16; n] [offset u16; n] [width u8; n] [bytes of the blocks]`
//!
//! Keys are 4 or 8 bytes, little-endian. Offsets count from the end of the index; the blocks' bytes are
//! adjacent. Only the packed codecs have widths, the bits of a field: for the other codecs the bytes of a block are
//! sufficient.

use super::codec::IntKey;
use crate::base::bytes;
use crate::page::check::cannot_hold;
use duramen_codec::{Block, Buffer, Codec, Found};

/// The bytes of the field with the number of blocks.
pub(super) const FRONT: usize = 2;

/// Returns true if the index has a width for each block.
#[inline(always)]
pub(super) fn is_packed(codec: Codec) -> bool {
    !codec.edits_in_place()
}

/// Returns the bytes of the index for each block.
#[inline(always)]
pub(super) fn entry_bytes<T: IntKey>(codec: Codec) -> usize {
    2 * T::BYTES + 4 + usize::from(is_packed(codec))
}

/// Does the same as [`entry_bytes`], for this index.
pub(super) fn entry_bytes_of<T: IntKey>(index: &Index<'_, T>) -> usize {
    entry_bytes::<T>(index.codec)
}

/// Returns the integer of a big-endian key; `None` if the key has another length.
#[inline(always)]
pub(super) fn integer<T: IntKey>(key: &[u8]) -> Option<T> {
    (key.len() == T::BYTES).then(|| T::narrow(key.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))))
}

/// Appends the big-endian bytes of a key.
#[inline(always)]
pub(super) fn push_key<T: IntKey>(key: T, out: &mut Vec<u8>) {
    let bytes = key.widen().to_be_bytes();
    out.extend_from_slice(bytes.get(8 - T::BYTES..).unwrap_or_default());
}

/// Returns the key at index `at` of an array; zero if the array is shorter.
#[inline(always)]
fn key_at<T: IntKey>(keys: &[T::Bytes], at: usize) -> T {
    keys.get(at).map_or_else(T::default, |bytes| T::from_le(*bytes))
}

/// The number of keys that the last step of a search in the index compares.
const WINDOW: usize = 32;

/// Returns the index of the last of `keys`, which are in order, that is not above `key`; 0 if all are above it. Halves
/// the range without a branch until a window is left, and counts in the window. A branch would often be mispredicted,
/// and each further step would wait for the one before.
#[inline(always)]
pub(super) fn last_not_above<T: IntKey>(keys: &[T::Bytes], key: T) -> usize {
    let (mut base, mut size) = (0, keys.len());
    while size > WINDOW {
        let half = size / 2;
        let not_above = keys.get(base + half).is_some_and(|there| T::from_le(*there) <= key);
        base = std::hint::select_unpredictable(not_above, base + half, base);
        size -= half;
    }
    let count = |keys: &[T::Bytes]| keys.iter().map(|there| u32::from(T::from_le(*there) <= key)).sum::<u32>() as usize;
    let (fours, rest) = keys.get(base..base + size).unwrap_or_default().as_chunks::<4>();
    (base + count(fours.as_flattened()) + count(rest)).saturating_sub(1)
}

/// Returns the last of `blocks` blocks that is `not_above`, or 0. Uses branches, because keys in order take the same
/// branches again.
#[inline(always)]
fn halve(blocks: usize, not_above: impl Fn(usize) -> bool) -> usize {
    let (mut base, mut size) = (0, blocks);
    while size > 1 {
        let half = size / 2;
        if not_above(base + half) {
            base += half;
        }
        size -= half;
    }
    base
}

/// The blocks of a leaf's keys, to read. Any bytes are safe: an invalid index gives an empty result, or a block that
/// its codec refuses. Slots and keys are those of the page.
#[derive(Clone, Copy)]
pub(super) struct Index<'a, T: IntKey> {
    pub(super) codec: Codec,
    pub(super) count: usize,
    firsts: &'a [T::Bytes],
    lasts: &'a [T::Bytes],
    starts: &'a [[u8; 2]],
    offsets: &'a [[u8; 2]],
    widths: &'a [u8],
    body: &'a [u8],
}

impl<'a, T: IntKey> Index<'a, T> {
    /// Returns the index of `list` (the bytes of the list alone), whose blocks have `count` keys.
    #[inline(always)]
    pub(super) fn new(codec: Codec, list: &'a [u8], count: usize) -> Index<'a, T> {
        let claimed = usize::from(bytes::get_u16(list, 0));
        let blocks = if FRONT + claimed * entry_bytes::<T>(codec) <= list.len() { claimed } else { 0 };
        let rest = list.get(FRONT..).unwrap_or_default();
        let (firsts, rest) = rest.split_at_checked(T::BYTES * blocks).unwrap_or_default();
        let (lasts, rest) = rest.split_at_checked(T::BYTES * blocks).unwrap_or_default();
        let (starts, rest) = rest.split_at_checked(2 * blocks).unwrap_or_default();
        let (offsets, rest) = rest.split_at_checked(2 * blocks).unwrap_or_default();
        let (widths, body) = rest.split_at_checked(if is_packed(codec) { blocks } else { 0 }).unwrap_or_default();
        Index {
            codec,
            count,
            firsts: T::chunks(firsts),
            lasts: T::chunks(lasts),
            starts: starts.as_chunks().0,
            offsets: offsets.as_chunks().0,
            widths,
            body,
        }
    }

    /// Returns the number of blocks.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.firsts.len()
    }

    /// Returns true if there are no blocks, and therefore no keys.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.firsts.is_empty()
    }

    /// Returns the codec of all blocks.
    #[inline(always)]
    pub(super) fn codec(&self) -> Codec {
        self.codec
    }

    /// Returns the smallest key of a block.
    #[inline(always)]
    pub(super) fn first(&self, block: usize) -> T {
        key_at(self.firsts, block)
    }

    /// Returns the largest key of a block.
    #[inline(always)]
    pub(super) fn last(&self, block: usize) -> T {
        key_at(self.lasts, block)
    }

    /// Returns the slot of a block's first key; for the index after the last block, the number of keys.
    #[inline(always)]
    pub(super) fn start(&self, block: usize) -> usize {
        self.starts.get(block).map_or(self.count, |bytes| usize::from(u16::from_le_bytes(*bytes)))
    }

    /// Returns the offset of a block's bytes in the body.
    #[inline(always)]
    pub(super) fn offset(&self, block: usize) -> usize {
        self.offsets.get(block).map_or(self.body.len(), |bytes| usize::from(u16::from_le_bytes(*bytes)))
    }

    /// Returns the bytes of all blocks.
    #[inline(always)]
    pub(super) fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Returns the number of keys in a block; a number that no valid block has if the index is damaged.
    #[inline(always)]
    pub(super) fn keys_in(&self, block: usize) -> usize {
        self.start(block + 1).wrapping_sub(self.start(block)).min(usize::from(u16::MAX))
    }

    /// Returns a block's descriptor and its bytes, as the codec takes them.
    #[inline(always)]
    pub(super) fn block(&self, block: usize) -> (Block<T>, &'a [u8]) {
        let bytes = self.body.get(self.offset(block)..self.offset(block + 1)).unwrap_or_default();
        // Both numbers fit: the block is in a page, and `keys_in` has a limit. Only a damaged index reaches the limit.
        let extent = if is_packed(self.codec) {
            self.widths.get(block).map_or(0, |width| u16::from(*width))
        } else {
            bytes::u16_clamped(bytes.len())
        };
        let count = bytes::u16_clamped(self.keys_in(block));
        (Block { first: self.first(block), last: self.last(block), count, extent }, bytes)
    }

    /// Does the same as [`Index::block`], to search for few keys. The bytes of a packed block include those after it,
    /// because the quickest searches read more bytes than they need. The descriptor has the block's length.
    #[inline(always)]
    fn block_to_search(&self, block: usize) -> (Block<T>, &'a [u8]) {
        if !is_packed(self.codec) {
            return self.block(block);
        }
        let (first, last) = (self.first(block), self.last(block));
        let extent = self.widths.get(block).map_or(0, |width| u16::from(*width));
        let bytes = self.body.get(self.offset(block)..).unwrap_or_default();
        (Block { first, last, count: bytes::u16_clamped(self.keys_in(block)), extent }, bytes)
    }

    /// Returns the number of keys of a block if they are consecutive. Its bytes then need not be read.
    #[inline(always)]
    fn run(&self, block: usize) -> Option<usize> {
        let count = self.keys_in(block);
        let span = self.last(block).widen().wrapping_sub(self.first(block).widen());
        (count > 0 && count <= self.codec.max_count() && span == (count - 1) as u64).then_some(count)
    }

    /// Returns the last block whose first key is not above `key`; block 0 if all are above it.
    #[inline(always)]
    pub(super) fn block_of_key(&self, key: T) -> usize {
        last_not_above(self.firsts, key)
    }

    /// Returns the block that holds the key of `slot`.
    #[inline(always)]
    pub(super) fn block_of_slot(&self, slot: usize) -> usize {
        halve(self.starts.len(), |block| self.start(block) <= slot)
    }

    /// Returns how many keys are below `key`, and whether the next one is equal. A damaged block counts as a block of
    /// larger keys.
    #[inline(always)]
    pub(super) fn lower_bound(&self, key: T) -> Found {
        let at = self.block_of_key(key);
        if self.is_empty() {
            return Found { index: 0, exact: false };
        }
        if key > self.last(at) {
            return Found { index: self.start(at + 1).min(self.count), exact: false };
        }
        if self.run(at).is_some() {
            let above = key.widen().checked_sub(self.first(at).widen());
            let index = above.map_or(0, |above| usize::try_from(above).unwrap_or(usize::MAX));
            return Found { index: self.start(at).saturating_add(index).min(self.count), exact: above.is_some() };
        }
        let (block, bytes) = self.block_to_search(at);
        let found = T::lower_bound(self.codec, &block, bytes, key).unwrap_or(Found { index: 0, exact: false });
        Found { index: (self.start(at) + found.index).min(self.count), ..found }
    }

    /// Selects the key of `slot` in its block; zero if there is none.
    #[inline]
    pub(super) fn select(&self, slot: usize) -> T {
        let at = self.block_of_slot(slot);
        let index = slot.wrapping_sub(self.start(at));
        if self.run(at).is_some_and(|count| index < count) {
            return T::narrow(self.first(at).widen().wrapping_add(index as u64));
        }
        let (block, bytes) = self.block_to_search(at);
        T::select(self.codec, &block, bytes, index).unwrap_or_default()
    }

    /// Decodes the keys of a block to `out`; none if its bytes are damaged.
    #[inline]
    pub(super) fn decode<'o>(&self, block: usize, out: &'o mut Buffer<T>) -> &'o [T] {
        if let Some(count) = self.run(block) {
            let keys = out.get_mut(..count).unwrap_or_default();
            let first = self.first(block).widen();
            (0..).zip(&mut *keys).for_each(|(above, to)| *to = T::narrow(first.wrapping_add(above)));
            return keys;
        }
        let (block, bytes) = self.block(block);
        match T::decode(self.codec, &block, bytes, out) {
            Ok(keys) => keys,
            Err(_) => &[],
        }
    }

    /// Returns the sum of a block's keys, computed in registers; zero if its bytes are damaged.
    #[inline]
    pub(super) fn sum(&self, block: usize) -> u128 {
        if let Some(count) = self.run(block) {
            let ends = u128::from(self.first(block).widen()) + u128::from(self.last(block).widen());
            return ends * count as u128 / 2;
        }
        let (block, bytes) = self.block(block);
        T::sum(self.codec, &block, bytes).unwrap_or_default()
    }

    /// Returns the average number of bytes of a block.
    #[inline]
    pub(super) fn usual_bytes(&self) -> usize {
        self.body.len() / self.len().max(1)
    }

    /// Returns the bytes of a block that [`Index::sum`] reads; none if the keys are consecutive.
    #[inline]
    pub(super) fn summed(&self, block: usize) -> &'a [u8] {
        if self.run(block).is_some() { &[] } else { self.block(block).1 }
    }

    /// Checks the index, each block (which may have at most `most` keys) and the order of keys. The error says what is
    /// wrong.
    pub(super) fn check(&self, list: &[u8], most: usize) -> Result<(), String> {
        let claimed = usize::from(bytes::get_u16(list, 0));
        if (self.count == 0) != list.is_empty() || claimed != self.len() || (claimed == 0) != list.is_empty() {
            return Err(cannot_hold(list.len(), claimed, format_args!("blocks of {} keys", self.count)));
        }
        let mut before = None;
        let mut at = (0, 0);
        for i in 0..self.len() {
            let (block, bytes) = self.block(i);
            if (self.start(i), self.offset(i)) != at || block.count == 0 {
                return Err(format!("block {i} does not begin where the one before it ends"));
            }
            if usize::from(block.count) > most {
                return Err(format!("block {i} has {} keys, more than {most}", block.count));
            }
            T::check(self.codec, &block, bytes).map_err(|error| format!("block {i}: {error}"))?;
            if T::used(self.codec, &block) != Ok(bytes.len()) {
                return Err(format!("block {i} does not fill its {} bytes", bytes.len()));
            }
            if before.is_some_and(|before| before >= block.first) {
                return Err(format!("block {i} is not above the one before it"));
            }
            before = Some(block.last);
            at = (at.0 + usize::from(block.count), at.1 + bytes.len());
        }
        if at != (self.count, self.body.len()) {
            return Err(format!(
                "blocks of {} keys in {} bytes, but {} keys in {}",
                at.0,
                at.1,
                self.count,
                self.body.len()
            ));
        }
        Ok(())
    }
}

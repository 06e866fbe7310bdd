//! Inserts keys into blocks in place, which is possible for most random inserts. Only the bytes of one block and the
//! first slots of the blocks after it change, so that the list is parsed once for many keys.

use super::codec::IntKey;
use super::edit::EditState;
use super::index::{FRONT, entry_bytes, last_not_above};
use super::rule::BlockRule;
use crate::base::bytes;
use duramen_codec::Block;

/// The parts of a list of blocks; those that change are mutable. Any bytes are safe.
struct BlockParts<'l, T: IntKey> {
    rule: BlockRule,
    count: usize,
    firsts: &'l [T::Bytes],
    lasts: &'l [T::Bytes],
    starts: &'l mut [[u8; 2]],
    offsets: &'l [[u8; 2]],
    widths: &'l [u8],
    body: &'l mut [u8],
    /// The number of inserted keys, and the last block whose first slot includes them.
    done: u16,
    settled: usize,
}

fn number(numbers: &[[u8; 2]], at: usize, end: usize) -> usize {
    numbers.get(at).map_or(end, |bytes| usize::from(u16::from_le_bytes(*bytes)))
}

impl<'l, T: IntKey> BlockParts<'l, T> {
    /// Divides a list into its parts. Returns `None` if the bytes are not a list, have no blocks, or exceed the room,
    /// because the records may need the excess bytes.
    #[inline]
    fn of(list: &'l mut [u8], place: EditState) -> Option<BlockParts<'l, T>> {
        // With other codecs an insertion keeps a block's length too seldom.
        if !place.codec().inserts_at() {
            return None;
        }
        let list = list.get_mut(..place.used).filter(|list| list.len() <= place.room)?;
        let blocks = usize::from(bytes::get_u16(list, 0));
        if blocks == 0 || FRONT + blocks * entry_bytes::<T>(place.codec()) > list.len() {
            return None;
        }
        let (_, rest) = list.split_at_mut_checked(FRONT)?;
        let (firsts, rest) = rest.split_at_mut_checked(T::BYTES * blocks)?;
        let (lasts, rest) = rest.split_at_mut_checked(T::BYTES * blocks)?;
        let (starts, rest) = rest.split_at_mut_checked(2 * blocks)?;
        let (offsets, rest) = rest.split_at_mut_checked(2 * blocks)?;
        let (widths, body) = rest.split_at_mut_checked(blocks)?;
        Some(BlockParts {
            rule: place.rule,
            count: place.count,
            firsts: T::chunks(firsts),
            lasts: T::chunks(lasts),
            starts: starts.as_chunks_mut().0,
            offsets: offsets.as_chunks().0,
            widths,
            body,
            done: 0,
            settled: 0,
        })
    }

    /// Inserts a key at its slot. Returns false and changes nothing if more bytes must change, if the key does not
    /// belong to this list, or if `later` goes to the same block.
    #[inline]
    fn insert(&mut self, slot: usize, key: T, later: Option<T>) -> bool {
        let at = last_not_above(self.firsts, key);
        let ends_before = |later| self.firsts.get(at + 1).is_some_and(|next| T::from_le(*next) <= later);
        if later.is_some_and(|later| !ends_before(later)) {
            return false;
        }
        if at < self.settled {
            return false;
        }
        self.settle(at);
        let (start, end) =
            (number(self.starts, at, 0), number(self.starts, at + 1, self.count) + usize::from(self.done));
        let (from, to) = (number(self.offsets, at, 0), number(self.offsets, at + 1, self.body.len()));
        let (Some(first), Some(last), Some(&width), Some(body), Some(index)) = (
            self.firsts.get(at),
            self.lasts.get(at),
            self.widths.get(at),
            self.body.get_mut(from..to),
            slot.checked_sub(start),
        ) else {
            return false;
        };
        let count = bytes::u16_clamped(end.wrapping_sub(start));
        let mut block = Block { first: T::from_le(*first), last: T::from_le(*last), count, extent: width.into() };
        // `finish` adds the number of insertions to the slots of the blocks after this one, and the last slot is the
        // greatest. In a page that was not checked it can be any number.
        let last_start = self.starts.last().map_or(0, |last| u16::from_le_bytes(*last));
        let has_room = usize::from(count) < self.rule.most() && last_start < u16::MAX - self.done;
        if !has_room || !matches!(T::insert_at(self.rule.codec(), &mut block, body, index, key), Ok(true)) {
            return false;
        }
        self.done += 1;
        true
    }

    /// Updates the first slots of the blocks up to `at`.
    #[inline]
    fn settle(&mut self, at: usize) {
        let starts = self.starts.get_mut(self.settled + 1..=at);
        bytes::must_fit(starts.is_some());
        let starts = starts.unwrap_or_default();
        for start in starts.iter_mut() {
            *start = u16::from_le_bytes(*start).wrapping_add(self.done).to_le_bytes();
        }
        self.settled = at;
    }

    /// Completes the changes. Returns the number of inserted keys.
    fn finish(mut self) -> usize {
        self.settle(self.starts.len() - 1);
        self.done.into()
    }
}

/// Inserts a key at its slot. Returns false and changes nothing if more than the bytes of its block must change.
pub(super) fn insert<T: IntKey>(list: &mut [u8], place: EditState, slot: usize, key: T) -> bool {
    BlockParts::of(list, place).is_some_and(|mut parts| {
        parts.insert(slot, key, None);
        parts.finish() > 0
    })
}

/// Inserts the first of `keys`, each at its slot of the list with those before, as long as only the bytes of their
/// blocks change and fewer than `worth` keys go to one block. Returns how many were inserted.
pub(super) fn insert_some<T: IntKey>(
    list: &mut [u8],
    place: EditState,
    worth: usize,
    keys: impl Iterator<Item = (usize, Option<T>)> + Clone,
) -> usize {
    let Some(mut parts) = BlockParts::<T>::of(list, place) else { return 0 };
    let later = keys.clone().skip(worth - 1).map(|(_, key)| key).chain(std::iter::repeat(None));
    for ((slot, key), later) in keys.zip(later) {
        if !key.is_some_and(|key| parts.insert(slot, key, later)) {
            break;
        }
    }
    parts.finish()
}

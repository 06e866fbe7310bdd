//! Keys put into blocks where they lie: what most inserts at random come to. Only bytes of one block and the slots where
//! those behind it begin change, so the list is taken apart once for many keys. What moves a block or changes its ends
//! must never be done here.

use super::codec::IntKey;
use super::edit::Place;
use super::index::{FRONT, entry_bytes, is_packed, last_not_above};
use crate::base::bytes;
use duramen_codec::{Block, Codec};

/// The parts of a list of blocks, those that change to be written. Any bytes are safe.
struct Parts<'l, T: IntKey> {
    codec: Codec,
    count: usize,
    firsts: &'l [T::Bytes],
    lasts: &'l [T::Bytes],
    starts: &'l mut [[u8; 2]],
    offsets: &'l [[u8; 2]],
    widths: &'l [u8],
    body: &'l mut [u8],
}

fn number(numbers: &[[u8; 2]], at: usize, end: usize) -> usize {
    numbers.get(at).map_or(end, |bytes| usize::from(u16::from_le_bytes(*bytes)))
}

impl<'l, T: IntKey> Parts<'l, T> {
    /// Takes a list of packed blocks apart; `None` where that is none, has no blocks, or is longer than it may be: the records
    /// may want its room.
    #[inline]
    fn of(list: &'l mut [u8], place: Place) -> Option<Parts<'l, T>> {
        let list = list.get_mut(..place.used).filter(|list| list.len() <= place.room)?;
        let blocks = usize::from(bytes::get_u16(list, 0));
        if blocks == 0 || !is_packed(place.codec) || FRONT + blocks * entry_bytes::<T>(place.codec) > list.len() {
            return None;
        }
        let (_, rest) = list.split_at_mut_checked(FRONT)?;
        let (firsts, rest) = rest.split_at_mut_checked(T::BYTES * blocks)?;
        let (lasts, rest) = rest.split_at_mut_checked(T::BYTES * blocks)?;
        let (starts, rest) = rest.split_at_mut_checked(2 * blocks)?;
        let (offsets, rest) = rest.split_at_mut_checked(2 * blocks)?;
        let (widths, body) = rest.split_at_mut_checked(blocks)?;
        Some(Parts {
            codec: place.codec,
            count: place.count,
            firsts: T::chunks(firsts),
            lasts: T::chunks(lasts),
            starts: starts.as_chunks_mut().0,
            offsets: offsets.as_chunks().0,
            widths,
            body,
        })
    }

    /// Inserts a key at its slot; false, and nothing changed, where that takes more, or is none of this list's.
    #[inline]
    fn insert(&mut self, slot: usize, key: T) -> bool {
        let at = last_not_above(self.firsts, key);
        let (start, end) = (number(self.starts, at, self.count), number(self.starts, at + 1, self.count));
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
        let count = bytes::u16_of(end.wrapping_sub(start));
        let mut block = Block { first: T::from_le(*first), last: T::from_le(*last), count, extent: width.into() };
        if !matches!(T::insert_at(self.codec, &mut block, body, index, key), Ok(true)) {
            return false;
        }
        for start in self.starts.get_mut(at + 1..).unwrap_or_default() {
            *start = u16::from_le_bytes(*start).wrapping_add(1).to_le_bytes();
        }
        self.count += 1;
        true
    }

    /// True where both keys go to the same block.
    fn are_together(&self, key: T, other: T) -> bool {
        let next = self.firsts.get(last_not_above(self.firsts, key) + 1);
        next.is_none_or(|next| other < T::from_le(*next))
    }
}

/// Inserts a key at its slot; false, and nothing changed, where that takes more than its block as it lies.
pub(super) fn insert<T: IntKey>(list: &mut [u8], place: Place, slot: usize, key: T) -> bool {
    Parts::of(list, place).is_some_and(|mut parts| parts.insert(slot, key))
}

/// Inserts the first of `keys`, each at its slot of the list with those before, as long as that takes no more than their
/// blocks as they lie, and not as many as `worth` go to one block; says how many.
pub(super) fn insert_some<T: IntKey>(
    list: &mut [u8],
    place: Place,
    worth: usize,
    keys: impl Iterator<Item = (usize, Option<T>)> + Clone,
) -> usize {
    let Some(mut parts) = Parts::<T>::of(list, place) else { return 0 };
    let later = keys.clone().skip(worth - 1).map(|(_, key)| key).chain(std::iter::repeat(None));
    let some = keys.zip(later).take_while(|((slot, key), later)| {
        key.is_some_and(|key| {
            let many = later.is_some_and(|later| parts.are_together(key, later));
            !many && parts.insert(*slot, key)
        })
    });
    some.count()
}

//! Inserts many keys into one block. The block is read, merged with the keys and written once, as one block or several.
//! Single inserts would do this once for each key. The list and the values of the keys alone determine which keys are
//! inserted together, so that redo repeats what commit did.

use super::codec::IntKey;
use super::edit::{EditState, damaged, splice, wrong_slot};
use super::index::Index;
use super::policy::pieces;
use crate::page::keys::scheme::EditResult;
use duramen_codec::MAX_BLOCK;
use std::ops::Range;

/// Returns how many of `keys` go to the same block as the first.
pub(super) fn count_in_one_block<T: IntKey>(index: &Index<'_, T>, keys: impl Iterator<Item = Option<T>>) -> usize {
    let mut keys = keys.peekable();
    let Some(first) = keys.peek().copied().flatten() else { return 0 };
    let next = index.block_of_key(first) + 1;
    let end = (next < index.len()).then(|| index.first(next));
    keys.take_while(|key| key.is_some_and(|key| end.is_none_or(|end| key < end))).count()
}

/// Inserts keys that all go to one block, see [`count_in_one_block`], each at its slot of the list as it is now.
/// Returns `None` and changes nothing if there is no room for all of them.
pub(super) fn insert<T: IntKey>(list: &mut [u8], place: EditState, keys: &[(usize, T)]) -> EditResult {
    let index = place.index::<T>(list);
    let Some(&(_, first)) = keys.first().filter(|_| !index.is_empty()) else {
        return Err("a run of keys for a list without keys".to_owned());
    };
    let (codec, at) = (place.codec(), index.block_of_key(first));
    let (max, behind) = (place.rule.most(), first > index.last(at) && at + 1 == index.len());
    let full = behind && index.keys_in(at) >= max;
    let mut buffer = [T::default(); MAX_BLOCK];
    let there = if full { &[][..] } else { index.decode(at, &mut buffer) };
    let start = if full { index.start(at + 1) } else { index.start(at) };
    let merged = merge(there, start, keys)?;
    // Keys in order fill blocks. Otherwise the keys are divided evenly, which leaves room for later keys.
    let most = if behind { max } else { merged.len().div_ceil(merged.len().div_ceil(max)) };
    let pieces: Vec<Range<usize>> = pieces(place.rule, &merged, most).collect();
    let mut bodies: Vec<T::Scratch> = pieces.iter().map(|_| T::scratch()).collect();
    let mut blocks = Vec::with_capacity(pieces.len());
    for (piece, body) in pieces.into_iter().zip(&mut bodies) {
        let body = body.as_mut();
        let block = T::encode(codec, merged.get(piece).unwrap_or_default(), body).map_err(damaged)?;
        blocks.push((block, place.used_of(&block, body)?));
    }
    let replaced = if full { at + 1..at + 1 } else { at..at + 1 };
    splice(list, place, replaced, &blocks)
}

/// Returns the keys of a block, whose first has the slot `start`, merged with the new ones.
fn merge<T: IntKey>(there: &[T], start: usize, keys: &[(usize, T)]) -> Result<Vec<T>, String> {
    let mut merged = Vec::with_capacity(there.len() + keys.len());
    let mut rest = there;
    for (slot, key) in keys {
        let below = rest.partition_point(|old| old < key);
        let (before, after) = rest.split_at_checked(below).unwrap_or_default();
        merged.extend_from_slice(before);
        rest = after;
        let expected = start + there.len() - rest.len();
        if *slot != expected {
            return Err(wrong_slot(expected, *slot));
        }
        if rest.first() == Some(key) || merged.last().is_some_and(|last| last >= key) {
            return Err("a run of keys that are not in order or not new".to_owned());
        }
        merged.push(*key);
    }
    merged.extend_from_slice(rest);
    Ok(merged)
}

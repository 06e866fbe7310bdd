//! What a codec has to bring. The common cases (empty blocks, bounds that the descriptor answers, slices that are
//! too short) are settled in `codec.rs` before one of these is called. No codec belongs here.

use crate::error::LONGER;
use crate::{Block, Buffer, Edit, Error, Found, Int, Level, MAX_BLOCK, Result};

/// One codec for one key type. `body` is always exactly `size(block)` bytes long, `block.count` at least 1.
pub(crate) trait Scheme<T: Int> {
    /// The most keys of a block.
    const MAX_COUNT: usize = MAX_BLOCK;

    /// See [`crate::Codec::delete_stable`].
    const DELETE_STABLE: bool = true;

    /// See [`crate::Codec::edits_in_place`].
    const EDITS_IN_PLACE: bool = true;

    /// Bytes that the descriptor claims; an error when its extent cannot be.
    fn size(block: &Block<T>) -> Result<usize>;

    /// Bytes that `values` (not empty, increasing) take.
    fn encoded_len(values: &[T]) -> usize;

    /// Writes `values` into `out`, which has exactly `encoded_len(values)` bytes; gives the extent.
    fn write(level: Level, values: &[T], out: &mut [u8]) -> u16;

    /// All keys.
    fn decode(level: Level, block: &Block<T>, body: &[u8], out: &mut Buffer<T>) -> Result<()>;

    /// The key at `index`, `0 < index < count`, where it can be read from `bytes`, which may be any, without the checks
    /// that `body` makes.
    #[inline(always)]
    fn peek(_block: &Block<T>, _bytes: &[u8], _index: usize) -> Option<T> {
        None
    }

    /// Where `key` belongs, `first < key <= last`, where `bytes`, which may be any, can be searched without the checks that `body`
    /// makes.
    #[inline(always)]
    fn find(_: Level, _block: &Block<T>, _bytes: &[u8], _key: T) -> Option<Found> {
        None
    }

    /// The key at `index`, `0 < index < count`.
    fn select(level: Level, block: &Block<T>, body: &[u8], index: usize) -> Result<T>;

    /// Where `key` belongs, `first < key <= last`.
    fn lower_bound(level: Level, block: &Block<T>, body: &[u8], key: T) -> Result<Found>;

    /// The sum of all keys.
    fn sum(level: Level, block: &Block<T>, body: &[u8]) -> Result<u128>;

    /// Adds `key > last` to a block that is neither empty nor full. `bytes` is all the room there is.
    fn append(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()>;

    /// Whether every bit of `body`, which decodes to `keys` (increasing, from `first` to `last`), is as `write` leaves it.
    fn is_exact(block: &Block<T>, body: &[u8], keys: &[T]) -> Result<bool>;

    /// Inserts `key < last` into a block that is not full.
    fn insert(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<Edit>
    where
        Self: Sized,
    {
        recode_insert::<T, Self>(block, bytes, key)
    }

    /// Removes the key at `index < count` from a block of at least two.
    fn remove_at(block: &mut Block<T>, bytes: &mut [u8], index: usize) -> Result<()>
    where
        Self: Sized,
    {
        let mut values = [T::default(); MAX_BLOCK];
        let count = unpack::<T, Self>(block, bytes, &mut values)?;
        values.copy_within(index + 1..count, index);
        recode::<T, Self>(block, bytes, values.get(..count - 1).unwrap_or_default())
    }
}

/// The part of `bytes` that the block uses; an error for a descriptor that no encoder makes.
#[inline(always)]
pub(crate) fn body<'a, T: Int, S: Scheme<T>>(block: &Block<T>, bytes: &'a [u8]) -> Result<&'a [u8]> {
    match usize::from(block.count) {
        0 => Ok(&[]),
        count if count > S::MAX_COUNT => Err(Error::Corrupt("too many keys")),
        _ if block.first > block.last => Err(Error::Corrupt("bounds out of order")),
        _ => bytes.get(..S::size(block)?).ok_or(LONGER),
    }
}

/// Decodes a block to be edited; gives its count, at least 1.
pub(crate) fn unpack<T: Int, S: Scheme<T>>(block: &Block<T>, bytes: &[u8], out: &mut Buffer<T>) -> Result<usize> {
    S::decode(Level::best(), block, body::<T, S>(block, bytes)?, out)?;
    Ok(usize::from(block.count))
}

/// Replaces the block by one of `values` (not empty), if there is room. Hostile bytes may have been decoded to keys
/// in no order: those are refused.
pub(crate) fn recode<T: Int, S: Scheme<T>>(block: &mut Block<T>, bytes: &mut [u8], values: &[T]) -> Result<()> {
    let (Some(&first), Some(&last)) = (values.first(), values.last()) else {
        return Err(Error::Corrupt("no keys left"));
    };
    if !increasing(values) {
        return Err(Error::Corrupt("keys out of order"));
    }
    let needed = S::encoded_len(values);
    let out = bytes.get_mut(..needed).ok_or(Error::NoRoom { needed })?;
    let extent = S::write(Level::best(), values, out);
    let count = u16::try_from(values.len()).map_err(|_| Error::Full)?;
    *block = Block { first, last, count, extent };
    Ok(())
}

/// Insert by decoding, adding the key and encoding again: for codecs that cannot do it in place.
pub(crate) fn recode_insert<T: Int, S: Scheme<T>>(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<Edit> {
    let mut values = [T::default(); MAX_BLOCK];
    let count = unpack::<T, S>(block, bytes, &mut values)?;
    if count >= MAX_BLOCK {
        return Err(Error::Full);
    }
    let keys = values.get(..count).unwrap_or_default();
    let index = keys.partition_point(|&value| value < key);
    if keys.get(index) == Some(&key) {
        return Ok(Edit::Unchanged(index));
    }
    values.copy_within(index..count, index + 1);
    if let Some(place) = values.get_mut(index) {
        *place = key;
    }
    recode::<T, S>(block, bytes, values.get(..=count).unwrap_or_default())?;
    Ok(Edit::Done(index))
}

/// Whether each key is larger than the one before. Without a branch a key, so that it is vectorised.
pub(crate) fn increasing<T: Int>(values: &[T]) -> bool {
    let later = values.get(1..).unwrap_or_default();
    values.iter().zip(later).fold(true, |ordered, (a, b)| ordered & (a < b))
}

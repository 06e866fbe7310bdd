//! The trait that a codec implements. `codec.rs` and `table.rs` handle the common cases (empty blocks, results that the
//! descriptor has, slices that are too short) before they call one of these functions.

use crate::error::{LONGER, OUT_OF_ORDER, TOO_MANY};
use crate::{Block, Buffer, Edit, Error, Found, Int, Level, MAX_BLOCK, Result};

/// A codec for one key type. `body` always has exactly `size(block)` bytes, and `block.count` is at least 1.
pub(crate) trait Scheme<T: Int> {
    /// The maximum number of keys of a block.
    const MAX_COUNT: usize = MAX_BLOCK;

    /// See [`crate::Codec::delete_stable`].
    const DELETE_STABLE: bool = true;

    /// See [`crate::Codec::edits_in_place`].
    const EDITS_IN_PLACE: bool = true;

    /// See [`crate::Codec::inserts_at`].
    const INSERTS_AT: bool = false;

    /// See [`crate::Codec::reads_keys_alone`].
    const READS_KEYS_ALONE: bool = false;

    /// The number of bytes that the descriptor claims. Returns an error if the extent is impossible.
    fn size(block: &Block<T>) -> Result<usize>;

    /// The number of bytes of `values`, which are increasing and not empty.
    fn encoded_len(values: &[T]) -> usize;

    /// Writes `values` to `out`, which has exactly `encoded_len(values)` bytes. Returns the extent.
    fn write(level: Level, values: &[T], out: &mut [u8]) -> u16;

    /// Decodes all keys.
    fn decode(level: Level, block: &Block<T>, body: &[u8], out: &mut Buffer<T>) -> Result<()>;

    /// The key at `index`, `0 < index < count`, if it can be read without the checks of `body`. `bytes` need not be
    /// checked before.
    #[inline(always)]
    fn peek(_block: &Block<T>, _bytes: &[u8], _index: usize) -> Option<T> {
        None
    }

    /// Searches for `key`, `first < key <= last`, if this can be done without the checks of `body`. `bytes` need not be
    /// checked before.
    #[inline(always)]
    fn find(_: Level, _block: &Block<T>, _bytes: &[u8], _key: T) -> Option<Found> {
        None
    }

    /// The key at `index`, `0 < index < count`.
    fn select(level: Level, block: &Block<T>, body: &[u8], index: usize) -> Result<T>;

    /// Searches for `key`, `first < key <= last`.
    fn lower_bound(level: Level, block: &Block<T>, body: &[u8], key: T) -> Result<Found>;

    /// The sum of all keys.
    fn sum(level: Level, block: &Block<T>, body: &[u8]) -> Result<u128>;

    /// The descriptor of the block after `key > last` is appended to it.
    fn appended(block: &Block<T>, key: T) -> Block<T>;

    /// Appends `key > last` to a block that is neither empty nor full. `bytes` is all the space that the block may use.
    fn append(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()>;

    /// Checks that every bit of `body` is as `write` writes it. `body` decodes to `keys`, which increase from `first`
    /// to `last`.
    fn is_exact(block: &Block<T>, body: &[u8], keys: &[T]) -> Result<bool>;

    /// Inserts `key < last` into a block that is not full.
    fn insert(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<Edit>
    where
        Self: Sized,
    {
        recode_insert::<T, Self>(block, bytes, key)
    }

    /// See [`crate::Codec::insert_at`]. The block is any block, and `bytes` is all the space that it may use.
    #[inline(always)]
    fn insert_at(_: Level, _block: &mut Block<T>, _bytes: &mut [u8], _index: usize, _key: T) -> Result<bool> {
        Ok(false)
    }

    /// Removes the key at `index < count` from a block of at least two keys.
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

/// The part of `bytes` that the block uses. Returns an error for a descriptor that no encoder writes.
#[inline(always)]
pub(crate) fn body<'a, T: Int, S: Scheme<T>>(block: &Block<T>, bytes: &'a [u8]) -> Result<&'a [u8]> {
    match usize::from(block.count) {
        0 => Ok(&[]),
        count if count > S::MAX_COUNT => Err(TOO_MANY),
        _ if block.first > block.last => Err(Error::Corrupt("bounds out of order")),
        _ => bytes.get(..S::size(block)?).ok_or(LONGER),
    }
}

/// The descriptor of a block of whole bytes after `key` is appended to it and takes `len` bytes.
#[inline(always)]
pub(crate) fn lengthened<T: Int>(block: &Block<T>, key: T, len: usize) -> Block<T> {
    let extent = block.extent.saturating_add(u16::try_from(len).unwrap_or(u16::MAX));
    Block { last: key, count: block.count.saturating_add(1), extent, ..*block }
}

/// See [`crate::Codec::append_growth`]. The block has at least one key.
#[inline(always)]
pub(crate) fn append_growth<T: Int, S: Scheme<T>>(block: &Block<T>, key: T) -> Result<usize> {
    Ok(S::size(&S::appended(block, key))?.saturating_sub(S::size(block)?))
}

/// Decodes a block for an edit. Returns its count, which is at least 1.
pub(crate) fn unpack<T: Int, S: Scheme<T>>(block: &Block<T>, bytes: &[u8], out: &mut Buffer<T>) -> Result<usize> {
    S::decode(Level::best(), block, body::<T, S>(block, bytes)?, out)?;
    Ok(usize::from(block.count))
}

/// Replaces the block by one of `values`, which are not empty, if there is enough space. Hostile bytes may have been
/// decoded to keys that are out of order; these are refused.
pub(crate) fn recode<T: Int, S: Scheme<T>>(block: &mut Block<T>, bytes: &mut [u8], values: &[T]) -> Result<()> {
    let (Some(&first), Some(&last)) = (values.first(), values.last()) else {
        return Err(Error::Corrupt("no keys left"));
    };
    if !increasing(values) {
        return Err(OUT_OF_ORDER);
    }
    let needed = S::encoded_len(values);
    let out = bytes.get_mut(..needed).ok_or(Error::NoRoom { needed })?;
    let extent = S::write(Level::best(), values, out);
    let count = u16::try_from(values.len()).map_err(|_| Error::Full)?;
    *block = Block { first, last, count, extent };
    Ok(())
}

/// Inserts a key by decoding and encoding the whole block, for codecs that cannot insert in place.
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
    *values.get_mut(index).ok_or(Error::Full)? = key;
    recode::<T, S>(block, bytes, values.get(..=count).unwrap_or_default())?;
    Ok(Edit::Done(index))
}

/// True if each key is greater than the key before it. There is no branch for each key, so that the compiler vectorizes
/// the loop.
pub(crate) fn increasing<T: Int>(values: &[T]) -> bool {
    let later = values.get(1..).unwrap_or_default();
    values.iter().zip(later).fold(true, |ordered, (a, b)| ordered & (a < b))
}

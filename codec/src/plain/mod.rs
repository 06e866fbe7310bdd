//! Plain: all keys but the first, uncompressed and little-endian. Other codecs are compared with it.

#[cfg(target_arch = "x86_64")]
mod kernels;

use crate::bits::{get_bytes, put_bytes, width};
use crate::error::{ENDS_BELOW, LONGER};
use crate::guess;
use crate::int::total;
use crate::scheme::{Scheme, lengthened};
use crate::{Block, Buffer, Edit, Error, Found, Int, Level, MAX_BLOCK, Result};

pub(crate) struct Plain;

/// The key at `index > 0`.
#[inline(always)]
fn key_at<T: Int>(body: &[u8], index: usize) -> T {
    T::narrow(get_bytes(body, (index - 1) * T::BYTES, T::BYTES))
}

/// The vector kernel of a key type behind a safe function. It returns `None` if there is no kernel for this level.
pub trait PlainKernels: Sized {
    /// The number of keys less than `key`. The keys fill whole vectors of 64 bytes, and there are at most 64.
    #[inline(always)]
    fn below(_: Level, _keys: &[u8], _key: Self) -> Option<usize> {
        None
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl PlainKernels for u32 {}

#[cfg(not(target_arch = "x86_64"))]
impl PlainKernels for u64 {}

/// The number of keys less than `key`. The keys fill whole cache lines.
#[inline(always)]
fn below<T: Int>(level: Level, keys: &[u8], key: T) -> usize {
    T::below(level, keys, key).unwrap_or_else(|| below_one_by_one(keys, key))
}

#[inline(always)]
fn below_one_by_one<T: Int>(keys: &[u8], key: T) -> usize {
    T::chunks(keys).iter().filter(|other| T::from_le(**other) < key).count()
}

/// The size of a cache line in bytes.
const LINE: usize = 64;

/// The index of the first key that is not less than `key`, which is greater than the first key of the block. If the
/// block is in no cache, a binary search would wait for one cache line after the other. Here only the comparisons in
/// the last line depend on the result of others.
#[inline(always)]
fn lower_bound<T: Int>(level: Level, body: &[u8], key: T) -> usize {
    let (lines, rest) = body.as_chunks::<LINE>();
    let ends_below = |line: &[u8; LINE]| usize::from(key_at::<T>(line, LINE / T::BYTES) < key);
    let whole = lines.iter().map(ends_below).sum::<usize>();
    let part = match lines.get(whole) {
        Some(line) => below(level, line, key),
        None => below_one_by_one(rest, key),
    };
    1 + LINE / T::BYTES * whole + part
}

/// The number of keys to compare around the likely place of a key.
const WINDOW: usize = 32;

/// Like `lower_bound`. Returns `None` unless the key is at or near the place that it would have if the keys were evenly
/// spread.
#[inline(always)]
fn find<T: Int>(level: Level, block: &Block<T>, bytes: &[u8], key: T) -> Option<Found> {
    let keys = usize::from(block.count).checked_sub(1)?;
    if keys >= MAX_BLOCK || usize::from(block.extent) != keys * T::BYTES {
        return None;
    }
    let (first, last) = (block.first.widen(), block.last.widen());
    let likely = guess::place(key.widen() - first, last - first, width(last - first), keys);
    let start = likely.saturating_sub(WINDOW / 2).min(keys.checked_sub(WINDOW)?);
    let window = bytes.get(start * T::BYTES..)?.get(..WINDOW * T::BYTES)?;
    let below = below(level, window, key);
    // Otherwise the key may belong before the window or after it.
    let inside = below < WINDOW && (below > 0 || start == 0);
    let exact = key_at::<T>(window, below + 1) == key;
    inside.then_some(Found { index: 1 + start + below, exact })
}

fn set_size<T: Int>(block: &mut Block<T>, count: usize) -> Result<()> {
    block.count = u16::try_from(count).map_err(|_| Error::Full)?;
    block.extent = u16::try_from((count - 1) * T::BYTES).map_err(|_| Error::Full)?;
    Ok(())
}

impl<T: Int> Scheme<T> for Plain {
    const READS_KEYS_ALONE: bool = true;

    fn size(block: &Block<T>) -> Result<usize> {
        let size = usize::from(block.extent);
        if size == (usize::from(block.count) - 1) * T::BYTES {
            return Ok(size);
        }
        Err(Error::Corrupt("plain size does not match its count"))
    }

    fn encoded_len(values: &[T]) -> usize {
        values.len().saturating_sub(1) * T::BYTES
    }

    fn write(_: Level, values: &[T], out: &mut [u8]) -> u16 {
        for (to, key) in out.chunks_exact_mut(T::BYTES).zip(values.get(1..).unwrap_or_default()) {
            put_bytes(to, 0, T::BYTES, key.widen());
        }
        u16::try_from(out.len()).unwrap_or(u16::MAX)
    }

    #[inline]
    fn decode(_: Level, block: &Block<T>, body: &[u8], out: &mut Buffer<T>) -> Result<()> {
        let (first, rest) = out.split_first_mut().ok_or(Error::OutOfRange)?;
        *first = block.first;
        for (to, &key) in rest.iter_mut().zip(T::chunks(body)) {
            *to = T::from_le(key);
        }
        Ok(())
    }

    #[inline(always)]
    fn peek(_: &Block<T>, bytes: &[u8], index: usize) -> Option<T> {
        Some(T::from_le(*T::chunks(bytes).get(index - 1)?))
    }

    #[inline(always)]
    fn find(level: Level, block: &Block<T>, bytes: &[u8], key: T) -> Option<Found> {
        find(level, block, bytes, key)
    }

    #[inline]
    fn select(_: Level, _: &Block<T>, body: &[u8], index: usize) -> Result<T> {
        Ok(key_at(body, index))
    }

    #[inline]
    fn lower_bound(level: Level, block: &Block<T>, body: &[u8], key: T) -> Result<Found> {
        let index = lower_bound(level, body, key);
        if index >= usize::from(block.count) {
            return Err(ENDS_BELOW);
        }
        Ok(Found { index, exact: key_at::<T>(body, index) == key })
    }

    #[inline]
    fn sum(_: Level, block: &Block<T>, body: &[u8]) -> Result<u128> {
        let rest = total(T::chunks(body).iter().map(|&key| T::from_le(key)));
        Ok(u128::from(block.first.widen()) + rest)
    }

    #[inline(always)]
    fn appended(block: &Block<T>, key: T) -> Block<T> {
        lengthened(block, key, T::BYTES)
    }

    fn append(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()> {
        let used = <Plain as Scheme<T>>::size(block)?;
        let needed = used + T::BYTES;
        let to = bytes.get_mut(used..needed).ok_or(Error::NoRoom { needed })?;
        put_bytes(to, 0, T::BYTES, key.widen());
        block.last = key;
        set_size(block, usize::from(block.count) + 1)
    }

    fn is_exact(_: &Block<T>, _: &[u8], _: &[T]) -> Result<bool> {
        Ok(true)
    }

    fn insert(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<Edit> {
        let used = <Plain as Scheme<T>>::size(block)?;
        let (count, needed) = (usize::from(block.count), used + T::BYTES);
        let body = bytes.get(..used).ok_or(LONGER)?;
        let index = match key.cmp(&block.first) {
            core::cmp::Ordering::Less => 0,
            core::cmp::Ordering::Equal => return Ok(Edit::Unchanged(0)),
            core::cmp::Ordering::Greater => lower_bound(Level::best(), body, key),
        };
        if index > 0 && key_at::<T>(body, index) == key {
            return Ok(Edit::Unchanged(index));
        }
        let room = bytes.get_mut(..needed).ok_or(Error::NoRoom { needed })?;
        let at = index.saturating_sub(1) * T::BYTES;
        room.copy_within(at..used, at + T::BYTES);
        let moved = if index == 0 { core::mem::replace(&mut block.first, key) } else { key };
        put_bytes(room, at, T::BYTES, moved.widen());
        set_size(block, count + 1)?;
        Ok(Edit::Done(index))
    }

    fn remove_at(block: &mut Block<T>, bytes: &mut [u8], index: usize) -> Result<()> {
        let used = <Plain as Scheme<T>>::size(block)?;
        let count = usize::from(block.count);
        let body = bytes.get_mut(..used).ok_or(LONGER)?;
        if index + 1 == count {
            block.last = if count == 2 { block.first } else { key_at(body, index - 1) };
        }
        if index == 0 {
            block.first = key_at(body, 1);
        }
        let at = index.saturating_sub(1) * T::BYTES;
        body.copy_within(at + T::BYTES.., at);
        set_size(block, count - 1)
    }
}

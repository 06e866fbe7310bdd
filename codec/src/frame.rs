//! FOR, frame of reference: each key's distance from the first, in as many bits as the last one's needs, packed one
//! after the other, low bit first. Position `i` (from 1) starts at bit `(i - 1) * width`.

use crate::bits::{get_bits, put_bits, width};
use crate::scheme::{Scheme, recode, unpack};
use crate::{Block, Buffer, Error, Found, Int, Level, MAX_BLOCK, Result};

pub(crate) struct For;

/// Bits per key of a frame from `first` to `last`.
pub(crate) fn frame_width<T: Int>(first: T, last: T) -> u32 {
    width(last.widen().wrapping_sub(first.widen()))
}

/// The width that a packed codec's descriptor claims.
pub(crate) fn claimed_width<T: Int>(block: &Block<T>) -> Result<u32> {
    let width = u32::from(block.extent);
    if width > T::BITS { Err(Error::Corrupt("width beyond the key type")) } else { Ok(width) }
}

/// The widths of this crate, at most 64, as a descriptor's extent.
pub(crate) fn extent(width: u32) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}

fn size(count: usize, width: u32) -> usize {
    ((count - 1) * width as usize).div_ceil(8)
}

#[inline(always)]
fn offset_at(body: &[u8], index: usize, width: u32) -> u64 {
    get_bits(body, (index - 1) * width as usize, width)
}

/// The last key of a codec that stores distances from the first must be the one the descriptor names.
#[inline(always)]
pub(crate) fn at<T: Int>(block: &Block<T>, offset: u64) -> T {
    T::narrow(block.first.widen().wrapping_add(offset))
}

impl<T: Int> Scheme<T> for For {
    fn size(block: &Block<T>) -> Result<usize> {
        Ok(size(usize::from(block.count), claimed_width(block)?))
    }

    fn encoded_len(values: &[T]) -> usize {
        match (values.first(), values.last()) {
            (Some(&first), Some(&last)) => size(values.len(), frame_width(first, last)),
            _ => 0,
        }
    }

    fn write(_: Level, values: &[T], out: &mut [u8]) -> u16 {
        let (Some((&first, rest)), Some(&last)) = (values.split_first(), values.last()) else { return 0 };
        let width = frame_width(first, last);
        out.fill(0);
        for (i, key) in rest.iter().enumerate() {
            put_bits(out, i * width as usize, width, key.widen() - first.widen());
        }
        extent(width)
    }

    fn decode(_: Level, block: &Block<T>, body: &[u8], out: &mut Buffer<T>) -> Result<()> {
        let width = claimed_width(block)?;
        let (first, rest) = out.split_first_mut().ok_or(Error::OutOfRange)?;
        *first = block.first;
        for (i, to) in rest.iter_mut().enumerate().take(usize::from(block.count) - 1) {
            *to = at(block, get_bits(body, i * width as usize, width));
        }
        Ok(())
    }

    fn select(_: Level, block: &Block<T>, body: &[u8], index: usize) -> Result<T> {
        Ok(at(block, offset_at(body, index, claimed_width(block)?)))
    }

    fn lower_bound(_: Level, block: &Block<T>, body: &[u8], key: T) -> Result<Found> {
        let width = claimed_width(block)?;
        let count = usize::from(block.count);
        let sought = key.widen() - block.first.widen();
        let (mut low, mut len) = (1, count - 1);
        while len > 0 {
            let half = len / 2;
            low = if offset_at(body, low + half, width) < sought { low + len - half } else { low };
            len = half;
        }
        if low >= count {
            return Err(Error::Corrupt("keys end below the last key"));
        }
        Ok(Found { index: low, exact: offset_at(body, low, width) == sought })
    }

    fn sum(_: Level, block: &Block<T>, body: &[u8]) -> Result<u128> {
        let width = claimed_width(block)?;
        let count = usize::from(block.count);
        let offsets: u128 = (1..count).map(|i| u128::from(offset_at(body, i, width))).sum();
        Ok(offsets + u128::from(block.first.widen()) * count as u128)
    }

    fn append(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()> {
        let width = claimed_width(block)?;
        let count = usize::from(block.count);
        if frame_width(block.first, key) > width {
            return append_recoded::<T, For>(block, bytes, key);
        }
        let (used, needed) = (size(count, width), size(count + 1, width));
        let room = bytes.get_mut(..needed).ok_or(Error::NoRoom { needed })?;
        if let Some(grown) = room.get_mut(used..) {
            grown.fill(0);
        }
        put_bits(room, (count - 1) * width as usize, width, key.widen() - block.first.widen());
        block.last = key;
        block.count += 1;
        Ok(())
    }
}

/// Append by decoding and encoding again: where the width grows.
pub(crate) fn append_recoded<T: Int, S: Scheme<T>>(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()> {
    let mut values = [T::default(); MAX_BLOCK];
    let count = unpack::<T, S>(block, bytes, &mut values)?;
    *values.get_mut(count).ok_or(Error::Full)? = key;
    recode::<T, S>(block, bytes, values.get(..=count).unwrap_or_default())
}

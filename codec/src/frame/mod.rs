//! FOR, frame of reference: the distance of each key from the first key. All distances have the width in bits of the
//! last one, and are packed one after the other, low bit first. The distance of key `i` (from 1) starts at bit
//! `(i - 1) * width`.

#[cfg(target_arch = "x86_64")]
mod kernels;
#[cfg(target_arch = "x86_64")]
mod search;

use crate::bits::{get_bits, insert_bits, mask, put_bits, put_bytes, range_mut, width};
use crate::error::{ENDS_BELOW, OUT_OF_ORDER};
use crate::scheme::{Scheme, body, recode, recode_insert, unpack};
use crate::{Block, Buffer, Edit, Error, Found, Int, Level, MAX_BLOCK, Result};

pub(crate) struct For;

/// The number of bits per key of a frame from `first` to `last`.
pub(crate) fn frame_width<T: Int>(first: T, last: T) -> u32 {
    width(last.widen().wrapping_sub(first.widen()))
}

/// The width in the descriptor of a packed codec.
#[inline(always)]
pub(crate) fn claimed_width<T: Int>(block: &Block<T>) -> Result<u32> {
    let width = u32::from(block.extent);
    if width > T::BITS { Err(Error::Corrupt("width beyond the key type")) } else { Ok(width) }
}

/// A width in bits, at most 64, as the extent of a descriptor.
#[inline(always)]
pub(crate) fn extent(width: u32) -> u16 {
    u16::try_from(width).unwrap_or(u16::MAX)
}

/// The low 64 bits.
#[expect(clippy::cast_possible_truncation, reason = "truncation is what it is for")]
#[inline(always)]
pub(crate) fn low_bytes(bits: u128) -> u64 {
    bits as u64
}

/// The descriptor of a block of a packed codec after `key` is appended to it and adds this field.
#[inline(always)]
pub(crate) fn widened<T: Int>(block: &Block<T>, key: T, field: u64) -> Block<T> {
    let extent = extent(width(field)).max(block.extent);
    Block { last: key, count: block.count.saturating_add(1), extent, ..*block }
}

#[inline(always)]
fn size(count: usize, width: u32) -> usize {
    ((count - 1) * width as usize).div_ceil(8)
}

/// The vector kernels of a key type behind safe functions. They return `None` or `false` if there is no kernel for this
/// level.
pub trait FrameKernels: Sized {
    /// Writes every field plus `first` to `out`.
    fn packed_decode(_: Level, _width: u32, _body: &[u8], _first: Self, _out: &mut [Self]) -> bool {
        false
    }

    /// The sum of the first `count` fields. `count` is at most 256.
    fn packed_sum(_: Level, _width: u32, _body: &[u8], _count: usize) -> Option<u128> {
        None
    }

    /// Searches a block for `key`, `first < key <= last`, if there is a fast way to do so. `bytes` need not be checked
    /// before.
    #[inline(always)]
    fn packed_find(_: Level, _block: &Block<Self>, _bytes: &[u8], _key: Self) -> Option<Found> {
        None
    }

    /// Searches for `sought` in the first `count` fields, which must be increasing.
    fn packed_search(_: Level, _width: u32, _body: &[u8], _count: usize, _sought: Self) -> Option<Found> {
        None
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl FrameKernels for u32 {}

#[cfg(not(target_arch = "x86_64"))]
impl FrameKernels for u64 {}

/// Reads fields of one width by their number, from 0.
struct Fields<'a> {
    body: &'a [u8],
    width: u32,
    mask: u64,
    /// The last position from which eight bytes can be read.
    last: usize,
}

impl<'a> Fields<'a> {
    #[inline(always)]
    fn of<T: Int>(block: &Block<T>, body: &'a [u8]) -> Result<Fields<'a>> {
        let width = claimed_width(block)?;
        Ok(Fields { body, width, mask: mask(width), last: body.len().saturating_sub(8) })
    }

    /// Reads a field of at most 57 bits with one load of eight bytes. Near the end of the body, these are its last
    /// eight bytes, so that no branch depends on the position.
    #[inline(always)]
    fn get(&self, field: usize) -> u64 {
        let bit = field * self.width as usize;
        let from = (bit / 8).min(self.last);
        match self.body.get(from..from + 8).and_then(|bytes| bytes.first_chunk()) {
            Some(chunk) if self.width <= 57 => (u64::from_le_bytes(*chunk) >> ((bit - 8 * from) & 63)) & self.mask,
            _ => get_bits(self.body, bit, self.width),
        }
    }
}

/// The key at a distance from the first key. With hostile bytes the distance may be too large; then the key wraps
/// around.
#[inline(always)]
pub(crate) fn at<T: Int>(block: &Block<T>, offset: u64) -> T {
    T::narrow(block.first.widen().wrapping_add(offset))
}

impl<T: Int> Scheme<T> for For {
    const EDITS_IN_PLACE: bool = false;
    const READS_KEYS_ALONE: bool = true;

    #[inline(always)]
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
        // Fields are collected in `bits` until there are eight bytes to write.
        let (mut bits, mut filled, mut at) = (0u128, 0, 0);
        for key in rest {
            bits |= u128::from(key.widen() - first.widen()) << filled;
            filled += width;
            if filled >= 64 {
                put_bytes(out, at, 8, low_bytes(bits));
                (bits, filled, at) = (bits >> 64, filled - 64, at + 8);
            }
        }
        put_bytes(out, at, out.len() - at, low_bytes(bits));
        extent(width)
    }

    #[inline]
    fn decode(level: Level, block: &Block<T>, body: &[u8], out: &mut Buffer<T>) -> Result<()> {
        let fields = Fields::of(block, body)?;
        let (first, rest) = out.split_first_mut().ok_or(Error::OutOfRange)?;
        *first = block.first;
        let rest = rest.get_mut(..usize::from(block.count) - 1).ok_or(Error::OutOfRange)?;
        if !T::packed_decode(level, fields.width, body, block.first, rest) {
            for (i, to) in rest.iter_mut().enumerate() {
                *to = at(block, fields.get(i));
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn peek(block: &Block<T>, bytes: &[u8], index: usize) -> Option<T> {
        let width = claimed_width(block).ok().filter(|&width| width <= 57)?;
        let bit = (index - 1) * width as usize;
        let chunk = bytes.get(bit / 8..)?.first_chunk()?;
        Some(at(block, (u64::from_le_bytes(*chunk) >> (bit % 8)) & mask(width)))
    }

    #[inline(always)]
    fn find(level: Level, block: &Block<T>, bytes: &[u8], key: T) -> Option<Found> {
        T::packed_find(level, block, bytes, key)
    }

    #[inline]
    fn select(_: Level, block: &Block<T>, body: &[u8], index: usize) -> Result<T> {
        Ok(at(block, Fields::of(block, body)?.get(index - 1)))
    }

    #[inline(always)]
    fn lower_bound(level: Level, block: &Block<T>, body: &[u8], key: T) -> Result<Found> {
        let fields = Fields::of(block, body)?;
        let count = usize::from(block.count);
        let sought = key.widen() - block.first.widen();
        if let Some(found) = T::packed_search(level, fields.width, body, count - 1, T::narrow(sought)) {
            let found = Found { index: 1 + found.index, ..found };
            return if found.index < count { Ok(found) } else { Err(ENDS_BELOW) };
        }
        let (mut low, mut len) = (1, count - 1);
        while len > 0 {
            let half = len / 2;
            low = if fields.get(low + half - 1) < sought { low + len - half } else { low };
            len = half;
        }
        if low >= count {
            return Err(ENDS_BELOW);
        }
        Ok(Found { index: low, exact: fields.get(low - 1) == sought })
    }

    #[inline]
    fn sum(level: Level, block: &Block<T>, body: &[u8]) -> Result<u128> {
        let fields = Fields::of(block, body)?;
        let count = usize::from(block.count);
        let offsets: u128 = if let Some(sum) = T::packed_sum(level, fields.width, body, count - 1) {
            sum
        } else if fields.width <= 56 {
            u128::from((0..count - 1).map(|i| fields.get(i)).sum::<u64>())
        } else {
            (0..count - 1).map(|i| u128::from(fields.get(i))).sum()
        };
        Ok(offsets + u128::from(block.first.widen()) * count as u128)
    }

    #[inline(always)]
    fn appended(block: &Block<T>, key: T) -> Block<T> {
        widened(block, key, key.widen().wrapping_sub(block.first.widen()))
    }

    fn append(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()> {
        let width = claimed_width(block)?;
        let count = usize::from(block.count);
        if frame_width(block.first, key) > width {
            return append_recoded::<T, For>(block, bytes, key);
        }
        let (used, needed) = (size(count, width), size(count + 1, width));
        let room = bytes.get_mut(..needed).ok_or(Error::NoRoom { needed })?;
        range_mut(room, used, needed - used).fill(0);
        put_bits(room, (count - 1) * width as usize, width, key.widen() - block.first.widen());
        block.last = key;
        block.count += 1;
        Ok(())
    }

    fn insert(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<Edit> {
        let (width, count) = (claimed_width(block)?, usize::from(block.count));
        if key < block.first || width == 0 {
            // All distances change, or their width does.
            return recode_insert::<T, For>(block, bytes, key);
        }
        if key == block.first {
            return Ok(Edit::Unchanged(0));
        }
        let old = body::<T, For>(block, bytes)?;
        let found = For::lower_bound(Level::best(), block, old, key)?;
        if found.exact {
            return Ok(Edit::Unchanged(found.index));
        }
        let (fields, field) = (Fields::of(block, old)?, key.widen() - block.first.widen());
        let before = if found.index > 1 { fields.get(found.index - 2) } else { 0 };
        // With hostile bytes the search may have returned any index.
        if field <= before || field >= fields.get(found.index - 1) {
            return Err(OUT_OF_ORDER);
        }
        let (used, needed) = (old.len(), size(count + 1, width));
        let room = bytes.get_mut(..needed).ok_or(Error::NoRoom { needed })?;
        range_mut(room, used, needed - used).fill(0);
        insert_bits(room, (found.index - 1) * width as usize, width, field);
        block.count += 1;
        Ok(Edit::Done(found.index))
    }

    fn is_exact(block: &Block<T>, body: &[u8], _: &[T]) -> Result<bool> {
        let width = claimed_width(block)?;
        let used = (usize::from(block.count) - 1) * width as usize % 8;
        let rest = body.last().map_or(0, |last| if used > 0 { last >> used } else { 0 });
        Ok(width == frame_width(block.first, block.last) && rest == 0)
    }
}

/// Appends by decoding and encoding the whole block, for a key that needs a greater width.
pub(crate) fn append_recoded<T: Int, S: Scheme<T>>(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()> {
    let mut values = [T::default(); MAX_BLOCK];
    let count = unpack::<T, S>(block, bytes, &mut values)?;
    *values.get_mut(count).ok_or(Error::Full)? = key;
    recode::<T, S>(block, bytes, values.get(..=count).unwrap_or_default())
}

//! SIMD FOR: frame of reference in a lane stream, so that a vector operation unpacks a row of keys.
//!
//! The field of key `i` is its distance from the first key, in row `i / lanes` and lane `i % lanes`; field 0 is zero.

use crate::error::ENDS_BELOW;
use crate::frame::{append_recoded, at, claimed_width, extent, frame_width};
use crate::int::total;
use crate::lanes::Lanes;
use crate::scheme::Scheme;
use crate::{Block, Buffer, Error, Found, Int, Level, MAX_BLOCK, Result};

pub(crate) struct SimdFor;

#[inline(always)]
fn shape<T: Int>(block: &Block<T>) -> Result<Lanes<T>> {
    Ok(Lanes::holding(usize::from(block.count), claimed_width(block)?))
}

#[inline(always)]
fn offset_at<T: Int>(lanes: &Lanes<T>, body: &[u8], index: usize) -> u64 {
    lanes.get(body, index / Lanes::<T>::COUNT, index % Lanes::<T>::COUNT)
}

impl<T: Int> Scheme<T> for SimdFor {
    #[inline(always)]
    fn size(block: &Block<T>) -> Result<usize> {
        Ok(shape(block)?.size())
    }

    fn encoded_len(values: &[T]) -> usize {
        match (values.first(), values.last()) {
            (Some(&first), Some(&last)) => Lanes::<T>::holding(values.len(), frame_width(first, last)).size(),
            _ => 0,
        }
    }

    fn write(level: Level, values: &[T], out: &mut [u8]) -> u16 {
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return 0 };
        let lanes = Lanes::<T>::holding(values.len(), frame_width(first, last));
        let mut fields = [first; MAX_BLOCK];
        if let Some(to) = fields.get_mut(..values.len()) {
            to.copy_from_slice(values);
        }
        if T::pack(level, &lanes, &fields, first, out) {
            return extent(lanes.width);
        }
        out.fill(0);
        for (i, key) in values.iter().enumerate() {
            lanes.put(out, i / Lanes::<T>::COUNT, i % Lanes::<T>::COUNT, key.widen() - first.widen());
        }
        extent(lanes.width)
    }

    #[inline]
    fn decode(level: Level, block: &Block<T>, body: &[u8], out: &mut Buffer<T>) -> Result<()> {
        let lanes = shape(block)?;
        if T::frame_decode(level, &lanes, body, block.first, out) {
            return Ok(());
        }
        for (i, to) in out.iter_mut().enumerate().take(usize::from(block.count)) {
            *to = at(block, offset_at(&lanes, body, i));
        }
        Ok(())
    }

    #[inline(always)]
    fn peek(block: &Block<T>, bytes: &[u8], index: usize) -> Option<T> {
        let lanes = shape(block).ok()?;
        Some(at(block, lanes.peek(bytes, index / Lanes::<T>::COUNT, index % Lanes::<T>::COUNT)?))
    }

    #[inline]
    fn select(_: Level, block: &Block<T>, body: &[u8], index: usize) -> Result<T> {
        Ok(at(block, offset_at(&shape(block)?, body, index)))
    }

    #[inline]
    fn lower_bound(level: Level, block: &Block<T>, body: &[u8], key: T) -> Result<Found> {
        let lanes = shape(block)?;
        let count = usize::from(block.count);
        let sought = key.widen() - block.first.widen();
        if let Some(found) = T::frame_search(level, &lanes, body, count, T::narrow(sought)) {
            return Ok(found);
        }
        let (mut low, mut len) = (1, count - 1);
        while len > 0 {
            let half = len / 2;
            low = if offset_at(&lanes, body, low + half) < sought { low + len - half } else { low };
            len = half;
        }
        if low >= count {
            return Err(ENDS_BELOW);
        }
        Ok(Found { index: low, exact: offset_at(&lanes, body, low) == sought })
    }

    #[inline]
    fn sum(level: Level, block: &Block<T>, body: &[u8]) -> Result<u128> {
        let lanes = shape(block)?;
        let count = usize::from(block.count);
        // A lane has at most 2^4 or 2^5 fields: no sum of a lane overflows.
        let fits = lanes.width + (if T::BITS == 32 { 4 } else { 5 }) <= T::BITS;
        if fits && let Some(offsets) = T::frame_sum(level, &lanes, body) {
            return Ok(offsets + u128::from(block.first.widen()) * count as u128);
        }
        let mut keys = [T::default(); MAX_BLOCK];
        Self::decode(level, block, body, &mut keys)?;
        Ok(total(keys.iter().copied().take(count)))
    }

    fn append(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()> {
        let old = shape(block)?;
        let count = usize::from(block.count);
        if frame_width(block.first, key) > old.width {
            return append_recoded::<T, SimdFor>(block, bytes, key);
        }
        let new = Lanes::<T>::holding(count + 1, old.width);
        let needed = new.size();
        let room = bytes.get_mut(..needed).ok_or(Error::NoRoom { needed })?;
        if new.rows > old.rows {
            old.grow(room, new);
        }
        let offset = key.widen() - block.first.widen();
        new.put(room, count / Lanes::<T>::COUNT, count % Lanes::<T>::COUNT, offset);
        block.last = key;
        block.count += 1;
        Ok(())
    }

    fn is_exact(block: &Block<T>, body: &[u8], _: &[T]) -> Result<bool> {
        let lanes = shape(block)?;
        let places = usize::from(block.count)..lanes.rows * Lanes::<T>::COUNT;
        let unused_are_zero = places.chain([0]).all(|i| offset_at(&lanes, body, i) == 0);
        let least = frame_width(block.first, block.last);
        Ok(lanes.width == least && unused_are_zero && lanes.spare_bits_are_zero(body))
    }
}

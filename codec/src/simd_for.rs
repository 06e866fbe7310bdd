//! SIMD FOR: frame of reference in a lane stream, so that a vector operation unpacks a row of keys.
//!
//! The field of key `i` is its distance from the first key, in row `i / lanes` and lane `i % lanes`; field 0 is zero.

use crate::frame::{append_recoded, at, claimed_width, extent, frame_width};
use crate::lanes::Lanes;
use crate::scheme::Scheme;
use crate::{Block, Buffer, Error, Found, Int, Level, Result};

pub(crate) struct SimdFor;

fn shape<T: Int>(block: &Block<T>) -> Result<Lanes<T>> {
    Ok(Lanes::holding(usize::from(block.count), claimed_width(block)?))
}

#[inline(always)]
fn offset_at<T: Int>(lanes: &Lanes<T>, body: &[u8], index: usize) -> u64 {
    lanes.get(body, index / Lanes::<T>::COUNT, index % Lanes::<T>::COUNT)
}

impl<T: Int> Scheme<T> for SimdFor {
    fn size(block: &Block<T>) -> Result<usize> {
        Ok(shape(block)?.size())
    }

    fn encoded_len(values: &[T]) -> usize {
        match (values.first(), values.last()) {
            (Some(&first), Some(&last)) => Lanes::<T>::holding(values.len(), frame_width(first, last)).size(),
            _ => 0,
        }
    }

    fn write(values: &[T], out: &mut [u8]) -> u16 {
        let (Some(&first), Some(&last)) = (values.first(), values.last()) else { return 0 };
        let lanes = Lanes::<T>::holding(values.len(), frame_width(first, last));
        out.fill(0);
        for (i, key) in values.iter().enumerate() {
            lanes.put(out, i / Lanes::<T>::COUNT, i % Lanes::<T>::COUNT, key.widen() - first.widen());
        }
        extent(lanes.width)
    }

    fn decode(_: Level, block: &Block<T>, body: &[u8], out: &mut Buffer<T>) -> Result<()> {
        let lanes = shape(block)?;
        for (i, to) in out.iter_mut().enumerate().take(usize::from(block.count)) {
            *to = at(block, offset_at(&lanes, body, i));
        }
        Ok(())
    }

    fn select(_: Level, block: &Block<T>, body: &[u8], index: usize) -> Result<T> {
        Ok(at(block, offset_at(&shape(block)?, body, index)))
    }

    fn lower_bound(_: Level, block: &Block<T>, body: &[u8], key: T) -> Result<Found> {
        let lanes = shape(block)?;
        let count = usize::from(block.count);
        let sought = key.widen() - block.first.widen();
        let (mut low, mut len) = (1, count - 1);
        while len > 0 {
            let half = len / 2;
            low = if offset_at(&lanes, body, low + half) < sought { low + len - half } else { low };
            len = half;
        }
        if low >= count {
            return Err(Error::Corrupt("keys end below the last key"));
        }
        Ok(Found { index: low, exact: offset_at(&lanes, body, low) == sought })
    }

    fn sum(_: Level, block: &Block<T>, body: &[u8]) -> Result<u128> {
        let lanes = shape(block)?;
        let count = usize::from(block.count);
        let offsets: u128 = (0..count).map(|i| u128::from(offset_at(&lanes, body, i))).sum();
        Ok(offsets + u128::from(block.first.widen()) * count as u128)
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
}

//! SIMD FOR: frame of reference in a lane stream, so that one vector operation unpacks a row of keys.
//!
//! The field of key `i` is its distance from the first key. It is in row `i / lanes` and lane `i % lanes`. Field 0 is
//! zero.

use crate::bits::range_mut;
use crate::error::{ENDS_BELOW, LONGER, OUT_OF_ORDER};
use crate::frame::{append_recoded, at, claimed_width, extent, frame_width, widened};
use crate::int::total;
use crate::lanes::Lanes;
use crate::scheme::{Scheme, body, recode_insert};
use crate::{Block, Buffer, Edit, Error, Found, Int, Level, MAX_BLOCK, Result};

pub(crate) struct SimdFor;

#[inline(always)]
fn shape<T: Int>(block: &Block<T>) -> Result<Lanes<T>> {
    Ok(Lanes::holding(usize::from(block.count), claimed_width(block)?))
}

#[inline(always)]
fn offset_at<T: Int>(lanes: &Lanes<T>, body: &[u8], index: usize) -> u64 {
    lanes.get(body, index / Lanes::<T>::COUNT, index % Lanes::<T>::COUNT)
}

/// True if `field` belongs at `index`, between the field before and the field that is there now.
fn belongs<T: Int>(lanes: &Lanes<T>, body: &[u8], count: usize, index: usize, field: u64) -> bool {
    let inside = (1..count).contains(&index);
    inside && offset_at(lanes, body, index - 1) < field && field < offset_at(lanes, body, index)
}

/// The scalar version of [`crate::lanes::LaneKernels::frame_insert`].
fn insert_field<T: Int>(lanes: &Lanes<T>, body: &mut [u8], index: usize, field: u64) -> bool {
    let places = lanes.rows * Lanes::<T>::COUNT;
    if !belongs(lanes, body, places, index, field) {
        return false;
    }
    let put = |body: &mut [u8], index, field| {
        lanes.put(body, index / Lanes::<T>::COUNT, index % Lanes::<T>::COUNT, field);
    };
    for i in (index + 1..places).rev() {
        let field = offset_at(lanes, body, i - 1);
        put(body, i, field);
    }
    put(body, index, field);
    true
}

impl SimdFor {
    /// Inserts `key` at `index`, where it must belong, if `bytes` has room for its row. `bytes` is the body of the
    /// block, or the body and one more row of zeros. Otherwise, and if the key would be the first or the last, returns
    /// false and changes nothing.
    fn insert_into<T: Int>(level: Level, block: &mut Block<T>, bytes: &mut [u8], index: usize, key: T) -> Result<bool> {
        let count = usize::from(block.count);
        let lanes = Lanes::<T>::holding(count + 1, claimed_width(block)?);
        if index == 0 || index >= count || count >= MAX_BLOCK || key <= block.first || key >= block.last {
            return Ok(false);
        }
        let Some(body) = bytes.get_mut(..lanes.size()) else { return Ok(false) };
        let field = T::narrow(key.widen() - block.first.widen());
        let done = match T::frame_insert(level, &lanes, body, index, field) {
            Some(done) => done,
            None => insert_field(&lanes, body, index, field.widen()),
        };
        if !done {
            return Err(Error::NotIncreasing);
        }
        block.count += 1;
        Ok(true)
    }
}

impl<T: Int> Scheme<T> for SimdFor {
    const EDITS_IN_PLACE: bool = false;
    const INSERTS_AT: bool = true;
    const READS_KEYS_ALONE: bool = true;

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
        range_mut(&mut fields, 0, values.len()).copy_from_slice(values);
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

    #[inline(always)]
    fn find(level: Level, block: &Block<T>, bytes: &[u8], key: T) -> Option<Found> {
        T::frame_find(level, block, bytes, key)
    }

    #[inline]
    fn select(_: Level, block: &Block<T>, body: &[u8], index: usize) -> Result<T> {
        Ok(at(block, offset_at(&shape(block)?, body, index)))
    }

    #[inline(always)]
    fn lower_bound(level: Level, block: &Block<T>, body: &[u8], key: T) -> Result<Found> {
        let lanes = shape(block)?;
        let count = usize::from(block.count);
        if let Some(found) = T::frame_find_among(level, block, body, key) {
            return Ok(found);
        }
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
        // A lane has at most 2^4 or 2^5 fields, so the sum of a lane does not overflow.
        let fits = lanes.width + (if T::BITS == 32 { 4 } else { 5 }) <= T::BITS;
        if fits && let Some(offsets) = T::frame_sum(level, &lanes, body) {
            return Ok(offsets + u128::from(block.first.widen()) * count as u128);
        }
        let mut keys = [T::default(); MAX_BLOCK];
        Self::decode(level, block, body, &mut keys)?;
        Ok(total(keys.iter().copied().take(count)))
    }

    #[inline(always)]
    fn appended(block: &Block<T>, key: T) -> Block<T> {
        widened(block, key, key.widen().wrapping_sub(block.first.widen()))
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

    fn insert(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<Edit> {
        let count = usize::from(block.count);
        if key <= block.first || count >= MAX_BLOCK {
            return recode_insert::<T, SimdFor>(block, bytes, key);
        }
        let (level, old) = (Level::best(), shape(block)?);
        let found = Self::lower_bound(level, block, bytes.get(..old.size()).ok_or(LONGER)?, key)?;
        if found.exact {
            return Ok(Edit::Unchanged(found.index));
        }
        let new = Lanes::<T>::holding(count + 1, old.width);
        let needed = new.size();
        let room = bytes.get_mut(..needed).ok_or(Error::NoRoom { needed })?;
        // With hostile bytes the search may have returned any index. After this check nothing fails.
        if !belongs(&old, room, count, found.index, key.widen() - block.first.widen()) {
            return Err(OUT_OF_ORDER);
        }
        if new.rows > old.rows {
            old.grow(room, new);
        }
        SimdFor::insert_into(level, block, room, found.index, key)?;
        Ok(Edit::Done(found.index))
    }

    #[inline]
    fn insert_at(level: Level, block: &mut Block<T>, bytes: &mut [u8], index: usize, key: T) -> Result<bool> {
        let used = body::<T, SimdFor>(block, bytes)?.len();
        SimdFor::insert_into(level, block, bytes.get_mut(..used).ok_or(LONGER)?, index, key)
    }

    fn is_exact(block: &Block<T>, body: &[u8], _: &[T]) -> Result<bool> {
        let lanes = shape(block)?;
        let places = usize::from(block.count)..lanes.rows * Lanes::<T>::COUNT;
        let unused_are_zero = places.chain([0]).all(|i| offset_at(&lanes, body, i) == 0);
        let least = frame_width(block.first, block.last);
        Ok(lanes.width == least && unused_are_zero && lanes.spare_bits_are_zero(body))
    }
}

//! BP128: binary packing of gaps in blocks of up to 128 keys.
//!
//! A gap is the distance of a key from the key before it, less one. All gaps have the same width in bits, that of the
//! largest gap. They are stored in a lane stream of `rows = ceil(count / lanes)` rows *by column*: gap `i` is in lane
//! `i / rows`, row `i % rows`. Gap 0 and the unused places are zero. So the keys of a lane are consecutive. Adding row
//! after row gives the prefix sums of all lanes at once, and only the totals of the lanes need a prefix sum across a
//! vector. A search or a sum never needs the keys in order.

use crate::bits::{change, width};
use crate::error::{ENDS_BELOW, LONGER};
use crate::frame::{append_recoded, at, claimed_width, extent, low_bytes, widened};
use crate::gaps::gaps;
use crate::lanes::Lanes;
use crate::scheme::Scheme;
use crate::{Block, Buffer, Error, Found, Int, Level, MAX_BLOCK, Result};

pub(crate) struct Bp128;

#[inline(always)]
fn shape<T: Int>(block: &Block<T>) -> Result<Lanes<T>> {
    Ok(Lanes::holding(usize::from(block.count), claimed_width(block)?))
}

fn shape_of<T: Int>(values: &[T]) -> Lanes<T> {
    let all = gaps(values).fold(0, |bits, gap| bits | gap);
    Lanes::holding(values.len(), width(all))
}

/// The keys in order. Field 0 is added too, as the kernels do. It is zero unless the bytes are hostile.
fn keys<'a, T: Int>(block: &Block<T>, lanes: &'a Lanes<T>, body: &'a [u8]) -> impl Iterator<Item = T> + 'a {
    let mut key = block.first.widen().wrapping_sub(1);
    (0..usize::from(block.count)).map(move |i| {
        key = key.wrapping_add(lanes.get(body, i % lanes.rows, i / lanes.rows)).wrapping_add(1);
        T::narrow(key)
    })
}

/// The sum of all keys. `within` is the sum of all prefix sums within lanes. `before` is the sum, over all lanes, of
/// the gaps in the lanes before; it counts once for every row. Each unused place adds the sum of all gaps, which is
/// subtracted again.
fn sum_of_lanes<T: Int>(block: &Block<T>, lanes: &Lanes<T>, [within, before]: [u128; 2]) -> u128 {
    let (count, rows) = (u64::from(block.count), lanes.rows as u64);
    let unused = rows * Lanes::<T>::COUNT as u64 - count;
    let (first, last) = (block.first.widen(), block.last.widen());
    let all = last.wrapping_sub(first).saturating_sub(count - 1);
    let between = count * (count - 1) / 2;
    if T::BITS == 32 {
        // 16 sums that are less than 2^32 each, 8 rows and 128 keys: nothing here reaches 2^64.
        let gaps = low_bytes(within) + low_bytes(before) * rows;
        return u128::from(gaps.saturating_sub(all * unused) + first * count + between);
    }
    let [unused, all, first, count, rows] = [unused, all, first, count, rows].map(u128::from);
    (within + before * rows).saturating_sub(all * unused) + first * count + u128::from(between)
}

impl<T: Int> Scheme<T> for Bp128 {
    const MAX_COUNT: usize = 128;
    const DELETE_STABLE: bool = false;
    const EDITS_IN_PLACE: bool = false;

    #[inline(always)]
    fn size(block: &Block<T>) -> Result<usize> {
        Ok(shape(block)?.size())
    }

    fn encoded_len(values: &[T]) -> usize {
        shape_of(values).size()
    }

    fn write(level: Level, values: &[T], out: &mut [u8]) -> u16 {
        let lanes = shape_of(values);
        let mut fields = [T::default(); MAX_BLOCK];
        for (i, gap) in (1..).zip(gaps(values)) {
            change(&mut fields, i % lanes.rows * Lanes::<T>::COUNT + i / lanes.rows, |to| *to = T::narrow(gap));
        }
        if T::pack(level, &lanes, &fields, T::default(), out) {
            return extent(lanes.width);
        }
        out.fill(0);
        for (i, gap) in (1..).zip(gaps(values)) {
            lanes.put(out, i % lanes.rows, i / lanes.rows, gap);
        }
        extent(lanes.width)
    }

    #[inline]
    fn decode(level: Level, block: &Block<T>, body: &[u8], out: &mut Buffer<T>) -> Result<()> {
        let lanes = shape(block)?;
        if T::gap_decode(level, &lanes, body, block.first, out) {
            return Ok(());
        }
        for (to, key) in out.iter_mut().zip(keys(block, &lanes, body)) {
            *to = key;
        }
        Ok(())
    }

    #[inline(always)]
    fn find(level: Level, block: &Block<T>, bytes: &[u8], key: T) -> Option<Found> {
        T::gap_find(level, block, bytes, key)
    }

    #[inline]
    fn select(level: Level, block: &Block<T>, body: &[u8], index: usize) -> Result<T> {
        let lanes = shape(block)?;
        if let Some(sum) = T::gap_select(level, &lanes, body, index) {
            return Ok(at(block, sum.widen().wrapping_add(index as u64)));
        }
        keys(block, &lanes, body).nth(index).ok_or(Error::OutOfRange)
    }

    #[inline(always)]
    fn lower_bound(level: Level, block: &Block<T>, body: &[u8], key: T) -> Result<Found> {
        let lanes = shape(block)?;
        // An unused place counts as a key after the last one. Such a key must not wrap around, because it would then
        // count as a small one.
        if block.last.widen() < T::MAX.widen() - 16
            && let Some(found) = T::gap_search(level, &lanes, body, block.first, key)
        {
            return Ok(Found { index: found.index.min(usize::from(block.count)), ..found });
        }
        let found = keys(block, &lanes, body).enumerate().find(|&(_, value)| value >= key);
        let (index, value) = found.ok_or(ENDS_BELOW)?;
        Ok(Found { index, exact: value == key })
    }

    #[inline]
    fn sum(level: Level, block: &Block<T>, body: &[u8]) -> Result<u128> {
        let lanes = shape(block)?;
        // A lane has at most 8 or 16 gaps, so the sum of its prefix sums is at most 36 or 136 times the largest gap.
        let fits = lanes.width + (if T::BITS == 32 { 6 } else { 8 }) <= T::BITS;
        if fits && let Some(sums) = T::gap_sums(level, &lanes, body) {
            return Ok(sum_of_lanes(block, &lanes, sums));
        }
        Ok(keys(block, &lanes, body).map(|key| u128::from(key.widen())).sum())
    }

    #[inline(always)]
    fn appended(block: &Block<T>, key: T) -> Block<T> {
        widened(block, key, key.widen().wrapping_sub(block.last.widen()).wrapping_sub(1))
    }

    fn append(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()> {
        let lanes = shape(block)?;
        let count = usize::from(block.count);
        let gap = key.widen() - block.last.widen() - 1;
        if width(gap) > lanes.width || count == lanes.rows * Lanes::<T>::COUNT {
            return append_recoded::<T, Bp128>(block, bytes, key);
        }
        let size = lanes.size();
        let body = bytes.get_mut(..size).ok_or(LONGER)?;
        lanes.put(body, count % lanes.rows, count / lanes.rows, gap);
        block.last = key;
        block.count += 1;
        Ok(())
    }

    fn is_exact(block: &Block<T>, body: &[u8], keys: &[T]) -> Result<bool> {
        let lanes = shape(block)?;
        let places = usize::from(block.count)..lanes.rows * Lanes::<T>::COUNT;
        let unused_are_zero = places.chain([0]).all(|i| lanes.get(body, i % lanes.rows, i / lanes.rows) == 0);
        Ok(lanes.width == shape_of(keys).width && unused_are_zero && lanes.spare_bits_are_zero(body))
    }
}

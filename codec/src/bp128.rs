//! BP128: binary packing of gaps in blocks of up to 128 keys.
//!
//! A gap is a key's distance from its predecessor, less one; every gap has as many bits as the largest needs. The
//! gaps lie in a lane stream of `rows = ceil(count / lanes)` rows *by column*: gap `i` is in lane `i / rows`, row
//! `i % rows`; gap 0 and the unused places are zero. So a lane holds a run of consecutive keys: adding rows gives
//! every lane's prefix sums at once, only the totals of the lanes need a prefix sum across a vector, and a search or
//! a sum never needs the keys in order.

use crate::bits::width;
use crate::frame::{append_recoded, claimed_width, extent};
use crate::gaps::gaps;
use crate::lanes::Lanes;
use crate::scheme::Scheme;
use crate::{Block, Buffer, Error, Found, Int, Level, Result};

pub(crate) struct Bp128;

fn shape<T: Int>(block: &Block<T>) -> Result<Lanes<T>> {
    Ok(Lanes::holding(usize::from(block.count), claimed_width(block)?))
}

fn shape_of<T: Int>(values: &[T]) -> Lanes<T> {
    let all = gaps(values).fold(0, |bits, gap| bits | gap);
    Lanes::holding(values.len(), width(all))
}

/// The keys in order, from the second on.
fn keys<'a, T: Int>(block: &Block<T>, lanes: &'a Lanes<T>, body: &'a [u8]) -> impl Iterator<Item = T> + 'a {
    let mut key = block.first.widen();
    (1..usize::from(block.count)).map(move |i| {
        key = key.wrapping_add(lanes.get(body, i % lanes.rows, i / lanes.rows)).wrapping_add(1);
        T::narrow(key)
    })
}

impl<T: Int> Scheme<T> for Bp128 {
    fn size(block: &Block<T>) -> Result<usize> {
        Ok(shape(block)?.size())
    }

    fn encoded_len(values: &[T]) -> usize {
        shape_of(values).size()
    }

    fn write(values: &[T], out: &mut [u8]) -> u16 {
        let lanes = shape_of(values);
        out.fill(0);
        for (i, gap) in (1..).zip(gaps(values)) {
            lanes.put(out, i % lanes.rows, i / lanes.rows, gap);
        }
        extent(lanes.width)
    }

    fn decode(_: Level, block: &Block<T>, body: &[u8], out: &mut Buffer<T>) -> Result<()> {
        let lanes = shape(block)?;
        for (to, key) in out.iter_mut().zip(core::iter::once(block.first).chain(keys(block, &lanes, body))) {
            *to = key;
        }
        Ok(())
    }

    fn select(_: Level, block: &Block<T>, body: &[u8], index: usize) -> Result<T> {
        keys(block, &shape(block)?, body).nth(index - 1).ok_or(Error::OutOfRange)
    }

    fn lower_bound(_: Level, block: &Block<T>, body: &[u8], key: T) -> Result<Found> {
        let lanes = shape(block)?;
        let found = (1..).zip(keys(block, &lanes, body)).find(|&(_, value)| value >= key);
        let (index, value) = found.ok_or(Error::Corrupt("keys end below the last key"))?;
        Ok(Found { index, exact: value == key })
    }

    fn sum(_: Level, block: &Block<T>, body: &[u8]) -> Result<u128> {
        let lanes = shape(block)?;
        let rest: u128 = keys(block, &lanes, body).map(|key| u128::from(key.widen())).sum();
        Ok(u128::from(block.first.widen()) + rest)
    }

    fn append(block: &mut Block<T>, bytes: &mut [u8], key: T) -> Result<()> {
        let lanes = shape(block)?;
        let count = usize::from(block.count);
        let gap = key.widen() - block.last.widen() - 1;
        if width(gap) > lanes.width || count == lanes.rows * Lanes::<T>::COUNT {
            return append_recoded::<T, Bp128>(block, bytes, key);
        }
        let size = lanes.size();
        let body = bytes.get_mut(..size).ok_or(Error::Corrupt("block longer than its bytes"))?;
        lanes.put(body, count % lanes.rows, count / lanes.rows, gap);
        block.last = key;
        block.count += 1;
        Ok(())
    }

    fn padding_is_zero(block: &Block<T>, body: &[u8]) -> Result<bool> {
        let lanes = shape(block)?;
        let places = usize::from(block.count)..lanes.rows * Lanes::<T>::COUNT;
        Ok(places.chain([0]).all(|i| lanes.get(body, i % lanes.rows, i / lanes.rows) == 0))
    }
}

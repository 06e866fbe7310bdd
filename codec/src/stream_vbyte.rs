//! StreamVByte: VarInt-GB with all control bytes first, then the bytes of all gaps. A reader can find the next group
//! without waiting for a control byte between the gaps.

use core::marker::PhantomData;

use crate::bits::{change, get_bytes, put_bytes, range_mut};
use crate::error::{CUT, LONG};
use crate::gaps::{GapFormat, GapPosition, Kernels, Walk};
use crate::varint_gb::{append_len, code_of, gap_len, len_in, per_control, spare_codes, takes_no_more};
use crate::{Error, Int, MAX_BLOCK, Result};

pub(crate) struct StreamVByte;

#[derive(Clone, Copy)]
pub(crate) struct StreamWalk<'a, T> {
    body: &'a [u8],
    at: usize,
    gap: usize,
    key: PhantomData<T>,
}

impl<'a, T: Int> StreamWalk<'a, T> {
    /// Begins at a gap, which has the number `gap` and its bytes at `at`.
    #[inline(always)]
    pub(crate) fn resume(body: &'a [u8], gap: usize, at: usize) -> StreamWalk<'a, T> {
        StreamWalk { body, at, gap, key: PhantomData }
    }

    /// Skips a gap. Returns the position and the number of its bytes.
    #[inline(always)]
    fn skip(&mut self) -> Result<(usize, usize)> {
        let control = *self.body.get(self.gap / per_control::<T>()).ok_or(CUT)?;
        let (at, len) = (self.at, len_in::<T>(control, self.gap % per_control::<T>()));
        if len > T::BYTES {
            return Err(LONG);
        }
        if at + len > self.body.len() {
            return Err(CUT);
        }
        self.at += len;
        self.gap += 1;
        Ok((at, len))
    }
}

impl<T: Int> Walk for StreamWalk<'_, T> {
    #[inline(always)]
    fn place(&self) -> GapPosition {
        GapPosition { gap: self.gap, at: self.at }
    }

    #[inline(always)]
    fn step(&mut self) -> Result<u64> {
        let (at, len) = self.skip()?;
        Ok(get_bytes(self.body, at, len))
    }

    fn at_end(&self) -> bool {
        self.at == self.body.len()
    }
}

/// The maximum number of control bytes of a block: one for two `u64` gaps.
const MAX_CONTROLS: usize = MAX_BLOCK / 2;

/// Replaces the codes of the `removed` gaps from `place` on by those of `added`, in a copy of the control bytes.
fn splice_codes<T: Int>(
    old: &[u8],
    gaps: usize,
    place: GapPosition,
    removed: usize,
    added: &[u64],
    new: &mut [u8; MAX_CONTROLS],
) {
    let per = per_control::<T>();
    let start = place.gap - place.gap % per;
    let kept = old.get(..start / per).unwrap_or_default();
    range_mut(new, 0, start / per).copy_from_slice(kept);
    let mut push = |gap: usize, len: usize| change(new, gap / per, |control| *control |= code_of::<T>(len, gap % per));
    let len_of = |gap: usize| len_in::<T>(old.get(gap / per).copied().unwrap_or(0), gap % per);
    (start..place.gap).for_each(|gap| push(gap, len_of(gap)));
    (place.gap..).zip(added).for_each(|(gap, &value)| push(gap, gap_len(value)));
    let to = place.gap + added.len();
    (to..).zip(place.gap + removed..gaps).for_each(|(to, from)| push(to, len_of(from)));
}

impl<T: Int> GapFormat<T> for StreamVByte {
    const KERNELS: Option<Kernels> = Some(Kernels::Streamed);
    type Walk<'a> = StreamWalk<'a, T>;

    fn walk(body: &[u8], gaps: usize) -> StreamWalk<'_, T> {
        StreamWalk::resume(body, 0, gaps.div_ceil(per_control::<T>()))
    }

    fn end(_bytes: &[u8], used: usize, gaps: usize) -> Result<GapPosition> {
        Ok(GapPosition { gap: gaps, at: used })
    }

    fn gaps_len(gaps: impl Iterator<Item = u64>, count: usize) -> usize {
        count.div_ceil(per_control::<T>()) + gaps.map(gap_len).sum::<usize>()
    }

    #[inline(always)]
    fn append_len(gap: u64, gaps: usize) -> usize {
        append_len::<T>(gap, gaps)
    }

    fn write_gaps(gaps: impl Iterator<Item = u64>, count: usize, out: &mut [u8]) {
        let mut at = count.div_ceil(per_control::<T>());
        range_mut(out, 0, at).fill(0);
        for (i, gap) in gaps.enumerate() {
            let len = gap_len(gap);
            let code = code_of::<T>(len, i % per_control::<T>());
            change(out, i / per_control::<T>(), |control| *control |= code);
            put_bytes(out, at, len, gap);
            at += len;
        }
    }

    fn is_exact(body: &[u8], keys: &[T]) -> bool {
        let gaps = keys.len() - 1;
        let last = body.get(gaps / per_control::<T>());
        takes_no_more(body, keys) && last.is_none_or(|&control| spare_codes::<T>(control, gaps) == 0)
    }

    fn splice(
        bytes: &mut [u8],
        used: usize,
        gaps: usize,
        place: GapPosition,
        removed: usize,
        added: &[u64],
    ) -> Result<usize> {
        let body = bytes.get(..used).ok_or(CUT)?;
        let mut walk = StreamWalk::<T> { body, at: place.at, gap: place.gap, key: PhantomData };
        for _ in 0..removed {
            walk.skip()?;
        }
        let from = walk.at;
        let old_controls = gaps.div_ceil(per_control::<T>());
        let controls = (gaps - removed + added.len()).div_ceil(per_control::<T>());
        let len: usize = added.iter().map(|&gap| gap_len(gap)).sum();
        let start = (place.at + controls).checked_sub(old_controls).ok_or(CUT)?;
        let needed = start + len + used - from;
        let mut codes = [0u8; MAX_CONTROLS];
        splice_codes::<T>(body.get(..old_controls).ok_or(CUT)?, gaps, place, removed, added, &mut codes);
        let new_controls = codes.get(..controls).ok_or(LONG)?;
        let room = bytes.get_mut(..needed.max(used)).ok_or(Error::NoRoom { needed })?;
        // If the bytes move up, the later bytes are moved first; if they move down, last.
        if start + len >= from {
            room.copy_within(from..used, start + len);
            room.copy_within(old_controls..place.at, controls);
        } else {
            room.copy_within(old_controls..place.at, controls);
            room.copy_within(from..used, start + len);
        }
        range_mut(room, 0, controls).copy_from_slice(new_controls);
        let mut at = start;
        for &gap in added {
            put_bytes(room, at, gap_len(gap), gap);
            at += gap_len(gap);
        }
        Ok(needed)
    }
}

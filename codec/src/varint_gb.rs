//! VarInt-GB: gaps in groups, each with a control byte. Each gap is stored in as few whole bytes as possible.
//!
//! For `u32` keys a group has four gaps, and the control byte has two bits for each gap, the first gap in the low bits.
//! For `u64` keys a group has two gaps with four bits each. The bits are the number of the gap's bytes less one. The
//! last group may be partial. Then its control byte is after the bytes of its gaps and not before them, so that an
//! append finds it, and has zeros for the missing gaps.

use core::marker::PhantomData;

use crate::bits::{change, get_bytes, must_fit, put_bytes, range_mut, width};
use crate::error::{CUT, LEFT_OVER, LONG};
use crate::gaps::{GapFormat, GapPosition, Kernels, Walk, gaps};
use crate::{Error, Int, MAX_BLOCK, Result};

pub(crate) struct VarIntGb;

/// The number of gaps under one control byte.
#[inline(always)]
pub(crate) const fn per_control<T: Int>() -> usize {
    16 / T::BYTES
}

/// The number of bits of a gap's code in a control byte.
#[inline(always)]
const fn code_bits<T: Int>() -> usize {
    T::BYTES / 2
}

/// The number of bytes of a gap, without its part of the control byte.
#[inline(always)]
pub(crate) fn gap_len(gap: u64) -> usize {
    (width(gap | 1) as usize).div_ceil(8)
}

/// The number of bytes of `gap` after `gaps` others. The first gap of a group brings the control byte.
#[inline(always)]
pub(crate) fn append_len<T: Int>(gap: u64, gaps: usize) -> usize {
    gap_len(gap) + usize::from(gaps.is_multiple_of(per_control::<T>()))
}

/// The number of bytes of the gap with the code at `slot` of `control`.
#[inline(always)]
pub(crate) fn len_in<T: Int>(control: u8, slot: usize) -> usize {
    let code = control >> (slot * code_bits::<T>());
    usize::from(code & ((1 << code_bits::<T>()) - 1)) + 1
}

/// The code of a gap of `len` bytes, at its slot in the control byte.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a length of at most 8")]
pub(crate) fn code_of<T: Int>(len: usize, slot: usize) -> u8 {
    ((len - 1) as u8) << (slot * code_bits::<T>())
}

/// Checks that `body`, which decodes to `keys`, is not longer than necessary. No gap has fewer bytes than it needs, so
/// then none has more.
pub(crate) fn takes_no_more<T: Int>(body: &[u8], keys: &[T]) -> bool {
    body.len() == <VarIntGb as GapFormat<T>>::gaps_len(gaps(keys), keys.len() - 1)
}

/// The codes for missing gaps in the control byte of the last of `gaps` gaps.
pub(crate) fn spare_codes<T: Int>(control: u8, gaps: usize) -> u8 {
    match gaps % per_control::<T>() {
        0 => 0,
        partial => control >> (partial * code_bits::<T>()),
    }
}

#[derive(Clone, Copy)]
pub(crate) struct GbWalk<'a, T> {
    body: &'a [u8],
    /// The position of the next gap's bytes, or of the next group.
    at: usize,
    /// The position of the current group.
    group: usize,
    control: u8,
    gap: usize,
    gaps: usize,
    key: PhantomData<T>,
}

impl<'a, T: Int> GbWalk<'a, T> {
    #[inline(always)]
    fn new(body: &'a [u8], gaps: usize) -> GbWalk<'a, T> {
        GbWalk { body, at: 0, group: 0, control: 0, gap: 0, gaps, key: PhantomData }
    }

    /// Begins at a group. `gap` is the number of its first gap, and `at` is its position.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn resume(body: &'a [u8], gaps: usize, gap: usize, at: usize) -> GbWalk<'a, T> {
        GbWalk { body, at, group: at, control: 0, gap, gaps, key: PhantomData }
    }

    /// Skips a gap. Returns the position and the number of its bytes.
    #[inline(always)]
    fn skip(&mut self) -> Result<(usize, usize)> {
        let slot = self.gap % per_control::<T>();
        if slot == 0 {
            self.group = self.at;
            if self.gap + per_control::<T>() <= self.gaps {
                self.control = *self.body.get(self.at).ok_or(CUT)?;
                self.at += 1;
            } else {
                self.control = *self.body.last().ok_or(CUT)?;
            }
        }
        let (at, len) = (self.at, len_in::<T>(self.control, slot));
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

impl<T: Int> Walk for GbWalk<'_, T> {
    #[inline(always)]
    fn place(&self) -> GapPosition {
        let at = if self.gap.is_multiple_of(per_control::<T>()) { self.at } else { self.group };
        GapPosition { gap: self.gap, at }
    }

    #[inline(always)]
    fn step(&mut self) -> Result<u64> {
        let (at, len) = self.skip()?;
        Ok(get_bytes(self.body, at, len))
    }

    fn at_end(&self) -> bool {
        self.at + usize::from(!self.gaps.is_multiple_of(per_control::<T>())) == self.body.len()
    }
}

/// Writes gaps, beginning with a group.
struct Writer<'a, T> {
    out: &'a mut [u8],
    at: usize,
    group: usize,
    slot: usize,
    key: PhantomData<T>,
}

impl<T: Int> Writer<'_, T> {
    /// Returns an error and writes nothing if there is no room.
    #[inline(always)]
    fn push(&mut self, gap: u64, len: usize) -> Result<()> {
        if self.at + usize::from(self.slot == 0) + len > self.out.len() {
            return Err(CUT);
        }
        if self.slot == 0 {
            self.group = self.at;
            put_bytes(self.out, self.at, 1, 0);
            self.at += 1;
        }
        change(self.out, self.group, |control| *control |= code_of::<T>(len, self.slot));
        put_bytes(self.out, self.at, len, gap);
        self.at += len;
        self.slot = (self.slot + 1) % per_control::<T>();
        Ok(())
    }

    /// If the last group is partial, moves its control byte after its gaps.
    fn finish(self) {
        if self.slot > 0 {
            range_mut(self.out, self.group, self.at - self.group).rotate_left(1);
        }
    }
}

/// The maximum number of bytes of a block: for `u64` keys, 8 bytes for each gap and half a control byte.
const MAX_BODY: usize = MAX_BLOCK * 9;

impl<T: Int> GapFormat<T> for VarIntGb {
    const KERNELS: Option<Kernels> = Some(Kernels::Grouped);
    type Walk<'a> = GbWalk<'a, T>;

    fn walk(body: &[u8], gaps: usize) -> GbWalk<'_, T> {
        GbWalk::new(body, gaps)
    }

    fn end(bytes: &[u8], used: usize, gaps: usize) -> Result<GapPosition> {
        let slots = gaps % per_control::<T>();
        if slots == 0 {
            return Ok(GapPosition { gap: gaps, at: used });
        }
        let last = used.checked_sub(1).ok_or(CUT)?;
        let control = *bytes.get(last).ok_or(CUT)?;
        let len: usize = (0..slots).map(|slot| len_in::<T>(control, slot)).sum();
        Ok(GapPosition { gap: gaps, at: last.checked_sub(len).ok_or(CUT)? })
    }

    fn gaps_len(gaps: impl Iterator<Item = u64>, count: usize) -> usize {
        count.div_ceil(per_control::<T>()) + gaps.map(gap_len).sum::<usize>()
    }

    #[inline(always)]
    fn append_len(gap: u64, gaps: usize) -> usize {
        append_len::<T>(gap, gaps)
    }

    fn write_gaps(mut gaps: impl Iterator<Item = u64>, _count: usize, out: &mut [u8]) {
        let mut writer = Writer::<T> { out, at: 0, group: 0, slot: 0, key: PhantomData };
        must_fit(gaps.try_for_each(|gap| writer.push(gap, gap_len(gap))).is_ok());
        writer.finish();
    }

    fn is_exact(body: &[u8], keys: &[T]) -> bool {
        takes_no_more(body, keys) && body.last().is_none_or(|&control| spare_codes::<T>(control, keys.len() - 1) == 0)
    }

    /// Writes the groups from the changed one on again. Copies the bytes of the other gaps without decoding them.
    fn splice(
        bytes: &mut [u8],
        used: usize,
        gaps: usize,
        place: GapPosition,
        removed: usize,
        added: &[u64],
    ) -> Result<usize> {
        let mut copy = [0u8; MAX_BODY];
        let old = bytes.get(place.at..used).ok_or(CUT)?;
        let rest = copy.get_mut(..old.len()).ok_or(LONG)?;
        rest.copy_from_slice(old);
        let slot = place.gap % per_control::<T>();
        let mut walk = GbWalk::<T>::new(rest, gaps - (place.gap - slot));
        for _ in 0..slot {
            walk.skip()?;
        }
        let controls = |gaps: usize| gaps.div_ceil(per_control::<T>());
        let mut freed = controls(gaps);
        for _ in 0..removed {
            freed += walk.skip()?.1;
        }
        let more = added.iter().map(|&gap| gap_len(gap)).sum::<usize>() + controls(gaps - removed + added.len());
        // A damaged group may claim to be longer than the whole body.
        let needed = (used + more).checked_sub(freed).ok_or(CUT)?;
        let out = bytes.get_mut(place.at..needed).ok_or(Error::NoRoom { needed })?;
        if let Err(error) = rewrite::<T>(rest, gaps - (place.gap - slot), slot, removed, added, out) {
            // A group is damaged, so the change is undone.
            range_mut(bytes, place.at, rest.len()).copy_from_slice(rest);
            return Err(error);
        }
        Ok(needed)
    }
}

/// Writes the `gaps` gaps of `rest` to `out`, with `added` in place of the `removed` gaps from `at` on. Returns an
/// error if the groups do not end with `rest`: with damaged control bytes the gaps may have any lengths.
fn rewrite<T: Int>(rest: &[u8], gaps: usize, at: usize, removed: usize, added: &[u64], out: &mut [u8]) -> Result<()> {
    let mut walk = GbWalk::<T>::new(rest, gaps);
    let mut writer = Writer::<T> { out, at: 0, group: 0, slot: 0, key: PhantomData };
    for _ in 0..at {
        let (from, len) = walk.skip()?;
        writer.push(get_bytes(rest, from, len), len)?;
    }
    added.iter().try_for_each(|&gap| writer.push(gap, gap_len(gap)))?;
    for _ in 0..removed {
        walk.skip()?;
    }
    for _ in at + removed..gaps {
        let (from, len) = walk.skip()?;
        writer.push(get_bytes(rest, from, len), len)?;
    }
    writer.finish();
    if walk.at_end() { Ok(()) } else { Err(LEFT_OVER) }
}

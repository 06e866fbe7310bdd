//! VarInt-GB: gaps in groups under one control byte, each gap in as few whole bytes as it needs.
//!
//! `u32` keys: groups of four, two bits of the control byte a gap, first gap in the low bits. `u64` keys: groups of
//! two, four bits a gap. The bits say the gap's bytes less one. The last group may be partial: its control byte, with
//! zeros for the gaps it lacks, comes after its gaps' bytes instead of before them, so that an append finds it.

use core::marker::PhantomData;

use crate::bits::{get_bytes, put_bytes, width};
use crate::error::{CUT, LEFT_OVER, LONG};
use crate::gaps::{GapFormat, GapPosition, Kernels, Walk, gaps};
use crate::{Error, Int, MAX_BLOCK, Result};

pub(crate) struct VarIntGb;

/// Gaps under one control byte.
#[inline(always)]
pub(crate) const fn per_control<T: Int>() -> usize {
    16 / T::BYTES
}

/// Bits of one gap's code in a control byte.
#[inline(always)]
const fn code_bits<T: Int>() -> usize {
    T::BYTES / 2
}

/// Bytes of a gap without its part of the control byte.
#[inline(always)]
pub(crate) fn gap_len(gap: u64) -> usize {
    (width(gap | 1) as usize).div_ceil(8)
}

/// The bytes of the gap that code `slot` of `control` stands for.
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

/// Whether the gaps of `keys` need all of `body`, which has them: none takes fewer bytes than it needs, so none more.
pub(crate) fn takes_no_more<T: Int>(body: &[u8], keys: &[T]) -> bool {
    body.len() == <VarIntGb as GapFormat<T>>::gaps_len(gaps(keys), keys.len() - 1)
}

/// What the control byte of the last of `gaps` gaps has for gaps that are not there.
pub(crate) fn spare_codes<T: Int>(control: u8, gaps: usize) -> u8 {
    match gaps % per_control::<T>() {
        0 => 0,
        partial => control >> (partial * code_bits::<T>()),
    }
}

#[derive(Clone, Copy)]
pub(crate) struct GbWalk<'a, T> {
    body: &'a [u8],
    /// Where the next gap's bytes start, or the next group.
    at: usize,
    /// Where the current group starts.
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

    /// A walk from the start of a group on: its first gap, and where it starts.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn resume(body: &'a [u8], gaps: usize, gap: usize, at: usize) -> GbWalk<'a, T> {
        GbWalk { body, at, group: at, control: 0, gap, gaps, key: PhantomData }
    }

    /// Steps over a gap; gives where its bytes are.
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

/// Writes gaps from a group's start on.
struct Writer<'a, T> {
    out: &'a mut [u8],
    at: usize,
    group: usize,
    slot: usize,
    key: PhantomData<T>,
}

impl<T: Int> Writer<'_, T> {
    #[inline(always)]
    fn push(&mut self, gap: u64, len: usize) {
        if self.slot == 0 {
            self.group = self.at;
            put_bytes(self.out, self.at, 1, 0);
            self.at += 1;
        }
        if let Some(control) = self.out.get_mut(self.group) {
            *control |= code_of::<T>(len, self.slot);
        }
        put_bytes(self.out, self.at, len, gap);
        self.at += len;
        self.slot = (self.slot + 1) % per_control::<T>();
    }

    /// Moves the control byte of a partial last group behind its bytes.
    fn finish(self) {
        if let Some(group) = self.out.get_mut(self.group..self.at).filter(|_| self.slot > 0) {
            group.rotate_left(1);
        }
    }
}

/// The most bytes a block's body can have: `u64` keys, 8 bytes a gap and half a control byte.
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

    fn write_gaps(gaps: impl Iterator<Item = u64>, _count: usize, out: &mut [u8]) {
        let mut writer = Writer::<T> { out, at: 0, group: 0, slot: 0, key: PhantomData };
        gaps.for_each(|gap| writer.push(gap, gap_len(gap)));
        writer.finish();
    }

    fn is_exact(body: &[u8], keys: &[T]) -> bool {
        takes_no_more(body, keys) && body.last().is_none_or(|&control| spare_codes::<T>(control, keys.len() - 1) == 0)
    }

    /// The groups from the changed one on are written again, byte for byte, without looking at the gaps' values.
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
        // Damaged groups may say that they are longer than all there is.
        let needed = (used + more).checked_sub(freed).ok_or(CUT)?;
        let out = bytes.get_mut(place.at..needed).ok_or(Error::NoRoom { needed })?;
        if let Err(error) = rewrite::<T>(rest, gaps - (place.gap - slot), slot, removed, added, out) {
            // Damaged groups: what was written goes again.
            if let Some(out) = bytes.get_mut(place.at..used) {
                out.copy_from_slice(rest);
            }
            return Err(error);
        }
        Ok(needed)
    }
}

/// Writes the `gaps` gaps of `rest` into `out`, with `added` in place of the `removed` ones from `at` on.
fn rewrite<T: Int>(rest: &[u8], gaps: usize, at: usize, removed: usize, added: &[u64], out: &mut [u8]) -> Result<()> {
    let mut walk = GbWalk::<T>::new(rest, gaps);
    let mut writer = Writer::<T> { out, at: 0, group: 0, slot: 0, key: PhantomData };
    for _ in 0..at {
        let (from, len) = walk.skip()?;
        writer.push(get_bytes(rest, from, len), len);
    }
    added.iter().for_each(|&gap| writer.push(gap, gap_len(gap)));
    for _ in 0..removed {
        walk.skip()?;
    }
    for _ in at + removed..gaps {
        let (from, len) = walk.skip()?;
        writer.push(get_bytes(rest, from, len), len);
    }
    writer.finish();
    if walk.at_end() { Ok(()) } else { Err(LEFT_OVER) }
}

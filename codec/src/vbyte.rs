//! VByte and Masked VByte: gaps in groups of seven bits, the low group first. The top bit is set in all bytes of a gap
//! but the last. Both codecs have the same bytes; Masked VByte reads them with vector kernels.

use crate::bits::range_mut;
use crate::error::{CUT, LONG};
use crate::gaps::{GapFormat, GapPosition, Kernels, Walk};
use crate::{Error, Int, Result};

pub(crate) struct VByte;
pub(crate) struct MaskedVByte;

/// The number of bytes of a gap: 1 to 5 for `u32` keys, 1 to 10 for `u64` keys.
#[inline(always)]
pub(crate) fn gap_len(gap: u64) -> usize {
    (crate::bits::width(gap | 1) as usize).div_ceil(7)
}

#[inline(always)]
fn write_gap(out: &mut [u8], at: usize, mut gap: u64) -> usize {
    let len = gap_len(gap);
    for (i, to) in range_mut(out, at, len).iter_mut().enumerate() {
        let more = if i + 1 < len { 0x80 } else { 0 };
        *to = gap.to_le_bytes()[0] & 0x7f | more;
        gap >>= 7;
    }
    len
}

#[derive(Clone, Copy)]
pub(crate) struct VByteWalk<'a, T> {
    body: &'a [u8],
    at: usize,
    gap: usize,
    key: core::marker::PhantomData<T>,
}

impl<T: Int> VByteWalk<'_, T> {
    #[inline(never)]
    fn long(&mut self) -> Result<u64> {
        let mut gap = 0u64;
        let rest = self.body.get(self.at..).unwrap_or_default();
        for (i, &byte) in rest.iter().enumerate().take(T::BITS.div_ceil(7) as usize) {
            let part = u64::from(byte & 0x7f);
            let shift = 7 * i;
            gap |= part << shift;
            if byte < 0x80 {
                if gap >> shift != part || gap > T::MAX.widen() {
                    return Err(LONG);
                }
                self.at += i + 1;
                return Ok(gap);
            }
        }
        Err(if rest.len() < T::BITS.div_ceil(7) as usize { CUT } else { LONG })
    }
}

impl<T: Int> Walk for VByteWalk<'_, T> {
    #[inline(always)]
    fn place(&self) -> GapPosition {
        GapPosition { gap: self.gap, at: self.at }
    }

    #[inline(always)]
    fn step(&mut self) -> Result<u64> {
        self.gap += 1;
        match self.body.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.long(),
        }
    }

    fn at_end(&self) -> bool {
        self.at == self.body.len()
    }
}

fn splice<T: Int>(bytes: &mut [u8], used: usize, place: GapPosition, removed: usize, added: &[u64]) -> Result<usize> {
    let body = bytes.get(..used).ok_or(CUT)?;
    let mut walk = VByteWalk::<T> { body, at: place.at, gap: place.gap, key: core::marker::PhantomData };
    for _ in 0..removed {
        walk.step()?;
    }
    let from = walk.at;
    let len: usize = added.iter().map(|&gap| gap_len(gap)).sum();
    let needed = used - from + place.at + len;
    let room = bytes.get_mut(..needed.max(used)).ok_or(Error::NoRoom { needed })?;
    room.copy_within(from..used, place.at + len);
    let mut at = place.at;
    for &gap in added {
        at += write_gap(room, at, gap);
    }
    Ok(needed)
}

macro_rules! vbyte_format {
    ($codec:ident, $kernels:expr) => {
        impl<T: Int> GapFormat<T> for $codec {
            const KERNELS: Option<Kernels> = $kernels;
            type Walk<'a> = VByteWalk<'a, T>;

            fn walk(body: &[u8], _gaps: usize) -> VByteWalk<'_, T> {
                VByteWalk { body, at: 0, gap: 0, key: core::marker::PhantomData }
            }

            fn end(_bytes: &[u8], used: usize, gaps: usize) -> Result<GapPosition> {
                Ok(GapPosition { gap: gaps, at: used })
            }

            fn gaps_len(gaps: impl Iterator<Item = u64>, _count: usize) -> usize {
                gaps.map(gap_len).sum()
            }

            #[inline(always)]
            fn append_len(gap: u64, _gaps: usize) -> usize {
                gap_len(gap)
            }

            fn write_gaps(gaps: impl Iterator<Item = u64>, _count: usize, out: &mut [u8]) {
                gaps.fold(0, |at, gap| at + write_gap(out, at, gap));
            }

            /// A gap has more bytes than it needs if its last byte is zero.
            fn is_exact(body: &[u8], _keys: &[T]) -> bool {
                let later = body.get(1..).unwrap_or_default();
                !body.iter().zip(later).fold(false, |longer, (&byte, &next)| longer | ((byte >= 0x80) & (next == 0)))
            }

            fn splice(
                bytes: &mut [u8],
                used: usize,
                _: usize,
                place: GapPosition,
                removed: usize,
                added: &[u64],
            ) -> Result<usize> {
                splice::<T>(bytes, used, place, removed, added)
            }
        }
    };
}

vbyte_format!(VByte, None);
vbyte_format!(MaskedVByte, Some(Kernels::Masked));

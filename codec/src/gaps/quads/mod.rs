//! Vector kernels for VarInt-GB and StreamVByte with `u32` keys: a control byte selects the shuffle that unpacks four
//! gaps to a 128-bit vector.
//!
//! A kernel reads whole groups as long as 17 bytes can be read, the last groups from a padded copy. The scalar code of
//! the codec reads the rest and checks where the body ends.

mod wide;

use core::arch::x86_64::*;

use self::wide::feed_wide;
use crate::error::{CUT, LEFT_OVER};
use crate::gaps::sinks::{Search, Select, Sink, Store, Sum};
use crate::gaps::{Walk, bytes};
use crate::stream_vbyte::StreamWalk;
use crate::varint_gb::GbWalk;
use crate::{Block, Buffer, Found, Level, Result};

/// The number of bytes of the four gaps under each control byte.
#[allow(clippy::cast_possible_truncation)]
#[allow(clippy::indexing_slicing, reason = "tables of 256 entries by a byte")]
static LENGTHS: [u8; 256] = {
    let mut lengths = [0; 256];
    let mut control = 0;
    while control < 256 {
        lengths[control] =
            4 + (control & 3) as u8 + (control >> 2 & 3) as u8 + (control >> 4 & 3) as u8 + (control >> 6) as u8;
        control += 1;
    }
    lengths
};

/// For each control byte, the source of each byte of the vector. 0x80 gives a zero.
#[allow(clippy::indexing_slicing, reason = "tables of 256 entries by a byte")]
static SHUFFLES: [[u8; 16]; 256] = {
    let mut shuffles = [[0x80; 16]; 256];
    let mut control = 0;
    while control < 256 {
        let (mut from, mut gap) = (0, 0);
        while gap < 4 {
            let len = (control >> (2 * gap) & 3) + 1;
            let mut byte = 0;
            while byte < len {
                shuffles[control][4 * gap + byte] = from;
                from += 1;
                byte += 1;
            }
            gap += 1;
        }
        control += 1;
    }
    shuffles
};

/// The position of a group in a body, and the last key before it. In StreamVByte the control bytes come before all
/// groups.
#[derive(Clone, Copy)]
struct Start {
    gap: usize,
    at: usize,
    key: u32,
}

/// Feeds every key to `sink`, from `start` on.
///
/// # Safety
/// The machine must have SSE4.2.
#[inline(always)]
unsafe fn feed<const STREAM: bool>(body: &[u8], gaps: usize, start: Start, sink: &mut impl Sink) -> Result<()> {
    if STREAM && body.len() < gaps.div_ceil(4) {
        return Err(CUT);
    }
    // SAFETY: guaranteed by the caller. A whole group is read from the body if 17 bytes can be read. The last groups
    // are read from a copy with 17 zeros after it.
    let done = unsafe {
        match groups::<STREAM>(body, body, gaps, start, sink) {
            Some(more) => {
                let mut copy = [0u8; 48];
                let left = body.get(more.at.min(body.len())..).unwrap_or_default();
                if let (Some(to), 0..=16) = (copy.get_mut(..left.len()), left.len()) {
                    to.copy_from_slice(left);
                    let data = copy.get(..left.len() + 17).unwrap_or_default();
                    let end = groups::<STREAM>(body, data, gaps, Start { at: 0, ..more }, sink);
                    end.map(|end| Start { at: more.at + end.at, ..end })
                } else {
                    Some(more)
                }
            }
            None => None,
        }
    };
    match done {
        None => Ok(()),
        Some(Start { gap, at, key }) if STREAM => rest(StreamWalk::<u32>::resume(body, gap, at), gaps - gap, key, sink),
        Some(Start { gap, at, key }) => rest(GbWalk::<u32>::resume(body, gaps, gap, at), gaps - gap, key, sink),
    }
}

/// Feeds whole groups as long as `data` has 17 bytes for the next one. Returns the position after them, or `None` if
/// `sink` has stopped. The control bytes of StreamVByte are read from `body`, gaps from `data`.
///
/// # Safety
/// The machine must have SSE4.2. For StreamVByte, `body` has all control bytes.
#[allow(clippy::indexing_slicing, reason = "tables of 256 entries by a byte")]
#[inline(always)]
unsafe fn groups<const STREAM: bool>(
    body: &[u8],
    data: &[u8],
    gaps: usize,
    start: Start,
    sink: &mut impl Sink,
) -> Option<Start> {
    let Start { mut gap, mut at, key } = start;
    // SAFETY: guaranteed by the caller; 17 bytes are read only if `data` has them.
    unsafe {
        let one = _mm_set1_epi32(1);
        let mut before = _mm_set1_epi32(key as i32);
        // Most groups have the same control byte as the group before. With the comparison, the processor can predict
        // the position of the next group and need not wait for this one.
        let (mut known, mut len) = (0, 4);
        let mut shuffle = _mm_loadu_si128(SHUFFLES[0].as_ptr().cast());
        while gap + 4 <= gaps && at + 17 <= data.len() {
            let from = if STREAM { at } else { at + 1 };
            let control = if STREAM { *body.as_ptr().add(gap / 4) } else { *data.as_ptr().add(at) };
            if control != known {
                known = control;
                len = usize::from(LENGTHS[usize::from(control)]);
                shuffle = _mm_loadu_si128(SHUFFLES[usize::from(control)].as_ptr().cast());
            }
            let unpacked = _mm_shuffle_epi8(_mm_loadu_si128(data.as_ptr().add(from).cast()), shuffle);
            let steps = _mm_add_epi32(unpacked, one);
            let pairs = _mm_add_epi32(steps, _mm_slli_si128::<4>(steps));
            let keys = _mm_add_epi32(_mm_add_epi32(pairs, _mm_slli_si128::<8>(pairs)), before);
            if sink.four(keys) {
                return None;
            }
            before = _mm_shuffle_epi32::<0xFF>(keys);
            at = from + len;
            gap += 4;
        }
        Some(Start { gap, at, key: _mm_cvtsi128_si32(before) as u32 })
    }
}

#[allow(clippy::cast_possible_truncation)]
fn rest(mut walk: impl Walk, gaps: usize, mut key: u32, sink: &mut impl Sink) -> Result<()> {
    for _ in 0..gaps {
        key = key.wrapping_add(walk.step()? as u32).wrapping_add(1);
        if sink.one(key) {
            return Ok(());
        }
    }
    if walk.at_end() { Ok(()) } else { Err(LEFT_OVER) }
}

/// Skips groups of VarInt-GB whose gaps are all of one byte, sixteen gaps at a time, while the key stays below
/// `sought`. Their control bytes are zero, so a sum of all bytes is the sum of the gaps.
///
/// # Safety
/// The machine must have SSE4.2.
#[inline(always)]
unsafe fn skip_small(body: &[u8], gaps: usize, first: u32, sought: u32) -> Start {
    let mut start = Start { gap: 0, at: 0, key: first };
    let mut left = sought.wrapping_sub(first);
    while start.gap + 16 <= gaps && start.at + 20 <= body.len() {
        // SAFETY: 20 bytes can be read.
        let (controls, sum) = unsafe {
            let from = body.as_ptr().add(start.at);
            let low = _mm_loadu_si128(from.cast());
            let high = _mm_cvtsi32_si128(from.add(16).cast::<i32>().read_unaligned());
            let zero = _mm_setzero_si128();
            let sums = _mm_add_epi64(_mm_sad_epu8(low, zero), _mm_sad_epu8(high, zero));
            let sum = _mm_cvtsi128_si32(sums) as u32 + _mm_extract_epi16::<4>(sums) as u32;
            (_mm_movemask_epi8(_mm_cmpeq_epi8(low, zero)) as u32, sum + 16)
        };
        // The control bytes are at positions 0, 5, 10 and 15.
        if controls & 0x8421 != 0x8421 || sum >= left {
            break;
        }
        left -= sum;
        start = Start { gap: start.gap + 16, at: start.at + 20, key: start.key };
    }
    start.key = sought.wrapping_sub(left);
    start
}

#[inline(always)]
fn begin<const STREAM: bool>(block: &Block<u32>) -> (usize, Start) {
    let gaps = usize::from(block.count) - 1;
    (gaps, Start { gap: 0, at: if STREAM { gaps.div_ceil(4) } else { 0 }, key: block.first })
}

/// The operations of one level. They feed their sinks with `$feed`.
macro_rules! operations {
    ($module:ident, $feed:ident, $level:ident) => {
        mod $module {
            use super::*;

            compiled_for! { $level,
                #[inline]
                pub(super) unsafe fn decode<const STREAM: bool>(
                    block: &Block<u32>,
                    body: &[u8],
                    out: &mut Buffer<u32>,
                ) -> Result<()> {
                    let (gaps, start) = begin::<STREAM>(block);
                    // SAFETY: guaranteed by the caller.
                    unsafe { $feed::<STREAM>(body, gaps, start, &mut Store::new(block, out)?) }
                }

                #[inline]
                pub(super) unsafe fn search<const STREAM: bool>(
                    block: &Block<u32>,
                    body: &[u8],
                    sought: u32,
                ) -> Result<Found> {
                    let (gaps, mut start) = begin::<STREAM>(block);
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        if !STREAM {
                            start = skip_small(body, gaps, block.first, sought);
                        }
                        let mut sink = Search::new(sought, start.gap + 1);
                        $feed::<STREAM>(body, gaps, start, &mut sink)?;
                        sink.found()
                    }
                }

                #[inline]
                pub(super) unsafe fn select<const STREAM: bool>(
                    block: &Block<u32>,
                    body: &[u8],
                    index: usize,
                ) -> Result<u32> {
                    let (gaps, start) = begin::<STREAM>(block);
                    let mut sink = Select::new(index);
                    // SAFETY: guaranteed by the caller.
                    unsafe { $feed::<STREAM>(body, gaps, start, &mut sink) }.map(|()| sink.key())
                }

                #[inline]
                pub(super) unsafe fn sum<const STREAM: bool>(block: &Block<u32>, body: &[u8]) -> Result<u128> {
                    let (gaps, start) = begin::<STREAM>(block);
                    let mut sink = Sum::new(block.first);
                    // SAFETY: guaranteed by the caller.
                    unsafe { $feed::<STREAM>(body, gaps, start, &mut sink) }.map(|()| sink.total())
                }
            }
        }
    };
}

operations!(sse4, feed, Sse4);
operations!(avx512, feed_wide, Avx512);

/// The functions that the codecs call. They return `None` below SSE4. `STREAM`: StreamVByte, otherwise VarInt-GB.
pub(super) fn decode<const STREAM: bool>(
    level: Level,
    block: &Block<u32>,
    body: &[u8],
    out: &mut Buffer<u32>,
) -> Option<Result<()>> {
    // SAFETY: this machine has the level, and every level but scalar has SSE4.2.
    unsafe {
        match level {
            Level::Scalar => None,
            Level::Avx512 | Level::Vbmi => Some(avx512::decode::<STREAM>(block, body, out)),
            _ => Some(sse4::decode::<STREAM>(block, body, out)),
        }
    }
}

/// Searches for `sought`, which is greater than the first key. The caller must be compiled for the level.
///
/// # Safety
/// The machine must have the level, which is SSE4 or higher.
#[inline(always)]
pub(super) unsafe fn search<const STREAM: bool>(
    level: Level,
    block: &Block<u32>,
    body: &[u8],
    sought: u32,
) -> Result<Found> {
    let gaps = usize::from(block.count) - 1;
    let of_bytes = body.len() == (5 * gaps + 3) >> 2;
    // SAFETY: guaranteed by the caller.
    unsafe {
        match level {
            Level::Vbmi if of_bytes && STREAM => {
                bytes::search::<false>(block, body.get(body.len() - gaps..).unwrap_or_default(), sought)
            }
            Level::Vbmi if of_bytes => bytes::search::<true>(block, body, sought),
            Level::Avx512 | Level::Vbmi => avx512::search::<STREAM>(block, body, sought),
            _ => sse4::search::<STREAM>(block, body, sought),
        }
    }
}

/// The key at `index`, which is at least 1.
pub(super) fn select<const STREAM: bool>(
    level: Level,
    block: &Block<u32>,
    body: &[u8],
    index: usize,
) -> Option<Result<u32>> {
    // SAFETY: this machine has the level, and every level but scalar has SSE4.2.
    unsafe {
        match level {
            Level::Scalar => None,
            Level::Avx512 | Level::Vbmi => Some(avx512::select::<STREAM>(block, body, index)),
            _ => Some(sse4::select::<STREAM>(block, body, index)),
        }
    }
}

/// The sum of all keys.
pub(super) fn sum<const STREAM: bool>(level: Level, block: &Block<u32>, body: &[u8]) -> Option<Result<u128>> {
    // SAFETY: this machine has the level, and every level but scalar has SSE4.2.
    unsafe {
        match level {
            Level::Scalar => None,
            Level::Avx512 | Level::Vbmi => Some(avx512::sum::<STREAM>(block, body)),
            _ => Some(sse4::sum::<STREAM>(block, body)),
        }
    }
}

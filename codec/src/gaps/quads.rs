//! Vector kernels for VarInt-GB and StreamVByte over `u32` keys: a control byte picks the shuffle that spreads four
//! gaps over a 128-bit vector. No other codec belongs here.
//!
//! A kernel takes whole groups as long as 17 bytes can be read, the last of them from a padded copy; the walk of the
//! codec itself takes the rest and judges where the body ends.
#![allow(clippy::indexing_slicing, reason = "tables of 256 entries by a byte")]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

mod wide;

use core::arch::x86_64::*;

use self::wide::feed_wide;
use crate::error::{CUT, LEFT_OVER};
use crate::gaps::sinks::{Search, Select, Sink, Store, Sum};
use crate::gaps::{Walk, bytes};
use crate::stream_vbyte::StreamWalk;
use crate::varint_gb::GbWalk;
use crate::{Block, Buffer, Found, Level, Result};

/// Bytes of the four gaps under each control byte.
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

/// For each control byte, which byte goes where; 0x80 brings in a zero.
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

/// Where the groups of a body start: StreamVByte's control bytes come first.
#[derive(Clone, Copy)]
struct Start {
    gap: usize,
    at: usize,
    key: u32,
}

/// Feeds every key to `sink`, from `start` on.
///
/// # Safety
/// SSE4.2.
#[inline(always)]
unsafe fn feed<const STREAM: bool>(body: &[u8], gaps: usize, start: Start, sink: &mut impl Sink) -> Result<()> {
    if STREAM && body.len() < gaps.div_ceil(4) {
        return Err(CUT);
    }
    // SAFETY: the caller's. Whole groups are read from the body while it has 17 bytes for them, the last from a copy with
    // 17 zeros after it.
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

/// Feeds whole groups as long as `data` has 17 bytes for the next; gives where it ended, `None` if `sink` stopped it.
/// StreamVByte's control bytes are read from `body`, gaps from `data`.
///
/// # Safety
/// SSE4.2; for StreamVByte, `body` has all its control bytes.
#[inline(always)]
unsafe fn groups<const STREAM: bool>(
    body: &[u8],
    data: &[u8],
    gaps: usize,
    start: Start,
    sink: &mut impl Sink,
) -> Option<Start> {
    let Start { mut gap, mut at, key } = start;
    // SAFETY: the caller's; 17 bytes are read only where `data` has them.
    unsafe {
        let one = _mm_set1_epi32(1);
        let mut before = _mm_set1_epi32(key as i32);
        // Most groups have their predecessor's control byte: comparing them lets the processor guess the next group's
        // place instead of waiting for this one's.
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
            let spread = _mm_shuffle_epi8(_mm_loadu_si128(data.as_ptr().add(from).cast()), shuffle);
            let steps = _mm_add_epi32(spread, one);
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

fn rest(mut walk: impl Walk, gaps: usize, mut key: u32, sink: &mut impl Sink) -> Result<()> {
    for _ in 0..gaps {
        key = key.wrapping_add(walk.step()? as u32).wrapping_add(1);
        if sink.one(key) {
            return Ok(());
        }
    }
    if walk.at_end() { Ok(()) } else { Err(LEFT_OVER) }
}

/// Steps over groups of VarInt-GB whose gaps are all of one byte, sixteen gaps at a time, while their sum stays below
/// `sought`. Their control bytes are zero, so that a sum of bytes need not leave them out.
///
/// # Safety
/// SSE4.2.
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
        // Positions 0, 5, 10 and 15.
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

/// The operations of one level, which feeds its sinks by `$feed`.
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
                    // SAFETY: the caller's.
                    unsafe { $feed::<STREAM>(body, gaps, start, &mut Store::new(block, out)?) }
                }

                #[inline]
                pub(super) unsafe fn search<const STREAM: bool>(
                    block: &Block<u32>,
                    body: &[u8],
                    sought: u32,
                ) -> Result<Found> {
                    let (gaps, mut start) = begin::<STREAM>(block);
                    // SAFETY: the caller's.
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
                    // SAFETY: the caller's.
                    unsafe { $feed::<STREAM>(body, gaps, start, &mut sink) }.map(|()| sink.key())
                }

                #[inline]
                pub(super) unsafe fn sum<const STREAM: bool>(block: &Block<u32>, body: &[u8]) -> Result<u128> {
                    let (gaps, start) = begin::<STREAM>(block);
                    let mut sink = Sum::new(block.first);
                    // SAFETY: the caller's.
                    unsafe { $feed::<STREAM>(body, gaps, start, &mut sink) }.map(|()| sink.total())
                }
            }
        }
    };
}

operations!(sse4, feed, Sse4);
operations!(avx512, feed_wide, Avx512);

/// The functions that the codecs call; `None` below SSE4. `STREAM`: StreamVByte, else VarInt-GB.
pub(super) fn decode<const STREAM: bool>(
    level: Level,
    block: &Block<u32>,
    body: &[u8],
    out: &mut Buffer<u32>,
) -> Option<Result<()>> {
    // SAFETY: the level is one that this machine has, and every level but scalar has SSE4.2.
    unsafe {
        match level {
            Level::Scalar => None,
            Level::Avx512 | Level::Vbmi => Some(avx512::decode::<STREAM>(block, body, out)),
            _ => Some(sse4::decode::<STREAM>(block, body, out)),
        }
    }
}

/// Where `sought` belongs; above the first key. To be compiled inside a function of the level.
///
/// # Safety
/// The machine has the level, which is not below SSE4.
#[inline(always)]
pub(super) unsafe fn search<const STREAM: bool>(
    level: Level,
    block: &Block<u32>,
    body: &[u8],
    sought: u32,
) -> Result<Found> {
    let gaps = usize::from(block.count) - 1;
    let of_bytes = body.len() == (5 * gaps + 3) >> 2;
    // SAFETY: the caller's.
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

/// The key at `index`, at least 1.
pub(super) fn select<const STREAM: bool>(
    level: Level,
    block: &Block<u32>,
    body: &[u8],
    index: usize,
) -> Option<Result<u32>> {
    // SAFETY: the level is one that this machine has, and every level but scalar has SSE4.2.
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
    // SAFETY: the level is one that this machine has, and every level but scalar has SSE4.2.
    unsafe {
        match level {
            Level::Scalar => None,
            Level::Avx512 | Level::Vbmi => Some(avx512::sum::<STREAM>(block, body)),
            _ => Some(sse4::sum::<STREAM>(block, body)),
        }
    }
}

//! Decodes Masked VByte blocks in which most gaps have more than two bytes. The top bits of 64 bytes at once give the
//! ends of the gaps, and each gap then needs one load and one `pext`. The positions of the gaps follow from the mask
//! alone, so no gap depends on the gap before it.

use core::arch::x86_64::*;

use crate::bits::range_mut;
use crate::error::{CUT, LEFT_OVER};
use crate::{Block, Buffer, Error, Result};

/// The bits of a gap in its bytes, by the number of its bytes.
static BITS: [u64; 73] = {
    let mut bits = [0; 73];
    bits[1] = 0x7F;
    bits[2] = 0x7F7F;
    bits[3] = 0x7F_7F7F;
    bits[4] = 0x7F7F_7F7F;
    bits
};

/// The number of bytes before a chunk in which a gap may begin.
const BEFORE: usize = 8;

/// The number of bytes that are read from the start of a chunk on.
const READ: usize = 64 + 9;

/// The prefix sums of the gaps.
struct Sums<'a> {
    /// The sums, one for each gap.
    to: &'a mut [u32],
    count: usize,
    sum: u32,
    /// Of the chunk before: its top bits, and those of them that follow another top bit.
    more: u64,
    pairs: u64,
    /// The end of the last gap, relative to the start of the chunk.
    end: isize,
}

/// The reason why a chunk was not decoded.
enum Refused {
    /// A gap has five bytes or more. This is rare, and another kernel decodes the block.
    Long,
    Error(Error),
}

impl Sums<'_> {
    /// Adds the gaps that end in the first `valid` bytes of a chunk.
    ///
    /// # Safety
    /// The machine must have AVX-512. `READ` bytes from `chunk` on are readable, and if it is not the first chunk,
    /// `BEFORE` bytes before it.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    unsafe fn chunk(&mut self, chunk: *const u8, valid: usize) -> core::result::Result<(), Refused> {
        // SAFETY: guaranteed by the caller. No gap here is longer than four bytes, so none begins earlier than
        // `BEFORE`. After the last end, `tzcnt` gives 64, and a load from there is still inside `READ`. `to` has room
        // for the gaps, which are counted before.
        unsafe {
            let valid = _bzhi_u64(u64::MAX, valid as u32);
            let more = _mm512_movepi8_mask(_mm512_loadu_si512(chunk.cast())) & valid;
            let pairs = more & (more << 1 | self.more >> 63);
            if pairs & (pairs << 2 | self.pairs >> 62) != 0 {
                return Err(Refused::Long);
            }
            (self.more, self.pairs) = (more, pairs);
            let mut ends = !more & valid;
            let (last, n) = (63 - ends.leading_zeros() as isize, ends.count_ones() as usize);
            if self.count + n > self.to.len() {
                return Err(Refused::Error(LEFT_OVER));
            }
            let to = self.to.as_mut_ptr().add(self.count);
            let (mut sum, mut end) = (self.sum, self.end);
            let mut one = |place: usize| {
                let next = _tzcnt_u64(ends) as isize;
                ends = _blsr_u64(ends);
                let bytes = chunk.offset(end + 1).cast::<u64>().read_unaligned();
                sum = sum.wrapping_add(_pext_u64(bytes, *BITS.as_ptr().offset(next - end)) as u32);
                to.add(place).write(sum);
                end = next;
            };
            // Four at a time. The last four may write too many sums, which the next chunk overwrites.
            if self.count + n + 4 <= self.to.len() {
                for place in (0..n).step_by(4) {
                    one(place);
                    one(place + 1);
                    one(place + 2);
                    one(place + 3);
                }
            } else {
                (0..n).for_each(one);
            }
            if n > 0 {
                (self.sum, self.end) = (to.add(n - 1).read(), last);
            }
            (self.count, self.end) = (self.count + n, self.end - 64);
            Ok(())
        }
    }
}

/// Decodes all keys. Returns `None` if a gap has five bytes or more.
///
/// # Safety
/// The machine must have AVX-512.
#[inline(always)]
pub(super) unsafe fn decode(block: &Block<u32>, body: &[u8], out: &mut Buffer<u32>) -> Option<Result<()>> {
    let (first, rest) = out.split_first_mut()?;
    *first = block.first;
    let to = rest.get_mut(..usize::from(block.count) - 1)?;
    // SAFETY: guaranteed by the caller.
    match unsafe { sums(body, Sums { to, count: 0, sum: 0, more: 0, pairs: 0, end: -1 }) } {
        Ok(()) => {}
        Err(Refused::Long) => return None,
        Err(Refused::Error(error)) => return Some(Err(error)),
    }
    // The distance between two keys is the gap plus one. With hostile gaps, keys may be beyond the largest key.
    let mut before = block.first;
    for key in to {
        before = before.wrapping_add(1);
        *key = key.wrapping_add(before);
    }
    Some(Ok(()))
}

/// Computes the prefix sums of the gaps in `body`.
///
/// # Safety
/// The machine must have AVX-512.
#[inline(always)]
unsafe fn sums(body: &[u8], mut sums: Sums<'_>) -> core::result::Result<(), Refused> {
    let mut at = 0;
    // SAFETY: guaranteed by the caller; `READ` bytes can be read, and 64 bytes before every chunk but the first.
    unsafe {
        while at + READ <= body.len() {
            sums.chunk(body.as_ptr().add(at), 64)?;
            at += 64;
        }
    }
    // The rest is copied, with the bytes before it and zeros after it.
    let mut copy = [0; BEFORE + 2 * 64 + READ];
    let from = at.saturating_sub(BEFORE);
    let rest = body.get(from..).unwrap_or_default();
    range_mut(&mut copy, BEFORE - (at - from), rest.len()).copy_from_slice(rest);
    let (mut left, mut place) = (body.len() - at, BEFORE);
    while left > 0 {
        // SAFETY: guaranteed by the caller; at most `READ - 1` bytes are left, so there are two chunks at most.
        unsafe { sums.chunk(copy.as_ptr().add(place), left.min(64))? };
        left = left.saturating_sub(64);
        place += 64;
    }
    let complete = body.last().is_none_or(|&last| last < 0x80);
    if complete && sums.count == sums.to.len() { Ok(()) } else { Err(Refused::Error(CUT)) }
}

//! The VBMI kernels of Masked VByte: sixteen gaps at a time, of one to four bytes each.
//!
//! A compress of byte numbers by the mask of the last bytes of gaps gives the beginnings of the gaps, and a permutation
//! of bytes then moves the four bytes from each beginning to a lane. The position of the next gaps follows from the
//! mask alone, and no branch depends on the length of a gap. If a gap is longer, the result is `None`, and the other
//! kernels decode the block.

use core::arch::x86_64::*;

use crate::avx512::keys_of_gaps;
use crate::bits::{must_fit, range_mut};
use crate::error::{CUT, LEFT_OVER};
use crate::gaps::sinks::{WideSink, first_lanes};
use crate::{Buffer, MAX_BLOCK, Result};

/// For each byte, the number of the next byte. The last of 64 bytes has no next byte.
#[allow(clippy::cast_possible_truncation)]
#[allow(clippy::indexing_slicing, reason = "tables of 64 entries, made when compiling")]
static NEXT: [u8; 64] = {
    let mut next = [0; 64];
    let mut byte = 0;
    while byte < 63 {
        next[byte] = byte as u8 + 1;
        byte += 1;
    }
    next
};

/// For each byte of sixteen lanes: the number of the compressed byte with the beginning of the lane's gap, which is the
/// one of the gap before. For the first gap it is byte 63, which is always zero.
#[allow(clippy::cast_possible_truncation)]
#[allow(clippy::indexing_slicing, reason = "tables of 64 entries, made when compiling")]
static BEFORE: [u8; 64] = {
    let mut before = [63; 64];
    let mut byte = 4;
    while byte < 64 {
        before[byte] = byte as u8 / 4 - 1;
        byte += 1;
    }
    before
};

/// Writes the keys. It has no branch that could end the loop over whole vectors, so that the compiler does not reorder
/// the loop. [`Keys::finish`] checks that all keys had room.
pub(super) struct Keys<'a> {
    to: &'a mut Buffer<u32>,
    at: usize,
}

impl<'a> Keys<'a> {
    /// Writes the first key.
    #[inline(always)]
    pub(super) fn new(first: u32, to: &'a mut Buffer<u32>) -> Keys<'a> {
        to[0] = first;
        Keys { to, at: 1 }
    }

    #[inline(always)]
    pub(super) fn finish(self) {
        must_fit(self.at <= MAX_BLOCK);
    }
}

// SAFETY: AVX-512 only. All positions that are written are inside the buffer.
unsafe impl WideSink for Keys<'_> {
    #[inline(always)]
    unsafe fn upto_sixteen(&mut self, keys: __m512i, count: usize) -> bool {
        // SAFETY: there is room for as many keys as are written.
        unsafe {
            if count == 16 {
                _mm512_storeu_si512(self.to.as_mut_ptr().add(self.at.min(MAX_BLOCK - 16)).cast(), keys);
            } else {
                let to = range_mut(self.to, self.at, count);
                _mm512_mask_storeu_epi32(to.as_mut_ptr().cast(), first_lanes(count), keys);
            }
        }
        self.at += count;
        false
    }
}

/// Up to 64 bytes from the beginning of a gap on, and zeros after the end of the body.
struct ByteWindow {
    bytes: __m512i,
    /// The last bytes of gaps. The zeros after the body also count as such.
    ends: u64,
    /// The beginnings of the second gap, the third, and so on.
    begins: __m512i,
}

impl ByteWindow {
    /// The bytes of `body` from `at` on. `at` may be after its end.
    ///
    /// # Safety
    /// The machine must have VBMI.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    unsafe fn new(body: &[u8], at: usize) -> ByteWindow {
        // SAFETY: guaranteed by the caller; 64 bytes can be read, or the mask keeps the load inside the body.
        unsafe {
            let bytes = if at + 64 <= body.len() {
                _mm512_loadu_si512(body.as_ptr().add(at).cast())
            } else {
                // If no byte can be read, the pointer is to the end of the body: masked loads from unmapped memory are
                // slow.
                let rest = body.get(at.min(body.len())..).unwrap_or_default();
                _mm512_maskz_loadu_epi8(_bzhi_u64(u64::MAX, rest.len() as u32), rest.as_ptr().cast())
            };
            let ends = _mm512_testn_epi8_mask(bytes, _mm512_set1_epi8(i8::MIN));
            let begins = _mm512_maskz_compress_epi8(ends, _mm512_loadu_si512(NEXT.as_ptr().cast()));
            ByteWindow { bytes, ends, begins }
        }
    }

    /// The number of bytes of the first `count` gaps, 1 to 16. If there are fewer gaps, it is 65.
    ///
    /// # Safety
    /// The machine must have VBMI.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    unsafe fn len_of(&self, count: usize) -> usize {
        // SAFETY: guaranteed by the caller.
        unsafe { _tzcnt_u64(_pdep_u64(1 << (count - 1), self.ends)) as usize + 1 }
    }

    /// The first sixteen gaps, and a second vector that has a zero in the lane of a gap with more than four bytes. The
    /// first gap that is too long begins at byte 60 or before, so its own bytes show this.
    ///
    /// # Safety
    /// The machine must have VBMI.
    #[inline(always)]
    unsafe fn gaps(&self) -> (__m512i, __m512i) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let begins = _mm512_permutexvar_epi8(_mm512_loadu_si512(BEFORE.as_ptr().cast()), self.begins);
            let places = _mm512_add_epi8(begins, _mm512_set1_epi32(0x0302_0100));
            let four = _mm512_permutexvar_epi8(places, self.bytes);
            // Adding one carries through all bytes of the gap up to its last byte. So the bits that differ are those of
            // the gap.
            let full = _mm512_or_si512(four, _mm512_set1_epi8(0x7F));
            let carried = _mm512_add_epi32(full, _mm512_set1_epi32(1));
            let low = _mm512_and_si512(four, _mm512_set1_epi8(0x7F));
            let own = _mm512_ternarylogic_epi32::<0x60>(low, full, carried);
            // Joins bytes to 14 bits, and those to 28 bits.
            let pairs = _mm512_maddubs_epi16(_mm512_set1_epi16(0x8001_u16 as i16), own);
            (_mm512_madd_epi16(pairs, _mm512_set1_epi32(0x4000_0001)), carried)
        }
    }
}

/// Feeds every key to `sink`, which must not stop. Returns `None` if a gap has five bytes or more; then the keys have
/// no meaning.
///
/// # Safety
/// The machine must have VBMI.
#[inline(always)]
pub(super) unsafe fn feed(body: &[u8], gaps: usize, first: u32, sink: &mut impl WideSink) -> Option<Result<()>> {
    if body.len() == gaps {
        // SAFETY: guaranteed by the caller.
        return Some(unsafe { feed_bytes(body, first, sink) });
    }
    let (mut left, mut at) = (gaps, 0);
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut before = _mm512_set1_epi32(first as i32);
        let mut least = _mm512_set1_epi32(-1);
        let mut window = ByteWindow::new(body, 0);
        while left >= 16 {
            // The next window is loaded first. After all the work on this window, it would be loaded too late.
            at += window.len_of(16);
            let next = ByteWindow::new(body, at);
            let (gaps, carried) = window.gaps();
            let (keys, last) = keys_of_gaps(gaps, before);
            least = _mm512_min_epu32(least, carried);
            sink.upto_sixteen(keys, 16);
            (window, before) = (next, last);
            left -= 16;
        }
        if left > 0 {
            at += window.len_of(left);
            let (gaps, carried) = window.gaps();
            let (keys, _) = keys_of_gaps(gaps, before);
            least = _mm512_min_epu32(least, carried);
            sink.upto_sixteen(keys, left);
        }
        if _mm512_testn_epi32_mask(least, least) != 0 {
            return None;
        }
    }
    Some(match at.cmp(&body.len()) {
        core::cmp::Ordering::Less => Err(LEFT_OVER),
        core::cmp::Ordering::Equal => Ok(()),
        core::cmp::Ordering::Greater => Err(CUT),
    })
}

/// Feeds the keys of a body with gaps of one byte to `sink`, which must not stop.
///
/// # Safety
/// The machine must have AVX-512.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
unsafe fn feed_bytes(body: &[u8], first: u32, sink: &mut impl WideSink) -> Result<()> {
    // SAFETY: guaranteed by the caller; the mask keeps the load inside the piece.
    unsafe {
        let mut before = _mm512_set1_epi32(first as i32);
        for piece in body.chunks(16) {
            let valid = _bzhi_u32(u32::MAX, piece.len() as u32) as u16;
            let bytes = _mm_maskz_loadu_epi8(valid, piece.as_ptr().cast());
            // With a longer gap, there are fewer gaps than the count says.
            if _mm_movepi8_mask(bytes) != 0 {
                return Err(CUT);
            }
            let (keys, last) = keys_of_gaps(_mm512_cvtepu8_epi32(bytes), before);
            before = last;
            sink.upto_sixteen(keys, piece.len());
        }
    }
    Ok(())
}

//! The VBMI kernels of Masked VByte: sixteen gaps at a time, of one to four bytes each.
//!
//! A compress of byte numbers by the mask of gaps' last bytes says where the gaps begin, and a permutation of bytes then
//! brings the four bytes from each beginning on into a lane. How far to go on is known from the mask alone, and nothing
//! branches on gaps' lengths. A longer gap is for the other kernels: `None`.
#![allow(clippy::indexing_slicing, reason = "tables of 64 entries, made when compiling")]

use core::arch::x86_64::*;

use crate::avx512::keys_of_gaps;
use crate::error::{CUT, LEFT_OVER};
use crate::gaps::sinks::{WideSink, first_lanes};
use crate::{Buffer, MAX_BLOCK, Result};

/// For each byte, the number of the next; the last byte of 64 has none.
static NEXT: [u8; 64] = {
    let mut next = [0; 64];
    let mut byte = 0;
    while byte < 63 {
        next[byte] = byte as u8 + 1;
        byte += 1;
    }
    next
};

/// For each byte of sixteen lanes, which of the compressed bytes says where the lane's gap begins: the one of the gap
/// before. For the first gap, byte 63, which is zero whatever was compressed.
static BEFORE: [u8; 64] = {
    let mut before = [63; 64];
    let mut byte = 4;
    while byte < 64 {
        before[byte] = byte as u8 / 4 - 1;
        byte += 1;
    }
    before
};

/// Writes the keys. Without a branch that could end the loop, so that the compiler leaves its order alone.
pub(super) struct Keys<'a> {
    to: &'a mut Buffer<u32>,
    at: usize,
}

impl<'a> Keys<'a> {
    /// Writes the first key at once.
    #[inline(always)]
    pub(super) fn new(first: u32, to: &'a mut Buffer<u32>) -> Keys<'a> {
        to[0] = first;
        Keys { to, at: 1 }
    }
}

// SAFETY: AVX-512; no place that is written is beyond the buffer.
unsafe impl WideSink for Keys<'_> {
    #[inline(always)]
    unsafe fn upto_sixteen(&mut self, keys: __m512i, count: usize) -> bool {
        // SAFETY: as many keys of room as are written.
        unsafe {
            if count == 16 {
                _mm512_storeu_si512(self.to.as_mut_ptr().add(self.at.min(MAX_BLOCK - 16)).cast(), keys);
            } else if let Some(to) = self.to.get_mut(self.at..self.at + count) {
                _mm512_mask_storeu_epi32(to.as_mut_ptr().cast(), first_lanes(count), keys);
            }
        }
        self.at += count;
        false
    }
}

/// Up to 64 bytes from a gap's beginning on, and zeros.
struct ByteWindow {
    bytes: __m512i,
    /// The bytes that end a gap, as all zeros after the body seem to.
    ends: u64,
    /// Where the second gap begins, the third, and so on.
    begins: __m512i,
}

impl ByteWindow {
    /// The bytes of `body` from `at` on, which may be after it.
    ///
    /// # Safety
    /// VBMI.
    #[inline(always)]
    unsafe fn new(body: &[u8], at: usize) -> ByteWindow {
        // SAFETY: the caller's; 64 bytes are there, or the mask keeps the load inside the body.
        unsafe {
            let bytes = if at + 64 <= body.len() {
                _mm512_loadu_si512(body.as_ptr().add(at).cast())
            } else {
                // See `bytes.rs` on loads of no bytes.
                let rest = body.get(at.min(body.len())..).unwrap_or_default();
                _mm512_maskz_loadu_epi8(_bzhi_u64(u64::MAX, rest.len() as u32), rest.as_ptr().cast())
            };
            let ends = _mm512_testn_epi8_mask(bytes, _mm512_set1_epi8(i8::MIN));
            let begins = _mm512_maskz_compress_epi8(ends, _mm512_loadu_si512(NEXT.as_ptr().cast()));
            ByteWindow { bytes, ends, begins }
        }
    }

    /// The bytes of the first `count` gaps, 1 to 16; of more than there are, 65.
    ///
    /// # Safety
    /// VBMI.
    #[inline(always)]
    unsafe fn len_of(&self, count: usize) -> usize {
        // SAFETY: the caller's.
        unsafe { _tzcnt_u64(_pdep_u64(1 << (count - 1), self.ends)) as usize + 1 }
    }

    /// The first sixteen gaps, and in their lanes zero where one takes more than four bytes. The first that does begins at
    /// byte 60 at the latest, so that its own bytes show it.
    ///
    /// # Safety
    /// VBMI.
    #[inline(always)]
    unsafe fn gaps(&self) -> (__m512i, __m512i) {
        // SAFETY: the caller's.
        unsafe {
            let begins = _mm512_permutexvar_epi8(_mm512_loadu_si512(BEFORE.as_ptr().cast()), self.begins);
            let places = _mm512_add_epi8(begins, _mm512_set1_epi32(0x0302_0100));
            let four = _mm512_permutexvar_epi8(places, self.bytes);
            // One more carries through the bytes that go on into the one that ends the gap: up to there bits differ.
            let full = _mm512_or_si512(four, _mm512_set1_epi8(0x7F));
            let carried = _mm512_add_epi32(full, _mm512_set1_epi32(1));
            let low = _mm512_and_si512(four, _mm512_set1_epi8(0x7F));
            let own = _mm512_ternarylogic_epi32::<0x60>(low, full, carried);
            // Bytes to 14 bits, those to 28.
            let pairs = _mm512_maddubs_epi16(_mm512_set1_epi16(0x8001_u16 as i16), own);
            (_mm512_madd_epi16(pairs, _mm512_set1_epi32(0x4000_0001)), carried)
        }
    }
}

/// Feeds every key to `sink`, which does not stop; `None`, and keys that mean nothing, if a gap takes five bytes or more.
///
/// # Safety
/// VBMI.
#[inline(always)]
pub(super) unsafe fn feed(body: &[u8], gaps: usize, first: u32, sink: &mut impl WideSink) -> Option<Result<()>> {
    if body.len() == gaps {
        // SAFETY: the caller's.
        return Some(unsafe { feed_bytes(body, first, sink) });
    }
    let (mut left, mut at) = (gaps, 0);
    // SAFETY: the caller's.
    unsafe {
        let mut before = _mm512_set1_epi32(first as i32);
        let mut least = _mm512_set1_epi32(-1);
        let mut window = ByteWindow::new(body, 0);
        while left >= 16 {
            // The next window comes first: behind all that waits for this one's bytes it would start late.
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

/// Feeds the keys of gaps of a byte each to `sink`, which does not stop.
///
/// # Safety
/// AVX-512.
#[inline(always)]
unsafe fn feed_bytes(body: &[u8], first: u32, sink: &mut impl WideSink) -> Result<()> {
    // SAFETY: the caller's; the mask keeps the load inside the piece.
    unsafe {
        let mut before = _mm512_set1_epi32(first as i32);
        for piece in body.chunks(16) {
            let valid = _bzhi_u32(u32::MAX, piece.len() as u32) as u16;
            let bytes = _mm_maskz_loadu_epi8(valid, piece.as_ptr().cast());
            // A longer gap leaves too few for the count.
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

//! The search of blocks whose gaps take a byte each, whatever the codec: as a block's length says when that is so, gaps
//! need not be walked over, and all of them are summed up side by side. No other blocks belong here.
//!
//! Gaps are taken in pieces of eight. The sums up to each piece's end, at most 256 times 256, say in which piece a key
//! belongs, and the sums in that piece where. Nothing branches on what is sought.
#![allow(clippy::indexing_slicing, reason = "tables by what is below their lengths")]
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]

use core::arch::x86_64::*;

use crate::error::ENDS_BELOW;
use crate::{Block, Found, Result};

/// Where each gap of sixteen whole groups of VarInt-GB lies: in the first 64 of their 80 bytes, or (64 and more) in the
/// last 64.
static GROUPED: [u8; 64] = {
    let mut places = [0; 64];
    let mut gap = 0;
    while gap < 64 {
        let at = gap / 4 * 5 + 1 + gap % 4;
        places[gap] = if at < 64 { at } else { at - 16 + 64 } as u8;
        gap += 1;
    }
    places
};

/// Where the gaps of a piece of VarInt-GB lie, by how many the piece has, a byte in two; 0x80 brings in a zero. A group
/// that is not whole has its control byte last.
static PIECES: [[u8; 16]; 9] = {
    let mut pieces = [[0x80; 16]; 9];
    let mut gaps = 0;
    while gaps <= 8 {
        let mut gap = 0;
        while gap < gaps {
            let whole = gap / 4 < gaps / 4;
            pieces[gaps][2 * gap] = (gap / 4 * 5 + gap % 4 + whole as usize) as u8;
            gap += 1;
        }
        gaps += 1;
    }
    pieces
};

/// 64 bytes of `body` from `at` on, zeros after its end.
///
/// # Safety
/// AVX-512; if `THERE`, the body has all of them.
#[inline(always)]
unsafe fn load<const THERE: bool>(body: &[u8], at: usize) -> __m512i {
    // SAFETY: the caller's; the mask keeps the load inside the body.
    unsafe {
        if THERE {
            return _mm512_loadu_si512(body.as_ptr().add(at).cast());
        }
        // Of no bytes at all those after the body's end: masked loads from where there is no memory take 40 ns.
        let rest = body.get(at.min(body.len())..).unwrap_or_default();
        let valid = _bzhi_u64(u64::MAX, rest.len().min(64) as u32);
        _mm512_maskz_loadu_epi8(valid, rest.as_ptr().cast())
    }
}

/// The sums of the eight pieces of 64 gaps.
///
/// # Safety
/// VBMI; if `FIRST` or `LAST`, the body has the first or last 64 of their bytes.
#[inline(always)]
unsafe fn eight_pieces<const WITH_CONTROLS: bool, const FIRST: bool, const LAST: bool>(
    body: &[u8],
    i: usize,
) -> __m512i {
    // SAFETY: the caller's.
    unsafe {
        let gaps = if WITH_CONTROLS {
            let (first, last) = (load::<FIRST>(body, 80 * i), load::<LAST>(body, 80 * i + 16));
            _mm512_permutex2var_epi8(first, _mm512_loadu_si512(GROUPED.as_ptr().cast()), last)
        } else {
            load::<LAST>(body, 64 * i)
        };
        _mm512_sad_epu8(gaps, _mm512_setzero_si512())
    }
}

/// The sums of all pieces: pieces 0 to 7 at every fourth place from 0 on, 8 to 15 from 1 on, and so on.
///
/// # Safety
/// VBMI.
#[inline(always)]
unsafe fn pieces<const WITH_CONTROLS: bool>(body: &[u8]) -> __m512i {
    // SAFETY: the caller's; the lengths are compared. Lanes are of 64 bits, and no sum in their quarters takes more than
    // 16.
    unsafe {
        let [a, b, c, d] = if body.len() >= if WITH_CONTROLS { 304 } else { 192 } {
            [
                eight_pieces::<WITH_CONTROLS, true, true>(body, 0),
                eight_pieces::<WITH_CONTROLS, true, true>(body, 1),
                eight_pieces::<WITH_CONTROLS, true, true>(body, 2),
                eight_pieces::<WITH_CONTROLS, true, false>(body, 3),
            ]
        } else {
            [
                eight_pieces::<WITH_CONTROLS, false, false>(body, 0),
                eight_pieces::<WITH_CONTROLS, false, false>(body, 1),
                eight_pieces::<WITH_CONTROLS, false, false>(body, 2),
                eight_pieces::<WITH_CONTROLS, false, false>(body, 3),
            ]
        };
        let low = _mm512_or_si512(a, _mm512_slli_epi64::<16>(b));
        _mm512_ternarylogic_epi64::<0xFE>(low, _mm512_slli_epi64::<32>(c), _mm512_slli_epi64::<48>(d))
    }
}

/// How far from the first key each piece begins, and how far the one after it.
///
/// # Safety
/// VBMI.
#[inline(always)]
unsafe fn distances<const WITH_CONTROLS: bool>(body: &[u8]) -> (__m512i, __m512i) {
    // SAFETY: the caller's.
    unsafe {
        // Each key is a step of one beyond its gap.
        let own = _mm512_add_epi16(pieces::<WITH_CONTROLS>(body), _mm512_set1_epi16(8));
        let zero = _mm512_setzero_si512();
        let two = _mm512_add_epi16(own, _mm512_alignr_epi64::<7>(own, zero));
        let four = _mm512_add_epi16(two, _mm512_alignr_epi64::<6>(two, zero));
        let eight = _mm512_add_epi16(four, _mm512_alignr_epi64::<4>(four, zero));
        // What all the pieces of the quarters before come to.
        let total = _mm512_slli_epi64::<16>(_mm512_permutexvar_epi64(_mm512_set1_epi64(7), eight));
        let totals = _mm512_add_epi16(total, _mm512_slli_epi64::<16>(total));
        let before = _mm512_add_epi16(totals, _mm512_slli_epi64::<32>(total));
        let ends = _mm512_add_epi16(eight, before);
        (_mm512_sub_epi16(ends, own), ends)
    }
}

/// The gaps of piece `n` in lanes of 16 bits; after the last, any.
///
/// # Safety
/// AVX-512.
#[inline(always)]
unsafe fn piece<const WITH_CONTROLS: bool>(body: &[u8], gaps: usize, n: usize) -> __m128i {
    let at = if WITH_CONTROLS { 10 * n } else { 8 * n };
    // SAFETY: the caller's; 16 bytes are there, or the mask keeps the load inside the body.
    unsafe {
        // Most pieces are not the last: to guess that is faster than to wait for a mask.
        let (bytes, places) = if at + 16 <= body.len() {
            let whole = _mm_setr_epi8(1, -1, 2, -1, 3, -1, 4, -1, 6, -1, 7, -1, 8, -1, 9, -1);
            (_mm_loadu_si128(body.as_ptr().add(at).cast()), whole)
        } else {
            let rest = body.get(at.min(body.len())..).unwrap_or_default();
            let valid = _bzhi_u32(u32::MAX, rest.len() as u32) as u16;
            let places = PIECES[gaps.saturating_sub(8 * n).min(8)].as_ptr();
            (_mm_maskz_loadu_epi8(valid, rest.as_ptr().cast()), _mm_loadu_si128(places.cast()))
        };
        if WITH_CONTROLS { _mm_shuffle_epi8(bytes, places) } else { _mm_cvtepu8_epi16(bytes) }
    }
}

/// Where `sought` belongs, above the first key. `body` is the gaps' bytes, in groups with their control bytes or alone.
///
/// # Safety
/// VBMI.
#[inline(always)]
pub(super) unsafe fn search<const WITH_CONTROLS: bool>(block: &Block<u32>, body: &[u8], sought: u32) -> Result<Found> {
    let gaps = usize::from(block.count) - 1;
    let Ok(left) = u16::try_from(sought.wrapping_sub(block.first)) else { return Err(ENDS_BELOW) };
    // SAFETY: the caller's.
    unsafe {
        let left = _mm512_set1_epi16(left as i16);
        let (begins, ends) = distances::<WITH_CONTROLS>(body);
        // A last piece with a group that is not whole is not summed up rightly: no piece is after it.
        let n = (_mm512_cmplt_epu16_mask(ends, left).count_ones() as usize).min(gaps / 8);
        // The permutation takes five bits: n / 8, and n % 8 above it.
        let begin = _mm512_permutexvar_epi16(_mm512_set1_epi16((4 * n + n / 8) as i16), begins);
        let left = _mm512_castsi512_si128(_mm512_sub_epi16(left, begin));
        let one = piece::<WITH_CONTROLS>(body, gaps, n);
        let two = _mm_add_epi16(one, _mm_slli_si128::<2>(one));
        let four = _mm_add_epi16(two, _mm_slli_si128::<4>(two));
        let eight = _mm_add_epi16(four, _mm_slli_si128::<8>(four));
        let keys = _mm_add_epi16(eight, _mm_setr_epi16(1, 2, 3, 4, 5, 6, 7, 8));
        let index = 1 + 8 * n + _mm_cmplt_epu16_mask(keys, left).count_ones() as usize;
        let exact = _mm_cmpeq_epi16_mask(keys, left) != 0;
        if index <= gaps { Ok(Found { index, exact }) } else { Err(ENDS_BELOW) }
    }
}

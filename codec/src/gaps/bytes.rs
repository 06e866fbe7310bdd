//! The search of blocks whose gaps are all of one byte, for all codecs. The length of a block says whether that is so.
//! Then the search need not iterate over the gaps, and adds all of them in parallel.
//!
//! The gaps are divided into pieces of eight. The sum of the gaps up to the end of each piece, at most 256 times 256,
//! selects the piece of the key, and the prefix sums in that piece select the position. No branch depends on the key.

use core::arch::x86_64::*;

use crate::error::ENDS_BELOW;
use crate::{Block, Found, Result};

/// The position of each gap in sixteen whole groups of VarInt-GB. A number below 64 is a byte of the first 64 of their
/// 80 bytes; a number from 64 on is a byte of the last 64.
#[allow(clippy::cast_possible_truncation)]
#[allow(clippy::indexing_slicing, reason = "each index is below the length of its table")]
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

/// The positions of the gaps in a piece of VarInt-GB, by the number of gaps in the piece. Each gap has two bytes here;
/// 0x80 gives a zero. A partial group has its control byte last.
#[allow(clippy::cast_possible_truncation)]
#[allow(clippy::indexing_slicing, reason = "each index is below the length of its table")]
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

/// Loads 64 bytes of `body` from `at` on, with zeros after its end.
///
/// # Safety
/// The machine must have AVX-512. If `THERE`, the body has all 64 bytes.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
unsafe fn load<const THERE: bool>(body: &[u8], at: usize) -> __m512i {
    // SAFETY: guaranteed by the caller; the mask keeps the load inside the body.
    unsafe {
        if THERE {
            return _mm512_loadu_si512(body.as_ptr().add(at).cast());
        }
        // If no byte can be read, the pointer is to the end of the body: masked loads from unmapped memory take 40 ns.
        let rest = body.get(at.min(body.len())..).unwrap_or_default();
        let valid = _bzhi_u64(u64::MAX, rest.len().min(64) as u32);
        _mm512_maskz_loadu_epi8(valid, rest.as_ptr().cast())
    }
}

/// The sums of the eight pieces of 64 gaps.
///
/// # Safety
/// The machine must have VBMI. If `FIRST`, the body has the first 64 of their bytes; if `LAST`, it has the last 64.
#[inline(always)]
unsafe fn eight_pieces<const WITH_CONTROLS: bool, const FIRST: bool, const LAST: bool>(
    body: &[u8],
    i: usize,
) -> __m512i {
    // SAFETY: guaranteed by the caller.
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

/// The sums of all pieces in 16-bit lanes: pieces 0 to 7 in every fourth lane from lane 0 on, pieces 8 to 15 in every
/// fourth lane from lane 1 on, and so on.
///
/// # Safety
/// The machine must have VBMI.
#[inline(always)]
unsafe fn pieces<const WITH_CONTROLS: bool>(body: &[u8]) -> __m512i {
    // SAFETY: guaranteed by the caller; the lengths are compared. No sum has more than 16 bits, so four of them fit in
    // a lane of 64 bits.
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

/// The distance from the first key to the beginning of each piece, and to its end.
///
/// # Safety
/// The machine must have VBMI.
#[inline(always)]
unsafe fn distances<const WITH_CONTROLS: bool>(body: &[u8]) -> (__m512i, __m512i) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        // The distance between two keys is the gap plus one.
        let own = _mm512_add_epi16(pieces::<WITH_CONTROLS>(body), _mm512_set1_epi16(8));
        let zero = _mm512_setzero_si512();
        let two = _mm512_add_epi16(own, _mm512_alignr_epi64::<7>(own, zero));
        let four = _mm512_add_epi16(two, _mm512_alignr_epi64::<6>(two, zero));
        let eight = _mm512_add_epi16(four, _mm512_alignr_epi64::<4>(four, zero));
        // The total of all pieces in lower quarters of the lanes.
        let total = _mm512_slli_epi64::<16>(_mm512_permutexvar_epi64(_mm512_set1_epi64(7), eight));
        let totals = _mm512_add_epi16(total, _mm512_slli_epi64::<16>(total));
        let before = _mm512_add_epi16(totals, _mm512_slli_epi64::<32>(total));
        let ends = _mm512_add_epi16(eight, before);
        (_mm512_sub_epi16(ends, own), ends)
    }
}

/// The gaps of piece `n` in lanes of 16 bits. Lanes after the last gap have any value.
///
/// # Safety
/// The machine must have AVX-512.
#[allow(clippy::cast_possible_truncation)]
#[allow(clippy::indexing_slicing, reason = "each index is below the length of its table")]
#[inline(always)]
unsafe fn piece<const WITH_CONTROLS: bool>(body: &[u8], gaps: usize, n: usize) -> __m128i {
    let at = if WITH_CONTROLS { 10 * n } else { 8 * n };
    // SAFETY: guaranteed by the caller; 16 bytes can be read, or the mask keeps the load inside the body.
    unsafe {
        // Most pieces are not the last one. A predicted branch is faster than a mask that has to be computed.
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

/// Searches for `sought`, which is greater than the first key. `body` has the bytes of the gaps, with control bytes if
/// `WITH_CONTROLS`.
///
/// # Safety
/// The machine must have VBMI.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
pub(super) unsafe fn search<const WITH_CONTROLS: bool>(block: &Block<u32>, body: &[u8], sought: u32) -> Result<Found> {
    let gaps = usize::from(block.count) - 1;
    let Ok(left) = u16::try_from(sought.wrapping_sub(block.first)) else { return Err(ENDS_BELOW) };
    // SAFETY: guaranteed by the caller.
    unsafe {
        let left = _mm512_set1_epi16(left as i16);
        let (begins, ends) = distances::<WITH_CONTROLS>(body);
        // The sum of a last piece with a partial group is wrong. It is not needed, because no piece follows.
        let n = (_mm512_cmplt_epu16_mask(ends, left).count_ones() as usize).min(gaps / 8);
        // The permutation uses five bits: n / 8 in the low bits, and n % 8 above them.
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

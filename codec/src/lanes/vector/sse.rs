//! Vectors of 128 bits: 4 or 2 keys, for SSE4.

use core::arch::x86_64::*;

use super::Vector;

#[derive(Clone, Copy)]
pub(crate) struct Sse32(__m128i);
#[derive(Clone, Copy)]
pub(crate) struct Sse64(__m128i);

// SAFETY: each function does what the trait says, on 4 lanes.
unsafe impl Vector for Sse32 {
    type Key = u32;
    const LANES: usize = 4;
    common!(_mm_loadu_si128 _mm_storeu_si128 _mm_and_si128 _mm_or_si128 _mm_add_epi32 _mm_sub_epi32);

    #[inline(always)]
    unsafe fn splat(key: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm_set1_epi32(key as i32) })
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        // SAFETY: guaranteed by the trait's contract: 4 bytes.
        Self(unsafe { _mm_cvtepu8_epi32(_mm_cvtsi32_si128(from.cast::<i32>().read_unaligned())) })
    }
    #[inline(always)]
    unsafe fn shr(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm_srl_epi32(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn shl(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm_sll_epi32(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn less(self, other: Self) -> u32 {
        // SAFETY: guaranteed by the trait's contract. With flipped sign bits, a signed comparison compares unsigned.
        unsafe {
            let sign = _mm_set1_epi32(i32::MIN);
            let mask = _mm_cmplt_epi32(_mm_xor_si128(self.0, sign), _mm_xor_si128(other.0, sign));
            _mm_movemask_ps(_mm_castsi128_ps(mask)) as u32
        }
    }
    #[inline(always)]
    unsafe fn prefix_sums(self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        unsafe {
            let pairs = _mm_add_epi32(self.0, _mm_slli_si128::<4>(self.0));
            Self(_mm_add_epi32(pairs, _mm_slli_si128::<8>(pairs)))
        }
    }
    #[inline(always)]
    unsafe fn behind(self, before: Self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm_alignr_epi8::<12>(self.0, before.0) })
    }
    #[inline(always)]
    unsafe fn last(self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm_shuffle_epi32::<0xFF>(self.0) })
    }
    #[inline(always)]
    unsafe fn total(self) -> u128 {
        // SAFETY: guaranteed by the trait's contract.
        unsafe {
            let [low, high] = sums_of_halves(self.0);
            u128::from(low + high)
        }
    }
    #[inline(always)]
    unsafe fn transpose(rows: *mut Self) {
        // SAFETY: guaranteed by the trait's contract; 4 rows.
        unsafe {
            let [a, b, c, d] = rows.cast::<[__m128i; 4]>().read();
            let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
            let (ef, gh) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
            rows.cast::<[__m128i; 4]>().write([
                _mm_unpacklo_epi64(ab, cd),
                _mm_unpackhi_epi64(ab, cd),
                _mm_unpacklo_epi64(ef, gh),
                _mm_unpackhi_epi64(ef, gh),
            ]);
        }
    }
}

// SAFETY: each function does what the trait says, on 2 lanes.
unsafe impl Vector for Sse64 {
    type Key = u64;
    const LANES: usize = 2;
    common!(_mm_loadu_si128 _mm_storeu_si128 _mm_and_si128 _mm_or_si128 _mm_add_epi64 _mm_sub_epi64);

    #[inline(always)]
    unsafe fn splat(key: u64) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm_set1_epi64x(key as i64) })
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        // SAFETY: guaranteed by the trait's contract: 2 bytes.
        Self(unsafe { _mm_cvtepu8_epi64(_mm_cvtsi32_si128(i32::from(from.cast::<u16>().read_unaligned()))) })
    }
    #[inline(always)]
    unsafe fn shr(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm_srl_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn shl(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm_sll_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn less(self, other: Self) -> u32 {
        // SAFETY: guaranteed by the trait's contract. With flipped sign bits, a signed comparison compares unsigned.
        unsafe {
            let sign = _mm_set1_epi64x(i64::MIN);
            let mask = _mm_cmpgt_epi64(_mm_xor_si128(other.0, sign), _mm_xor_si128(self.0, sign));
            _mm_movemask_pd(_mm_castsi128_pd(mask)) as u32
        }
    }
    #[inline(always)]
    unsafe fn prefix_sums(self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm_add_epi64(self.0, _mm_slli_si128::<8>(self.0)) })
    }
    #[inline(always)]
    unsafe fn behind(self, before: Self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm_alignr_epi8::<8>(self.0, before.0) })
    }
    #[inline(always)]
    unsafe fn last(self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm_unpackhi_epi64(self.0, self.0) })
    }
    #[inline(always)]
    unsafe fn total(self) -> u128 {
        // SAFETY: guaranteed by the trait's contract.
        unsafe {
            let [low, high] = sums_of_halves(self.0);
            u128::from(low) + (u128::from(high) << 32)
        }
    }
    #[inline(always)]
    unsafe fn transpose(rows: *mut Self) {
        // SAFETY: guaranteed by the trait's contract; 2 rows.
        unsafe {
            let [a, b] = rows.cast::<[__m128i; 2]>().read();
            rows.cast::<[__m128i; 2]>().write([_mm_unpacklo_epi64(a, b), _mm_unpackhi_epi64(a, b)]);
        }
    }
}

/// The sum of the lower halves of both 64-bit lanes, and the sum of the upper halves.
#[inline(always)]
unsafe fn sums_of_halves(lanes: __m128i) -> [u64; 2] {
    // SAFETY: called from SSE4 code only.
    unsafe {
        let low = _mm_and_si128(lanes, _mm_set1_epi64x(0xFFFF_FFFF));
        let high = _mm_srli_epi64::<32>(lanes);
        [low, high].map(|half| _mm_cvtsi128_si64(_mm_add_epi64(half, _mm_unpackhi_epi64(half, half))) as u64)
    }
}

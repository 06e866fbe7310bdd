//! Functions that the AVX-512 kernels of several codecs share: sums across the lanes of a vector, and vectors made of
//! quarters.
//!
//! Every function is `#[inline(always)]`, so it is compiled inside the kernel that calls it.

use core::arch::x86_64::*;

/// Lane `i` becomes the sum of lanes `0..=i`, of 32 bits each.
///
/// # Safety
/// The machine must have AVX-512.
#[inline(always)]
pub(crate) unsafe fn prefix_sums(lanes: __m512i) -> __m512i {
    // SAFETY: guaranteed by the caller. The steps add the lane that is 1, 2, 4 and 8 lanes lower. `alignr` shifts in
    // zeros.
    unsafe {
        let zero = _mm512_setzero_si512();
        let mut sums = _mm512_add_epi32(lanes, _mm512_alignr_epi32::<15>(lanes, zero));
        sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<14>(sums, zero));
        sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<12>(sums, zero));
        _mm512_add_epi32(sums, _mm512_alignr_epi32::<8>(sums, zero))
    }
}

/// Computes sixteen keys from their gaps and from the key before them, which is in every lane of `before`. The second
/// vector has the last of the keys in every lane.
///
/// # Safety
/// The machine must have AVX-512.
#[inline(always)]
pub(crate) unsafe fn keys_of_gaps(gaps: __m512i, before: __m512i) -> (__m512i, __m512i) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let keys = _mm512_add_epi32(prefix_sums(_mm512_add_epi32(gaps, _mm512_set1_epi32(1))), before);
        (keys, _mm512_permutexvar_epi32(_mm512_set1_epi32(15), keys))
    }
}

/// Adds the two 32-bit lanes of each pair. The result has 64-bit lanes.
///
/// # Safety
/// The machine must have AVX-512.
#[inline(always)]
pub(crate) unsafe fn sums_of_pairs(lanes: __m512i) -> __m512i {
    // SAFETY: guaranteed by the caller.
    unsafe { _mm512_add_epi64(_mm512_maskz_mov_epi32(0x5555, lanes), _mm512_srli_epi64::<32>(lanes)) }
}

/// Joins four quarters to one vector. The first is the lowest.
///
/// # Safety
/// The machine must have AVX-512.
#[inline(always)]
pub(crate) unsafe fn join([a, b, c, d]: [__m128i; 4]) -> __m512i {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b);
        let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(c), d);
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }
}

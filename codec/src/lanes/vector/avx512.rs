//! Vectors of 512 bits: 16 or 8 keys, for AVX-512.

use core::arch::x86_64::*;

use super::Vector;

#[derive(Clone, Copy)]
pub(crate) struct Avx512x32(pub(crate) __m512i);
#[derive(Clone, Copy)]
pub(crate) struct Avx512x64(pub(crate) __m512i);

// SAFETY: each function does what the trait says, on 16 lanes.
unsafe impl Vector for Avx512x32 {
    type Key = u32;
    const LANES: usize = 16;
    common!(_mm512_loadu_si512 _mm512_storeu_si512 _mm512_and_si512 _mm512_or_si512 _mm512_add_epi32 _mm512_sub_epi32);

    #[inline(always)]
    unsafe fn splat(key: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm512_set1_epi32(key as i32) })
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        // SAFETY: guaranteed by the trait's contract: 16 bytes.
        Self(unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())) })
    }
    #[inline(always)]
    unsafe fn store_bytes(self, to: *mut u8) {
        // SAFETY: guaranteed by the trait's contract.
        unsafe { _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(self.0)) }
    }
    #[inline(always)]
    unsafe fn shr(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm512_srl_epi32(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn shl(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm512_sll_epi32(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn step(self, field: Self, mask: Self) -> Self {
        // SAFETY: guaranteed by the trait's contract. `a - !b` is `a + b + 1`, and one instruction computes
        // `!(field & mask)`.
        Self(unsafe { _mm512_sub_epi32(self.0, _mm512_ternarylogic_epi32::<0x3F>(field.0, mask.0, mask.0)) })
    }
    #[inline(always)]
    unsafe fn less(self, other: Self) -> u32 {
        // SAFETY: guaranteed by the trait's contract.
        u32::from(unsafe { _mm512_cmplt_epu32_mask(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn prefix_sums(self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { crate::avx512::prefix_sums(self.0) })
    }
    #[inline(always)]
    unsafe fn behind(self, before: Self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm512_alignr_epi32::<15>(self.0, before.0) })
    }
    #[inline(always)]
    unsafe fn last(self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm512_permutexvar_epi32(_mm512_set1_epi32(15), self.0) })
    }
    const ROWS: usize = 8;

    #[inline(always)]
    unsafe fn total(self) -> u128 {
        // SAFETY: guaranteed by the trait's contract.
        unsafe {
            let [low, high] = sums_of_halves(self.0);
            u128::from(low + high)
        }
    }
    /// Vector `i` gets 8 keys each of the lanes `i` and `4 + i`, and vector `4 + i` those of the lanes `8 + i` and
    /// `12 + i`.
    #[inline(always)]
    unsafe fn transpose(rows: *mut Self) {
        // SAFETY: guaranteed by the trait's contract; 8 rows.
        unsafe {
            let r = rows.cast::<[__m512i; 8]>().read();
            let (a, b) = (_mm512_unpacklo_epi32(r[0], r[1]), _mm512_unpackhi_epi32(r[0], r[1]));
            let (c, d) = (_mm512_unpacklo_epi32(r[2], r[3]), _mm512_unpackhi_epi32(r[2], r[3]));
            let (e, f) = (_mm512_unpacklo_epi32(r[4], r[5]), _mm512_unpackhi_epi32(r[4], r[5]));
            let (g, h) = (_mm512_unpacklo_epi32(r[6], r[7]), _mm512_unpackhi_epi32(r[6], r[7]));
            // Quarter q of the i-th pair has rows 0 to 3, and rows 4 to 7, of lane 4q + i.
            let (ac, eg) = (_mm512_unpacklo_epi64(a, c), _mm512_unpacklo_epi64(e, g));
            let (ca, ge) = (_mm512_unpackhi_epi64(a, c), _mm512_unpackhi_epi64(e, g));
            let (bd, fh) = (_mm512_unpacklo_epi64(b, d), _mm512_unpacklo_epi64(f, h));
            let (db, hf) = (_mm512_unpackhi_epi64(b, d), _mm512_unpackhi_epi64(f, h));
            let near = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
            let far = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
            rows.cast::<[__m512i; 8]>().write([
                _mm512_permutex2var_epi64(ac, near, eg),
                _mm512_permutex2var_epi64(ca, near, ge),
                _mm512_permutex2var_epi64(bd, near, fh),
                _mm512_permutex2var_epi64(db, near, hf),
                _mm512_permutex2var_epi64(ac, far, eg),
                _mm512_permutex2var_epi64(ca, far, ge),
                _mm512_permutex2var_epi64(bd, far, fh),
                _mm512_permutex2var_epi64(db, far, hf),
            ]);
        }
    }

    /// Each step halves the lanes of a vector and doubles the rows, so the last step gives whole vectors of keys in
    /// order.
    #[allow(clippy::indexing_slicing, reason = "arrays by constant positions")]
    #[inline(always)]
    unsafe fn store_runs(rows: *mut Self, to: *mut u32) {
        // SAFETY: guaranteed by the caller: 8 rows, and room for 128 keys.
        unsafe {
            let r = rows.cast::<[__m512i; 8]>().read();
            let near = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let far = _mm512_add_epi32(near, _mm512_set1_epi32(8));
            let pair = |at: usize, half: __m512i| _mm512_permutex2var_epi32(r[at], half, r[at + 1]);
            let near_two = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let far_two = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            let near_four = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
            let far_four = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
            let to = to.cast::<__m512i>();
            for (half, at) in [(near, 0), (far, 4)] {
                let [a, b, c, d] = [pair(0, half), pair(2, half), pair(4, half), pair(6, half)];
                for (two, at) in [(near_two, at), (far_two, at + 2)] {
                    let (low, high) = (_mm512_permutex2var_epi64(a, two, b), _mm512_permutex2var_epi64(c, two, d));
                    let (one, other) = (
                        _mm512_permutex2var_epi64(low, near_four, high),
                        _mm512_permutex2var_epi64(low, far_four, high),
                    );
                    _mm512_storeu_si512(to.add(at).cast(), one);
                    _mm512_storeu_si512(to.add(at + 1).cast(), other);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn store_columns(rows: *mut Self, to: *mut u32, stride: usize) {
        // SAFETY: guaranteed by the caller: 8 rows, and room for the keys of the last lane.
        unsafe {
            Self::transpose(rows);
            for half in 0..2 {
                for i in 0..4 {
                    let keys = rows.add(4 * half + i).read().0;
                    _mm256_storeu_si256(to.add((8 * half + i) * stride).cast(), _mm512_castsi512_si256(keys));
                }
                for i in 0..4 {
                    let keys = rows.add(4 * half + i).read().0;
                    let upper = _mm512_extracti64x4_epi64::<1>(keys);
                    _mm256_storeu_si256(to.add((8 * half + 4 + i) * stride).cast(), upper);
                }
            }
        }
    }
}

// SAFETY: each function does what the trait says, on 8 lanes.
unsafe impl Vector for Avx512x64 {
    type Key = u64;
    const LANES: usize = 8;
    common!(_mm512_loadu_si512 _mm512_storeu_si512 _mm512_and_si512 _mm512_or_si512 _mm512_add_epi64 _mm512_sub_epi64);

    #[inline(always)]
    unsafe fn splat(key: u64) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm512_set1_epi64(key as i64) })
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        // SAFETY: guaranteed by the trait's contract: 8 bytes.
        Self(unsafe { _mm512_cvtepu8_epi64(_mm_loadl_epi64(from.cast())) })
    }
    #[inline(always)]
    unsafe fn store_bytes(self, to: *mut u8) {
        // SAFETY: guaranteed by the trait's contract.
        unsafe { _mm_storel_epi64(to.cast(), _mm512_cvtepi64_epi8(self.0)) }
    }
    #[inline(always)]
    unsafe fn shr(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm512_srl_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn shl(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm512_sll_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn step(self, field: Self, mask: Self) -> Self {
        // SAFETY: guaranteed by the trait's contract. The same computation as for 16 lanes.
        Self(unsafe { _mm512_sub_epi64(self.0, _mm512_ternarylogic_epi64::<0x3F>(field.0, mask.0, mask.0)) })
    }
    #[inline(always)]
    unsafe fn less(self, other: Self) -> u32 {
        // SAFETY: guaranteed by the trait's contract.
        u32::from(unsafe { _mm512_cmplt_epu64_mask(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn prefix_sums(self) -> Self {
        // SAFETY: guaranteed by the trait's contract. The steps add the lane that is 1, 2 and 4 lanes lower. `alignr`
        // shifts in zeros.
        unsafe {
            let zero = _mm512_setzero_si512();
            let mut sums = _mm512_add_epi64(self.0, _mm512_alignr_epi64::<7>(self.0, zero));
            sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<6>(sums, zero));
            Self(_mm512_add_epi64(sums, _mm512_alignr_epi64::<4>(sums, zero)))
        }
    }
    #[inline(always)]
    unsafe fn behind(self, before: Self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm512_alignr_epi64::<7>(self.0, before.0) })
    }
    #[inline(always)]
    unsafe fn last(self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm512_permutexvar_epi64(_mm512_set1_epi64(7), self.0) })
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
        // SAFETY: guaranteed by the trait's contract; 8 rows.
        unsafe {
            let r = rows.cast::<[__m512i; 8]>().read();
            // Quarter q of pair i has rows 2i and 2i + 1 of lane 2q (even) or 2q + 1 (odd).
            let (a, b) = (_mm512_unpacklo_epi64(r[0], r[1]), _mm512_unpacklo_epi64(r[2], r[3]));
            let (c, d) = (_mm512_unpacklo_epi64(r[4], r[5]), _mm512_unpacklo_epi64(r[6], r[7]));
            let (e, f) = (_mm512_unpackhi_epi64(r[0], r[1]), _mm512_unpackhi_epi64(r[2], r[3]));
            let (g, h) = (_mm512_unpackhi_epi64(r[4], r[5]), _mm512_unpackhi_epi64(r[6], r[7]));
            let (x, y) = (quarters(a, b, c, d), quarters(e, f, g, h));
            rows.cast::<[__m512i; 8]>().write([x[0], y[0], x[1], y[1], x[2], y[2], x[3], y[3]]);
        }
    }
}

/// The sum of the lower halves of all 64-bit lanes, and the sum of the upper halves.
#[inline(always)]
unsafe fn sums_of_halves(lanes: __m512i) -> [u64; 2] {
    // SAFETY: called from AVX-512 code only.
    unsafe {
        let low = _mm512_and_si512(lanes, _mm512_set1_epi64(0xFFFF_FFFF));
        let high = _mm512_srli_epi64::<32>(lanes);
        [low, high].map(|half| _mm512_reduce_add_epi64(half) as u64)
    }
}

/// Transposes the 128-bit quarters of four vectors, as a square matrix.
#[inline(always)]
unsafe fn quarters(a: __m512i, b: __m512i, c: __m512i, d: __m512i) -> [__m512i; 4] {
    // SAFETY: called from AVX-512 code only.
    unsafe {
        let (p, q) = (_mm512_shuffle_i64x2::<0x44>(a, b), _mm512_shuffle_i64x2::<0x44>(c, d));
        let (s, t) = (_mm512_shuffle_i64x2::<0xEE>(a, b), _mm512_shuffle_i64x2::<0xEE>(c, d));
        [
            _mm512_shuffle_i64x2::<0x88>(p, q),
            _mm512_shuffle_i64x2::<0xDD>(p, q),
            _mm512_shuffle_i64x2::<0x88>(s, t),
            _mm512_shuffle_i64x2::<0xDD>(s, t),
        ]
    }
}

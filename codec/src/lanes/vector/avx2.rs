//! Vectors of 256 bits: 8 or 4 keys, for AVX2.

use core::arch::x86_64::*;

use super::Vector;

#[derive(Clone, Copy)]
pub(crate) struct Avx2x32(__m256i);
#[derive(Clone, Copy)]
pub(crate) struct Avx2x64(__m256i);

// SAFETY: each function does what the trait says, on 8 lanes.
unsafe impl Vector for Avx2x32 {
    type Key = u32;
    const LANES: usize = 8;
    common!(_mm256_loadu_si256 _mm256_storeu_si256 _mm256_and_si256 _mm256_or_si256 _mm256_add_epi32 _mm256_sub_epi32);

    #[inline(always)]
    unsafe fn splat(key: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm256_set1_epi32(key as i32) })
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        // SAFETY: guaranteed by the trait's contract: 8 bytes.
        Self(unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())) })
    }
    #[inline(always)]
    unsafe fn shr(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm256_srl_epi32(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn shl(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm256_sll_epi32(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn less(self, other: Self) -> u32 {
        // SAFETY: guaranteed by the trait's contract. With flipped sign bits, a signed comparison compares unsigned.
        unsafe {
            let sign = _mm256_set1_epi32(i32::MIN);
            let mask = _mm256_cmpgt_epi32(_mm256_xor_si256(other.0, sign), _mm256_xor_si256(self.0, sign));
            _mm256_movemask_ps(_mm256_castsi256_ps(mask)) as u32
        }
    }
    #[inline(always)]
    unsafe fn prefix_sums(self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        unsafe {
            let pairs = _mm256_add_epi32(self.0, _mm256_slli_si256::<4>(self.0));
            let halves = _mm256_add_epi32(pairs, _mm256_slli_si256::<8>(pairs));
            let low = _mm256_permute2x128_si256::<0x08>(halves, halves);
            Self(_mm256_add_epi32(halves, _mm256_shuffle_epi32::<0xFF>(low)))
        }
    }
    #[inline(always)]
    unsafe fn behind(self, before: Self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm256_alignr_epi8::<12>(self.0, _mm256_permute2x128_si256::<0x03>(self.0, before.0)) })
    }
    #[inline(always)]
    unsafe fn last(self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm256_permutevar8x32_epi32(self.0, _mm256_set1_epi32(7)) })
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
        // SAFETY: guaranteed by the trait's contract; 8 rows.
        unsafe {
            let r = rows.cast::<[__m256i; 8]>().read();
            let (a, b) = (_mm256_unpacklo_epi32(r[0], r[1]), _mm256_unpackhi_epi32(r[0], r[1]));
            let (c, d) = (_mm256_unpacklo_epi32(r[2], r[3]), _mm256_unpackhi_epi32(r[2], r[3]));
            let (e, f) = (_mm256_unpacklo_epi32(r[4], r[5]), _mm256_unpackhi_epi32(r[4], r[5]));
            let (g, h) = (_mm256_unpacklo_epi32(r[6], r[7]), _mm256_unpackhi_epi32(r[6], r[7]));
            let (ac, eg) = (_mm256_unpacklo_epi64(a, c), _mm256_unpacklo_epi64(e, g));
            let (ca, ge) = (_mm256_unpackhi_epi64(a, c), _mm256_unpackhi_epi64(e, g));
            let (bd, fh) = (_mm256_unpacklo_epi64(b, d), _mm256_unpacklo_epi64(f, h));
            let (db, hf) = (_mm256_unpackhi_epi64(b, d), _mm256_unpackhi_epi64(f, h));
            rows.cast::<[__m256i; 8]>().write([
                _mm256_permute2x128_si256::<0x20>(ac, eg),
                _mm256_permute2x128_si256::<0x20>(ca, ge),
                _mm256_permute2x128_si256::<0x20>(bd, fh),
                _mm256_permute2x128_si256::<0x20>(db, hf),
                _mm256_permute2x128_si256::<0x31>(ac, eg),
                _mm256_permute2x128_si256::<0x31>(ca, ge),
                _mm256_permute2x128_si256::<0x31>(bd, fh),
                _mm256_permute2x128_si256::<0x31>(db, hf),
            ]);
        }
    }
}

// SAFETY: each function does what the trait says, on 4 lanes.
unsafe impl Vector for Avx2x64 {
    type Key = u64;
    const LANES: usize = 4;
    common!(_mm256_loadu_si256 _mm256_storeu_si256 _mm256_and_si256 _mm256_or_si256 _mm256_add_epi64 _mm256_sub_epi64);

    #[inline(always)]
    unsafe fn splat(key: u64) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm256_set1_epi64x(key as i64) })
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self {
        // SAFETY: guaranteed by the trait's contract: 4 bytes.
        Self(unsafe { _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(from.cast::<i32>().read_unaligned())) })
    }
    #[inline(always)]
    unsafe fn shr(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm256_srl_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn shl(self, by: u32) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm256_sll_epi64(self.0, _mm_cvtsi32_si128(by as i32)) })
    }
    #[inline(always)]
    unsafe fn less(self, other: Self) -> u32 {
        // SAFETY: guaranteed by the trait's contract. With flipped sign bits, a signed comparison compares unsigned.
        unsafe {
            let sign = _mm256_set1_epi64x(i64::MIN);
            let mask = _mm256_cmpgt_epi64(_mm256_xor_si256(other.0, sign), _mm256_xor_si256(self.0, sign));
            _mm256_movemask_pd(_mm256_castsi256_pd(mask)) as u32
        }
    }
    #[inline(always)]
    unsafe fn prefix_sums(self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        unsafe {
            let pairs = _mm256_add_epi64(self.0, _mm256_slli_si256::<8>(self.0));
            let low = _mm256_permute2x128_si256::<0x08>(pairs, pairs);
            Self(_mm256_add_epi64(pairs, _mm256_unpackhi_epi64(low, low)))
        }
    }
    #[inline(always)]
    unsafe fn behind(self, before: Self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm256_alignr_epi8::<8>(self.0, _mm256_permute2x128_si256::<0x03>(self.0, before.0)) })
    }
    #[inline(always)]
    unsafe fn last(self) -> Self {
        // SAFETY: guaranteed by the trait's contract.
        Self(unsafe { _mm256_permute4x64_epi64::<0xFF>(self.0) })
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
        // SAFETY: guaranteed by the trait's contract; 4 rows.
        unsafe {
            let [a, b, c, d] = rows.cast::<[__m256i; 4]>().read();
            let (ab, cd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpacklo_epi64(c, d));
            let (ef, gh) = (_mm256_unpackhi_epi64(a, b), _mm256_unpackhi_epi64(c, d));
            rows.cast::<[__m256i; 4]>().write([
                _mm256_permute2x128_si256::<0x20>(ab, cd),
                _mm256_permute2x128_si256::<0x20>(ef, gh),
                _mm256_permute2x128_si256::<0x31>(ab, cd),
                _mm256_permute2x128_si256::<0x31>(ef, gh),
            ]);
        }
    }
}

/// The sum of the lower halves of all 64-bit lanes, and the sum of the upper halves.
#[inline(always)]
unsafe fn sums_of_halves(lanes: __m256i) -> [u64; 2] {
    // SAFETY: called from AVX2 code only.
    unsafe {
        let low = _mm256_and_si256(lanes, _mm256_set1_epi64x(0xFFFF_FFFF));
        let high = _mm256_srli_epi64::<32>(lanes);
        [low, high].map(|half| {
            let pair = _mm_add_epi64(_mm256_castsi256_si128(half), _mm256_extracti128_si256::<1>(half));
            _mm_cvtsi128_si64(_mm_add_epi64(pair, _mm_unpackhi_epi64(pair, pair))) as u64
        })
    }
}

//! The sinks of the vector kernels for gaps: they store the keys, add them up, or search for one.

use core::arch::x86_64::*;

use crate::avx512::sums_of_pairs;
use crate::bits::{change, range_mut};
use crate::error::ENDS_BELOW;
use crate::{Block, Buffer, Error, Found, Result};

/// A consumer of keys. It gets them in order, from the second key of the block on.
///
/// # Safety
/// `four` needs SSE4.2.
pub(super) unsafe trait Sink {
    /// Takes four keys. Returns true to stop.
    unsafe fn four(&mut self, keys: __m128i) -> bool;
    /// Takes one key. Returns true to stop.
    fn one(&mut self, key: u32) -> bool;
}

/// Stores the keys after the first.
pub(super) struct Store<'a> {
    to: &'a mut [u32],
    at: usize,
}

impl<'a> Store<'a> {
    /// Stores the first key at once.
    #[inline(always)]
    pub(super) fn new(block: &Block<u32>, out: &'a mut Buffer<u32>) -> Result<Store<'a>> {
        let (first, rest) = out.split_first_mut().ok_or(Error::OutOfRange)?;
        *first = block.first;
        Ok(Store { to: rest.get_mut(..usize::from(block.count) - 1).ok_or(Error::Full)?, at: 0 })
    }
}

// SAFETY: SSE2 only. The slice is as long as the number of keys, and is checked.
unsafe impl Sink for Store<'_> {
    #[inline(always)]
    unsafe fn four(&mut self, keys: __m128i) -> bool {
        let to = range_mut(self.to, self.at, 4);
        // SAFETY: there is room for four keys.
        unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), keys) };
        self.at += 4;
        false
    }

    fn one(&mut self, key: u32) -> bool {
        change(self.to, self.at, |to| *to = key);
        self.at += 1;
        false
    }
}

/// Adds the keys up.
pub(super) struct Sum {
    four: __m128i,
    one: u64,
}

impl Sum {
    /// Starts with the first key.
    #[inline(always)]
    pub(super) fn new(first: u32) -> Sum {
        // SAFETY: SSE2.
        Sum { four: unsafe { _mm_setzero_si128() }, one: u64::from(first) }
    }

    #[inline(always)]
    pub(super) fn total(&self) -> u128 {
        let mut halves = [0u64; 2];
        // SAFETY: SSE2, and there is room for two sums.
        unsafe { _mm_storeu_si128(halves.as_mut_ptr().cast(), self.four) };
        u128::from(halves[0]) + u128::from(halves[1]) + u128::from(self.one)
    }
}

// SAFETY: SSE2 only.
unsafe impl Sink for Sum {
    #[inline(always)]
    unsafe fn four(&mut self, keys: __m128i) -> bool {
        // SAFETY: the caller has SSE4.2.
        unsafe {
            let even = _mm_and_si128(keys, _mm_set1_epi64x(0xFFFF_FFFF));
            self.four = _mm_add_epi64(self.four, _mm_add_epi64(even, _mm_srli_epi64::<32>(keys)));
        }
        false
    }

    fn one(&mut self, key: u32) -> bool {
        self.one += u64::from(key);
        false
    }
}

/// Stops at the first key that is not less than `sought`.
pub(super) struct Search {
    sought: u32,
    index: usize,
    exact: bool,
    found: bool,
}

impl Search {
    /// A search in the keys from `index` on.
    #[inline(always)]
    pub(super) fn new(sought: u32, index: usize) -> Search {
        Search { sought, index, exact: false, found: false }
    }

    /// The result of the search, after the sink has stopped or there are no more keys.
    #[inline(always)]
    pub(super) fn found(&self) -> Result<Found> {
        if self.found { Ok(Found { index: self.index, exact: self.exact }) } else { Err(ENDS_BELOW) }
    }
}

// SAFETY: SSE4.1 and lower only.
unsafe impl Sink for Search {
    #[inline(always)]
    unsafe fn four(&mut self, keys: __m128i) -> bool {
        // SAFETY: the caller has SSE4.2. `max(keys, sought) == keys` if a key is not less than `sought`.
        let (reached, equal) = unsafe {
            let sought = _mm_set1_epi32(self.sought as i32);
            let reached = _mm_cmpeq_epi32(_mm_max_epu32(keys, sought), keys);
            let equal = _mm_cmpeq_epi32(keys, sought);
            (_mm_movemask_ps(_mm_castsi128_ps(reached)) as u32, _mm_movemask_ps(_mm_castsi128_ps(equal)) as u32)
        };
        if reached == 0 {
            self.index += 4;
            return false;
        }
        let lane = reached.trailing_zeros();
        self.index += lane as usize;
        self.exact = equal >> lane & 1 == 1;
        self.found = true;
        true
    }

    fn one(&mut self, key: u32) -> bool {
        self.found = key >= self.sought;
        self.exact = key == self.sought;
        self.index += usize::from(!self.found);
        self.found
    }
}

/// Stops at the key with `left` other keys before it.
pub(super) struct Select {
    left: usize,
    key: u32,
}

impl Select {
    /// Selects the key at `index` of the block, which is at least 1.
    #[inline(always)]
    pub(super) fn new(index: usize) -> Select {
        Select { left: index - 1, key: 0 }
    }

    #[inline(always)]
    pub(super) fn key(&self) -> u32 {
        self.key
    }
}

// SAFETY: SSE2 only.
unsafe impl Sink for Select {
    #[allow(clippy::indexing_slicing, reason = "an index below the length")]
    #[inline(always)]
    unsafe fn four(&mut self, keys: __m128i) -> bool {
        if self.left >= 4 {
            self.left -= 4;
            return false;
        }
        let mut four = [0u32; 4];
        // SAFETY: there is room for four keys.
        unsafe { _mm_storeu_si128(four.as_mut_ptr().cast(), keys) };
        self.key = four[self.left & 3];
        true
    }

    fn one(&mut self, key: u32) -> bool {
        self.key = key;
        let done = self.left == 0;
        self.left = self.left.saturating_sub(1);
        done
    }
}

/// A consumer of up to sixteen keys at a time. It gets them in order, from the second key of the block on.
///
/// # Safety
/// `upto_sixteen` needs AVX-512.
pub(super) unsafe trait WideSink {
    /// Takes the first `count` keys, 1 to 16. Returns true to stop.
    unsafe fn upto_sixteen(&mut self, keys: __m512i, count: usize) -> bool;
}

/// A mask of the first `count` lanes.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
pub(super) fn first_lanes(count: usize) -> u16 {
    ((1u32 << count) - 1) as u16
}

// SAFETY: AVX-512. The slice is as long as the number of keys, and is checked.
unsafe impl WideSink for Store<'_> {
    #[inline(always)]
    unsafe fn upto_sixteen(&mut self, keys: __m512i, count: usize) -> bool {
        let to = range_mut(self.to, self.at, count);
        // SAFETY: there is room for as many keys as the mask stores.
        unsafe {
            if count == 16 {
                _mm512_storeu_si512(to.as_mut_ptr().cast(), keys);
            } else {
                _mm512_mask_storeu_epi32(to.as_mut_ptr().cast(), first_lanes(count), keys);
            }
        }
        self.at += count;
        false
    }
}

// SAFETY: AVX-512.
unsafe impl WideSink for Sum {
    #[inline(always)]
    unsafe fn upto_sixteen(&mut self, keys: __m512i, count: usize) -> bool {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let keys = _mm512_maskz_mov_epi32(first_lanes(count), keys);
            let sums = sums_of_pairs(keys);
            let halves = _mm256_add_epi64(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64::<1>(sums));
            let four = _mm_add_epi64(_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
            self.four = _mm_add_epi64(self.four, four);
        }
        false
    }
}

// SAFETY: AVX-512.
unsafe impl WideSink for Search {
    #[inline(always)]
    unsafe fn upto_sixteen(&mut self, keys: __m512i, count: usize) -> bool {
        // SAFETY: guaranteed by the caller.
        let (below, equal) = unsafe {
            let sought = _mm512_set1_epi32(self.sought as i32);
            (_mm512_cmplt_epu32_mask(keys, sought), _mm512_cmpeq_epi32_mask(keys, sought))
        };
        let before = (below.trailing_ones() as usize).min(count);
        self.index += before;
        self.found = before < count;
        self.exact = self.found && equal >> before & 1 == 1;
        self.found
    }
}

// SAFETY: AVX-512.
unsafe impl WideSink for Select {
    #[allow(clippy::indexing_slicing, reason = "an index below the length")]
    #[inline(always)]
    unsafe fn upto_sixteen(&mut self, keys: __m512i, count: usize) -> bool {
        if self.left >= count {
            self.left -= count;
            return false;
        }
        let mut sixteen = [0u32; 16];
        // SAFETY: there is room for sixteen keys.
        unsafe { _mm512_storeu_si512(sixteen.as_mut_ptr().cast(), keys) };
        self.key = sixteen[self.left & 15];
        true
    }
}

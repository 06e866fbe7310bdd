//! AVX-512 kernels of FOR. A vector's worth of fields starts at a whole byte, whatever the width, and spans at most a
//! vector: one load, two permutes and two shifts bring them into the lanes. No other codec belongs here.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use core::arch::x86_64::*;
use core::hint::select_unpredictable;

use super::FrameKernels;
use crate::bits::mask;
use crate::lanes::vector::{Avx512x32, Avx512x64, Vector};
use crate::{Block, Found, Int, Level};

/// What the kernels need beyond a vector of lanes.
///
/// # Safety
/// Every function needs AVX-512.
unsafe trait Packed: Vector {
    /// Lane `i` becomes `i * width`.
    unsafe fn starts(width: u32) -> Self;
    /// Lane `i` becomes lane `from[i]`, modulo the lanes.
    unsafe fn permute(self, from: Self) -> Self;
    /// Shifts each lane by its own count; by the key's bits or more: zero.
    unsafe fn shr_each(self, by: Self) -> Self;
    unsafe fn shl_each(self, by: Self) -> Self;
    /// `(self | other) & mask`.
    unsafe fn or_and(self, other: Self, mask: Self) -> Self;
    /// A bit per lane: whether they are equal.
    unsafe fn equal(self, other: Self) -> u32;
    /// Stores the first `lanes` lanes, fewer than there are.
    unsafe fn store_some(self, to: *mut Self::Key, lanes: usize);
    /// The first `lanes` lanes, fewer than there are; the others zero.
    unsafe fn keep(self, lanes: usize) -> Self;
    /// The lanes' halves, added up: of the lower halves of the bits, and of the upper ones.
    unsafe fn halves(self) -> [u64; 2];
    /// The first 64 bytes of `from` that `some` has a bit for; zero for the others, which are not read.
    unsafe fn load_some(from: *const u8, some: u64) -> Self;
}

macro_rules! packed {
    (
        $vector:ident, $key:ty, $signed:ty, $mask:ty, iota $iota:expr, $mullo:ident $set1:ident $permute:ident $srlv:ident
        $sllv:ident $ternary:ident $equal:ident $store:ident $keep:ident
    ) => {
        // SAFETY: each function is the one the trait names.
        unsafe impl Packed for $vector {
            #[inline(always)]
            unsafe fn starts(width: u32) -> Self {
                // SAFETY: the trait's contract.
                Self(unsafe { $mullo($iota, $set1(width as $signed)) })
            }
            #[inline(always)]
            unsafe fn permute(self, from: Self) -> Self {
                // SAFETY: the trait's contract.
                Self(unsafe { $permute(from.0, self.0) })
            }
            #[inline(always)]
            unsafe fn shr_each(self, by: Self) -> Self {
                // SAFETY: the trait's contract.
                Self(unsafe { $srlv(self.0, by.0) })
            }
            #[inline(always)]
            unsafe fn shl_each(self, by: Self) -> Self {
                // SAFETY: the trait's contract.
                Self(unsafe { $sllv(self.0, by.0) })
            }
            #[inline(always)]
            unsafe fn or_and(self, other: Self, mask: Self) -> Self {
                // SAFETY: the trait's contract.
                Self(unsafe { $ternary::<0xE0>(mask.0, self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn equal(self, other: Self) -> u32 {
                // SAFETY: the trait's contract.
                u32::from(unsafe { $equal(self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn store_some(self, to: *mut $key, lanes: usize) {
                // SAFETY: the trait's contract: the mask keeps the store inside.
                unsafe { $store(to.cast(), ((1u32 << lanes) - 1) as $mask, self.0) }
            }
            #[inline(always)]
            unsafe fn keep(self, lanes: usize) -> Self {
                // SAFETY: the trait's contract.
                Self(unsafe { $keep(((1u32 << lanes) - 1) as $mask, self.0) })
            }
            #[inline(always)]
            unsafe fn halves(self) -> [u64; 2] {
                const HALF: u32 = <$key>::BITS / 2;
                let mut lanes: [$key; 64 / size_of::<$key>()] = [0; 64 / size_of::<$key>()];
                // SAFETY: a vector of room.
                unsafe { self.store(lanes.as_mut_ptr()) };
                let (low, high) = (mask(HALF), HALF);
                lanes.iter().fold([0; 2], |[a, b], &lane| [a + (u64::from(lane) & low), b + (u64::from(lane) >> high)])
            }
            #[inline(always)]
            unsafe fn load_some(from: *const u8, some: u64) -> Self {
                // SAFETY: the trait's contract: the mask keeps the load inside.
                Self(unsafe { _mm512_maskz_loadu_epi8(some, from.cast()) })
            }
        }
    };
}

packed!(
    Avx512x32, u32, i32, u16, iota _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    _mm512_mullo_epi32 _mm512_set1_epi32 _mm512_permutexvar_epi32 _mm512_srlv_epi32 _mm512_sllv_epi32
    _mm512_ternarylogic_epi32 _mm512_cmpeq_epi32_mask _mm512_mask_storeu_epi32 _mm512_maskz_mov_epi32
);
packed!(
    Avx512x64, u64, i64, u8, iota _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
    _mm512_mullo_epi64 _mm512_set1_epi64 _mm512_permutexvar_epi64 _mm512_srlv_epi64 _mm512_sllv_epi64
    _mm512_ternarylogic_epi64 _mm512_cmpeq_epi64_mask _mm512_mask_storeu_epi64 _mm512_maskz_mov_epi64
);

/// Where the fields of one width lie in the bytes of a vector.
struct FieldLayout<'a, V: Packed> {
    body: &'a [u8],
    /// Bytes of a vector's worth of fields.
    step: usize,
    low: V,
    high: V,
    right: V,
    left: V,
    mask: V,
}

impl<'a, V: Packed> FieldLayout<'a, V> {
    /// # Safety
    /// AVX-512.
    #[inline(always)]
    unsafe fn new(width: u32, body: &'a [u8]) -> FieldLayout<'a, V> {
        let bits = V::Key::BITS;
        // SAFETY: the caller's.
        unsafe {
            let starts = V::starts(width);
            let low = starts.shr(bits.ilog2());
            let right = starts.and(V::splat(V::Key::narrow(u64::from(bits) - 1)));
            FieldLayout {
                body,
                step: V::LANES * width as usize / 8,
                low,
                high: low.add(V::splat(V::Key::narrow(1))),
                right,
                left: V::splat(V::Key::narrow(u64::from(bits))).sub(right),
                mask: V::splat(V::Key::narrow(_bzhi_u64(u64::MAX, width))),
            }
        }
    }

    /// The fields of the `n`-th vector; a branch asks whether its bytes are all there.
    ///
    /// # Safety
    /// AVX-512.
    #[inline(always)]
    unsafe fn fields(&self, n: usize) -> V {
        let at = n * self.step;
        if at + 64 <= self.body.len() {
            // SAFETY: 64 bytes are there.
            unsafe { self.spread(V::load(self.body.as_ptr().add(at))) }
        } else {
            // SAFETY: the caller's.
            unsafe { self.fields_near_end(n) }
        }
    }

    /// As `fields`, without a branch.
    ///
    /// # Safety
    /// AVX-512.
    #[inline(always)]
    unsafe fn fields_near_end(&self, n: usize) -> V {
        let at = (n * self.step).min(self.body.len());
        let left = (self.body.len() - at).min(64);
        // SAFETY: the caller's; only the bytes that are left are read.
        unsafe { self.spread(V::load_some(self.body.as_ptr().add(at), _bzhi_u64(u64::MAX, left as u32))) }
    }

    /// # Safety
    /// AVX-512.
    #[inline(always)]
    unsafe fn spread(&self, bytes: V) -> V {
        // A field that ends in its first word: what the second one brings is masked.
        // SAFETY: the caller's.
        unsafe {
            let low = bytes.permute(self.low).shr_each(self.right);
            let high = bytes.permute(self.high).shl_each(self.left);
            low.or_and(high, self.mask)
        }
    }
}

/// Every field plus `first`, into `out`.
///
/// # Safety
/// AVX-512.
#[inline(always)]
unsafe fn decode<V: Packed>(width: u32, body: &[u8], first: V::Key, out: &mut [V::Key]) {
    // SAFETY: the caller's; chunks have room for a vector, and of the last vector only what there is room for is stored.
    unsafe {
        let spread = FieldLayout::<V>::new(width, body);
        let first = V::splat(first);
        let (mut n, mut chunks) = (0, out.chunks_exact_mut(V::LANES));
        for to in &mut chunks {
            spread.fields(n).add(first).store(to.as_mut_ptr());
            n += 1;
        }
        let rest = chunks.into_remainder();
        spread.fields_near_end(n).add(first).store_some(rest.as_mut_ptr(), rest.len());
    }
}

/// The sum of `count` fields.
///
/// # Safety
/// AVX-512.
#[inline(always)]
unsafe fn sum<V: Packed>(width: u32, body: &[u8], count: usize) -> u128 {
    // SAFETY: the caller's.
    unsafe {
        let spread = FieldLayout::<V>::new(width, body);
        let half = V::Key::BITS / 2;
        let halves = V::splat(V::Key::narrow(mask(half)));
        let (mut low, mut high) = (V::splat(V::Key::default()), V::splat(V::Key::default()));
        // At most 32 vectors: no lane's sum of halves overflows.
        for n in 0..count / V::LANES {
            let fields = spread.fields(n);
            low = low.add(fields.and(halves));
            high = high.add(fields.shr(half));
        }
        let last = spread.fields_near_end(count / V::LANES).keep(count % V::LANES);
        low = low.add(last.and(halves));
        high = high.add(last.shr(half));
        let ([a, b], [c, d]) = (low.halves(), high.halves());
        u128::from(a) + ((u128::from(b) + u128::from(c)) << half) + (u128::from(d) << (2 * half))
    }
}

/// How many of three fields of `width` bits, `apart` bytes from one another and the first as far from `from`, are not
/// above `sought`.
///
/// # Safety
/// BMI2; four bytes are readable from each field on.
#[inline(always)]
unsafe fn quarter(from: *const u8, apart: usize, width: u32, sought: u32) -> usize {
    let mut below = 0;
    for n in 1..4 {
        // SAFETY: the caller's.
        let field = unsafe { _bzhi_u32(from.add(n * apart).cast::<u32>().read_unaligned(), width) };
        below += usize::from(field <= sought);
    }
    below
}

/// As `search`, for fields that fill 16 vectors: the first fields of three say in which four vectors to look, those of
/// three more in which one. The three do not wait for one another.
///
/// # Safety
/// As for `search`, with more than 240 fields of 32 bits.
#[inline(always)]
unsafe fn search_full(width: u32, body: &[u8], count: usize, sought: u32) -> Found {
    // SAFETY: the caller's.
    unsafe {
        let spread = FieldLayout::<Avx512x32>::new(width, body);
        let (step, base) = (spread.step, body.as_ptr());
        let four = quarter(base, 4 * step, width, sought);
        let n = 4 * four + quarter(base.add(four * 4 * step), step, width, sought);
        let (fields, target) = (spread.fields_near_end(n), Avx512x32::splat(sought));
        // Places after the last field do not count.
        let valid = _bzhi_u32(0xFFFF, (count - n * 16) as u32);
        let below = (fields.less(target) & valid).count_ones();
        Found { index: n * 16 + below as usize, exact: fields.equal(target) & valid != 0 }
    }
}

/// How many of the `count` increasing fields are below `sought`, and whether the next one equals it.
///
/// # Safety
/// AVX-512; `count` is at least 1, and the first field of every vector has a whole key of bytes from its start on.
#[inline(always)]
unsafe fn search<V: Packed>(width: u32, body: &[u8], count: usize, sought: V::Key) -> Found {
    // SAFETY: the caller's.
    unsafe {
        let spread = FieldLayout::<V>::new(width, body);
        let (mut n, mut len) = (0, count.div_ceil(V::LANES));
        let low = _bzhi_u64(u64::MAX, width);
        while len > 1 {
            let half = len / 2;
            let pivot = body.as_ptr().add((n + half) * spread.step).cast::<V::Key>().read_unaligned();
            // A search has no pattern: a branch would be guessed wrong half the time.
            n = select_unpredictable(pivot.widen() & low <= sought.widen(), n + half, n);
            len -= half;
        }
        let fields = spread.fields_near_end(n);
        let target = V::splat(sought);
        // Places after the last field do not count.
        let valid = _bzhi_u32(u32::MAX, (count - n * V::LANES) as u32);
        let below = (fields.less(target) & valid).count_ones();
        Found { index: n * V::LANES + below as usize, exact: fields.equal(target) & valid != 0 }
    }
}

macro_rules! entries {
    ($module:ident, $vector:ty, $key:ty $(, $full:path, $find:path)?) => {
        mod $module {
            use super::*;

            compiled_for! { Avx512,
                #[inline]
                pub(super) fn decode(width: u32, body: &[u8], first: $key, out: &mut [$key]) {
                    // SAFETY: this function has AVX-512.
                    unsafe { super::decode::<$vector>(width, body, first, out) }
                }

                #[inline]
                pub(super) fn sum(width: u32, body: &[u8], count: usize) -> u128 {
                    // SAFETY: this function has AVX-512.
                    unsafe { super::sum::<$vector>(width, body, count) }
                }

                /// # Safety
                /// As for the kernel.
                #[inline]
                pub(super) unsafe fn search(width: u32, body: &[u8], count: usize, sought: $key) -> Found {
                    // SAFETY: the caller's.
                    unsafe { super::search::<$vector>(width, body, count, sought) }
                }
            }
        }

        impl FrameKernels for $key {
            #[inline]
            fn packed_decode(level: Level, width: u32, body: &[u8], first: $key, out: &mut [$key]) -> bool {
                if level >= Level::Avx512 {
                    // SAFETY: the level is one that this machine has.
                    unsafe { $module::decode(width, body, first, out) };
                }
                level >= Level::Avx512
            }

            #[inline]
            fn packed_sum(level: Level, width: u32, body: &[u8], count: usize) -> Option<u128> {
                assert!(count <= 256);
                // SAFETY: the level is one that this machine has.
                (level >= Level::Avx512).then(|| unsafe { $module::sum(width, body, count) })
            }

            $(
                #[inline(always)]
                fn packed_find(level: Level, block: &Block<$key>, bytes: &[u8], key: $key) -> Option<Found> {
                    if level < Level::Vbmi {
                        return None;
                    }
                    // SAFETY: the level is one that this machine has.
                    unsafe { $find(block, bytes, key) }
                }
            )?

            #[inline(always)]
            fn packed_search(level: Level, width: u32, body: &[u8], count: usize, sought: $key) -> Option<Found> {
                const LANES: usize = 64 / <$key>::BYTES;
                let last = count.saturating_sub(1) / LANES * (LANES * width as usize / 8);
                if level < Level::Avx512 || count == 0 || last + <$key>::BYTES > body.len() {
                    return None;
                }
                $(if (241..=256).contains(&count) {
                    // SAFETY: as below.
                    return Some(unsafe { $full(width, body, count, sought) });
                })?
                // SAFETY: the level is one that this machine has, and the lengths have been compared.
                Some(unsafe { $module::search(width, body, count, sought) })
            }
        }
    };
}

entries!(x32, Avx512x32, u32, search_full, super::search::find);
entries!(x64, Avx512x64, u64);

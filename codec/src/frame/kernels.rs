//! AVX-512 kernels of FOR. The fields of a vector start at a whole byte, whatever their width, and take at most the
//! bytes of a vector: one load, two permutes and two shifts unpack them to lanes.

use core::arch::x86_64::*;
use core::hint::select_unpredictable;

use super::FrameKernels;
use crate::bits::mask;
use crate::lanes::vector::{Avx512x32, Avx512x64, Vector};
use crate::{Block, Found, Int, Level};

/// The vector operations that only these kernels need.
///
/// # Safety
/// Every function needs AVX-512.
unsafe trait Packed: Vector {
    /// Lane `i` becomes `i * width`.
    unsafe fn starts(width: u32) -> Self;
    /// Lane `i` becomes lane `from[i]`, modulo the lanes.
    unsafe fn permute(self, from: Self) -> Self;
    /// Shifts each lane by its own count. A shift by the bits of a key or more gives zero.
    unsafe fn shr_each(self, by: Self) -> Self;
    unsafe fn shl_each(self, by: Self) -> Self;
    /// `(self | other) & mask`.
    unsafe fn or_and(self, other: Self, mask: Self) -> Self;
    /// One bit for each lane: 1 if the lanes are equal.
    unsafe fn equal(self, other: Self) -> u32;
    /// Stores the first `lanes` lanes. `lanes` is less than the number of lanes.
    unsafe fn store_some(self, to: *mut Self::Key, lanes: usize);
    /// Keeps the first `lanes` lanes and sets the others to zero. `lanes` is less than the number of lanes.
    unsafe fn keep(self, lanes: usize) -> Self;
    /// The sum of the lower halves of all lanes, and the sum of the upper halves.
    unsafe fn halves(self) -> [u64; 2];
    /// Loads those of 64 bytes from `from` on that have a bit in `some`. The others are zero and are not read.
    unsafe fn load_some(from: *const u8, some: u64) -> Self;
}

macro_rules! packed {
    (
        $vector:ident, $key:ty, $signed:ty, $mask:ty, iota $iota:expr, $mullo:ident $set1:ident $permute:ident $srlv:ident
        $sllv:ident $ternary:ident $equal:ident $store:ident $keep:ident
    ) => {
        // SAFETY: each function does what the trait says.
        unsafe impl Packed for $vector {
            #[inline(always)]
            unsafe fn starts(width: u32) -> Self {
                // SAFETY: guaranteed by the trait's contract.
                Self(unsafe { $mullo($iota, $set1(width as $signed)) })
            }
            #[inline(always)]
            unsafe fn permute(self, from: Self) -> Self {
                // SAFETY: guaranteed by the trait's contract.
                Self(unsafe { $permute(from.0, self.0) })
            }
            #[inline(always)]
            unsafe fn shr_each(self, by: Self) -> Self {
                // SAFETY: guaranteed by the trait's contract.
                Self(unsafe { $srlv(self.0, by.0) })
            }
            #[inline(always)]
            unsafe fn shl_each(self, by: Self) -> Self {
                // SAFETY: guaranteed by the trait's contract.
                Self(unsafe { $sllv(self.0, by.0) })
            }
            #[inline(always)]
            unsafe fn or_and(self, other: Self, mask: Self) -> Self {
                // SAFETY: guaranteed by the trait's contract.
                Self(unsafe { $ternary::<0xE0>(mask.0, self.0, other.0) })
            }
            #[inline(always)]
            unsafe fn equal(self, other: Self) -> u32 {
                // SAFETY: guaranteed by the trait's contract.
                u32::from(unsafe { $equal(self.0, other.0) })
            }
            #[allow(clippy::cast_possible_truncation)]
            #[inline(always)]
            unsafe fn store_some(self, to: *mut $key, lanes: usize) {
                // SAFETY: guaranteed by the trait's contract: the mask keeps the store inside.
                unsafe { $store(to.cast(), ((1u32 << lanes) - 1) as $mask, self.0) }
            }
            #[allow(clippy::cast_possible_truncation)]
            #[inline(always)]
            unsafe fn keep(self, lanes: usize) -> Self {
                // SAFETY: guaranteed by the trait's contract.
                Self(unsafe { $keep(((1u32 << lanes) - 1) as $mask, self.0) })
            }
            #[inline(always)]
            unsafe fn halves(self) -> [u64; 2] {
                const HALF: u32 = <$key>::BITS / 2;
                let mut lanes: [$key; 64 / size_of::<$key>()] = [0; 64 / size_of::<$key>()];
                // SAFETY: there is room for a vector.
                unsafe { self.store(lanes.as_mut_ptr()) };
                let (low, high) = (mask(HALF), HALF);
                lanes.iter().fold([0; 2], |[a, b], &lane| [a + (u64::from(lane) & low), b + (u64::from(lane) >> high)])
            }
            #[inline(always)]
            unsafe fn load_some(from: *const u8, some: u64) -> Self {
                // SAFETY: guaranteed by the trait's contract: the mask keeps the load inside.
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

/// How the fields of one width are unpacked from the bytes of a vector.
struct FieldLayout<'a, V: Packed> {
    body: &'a [u8],
    /// The number of bytes of a vector's fields.
    step: usize,
    low: V,
    high: V,
    right: V,
    left: V,
    mask: V,
}

impl<'a, V: Packed> FieldLayout<'a, V> {
    /// # Safety
    /// The machine must have AVX-512.
    #[inline(always)]
    unsafe fn new(width: u32, body: &'a [u8]) -> FieldLayout<'a, V> {
        let bits = V::Key::BITS;
        // SAFETY: guaranteed by the caller.
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

    /// The fields of the `n`-th vector. A branch checks whether all 64 bytes can be read.
    ///
    /// # Safety
    /// The machine must have AVX-512.
    #[inline(always)]
    unsafe fn fields(&self, n: usize) -> V {
        let at = n * self.step;
        if at + 64 <= self.body.len() {
            // SAFETY: 64 bytes can be read.
            unsafe { self.unpack(V::load(self.body.as_ptr().add(at))) }
        } else {
            // SAFETY: guaranteed by the caller.
            unsafe { self.fields_near_end(n) }
        }
    }

    /// Like `fields`, without a branch.
    ///
    /// # Safety
    /// The machine must have AVX-512.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    unsafe fn fields_near_end(&self, n: usize) -> V {
        let at = (n * self.step).min(self.body.len());
        let left = (self.body.len() - at).min(64);
        // SAFETY: guaranteed by the caller; only the remaining bytes are read.
        unsafe { self.unpack(V::load_some(self.body.as_ptr().add(at), _bzhi_u64(u64::MAX, left as u32))) }
    }

    /// # Safety
    /// The machine must have AVX-512.
    #[inline(always)]
    unsafe fn unpack(&self, bytes: V) -> V {
        // If a field ends in its first word, the mask removes the bits of the second one.
        // SAFETY: guaranteed by the caller.
        unsafe {
            let low = bytes.permute(self.low).shr_each(self.right);
            let high = bytes.permute(self.high).shl_each(self.left);
            low.or_and(high, self.mask)
        }
    }
}

/// Writes every field plus `first` to `out`.
///
/// # Safety
/// The machine must have AVX-512.
#[inline(always)]
unsafe fn decode<V: Packed>(width: u32, body: &[u8], first: V::Key, out: &mut [V::Key]) {
    // SAFETY: guaranteed by the caller; a chunk has room for a vector, and of the last vector only the lanes that fit
    // are stored.
    unsafe {
        let layout = FieldLayout::<V>::new(width, body);
        let first = V::splat(first);
        let (mut n, mut chunks) = (0, out.chunks_exact_mut(V::LANES));
        for to in &mut chunks {
            layout.fields(n).add(first).store(to.as_mut_ptr());
            n += 1;
        }
        let rest = chunks.into_remainder();
        layout.fields_near_end(n).add(first).store_some(rest.as_mut_ptr(), rest.len());
    }
}

/// The sum of `count` fields.
///
/// # Safety
/// The machine must have AVX-512.
#[inline(always)]
unsafe fn sum<V: Packed>(width: u32, body: &[u8], count: usize) -> u128 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let layout = FieldLayout::<V>::new(width, body);
        let half = V::Key::BITS / 2;
        let halves = V::splat(V::Key::narrow(mask(half)));
        let (mut low, mut high) = (V::splat(V::Key::default()), V::splat(V::Key::default()));
        // At most 32 vectors, so the sum of halves in a lane does not overflow.
        for n in 0..count / V::LANES {
            let fields = layout.fields(n);
            low = low.add(fields.and(halves));
            high = high.add(fields.shr(half));
        }
        let last = layout.fields_near_end(count / V::LANES).keep(count % V::LANES);
        low = low.add(last.and(halves));
        high = high.add(last.shr(half));
        let ([a, b], [c, d]) = (low.halves(), high.halves());
        u128::from(a) + ((u128::from(b) + u128::from(c)) << half) + (u128::from(d) << (2 * half))
    }
}

/// The number of fields, of three, that are not greater than `sought`. The fields have `width` bits and are `stride`,
/// `2 * stride` and `3 * stride` bytes after `from`.
///
/// # Safety
/// The machine must have BMI2, and four bytes must be readable from each field on.
#[inline(always)]
unsafe fn quarter(from: *const u8, stride: usize, width: u32, sought: u32) -> usize {
    let mut below = 0;
    for n in 1..4 {
        // SAFETY: guaranteed by the caller.
        let field = unsafe { _bzhi_u32(from.add(n * stride).cast::<u32>().read_unaligned(), width) };
        below += usize::from(field <= sought);
    }
    below
}

/// Like `search`, for fields that fill 16 vectors. The first fields of three vectors select a group of four vectors,
/// and the first fields of three more select one of the four. The three loads of a step do not depend on each other.
///
/// # Safety
/// The same as for `search`, with more than 240 fields of 32 bits.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
unsafe fn search_full(width: u32, body: &[u8], count: usize, sought: u32) -> Found {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let layout = FieldLayout::<Avx512x32>::new(width, body);
        let (step, base) = (layout.step, body.as_ptr());
        let four = quarter(base, 4 * step, width, sought);
        let n = 4 * four + quarter(base.add(four * 4 * step), step, width, sought);
        let (fields, target) = (layout.fields_near_end(n), Avx512x32::splat(sought));
        // Places after the last field do not count.
        let valid = _bzhi_u32(0xFFFF, (count - n * 16) as u32);
        let below = (fields.less(target) & valid).count_ones();
        Found { index: n * 16 + below as usize, exact: fields.equal(target) & valid != 0 }
    }
}

/// The number of fields, of `count` increasing ones, that are less than `sought`, and whether the next field is equal
/// to it.
///
/// # Safety
/// The machine must have AVX-512. `count` is at least 1. From the start of the first field of every vector, the bytes
/// of a whole key can be read.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
unsafe fn search<V: Packed>(width: u32, body: &[u8], count: usize, sought: V::Key) -> Found {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let layout = FieldLayout::<V>::new(width, body);
        let (mut n, mut len) = (0, count.div_ceil(V::LANES));
        let low = _bzhi_u64(u64::MAX, width);
        while len > 1 {
            let half = len / 2;
            let pivot = body.as_ptr().add((n + half) * layout.step).cast::<V::Key>().read_unaligned();
            // The result of a comparison is random, so a branch would be mispredicted half of the time.
            n = select_unpredictable(pivot.widen() & low <= sought.widen(), n + half, n);
            len -= half;
        }
        let fields = layout.fields_near_end(n);
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
                    // SAFETY: this function is compiled for AVX-512.
                    unsafe { super::decode::<$vector>(width, body, first, out) }
                }

                #[inline]
                pub(super) fn sum(width: u32, body: &[u8], count: usize) -> u128 {
                    // SAFETY: this function is compiled for AVX-512.
                    unsafe { super::sum::<$vector>(width, body, count) }
                }

                /// # Safety
                /// The same as for the kernel.
                #[inline]
                pub(super) unsafe fn search(width: u32, body: &[u8], count: usize, sought: $key) -> Found {
                    // SAFETY: guaranteed by the caller.
                    unsafe { super::search::<$vector>(width, body, count, sought) }
                }
            }
        }

        impl FrameKernels for $key {
            #[inline]
            fn packed_decode(level: Level, width: u32, body: &[u8], first: $key, out: &mut [$key]) -> bool {
                if level >= Level::Avx512 {
                    // SAFETY: this machine has the level.
                    unsafe { $module::decode(width, body, first, out) };
                }
                level >= Level::Avx512
            }

            #[inline]
            fn packed_sum(level: Level, width: u32, body: &[u8], count: usize) -> Option<u128> {
                assert!(count <= 256);
                // SAFETY: this machine has the level.
                (level >= Level::Avx512).then(|| unsafe { $module::sum(width, body, count) })
            }

            $(
                #[inline(always)]
                fn packed_find(level: Level, block: &Block<$key>, bytes: &[u8], key: $key) -> Option<Found> {
                    if level < Level::Vbmi {
                        return None;
                    }
                    // SAFETY: this machine has the level.
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
                    // SAFETY: the same as below.
                    return Some(unsafe { $full(width, body, count, sought) });
                })?
                // SAFETY: this machine has the level, and the lengths have been compared.
                Some(unsafe { $module::search(width, body, count, sought) })
            }
        }
    };
}

entries!(x32, Avx512x32, u32, search_full, super::search::find);
entries!(x64, Avx512x64, u64);

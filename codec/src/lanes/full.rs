//! AVX-512 kernels for full blocks, one for each width. Rows and width are constants, so every shift is an immediate
//! and the position of every word is a constant. The kernels in `kernels.rs` are for blocks that are not full and for
//! smaller vectors.

use core::arch::x86_64::*;
use core::marker::PhantomData;

use super::vector::{Avx512x32, Avx512x64, Vector};
use crate::{Found, Int};

/// A stream of `R` rows of `W` bits. A vector has a whole row.
struct Full<V: Vector, const W: u32, const R: usize> {
    base: *const u8,
    /// The partial last word, if there is one.
    tail: V,
    mask: V,
    key: PhantomData<V>,
}

impl<V: Vector, const W: u32, const R: usize> Full<V, W, R> {
    const LANE_BYTES: usize = (R * W as usize).div_ceil(8);
    const WORDS: usize = Self::LANE_BYTES / V::Key::BYTES;
    const TAIL: usize = Self::LANE_BYTES % V::Key::BYTES;

    /// # Safety
    /// `body` has `LANE_BYTES` bytes for each lane.
    #[allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]
    #[inline(always)]
    unsafe fn new(body: *const u8) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let mut tail = V::splat(V::Key::default());
            let mut byte = 0;
            while byte < Self::TAIL {
                let bytes = V::load_bytes(body.add(Self::WORDS * 64 + byte * V::LANES));
                tail = tail.or(bytes.shl(8 * byte as u32));
                byte += 1;
            }
            let mask = V::splat(V::Key::narrow(crate::bits::mask(W)));
            Full { base: body, tail, mask, key: PhantomData }
        }
    }

    #[inline(always)]
    unsafe fn word(&self, word: usize) -> V {
        // SAFETY: whole words are inside the body.
        if word < Self::WORDS { unsafe { V::load(self.base.add(word * 64)) } } else { self.tail }
    }

    /// The fields of `row`. The mask must still be applied to them.
    ///
    /// # Safety
    /// `row < R`.
    #[allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]
    #[inline(always)]
    unsafe fn unmasked(&self, row: usize) -> V {
        let bit = row * W as usize;
        let (word, shift) = (bit / V::Key::BITS as usize, (bit % V::Key::BITS as usize) as u32);
        // SAFETY: the row's words are inside the stream.
        unsafe {
            if W == 0 {
                return self.tail;
            }
            let low = if shift == 0 { self.word(word) } else { self.word(word).shr(shift) };
            if shift + W > V::Key::BITS { low.or(self.word(word + 1).shl(V::Key::BITS - shift)) } else { low }
        }
    }

    /// # Safety
    /// `row < R`.
    #[inline(always)]
    unsafe fn row(&self, row: usize) -> V {
        let bit = row * W as usize;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let fields = self.unmasked(row);
            // The shift has already removed the other bits.
            let whole = bit % V::Key::BITS as usize + W as usize == V::Key::BITS as usize;
            if W == 0 || whole { fields } else { fields.and(self.mask) }
        }
    }
}

impl<V: Vector, const W: u32, const R: usize> Full<V, W, R> {
    /// The field of lane 0 in `row`.
    ///
    /// # Safety
    /// `row < R`.
    #[allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]
    #[inline(always)]
    unsafe fn first_of(&self, row: usize) -> u64 {
        let bit = row * W as usize;
        let (word, shift) = (bit / V::Key::BITS as usize, (bit % V::Key::BITS as usize) as u32);
        // SAFETY: the row's words are inside the stream.
        unsafe {
            let mut field = self.first_word(word) >> shift;
            if shift + W > V::Key::BITS {
                field |= self.first_word(word + 1) << (V::Key::BITS - shift);
            }
            field & crate::bits::mask(W)
        }
    }

    #[inline(always)]
    unsafe fn first_word(&self, word: usize) -> u64 {
        // SAFETY: the bytes of the word are inside the stream, also if it is partial.
        unsafe {
            let at = self.base.add(word * 64);
            if word < Self::WORDS {
                return at.cast::<V::Key>().read_unaligned().widen();
            }
            let (mut value, mut byte) = (0, 0);
            while byte < Self::TAIL {
                value |= u64::from(at.add(byte * V::LANES).read()) << (8 * byte);
                byte += 1;
            }
            value
        }
    }

    /// The fields of a row whose number is not a constant. `tail` points to the partial last word.
    ///
    /// # Safety
    /// `row < R`.
    #[allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]
    #[inline(always)]
    unsafe fn any_row(&self, row: usize, tail: *const V::Key) -> V {
        let bit = row as u32 * W;
        let (word, next) = (bit / V::Key::BITS, (bit + W.max(1) - 1) / V::Key::BITS);
        // SAFETY: both words are inside the stream.
        unsafe {
            let place = |word: u32| {
                if (word as usize) < Self::WORDS { self.base.add(word as usize * 64) } else { tail.cast() }
            };
            let low = V::load(place(word)).shr(bit % V::Key::BITS);
            let high = V::load(place(next)).shl(V::Key::BITS - bit % V::Key::BITS);
            low.or(high).and(self.mask)
        }
    }
}

/// The vector operations that only the search in a column needs.
trait Columns: Vector {
    /// The number of keys in one `column`.
    const TALL: usize = 8;

    /// Collects lane `from` of eight vectors in the first eight lanes.
    ///
    /// # Safety
    /// The machine must have AVX-512. `from` has the number of the lane in every lane. There are eight rows.
    unsafe fn column(rows: *const Self, from: Self) -> Self;

    /// Copies lane `from` to every lane.
    ///
    /// # Safety
    /// The same as for `column`.
    unsafe fn broadcast(self, from: Self) -> Self;
}

impl Columns for Avx512x32 {
    #[inline(always)]
    unsafe fn column(rows: *const Self, from: Self) -> Self {
        // SAFETY: guaranteed by the caller. No pair depends on another.
        unsafe {
            let from = _mm512_add_epi32(from.0, _mm512_set1_epi64(16 << 32));
            let pair = |row: usize| {
                let both = _mm512_permutex2var_epi32(rows.add(row).read().0, from, rows.add(row + 1).read().0);
                _mm512_castsi512_si256(both)
            };
            let low = _mm256_blend_epi32::<0b1100>(pair(0), pair(2));
            let high = _mm256_blend_epi32::<0b1100_0000>(pair(4), pair(6));
            Self(_mm512_castsi256_si512(_mm256_blend_epi32::<0b1111_0000>(low, high)))
        }
    }

    #[inline(always)]
    unsafe fn broadcast(self, from: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        Self(unsafe { _mm512_permutexvar_epi32(from.0, self.0) })
    }
}

impl Columns for Avx512x64 {
    #[inline(always)]
    unsafe fn column(rows: *const Self, from: Self) -> Self {
        // SAFETY: guaranteed by the caller. No pair depends on another.
        unsafe {
            let from = _mm512_add_epi64(from.0, _mm512_setr_epi64(0, 8, 0, 8, 0, 8, 0, 8));
            let pair = |row: usize| _mm512_permutex2var_epi64(rows.add(row).read().0, from, rows.add(row + 1).read().0);
            let low = _mm512_shuffle_i64x2::<0>(pair(0), pair(2));
            let high = _mm512_shuffle_i64x2::<0>(pair(4), pair(6));
            Self(_mm512_shuffle_i64x2::<0b10_00_10_00>(low, high))
        }
    }

    #[inline(always)]
    unsafe fn broadcast(self, from: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        Self(unsafe { _mm512_permutexvar_epi64(from.0, self.0) })
    }
}

/// Evaluates an expression for each of the first 8, 16 or 32 rows. The row is a constant in it.
macro_rules! each_row {
    (8, $row:ident => $do:expr) => {
        each_row!(@ $row, $do, 0 1 2 3 4 5 6 7)
    };
    (16, $row:ident => $do:expr) => {
        each_row!(@ $row, $do, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (32, $row:ident => $do:expr) => {
        each_row!(@ $row, $do, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    (@ $row:ident, $do:expr, $($n:literal)*) => {
        $({ const $row: usize = $n; $do; })*
    };
}

/// The kernels of one key type.
macro_rules! full_kernels {
    ($module:ident, $vector:ty, $key:ty, $frame:tt, $gap:tt, $($width:literal)*) => {
        pub(super) mod $module {
            use super::*;

            type V = $vector;
            const LANES: usize = <$vector>::LANES;

            compiled_for! { Avx512,
                /// # Safety
                /// The machine must have AVX-512. `body` is a full frame of width `W`, and `out` has room for 256 keys.
                unsafe fn frame_decode_of<const W: u32>(body: *const u8, first: $key, out: *mut $key) {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let rows = Full::<V, W, $frame>::new(body);
                        let first = V::splat(first);
                        each_row!($frame, ROW => rows.row(ROW).add(first).store(out.add(ROW * LANES)));
                    }
                }

                /// Searches for `sought` in 256 increasing fields. Three of them select a quarter.
                ///
                /// # Safety
                /// The same as for `frame_decode_of`.
                unsafe fn frame_search_of<const W: u32>(body: *const u8, sought: $key) -> Found {
                    const QUARTER: usize = $frame / 4;
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let rows = Full::<V, W, $frame>::new(body);
                        let mut tail = [0; LANES];
                        rows.tail.store(tail.as_mut_ptr());
                        let wide = u64::from(sought);
                        let quarter = usize::from(rows.first_of(QUARTER) <= wide)
                            + usize::from(rows.first_of(2 * QUARTER) <= wide)
                            + usize::from(rows.first_of(3 * QUARTER) <= wide);
                        let target = V::splat(sought);
                        let (mut index, mut differ) = (quarter * 64, 0);
                        let mut row = 0;
                        while row < QUARTER {
                            let fields = rows.any_row(quarter * QUARTER + row, tail.as_ptr());
                            let below = fields.less(target).count_ones();
                            index += below as usize;
                            differ += below + target.less(fields).count_ones();
                            row += 1;
                        }
                        let exact = differ < 64;
                        Found { index, exact }
                    }
                }

                /// # Safety
                /// The same as for `frame_decode_of`.
                unsafe fn frame_sum_of<const W: u32>(body: *const u8) -> u128 {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let rows = Full::<V, W, $frame>::new(body);
                        let mut sum = V::splat(0);
                        each_row!($frame, ROW => sum = sum.add(rows.row(ROW)));
                        sum.total()
                    }
                }

                /// # Safety
                /// The same as for `frame_decode_of`, with a full block of 128 gaps.
                unsafe fn gap_decode_of<const W: u32>(body: *const u8, first: $key, out: *mut $key) {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let rows = Full::<V, W, $gap>::new(body);
                        let mut run = [V::splat(0); $gap];
                        let mut totals = V::splat(0);
                        each_row!($gap, ROW => {
                            totals = totals.step(rows.unmasked(ROW), rows.mask);
                            run[ROW] = totals;
                        });
                        // Field 0 is zero, so the first key would be one too large.
                        let before = V::splat(first.wrapping_sub(1));
                        let base = totals.prefix_sums().sub(totals).add(before);
                        each_row!($gap, ROW => run[ROW] = run[ROW].add(base));
                        let run = run.as_mut_ptr();
                        if V::ROWS == $gap {
                            return V::store_runs(run, out);
                        }
                        each_row!(@ CHUNK, {
                            if CHUNK * V::ROWS < $gap {
                                V::store_columns(run.add(CHUNK * V::ROWS), out.add(CHUNK * V::ROWS), $gap);
                            }
                        }, 0 1);
                    }
                }

                /// Selects a lane by the first keys of the lanes, and then searches in it.
                ///
                /// # Safety
                /// The same as for `gap_decode_of`. No key is beyond the key type, and `sought` is greater than the
                /// first key.
                #[allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]
                unsafe fn gap_search_of<const W: u32>(body: *const u8, first: $key, sought: $key) -> Found {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let rows = Full::<V, W, $gap>::new(body);
                        let mut run = [V::splat(0); $gap];
                        let mut totals = V::splat(0);
                        each_row!($gap, ROW => {
                            totals = totals.step(rows.unmasked(ROW), rows.mask);
                            run[ROW] = totals;
                        });
                        let base = totals.prefix_sums().sub(totals).add(V::splat(first.wrapping_sub(1)));
                        let target = V::splat(sought);
                        // With hostile gaps, keys may wrap around, and all lanes may begin with a greater key.
                        let above = target.less(run[0].add(base)).count_ones() as usize;
                        let lane = (LANES - above).saturating_sub(1);
                        let from = V::splat(lane as $key);
                        let base = base.broadcast(from);
                        let (mut below, mut equal) = (0, 0);
                        for column in 0..$gap / V::TALL {
                            let keys = V::column(run.as_ptr().add(column * V::TALL), from).add(base);
                            below += (keys.less(target) & 0xFF).count_ones() as usize;
                            equal |= !(keys.less(target) | target.less(keys)) & 0xFF;
                        }
                        Found { index: lane * $gap + below, exact: equal != 0 }
                    }
                }

                /// # Safety
                /// The same as for `gap_decode_of`.
                unsafe fn gap_sums_of<const W: u32>(body: *const u8) -> [u128; 2] {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        let rows = Full::<V, W, $gap>::new(body);
                        let mut total = V::splat(0);
                        let mut sum = total;
                        each_row!($gap, ROW => {
                            total = total.add(rows.row(ROW));
                            sum = sum.add(total);
                        });
                        [sum.total(), total.prefix_sums().sub(total).total()]
                    }
                }
            }

            full_kernels!(@entry frame_decode frame_decode_of [body: *const u8, first: $key, out: *mut $key] (body, first, out) -> (), $($width)*);
            full_kernels!(@entry frame_search frame_search_of [body: *const u8, sought: $key] (body, sought) -> Found, $($width)*);
            full_kernels!(@entry frame_sum frame_sum_of [body: *const u8] (body) -> u128, $($width)*);
            full_kernels!(@entry gap_decode gap_decode_of [body: *const u8, first: $key, out: *mut $key] (body, first, out) -> (), $($width)*);
            full_kernels!(@entry gap_search gap_search_of [body: *const u8, first: $key, sought: $key] (body, first, sought) -> Found, $($width)*);
            full_kernels!(@entry gap_sums gap_sums_of [body: *const u8] (body) -> [u128; 2], $($width)*);
        }
    };
    (@entry $name:ident $of:ident [$($param:tt)*] $call:tt -> $result:ty, $($width:literal)*) => {
        compiled_for! { Avx512,
            /// Calls the kernel of a width. For an impossible width, it calls the widest kernel.
            ///
            /// # Safety
            /// The same as for the kernel.
            #[inline]
            pub(in crate::lanes) unsafe fn $name(width: u32, $($param)*) -> $result {
                // SAFETY: guaranteed by the caller.
                unsafe {
                    match width {
                        $($width => $of::<$width> $call,)*
                        _ => $of::<{ <V as Vector>::Key::BITS }> $call,
                    }
                }
            }
        }
    };
}

full_kernels!(
    full32, Avx512x32, u32, 16, 8,
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
);
full_kernels!(
    full64, Avx512x64, u64, 32, 16,
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
);

//! The kernels for lane streams, generic over the vector size, and their `#[target_feature]` functions.
//!
//! The kernels know little about the meaning of fields: SIMD FOR adds the first key to every field, and BP128 adds
//! fields by column. The safe functions at the end assert everything that the kernels rely on.

use core::mem::MaybeUninit;

use super::full::{full32, full64};
use super::insert::insert;
use super::search;
use super::vector::{Avx2x32, Avx2x64, Avx512x32, Avx512x64, Sse32, Sse64, Vector};
use super::words::{Tail, Words, store_partial};
use super::{LaneKernels, Lanes};
use crate::bits::mask;
use crate::{Block, Buffer, Found, Int, Level};

/// # Safety
/// The same as for `Words`. `out` has room for all rows.
#[inline(always)]
unsafe fn frame_decode<V: Vector>(lanes: &Lanes<V::Key>, body: &[u8], first: V::Key, out: *mut V::Key) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut tail = Tail::uninit();
        let words = Words::<V>::new(lanes, body, &mut tail);
        let first = V::splat(first);
        for row in 0..lanes.rows {
            for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
                let at = row * Lanes::<V::Key>::COUNT + part * V::LANES;
                words.row(row, part).add(first).store(out.add(at));
            }
        }
    }
}

/// The number of fields, of the `count` increasing ones, that are less than `sought`, and whether the next field is
/// equal to it. The first fields of three rows select a quarter of the rows. The three loads do not depend on each
/// other.
///
/// # Safety
/// The same as for `Words`. `count > 0`.
#[allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]
#[inline(always)]
unsafe fn frame_search<V: Vector>(lanes: &Lanes<V::Key>, body: &[u8], count: usize, sought: V::Key) -> Found {
    let (per_row, rows) = (Lanes::<V::Key>::COUNT, lanes.rows);
    let quarter = rows.div_ceil(4);
    // SAFETY: guaranteed by the caller; the rows are inside the stream.
    unsafe {
        let mut tail = Tail::uninit();
        let words = Words::<V>::new(lanes, body, &mut tail);
        let mut quarters = 0;
        for n in 1..4 {
            let row = n * quarter;
            let begins_below = words.first_of(row.min(rows - 1)) <= sought.widen();
            quarters += usize::from(row < rows) & usize::from(begins_below);
        }
        // The same number of rows for every quarter. If this adds rows before the quarter, their fields are all less
        // than `sought`.
        let start = (quarters * quarter).min(rows - quarter);
        let (mut index, mut equal) = (start * per_row, 0);
        let target = V::splat(sought);
        for row in start..start + quarter {
            let (mut below, mut above) = (0, 0);
            for part in 0..per_row / V::LANES {
                let fields = words.row(row, part);
                below |= fields.less(target) << (part * V::LANES);
                above |= target.less(fields) << (part * V::LANES);
            }
            // Unused places are zero and would count as less.
            let used = mask((count - row * per_row).min(per_row) as u32) as u32;
            index += (below & used).count_ones() as usize;
            equal |= !(below | above) & used;
        }
        Found { index, exact: equal != 0 }
    }
}

/// The sum of all fields. The sum of a lane is within the key type.
///
/// # Safety
/// The same as for `Words`.
#[inline(always)]
unsafe fn frame_sum<V: Vector>(lanes: &Lanes<V::Key>, body: &[u8]) -> u128 {
    let mut all = 0;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut tail = Tail::uninit();
        let words = Words::<V>::new(lanes, body, &mut tail);
        for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
            let mut sum = V::splat(V::Key::default());
            for row in 0..lanes.rows {
                sum = sum.add(words.row(row, part));
            }
            all += sum.total();
        }
    }
    all
}

/// The maximum number of rows of a BP128 block, rounded up to the number that `store_columns` stores at once.
const MAX_RUN: usize = 16;

/// Writes the rows of one part to `run`. Each field plus one is added to those above it in its lane. Returns the
/// totals.
///
/// # Safety
/// The same as for `Words`. `run` has room for `rows`, which is at most 16.
#[inline(always)]
unsafe fn run_sums<V: Vector>(words: &Words<V>, rows: usize, part: usize, run: *mut V) -> V {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let one = V::splat(V::Key::narrow(1));
        let mut sum = V::splat(V::Key::default());
        for row in 0..rows {
            sum = sum.add(words.row(row, part)).add(one);
            run.add(row).write(sum);
        }
        sum
    }
}

/// # Safety
/// The same as for `Words`. The stream has at most 128 fields and `rows` rows.
#[inline(always)]
unsafe fn gap_decode<V: Vector>(
    lanes: &Lanes<V::Key>,
    rows: usize,
    body: &[u8],
    first: V::Key,
    out: &mut Buffer<V::Key>,
) {
    let out = out.as_mut_ptr();
    // SAFETY: guaranteed by the caller. The keys of a lane end at most `ROWS` keys after the 128th, and `Buffer` has
    // 256.
    unsafe {
        let mut tail = Tail::uninit();
        let words = Words::<V>::new(lanes, body, &mut tail);
        let mut run = MaybeUninit::<[V; MAX_RUN]>::uninit();
        let run = run.as_mut_ptr().cast::<V>();
        // Field 0 is zero, so the first key would be one too large.
        let mut before = V::splat(V::Key::narrow(first.widen().wrapping_sub(1)));
        for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
            let totals = run_sums(&words, rows, part, run);
            let through = totals.prefix_sums().add(before);
            let base = through.sub(totals);
            before = through.last();
            for row in 0..rows {
                run.add(row).write(run.add(row).read().add(base));
            }
            for row in rows..rows.next_multiple_of(V::ROWS) {
                run.add(row).write(base);
            }
            // Later rows first: the keys that a lane stores after its last row are overwritten by the next lane.
            let to = out.add(part * V::LANES * rows);
            for chunk in (0..rows.div_ceil(V::ROWS)).rev() {
                V::store_columns(run.add(chunk * V::ROWS), to.add(chunk * V::ROWS), rows);
            }
        }
    }
}

/// The number of keys, of the `count` ones, that are less than `sought`, and whether the next key is equal to it.
///
/// # Safety
/// The same as for `gap_decode`. No key is beyond the key type, also not those of unused places.
#[inline(always)]
unsafe fn gap_search<V: Vector>(
    lanes: &Lanes<V::Key>,
    rows: usize,
    body: &[u8],
    first: V::Key,
    sought: V::Key,
) -> Found {
    let mut keys = MaybeUninit::<[V::Key; 128]>::uninit();
    let keys = keys.as_mut_ptr().cast::<V::Key>();
    let mut index = 0;
    // SAFETY: guaranteed by the caller. Every row of `keys` that is read has been written.
    unsafe {
        let mut tail = Tail::uninit();
        let words = Words::<V>::new(lanes, body, &mut tail);
        let mut run = MaybeUninit::<[V; MAX_RUN]>::uninit();
        let run = run.as_mut_ptr().cast::<V>();
        let mut before = V::splat(V::Key::narrow(first.widen().wrapping_sub(1)));
        let target = V::splat(sought);
        for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
            let totals = run_sums(&words, rows, part, run);
            let through = totals.prefix_sums().add(before);
            let base = through.sub(totals);
            before = through.last();
            for row in 0..rows {
                let sums = run.add(row).read().add(base);
                index += sums.less(target).count_ones() as usize;
                sums.store(keys.add(row * Lanes::<V::Key>::COUNT + part * V::LANES));
            }
        }
        let at = (index % rows) * Lanes::<V::Key>::COUNT + index / rows;
        let exact = index < rows * Lanes::<V::Key>::COUNT && keys.add(at).read() == sought;
        Found { index, exact }
    }
}

/// The sum of all prefix sums within lanes, and the sum, over all lanes, of the gaps in the lanes before.
///
/// # Safety
/// The same as for `frame_sum`.
#[inline(always)]
unsafe fn gap_sums<V: Vector>(lanes: &Lanes<V::Key>, body: &[u8]) -> [u128; 2] {
    let [mut within, mut before] = [0; 2];
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut tail = Tail::uninit();
        let words = Words::<V>::new(lanes, body, &mut tail);
        let mut parts = V::splat(V::Key::default());
        for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
            let mut total = V::splat(V::Key::default());
            let mut sum = total;
            for row in 0..lanes.rows {
                total = total.add(words.row(row, part));
                sum = sum.add(total);
            }
            let through = total.prefix_sums().add(parts);
            within += sum.total();
            before += through.sub(total).total();
            parts = through.last();
        }
    }
    [within, before]
}

/// The sum of the fields 0 to `index`, by column.
///
/// # Safety
/// The same as for `gap_decode`.
#[inline(always)]
unsafe fn gap_select<V: Vector>(lanes: &Lanes<V::Key>, rows: usize, body: &[u8], index: usize) -> V::Key {
    let (lane, last) = (index / rows, index % rows);
    let mut sums = MaybeUninit::<[[V::Key; 16]; 2]>::uninit();
    let upto = sums.as_mut_ptr().cast::<V::Key>();
    let mut key = 0u64;
    // SAFETY: guaranteed by the caller. Both rows of `sums` are written before they are read.
    unsafe {
        let whole = upto.add(16);
        let mut tail = Tail::uninit();
        let words = Words::<V>::new(lanes, body, &mut tail);
        for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
            let mut sum = V::splat(V::Key::default());
            for row in 0..rows {
                sum = sum.add(words.row(row, part));
                if row == last {
                    sum.store(upto.add(part * V::LANES));
                }
            }
            sum.store(whole.add(part * V::LANES));
        }
        for before in 0..lane {
            key = key.wrapping_add(whole.add(before).read().widen());
        }
        V::Key::narrow(key.wrapping_add(upto.add(lane).read().widen()))
    }
}

/// Packs `rows * COUNT` fields, row by row, to `body`.
///
/// # Safety
/// The same as for `Words`. `fields` has all rows, and no field is wider than the width of the stream.
#[inline(always)]
unsafe fn pack<V: Vector>(lanes: &Lanes<V::Key>, fields: *const V::Key, base: V::Key, body: &mut [u8]) {
    let out = body.as_mut_ptr();
    let count = Lanes::<V::Key>::COUNT;
    // SAFETY: guaranteed by the caller: `words` whole words and `tail` byte rows are inside `body`.
    unsafe {
        let below = V::splat(base);
        for part in 0..count / V::LANES {
            let zero = V::splat(V::Key::default());
            let (mut word, mut filled, mut at) = (zero, 0, part * size_of::<V>());
            for row in 0..lanes.rows {
                let field = V::load(fields.add(row * count + part * V::LANES).cast()).sub(below);
                word = word.or(field.shl(filled));
                filled += lanes.width;
                if filled >= V::Key::BITS {
                    word.store(out.add(at).cast());
                    at += 64;
                    filled -= V::Key::BITS;
                    word = field.shr(lanes.width - filled);
                }
            }
            // The last word is also whole if up to seven of its bits are unused, because a lane has whole bytes.
            if at / 64 < lanes.words() {
                word.store(out.add(at).cast());
                continue;
            }
            store_partial(lanes, word, out.add(lanes.words() * 64), part);
        }
    }
}

/// The functions for one key type and level.
macro_rules! entries {
    ($module:ident, $vector:ty, $key:ty, $level:ident) => {
        mod $module {
            use super::*;

            /// The rows of a full BP128 block. The loops are unrolled for them.
            const FULL: usize = 128 / Lanes::<$key>::COUNT;

            compiled_for! { $level,
                pub(super) unsafe fn frame_decode(lanes: &Lanes<$key>, body: &[u8], first: $key, out: *mut $key) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { super::frame_decode::<$vector>(lanes, body, first, out) }
                }

                pub(super) unsafe fn frame_search(lanes: &Lanes<$key>, body: &[u8], count: usize, sought: $key) -> Found {
                    // SAFETY: guaranteed by the caller.
                    unsafe { super::frame_search::<$vector>(lanes, body, count, sought) }
                }

                pub(super) unsafe fn frame_insert(lanes: &Lanes<$key>, body: &mut [u8], index: usize, field: $key) -> bool {
                    // SAFETY: guaranteed by the caller.
                    unsafe { insert::<$vector>(lanes, body, index, field) }
                }

                pub(super) unsafe fn frame_sum(lanes: &Lanes<$key>, body: &[u8]) -> u128 {
                    // SAFETY: guaranteed by the caller.
                    unsafe { super::frame_sum::<$vector>(lanes, body) }
                }

                pub(super) unsafe fn gap_decode(lanes: &Lanes<$key>, body: &[u8], first: $key, out: &mut Buffer<$key>) {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        match lanes.rows {
                            FULL => super::gap_decode::<$vector>(lanes, FULL, body, first, out),
                            rows => super::gap_decode::<$vector>(lanes, rows, body, first, out),
                        }
                    }
                }

                pub(super) unsafe fn gap_search(lanes: &Lanes<$key>, body: &[u8], first: $key, sought: $key) -> Found {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        match lanes.rows {
                            FULL => super::gap_search::<$vector>(lanes, FULL, body, first, sought),
                            rows => super::gap_search::<$vector>(lanes, rows, body, first, sought),
                        }
                    }
                }

                pub(super) unsafe fn gap_sums(lanes: &Lanes<$key>, body: &[u8]) -> [u128; 2] {
                    // SAFETY: guaranteed by the caller.
                    unsafe { super::gap_sums::<$vector>(lanes, body) }
                }

                pub(super) unsafe fn gap_select(lanes: &Lanes<$key>, body: &[u8], index: usize) -> $key {
                    // SAFETY: guaranteed by the caller.
                    unsafe {
                        match lanes.rows {
                            FULL => super::gap_select::<$vector>(lanes, FULL, body, index),
                            rows => super::gap_select::<$vector>(lanes, rows, body, index),
                        }
                    }
                }

                pub(super) unsafe fn pack(lanes: &Lanes<$key>, fields: *const $key, base: $key, body: &mut [u8]) {
                    // SAFETY: guaranteed by the caller.
                    unsafe { super::pack::<$vector>(lanes, fields, base, body) }
                }
            }
        }
    };
}

entries!(sse32, Sse32, u32, Sse4);
entries!(sse64, Sse64, u64, Sse4);
entries!(avx2x32, Avx2x32, u32, Avx2);
entries!(avx2x64, Avx2x64, u64, Avx2);
entries!(avx512x32, Avx512x32, u32, Avx512);
entries!(avx512x64, Avx512x64, u64, Avx512);

/// Runs the kernel of `$level`. Returns `$none` if there is none.
macro_rules! at_level {
    ($level:expr, $none:expr, $($module:ident)* => $name:ident ( $($arg:expr),* )) => {
        at_level!(@ $level, $none, $name ( $($arg),* ), $($module)*)
    };
    (@ $level:expr, $none:expr, $name:ident ( $($arg:expr),* ), $sse:ident $avx2:ident $avx512:ident) => {
        // SAFETY: a `Level` is always one that this machine has, and the lengths were asserted just before.
        unsafe {
            match $level {
                Level::Scalar => return $none,
                Level::Sse4 => $sse::$name($($arg),*),
                Level::Avx2 => $avx2::$name($($arg),*),
                Level::Avx512 | Level::Vbmi => $avx512::$name($($arg),*),
            }
        }
    };
}

macro_rules! lane_kernels {
    ($key:ty, $sse:ident $avx2:ident $avx512:ident $full:ident $(, $find:ident $find_among:ident)?) => {
        impl LaneKernels for $key {
            #[inline]
            fn frame_decode(level: Level, lanes: &Lanes<$key>, body: &[u8], first: $key, out: &mut Buffer<$key>) -> bool {
                assert!(body.len() == lanes.size() && lanes.rows * Lanes::<$key>::COUNT <= out.len());
                if level >= Level::Avx512 && lanes.rows * Lanes::<$key>::COUNT == 256 {
                    // SAFETY: the same as below, and the block is full.
                    unsafe { $full::frame_decode(lanes.width, body.as_ptr(), first, out.as_mut_ptr()) }
                    return true;
                }
                at_level!(level, false, $sse $avx2 $avx512 => frame_decode(lanes, body, first, out.as_mut_ptr()));
                true
            }

            $(
                #[inline(always)]
                fn frame_find(level: Level, block: &Block<$key>, bytes: &[u8], key: $key) -> Option<Found> {
                    if level < Level::Vbmi {
                        return None;
                    }
                    // SAFETY: this machine has the level.
                    unsafe { search::$find(block, bytes, key) }
                }

                #[inline(always)]
                fn frame_find_among(level: Level, block: &Block<$key>, body: &[u8], key: $key) -> Option<Found> {
                    // SAFETY: this machine has the level.
                    if level < Level::Vbmi { None } else { unsafe { search::$find_among(block, body, key) } }
                }
            )?

            #[inline(always)]
            fn gap_find(level: Level, block: &Block<$key>, bytes: &[u8], key: $key) -> Option<Found> {
                let lanes = Lanes::<$key>::holding(128, u32::from(block.extent));
                let is_full = block.count == 128 && lanes.width <= <$key>::BITS;
                if level < Level::Avx512 || !is_full || bytes.len() < lanes.size() {
                    return None;
                }
                // SAFETY: this machine has the level, the block is full, and its bytes can be read.
                Some(unsafe { $full::gap_search(lanes.width, bytes.as_ptr(), block.first, key) })
            }

            #[inline(always)]
            fn frame_search(level: Level, lanes: &Lanes<$key>, body: &[u8], count: usize, sought: $key) -> Option<Found> {
                assert!(body.len() == lanes.size() && lanes.rows * Lanes::<$key>::COUNT <= 256);
                assert!(lanes.rows > 0 && count <= lanes.rows * Lanes::<$key>::COUNT);
                assert!(count > (lanes.rows - 1) * Lanes::<$key>::COUNT);
                if level >= Level::Avx512 && count == 256 {
                    // SAFETY: the same as below, and the block is full.
                    return Some(unsafe { $full::frame_search(lanes.width, body.as_ptr(), sought) });
                }
                Some(at_level!(level, None, $sse $avx2 $avx512 => frame_search(lanes, body, count, sought)))
            }

            #[inline]
            fn frame_insert(level: Level, lanes: &Lanes<$key>, body: &mut [u8], index: usize, field: $key) -> Option<bool> {
                assert!(body.len() == lanes.size() && index < lanes.rows * Lanes::<$key>::COUNT);
                Some(at_level!(level, None, $sse $avx2 $avx512 => frame_insert(lanes, body, index, field)))
            }

            #[inline]
            fn frame_sum(level: Level, lanes: &Lanes<$key>, body: &[u8]) -> Option<u128> {
                assert!(body.len() == lanes.size() && lanes.rows * Lanes::<$key>::COUNT <= 256);
                if level >= Level::Avx512 && lanes.rows * Lanes::<$key>::COUNT == 256 {
                    // SAFETY: the same as below, and the block is full.
                    return Some(unsafe { $full::frame_sum(lanes.width, body.as_ptr()) });
                }
                Some(at_level!(level, None, $sse $avx2 $avx512 => frame_sum(lanes, body)))
            }

            #[inline]
            fn gap_decode(level: Level, lanes: &Lanes<$key>, body: &[u8], first: $key, out: &mut Buffer<$key>) -> bool {
                assert!(body.len() == lanes.size() && lanes.rows * Lanes::<$key>::COUNT <= 128);
                if level >= Level::Avx512 && lanes.rows * Lanes::<$key>::COUNT == 128 {
                    // SAFETY: the same as below, and the block is full.
                    unsafe { $full::gap_decode(lanes.width, body.as_ptr(), first, out.as_mut_ptr()) }
                    return true;
                }
                at_level!(level, false, $sse $avx2 $avx512 => gap_decode(lanes, body, first, out));
                true
            }

            #[inline(always)]
            fn gap_search(level: Level, lanes: &Lanes<$key>, body: &[u8], first: $key, sought: $key) -> Option<Found> {
                assert!(body.len() == lanes.size() && lanes.rows > 0 && lanes.rows * Lanes::<$key>::COUNT <= 128);
                if level >= Level::Avx512 && lanes.rows * Lanes::<$key>::COUNT == 128 {
                    // SAFETY: the same as below, and the block is full.
                    return Some(unsafe { $full::gap_search(lanes.width, body.as_ptr(), first, sought) });
                }
                Some(at_level!(level, None, $sse $avx2 $avx512 => gap_search(lanes, body, first, sought)))
            }

            #[inline]
            fn gap_sums(level: Level, lanes: &Lanes<$key>, body: &[u8]) -> Option<[u128; 2]> {
                assert!(body.len() == lanes.size() && lanes.rows * Lanes::<$key>::COUNT <= 128);
                if level >= Level::Avx512 && lanes.rows * Lanes::<$key>::COUNT == 128 {
                    // SAFETY: the same as below, and the block is full.
                    return Some(unsafe { $full::gap_sums(lanes.width, body.as_ptr()) });
                }
                Some(at_level!(level, None, $sse $avx2 $avx512 => gap_sums(lanes, body)))
            }

            #[inline]
            fn gap_select(level: Level, lanes: &Lanes<$key>, body: &[u8], index: usize) -> Option<$key> {
                assert!(body.len() == lanes.size() && lanes.rows * Lanes::<$key>::COUNT <= 128);
                assert!(index < lanes.rows * Lanes::<$key>::COUNT);
                Some(at_level!(level, None, $sse $avx2 $avx512 => gap_select(lanes, body, index)))
            }

            #[inline]
            fn pack(level: Level, lanes: &Lanes<$key>, fields: &Buffer<$key>, base: $key, body: &mut [u8]) -> bool {
                assert!(body.len() == lanes.size() && lanes.rows * Lanes::<$key>::COUNT <= fields.len());
                at_level!(level, false, $sse $avx2 $avx512 => pack(lanes, fields.as_ptr(), base, body));
                true
            }
        }
    };
}

lane_kernels!(u32, sse32 avx2x32 avx512x32 full32, find find_among);
lane_kernels!(u64, sse64 avx2x64 avx512x64 full64);

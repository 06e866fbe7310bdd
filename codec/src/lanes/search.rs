//! Searches a frame of 32-bit keys. The code is the same for all widths and looks only at the 32 fields around the
//! likely place of the key. There is one function for full frames, in which only the width varies, and one for others.
//! With one kernel for each width, the processor would often mispredict the jump to the kernel, because neighbouring
//! blocks differ in width.

use core::arch::x86_64::*;
use core::mem::transmute;

use crate::bits::width;
use crate::{Block, Found, guess};

/// The rows of a full frame, the fields of a row, and the rows of a window.
const ROWS: usize = 16;
const LANES: usize = 16;
const WINDOW: usize = 2;

/// The widths that these functions support. In narrower frames, a lane has no whole word. 256 different keys have 8
/// bits or more.
const MIN: u32 = 7;
const MAX: u32 = 32;

/// The end of a row's fields. In the word at `high`, shifted up by `up`, the fields are the top bits. If bits are
/// missing there, they are the top bits of the word before, at `low`.
#[derive(Clone, Copy)]
struct Ending {
    high: u16,
    low: u16,
    up: u32,
}

/// The rows that are searched together.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct RowWindow {
    rows: [Ending; WINDOW],
    /// The number of fields in the rows before.
    before: u16,
    /// Whether a row ends in the partial last word of the stream, and the position of that word.
    in_tail: bool,
    tail: u16,
    /// For each row: all lanes if the word at `high` is whole, no lane if it is the partial one.
    whole: [u16; WINDOW],
}

impl RowWindow {
    #[allow(clippy::cast_possible_truncation)]
    #[allow(clippy::indexing_slicing, reason = "indexes are constants, or are compared with the length first")]
    const fn of(width: u32, first_row: usize) -> RowWindow {
        let tail = (ROWS as u32 * width / 32) as u16 * 64;
        let rows = [Ending { high: 0, low: 0, up: 0 }; WINDOW];
        let before = (first_row * LANES) as u16;
        let mut window = RowWindow { rows, before, in_tail: false, tail, whole: [u16::MAX; WINDOW] };
        let mut i = 0;
        while i < WINDOW {
            let end = (first_row + i + 1) as u32 * width;
            let high = ((end - 1) / 32) as u16;
            window.rows[i] = Ending { high: high * 64, low: high.saturating_sub(1) * 64, up: end.wrapping_neg() % 32 };
            if high * 64 == tail {
                window.in_tail = true;
                window.whole[i] = 0;
            }
            i += 1;
        }
        window
    }
}

/// The windows of each width by their first row. A window cannot begin with the last row, which has the window of the
/// row before.
#[allow(clippy::indexing_slicing, reason = "indexes are constants, or are compared with the length first")]
static WINDOWS: [[RowWindow; ROWS]; (MAX - MIN) as usize + 1] = {
    let mut windows = [[RowWindow::of(MIN, 0); ROWS]; (MAX - MIN) as usize + 1];
    let mut width = MIN;
    while width <= MAX {
        let mut row = 0;
        while row < ROWS {
            let first = if row + WINDOW > ROWS { ROWS - WINDOW } else { row };
            windows[(width - MIN) as usize][row] = RowWindow::of(width, first);
            row += 1;
        }
        width += 1;
    }
    windows
};

/// The positions of the bytes of the partial word's lanes. The word is in up to three rows of bytes, with zeros after
/// them.
#[allow(clippy::cast_possible_truncation)]
#[allow(clippy::indexing_slicing, reason = "indexes are constants, or are compared with the length first")]
const TAIL_BYTES: __m512i = {
    let mut places = [63u8; 64];
    let mut lane = 0;
    while lane < LANES {
        places[4 * lane] = lane as u8;
        places[4 * lane + 1] = (LANES + lane) as u8;
        places[4 * lane + 2] = (2 * LANES + lane) as u8;
        lane += 1;
    }
    // SAFETY: every vector of bytes is valid.
    unsafe { transmute::<[u8; 64], __m512i>(places) }
};

compiled_for! { Vbmi,
    /// The words in which the rows of the window end.
    ///
    /// # Safety
    /// `body` is a full frame of the window's width.
    #[inline]
    unsafe fn high_words(window: &RowWindow, body: *const u8) -> [__m512i; WINDOW] {
        let at = |offset: u16| body.wrapping_add(usize::from(offset));
        let [first, second] = [window.rows[0].high, window.rows[1].high];
        // SAFETY: whole words are inside the body, and so are the 32 bytes that are read of the partial word.
        unsafe {
            if !window.in_tail {
                return [_mm512_loadu_si512(at(first).cast()), _mm512_loadu_si512(at(second).cast())];
            }
            let bytes = _mm256_loadu_si256(at(window.tail).cast());
            let tail = _mm512_permutexvar_epi8(TAIL_BYTES, _mm512_zextsi256_si512(bytes));
            [
                _mm512_mask_loadu_epi32(tail, window.whole[0], at(first).cast()),
                _mm512_mask_loadu_epi32(tail, window.whole[1], at(second).cast()),
            ]
        }
    }

    /// Like [`high_words`], for a frame with any number of keys. A lane has `words` whole words and `tail` bytes of the
    /// partial one.
    ///
    /// # Safety
    /// `body` is a frame of the window's width that has the window's rows, and `words` and `tail` are the ones of this
    /// frame.
    #[allow(clippy::cast_possible_truncation)]
    #[inline]
    unsafe fn high_words_of(window: &RowWindow, body: *const u8, words: usize, tail: usize) -> [__m512i; WINDOW] {
        let [first, second] = [window.rows[0].high, window.rows[1].high].map(usize::from);
        // SAFETY: whole words are inside the body, and the mask keeps the load of the partial one inside.
        unsafe {
            let load = |offset: usize| _mm512_loadu_si512(body.add(offset).cast());
            if second < 64 * words {
                return [load(first), load(second)];
            }
            let there = _bzhi_u64(u64::MAX, (LANES * tail) as u32);
            let partial = _mm512_permutexvar_epi8(TAIL_BYTES, _mm512_maskz_loadu_epi8(there, body.add(second).cast()));
            [if first == second { partial } else { load(first) }, partial]
        }
    }

    /// Compares the fields of the window: a mask of those less than `sought`, and a mask of those not greater than it.
    ///
    /// # Safety
    /// `body` is a frame of the window's width with at least one whole word, and it has the window's rows. `high` has
    /// the words in which they end.
    #[allow(clippy::indexing_slicing, reason = "indexes are constants, or are compared with the length first")]
    #[inline]
    unsafe fn compare(window: &RowWindow, high: [__m512i; WINDOW], body: *const u8, sought: u32, width: u32) -> (u32, u32) {
        // Fields are compared at the top of their lanes, with other bits below them.
        let rest = 32 - width;
        let least = sought << rest;
        let most = least | !(u32::MAX << rest);
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (least, most) = (_mm512_set1_epi32(least as i32), _mm512_set1_epi32(most as i32));
            let compare = |row: usize| {
                let Ending { low, up, .. } = window.rows[row];
                let low = _mm512_loadu_si512(body.add(low.into()).cast());
                let fields = _mm512_shldv_epi32(high[row], low, _mm512_set1_epi32(up as i32));
                (_mm512_cmplt_epu32_mask(fields, least), _mm512_cmple_epu32_mask(fields, most))
            };
            let (first, second) = (compare(0), compare(1));
            let both = |first: u16, second: u16| _mm512_kunpackw(second.into(), first.into());
            (both(first.0, second.0), both(first.1, second.1))
        }
    }

    /// Like [`crate::Codec::lower_bound`], for a key that is greater than the first key and not greater than the last
    /// one. Returns `None` unless the block is full, all its bytes can be read, and the key is at or near the place
    /// that it would have if the keys were evenly spread.
    #[allow(clippy::indexing_slicing, reason = "indexes are constants, or are compared with the length first")]
    #[inline]
    pub(super) fn find(block: &Block<u32>, bytes: &[u8], key: u32) -> Option<Found> {
        let (claimed, range) = (u32::from(block.extent), block.last - block.first);
        let size = LANES * ROWS / 8 * claimed as usize;
        if usize::from(block.count) != ROWS * LANES || claimed < MIN || claimed != width(range.into()) || bytes.len() < size {
            return None;
        }
        let sought = key - block.first;
        let likely = guess::place(sought.into(), range.into(), claimed, ROWS * LANES);
        let window = &WINDOWS[(claimed - MIN) as usize][likely.saturating_sub(LANES / 2) / LANES % ROWS];
        // SAFETY: this function is compiled for the level, and the body is complete.
        let (below, not_above) =
            unsafe { compare(window, high_words(window, bytes.as_ptr()), bytes.as_ptr(), sought, claimed) };
        // Field 0 is less than any `sought`. Otherwise the key may belong before the window or after it.
        let inside = below != 0 && below != u32::MAX;
        let index = usize::from(window.before) + below.count_ones() as usize;
        inside.then_some(Found { index, exact: below != not_above })
    }

    /// Like [`find`], for a frame with any other number of keys. `body` has the bytes of the block.
    #[allow(clippy::cast_possible_truncation)]
    #[allow(clippy::indexing_slicing, reason = "indexes are constants, or are compared with the length first")]
    #[inline]
    pub(super) fn find_among(block: &Block<u32>, body: &[u8], key: u32) -> Option<Found> {
        let (claimed, range, count) = (u32::from(block.extent), block.last - block.first, usize::from(block.count));
        let rows = count.div_ceil(LANES);
        let lane_bytes = (rows * claimed as usize).div_ceil(8);
        let (words, tail) = (lane_bytes / 4, lane_bytes % 4);
        let is_frame = (MIN..=MAX).contains(&claimed) && claimed == width(range.into()) && body.len() >= LANES * lane_bytes;
        if !is_frame || !(WINDOW..=ROWS).contains(&rows) || count == ROWS * LANES || words == 0 {
            return None;
        }
        let sought = key - block.first;
        let likely = guess::place(sought.into(), range.into(), claimed, count);
        let row = (likely.saturating_sub(LANES / 2) / LANES).min(rows - WINDOW);
        let window = &WINDOWS[(claimed - MIN) as usize][row];
        // SAFETY: this function is compiled for the level, the body is complete, and it has a whole word.
        let (below, not_above) = unsafe {
            compare(window, high_words_of(window, body.as_ptr(), words, tail), body.as_ptr(), sought, claimed)
        };
        // Places after the last field do not count.
        let used = _bzhi_u32(u32::MAX, (count - LANES * row) as u32);
        let (below, not_above) = (below & used, not_above & used);
        let inside = below != 0 && below != used;
        let index = LANES * row + below.count_ones() as usize;
        inside.then_some(Found { index, exact: below != not_above })
    }
}

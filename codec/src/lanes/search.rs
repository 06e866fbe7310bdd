//! Where a key belongs in a full frame of 32-bit keys, by code that is the same for all widths and looks only at the 32 fields
//! round the likely place. Neighbouring blocks differ in width: a jump to a kernel of one width is often guessed wrong. Other
//! searches must never be here.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
#![allow(clippy::indexing_slicing, reason = "tables by constants, and by what has been compared with their lengths")]

use core::arch::x86_64::*;
use core::mem::transmute;

use crate::bits::width;
use crate::{Block, Found, guess};

/// Rows of a full frame, fields of a row, and rows that are looked at.
const ROWS: usize = 16;
const LANES: usize = 16;
const WINDOW: usize = 2;

/// The least width of 256 different keys, and the most.
const LEAST: u32 = 8;
const MOST: u32 = 32;

/// Where a row's fields end: in the word at `high`, moved up by `up`, they are the top bits; what is missing of them comes from
/// the top of the word before, at `low`.
#[derive(Clone, Copy)]
struct Ending {
    high: u16,
    low: u16,
    up: u32,
}

/// The rows that are looked at together.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Window {
    rows: [Ending; WINDOW],
    /// Fields in the rows before.
    before: u16,
    /// Whether a row ends in the stream's partial last word, and where that lies.
    in_tail: bool,
    tail: u16,
    /// Of each row: all lanes where the word at `high` is a whole one, none where it is the partial one.
    whole: [u16; WINDOW],
}

impl Window {
    const fn of(width: u32, first_row: usize) -> Window {
        let tail = (ROWS as u32 * width / 32) as u16 * 64;
        let rows = [Ending { high: 0, low: 0, up: 0 }; WINDOW];
        let before = (first_row * LANES) as u16;
        let mut window = Window { rows, before, in_tail: false, tail, whole: [u16::MAX; WINDOW] };
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

/// Of each width the windows by their first row; the last row begins none, and has the one before.
static WINDOWS: [[Window; ROWS]; (MOST - LEAST) as usize + 1] = {
    let mut windows = [[Window::of(LEAST, 0); ROWS]; (MOST - LEAST) as usize + 1];
    let mut width = LEAST;
    while width <= MOST {
        let mut row = 0;
        while row < ROWS {
            let first = if row + WINDOW > ROWS { ROWS - WINDOW } else { row };
            windows[(width - LEAST) as usize][row] = Window::of(width, first);
            row += 1;
        }
        width += 1;
    }
    windows
};

/// Where the bytes of the partial word's lanes lie, in two rows of bytes and zeros behind them.
const TAIL_BYTES: __m512i = {
    let mut places = [63u8; 64];
    let mut lane = 0;
    while lane < LANES {
        places[4 * lane] = lane as u8;
        places[4 * lane + 1] = (LANES + lane) as u8;
        lane += 1;
    }
    // SAFETY: a vector is as good as its bytes.
    unsafe { transmute::<[u8; 64], __m512i>(places) }
};

compiled_for! { Vbmi,
    /// The words that the window's rows end in.
    ///
    /// # Safety
    /// `body` is a full frame of the window's width.
    #[inline]
    unsafe fn high_words(window: &Window, body: *const u8) -> [__m512i; WINDOW] {
        let at = |offset: u16| body.wrapping_add(usize::from(offset));
        let [first, second] = [window.rows[0].high, window.rows[1].high];
        // SAFETY: whole words are inside the body, and so are the 32 bytes of the partial one, which is not read as a whole.
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

    /// As [`crate::Codec::lower_bound`], for a key above the first and not above the last one, if the block is full, its bytes
    /// are there and the key is where it would be if keys were evenly spread, or near.
    #[inline]
    pub(super) fn find(block: &Block<u32>, bytes: &[u8], key: u32) -> Option<Found> {
        let (claimed, range) = (u32::from(block.extent), block.last - block.first);
        let size = LANES * ROWS / 8 * claimed as usize;
        if usize::from(block.count) != ROWS * LANES || claimed < LEAST || claimed != width(range.into()) || bytes.len() < size {
            return None;
        }
        let sought = key - block.first;
        let likely = guess::place(sought.into(), range.into(), claimed, ROWS * LANES);
        let window = &WINDOWS[(claimed - LEAST) as usize][likely.saturating_sub(LANES / 2) / LANES % ROWS];
        // Fields are compared at the top of their lanes, with other bits below them.
        let rest = 32 - claimed;
        let least = sought << rest;
        let most = least | !(u32::MAX << rest);
        // SAFETY: this function has the level, and the body is whole.
        let (below, not_above) = unsafe {
            let (least, most) = (_mm512_set1_epi32(least as i32), _mm512_set1_epi32(most as i32));
            let high = high_words(window, bytes.as_ptr());
            let compare = |row: usize| {
                let Ending { low, up, .. } = window.rows[row];
                let low = _mm512_loadu_si512(bytes.as_ptr().add(low.into()).cast());
                let fields = _mm512_shldv_epi32(high[row], low, _mm512_set1_epi32(up as i32));
                (_mm512_cmplt_epu32_mask(fields, least), _mm512_cmple_epu32_mask(fields, most))
            };
            let (first, second) = (compare(0), compare(1));
            let both = |first: u16, second: u16| _mm512_kunpackw(second.into(), first.into());
            (both(first.0, second.0), both(first.1, second.1))
        };
        // Field 0 is below all that are sought. Otherwise it may belong before the window, or behind it.
        let inside = below != 0 && below != u32::MAX;
        let index = usize::from(window.before) + below.count_ones() as usize;
        inside.then_some(Found { index, exact: below != not_above })
    }
}

//! Lane streams: `width`-bit fields in rows of `64 / size_of::<T>()` lanes, each lane a bit stream of its own.
//!
//! This is the byte layout under SIMD FOR and BP128: one vector operation unpacks a whole row. A lane's stream has
//! `ceil(rows * width / 8)` bytes. Its whole words (of the key type) lie interleaved, word 0 of every lane, then word 1
//! of every lane, and so on: 64 bytes each. The bytes left over lie interleaved in the same way, byte by byte: byte 0
//! of every lane, then byte 1 of every lane. So no byte is wasted on rounding, whatever the width.
//!
//! What a field means is for the two codecs to say. The kernels are in `lanes/`.

#[cfg(target_arch = "x86_64")]
mod full;
#[cfg(target_arch = "x86_64")]
mod insert;
#[cfg(target_arch = "x86_64")]
mod kernels;
#[cfg(target_arch = "x86_64")]
mod search;
#[cfg(target_arch = "x86_64")]
pub(crate) mod vector;
#[cfg(target_arch = "x86_64")]
mod words;

use core::marker::PhantomData;

use crate::bits::{get_bytes, mask, put_bytes};
use crate::{Block, Buffer, Found, Int, Level};

/// The shape of a lane stream.
#[derive(Clone, Copy)]
pub struct Lanes<T> {
    pub(crate) rows: usize,
    pub(crate) width: u32,
    key: PhantomData<T>,
}

impl<T: Int> Lanes<T> {
    /// Lanes of a row: 16 or 8.
    pub(crate) const COUNT: usize = 64 / T::BYTES;

    /// A stream of enough rows for `fields` fields.
    #[inline(always)]
    pub(crate) fn holding(fields: usize, width: u32) -> Lanes<T> {
        Lanes { rows: fields.div_ceil(Self::COUNT), width, key: PhantomData }
    }

    #[inline(always)]
    fn lane_bytes(&self) -> usize {
        (self.rows * self.width as usize).div_ceil(8)
    }

    /// Bytes of the whole stream.
    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        Self::COUNT * self.lane_bytes()
    }

    /// Whole words of each lane.
    #[inline(always)]
    pub(crate) fn words(&self) -> usize {
        self.lane_bytes() / T::BYTES
    }

    /// Bytes of each lane after its whole words.
    #[inline(always)]
    pub(crate) fn tail(&self) -> usize {
        self.lane_bytes() % T::BYTES
    }

    /// Word `word` of `lane`; the last one may be only the tail.
    #[inline(always)]
    fn word(&self, body: &[u8], word: usize, lane: usize) -> u64 {
        let at = word * 64;
        if word < self.words() {
            return get_bytes(body, at + lane * T::BYTES, T::BYTES);
        }
        (0..self.tail()).fold(0, |value, i| value | get_bytes(body, at + i * Self::COUNT + lane, 1) << (8 * i))
    }

    #[inline]
    fn put_word(&self, body: &mut [u8], word: usize, lane: usize, value: u64) {
        let at = word * 64;
        if word < self.words() {
            return put_bytes(body, at + lane * T::BYTES, T::BYTES, value);
        }
        for i in 0..self.tail() {
            put_bytes(body, at + i * Self::COUNT + lane, 1, value >> (8 * i));
        }
    }

    /// The word and the bit in it where `row` starts.
    #[expect(clippy::cast_possible_truncation, reason = "a bit number below 64")]
    #[inline(always)]
    fn place(&self, row: usize) -> (usize, u32) {
        let bit = row * self.width as usize;
        (bit / T::BITS as usize, (bit % T::BITS as usize) as u32)
    }

    /// The field at (`row`, `lane`), if its words are whole and `bytes`, which may be any, has them.
    #[inline(always)]
    pub(crate) fn peek(&self, bytes: &[u8], row: usize, lane: usize) -> Option<u64> {
        let (word, shift) = self.place(row);
        // Where the field ends: the same word again, or the next. Both are loaded, so that no branch depends on it.
        let next = (row * self.width as usize + self.width as usize).checked_sub(1)? / T::BITS as usize;
        if next >= self.words() {
            return None;
        }
        let (low, high) = (T::word_in(bytes, word, lane)?.widen(), T::word_in(bytes, next, lane)?.widen());
        let pair = if T::BITS == 32 { (low | high << 32) >> shift } else { low >> shift | high << 1 << (63 - shift) };
        Some(pair & mask(self.width))
    }

    /// The field at (`row`, `lane`).
    #[inline(always)]
    pub(crate) fn get(&self, body: &[u8], row: usize, lane: usize) -> u64 {
        match self.peek(body, row, lane) {
            Some(field) => field,
            None => {
                let (word, shift) = self.place(row);
                self.get_from_tail(body, word, shift, lane)
            }
        }
    }

    #[cold]
    fn get_from_tail(&self, body: &[u8], word: usize, shift: u32, lane: usize) -> u64 {
        let mut field = if self.width > 0 { self.word(body, word, lane) >> shift } else { 0 };
        if shift + self.width > T::BITS {
            field |= self.word(body, word + 1, lane) << (T::BITS - shift);
        }
        field & mask(self.width)
    }

    /// Replaces the field at (`row`, `lane`).
    #[inline]
    pub(crate) fn put(&self, body: &mut [u8], row: usize, lane: usize, field: u64) {
        if self.width == 0 {
            return;
        }
        let (word, shift) = self.place(row);
        let kept = self.word(body, word, lane) & !(mask(self.width) << shift);
        self.put_word(body, word, lane, kept | field << shift);
        if shift + self.width > T::BITS {
            let up = T::BITS - shift;
            let kept = self.word(body, word + 1, lane) & !(mask(self.width) >> up);
            self.put_word(body, word + 1, lane, kept | field >> up);
        }
    }

    /// Whether the bits of each lane's last byte that no row has are zero.
    pub(crate) fn spare_bits_are_zero(&self, body: &[u8]) -> bool {
        let used = self.rows * self.width as usize % 8;
        let (at, step) = match self.tail() {
            0 => ((self.words() * 64).saturating_sub(64) + T::BYTES - 1, T::BYTES),
            tail => (self.words() * 64 + (tail - 1) * Self::COUNT, 1),
        };
        let last_bytes = body.iter().skip(at).step_by(step).take(Self::COUNT);
        used == 0 || last_bytes.fold(0, |bits, &byte| bits | byte) >> used == 0
    }

    /// Lays the stream out for `more` rows of the same width. `body` has `more`'s size; the new fields are zero.
    pub(crate) fn grow(&self, body: &mut [u8], more: Lanes<T>) {
        let word = self.words();
        let mut tails = [0u64; 16];
        for (lane, tail) in tails.iter_mut().enumerate().take(Self::COUNT) {
            *tail = self.word(body, word, lane);
        }
        if let Some(changed) = body.get_mut(word * 64..) {
            changed.fill(0);
        }
        for (lane, &tail) in tails.iter().enumerate().take(Self::COUNT) {
            more.put_word(body, word, lane, tail);
        }
    }
}

/// The vector kernels of a key type behind safe functions. `None` or `false`: there is none for this level.
///
/// The stream's fields are at most 256, for the `gap_` functions 128, and `body` is as long as `lanes` says.
pub trait LaneKernels: Sized {
    /// Every field plus `first`, in row order.
    fn frame_decode(_: Level, _lanes: &Lanes<Self>, _body: &[u8], _first: Self, _out: &mut Buffer<Self>) -> bool {
        false
    }

    /// Where `key` belongs in a frame, `first < key <= last`, where there is a quick way. `bytes` may be any.
    #[inline(always)]
    fn frame_find(_: Level, _block: &Block<Self>, _bytes: &[u8], _key: Self) -> Option<Found> {
        None
    }

    /// Where `key` belongs in a block of gaps, `first < key <= last`, where there is a quick way. `bytes` may be any.
    #[inline(always)]
    fn gap_find(_: Level, _block: &Block<Self>, _bytes: &[u8], _key: Self) -> Option<Found> {
        None
    }

    /// As [`LaneKernels::frame_find`], for frames that it is not for.
    #[inline(always)]
    fn frame_find_among(_: Level, _block: &Block<Self>, _body: &[u8], _key: Self) -> Option<Found> {
        None
    }

    /// Where `sought` belongs among the first `count` fields.
    fn frame_search(_: Level, _lanes: &Lanes<Self>, _body: &[u8], _count: usize, _sought: Self) -> Option<Found> {
        None
    }

    /// Moves the fields from `index` on up by one place, the last one out, and puts `field` there; false, and nothing changed,
    /// where it is not above the field before and below the one that was there.
    fn frame_insert(_: Level, _lanes: &Lanes<Self>, _body: &mut [u8], _index: usize, _field: Self) -> Option<bool> {
        None
    }

    /// The sum of all fields; that of a lane modulo the key type.
    fn frame_sum(_: Level, _lanes: &Lanes<Self>, _body: &[u8]) -> Option<u128> {
        None
    }

    /// The keys from the gaps in the stream's columns.
    fn gap_decode(_: Level, _lanes: &Lanes<Self>, _body: &[u8], _first: Self, _out: &mut Buffer<Self>) -> bool {
        false
    }

    /// Where `sought` belongs among the keys of all places, unused ones included; none may be beyond the key type.
    fn gap_search(_: Level, _lanes: &Lanes<Self>, _body: &[u8], _first: Self, _sought: Self) -> Option<Found> {
        None
    }

    /// The sum of all prefix sums within lanes, and the sum over all lanes of the gaps in the lanes before; that of a lane
    /// modulo the key type.
    fn gap_sums(_: Level, _lanes: &Lanes<Self>, _body: &[u8]) -> Option<[u128; 2]> {
        None
    }

    /// The sum of the gaps up to `index`, modulo the key type.
    fn gap_select(_: Level, _lanes: &Lanes<Self>, _body: &[u8], _index: usize) -> Option<Self> {
        None
    }

    /// Packs the rows of `fields`, each less `base`; writes the whole of `body`.
    fn pack(_: Level, _lanes: &Lanes<Self>, _fields: &Buffer<Self>, _base: Self, _body: &mut [u8]) -> bool {
        false
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl LaneKernels for u32 {}

#[cfg(not(target_arch = "x86_64"))]
impl LaneKernels for u64 {}

//! Lane streams: `width`-bit fields in rows of `64 / size_of::<T>()` lanes. Each lane is a bit stream.
//!
//! This is the byte layout of SIMD FOR and BP128: one vector operation unpacks a whole row. The stream of a lane has
//! `ceil(rows * width / 8)` bytes. The whole words (of the key type) of all lanes are interleaved: word 0 of every
//! lane, then word 1 of every lane, and so on, 64 bytes each. The remaining bytes are interleaved in the same way: byte
//! 0 of every lane, then byte 1 of every lane. So no byte is wasted by rounding, whatever the width is.
//!
//! The two codecs define the meaning of the fields. The kernels are in `lanes/`.

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

use crate::bits::{get_bytes, mask, put_bytes, range_mut};
use crate::{Block, Buffer, Found, Int, Level};

/// The shape of a lane stream.
#[derive(Clone, Copy)]
pub struct Lanes<T> {
    pub(crate) rows: usize,
    pub(crate) width: u32,
    key: PhantomData<T>,
}

impl<T: Int> Lanes<T> {
    /// The number of lanes in a row: 16 or 8.
    pub(crate) const COUNT: usize = 64 / T::BYTES;

    /// A stream with enough rows for `fields` fields.
    #[inline(always)]
    pub(crate) fn holding(fields: usize, width: u32) -> Lanes<T> {
        Lanes { rows: fields.div_ceil(Self::COUNT), width, key: PhantomData }
    }

    #[inline(always)]
    fn lane_bytes(&self) -> usize {
        (self.rows * self.width as usize).div_ceil(8)
    }

    /// The number of bytes of the stream.
    #[inline(always)]
    pub(crate) fn size(&self) -> usize {
        Self::COUNT * self.lane_bytes()
    }

    /// The number of whole words in each lane.
    #[inline(always)]
    pub(crate) fn words(&self) -> usize {
        self.lane_bytes() / T::BYTES
    }

    /// The number of bytes in each lane after its whole words.
    #[inline(always)]
    pub(crate) fn tail(&self) -> usize {
        self.lane_bytes() % T::BYTES
    }

    /// Word `word` of `lane`. The last word may be partial.
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

    /// The word of the first bit of `row` in a lane, and the number of the bit in that word.
    #[expect(clippy::cast_possible_truncation, reason = "a bit number below 64")]
    #[inline(always)]
    fn place(&self, row: usize) -> (usize, u32) {
        let bit = row * self.width as usize;
        (bit / T::BITS as usize, (bit % T::BITS as usize) as u32)
    }

    /// The field at (`row`, `lane`), if it is in whole words and these are inside `bytes`. `bytes` need not be checked
    /// before.
    #[inline(always)]
    pub(crate) fn peek(&self, bytes: &[u8], row: usize, lane: usize) -> Option<u64> {
        let (word, shift) = self.place(row);
        // The word with the last bit of the field, which is the same word or the next one. Both are loaded, so that no
        // branch depends on it.
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

    /// Checks that the bits of each lane's last byte that belong to no row are zero.
    pub(crate) fn spare_bits_are_zero(&self, body: &[u8]) -> bool {
        let used = self.rows * self.width as usize % 8;
        let (at, step) = match self.tail() {
            0 => ((self.words() * 64).saturating_sub(64) + T::BYTES - 1, T::BYTES),
            tail => (self.words() * 64 + (tail - 1) * Self::COUNT, 1),
        };
        let last_bytes = body.iter().skip(at).step_by(step).take(Self::COUNT);
        used == 0 || last_bytes.fold(0, |bits, &byte| bits | byte) >> used == 0
    }

    /// Changes the layout of the stream to that of `more`, which has more rows of the same width. `body` has the size
    /// of `more`. The new fields are zero.
    pub(crate) fn grow(&self, body: &mut [u8], more: Lanes<T>) {
        let word = self.words();
        let mut tails = [0u64; 16];
        for (lane, tail) in tails.iter_mut().enumerate().take(Self::COUNT) {
            *tail = self.word(body, word, lane);
        }
        let changed = body.len() - word * 64;
        range_mut(body, word * 64, changed).fill(0);
        for (lane, &tail) in tails.iter().enumerate().take(Self::COUNT) {
            more.put_word(body, word, lane, tail);
        }
    }
}

/// The vector kernels of a key type behind safe functions. They return `None` or `false` if there is no kernel for this
/// level.
///
/// A stream has at most 256 fields, for the `gap_` functions at most 128, and `body` has the length of `lanes`.
pub trait LaneKernels: Sized {
    /// Writes every field plus `first` to `out`, in row order.
    fn frame_decode(_: Level, _lanes: &Lanes<Self>, _body: &[u8], _first: Self, _out: &mut Buffer<Self>) -> bool {
        false
    }

    /// Searches a frame for `key`, `first < key <= last`, if there is a fast way to do so. `bytes` need not be checked
    /// before.
    #[inline(always)]
    fn frame_find(_: Level, _block: &Block<Self>, _bytes: &[u8], _key: Self) -> Option<Found> {
        None
    }

    /// Searches a block of gaps for `key`, `first < key <= last`, if there is a fast way to do so. `bytes` need not be
    /// checked before.
    #[inline(always)]
    fn gap_find(_: Level, _block: &Block<Self>, _bytes: &[u8], _key: Self) -> Option<Found> {
        None
    }

    /// Like [`LaneKernels::frame_find`], for frames that are not full.
    #[inline(always)]
    fn frame_find_among(_: Level, _block: &Block<Self>, _body: &[u8], _key: Self) -> Option<Found> {
        None
    }

    /// Searches for `sought` in the first `count` fields.
    fn frame_search(_: Level, _lanes: &Lanes<Self>, _body: &[u8], _count: usize, _sought: Self) -> Option<Found> {
        None
    }

    /// Moves the fields from `index` on up by one place, so that the last one is lost, and writes `field` to `index`.
    /// Returns false and changes nothing unless `field` is greater than the field before and less than the field at
    /// `index`.
    fn frame_insert(_: Level, _lanes: &Lanes<Self>, _body: &mut [u8], _index: usize, _field: Self) -> Option<bool> {
        None
    }

    /// The sum of all fields. The sum of a lane is modulo the key type.
    fn frame_sum(_: Level, _lanes: &Lanes<Self>, _body: &[u8]) -> Option<u128> {
        None
    }

    /// Decodes the keys. Their gaps are in the columns of the stream.
    fn gap_decode(_: Level, _lanes: &Lanes<Self>, _body: &[u8], _first: Self, _out: &mut Buffer<Self>) -> bool {
        false
    }

    /// Searches for `sought` in the keys of all places, also of the unused ones. No key may be beyond the key type.
    fn gap_search(_: Level, _lanes: &Lanes<Self>, _body: &[u8], _first: Self, _sought: Self) -> Option<Found> {
        None
    }

    /// The sum of all prefix sums within lanes, and the sum, over all lanes, of the gaps in the lanes before. The sum
    /// of a lane is modulo the key type.
    fn gap_sums(_: Level, _lanes: &Lanes<Self>, _body: &[u8]) -> Option<[u128; 2]> {
        None
    }

    /// The sum of the gaps up to `index`, modulo the key type.
    fn gap_select(_: Level, _lanes: &Lanes<Self>, _body: &[u8], _index: usize) -> Option<Self> {
        None
    }

    /// Packs the rows of `fields`, each less `base`. Writes all of `body`.
    fn pack(_: Level, _lanes: &Lanes<Self>, _fields: &Buffer<Self>, _base: Self, _body: &mut [u8]) -> bool {
        false
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl LaneKernels for u32 {}

#[cfg(not(target_arch = "x86_64"))]
impl LaneKernels for u64 {}

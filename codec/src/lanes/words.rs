//! The words of a lane stream, the last of which may be partial: they are loaded and stored alike. The meaning of
//! fields must not be in this file.
#![allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]

use core::mem::MaybeUninit;

use super::Lanes;
use super::vector::Vector;
use crate::Int;
use crate::bits::mask;

/// Room for the word that is completed.
pub(super) type Tail = MaybeUninit<[u8; 64]>;

/// A lane stream whose last, partial word has been completed beside it, so that every word can be loaded alike.
pub(super) struct Words<V: Vector> {
    base: *const u8,
    /// Whole words of the stream, and where what comes behind them lies.
    whole: u32,
    tail: *const u8,
    width: u32,
    mask: V,
}

impl<V: Vector> Words<V> {
    /// The stream in `body`; its last word, where that is partial, in `tail`.
    ///
    /// # Safety
    /// `body` is as long as `lanes` says; `body` and `tail` outlive the result.
    #[inline(always)]
    pub(super) unsafe fn new(lanes: &Lanes<V::Key>, body: &[u8], tail: &mut Tail) -> Words<V> {
        let whole = lanes.words();
        let tail = tail.as_mut_ptr().cast::<u8>();
        // SAFETY: the body has `whole` words and the tail's byte rows, `tail` the bytes of a word.
        unsafe {
            let from = body.as_ptr().add(whole * 64);
            for part in 0..Lanes::<V::Key>::COUNT / V::LANES {
                let word = partial_word::<V>(lanes, from, part);
                word.store(tail.add(part * size_of::<V>()).cast());
            }
            let mask = V::splat(V::Key::narrow(mask(lanes.width)));
            Words { base: body.as_ptr(), whole: whole as u32, tail, width: lanes.width, mask }
        }
    }

    #[inline(always)]
    unsafe fn word(&self, word: u32) -> *const u8 {
        // SAFETY: whole words are inside the body.
        if word < self.whole { unsafe { self.base.add(word as usize * 64) } } else { self.tail }
    }

    /// The field of lane 0 in `row`.
    ///
    /// # Safety
    /// `row` is inside the stream.
    #[inline(always)]
    pub(super) unsafe fn first_of(&self, row: usize) -> u64 {
        let bit = row as u32 * self.width;
        let (word, shift) = (bit / V::Key::BITS, bit % V::Key::BITS);
        let next = (bit + self.width.max(1) - 1) / V::Key::BITS;
        // SAFETY: both words are inside the completed stream.
        unsafe {
            let low = self.word(word).cast::<V::Key>().read_unaligned().widen();
            let high = self.word(next).cast::<V::Key>().read_unaligned().widen();
            // In two steps: no shift is by all bits of a word.
            (low >> shift | high << (V::Key::BITS - 1 - shift) << 1) & mask(self.width)
        }
    }

    /// The fields of `row` in the lanes of `part`.
    ///
    /// # Safety
    /// `row` and `part` are inside the stream.
    #[inline(always)]
    pub(super) unsafe fn row(&self, row: usize, part: usize) -> V {
        let bit = row as u32 * self.width;
        let (word, shift) = (bit / V::Key::BITS, bit % V::Key::BITS);
        // Where the row ends. Without a row in two words this is the same word again, and what it brings is masked.
        let next = (bit + self.width.max(1) - 1) / V::Key::BITS;
        // SAFETY: both words are inside the completed stream.
        unsafe {
            let at = part * size_of::<V>();
            let low = V::load(self.word(word).add(at)).shr(shift);
            let high = V::load(self.word(next).add(at)).shl(V::Key::BITS - shift);
            low.or(high).and(self.mask)
        }
    }
}

/// What is read in the place of bytes that are not there.
static NO_BYTES: [u8; 16] = [0; 16];

/// The word in the lanes of `part` whose bytes, as many as the stream's tail has, lie from `from` on.
///
/// # Safety
/// The tail's byte rows are readable there.
#[inline(always)]
pub(super) unsafe fn partial_word<V: Vector>(lanes: &Lanes<V::Key>, from: *const u8, part: usize) -> V {
    // SAFETY: the caller's.
    unsafe {
        let mut word = V::splat(V::Key::default());
        // How many there are has no pattern to guess: those that are not there are zeros from elsewhere.
        for i in 0..V::Key::BYTES - 1 {
            let at = from.wrapping_add(i * Lanes::<V::Key>::COUNT + part * V::LANES);
            let bytes = V::load_bytes(if i < lanes.tail() { at } else { NO_BYTES.as_ptr() });
            word = word.or(bytes.shl(8 * i as u32));
        }
        word
    }
}

/// Stores the bytes that the stream's tail has of a word in the lanes of `part` from `to` on.
///
/// # Safety
/// The tail's byte rows are writable there.
#[inline(always)]
pub(super) unsafe fn store_partial<V: Vector>(lanes: &Lanes<V::Key>, word: V, to: *mut u8, part: usize) {
    let mut nowhere = MaybeUninit::<[u8; 16]>::uninit();
    for byte in 0..V::Key::BYTES - 1 {
        let at = to.wrapping_add(byte * Lanes::<V::Key>::COUNT + part * V::LANES);
        let at = if byte < lanes.tail() { at } else { nowhere.as_mut_ptr().cast() };
        // SAFETY: the caller's; a vector has 16 lanes at the most.
        unsafe { word.shr(8 * byte as u32).store_bytes(at) }
    }
}

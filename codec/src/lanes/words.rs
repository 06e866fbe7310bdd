//! The words of a lane stream. The last word may be partial; it is loaded and stored like the others.

use core::mem::MaybeUninit;

use super::Lanes;
use super::vector::Vector;
use crate::Int;
use crate::bits::mask;

/// A buffer for the completed last word.
pub(super) type Tail = MaybeUninit<[u8; 64]>;

/// A lane stream with a completed copy of its partial last word, so that all words can be loaded in the same way.
pub(super) struct Words<V: Vector> {
    base: *const u8,
    /// The number of whole words in the stream, and the position of the completed last word.
    whole: u32,
    tail: *const u8,
    width: u32,
    mask: V,
}

impl<V: Vector> Words<V> {
    /// The stream in `body`. If its last word is partial, `tail` gets the completed word.
    ///
    /// # Safety
    /// `body` has the length of `lanes`. `body` and `tail` outlive the result.
    #[allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]
    #[inline(always)]
    pub(super) unsafe fn new(lanes: &Lanes<V::Key>, body: &[u8], tail: &mut Tail) -> Words<V> {
        let whole = lanes.words();
        let tail = tail.as_mut_ptr().cast::<u8>();
        // SAFETY: the body has `whole` words and the byte rows of the tail, and `tail` has the bytes of a word.
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
    #[allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]
    #[inline(always)]
    pub(super) unsafe fn first_of(&self, row: usize) -> u64 {
        let bit = row as u32 * self.width;
        let (word, shift) = (bit / V::Key::BITS, bit % V::Key::BITS);
        let next = (bit + self.width.max(1) - 1) / V::Key::BITS;
        // SAFETY: both words are inside the completed stream.
        unsafe {
            let low = self.word(word).cast::<V::Key>().read_unaligned().widen();
            let high = self.word(next).cast::<V::Key>().read_unaligned().widen();
            // In two steps, so that no shift is by all bits of a word.
            (low >> shift | high << (V::Key::BITS - 1 - shift) << 1) & mask(self.width)
        }
    }

    /// The fields of `row` in the lanes of `part`.
    ///
    /// # Safety
    /// `row` and `part` are inside the stream.
    #[allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]
    #[inline(always)]
    pub(super) unsafe fn row(&self, row: usize, part: usize) -> V {
        let bit = row as u32 * self.width;
        let (word, shift) = (bit / V::Key::BITS, bit % V::Key::BITS);
        // The word in which the row ends. If the row is in one word, this is the same word again, and the mask removes
        // its bits.
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

/// The bytes that are read in place of missing ones.
static NO_BYTES: [u8; 16] = [0; 16];

/// Loads the partial word in the lanes of `part`. Its byte rows, as many as the tail of the stream has, begin at
/// `from`.
///
/// # Safety
/// The byte rows of the tail are readable there.
#[allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]
#[inline(always)]
pub(super) unsafe fn partial_word<V: Vector>(lanes: &Lanes<V::Key>, from: *const u8, part: usize) -> V {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let mut word = V::splat(V::Key::default());
        // The number of bytes varies, so a branch would be mispredicted. Missing bytes are loaded as zeros from
        // elsewhere.
        for i in 0..V::Key::BYTES - 1 {
            let at = from.wrapping_add(i * Lanes::<V::Key>::COUNT + part * V::LANES);
            let bytes = V::load_bytes(if i < lanes.tail() { at } else { NO_BYTES.as_ptr() });
            word = word.or(bytes.shl(8 * i as u32));
        }
        word
    }
}

/// Stores the partial word in the lanes of `part`. Its byte rows, as many as the tail of the stream has, begin at `to`.
///
/// # Safety
/// The byte rows of the tail are writable there.
#[allow(clippy::cast_possible_truncation, reason = "rows, lanes and widths are below 2^16")]
#[inline(always)]
pub(super) unsafe fn store_partial<V: Vector>(lanes: &Lanes<V::Key>, word: V, to: *mut u8, part: usize) {
    let mut nowhere = MaybeUninit::<[u8; 16]>::uninit();
    for byte in 0..V::Key::BYTES - 1 {
        let at = to.wrapping_add(byte * Lanes::<V::Key>::COUNT + part * V::LANES);
        let at = if byte < lanes.tail() { at } else { nowhere.as_mut_ptr().cast() };
        // SAFETY: guaranteed by the caller; a vector has at most 16 lanes.
        unsafe { word.shr(8 * byte as u32).store_bytes(at) }
    }
}

//! Bits and bytes by position, with bounds checks. A read outside the slice gives zero. A write outside it panics, in
//! release builds too. An operation on bytes that may be damaged compares lengths and returns an error before it
//! writes, so only a bug in this crate can cause a panic. If such a write were ignored, the bytes of a wrong block
//! would be kept.

/// The number of bits of `value`; 0 for 0.
#[inline(always)]
pub(crate) fn width(value: u64) -> u32 {
    64 - value.leading_zeros()
}

/// A mask of the low `width` bits, `width` up to 64.
#[inline(always)]
pub(crate) fn mask(width: u32) -> u64 {
    if width < 64 { (1 << width) - 1 } else { u64::MAX }
}

/// The `len` bytes at `at`, little-endian. `len` is at most 8.
#[allow(clippy::cast_possible_truncation, reason = "positions and lengths here are below 2^32")]
#[inline(always)]
pub(crate) fn get_bytes(bytes: &[u8], at: usize, len: usize) -> u64 {
    if let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        return u64::from_le_bytes(*chunk) & mask(8 * len as u32);
    }
    get_bytes_near_end(bytes, at, len)
}

#[cold]
fn get_bytes_near_end(bytes: &[u8], at: usize, len: usize) -> u64 {
    let rest = bytes.get(at..).unwrap_or_default();
    rest.iter().take(len.min(8)).enumerate().fold(0, |value, (i, &byte)| value | u64::from(byte) << (8 * i))
}

/// The assertion of all writes in this crate.
#[inline(always)]
pub(crate) fn must_fit(fits: bool) {
    assert!(fits, "a write outside of the space of a block: this is a bug in the codec");
}

/// `to[at..at + len]`, to be written. It must be inside `to`.
#[inline(always)]
pub(crate) fn range_mut<T>(to: &mut [T], at: usize, len: usize) -> &mut [T] {
    let range = to.get_mut(at..at.saturating_add(len));
    must_fit(range.is_some());
    range.unwrap_or_default()
}

/// Changes the element at `at`, which must be inside `to`.
#[inline(always)]
pub(crate) fn change<T>(to: &mut [T], at: usize, change: impl FnOnce(&mut T)) {
    let element = to.get_mut(at);
    must_fit(element.is_some());
    if let Some(element) = element {
        change(element);
    }
}

/// Writes the low `len` bytes of `value` at `at`, little-endian. `len` is at most 8.
#[inline(always)]
pub(crate) fn put_bytes(bytes: &mut [u8], at: usize, len: usize, value: u64) {
    let field = value.to_le_bytes();
    let from = field.get(..len);
    must_fit(from.is_some());
    range_mut(bytes, at, len).copy_from_slice(from.unwrap_or_default());
}

/// The `width` bits from bit `at` on, low bit first. `width` is at most 64.
#[allow(clippy::cast_possible_truncation, reason = "positions and lengths here are below 2^32")]
#[inline(always)]
pub(crate) fn get_bits(bytes: &[u8], at: usize, width: u32) -> u64 {
    let (byte, shift) = (at / 8, at as u32 % 8);
    let low = get_bytes(bytes, byte, 8) >> shift;
    let high = if shift + width > 64 { get_bytes(bytes, byte + 8, 1) << (64 - shift) } else { 0 };
    (low | high) & mask(width)
}

/// Writes the low `width` bits of `value` from bit `at` on. The bits around them do not change.
#[allow(clippy::cast_possible_truncation, reason = "positions and lengths here are below 2^32")]
#[inline]
pub(crate) fn put_bits(bytes: &mut [u8], at: usize, width: u32, value: u64) {
    let (byte, shift) = (at / 8, at as u32 % 8);
    let mask = mask(width);
    let end = (shift + width).div_ceil(8) as usize;
    let low = get_bytes(bytes, byte, 8) & !(mask << shift) | (value & mask) << shift;
    put_bytes(bytes, byte, end.min(8), low);
    if end > 8 {
        let high = get_bytes(bytes, byte + 8, 1) & !(mask >> (64 - shift)) | (value & mask) >> (64 - shift);
        put_bytes(bytes, byte + 8, 1, high);
    }
}

/// Moves all bits from bit `at` on up by `width`, which is at most 64, and writes the low bits of `value` there. The
/// last `width` bits of `bytes` are lost.
#[allow(clippy::cast_possible_truncation, reason = "positions and lengths here are below 2^32")]
pub(crate) fn insert_bits(bytes: &mut [u8], at: usize, width: u32, value: u64) {
    let (behind, mut end) = (at + width as usize, bytes.len());
    must_fit(behind <= 8 * end);
    let first = get_bits(bytes, at, 64);
    // Word by word from the end: the bits of a word come from lower positions, which are not yet written.
    let up = (width as usize).div_ceil(8);
    let shift = (8 * up as u32).wrapping_sub(width);
    while let Some(from) = end.checked_sub(8).filter(|from| 8 * from >= behind) {
        let source = bytes.get(from - up..).unwrap_or_default();
        let low = source.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)) >> shift;
        let high = source.get(8).map_or(0, |byte| u64::from(*byte) << 1 << (63 - shift));
        put_bytes(bytes, from, 8, low | high);
        end = from;
    }
    let rest = u32::try_from(8 * end - behind).unwrap_or_default();
    put_bits(bytes, behind, rest, first);
    put_bits(bytes, at, width, value);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bits_come_back_and_their_neighbours_stay(at in 0usize..200, width in 0u32..=64, value: u64, fill: u8) {
            let mut bytes = [fill; 40];
            put_bits(&mut bytes, at, width, value);
            prop_assert_eq!(get_bits(&bytes, at, width), value & mask(width));
            for bit in (0..at).chain(at + width as usize..320) {
                prop_assert_eq!(get_bits(&bytes, bit, 1), u64::from(fill >> (bit % 8) & 1), "bit {}", bit);
            }
        }
    }

    proptest! {
        #[test]
        fn bits_go_between_others(bytes in prop::collection::vec(any::<u8>(), 0..60), at in 0usize..480, width in 0u32..=64, value: u64) {
            let all: Vec<u64> = (0..8 * bytes.len()).map(|bit| get_bits(&bytes, bit, 1)).collect();
            let mut changed = bytes.clone();
            if at + width as usize > all.len() {
                let done = std::panic::catch_unwind(move || insert_bits(&mut changed, at, width, value));
                prop_assert!(done.is_err());
                return Ok(());
            }
            insert_bits(&mut changed, at, width, value);
            let mut expected = all.clone();
            expected.splice(at..at, (0..width).map(|bit| value >> bit & 1));
            expected.truncate(all.len());
            for (bit, expected) in expected.into_iter().enumerate() {
                prop_assert_eq!(get_bits(&changed, bit, 1), expected, "bit {}", bit);
            }
        }
    }

    /// A write that does not fit panics and changes nothing.
    #[test]
    fn a_write_outside_of_the_slice_panics() {
        let refused = |write: fn(&mut [u8])| {
            let mut bytes = [7; 8];
            let write = std::panic::AssertUnwindSafe(|| write(&mut bytes));
            assert!(std::panic::catch_unwind(write).is_err());
            assert_eq!(bytes, [7; 8]);
        };
        refused(|bytes| put_bytes(bytes, 5, 4, 0));
        refused(|bytes| put_bytes(bytes, 9, 0, 0));
        refused(|bytes| put_bytes(bytes, usize::MAX, 1, 0));
        refused(|bytes| put_bytes(bytes, 0, 9, 0));
        refused(|bytes| put_bits(bytes, 60, 5, 0));
        refused(|bytes| insert_bits(bytes, 60, 5, 0));
        refused(|bytes| range_mut(bytes, 1, 8).fill(0));
        refused(|bytes| change(bytes, 8, |byte| *byte = 0));
    }

    #[test]
    fn widths_and_masks_agree() {
        for w in 0..=64 {
            assert_eq!(width(mask(w)), w);
        }
    }
}

//! LEB128 varints, the only format of variable-length numbers in the engine: 7 bits a byte, the low bits first, and the
//! top bit set in all bytes but the last. Only the shortest encoding of a number is written.
//!
//! Numbers in records of the log and of the catalog are appended with [`push`] and read with [`take`], signed numbers
//! with [`push_signed`] and [`take_signed`]. Lengths inside a page are bounded, and are read with [`get`] and written
//! with [`put`] at an offset.

use super::bytes;

/// The longest encoding of a number, in bytes.
const LONGEST: usize = 10;

/// The longest encoding of a length inside a page, in bytes. Such a length is below 2^17, and a flag adds one bit.
pub const LONGEST_IN_PAGE: usize = 3;

/// The size in bytes of the encoding of a length inside a page, which is below 2^21.
#[inline(always)]
pub fn size(value: usize) -> usize {
    if value < 1 << 7 {
        1
    } else if value < 1 << 14 {
        2
    } else {
        LONGEST_IN_PAGE
    }
}

/// Appends `value`.
#[inline(always)]
pub fn push(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(low_byte(value) | 0x80);
        value >>= 7;
    }
    out.push(low_byte(value));
}

/// Takes a number from the front of `input`; `None` if the number is cut off or longer than 10 bytes.
pub fn take(input: &mut &[u8]) -> Option<u64> {
    let (value, len) = decode(input, LONGEST)?;
    *input = input.get(len..)?;
    Some(value)
}

/// Appends a signed number: the zigzag code, which has few bytes for small numbers of either sign.
pub fn push_signed(out: &mut Vec<u8>, value: i64) {
    push(out, (value << 1 ^ value >> 63).cast_unsigned());
}

/// Takes a signed number from the front of `input`; `None` if the number is cut off or longer than 10 bytes.
pub fn take_signed(input: &mut &[u8]) -> Option<i64> {
    let code = take(input)?;
    Some((code >> 1).cast_signed() ^ -(code & 1).cast_signed())
}

/// The length inside a page at the front of `bytes`, and the size of its encoding. If the encoding is cut off or too
/// long, the length is 0 and the size is [`LONGEST_IN_PAGE`].
#[inline(always)]
pub fn get(bytes: &[u8]) -> (usize, usize) {
    match bytes.first() {
        Some(&byte) if byte < 0x80 => (usize::from(byte), 1),
        _ => get_long(bytes),
    }
}

fn get_long(bytes: &[u8]) -> (usize, usize) {
    let found = decode(bytes, LONGEST_IN_PAGE);
    found.map_or((0, LONGEST_IN_PAGE), |(value, len)| (usize::try_from(value).unwrap_or(0), len))
}

/// Writes a length inside a page at byte offset `at` and returns the offset after it.
#[inline(always)]
pub fn put(bytes: &mut [u8], mut at: usize, value: usize) -> usize {
    let mut value = value as u64;
    while value >= 0x80 {
        bytes::put_u8(bytes, at, low_byte(value) | 0x80);
        (at, value) = (at + 1, value >> 7);
    }
    bytes::put_u8(bytes, at, low_byte(value));
    at + 1
}

#[inline(always)]
fn low_byte(value: u64) -> u8 {
    let [low, ..] = value.to_le_bytes();
    low
}

/// The number at the front of `bytes`, and the size of its encoding; `None` if the encoding has more than `most` bytes.
#[inline]
fn decode(bytes: &[u8], most: usize) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, (&byte, shift)) in bytes.iter().zip((0..u64::BITS).step_by(7)).enumerate().take(most) {
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some((value, at + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn numbers_come_back(value: u64, tail: Vec<u8>) {
            let mut out = Vec::new();
            push(&mut out, value);
            out.extend_from_slice(&tail);
            let mut input = out.as_slice();
            prop_assert_eq!(take(&mut input), Some(value));
            prop_assert_eq!(input, tail.as_slice());
        }

        #[test]
        fn signed_numbers_come_back(value: i64, tail: Vec<u8>) {
            let mut out = Vec::new();
            push_signed(&mut out, value);
            out.extend_from_slice(&tail);
            let mut input = out.as_slice();
            prop_assert_eq!(take_signed(&mut input), Some(value));
            prop_assert_eq!(input, tail.as_slice());
        }

        #[test]
        fn any_bytes_are_safe_to_read(bytes: Vec<u8>) {
            let mut input = bytes.as_slice();
            let _ = take(&mut input);
            let _ = take_signed(&mut bytes.as_slice());
            let (value, size) = get(&bytes);
            prop_assert!(value < 1 << 21 && size <= LONGEST_IN_PAGE);
        }
    }

    #[test]
    fn signed_numbers_have_the_bytes_of_the_format() {
        for (value, code) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (i64::MAX, u64::MAX - 1), (i64::MIN, u64::MAX)] {
            let (mut signed, mut unsigned) = (Vec::new(), Vec::new());
            push_signed(&mut signed, value);
            push(&mut unsigned, code);
            assert_eq!(signed, unsigned, "{value}");
        }
    }

    #[test]
    fn every_length_comes_back_in_the_predicted_number_of_bytes() {
        for value in (0..70_000).chain([(1 << 17) - 1]) {
            let mut out = Vec::new();
            push(&mut out, value as u64);
            assert_eq!((out.len(), get(&out)), (size(value), (value, size(value))));
            let mut slice = [0; LONGEST_IN_PAGE];
            assert_eq!(put(&mut slice, 0, value), out.len());
            assert!(slice.starts_with(&out));
        }
    }
}

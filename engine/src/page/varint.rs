//! Lengths inside a page: LEB128 of 1 to 3 bytes, written to and read from slices. No other number belongs here.

/// The longest encoding, in bytes: lengths inside a page are below 2^17, shifted by a flag.
pub(super) const MAX: usize = 3;

/// Bytes that the encoding of `value` takes.
#[inline(always)]
pub(super) fn size(value: usize) -> usize {
    if value < 1 << 7 {
        1
    } else if value < 1 << 14 {
        2
    } else {
        MAX
    }
}

/// The value at the front of `bytes` and its size; a cut or overlong one ends after [`MAX`] bytes.
#[inline(always)]
pub(super) fn get(bytes: &[u8]) -> (usize, usize) {
    match bytes.first() {
        Some(&byte) if byte < 0x80 => (usize::from(byte), 1),
        _ => get_long(bytes),
    }
}

fn get_long(bytes: &[u8]) -> (usize, usize) {
    let mut value = 0;
    for (i, &byte) in bytes.iter().enumerate().take(MAX) {
        value |= usize::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return (value, i + 1);
        }
    }
    (value, MAX)
}

/// Appends `value`, which is below 2^21.
#[inline(always)]
pub(super) fn push(out: &mut Vec<u8>, value: usize) {
    match encode(value) {
        ([byte, ..], 1) => out.push(byte),
        (bytes, len) => out.extend(bytes.iter().take(len)),
    }
}

/// Writes `value` at byte offset `at` and returns the offset behind it.
#[inline(always)]
pub(super) fn put(bytes: &mut [u8], at: usize, value: usize) -> usize {
    let (encoded, len) = encode(value);
    crate::base::bytes::put(bytes, at, encoded.get(..len).unwrap_or_default());
    at + len
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // the low 7 bits are what is wanted
fn encode(value: usize) -> ([u8; MAX], usize) {
    match size(value) {
        1 => ([value as u8, 0, 0], 1),
        2 => ([value as u8 | 0x80, (value >> 7) as u8, 0], 2),
        _ => ([value as u8 | 0x80, (value >> 7) as u8 | 0x80, (value >> 14) as u8 & 0x7f], MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_back_in_as_many_bytes_as_announced() {
        for value in (0..70_000).chain([(1 << 17) - 1]) {
            let mut out = Vec::new();
            push(&mut out, value);
            assert_eq!((out.len(), get(&out)), (size(value), (value, size(value))));
            let mut slice = [0; MAX];
            assert_eq!(put(&mut slice, 0, value), out.len());
            assert!(slice.starts_with(&out));
        }
    }
}

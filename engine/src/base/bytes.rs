//! Little-endian fields in byte slices, with bounds checks.
//!
//! Layers that read bytes from a device use these functions instead of indexing. Reading never panics: a field outside
//! the slice reads as zero, so a hostile page can give wrong values only. Each layer has a `check` that verifies the
//! values once, when the bytes are read.
//!
//! Writing outside the slice panics, in release builds too. Code that changes bytes which may come from a file first
//! checks whether the change fits, and returns an error before it writes. So only a bug in the engine can cause a
//! panic. If such a write were ignored, a page with the wrong bytes would be stored under a valid checksum.

use std::ops::Range;

/// The assertion of all writes in this file.
#[inline(always)]
#[track_caller]
pub fn must_fit(fits: bool) {
    assert!(fits, "a write outside of its buffer: this is a bug in the engine");
}

macro_rules! fields {
    ($($get:ident $put:ident $ty:ty;)*) => {$(
        #[doc = concat!("The `", stringify!($ty), "` at byte offset `at`; 0 if that is outside `bytes`.")]
        #[inline(always)]
        pub fn $get(bytes: &[u8], at: usize) -> $ty {
            match bytes.get(at..).and_then(|rest| rest.first_chunk()) {
                Some(field) => <$ty>::from_le_bytes(*field),
                None => 0,
            }
        }

        #[doc = concat!("Writes a `", stringify!($ty), "` at byte offset `at`, which must be inside `bytes`.")]
        #[inline(always)]
        #[track_caller]
        pub fn $put(bytes: &mut [u8], at: usize, value: $ty) {
            put_array(bytes, at, value.to_le_bytes());
        }
    )*};
}

fields! {
    get_u8 put_u8 u8;
    get_u16 put_u16 u16;
    get_u32 put_u32 u32;
    get_u64 put_u64 u64;
    get_u128 put_u128 u128;
}

/// `bytes[from..to]`, or the empty slice if that is not inside `bytes`.
#[inline(always)]
pub fn slice(bytes: &[u8], from: usize, to: usize) -> &[u8] {
    bytes.get(from..to).unwrap_or_default()
}

/// True if all bytes are zero. It looks at 64 bytes at a time, which the compiler turns into vector instructions.
pub fn are_zero(bytes: &[u8]) -> bool {
    let (parts, rest) = bytes.as_chunks::<64>();
    let is_zero = |part: &[u8]| part.iter().fold(0, |all, byte| all | byte) == 0;
    parts.iter().all(|part| is_zero(part)) && is_zero(rest)
}

/// Writes `array` at byte offset `at`. It must be inside `bytes`.
#[inline(always)]
#[track_caller]
pub fn put_array<const N: usize>(bytes: &mut [u8], at: usize, array: [u8; N]) {
    let field = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut());
    must_fit(field.is_some());
    if let Some(field) = field {
        *field = array;
    }
}

/// `bytes[range]`, to be written. It must be inside `bytes`.
#[inline(always)]
#[track_caller]
pub fn range_mut(bytes: &mut [u8], range: Range<usize>) -> &mut [u8] {
    let range = bytes.get_mut(range);
    must_fit(range.is_some());
    range.unwrap_or_default()
}

/// Copies `source` to byte offset `at`. It must be inside `bytes`.
#[inline(always)]
#[track_caller]
pub fn put(bytes: &mut [u8], at: usize, source: &[u8]) {
    let target = at.checked_add(source.len()).and_then(|end| bytes.get_mut(at..end));
    must_fit(target.is_some());
    if let Some(target) = target {
        target.copy_from_slice(source);
    }
}

/// Copies `source` to a `target` of the same length. For about ten bytes this inlined code is faster than a call of
/// `memcpy`.
#[inline(always)]
#[track_caller]
pub fn copy(target: &mut [u8], source: &[u8]) {
    must_fit(source.len() == target.len());
    match source.len() {
        0..4 => target.iter_mut().zip(source).for_each(|(to, from)| *to = *from),
        4..8 => copy_ends::<4>(target, source),
        8..16 => copy_ends::<8>(target, source),
        16..=32 => copy_ends::<16>(target, source),
        _ => target.copy_from_slice(source),
    }
}

/// Appends `source`. For keys of integers this inlined code is faster than a call.
#[inline(always)]
pub fn append(out: &mut Vec<u8>, source: &[u8]) {
    if let Ok(four) = <&[u8; 4]>::try_from(source) {
        out.extend_from_slice(four);
    } else if let Ok(eight) = <&[u8; 8]>::try_from(source) {
        out.extend_from_slice(eight);
    } else if !source.is_empty() {
        out.extend_from_slice(source);
    }
}

/// Copies the first and the last `N` bytes, which may overlap.
#[inline(always)]
fn copy_ends<const N: usize>(target: &mut [u8], source: &[u8]) {
    if let (Some(to), Some(from)) = (target.first_chunk_mut::<N>(), source.first_chunk::<N>()) {
        *to = *from;
    }
    if let (Some(to), Some(from)) = (target.last_chunk_mut::<N>(), source.last_chunk::<N>()) {
        *to = *from;
    }
}

/// Moves `bytes[from..to]` to byte offset `at`. The ranges may overlap. Both must be inside `bytes`.
#[inline(always)]
#[track_caller]
pub fn shift(bytes: &mut [u8], from: usize, to: usize, at: usize) {
    let fits = from <= to && to <= bytes.len() && at <= bytes.len() - (to - from);
    must_fit(fits);
    if fits {
        bytes.copy_within(from..to, at);
    }
}

/// Sets `bytes[from..to]` to zero. The range must be inside `bytes`, or empty.
#[inline(always)]
#[track_caller]
pub fn zero(bytes: &mut [u8], from: usize, to: usize) {
    if from < to {
        range_mut(bytes, from..to).fill(0);
    }
}

/// `value` as a `u16` to be written. It must fit.
#[inline(always)]
#[track_caller]
pub fn u16_of(value: usize) -> u16 {
    must_fit(value <= usize::from(u16::MAX));
    u16_clamped(value)
}

/// `value` as a `u16`, or the largest `u16` if it does not fit. For values that are read, and for a page that is being
/// built and is discarded if it has become too large.
#[inline(always)]
pub fn u16_clamped(value: usize) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

/// `value` as a `u32` to be written. It must fit.
#[inline(always)]
#[track_caller]
pub fn u32_of(value: impl TryInto<u32>) -> u32 {
    let number = value.try_into().ok();
    must_fit(number.is_some());
    number.unwrap_or(u32::MAX)
}

/// `value` as a `u8` to be written. It must fit.
#[inline(always)]
#[track_caller]
pub fn u8_of(value: usize) -> u8 {
    must_fit(value <= usize::from(u8::MAX));
    u8::try_from(value).unwrap_or(u8::MAX)
}

/// The length of the longest common prefix of `a` and `b`. Compares eight bytes at a time.
#[inline(always)]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a, b) = (slice(a, 0, len), slice(b, 0, len));
    let mut at = 0;
    while let (Some(x), Some(y)) = (word(a, at), word(b, at)) {
        if x != y {
            return at + (x ^ y).trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    // The remaining bytes are compared as part of the last eight bytes. The others of these are known to be equal.
    if let (Some(x), Some(y)) = (a.last_chunk(), b.last_chunk()) {
        let difference = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        return len - 8 + difference.trailing_zeros() as usize / 8;
    }
    short_common_prefix(a, b)
}

/// The eight bytes at `at`, if there are eight.
#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// [`common_prefix`] for two slices of the same length, below eight bytes.
#[inline(always)]
fn short_common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (Some(x), Some(y)) = (a.first_chunk(), b.first_chunk()) else {
        return a.iter().zip(b).take_while(|(x, y)| x == y).count();
    };
    let front = u32::from_le_bytes(*x) ^ u32::from_le_bytes(*y);
    if front != 0 {
        return front.trailing_zeros() as usize / 8;
    }
    let (Some(x), Some(y)) = (a.last_chunk(), b.last_chunk()) else { return 4 };
    let back = u32::from_le_bytes(*x) ^ u32::from_le_bytes(*y);
    a.len() - 4 + back.trailing_zeros() as usize / 8
}

/// Compares like `Ord`. For keys of about ten bytes this inlined code is faster than a call of `memcmp`.
#[inline(always)]
pub fn compare(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let common = common_prefix(a, b);
    a.get(common).cmp(&b.get(common))
}

/// True if `a` is less than `b`. Faster than [`compare`] for keys of integers.
#[inline(always)]
pub fn is_below(a: &[u8], b: &[u8]) -> bool {
    if let (Ok(a), Ok(b)) = (a.try_into(), b.try_into()) {
        u32::from_be_bytes(a) < u32::from_be_bytes(b)
    } else if let (Ok(a), Ok(b)) = (a.try_into(), b.try_into()) {
        u64::from_be_bytes(a) < u64::from_be_bytes(b)
    } else {
        compare(a, b).is_lt()
    }
}

/// `bytes` without `prefix`; `None` if `bytes` does not begin with it.
#[inline(always)]
pub fn strip_prefix<'a>(bytes: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    // Pages of integer keys have an empty prefix and are searched most often.
    if prefix.is_empty() {
        return Some(bytes);
    }
    let (front, rest) = bytes.split_at_checked(prefix.len())?;
    (common_prefix(front, prefix) == prefix.len()).then_some(rest)
}

/// Makes `key` the smallest byte string greater than it.
pub fn to_next(key: &mut Vec<u8>) {
    key.push(0);
}

/// The smallest byte string that is greater than every byte string with the prefix `prefix`; `None` if there is none.
pub fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let keep = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut next = slice(prefix, 0, keep).to_vec();
    next.push(prefix.get(keep)?.wrapping_add(1));
    Some(next)
}

/// Takes `len` bytes from the front of `input`; `None` if it is shorter.
pub fn take<'a>(input: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (head, rest) = input.split_at_checked(len)?;
    *input = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn any_byte_that_is_not_zero_is_found() {
        for len in 0..200 {
            let mut bytes = vec![0; len];
            assert!(are_zero(&bytes));
            for at in 0..len {
                bytes[at] = 0x80;
                assert!(!are_zero(&bytes), "byte {at} of {len}");
                bytes[at] = 0;
            }
        }
    }

    proptest! {
        #[test]
        fn comparing_in_words_is_comparing_bytes(
            a in proptest::collection::vec(0u8..2, 0..40),
            b in proptest::collection::vec(0u8..2, 0..40),
            same in 0usize..40,
        ) {
            let mut b = b;
            let same = same.min(a.len()).min(b.len());
            b[..same].copy_from_slice(&a[..same]);
            let common = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(common_prefix(&a, &b), common);
            prop_assert_eq!(compare(&a, &b), a.cmp(&b));
            prop_assert_eq!(strip_prefix(&a, &b), a.strip_prefix(b.as_slice()));
        }

        #[test]
        fn any_bytes_are_safe_to_read(bytes: Vec<u8>, at in 0usize..64) {
            let _ = (get_u16(&bytes, at), get_u32(&bytes, at), get_u64(&bytes, at), slice(&bytes, at, at + 3));
        }
    }

    #[test]
    fn copies_of_every_length_are_whole() {
        let source: Vec<u8> = (1..=80).collect();
        for len in 0..80 {
            let mut target = [0; 82];
            copy(&mut target[1..=len], &source[..len]);
            assert_eq!((&target[1..=len], target[0], target[len + 1]), (&source[..len], 0, 0));
        }
    }

    #[test]
    fn outside_reads_are_zero() {
        let mut bytes = [1u8, 2, 3];
        put_u16(&mut bytes, 1, 0x0505);
        assert_eq!(bytes, [1, 5, 5]);
        assert_eq!(get_u32(&bytes, 0), 0);
        assert_eq!(get_u16(&bytes, usize::MAX), 0);
        assert_eq!((slice(&bytes, 2, 4), u16_clamped(65_536)), (&[][..], u16::MAX));
    }

    #[test]
    fn outside_writes_are_never_silent() {
        type Write = fn(&mut [u8]);
        let writes: [(&str, Write); 15] = [
            ("a field", |bytes| put_u32(bytes, 0, 9)),
            ("a field far out", |bytes| put_u8(bytes, usize::MAX, 9)),
            ("bytes", |bytes| put(bytes, 2, &[1, 2])),
            ("bytes far out", |bytes| put(bytes, usize::MAX, &[1])),
            ("a copy of more bytes", |bytes| copy(bytes, &[1; 4])),
            ("a copy of fewer bytes", |bytes| copy(bytes, &[1; 2])),
            ("a move from outside", |bytes| shift(bytes, 1, 4, 0)),
            ("a move to outside", |bytes| shift(bytes, 0, 2, 2)),
            ("a move of less than nothing", |bytes| shift(bytes, 2, 1, 0)),
            ("a range", |bytes| range_mut(bytes, 2..4).fill(0)),
            ("zeros", |bytes| zero(bytes, 1, 4)),
            ("a number too large for its field", |bytes| put_u16(bytes, 0, u16_of(65_536))),
            ("one too large for four bytes", |_| _ = u32_of(1u64 << 32)),
            ("one too large for a byte", |bytes| put_u8(bytes, 0, u8_of(256))),
            ("a length", |bytes| _ = crate::base::varint::put(bytes, 2, 128)),
        ];
        for (what, write) in writes {
            let stopped = std::panic::catch_unwind(|| write(&mut [0; 3]));
            assert!(stopped.is_err(), "{what}");
        }
        zero(&mut [], 9, 9);
    }
}

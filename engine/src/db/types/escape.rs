//! Strings inside a tuple: escaped and terminated, so that their end can be found and their order is kept.
//!
//! Each byte 0x00 of the string becomes 0x00 0xFF, and 0x00 0x00 follows the last byte.
//!
//! The encodings have the order of the strings. Let a < b be two strings.
//!
//! * If they differ at a byte that both have, their encodings are equal before that byte. At that byte, or at the one
//!   after it, they differ in the same way: 0x00 becomes 0x00 0xFF, and any other byte is greater than 0x00.
//! * If a is a prefix of b, the terminator 0x00 0x00 of a is compared with the encoding of the next byte c of b. If c >
//!   0 the first byte decides. If c = 0 the second bytes are 0x00 and 0xFF. In both cases a is less.
//!
//! The bytes after the terminator are compared only if the strings are equal.

use super::value::Decoded;
use crate::base::bytes::take;
use std::borrow::Cow;

/// Appends `string`, escaped and terminated.
pub(super) fn push_escaped(string: &[u8], out: &mut Vec<u8>) {
    push_escaped_prefix(string, out);
    out.extend_from_slice(&[0, 0]);
}

/// Appends `string`, escaped and without a terminator. Exactly the strings that begin with `string` have an encoding
/// that begins with this.
pub(super) fn push_escaped_prefix(string: &[u8], out: &mut Vec<u8>) {
    for run in string.split_inclusive(|byte| *byte == 0) {
        out.extend_from_slice(run);
        if run.ends_with(&[0]) {
            out.push(0xFF);
        }
    }
}

/// Removes an escaped string from the front of `input`. The result is borrowed if the string contains no 0x00.
pub(super) fn take_escaped<'a>(input: &mut &'a [u8]) -> Decoded<Cow<'a, [u8]>> {
    const UNTERMINATED: &str = "a string in a tuple is not terminated";
    let mut unescaped = Vec::new();
    loop {
        let end = input.iter().position(|byte| *byte == 0).ok_or(UNTERMINATED)?;
        let run = take(input, end).ok_or(UNTERMINATED)?;
        match take(input, 2) {
            Some([_, 0]) if unescaped.is_empty() => return Ok(Cow::Borrowed(run)),
            Some([_, 0]) => {
                unescaped.extend_from_slice(run);
                return Ok(Cow::Owned(unescaped));
            }
            Some([_, 0xFF]) => {
                unescaped.extend_from_slice(run);
                unescaped.push(0);
            }
            Some(_) => return Err("a zero byte of a string in a tuple is not escaped"),
            None => return Err(UNTERMINATED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn few_bytes() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xFF), any::<u8>()], 0..8)
    }

    proptest! {
        #[test]
        fn strings_are_decoded_and_the_bytes_after_them_are_left(string in few_bytes(), tail in few_bytes()) {
            let mut bytes = Vec::new();
            push_escaped(&string, &mut bytes);
            bytes.extend_from_slice(&tail);
            let mut input = bytes.as_slice();
            prop_assert_eq!(take_escaped(&mut input).unwrap(), string);
            prop_assert_eq!(input, tail);
        }

        #[test]
        fn encodings_keep_the_order_of_strings_with_any_bytes_after_them(
            a in few_bytes(), b in few_bytes(), tail_a in few_bytes(), tail_b in few_bytes(),
        ) {
            let (mut left, mut right) = (Vec::new(), Vec::new());
            push_escaped(&a, &mut left);
            push_escaped(&b, &mut right);
            left.extend_from_slice(&tail_a);
            right.extend_from_slice(&tail_b);
            prop_assert_eq!(left.cmp(&right), a.cmp(&b).then(tail_a.cmp(&tail_b)));
        }

        #[test]
        fn the_encoded_prefix_matches_exactly_the_strings_with_that_prefix(a in few_bytes(), b in few_bytes()) {
            let (mut prefix, mut whole) = (Vec::new(), Vec::new());
            push_escaped_prefix(&a, &mut prefix);
            push_escaped(&b, &mut whole);
            whole.extend_from_slice(&[0xFF, 0xFF]);
            prop_assert_eq!(whole.starts_with(&prefix), b.starts_with(&a));
        }

        #[test]
        fn each_string_has_only_one_encoding(bytes in few_bytes()) {
            let mut input = bytes.as_slice();
            if let Ok(string) = take_escaped(&mut input) {
                let mut again = Vec::new();
                push_escaped(&string, &mut again);
                again.extend_from_slice(input);
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn a_string_without_zero_is_borrowed() {
        assert!(matches!(take_escaped(&mut &b"oak\0\0rest"[..]), Ok(Cow::Borrowed(b"oak"))));
        assert!(matches!(take_escaped(&mut &b"\0\xFF\0\0"[..]), Ok(Cow::Owned(_))));
    }

    #[test]
    fn unterminated_and_unescaped_strings_are_refused() {
        for bytes in [&b""[..], b"oak", b"oak\0", b"\0\xFF", b"\0\x01", b"a\0\x02\0\0"] {
            assert!(take_escaped(&mut &*bytes).is_err(), "{bytes:?}");
        }
    }
}

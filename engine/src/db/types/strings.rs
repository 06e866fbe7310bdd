//! Types of varying width: byte strings and text, borrowed and owned.

use super::escape::{push_escaped, take_escaped};
use super::value::{Decoded, Key, KeyPart, Value};
use std::borrow::Cow;

const NOT_TEXT: &str = "the text is not valid UTF-8";

/// `bytes` as text.
fn text(bytes: &[u8]) -> Decoded<&str> {
    std::str::from_utf8(bytes).map_err(|_| NOT_TEXT)
}

/// A string type. Callers pass `$given` and get `$view`, or `$part` if it is part of a tuple.
macro_rules! string {
    ($ty:ty, $name:literal, $given:ty, $view:ty, $decode:expr, $part:ty, $decode_part:expr) => {
        #[allow(clippy::needless_lifetimes, reason = "only some of the types borrow")]
        impl Value for $ty {
            type Ref<'a> = &'a $given;
            type View<'a> = $view;

            fn type_name() -> String {
                $name.to_owned()
            }

            fn fixed_width() -> Option<usize> {
                None
            }

            fn encode(value: &&$given, out: &mut Vec<u8>) {
                out.extend_from_slice(<$given as AsRef<[u8]>>::as_ref(value));
            }

            fn decode<'a>(bytes: &'a [u8]) -> Decoded<$view> {
                $decode(bytes)
            }
        }

        impl Key for $ty {}

        #[allow(clippy::needless_lifetimes, reason = "only some of the types borrow")]
        impl KeyPart for $ty {
            type Part<'a> = $part;

            fn encode_part(value: &&$given, out: &mut Vec<u8>) {
                push_escaped(<$given as AsRef<[u8]>>::as_ref(value), out);
            }

            fn take_part<'a>(input: &mut &'a [u8]) -> Decoded<$part> {
                take_escaped(input).and_then($decode_part)
            }
        }
    };
}

fn cow_text(bytes: Cow<'_, [u8]>) -> Decoded<Cow<'_, str>> {
    match bytes {
        Cow::Borrowed(bytes) => text(bytes).map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).map(Cow::Owned).map_err(|_| NOT_TEXT),
    }
}

string!(&[u8], "bytes", [u8], &'a [u8], Ok, Cow<'a, [u8]>, Ok);
string!(Vec<u8>, "bytes", [u8], Vec<u8>, |bytes: &[u8]| Ok(bytes.to_vec()), Vec<u8>, |part: Cow<'_, [u8]>| {
    Ok(part.into_owned())
});
string!(&str, "str", str, &'a str, text, Cow<'a, str>, cow_text);
string!(String, "str", str, String, |bytes| text(bytes).map(str::to_owned), String, |part| {
    cow_text(part).map(Cow::into_owned)
});

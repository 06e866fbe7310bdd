//! Converts between text and stored bytes, with the types of a table or, with `--hex`, in hexadecimal.

use duramen::db::types::DynType;
use duramen::{Error, Result};

/// The text form of the keys, or of the values, of a table. Converts from it to stored bytes, and back.
pub(crate) struct TextForm {
    type_: DynType,
    hex: bool,
}

impl TextForm {
    /// Values of `type_`, as text or in hexadecimal.
    pub(crate) fn new(type_: DynType, hex: bool) -> TextForm {
        TextForm { type_, hex }
    }

    /// The name of the type in the catalog.
    pub(crate) fn type_name(&self) -> String {
        self.type_.to_string()
    }

    /// The stored bytes of the value that `text` describes.
    pub(crate) fn encode(&self, text: &[u8]) -> Result<Vec<u8>> {
        if !self.hex {
            return self.type_.encode_text(text);
        }
        let bytes = unhex(text)?;
        self.type_.decode_text(&bytes, &mut Vec::new())?;
        Ok(bytes)
    }

    /// The prefix that exactly the stored bytes of those values have that begin with `text`.
    pub(crate) fn encode_prefix(&self, text: &[u8]) -> Result<Vec<u8>> {
        if self.hex { unhex(text) } else { self.type_.encode_prefix(text) }
    }

    /// Appends the text of the stored `bytes`.
    pub(crate) fn decode(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        if !self.hex {
            return self.type_.decode_text(bytes, out);
        }
        let start = out.len();
        out.resize(start + 2 * bytes.len(), 0);
        let room = out.get_mut(start..).unwrap_or_default();
        hex::encode_to_slice(bytes, room).map_err(|error| not_hex(bytes, &error))
    }
}

/// The beginning of a bound in hexadecimal.
const HEX: &str = "0x";

/// A bound of a key range as text, or `0x` and its bytes in hexadecimal, if it is only a part of a key, has unprintable
/// characters, or begins with `0x` itself. `key_type` is the name of the type.
pub(crate) fn bound(bytes: &[u8], key_type: &str) -> String {
    let mut text = Vec::new();
    let read = TextForm::new(DynType::named(key_type, None), false).decode(bytes, &mut text);
    match (read, String::from_utf8(text)) {
        (Ok(()), Ok(text)) if !text.contains(char::is_control) && !text.starts_with(HEX) => text,
        _ => format!("{HEX}{}", hex::encode(bytes)),
    }
}

fn unhex(text: &[u8]) -> Result<Vec<u8>> {
    hex::decode(text).map_err(|error| not_hex(text, &error))
}

fn not_hex(text: &[u8], error: &hex::FromHexError) -> Error {
    let text = String::from_utf8_lossy(text).chars().take(60).flat_map(char::escape_default).collect();
    let why = match error {
        hex::FromHexError::OddLength => "it has an odd number of digits".to_owned(),
        _ => "it must have two of 0 to 9 and a to f for each byte".to_owned(),
    };
    Error::Text { text, expected: "hexadecimal".to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(name: &str, hex: bool) -> TextForm {
        TextForm::new(name.parse().unwrap(), hex)
    }

    #[test]
    fn hexadecimal_is_the_stored_bytes() {
        let numbers = form("i16", true);
        assert_eq!(numbers.encode(b"8001").unwrap(), form("i16", false).encode(b"1").unwrap());
        let mut text = b"> ".to_vec();
        numbers.decode(&[0x7F, 0xFF], &mut text).unwrap();
        assert_eq!(text, b"> 7fff");
        assert_eq!(form("str", true).encode_prefix(b"C3").unwrap(), [0xC3]);
    }

    #[test]
    fn bounds_are_texts_if_possible() {
        assert_eq!(bound(b"oak", "bytes"), "oak");
        assert_eq!(bound(&[0, 0, 0, 7], "u32"), "7");
        assert_eq!(bound(&[0, 7], "u32"), "0x0007");
        assert_eq!(bound(b"\xFF", "bytes"), "0xff");
        assert_eq!(bound(b"big\0", "bytes"), "0x62696700");
        assert_eq!(bound(b"0xff", "bytes"), "0x30786666");
    }

    #[test]
    fn bad_hexadecimal_and_bytes_of_another_type_are_refused() {
        for text in [&b"8"[..], b"8g", b"\xFF\xFF"] {
            assert!(form("bytes", true).encode(text).is_err(), "{text:?}");
        }
        assert!(form("i16", true).encode(b"80").is_err());
        assert!(form("str", true).encode(b"ff").is_err());
    }
}

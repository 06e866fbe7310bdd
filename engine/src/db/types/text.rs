//! The text form of the values of a [`DynType`], for programs whose users type values. The bytes are those of the
//! static types.

use super::dynamic::{DynType, TypeShape};
use super::escape::{push_escaped, push_escaped_prefix, take_escaped};
use super::value::{Decoded, TUPLE_ENDS, Value, WRONG_LENGTH};
use crate::base::bytes::take;
use crate::base::{Error, Result};
use std::borrow::Cow;

/// The number of characters of a wrong text that an error shows.
const SHOWN: usize = 60;

impl DynType {
    /// The encoding of the value that `text` describes.
    ///
    /// ```
    /// use duramen::{Error, db::types::DynType};
    ///
    /// let years: DynType = "u16".parse()?;
    /// assert_eq!(years.encode_text(b"700")?, 700u16.to_be_bytes());
    /// assert!(matches!(years.encode_text(b"very old"), Err(Error::Text { .. })));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Text`], with the text, if it is not a value of this type.
    pub fn encode_text(&self, text: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(self.fixed_width().unwrap_or(text.len()).min(text.len() + 16));
        self.shape.encode(text, &mut out).map_err(|why| Error::Text {
            text: shown(text),
            expected: format!("a value of type {self}"),
            why,
        })?;
        Ok(out)
    }

    /// The prefix of the encodings of exactly the values that begin with `text`.
    ///
    /// Each prefix of a byte string or a text is a beginning of it. A tuple begins with its first parts; the last given
    /// part must be complete, unless it is a string. For example, `oa`, `oak,` and `oak,7` are beginnings of `("oak",
    /// 7)`.
    ///
    /// ```
    /// use duramen::db::types::DynType;
    ///
    /// let pair: DynType = "(str,u8)".parse()?;
    /// let oak = pair.encode_text(b"oak,7")?;
    /// assert!(oak.starts_with(&pair.encode_prefix(b"oa")?));
    /// assert!(oak.starts_with(&pair.encode_prefix(b"oak,")?));
    /// assert!(!oak.starts_with(&pair.encode_prefix(b"oa,")?));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors [`Error::Text`], with the text, if no value can begin with it. Numbers have no prefixes.
    pub fn encode_prefix(&self, text: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len());
        self.shape.encode_prefix(text, &mut out).map_err(|why| Error::Text {
            text: shown(text),
            expected: format!("the beginning of a value of type {self}"),
            why,
        })?;
        Ok(out)
    }

    /// Checks that `bytes` are the encoding of a value of this type.
    ///
    /// ```
    /// use duramen::db::types::DynType;
    ///
    /// let years: DynType = "u16".parse()?;
    /// assert!(years.check(&[2, 188]).is_ok());
    /// assert!(years.check(&[2, 188, 0]).is_err());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn check(&self, bytes: &[u8]) -> Result<(), &'static str> {
        match &self.shape {
            TypeShape::Bytes => Ok(()),
            // The text is not needed here, so it is not made where another check is enough. For numbers of more than
            // one byte, all bytes are valid.
            TypeShape::Scalar(scalar) if scalar.width > 1 && bytes.len() == scalar.width => Ok(()),
            TypeShape::Array(width) if bytes.len() == *width => Ok(()),
            TypeShape::Str => <&str>::decode(bytes).map(drop),
            shape => shape.decode(bytes, &mut Vec::new()),
        }
    }

    /// Appends the text form of the value with the encoding `bytes`.
    ///
    /// ```
    /// use duramen::db::types::DynType;
    ///
    /// let mut text = Vec::new();
    /// "u16".parse::<DynType>()?.decode_text(&700u16.to_be_bytes(), &mut text)?;
    /// assert_eq!(text, b"700");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Encoding`] if the bytes are not of this type. `out` may then end with a part of the text.
    pub fn decode_text(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.shape.decode(bytes, out).map_err(|what| Error::Encoding { type_name: self.to_string(), what })
    }
}

impl TypeShape {
    /// Appends the encoding of `text`, or returns what is wrong with it.
    fn encode(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            TypeShape::Bytes => out.extend_from_slice(text),
            TypeShape::Str => {
                let text = std::str::from_utf8(text).map_err(|_| "it must be valid UTF-8".to_owned())?;
                out.extend_from_slice(text.as_bytes());
            }
            TypeShape::Unit if text.is_empty() => {}
            TypeShape::Unit => return Err("it must be empty".to_owned()),
            TypeShape::Scalar(scalar) => {
                let parsed = std::str::from_utf8(text).is_ok_and(|text| (scalar.parse)(text, out));
                if !parsed {
                    return Err(format!("it must be {}", (scalar.expected)()));
                }
            }
            TypeShape::Array(width) | TypeShape::Own { width: Some(width), .. } if text.len() != *width => {
                return Err(format!("it must have {width} bytes, not {}", text.len()));
            }
            TypeShape::Array(_) | TypeShape::Own { .. } => out.extend_from_slice(text),
            TypeShape::Tuple(parts) => encode_tuple(parts, text, out)?,
            TypeShape::Option(inner) => match text.strip_prefix(b"some:") {
                Some(value) => {
                    out.push(1);
                    inner.encode(value, out)?;
                }
                None if text == b"none" => out.resize(out.len() + 1 + inner.width().unwrap_or_default(), 0),
                None => return Err("it must be none, or some: and the value".to_owned()),
            },
        }
        Ok(())
    }

    /// Appends the text of the encoding `bytes`.
    fn decode(&self, bytes: &[u8], out: &mut Vec<u8>) -> Decoded<()> {
        match self {
            TypeShape::Bytes => out.extend_from_slice(bytes),
            TypeShape::Str => out.extend_from_slice(<&str>::decode(bytes)?.as_bytes()),
            TypeShape::Unit => <()>::decode(bytes)?,
            TypeShape::Scalar(scalar) => (scalar.print)(bytes, out)?,
            TypeShape::Array(width) if bytes.len() == *width => out.extend_from_slice(bytes),
            TypeShape::Own { width, .. } if width.is_none_or(|width| width == bytes.len()) => {
                out.extend_from_slice(bytes)
            }
            TypeShape::Array(_) | TypeShape::Own { .. } => return Err(WRONG_LENGTH),
            TypeShape::Tuple(parts) => decode_tuple(parts, bytes, out)?,
            TypeShape::Option(inner) => match bytes.split_first() {
                Some((1, value)) => {
                    out.extend_from_slice(b"some:");
                    inner.decode(value, out)?;
                }
                _ => {
                    let is_none = bytes.len() == 1 + inner.width().unwrap_or_default();
                    if !is_none || bytes.iter().any(|byte| *byte != 0) {
                        return Err("an option is neither none nor some");
                    }
                    out.extend_from_slice(b"none");
                }
            },
        }
        Ok(())
    }

    /// Appends the prefix of the encodings of all values that begin with `text`.
    fn encode_prefix(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            // A prefix of a text can have any bytes, because it may end inside a character.
            TypeShape::Bytes | TypeShape::Str | TypeShape::Own { .. } => out.extend_from_slice(text),
            TypeShape::Array(width) if text.len() <= *width => out.extend_from_slice(text),
            TypeShape::Array(width) => return Err(format!("it must have at most {width} bytes, not {}", text.len())),
            TypeShape::Tuple(parts) => encode_tuple_prefix(parts, text, out)?,
            TypeShape::Unit | TypeShape::Scalar(_) | TypeShape::Option(_) => {
                return Err("only strings and tuples have prefixes: give a range instead".to_owned());
            }
        }
        Ok(())
    }

    /// True for types that are escaped inside a tuple, except as its last part.
    fn is_string(&self) -> bool {
        matches!(self, TypeShape::Bytes | TypeShape::Str)
    }
}

fn encode_tuple(parts: &[TypeShape], text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let texts = split_parts(text)?;
    if texts.len() != parts.len() {
        return Err(format!("it must have {} parts separated by commas, not {}", parts.len(), texts.len()));
    }
    for (i, (part, text)) in parts.iter().zip(&texts).enumerate() {
        let in_part = |why| format!("in part {}, \"{}\", {why}", i + 1, shown(text));
        if part.is_string() && i + 1 < parts.len() {
            let mut string = Vec::with_capacity(text.len());
            part.encode(text, &mut string).map_err(in_part)?;
            push_escaped(&string, out);
        } else {
            part.encode(text, out).map_err(in_part)?;
        }
    }
    Ok(())
}

/// All parts in `text` except the last are complete. The last one is complete too if it is a number and not empty.
fn encode_tuple_prefix(parts: &[TypeShape], text: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let texts = split_parts(text)?;
    if texts.len() > parts.len() {
        return Err(format!("it must have at most {} parts, not {}", parts.len(), texts.len()));
    }
    for (i, (part, text)) in parts.iter().zip(&texts).enumerate() {
        let is_last = i + 1 == texts.len();
        match part {
            _ if is_last && text.is_empty() => {}
            TypeShape::Bytes | TypeShape::Str if i + 1 == parts.len() => out.extend_from_slice(text),
            TypeShape::Bytes | TypeShape::Str if is_last => push_escaped_prefix(text, out),
            TypeShape::Bytes | TypeShape::Str => push_escaped(text, out),
            TypeShape::Array(_) if is_last => part.encode_prefix(text, out)?,
            _ => part.encode(text, out).map_err(|why| format!("in part {}, {why}", i + 1))?,
        }
    }
    Ok(())
}

/// Splits `text` at its commas, and resolves `\,` and `\\`.
fn split_parts(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let (mut parts, mut part) = (Vec::new(), Vec::new());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b',' => parts.push(std::mem::take(&mut part)),
            b'\\' => match bytes.next() {
                Some(escaped @ (b',' | b'\\')) => part.push(*escaped),
                _ => return Err(r"a backslash must be followed by a comma or a backslash".to_owned()),
            },
            _ => part.push(*byte),
        }
    }
    parts.push(part);
    Ok(parts)
}

fn decode_tuple(parts: &[TypeShape], bytes: &[u8], out: &mut Vec<u8>) -> Decoded<()> {
    let (mut input, mut text) = (bytes, Vec::new());
    for (i, part) in parts.iter().enumerate() {
        let encoded = match part.width() {
            _ if i + 1 == parts.len() => Cow::Borrowed(input),
            Some(width) => Cow::Borrowed(take(&mut input, width).ok_or(TUPLE_ENDS)?),
            None => take_escaped(&mut input)?,
        };
        text.clear();
        part.decode(&encoded, &mut text)?;
        if i > 0 {
            out.push(b',');
        }
        for byte in &text {
            if matches!(byte, b',' | b'\\') {
                out.push(b'\\');
            }
            out.push(*byte);
        }
    }
    Ok(())
}

/// The beginning of `text` for an error message, with unprintable bytes escaped.
fn shown(text: &[u8]) -> String {
    let mut chars = text.utf8_chunks().flat_map(|chunk| {
        let invalid = chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}"));
        chunk
            .valid()
            .chars()
            .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
            .chain(invalid)
    });
    let mut shown: String = chars.by_ref().take(SHOWN).collect();
    if chars.next().is_some() {
        shown.push_str("...");
    }
    shown
}

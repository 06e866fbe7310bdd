//! `Option` of any value type, as a value.

use super::value::{Decoded, Value};

/// One byte (0 for `None`, 1 for `Some`), then the value. If the type has a fixed width, `None` is followed by as many
/// zeros.
impl<V: Value> Value for Option<V> {
    type Ref<'a> = Option<V::Ref<'a>>;
    type View<'a> = Option<V::View<'a>>;

    fn type_name() -> String {
        format!("option<{}>", V::type_name())
    }

    fn fixed_width() -> Option<usize> {
        V::fixed_width().map(|width| 1 + width)
    }

    fn encode(value: &Self::Ref<'_>, out: &mut Vec<u8>) {
        out.push(u8::from(value.is_some()));
        match value {
            Some(value) => V::encode(value, out),
            None => out.resize(out.len() + V::fixed_width().unwrap_or_default(), 0),
        }
    }

    fn decode<'a>(bytes: &'a [u8]) -> Decoded<Self::View<'a>> {
        let (tag, rest) = bytes.split_first().ok_or("an option has no bytes")?;
        match tag {
            1 => V::decode(rest).map(Some),
            0 if rest.len() == V::fixed_width().unwrap_or_default() && rest.iter().all(|byte| *byte == 0) => Ok(None),
            0 => Err("an option that is none has a value"),
            _ => Err("an option starts with neither the byte 0 nor the byte 1"),
        }
    }
}

//! The contract of a stored type: [`Value`], [`Key`] and [`KeyPart`]. No type implements them here.

/// What a decoder says is wrong with the bytes it was given.
pub(super) type Decoded<T> = Result<T, &'static str>;

/// A type whose values a table can hold.
///
/// It is implemented for byte strings (`&[u8]`, `Vec<u8>`, `[u8; N]`), text (`&str`, `String`), the integers of 8 to
/// 128 bits, `f32`, `f64`, `bool`, `()`, `Option` of these, and tuples of two to six [`KeyPart`]s. The type itself is
/// only a name; what goes in is a [`Value::Ref`] and what comes out a [`Value::View`].
///
/// ```
/// use duramen::db::types::Value;
///
/// let mut bytes = Vec::new();
/// <(&str, u32)>::encode(&("oak", 180), &mut bytes);
/// let (name, years) = <(&str, u32)>::decode(&bytes).unwrap();
/// assert_eq!((name.as_ref(), years), ("oak", 180));
/// ```
pub trait Value {
    /// What callers give: `&str` for text, `u64` for a `u64`, `(&str, u64)` for a pair of them.
    type Ref<'a>;
    /// What callers get back, borrowing from the stored bytes where it can: `&'a str`, `u64`, `(Cow<'a, str>, u64)`.
    type View<'a>;

    /// The type's name in the catalog, as `"(str,u64)"`. Types of one name must have the same encoding.
    fn type_name() -> String;

    /// The length of every encoding in bytes, or `None` when it varies.
    fn fixed_width() -> Option<usize>;

    /// Appends the encoding of `value` to `out`.
    fn encode(value: &Self::Ref<'_>, out: &mut Vec<u8>);

    /// Reads an encoding back.
    ///
    /// # Errors
    /// What is wrong with `bytes`, where no value has this encoding. Any bytes are safe to give.
    fn decode<'a>(bytes: &'a [u8]) -> Result<Self::View<'a>, &'static str>;
}

/// A [`Value`] whose encodings compare, byte by byte, as its values do: `a < b` exactly if `encode(a) < encode(b)`.
/// Only such a type can be the key of a table.
pub trait Key: Value {}

/// A [`Key`] that can be part of a tuple.
///
/// A tuple's own order needs each part but the last to say where it ends without disturbing the order, so strings
/// look different inside a tuple (see `docs/types.md`) and may have to be copied to be read back: [`KeyPart::Part`]
/// is `Cow<'a, str>` where [`Value::View`] is `&'a str`. Tuples are not parts: they do not nest.
pub trait KeyPart: Key {
    /// What callers get back for a part that is not the last.
    type Part<'a>;

    /// Appends an encoding that no other one of this type is a prefix of, and that orders as the values do.
    fn encode_part(value: &Self::Ref<'_>, out: &mut Vec<u8>);

    /// Takes what [`KeyPart::encode_part`] wrote off the front of `input`.
    ///
    /// # Errors
    /// What is wrong with the bytes. Any bytes are safe to give.
    fn take_part<'a>(input: &mut &'a [u8]) -> Result<Self::Part<'a>, &'static str>;
}

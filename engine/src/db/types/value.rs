//! The traits of stored types: [`Value`], [`Key`] and [`KeyPart`]. The types that implement them are in the other
//! files.

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
    ///
    /// ```
    /// use duramen::db::types::Value;
    ///
    /// assert_eq!(<(String, u64)>::type_name(), "(str,u64)");
    /// assert_eq!(<(&str, u64)>::type_name(), <(String, u64)>::type_name(), "they have the same encoding");
    /// ```
    fn type_name() -> String;

    /// The length of every encoding in bytes, or `None` when it varies.
    ///
    /// ```
    /// use duramen::db::types::Value;
    ///
    /// assert_eq!((u64::fixed_width(), <&str>::fixed_width()), (Some(8), None));
    /// ```
    fn fixed_width() -> Option<usize>;

    /// Appends the encoding of `value` to `out`.
    ///
    /// ```
    /// use duramen::db::types::Value;
    ///
    /// let mut bytes = Vec::new();
    /// u16::encode(&700, &mut bytes);
    /// assert_eq!(bytes, [0x02, 0xBC]);
    /// ```
    fn encode(value: &Self::Ref<'_>, out: &mut Vec<u8>);

    /// Reads an encoding back.
    ///
    /// ```
    /// use duramen::db::types::Value;
    ///
    /// assert_eq!(u16::decode(&[0x02, 0xBC]), Ok(700));
    /// assert!(u16::decode(&[0x02]).is_err());
    /// ```
    ///
    /// # Errors
    /// What is wrong with `bytes`, where no value has this encoding. Any bytes are safe to give.
    fn decode<'a>(bytes: &'a [u8]) -> Result<Self::View<'a>, &'static str>;
}

/// A [`Value`] whose encodings compare, byte by byte, as its values do: `a < b` exactly if `encode(a) < encode(b)`.
/// Only such a type can be the key of a table.
///
/// ```
/// use duramen::db::types::{Key, Value};
/// use duramen::{Database, TableDef};
///
/// /// Stored as the `u32` that it is.
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// struct Metres(u32);
///
/// impl Value for Metres {
///     type Ref<'a> = Metres;
///     type View<'a> = Metres;
///
///     fn type_name() -> String {
///         u32::type_name()
///     }
///     fn fixed_width() -> Option<usize> {
///         u32::fixed_width()
///     }
///     fn encode(value: &Metres, out: &mut Vec<u8>) {
///         u32::encode(&value.0, out);
///     }
///     fn decode(bytes: &[u8]) -> Result<Metres, &'static str> {
///         u32::decode(bytes).map(Metres)
///     }
/// }
/// impl Key for Metres {} // the bytes of a `u32` order as the numbers do
///
/// const BY_HEIGHT: TableDef<Metres, &str> = TableDef::new("trees by height");
/// let db = Database::in_memory()?;
/// let tx = db.begin_write()?;
/// let mut trees = tx.open_table(BY_HEIGHT)?;
/// trees.put(Metres(40), "oak")?;
/// trees.put(Metres(115), "sequoia")?;
/// assert_eq!(trees.last()?.map(|(height, _)| height.value()), Some(Metres(115)));
/// # Ok::<(), duramen::Error>(())
/// ```
pub trait Key: Value {}

/// A [`Key`] that can be part of a tuple.
///
/// A tuple's own order needs each part but the last to say where it ends without disturbing the order, so strings
/// look different inside a tuple (see `docs/types.md`) and may have to be copied to be read back: [`KeyPart::Part`]
/// is `Cow<'a, str>` where [`Value::View`] is `&'a str`. Tuples are not parts: they do not nest.
///
/// ```
/// use duramen::TableDef;
/// use duramen::db::types::{KeyPart, Value};
///
/// /// The trees of one forest, whatever its key is.
/// fn in_forest<F: KeyPart>() -> TableDef<'static, (F, u64), ()> {
///     TableDef::new("trees")
/// }
/// assert_eq!(in_forest::<&str>().key_type(), "(str,u64)");
/// assert_eq!(in_forest::<[u8; 16]>().key_type(), "([u8;16],u64)");
/// ```
pub trait KeyPart: Key {
    /// What callers get back for a part that is not the last.
    type Part<'a>;

    /// Appends an encoding that no other one of this type is a prefix of, and that orders as the values do.
    ///
    /// ```
    /// use duramen::db::types::KeyPart;
    ///
    /// let mut bytes = Vec::new();
    /// <&str>::encode_part(&"oak", &mut bytes);
    /// assert_eq!(bytes, b"oak\0\0", "it ends visibly");
    /// ```
    fn encode_part(value: &Self::Ref<'_>, out: &mut Vec<u8>);

    /// Takes what [`KeyPart::encode_part`] wrote off the front of `input`.
    ///
    /// ```
    /// use duramen::db::types::KeyPart;
    ///
    /// let mut input = b"oak\0\0and more".as_slice();
    /// assert_eq!(<&str>::take_part(&mut input)?, "oak");
    /// assert_eq!(input, b"and more");
    /// # Ok::<(), &'static str>(())
    /// ```
    ///
    /// # Errors
    /// What is wrong with the bytes. Any bytes are safe to give.
    fn take_part<'a>(input: &mut &'a [u8]) -> Result<Self::Part<'a>, &'static str>;
}

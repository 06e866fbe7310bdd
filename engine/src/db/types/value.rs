//! The traits of stored types: [`Value`], [`Key`] and [`KeyPart`]. The types that implement them are in the other
//! files.

/// The error of a decoder: what is wrong with the bytes.
pub(super) type Decoded<T> = Result<T, &'static str>;

/// The error for bytes that do not have the length of the encodings of a type.
pub(in crate::db) const WRONG_LENGTH: &str = "the number of bytes is not that of the type";
/// The error for bytes that end within a tuple.
pub(super) const TUPLE_ENDS: &str = "the tuple is truncated";

/// A type of values in a table.
/// It is implemented for byte strings (`&[u8]`, `Vec<u8>`, `[u8; N]`), text (`&str`, `String`), the integers of 8 to
/// 128 bits, `f32`, `f64`, `bool`, `()`, `Option` of these, and tuples of two to six [`KeyPart`]s. The type itself is
/// only a name: callers pass a [`Value::Ref`] and get a [`Value::View`].
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
    /// The form in which callers pass a value: `&str` for text, `u64` for a `u64`, `(&str, u64)` for a pair.
    type Ref<'a>;
    /// The form in which callers get a value. It borrows from the stored bytes where possible: `&'a str`, `u64`,
    /// `(Cow<'a, str>, u64)`.
    type View<'a>;

    /// The name of the type in the catalog, such as `"(str,u64)"`. Types with the same name must have the same
    /// encoding.
    ///
    /// ```
    /// use duramen::db::types::Value;
    ///
    /// assert_eq!(<(String, u64)>::type_name(), "(str,u64)");
    /// assert_eq!(<(&str, u64)>::type_name(), <(String, u64)>::type_name(), "they have the same encoding");
    /// ```
    fn type_name() -> String;

    /// The length of every encoding in bytes, or `None` if it varies.
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

    /// Decodes a value.
    ///
    /// ```
    /// use duramen::db::types::Value;
    ///
    /// assert_eq!(u16::decode(&[0x02, 0xBC]), Ok(700));
    /// assert!(u16::decode(&[0x02]).is_err());
    /// ```
    ///
    /// # Errors
    /// A description of the error, if `bytes` are not the encoding of a value. All bytes are safe.
    fn decode<'a>(bytes: &'a [u8]) -> Result<Self::View<'a>, &'static str>;
}

/// A [`Value`] whose encodings have the order of its values: `a < b` if and only if `encode(a) < encode(b)`. The keys
/// of a table must have such a type.
///
/// ```
/// use duramen::db::types::{Key, Value};
/// use duramen::{Database, TableDef};
///
/// /// A height, stored as a `u32`.
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
/// impl Key for Metres {} // the bytes of a `u32` have the order of the numbers
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
/// Inside a tuple, the encoding of each part except the last must show where it ends, and must keep the order.
/// Therefore strings have another encoding inside a tuple (see `docs/types.md`), and reading one may need a copy: for
/// `&str`, [`KeyPart::Part`] is `Cow<'a, str>` and [`Value::View`] is `&'a str`. Tuples cannot be parts of tuples.
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
    /// The form in which callers get a part that is not the last one.
    type Part<'a>;

    /// Appends an encoding that is not a prefix of another encoding of this type, and that has the order of the values.
    ///
    /// ```
    /// use duramen::db::types::KeyPart;
    ///
    /// let mut bytes = Vec::new();
    /// <&str>::encode_part(&"oak", &mut bytes);
    /// assert_eq!(bytes, b"oak\0\0", "it has a terminator");
    /// ```
    fn encode_part(value: &Self::Ref<'_>, out: &mut Vec<u8>);

    /// Decodes the output of [`KeyPart::encode_part`] at the front of `input`, and removes it from `input`.
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
    /// A description of the error in the bytes. All bytes are safe.
    fn take_part<'a>(input: &mut &'a [u8]) -> Result<Self::Part<'a>, &'static str>;
}

//! [`DynType`]: a type known only at run time, by its name. `text.rs` has the text form of its values.

use super::value::{Decoded, Value};
use crate::base::Error;
use std::fmt;
use std::str::FromStr;

/// The maximum nesting of `option<...>`, so that a hostile name cannot exhaust the stack.
const MAX_NESTING: usize = 8;
/// The number of parts of a tuple.
const ARITY: std::ops::RangeInclusive<usize> = 2..=6;

/// A type of keys or values that is known only at run time, by its name in the catalog.
/// Its encodings are those of the Rust type of that name. It converts values from and to text: numbers in decimal,
/// `true` and `false`, byte strings and text without change. The parts of a tuple are separated by commas; inside a
/// part a comma is written `\,` and a backslash `\\`. An option is `none`, or `some:` followed by the value. `()` is
/// the empty text.
///
/// ```
/// use duramen::db::types::{DynType, Value};
///
/// let pair: DynType = "(str,u32)".parse()?;
/// let bytes = pair.encode_text(br"oak\, red,180")?;
/// assert_eq!(<(&str, u32)>::decode(&bytes).unwrap(), ("oak, red".into(), 180));
///
/// let mut text = Vec::new();
/// pair.decode_text(&bytes, &mut text)?;
/// assert_eq!(text, br"oak\, red,180");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DynType {
    pub(super) shape: TypeShape,
}

/// The structure of a type.
#[derive(Clone, Debug)]
pub(super) enum TypeShape {
    Bytes,
    Str,
    Unit,
    Scalar(&'static ScalarType),
    Array(usize),
    Tuple(Vec<TypeShape>),
    Option(Box<TypeShape>),
    /// A type that a program has defined.
    Own {
        name: Box<str>,
        width: Option<usize>,
    },
}

/// A type that the standard library converts from and to text, such as an integer or `bool`.
#[derive(Debug)]
pub(super) struct ScalarType {
    name: &'static str,
    pub(super) width: usize,
    key: bool,
    /// Appends the encoding of a text; false if the text is not a value of this type.
    pub(super) parse: fn(&str, &mut Vec<u8>) -> bool,
    /// Appends the text of an encoding.
    pub(super) print: fn(&[u8], &mut Vec<u8>) -> Decoded<()>,
    /// A description of valid texts, for errors.
    pub(super) expected: fn() -> String,
}

macro_rules! scalars {
    ($($ty:ident $key:literal $expected:expr $(, too_large: $is_infinite:path)?;)*) => {
        /// All scalar types.
        static SCALARS: &[ScalarType] = &[$(ScalarType {
            name: stringify!($ty),
            width: size_of::<$ty>(),
            key: $key,
            parse: |text, out| {
                let Ok(value) = text.parse::<$ty>() else { return false };
                $(if $is_infinite(value) && has_digit(text) {
                    return false;
                })?
                $ty::encode(&value, out);
                true
            },
            print: |bytes, out| Ok(out.extend_from_slice($ty::decode(bytes)?.to_string().as_bytes())),
            expected: || $expected,
        },)*];
    };
}

macro_rules! whole {
    ($ty:ident) => {
        format!("a whole number from {} to {}", $ty::MIN, $ty::MAX)
    };
}

macro_rules! finite {
    ($ty:ident) => {
        format!("a number from {:e} to {:e}, or inf, -inf or NaN", $ty::MIN, $ty::MAX)
    };
}

/// True for the text of a number, and false for names such as `inf`. The standard library parses a number that is too
/// large as infinity.
fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

scalars! {
    u8 true whole!(u8);
    u16 true whole!(u16);
    u32 true whole!(u32);
    u64 true whole!(u64);
    u128 true whole!(u128);
    i8 true whole!(i8);
    i16 true whole!(i16);
    i32 true whole!(i32);
    i64 true whole!(i64);
    i128 true whole!(i128);
    f32 false finite!(f32), too_large: f32::is_infinite;
    f64 false finite!(f64), too_large: f64::is_infinite;
    bool true "true or false".to_owned();
}

impl DynType {
    /// The type of that name. If it is not a type of the engine, it is a type that a program has defined, whose
    /// encodings all have `width` bytes, if that is given. Only that program knows its values, so their text form is
    /// their bytes.
    ///
    /// ```
    /// use duramen::db::types::DynType;
    ///
    /// assert_eq!(DynType::named("u32", None), "u32".parse()?);
    /// let metres = DynType::named("metres", Some(2));
    /// assert!("metres".parse::<DynType>().is_err(), "parsing accepts known names only");
    /// assert_eq!((metres.encode_text(b"\0\x07")?, metres.to_string().as_str()), (vec![0, 7], "metres"));
    /// assert!(metres.encode_text(b"seven").is_err(), "it has two bytes");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn named(name: &str, width: Option<usize>) -> DynType {
        let own = || TypeShape::Own { name: name.into(), width };
        DynType { shape: TypeShape::named(name, MAX_NESTING).unwrap_or_else(own) }
    }

    /// True for a type that a program has defined.
    ///
    /// ```
    /// use duramen::db::types::DynType;
    ///
    /// assert!(DynType::named("metres", None).is_own() && !DynType::named("u32", None).is_own());
    /// ```
    pub fn is_own(&self) -> bool {
        matches!(self.shape, TypeShape::Own { .. })
    }

    /// True if encodings have the order of the values, so that a table can have keys of this type. It is true for all
    /// types that a program has defined; only that program can know.
    ///
    /// ```
    /// use duramen::db::types::DynType;
    ///
    /// assert!("(str,u32)".parse::<DynType>()?.is_key());
    /// assert!(!"f64".parse::<DynType>()?.is_key());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn is_key(&self) -> bool {
        match &self.shape {
            TypeShape::Option(_) => false,
            TypeShape::Scalar(scalar) => scalar.key,
            TypeShape::Bytes
            | TypeShape::Str
            | TypeShape::Unit
            | TypeShape::Array(_)
            | TypeShape::Tuple(_)
            | TypeShape::Own { .. } => true,
        }
    }

    /// The length of every encoding in bytes, or `None` if it varies.
    ///
    /// ```
    /// use duramen::db::types::DynType;
    ///
    /// assert_eq!("(u32,u64)".parse::<DynType>()?.fixed_width(), Some(12));
    /// assert_eq!("(u32,str)".parse::<DynType>()?.fixed_width(), None);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn fixed_width(&self) -> Option<usize> {
        self.shape.width()
    }
}

impl TypeShape {
    pub(super) fn width(&self) -> Option<usize> {
        match self {
            TypeShape::Bytes | TypeShape::Str => None,
            TypeShape::Unit => Some(0),
            TypeShape::Scalar(scalar) => Some(scalar.width),
            TypeShape::Array(width) => Some(*width),
            TypeShape::Own { width, .. } => *width,
            TypeShape::Tuple(parts) => parts.iter().try_fold(0, |sum: usize, part| sum.checked_add(part.width()?)),
            TypeShape::Option(inner) => inner.width()?.checked_add(1),
        }
    }

    /// The structure of the type `name`, nested at most `depth` deeper; `None` if there is no such type.
    fn named(name: &str, depth: usize) -> Option<TypeShape> {
        if let Some(shape) = TypeShape::part_named(name) {
            return Some(shape);
        }
        if let Some(inner) = name.strip_prefix("option<").and_then(|rest| rest.strip_suffix('>')) {
            return Some(TypeShape::Option(Box::new(TypeShape::named(inner, depth.checked_sub(1)?)?)));
        }
        let parts = name.strip_prefix('(')?.strip_suffix(')')?.split(',');
        let parts =
            parts.map(|part| TypeShape::part_named(part).filter(|part| DynType { shape: part.clone() }.is_key()));
        Some(TypeShape::Tuple(parts.collect::<Option<Vec<_>>>()?)).filter(|tuple| tuple.arity_fits())
    }

    /// The structure of the type `name`, if it has no other types inside.
    fn part_named(name: &str) -> Option<TypeShape> {
        match name {
            "bytes" => return Some(TypeShape::Bytes),
            "str" => return Some(TypeShape::Str),
            "()" => return Some(TypeShape::Unit),
            _ => {}
        }
        if let Some(scalar) = SCALARS.iter().find(|scalar| scalar.name == name) {
            return Some(TypeShape::Scalar(scalar));
        }
        let digits = name.strip_prefix("[u8;")?.strip_suffix(']')?;
        let width = digits.parse::<u32>().ok().filter(|width| width.to_string() == digits)?;
        usize::try_from(width).ok().map(TypeShape::Array)
    }

    fn arity_fits(&self) -> bool {
        !matches!(self, TypeShape::Tuple(parts) if !ARITY.contains(&parts.len()))
    }
}

impl PartialEq for TypeShape {
    /// Two structures are equal if their names are.
    fn eq(&self, other: &TypeShape) -> bool {
        self.to_string() == other.to_string()
    }
}

impl Eq for TypeShape {}

impl fmt::Display for TypeShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TypeShape::Bytes => f.write_str("bytes"),
            TypeShape::Str => f.write_str("str"),
            TypeShape::Unit => f.write_str("()"),
            TypeShape::Scalar(scalar) => f.write_str(scalar.name),
            TypeShape::Array(width) => write!(f, "[u8;{width}]"),
            TypeShape::Tuple(parts) => {
                write!(f, "({})", parts.iter().map(TypeShape::to_string).collect::<Vec<_>>().join(","))
            }
            TypeShape::Option(inner) => write!(f, "option<{inner}>"),
            TypeShape::Own { name, .. } => f.write_str(name),
        }
    }
}

impl fmt::Display for DynType {
    /// The type's name in the catalog.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.shape.to_string())
    }
}

impl FromStr for DynType {
    type Err = Error;

    fn from_str(name: &str) -> Result<DynType, Error> {
        let shape = TypeShape::named(name, MAX_NESTING).ok_or_else(|| Error::Option {
            option: "type",
            value: format!("\"{name}\""),
            expected: "bytes, str, u8 to u128, i8 to i128, f32, f64, bool, (), [u8;N], a tuple of two to six of \
                       these as (str,u64), or option<...>"
                .to_owned(),
        })?;
        Ok(DynType { shape })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed_names_are_printed_unchanged() {
        for name in ["bytes", "str", "()", "u8", "i128", "f32", "bool", "[u8;0]", "[u8;16]", "(str,u64)"] {
            assert_eq!(name.parse::<DynType>().unwrap().to_string(), name);
        }
        for name in ["(u8,u8,u8,u8,u8,str)", "((),[u8;4])", "option<str>", "option<option<(bytes,bool)>>"] {
            assert_eq!(name.parse::<DynType>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn wrong_names_are_refused_with_the_name() {
        let deep = "option<".repeat(100_000) + "u8" + &">".repeat(100_000);
        for name in ["", "U8", "u7", "usize", "(u8)", "(u8,)", "(u8,(u8,u8))", "(u8,f64)", "(u8,option<u8>)"] {
            let message = name.parse::<DynType>().unwrap_err().to_string();
            assert!(message.contains(&format!("\"{name}\"")), "{message}");
        }
        for name in ["[u8;-1]", "[u8;016]", "[u8;99999999999999999999]", "option<>", "(u8,u8,u8,u8,u8,u8,u8)", &deep] {
            assert!(name.parse::<DynType>().is_err(), "{name}");
        }
    }

    #[test]
    fn numbers_that_are_too_large_are_refused_and_names_of_infinity_are_not() {
        let float = |name: &str, text: &str| name.parse::<DynType>().unwrap().encode_text(text.as_bytes());
        for (name, text) in [("f32", "1e39"), ("f32", "-1e39"), ("f64", "1e999"), ("option<f64>", "some:-1e999")] {
            let message = float(name, text).unwrap_err().to_string();
            assert!(message.contains(text) && message.contains("it must be a number from -"), "{message}");
        }
        for (text, value) in [("inf", f64::INFINITY), ("-Infinity", f64::NEG_INFINITY), ("1.7e308", 1.7e308)] {
            assert_eq!(float("f64", text).unwrap(), value.to_be_bytes(), "{text}");
        }
        assert_eq!(float("f32", "1e38").unwrap(), 1e38f32.to_be_bytes());
        assert!(float("f32", "NaN").is_ok());
    }

    #[test]
    fn only_ordered_types_are_keys() {
        for (name, key) in [("u8", true), ("(str,i64)", true), ("f64", false), ("option<u8>", false)] {
            assert_eq!(name.parse::<DynType>().unwrap().is_key(), key, "{name}");
        }
    }
}

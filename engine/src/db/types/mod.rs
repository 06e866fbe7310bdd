//! The types of keys and values, their bytes, and the definition and options of a table.
//!
//! A tree stores byte strings and compares them byte by byte. A [`Value`] type defines how values are encoded and
//! decoded. A [`Key`] type also promises that the encoded bytes have the order of the values. `docs/types.md` describes
//! the bytes of each type.

mod def;
mod dynamic;
mod escape;
mod option;
mod options;
mod prefix;
mod scalar;
mod strings;
mod text;
mod tuple;
mod value;

#[cfg(test)]
mod tests;

pub use def::TableDef;
pub use dynamic::DynType;
pub use options::{KeyLayout, Separators, TableOptions};
pub use prefix::PrefixKey;
pub(super) use value::WRONG_LENGTH;
pub use value::{Key, KeyPart, Value};

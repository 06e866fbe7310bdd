//! What programs store in tables: typed keys and values, their bytes, the definition and options of a table.
//!
//! A tree holds byte strings and orders them bytewise. A [`Value`] type says how it becomes bytes and comes back; a
//! [`Key`] type promises besides that the bytes order as the values do. The bytes of each type are in
//! `docs/types.md`. Nothing here knows of pages, tables or transactions.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation
)]

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
pub use value::{Key, KeyPart, Value};

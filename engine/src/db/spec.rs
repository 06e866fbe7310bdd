//! From a table's types and options to its layout.

use super::types::{DynType, KeyLayout, Separators, TableOptions};
use crate::base::{Error, Result};
use crate::page::{KeyListKind, RecordListKind, SeparatorRule};
use crate::tree::TreeLayout;

/// What a table to be created is like.
pub(crate) struct TableSpec<'a> {
    pub(crate) key_type: &'a str,
    pub(crate) value_type: &'a str,
    pub(crate) key_width: Option<usize>,
    pub(crate) value_width: Option<usize>,
    pub(crate) options: TableOptions,
}

/// Values up to this width are kept in arrays; beyond it a fixed-size list would leave no room for keys.
const MAX_FIXED_RECORD: usize = 64;

impl<'a> TableSpec<'a> {
    /// A spec for types known by name only.
    pub(crate) fn of_names(key_type: &'a str, value_type: &'a str, options: TableOptions) -> Result<TableSpec<'a>> {
        let keys = key_type.parse::<DynType>()?;
        if !keys.is_key() {
            let expected =
                "a type whose bytes order as its values do: an integer, str, bytes, bool, or a tuple of them";
            return Err(Error::Option { option: "key type", value: key_type.into(), expected: expected.into() });
        }
        let key_width = keys.fixed_width();
        let value_width = value_type.parse::<DynType>()?.fixed_width();
        Ok(TableSpec { key_type, value_type, key_width, value_width, options })
    }

    /// The layout: what the options say, and what suits the types where they say nothing, in a database that is or is
    /// not in memory.
    pub(crate) fn layout(&self, in_memory: bool) -> Result<TreeLayout> {
        let leaf = match (self.options.keys, self.key_width) {
            (Some(KeyLayout::Plain), _) => KeyListKind::Plain,
            (Some(KeyLayout::Fixed), Some(width)) if width > 0 => KeyListKind::Fixed,
            (Some(KeyLayout::Fixed), _) => {
                return Err(Error::Option {
                    option: "keys",
                    value: "fixed".into(),
                    expected: format!("plain or head for keys of type {}, which vary in length", self.key_type),
                });
            }
            (Some(KeyLayout::Head) | None, _) => KeyListKind::Head,
            (Some(KeyLayout::Db2), _) => KeyListKind::Db2,
            (Some(KeyLayout::WiredTiger), _) => KeyListKind::WiredTiger,
            (Some(KeyLayout::MyIsam), _) => KeyListKind::MyIsam,
            (Some(KeyLayout::Pkb), _) if in_memory => KeyListKind::Pkb,
            (Some(KeyLayout::Pkb), _) => KeyListKind::PkbLong,
        };
        // Inner pages are few and searched by all: head is the quickest there, and compresses them well enough.
        let inner = if leaf == KeyListKind::Plain { KeyListKind::Plain } else { KeyListKind::Head };
        let records = match self.value_width {
            Some(0) => RecordListKind::None,
            Some(width) if width <= MAX_FIXED_RECORD => RecordListKind::Fixed,
            _ => RecordListKind::Variable,
        };
        let separators = match self.options.separators {
            Some(Separators::Full) => SeparatorRule::Full,
            Some(Separators::Tail) | None => SeparatorRule::TAIL,
        };
        Ok(TreeLayout { leaf, inner, records, separators })
    }
}

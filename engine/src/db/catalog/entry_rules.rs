//! Checks whether a table accepts the given bytes as a key or a value. Bytes that fail must never reach a page, where a
//! fixed-length list could not store them. No table is read or written here.

use super::TableEntry;
use crate::base::limits::MAX_KEY;
use crate::base::{Error, Result};
use crate::db::types::{DynType, WRONG_LENGTH};
use crate::page::RecordListKind;

/// The rules for the keys and values of a table.
pub(crate) struct EntryRules {
    table: String,
    key_type: String,
    value_type: String,
    /// The length of all keys, if the key list or their type requires one length.
    key_width: Option<usize>,
    /// The length of all values, if the record list or their type requires one length.
    value_width: Option<usize>,
    /// The record list has no pointers to large values.
    is_always_inline: bool,
    /// The types with which the bytes are checked, if the caller passes bytes.
    types: Option<(DynType, DynType)>,
}

impl EntryRules {
    /// Rules for keys and values that their Rust types have encoded: only the lengths are checked.
    pub(crate) fn typed(table: &str, entry: &TableEntry) -> EntryRules {
        EntryRules::new(table, entry, None)
    }

    /// Rules for keys and values that a caller passes as bytes. For types that a program has defined, all bytes of the
    /// right length are valid, because only that program knows its values.
    pub(crate) fn untyped(table: &str, entry: &TableEntry) -> EntryRules {
        let keys = DynType::named(&entry.key_type, entry.key_width);
        let values = DynType::named(&entry.value_type, entry.value_width);
        EntryRules::new(table, entry, Some((keys, values)))
    }

    fn new(table: &str, entry: &TableEntry, types: Option<(DynType, DynType)>) -> EntryRules {
        let layout = &entry.tree.layout;
        EntryRules {
            table: table.to_owned(),
            key_type: entry.key_type.clone(),
            value_type: entry.value_type.clone(),
            key_width: layout.leaf.key_len().or(entry.key_width),
            value_width: match layout.records {
                RecordListKind::None => Some(0),
                RecordListKind::Fixed | RecordListKind::Variable => entry.value_width,
            },
            is_always_inline: layout.records != RecordListKind::Variable,
            types,
        }
    }

    /// True for the rules of [`EntryRules::typed`].
    pub(crate) fn is_typed(&self) -> bool {
        self.types.is_none()
    }

    /// The length of all values, if the record list has no pointers to large values.
    pub(crate) fn inline_width(&self) -> Option<usize> {
        self.value_width.filter(|_| self.is_always_inline)
    }

    /// Fails if `key` cannot be a key of the table.
    #[inline(always)]
    pub(crate) fn check_key(&self, key: &[u8]) -> Result<()> {
        let has_length = self.key_width.is_none_or(|width| width == key.len());
        if self.types.is_none() && key.len() <= MAX_KEY && has_length { Ok(()) } else { self.check_any_key(key) }
    }

    fn check_any_key(&self, key: &[u8]) -> Result<()> {
        if key.len() > MAX_KEY {
            return Err(Error::KeyTooLong { len: key.len(), max: MAX_KEY });
        }
        // The check of the type comes first, because its error names the table.
        if let Some((of, _)) = &self.types {
            of.check(key).map_err(|what| self.refused("keys", &self.key_type, what))?;
        }
        if let Some(expected) = self.key_width.filter(|width| *width != key.len()) {
            return Err(Error::KeyLength { len: key.len(), expected });
        }
        Ok(())
    }

    /// Fails if `value` cannot be a value of the table.
    #[inline(always)]
    pub(crate) fn check_value(&self, value: &[u8]) -> Result<()> {
        let is_valid = self.types.is_none() && self.value_width.is_none_or(|width| width == value.len());
        if is_valid { Ok(()) } else { self.check_any_value(value) }
    }

    fn check_any_value(&self, value: &[u8]) -> Result<()> {
        self.check_value_len(value.len() as u64)?;
        match &self.types {
            Some((_, of)) => of.check(value).map_err(|what| self.refused("values", &self.value_type, what)),
            None => Ok(()),
        }
    }

    /// Fails if no value of the table has this length.
    #[inline]
    pub(crate) fn check_value_len(&self, len: u64) -> Result<()> {
        match self.value_width {
            Some(width) if width as u64 != len => Err(self.refused("values", &self.value_type, WRONG_LENGTH)),
            _ => Ok(()),
        }
    }

    fn refused(&self, part: &'static str, type_name: &str, what: &'static str) -> Error {
        Error::NotEncoded { table: self.table.clone(), part, type_name: type_name.to_owned(), what }
    }
}

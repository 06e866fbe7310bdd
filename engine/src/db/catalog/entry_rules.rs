//! Checks whether a table accepts the given bytes as a key or a value. Bytes that fail must never reach a page, where a
//! fixed-length list could not store them. No table is read or written here.

use super::TableEntry;
use crate::base::limits::MAX_KEY;
use crate::base::{Error, Result};
use crate::db::types::{DynType, WRONG_LENGTH};
use crate::page::RecordListKind;

/// What the keys and values of a table must be like.
pub(crate) struct EntryRules {
    table: String,
    key_type: String,
    value_type: String,
    /// The one length of all keys, where the key list has but one.
    key_width: Option<usize>,
    /// The same of values and the record list.
    value_width: Option<usize>,
    /// To check the bytes themselves with, where they come from somebody who may not know the types.
    types: Option<(DynType, DynType)>,
}

impl EntryRules {
    /// For keys and values that are made by their types.
    pub(crate) fn typed(table: &str, entry: &TableEntry) -> EntryRules {
        EntryRules::new(table, entry, None)
    }

    /// For keys and values that come as bytes, whatever these are. Of a program's own types any bytes of the right length
    /// are taken: only that program knows better.
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
            key_width: if layout.leaf.has_one_length() { entry.key_width } else { layout.leaf.key_len() },
            value_width: match layout.records {
                RecordListKind::None => Some(0),
                RecordListKind::Fixed => entry.value_width,
                RecordListKind::Variable => None,
            },
            types,
        }
    }

    /// The one length that all values have, if there is one.
    pub(crate) fn value_width(&self) -> Option<usize> {
        self.value_width
    }

    /// Fails for what cannot be a key.
    #[inline(always)]
    pub(crate) fn check_key(&self, key: &[u8]) -> Result<()> {
        let may_be = self.types.is_none() && key.len() <= MAX_KEY;
        if may_be && self.key_width.is_none_or(|width| width == key.len()) { Ok(()) } else { self.look_at_key(key) }
    }

    fn look_at_key(&self, key: &[u8]) -> Result<()> {
        if key.len() > MAX_KEY {
            return Err(Error::KeyTooLong { len: key.len(), max: MAX_KEY });
        }
        // What is no encoding of the type is told before what the list of keys cannot hold: it names the table.
        if let Some((of, _)) = &self.types {
            of.check(key).map_err(|what| self.refused("keys", &self.key_type, what))?;
        }
        if let Some(expected) = self.key_width.filter(|width| *width != key.len()) {
            return Err(Error::KeyLength { len: key.len(), expected });
        }
        Ok(())
    }

    /// Fails for what cannot be a value.
    #[inline(always)]
    pub(crate) fn check_value(&self, value: &[u8]) -> Result<()> {
        let may_be = self.types.is_none() && self.value_width.is_none_or(|width| width == value.len());
        if may_be { Ok(()) } else { self.look_at_value(value) }
    }

    fn look_at_value(&self, value: &[u8]) -> Result<()> {
        self.check_value_len(value.len() as u64)?;
        match &self.types {
            Some((_, of)) => of.check(value).map_err(|what| self.refused("values", &self.value_type, what)),
            None => Ok(()),
        }
    }

    /// Fails for a length that no value has.
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

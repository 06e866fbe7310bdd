//! The catalog: table 0, which lists all tables. It contains names, ids, types and layouts, and no user data.
//!
//! The keys, and the record of each:
//!
//! * `00`: the next table id, u32.
//! * `01`, root page id u32 big-endian: a detached subtree that is not yet freed. Table id u32, u8 (1: keep the runs of
//!   its large values).
//! * `02`, name of a table, in this order: table id u32, root page u32, entries u64, layout 10 bytes; key type and
//!   value type (varint length, UTF-8); width of all keys and width of all values (varint; 0: it varies, otherwise one
//!   more); compression, 4 bytes (method: 0 none, 1 LZ4, 2 Zstandard, 3 zlib; level; target: 0 fit, otherwise the
//!   binary logarithm of its bytes; bits: 1 split, 2 dictionary); and for a table that assigns its keys the next key,
//!   u64.
//! * `03`, table id u32, dictionary id u32, copy u8, big-endian: a large record, the dictionary and its CRC-32C.

pub(super) mod dictionary;
pub(super) mod entry_rules;
pub(super) mod info;
pub(super) mod spec;

use crate::base::bytes::take;
use crate::base::limits::{MAX_KEY, MAX_PAGE_SIZE};
use crate::base::{Error, PageId, Result, TableId, varint};
use crate::page::{KeyListKind, RecordListKind, SeparatorRule};
use crate::store::PagePolicy;
use crate::tree::{Tree, TreeLayout};
use crate::txn::{CATALOG_ROOT, LAYOUT_BYTES, layout_from_bytes, layout_to_bytes};

/// Catalog key of the next table id.
pub(crate) const NEXT_ID: &[u8] = &[0];
/// First byte of the catalog keys of tables.
const TABLE_PREFIX: u8 = 2;

/// The record of a table in the catalog.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TableEntry {
    pub(crate) tree: Tree,
    pub(crate) entries: u64,
    pub(crate) key_type: String,
    pub(crate) value_type: String,
    /// The length of every encoded key; `None` if it varies. The lengths of types that a program has defined are only
    /// stored here.
    pub(crate) key_width: Option<usize>,
    /// The length of every encoded value; `None` if it varies.
    pub(crate) value_width: Option<usize>,
    /// How its pages are compressed in the file.
    pub(crate) policy: PagePolicy,
    /// The next key that the table assigns, if it assigns keys. It is above every key that the table ever had.
    pub(crate) next_key: Option<u64>,
}

/// The tree of the catalog.
pub(crate) fn catalog_tree() -> Tree {
    Tree {
        root: CATALOG_ROOT,
        table: TableId::CATALOG,
        layout: TreeLayout {
            leaf: KeyListKind::USUAL,
            inner: KeyListKind::USUAL,
            records: RecordListKind::Variable,
            separators: SeparatorRule::TAIL,
        },
    }
}

/// The catalog key of a table.
pub(crate) fn table_key(name: &str) -> Vec<u8> {
    [&[TABLE_PREFIX], name.as_bytes()].concat()
}

/// The name in a catalog key of a table; `None` for any other catalog key.
pub(crate) fn table_name(key: &[u8]) -> Option<Result<String>> {
    let (prefix, name) = key.split_first()?;
    let name = || String::from_utf8(name.to_vec()).map_err(|_| corrupt("a table name that is not UTF-8"));
    (*prefix == TABLE_PREFIX).then(name)
}

/// The range of the catalog keys of tables.
pub(crate) fn all_tables() -> (Vec<u8>, Vec<u8>) {
    (vec![TABLE_PREFIX], vec![TABLE_PREFIX + 1])
}

impl TableEntry {
    /// The byte offset of the number of entries in a record.
    pub(crate) const ENTRIES_AT: u16 = 8;

    /// The record's bytes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(48);
        out.extend_from_slice(&self.tree.table.0.to_le_bytes());
        out.extend_from_slice(&self.tree.root.0.to_le_bytes());
        out.extend_from_slice(&self.entries.to_le_bytes());
        out.extend_from_slice(&layout_to_bytes(&self.tree.layout));
        for name in [&self.key_type, &self.value_type] {
            varint::push(&mut out, name.len() as u64);
            out.extend_from_slice(name.as_bytes());
        }
        for width in [self.key_width, self.value_width] {
            varint::push(&mut out, width.map_or(0, |width| (width as u64).saturating_add(1)));
        }
        out.extend_from_slice(&self.policy.to_bytes());
        out.extend(self.next_key.iter().flat_map(|next| next.to_le_bytes()));
        out
    }

    /// Records that a key exists, so that it is not assigned again. Returns true if this changes the record of the
    /// table.
    pub(crate) fn note_key(&mut self, key: &[u8]) -> bool {
        let Some(next) = &mut self.next_key else { return false };
        let key = key.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        // 0 means that the last key is assigned.
        let is_new = *next != 0 && key >= *next;
        if is_new {
            *next = key.wrapping_add(1);
        }
        is_new
    }

    /// Makes sure that no key below `next` is assigned or, if `next` is 0, no key at all.
    pub(crate) fn skip_keys(&mut self, next: u64) {
        if let Some(key) = self.next_key.as_mut().filter(|key| **key != 0) {
            *key = if next == 0 { 0 } else { next.max(*key) };
        }
    }

    /// Reads a record.
    pub(crate) fn decode(record: &[u8]) -> Result<TableEntry> {
        TableEntry::try_decode(record).ok_or_else(|| corrupt("the record of a table is damaged"))
    }

    fn try_decode(mut input: &[u8]) -> Option<TableEntry> {
        let input = &mut input;
        let table = TableId(u32::from_le_bytes(take(input, 4)?.try_into().ok()?));
        let root = PageId(u32::from_le_bytes(take(input, 4)?.try_into().ok()?));
        let entries = u64::from_le_bytes(take(input, 8)?.try_into().ok()?);
        let layout = layout_from_bytes(take(input, LAYOUT_BYTES)?)?;
        let mut name = || {
            let len = usize::try_from(varint::take(input)?).ok()?;
            String::from_utf8(take(input, len)?.to_vec()).ok()
        };
        let (key_type, value_type) = (name()?, name()?);
        let mut width = || match varint::take(input)?.checked_sub(1) {
            Some(width) => usize::try_from(width).ok().map(Some),
            None => Some(None),
        };
        let (key_width, value_width) = (width()?, width()?);
        // Lists of entries of one length need that length.
        let is_wrong = |width: Option<usize>, max: usize| width.is_none_or(|width| width > max);
        let keys_are_wrong = layout.leaf.has_one_length() && is_wrong(key_width, MAX_KEY);
        if keys_are_wrong || layout.records == RecordListKind::Fixed && is_wrong(value_width, MAX_PAGE_SIZE) {
            return None;
        }
        let policy = PagePolicy::of_bytes(take(input, PagePolicy::BYTES)?.try_into().ok()?)?;
        let next_key = match input.len() {
            0 => None,
            _ => Some(u64::from_le_bytes(take(input, 8)?.try_into().ok()?)),
        };
        let tree = Tree { root, table, layout };
        Some(TableEntry { tree, entries, key_type, value_type, key_width, value_width, policy, next_key })
    }
}

/// An error about the catalog.
pub(crate) fn corrupt(why: &str) -> Error {
    Error::CorruptMeta { what: "the catalog", why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Compression, Overflow, Target};
    use proptest::prelude::*;

    fn entry() -> TableEntry {
        let layout = TreeLayout { records: RecordListKind::Fixed, ..catalog_tree().layout };
        TableEntry {
            tree: Tree { root: PageId(77), table: TableId(3), layout },
            entries: 1 << 40,
            key_type: "str".into(),
            value_type: "u64".into(),
            key_width: None,
            value_width: Some(8),
            policy: PagePolicy {
                compression: Compression::Zstd(9),
                target: Target::Bytes(2048),
                overflow: Overflow::Split,
                dictionary: true,
            },
            next_key: None,
        }
    }

    #[test]
    fn a_record_is_decoded_as_it_was_encoded() {
        assert_eq!(TableEntry::decode(&entry().encode()).unwrap(), entry());
        let at = usize::from(TableEntry::ENTRIES_AT);
        assert_eq!(entry().encode()[at..at + 8], entry().entries.to_le_bytes());
        let counting = TableEntry { next_key: Some(1 << 60), ..entry() };
        assert_eq!(TableEntry::decode(&counting.encode()).unwrap(), counting);
    }

    proptest! {
        #[test]
        fn damaged_records_give_an_error_or_an_entry(cut in 0usize..48, at in 0usize..48, bit in 0u8..8) {
            let mut bytes = entry().encode();
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << bit;
            }
            bytes.truncate(cut);
            let _ = TableEntry::decode(&bytes);
        }
    }
}

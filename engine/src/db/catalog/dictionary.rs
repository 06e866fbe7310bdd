//! The catalog entries of dictionaries: one for each copy.

use super::{catalog_tree, corrupt};
use crate::base::bytes::get_u32;
use crate::base::{Lsn, PageId, Result, TableId};
use crate::store::{DICTIONARY_COPIES, DictionaryId, DictionaryPlace};
use crate::txn::{Cursor, DICTIONARY_PREFIX, Engine, ReadView, large};
use std::collections::BTreeMap;
use std::ops::Bound;

/// The catalog key of a copy of a dictionary.
pub(crate) fn dictionary_key(table: TableId, id: DictionaryId, copy: u8) -> Vec<u8> {
    let mut key = vec![DICTIONARY_PREFIX];
    key.extend(table.0.to_be_bytes());
    key.extend(id.0.to_be_bytes());
    key.push(copy);
    key
}

/// A dictionary in the catalog.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DictionaryEntry {
    pub(crate) place: DictionaryPlace,
    /// Bytes of one copy.
    pub(crate) len: u64,
}

/// The dictionaries in the catalog of a snapshot, in the order of their ids.
pub(crate) fn dictionaries(engine: &Engine, snapshot: Lsn) -> Result<Vec<DictionaryEntry>> {
    let (lower, upper) = (Bound::Included(vec![DICTIONARY_PREFIX]), Bound::Excluded(vec![DICTIONARY_PREFIX + 1]));
    let mut cursor = Cursor::new(engine, catalog_tree(), ReadView::Snapshot(snapshot), lower, upper);
    let mut found: BTreeMap<DictionaryId, DictionaryEntry> = BTreeMap::new();
    while let Some((key, record)) = cursor.next()? {
        let wrong = || corrupt("the entry of a dictionary is damaged");
        let fields: [u8; 9] = key.get(1..).and_then(|fields| fields.try_into().ok()).ok_or_else(wrong)?;
        let [table, id] = [0, 4].map(|at| get_u32(&fields, at).swap_bytes());
        let (table, id) = (TableId(table), DictionaryId(id));
        let place = DictionaryPlace { id, table, firsts: [PageId::NONE; DICTIONARY_COPIES] };
        let entry = found.entry(id).or_insert(DictionaryEntry { place, len: large::len(record.bytes)? });
        let [.., copy] = fields;
        *entry.place.firsts.get_mut(usize::from(copy)).ok_or_else(wrong)? = large::first(record.bytes)?;
    }
    Ok(found.into_values().collect())
}

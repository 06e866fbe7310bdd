//! Gives numbers to tables and dictionaries, and adds and removes dictionaries. `maintenance::dictionaries` decides
//! when that is allowed.

use super::write::WriteTransaction;
use crate::base::{PageId, Result, TableId};
use crate::db::catalog::dictionary::dictionary_key;
use crate::db::catalog::{self, catalog_tree};
use crate::store::{DICTIONARY_COPIES, DictionaryId, DictionaryPlace, sealed_dictionary};
use crate::txn::large;

impl WriteTransaction {
    /// A number that no table and no dictionary ever had.
    pub(super) fn take_number(&self) -> Result<u32> {
        let mut next = self.next_table.lock();
        let id = match *next {
            Some(id) => id,
            None => self.committed_next_table()?,
        };
        *next = Some(id + 1);
        Ok(id)
    }

    fn committed_next_table(&self) -> Result<u32> {
        self.shared.engine.get_current(&catalog_tree(), catalog::NEXT_ID, |record| {
            let bytes = record.and_then(|record| record.bytes.try_into().ok());
            // Table 0 is the catalog.
            bytes.map_or(1, u32::from_le_bytes)
        })
    }

    /// Adds a dictionary of a table. Returns its bytes in the file, too.
    pub(crate) fn add_dictionary(&self, table: TableId, trained: &[u8]) -> Result<(DictionaryPlace, Vec<u8>)> {
        let id = DictionaryId(self.take_number()?);
        let sealed = sealed_dictionary(id, trained);
        let mut place = DictionaryPlace { id, table, firsts: [PageId::NONE; DICTIONARY_COPIES] };
        for (copy, first) in (0..).zip(&mut place.firsts) {
            let (engine, catalog) = (&self.shared.engine, TableId::CATALOG);
            let record = large::write(engine, &self.adopted, catalog, sealed.len() as u64, &mut sealed.as_slice())?;
            *first = large::first(&record.bytes)?;
            self.dictionaries.lock().push((dictionary_key(table, id, copy), Some(record)));
        }
        Ok((place, sealed))
    }

    /// Removes a dictionary. No image may name it, neither now nor in the last checkpoint.
    pub(crate) fn remove_dictionary(&self, place: &DictionaryPlace) {
        let copies = (0..).take(DICTIONARY_COPIES).map(|copy| (dictionary_key(place.table, place.id, copy), None));
        self.dictionaries.lock().extend(copies);
    }
}

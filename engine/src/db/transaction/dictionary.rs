//! Gives numbers to tables and dictionaries, and adds and removes dictionaries. `maintenance::dictionaries` decides
//! when that is allowed.

use super::write::WriteTransaction;
use crate::base::{Error, PageId, Result, TableId};
use crate::db::catalog::dictionary::dictionary_key;
use crate::db::catalog::{self, catalog_tree};
use crate::store::{DICTIONARY_COPIES, DictionaryId, DictionaryPlace, sealed_dictionary};
use crate::txn::large;

impl WriteTransaction {
    /// A number that no table and no dictionary ever had.
    pub(crate) fn take_number(&self) -> Result<u32> {
        let mut next = self.next_table.lock();
        let id = match *next {
            Some(id) => id,
            None => self.committed_next_table()?,
        };
        *next = Some(id.checked_add(1).ok_or(Error::TooManyTables)?);
        Ok(id)
    }

    fn committed_next_table(&self) -> Result<u32> {
        let next = self.shared.engine.get_current(&catalog_tree(), catalog::NEXT_ID, |record| {
            // Table 0 is the catalog.
            let Some(record) = record else { return Some(1) };
            record.bytes.try_into().ok().map(u32::from_le_bytes).filter(|next| *next > 0)
        })?;
        next.ok_or_else(|| catalog::corrupt("the record of the next table number is damaged"))
    }

    /// Adds a dictionary of a table. No commit, not even one that has failed, may have had its id. Returns its bytes in
    /// the file, too.
    pub(crate) fn add_dictionary(
        &self,
        id: DictionaryId,
        table: TableId,
        trained: &[u8],
    ) -> Result<(DictionaryPlace, Vec<u8>)> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::catalog::NEXT_ID;
    use crate::page::Record;
    use crate::txn::OwnedRecord;
    use crate::{Database, TableDef};

    fn create(db: &Database, name: &str) -> Result<()> {
        let tx = db.begin_write()?;
        tx.open_table(TableDef::<u32, u32>::new(name))?.put(1, 1)?;
        tx.commit()
    }

    /// A database whose catalog has this record of the next number.
    fn numbering_from(next: &[u8]) -> Result<Database> {
        let db = Database::in_memory()?;
        let tx = db.begin_write()?;
        tx.dictionaries.lock().push((NEXT_ID.to_vec(), Some(OwnedRecord::from(Record::inline(next)))));
        tx.commit()?;
        Ok(db)
    }

    #[test]
    fn the_numbers_of_tables_end_and_do_not_begin_again() -> Result<()> {
        let db = numbering_from(&(u32::MAX - 1).to_le_bytes())?;
        create(&db, "last")?;
        for name in ["more", "others"] {
            assert!(matches!(create(&db, name), Err(Error::TooManyTables)));
        }
        create(&db, "last")?;
        assert_eq!(db.begin_read()?.tables()?.len(), 1);
        Ok(())
    }

    #[test]
    fn a_damaged_record_of_the_next_number_is_refused() -> Result<()> {
        for damaged in [&[0; 4][..], &[7; 3], &[7; 5]] {
            let refused = create(&numbering_from(damaged)?, "t");
            assert!(matches!(refused, Err(Error::CorruptMeta { .. })), "{damaged:?}");
        }
        Ok(())
    }
}

//! Read transactions. Each has a consistent snapshot. It never waits for a writer, and no writer waits for it.

use crate::base::{Error, Lsn, Result, TableId};
use crate::db::catalog::info::TableInfo;
use crate::db::catalog::{self, TableEntry, catalog_tree};
use crate::db::shared::Handle;
use crate::db::table::read_only::ReadOnlyTable;
use crate::db::table::read_only_untyped::ReadOnlyUntypedTable;
use crate::db::types::{Key, TableDef, Value};
use crate::tree::Tree;
use crate::txn::{Cursor, Engine, ReadView};
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;

/// An open snapshot. It is closed when the last reference is dropped.
pub(crate) struct Snapshot {
    pub(crate) shared: Arc<Handle>,
    pub(crate) lsn: Lsn,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // In a child process that `fork` has made, it could wait for a lock that a thread of the parent held at the
        // fork. The child removes no versions in any case.
        if self.shared.check_process().is_ok() {
            self.shared.close_snapshot(self.lsn);
        }
    }
}

/// A consistent snapshot of the whole database. Later commits do not change it, and it delays no commit. Old versions
/// that it needs are kept until it is dropped.
///
/// ```
/// # fn main() -> duramen::Result<()> {
/// use duramen::{Database, TableDef};
/// const STOCK: TableDef<&str, u32> = TableDef::new("stock");
/// let db = Database::in_memory()?;
/// let tx = db.begin_write()?;
/// tx.open_table(STOCK)?.insert("pears", 3)?;
/// tx.commit()?;
///
/// let before = db.begin_read()?;
/// let tx = db.begin_write()?;
/// tx.open_table(STOCK)?.insert("pears", 0)?;
/// tx.commit()?;
/// assert_eq!(before.open_table(STOCK)?.get("pears")?.unwrap().value(), 3);
/// assert_eq!(db.begin_read()?.open_table(STOCK)?.get("pears")?.unwrap().value(), 0);
/// # Ok(())
/// # }
/// ```
pub struct ReadTransaction {
    pub(in crate::db) snapshot: Arc<Snapshot>,
}

impl ReadTransaction {
    pub(crate) fn begin(shared: Arc<Handle>) -> ReadTransaction {
        let lsn = shared.engine.open_snapshot();
        ReadTransaction { snapshot: Arc::new(Snapshot { shared, lsn }) }
    }

    /// Opens a table.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// # use duramen::{Error, TableDef};
    /// let tx = db.begin_read()?;
    /// assert_eq!(tx.open_table(TREES)?.len(), 3);
    /// let as_text: TableDef<&str, &str> = TableDef::new("trees");
    /// assert!(matches!(tx.open_table(as_text), Err(Error::TableType { part: "values", .. })));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoTable`], and [`Error::TableType`] if the table has other types.
    pub fn open_table<K: Key, V: Value>(&self, table: TableDef<K, V>) -> Result<ReadOnlyTable<K, V>> {
        let untyped = self.open_untyped(table.name())?;
        check_types(table.name(), &untyped.entry, [K::type_name(), V::type_name()])?;
        Ok(ReadOnlyTable { untyped, of: PhantomData })
    }

    /// Opens a table of any types. Keys and values are encoded bytes.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_untyped("trees")?;
    /// assert_eq!(trees.info().value_type, "u64");
    /// assert_eq!(trees.get(b"oak")?, Some(700u64.to_be_bytes().to_vec()));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoTable`].
    pub fn open_untyped(&self, name: &str) -> Result<ReadOnlyUntypedTable> {
        let entry = self.entry(name)?.ok_or_else(|| Error::NoTable { table: name.to_owned() })?;
        Ok(ReadOnlyUntypedTable { snapshot: self.snapshot.clone(), name: name.into(), entry })
    }

    /// All tables, in the order of their names.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// for table in db.begin_read()?.tables()? {
    ///     println!("{}: {} entries of {} and {}", table.name, table.entries, table.key_type, table.value_type);
    ///     assert_eq!((table.name.as_str(), table.entries), ("trees", 3));
    /// }
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading the catalog.
    pub fn tables(&self) -> Result<Vec<TableInfo>> {
        tables(&self.snapshot.shared.engine, self.snapshot.lsn)
    }

    fn entry(&self, name: &str) -> Result<Option<TableEntry>> {
        let key = catalog::table_key(name);
        let record = self.snapshot.shared.engine.get_at(&catalog_tree(), &key, self.snapshot.lsn, |record| {
            record.map(|record| TableEntry::decode(record.bytes))
        })?;
        record.transpose()
    }
}

/// All tables in a snapshot, in the order of their names.
pub(in crate::db) fn tables(engine: &Engine, snapshot: Lsn) -> Result<Vec<TableInfo>> {
    let mut tables = Vec::new();
    each_table(engine, snapshot, |name, entry| tables.push(TableInfo::new(name, &entry)))?;
    Ok(tables)
}

/// Calls `visit` with the name and the catalog entry of each table in a snapshot, in the order of their names.
pub(in crate::db) fn each_table(
    engine: &Engine,
    snapshot: Lsn,
    mut visit: impl FnMut(String, TableEntry),
) -> Result<()> {
    let (lower, upper) = catalog::all_tables();
    let (lower, upper) = (Bound::Included(lower), Bound::Excluded(upper));
    let mut cursor = Cursor::new(engine, catalog_tree(), ReadView::Snapshot(snapshot), lower, upper);
    while let Some((key, record)) = cursor.next()? {
        if let Some(name) = catalog::table_name(key) {
            visit(name?, TableEntry::decode(record.bytes)?);
        }
    }
    Ok(())
}

/// The tree of a table in the newest catalog; `None` if there is no such table.
pub(in crate::db) fn tree_of(engine: &Engine, table: TableId) -> Result<Option<Tree>> {
    let mut found = None;
    each_table(engine, Lsn::MAX, |_, entry| {
        found = found.or(Some(entry.tree).filter(|tree| tree.table == table));
    })?;
    Ok(found)
}

/// Fails if a table does not have keys and values of the types `asked`.
pub(crate) fn check_types(name: &str, entry: &TableEntry, [keys, values]: [String; 2]) -> Result<()> {
    for (part, found, asked) in [("keys", &entry.key_type, keys), ("values", &entry.value_type, values)] {
        if *found != asked {
            return Err(Error::TableType { table: name.to_owned(), part, found: found.clone(), asked });
        }
    }
    Ok(())
}

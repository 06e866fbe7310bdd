//! Read transactions. Each has a consistent snapshot. It never waits for a writer, and no writer waits for it.

use crate::base::{Error, Lsn, Result, TableId};
use crate::db::catalog::info::TableInfo;
use crate::db::catalog::{self, TableEntry, catalog_tree};
use crate::db::shared::Handle;
use crate::db::table::bounds::{self, Bounds};
use crate::db::table::bytes::Bytes;
use crate::db::table::guard::{Guard, decode};
use crate::db::table::keys::Keys;
use crate::db::table::range::{Range, UntypedRange};
use crate::db::table::stream::ValueStream;
use crate::db::types::{Key, PrefixKey, TableDef, Value};
use crate::tree::Tree;
use crate::txn::{Cursor, Engine, KeyRange, Latched, Part, View};
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// An open snapshot. It is closed when the last reference is dropped.
pub(crate) struct Snapshot {
    pub(crate) shared: Arc<Handle>,
    pub(crate) lsn: Lsn,
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        self.shared.close_snapshot(self.lsn);
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
        check_types::<K, V>(table.name(), &untyped.entry)?;
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
    let mut cursor = Cursor::new(engine, catalog_tree(), View::At(snapshot), lower, upper);
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

/// Fails if a table does not have keys of type `K` and values of type `V`.
pub(crate) fn check_types<K: Key, V: Value>(name: &str, entry: &TableEntry) -> Result<()> {
    for (part, found, asked) in
        [("keys", &entry.key_type, K::type_name()), ("values", &entry.value_type, V::type_name())]
    {
        if *found != asked {
            return Err(Error::TableType { table: name.to_owned(), part, found: found.clone(), asked });
        }
    }
    Ok(())
}

/// A table in a snapshot, without its types.
///
/// ```
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// # let db = duramen::Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
/// # tx.commit()?;
/// let trees = db.begin_read()?.open_untyped("trees")?;
/// assert_eq!((trees.name(), trees.len(), trees.is_empty()), ("trees", 3, false));
/// assert_eq!((trees.info().key_type.as_str(), trees.info().value_type.as_str()), ("str", "u64"));
/// assert_eq!(trees.get(b"oak")?, Some(700u64.to_be_bytes().to_vec()));
/// assert_eq!(trees.get_with(b"oak", |bytes| bytes.len())?, Some(8));
/// assert_eq!(trees.range(b"m".as_slice()..).count(), 2);
/// assert_eq!(trees.prefix(b"ye").count(), 1);
/// # Ok::<(), duramen::Error>(())
/// ```
pub struct ReadOnlyUntypedTable {
    snapshot: Arc<Snapshot>,
    name: Arc<str>,
    pub(in crate::db) entry: TableEntry,
}

impl ReadOnlyUntypedTable {
    /// The value of a key.
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Calls `f` with the value of a key, without copying it. `f` runs while the page is latched. It must be short, and
    /// must neither read nor write the database: that can deadlock.
    ///
    /// # Errors
    /// An error of reading a page.
    #[inline]
    pub fn get_with<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let engine = &self.snapshot.shared.engine;
        engine.get_value(&self.entry.tree, key, self.snapshot.lsn, f)
    }

    /// A value as a stream, which reads one page at a time, for values too large for memory. `None` if there is no such
    /// key.
    ///
    /// ```
    /// # use duramen::{Database, TableDef};
    /// # const SCANS: TableDef<&str, &[u8]> = TableDef::new("scans");
    /// # let db = Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # tx.open_table(SCANS)?.put("oak", [7; 100_000].as_slice())?;
    /// # tx.commit()?;
    /// use std::io::Read;
    ///
    /// let scans = db.begin_read()?.open_untyped("scans")?;
    /// let mut scan = scans.get_stream(b"oak")?.ok_or("no such scan")?;
    /// let mut head = [0; 16];
    /// scan.read_exact(&mut head)?; // the rest is never read
    /// assert_eq!(head, [7; 16]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn get_stream(&self, key: &[u8]) -> Result<Option<ValueStream<'_>>> {
        let engine = &self.snapshot.shared.engine;
        let record = engine.get_at(&self.entry.tree, key, self.snapshot.lsn, |record| {
            record.map(|record| (record.bytes.to_vec(), record.large))
        })?;
        record.map(|(bytes, large)| ValueStream::open(engine, bytes, large)).transpose()
    }

    /// The entries of a key range.
    pub fn range<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> UntypedRange<'_> {
        self.cursor(bounds::borrowed(&range))
    }

    fn cursor(&self, (lower, upper): Bounds) -> UntypedRange<'_> {
        let engine = &self.snapshot.shared.engine;
        let view = View::At(self.snapshot.lsn);
        UntypedRange::new(engine, Cursor::new(engine, self.entry.tree, view, lower, upper))
    }

    /// The entries whose keys begin with `prefix`.
    pub fn prefix(&self, prefix: &[u8]) -> UntypedRange<'_> {
        self.cursor(bounds::prefix(prefix))
    }

    /// The number of entries, from the catalog. It reads no page.
    pub fn len(&self) -> u64 {
        self.entry.entries
    }

    /// Counts the entries of a range. It reads every leaf in the range but decodes no key, so a damaged page is an
    /// error, as in a scan.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_untyped("trees")?;
    /// assert_eq!((trees.count(..)?, trees.count(b"f".as_slice()..)?), (3, 2));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page. Large values are not read.
    pub fn count<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> Result<u64> {
        let (lower, upper) = bounds::borrowed(&range);
        let (engine, tree, snapshot) = self.source();
        let mut count = 0;
        engine.leaves(tree, snapshot, &KeyRange::of(lower, upper), Latched::Yes, &mut |part| {
            count += match part {
                Part::Leaf(_, slots) => slots.len() as u64,
                Part::Entry(..) => 1,
            };
            Ok(())
        })?;
        Ok(count)
    }

    /// True if the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The pages of the table, for callers that read pages instead of entries.
    pub(crate) fn source(&self) -> (&Engine, &Tree, Lsn) {
        (&self.snapshot.shared.engine, &self.entry.tree, self.snapshot.lsn)
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The types and the layout of the table.
    pub fn info(&self) -> TableInfo {
        TableInfo::new(self.name.to_string(), &self.entry)
    }
}

/// A table in a snapshot.
///
/// ```
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// # let db = duramen::Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
/// # tx.commit()?;
/// let trees = db.begin_read()?.open_table(TREES)?; // the table keeps the snapshot open
/// assert_eq!((trees.len(), trees.is_empty()), (3, false));
/// for entry in trees.iter() {
///     let (name, years) = entry?;
///     assert!(years.value() >= 400, "{} is {} years old", name.value(), years.value());
/// }
/// # Ok::<(), duramen::Error>(())
/// ```
pub struct ReadOnlyTable<K: Key, V: Value> {
    untyped: ReadOnlyUntypedTable,
    of: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> ReadOnlyTable<K, V> {
    /// The value of a key.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// assert_eq!(trees.get("oak")?.map(|years| years.value()), Some(700));
    /// assert!(trees.get("ash")?.is_none());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn get<'k>(&self, key: impl Borrow<K::Ref<'k>>) -> Result<Option<Guard<V>>> {
        let bytes =
            bounds::with_key::<K, _>(key.borrow(), |key| self.untyped.get_with(key, |value| Bytes::from(value)))?;
        bytes.map(|bytes| Guard::new(bytes, &self.untyped.name, "values")).transpose()
    }

    /// Calls `f` with the value of a key, without copying it. `f` runs while the page is latched. It must be short, and
    /// must neither read nor write the database: that can deadlock.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// assert_eq!(trees.get_with("oak", |years| years > 500)?, Some(true));
    /// assert_eq!(trees.get_with("ash", |years| years > 500)?, None);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    #[inline]
    pub fn get_with<'k, R>(&self, key: impl Borrow<K::Ref<'k>>, f: impl FnOnce(V::View<'_>) -> R) -> Result<Option<R>> {
        let read = |value: &[u8]| decode::<V>(value, &self.untyped.name, "values").map(f);
        bounds::with_key::<K, _>(key.borrow(), |key| self.untyped.get_with(key, read))?.transpose()
    }

    /// True if the table has the key.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// assert!(trees.contains_key("oak")? && !trees.contains_key("ash")?);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn contains_key<'k>(&self, key: impl Borrow<K::Ref<'k>>) -> Result<bool> {
        bounds::with_key::<K, _>(key.borrow(), |key| Ok(self.untyped.get_with(key, |_| ())?.is_some()))
    }

    /// The entries of a key range, such as `"a".."m"` or `..`.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// let mut years = 0;
    /// for entry in trees.range("f".."y") {
    ///     years += entry?.1.value();
    /// }
    /// assert_eq!(years, 700, "only the oak");
    /// assert_eq!(trees.range("oak"..).count(), 2);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn range<'k>(&self, range: impl RangeBounds<K::Ref<'k>>) -> Range<'_, K, V> {
        Range::new(self.untyped.cursor(bounds::encode::<K>(&range)), self.untyped.name.clone())
    }

    /// All entries.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// let ages = trees.iter().map(|entry| Ok(entry?.1.value())).collect::<duramen::Result<Vec<_>>>()?;
    /// assert_eq!(ages, [400, 700, 3000]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn iter(&self) -> Range<'_, K, V> {
        Range::new(self.untyped.cursor((Bound::Unbounded, Bound::Unbounded)), self.untyped.name.clone())
    }

    /// The keys of a range, without the values. It is much faster than [`ReadOnlyTable::range`] for integer keys in
    /// blocks.
    ///
    /// ```
    /// # fn main() -> duramen::Result<()> {
    /// use duramen::{Codec, Database, TableDef};
    /// const TIMES: TableDef<u64, ()> = TableDef::new("times").codec(Codec::Bp128);
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// for time in 0..1000u64 {
    ///     tx.open_table(TIMES)?.put(time * 60, ())?;
    /// }
    /// tx.commit()?;
    /// let times = db.begin_read()?.open_table(TIMES)?;
    /// let sum = times.keys(600u64..=720).sum::<duramen::Result<u64>>()?;
    /// assert_eq!(sum, 600 + 660 + 720);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys<'k>(&self, range: impl RangeBounds<K::Ref<'k>>) -> Keys<'_, K>
    where
        K: for<'a> Key<View<'a> = K>,
    {
        let (lower, upper) = bounds::encode::<K>(&range);
        let (engine, tree, snapshot) = self.untyped.source();
        Keys::new(Cursor::new(engine, *tree, View::At(snapshot), lower, upper), self.untyped.name.clone())
    }

    /// The first entry.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// let (name, years) = trees.first()?.unwrap();
    /// assert_eq!((name.value(), years.value()), ("elm", 400));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn first(&self) -> Result<Option<(Guard<K>, Guard<V>)>> {
        self.iter().next().transpose()
    }

    /// The last entry.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// let (name, years) = trees.last()?.unwrap();
    /// assert_eq!((name.value(), years.value()), ("yew", 3000));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn last(&self) -> Result<Option<(Guard<K>, Guard<V>)>> {
        self.iter().next_back().transpose()
    }

    /// The number of entries.
    pub fn len(&self) -> u64 {
        self.untyped.len()
    }

    /// True if the table has no entry.
    pub fn is_empty(&self) -> bool {
        self.untyped.is_empty()
    }

    /// The same table without its types.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// assert_eq!(trees.untyped().get_with(b"oak", |bytes| bytes.len())?, Some(8));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn untyped(&self) -> &ReadOnlyUntypedTable {
        &self.untyped
    }
}

impl<K: PrefixKey, V: Value> ReadOnlyTable<K, V> {
    /// The entries whose keys begin with `prefix`.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// for entry in trees.prefix("o") {
    ///     assert_eq!(entry?.0.value(), "oak");
    /// }
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn prefix<'k>(&self, prefix: impl Borrow<K::Ref<'k>>) -> Range<'_, K, V> {
        let mut bytes = Vec::new();
        K::encode(prefix.borrow(), &mut bytes);
        Range::new(self.untyped.prefix(&bytes), self.untyped.name.clone())
    }
}

//! Tables in a snapshot, as byte strings. Typed tables are built on them.

use super::bounds::{self, EncodedRange};
use super::range::UntypedRange;
use super::stream::ValueStream;
use crate::base::{Lsn, Result};
use crate::db::catalog::TableEntry;
use crate::db::catalog::info::TableInfo;
use crate::db::transaction::read::Snapshot;
use crate::tree::Tree;
use crate::txn::{Cursor, Engine, KeyRange, Latched, ReadView, VisibleEntries};
use std::ops::RangeBounds;
use std::sync::Arc;

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
/// assert!(trees.contains_key(b"oak")? && !trees.contains_key(b"ash")?);
/// assert_eq!(trees.range(b"m".as_slice()..).count(), 2);
/// assert_eq!(trees.prefix(b"ye").count(), 1);
/// # Ok::<(), duramen::Error>(())
/// ```
pub struct ReadOnlyUntypedTable {
    pub(in crate::db) snapshot: Arc<Snapshot>,
    pub(in crate::db) name: Arc<str>,
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

    /// True if the table has the key. It does not read a large value.
    ///
    /// # Errors
    /// An error of reading a page of the tree.
    pub fn contains_key(&self, key: &[u8]) -> Result<bool> {
        let engine = &self.snapshot.shared.engine;
        engine.get_at(&self.entry.tree, key, self.snapshot.lsn, |record| record.is_some())
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

    pub(super) fn cursor(&self, (lower, upper): EncodedRange) -> UntypedRange<'_> {
        let engine = &self.snapshot.shared.engine;
        let view = ReadView::Snapshot(self.snapshot.lsn);
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
                VisibleEntries::Leaf(_, slots) => slots.len() as u64,
                VisibleEntries::Entry(..) => 1,
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

    /// The names of the types of its keys and of its values.
    pub(crate) fn type_names(&self) -> [&str; 2] {
        [&self.entry.key_type, &self.entry.value_type]
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

//! Bulk loads: builds a new table bottom-up from entries in key order, without the log. This is the fastest way to fill
//! a table, and gives the fullest pages.

use super::target_fill::TargetFill;
use crate::base::limits::max_record;
use crate::base::{Error, PageId, Result, TableId};
use crate::db::catalog::TableEntry;
use crate::db::catalog::entry_rules::EntryRules;
use crate::db::catalog::spec::{TableSpec, record_list};
use crate::db::transaction::unlogged_writer::PackedPages;
use crate::db::transaction::write::WriteTransaction;
use crate::db::types::TableOptions;
use crate::page::Record;
use crate::store::{PagePolicy, Target};
use crate::tree::{BulkLoader, BulkSink, Tree, TreeLayout};
use crate::txn::{UNLOGGED_BATCH, large};
use std::io::Read;

/// The default fill of bulk-loaded pages. It leaves some space for later inserts.
///
/// ```
/// use duramen::{Database, TableOptions, db::DEFAULT_FILL};
///
/// let db = Database::in_memory()?;
/// let tx = db.begin_write()?;
/// let mut bulk = tx.bulk_load("trees", "str", "u64", TableOptions::default(), DEFAULT_FILL)?;
/// bulk.push(b"oak", &700u64.to_be_bytes())?;
/// assert_eq!(bulk.finish()?, 1);
/// # Ok::<(), duramen::Error>(())
/// ```
pub const DEFAULT_FILL: f32 = 0.95;

/// Writes pages to their final places, several at a time, and collects these places.
pub(crate) struct Sink<'t> {
    tx: &'t WriteTransaction,
    fill: TargetFill,
    waiting: PackedPages,
    /// The number of pages that are written together.
    batch: usize,
    /// They are written in another thread.
    in_thread: bool,
}

impl<'t> Sink<'t> {
    /// A sink for the pages of a table with this policy.
    pub(crate) fn for_table(tx: &'t WriteTransaction, table: TableId, policy: PagePolicy) -> Sink<'t> {
        let engine = &tx.shared.engine;
        let compression = engine.compression();
        let dictionary = compression.and_then(|compression| compression.compression_dictionary(table, policy));
        Sink {
            tx,
            fill: TargetFill::new(policy, engine.page_size(), compression, dictionary),
            waiting: Vec::new(),
            batch: (UNLOGGED_BATCH / engine.page_size()).max(1),
            in_thread: engine.compresses_in_threads(policy),
        }
    }

    fn write_waiting(&mut self, in_thread: bool) -> Result<()> {
        self.tx.write_pages(std::mem::take(&mut self.waiting), in_thread)
    }
}

impl BulkSink for Sink<'_> {
    fn allocate(&mut self) -> Result<PageId> {
        self.tx.allocate()
    }

    fn write(&mut self, id: PageId, packed: &[u8]) -> Result<()> {
        self.waiting.push((id, packed.to_vec()));
        self.fill.note(packed);
        if self.waiting.len() >= self.batch { self.write_waiting(self.in_thread) } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<()> {
        self.write_waiting(false)
    }

    fn leaf_part(&self) -> f32 {
        self.fill.part()
    }
}

impl WriteTransaction {
    /// Writes the root of a tree whose other pages a [`Sink`] has written. `root` is one of the transaction's pages.
    pub(crate) fn write_root(&self, root: PageId, packed: Vec<u8>) -> Result<()> {
        self.write_pages(vec![(root, packed)], false)
    }
}

/// A bulk load of a new table. [`BulkTable::finish`] adds the table to the transaction.
///
/// ```
/// # fn main() -> duramen::Result<()> {
/// use duramen::{Database, TableOptions};
/// let db = Database::in_memory()?;
/// let tx = db.begin_write()?;
/// let mut bulk = tx.bulk_load("squares", "u32", "u64", TableOptions::default(), 1.0)?;
/// for n in 0..10_000u32 {
///     bulk.push(&n.to_be_bytes(), &u64::from(n).pow(2).to_be_bytes())?;
/// }
/// assert_eq!(bulk.finish()?, 10_000);
/// tx.commit()?;
/// # Ok(())
/// # }
/// ```
pub struct BulkTable<'t> {
    load: Load<'t>,
    entry: TableEntry,
    rules: EntryRules,
    loader: BulkLoader<Sink<'t>>,
    /// Bytes of the keys and values so far.
    bytes: u64,
    /// Writing has failed: pages that the tree refers to may be missing.
    failed: bool,
}

/// The state of a load in its transaction. If the load is not finished, the transaction owns pages that belong to no
/// table, so it must not commit.
struct Load<'t> {
    tx: &'t WriteTransaction,
    name: String,
    finished: bool,
}

impl Drop for Load<'_> {
    fn drop(&mut self) {
        if !self.finished {
            *self.tx.abandoned.lock() = Some(std::mem::take(&mut self.name));
        }
    }
}

impl BulkTable<'_> {
    /// Appends an entry, both key and value encoded. The key must be greater than the key before it.
    ///
    /// ```
    /// use duramen::{Database, Error, TableOptions};
    ///
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// let mut bulk = tx.bulk_load("trees", "str", "u64", TableOptions::default(), 1.0)?;
    /// bulk.push(b"oak", &700u64.to_be_bytes())?;
    /// let back = bulk.push(b"elm", &400u64.to_be_bytes());
    /// assert!(matches!(back, Err(Error::Unsorted { .. })));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors [`crate::Error::Unsorted`], [`crate::Error::NotEncoded`], [`crate::Error::KeyTooLong`],
    /// [`crate::Error::ValueTooLong`], and errors of writing.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_failed()?;
        self.rules.check_key(key)?;
        self.rules.check_value(value)?;
        if value.len() > max_record(self.load.tx.shared.engine.page_size(), key.len()) {
            return self.push_large(key, value.len() as u64, &mut &*value);
        }
        self.insert(key, value.len() as u64, Record::inline(value))
    }

    /// Appends an entry whose value is `len` bytes that are read from `input` one page at a time, for values too large
    /// for memory. Only their length is checked against the type of the table.
    ///
    /// ```
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// use std::io::Read;
    ///
    /// let mut bulk = tx.bulk_load("scans", "str", "bytes", duramen::TableOptions::default(), 1.0)?;
    /// bulk.push_stream(b"oak", 1 << 20, &mut std::io::repeat(7).take(1 << 20))?;
    /// bulk.finish()?;
    /// assert_eq!(tx.open_untyped("scans")?.get_with(b"oak", |scan| scan.len())?, Some(1 << 20));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`BulkTable::push`], and errors of `input`.
    pub fn push_stream(&mut self, key: &[u8], len: u64, input: &mut dyn Read) -> Result<()> {
        self.check_failed()?;
        self.rules.check_key(key)?;
        self.rules.check_value_len(len)?;
        match usize::try_from(len) {
            Ok(len) if len <= max_record(self.load.tx.shared.engine.page_size(), key.len()) => {
                let mut value = vec![0; len];
                large::read_input(input, &mut value)?;
                self.insert(key, len as u64, Record::inline(&value))
            }
            _ => self.push_large(key, len, input),
        }
    }

    fn push_large(&mut self, key: &[u8], len: u64, input: &mut dyn Read) -> Result<()> {
        let WriteTransaction { shared, adopted, .. } = self.load.tx;
        shared.check_process()?;
        // The order is checked before the pages of the value are written. If the key were refused later, these pages
        // would belong to the transaction.
        self.loader.check_order(key)?;
        let record = large::write(&shared.engine, adopted, self.entry.tree.table, len, input)?;
        self.insert(key, len, record.view())
    }

    fn insert(&mut self, key: &[u8], value_len: u64, record: Record<'_>) -> Result<()> {
        let pushed = self.loader.push(key, record);
        // A key out of order changes nothing.
        self.failed = pushed.as_ref().is_err_and(|error| !matches!(error, Error::Unsorted { .. }));
        pushed?;
        self.entry.note_key(key);
        self.bytes += key.len() as u64 + value_len;
        Ok(())
    }

    /// A load cannot continue after an error of writing: its tree may refer to pages that were not written.
    fn check_failed(&self) -> Result<()> {
        if !self.failed {
            return Ok(());
        }
        let why = "its bulk load has failed, so it cannot continue: repeat the transaction".to_owned();
        Err(Error::TableState { table: self.load.name.clone(), why })
    }

    /// For a table that assigns keys ([`TableOptions::auto_increment`]): sets the least key that it may assign, or none
    /// if `next` is 0. A copy of a table uses it to continue after [`TableInfo::next_key`](crate::db::TableInfo) of the
    /// original.
    ///
    /// ```
    /// use duramen::{Database, TableOptions};
    ///
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// let options = TableOptions { auto_increment: true, ..TableOptions::default() };
    /// let mut bulk = tx.bulk_load("notes", "u64", "str", options, 1.0)?;
    /// bulk.push(&7u64.to_be_bytes(), b"the last note that was not removed")?;
    /// bulk.skip_keys(100);
    /// bulk.finish()?;
    /// assert_eq!(tx.open_untyped("notes")?.push(b"next")?, 100u64.to_be_bytes());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn skip_keys(&mut self, next: u64) {
        self.entry.skip_keys(next);
    }

    /// Ends the load and returns the number of entries. The table is then part of the transaction, and of the database
    /// when the transaction commits. A transaction with an unfinished load cannot commit.
    ///
    /// ```
    /// use duramen::{Database, TableDef, TableOptions};
    ///
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// let bulk = tx.bulk_load("trees", "str", "u64", TableOptions::default(), 1.0)?;
    /// assert_eq!(bulk.finish()?, 0);
    /// const TREES: TableDef<&str, u64> = TableDef::new("trees");
    /// tx.open_table(TREES)?.put("oak", 700)?; // then it is used like any table
    /// tx.commit()?;
    /// assert_eq!(db.begin_read()?.open_table(TREES)?.len(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::TableExists`] if the transaction has created a table with this name since the load began, and
    /// errors of writing.
    pub fn finish(self) -> Result<u64> {
        self.check_failed()?;
        let BulkTable { mut load, mut entry, loader, bytes, .. } = self;
        let tx = load.tx;
        tx.check_new(&load.name)?;
        let loaded = loader.finish(entry.tree.root)?;
        tx.write_root(entry.tree.root, loaded.root)?;
        entry.entries = loaded.entries;
        let schema = tx.schema.lock();
        tx.check_new(&load.name)?;
        tx.install(&load.name, entry, bytes);
        drop(schema);
        load.finished = true;
        Ok(loaded.entries)
    }
}

impl WriteTransaction {
    /// Begins a bulk load of a new table. `fill` is the part of each page that is filled, up to 1; [`DEFAULT_FILL`]
    /// leaves some space. The names of types are those of [`crate::db::types::Value::type_name`].
    ///
    /// ```
    /// use duramen::db::{DEFAULT_FILL, types::Value};
    /// use duramen::{Database, TableDef, TableOptions};
    /// const TREES: TableDef<(&str, u32), bool> = TableDef::new("trees");
    ///
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// let (keys, values) = (TREES.key_type(), TREES.value_type());
    /// let mut bulk = tx.bulk_load(TREES.name(), &keys, &values, TableOptions::default(), DEFAULT_FILL)?;
    /// for number in 0..1000 {
    ///     let (mut key, mut value) = (Vec::new(), Vec::new());
    ///     <(&str, u32)>::encode(&("oak", number), &mut key);
    ///     bool::encode(&(number % 7 == 0), &mut value);
    ///     bulk.push(&key, &value)?;
    /// }
    /// bulk.finish()?;
    /// tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// assert_eq!(trees.get(("oak", 49))?.map(|felled| felled.value()), Some(true));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::TableExists`], and [`crate::Error::Option`] for a layout that the types do not allow, or for a
    /// name that is not allowed. A name that is not a type of the engine is a type that a program has defined.
    pub fn bulk_load(
        &self,
        name: &str,
        key_type: &str,
        value_type: &str,
        options: TableOptions,
        fill: f32,
    ) -> Result<BulkTable<'_>> {
        self.check_new(name)?;
        let entry = self.create(name, &TableSpec::of_names(key_type, value_type, options)?)?;
        let rules = EntryRules::untyped(name, &entry);
        Ok(self.load(name, entry, rules, fill))
    }

    /// Begins a bulk load of a copy of a table. It differs from [`WriteTransaction::bulk_load`] in that it accepts all
    /// that a table can contain. The key type may have any name. Of keys and values only the lengths are checked. The
    /// widths of the options apply to all types.
    ///
    /// ```
    /// use duramen::{Database, TableOptions, db::DEFAULT_FILL};
    ///
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// // A program has keys of a type of its own, which has the encoding and the name of an `f64`.
    /// assert!(tx.bulk_load("heights", "f64", "str", TableOptions::default(), DEFAULT_FILL).is_err());
    /// let mut bulk = tx.bulk_copy("heights", "f64", "str", TableOptions::default(), DEFAULT_FILL)?;
    /// bulk.push(&40.5f64.to_be_bytes(), b"oak")?;
    /// assert_eq!(bulk.finish()?, 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`WriteTransaction::bulk_load`].
    pub fn bulk_copy(
        &self,
        name: &str,
        key_type: &str,
        value_type: &str,
        options: TableOptions,
        fill: f32,
    ) -> Result<BulkTable<'_>> {
        self.check_new(name)?;
        let entry = self.create(name, &TableSpec::of_copy(key_type, value_type, options))?;
        let rules = EntryRules::typed(name, &entry);
        Ok(self.load(name, entry, rules, fill))
    }

    /// Begins a bulk load of a copy of a table of another database, with its types, layout and options. It does not
    /// check that keys and values have the right types.
    pub(crate) fn bulk_load_copy(&self, name: &str, of: &TableEntry) -> Result<BulkTable<'_>> {
        self.check_new(name)?;
        let records = record_list(of.key_width, of.value_width, self.shared.engine.page_size());
        let tree = Tree { layout: TreeLayout { records, ..of.tree.layout }, ..of.tree };
        // Another page store may not compress pages, and the target may be as long as a page of the new size.
        let fitting = PagePolicy { target: Target::Fit, ..of.policy };
        let possible = [of.policy, fitting].into_iter().find(|policy| self.shared.engine.check_policy(*policy).is_ok());
        let policy = possible.unwrap_or_default();
        let entry = self.add(name, TableEntry { tree, entries: 0, policy, ..of.clone() })?;
        let rules = EntryRules::typed(name, &entry);
        Ok(self.load(name, entry, rules, DEFAULT_FILL))
    }

    fn load(&self, name: &str, entry: TableEntry, rules: EntryRules, fill: f32) -> BulkTable<'_> {
        let engine = &self.shared.engine;
        let Tree { layout, table, .. } = entry.tree;
        let loader = BulkLoader::new(
            Sink::for_table(self, table, entry.policy),
            engine.page_size(),
            layout,
            table,
            engine.best_fill(fill),
        );
        let load = Load { tx: self, name: name.to_owned(), finished: false };
        BulkTable { load, rules, entry, loader, bytes: 0, failed: false }
    }
}

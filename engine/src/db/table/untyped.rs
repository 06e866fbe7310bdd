//! Tables of byte strings in a writing transaction. Typed tables are built on them.

use super::bounds::{self, EncodedRange};
use super::range::UntypedRange;
use crate::base::limits::{MAX_VALUE, max_record};
use crate::base::{Error, Result};
use crate::db::catalog::entry_rules::EntryRules;
use crate::db::catalog::info::TableInfo;
use crate::db::transaction::table_state::TableState;
use crate::db::transaction::write::{WriteTransaction, entries, own_write};
use crate::page::Record;
use crate::txn::{Cursor, KeyRange, ReadView, large};
use parking_lot::{ArcMutexGuard, RawMutex};
use std::io::Read;
use std::ops::RangeBounds;
use std::sync::Arc;

/// A table in a writing transaction, without types. Keys and values are encoded bytes. If the engine knows the types by
/// their names, it checks the bytes.
///
/// ```
/// use duramen::{Database, TableOptions};
///
/// let db = Database::in_memory()?;
/// let tx = db.begin_write()?;
/// let mut trees = tx.create_untyped("trees", "str", "bytes", TableOptions::default())?;
/// assert_eq!(trees.insert(b"oak", b"old")?, None);
/// assert_eq!(trees.insert(b"oak", b"very old")?, Some(b"old".to_vec()));
/// trees.put(b"elm", b"ill")?;
/// trees.put(b"yew", b"evergreen")?;
/// assert_eq!(trees.get(b"elm")?, Some(b"ill".to_vec()));
/// assert_eq!(trees.get_with(b"oak", |value| value.len())?, Some(8));
/// assert_eq!(trees.range(b"f".as_slice()..).count(), 2);
/// assert_eq!((trees.name(), trees.len()?, trees.is_empty()?), ("trees", 3, false));
/// assert_eq!(trees.info().value_type, "bytes");
///
/// assert_eq!(trees.remove(b"oak")?, Some(b"very old".to_vec()));
/// trees.delete(b"ash")?; // there is no such key, which is not an error
/// trees.remove_range(..b"f".as_slice());
/// assert_eq!(trees.len()?, 1);
/// # Ok::<(), duramen::Error>(())
/// ```
pub struct UntypedTable<'t> {
    tx: &'t WriteTransaction,
    pub(in crate::db) state: ArcMutexGuard<RawMutex, TableState>,
    rules: Arc<EntryRules>,
}

impl<'t> UntypedTable<'t> {
    pub(crate) fn new(
        tx: &'t WriteTransaction,
        state: ArcMutexGuard<RawMutex, TableState>,
        rules: Arc<EntryRules>,
    ) -> UntypedTable<'t> {
        UntypedTable { tx, state, rules }
    }

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
    pub fn get_with<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let engine = &self.tx.shared.engine;
        match own_write(&self.state.writes, key) {
            Some(None) => Ok(None),
            Some(Some(record)) if record.large => Ok(Some(f(&large::read(engine, record.bytes)?))),
            Some(Some(record)) => Ok(Some(f(record.bytes))),
            None if self.state.created => Ok(None),
            None => engine.get_value(&self.state.entry.tree, key, crate::base::Lsn::MAX, f),
        }
    }

    /// True if the table has the key. It does not read a large value.
    ///
    /// ```
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// let mut trees = tx.create_untyped("trees", "str", "bytes", duramen::TableOptions::default())?;
    /// trees.put(b"oak", b"old")?;
    /// assert!(trees.contains_key(b"oak")? && !trees.contains_key(b"ash")?);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page of the tree.
    pub fn contains_key(&self, key: &[u8]) -> Result<bool> {
        match own_write(&self.state.writes, key) {
            Some(record) => Ok(record.is_some()),
            None if self.state.created => Ok(false),
            None => self.tx.shared.engine.get_current(&self.state.entry.tree, key, |record| record.is_some()),
        }
    }

    /// Sets the value of a key and returns the old value.
    ///
    /// # Errors
    /// [`Error::NotEncoded`], [`Error::KeyTooLong`], [`Error::KeyLength`], [`Error::ValueTooLong`], and errors of
    /// reading and writing.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
        let old = self.get(key)?;
        self.put(key, value)?;
        Ok(old)
    }

    /// Sets the value of a key without reading the old value. It is faster than [`UntypedTable::insert`].
    ///
    /// # Errors
    /// The errors of [`UntypedTable::insert`].
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.rules.check_key(key)?;
        self.rules.check_value(value)?;
        if !value.is_empty() && value.len() > max_record(self.tx.shared.engine.page_size(), key.len()) {
            return self.put_large(key, value.len() as u64, &mut &*value);
        }
        self.write(key, Some(Record::inline(value)));
        Ok(())
    }

    /// Inserts a value under the next key of the table and returns that key. Keys are assigned in ascending order, each
    /// once, even if its entry is removed. A key that was inserted with `put` or `insert` is not assigned.
    ///
    /// # Errors
    /// [`Error::TableState`] for a table without [`crate::db::types::TableOptions::auto_increment`] or without free
    /// keys, and the errors of [`UntypedTable::insert`].
    pub fn push(&mut self, value: &[u8]) -> Result<Vec<u8>> {
        let refused = |why: &str| Error::TableState { table: self.state.name.to_string(), why: why.to_owned() };
        let Some(next) = self.state.entry.next_key else {
            return Err(refused("it does not assign keys: create it with auto_increment"));
        };
        let wide = self.state.entry.key_type == "u64";
        let key = match u32::try_from(next) {
            _ if wide && next > 0 => next.to_be_bytes().to_vec(),
            Ok(next) if next > 0 => next.to_be_bytes().to_vec(),
            _ => return Err(refused("it has assigned its last key")),
        };
        self.put(&key, value).map(|()| key)
    }

    /// Sets the value of a key to `len` bytes that are read from `input` one page at a time, for values too large for
    /// memory. The bytes bypass the log. Only their length is checked against the type of the table.
    ///
    /// ```
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// use std::io::Read;
    ///
    /// let mut scans = tx.create_untyped("scans", "str", "bytes", duramen::TableOptions::default())?;
    /// scans.put_stream(b"oak", 1 << 20, &mut std::io::repeat(7).take(1 << 20))?;
    /// assert_eq!(scans.get_with(b"oak", |scan| scan.len())?, Some(1 << 20));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`UntypedTable::insert`], and errors of `input`. The key then keeps its old value.
    pub fn put_stream(&mut self, key: &[u8], len: u64, input: &mut dyn Read) -> Result<()> {
        self.rules.check_key(key)?;
        self.rules.check_value_len(len)?;
        match self.rules.inline_width() {
            // A record list of values of one length cannot contain a pointer to a run.
            Some(width) => {
                let mut value = vec![0; width];
                large::read_input(input, &mut value)?;
                self.put(key, &value)
            }
            None => self.put_large(key, len, input),
        }
    }

    fn put_large(&mut self, key: &[u8], len: u64, input: &mut dyn Read) -> Result<()> {
        self.tx.shared.check_process()?;
        if len > MAX_VALUE {
            return Err(Error::ValueTooLong { len, max: MAX_VALUE });
        }
        let table = self.state.entry.tree.table;
        let record = large::write(&self.tx.shared.engine, &self.tx.adopted, table, len, input)?;
        self.write(key, Some(record.view()));
        Ok(())
    }

    /// Removes a key and returns its value. [`UntypedTable::delete`] does not read the value, and so it also removes a
    /// large value whose pages are damaged.
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn remove(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let old = self.get(key)?;
        if old.is_some() {
            self.write(key, None);
        }
        Ok(old)
    }

    /// Removes a key, if it exists, without reading it.
    ///
    /// # Errors
    /// [`Error::NotEncoded`], [`Error::KeyTooLong`], [`Error::KeyLength`].
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.rules.check_key(key)?;
        self.write(key, None);
        Ok(())
    }

    /// Removes all keys of a range. Whole subtrees are detached, and freed in the background.
    pub fn remove_range<'k>(&mut self, range: impl RangeBounds<&'k [u8]>) {
        self.clear(bounds::borrowed(&range));
    }

    pub(crate) fn clear(&mut self, (lower, upper): EncodedRange) {
        let range = KeyRange::of(lower, upper);
        if range.is_empty() {
            return;
        }
        for record in self.state.writes.clear(range) {
            large::discard_run(&self.tx.shared.engine, &mut self.tx.adopted.lock(), &record.bytes);
        }
    }

    /// The entries of a key range, with this transaction's writes.
    pub fn range<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> UntypedRange<'_> {
        self.cursor(bounds::borrowed(&range))
    }

    pub(crate) fn cursor(&self, (lower, upper): EncodedRange) -> UntypedRange<'_> {
        let engine = &self.tx.shared.engine;
        let writes = &self.state.writes;
        let view = if self.state.created { ReadView::Creating(writes) } else { ReadView::Writing(writes) };
        UntypedRange::new(engine, Cursor::new(engine, self.state.entry.tree, view, lower, upper))
    }

    /// The number of entries, with the writes of this transaction. It looks up each key that the transaction has
    /// written.
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn len(&self) -> Result<u64> {
        entries(&self.tx.shared.engine, &self.state)
    }

    /// True if the table has no entry.
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.range(..).next_key_with(|_| ())?.is_none())
    }

    /// The types and the layout of the table.
    pub fn info(&self) -> TableInfo {
        TableInfo::new(self.state.name.to_string(), &self.state.entry)
    }

    /// The name of the table.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    #[inline(always)]
    fn write(&mut self, key: &[u8], record: Option<Record<'_>>) {
        let state = &mut *self.state;
        if record.is_some() && state.entry.next_key.is_some() {
            state.entry_changed |= state.entry.note_key(key);
        }
        if let Some(own) = state.writes.put(key, record) {
            large::discard_run(&self.tx.shared.engine, &mut self.tx.adopted.lock(), &own.bytes);
        }
    }
}

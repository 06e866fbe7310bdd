//! Typed tables in a writing transaction: encodes keys and values, decodes results. Everything else is in `untyped`.

pub(super) mod bounds;
pub(super) mod bytes;
pub(super) mod entry;
pub(super) mod guard;
pub(super) mod keys;
pub(super) mod range;
pub(super) mod read_only;
pub(super) mod read_only_untyped;
pub(super) mod stream;
pub(super) mod untyped;

use super::types::{Key, PrefixKey, Value};
use crate::base::Result;
use bytes::Bytes;
use entry::Entry;
use guard::{Guard, decode};
use range::Range;
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use untyped::UntypedTable;

/// A table in a writing transaction.
///
/// ```
/// use duramen::{Database, TableDef};
/// const TREES: TableDef<&str, u64> = TableDef::new("trees");
///
/// let db = Database::in_memory()?;
/// let tx = db.begin_write()?;
/// let mut trees = tx.open_table(TREES)?;
/// trees.put("oak", 700)?;
/// trees.put("elm", 400)?;
/// assert_eq!(trees.get("oak")?.map(|years| years.value()), Some(700));
/// assert_eq!(trees.first()?.unwrap().0.value(), "elm");
/// assert_eq!((trees.len()?, trees.is_empty()?), (2, false));
/// drop(trees); // the table must be dropped before the transaction ends
/// tx.commit()?;
/// # Ok::<(), duramen::Error>(())
/// ```
pub struct Table<'t, K: Key, V: Value> {
    pub(super) untyped: UntypedTable<'t>,
    /// A buffer for the encoded key: access to it is faster than to a thread-local buffer.
    key: Vec<u8>,
    of: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value> Table<'t, K, V> {
    pub(crate) fn new(untyped: UntypedTable<'t>) -> Table<'t, K, V> {
        Table { untyped, key: Vec::new(), of: PhantomData }
    }

    fn guard<T: Value>(&self, bytes: Option<impl Into<Bytes>>) -> Result<Option<Guard<T>>> {
        bytes.map(|bytes| Guard::new(bytes.into(), self.untyped.name(), "values")).transpose()
    }

    /// The value of a key, with this transaction's writes.
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn get<'k>(&self, key: impl Borrow<K::Ref<'k>>) -> Result<Option<Guard<V>>> {
        let bytes =
            bounds::with_key::<K, _>(key.borrow(), |key| self.untyped.get_with(key, |value| Bytes::from(value)))?;
        self.guard(bytes)
    }

    /// Calls `f` with the value of a key, without copying it. `f` runs while the page is latched. It must be short, and
    /// must neither read nor write the database: that can deadlock.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// assert_eq!(trees.get_with("oak", |years| years > 500)?, Some(true));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn get_with<'k, R>(&self, key: impl Borrow<K::Ref<'k>>, f: impl FnOnce(V::View<'_>) -> R) -> Result<Option<R>> {
        let read = |value: &[u8]| decode::<V>(value, self.untyped.name(), "values").map(f);
        bounds::with_key::<K, _>(key.borrow(), |key| self.untyped.get_with(key, read))?.transpose()
    }

    /// Sets the value of a key and returns the old value.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// assert!(trees.insert("oak", 700)?.is_none());
    /// assert_eq!(trees.insert("oak", 701)?.map(|years| years.value()), Some(700));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::KeyTooLong`], [`crate::Error::ValueTooLong`], and errors of reading and writing.
    pub fn insert<'k, 'v>(
        &mut self,
        key: impl Borrow<K::Ref<'k>>,
        value: impl Borrow<V::Ref<'v>>,
    ) -> Result<Option<Guard<V>>> {
        let old = bounds::with_key::<K, _>(key.borrow(), |key| {
            bounds::with_value::<V, _>(value.borrow(), |value| {
                let old = self.untyped.get_with(key, |value| Bytes::from(value))?;
                self.untyped.put(key, value).map(|()| old)
            })
        })?;
        self.guard(old)
    }

    /// Sets the value of a key without reading the old value. It is faster than [`Table::insert`].
    ///
    /// # Errors
    /// The errors of [`Table::insert`].
    pub fn put<'k, 'v>(&mut self, key: impl Borrow<K::Ref<'k>>, value: impl Borrow<V::Ref<'v>>) -> Result<()> {
        self.key.clear();
        K::encode(key.borrow(), &mut self.key);
        bounds::with_value::<V, _>(value.borrow(), |value| self.untyped.put(&self.key, value))
    }

    /// Inserts a value under the next key of the table and returns that key: 1, 2, 3 and so on. Keys are assigned in
    /// ascending order, each once, even if its entry is removed. A key that was inserted with `put` or `insert` is not
    /// assigned.
    ///
    /// ```
    /// # fn main() -> duramen::Result<()> {
    /// use duramen::{Database, TableDef};
    /// const NOTES: TableDef<u32, &str> = TableDef::new("notes").auto_increment();
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// {
    ///     let mut notes = tx.open_table(NOTES)?;
    ///     assert_eq!(notes.push("first")?.value(), 1);
    ///     notes.put(7, "by hand")?;
    ///     assert_eq!(notes.push("next")?.value(), 8);
    /// }
    /// tx.commit()?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`UntypedTable::push`].
    pub fn push<'v>(&mut self, value: impl Borrow<V::Ref<'v>>) -> Result<Guard<K>> {
        let key = bounds::with_value::<V, _>(value.borrow(), |value| self.untyped.push(value))?;
        Guard::new(Bytes::from(key.as_slice()), self.untyped.name(), "keys")
    }

    /// Removes a key and returns its value. [`Table::remove_range`] does not read the value, and so it also removes a
    /// large value whose pages are damaged.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// assert_eq!(trees.remove("oak")?.map(|years| years.value()), Some(700));
    /// assert!(trees.remove("oak")?.is_none());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn remove<'k>(&mut self, key: impl Borrow<K::Ref<'k>>) -> Result<Option<Guard<V>>> {
        let old = bounds::with_key::<K, _>(key.borrow(), |key| self.untyped.remove(key))?;
        self.guard(old)
    }

    /// The [`Entry`] of a key, to read and then write it.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// if !trees.entry("oak")?.or_insert(0)? {
    ///     println!("there is an oak already");
    /// }
    /// assert!(trees.entry("oak")?.is_occupied());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn entry<'k>(&mut self, key: impl Borrow<K::Ref<'k>>) -> Result<Entry<'_, 't, K, V>> {
        let mut bytes = Vec::new();
        K::encode(key.borrow(), &mut bytes);
        let value = self.untyped.get_with(&bytes, |value| Bytes::from(value))?;
        let value = self.guard(value)?;
        Ok(Entry::new(self, bytes, value))
    }

    /// Removes and returns the first entry.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// trees.put("elm", 400)?;
    /// let (name, years) = trees.pop_first()?.unwrap();
    /// assert_eq!((name.value(), years.value(), trees.len()?), ("elm", 400, 1));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn pop_first(&mut self) -> Result<Option<(Guard<K>, Guard<V>)>> {
        let first = self.iter().next().transpose()?;
        self.pop(first)
    }

    /// Removes and returns the last entry.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// trees.put("elm", 400)?;
    /// let (name, years) = trees.pop_last()?.unwrap();
    /// assert_eq!((name.value(), years.value(), trees.len()?), ("oak", 700, 1));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn pop_last(&mut self) -> Result<Option<(Guard<K>, Guard<V>)>> {
        let last = self.iter().next_back().transpose()?;
        self.pop(last)
    }

    fn pop(&mut self, entry: Option<(Guard<K>, Guard<V>)>) -> Result<Option<(Guard<K>, Guard<V>)>> {
        if let Some((key, _)) = &entry {
            self.untyped.delete(key.bytes())?;
        }
        Ok(entry)
    }

    /// Removes all entries for which `keep` returns false.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// trees.put("elm", 400)?;
    /// trees.retain(|_, years| years >= 500)?;
    /// assert!(trees.get("elm")?.is_none() && trees.get("oak")?.is_some());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page; nothing is then removed.
    pub fn retain(&mut self, mut keep: impl FnMut(K::View<'_>, V::View<'_>) -> bool) -> Result<()> {
        let mut removed = Vec::new();
        for entry in self.iter() {
            let (key, value) = entry?;
            if !keep(key.value(), value.value()) {
                removed.push(key);
            }
        }
        removed.iter().try_for_each(|key| self.untyped.delete(key.bytes()))
    }

    /// Removes all keys of a range. Whole subtrees are detached, and freed in the background.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// trees.put("elm", 400)?;
    /// trees.remove_range(.."m");
    /// assert!(trees.get("elm")?.is_none() && trees.get("oak")?.is_some());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn remove_range<'k>(&mut self, range: impl RangeBounds<K::Ref<'k>>) {
        self.untyped.clear(bounds::encode::<K>(&range));
    }

    /// The entries of a key range, as `"a".."m"`, with this transaction's writes.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// trees.put("elm", 400)?;
    /// assert_eq!(trees.range("a".."m").count(), 1);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn range<'k>(&self, range: impl RangeBounds<K::Ref<'k>>) -> Range<'_, K, V> {
        Range::new(self.untyped.cursor(bounds::encode::<K>(&range)), self.untyped.state.name.clone())
    }

    /// All entries, with this transaction's writes.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// trees.put("elm", 400)?;
    /// let ages = trees.iter().map(|entry| Ok(entry?.1.value())).collect::<duramen::Result<Vec<_>>>()?;
    /// assert_eq!(ages, [400, 700]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn iter(&self) -> Range<'_, K, V> {
        let all = self.untyped.cursor((Bound::Unbounded, Bound::Unbounded));
        Range::new(all, self.untyped.state.name.clone())
    }

    /// The first entry.
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
    /// # let mut trees = tx.open_table(TREES)?;
    /// let number = trees.last()?.map_or(1, |(_, number)| number.value() + 1);
    /// trees.put("oak", number)?;
    /// assert_eq!(trees.last()?.map(|(_, number)| number.value()), Some(1));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn last(&self) -> Result<Option<(Guard<K>, Guard<V>)>> {
        self.iter().next_back().transpose()
    }

    /// The number of entries, with the writes of this transaction. It looks up each key that the transaction has
    /// written.
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn len(&self) -> Result<u64> {
        self.untyped.len()
    }

    /// True if the table has no entry.
    ///
    /// # Errors
    /// An error of reading a page.
    pub fn is_empty(&self) -> Result<bool> {
        self.untyped.is_empty()
    }

    /// The same table without its types.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.untyped().put(b"oak", &700u64.to_be_bytes())?;
    /// assert_eq!(trees.get("oak")?.map(|years| years.value()), Some(700));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn untyped(&mut self) -> &mut UntypedTable<'t> {
        &mut self.untyped
    }
}

impl<K: PrefixKey, V: Value> Table<'_, K, V> {
    /// The entries whose keys begin with `prefix`, with this transaction's writes.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// for name in ["oak", "oleaster", "yew"] {
    ///     trees.put(name, 0)?;
    /// }
    /// assert_eq!(trees.prefix("o").count(), 2);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn prefix<'k>(&self, prefix: impl Borrow<K::Ref<'k>>) -> Range<'_, K, V> {
        let mut bytes = Vec::new();
        K::encode(prefix.borrow(), &mut bytes);
        Range::new(self.untyped.cursor(bounds::prefix(&bytes)), self.untyped.state.name.clone())
    }
}

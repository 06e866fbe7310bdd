//! Tables inside a writing transaction.

use super::bounds::{self, Bounds};
use super::bytes::Bytes;
use super::entry::Entry;
use super::guard::{Guard, decode};
use super::info::TableInfo;
use super::range::{Range, UntypedRange};
use super::types::{DynType, Key, PrefixKey, Value};
use super::write::{TableState, WriteTransaction, own_write};
use crate::base::limits::{MAX_KEY, MAX_VALUE, max_entry, max_inline_key};
use crate::base::{Error, Result};
use crate::page::KeyListKind;
use crate::txn::{Cursor, OwnedRecord, Stretch, View, large};
use parking_lot::{ArcMutexGuard, RawMutex};
use std::borrow::Borrow;
use std::io::Read;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// A table in a writing transaction, without its types: keys and values are their encodings.
pub struct UntypedTable<'t> {
    tx: &'t WriteTransaction,
    state: ArcMutexGuard<RawMutex, TableState>,
    key_width: Option<usize>,
}

impl<'t> UntypedTable<'t> {
    pub(crate) fn new(tx: &'t WriteTransaction, state: ArcMutexGuard<RawMutex, TableState>) -> UntypedTable<'t> {
        let fixed = state.entry.tree.layout.leaf == KeyListKind::Fixed;
        let width = || state.entry.key_type.parse::<DynType>().ok()?.fixed_width();
        let key_width = if fixed { width() } else { None };
        UntypedTable { tx, state, key_width }
    }

    /// The value of a key.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, <[u8]>::to_vec)
    }

    /// Hands the value of a key to `f` without copying it.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn get_with<R>(&self, key: &[u8], f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        let engine = &self.tx.shared.engine;
        match own_write(&self.state.writes, key) {
            Some(None) => Ok(None),
            Some(Some(record)) if record.large => Ok(Some(f(&large::read(engine, &record.bytes)?))),
            Some(Some(record)) => Ok(Some(f(&record.bytes))),
            None if self.state.created => Ok(None),
            None => large::get_at(engine, &self.state.entry.tree, key, crate::base::Lsn::MAX, f),
        }
    }

    /// Sets the value of a key and returns the one it had.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::KeyLength`], [`Error::ValueTooLong`], and what reading and writing meet.
    pub fn insert(&mut self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>> {
        let old = self.get(key)?;
        self.put(key, value)?;
        Ok(old)
    }

    /// Sets the value of a key without looking at what it had: faster than [`UntypedTable::insert`].
    ///
    /// # Errors
    /// As [`UntypedTable::insert`].
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check_key(key)?;
        let page_size = self.tx.shared.engine.pool.page_size();
        let image = key.len().min(max_inline_key(page_size) + 1);
        if image + value.len() > max_entry(page_size) {
            return self.put_stream(key, value.len() as u64, &mut &*value);
        }
        self.write(key, Some(OwnedRecord { bytes: value.into(), large: false }));
        Ok(())
    }

    /// Sets the value of a key to `len` bytes read from `input`, a page at a time: for values too large to hold in
    /// memory. They are written outside the log.
    ///
    /// # Errors
    /// As [`UntypedTable::insert`], and errors of `input`; then the key keeps what it had.
    pub fn put_stream(&mut self, key: &[u8], len: u64, input: &mut dyn Read) -> Result<()> {
        self.check_key(key)?;
        if len > MAX_VALUE {
            return Err(Error::ValueTooLong { len, max: MAX_VALUE });
        }
        let table = self.state.entry.tree.table;
        let record = large::write(&self.tx.shared.engine, &mut self.tx.adopted.lock(), table, len, input)?;
        self.write(key, Some(record));
        Ok(())
    }

    /// Removes a key and returns the value it had.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn remove(&mut self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let old = self.get(key)?;
        if old.is_some() {
            self.write(key, None);
        }
        Ok(old)
    }

    /// Removes a key without looking whether it is there.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::KeyLength`].
    pub fn delete(&mut self, key: &[u8]) -> Result<()> {
        self.check_key(key)?;
        self.write(key, None);
        Ok(())
    }

    /// Removes every key of a range, however many there are: whole subtrees are unlinked and freed in the background.
    pub fn remove_range<'k>(&mut self, range: impl RangeBounds<&'k [u8]>) {
        self.clear(borrowed(&range));
    }

    pub(crate) fn clear(&mut self, (lower, upper): Bounds) {
        let range = Stretch::of(lower, upper);
        if range.is_empty() {
            return;
        }
        for record in self.state.writes.clear(range) {
            large::unwrite(&self.tx.shared.engine, &mut self.tx.adopted.lock(), &record.bytes);
        }
    }

    /// The entries of a key range, with this transaction's writes.
    pub fn range<'k>(&self, range: impl RangeBounds<&'k [u8]>) -> UntypedRange<'_> {
        self.cursor(borrowed(&range))
    }

    pub(crate) fn cursor(&self, (lower, upper): Bounds) -> UntypedRange<'_> {
        let engine = &self.tx.shared.engine;
        let writes = &self.state.writes;
        let view = if self.state.created { View::Creating(writes) } else { View::Writing(writes) };
        UntypedRange::new(engine, Cursor::new(engine, self.state.entry.tree, view, lower, upper))
    }

    /// How many entries there are, with this transaction's writes. Costs a look at each key written since the last
    /// commit.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn len(&self) -> Result<u64> {
        self.tx.entries(&self.state)
    }

    /// True if there is no entry.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.range(..).next().transpose()?.is_none())
    }

    /// The table's types and layout.
    pub fn info(&self) -> TableInfo {
        TableInfo::new(self.state.name.to_string(), &self.state.entry)
    }

    /// The table's name.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    fn write(&mut self, key: &[u8], record: Option<OwnedRecord>) {
        if let Some(own) = self.state.writes.put(key, record).filter(|own| own.large) {
            large::unwrite(&self.tx.shared.engine, &mut self.tx.adopted.lock(), &own.bytes);
        }
    }

    fn check_key(&self, key: &[u8]) -> Result<()> {
        if key.len() > MAX_KEY {
            return Err(Error::KeyTooLong { len: key.len(), max: MAX_KEY });
        }
        match self.key_width {
            Some(expected) if key.len() != expected => Err(Error::KeyLength { len: key.len(), expected }),
            _ => Ok(()),
        }
    }
}

/// A range of borrowed keys, owned.
pub(crate) fn borrowed<'k>(range: &impl RangeBounds<&'k [u8]>) -> Bounds {
    (range.start_bound().map(|key| key.to_vec()), range.end_bound().map(|key| key.to_vec()))
}

/// A table in a writing transaction.
pub struct Table<'t, K: Key, V: Value> {
    pub(super) untyped: UntypedTable<'t>,
    of: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value> Table<'t, K, V> {
    pub(crate) fn new(untyped: UntypedTable<'t>) -> Table<'t, K, V> {
        Table { untyped, of: PhantomData }
    }

    fn guard<T: Value>(&self, bytes: Option<impl Into<Bytes>>) -> Result<Option<Guard<T>>> {
        bytes.map(|bytes| Guard::new(bytes.into(), self.untyped.name(), "values")).transpose()
    }

    /// The value of a key, with this transaction's writes.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn get<'k>(&self, key: impl Borrow<K::Ref<'k>>) -> Result<Option<Guard<V>>> {
        let bytes =
            bounds::with_key::<K, _>(key.borrow(), |key| self.untyped.get_with(key, |value| Bytes::from(value)))?;
        self.guard(bytes)
    }

    /// Hands the value of a key to `f` without copying it.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn get_with<'k, R>(&self, key: impl Borrow<K::Ref<'k>>, f: impl FnOnce(V::View<'_>) -> R) -> Result<Option<R>> {
        let read = |value: &[u8]| decode::<V>(value, self.untyped.name(), "values").map(f);
        bounds::with_key::<K, _>(key.borrow(), |key| self.untyped.get_with(key, read))?.transpose()
    }

    /// Sets the value of a key and returns the one it had.
    ///
    /// # Errors
    /// [`Error::KeyTooLong`], [`Error::ValueTooLong`], and what reading and writing meet.
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

    /// Sets the value of a key without looking at what it had: faster than [`Table::insert`].
    ///
    /// # Errors
    /// As [`Table::insert`].
    pub fn put<'k, 'v>(&mut self, key: impl Borrow<K::Ref<'k>>, value: impl Borrow<V::Ref<'v>>) -> Result<()> {
        bounds::with_key::<K, _>(key.borrow(), |key| {
            bounds::with_value::<V, _>(value.borrow(), |value| self.untyped.put(key, value))
        })
    }

    /// Removes a key and returns the value it had.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn remove<'k>(&mut self, key: impl Borrow<K::Ref<'k>>) -> Result<Option<Guard<V>>> {
        let old = bounds::with_key::<K, _>(key.borrow(), |key| self.untyped.remove(key))?;
        self.guard(old)
    }

    /// The entry of a key, to read and then write it: see [`Entry`].
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn entry<'k>(&mut self, key: impl Borrow<K::Ref<'k>>) -> Result<Entry<'_, 't, K, V>> {
        let mut bytes = Vec::new();
        K::encode(key.borrow(), &mut bytes);
        let value = self.untyped.get_with(&bytes, |value| Bytes::from(value))?;
        let value = self.guard(value)?;
        Ok(Entry::new(self, bytes, value))
    }

    /// Removes and returns the first entry.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn pop_first(&mut self) -> Result<Option<(Guard<K>, Guard<V>)>> {
        let first = self.iter().next().transpose()?;
        self.pop(first)
    }

    /// Removes and returns the last entry.
    ///
    /// # Errors
    /// A page that cannot be read.
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

    /// Keeps the entries that `keep` says yes to and removes the others.
    ///
    /// # Errors
    /// A page that cannot be read; nothing is removed then.
    pub fn retain(&mut self, mut keep: impl FnMut(K::View<'_>, V::View<'_>) -> bool) -> Result<()> {
        let mut gone = Vec::new();
        for entry in self.iter() {
            let (key, value) = entry?;
            if !keep(key.value(), value.value()) {
                gone.push(key);
            }
        }
        gone.iter().try_for_each(|key| self.untyped.delete(key.bytes()))
    }

    /// Removes every key of a range, however many there are: whole subtrees are unlinked and freed in the background.
    pub fn remove_range<'k, Q: Borrow<K::Ref<'k>>>(&mut self, range: impl RangeBounds<Q>) {
        self.untyped.clear(bounds::encode::<K, Q>(&range));
    }

    /// The entries of a key range, as `"a".."m"`, with this transaction's writes.
    pub fn range<'k, Q: Borrow<K::Ref<'k>>>(&self, range: impl RangeBounds<Q>) -> Range<'_, K, V> {
        Range::new(self.untyped.cursor(bounds::encode::<K, Q>(&range)), self.untyped.state.name.clone())
    }

    /// All entries, with this transaction's writes.
    pub fn iter(&self) -> Range<'_, K, V> {
        let all = self.untyped.cursor((Bound::Unbounded, Bound::Unbounded));
        Range::new(all, self.untyped.state.name.clone())
    }

    /// The first entry.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn first(&self) -> Result<Option<(Guard<K>, Guard<V>)>> {
        self.iter().next().transpose()
    }

    /// The last entry.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn last(&self) -> Result<Option<(Guard<K>, Guard<V>)>> {
        self.iter().next_back().transpose()
    }

    /// How many entries there are, with this transaction's writes. Costs a look at each key written since the last
    /// commit.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn len(&self) -> Result<u64> {
        self.untyped.len()
    }

    /// True if there is no entry.
    ///
    /// # Errors
    /// A page that cannot be read.
    pub fn is_empty(&self) -> Result<bool> {
        self.untyped.is_empty()
    }

    /// The same table without its types.
    pub fn untyped(&mut self) -> &mut UntypedTable<'t> {
        &mut self.untyped
    }
}

impl<K: PrefixKey, V: Value> Table<'_, K, V> {
    /// The entries whose keys begin with `prefix`, with this transaction's writes.
    pub fn prefix<'k>(&self, prefix: impl Borrow<K::Ref<'k>>) -> Range<'_, K, V> {
        let mut bytes = Vec::new();
        K::encode(prefix.borrow(), &mut bytes);
        Range::new(self.untyped.cursor(bounds::prefix(&bytes)), self.untyped.state.name.clone())
    }
}

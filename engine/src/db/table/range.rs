//! Iterators over a table, in key order, from both ends. They stop at the first error.

use super::bytes::Bytes;
use super::guard::{Guard, decode};
use crate::base::Result;
use crate::db::types::{Key, Value};
use crate::txn::{Cursor, Engine, large};
use std::marker::PhantomData;
use std::sync::Arc;

/// The entries of a key range, untyped.
///
/// ```
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// # let db = duramen::Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
/// # tx.commit()?;
/// let trees = db.begin_read()?.open_untyped("trees")?;
/// let (last, _) = trees.range(..).next_back().transpose()?.ok_or("no trees")?;
/// assert_eq!(last, b"yew");
/// for entry in trees.range(..b"m".as_slice()) {
///     let (name, years) = entry?;
///     assert_eq!((name.as_slice(), years.as_slice()), (b"elm".as_slice(), 400u64.to_be_bytes().as_slice()));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct UntypedRange<'t> {
    engine: &'t Engine,
    cursor: Cursor<'t>,
    failed: bool,
}

impl<'t> UntypedRange<'t> {
    pub(crate) fn new(engine: &'t Engine, cursor: Cursor<'t>) -> UntypedRange<'t> {
        UntypedRange { engine, cursor, failed: false }
    }

    /// Calls `f` with the next entry, without copying it. Returns `None` at the end. This is the fastest way to scan.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_untyped("trees")?;
    /// let (mut all, mut bytes) = (trees.range(..), 0);
    /// while let Some(len) = all.next_with(|key, value| key.len() + value.len())? {
    ///     bytes += len;
    /// }
    /// assert_eq!(bytes, 3 * (3 + 8));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page, after which the iterator ends.
    #[inline]
    pub fn next_with<R>(&mut self, f: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        self.step(false, f).transpose()
    }

    /// Calls `f` with the next key. It skips the value, and does not read a large one. Returns `None` at the end.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_untyped("trees")?;
    /// assert_eq!(trees.range(b"f".as_slice()..).next_key_with(|key| key.len())?, Some(3));
    /// assert_eq!(trees.range(b"z".as_slice()..).next_key_with(|key| key.len())?, None);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page of the tree, after which the iterator ends.
    pub fn next_key_with<R>(&mut self, f: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        if self.failed {
            return Ok(None);
        }
        let entry = self.cursor.next();
        self.failed = entry.is_err();
        Ok(entry?.map(|(key, _)| f(key)))
    }

    #[inline]
    pub(crate) fn step<R>(&mut self, back: bool, f: impl FnOnce(&[u8], &[u8]) -> R) -> Option<Result<R>> {
        if self.failed {
            return None;
        }
        let entry = self.advance(back, f).transpose();
        self.failed = matches!(entry, Some(Err(_)));
        entry
    }

    #[inline]
    fn advance<R>(&mut self, back: bool, f: impl FnOnce(&[u8], &[u8]) -> R) -> Result<Option<R>> {
        let entry = if back { self.cursor.next_back()? } else { self.cursor.next()? };
        let Some((key, record)) = entry else { return Ok(None) };
        if record.large {
            return Ok(Some(f(key, &large::read(self.engine, record.bytes)?)));
        }
        Ok(Some(f(key, record.bytes)))
    }
}

impl Iterator for UntypedRange<'_> {
    type Item = Result<(Vec<u8>, Vec<u8>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(false, |key, value| (key.to_vec(), value.to_vec()))
    }
}

impl DoubleEndedIterator for UntypedRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(true, |key, value| (key.to_vec(), value.to_vec()))
    }
}

/// The entries of a key range, in key order. [`Iterator::rev`] reverses the order.
///
/// ```
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// # let db = duramen::Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
/// # tx.commit()?;
/// let trees = db.begin_read()?.open_table(TREES)?;
/// let mut oldest_first = Vec::new();
/// for entry in trees.iter().rev() {
///     let (name, years) = entry?;
///     oldest_first.push((name.value().to_owned(), years.value()));
/// }
/// assert_eq!(oldest_first[0], ("yew".to_owned(), 3000));
/// # Ok::<(), duramen::Error>(())
/// ```
pub struct Range<'t, K: Key, V: Value> {
    untyped: UntypedRange<'t>,
    table: Arc<str>,
    of: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value> Range<'t, K, V> {
    pub(crate) fn new(untyped: UntypedRange<'t>, table: Arc<str>) -> Range<'t, K, V> {
        Range { untyped, table, of: PhantomData }
    }

    /// Calls `f` with the next entry, without copying it. Returns `None` at the end. This is the fastest way to scan.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
    /// # tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// let (mut old, mut letters) = (trees.range("f"..), 0);
    /// while let Some(more) = old.next_with(|name, years| if years > 500 { name.len() } else { 0 })? {
    ///     letters += more;
    /// }
    /// assert_eq!(letters, 6, "of the oak and the yew");
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// An error of reading a page, after which the iterator ends. [`Error::TableState`](crate::Error::TableState) if
    /// the bytes of an entry are not of its type; the iterator continues after it.
    #[inline]
    pub fn next_with<R>(&mut self, f: impl FnOnce(K::View<'_>, V::View<'_>) -> R) -> Result<Option<R>> {
        let table = &self.table;
        let entry = self
            .untyped
            .next_with(|key, value| Ok(f(decode::<K>(key, table, "keys")?, decode::<V>(value, table, "values")?)))?;
        entry.transpose()
    }

    fn step(&mut self, back: bool) -> Option<Result<(Guard<K>, Guard<V>)>> {
        let entry = self.untyped.step(back, |key, value| (Bytes::from(key), Bytes::from(value)))?;
        Some(entry.and_then(|(key, value)| {
            Ok((Guard::new(key, &self.table, "keys")?, Guard::new(value, &self.table, "values")?))
        }))
    }
}

impl<K: Key, V: Value> Iterator for Range<'_, K, V> {
    type Item = Result<(Guard<K>, Guard<V>)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step(false)
    }
}

impl<K: Key, V: Value> DoubleEndedIterator for Range<'_, K, V> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(true)
    }
}

//! Typed tables in a snapshot. They encode keys and decode values; the untyped table reads.

use super::bounds;
use super::bytes::Bytes;
use super::guard::{Guard, decode};
use super::keys::Keys;
use super::range::Range;
use super::read_only_untyped::ReadOnlyUntypedTable;
use crate::base::Result;
use crate::db::types::{Key, PrefixKey, Value};
use crate::txn::{Cursor, ReadView};
use std::borrow::Borrow;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

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
    pub(in crate::db) untyped: ReadOnlyUntypedTable,
    pub(in crate::db) of: PhantomData<fn() -> (K, V)>,
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

    /// True if the table has the key. It does not read a large value.
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
    /// An error of reading a page of the tree.
    pub fn contains_key<'k>(&self, key: impl Borrow<K::Ref<'k>>) -> Result<bool> {
        bounds::with_key::<K, _>(key.borrow(), |key| self.untyped.contains_key(key))
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
        Keys::new(Cursor::new(engine, *tree, ReadView::Snapshot(snapshot), lower, upper), self.untyped.name.clone())
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

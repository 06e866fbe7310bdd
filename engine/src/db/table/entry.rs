//! [`Entry`]: the entry of one key, to read and then write it.

use super::Table;
use super::guard::Guard;
use crate::base::Result;
use crate::db::types::{Key, Value};
use std::borrow::Borrow;

/// The entry of a key in a writing transaction. The key may exist or not.
///
/// ```
/// # fn main() -> duramen::Result<()> {
/// use duramen::{Database, TableDef};
/// const COUNTS: TableDef<&str, u64> = TableDef::new("counts");
/// let db = Database::in_memory()?;
/// let tx = db.begin_write()?;
/// {
///     let mut counts = tx.open_table(COUNTS)?;
///     for word in ["oak", "elm", "oak"] {
///         let entry = counts.entry(word)?;
///         let seen = entry.value().unwrap_or(0);
///         entry.insert(seen + 1)?;
///     }
///     assert_eq!(counts.get("oak")?.unwrap().value(), 2);
/// }
/// tx.commit()?;
/// # Ok(())
/// # }
/// ```
pub struct Entry<'a, 't, K: Key, V: Value> {
    table: &'a mut Table<'t, K, V>,
    key: Vec<u8>,
    value: Option<Guard<V>>,
}

impl<'a, 't, K: Key, V: Value> Entry<'a, 't, K, V> {
    pub(crate) fn new(table: &'a mut Table<'t, K, V>, key: Vec<u8>, value: Option<Guard<V>>) -> Self {
        Entry { table, key, value }
    }

    /// The value of the key, if the key exists.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// assert_eq!(trees.entry("oak")?.value(), Some(700));
    /// assert_eq!(trees.entry("elm")?.value(), None);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn value(&self) -> Option<V::View<'_>> {
        self.value.as_ref().map(Guard::value)
    }

    /// True if the key exists.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// assert!(trees.entry("oak")?.is_occupied());
    /// assert!(!trees.entry("elm")?.is_occupied());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn is_occupied(&self) -> bool {
        self.value.is_some()
    }

    /// Sets the value.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// let oak = trees.entry("oak")?;
    /// let older = oak.value().unwrap_or(0) + 1;
    /// oak.insert(older)?;
    /// assert_eq!(trees.get("oak")?.map(|years| years.value()), Some(1));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Table::insert`].
    pub fn insert<'v>(self, value: impl Borrow<V::Ref<'v>>) -> Result<()> {
        let mut bytes = Vec::new();
        V::encode(value.borrow(), &mut bytes);
        self.table.untyped.put(&self.key, &bytes)
    }

    /// Sets the value if the key does not exist. Returns true if it was set.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// assert!(trees.entry("oak")?.or_insert(700)?);
    /// assert!(!trees.entry("oak")?.or_insert(1)?, "the key exists and keeps its value");
    /// assert_eq!(trees.get("oak")?.map(|years| years.value()), Some(700));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Table::insert`].
    pub fn or_insert<'v>(self, value: impl Borrow<V::Ref<'v>>) -> Result<bool> {
        if self.is_occupied() {
            return Ok(false);
        }
        self.insert(value).map(|()| true)
    }

    /// Removes the key and returns its value.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// let oak = trees.entry("oak")?;
    /// if oak.value().is_some_and(|years| years > 500) {
    ///     oak.remove()?;
    /// }
    /// assert!(trees.is_empty()?);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Table::remove`].
    pub fn remove(self) -> Result<Option<Guard<V>>> {
        self.table.untyped.delete(&self.key)?;
        Ok(self.value)
    }
}

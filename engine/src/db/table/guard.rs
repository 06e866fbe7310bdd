//! [`Guard`]: a key or value that was read, copied out of its page, with its type.

use super::bytes::Bytes;
use crate::base::{Error, Result};
use crate::db::types::Value;
use std::fmt;
use std::marker::PhantomData;

/// An owned key or value of type `T`. [`Guard::value`] decodes it.
///
/// ```
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// # let db = duramen::Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # for (name, years) in [("elm", 400), ("oak", 700), ("yew", 3000)] { tx.open_table(TREES)?.put(name, years)?; }
/// # tx.commit()?;
/// let oak = db.begin_read()?.open_table(TREES)?.get("oak")?; // outlives table and transaction
/// assert_eq!(oak.map(|years| years.value()), Some(700));
/// # Ok::<(), duramen::Error>(())
/// ```
pub struct Guard<T: Value> {
    bytes: Bytes,
    of: PhantomData<fn() -> T>,
}

impl<T: Value> Guard<T> {
    /// Checks that the bytes are the encoding of a `T`, so that [`Guard::value`] cannot fail.
    pub(crate) fn new(bytes: Bytes, table: &str, part: &'static str) -> Result<Guard<T>> {
        decode::<T>(&bytes, table, part)?;
        Ok(Guard { bytes, of: PhantomData })
    }

    /// The decoded key or value.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, &str> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", "Quercus robur")?;
    /// let name = trees.get("oak")?.unwrap();
    /// assert_eq!(name.value().split(' ').next(), Some("Quercus"));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn value(&self) -> T::View<'_> {
        match T::decode(&self.bytes) {
            Ok(value) => value,
            Err(what) => unreachable!("the bytes were checked when the guard was made: {what}"),
        }
    }

    /// The encoded bytes.
    ///
    /// ```
    /// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
    /// # let db = duramen::Database::in_memory()?;
    /// # let tx = db.begin_write()?;
    /// # let mut trees = tx.open_table(TREES)?;
    /// trees.put("oak", 700)?;
    /// assert_eq!(trees.get("oak")?.unwrap().bytes(), 700u64.to_be_bytes());
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl<T: Value> fmt::Debug for Guard<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.bytes).finish()
    }
}

/// Decodes a key or value. If the bytes are not of its type, the error names the table.
pub(crate) fn decode<'a, T: Value>(bytes: &'a [u8], table: &str, part: &'static str) -> Result<T::View<'a>> {
    T::decode(bytes).map_err(|what| Error::TableState {
        table: table.to_owned(),
        why: format!("an entry has {part} that are not of type {}: {what}", T::type_name()),
    })
}

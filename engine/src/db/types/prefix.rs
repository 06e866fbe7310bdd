//! [`PrefixKey`]: key types that have prefixes, byte strings and text.

use super::value::Key;

/// A [`Key`] that is encoded as its own bytes, so that all keys with a prefix are in one range.
///
/// ```
/// use duramen::db::types::PrefixKey;
/// use duramen::{ReadOnlyTable, Result};
///
/// fn count_under<'k, K: PrefixKey>(table: &ReadOnlyTable<K, u64>, start: K::Ref<'k>) -> Result<usize> {
///     table.prefix(start).try_fold(0, |count, entry| entry.map(|_| count + 1))
/// }
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// # let db = duramen::Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # for name in ["oak", "oleaster", "yew"] { tx.open_table(TREES)?.put(name, 0)?; }
/// # tx.commit()?;
/// let trees = db.begin_read()?.open_table(TREES)?;
/// assert_eq!(count_under(&trees, "o")?, 2);
/// # Ok::<(), duramen::Error>(())
/// ```
pub trait PrefixKey: Key {}

impl PrefixKey for &str {}
impl PrefixKey for String {}
impl PrefixKey for &[u8] {}
impl PrefixKey for Vec<u8> {}

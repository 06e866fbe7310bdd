//! Writes sorted entries to a table: to a new table in one commit, to an existing one in batches.

use crate::failure::{Failure, Result};
use crate::progress::Meter;
use crate::sort::Pair;
use duramen::db::WriteTransaction;
use duramen::{Database, Durability, TableOptions};

/// A table to be created.
pub(super) struct TableSpec<'a> {
    pub(super) name: &'a str,
    pub(super) key_type: &'a str,
    pub(super) value_type: &'a str,
    pub(super) options: TableOptions,
    /// It is the copy of a table: of its entries only the lengths are checked.
    pub(super) is_copy: bool,
    /// The first key that the table may assign. 0: none.
    pub(super) next_key: Option<u64>,
    /// How full its pages are, from 0 to 1.
    pub(super) fill: f32,
}

/// Creates a table with `entries`, or nothing if something fails. Returns the number of entries.
pub(super) fn bulk(
    db: &Database,
    new: &TableSpec<'_>,
    entries: impl Iterator<Item = Result<Pair>>,
    meter: &mut Meter,
) -> Result<u64> {
    let tx = db.begin_write()?;
    let begin = if new.is_copy { WriteTransaction::bulk_copy } else { WriteTransaction::bulk_load };
    let mut table = begin(&tx, new.name, new.key_type, new.value_type, new.options, new.fill)?;
    for (entry, count) in entries.zip(1..) {
        let (key, value) = entry?;
        table.push(&key, &value)?;
        if Meter::is_due(count) {
            meter.show(count, String::new);
        }
    }
    if let Some(next) = new.next_key {
        table.skip_keys(next);
    }
    let count = table.finish()?;
    tx.commit()?;
    Ok(count)
}

/// The result of [`batches`].
#[derive(Default)]
pub(super) struct LoadTotals {
    pub(super) entries: u64,
    pub(super) commits: u64,
}

/// Puts `entries` into the table `name`, `batch` entries a commit. The entries are durable after the next checkpoint or
/// after the database is closed. If a commit fails, the earlier ones stay, and the error says so.
pub(super) fn batches(
    db: &Database,
    name: &str,
    batch: u32,
    entries: impl Iterator<Item = Result<Pair>>,
    meter: &mut Meter,
) -> Result<LoadTotals> {
    let mut entries = entries.peekable();
    let mut written = LoadTotals::default();
    while entries.peek().is_some() {
        let batch = entries.by_ref().take(batch as usize);
        written.entries += match commit(db, name, batch) {
            Err(cause) if written.commits > 0 => {
                let (written, table, cause) = (written.entries, name.to_owned(), Box::new(cause));
                return Err(Failure::Partly { written, table, cause });
            }
            count => count?,
        };
        written.commits += 1;
        meter.show(written.entries, String::new);
    }
    Ok(written)
}

/// Puts `entries` into the table `name` in one commit. Returns their number.
fn commit(db: &Database, name: &str, entries: impl Iterator<Item = Result<Pair>>) -> Result<u64> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::None);
    let mut count = 0;
    {
        let mut table = tx.open_untyped(name)?;
        for entry in entries {
            let (key, value) = entry?;
            table.put(&key, &value)?;
            count += 1;
        }
    }
    tx.commit()?;
    Ok(count)
}

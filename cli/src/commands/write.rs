//! Puts sorted entries into a table: into a new one all at once, into one that is there in batches.

use crate::failure::Result;
use crate::progress::Meter;
use crate::sort::Pair;
use duramen::{Database, Durability, TableOptions};

/// How often the meter is told, in entries.
const STEP: u64 = 1024;

/// A table to be made.
pub(super) struct NewTable<'a> {
    pub(super) name: &'a str,
    pub(super) key_type: &'a str,
    pub(super) value_type: &'a str,
    pub(super) options: TableOptions,
    /// How full its pages are made, a part of 1.
    pub(super) fill: f32,
}

/// Makes a table of `entries`, or nothing if something fails; gives their number.
pub(super) fn bulk(
    db: &Database,
    new: &NewTable<'_>,
    entries: impl Iterator<Item = Result<Pair>>,
    meter: &mut Meter,
) -> Result<u64> {
    let tx = db.begin_write()?;
    let mut table = tx.bulk_load(new.name, new.key_type, new.value_type, new.options, new.fill)?;
    for (entry, count) in entries.zip(1..) {
        let (key, value) = entry?;
        table.push(&key, &value)?;
        if count % STEP == 0 {
            meter.show(count, String::new);
        }
    }
    let count = table.finish()?;
    tx.commit()?;
    Ok(count)
}

/// Puts `entries` into the table `name`, `batch` at a time; gives their number. What is written is durable only after
/// the database is closed, or the next checkpoint.
pub(super) fn batches(
    db: &Database,
    name: &str,
    batch: u32,
    entries: impl Iterator<Item = Result<Pair>>,
    meter: &mut Meter,
) -> Result<u64> {
    let mut entries = entries.peekable();
    let mut count = 0;
    while entries.peek().is_some() {
        let mut tx = db.begin_write()?;
        tx.set_durability(Durability::None);
        {
            let mut table = tx.open_untyped(name)?;
            for entry in entries.by_ref().take(batch as usize) {
                let (key, value) = entry?;
                table.put(&key, &value)?;
                count += 1;
            }
        }
        tx.commit()?;
        meter.show(count, String::new);
    }
    Ok(count)
}

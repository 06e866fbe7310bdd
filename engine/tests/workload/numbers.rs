//! A table of numbers, for tests that only count the entries that are left.

use duramen::{Database, Error, Result, TableDef};

pub(crate) const TABLE: TableDef<u64, u64> = TableDef::new("t");

/// How many keys the table has; none where there is no table.
pub(crate) fn keys(db: &Database) -> Result<u64> {
    match db.begin_read()?.open_table(TABLE) {
        Err(Error::NoTable { .. }) => Ok(0),
        table => Ok(table?.len()),
    }
}

//! `drop`: removes a table.

use super::open;
use crate::args::{DropTable, WriteOptions};
use crate::failure::{Completion, Result};
use duramen::Error;

/// Removes the table and its entries. If there is no such table, this is an error.
pub(super) fn run(args: &DropTable) -> Result<Completion> {
    let db = open::writing(&args.database, WriteOptions::default())?;
    let tx = db.begin_write()?;
    if !tx.drop_table(&args.table)? {
        return Err(Error::NoTable { table: args.table.clone() }.into());
    }
    tx.commit()?;
    open::close(db)?;
    Ok(Completion::Done)
}

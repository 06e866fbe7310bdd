//! `drop`: removes a table.

use super::open;
use crate::args::DropTable;
use crate::failure::{Completion, Result};
use duramen::Error;

/// Removes the table with all that is in it; that it is not there is an error, as everywhere.
pub(super) fn run(args: &DropTable) -> Result<Completion> {
    let db = open::writing(&args.database)?;
    let tx = db.begin_write()?;
    if !tx.drop_table(&args.table)? {
        return Err(Error::NoTable { table: args.table.clone() }.into());
    }
    tx.commit()?;
    open::close(db)?;
    Ok(Completion::Done)
}

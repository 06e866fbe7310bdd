//! `rename`: renames a table.

use super::open;
use crate::args::{Rename, WriteOptions};
use crate::failure::{Completion, Result};

/// Renames the table.
pub(super) fn run(args: &Rename) -> Result<Completion> {
    let db = open::writing(&args.database, WriteOptions::default())?;
    let tx = db.begin_write()?;
    tx.rename_table(&args.from, &args.to)?;
    tx.commit()?;
    open::close(db)?;
    Ok(Completion::Done)
}

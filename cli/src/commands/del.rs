//! `del`: removes the entries of some keys, or of a key range.

use super::bounds::Bounds;
use super::open;
use crate::args::{Del, WriteOptions};
use crate::failure::{Completion, Failure, Result};
use crate::typed::Half;
use duramen::db::UntypedTable;

/// Removes the keys in one commit. Returns [`Completion::NotFound`] if one of the keys did not exist, or if there was
/// no key in the range.
pub(super) fn run(args: &Del) -> Result<Completion> {
    if args.keys.is_empty() && args.range.is_whole() {
        let why = "no keys are given: name the keys to remove, or a range with --from, --to or --prefix";
        return Err(Failure::Usage(why.to_owned()));
    }
    let db = open::writing(&args.database, WriteOptions::default())?;
    let tx = db.begin_write()?;
    let found = {
        let mut table = tx.open_untyped(&args.table)?;
        let (keys, _) = open::halves(&table.info(), args.hex);
        if args.keys.is_empty() { range(args, &mut table, &keys)? } else { each(args, &mut table, &keys)? }
    };
    tx.commit()?;
    open::close(db)?;
    Ok(found)
}

fn each(args: &Del, table: &mut UntypedTable<'_>, keys: &Half) -> Result<Completion> {
    let mut found = Completion::Done;
    for key in &args.keys {
        if table.remove(&keys.encode(key.as_encoded_bytes())?)?.is_none() {
            found = Completion::NotFound;
        }
    }
    Ok(found)
}

fn range(args: &Del, table: &mut UntypedTable<'_>, keys: &Half) -> Result<Completion> {
    let bounds = Bounds::new(&args.range, keys)?;
    if table.range(bounds.range()).next_with(|_, _| ())?.is_none() {
        return Ok(Completion::NotFound);
    }
    table.remove_range(bounds.range());
    Ok(Completion::Done)
}

//! `del`: removes the entries of some keys, or of a key range.

use super::bounds::StoredRange;
use super::open;
use crate::args::{Del, WriteOptions};
use crate::failure::{Completion, Failure, Result};
use crate::typed::TextForm;
use duramen::db::UntypedTable;
use std::collections::HashSet;

/// Removes the keys in one commit. Returns [`Completion::NotFound`] if one of the keys did not exist, or if there was
/// no key in the range.
pub(super) fn run(args: &Del) -> Result<Completion> {
    if args.keys.is_empty() && args.range.is_whole() {
        let why = "no keys are given: name the keys to remove, or a range with --from, --to or --prefix";
        return Err(Failure::Usage(why.to_owned()));
    }
    // An empty prefix is more often an unset variable of a script than a wish to remove all entries.
    if args.range.prefix.as_ref().is_some_and(|prefix| prefix.is_empty()) {
        let why = "every key begins with an empty --prefix: to remove all entries use drop, which removes the table, \
                   or give the lowest key with --from";
        return Err(Failure::Usage(why.to_owned()));
    }
    let db = open::writing(&args.database, WriteOptions::default())?;
    let tx = db.begin_write()?;
    let found = {
        let mut table = tx.open_untyped(&args.table)?;
        let (keys, _) = open::text_forms(&table.info(), args.hex);
        if args.keys.is_empty() { range(args, &mut table, &keys)? } else { each(args, &mut table, &keys)? }
    };
    tx.commit()?;
    open::close(db)?;
    Ok(found)
}

fn each(args: &Del, table: &mut UntypedTable<'_>, keys: &TextForm) -> Result<Completion> {
    let (mut found, mut removed) = (Completion::Done, HashSet::new());
    for key in &args.keys {
        let key = keys.encode(key.as_encoded_bytes())?;
        // The value is not read: it may be damaged, or longer than the memory.
        if table.contains_key(&key)? {
            table.delete(&key)?;
            // The key may be given again.
            removed.insert(key);
        } else if !removed.contains(&key) {
            found = Completion::NotFound;
        }
    }
    Ok(found)
}

fn range(args: &Del, table: &mut UntypedTable<'_>, keys: &TextForm) -> Result<Completion> {
    let bounds = StoredRange::new(&args.range, keys)?;
    if table.range(bounds.range()).next_key_with(|_| ())?.is_none() {
        return Ok(Completion::NotFound);
    }
    table.remove_range(bounds.range());
    Ok(Completion::Done)
}

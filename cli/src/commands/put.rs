//! `put`: writes one entry. Its value is an argument, or standard input as it is.

use super::open::{WriteTarget, options};
use crate::args::{Put, WriteOptions};
use crate::failure::{Completion, Failure, Result};
use crate::input;
use crate::typed::TextForm;

/// Writes the entry. Creates the database and the table if they do not exist.
pub(super) fn run(args: &Put) -> Result<Completion> {
    // Standard input is read before the database is opened, because no other process can use an open database.
    let text = args.value.as_deref().map_or_else(|| Ok(Vec::new()), |value| input::value(value, args.hex))?;
    let target = WriteTarget::open(&args.database, WriteOptions::default(), &args.table, &args.new_table)?;
    if args.value.is_none() {
        let advice = |why| Failure::Usage(format!("{why}: give a value after the key, or \"\" for an empty one"));
        target.require_value().map_err(advice)?;
    }
    let (keys, mut values) = target.text_forms(&args.new_table, args.hex)?;
    if args.value.is_none() && target.table.is_none() && args.new_table.value_type.is_none() {
        values = TextForm::new("()".parse()?, args.hex);
    }
    let key = keys.encode(args.key.as_encoded_bytes())?;
    let value = values.encode(&text)?;
    let tx = target.db().begin_write()?;
    {
        let mut table = match &target.table {
            Some(table) => tx.open_untyped(&table.name)?,
            None => {
                tx.create_untyped(&args.table, &keys.type_name(), &values.type_name(), options(&args.new_table)?)?
            }
        };
        table.put(&key, &value)?;
    }
    tx.commit()?;
    target.close()?;
    Ok(Completion::Done)
}

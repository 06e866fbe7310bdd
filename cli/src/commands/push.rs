//! `push`: inserts values under the next keys of a table. One of the values can be standard input as it is.

use super::open::{WriteTarget, options, text_forms};
use crate::args::{self, Push, TextOptions, WriteOptions};
use crate::failure::{Completion, Failure, Result};
use crate::input;
use crate::output::Output;
use crate::typed::TextForm;
use duramen::{Error, TableOptions};

/// Writes the values and prints their keys. Creates the database and the table if they do not exist.
pub(super) fn run(args: &Push) -> Result<Completion> {
    if args.values.iter().filter(|value| *value == "-").count() > 1 {
        return Err(Failure::Usage("standard input can be one value only: give - once".to_owned()));
    }
    // Standard input is read before the database is opened, because no other process can use an open database.
    let texts: Vec<Vec<u8>> = args.values.iter().map(|value| input::value(value, args.hex)).collect::<Result<_>>()?;
    let (key_type, value_type) = (args.key_type.clone(), args.value_type.clone());
    let new = args::NewTable { key_type, value_type, ..args::NewTable::default() };
    let target = WriteTarget::open(&args.database, WriteOptions::default(), &args.table, &new)?;
    let (keys, values) = match &target.table {
        Some(table) => text_forms(table, args.hex),
        None => {
            let type_ = |given: &Option<_>, default: &str| given.clone().map_or_else(|| default.parse(), Ok);
            let (keys, values) = (type_(&args.key_type, "u64")?, type_(&args.value_type, "bytes")?);
            (TextForm::new(keys, args.hex), TextForm::new(values, args.hex))
        }
    };
    check(&target, &keys)?;
    let mut output = Output::new(TextOptions { null: false, hex: args.hex })?;
    let tx = target.db().begin_write()?;
    let mut assigned = Vec::new();
    {
        let mut table = match &target.table {
            Some(table) => tx.open_untyped(&table.name)?,
            None => {
                let options = TableOptions { auto_increment: true, ..options(&new)? };
                tx.create_untyped(&args.table, &keys.type_name(), &values.type_name(), options)?
            }
        };
        for text in &texts {
            assigned.push(table.push(&values.encode(text)?)?);
        }
    }
    tx.commit()?;
    target.close()?;
    assigned.iter().try_for_each(|key| output.value(&keys, key))?;
    output.finish().map(|()| Completion::Done)
}

/// Fails if an existing table does not assign keys, or if a new one cannot.
fn check(target: &WriteTarget, keys: &TextForm) -> Result<()> {
    match &target.table {
        Some(table) if table.next_key.is_none() => {
            let why =
                "it does not assign keys: only a table made by push, or by load or put with --auto-increment, does";
            Err(Error::TableState { table: table.name.clone(), why: why.to_owned() }.into())
        }
        None if !matches!(keys.type_name().as_str(), "u32" | "u64") => {
            let why = "assigned keys are numbers: --key-type must be u32 or u64";
            Err(Failure::Usage(why.to_owned()))
        }
        _ => Ok(()),
    }
}

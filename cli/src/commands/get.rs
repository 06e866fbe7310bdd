//! `get`: prints the value of one key.

use super::open;
use crate::args::Get;
use crate::failure::{Completion, Result};
use crate::output::Output;

/// Prints the value. Returns [`Completion::NotFound`] if the key does not exist.
pub(super) fn run(args: &Get) -> Result<Completion> {
    let db = open::reading(&args.database)?;
    let (table, keys, values) = open::table(&db, &args.table, args.text.hex)?;
    let Some(value) = table.get(&keys.encode(args.key.as_encoded_bytes())?)? else {
        return Ok(Completion::NotFound);
    };
    let mut output = Output::new(args.text)?;
    match args.raw {
        true => output.value_only(&values, &value)?,
        false => output.value(&values, &value)?,
    }
    output.finish().map(|()| Completion::Done)
}

//! `scan`: prints the entries of a table, or of a key range.

use super::bounds::StoredRange;
use super::losses::Losses;
use super::open;
use crate::args::Scan;
use crate::failure::{Completion, Failure, Result};
use crate::output::Output;
use duramen::db::{Salvaged, UntypedRange};
use std::io::Write;

/// Prints the entries or their number.
pub(super) fn run(args: &Scan) -> Result<Completion> {
    if args.skip_damaged {
        return salvage(args);
    }
    let db = open::reading(&args.database)?;
    let (table, keys, values) = open::table(&db, &args.table, args.text.hex)?;
    let bounds = StoredRange::new(&args.range, &keys)?;
    let mut output = Output::new(args.text)?;
    if args.count {
        output.count(match args.limit {
            None => table.count(bounds.range())?,
            Some(limit) => count(table.range(bounds.range()), limit)?,
        })?;
        return output.finish().map(|()| Completion::Done);
    }
    let mut range = table.range(bounds.range());
    let mut print = |key: &[u8], value: &[u8]| output.entry((&keys, key), (&values, value));
    let mut left = args.limit.unwrap_or(u64::MAX);
    while left > 0 {
        let printed = if args.reverse {
            range.next_back().transpose()?.map(|(key, value)| print(&key, &value))
        } else {
            range.next_with(&mut print)?
        };
        match printed {
            Some(printed) => printed?,
            None => break,
        }
        left -= 1;
    }
    output.finish().map(|()| Completion::Done)
}

/// The number of entries of a range, at most `limit`.
fn count(mut range: UntypedRange<'_>, limit: u64) -> Result<u64> {
    let mut count = 0;
    while count < limit && range.next_with(|_, _| ())?.is_some() {
        count += 1;
    }
    Ok(count)
}

/// Prints the readable entries or their number, and reports what cannot be read.
fn salvage(args: &Scan) -> Result<Completion> {
    let (db, damage) = open::damaged(&args.database)?;
    let mut losses = Losses::default();
    // An error here means that standard error is closed, and is ignored.
    let report = |line: &str| drop(writeln!(std::io::stderr(), "{line}"));
    damage.iter().for_each(|damage| report(&losses.damage(damage)));
    let (table, keys, values) = open::table(&db, &args.table, args.text.hex)?;
    let bounds = StoredRange::new(&args.range, &keys)?;
    let mut output = Output::new(args.text)?;
    let (info, limit, mut left) = (table.info(), args.limit.unwrap_or(u64::MAX), 0);
    let mut entries = table.salvage(bounds.range());
    // After the reader has closed standard output, the rest of the range is read and not printed, because damage to it
    // is still an error.
    let mut printed = Ok(());
    while left < limit {
        let print = |key: &[u8], value: &[u8]| {
            let is_printed = !args.count && printed.is_ok();
            if is_printed { output.entry((&keys, key), (&values, value)) } else { Ok(()) }
        };
        match entries.next_with(print)? {
            None => break,
            Some(Salvaged::Entry(result)) => {
                printed = printed.and(unless_closed(result)?);
                left += 1;
            }
            Some(Salvaged::Lost(lost)) => losses.range(&info, &lost).iter().for_each(|line| report(line)),
        }
    }
    let counted = if args.count { output.count(left) } else { Ok(()) };
    let printed = printed.and(unless_closed(counted.and_then(|()| output.finish()))?);
    let done = losses.end(report, left, None, "read")?;
    printed.map(|()| done)
}

/// Returns an error if printing failed, except if the reader has closed the output. Otherwise returns the result of
/// printing.
fn unless_closed(printed: Result<()>) -> Result<Result<()>> {
    match printed {
        Err(Failure::ClosedPipe) => Ok(Err(Failure::ClosedPipe)),
        other => other.map(Ok),
    }
}

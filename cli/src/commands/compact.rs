//! `compact`: rebuilds full pages and shrinks the file, in place or in a new file with another page store or page size.

use super::{open, plan};
use crate::args::{Compact, NewFile, PlanArgs};
use crate::failure::{Completion, Failure, Result};
use crate::messages::{DATABASE_TO_CONVERT, message};
use crate::progress::PhaseMeter;
use crate::report;
use duramen::Error;
use duramen::db::Strategy;
use serde::Serialize;
use std::time::Instant;

/// The summary of a compaction or a conversion.
#[derive(Serialize)]
struct Summary {
    entries: u64,
    before_bytes: u64,
    after_bytes: u64,
    seconds: f64,
}

/// Compacts or converts, and prints a summary.
pub(super) fn run(args: &Compact) -> Result<Completion> {
    let start = Instant::now();
    let before_bytes = open::disk_bytes(&args.database)?;
    let converts = args.store.is_some() || args.page_size.is_some();
    if converts && plan::is_given(&args.plan) {
        let why = "a conversion keeps the compression of each table; run compact again to change it";
        return Err(Failure::Usage(why.to_owned()));
    }
    let PlanArgs { table, strategy, compress, dictionary, .. } = &args.plan;
    if !table.is_empty() && strategy.is_none() && compress.is_none() && !dictionary {
        let why =
            "--table also needs --compress METHOD, --dictionary or --strategy; --strategy none decompresses the table";
        return Err(Failure::Usage(why.to_owned()));
    }
    let entries = if converts { convert(args)? } else { compact(args)? };
    let after_bytes = open::disk_bytes(&args.database)?;
    let seconds = start.elapsed().as_secs_f64();
    report::print(&Summary { entries, before_bytes, after_bytes, seconds }, args.report.format)?;
    Ok(Completion::Done)
}

/// Rebuilds the tables in the file. Returns the number of entries.
fn compact(args: &Compact) -> Result<u64> {
    let db = open::writing(&args.database, args.writing)?;
    let mut meter = PhaseMeter::new("compacting", args.database.quiet);
    let progress = |progress| meter.show(progress);
    let report = match plan::is_given(&args.plan) {
        true => db.compact_with(&plan::of(&args.plan, Strategy::All)?, progress),
        false => db.compact(progress),
    };
    drop(meter);
    // If a table is damaged, the others are rebuilt.
    let closed = open::close(db);
    let entries = report?.entries;
    closed?;
    Ok(entries)
}

/// Rebuilds the tables in a new file, which replaces the old one. Returns the number of entries.
fn convert(args: &Compact) -> Result<u64> {
    let Compact { store, page_size, delta, .. } = *args;
    let options = open::file_builder(&args.database, args.writing, NewFile { page_size, store, delta });
    let mut meter = PhaseMeter::new("converting", args.database.quiet);
    let converted = options.convert(&args.database.db, |progress| meter.show(progress));
    drop(meter);
    match converted {
        Err(Error::Full { path }) => {
            let why = "a conversion needs space for the old file and the new one; the database is unchanged";
            Err(open::no_space(&path, why))
        }
        Err(error @ Error::Option { option: DATABASE_TO_CONVERT, .. }) => {
            Err(Failure::Usage(format!("{}: use dump and restore", message(&error))))
        }
        converted => Ok(converted?.entries),
    }
}

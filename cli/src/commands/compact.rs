//! `compact`: rebuilds full pages and shrinks the file.

use super::open;
use crate::args::Compact;
use crate::failure::{Completion, Result};
use crate::progress::{Meter, Unit};
use crate::report;
use serde::Serialize;
use std::time::Instant;

/// What was done.
#[derive(Serialize)]
struct Summary {
    entries: u64,
    before_bytes: u64,
    after_bytes: u64,
    seconds: f64,
}

/// Compacts and prints a summary.
pub(super) fn run(args: &Compact) -> Result<Completion> {
    let start = Instant::now();
    let before_bytes = open::disk_bytes(&args.database)?;
    let db = open::writing(&args.database)?;
    let total = db.begin_read()?.tables()?.iter().map(|table| table.entries).sum();
    let mut meter = Meter::begin("compacting", Unit::Count("entries"), Some(total), args.progress.quiet);
    let entries = db.compact(|done| meter.show(done.entries, String::new))?.entries;
    drop(meter);
    open::close(db)?;
    let after_bytes = open::disk_bytes(&args.database)?;
    let seconds = start.elapsed().as_secs_f64();
    report::print(&Summary { entries, before_bytes, after_bytes, seconds }, args.report.format)?;
    Ok(Completion::Done)
}

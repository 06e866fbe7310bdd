//! The workload over key lists: inserts, point searches, scans and deletes of byte keys with each layout of the paper,
//! beside the standard library's `BTreeMap` in the same run. What the figures mean is in `docs/benchmarks/keys.md`.

mod args;
mod contestant;
mod data;
mod measure;
mod report;
mod sizes;

pub use args::{Args, DiskKind, Format, Layout, Layouts};
pub use data::Data;

use crate::Result;

/// Measures and prints.
///
/// # Errors
/// Options that make no sense, what the engine says, wrong answers.
pub fn run(args: &Args) -> Result<()> {
    args.check()?;
    let rows = report::rows(&measure::all(args)?);
    match args.format {
        Format::Table => println!("{}", report::tables(args, &rows)),
        Format::Json => println!("{}", report::json(args, &rows)?),
        Format::Csv => report::csv(args, &rows, std::io::stdout().lock())?,
    }
    Ok(())
}

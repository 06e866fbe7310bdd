//! The workload over key lists: inserts, point searches, scans and deletes of byte keys with each layout of the paper,
//! and with the `BTreeMap` of the standard library in the same run. `docs/benchmarks/keys.md` explains the results.

mod args;
mod comparing;
mod contestant;
mod data;
pub mod figures;
pub mod layouts;
mod made;
mod measure;
mod report;
mod sizes;

pub use crate::options::Format;
pub use args::{Args, DiskKind, Inner, Layout, Layouts};
pub use data::Data;
pub use made::Made;

use crate::Result;
use fastrand::Rng;

/// Measures the layouts and prints the results.
///
/// # Errors
/// Wrong options, errors of the engine, and wrong answers.
pub fn run(args: &Args) -> Result<()> {
    args.check()?;
    let mut rng = Rng::with_seed(args.seed);
    let keys = args.data.keys(args.n.unwrap_or(usize::MAX), &mut rng)?;
    let comparing = comparing::measure(&keys, &mut rng);
    let rows = report::rows(&measure::all(args, &keys, &mut rng)?, &comparing);
    match args.format {
        Format::Table => println!("{}", report::tables(args, &rows)),
        Format::Json => println!("{}", report::json(args, &rows)?),
        Format::Csv => report::csv(args, &rows, std::io::stdout().lock())?,
    }
    Ok(())
}

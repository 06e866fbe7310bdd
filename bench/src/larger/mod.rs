//! The workload `larger`: records that do not fit the cache. It loads and overwrites at random, reads, scans, reads
//! from a cold file, reads beside a writer, and does the same with everything in the cache. It runs on any store that
//! is a [`Contestant`]. `docs/benchmarks/larger.md` explains the results.

mod args;
mod cold;
mod report;
mod run;
mod steps;

pub use args::Args;

use crate::Result;
use crate::contest::{Contestant, Duramen, Entrant, in_turn};
use duramen::db::Compression;

/// A store that takes part, with its own page size.
pub fn entrant<C: Contestant>() -> Entrant<Args> {
    Entrant::new::<C>(run::run::<C>)
}

/// Duramen as the options say, with pages of 4 KiB, and with compressed pages.
pub fn duramen() -> [Entrant<Args>; 4] {
    let variant = |name, run| Entrant { name, run, ..entrant::<Duramen>() };
    [
        entrant::<Duramen>(),
        variant("duramen-4k", |args: &Args| {
            run::run::<Duramen>(&Args { page_size: Some(bytesize::ByteSize::kib(4)), ..args.clone() })
        }),
        variant("duramen-lz4", |args| run::run::<Duramen>(&Args { compress: Compression::Lz4, ..args.clone() })),
        variant("duramen-zstd", |args| run::run::<Duramen>(&Args { compress: Compression::Zstd(3), ..args.clone() })),
    ]
}

/// Measures the entrants that the options name, in turn, and prints the result. The process must have been started with
/// the options in `args`: it starts each run with the same options and [`Args::only`]. Entrants that cannot be measured
/// here are named on standard error.
///
/// # Errors
/// Errors of a contestant, wrong answers, and unknown names.
pub fn main(args: &Args, entrants: &[Entrant<Args>]) -> Result<()> {
    let known = |name: &String| {
        let names = || entrants.iter().map(|entrant| entrant.name).collect::<Vec<_>>().join(", ");
        entrants
            .iter()
            .find(|entrant| entrant.name == name)
            .ok_or_else(|| format!("{name:?} is not one of {}", names()))
    };
    if let Some(name) = &args.only {
        let entrant = known(name)?;
        return report::print_one(entrant.name, &(entrant.run)(args)?);
    }
    let chosen = match args.engines.is_empty() {
        true => entrants.iter().collect(),
        false => args.engines.iter().map(known).collect::<std::result::Result<Vec<_>, _>>()?,
    };
    let mut present = Vec::new();
    for entrant in chosen {
        match (entrant.missing)() {
            Some(why) => eprintln!("{} is skipped: {why}", entrant.name),
            None => present.push(entrant),
        }
    }
    if let Some(folder) = &args.svg {
        crate::options::make_folder(folder)?;
    }
    let figures = in_turn(&present, args.rounds)?;
    let results: Vec<_> = present.iter().map(|entrant| entrant.name).zip(&figures).collect();
    report::print(args, &results)
}

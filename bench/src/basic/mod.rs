//! The basic workload: load in random order, read, scan, overwrite, delete nine tenths, compact. It runs on any store
//! that is a [`Contestant`]. `docs/benchmarks/basic.md` explains the results.
//!
//! Each run of each contestant is a process of its own. It starts with a fresh heap, and its memory can be measured
//! separately.

mod args;
mod btreemap;
mod report;
mod run;

pub use args::{Args, KeySource};
pub use btreemap::Map;

use crate::Result;
use crate::contest::{Contestant, Duramen, Entrant, in_turn};

/// A store that takes part.
pub fn entrant<C: Contestant>() -> Entrant<Args> {
    Entrant::new::<C>(run::run::<C>)
}

/// Runs Duramen and the `BTreeMap` of the standard library in alternation.
///
/// # Errors
/// Errors of a contestant, and wrong answers.
pub fn beside_btreemap(args: &Args) -> Result<()> {
    main(args, &[entrant::<Duramen>(), entrant::<Map>()])
}

/// Measures Duramen, which is first, and another store, and prints the result. The process must have been started with
/// the options in `args`: it starts each run with the same options and [`Args::only`].
///
/// # Errors
/// Errors of a contestant, and wrong answers.
pub fn main(args: &Args, entrants: &[Entrant<Args>; 2]) -> Result<()> {
    if let Some(name) = &args.only {
        let known = entrants.iter().find(|entrant| entrant.name == name);
        let entrant = known.ok_or_else(|| format!("there is no contestant {name:?}"))?;
        return report::print_one(args.format, entrant.name, &(entrant.run)(args)?);
    }
    let [ours, theirs] = entrants;
    if let Some(why) = (theirs.missing)() {
        return Err(format!("{} cannot be measured: {why}", theirs.name).into());
    }
    let figures = in_turn(&[ours, theirs], args.repeat)?;
    report::print(args, [(ours.name, &figures[0]), (theirs.name, &figures[1])])
}

//! The basic workload: load in random order, read, scan, overwrite, delete nine tenths, compact. It runs on any store
//! that is a [`Contestant`]. `docs/benchmarks/basic.md` explains the results.
//!
//! Each run of each contestant is a process of its own. It starts with a fresh heap, and its memory can be measured
//! separately.

mod args;
mod btreemap;
mod contestant;
mod duramen;
mod figures;
mod memory;
mod report;
mod rounds;
mod run;
mod verify;

pub use args::{Args, DiskKind, Durability, Format, KeySource};
pub use btreemap::Map;
pub use contestant::{Config, Contestant, Reader, Writer};
pub use duramen::Duramen;
pub use figures::Figures;
pub use rounds::{Entrant, main};

use crate::Result;

/// Runs Duramen and the `BTreeMap` of the standard library in alternation.
///
/// # Errors
/// Errors of a contestant, and wrong answers.
pub fn beside_btreemap(args: &Args) -> Result<()> {
    main(args, &[Entrant::of::<Duramen>(), Entrant::of::<Map>()])
}

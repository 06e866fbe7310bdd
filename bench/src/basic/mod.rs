//! The basic workload: load in random order, read, scan, overwrite, delete nine tenths, compact; on any store that is
//! a [`Contestant`]. What the figures mean is in `docs/benchmarks/basic.md`.
//!
//! Each run of each contestant is a process of its own: it starts with a fresh heap, and what it keeps in memory can
//! be told from what the others kept.

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

/// Runs Duramen beside the standard library's `BTreeMap`.
///
/// # Errors
/// What a contestant says, wrong answers among it.
pub fn beside_btreemap(args: &Args) -> Result<()> {
    main(args, &[Entrant::of::<Duramen>(), Entrant::of::<Map>()])
}

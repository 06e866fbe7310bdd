//! `figures writes`: measures RocksDB and WiredTiger in all runs that `duramen-bench figures writes` draws.
//! `duramen-bench` decides what is drawn.

use crate::writes::Programs;
use clap::Args;
use duramen_bench::Result;
use duramen_bench::kept::Kept;
use duramen_bench::progress::Progress;
use duramen_bench::writes::figures::{Peer, PeerRun, peer_runs};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Measures RocksDB and WiredTiger for `duramen-bench figures writes --peers FILE`
#[derive(Args, Clone, Debug)]
pub(crate) struct Writes {
    /// The file that the results are written to, one JSON object a line
    #[arg(long, default_value = "peers.jsonl", value_name = "FILE")]
    out: PathBuf,
    /// Go on where an earlier call with the same --out was interrupted: do not measure again what is in it
    #[arg(long)]
    resume: bool,
    /// Where the stores' files are while they are measured
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    dir: PathBuf,
}

/// Measures what is not in the file yet, one run after the other. A database is populated once for all runs with the
/// same records, and each run changes a copy.
///
/// # Errors
/// Errors of the compiler, the stores and writing.
pub(crate) fn writes(args: &Writes) -> Result<()> {
    let programs = Programs::build([Peer::RocksDb, Peer::WiredTiger])?;
    let (mut kept, found) = Kept::begin(&args.out, args.resume)?;
    let mut runs = peer_runs();
    runs.retain(|run| !found.iter().any(|result| run.has(result)));
    let shapes: Vec<&[PeerRun]> = runs.chunk_by(has_the_same_records).collect();
    let mut progress = Progress::new(shapes.iter().flat_map(|shape| weights(shape)));
    for shape in shapes {
        let Some(first) = shape.first() else { continue };
        let populated = tempfile::tempdir_in(&args.dir)?;
        programs.populate(populated.path(), first)?;
        for (run, weight) in shape.iter().zip(weights(shape)) {
            let copy = copied(populated.path(), &args.dir)?;
            let result = serde_json::from_str(&programs.measure(copy.path(), run)?)?;
            kept.add(&result)?;
            progress.done(weight, run);
        }
    }
    println!("{}", args.out.display());
    Ok(())
}

fn has_the_same_records(run: &PeerRun, other: &PeerRun) -> bool {
    let records = |run: &PeerRun| (run.peer, run.stands_for, run.page_size, run.record_size);
    records(run) == records(other)
}

/// About how long each run takes. Populating is a part of the first one.
fn weights(shape: &[PeerRun]) -> impl Iterator<Item = f64> {
    shape.iter().enumerate().map(|(at, run)| {
        let leaves = (run.records * u64::from(run.record_size)) as f64 / 5000.0;
        let overwrites = 3.0 * leaves * leaves.ln();
        overwrites + if at == 0 { run.records as f64 / 2.0 } else { 0.0 }
    })
}

/// A copy of a folder of files, in `below`.
fn copied(folder: &Path, below: &Path) -> Result<TempDir> {
    let copy = tempfile::tempdir_in(below)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            std::fs::copy(entry.path(), copy.path().join(entry.file_name()))?;
        }
    }
    Ok(copy)
}

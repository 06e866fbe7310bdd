//! One run of one store: which step follows which, and when the store is closed and opened.

use super::args::{Args, Step};
use super::cold;
use super::steps::Steps;
use crate::Result;
use crate::contest::{Contestant, Durability, Figures, memory, timed};
use crate::size;

/// Runs the steps once.
///
/// # Errors
/// Errors of the store, and wrong answers.
pub(super) fn run<C: Contestant>(args: &Args) -> Result<Figures> {
    let folder = tempfile::Builder::new().prefix("duramen-larger-").tempdir_in(&args.dir)?;
    let folder = folder.path();
    let small = args.config(size::length(args.cache), Durability::None);
    let large = args.config(args.all_cached(), Durability::None);
    let has = |step| args.steps.contains(&step);
    let mut steps = Steps::new(args)?;
    let steps = &mut steps;

    let written = memory::written()?;
    let mut store = C::create(&small, folder)?;
    steps.load(&store)?;
    if has(Step::Overwrite) {
        steps.overwrite(&store)?;
    }
    steps.note_written(memory::written()? - written);
    steps.note("open_bytes", memory::allocated(folder)? as f64);
    steps.note("close_seconds", timed(|| store.close())?.as_secs_f64());
    steps.note("closed_bytes", memory::allocated(folder)? as f64);
    if [Step::Read, Step::Scan, Step::Threads, Step::Beside].into_iter().any(has) {
        store.open(&small)?;
        steps.warm(&store)?;
        if has(Step::Read) {
            steps.read(&store, "read", 1)?;
        }
        if has(Step::Scan) {
            steps.scan(&store, "scan")?;
        }
        if has(Step::Threads) {
            steps.read(&store, "threads", args.threads as usize)?;
        }
        if has(Step::Beside) {
            steps.beside(&store)?;
        }
        store.close()?;
    }
    if has(Step::Cold) {
        let seconds = in_order(folder)?;
        cold::forget(folder)?;
        store.open(&small)?;
        steps.cold_scan(&store, seconds)?;
        store.close()?;
    }
    if has(Step::Cached) {
        store.open(&large)?;
        steps.warm(&store)?;
        steps.read(&store, "cached_read", 1)?;
        steps.note_own_time();
        steps.scan(&store, "cached_scan")?;
        store.close()?;
    }
    if has(Step::Synced) {
        store.open(&args.config(args.all_cached(), Durability::Commit))?;
        steps.warm(&store)?;
        steps.synced(&store)?;
        store.close()?;
    }
    Ok(steps.done())
}

/// The seconds in which the system reads the files in order when it has none of them. The first time does not count:
/// a device can have a cache of its own.
fn in_order(folder: &std::path::Path) -> Result<f64> {
    let mut seconds = 0.0;
    for _ in 0..2 {
        cold::forget(folder)?;
        seconds = timed(|| cold::read_in_order(folder).map(drop))?.as_secs_f64();
    }
    Ok(seconds)
}

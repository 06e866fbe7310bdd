//! Timing, alone and on several threads.

use super::contestant::Contestant;
use super::figures::Figures;
use crate::Result;
use crate::numbers::index;
use indicatif::ProgressBar;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Calls `each` for every rank. The ranks are divided among the threads. Returns the time of the slowest thread.
/// The bar moves on after every `tick` ranks of a thread.
pub(crate) fn on_threads<C: Contestant>(
    store: &C,
    threads: usize,
    ranks: &[u32],
    tick: u64,
    bar: &ProgressBar,
    each: impl Fn(&mut C::Reader<'_>, usize) -> Result<()> + Sync,
) -> Result<Duration> {
    let threads = threads.clamp(1, ranks.len());
    let ready = Barrier::new(threads);
    let work = |part: &[u32]| -> Result<Duration> {
        let reader = store.reader();
        ready.wait();
        let mut reader = reader?;
        timed(|| {
            for ranks in part.chunks(index(tick.max(1))) {
                ranks.iter().try_for_each(|rank| each(&mut reader, *rank as usize))?;
                bar.inc(ranks.len() as u64);
            }
            Ok(())
        })
    };
    std::thread::scope(|scope| {
        let parts: Vec<&[u32]> = (0..threads).map(|i| share(ranks, i, threads)).collect();
        let threads: Vec<_> = parts.into_iter().map(|part| scope.spawn(|| work(part))).collect();
        threads.into_iter().try_fold(Duration::ZERO, |longest, thread| {
            let elapsed = thread.join().map_err(|_| "a reading thread panicked")??;
            Ok(longest.max(elapsed))
        })
    })
}

/// Part `i` of `of` parts of about equal size.
fn share(ranks: &[u32], i: usize, of: usize) -> &[u32] {
    &ranks[ranks.len() * i / of..ranks.len() * (i + 1) / of]
}

/// Notes how many thousand operations a second a step has done.
pub(crate) fn note_speed(figures: &mut Figures, name: &str, operations: usize, elapsed: Duration) {
    figures.set(format!("{name}_kops"), operations as f64 / elapsed.as_secs_f64().max(1e-9) / 1e3);
}

/// The time that `work` takes.
pub(crate) fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let started = Instant::now();
    work()?;
    Ok(started.elapsed())
}

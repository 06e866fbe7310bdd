//! The background thread: checkpoints, syncs of the log at intervals, and freeing of dropped pages. All work is in
//! plain functions, which a test can call step by step.

pub(super) mod analyze;
pub(super) mod bulk;
pub(super) mod compact;
pub(super) mod convert;
pub(super) mod strategy;
mod target_fill;

use super::shared::{Shared, WorkerState};
use crate::base::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long it waits for an open transaction to free dropped pages. A checkpoint may become due meanwhile.
const MOST_WAIT: Duration = Duration::from_millis(100);

/// Starts the thread. It ends when the last handle is dropped.
pub(crate) fn start(shared: &Arc<Shared>) {
    let own = shared.clone();
    let thread = std::thread::Builder::new().name("duramen".into()).spawn(move || run(&own));
    match thread {
        Ok(thread) => *shared.worker.thread.lock() = Some(thread),
        Err(cause) => tracing::warn!(%cause, "no background thread: commits will take the checkpoints"),
    }
}

/// Works until the database is closed or all writing was stopped.
fn run(shared: &Shared) {
    while shared.engine.check_poison().is_ok() {
        if let Err(cause) = shared.engine.poison_on_panic("it did background work", || round(shared)) {
            tracing::error!(%cause, "background work failed");
        }
        let mut state = shared.worker.state.lock();
        if !state.stop && !state.due {
            shared.worker.wake.wait_for(&mut state, shared.flush_interval);
        }
        let WorkerState { stop, due } = &mut *state;
        *due = false;
        if *stop {
            return;
        }
    }
}

fn round(shared: &Shared) -> Result<()> {
    loop {
        shared.engine.sync_lazy()?;
        shared.engine.clean_pages()?;
        let begun = Instant::now();
        loop {
            // Neither commits with `Durability::Interval` nor a checkpoint that is due must wait for a transaction that is open
            // for long.
            let timeout = shared.flush_interval.min(MOST_WAIT);
            if shared.worker.state.lock().stop || !shared.maintain(Some(timeout))? {
                // `maintain` may have waited for a whole interval, so commits may have to be synced again.
                return shared.engine.sync_lazy();
            }
            if begun.elapsed() >= shared.flush_interval {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests;

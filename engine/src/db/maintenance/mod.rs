//! The background thread: checkpoints, syncs of the log at intervals, and freeing of dropped pages. All work is in
//! plain functions, which a test can call step by step.

pub(super) mod bulk;
pub(super) mod compact;

use super::shared::{Shared, WorkerState};
use crate::base::Result;
use std::sync::Arc;
use std::time::Instant;

/// Starts the thread. It ends when the last handle is dropped.
pub(crate) fn start(shared: &Arc<Shared>) {
    let own = shared.clone();
    let thread = std::thread::Builder::new().name("duramen".into()).spawn(move || run(&own));
    match thread {
        Ok(thread) => *shared.worker.thread.lock() = Some(thread),
        Err(cause) => tracing::warn!(%cause, "no background thread: commits will take the checkpoints"),
    }
}

/// Works until the database is closed, or until all writing was stopped and there is nothing left to do.
fn run(shared: &Shared) {
    while shared.engine.check_poison().is_ok() {
        if let Err(cause) = shared.engine.whole("it did background work", || round(shared)) {
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
            // Commits that are to be durable after an interval do not wait for a transaction that stays open for longer.
            if shared.worker.state.lock().stop || !shared.maintain(Some(shared.flush_interval))? {
                // It may have waited for a whole interval, and what waits for the next one has been there since.
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

//! The background threads. One takes checkpoints and frees dropped pages. One syncs the log at intervals, also while a
//! checkpoint waits for the device. The writers write dirty pages before their frames are needed. A separate thread
//! syncs the log for the writers. All work is in plain functions, which a test can call step by step.

pub(super) mod analyze;
pub(super) mod bulk;
pub(super) mod compact;
pub(super) mod convert;
pub(super) mod dictionaries;
mod dictionary_gain;
pub(super) mod progress;
pub(super) mod strategy;
mod target_fill;

use super::shared::{NOT_WRITTEN, Shared, WorkerState};
use crate::base::Result;
use std::sync::Arc;
use std::time::Duration;

/// How long the first thread waits for an open transaction to end before it can free dropped pages (a checkpoint may
/// become due meanwhile), and how long it sleeps if nothing wakes it.
const MAX_WAIT: Duration = Duration::from_millis(100);

/// How long a writer waits after an error: the device may be full for a while.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// The message of a thread that could not sync the log.
const NOT_SYNCED: &str = "the log could not be synced";

/// Starts the threads, with this number of writers. They end when the last handle is dropped.
pub(crate) fn start(shared: &Arc<Shared>, writers: usize) {
    spawn(shared, "duramen".into(), run);
    if !shared.engine.is_logged() {
        return;
    }
    if !spawn(shared, "duramen-sync".into(), sync_at_intervals) {
        shared.interval_syncs.go_without_thread();
    }
    if writers > 0 {
        spawn(shared, "duramen-log".into(), sync_for_writers);
    }
    for number in 1..=writers {
        spawn(shared, format!("duramen-{number}"), write_dirty_pages);
    }
}

/// Returns false if the thread could not be started.
fn spawn(shared: &Arc<Shared>, name: String, work: fn(&Shared)) -> bool {
    let own = shared.clone();
    match std::thread::Builder::new().name(name.clone()).spawn(move || work(&own)) {
        Ok(thread) => shared.worker.threads.lock().push(thread),
        Err(cause) => {
            tracing::warn!(%cause, name, "this background thread could not be started; other threads do its work");
            return false;
        }
    }
    true
}

/// Makes commits with `Durability::Interval` durable. It does nothing else, so that no other work delays it.
fn sync_at_intervals(shared: &Shared) {
    let engine = &shared.engine;
    while shared.interval_syncs.await_commits(shared.flush_interval) && engine.check_poison().is_ok() {
        if let Err(cause) = engine.poison_on_panic("it synced the log", || engine.sync_interval_commits()) {
            tracing::error!(%cause, "{NOT_SYNCED}");
        }
    }
}

/// A writer. It sleeps while there are enough frames that can be reused at once.
fn write_dirty_pages(shared: &Shared) {
    let engine = &shared.engine;
    while engine.await_demand() && engine.check_poison().is_ok() {
        if let Err(cause) = engine.poison_on_panic("it wrote dirty pages", || engine.write_dirty_pages()) {
            tracing::error!(%cause, "{NOT_WRITTEN}");
            std::thread::sleep(AFTER_ERROR);
        }
    }
}

/// Syncs the log for the writers. If this thread cannot be started, the writers do all these syncs themselves.
fn sync_for_writers(shared: &Shared) {
    let engine = &shared.engine;
    while engine.await_log_sync() && engine.check_poison().is_ok() {
        if let Err(cause) = engine.poison_on_panic("it made the log durable for writers", || engine.sync_log_ahead()) {
            tracing::error!(%cause, "{NOT_SYNCED}");
        }
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
            shared.worker.wake.wait_for(&mut state, MAX_WAIT);
        }
        let WorkerState { stop, due } = &mut *state;
        *due = false;
        if *stop {
            return;
        }
    }
}

fn round(shared: &Shared) -> Result<()> {
    // A checkpoint that is due must not wait for a transaction that is open for long.
    while !shared.worker.state.lock().stop && shared.maintain(Some(MAX_WAIT))? {}
    Ok(())
}

#[cfg(test)]
mod room_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod writer_tests;

//! The state that all handles of an open database share, and closing.

use super::catalog::catalog_tree;
use super::transaction::read::tree_of;
use super::transaction::table_state::KeptTables;
use crate::base::{Error, Lsn, Result};
use crate::io::{LockGuard, Opener};
use crate::txn::{Durability, Engine};
use parking_lot::{Condvar, Mutex};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The message of background work that could not write pages.
pub(crate) const NOT_WRITTEN: &str = "dirty pages could not be written";

/// An open database.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) flush_interval: Duration,
    pub(crate) version_memory: usize,
    pub(crate) read_only: bool,
    pub(crate) opener: Opener,
    pub(crate) worker: Worker,
    pub(crate) interval_syncs: IntervalSyncs,
    /// Held by the compaction that is in progress.
    pub(crate) compaction: Mutex<()>,
    pub(crate) kept_tables: KeptTables,
    /// Dropped last, so that the file is closed when a waiting process gets the lock.
    pub(crate) _lock: Option<Arc<dyn LockGuard>>,
}

/// The background threads, and what wakes the first of them if there is work, or if it must end.
#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) state: Mutex<WorkerState>,
    pub(crate) wake: Condvar,
    pub(crate) threads: Mutex<Vec<std::thread::JoinHandle<()>>>,
}

/// The state of the background thread.
#[derive(Default)]
pub(crate) struct WorkerState {
    pub(crate) stop: bool,
    pub(crate) due: bool,
}

/// Commits with [`Durability::Interval`] wait here for the thread that syncs the log.
#[derive(Default)]
pub(crate) struct IntervalSyncs {
    state: Mutex<IntervalState>,
    wake: Condvar,
}

#[derive(Default)]
struct IntervalState {
    /// A commit is to be synced.
    due: bool,
    stop: bool,
    /// The thread could not be started, so a commit syncs the log itself.
    without_thread: bool,
}

impl IntervalSyncs {
    /// Waits for a commit, and then for the interval. Returns false if the thread must end.
    pub(crate) fn await_commits(&self, interval: Duration) -> bool {
        let mut state = self.state.lock();
        self.wake.wait_while(&mut state, |state| !state.due && !state.stop);
        self.wake.wait_while_for(&mut state, |state| !state.stop, interval);
        state.due = false;
        !state.stop
    }

    /// Lets the thread sync a commit. Returns false if there is no thread, and the caller must do it.
    fn request(&self) -> bool {
        let mut state = self.state.lock();
        if !state.due {
            state.due = true;
            self.wake.notify_one();
        }
        !state.without_thread
    }

    /// From now on commits sync the log themselves.
    pub(crate) fn go_without_thread(&self) {
        self.state.lock().without_thread = true;
    }

    fn stop(&self) {
        self.state.lock().stop = true;
        self.wake.notify_one();
    }
}

impl Shared {
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only { Err(Error::ReadOnly) } else { self.check_process() }
    }

    /// Fails in a child process that `fork` has made. Its parent has the threads, the locks and the newer state.
    pub(crate) fn check_process(&self) -> Result<()> {
        self.opener.check(&self.path)
    }

    /// Called after each commit. Wakes the background threads if there is work.
    pub(crate) fn after_commit(&self, durability: Durability) -> Result<()> {
        let engine = &self.engine;
        if durability == Durability::Interval && !self.interval_syncs.request() {
            engine.sync_interval_commits()?;
        }
        engine.note_changed_pages();
        let log_work = engine.is_checkpoint_due() || engine.is_segment_long();
        if log_work || engine.has_many_superseded_images() || engine.has_detached() || engine.has_overflowed() {
            self.worker.state.lock().due = true;
            self.worker.wake.notify_one();
        }
        Ok(())
    }

    /// Closes a snapshot. If much was kept for it, the background thread or the next commits remove the rest.
    pub(crate) fn close_snapshot(&self, lsn: Lsn) {
        if self.engine.close_snapshot(lsn) {
            self.worker.state.lock().due = true;
            self.worker.wake.notify_one();
        }
    }

    /// Does the work of the background writers. Returns false if there was none. A full device is no error: the pages
    /// stay dirty, and maintenance can make room.
    pub(crate) fn write_dirty_pages(&self) -> Result<bool> {
        self.check_writable()?;
        match self.engine.write_dirty_pages() {
            Err(cause @ Error::Full { .. }) => {
                tracing::warn!(%cause, "{NOT_WRITTEN}");
                Ok(false)
            }
            wrote => wrote,
        }
    }

    /// Does one round of background work. Returns false if there was none. If a writing transaction is open, it waits
    /// for it at most for `timeout`, and leaves the rest to a later round. Without a `timeout` it waits until the
    /// transaction ends.
    pub(crate) fn maintain(&self, timeout: Option<Duration>) -> Result<bool> {
        self.check_writable()?;
        let busy = self.maintain_file(timeout);
        // It needs no space in the file, so it is done also if the device is full.
        self.engine.prune_all();
        busy
    }

    /// The part of a round that changes files.
    fn maintain_file(&self, timeout: Option<Duration>) -> Result<bool> {
        let mut busy = self.engine.is_checkpoint_due();
        if busy {
            self.engine.checkpoint_with_room()?;
        } else if self.engine.has_many_superseded_images() {
            busy = true;
            match self.engine.checkpoint_places() {
                Err(cause @ Error::Full { .. }) => {
                    tracing::warn!(%cause, "superseded pages keep their space until the next checkpoint");
                }
                taken => taken?,
            }
        }
        busy |= self.engine.begin_segment()?;
        busy |= self.engine.reclaim_step(&catalog_tree(), timeout)?;
        busy |= self.engine.split_step(timeout, |table| tree_of(&self.engine, table))?;
        Ok(busy)
    }

    /// Closes the database: writes everything to the file and removes the log.
    fn close(&self) -> Result<()> {
        if self.read_only {
            return Ok(());
        }
        self.engine.close(&catalog_tree())
    }
}

/// A reference to an open database, held by its clones and transactions. When the last one is dropped, the background
/// threads end and the file is closed.
pub(crate) struct Handle {
    shared: Arc<Shared>,
    closed: bool,
}

impl Handle {
    /// The first reference.
    pub(crate) fn new(shared: Arc<Shared>) -> Arc<Handle> {
        Arc::new(Handle { shared, closed: false })
    }

    /// The state that the references share.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        self.shared.clone()
    }

    /// Ends the background threads and closes the file.
    pub(crate) fn close(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        if let Err(error) = self.check_process() {
            // The parent continues with the files and the lock, and its threads cannot be joined here. So all of it
            // stays in the memory of this process.
            std::mem::forget(self.shared.clone());
            return Err(error);
        }
        self.worker.state.lock().stop = true;
        self.worker.wake.notify_all();
        self.interval_syncs.stop();
        self.engine.end_writers();
        for thread in std::mem::take(&mut *self.worker.threads.lock()) {
            // The thread has logged its errors.
            let _ = thread.join();
        }
        self.shared.close()
    }
}

impl std::ops::Deref for Handle {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        match self.finish() {
            // A child process only drops its copy of the handle.
            Ok(()) | Err(Error::Forked { .. }) => {}
            Err(cause) => {
                tracing::error!(%cause, path = %self.path.display(), "the database could not be closed; its log stays");
            }
        }
    }
}

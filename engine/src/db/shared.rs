//! The state that all handles of an open database share, and closing.

use super::catalog::catalog_tree;
use crate::base::{Error, Lsn, Result};
use crate::io::LockGuard;
use crate::txn::{Durability, Engine};
use parking_lot::{Condvar, Mutex};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// An open database.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) flush_interval: Duration,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) version_memory: usize,
    pub(crate) read_only: bool,
    pub(crate) worker: Worker,
    /// Dropped last, so that the file is closed when a waiting process gets the lock.
    pub(crate) _lock: Option<Arc<dyn LockGuard>>,
}

/// Wakes the background thread if there is work, or if it must end.
#[derive(Default)]
pub(crate) struct Worker {
    pub(crate) state: Mutex<WorkerState>,
    pub(crate) wake: Condvar,
    pub(crate) thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

/// The state of the background thread.
#[derive(Default)]
pub(crate) struct WorkerState {
    pub(crate) stop: bool,
    pub(crate) due: bool,
}

impl Shared {
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.read_only { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Called after each commit. Wakes the background thread if there is work, and delays writers if checkpoints do not
    /// keep up, so that a recovery stays short. If a checkpoint fails, the commit does not fail; the next commit tries
    /// again.
    pub(crate) fn after_commit(&self) {
        let bytes = self.engine.log_bytes();
        if bytes > 4 * self.checkpoint_bytes {
            if let Err(cause) = self.engine.checkpoint_with_room() {
                tracing::warn!(%cause, "no checkpoint could be taken after a commit; the log stays longer");
            }
            return;
        }
        if bytes > self.checkpoint_bytes || self.engine.has_detached() {
            self.worker.state.lock().due = true;
            self.worker.wake.notify_one();
        }
    }

    /// Closes a snapshot. If much was kept for it, the background thread or the next commits remove the rest.
    pub(crate) fn close_snapshot(&self, lsn: Lsn) {
        if self.engine.close_snapshot(lsn) {
            self.worker.state.lock().due = true;
            self.worker.wake.notify_one();
        }
    }

    /// One round of what a database needs done from time to time; false when nothing was. `most_wait`: for so long it waits for an open
    /// writing transaction before it leaves to another round what that keeps it from; `None`: as long as need be.
    pub(crate) fn maintain(&self, most_wait: Option<Duration>) -> Result<bool> {
        self.check_writable()?;
        let mut busy = self.engine.reclaim_step(&catalog_tree(), most_wait)?;
        if self.engine.wants_checkpoint(self.checkpoint_bytes) {
            self.engine.checkpoint_with_room()?;
            busy = true;
        }
        self.engine.prune_all();
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
/// thread ends and the file is closed.
pub(crate) struct Handle {
    shared: Arc<Shared>,
    closed: bool,
}

impl Handle {
    /// The first reference.
    pub(crate) fn new(shared: Arc<Shared>) -> Arc<Handle> {
        Arc::new(Handle { shared, closed: false })
    }

    /// Ends the background thread and closes the file; once.
    pub(crate) fn close(mut self) -> Result<()> {
        self.finish()
    }

    fn finish(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.closed, true) {
            return Ok(());
        }
        self.worker.state.lock().stop = true;
        self.worker.wake.notify_all();
        if let Some(thread) = self.worker.thread.lock().take() {
            // It has logged its own errors.
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
        if let Err(cause) = self.finish() {
            tracing::error!(%cause, path = %self.path.display(), "the database could not be closed in order; its log stays");
        }
    }
}

//! The state that all handles of an open database share, and closing.

use super::maintenance::gaps::Gaps;
use crate::base::{Error, Lsn, Result};
use crate::io::LockGuard;
use crate::store::Meta;
use crate::txn::{Durability, Engine, HeldBack, Segments};
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

/// Bytes of memory for a detached subtree that is not yet freed.
const DETACHED_BYTES: usize = 64;

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
            if let Err(cause) = self.checkpoint() {
                tracing::warn!(%cause, "no checkpoint could be taken after a commit; the log stays longer");
            }
            return;
        }
        if bytes > self.checkpoint_bytes || !self.engine.detached.lock().is_empty() {
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

    /// Called before each commit. Removes old versions that no snapshot needs, and fails if the others exceed the
    /// limit.
    pub(crate) fn prune_before_commit(&self) -> Result<()> {
        let engine = &self.engine;
        engine.prune();
        let held = |subtrees: usize| {
            let mut held = engine.versions.held_back();
            held.bytes += subtrees * DETACHED_BYTES;
            (engine.snapshots.count() > 0 && held.bytes > self.version_memory).then_some(held)
        };
        // To begin with all subtrees that wait, which is quickly known. Some may only not be freed yet.
        if !engine.versions.is_holding() || held(engine.detached.lock().len()).is_none() {
            return Ok(());
        }
        engine.prune_all();
        let Some(HeldBack { events, bytes, .. }) = held(engine.held_subtrees()) else { return Ok(()) };
        let snapshot = engine.snapshots.oldest();
        let seconds = engine.versions.holding_since(snapshot).map_or(0, |since| since.elapsed().as_secs());
        Err(Error::HeldBack { changes: events, bytes, limit: self.version_memory, snapshot, seconds })
    }

    /// Takes a checkpoint. If the device has no space for the next log segment, it closes gaps in the file to free
    /// some, unless a transaction is open, which may have the places of pages.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        if self.engine.checkpoint()? == Segments::Stuck
            && let Some(_writer) = self.engine.writer.try_lock()
        {
            self.make_room(true)?;
        }
        Ok(())
    }

    /// Takes a checkpoint, which frees old log segments and the places of replaced pages, and closes gaps in the file so
    /// that the device has space for the log. The caller must hold the writer lock, and must have no places of pages if
    /// these are `movable`. If not, only the free end of the file is cut off.
    pub(crate) fn make_room(&self, movable: bool) -> Result<()> {
        let Some(store) = &self.engine.store else { return Ok(()) };
        // What earlier commits set aside and did not need must not keep the log in its old segment.
        self.engine.log()?.give_up_reservation();
        self.engine.checkpoint()?;
        let gaps = Gaps::worth_while(&store.stats());
        self.close_gaps(Gaps { moves: if movable { gaps.moves } else { 0 }, ..gaps })?;
        self.engine.checkpoint()?;
        self.engine.reserve_relief()
    }

    /// One round of what a database needs done from time to time; false when nothing was. `most_wait`: for so long it waits for an open
    /// writing transaction before it leaves to another round what that keeps it from; `None`: as long as need be.
    pub(crate) fn maintain(&self, most_wait: Option<Duration>) -> Result<bool> {
        self.check_writable()?;
        let mut busy = self.engine.reclaim_step(&super::catalog::catalog_tree(), most_wait)?;
        if self.engine.wants_checkpoint(self.checkpoint_bytes) {
            self.checkpoint()?;
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
        self.engine.check_poison()?;
        loop {
            match self.engine.reclaim_step(&super::catalog::catalog_tree(), None) {
                Ok(true) => {}
                Ok(false) => break,
                // What waits to be freed is in the catalog: the next opening frees it.
                Err(cause @ Error::Full { .. }) => {
                    tracing::warn!(%cause, "no room to free what was dropped; it stays until the next opening");
                    break;
                }
                Err(other) => return Err(other),
            }
        }
        self.engine.prune_all();
        let Some(store) = &self.engine.store else { return Ok(()) };
        self.checkpoint()?;
        self.close_gaps(Gaps::worth_while(&store.stats()))?;
        let meta = Meta { clean: true, ..store.file().meta() };
        // Into both places: without its log, the file must not depend on one of them.
        store.file().write_meta(meta)?;
        store.file().write_meta(meta)?;
        self.engine.log()?.remove_all()
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

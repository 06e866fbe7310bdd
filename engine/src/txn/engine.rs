//! The engine's shared state: the pool, the log, versions, snapshots, page ids, and the locks between them.
//!
//! * `writer` is held during a writing transaction: by `begin_write`, compaction, and the freeing of detached subtrees.
//! * `apply` is held from the first change of a batch until the batch is in the log; for a large transaction also from
//!   the reservation of space until its logical record is in the log. Commits hold it, and checkpoints at two short
//!   moments.
//! * `checkpoints` is held during a checkpoint, so that there is one at a time.
//!
//! `writer` and `checkpoints` are locked before `apply`. Page latches are taken after all of these locks.

use super::checkpoint::{Checkpoints, SMALL_SUPERSEDED};
use super::log_slot::LogSlot;
use super::redo_work::{RedoBounds, RedoWork};
use super::space::page_ids::PageIds;
use super::space::page_set::PageSet;
use super::space::pending_frees::PendingFrees;
use super::space::reclaim::PendingSubtree;
use super::stats::Recovery;
use super::versions::Versions;
use super::versions::snapshots::Snapshots;
use crate::base::counted::Counted;
use crate::base::{Error, Lsn, PageId, Result};
use crate::log::Log;
use crate::store::{PageStore, Pool};
use parking_lot::{ArcMutexGuard, Mutex, MutexGuard, RawMutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The writer's lock, held.
pub(crate) type WriterGuard = ArcMutexGuard<RawMutex, ()>;

/// The shared state of an open database.
pub(crate) struct Engine {
    pub(super) pool: Pool,
    /// `None` in an in-memory database.
    pub(super) store: Option<Arc<dyn PageStore>>,
    pub(super) log: Arc<LogSlot>,
    pub(super) versions: Versions,
    pub(super) snapshots: Snapshots,
    pub(super) ids: Mutex<PageIds>,
    pub(super) writer: Arc<Mutex<()>>,
    /// Locked while a batch is applied. The value is the end of the last batch, which is the clock of an in-memory
    /// database.
    pub(super) apply: Mutex<Lsn>,
    pub(super) checkpoints: Checkpoints,
    /// The start of the logical record of the large transaction that is being applied. The log keeps this record.
    pub(super) unfinished: AtomicU64,
    /// The largest end of a commit that waits, or waited, for its sync.
    pub(super) sync_requested: AtomicU64,
    /// The end of the last commit with [`Durability::Interval`](super::Durability::Interval).
    pub(super) interval_end: AtomicU64,
    /// Subtrees that were detached and are not yet freed, by the LSN at which they were detached and their roots. The
    /// first can be freed first.
    pub(super) detached: Counted<BTreeMap<(Lsn, PageId), PendingSubtree>>,
    /// Raised when a page of a tree is freed, and when page ids are released. If it has not changed, a link that a
    /// reader has noted still leads to the same page.
    pub(super) frees: AtomicU64,
    /// Leaves that were split because they missed the targets of their tables.
    pub(super) overflow_splits: AtomicU64,
    /// Ids that were freed and must not be used again yet.
    pub(super) pending_frees: PendingFrees,
    pub(super) maps: Mutex<BTreeSet<PageId>>,
    /// Locked from the promise of room for unlogged pages until the pages are written.
    pub(super) unlogged_room: Mutex<()>,
    poisoned: AtomicBool,
    cause: Mutex<String>,
    /// How much a recovery would have to do now.
    pub(super) redo_work: RedoWork,
    pub(super) redo_bounds: RedoBounds,
    /// Superseded images with fewer bytes are not worth a checkpoint.
    pub(super) most_superseded: u64,
    /// The work of the recovery at opening, if there was one.
    pub(super) recovery: Option<Recovery>,
}

impl Engine {
    /// An engine over a pool with the content as of `start`.
    pub(crate) fn new(
        pool: Pool,
        store: Option<Arc<dyn PageStore>>,
        log: Arc<LogSlot>,
        ids: PageIds,
        start: Lsn,
    ) -> Engine {
        Engine {
            pool,
            store,
            log,
            versions: Versions::default(),
            snapshots: Snapshots::new(start),
            ids: Mutex::new(ids),
            writer: Arc::default(),
            apply: Mutex::new(start),
            checkpoints: Checkpoints::default(),
            unfinished: AtomicU64::new(u64::MAX),
            sync_requested: AtomicU64::new(0),
            interval_end: AtomicU64::new(0),
            detached: Counted::default(),
            frees: AtomicU64::new(0),
            overflow_splits: AtomicU64::new(0),
            pending_frees: PendingFrees::default(),
            maps: Mutex::default(),
            unlogged_room: Mutex::default(),
            poisoned: AtomicBool::new(false),
            cause: Mutex::default(),
            redo_work: RedoWork::default(),
            redo_bounds: RedoBounds::NONE,
            most_superseded: SMALL_SUPERSEDED,
            recovery: None,
        }
    }

    /// The same engine, with bounds of the work of a recovery.
    pub(crate) fn bounded(self, redo_bounds: RedoBounds) -> Engine {
        Engine { redo_bounds, ..self }
    }

    /// The same engine. With at least this number of bytes of superseded images, a checkpoint may be taken because of
    /// them.
    pub(crate) fn with_most_superseded(self, most_superseded: u64) -> Engine {
        Engine { most_superseded, ..self }
    }

    /// After a recovery, which has done this.
    pub(crate) fn recovered(self, recovery: Recovery, pages: PageSet) -> Engine {
        Engine { redo_work: RedoWork::of_recovery(recovery.log_bytes, pages), recovery: Some(recovery), ..self }
    }

    /// True if changes are logged. False for an in-memory database.
    pub(crate) fn is_logged(&self) -> bool {
        self.store.is_some()
    }

    /// The log of an open database in a file.
    pub(super) fn log(&self) -> Result<&Arc<Log>> {
        self.log.get().ok_or(Error::ReadOnly)
    }

    /// Limits the payload of a batch in the log.
    pub(crate) fn limit_payload(&self, bytes: usize) {
        if let Some(log) = self.log.get() {
            log.limit_payload(bytes);
        }
    }

    /// Waits until a background writer is needed. False after [`Engine::end_writers`].
    pub(crate) fn await_demand(&self) -> bool {
        self.pool.await_demand()
    }

    /// Call it after each commit. Wakes a writer if the pool has few frames that can be reused at once.
    pub(crate) fn note_changed_pages(&self) {
        self.pool.note_changed_pages();
    }

    /// Writes dirty pages that would be evicted next, until there are enough frames that can be reused at once. Returns
    /// whether it has found any such frame.
    pub(crate) fn write_dirty_pages(&self) -> Result<bool> {
        self.check_poison()?;
        let mut found = false;
        while self.pool.refill_step().inspect_err(|cause| self.poison_if_unsynced(cause))? > 0 {
            found = true;
        }
        Ok(found)
    }

    /// Waits until the writers of dirty pages need a durable log. False after [`Engine::end_writers`].
    pub(crate) fn await_log_sync(&self) -> bool {
        self.pool.await_log_sync()
    }

    /// Makes the log durable, so that the writers need not wait for it.
    pub(crate) fn sync_log_ahead(&self) -> Result<()> {
        self.check_poison()?;
        self.pool.sync_log_ahead().inspect_err(|cause| self.poison_if_unsynced(cause))
    }

    /// Ends the threads that call [`Engine::await_demand`] or [`Engine::await_log_sync`].
    pub(crate) fn end_writers(&self) {
        self.pool.end_demand();
    }

    /// Waits for the writer's lock.
    pub(crate) fn lock_writer(&self) -> Result<WriterGuard> {
        let guard = self.writer.lock_arc();
        self.check_poison()?;
        Ok(guard)
    }

    /// Waits for the writer's lock, at most for `timeout` if there is one. Returns `None` after the timeout.
    pub(crate) fn lock_writer_within(&self, timeout: Option<Duration>) -> Result<Option<WriterGuard>> {
        let Some(timeout) = timeout else { return self.lock_writer().map(Some) };
        let guard = self.writer.try_lock_arc_for(timeout);
        self.check_poison()?;
        Ok(guard)
    }

    /// Waits for the writer's lock. This also works after a failure has stopped all writing.
    pub(crate) fn exclude_writers(&self) -> MutexGuard<'_, ()> {
        self.writer.lock()
    }

    /// Fails if an earlier failure has stopped all writing.
    pub(crate) fn check_poison(&self) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(Error::Poisoned { cause: self.cause.lock().clone() });
        }
        Ok(())
    }

    /// Stops all writing. Acknowledged data stay readable. Opening the database again recovers it.
    pub(crate) fn poison(&self, cause: &Error) {
        let mut first = self.cause.lock();
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            *first = cause.first_cause();
            tracing::error!(%cause, "writing stopped");
        }
    }

    /// Stops all writing if a sync has failed, because the content of the device is then unknown. Other failures may be
    /// temporary.
    pub(crate) fn poison_if_unsynced(&self, cause: &Error) {
        if self.has_failed_sync() {
            self.poison(cause);
        }
    }

    /// True if a sync has failed, or a write of the log.
    pub(super) fn has_failed_sync(&self) -> bool {
        let log_has = self.log.get().is_some_and(|log| log.is_poisoned().is_some());
        log_has || self.store.as_ref().is_some_and(|store| store.file().check_failed().is_err())
    }

    /// Runs `work`, which must not be left half done. If it panics, all writing stops before any lock is released that
    /// was taken outside of it. `doing` describes the work for the error message.
    pub(crate) fn poison_on_panic<T>(&self, doing: &str, work: impl FnOnce() -> T) -> T {
        let unwinding = Unwinding { engine: self, doing };
        let done = work();
        std::mem::forget(unwinding);
        done
    }
}

/// Exists while the work of [`Engine::poison_on_panic`] runs. It is dropped only if that work panics.
struct Unwinding<'e> {
    engine: &'e Engine,
    doing: &'e str,
}

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        let cause = format!("a thread has panicked while {}", self.doing);
        self.engine.poison(&Error::Poisoned { cause });
    }
}

//! The engine's shared state: the pool, the log, versions, snapshots, page ids, and the locks between them.
//!
//! | lock | held | by |
//! |---|---|---|
//! | `writer` | for a writing transaction's life | begin_write, compaction, reclaiming |
//! | `apply` | from a batch's first change to its place in the log; of a large transaction, from setting room aside for it to the end of its record | commit; checkpoints, for their two short cuts |
//! | `checkpoints` | for a checkpoint | one at a time |
//!
//! The writer's lock is taken before `apply`, and so is `checkpoints`; page latches come after all of them.

use super::checkpoint::Checkpoints;
use super::log_slot::LogSlot;
use super::space::page_ids::PageIds;
use super::space::reclaim::Waiting;
use super::space::withheld::Withheld;
use super::versions::Versions;
use super::versions::snapshots::Snapshots;
use crate::base::{Error, Lsn, PageId, Result};
use crate::log::Log;
use crate::store::{PageStore, Pool};
use parking_lot::{ArcMutexGuard, Mutex, MutexGuard, RawMutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Dirty pages that the background thread writes in one round.
const CLEAN_PAGES: usize = 64;

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
    /// Guards the batch being applied; holds the end of the last one, which is the clock of an in-memory database.
    pub(super) apply: Mutex<Lsn>,
    pub(super) checkpoints: Checkpoints,
    /// Start of the large transaction that is being applied, which its logical record must outlive.
    pub(super) unfinished: AtomicU64,
    /// The farthest commit that waits, or waited, for the device.
    pub(super) awaited: AtomicU64,
    /// The end of the last commit that is to be on the device after an interval.
    pub(super) lazy: AtomicU64,
    /// Subtrees that were unlinked and wait to be freed, by when that was and their roots: those first that can be freed first.
    pub(super) detached: Mutex<BTreeMap<(Lsn, PageId), Waiting>>,
    /// Counts when page ids are let go, so that a cursor knows that a link it noted leads where it did.
    pub(super) released: AtomicU64,
    /// Ids that were freed and must not be taken yet.
    pub(super) withheld: Withheld,
    pub(super) maps: Mutex<BTreeSet<PageId>>,
    poisoned: AtomicBool,
    cause: Mutex<String>,
    /// Log bytes that the last checkpoint started from; the next is due a while later.
    pub(super) last_redo: AtomicU64,
}

impl Engine {
    /// An engine over a pool whose content stands as of `start`.
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
            awaited: AtomicU64::new(0),
            lazy: AtomicU64::new(0),
            detached: Mutex::default(),
            released: AtomicU64::new(0),
            withheld: Withheld::default(),
            maps: Mutex::default(),
            poisoned: AtomicBool::new(false),
            cause: Mutex::default(),
            last_redo: AtomicU64::new(start.0),
        }
    }

    /// True if changes go to a log: not in memory.
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

    /// Writes a few dirty pages ahead of need.
    pub(crate) fn clean_pages(&self) -> Result<()> {
        self.pool.clean_step(CLEAN_PAGES).map(drop)
    }

    /// Waits for the writer's lock.
    pub(crate) fn lock_writer(&self) -> Result<WriterGuard> {
        let guard = self.writer.lock_arc();
        self.check_poison()?;
        Ok(guard)
    }

    /// The same for so long at the most, if that is said; `None` if it took longer.
    pub(crate) fn lock_writer_within(&self, most: Option<Duration>) -> Result<Option<WriterGuard>> {
        let Some(most) = most else { return self.lock_writer().map(Some) };
        let guard = self.writer.try_lock_arc_for(most);
        self.check_poison()?;
        Ok(guard)
    }

    /// Waits for the writer's lock, also of a database that cannot be written.
    pub(crate) fn exclude_writers(&self) -> MutexGuard<'_, ()> {
        self.writer.lock()
    }

    /// Fails if an earlier failure left pages and log in doubt.
    pub(crate) fn check_poison(&self) -> Result<()> {
        if self.poisoned.load(Ordering::Acquire) {
            return Err(Error::Poisoned { cause: self.cause.lock().clone() });
        }
        Ok(())
    }

    /// Stops all writing: what was acknowledged stays readable, and reopening recovers.
    pub(crate) fn poison(&self, cause: &Error) {
        let mut first = self.cause.lock();
        if !self.poisoned.swap(true, Ordering::AcqRel) {
            *first = cause.first_cause();
            tracing::error!(%cause, "writing stopped");
        }
    }

    /// Stops all writing if a failure comes from a sync: nobody knows what the device has then. Other failures may pass.
    pub(crate) fn poison_if_unsynced(&self, cause: &Error) {
        let stopped = self.log.get().is_some_and(|log| log.is_poisoned().is_some());
        if stopped || self.store.as_ref().is_some_and(|store| store.file().check_failed().is_err()) {
            self.poison(cause);
        }
    }

    /// Does work of which a half must never be built on: a panic in it stops all writing before any lock that was taken
    /// outside is given up. `doing` says what it is.
    pub(crate) fn whole<T>(&self, doing: &str, work: impl FnOnce() -> T) -> T {
        let unwinding = Unwinding { engine: self, doing };
        let done = work();
        std::mem::forget(unwinding);
        done
    }
}

/// Lives while work of [`Engine::whole`] is done, and is dropped only if that panics.
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

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
use super::large;
use super::space::page_ids::PageIds;
use super::space::reclaim::Waiting;
use super::versions::snapshots::Snapshots;
use super::versions::{Pruned, Versions};
use crate::base::watermark::Watermark;
use crate::base::{Error, Lsn, PageId, Result};
use crate::log::Log;
use crate::store::{PageStore, Pool};
use parking_lot::{ArcMutexGuard, Mutex, RawMutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// When a commit counts as done.
///
/// ```
/// use duramen::{Database, Durability, TableDef};
/// const HITS: TableDef<&str, u64> = TableDef::new("hits");
///
/// let db = Database::builder().durability(Durability::Interval).in_memory()?;
/// let mut tx = db.begin_write()?;
/// tx.set_durability(Durability::Commit); // this one must not be lost
/// tx.open_table(HITS)?.put("front page", 1)?;
/// tx.commit()?;
/// assert_eq!(db.begin_read()?.open_table(HITS)?.len(), 1);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Durability {
    /// When it is on the device: a power cut cannot take it back. Commits that wait at the same time share a sync.
    #[default]
    Commit,
    /// When the operating system has it; synced in the background every interval. A crash of the process loses
    /// nothing, a power cut at most the last interval, and always whole commits from the end.
    Interval,
    /// Like [`Durability::Interval`], but synced only by checkpoints and by later commits that ask for more.
    None,
}

/// The log as the pool sees it: there is none before recovery has read the old one to its end.
#[derive(Default)]
pub(crate) struct LogSlot(OnceLock<Arc<Log>>);

impl LogSlot {
    /// Puts the log in place, once.
    pub(crate) fn set(&self, log: Arc<Log>) {
        // A second log would be a bug of recovery; the first stays.
        let _ = self.0.set(log);
    }

    pub(crate) fn get(&self) -> Option<&Arc<Log>> {
        self.0.get()
    }
}

impl Watermark for LogSlot {
    fn durable(&self) -> Lsn {
        self.0.get().map_or(Lsn::MAX, |log| log.durable())
    }

    fn appended(&self) -> Lsn {
        self.0.get().map_or(Lsn::MAX, |log| log.appended())
    }

    fn make_durable(&self, lsn: Lsn) -> Result<()> {
        self.0.get().map_or(Ok(()), |log| log.make_durable(lsn))
    }
}

/// Events that pruning looks at under one hold of the versions' lock.
const PIECE: usize = 1024;
/// Pieces of what closed snapshots leave behind that a commit forgets at the most.
const COMMIT_PIECES: usize = 2;
/// Pieces of it that the thread forgets that closes the snapshot.
const CLOSE_PIECES: usize = 32;

/// The writer's lock, held.
pub(crate) type WriterGuard = ArcMutexGuard<RawMutex, ()>;

/// See the module's words.
pub(crate) struct Engine {
    pub(crate) pool: Pool,
    /// `None` in an in-memory database.
    pub(crate) store: Option<Arc<dyn PageStore>>,
    pub(crate) log: Arc<LogSlot>,
    pub(crate) versions: Versions,
    pub(crate) snapshots: Snapshots,
    pub(crate) ids: Mutex<PageIds>,
    pub(crate) writer: Arc<Mutex<()>>,
    /// Guards the batch being applied; holds the end of the last one, which is the clock of an in-memory database.
    pub(crate) apply: Mutex<Lsn>,
    pub(crate) checkpoints: Checkpoints,
    /// Start of the large transaction that is being applied, which its logical record must outlive.
    pub(crate) unfinished: AtomicU64,
    /// The farthest commit that waits, or waited, for the device.
    pub(crate) awaited: AtomicU64,
    /// The end of the last commit that is to be on the device after an interval.
    pub(crate) lazy: AtomicU64,
    /// Subtrees that were unlinked and wait to be freed, by when that was and their roots: those first that can be freed first.
    pub(crate) detached: Mutex<BTreeMap<(Lsn, PageId), Waiting>>,
    /// Counts when page ids are let go, so that a cursor knows that a link it noted leads where it did.
    pub(crate) released: AtomicU64,
    maps: Mutex<BTreeSet<PageId>>,
    poisoned: AtomicBool,
    cause: Mutex<String>,
    /// Log bytes that the last checkpoint started from; the next is due a while later.
    pub(crate) last_redo: AtomicU64,
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
    pub(crate) fn log(&self) -> Result<&Arc<Log>> {
        self.log.get().ok_or(Error::ReadOnly)
    }

    pub(crate) fn maps_known(&self, map: PageId) -> bool {
        self.maps.lock().contains(&map)
    }

    pub(crate) fn map_created(&self, map: PageId) {
        self.maps.lock().insert(map);
    }

    /// All allocation map pages.
    pub(crate) fn map_pages(&self) -> Vec<PageId> {
        self.maps.lock().iter().copied().collect()
    }

    /// How many allocation map pages there are.
    pub(crate) fn map_count(&self) -> usize {
        self.maps.lock().len()
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

    /// Throws away what no snapshot can ask for any more: before-images, and the pages of large values among them. Of
    /// what snapshots that have closed leave behind it takes a bounded piece.
    pub(crate) fn prune(&self) {
        self.prune_pieces(COMMIT_PIECES);
    }

    /// The same to the end.
    pub(crate) fn prune_all(&self) {
        self.prune_pieces(usize::MAX);
    }

    /// Closes a snapshot and throws away a bounded piece of what was kept for it; true if more is left.
    pub(crate) fn close_snapshot(&self, lsn: Lsn) -> bool {
        self.snapshots.close(lsn) && self.versions.is_holding() && !self.prune_pieces(CLOSE_PIECES)
    }

    /// Prunes piece by piece, at least `pieces` of them and all that lies in runs; false if anything is left to forget.
    fn prune_pieces(&self, pieces: usize) -> bool {
        let mut count = 0usize;
        loop {
            count = count.saturating_add(1);
            let Pruned { gone, sorted, done } = self.versions.prune(&self.snapshots, PIECE);
            for record in gone.larges() {
                // That it can be read was found out when the event was filed.
                if let Ok(pages) = large::pages(self, &record.bytes) {
                    self.release_pages(&pages.collect::<Vec<_>>());
                }
            }
            if done || (sorted && count >= pieces) {
                return done;
            }
        }
    }

    /// Drops the content of freed pages and lets their ids be taken again.
    pub(crate) fn release_pages(&self, pages: &[PageId]) {
        if !pages.is_empty() {
            self.released.fetch_add(1, Ordering::AcqRel);
        }
        for &id in pages {
            self.pool.forget(id);
            if let Some(store) = &self.store {
                store.drop_page(id);
                // A reader that followed an old link may have read it in again before the store dropped it. It must not
                // stay: the id's next page may be written past the pool.
                self.pool.forget(id);
            }
            self.ids.lock().give_back(id);
        }
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

//! Checkpoints: after a checkpoint, recovery starts from the checkpoint's redo point, and the log before it is removed.
//!
//! A checkpoint is fuzzy: commits continue during it. It holds the apply lock only for two short steps: to start a new
//! log segment, and to freeze the store between two batches. It syncs nothing while it holds this lock. While a large
//! transaction is applied, the log stays in its segment.
//!
//! A checkpoint does these steps:
//!
//! 1. It creates or renames the file of a new log segment, and starts the segment. Its start is the next redo point.
//!    Then it syncs the old segment and the new one. A commit that must be durable waits for these syncs, as it does
//!    for those of any other thread.
//! 2. It flushes the pages that were dirty before.
//! 3. The store writes the data with which it finds its pages, and syncs.
//! 4. It writes the two superblocks, the older one first, and syncs after each.
//! 5. Old log segments become spare files for the next ones, or are removed. Freed places can be reused. The store cuts
//!    off a large free end of its file, and a few images are moved away from the end.
//!
//! The background thread begins a checkpoint when a recovery would have to read
//! [`Builder::checkpoint_bytes`](crate::Builder::checkpoint_bytes) of log or
//! [`Builder::checkpoint_pages`](crate::Builder::checkpoint_pages) distinct pages: see `redo_work`. At twice a bound,
//! the next commit waits for a checkpoint before it changes anything.
//!
//! A checkpoint of the places makes durable only the data with which the store finds its pages, so that superseded
//! places are free. It flushes no page and keeps the redo point, and it also moves a few images. The background thread
//! begins one when the images that wait for a checkpoint take at least 8 MiB, and at least an eighth of the bytes of
//! the live images.

use super::engine::Engine;
use super::redo_work::RedoAmount;
use crate::base::watermark::Watermark;
use crate::base::{Error, Lsn, Result, bytes};
use crate::log::Log;
use crate::store::PageStore;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A checkpoint of the places is due when the bytes of superseded images reach the live bytes divided by this.
const SUPERSEDED_DIVISOR: u64 = 8;
/// Superseded images with fewer bytes are not worth a checkpoint.
pub(super) const SMALL_SUPERSEDED: u64 = 8 << 20;

/// The log between two checkpoints should be in this number of segments. The limits below can change it.
const SEGMENTS: u64 = 4;
/// The least and the most bytes of a segment that is not begun by a checkpoint.
const SEGMENT_BYTES: (u64, u64) = (1 << 20, 16 << 20);

/// The effect of a checkpoint on the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LogRotation {
    /// The log continues in a new segment. While a large transaction is applied it stays in the old one. Segments that
    /// no recovery needs are removed.
    Rotated,
    /// There was no room for a new segment. The log continues in the old one, which grows.
    Stuck,
    /// A new segment could not be begun for another reason: the process has too many open files, for example. The log
    /// continues in the old one.
    Postponed,
}

/// The checkpoints so far.
#[derive(Default)]
pub(crate) struct Checkpoints {
    /// How many checkpoints have begun. A checkpoint's number is the value after its own increment.
    begun: AtomicU64,
    /// A failed checkpoint has begun a segment. The next checkpoint continues in that segment; otherwise each attempt
    /// would add a file to the log.
    begun_segment: AtomicBool,
    /// The number of the last successful checkpoint and its effect on the log. Locked while a checkpoint runs.
    succeeded: Mutex<Option<(u64, LogRotation)>>,
}

impl Engine {
    /// Takes a checkpoint of everything that was committed before the call. All calls during one checkpoint share the
    /// next one.
    pub(crate) fn checkpoint(&self) -> Result<LogRotation> {
        let Some(store) = self.store.as_deref() else { return Ok(LogRotation::Rotated) };
        let before = self.checkpoints.begun.load(Ordering::Acquire);
        let mut succeeded = self.checkpoints.succeeded.lock();
        self.check_poison()?;
        if let Some((_, rotation)) = succeeded.filter(|(number, _)| *number > before) {
            return Ok(rotation);
        }
        let number = self.checkpoints.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let rotation = self.poison_on_panic("it took a checkpoint", || self.take_checkpoint(store));
        let rotation = rotation.inspect_err(|cause| self.poison_if_unsynced(cause))?;
        *succeeded = Some((number, rotation));
        Ok(rotation)
    }

    fn take_checkpoint(&self, store: &dyn PageStore) -> Result<LogRotation> {
        let log = self.log()?;
        let begins = !self.checkpoints.begun_segment.load(Ordering::Acquire);
        let why_not_ready = if begins { self.prepare_segment(log)? } else { None };
        let (rotation, redo, unfinished) = {
            let _between_batches = self.apply.lock();
            // The value from this moment is used: the transaction may end in memory before its end is durable.
            let unfinished = Lsn(self.unfinished.load(Ordering::Acquire));
            let (rotation, redo) = match unfinished {
                Lsn::MAX if begins => {
                    let (rotation, redo) = self.switch_segment(log, why_not_ready)?;
                    self.checkpoints.begun_segment.store(rotation == LogRotation::Rotated, Ordering::Release);
                    (rotation, redo)
                }
                // No segment can be removed until the large transaction ends. The current segment has room for the rest
                // of that transaction.
                _ => (LogRotation::Rotated, log.appended()),
            };
            self.redo_work.begin(log.written());
            (rotation, redo, unfinished)
        };
        self.finish_rotation(log, redo)?;
        self.pool.flush_before_while(redo, || self.check_poison())?;
        let redo = redo.min(unfinished);
        self.finish_store(store, Some(redo))?;
        self.checkpoints.begun_segment.store(false, Ordering::Release);
        if unfinished == Lsn::MAX {
            self.redo_work.finish();
        }
        match log.remove_before(redo) {
            Err(cause @ Error::Poisoned { .. }) => return Err(cause),
            // The checkpoint is durable.
            Err(cause) => {
                tracing::warn!(%cause, "old log segments stay until the next checkpoint")
            }
            Ok(()) => {}
        }
        self.release_pending_frees(redo);
        self.move_end(store);
        Ok(rotation)
    }

    /// Makes the file of the next log segment ready. Returns `None` if it is ready, and otherwise why not: the log
    /// then stays in its segment.
    fn prepare_segment(&self, log: &Log) -> Result<Option<LogRotation>> {
        match log.prepare_segment() {
            Ok(()) => Ok(None),
            Err(cause) => self.stay_in_segment(cause).map(Some),
        }
    }

    /// Lets the log continue in the file that is ready. `why_not_ready` is the result of [`Engine::prepare_segment`].
    /// If there is no such file, the log stays in its segment. Also returns an LSN from which a recovery can read:
    /// the start of the new segment, or the end of the log. Call [`Engine::finish_rotation`] with it. The caller must
    /// hold the apply lock. This function syncs nothing.
    fn switch_segment(&self, log: &Log, why_not_ready: Option<LogRotation>) -> Result<(LogRotation, Lsn)> {
        let rotation = match why_not_ready {
            None => match log.switch_segment() {
                Ok(Some(start)) => return Ok((LogRotation::Rotated, start)),
                // Another thread has removed the file, because the device is full or for a large transaction, and takes
                // a checkpoint after it. No rotation can be unfinished, because this thread holds
                // `checkpoints.succeeded`.
                Ok(None) => LogRotation::Postponed,
                Err(cause) => self.stay_in_segment(cause)?,
            },
            Some(why) => why,
        };
        Ok((rotation, log.appended()))
    }

    /// The log stays in its segment, unless `cause` has stopped it.
    fn stay_in_segment(&self, cause: Error) -> Result<LogRotation> {
        if let Error::Poisoned { .. } | Error::Forked { .. } = cause {
            self.poison(&cause);
            return Err(cause);
        }
        tracing::warn!(%cause, "cannot begin a log segment: the log continues in the old one");
        Ok(if matches!(cause, Error::Full { .. }) { LogRotation::Stuck } else { LogRotation::Postponed })
    }

    /// Makes the log durable up to `redo`, and completes the switch to a segment that may begin there.
    fn finish_rotation(&self, log: &Log, redo: Lsn) -> Result<()> {
        log.finish_rotation(redo).inspect_err(|cause| self.poison(cause))
    }

    /// The bytes after which a segment is long enough.
    fn segment_bytes(&self) -> u64 {
        (self.redo_bounds.bytes / SEGMENTS).clamp(SEGMENT_BYTES.0, SEGMENT_BYTES.1)
    }

    /// Lets the log keep unnecessary segments, to use them again: at most as many as it needs beside the current one
    /// until the next checkpoint.
    pub(crate) fn keep_spare_segments(&self) {
        if let Some(log) = self.log.get() {
            log.keep_spares((self.segment_bytes() * (SEGMENTS - 1)).min(self.redo_bounds.bytes));
        }
    }

    /// True if the log should continue in a new segment. A checkpoint can make only whole segments unnecessary. With
    /// one long segment, the log and its spare file would take twice the space.
    pub(crate) fn is_segment_long(&self) -> bool {
        self.log.get().is_some_and(|log| log.segment_bytes() >= self.segment_bytes())
            && self.unfinished.load(Ordering::Acquire) == u64::MAX
    }

    /// Lets the log continue in a new segment, if [`Engine::is_segment_long`]. False if it stays.
    pub(crate) fn begin_segment(&self) -> Result<bool> {
        if !self.is_segment_long() {
            return Ok(false);
        }
        let _no_checkpoint = self.checkpoints.succeeded.lock();
        self.check_poison()?;
        let log = self.log()?;
        let why_not_ready = self.prepare_segment(log)?;
        let (rotation, start) = {
            let _between_batches = self.apply.lock();
            // The transaction of another thread may need the room that is reserved in this segment.
            if !self.is_segment_long() {
                return Ok(false);
            }
            self.poison_on_panic("it began a log segment", || self.switch_segment(log, why_not_ready))?
        };
        if rotation != LogRotation::Rotated {
            // The next attempt is made when the log has grown by `Engine::segment_bytes` again.
            log.postpone_rotation();
            return Ok(false);
        }
        self.finish_rotation(log, start)?;
        Ok(true)
    }

    /// Removes the spare files, and keeps none during `work`, which needs their space.
    pub(super) fn without_spare_segments(&self, work: impl FnOnce() -> Result<()>) -> Result<()> {
        let done = self.log()?.remove_spares().and_then(|()| work());
        self.keep_spare_segments();
        done
    }

    /// Notes the state of the store between two batches and makes it durable. The redo point moves to `redo`, if there
    /// is one.
    fn finish_store(&self, store: &dyn PageStore, redo: Option<Lsn>) -> Result<()> {
        let log = self.log()?;
        let (token, store_lsn, maps) = {
            let _between_batches = self.apply.lock();
            // A commit that has failed meanwhile takes back pages that the log already contains.
            self.check_poison()?;
            (store.begin_checkpoint(), log.appended(), self.map_count())
        };
        log.make_durable(store_lsn).inspect_err(|cause| self.poison(cause))?;
        let mut meta = store.file().meta();
        (meta.store_lsn, meta.last) = (store_lsn, store_lsn);
        (meta.high_water, meta.maps) = (self.ids.lock().high(), bytes::u32_of(maps));
        if let Some(redo) = redo {
            (meta.redo, meta.epoch) = (redo, log.epoch());
        }
        store.finish(token, meta)
    }

    /// Takes a checkpoint of the places: superseded images can be overwritten then. Call it if
    /// [`Engine::has_many_superseded_images`].
    pub(crate) fn checkpoint_places(&self) -> Result<()> {
        let Some(store) = self.store.as_deref() else { return Ok(()) };
        let _running = self.checkpoints.succeeded.lock();
        self.check_poison()?;
        // The checkpoint that was running may have been sufficient.
        if !self.has_many_superseded_images() {
            return Ok(());
        }
        let taken = self.poison_on_panic("it took a checkpoint of the places", || self.finish_store(store, None));
        taken.inspect_err(|cause| self.poison_if_unsynced(cause))?;
        self.move_end(store);
        Ok(())
    }

    /// Does this while no checkpoint runs: after it, only a later checkpoint begins.
    pub(super) fn between_checkpoints(&self, work: impl FnOnce()) {
        let _no_checkpoint = self.checkpoints.succeeded.lock();
        work();
    }

    /// True while a checkpoint runs.
    #[cfg(test)]
    pub(crate) fn has_running_checkpoint(&self) -> bool {
        self.checkpoints.succeeded.is_locked()
    }

    /// No commit is applied, and no checkpoint goes on, until this is dropped.
    #[cfg(test)]
    pub(crate) fn hold_batches(&self) -> parking_lot::MutexGuard<'_, Lsn> {
        self.apply.lock()
    }

    /// True if superseded images take so much of the file that a checkpoint should make room.
    pub(crate) fn has_many_superseded_images(&self) -> bool {
        let (superseded, live) = self.store.as_ref().map_or((0, 0), |store| store.superseded());
        superseded >= (live / SUPERSEDED_DIVISOR).max(self.most_superseded)
    }

    /// Waits for a checkpoint if a recovery would have to do twice as much as the bounds allow: commits are faster than
    /// the checkpoint that began at the bounds. Call it under the writer's lock and before a batch. If no checkpoint
    /// can be taken, the log stays longer, and the next batch tries again.
    pub(super) fn wait_for_due_checkpoint(&self) {
        let outrun = || self.log.get().is_some() && self.recovery_work().reaches(self.redo_bounds, 2);
        if !outrun() {
            return;
        }
        // The checkpoint that is now running may be sufficient.
        drop(self.checkpoints.succeeded.lock());
        if outrun()
            && let Err(cause) = self.checkpoint_with_room()
        {
            tracing::warn!(%cause, "no checkpoint could be taken before a commit; the log stays longer");
        }
    }

    /// Returns true if a recovery would have to do as much as the bounds allow, and a checkpoint would reduce that.
    /// While a large transaction is applied it would not, because the whole log stays.
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        self.recovery_work().reaches(self.redo_bounds, 1) && self.unfinished.load(Ordering::Acquire) == u64::MAX
    }

    /// Returns the amount of log and pages that a recovery would have to read.
    pub(super) fn recovery_work(&self) -> RedoAmount {
        self.redo_work.amount(self.log.get().map_or(0, |log| log.written()))
    }
}

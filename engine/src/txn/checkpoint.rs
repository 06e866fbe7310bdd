//! Checkpoints: after one, recovery starts from its redo point and the log before it is gone.
//!
//! Fuzzy: commits go on meanwhile. Only two short cuts need the apply lock: starting a new log segment, and freezing
//! the page table between two batches. While a large transaction is applied the log stays in its segment.

use super::engine::Engine;
use super::redo_work::Amount;
use crate::base::watermark::Watermark;
use crate::base::{Error, Lsn, Result};
use crate::store::PageStore;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a checkpoint made of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Segments {
    /// It goes on in a new segment, or stays in the old one only as long as a large transaction is applied. Segments that
    /// no recovery needs are gone.
    Rotated,
    /// There was no room for a new one: it goes on in the old one, which takes more and more room.
    Stuck,
}

/// Which checkpoints there have been.
#[derive(Default)]
pub(crate) struct Checkpoints {
    /// How many have begun; the number of each.
    begun: AtomicU64,
    /// One has begun a segment and has failed: the next one goes on in that, or the log would get a file with each try.
    begun_segment: AtomicBool,
    /// The number of the last one that has succeeded, and what it made of the log; held while one runs.
    succeeded: Mutex<Option<(u64, Segments)>>,
}

impl Engine {
    /// Takes a checkpoint of all that was committed before the call. Those who ask while one runs share the next one.
    pub(crate) fn checkpoint(&self) -> Result<Segments> {
        let Some(store) = self.store.as_deref() else { return Ok(Segments::Rotated) };
        let before = self.checkpoints.begun.load(Ordering::Acquire);
        let mut succeeded = self.checkpoints.succeeded.lock();
        self.check_poison()?;
        if let Some((_, segments)) = succeeded.filter(|(number, _)| *number > before) {
            return Ok(segments);
        }
        let number = self.checkpoints.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let segments = self.poison_on_panic("it took a checkpoint", || self.take_checkpoint(store));
        let segments = segments.inspect_err(|cause| self.poison_if_unsynced(cause))?;
        *succeeded = Some((number, segments));
        Ok(segments)
    }

    fn take_checkpoint(&self, store: &dyn PageStore) -> Result<Segments> {
        let mut segments = Segments::Rotated;
        let log = self.log()?;
        // Most of the log becomes durable before the apply lock is taken, so that commits hardly wait for it.
        log.make_durable(log.appended()).inspect_err(|cause| self.poison(cause))?;
        let (redo, unfinished) = {
            let _between_batches = self.apply.lock();
            // As of here: the transaction may come to its end in memory before that end is durable.
            let unfinished = Lsn(self.unfinished.load(Ordering::Acquire));
            let go_on = || log.make_durable(log.appended()).map(|_| log.appended());
            let redo = match unfinished {
                // Without room for another segment the log goes on in this one: the redo point moves all the same.
                Lsn::MAX if !self.checkpoints.begun_segment.load(Ordering::Acquire) => match log.rotate() {
                    Err(Error::Full { .. }) => {
                        segments = Segments::Stuck;
                        go_on()
                    }
                    rotated => {
                        self.checkpoints.begun_segment.store(rotated.is_ok(), Ordering::Release);
                        rotated
                    }
                },
                // No segment can go before a large transaction is over, and the room for what is left of it is in this one.
                _ => go_on(),
            };
            let redo = redo.inspect_err(|cause| self.poison(cause))?;
            self.redo_work.begin(log.written());
            (redo, unfinished)
        };
        self.pool.flush_before(redo)?;
        let (frozen, table) = {
            let _between_batches = self.apply.lock();
            // A commit that has failed meanwhile takes back pages that the log speaks of.
            self.check_poison()?;
            (store.freeze(), log.appended())
        };
        log.make_durable(table).inspect_err(|cause| self.poison(cause))?;
        let redo = redo.min(unfinished);
        let mut meta = store.file().meta();
        (meta.redo, meta.table, meta.last) = (redo, table, table);
        meta.high_water = self.ids.lock().high();
        meta.epoch = log.epoch();
        store.finish(frozen, meta)?;
        self.checkpoints.begun_segment.store(false, Ordering::Release);
        if unfinished == Lsn::MAX {
            self.redo_work.finish();
        }
        log.remove_before(redo)?;
        self.release_withheld(redo);
        Ok(segments)
    }

    /// Waits for a checkpoint if a recovery would have to do twice as much as the bounds say: commits have outrun the
    /// checkpoint that began at the bounds. Call it under the writer's lock and before a batch. If no checkpoint can be
    /// taken, the log stays longer, and the next batch tries again.
    pub(super) fn keep_within_bounds(&self) {
        let outrun = || self.log.get().is_some() && self.recovery_work().reaches(self.redo_bounds, 2);
        if !outrun() {
            return;
        }
        // The checkpoint that is being taken may be enough.
        drop(self.checkpoints.succeeded.lock());
        if outrun()
            && let Err(cause) = self.checkpoint_with_room()
        {
            tracing::warn!(%cause, "no checkpoint could be taken before a commit; the log stays longer");
        }
    }

    /// True if a recovery would have to do as much as the bounds say, and a checkpoint would change that: all of the log stays
    /// while a large transaction is being applied.
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        self.recovery_work().reaches(self.redo_bounds, 1) && self.unfinished.load(Ordering::Acquire) == u64::MAX
    }

    /// What a recovery would have to read.
    pub(super) fn recovery_work(&self) -> Amount {
        self.redo_work.amount(self.log.get().map_or(0, |log| log.written()))
    }
}

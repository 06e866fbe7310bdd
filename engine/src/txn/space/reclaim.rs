//! Freeing detached subtrees, a bounded batch at a time, once no snapshot can read them.

use crate::base::{Error, Lsn, PageId, Result, TableId};
use crate::log::BatchBuffer;
use crate::page::Record;
use crate::tree::Tree;
use crate::txn::commit::applier::Applier;
use crate::txn::commit::detached_key;
use crate::txn::durability::Durability;
use crate::txn::engine::Engine;
use crate::txn::large;
use std::cell::Cell;
use std::time::Duration;

/// Pages freed in one batch, and changed by it, where the pool has room for that.
const STEP_PAGES: usize = 64;

/// Pages that such a batch may change and leave besides allocation maps: inner ones, those of the key heap, the catalog.
const STEP_IMAGES: usize = 24;

/// Pages that the last leaf of a batch may change: those of the key heap, inner ones, the catalog.
const LAST_IMAGES: usize = 16;

/// What becomes of the runs of large values that a subtree points to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Runs {
    /// They go with it.
    Free = 0,
    /// Another tree points to them: this one was rebuilt.
    Keep = 1,
}

/// A subtree that waits to be freed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    /// Snapshots before this still read it.
    pub(crate) since: Lsn,
    /// Its pages name this table as theirs.
    pub(crate) table: TableId,
    pub(crate) runs: Runs,
}

impl Waiting {
    /// From its record in the catalog, after a restart: no snapshot is that old.
    pub(crate) fn decode(record: &[u8]) -> Option<Waiting> {
        let (table, runs) = record.split_first_chunk()?;
        let runs = if runs == [Runs::Keep as u8] { Runs::Keep } else { Runs::Free };
        Some(Waiting { since: Lsn::ZERO, table: TableId(u32::from_le_bytes(*table)), runs })
    }
}

impl Engine {
    /// The first subtree that no snapshot can read.
    fn ripe(&self) -> Option<(PageId, Waiting)> {
        let oldest = self.snapshots.oldest();
        let detached = self.detached.lock();
        let ((since, root), waiting) = detached.first_key_value()?;
        (*since <= oldest).then_some((*root, *waiting))
    }

    /// Frees up to a batch of pages of detached subtrees that no snapshot needs; false when there is none, or when a writing transaction
    /// takes longer than it waits; `None`: as long as need be.
    pub(crate) fn reclaim_step(&self, catalog: &Tree, most_wait: Option<Duration>) -> Result<bool> {
        if self.ripe().is_none() {
            return Ok(false);
        }
        let Some(writer) = self.lock_writer_within(most_wait)? else { return Ok(false) };
        // Another thread may have freed it meanwhile.
        if self.ripe().is_none() {
            return Ok(false);
        }
        if let Some(store) = &self.store {
            self.log()?.reserve(STEP_PAGES * self.pool.page_size())?;
            store.ensure_room(self.pool.dirty_pages() + self.step_images() as u64)?;
        }
        self.prune();
        let end = self.free_piece(catalog)?;
        drop(writer);
        self.settle(end, Durability::None)?;
        Ok(true)
    }

    /// Frees what had been detached before `end`, as far as no snapshot needs it. What others detach meanwhile is not waited for.
    pub(crate) fn reclaim_before(&self, catalog: &Tree, end: Lsn) -> Result<()> {
        let waits = || self.detached.lock().first_key_value().is_some_and(|((since, _), _)| *since < end);
        while waits() && self.reclaim_step(catalog, None)? {}
        Ok(())
    }

    /// True if subtrees wait to be freed.
    pub(crate) fn has_detached(&self) -> bool {
        !self.detached.lock().is_empty()
    }

    /// The subtrees that wait to be freed, and their roots.
    pub(crate) fn detached_subtrees(&self) -> Vec<(PageId, Waiting)> {
        self.detached.lock().iter().map(|((_, root), waiting)| (*root, *waiting)).collect()
    }

    /// How many subtrees wait for open snapshots.
    pub(crate) fn held_subtrees(&self) -> usize {
        let after = self.snapshots.oldest().plus(1);
        self.detached.lock().range((after, PageId::NONE)..).count()
    }

    /// Changed pages that a batch may leave, allocation maps among them: each page that is freed may be another one's.
    fn step_images(&self) -> usize {
        STEP_IMAGES + self.map_count().min(self.pool.capacity() / 4).min(STEP_PAGES)
    }

    /// With so many changed pages a batch ends: what it does last may change some more.
    fn most_step_pages(&self) -> usize {
        (self.pool.capacity() / 4).clamp(1, STEP_PAGES).min(self.step_images() - LAST_IMAGES)
    }

    /// Like a commit of its own: a batch that frees pages and, of each subtree that is gone, forgets the entry.
    fn free_piece(&self, catalog: &Tree) -> Result<Lsn> {
        let mut clock = self.apply.lock();
        let start = if self.is_logged() { self.log()?.next_lsn() } else { *clock };
        let end = self.whole("it freed pages", || self.free_pages(catalog, start));
        *clock = end.inspect_err(|cause| self.poison(cause))?;
        Ok(*clock)
    }

    fn free_pages(&self, catalog: &Tree, start: Lsn) -> Result<Lsn> {
        let applier = Applier::new(self, start, BatchBuffer::new());
        let (most, most_log) = (self.most_step_pages(), STEP_PAGES * self.pool.page_size() / 4);
        let freed = Cell::new(0);
        let enough = |more| freed.get() + more >= STEP_PAGES || applier.pages() >= most || applier.len() >= most_log;
        while let Some((root, waiting)) = self.ripe().filter(|_| !enough(0)) {
            let subtree = Tree { root, table: waiting.table, layout: catalog.layout };
            let runs = |records: &[Record<'_>]| match waiting.runs {
                Runs::Free => self.free_runs(&applier, records, || enough(0)),
                Runs::Keep => Ok(records.len()),
            };
            match subtree.free_subtree(&applier, root, enough, runs) {
                Ok(progress) => {
                    freed.set(freed.get() + progress.freed);
                    if !progress.done {
                        break;
                    }
                    let key = detached_key(root);
                    catalog.remove(&applier, &key, |old| self.note_before(&applier, catalog.table, &key, Some(old)))?;
                }
                // What hangs on a damaged page stays taken; that must stop nobody. The catalog keeps the entry.
                Err(Error::Corrupt { page, what }) => {
                    tracing::warn!(%page, what, %root, "a dropped subtree cannot be freed to its end");
                }
                Err(other) => return Err(other),
            }
            self.detached.lock().remove(&(waiting.since, root));
        }
        self.append_batch(applier.finish(), start)
    }

    /// Frees the runs of large records until that is enough, the first of them in any case. Says how many.
    fn free_runs(&self, applier: &Applier<'_>, records: &[Record<'_>], enough: impl Fn() -> bool) -> Result<usize> {
        for (done, record) in records.iter().enumerate() {
            if done > 0 && enough() {
                return Ok(done);
            }
            if let Some(run) = large::sound_run(self, record.bytes)? {
                run.free_now(self, applier)?;
            }
        }
        Ok(records.len())
    }
}

//! Frees detached subtrees in bounded batches, once no snapshot can read them.

use crate::base::{Lsn, PageId, Result, TableId};
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

/// The most pages that one batch frees. It changes no more pages than this, or fewer if the pool is small.
const STEP_PAGES: usize = 64;

/// The most dirty pages that a batch leaves besides allocation maps: inner pages, pages of the key heap, the catalog.
const STEP_IMAGES: usize = 24;

/// The part of these pages that the last step of a batch may need: pages of the key heap, inner pages, the catalog.
const LAST_IMAGES: usize = 16;

/// Whether the large values of a subtree are freed with it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LargeValues {
    /// They are freed with the subtree.
    Free = 0,
    /// They are kept: the table was rebuilt, and its new tree points to them.
    Keep = 1,
}

/// A detached subtree that is not yet freed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingSubtree {
    /// Snapshots before this LSN may still read it.
    pub(crate) since: Lsn,
    /// The table id in its pages.
    pub(crate) table: TableId,
    pub(crate) large_values: LargeValues,
}

impl PendingSubtree {
    /// Decodes the record of the catalog, after a restart: no open snapshot is older than that.
    pub(crate) fn decode(record: &[u8]) -> Option<PendingSubtree> {
        let (table, large_values) = record.split_first_chunk()?;
        let large_values =
            if large_values == [LargeValues::Keep as u8] { LargeValues::Keep } else { LargeValues::Free };
        Some(PendingSubtree { since: Lsn::ZERO, table: TableId(u32::from_le_bytes(*table)), large_values })
    }
}

impl Engine {
    /// The first subtree that no snapshot can read, if there is one.
    fn next_to_free(&self) -> Option<(PageId, PendingSubtree)> {
        let oldest = self.snapshots.oldest();
        let detached = self.detached.read();
        let ((since, root), pending) = detached.first_key_value()?;
        (*since <= oldest).then_some((*root, *pending))
    }

    /// Frees one batch of pages of detached subtrees that no snapshot needs. Returns false if there are none, or if a
    /// writing transaction is still open after `timeout`. Without a `timeout` it waits for the transaction.
    pub(crate) fn reclaim_step(&self, catalog: &Tree, timeout: Option<Duration>) -> Result<bool> {
        if self.next_to_free().is_none() {
            return Ok(false);
        }
        let Some(writer) = self.lock_writer_within(timeout)? else { return Ok(false) };
        // Another thread may have freed it while this one waited for the lock.
        if self.next_to_free().is_none() {
            return Ok(false);
        }
        self.wait_for_due_checkpoint();
        if self.store.is_some() {
            self.log()?.reserve(STEP_PAGES * self.pool.page_size())?;
            self.ensure_room(self.step_images() as u64, 0)?;
        }
        self.prune();
        let end = self.free_piece(catalog)?;
        drop(writer);
        self.settle(end, Durability::None)?;
        Ok(true)
    }

    /// Frees the subtrees that were detached before `end` and that no snapshot needs. Does not wait for subtrees that
    /// other threads detach during this call.
    pub(crate) fn reclaim_before(&self, catalog: &Tree, end: Lsn) -> Result<()> {
        let waits = || self.detached.read().first_key_value().is_some_and(|((since, _), _)| *since < end);
        while waits() && self.reclaim_step(catalog, None)? {}
        Ok(())
    }

    /// True if there are detached subtrees that are not yet freed.
    pub(crate) fn has_detached(&self) -> bool {
        self.detached.len() > 0
    }

    /// How many detached subtrees open snapshots may still read.
    pub(crate) fn held_subtrees(&self) -> usize {
        let after = self.snapshots.oldest().plus(1);
        self.detached.read().range((after, PageId::NONE)..).count()
    }

    /// The most dirty pages that a batch leaves, including allocation maps: each freed page may be in another map.
    fn step_images(&self) -> usize {
        STEP_IMAGES + self.map_count().min(self.pool.capacity() / 4).min(STEP_PAGES)
    }

    /// The number of changed pages at which a batch ends. The step in progress may then change a few more.
    fn max_step_pages(&self) -> usize {
        (self.pool.capacity() / 4).clamp(1, STEP_PAGES).min(self.step_images() - LAST_IMAGES)
    }

    /// Applies and logs one batch that frees pages. It removes the catalog entry of each subtree that is completely
    /// freed.
    fn free_piece(&self, catalog: &Tree) -> Result<Lsn> {
        let mut clock = self.apply.lock();
        let start = if self.is_logged() { self.log()?.next_lsn() } else { *clock };
        let end = self.poison_on_panic("it freed pages", || self.free_pages(catalog, start));
        *clock = end.inspect_err(|cause| self.poison(cause))?;
        Ok(*clock)
    }

    fn free_pages(&self, catalog: &Tree, start: Lsn) -> Result<Lsn> {
        let applier = Applier::new(self, start, BatchBuffer::new());
        let (max_pages, max_log) = (self.max_step_pages(), STEP_PAGES * self.pool.page_size() / 4);
        let (freed, complete) = (Cell::new(0), Cell::new(0));
        let enough =
            |more| freed.get() + more >= STEP_PAGES || applier.pages() >= max_pages || applier.len() >= max_log;
        // It is called after each leaf, when what is left is a valid subtree.
        let enough_after_leaf = |more| {
            complete.set(applier.len());
            enough(more)
        };
        while let Some((root, pending)) = self.next_to_free().filter(|_| !enough(0)) {
            let subtree = Tree { root, table: pending.table, layout: catalog.layout };
            let free_values = |records: &[Record<'_>]| match pending.large_values {
                LargeValues::Free => self.free_runs(&applier, records, || enough(0)),
                LargeValues::Keep => Ok(records.len()),
            };
            complete.set(applier.len());
            match subtree.free_subtree(&applier, root, enough_after_leaf, free_values) {
                Ok(progress) => {
                    freed.set(freed.get() + progress.freed);
                    if !progress.done {
                        break;
                    }
                    let key = detached_key(root);
                    catalog.remove(&applier, &key, |old| self.note_before(&applier, catalog.table, &key, Some(old)))?;
                }
                // This subtree cannot be freed now. Its remaining pages stay in use, its catalog entry stays, and the
                // next opening tries again. The loop continues with the other subtrees. This is correct only if the
                // batch contains no part of a leaf. After a part of a leaf was freed, the leaf refers to free pages.
                // The next arm then returns the error: nothing of this batch is logged, and writing stops.
                // After a failed sync writing stops, too: a read may evict a page, which may need a sync of the log.
                Err(error) if applier.len() == complete.get() && error.is_of_a_page() && !self.has_failed_sync() => {
                    tracing::warn!(%error, %root, "a dropped subtree cannot be freed completely");
                }
                Err(other) => return Err(other),
            }
            self.detached.change(|all| all.remove(&(pending.since, root)));
        }
        self.append_batch(applier.finish(), start)
    }

    /// Frees the runs of large records until `enough` returns true, but at least the first run. Returns how many it has
    /// freed. If a run after the first one cannot be read, it stops before this run. The next call then begins with
    /// this run and fails before it has changed anything.
    fn free_runs(&self, applier: &Applier<'_>, records: &[Record<'_>], enough: impl Fn() -> bool) -> Result<usize> {
        for (done, record) in records.iter().enumerate() {
            if done > 0 && enough() {
                return Ok(done);
            }
            match large::sound_run(self, record.bytes) {
                Ok(run) => run.map_or(Ok(()), |run| run.free_now(self, applier))?,
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
        Ok(records.len())
    }
}

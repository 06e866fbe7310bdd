//! Freeing detached subtrees, a bounded batch at a time, once no snapshot can read them.

use super::applier::Applier;
use super::commit::detached_key;
use super::engine::{Durability, Engine};
use super::large;
use crate::base::{Error, Lsn, Result, TableId};
use crate::log::BatchBuffer;
use crate::page::Record;
use crate::tree::Tree;

/// Pages freed in one batch.
const STEP_PAGES: usize = 64;

/// Pages that such a batch may change and leave: inner ones, those of the key heap, allocation maps, the catalog.
const STEP_IMAGES: u64 = 24;

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
    /// Frees up to a batch of pages of a detached subtree that no snapshot needs; false when there is none.
    pub(crate) fn reclaim_step(&self, catalog: &Tree) -> Result<bool> {
        let ripe = || {
            let oldest = self.snapshots.oldest();
            self.detached.lock().iter().find(|(_, at)| at.since <= oldest).map(|(root, at)| (*root, *at))
        };
        if ripe().is_none() {
            return Ok(false);
        }
        let writer = self.lock_writer()?;
        // Another thread may have freed it meanwhile.
        let Some((root, Waiting { table, runs, .. })) = ripe() else { return Ok(false) };
        if let Some(store) = &self.store {
            self.log()?.reserve(STEP_PAGES * self.pool.page_size())?;
            store.ensure_room(self.pool.dirty_pages() + STEP_IMAGES)?;
        }
        self.prune();
        let end = self.free_piece(catalog, &Tree { root, table, layout: catalog.layout }, runs)?;
        drop(writer);
        self.settle(end, Durability::None)?;
        Ok(true)
    }

    /// Like a commit of its own: a batch that frees pages and, at the end, forgets the subtree.
    fn free_piece(&self, catalog: &Tree, subtree: &Tree, runs: Runs) -> Result<Lsn> {
        let mut clock = self.apply.lock();
        let start = if self.is_logged() { self.log()?.next_lsn() } else { *clock };
        let end = self.whole("it freed pages", || self.free_pages(catalog, subtree, runs, start));
        *clock = end.inspect_err(|cause| self.poison(cause))?;
        Ok(*clock)
    }

    fn free_pages(&self, catalog: &Tree, subtree: &Tree, runs: Runs, start: Lsn) -> Result<Lsn> {
        let applier = Applier::new(self, start, BatchBuffer::new());
        let large = |records: &[Record<'_>]| match runs {
            Runs::Free => large::free_now(self, &applier, records),
            Runs::Keep => Ok(()),
        };
        let done = match subtree.free_subtree(&applier, subtree.root, STEP_PAGES, large) {
            Ok(progress) => progress.done,
            // What hangs on a damaged page stays taken; that must stop nobody. The catalog keeps the entry.
            Err(Error::Corrupt { page, what }) => {
                tracing::warn!(%page, what, root = %subtree.root, "a dropped subtree cannot be freed to its end");
                self.detached.lock().remove(&subtree.root);
                false
            }
            Err(other) => return Err(other),
        };
        if done {
            let key = detached_key(subtree.root);
            catalog.remove(&applier, &key, |old| self.note_before(&applier, catalog.table, &key, Some(old)))?;
            self.detached.lock().remove(&subtree.root);
        }
        self.append_batch(applier.finish(), start)
    }
}

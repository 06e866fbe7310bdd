//! Freeing detached subtrees, a bounded batch at a time, once no snapshot can read them.

use super::applier::Applier;
use super::commit::detached_key;
use super::engine::Engine;
use super::large;
use crate::base::Result;
use crate::log::BatchBuffer;
use crate::page::Record;
use crate::tree::Tree;

/// Pages freed in one batch.
const STEP_PAGES: usize = 64;

impl Engine {
    /// Frees up to a batch of pages of a detached subtree that no snapshot needs; false when there is none.
    pub(crate) fn reclaim_step(&self, catalog: &Tree) -> Result<bool> {
        let oldest = self.snapshots.oldest();
        let ripe = self.detached.lock().iter().find(|(_, (lsn, _))| *lsn <= oldest).map(|(root, at)| (*root, at.1));
        let Some((root, table)) = ripe else { return Ok(false) };
        let _writer = self.lock_writer()?;
        if self.is_logged() {
            self.log()?.reserve(STEP_PAGES * self.pool.page_size())?;
        }
        self.prune();
        self.free_piece(catalog, &Tree { root, table, layout: catalog.layout })
            .inspect_err(|cause| self.poison(cause))?;
        Ok(true)
    }

    /// Like a commit of its own: a batch that frees pages and, at the end, forgets the subtree.
    fn free_piece(&self, catalog: &Tree, subtree: &Tree) -> Result<()> {
        let mut clock = self.apply.lock();
        let start = if self.is_logged() { self.log()?.next_lsn() } else { *clock };
        let applier = Applier::new(self, start, BatchBuffer::new());
        let large = |record: Record<'_>| large::free(self, &applier, record.bytes);
        let progress = subtree.free_subtree(&applier, subtree.root, STEP_PAGES, large)?;
        if progress.done {
            let key = detached_key(subtree.root);
            catalog.remove(&applier, &key, |old| self.note_before(&applier, catalog.table, &key, Some(old)))?;
            self.detached.lock().remove(&subtree.root);
        }
        let end = self.append_batch(applier.finish(), start)?;
        *clock = end;
        drop(clock);
        self.snapshots.publish(end);
        Ok(())
    }
}

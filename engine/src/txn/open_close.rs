//! The last step of opening a database, once its pages can be read; and the close of a database.

use super::commit::steps::{Step, Steps};
use super::commit::{CATALOG_ROOT, DETACHED_PREFIX};
use super::durability::Durability;
use super::engine::Engine;
use super::read::cursor::{Cursor, ReadView};
use super::redo::RedoResult;
use super::space::reclaim::PendingSubtree;
use super::space::shrink::ShrinkLimits;
use crate::base::watermark::Watermark;
use crate::base::{Error, Lsn, PageId, Result};
use crate::store::Meta;
use crate::tree::Tree;
use std::collections::BTreeMap;
use std::ops::Bound;

impl Engine {
    /// Creates the catalog if the creation of the database was interrupted before it, completes an unfinished large
    /// transaction, and finds the subtrees that are to be freed. `is_new`: no checkpoint has been taken yet.
    ///
    /// # Errors
    /// [`Error::CorruptMeta`] if the database has lost its catalog.
    pub(crate) fn finish_opening(
        &self,
        catalog: &Tree,
        redone: RedoResult,
        recovered: bool,
        is_new: bool,
    ) -> Result<()> {
        if let Err(stopped) = self.check_poison() {
            // A transaction that is applied in part must not be seen.
            return redone.unfinished.map_or(Ok(()), |_| Err(stopped));
        }
        if !self.pool.exists(CATALOG_ROOT) {
            if !is_new {
                return Err(catalog_is_gone());
            }
            self.create_catalog(catalog)?;
        }
        if let Some(transaction) = &redone.unfinished {
            let end = self.finish_large(transaction, catalog)?;
            self.snapshots.publish(end);
        }
        // Read here, because a large transaction may have added entries to the catalog.
        let detached = self.catalogued_subtrees(catalog)?;
        self.detached.change(|all| *all = detached);
        if recovered {
            match self.checkpoint() {
                Err(cause @ Error::Full { .. }) => {
                    tracing::warn!(%cause, "no checkpoint after recovery: the log stays")
                }
                taken => drop(taken?),
            }
        }
        Ok(())
    }

    /// The detached subtrees that are listed in the catalog.
    pub(crate) fn catalogued_subtrees(&self, catalog: &Tree) -> Result<BTreeMap<(Lsn, PageId), PendingSubtree>> {
        let from = Bound::Included(vec![DETACHED_PREFIX]);
        let to = Bound::Excluded(vec![DETACHED_PREFIX + 1]);
        let mut detached = BTreeMap::new();
        let mut cursor = Cursor::new(self, *catalog, ReadView::Snapshot(Lsn::MAX), from, to);
        while let Some((key, record)) = cursor.next()? {
            let root = key.get(1..).and_then(|id| id.try_into().ok()).map(u32::from_be_bytes);
            let (Some(root), Some(pending)) = (root, PendingSubtree::decode(record.bytes)) else {
                let why = "the entry of a detached subtree is damaged".to_owned();
                return Err(Error::CorruptMeta { what: "the catalog", why });
            };
            detached.insert((pending.since, PageId(root)), pending);
        }
        Ok(detached)
    }

    /// Creates the catalog of a new database.
    pub(crate) fn create_catalog(&self, catalog: &Tree) -> Result<()> {
        // It is the first id after the allocation map.
        if self.is_logged() {
            self.ids.lock().take_exactly(CATALOG_ROOT);
        }
        let mut steps = Steps::default();
        steps.extend([Step::Create { tree: catalog }]);
        let end = self.commit(&steps, catalog, 0)?;
        self.settle(end, Durability::Commit)
    }

    /// Frees detached subtrees, writes all pages to the file and removes the log.
    pub(crate) fn close(&self, catalog: &Tree) -> Result<()> {
        self.check_poison()?;
        if let Some(log) = self.log.get() {
            // First, so that commits that were not synced survive an error of the next steps.
            log.make_durable(log.appended()).inspect_err(|cause| self.poison(cause))?;
            // The space may be needed, and nothing uses these files any more.
            log.remove_spares()?;
        }
        loop {
            match self.reclaim_step(catalog, None) {
                Ok(true) => {}
                Ok(false) => break,
                // The catalog lists the remaining subtrees. The next opening frees them.
                Err(cause @ Error::Full { .. }) => {
                    tracing::warn!(%cause, "no space to free dropped pages; the next opening frees them");
                    break;
                }
                Err(other) => return Err(other),
            }
        }
        self.prune_all();
        let Some(store) = &self.store else { return Ok(()) };
        self.checkpoint_with_room()?;
        self.shrink_within(ShrinkLimits::worth_while(&store.stats()), &mut |_, _| ())?;
        let meta = Meta { clean: true, ..store.file().meta() };
        store.close(meta)?;
        self.log()?.remove_all()
    }
}

/// The error if a database that has had a checkpoint has no catalog.
pub(crate) fn catalog_is_gone() -> Error {
    let why =
        format!("page {CATALOG_ROOT}, its root, is not in the file: the file was truncated, or a write of it was lost");
    Error::CorruptMeta { what: "the catalog", why }
}

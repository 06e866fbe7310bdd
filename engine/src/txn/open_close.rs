//! What opening a database does once its pages can be read, and what closing it does.

use super::commit::steps::{Step, Steps};
use super::commit::{CATALOG_ROOT, DETACHED_PREFIX};
use super::durability::Durability;
use super::engine::Engine;
use super::read::cursor::{Cursor, View};
use super::redo::Redone;
use super::space::reclaim::Waiting;
use super::space::shrink::ShrinkLimits;
use crate::base::{Error, Lsn, PageId, Result};
use crate::store::Meta;
use crate::tree::Tree;
use std::collections::BTreeMap;
use std::ops::Bound;

impl Engine {
    /// Makes the catalog of a new database, finishes a large transaction, finds subtrees that wait to be freed.
    pub(crate) fn finish_opening(&self, catalog: &Tree, redone: Redone, recovered: bool) -> Result<()> {
        if let Err(stopped) = self.check_poison() {
            // Half of a transaction must not be seen.
            return redone.unfinished.map_or(Ok(()), |_| Err(stopped));
        }
        if !self.pool.exists(CATALOG_ROOT) {
            self.create_catalog(catalog)?;
        }
        if let Some(transaction) = &redone.unfinished {
            let end = self.finish_large(transaction, catalog)?;
            self.snapshots.publish(end);
        }
        // The catalog also has those that a large transaction has just detached.
        let detached = self.catalogued_subtrees(catalog)?;
        *self.detached.lock() = detached;
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

    /// The detached subtrees that the catalog names.
    fn catalogued_subtrees(&self, catalog: &Tree) -> Result<BTreeMap<(Lsn, PageId), Waiting>> {
        let from = Bound::Included(vec![DETACHED_PREFIX]);
        let to = Bound::Excluded(vec![DETACHED_PREFIX + 1]);
        let mut detached = BTreeMap::new();
        let mut cursor = Cursor::new(self, *catalog, View::At(Lsn::MAX), from, to);
        while let Some((key, record)) = cursor.next()? {
            let root = key.get(1..).and_then(|id| id.try_into().ok()).map(u32::from_be_bytes);
            let (Some(root), Some(waiting)) = (root, Waiting::decode(record.bytes)) else {
                let why = "the entry of a detached subtree is damaged".to_owned();
                return Err(Error::CorruptMeta { what: "the catalog", why });
            };
            detached.insert((waiting.since, PageId(root)), waiting);
        }
        Ok(detached)
    }

    /// Makes the catalog of a new database.
    pub(crate) fn create_catalog(&self, catalog: &Tree) -> Result<()> {
        // The first id of all.
        if self.is_logged() {
            self.ids.lock().take_exactly(CATALOG_ROOT);
        }
        let mut steps = Steps::default();
        steps.extend([Step::Create { tree: catalog }]);
        let end = self.commit(&steps, catalog, 0)?;
        self.settle(end, Durability::Commit)
    }

    /// Frees what was dropped, writes everything to the file and removes the log.
    pub(crate) fn close(&self, catalog: &Tree) -> Result<()> {
        self.check_poison()?;
        loop {
            match self.reclaim_step(catalog, None) {
                Ok(true) => {}
                Ok(false) => break,
                // What waits to be freed is in the catalog: the next opening frees it.
                Err(cause @ Error::Full { .. }) => {
                    tracing::warn!(%cause, "no room to free what was dropped; it stays until the next opening");
                    break;
                }
                Err(other) => return Err(other),
            }
        }
        self.prune_all();
        let Some(store) = &self.store else { return Ok(()) };
        self.checkpoint_with_room()?;
        self.shrink_within(ShrinkLimits::worth_while(&store.stats()))?;
        let meta = Meta { clean: true, ..store.file().meta() };
        // Into both places: without its log, the file must not depend on one of them.
        store.file().write_meta(meta)?;
        store.file().write_meta(meta)?;
        self.log()?.remove_all()
    }
}

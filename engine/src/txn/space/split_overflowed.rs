//! Splits leaves that did not compress to the targets of their tables ([`Overflow::Split`](crate::store::Overflow)).

use crate::base::{Error, Lsn, PageId, Result, TableId, limits};
use crate::log::BatchBuffer;
use crate::page::Page;
use crate::store::{PageCompression, PageStore};
use crate::tree::Tree;
use crate::txn::commit::applier::Applier;
use crate::txn::durability::Durability;
use crate::txn::engine::Engine;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The most leaves that one batch splits.
const STEP_SPLITS: usize = 16;

/// The most pages that the split of a leaf changes: two new pages and an old one at each of six levels, and the
/// allocation maps.
const PAGES_OF_SPLIT: usize = 24;

/// A leaf to be split.
struct Candidate {
    id: PageId,
    tree: Tree,
    /// The lower fence of the leaf, which it covers.
    key: Vec<u8>,
}

impl Engine {
    /// True if there are leaves to be split.
    pub(crate) fn has_overflowed(&self) -> bool {
        self.compression().is_some_and(PageCompression::has_to_be_split)
    }

    /// Splits a batch of leaves that missed the targets of their tables. Returns false if there are none, or if a
    /// writing transaction is still open after `timeout`. Without a `timeout` it waits for the transaction. `tree_of`
    /// returns the tree of a table.
    pub(crate) fn split_step(
        &self,
        timeout: Option<Duration>,
        tree_of: impl Fn(TableId) -> Result<Option<Tree>>,
    ) -> Result<bool> {
        let (Some(store), Some(compression)) = (&self.store, self.compression()) else { return Ok(false) };
        if !compression.has_to_be_split() {
            return Ok(false);
        }
        let Some(writer) = self.lock_writer_within(timeout)? else { return Ok(false) };
        self.wait_for_due_checkpoint();
        let most = (self.pool.capacity() / 4 / PAGES_OF_SPLIT).clamp(1, STEP_SPLITS);
        self.log()?.reserve(most * PAGES_OF_SPLIT * self.pool.page_size())?;
        let pages = (most * PAGES_OF_SPLIT) as u64;
        self.ensure_room(pages, pages)?;
        let mut candidates = Vec::new();
        for id in compression.take_to_be_split(most) {
            candidates.extend(self.candidate(&**store, id, &tree_of)?);
        }
        if candidates.is_empty() {
            return Ok(true);
        }
        let end = {
            let mut clock = self.apply.lock();
            let start = self.log()?.next_lsn();
            let end = self.poison_on_panic("it split leaves", || self.split_all(&candidates, start));
            *clock = end.inspect_err(|cause| self.poison(cause))?;
            *clock
        };
        drop(writer);
        self.settle(end, Durability::None)?;
        Ok(true)
    }

    /// A page that was to be split, if it still is. `None` if it has been changed since, or if one of the pages above
    /// it, or a key that the split may need, is damaged: then a split could not be finished.
    fn candidate(
        &self,
        store: &dyn PageStore,
        id: PageId,
        tree_of: &impl Fn(TableId) -> Result<Option<Tree>>,
    ) -> Result<Option<Candidate>> {
        if !store.may_exist(id) {
            return Ok(None);
        }
        let found = self.pool.read(id).map(|latched| {
            let page = Page::new(&latched);
            let key = page.lower_fence();
            let is_short = key.len() <= limits::long_key_head(self.pool.page_size());
            (page.is_leaf() && is_short).then(|| (page.table(), key.to_vec()))
        });
        let Some((table, key)) = ignore_damage(found)?.flatten() else { return Ok(None) };
        let Some(tree) = tree_of(table)? else { return Ok(None) };
        let can_split = ignore_damage(tree.can_split_leaf(&self.pages(), id, &key))?;
        Ok((can_split == Some(true)).then_some(Candidate { id, tree, key }))
    }

    fn split_all(&self, candidates: &[Candidate], start: Lsn) -> Result<Lsn> {
        let applier = Applier::new(self, start, BatchBuffer::new());
        for Candidate { id, tree, key } in candidates {
            tree.split_leaf_at(&applier, *id, key)?;
            self.overflow_splits.fetch_add(1, Ordering::Relaxed);
        }
        self.append_batch(applier.finish(), start)
    }
}

/// `None` for a damaged page.
fn ignore_damage<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::Corrupt { .. }) => Ok(None),
        Err(other) => Err(other),
    }
}

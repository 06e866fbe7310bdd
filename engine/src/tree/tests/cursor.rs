//! A cursor over the current tree, and a count of a subtree, for the tests of this layer. The cursor has a copy of a
//! leaf and a position in it. It sees later changes when it continues at the next leaf. `txn` has the cursor of
//! snapshots.

use crate::base::{Error, PageId, Result};
use crate::page::{Page, Record};
use crate::tree::search::{LeafTarget, child_of};
use crate::tree::{DetachedSubtree, KeyRange, LeafCopy, PageRead, Tree};
use std::collections::HashSet;

/// Iterates over the entries of a tree in both directions. It begins before the first entry.
#[derive(Debug)]
pub(super) struct TreeCursor<'s, S> {
    tree: Tree,
    store: &'s S,
    leaf: LeafCopy,
    /// The slot of the entry that `next_entry` returns. `prev_entry` returns the one before.
    at: usize,
    loaded: bool,
    /// The bounds of the tree. The fences of a detached subtree may be wider.
    bounds: KeyRange,
}

/// An entry: its whole key and its record.
pub(super) type Entry<'c> = (&'c [u8], Record<'c>);

impl<'s, S: PageRead> TreeCursor<'s, S> {
    /// A cursor before the first entry.
    pub(super) fn new(tree: Tree, store: &'s S) -> TreeCursor<'s, S> {
        let bounds = KeyRange::default();
        TreeCursor { tree, store, leaf: LeafCopy::new(), at: 0, loaded: false, bounds }
    }

    /// A cursor before the first entry of a subtree that was detached from `tree`.
    pub(super) fn of_subtree(tree: Tree, store: &'s S, subtree: &DetachedSubtree) -> TreeCursor<'s, S> {
        let bounds = KeyRange::between(&subtree.lower, subtree.upper.as_deref());
        TreeCursor { bounds, ..TreeCursor::new(Tree { root: subtree.root, ..tree }, store) }
    }

    fn load(&mut self, target: LeafTarget<'_>) -> Result<()> {
        self.leaf.load(&self.tree, self.store, target)?;
        self.loaded = true;
        Ok(())
    }

    /// Moves before the first entry.
    pub(super) fn seek_first(&mut self) -> Result<()> {
        self.load(LeafTarget::First)?;
        self.at = 0;
        Ok(())
    }

    /// Moves after the last entry.
    pub(super) fn seek_last(&mut self) -> Result<()> {
        self.load(LeafTarget::Last)?;
        self.at = self.leaf.count();
        Ok(())
    }

    /// Moves before the first entry with a key of at least `key`.
    pub(super) fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.load(LeafTarget::Covering(key))?;
        let (Ok(slot) | Err(slot)) = self.leaf.search(key);
        self.at = slot;
        Ok(())
    }

    /// Returns the entry after the cursor and moves past it; `None` at the end.
    pub(super) fn next_entry(&mut self) -> Result<Option<Entry<'_>>> {
        if !self.loaded {
            self.seek_first()?;
        }
        while self.at >= self.leaf.count() {
            let Some(upper) = self.leaf.upper().map(<[u8]>::to_vec) else { return Ok(None) };
            if self.bounds.upper.as_ref().is_some_and(|end| upper >= *end) {
                return Ok(None);
            }
            self.load(LeafTarget::Covering(&upper))?;
            // A merge may have moved keys before `upper` to the same leaf in the meantime.
            let (Ok(slot) | Err(slot)) = self.leaf.search(&upper);
            self.at = slot;
        }
        self.at += 1;
        Ok(Some(self.entry(self.at - 1)))
    }

    /// Returns the entry before the cursor and moves before it; `None` at the start.
    pub(super) fn prev_entry(&mut self) -> Result<Option<Entry<'_>>> {
        while self.loaded && self.at == 0 {
            let lower = self.leaf.lower().to_vec();
            if lower <= self.bounds.lower {
                return Ok(None);
            }
            self.load(LeafTarget::Before(&lower))?;
            let (Ok(slot) | Err(slot)) = self.leaf.search(&lower);
            self.at = slot;
        }
        let Some(slot) = self.at.checked_sub(1) else { return Ok(None) };
        self.at = slot;
        Ok(Some(self.entry(slot)))
    }

    fn entry(&mut self, slot: usize) -> Entry<'_> {
        self.leaf.fetch(slot);
        (self.leaf.key(slot), self.leaf.record(slot))
    }
}

/// The number of entries and of pages of a subtree, without the runs of its keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct SubtreeCount {
    pub(super) entries: u64,
    pub(super) pages: u64,
}

/// Counts the entries and pages of the subtree of `tree` at `root`.
pub(super) fn count_subtree<S: PageRead>(tree: &Tree, store: &S, root: PageId) -> Result<SubtreeCount> {
    let mut total = SubtreeCount::default();
    let level = Page::new(&store.read(root)?).level();
    let mut waiting = vec![(root, level)];
    let mut seen = HashSet::new();
    while let Some((id, level)) = waiting.pop() {
        if !seen.insert(id) {
            return Err(Error::corrupt(id, "two parents lead to it"));
        }
        let latched = store.read(id)?;
        let page = Page::new(&latched);
        tree.check_page(page, id, level)?;
        total.pages += 1;
        if level == 0 {
            total.entries += page.count() as u64;
            continue;
        }
        for slot in 0..page.count() {
            waiting.push((child_of(page, slot)?, level - 1));
        }
    }
    Ok(total)
}

//! The leaf that a cursor reads: a copy of a leaf, changed to the entries that the view of the cursor sees, and the
//! position of the cursor in it.

use super::cursor::ReadView;
use crate::base::{Lsn, Result};
use crate::page::{IntegerEncoding, Record};
use crate::tree::{KeyRange, LeafCopy, LeafReadAhead, LeafTarget, Tree};
use crate::txn::commit::write_set::WriteSet;
use crate::txn::engine::Engine;
use crate::txn::versions::OwnedRecord;
use crate::txn::versions::detached_ranges::Route;
use crate::txn::versions::range_map::Position;
use std::cell::Cell;
use std::ops::{Bound, Deref, DerefMut};
use std::sync::atomic::Ordering;

#[derive(Default)]
enum Body {
    /// The entries of the copied leaf.
    #[default]
    Leaf,
    /// The entries of the leaf merged with before-images or writes.
    Merged(Vec<(Vec<u8>, OwnedRecord)>),
}

/// A copied leaf, and the position of the cursor in it.
#[derive(Default)]
pub(super) struct CursorLeaf {
    leaf: LeafCopy,
    body: Body,
    /// The keys for which the entries are valid. `None`: all keys between the fences of the leaf.
    cut: Option<KeyRange>,
    /// The slot of the next entry (front), or one more than it (back).
    pub(super) next: usize,
    /// The keys of entries before this slot are fetched. For the front they are also known to be below the upper bound.
    pub(super) checked: usize,
    pub(super) loaded: bool,
    /// The leaf is from the tree itself, not from a detached subtree.
    live: bool,
    /// The value of [`Engine::frees`] before the leaf was copied.
    frees: u64,
    ahead: LeafReadAhead,
}

/// A larger copy is freed and not kept for the next cursor.
const MAX_SPARE: usize = 64 << 10;

thread_local! {
    /// The leaf of the last cursor of this thread, for the next cursor: in a short scan an allocation takes longer than
    /// reading the leaf.
    static SPARE: Cell<Option<Box<CursorLeaf>>> = const { Cell::new(None) };
}

/// A leaf of a cursor, in the memory of an earlier cursor of this thread. It is boxed because a cursor is moved several
/// times before its first entry.
pub(super) struct ReusedLeaf(Option<Box<CursorLeaf>>);

impl ReusedLeaf {
    /// Memory without a leaf.
    #[inline]
    pub(super) fn empty() -> ReusedLeaf {
        let mut spare = SPARE.try_with(Cell::take).ok().flatten().unwrap_or_default();
        spare.clear();
        ReusedLeaf(Some(spare))
    }
}

/// Only `drop` takes the leaf.
const TAKEN: &str = "a cursor's leaf is used after its end";

impl Deref for ReusedLeaf {
    type Target = CursorLeaf;

    #[inline(always)]
    fn deref(&self) -> &CursorLeaf {
        match &self.0 {
            Some(leaf) => leaf,
            None => unreachable!("{TAKEN}"),
        }
    }
}

impl DerefMut for ReusedLeaf {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut CursorLeaf {
        match &mut self.0 {
            Some(leaf) => leaf,
            None => unreachable!("{TAKEN}"),
        }
    }
}

impl Drop for ReusedLeaf {
    #[inline]
    fn drop(&mut self) {
        if let Some(mut leaf) = self.0.take()
            && (1..=MAX_SPARE).contains(&leaf.leaf.room())
        {
            // Older versions of the entries may take much more memory.
            (leaf.body, leaf.cut) = (Body::Leaf, None);
            // While the thread ends, `SPARE` may already be destroyed.
            let _ = SPARE.try_with(|spare| spare.set(Some(leaf)));
        }
    }
}

impl CursorLeaf {
    /// Removes the leaf but keeps its memory.
    #[inline]
    fn clear(&mut self) {
        self.leaf.clear();
        (self.body, self.cut) = (Body::Leaf, None);
        (self.next, self.checked, self.loaded) = (0, 0, false);
        (self.live, self.frees, self.ahead) = (false, 0, LeafReadAhead::default());
    }

    /// The lowest key for which the entries are valid.
    pub(super) fn lower(&self) -> &[u8] {
        self.cut.as_ref().map_or(self.leaf.lower(), |cut| &cut.lower)
    }

    /// The lowest key above those for which the entries are valid. `None`: they are valid to the end of the table.
    #[inline]
    pub(super) fn upper(&self) -> Option<&[u8]> {
        self.cut.as_ref().map_or(self.leaf.upper(), |cut| cut.upper.as_deref())
    }

    /// The keys for which the entries are valid.
    fn key_range(&self) -> KeyRange {
        KeyRange::between(self.lower(), self.upper())
    }

    /// The number of entries.
    #[inline]
    pub(super) fn len(&self) -> usize {
        match &self.body {
            Body::Leaf => self.leaf.count(),
            Body::Merged(entries) => entries.len(),
        }
    }

    /// Prepares the keys of one or more entries from `slot` on for [`CursorLeaf::key`]. Returns the slot after them.
    #[inline]
    pub(super) fn fetch(&mut self, slot: usize) -> usize {
        match &self.body {
            Body::Leaf => self.leaf.fetch(slot).max(slot + 1),
            Body::Merged(entries) => entries.len().max(slot + 1),
        }
    }

    /// The key of an entry that has been fetched.
    #[inline]
    pub(super) fn key(&self, slot: usize) -> &[u8] {
        match &self.body {
            Body::Leaf => self.leaf.key(slot),
            Body::Merged(entries) => entries.get(slot).map_or(&[], |(key, _)| key),
        }
    }

    /// Appends the keys from the next entry to the end of its block. Returns their encoding, or `None` if the leaf has
    /// no blocks.
    pub(super) fn block_into(&self, keys: &mut Vec<u64>) -> Option<IntegerEncoding> {
        let page = match &self.body {
            Body::Leaf if self.next < self.leaf.count() => self.leaf.page(),
            _ => return None,
        };
        page.rest_of_block(self.next, keys)
    }

    /// The record of an entry.
    #[inline]
    pub(super) fn record(&self, slot: usize) -> Record<'_> {
        match &self.body {
            Body::Leaf => self.leaf.record(slot),
            Body::Merged(entries) => match entries.get(slot) {
                Some((_, record)) => Record { bytes: &record.bytes, large: record.large },
                None => Record { bytes: &[], large: false },
            },
        }
    }

    /// `Ok(slot)` of the entry of `key`, or `Err(slot)` of the first entry with a greater key.
    pub(super) fn search(&self, key: &[u8]) -> Result<usize, usize> {
        match &self.body {
            Body::Leaf => self.leaf.search(key),
            Body::Merged(entries) => entries.binary_search_by(|(k, _)| k.as_slice().cmp(key)),
        }
    }

    /// The first slot whose key is not below `key`.
    pub(super) fn position(&self, key: &[u8]) -> usize {
        self.search(key).unwrap_or_else(|slot| slot)
    }

    /// Copies the leaf at `at` and changes it to the entries that `view` sees.
    pub(super) fn load(&mut self, engine: &Engine, tree: &Tree, view: ReadView<'_>, at: Position<'_>) -> Result<()> {
        self.loaded = false;
        self.checked = 0;
        self.body = Body::Leaf;
        match view {
            ReadView::Creating(writes) => self.overlay(writes),
            ReadView::Snapshot(_) | ReadView::Writing(_) => {
                self.copy(engine, tree, at)?;
                self.live = true;
                self.reconcile(engine, tree, view, at)?;
            }
        }
        self.loaded = true;
        Ok(())
    }

    /// Loads the last leaf that has keys below the upper bound. The next entry from the back is the last of these keys.
    pub(super) fn load_end(
        &mut self,
        engine: &Engine,
        tree: &Tree,
        view: ReadView<'_>,
        upper: &Bound<Vec<u8>>,
    ) -> Result<()> {
        let at = match upper {
            Bound::Unbounded => Position::End,
            Bound::Included(key) => Position::Key(key),
            Bound::Excluded(key) if key.is_empty() => Position::Key(key),
            Bound::Excluded(key) => Position::Before(key),
        };
        self.load(engine, tree, view, at)?;
        self.next = match upper {
            Bound::Unbounded => self.len(),
            Bound::Included(key) => match self.search(key) {
                Ok(slot) => slot + 1,
                Err(slot) => slot,
            },
            Bound::Excluded(key) => self.position(key),
        };
        Ok(())
    }

    /// Moves to the next leaf. The current one must not be the last.
    pub(super) fn go_right(&mut self, engine: &Engine, tree: &Tree, view: ReadView<'_>) -> Result<()> {
        // The right link leads to the next leaf, except if only a part of this leaf is valid, or if pages were freed. A
        // leaf that was detached, and not freed, still has the right content for this view.
        let whole = self.live && self.leaf.upper() == self.upper();
        let right = whole && self.leaf.load_right(tree, &engine.pages())?;
        if right && engine.frees.load(Ordering::Acquire) == self.frees {
            (self.body, self.cut) = (Body::Leaf, None);
            self.prefetch_right(engine, tree);
            (self.next, self.checked) = (0, 0);
            let old = match view {
                ReadView::Snapshot(snapshot) => self.leaf.lsn() > snapshot,
                ReadView::Writing(_) | ReadView::Creating(_) => true,
            };
            if old {
                let from = self.leaf.lower().to_vec();
                self.loaded = false;
                self.reconcile(engine, tree, view, Position::Key(&from))?;
                self.loaded = true;
                self.next = self.position(&from);
            }
            return Ok(());
        }
        let from = if right { self.leaf.lower() } else { self.upper().unwrap_or_default() }.to_vec();
        self.load(engine, tree, view, Position::Key(&from))?;
        self.next = self.position(&from);
        Ok(())
    }

    /// Prefetches the leaf to the right, or hints to the device that it will be read.
    pub(super) fn prefetch_right(&mut self, engine: &Engine, tree: &Tree) {
        let right = self.leaf.page().right();
        if self.live
            && !right.is_none()
            && let Some(upper) = self.leaf.upper()
        {
            self.ahead.step(tree, &engine.pages(), right, upper);
        }
    }

    /// Changes the copied leaf to the entries that `view` sees.
    fn reconcile(&mut self, engine: &Engine, tree: &Tree, view: ReadView<'_>, at: Position<'_>) -> Result<()> {
        match view {
            ReadView::Creating(_) | ReadView::Snapshot(Lsn::MAX) => Ok(()),
            ReadView::Snapshot(snapshot) if self.leaf.lsn() > snapshot => self.undo(engine, tree, snapshot, at),
            ReadView::Snapshot(_) => Ok(()),
            ReadView::Writing(writes) => {
                if writes.touches(self.lower(), self.upper()) {
                    self.overlay(writes);
                }
                Ok(())
            }
        }
    }

    /// Copies the leaf of `tree` at `at`. All of it is taken as valid.
    fn copy(&mut self, engine: &Engine, tree: &Tree, at: Position<'_>) -> Result<()> {
        let pages = engine.pages();
        let target = match at {
            Position::Key(key) => LeafTarget::Covering(key),
            Position::Before(key) => LeafTarget::Before(key),
            Position::End => LeafTarget::Last,
        };
        self.frees = engine.frees.load(Ordering::Acquire);
        self.cut = None;
        self.leaf.load(tree, &pages, target)
    }

    /// The leaf has changed since the snapshot: gets its older entries.
    fn undo(&mut self, engine: &Engine, tree: &Tree, snapshot: Lsn, at: Position<'_>) -> Result<()> {
        let versions = &engine.versions;
        let route = || versions.route(tree.table, at, snapshot);
        let points =
            |own: &KeyRange, until| versions.points(tree.table, &own.lower, own.upper.as_deref(), snapshot, until);
        let clear = |mut own: KeyRange| {
            versions.clear_range(tree.table, at, snapshot, &mut own);
            own
        };
        let (own, undone) = loop {
            if let Some(Route { root, key_range, until }) = route() {
                self.live = false;
                self.copy(engine, &Tree { root, ..*tree }, at)?;
                let own = self.key_range().within(&key_range);
                let undone = points(&own, until);
                break (own, undone);
            }
            let own = clear(self.key_range());
            let undone = points(&own, Lsn::MAX);
            // If a part of the leaf was detached during this loop, the events may belong to the tree that replaced that
            // part.
            if route().is_none() && clear(own.clone()) == own {
                break (own, undone);
            }
        };
        let changes = undone.iter().map(|(key, before)| (&**key, before.as_ref().map(OwnedRecord::view)));
        self.merge(&own, |_| false, changes);
        self.cut = Some(own);
        Ok(())
    }

    fn overlay(&mut self, writes: &WriteSet) {
        let own = self.key_range();
        let points = writes.points_in(&own.lower, own.upper.as_deref());
        self.merge(&own, |key| writes.is_cleared(key), points);
    }

    /// Merges `changes`, which are in key order, into the entries of the leaf that are in `key_range`.
    fn merge<'c>(
        &mut self,
        key_range: &KeyRange,
        hidden: impl Fn(&[u8]) -> bool,
        changes: impl Iterator<Item = (&'c [u8], Option<Record<'c>>)>,
    ) {
        let mut merged = Vec::with_capacity(self.leaf.count());
        let mut changes = changes.peekable();
        let mut key = Vec::new();
        for slot in 0..self.leaf.count() {
            self.leaf.key_into(slot, &mut key);
            if !key_range.contains(&key) {
                continue;
            }
            while let Some((changed, record)) = changes.next_if(|(changed, _)| *changed < key.as_slice()) {
                merged.extend(record.map(|record| (changed.to_vec(), record.into())));
            }
            match changes.next_if(|(changed, _)| *changed == key.as_slice()) {
                Some((_, record)) => merged.extend(record.map(|record| (key.clone(), record.into()))),
                None if hidden(&key) => {}
                None => merged.push((key.clone(), self.leaf.record(slot).into())),
            }
        }
        for (changed, record) in changes {
            merged.extend(record.map(|record| (changed.to_vec(), record.into())));
        }
        self.body = Body::Merged(merged);
    }
}

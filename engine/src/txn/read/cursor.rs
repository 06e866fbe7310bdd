//! Cursors iterate over the entries of a key range, in both directions, as a snapshot or a writing transaction sees
//! them.
//!
//! A cursor copies one leaf at a time: a leaf of the tree, or of a detached subtree that the snapshot still sees. It
//! uses the part of the copy that is valid for its view, and merges before-images or the transaction's own writes into
//! it only if there are any. The front and the back of a cursor each have their own leaf.

use crate::base::{Lsn, Result};
use crate::page::Record;
use crate::tree::{KeyRange, LeafCopy, ReadAhead, Target, Tree};
use crate::txn::commit::write_set::WriteSet;
use crate::txn::engine::Engine;
use crate::txn::versions::OwnedRecord;
use crate::txn::versions::detached_ranges::Route;
use crate::txn::versions::range_pieces::At;
use std::cell::Cell;
use std::ops::Bound;
use std::sync::atomic::Ordering;

/// Which state of a table a cursor reads.
#[derive(Clone, Copy)]
pub(crate) enum View<'a> {
    /// The state at a snapshot.
    At(Lsn),
    /// The current state, with the writes of the open transaction.
    Writing(&'a WriteSet),
    /// The table is created by the open transaction, so there is nothing but its writes.
    Creating(&'a WriteSet),
}

enum Body {
    /// The entries of the copied leaf.
    Leaf,
    /// The entries of the leaf merged with before-images or writes.
    Merged(Vec<(Vec<u8>, OwnedRecord)>),
}

/// A copied leaf, and the position of the cursor in it.
struct CursorLeaf {
    leaf: LeafCopy,
    body: Body,
    /// The keys for which the entries are valid. `None`: all keys between the fences of the leaf.
    cut: Option<KeyRange>,
    /// The slot of the next entry (front), or one more than it (back).
    next: usize,
    /// The keys of entries before this slot are fetched. For the front they are also known to be below the upper bound.
    checked: usize,
    loaded: bool,
    /// The leaf is from the tree itself, not from a detached subtree.
    live: bool,
    /// The value of [`Engine::released`] before the leaf was copied.
    released: u64,
    ahead: ReadAhead,
}

/// Iterates over the entries of a key range, both ways.
pub(crate) struct Cursor<'a> {
    engine: &'a Engine,
    tree: Tree,
    view: View<'a>,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    front: CursorLeaf,
    back: CursorLeaf,
    exhausted: bool,
    /// The bound of the other end does not yet exclude the last entry that this end has returned.
    front_moved: bool,
    back_moved: bool,
}

impl<'a> Cursor<'a> {
    /// A cursor over the keys of a table between two bounds.
    pub(crate) fn new(
        engine: &'a Engine,
        tree: Tree,
        view: View<'a>,
        lower: Bound<Vec<u8>>,
        upper: Bound<Vec<u8>>,
    ) -> Cursor<'a> {
        let exhausted = upper != Bound::Unbounded && KeyRange::of(lower.clone(), upper.clone()).is_empty();
        let (front, back) = (CursorLeaf::empty(), CursorLeaf::empty());
        let (front_moved, back_moved) = (false, false);
        Cursor { engine, tree, view, lower, upper, front, back, exhausted, front_moved, back_moved }
    }

    /// The next entry from the front.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(&[u8], Record<'_>)>> {
        if self.front.next >= self.front.checked && !self.find_next()? {
            return Ok(None);
        }
        let slot = self.front.next;
        self.front.next += 1;
        Ok(Some((self.front.key(slot), self.front.record(slot))))
    }

    /// Fetches the next entry of the front and some entries after it, and compares only the last of them with the upper
    /// bound. Returns false if there is no next entry.
    #[inline(never)]
    fn find_next(&mut self) -> Result<bool> {
        if self.exhausted {
            return Ok(false);
        }
        self.note_front();
        if std::mem::take(&mut self.back_moved) {
            set_excluded(&mut self.upper, self.back.key(self.back.next));
        }
        if !self.front.loaded {
            self.load_front()?;
        }
        while self.front.next >= self.front.len() {
            if !self.front.upper().is_some_and(|upper| self.below_upper(upper)) {
                self.exhausted = true;
                return Ok(false);
            }
            self.front.go_right(self.engine, &self.tree, self.view)?;
        }
        let next = self.front.next;
        let (mut last, mut checked) = (self.front.fetch(next), next);
        if !self.below_upper(self.front.key(last - 1)) {
            // Usually the last key is below the bound. Otherwise find the first that is not.
            while checked < last {
                let middle = checked.midpoint(last);
                match self.below_upper(self.front.key(middle)) {
                    true => checked = middle + 1,
                    false => last = middle,
                }
            }
        }
        self.front.checked = last;
        self.front_moved = last > next;
        self.exhausted = last == next;
        Ok(last > next)
    }

    /// Makes the lower bound exclude the last entry that the front has returned.
    fn note_front(&mut self) {
        if std::mem::take(&mut self.front_moved) {
            set_excluded(&mut self.lower, self.front.key(self.front.next - 1));
        }
    }

    /// Puts the remaining integer keys of the front's block in `keys` and moves past them. This is for callers that
    /// want many keys and no values. Returns false if the next entry is in no block; then use [`Cursor::next`]. The
    /// cursor must not also be moved from the back.
    pub(crate) fn next_block(&mut self, keys: &mut Vec<u64>) -> Result<bool> {
        keys.clear();
        if self.exhausted {
            return Ok(false);
        }
        if !self.front.loaded {
            self.load_front()?;
        }
        let Some(width) = self.front.block_into(keys) else { return Ok(false) };
        let bytes = |key: u64| key.to_be_bytes();
        let below = |key: &u64| self.below_upper(bytes(*key).get(8 - width..).unwrap_or_default());
        if !keys.last().is_none_or(below) {
            keys.truncate(keys.partition_point(below));
            self.exhausted = true;
        }
        let Some(last) = keys.last() else { return Ok(false) };
        set_excluded(&mut self.lower, bytes(*last).get(8 - width..).unwrap_or_default());
        self.front_moved = false;
        self.front.next += keys.len();
        Ok(true)
    }

    /// The next entry from the back.
    pub(crate) fn next_back(&mut self) -> Result<Option<(&[u8], Record<'_>)>> {
        if self.exhausted {
            return Ok(None);
        }
        self.note_front();
        // The back may now return entries that the front has checked.
        self.front.checked = 0;
        if !self.back.loaded {
            self.load_back()?;
        }
        while self.back.next == 0 {
            let lower = self.back.lower().to_vec();
            if lower.is_empty() || !self.above_lower(&lower) {
                self.exhausted = true;
                return Ok(None);
            }
            self.back.load(self.engine, &self.tree, self.view, At::Before(&lower))?;
            self.back.next = self.back.position(&lower);
        }
        let slot = self.back.next - 1;
        self.back.fetch(slot);
        if !self.reaches_lower(self.back.key(slot)) {
            self.exhausted = true;
            return Ok(None);
        }
        self.back_moved = true;
        self.back.next = slot;
        Ok(Some((self.back.key(slot), self.back.record(slot))))
    }

    fn load_front(&mut self) -> Result<()> {
        let from: &[u8] = match &self.lower {
            Bound::Unbounded => &[],
            Bound::Included(key) | Bound::Excluded(key) => key,
        };
        self.front.load(self.engine, &self.tree, self.view, At::Key(from))?;
        let found = self.front.search(from);
        self.front.next = match (&self.lower, found) {
            (Bound::Excluded(_), Ok(slot)) => slot + 1,
            (_, Ok(slot) | Err(slot)) => slot,
        };
        if self.front.len() - self.front.next.min(self.front.len()) < SHORT {
            self.front.prefetch_right(self.engine, &self.tree);
        }
        Ok(())
    }

    fn load_back(&mut self) -> Result<()> {
        let at = match &self.upper {
            Bound::Unbounded => At::End,
            Bound::Included(key) => At::Key(key),
            Bound::Excluded(key) if key.is_empty() => At::Key(key),
            Bound::Excluded(key) => At::Before(key),
        };
        self.back.load(self.engine, &self.tree, self.view, at)?;
        self.back.next = match &self.upper {
            Bound::Unbounded => self.back.len(),
            Bound::Included(key) => match self.back.search(key) {
                Ok(slot) => slot + 1,
                Err(slot) => slot,
            },
            Bound::Excluded(key) => self.back.position(key),
        };
        Ok(())
    }

    fn below_upper(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => key <= upper.as_slice(),
            Bound::Excluded(upper) => key < upper.as_slice(),
        }
    }

    /// True if `key` is inside the lower bound.
    fn reaches_lower(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) => key >= lower.as_slice(),
            Bound::Excluded(lower) => key > lower.as_slice(),
        }
    }

    /// True if keys below `key` can be inside the lower bound.
    fn above_lower(&self, key: &[u8]) -> bool {
        match &self.lower {
            Bound::Unbounded => true,
            Bound::Included(lower) | Bound::Excluded(lower) => key > lower.as_slice(),
        }
    }
}

/// If fewer entries than this are left, the next leaf is prefetched.
const SHORT: usize = 16;

/// Makes a bound exclude `key`. Uses the memory of the old bound if it has any.
fn set_excluded(bound: &mut Bound<Vec<u8>>, key: &[u8]) {
    let mut own = match std::mem::replace(bound, Bound::Unbounded) {
        Bound::Included(old) | Bound::Excluded(old) => old,
        Bound::Unbounded => Vec::new(),
    };
    own.clear();
    own.extend_from_slice(key);
    *bound = Bound::Excluded(own);
}

/// A larger copy is freed and not kept for the next cursor.
const MOST_SPARE: usize = 64 << 10;

thread_local! {
    /// The leaf copy of the last cursor of this thread, for the next cursor: in a short scan an allocation takes longer
    /// than reading the leaf.
    static SPARE: Cell<Option<LeafCopy>> = const { Cell::new(None) };
}

impl Drop for CursorLeaf {
    fn drop(&mut self) {
        if (1..=MOST_SPARE).contains(&self.leaf.room()) {
            let leaf = std::mem::take(&mut self.leaf);
            // While the thread ends, `SPARE` may already be destroyed.
            let _ = SPARE.try_with(|spare| spare.set(Some(leaf)));
        }
    }
}

impl CursorLeaf {
    fn empty() -> CursorLeaf {
        let mut leaf = SPARE.try_with(Cell::take).ok().flatten().unwrap_or_default();
        leaf.clear();
        let (body, ahead) = (Body::Leaf, ReadAhead::default());
        CursorLeaf { leaf, body, cut: None, next: 0, checked: 0, loaded: false, live: false, released: 0, ahead }
    }

    /// The lowest key for which the entries are valid.
    fn lower(&self) -> &[u8] {
        self.cut.as_ref().map_or(self.leaf.lower(), |cut| &cut.lower)
    }

    /// The lowest key above those for which the entries are valid. `None`: they are valid to the end of the table.
    fn upper(&self) -> Option<&[u8]> {
        self.cut.as_ref().map_or(self.leaf.upper(), |cut| cut.upper.as_deref())
    }

    /// The keys for which the entries are valid.
    fn key_range(&self) -> KeyRange {
        KeyRange { lower: self.lower().to_vec(), upper: self.upper().map(<[u8]>::to_vec) }
    }

    fn len(&self) -> usize {
        match &self.body {
            Body::Leaf => self.leaf.count(),
            Body::Merged(entries) => entries.len(),
        }
    }

    /// Prepares the keys of one or more entries from `slot` on for [`CursorLeaf::key`]. Returns the slot after them.
    fn fetch(&mut self, slot: usize) -> usize {
        match &self.body {
            Body::Leaf => self.leaf.fetch(slot).max(slot + 1),
            Body::Merged(entries) => entries.len().max(slot + 1),
        }
    }

    /// The key of an entry that has been fetched.
    #[inline]
    fn key(&self, slot: usize) -> &[u8] {
        match &self.body {
            Body::Leaf => self.leaf.key(slot),
            Body::Merged(entries) => entries.get(slot).map_or(&[], |(key, _)| key),
        }
    }

    /// Appends the keys from the next entry to the end of its block. Returns their width in bytes, or `None` if the
    /// leaf has no blocks.
    fn block_into(&self, keys: &mut Vec<u64>) -> Option<usize> {
        let page = match &self.body {
            Body::Leaf if self.next < self.leaf.count() => self.leaf.page(),
            _ => return None,
        };
        page.rest_of_block(self.next, keys)
    }

    #[inline]
    fn record(&self, slot: usize) -> Record<'_> {
        match &self.body {
            Body::Leaf => self.leaf.record(slot),
            Body::Merged(entries) => match entries.get(slot) {
                Some((_, record)) => Record { bytes: &record.bytes, large: record.large },
                None => Record { bytes: &[], large: false },
            },
        }
    }

    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        match &self.body {
            Body::Leaf => self.leaf.search(key),
            Body::Merged(entries) => entries.binary_search_by(|(k, _)| k.as_slice().cmp(key)),
        }
    }

    /// The first slot whose key is not below `key`.
    fn position(&self, key: &[u8]) -> usize {
        self.search(key).unwrap_or_else(|slot| slot)
    }

    fn load(&mut self, engine: &Engine, tree: &Tree, view: View<'_>, at: At<'_>) -> Result<()> {
        self.loaded = false;
        self.checked = 0;
        self.body = Body::Leaf;
        match view {
            View::Creating(writes) => self.overlay(writes),
            View::At(_) | View::Writing(_) => {
                self.copy(engine, tree, at)?;
                self.live = true;
                self.reconcile(engine, tree, view, at)?;
            }
        }
        self.loaded = true;
        Ok(())
    }

    /// Moves to the next leaf. The current one must not be the last.
    fn go_right(&mut self, engine: &Engine, tree: &Tree, view: View<'_>) -> Result<()> {
        // The right link leads to the next leaf, except if only a part of this leaf is valid, or if the id in the link
        // was released and used again. A leaf that was merged away or detached, and whose id was not released, still
        // has the right content for this view.
        let whole = self.live && self.leaf.upper() == self.upper();
        let right = whole && self.leaf.load_right(tree, &engine.pages())?;
        if right && engine.released.load(Ordering::Acquire) == self.released {
            (self.body, self.cut) = (Body::Leaf, None);
            self.prefetch_right(engine, tree);
            (self.next, self.checked) = (0, 0);
            let old = match view {
                View::At(snapshot) => self.leaf.lsn() > snapshot,
                View::Writing(_) | View::Creating(_) => true,
            };
            if old {
                let from = self.leaf.lower().to_vec();
                self.loaded = false;
                self.reconcile(engine, tree, view, At::Key(&from))?;
                self.loaded = true;
                self.next = self.position(&from);
            }
            return Ok(());
        }
        let from = if right { self.leaf.lower() } else { self.upper().unwrap_or_default() }.to_vec();
        self.load(engine, tree, view, At::Key(&from))?;
        self.next = self.position(&from);
        Ok(())
    }

    fn prefetch_right(&mut self, engine: &Engine, tree: &Tree) {
        let right = self.leaf.page().right();
        if self.live
            && !right.is_none()
            && let Some(upper) = self.leaf.upper()
        {
            self.ahead.step(tree, &engine.pages(), right, upper);
        }
    }

    /// Changes the copied leaf to what `view` sees.
    fn reconcile(&mut self, engine: &Engine, tree: &Tree, view: View<'_>, at: At<'_>) -> Result<()> {
        match view {
            View::Creating(_) | View::At(Lsn::MAX) => Ok(()),
            View::At(snapshot) if self.leaf.lsn() > snapshot => self.undo(engine, tree, snapshot, at),
            View::At(_) => Ok(()),
            View::Writing(writes) => {
                if writes.touches(self.lower(), self.upper()) {
                    self.overlay(writes);
                }
                Ok(())
            }
        }
    }

    /// Copies the leaf of `tree` at `at`. All of it is taken as valid.
    fn copy(&mut self, engine: &Engine, tree: &Tree, at: At<'_>) -> Result<()> {
        let pages = engine.pages();
        let target = match at {
            At::Key(key) => Target::Covering(key),
            At::Before(key) => Target::Before(key),
            At::End => Target::Last,
        };
        self.released = engine.released.load(Ordering::Acquire);
        self.cut = None;
        self.leaf.load(tree, &pages, target)
    }

    /// The leaf has changed since the snapshot: gets its older entries.
    fn undo(&mut self, engine: &Engine, tree: &Tree, snapshot: Lsn, at: At<'_>) -> Result<()> {
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

//! Cursors iterate over the entries of a key range, in both directions, as a snapshot or a writing transaction sees
//! them.
//!
//! A cursor copies one leaf at a time: a leaf of the tree, or of a detached subtree that the snapshot still sees. It
//! uses the part of the copy that is valid for its view, and merges before-images or the transaction's own writes into
//! it only if there are any. The front and the back of a cursor each have their own leaf.
//!
//! No latch is held while a cursor iterates over its copy. It continues at the right sibling or, if the sibling may
//! have been freed, with a new descent.

use super::cursor_leaf::ReusedLeaf;
use crate::base::{Lsn, Result};
use crate::page::Record;
use crate::tree::{KeyRange, Tree};
use crate::txn::commit::write_set::WriteSet;
use crate::txn::engine::Engine;
use crate::txn::versions::range_map::Position;
use std::ops::Bound;

/// The state of a table that a cursor reads.
#[derive(Clone, Copy)]
pub(crate) enum ReadView<'a> {
    /// The state at a snapshot.
    Snapshot(Lsn),
    /// The current state, with the writes of the open transaction.
    Writing(&'a WriteSet),
    /// The table is created by the open transaction, so there is nothing but its writes.
    Creating(&'a WriteSet),
}

/// Iterates over the entries of a key range, both ways.
pub(crate) struct Cursor<'a> {
    engine: &'a Engine,
    tree: Tree,
    view: ReadView<'a>,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    front: ReusedLeaf,
    /// `None` before the first entry from the back.
    back: Option<ReusedLeaf>,
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
        view: ReadView<'a>,
        lower: Bound<Vec<u8>>,
        upper: Bound<Vec<u8>>,
    ) -> Cursor<'a> {
        let exhausted = upper != Bound::Unbounded && KeyRange::of(lower.clone(), upper.clone()).is_empty();
        let (front_moved, back_moved) = (false, false);
        let front = ReusedLeaf::empty();
        Cursor { engine, tree, view, lower, upper, front, back: None, exhausted, front_moved, back_moved }
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
        if std::mem::take(&mut self.back_moved)
            && let Some(back) = &self.back
        {
            set_excluded(&mut self.upper, back.key(back.next));
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
        let Some(encoding) = self.front.block_into(keys) else { return Ok(false) };
        let below = |integer: &u64| encoding.with_key(*integer, |key| self.below_upper(key));
        if !keys.last().is_none_or(below) {
            keys.truncate(keys.partition_point(below));
            self.exhausted = true;
        }
        let Some(last) = keys.last() else { return Ok(false) };
        encoding.with_key(*last, |key| set_excluded(&mut self.lower, key));
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
        let back = self.back.get_or_insert_with(ReusedLeaf::empty);
        if !back.loaded {
            back.load_end(self.engine, &self.tree, self.view, &self.upper)?;
        }
        while back.next == 0 {
            let lower = back.lower().to_vec();
            if lower.is_empty() || !is_above_lower(&self.lower, &lower) {
                self.exhausted = true;
                return Ok(None);
            }
            back.load(self.engine, &self.tree, self.view, Position::Before(&lower))?;
            back.next = back.position(&lower);
        }
        let slot = back.next - 1;
        back.fetch(slot);
        if !reaches_lower(&self.lower, back.key(slot)) {
            self.exhausted = true;
            return Ok(None);
        }
        self.back_moved = true;
        back.next = slot;
        Ok(Some((back.key(slot), back.record(slot))))
    }

    fn load_front(&mut self) -> Result<()> {
        let from: &[u8] = match &self.lower {
            Bound::Unbounded => &[],
            Bound::Included(key) | Bound::Excluded(key) => key,
        };
        self.front.load(self.engine, &self.tree, self.view, Position::Key(from))?;
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

    fn below_upper(&self, key: &[u8]) -> bool {
        match &self.upper {
            Bound::Unbounded => true,
            Bound::Included(upper) => key <= upper.as_slice(),
            Bound::Excluded(upper) => key < upper.as_slice(),
        }
    }
}

/// True if `key` is inside the lower bound.
fn reaches_lower(lower: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match lower {
        Bound::Unbounded => true,
        Bound::Included(lower) => key >= lower.as_slice(),
        Bound::Excluded(lower) => key > lower.as_slice(),
    }
}

/// True if keys below `key` can be inside the lower bound.
fn is_above_lower(lower: &Bound<Vec<u8>>, key: &[u8]) -> bool {
    match lower {
        Bound::Unbounded => true,
        Bound::Included(lower) | Bound::Excluded(lower) => key > lower.as_slice(),
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

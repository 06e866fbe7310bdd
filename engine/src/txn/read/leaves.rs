//! Reads a table leaf by leaf, as a snapshot sees it, for callers that work on pages. A leaf that has not changed since
//! the snapshot is passed as a page, under its latch or as a copy. The entries of a changed leaf are passed one by one,
//! with the help of the version store.

use super::cursor::{Cursor, ReadView};
use crate::base::{Lsn, PageId, Result, limits};
use crate::page::{Page, Record};
use crate::tree::{KeyRange, LeafReadAhead, Tree};
use crate::txn::engine::Engine;
use std::ops::{Bound, Range};
use std::sync::atomic::Ordering;

/// A part of the entries that a snapshot sees.
pub(crate) enum VisibleEntries<'p> {
    /// The entries of these slots of a leaf.
    Leaf(Page<'p>, Range<usize>),
    /// One entry.
    Entry(&'p [u8], Record<'p>),
}

/// How leaves are passed to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Latched {
    /// The page itself, under its latch. The visitor must be short and must not use the database.
    Yes,
    /// A copy, without a latch. The visitor may take long or use the database.
    No,
}

/// The state of a leaf, examined under its latch.
#[derive(Clone)]
enum LeafState {
    /// No leaf was examined.
    Unknown,
    /// The snapshot sees the entries of these slots.
    Slots(Range<usize>),
    /// The leaf has changed since the snapshot, or has long keys, of which a page has only a part.
    Changed,
}

impl Engine {
    /// Passes all entries in `range` to `visit`, in the order of keys. With [`Latched::Yes`] `visit` gets the pages
    /// themselves, each under its latch, and must neither read nor write the database.
    pub(crate) fn leaves(
        &self,
        tree: &Tree,
        snapshot: Lsn,
        range: &KeyRange,
        latched: Latched,
        visit: &mut dyn FnMut(VisibleEntries<'_>) -> Result<()>,
    ) -> Result<()> {
        let pages = self.pages();
        let (mut at, mut upper) = (range.lower.clone(), Vec::new());
        let (mut copy, mut ahead, mut right) = (Vec::new(), LeafReadAhead::default(), PageId::NONE);
        while range.is_above(&at) {
            let (mut state, mut last, mut begun) = (LeafState::Unknown, false, false);
            let frees = self.frees.load(Ordering::Acquire);
            tree.leaves_from(&pages, &at.clone(), &mut ahead, |page| {
                if std::mem::replace(&mut begun, true) && self.frees.load(Ordering::Acquire) != frees {
                    // The link may be old, and its page a new one that begins at the same key by chance.
                    return Ok(false);
                }
                (state, last) = self.examine(page, snapshot, range, &mut at, &mut upper);
                right = page.right();
                let LeafState::Slots(slots) = state.clone() else { return Ok(false) };
                if latched == Latched::No {
                    copy.clear();
                    copy.extend_from_slice(page.bytes());
                    return Ok(false);
                }
                visit(VisibleEntries::Leaf(page, slots))?;
                Ok(!last)
            })?;
            match state {
                LeafState::Slots(slots) if latched == Latched::No => {
                    visit(VisibleEntries::Leaf(Page::new(&copy), slots))?
                }
                LeafState::Unknown | LeafState::Slots(_) => {}
                LeafState::Changed => {
                    let end = if last { range.upper.clone() } else { Some(upper.clone()) };
                    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
                    let mut cursor = Cursor::new(self, *tree, ReadView::Snapshot(snapshot), Bound::Included(at), end);
                    while let Some((key, record)) = cursor.next()? {
                        visit(VisibleEntries::Entry(key, record))?;
                    }
                }
            }
            if last {
                break;
            }
            at = std::mem::take(&mut upper);
            if !right.is_none() {
                ahead.step(tree, &pages, right, &at);
            }
        }
        Ok(())
    }

    /// Examines the leaf at or after `at`. Sets `at` to the first key to read, and `upper` to the upper fence. The
    /// second result is true if this is the last leaf of the range.
    fn examine(
        &self,
        page: Page<'_>,
        snapshot: Lsn,
        range: &KeyRange,
        at: &mut Vec<u8>,
        upper: &mut Vec<u8>,
    ) -> (LeafState, bool) {
        let inline = limits::max_inline_key(self.pool.page_size());
        let lower = page.lower_fence();
        // The image of a long key must not be compared with a key. The leaf before has ended with an inline key.
        if lower.len() <= inline && lower > at.as_slice() {
            at.clear();
            at.extend_from_slice(lower);
        }
        let has_upper = page.upper_fence_into(upper);
        if lower.len().max(upper.len()) > inline || page.first_longer(0, inline).is_some() {
            return (LeafState::Changed, true);
        }
        let last = !has_upper || !range.is_above(upper);
        if page.lsn() > snapshot {
            return (LeafState::Changed, last);
        }
        // Only in the first leaf some entries may be below the range.
        let begins = lower == at.as_slice();
        let from = if begins { 0 } else { page.search(at).unwrap_or_else(|slot| slot) };
        let to = match range.upper.as_ref().filter(|_| last) {
            Some(end) => page.search(end).unwrap_or_else(|slot| slot),
            None => page.count(),
        };
        (LeafState::Slots(from..to.max(from)), last)
    }

    /// Keys that divide a range into parts of similar size, which can be read independently: the borders of the
    /// subtrees of the root.
    pub(crate) fn dividers(&self, tree: &Tree, range: &KeyRange) -> Result<Vec<Vec<u8>>> {
        let mut dividers = tree.dividers(&self.pages())?;
        dividers.retain(|key| *key > range.lower && range.is_above(key));
        Ok(dividers)
    }
}

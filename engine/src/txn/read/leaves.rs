//! The entries of a table leaf by leaf, as a snapshot sees them, for callers that work on pages. A leaf that has not
//! changed since the snapshot is passed as it is, under its latch or as a copy. Of any other leaf the entries are passed
//! one by one, as the version store has them. What the caller computes must not be in this file.

use super::cursor::{Cursor, View};
use crate::base::{Lsn, Result, limits};
use crate::page::{Page, Record};
use crate::tree::{KeyRange, Tree};
use crate::txn::engine::Engine;
use std::ops::{Bound, Range};
use std::sync::atomic::Ordering;

/// A part of what a snapshot sees.
pub(crate) enum Part<'p> {
    /// The entries of these slots of a leaf.
    Leaf(Page<'p>, Range<usize>),
    /// One entry.
    Entry(&'p [u8], Record<'p>),
}

/// Whether leaves are handed over under their latches, or copies of them without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Latched {
    /// The page itself, for what is short and asks nothing of the database.
    Yes,
    /// A copy, for what may take long or reads the database itself.
    No,
}

/// What was found in a leaf under its latch.
#[derive(Clone)]
enum Met {
    /// No leaf has been looked at.
    Nothing,
    /// These slots are what the snapshot sees of the range.
    Slots(Range<usize>),
    /// It has changed since the snapshot, or has long keys, of which the page alone knows too little.
    Changed,
}

impl Engine {
    /// Hands everything in `range` to `visit`, in the order of keys. Of [`Latched::Yes`] leaves `visit` sees the pages
    /// themselves, each under its latch: it must neither read nor write the database.
    pub(crate) fn leaves(
        &self,
        tree: &Tree,
        snapshot: Lsn,
        range: &KeyRange,
        latched: Latched,
        visit: &mut dyn FnMut(Part<'_>) -> Result<()>,
    ) -> Result<()> {
        let pages = self.pages();
        let (mut at, mut upper) = (range.lower.clone(), Vec::new());
        let mut copy = Vec::new();
        while range.is_above(&at) {
            let (mut met, mut last, mut begun) = (Met::Nothing, false, false);
            let released = self.released.load(Ordering::Acquire);
            tree.leaves_from(&pages, &at.clone(), |page| {
                if std::mem::replace(&mut begun, true) && self.released.load(Ordering::Acquire) != released {
                    // The link may be old, and its page another one that happens to begin here.
                    return Ok(false);
                }
                (met, last) = self.look(page, snapshot, range, &mut at, &mut upper);
                let Met::Slots(slots) = met.clone() else { return Ok(false) };
                if latched == Latched::No {
                    copy.clear();
                    copy.extend_from_slice(page.bytes());
                    return Ok(false);
                }
                visit(Part::Leaf(page, slots))?;
                Ok(!last)
            })?;
            match met {
                Met::Slots(slots) if latched == Latched::No => visit(Part::Leaf(Page::new(&copy), slots))?,
                Met::Nothing | Met::Slots(_) => {}
                Met::Changed => {
                    let end = if last { range.upper.clone() } else { Some(upper.clone()) };
                    let end = end.map_or(Bound::Unbounded, Bound::Excluded);
                    let mut cursor = Cursor::new(self, *tree, View::At(snapshot), Bound::Included(at), end);
                    while let Some((key, record)) = cursor.next()? {
                        visit(Part::Entry(key, record))?;
                    }
                }
            }
            if last {
                break;
            }
            at = std::mem::take(&mut upper);
        }
        Ok(())
    }

    /// Looks at the leaf that follows `at`, which becomes where it begins, and `upper` where it ends. Says whether it is the last that
    /// need be looked at.
    fn look(
        &self,
        page: Page<'_>,
        snapshot: Lsn,
        range: &KeyRange,
        at: &mut Vec<u8>,
        upper: &mut Vec<u8>,
    ) -> (Met, bool) {
        let inline = limits::max_inline_key(self.pool.page_size());
        let lower = page.lower_fence();
        // A long key's image must not be compared with a key. The leaf before has ended with an inline one.
        if lower.len() <= inline && lower > at.as_slice() {
            at.clear();
            at.extend_from_slice(lower);
        }
        let has_upper = page.upper_fence_into(upper);
        if lower.len().max(upper.len()) > inline || page.first_longer(0, inline).is_some() {
            return (Met::Changed, true);
        }
        let last = !has_upper || !range.is_above(upper);
        if page.lsn() > snapshot {
            return (Met::Changed, last);
        }
        // Of all leaves but the first nothing is passed over.
        let begins = lower == at.as_slice();
        let from = if begins { 0 } else { page.search(at).unwrap_or_else(|slot| slot) };
        let to = match range.upper.as_ref().filter(|_| last) {
            Some(end) => page.search(end).unwrap_or_else(|slot| slot),
            None => page.count(),
        };
        (Met::Slots(from..to.max(from)), last)
    }

    /// Keys that divide a range into parts that are about as large as each other, each read without the others: the
    /// borders of the root's subtrees.
    pub(crate) fn dividers(&self, tree: &Tree, range: &KeyRange) -> Result<Vec<Vec<u8>>> {
        let mut dividers = tree.dividers(&self.pages())?;
        dividers.retain(|key| *key > range.lower && range.is_above(key));
        Ok(dividers)
    }
}

//! A table's entries leaf by leaf, as a snapshot sees them: for what would rather look at pages than at entries. A leaf
//! that has not changed since the snapshot is handed over as it is, under its latch or as a copy; of any other the
//! entries come one by one, put right by the version store. What is made of them must never be known here.

use super::applier::Pages;
use super::cursor::{Cursor, View};
use super::engine::Engine;
use crate::base::{Lsn, Result, limits};
use crate::page::{Page, Record};
use crate::tree::{Stretch, Tree};
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

/// What [`leaves`] learned of a leaf under its latch.
enum Met {
    /// It has been handed over; the range ends in it or goes on.
    Seen,
    /// It has been copied, to hand over these slots without a latch.
    Copied(Range<usize>),
    /// It has changed since the snapshot.
    Changed,
    /// It has long keys, of which the page alone knows too little.
    Long,
}

impl Engine {
    /// Hands everything in `range` to `visit`, in the order of keys. Of [`Latched::Yes`] leaves `visit` sees the pages
    /// themselves, each under its latch: it must neither read nor write the database.
    pub(crate) fn leaves(
        &self,
        tree: &Tree,
        snapshot: Lsn,
        range: &Stretch,
        latched: Latched,
        visit: &mut dyn FnMut(Part<'_>) -> Result<()>,
    ) -> Result<()> {
        let pages = Pages(&self.pool);
        let inline = limits::max_inline_key(self.pool.page_size());
        let (mut at, mut upper) = (range.lower.clone(), Vec::new());
        let mut copy = Vec::new();
        while range.is_above(&at) {
            let (mut met, mut last, mut begun) = (Met::Seen, false, false);
            let released = self.released.load(Ordering::Acquire);
            tree.leaves_from(&pages, &at.clone(), |page| {
                if std::mem::replace(&mut begun, true) && self.released.load(Ordering::Acquire) != released {
                    // The link may be old, and its page another one that happens to begin here.
                    return Ok(false);
                }
                let lower = page.lower_fence();
                // A long key's image must not be compared with a key. The leaf before has ended with an inline one.
                if lower.len() <= inline && lower > at.as_slice() {
                    at.clear();
                    at.extend_from_slice(lower);
                }
                let has_upper = page.upper_fence_into(&mut upper);
                if lower.len().max(upper.len()) > inline || page.first_longer(0, inline).is_some() {
                    (met, last) = (Met::Long, true);
                    return Ok(false);
                }
                last = !has_upper || !range.is_above(&upper);
                if page.lsn() > snapshot {
                    met = Met::Changed;
                    return Ok(false);
                }
                // Of all leaves but the first nothing is passed over.
                let begins = lower == at.as_slice();
                let from = if begins { 0 } else { page.search(&at).unwrap_or_else(|slot| slot) };
                let to = match range.upper.as_ref().filter(|_| last) {
                    Some(end) => page.search(end).unwrap_or_else(|slot| slot),
                    None => page.count(),
                };
                let slots = from..to.max(from);
                if latched == Latched::No {
                    copy.clear();
                    copy.extend_from_slice(page.bytes());
                    met = Met::Copied(slots);
                    return Ok(false);
                }
                visit(Part::Leaf(page, slots))?;
                Ok(!last)
            })?;
            match met {
                Met::Seen => {}
                Met::Copied(slots) => visit(Part::Leaf(Page::new(&copy), slots))?,
                Met::Changed | Met::Long => {
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

    /// Keys that divide a range into parts that are about as large as each other, each read without the others: the
    /// borders of the root's subtrees.
    pub(crate) fn dividers(&self, tree: &Tree, range: &Stretch) -> Result<Vec<Vec<u8>>> {
        let mut dividers = tree.dividers(&Pages(&self.pool))?;
        dividers.retain(|key| *key > range.lower && range.is_above(key));
        Ok(dividers)
    }
}

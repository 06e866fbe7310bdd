//! A table's entries leaf by leaf, as a snapshot sees them: for what would rather look at pages than at entries. A leaf
//! that has not changed since the snapshot is handed over as it is, under its latch; of any other the entries come one
//! by one, put right by the version store. What is made of them must never be known here.

use super::applier::Pages;
use super::cursor::{Cursor, View};
use super::engine::Engine;
use super::stretch::Stretch;
use crate::base::{Lsn, Result, limits};
use crate::page::{Page, Record};
use crate::tree::Tree;
use std::ops::{Bound, Range};

/// A part of what a snapshot sees.
pub(crate) enum Part<'p> {
    /// The entries of these slots of a leaf.
    Leaf(Page<'p>, Range<usize>),
    /// One entry.
    Entry(&'p [u8], Record<'p>),
}

/// What [`leaves`] learned of a leaf under its latch.
enum Met {
    /// It has been handed over; the range ends in it or goes on.
    Seen,
    /// It has changed since the snapshot.
    Changed,
    /// It has long keys, of which the page alone knows too little.
    Long,
}

impl Engine {
    /// Hands everything in `range` to `visit`, in the order of keys. `visit` runs under a leaf's latch and must not write.
    pub(crate) fn leaves(
        &self,
        tree: &Tree,
        snapshot: Lsn,
        range: &Stretch,
        visit: &mut dyn FnMut(Part<'_>) -> Result<()>,
    ) -> Result<()> {
        let pages = Pages(&self.pool);
        let inline = limits::max_inline_key(self.pool.page_size());
        let (mut at, mut upper) = (range.lower.clone(), Vec::new());
        while range.is_above(&at) {
            let (met, last) = tree.leaf_for(&pages, &at, |page| {
                let has_upper = page.upper_fence_into(&mut upper);
                let last = !has_upper || !range.is_above(&upper);
                let long = page.lower_fence().len().max(upper.len()) > inline || page.first_longer(0, inline).is_some();
                if long {
                    return Ok((Met::Long, true));
                }
                if page.lsn() > snapshot {
                    return Ok((Met::Changed, last));
                }
                let from = page.search(&at).unwrap_or_else(|slot| slot);
                let to = match range.upper.as_ref().filter(|_| last) {
                    Some(end) => page.search(end).unwrap_or_else(|slot| slot),
                    None => page.count(),
                };
                visit(Part::Leaf(page, from..to.max(from))).map(|()| (Met::Seen, last))
            })??;
            let end = if last { range.upper.clone() } else { Some(upper.clone()) };
            if !matches!(met, Met::Seen) {
                let end = end.map_or(Bound::Unbounded, Bound::Excluded);
                let mut cursor = Cursor::new(self, *tree, View::At(snapshot), Bound::Included(at), end);
                while let Some((key, record)) = cursor.next()? {
                    visit(Part::Entry(key, record))?;
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

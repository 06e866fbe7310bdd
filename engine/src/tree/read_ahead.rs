//! Read-ahead for an iteration over leaves that are not in memory: it hints early which leaves come next, so that the
//! device reads several of them at once. No result depends on it.
//!
//! A scan hints up to 64 leaves or 1 MiB ahead, whichever is less. When half of them are used, it hints the next ones.

use super::search::{Descent, LeafTarget};
use super::{PageRead, Tree};
use crate::base::{PageId, Result};
use std::ops::Range;

/// The number of leaves in the first hint, which is given at the third missing leaf. Each hint reaches twice as far as
/// the one before, so a short iteration reads little that it does not need.
const FIRST: usize = 4;
/// How far ahead hints reach, in bytes of pages.
const MAX_BYTES: usize = 1 << 20;

/// How many pages of this size ahead hints reach.
pub(super) fn most_ahead(page_size: usize) -> usize {
    (MAX_BYTES / page_size.max(1)).clamp(2 * FIRST, 64)
}

/// The hints of one iteration.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeafReadAhead {
    /// The number of following leaves that were hinted.
    hinted: usize,
    /// How many leaves ahead hints reach. Less than [`FIRST`] before the first hint.
    reach: usize,
    /// The hints have reached the last leaf.
    at_end: bool,
}

impl LeafReadAhead {
    /// Prepares the step to the leaf `right`, whose keys begin at `key`. The caller holds no latch.
    #[inline]
    pub fn step<S: PageRead>(&mut self, tree: &Tree, store: &S, right: PageId, key: &[u8]) {
        match store.prefetch(right) {
            true => self.pass(),
            false => self.missing(tree, store, key),
        }
    }

    /// Notes the step to a leaf that is in memory.
    #[inline]
    pub(super) fn pass(&mut self) {
        self.hinted = self.hinted.saturating_sub(1);
    }

    /// Hints more leaves as soon as half of the hinted ones are used, so that the device has more to read before all
    /// are used.
    #[cold]
    fn missing<S: PageRead>(&mut self, tree: &Tree, store: &S, key: &[u8]) {
        if self.hinted <= self.reach / 2 && !self.at_end {
            self.reach = (self.reach * 2).clamp(1, most_ahead(store.page_size()));
            if self.reach >= FIRST {
                // If there is an error, the read of the leaf returns it.
                let hinted = tree.will_read_from(store, key, self.hinted..self.reach).unwrap_or(self.hinted);
                self.at_end = hinted < self.reach;
                self.hinted = hinted;
            }
        }
        self.pass();
    }
}

impl Tree {
    /// Hints that `leaves` will be read. Leaf 0 is the one that covers `key`. Returns how many leaves are hinted,
    /// counted from leaf 0; less than `leaves.end` if the tree ends. Holds no latch while it calls the store, because
    /// the store may have to read chunks of the page table.
    fn will_read_from<S: PageRead>(&self, store: &S, key: &[u8], leaves: Range<usize>) -> Result<usize> {
        let (mut known, mut from, mut upper, mut children) = (0, key.to_vec(), Vec::new(), Vec::new());
        loop {
            let mut goes_on = false;
            let before = known;
            children.clear();
            self.descend_with(store, LeafTarget::Covering(&from), |event| {
                match event {
                    // The descent may restart.
                    Descent::Begins => {
                        (known, goes_on) = (before, false);
                        children.clear();
                    }
                    Descent::Passes(page, slot) if page.level() == 1 => {
                        let end = page.count().min(slot + (leaves.end - before));
                        let first = slot + leaves.start.saturating_sub(before);
                        children.extend((first..end).map(|slot| page.child(slot)));
                        known = before + end.saturating_sub(slot);
                        goes_on = known < leaves.end && page.upper_fence_into(&mut upper);
                    }
                    _ => {}
                }
                Ok(())
            })?;
            store.will_read(children.iter().copied());
            if !goes_on || upper <= from {
                return Ok(known);
            }
            from.clone_from(&upper);
        }
    }
}

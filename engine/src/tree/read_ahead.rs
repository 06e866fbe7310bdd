//! Read-ahead for an iteration over leaves that are not in memory: it hints early which leaves come next, so that the
//! device reads several of them at once. No result depends on it.

use super::search::{Descent, Target};
use super::{PageRead, Tree};
use crate::base::{PageId, Result};

/// The number of leaves in the first hint, which is given at the third missing leaf, and in the largest hint. Each hint
/// is twice as long as the one before, so a short iteration reads little that it does not need.
const FIRST: usize = 4;
const MOST: usize = 64;

/// The hints of one iteration.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadAhead {
    /// The number of following leaves that were hinted.
    hinted: usize,
    /// The number of leaves of the next hint. Less than [`FIRST`] before the first hint.
    next: usize,
}

impl ReadAhead {
    /// Prepares the step to the leaf `right`, whose keys begin at `key`. The caller holds no latch.
    #[inline]
    pub fn step<S: PageRead>(&mut self, tree: &Tree, store: &S, right: PageId, key: &[u8]) {
        if !store.prefetch(right) {
            self.missing(tree, store, key);
        }
    }

    #[cold]
    fn missing<S: PageRead>(&mut self, tree: &Tree, store: &S, key: &[u8]) {
        if self.hinted > 0 {
            self.hinted -= 1;
            return;
        }
        if self.next >= FIRST {
            // If there is an error, the read of the leaf returns it.
            self.hinted = tree.will_read_from(store, key, self.next).unwrap_or(0).saturating_sub(1);
        }
        self.next = (self.next * 2).clamp(FIRST / 2, MOST);
    }
}

impl Tree {
    /// Hints that the leaf that covers `key` and the next ones will be read, at most `most` of those that have the same
    /// parent. Returns their number.
    fn will_read_from<S: PageRead>(&self, store: &S, key: &[u8], most: usize) -> Result<usize> {
        let mut leaves = 0..0;
        self.descend_with(store, Target::Covering(key), |event| {
            if let Descent::Passes(page, slot) = event
                && page.level() == 1
            {
                leaves = slot..page.count().min(slot + most);
                store.will_read(leaves.clone().map(|slot| page.child(slot)));
            }
            Ok(())
        })?;
        Ok(leaves.len())
    }
}

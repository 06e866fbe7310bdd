//! Reading ahead for a walk over leaves that are not in memory: it hints early which leaves come next, so that the device
//! reads several of them at once. No result depends on it.

use super::search::Target;
use super::{PageRead, Tree};
use crate::base::{PageId, Result};

/// Leaves of the first hint, which is made at the third leaf that is missing, and of the largest one. Each hint is twice as
/// long as the one before, so that a short walk reads little that it does not need.
const FIRST: usize = 4;
const MOST: usize = 64;

/// The hints of one walk.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadAhead {
    /// Leaves that come next and were hinted.
    hinted: usize,
    /// Leaves of the next hint; fewer than [`FIRST`] before the first one.
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
            // Errors come back when the leaf itself is read.
            self.hinted = tree.will_read_from(store, key, self.next).unwrap_or(0).saturating_sub(1);
        }
        self.next = (self.next * 2).clamp(FIRST / 2, MOST);
    }
}

impl Tree {
    /// Hints that the leaf that covers `key` and the next ones will be read: up to `most` that have the same parent.
    /// Returns how many.
    fn will_read_from<S: PageRead>(&self, store: &S, key: &[u8], most: usize) -> Result<usize> {
        let mut leaves = 0..0;
        self.descend_noting(store, Target::Covering(key), |page, slot| {
            if page.level() == 1 {
                leaves = slot..page.count().min(slot + most);
                store.will_read(leaves.clone().map(|slot| page.child(slot)));
            }
            Ok(())
        })?;
        Ok(leaves.len())
    }
}

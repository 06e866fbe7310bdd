//! Freed page ids that must not be used again yet, because a recovery would apply the logged changes of the old page to
//! the new page with the same id. `StoreKind::reuses_ids` says whether a store needs this.

use crate::base::{Lsn, PageId};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Ids by the end of the log at the time when they were freed.
#[derive(Debug, Default)]
pub(crate) struct PendingFrees(Mutex<BTreeMap<Lsn, Vec<PageId>>>);

impl PendingFrees {
    /// Adds ids that records before `end` have freed.
    pub(crate) fn add(&self, end: Lsn, ids: impl IntoIterator<Item = PageId>) {
        self.0.lock().entry(end).or_default().extend(ids);
    }

    /// Removes and returns, in order, the ids that were freed before `redo`.
    pub(crate) fn take_before(&self, redo: Lsn) -> Vec<PageId> {
        let mut groups = self.0.lock();
        let later = groups.split_off(&redo.plus(1));
        let mut ids: Vec<PageId> = std::mem::replace(&mut *groups, later).into_values().flatten().collect();
        ids.sort_unstable();
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_ids_are_released_after_the_redo_point_has_passed_them() {
        let pending_frees = PendingFrees::default();
        pending_frees.add(Lsn(20), [PageId(7), PageId(3)]);
        pending_frees.add(Lsn(10), [PageId(5)]);
        assert_eq!(pending_frees.take_before(Lsn(9)), []);
        assert_eq!(pending_frees.take_before(Lsn(10)), [PageId(5)]);
        assert_eq!(pending_frees.take_before(Lsn(99)), [PageId(3), PageId(7)]);
        assert_eq!(pending_frees.take_before(Lsn(99)), []);
    }
}

//! Freed page ids that must not be used again yet: a recovery would redo the changes of the old page to the new page
//! with the same id. A store that needs this says so in `PageStore::reuses_ids_at_once`.

use crate::base::{Lsn, PageId};
use parking_lot::Mutex;
use std::collections::BTreeMap;

/// Ids by the end of the log when they were freed.
#[derive(Debug, Default)]
pub(crate) struct Withheld(Mutex<BTreeMap<Lsn, Vec<PageId>>>);

impl Withheld {
    /// Withholds ids that a record before `end` has freed.
    pub(crate) fn add(&self, end: Lsn, ids: impl IntoIterator<Item = PageId>) {
        self.0.lock().entry(end).or_default().extend(ids);
    }

    /// Takes out the ids that no record from `redo` on has freed, in order.
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
    fn ids_come_back_once_the_redo_point_is_beyond_their_free() {
        let withheld = Withheld::default();
        withheld.add(Lsn(20), [PageId(7), PageId(3)]);
        withheld.add(Lsn(10), [PageId(5)]);
        assert_eq!(withheld.take_before(Lsn(9)), []);
        assert_eq!(withheld.take_before(Lsn(10)), [PageId(5)]);
        assert_eq!(withheld.take_before(Lsn(99)), [PageId(3), PageId(7)]);
        assert_eq!(withheld.take_before(Lsn(99)), []);
    }
}

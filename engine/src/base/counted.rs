//! A collection behind a lock, whose length can be read without the lock.

use parking_lot::{RwLock, RwLockReadGuard};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A collection with a length.
pub(crate) trait Collection {
    /// How many items it has.
    fn count(&self) -> usize;
}

impl<K, V> Collection for BTreeMap<K, V> {
    fn count(&self) -> usize {
        self.len()
    }
}

impl<K, V> Collection for HashMap<K, V> {
    fn count(&self) -> usize {
        self.len()
    }
}

impl<T> Collection for BTreeSet<T> {
    fn count(&self) -> usize {
        self.len()
    }
}

/// A collection that is usually empty, or seldom changes, and whose length each commit reads.
#[derive(Debug, Default)]
pub(crate) struct Counted<T> {
    all: RwLock<T>,
    count: AtomicUsize,
}

impl<T: Collection> Counted<T> {
    pub(crate) fn new(all: T) -> Counted<T> {
        let count = AtomicUsize::new(all.count());
        Counted { all: RwLock::new(all), count }
    }

    /// How many items there are after the last change that has ended.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Acquire)
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.all.read()
    }

    /// Changes the collection.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut all = self.all.write();
        let changed = change(&mut all);
        self.count.store(all.count(), Ordering::Release);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_follows_each_change() {
        let set = Counted::new(BTreeSet::from([1, 2]));
        assert_eq!(set.len(), 2);
        assert!(set.change(|set| set.insert(3)));
        assert_eq!((set.len(), set.read().len()), (3, 3));
        assert_eq!(set.change(BTreeSet::pop_first), Some(1));
        set.change(|set| *set = BTreeSet::new());
        assert_eq!(set.len(), 0);
        assert_eq!(Counted::<HashMap<u8, u8>>::default().len(), 0);
    }
}

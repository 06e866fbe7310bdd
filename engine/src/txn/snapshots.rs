//! Which snapshots are open, and which LSN new ones begin at.
//!
//! Registering a snapshot and computing the oldest are one atomic step: nothing a snapshot needs can be thrown away
//! between its choosing an LSN and its being known.

use crate::base::Lsn;
use parking_lot::Mutex;
use std::collections::BTreeMap;

#[derive(Default)]
struct Inner {
    visible: Lsn,
    open: BTreeMap<Lsn, usize>,
}

/// The registry of snapshots.
#[derive(Default)]
pub(crate) struct Snapshots {
    inner: Mutex<Inner>,
}

impl Snapshots {
    /// A registry whose first snapshots begin at `visible`.
    pub(crate) fn new(visible: Lsn) -> Snapshots {
        Snapshots { inner: Mutex::new(Inner { visible, open: BTreeMap::new() }) }
    }

    /// Opens a snapshot at the visible LSN.
    pub(crate) fn open(&self) -> Lsn {
        let mut inner = self.inner.lock();
        let lsn = inner.visible;
        *inner.open.entry(lsn).or_default() += 1;
        lsn
    }

    /// Closes a snapshot that [`Snapshots::open`] gave.
    pub(crate) fn close(&self, lsn: Lsn) {
        let mut inner = self.inner.lock();
        if let Some(count) = inner.open.get_mut(&lsn) {
            *count -= 1;
            if *count == 0 {
                inner.open.remove(&lsn);
            }
        }
    }

    /// Moves the visible LSN forward; never back.
    pub(crate) fn publish(&self, lsn: Lsn) {
        let mut inner = self.inner.lock();
        inner.visible = inner.visible.max(lsn);
    }

    /// The oldest LSN that any snapshot, open or yet to begin, can have.
    pub(crate) fn oldest(&self) -> Lsn {
        self.oldest_and_visible().0
    }

    /// The oldest LSN, and the one that snapshots begin at now.
    pub(crate) fn oldest_and_visible(&self) -> (Lsn, Lsn) {
        let inner = self.inner.lock();
        (inner.open.keys().next().copied().unwrap_or(inner.visible), inner.visible)
    }

    /// How many snapshots are open.
    pub(crate) fn count(&self) -> usize {
        self.inner.lock().open.values().sum()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_is_the_first_open_or_else_the_visible() {
        let snapshots = Snapshots::new(Lsn(5));
        let first = snapshots.open();
        snapshots.publish(Lsn(9));
        snapshots.publish(Lsn(7));
        let second = snapshots.open();
        assert_eq!((first, second, snapshots.count()), (Lsn(5), Lsn(9), 2));
        assert_eq!(snapshots.oldest(), Lsn(5));
        snapshots.close(first);
        assert_eq!(snapshots.oldest(), Lsn(9));
        snapshots.close(second);
        snapshots.publish(Lsn(20));
        assert_eq!((snapshots.oldest(), snapshots.count()), (Lsn(20), 0));
    }
}

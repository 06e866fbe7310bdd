//! The open snapshots, and the LSN at which new ones begin.
//!
//! Registering a snapshot and computing the oldest one are atomic. So nothing that a snapshot needs can be removed
//! between the choice of its LSN and its registration.

use crate::base::Lsn;
use parking_lot::Mutex;
use std::collections::BTreeMap;

#[derive(Default)]
struct SnapshotsInner {
    visible: Lsn,
    open: BTreeMap<Lsn, usize>,
    /// Snapshots older than the visible LSN whose last reader has closed since the last [`Snapshots::take_state`].
    closed: Vec<Lsn>,
}

/// The registry of snapshots.
#[derive(Default)]
pub(crate) struct Snapshots {
    inner: Mutex<SnapshotsInner>,
}

/// The state of the registry at one moment.
pub(crate) struct SnapshotState {
    /// The LSN at which new snapshots begin.
    pub(crate) visible: Lsn,
    /// The oldest open snapshot.
    pub(crate) oldest: Option<Lsn>,
    /// The closed snapshots. Each is in this list once.
    pub(crate) closed: Vec<Lsn>,
}

impl Snapshots {
    /// A registry whose first snapshots begin at `visible`.
    pub(crate) fn new(visible: Lsn) -> Snapshots {
        Snapshots { inner: Mutex::new(SnapshotsInner { visible, ..SnapshotsInner::default() }) }
    }

    /// Opens a snapshot at the visible LSN.
    pub(crate) fn open(&self) -> Lsn {
        let mut inner = self.inner.lock();
        let lsn = inner.visible;
        *inner.open.entry(lsn).or_default() += 1;
        lsn
    }

    /// Closes a snapshot. Returns true if it was the last one at its LSN and no other can begin there.
    pub(crate) fn close(&self, lsn: Lsn) -> bool {
        let mut inner = self.inner.lock();
        let Some(count) = inner.open.get_mut(&lsn) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        inner.open.remove(&lsn);
        let is_last = lsn < inner.visible;
        if is_last {
            inner.closed.push(lsn);
        }
        is_last
    }

    /// The current state. This takes the list of closed snapshots out of the registry.
    pub(crate) fn take_state(&self) -> SnapshotState {
        let mut inner = self.inner.lock();
        let oldest = inner.open.keys().next().copied();
        SnapshotState { visible: inner.visible, oldest, closed: std::mem::take(&mut inner.closed) }
    }

    /// The newest open snapshot before `lsn`.
    pub(crate) fn newest_before(&self, lsn: Lsn) -> Option<Lsn> {
        self.inner.lock().open.range(..lsn).next_back().map(|(lsn, _)| *lsn)
    }

    /// Moves the visible LSN forward. It never moves back.
    pub(crate) fn publish(&self, lsn: Lsn) {
        let mut inner = self.inner.lock();
        inner.visible = inner.visible.max(lsn);
    }

    /// The oldest LSN that any snapshot, open or yet to begin, can have.
    pub(crate) fn oldest(&self) -> Lsn {
        let inner = self.inner.lock();
        inner.open.keys().next().copied().unwrap_or(inner.visible)
    }

    /// The LSN at which new snapshots begin.
    #[cfg(test)]
    pub(super) fn visible(&self) -> Lsn {
        self.inner.lock().visible
    }

    /// How many snapshots are open.
    pub(crate) fn count(&self) -> usize {
        self.inner.lock().open.values().sum()
    }
}

#[cfg(test)]
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
        assert_eq!((snapshots.newest_before(Lsn(9)), snapshots.newest_before(Lsn(10))), (Some(first), Some(second)));
        assert!(snapshots.close(first));
        assert_eq!((snapshots.oldest(), snapshots.newest_before(Lsn(9))), (Lsn(9), None));
        // Another snapshot may still begin at the LSN of the second.
        assert!(!snapshots.close(second));
        assert_eq!((snapshots.take_state().closed, snapshots.take_state().closed), (vec![first], vec![]));
        snapshots.publish(Lsn(20));
        assert_eq!((snapshots.oldest(), snapshots.count()), (Lsn(20), 0));
    }
}

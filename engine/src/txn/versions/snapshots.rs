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
    /// Snapshots older than the visible LSN whose last reader has gone since somebody asked.
    closed: Vec<Lsn>,
}

/// The registry of snapshots.
#[derive(Default)]
pub(crate) struct Snapshots {
    inner: Mutex<Inner>,
}

/// What the registry says at one moment.
pub(crate) struct Look {
    /// What new snapshots begin at.
    pub(crate) visible: Lsn,
    /// The oldest open snapshot.
    pub(crate) oldest: Option<Lsn>,
    /// Those that nobody reads any more, nor ever will, each told once.
    pub(crate) closed: Vec<Lsn>,
}

impl Snapshots {
    /// A registry whose first snapshots begin at `visible`.
    pub(crate) fn new(visible: Lsn) -> Snapshots {
        Snapshots { inner: Mutex::new(Inner { visible, ..Inner::default() }) }
    }

    /// Opens a snapshot at the visible LSN.
    pub(crate) fn open(&self) -> Lsn {
        let mut inner = self.inner.lock();
        let lsn = inner.visible;
        *inner.open.entry(lsn).or_default() += 1;
        lsn
    }

    /// Closes a snapshot that [`Snapshots::open`] gave; true if it was the last at an LSN that no other can begin at.
    pub(crate) fn close(&self, lsn: Lsn) -> bool {
        let mut inner = self.inner.lock();
        let Some(count) = inner.open.get_mut(&lsn) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        inner.open.remove(&lsn);
        let over = lsn < inner.visible;
        if over {
            inner.closed.push(lsn);
        }
        over
    }

    /// The registry now; takes the list of closed snapshots with it.
    pub(crate) fn look(&self) -> Look {
        let mut inner = self.inner.lock();
        let oldest = inner.open.keys().next().copied();
        Look { visible: inner.visible, oldest, closed: std::mem::take(&mut inner.closed) }
    }

    /// The newest open snapshot before `lsn`.
    pub(crate) fn newest_before(&self, lsn: Lsn) -> Option<Lsn> {
        self.inner.lock().open.range(..lsn).next_back().map(|(lsn, _)| *lsn)
    }

    /// Moves the visible LSN forward; never back.
    pub(crate) fn publish(&self, lsn: Lsn) {
        let mut inner = self.inner.lock();
        inner.visible = inner.visible.max(lsn);
    }

    /// The oldest LSN that any snapshot, open or yet to begin, can have.
    pub(crate) fn oldest(&self) -> Lsn {
        let inner = self.inner.lock();
        inner.open.keys().next().copied().unwrap_or(inner.visible)
    }

    /// The LSN that new snapshots begin at.
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
        // Another may yet begin where the second did.
        assert!(!snapshots.close(second));
        assert_eq!((snapshots.look().closed, snapshots.look().closed), (vec![first], vec![]));
        snapshots.publish(Lsn(20));
        assert_eq!((snapshots.oldest(), snapshots.count()), (Lsn(20), 0));
    }
}

//! Group commit: one sync for all threads that wait. It decides which thread syncs, and keeps the durable LSN and the
//! error that stopped the log.

use crate::base::{Error, Lsn, Result};
use parking_lot::{Condvar, Mutex};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The state that threads wait on.
#[derive(Debug)]
pub(super) struct GroupCommit {
    durable: AtomicU64,
    /// The cause for which the log was stopped.
    poison: OnceLock<String>,
    /// True if a thread has the role of the leader. Only the leader syncs segments with batches. If two syncs of a file
    /// ran at the same time, the system could report a failure to only one of them.
    led: Mutex<bool>,
    changed: Condvar,
}

impl GroupCommit {
    /// All bytes before `durable` are on the device.
    pub(super) fn new(durable: Lsn) -> GroupCommit {
        GroupCommit {
            durable: AtomicU64::new(durable.0),
            poison: OnceLock::new(),
            led: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// The durable LSN: all bytes before it are on the device.
    pub(super) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    /// Stops the log. The first cause is kept.
    pub(super) fn poison(&self, cause: String) {
        self.poison.get_or_init(|| cause);
        // A thread that has found no cause waits by now.
        drop(self.led.lock());
        self.changed.notify_all();
    }

    /// The cause for which the log was stopped, if it was.
    pub(super) fn cause(&self) -> Option<String> {
        self.poison.get().cloned()
    }

    /// An error if the log has been stopped.
    pub(super) fn check(&self) -> Result<()> {
        match self.cause() {
            Some(cause) => Err(Error::Poisoned { cause }),
            None => Ok(()),
        }
    }

    /// Returns `None` when all bytes before `lsn` are durable, or the role of the leader, whose holder must sync.
    pub(super) fn wait_or_lead(&self, lsn: Lsn) -> Result<Option<Leader<'_>>> {
        self.wait_or_lead_until(|| self.durable() >= lsn)
    }

    /// Returns `None` as soon as `is_done()` is true, and otherwise the role of the leader. Only a leader may make it
    /// true, because only leaders, and [`GroupCommit::poison`], wake the threads that wait. `is_done` must take no
    /// lock.
    pub(super) fn wait_or_lead_until(&self, is_done: impl Fn() -> bool) -> Result<Option<Leader<'_>>> {
        let mut led = self.led.lock();
        loop {
            if is_done() {
                return Ok(None);
            }
            self.check()?;
            if !*led {
                *led = true;
                return Ok(Some(Leader { group: self }));
            }
            self.changed.wait(&mut led);
        }
    }
}

/// The role of the leader: the right to sync. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Leader<'a> {
    group: &'a GroupCommit,
}

impl Leader<'_> {
    /// Records that everything before `lsn` was synced.
    pub(super) fn succeed(&self, lsn: Lsn) {
        self.group.durable.fetch_max(lsn.0, Ordering::AcqRel);
    }

    /// Wakes the threads that wait, before the role ends.
    pub(super) fn notify(&self) {
        drop(self.group.led.lock());
        self.group.changed.notify_all();
    }

    /// Records a failed sync. From now on nothing is acknowledged. Returns the error for all threads that wait.
    pub(super) fn fail(&self, error: &Error) -> Error {
        self.group.poison(error.first_cause());
        Error::Poisoned { cause: self.group.cause().unwrap_or_default() }
    }
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        *self.group.led.lock() = false;
        self.group.changed.notify_all();
    }
}

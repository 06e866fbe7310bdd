//! Syncs of the database's file: one at a time, and none after one has failed. The caller decides what is written
//! before which sync.

use crate::base::{Error, Result};
use crate::io::Disk;
use parking_lot::Mutex;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The one way to sync a file.
///
/// The system reports a lost write to only one sync, and takes it for written afterwards. Therefore the second of two
/// syncs, at the same time or one after the other, may succeed without the bytes that the first one has lost.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    /// The number of syncs that have begun, which is also the number of the latest one.
    begun: AtomicU64,
    /// The number of the last one that has succeeded; held while one runs.
    succeeded: Mutex<u64>,
    /// The first failure.
    failed: OnceLock<String>,
}

impl Syncs {
    /// Returns once everything that was written to `disk` before the call is durable. A sync of another thread that
    /// begins after the call is enough.
    pub(super) fn sync(&self, disk: &dyn Disk) -> Result<()> {
        self.sync_after(self.begun.load(Ordering::Acquire), disk)
    }

    /// As [`Syncs::sync`], for a call before which `before` syncs had begun.
    fn sync_after(&self, before: u64, disk: &dyn Disk) -> Result<()> {
        let mut succeeded = self.succeeded.lock();
        self.check()?;
        if *succeeded > before {
            return Ok(());
        }
        let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
        self.note(disk.sync())?;
        *succeeded = number;
        Ok(())
    }

    /// Returns once these bytes, which were written to `disk` last at `offset`, are durable. Other bytes may not be.
    pub(super) fn sync_bytes(&self, disk: &dyn Disk, offset: u64, bytes: &[u8]) -> Result<()> {
        let _one_at_a_time = self.succeeded.lock();
        self.check()?;
        self.note(disk.sync_bytes(offset, bytes))
    }

    /// Notes the result of a sync.
    fn note(&self, synced: Result<()>) -> Result<()> {
        synced.or_else(|error| {
            self.failed.get_or_init(|| error.first_cause());
            self.check()
        })
    }

    /// An error once a sync has failed.
    pub(super) fn check(&self) -> Result<()> {
        match self.failed.get() {
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{MemoryVolume, OpenMode, Volume};

    #[test]
    fn a_sync_that_began_earlier_does_not_count_and_one_that_began_later_does() {
        let disk = MemoryVolume::new().open("f", OpenMode::CreateNew).unwrap();
        let syncs = Syncs::default();
        syncs.sync(&*disk).unwrap();
        // Two that were asked for while the first ran.
        syncs.sync_after(1, &*disk).unwrap();
        syncs.sync_after(1, &*disk).unwrap();
        assert_eq!(*syncs.succeeded.lock(), 2);
        syncs.sync(&*disk).unwrap();
        assert_eq!(*syncs.succeeded.lock(), 3);
    }
}

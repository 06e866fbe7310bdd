//! Counts the bytes that are read from and written to the files of a folder.

use crate::Hooks;
use duramen::Result;
use std::sync::atomic::{AtomicU64, Ordering};

/// Hooks that count reads, writes and syncs of a [`crate::HookedVolume`], whether the calls succeed or not.
#[derive(Debug, Default)]
pub struct Meter {
    read: AtomicU64,
    written: AtomicU64,
    syncs: AtomicU64,
}

impl Meter {
    /// The number of bytes read.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// The number of bytes written.
    pub fn bytes_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// The number of syncs of files and of the folder.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
}

impl Hooks for Meter {
    fn before_read(&self, _: &str, _: u64, len: usize) -> Result<()> {
        self.read.fetch_add(len as u64, Ordering::Relaxed);
        Ok(())
    }

    fn before_write(&self, _: &str, _: u64, len: usize) -> Result<()> {
        self.written.fetch_add(len as u64, Ordering::Relaxed);
        Ok(())
    }

    fn before_sync(&self, _: Option<&str>) -> Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HookedVolume;
    use duramen::io::{MemoryVolume, OpenMode, Volume};
    use std::sync::Arc;

    #[test]
    fn metered_calls_are_counted_and_forwarded_unchanged() {
        let meter = Arc::new(Meter::default());
        let volume = HookedVolume::new(Arc::new(MemoryVolume::new()), meter.clone());
        let disk = volume.open("file", OpenMode::CreateNew).unwrap();
        disk.write_at(10, b"four").unwrap();
        disk.sync().unwrap();
        let mut back = [0; 4];
        volume.open("file", OpenMode::Read).unwrap().read_at(10, &mut back).unwrap();
        assert_eq!(&back, b"four");
        assert_eq!((meter.bytes_read(), meter.bytes_written(), meter.syncs()), (4, 4, 1));
    }
}

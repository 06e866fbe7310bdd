//! A folder that counts the bytes that are read from and written to its files, over any other folder. It changes
//! nothing of what the other does.

use duramen::Result;
use duramen::io::{Disk, LockGuard, OpenMode, Volume};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What went to and came from the files of a [`MeteredVolume`] so far.
#[derive(Debug, Default)]
pub struct Meter {
    read: AtomicU64,
    written: AtomicU64,
    syncs: AtomicU64,
}

impl Meter {
    /// Bytes read.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Bytes written.
    pub fn bytes_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Syncs of files and of the folder.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }
}

/// A folder whose traffic is counted, whether the calls succeed or not.
#[derive(Clone, Debug)]
pub struct MeteredVolume {
    inner: Arc<dyn Volume>,
    meter: Arc<Meter>,
}

impl MeteredVolume {
    /// Counts from now on what goes through it to `inner`.
    pub fn new(inner: Arc<dyn Volume>) -> MeteredVolume {
        MeteredVolume { inner, meter: Arc::default() }
    }

    /// The counts, which go on.
    pub fn meter(&self) -> Arc<Meter> {
        self.meter.clone()
    }
}

impl Volume for MeteredVolume {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        let inner = self.inner.open(name, mode)?;
        Ok(Arc::new(MeteredDisk { inner, meter: self.meter.clone() }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.inner.list(prefix)
    }

    fn sync(&self) -> Result<()> {
        self.meter.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner.sync()
    }

    fn lock(&self, name: &str, exclusive: bool) -> Result<Box<dyn LockGuard>> {
        self.inner.lock(name, exclusive)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.inner.path(name)
    }
}

#[derive(Debug)]
struct MeteredDisk {
    inner: Arc<dyn Disk>,
    meter: Arc<Meter>,
}

impl Disk for MeteredDisk {
    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.meter.read.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.meter.written.fetch_add(buf.len() as u64, Ordering::Relaxed);
        self.inner.write_at(offset, buf)
    }

    fn sync(&self) -> Result<()> {
        self.meter.syncs.fetch_add(1, Ordering::Relaxed);
        self.inner.sync()
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.trim(offset, len)
    }

    fn resize(&self, len: u64) -> Result<()> {
        self.inner.resize(len)
    }

    fn reserve(&self, len: u64) -> Result<()> {
        self.inner.reserve(len)
    }

    fn allocated(&self) -> Result<u64> {
        self.inner.allocated()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duramen::io::MemoryVolume;

    #[test]
    fn bytes_are_counted_as_they_pass_and_pass_unchanged() {
        let volume = MeteredVolume::new(Arc::new(MemoryVolume::new()));
        let meter = volume.meter();
        let disk = volume.open("file", OpenMode::CreateNew).unwrap();
        disk.write_at(10, b"four").unwrap();
        disk.sync().unwrap();
        let mut back = [0; 4];
        volume.open("file", OpenMode::Read).unwrap().read_at(10, &mut back).unwrap();
        assert_eq!(&back, b"four");
        assert_eq!((meter.bytes_read(), meter.bytes_written(), meter.syncs()), (4, 4, 1));
    }
}

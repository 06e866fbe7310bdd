//! [`CountedDisk`] and [`CountedVolume`] pass every call on to another disk or volume and count what it writes.
//!
//! The counters are relaxed atomics, below the stores and the log.

use super::{BLOCK, Disk, Locked, OpenMode, Volume, WriteKind};
use crate::base::Result;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The writes of one kind.
///
/// ```
/// use duramen::{Database, io::WriteKind};
/// use std::sync::Arc;
///
/// let volume = Arc::new(duramen::io::MemoryVolume::new());
/// let db = Database::builder().create_on(volume, "forest")?;
/// let before = db.metrics().since_open.written(WriteKind::Superblock);
/// db.checkpoint()?; // writes both superblocks
/// let after = db.metrics().since_open.written(WriteKind::Superblock);
/// assert_eq!((after.calls, after.bytes), (before.calls + 2, before.bytes + 2 * 4096));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Written {
    /// The number of write requests of the engine. One request can become several system calls.
    pub calls: u64,
    /// The bytes written, in whole blocks of 4 KiB, before any compression by the device. A block that a request writes
    /// in part counts as a whole block, because a device writes whole blocks. A block of the log counts once for each
    /// sync.
    pub bytes: u64,
}

impl Written {
    /// The sums of both fields.
    pub(crate) fn plus(self, other: Written) -> Written {
        Written { calls: self.calls.saturating_add(other.calls), bytes: self.bytes.saturating_add(other.bytes) }
    }
}

#[derive(Debug, Default)]
struct Count {
    calls: AtomicU64,
    bytes: AtomicU64,
}

/// The counts of all files of a database. The counters are independent, so relaxed atomics are enough.
#[derive(Debug, Default)]
pub(crate) struct WriteCounts {
    kinds: [Count; WriteKind::ALL.len()],
    data_syncs: AtomicU64,
    log_syncs: AtomicU64,
}

impl WriteCounts {
    /// The writes of each kind, indexed by the number of the kind.
    pub(crate) fn written(&self) -> [Written; WriteKind::ALL.len()] {
        self.kinds.each_ref().map(|count| Written {
            calls: count.calls.load(Ordering::Relaxed),
            bytes: count.bytes.load(Ordering::Relaxed),
        })
    }

    /// The number of syncs of the database file.
    pub(crate) fn data_syncs(&self) -> u64 {
        self.data_syncs.load(Ordering::Relaxed)
    }

    /// The number of syncs of log files.
    pub(crate) fn log_syncs(&self) -> u64 {
        self.log_syncs.load(Ordering::Relaxed)
    }

    fn add(&self, kind: WriteKind, calls: u64, blocks: u64) {
        if let Some(count) = self.kinds.get(kind as usize) {
            count.calls.fetch_add(calls, Ordering::Relaxed);
            count.bytes.fetch_add(blocks.saturating_mul(BLOCK as u64), Ordering::Relaxed);
        }
    }
}

/// The blocks of a log file that were written since its last sync, as one range.
#[derive(Debug, Default)]
struct Unsynced {
    /// The number of the first block in the high half, and the number of the block after the last one in the low half.
    /// 0 if there are no blocks.
    blocks: AtomicU64,
}

impl Unsynced {
    fn add(&self, blocks: &Range<u64>) {
        let grown = |old: u64| match old {
            0 => Some(pack(blocks.start, blocks.end)),
            old => Some(pack(blocks.start.min(old >> 32), blocks.end.max(old & LOW))),
        };
        // This cannot fail: the closure never returns `None`.
        let _ = self.blocks.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown);
    }

    /// Returns the number of the blocks and clears the range.
    fn take(&self) -> u64 {
        let blocks = self.blocks.swap(0, Ordering::Relaxed);
        (blocks & LOW).saturating_sub(blocks >> 32)
    }
}

/// The low half of a `u64`.
const LOW: u64 = 0xffff_ffff;

/// Packs a range of blocks into one number. A log file is always shorter than 16 TiB, so the numbers fit.
fn pack(start: u64, end: u64) -> u64 {
    start.min(LOW) << 32 | end.min(LOW)
}

/// A file whose writes are counted.
#[derive(Debug)]
pub(crate) struct CountedDisk {
    inner: Arc<dyn Disk>,
    counts: Arc<WriteCounts>,
    /// The unsynced blocks, if this is a log file.
    unsynced: Option<Unsynced>,
}

impl CountedDisk {
    /// A disk for the file of a database.
    pub(crate) fn data(inner: Arc<dyn Disk>, counts: Arc<WriteCounts>) -> CountedDisk {
        CountedDisk { inner, counts, unsynced: None }
    }
}

impl Disk for CountedDisk {
    fn size(&self) -> Result<u64> {
        self.inner.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read_at(offset, buf)
    }

    fn write_as(&self, kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        self.inner.write_as(kind, offset, buf)?;
        if buf.is_empty() {
            return Ok(());
        }
        let block = BLOCK as u64;
        let blocks = offset / block..offset.saturating_add(buf.len() as u64).div_ceil(block);
        match &self.unsynced {
            None => self.counts.add(kind, 1, blocks.end - blocks.start),
            Some(unsynced) => {
                self.counts.add(kind, 1, 0);
                unsynced.add(&blocks);
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()?;
        match &self.unsynced {
            None => self.counts.data_syncs.fetch_add(1, Ordering::Relaxed),
            Some(unsynced) => {
                self.counts.add(WriteKind::Log, 0, unsynced.take());
                self.counts.log_syncs.fetch_add(1, Ordering::Relaxed)
            }
        };
        Ok(())
    }

    fn sync_bytes(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        if self.unsynced.is_some() {
            return self.sync();
        }
        self.inner.sync_bytes(offset, bytes)?;
        self.counts.data_syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.inner.trim(offset, len)
    }

    fn resize(&self, len: u64) -> Result<()> {
        self.inner.resize(len)
    }

    fn will_read(&self, offset: u64, len: u64) {
        self.inner.will_read(offset, len);
    }

    fn wants_hints(&self) -> bool {
        self.inner.wants_hints()
    }

    fn forget_cached(&self, offset: u64) {
        self.inner.forget_cached(offset);
    }

    fn use_direct_io(&self) -> Result<bool> {
        self.inner.use_direct_io()
    }

    fn reserve_range(&self, range: Range<u64>) -> Result<()> {
        self.inner.reserve_range(range)
    }

    fn capacity(&self) -> Option<u64> {
        self.inner.capacity()
    }

    fn complete(&self) -> Result<()> {
        self.inner.complete()
    }

    fn writes_blocks_whole(&self) -> bool {
        self.inner.writes_blocks_whole()
    }

    fn trims_cheaply(&self) -> bool {
        self.inner.trims_cheaply()
    }

    fn allocated(&self) -> Result<u64> {
        self.inner.allocated()
    }
}

/// The folder of a log. Writes to its files are counted.
#[derive(Debug)]
pub(crate) struct CountedVolume {
    inner: Arc<dyn Volume>,
    counts: Arc<WriteCounts>,
}

impl CountedVolume {
    /// A volume for the folder `inner`.
    pub(crate) fn new(inner: Arc<dyn Volume>, counts: Arc<WriteCounts>) -> CountedVolume {
        CountedVolume { inner, counts }
    }

    fn counted(&self, inner: Arc<dyn Disk>) -> Arc<dyn Disk> {
        Arc::new(CountedDisk { inner, counts: self.counts.clone(), unsynced: Some(Unsynced::default()) })
    }
}

impl Volume for CountedVolume {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        self.inner.open(name, mode).map(|disk| self.counted(disk))
    }

    fn create_beside(&self, name: &str, beside: &str) -> Result<Arc<dyn Disk>> {
        self.inner.create_beside(name, beside).map(|disk| self.counted(disk))
    }

    fn share_permissions(&self, name: &str, beside: &str) -> Result<()> {
        self.inner.share_permissions(name, beside)
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.inner.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn replace(&self, from: &str, to: &str) -> Result<()> {
        self.inner.replace(from, to)
    }

    fn exchange(&self, one: &str, other: &str) -> Result<bool> {
        self.inner.exchange(one, other)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.inner.list(prefix)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn lock(&self, name: &str, exclusive: bool) -> Result<Locked> {
        let Locked { disk, guard } = self.inner.lock(name, exclusive)?;
        Ok(Locked { disk: self.counted(disk), guard })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.inner.path(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Error;
    use crate::io::MemoryVolume;

    #[test]
    fn whole_blocks_count_at_once_and_those_of_the_log_once_a_sync() {
        let counts = Arc::new(WriteCounts::default());
        let volume = MemoryVolume::new();
        let data = CountedDisk::data(volume.open("data", OpenMode::CreateNew).unwrap(), counts.clone());
        data.write_as(WriteKind::Page, 4000, &[1; 200]).unwrap();
        data.write_as(WriteKind::Page, 4000, &[1; 200]).unwrap();
        data.write_as(WriteKind::Table, 8192, &[]).unwrap();
        data.sync().unwrap();
        let folder = CountedVolume::new(Arc::new(volume), counts.clone());
        let log = folder.open("log", OpenMode::CreateNew).unwrap();
        for (offset, len) in [(4096, 100), (4196, 4000), (8196, 10)] {
            log.write_as(WriteKind::Log, offset, &vec![2; len]).unwrap();
        }
        let of = |kind: WriteKind| counts.written()[kind as usize];
        assert_eq!(of(WriteKind::Log), Written { calls: 3, bytes: 0 });
        log.sync().unwrap();
        log.sync().unwrap();
        assert_eq!(of(WriteKind::Log), Written { calls: 3, bytes: 8192 });
        assert_eq!(of(WriteKind::Page), Written { calls: 2, bytes: 16384 });
        assert_eq!(of(WriteKind::Table), Written::default());
        assert_eq!((counts.data_syncs(), counts.log_syncs()), (1, 2));
    }

    #[test]
    fn a_write_that_fails_does_not_count() {
        let counts = Arc::new(WriteCounts::default());
        let volume = MemoryVolume::new();
        drop(volume.open("data", OpenMode::CreateNew).unwrap());
        let data = CountedDisk::data(volume.open("data", OpenMode::Read).unwrap(), counts.clone());
        assert!(matches!(data.write_as(WriteKind::Page, 0, b"x"), Err(Error::ReadOnly)));
        assert_eq!(counts.written(), <[Written; 6]>::default());
    }
}

//! [`Disk`] for files of the operating system: it reads and writes at an offset, and a sync reaches the device. This
//! file must not interpret the bytes, buffer them, or repeat a call that failed.

use super::{Disk, WriteKind};
use crate::base::{Error, Result};
use std::fs::{File, Metadata};
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most bytes of the log that one call writes. The file cache of Linux can keep the bytes of one call in one folio,
/// which is a group of pages of the cache. A later small write into a folio processes all its blocks. A commit is such
/// a write: its file already has zeros there, or is a spare file. With folios of 1 MiB such a write took three times as
/// long as with folios of 64 KiB.
const MOST_LOG_WRITE: usize = 64 << 10;

/// The unit of `st_blocks` in bytes. It does not depend on the block size of the file system.
const STAT_BLOCK: u64 = 512;

/// An open file.
#[derive(Debug)]
pub struct FileDisk {
    /// Shared with the lock of the file, if there is one.
    file: Arc<File>,
    path: PathBuf,
    writable: bool,
    /// The size of a block device.
    fixed_size: Option<u64>,
    /// The number of resizes so far, and how many of them a full sync has covered. A data sync alone may not write a
    /// smaller length to the device.
    resizes: AtomicU64,
    synced_resizes: AtomicU64,
}

impl FileDisk {
    /// An open file. `path` is used in messages only.
    pub(super) fn new(file: Arc<File>, path: PathBuf, writable: bool) -> FileDisk {
        // A previous process may have set a length and died before a sync covered it.
        let (resizes, synced_resizes) = (AtomicU64::new(1), AtomicU64::new(0));
        FileDisk { file, path, writable, fixed_size: None, resizes, synced_resizes }
    }

    /// An open block device.
    pub(super) fn of_device(file: Arc<File>, path: PathBuf, writable: bool) -> Result<FileDisk> {
        // The metadata of a device has the length 0.
        let size = (&*file).seek(SeekFrom::End(0)).map_err(|e| Error::io("cannot get the size of", &path, e))?;
        Ok(FileDisk { fixed_size: Some(size), ..FileDisk::new(file, path, writable) })
    }

    fn writable(&self) -> Result<()> {
        if self.writable { Ok(()) } else { Err(Error::ReadOnly) }
    }

    fn metadata(&self) -> Result<Metadata> {
        self.file.metadata().map_err(|e| self.io("cannot get the size of", e))
    }

    fn io(&self, action: &'static str, source: std::io::Error) -> Error {
        Error::io(action, &self.path, source)
    }
}

impl Disk for FileDisk {
    fn size(&self) -> Result<u64> {
        self.fixed_size.map_or_else(|| Ok(self.metadata()?.len()), Ok)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buf, offset).map_err(|e| self.io("cannot read", e))
    }

    fn write_as(&self, kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        self.writable()?;
        let most = if kind == WriteKind::Log { MOST_LOG_WRITE } else { usize::MAX };
        let mut at = offset;
        for part in buf.chunks(most) {
            self.file.write_all_at(part, at).map_err(|e| self.io("cannot write", e))?;
            at += part.len() as u64;
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let resizes = self.resizes.load(Ordering::Acquire);
        if self.synced_resizes.load(Ordering::Acquire) >= resizes {
            return self.file.sync_data().map_err(|e| Error::sync("cannot sync", &self.path, e));
        }
        self.file.sync_all().map_err(|e| Error::sync("cannot sync", &self.path, e))?;
        self.synced_resizes.fetch_max(resizes, Ordering::AcqRel);
        Ok(())
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.writable()?;
        if len == 0 {
            return Ok(());
        }
        system::punch_hole(&self.file, offset, len).map_err(|e| self.io("cannot trim", e))
    }

    fn resize(&self, len: u64) -> Result<()> {
        self.writable()?;
        let resized = self.file.set_len(len).map_err(|e| self.io("cannot resize", e));
        // Incremented after the change, so a sync that sees the new count also sees the new length.
        self.resizes.fetch_add(1, Ordering::AcqRel);
        resized
    }

    /// Allocates all holes in the range, trimmed ones too, because a write into a hole could fail.
    fn reserve_range(&self, range: Range<u64>) -> Result<()> {
        self.writable()?;
        if range.is_empty() {
            return Ok(());
        }
        system::allocate(&self.file, range).map_err(|e| self.io("cannot reserve space for", e))
    }

    fn will_read(&self, offset: u64, len: u64) {
        system::will_read(&self.file, offset, len);
    }

    fn allocated(&self) -> Result<u64> {
        Ok(self.metadata()?.blocks().saturating_mul(STAT_BLOCK))
    }
}

/// System calls of Linux. All of them are optimizations, so a file system that does not support one of them is not an
/// error.
#[cfg(target_os = "linux")]
mod system {
    use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
    use rustix::io::{Errno, retry_on_intr};
    use std::fs::File;
    use std::io::Result;
    use std::num::NonZeroU64;
    use std::ops::Range;

    pub(super) fn will_read(file: &File, offset: u64, len: u64) {
        // If the device fails, the later read returns the error.
        NonZeroU64::new(len).map(|len| fadvise(file, offset, Some(len), Advice::WillNeed));
    }

    pub(super) fn punch_hole(file: &File, offset: u64, len: u64) -> Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        advice(retry_on_intr(|| fallocate(file, flags, offset, len)))
    }

    pub(super) fn allocate(file: &File, range: Range<u64>) -> Result<()> {
        let (offset, len) = (range.start, range.end - range.start);
        advice(retry_on_intr(|| fallocate(file, FallocateFlags::KEEP_SIZE, offset, len)))
    }

    pub(super) fn advice(result: rustix::io::Result<()>) -> Result<()> {
        match result {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            result => Ok(result?),
        }
    }
}

/// Other systems: none of these calls is needed for correctness.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io::Result;
    use std::ops::Range;

    pub(super) fn will_read(_: &File, _: u64, _: u64) {}

    pub(super) fn punch_hole(_: &File, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    pub(super) fn allocate(_: &File, _: Range<u64>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::path::Path;

    fn file(path: &Path) -> FileDisk {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        FileDisk::new(Arc::new(file), path.to_owned(), true)
    }

    #[test]
    fn a_full_device_and_a_used_up_quota_are_the_typed_error() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("full");
            let disk = file(&path);
            match disk.io("cannot write", kind.into()) {
                Error::Full { path: named } => assert_eq!(named, path),
                other => panic!("{kind}: {other}"),
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_full_device_of_the_system_says_full() {
        let disk = file(Path::new("/dev/full"));
        assert!(matches!(disk.write_at(0, b"x"), Err(Error::Full { path }) if path == Path::new("/dev/full")));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_system_without_holes_is_no_error_and_other_refusals_are() {
        use rustix::io::Errno;
        assert!(system::advice(Err(Errno::OPNOTSUPP)).is_ok());
        assert_eq!(system::advice(Err(Errno::NOSPC)).unwrap_err().kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn bytes_of_the_log_are_written_whole_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let disk = file(&folder.path().join("f"));
        let written: Vec<u8> = (0..2 * MOST_LOG_WRITE + 5).map(|at| (at % 251) as u8).collect();
        disk.write_as(WriteKind::Log, 3, &written).unwrap();
        let mut read = vec![0; written.len()];
        disk.read_at(3, &mut read).unwrap();
        assert!(read == written);
        assert_eq!(disk.size().unwrap(), 3 + written.len() as u64);
    }

    #[test]
    fn a_sync_after_a_resize_covers_it_once() {
        let folder = tempfile::tempdir().unwrap();
        let disk = file(&folder.path().join("f"));
        disk.resize(10).unwrap();
        assert!(disk.synced_resizes.load(Ordering::Relaxed) < disk.resizes.load(Ordering::Relaxed));
        disk.sync().unwrap();
        assert_eq!(disk.synced_resizes.load(Ordering::Relaxed), disk.resizes.load(Ordering::Relaxed));
    }
}

//! [`Disk`] for files of the operating system: it reads and writes at an offset, and a sync reaches the device. It
//! keeps no buffers, and does not repeat a call that failed.

use super::cached_reads::CachedReads;
use super::direct::{DirectIo, MAX_UNIT};
use super::{BLOCK, Disk, Opener, WriteKind};
use crate::base::{Error, Result};
use std::fs::{File, Metadata};
use std::io::{Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The maximum number of bytes of the log that one call writes. The file cache of Linux can keep the bytes of one call
/// in one folio, which is a group of pages of the cache. A later small write into a folio processes all its blocks. A
/// commit is such a write: its file already has zeros there, or is a spare file. With folios of 1 MiB such a write took
/// three times as long as with folios of 64 KiB.
const MAX_LOG_WRITE: usize = 64 << 10;

/// A multiple of the size of every folio. The system does not remove a part of a folio from the file cache.
const LARGEST_FOLIO: u64 = 2 << 20;

/// The unit of `st_blocks` in bytes. It does not depend on the block size of the file system.
const STAT_BLOCK: u64 = 512;

/// Bytes from `offset` to the next multiple of [`MAX_LOG_WRITE`], at which a folio can begin.
fn bytes_to_boundary(offset: u64) -> usize {
    MAX_LOG_WRITE - usize::try_from(offset % MAX_LOG_WRITE as u64).unwrap_or(0)
}

/// An open file.
#[derive(Debug)]
pub struct FileDisk {
    /// Shared with the lock of the file, if there is one.
    file: Arc<File>,
    path: PathBuf,
    writable: bool,
    opener: Opener,
    /// The size of a block device.
    fixed_size: Option<u64>,
    /// Set by [`Disk::use_direct_io`].
    direct: OnceLock<DirectIo>,
    /// The number of resizes so far, and how many of them a full sync has covered. A data sync alone may not write a
    /// smaller length to the device.
    resizes: AtomicU64,
    synced_resizes: AtomicU64,
    /// True if a write with `RWF_DSYNC` is a sync of the bytes; set by the first one.
    has_synced_writes: OnceLock<bool>,
    /// How the file is read without direct I/O.
    cached: CachedReads,
}

const SIZE: &str = "cannot get the size of";

impl FileDisk {
    /// An open file. `path` is used in messages only.
    pub(super) fn new(file: Arc<File>, path: PathBuf, writable: bool) -> FileDisk {
        system::keep_access_time(&file);
        // A previous process may have set a length and died before a sync covered it.
        let (resizes, synced_resizes) = (AtomicU64::new(1), AtomicU64::new(0));
        let (opener, direct) = (Opener::this(), OnceLock::new());
        let has_synced_writes = OnceLock::new();
        let (fixed_size, cached) = (None, CachedReads::new());
        FileDisk {
            file,
            path,
            writable,
            opener,
            fixed_size,
            direct,
            resizes,
            synced_resizes,
            has_synced_writes,
            cached,
        }
    }

    /// An open block device.
    pub(super) fn of_device(file: Arc<File>, path: PathBuf, writable: bool) -> Result<FileDisk> {
        // The metadata of a device has the length 0.
        let size = (&*file).seek(SeekFrom::End(0)).map_err(|e| Error::io(SIZE, &path, e))?;
        Ok(FileDisk { fixed_size: Some(size), ..FileDisk::new(file, path, writable) })
    }

    fn writable(&self) -> Result<()> {
        if self.writable { self.opener.check(&self.path) } else { Err(Error::ReadOnly) }
    }

    /// Runs `change`, which trims or resizes the file in the `len` bytes from `offset` on.
    fn exclusively<R>(&self, offset: u64, len: u64, change: impl FnOnce() -> R) -> R {
        match self.direct.get() {
            Some(direct) => direct.exclusively(offset, len, change),
            None => change(),
        }
    }

    fn metadata(&self) -> Result<Metadata> {
        self.file.metadata().map_err(|e| self.io(SIZE, e))
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
        let read = match self.direct.get() {
            Some(direct) => direct.read_at(offset, buf),
            None => self.cached.read_at(&self.file, offset, buf),
        };
        read.map_err(|e| self.io("cannot read", e))
    }

    fn write_as(&self, kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        self.writable()?;
        if let Some(direct) = self.direct.get() {
            return direct.write_at(offset, buf).map_err(|e| self.io("cannot write", e));
        }
        let (mut at, mut rest) = (offset, buf);
        while !rest.is_empty() {
            let most = if kind == WriteKind::Log { bytes_to_boundary(at) } else { usize::MAX };
            let (part, behind) = rest.split_at(rest.len().min(most));
            self.file.write_all_at(part, at).map_err(|e| self.io("cannot write", e))?;
            (at, rest) = (at + part.len() as u64, behind);
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        // A failed write is reported to one process only: to the first that syncs.
        self.opener.check(&self.path)?;
        let resizes = self.resizes.load(Ordering::Acquire);
        if self.synced_resizes.load(Ordering::Acquire) >= resizes {
            return self.file.sync_data().map_err(|e| Error::sync("cannot sync", &self.path, e));
        }
        self.file.sync_all().map_err(|e| Error::sync("cannot sync", &self.path, e))?;
        self.synced_resizes.fetch_max(resizes, Ordering::AcqRel);
        Ok(())
    }

    fn sync_bytes(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.opener.check(&self.path)?;
        let is_device = self.fixed_size.is_some();
        // With direct I/O the file cache has nothing to write.
        let alone = self.direct.get().is_none()
            && *self.has_synced_writes.get_or_init(|| is_device || system::has_synced_writes(&self.file));
        let synced = if alone { system::write_synced(&self.file, offset, bytes) } else { self.file.sync_data() };
        synced.map_err(|e| Error::sync("cannot sync", &self.path, e))
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.writable()?;
        // The system would write zeros to parts of blocks through the file cache.
        let block = self.direct.get().map_or(1, |direct| direct.unit().max(BLOCK as u64));
        let (start, end) = (offset.next_multiple_of(block), offset.saturating_add(len) / block * block);
        if start >= end {
            return Ok(());
        }
        let trimmed = self.exclusively(start, end - start, || system::punch_hole(&self.file, start, end - start));
        trimmed.map_err(|e| self.io("cannot trim", e))
    }

    fn resize(&self, len: u64) -> Result<()> {
        self.writable()?;
        let resized =
            self.exclusively(len, u64::MAX, || self.file.set_len(len)).map_err(|e| self.io("cannot resize", e));
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
        match self.direct.get() {
            Some(direct) => direct.will_read(offset, len),
            None => self.cached.will_read(&self.file, offset, len),
        }
    }

    fn wants_hints(&self) -> bool {
        self.direct.get().is_some() || self.cached.wants_hints()
    }

    fn forget_cached(&self, offset: u64) {
        system::leave_cache(&self.file, offset / LARGEST_FOLIO * LARGEST_FOLIO);
    }

    /// Removes the bytes of the file from the file cache. After a failed sync they can differ from those on the device.
    fn use_direct_io(&self) -> Result<bool> {
        if self.direct.get().is_some() {
            return Ok(true);
        }
        let unit = system::direct_unit(&self.file);
        if !unit.is_power_of_two() || unit > MAX_UNIT {
            return Ok(false);
        }
        let failed = |e| self.io("cannot use direct I/O for", e);
        if !system::set_direct(&self.file, true).map_err(failed)? {
            return Ok(false);
        }
        let direct = DirectIo::new(self.file.clone(), unit, self.fixed_size.is_some());
        if !direct.works().map_err(failed)? {
            system::set_direct(&self.file, false).map_err(failed)?;
            return Ok(false);
        }
        system::leave_cache(&self.file, 0);
        self.direct.get_or_init(|| direct);
        Ok(true)
    }

    /// On some network file systems a locked file can be used through the locked descriptor only.
    fn renamed(&self, path: &Path) -> Option<Arc<dyn Disk>> {
        let disk = FileDisk::new(self.file.clone(), path.to_owned(), self.writable);
        Some(Arc::new(FileDisk { fixed_size: self.fixed_size, opener: self.opener, ..disk }))
    }

    fn allocated(&self) -> Result<u64> {
        Ok(self.metadata()?.blocks().saturating_mul(STAT_BLOCK))
    }
}

/// System calls of Linux. All of them are optimizations, so a file system that does not support one of them is not an
/// error.
#[cfg(target_os = "linux")]
pub(super) mod system {
    use crate::io::BLOCK;
    use crate::io::direct::ALIGNMENT;
    use rustix::fs::{
        Advice, AtFlags, FallocateFlags, OFlags, StatxFlags, fadvise, fallocate, fcntl_getfl, fcntl_setfl, fstatfs,
        statx,
    };
    use rustix::io::{Errno, ReadWriteFlags, preadv2, pwritev2, retry_on_intr};
    use std::fs::File;
    use std::io::{ErrorKind, IoSlice, IoSliceMut, Result};
    use std::num::NonZeroU64;
    use std::ops::Range;

    /// Reads those of the bytes at `offset` that the file cache has, up to the first one that it does not have, and
    /// returns how many there were. `None` if the system cannot tell.
    pub(in crate::io) fn read_cached(file: &File, offset: u64, buf: &mut [u8]) -> Option<usize> {
        match preadv2(file, &mut [IoSliceMut::new(buf)], offset, ReadWriteFlags::NOWAIT) {
            Ok(len) => Some(len),
            Err(Errno::AGAIN | Errno::INTR) => Some(0),
            Err(_) => None,
        }
    }

    pub(in crate::io) fn will_read(file: &File, offset: u64, len: u64) {
        // If the device fails, the later read returns the error.
        NonZeroU64::new(len).map(|len| fadvise(file, offset, Some(len), Advice::WillNeed));
    }

    /// Sets `O_NOATIME`: reads do not change the time of the last access. Without the flag, the system compares times
    /// at each read. Only the owner of a file may set the flag; an error is ignored.
    pub(super) fn keep_access_time(file: &File) {
        let _ = fcntl_getfl(file).and_then(|flags| fcntl_setfl(file, flags | OFlags::NOATIME));
    }

    /// True for the file systems that sync a write with `RWF_DSYNC` as `fdatasync` would. Others may ignore the flag,
    /// as some network file systems do.
    pub(super) fn has_synced_writes(file: &File) -> bool {
        const BTRFS: u64 = 0x9123_683e;
        const EXT4: u64 = 0xef53;
        const F2FS: u64 = 0xf2f5_2010;
        const XFS: u64 = 0x5846_5342;
        // The type has a sign on some machines.
        #[allow(clippy::cast_sign_loss, clippy::unnecessary_cast)]
        fstatfs(file).is_ok_and(|stat| [BTRFS, EXT4, F2FS, XFS].contains(&(stat.f_type as u64)))
    }

    /// Writes bytes again that were written last at `offset`, and syncs only them: a sync of the file would also write
    /// all that other threads have written meanwhile.
    pub(super) fn write_synced(file: &File, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut at = 0;
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let slices = [IoSlice::new(rest)];
            match retry_on_intr(|| pwritev2(file, &slices, offset + at as u64, ReadWriteFlags::DSYNC)) {
                // The only error that is never one of the device: Linux before 4.6.
                Err(Errno::NOSYS) => return file.sync_data(),
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                written => at += written?,
            }
        }
        Ok(())
    }

    /// The unit of direct I/O in bytes; 0 if it is not supported for this file.
    pub(super) fn direct_unit(file: &File) -> usize {
        match statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
            Ok(stat) if stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
                if stat.stx_dio_mem_align as usize > ALIGNMENT { 0 } else { stat.stx_dio_offset_align as usize }
            }
            // Linux before 6.1 has no answer. Devices with blocks above 4 KiB are rare.
            _ => BLOCK,
        }
    }

    /// Turns direct I/O on or off. Returns false if the file system does not support it.
    pub(super) fn set_direct(file: &File, direct: bool) -> Result<bool> {
        let mut flags = fcntl_getfl(file)?;
        flags.set(OFlags::DIRECT, direct);
        match fcntl_setfl(file, flags) {
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(false),
            set => Ok(set.map(|()| true)?),
        }
    }

    /// Removes the bytes from `offset` on from the file cache, except for pages that are not on the device yet.
    pub(in crate::io) fn leave_cache(file: &File, offset: u64) {
        // An error is harmless: some pages stay in memory twice, and the engine uses no bytes whose sync has failed.
        let _ = fadvise(file, offset, None, Advice::DontNeed);
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
pub(super) mod system {
    use std::fs::File;
    use std::io::Result;
    use std::ops::Range;

    pub(in crate::io) fn read_cached(_: &File, _: u64, _: &mut [u8]) -> Option<usize> {
        None
    }

    pub(in crate::io) fn will_read(_: &File, _: u64, _: u64) {}

    pub(super) fn keep_access_time(_: &File) {}

    pub(super) fn has_synced_writes(_: &File) -> bool {
        false
    }

    pub(super) fn write_synced(file: &File, _: u64, _: &[u8]) -> Result<()> {
        file.sync_data()
    }

    pub(super) fn direct_unit(_: &File) -> usize {
        0
    }

    pub(super) fn set_direct(_: &File, _: bool) -> Result<bool> {
        Ok(false)
    }

    pub(in crate::io) fn leave_cache(_: &File, _: u64) {}

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
    use proptest::prelude::*;
    use std::io::ErrorKind;

    fn file(path: &Path) -> FileDisk {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap();
        FileDisk::new(Arc::new(file), path.to_owned(), true)
    }

    #[test]
    fn a_full_device_a_used_up_quota_and_the_greatest_length_are_the_typed_error() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded, ErrorKind::FileTooLarge] {
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
    fn unsupported_hole_punching_is_ignored_and_other_errors_are_returned() {
        use rustix::io::Errno;
        assert!(system::advice(Err(Errno::OPNOTSUPP)).is_ok());
        assert_eq!(system::advice(Err(Errno::NOSPC)).unwrap_err().kind(), ErrorKind::StorageFull);
    }

    #[test]
    fn bytes_are_the_same_after_a_sync_of_them_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        for direct in [false, true] {
            let disk = file(&path);
            if direct && !disk.use_direct_io().unwrap() {
                continue;
            }
            disk.write_at(0, &[7; 2 * BLOCK]).unwrap();
            disk.sync().unwrap();
            disk.write_at(BLOCK as u64, &[8; BLOCK]).unwrap();
            disk.sync_bytes(BLOCK as u64, &[8; BLOCK]).unwrap();
            disk.sync_bytes(0, &[]).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), [[7; BLOCK], [8; BLOCK]].concat());
            #[cfg(target_os = "linux")]
            if !direct {
                system::write_synced(&disk.file, BLOCK as u64, &[9; BLOCK]).unwrap();
                assert_eq!(std::fs::read(&path).unwrap(), [[7; BLOCK], [9; BLOCK]].concat());
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_sync_of_bytes_returns_the_error_of_the_system() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, b"y").unwrap();
        let read_only = File::open(&path).unwrap();
        assert!(system::write_synced(&read_only, 0, b"x").is_err());
    }

    #[test]
    fn bytes_of_the_log_are_written_whole_in_pieces() {
        let folder = tempfile::tempdir().unwrap();
        let disk = file(&folder.path().join("f"));
        let written: Vec<u8> = (0..2 * MAX_LOG_WRITE + 5).map(|at| (at % 251) as u8).collect();
        disk.write_as(WriteKind::Log, 3, &written).unwrap();
        let mut read = vec![0; written.len()];
        disk.read_at(3, &mut read).unwrap();
        assert!(read == written);
        assert_eq!(disk.size().unwrap(), 3 + written.len() as u64);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, usize, u8),
        Read(u64, usize),
        WillRead(u64, u64),
        Trim(u64, u64),
        Resize(u64),
        Sync,
    }

    fn step() -> impl Strategy<Value = Step> {
        let at = || prop_oneof![2 => 0u64..60_000, 1 => (0u64..120).prop_map(|at| at * 512)];
        let len = || prop_oneof![2 => 1usize..9_000, 1 => (1usize..40).prop_map(|len| len * 512)];
        prop_oneof![
            4 => (at(), len(), 1u8..).prop_map(|(at, len, byte)| Step::Write(at, len, byte)),
            4 => (at(), len()).prop_map(|(at, len)| Step::Read(at, len)),
            3 => (at(), len()).prop_map(|(at, len)| Step::WillRead(at, 4 * len as u64)),
            1 => (at(), len()).prop_map(|(at, len)| Step::Trim(at, 3 * len as u64)),
            1 => at().prop_map(Step::Resize),
            1 => Just(Step::Sync),
        ]
    }

    proptest! {
        /// A file behaves the same with direct I/O, except that a file that grows can be longer, with zeros at its end.
        #[test]
        fn a_file_with_direct_io_is_a_file_like_others(steps in prop::collection::vec(step(), 1..60)) {
            let folder = tempfile::tempdir().unwrap();
            let disk = file(&folder.path().join("f"));
            if !disk.use_direct_io().unwrap() {
                println!("SKIPPED: this test needs a file system with direct I/O");
                return Ok(());
            }
            let unit = disk.direct.get().unwrap().unit();
            let mut model: Vec<u8> = Vec::new();
            let all = |len: usize| {
                let mut bytes = vec![0; len];
                disk.read_at(0, &mut bytes).map(|()| bytes)
            };
            for step in steps {
                match step {
                    Step::Write(at, len, byte) => {
                        disk.write_at(at, &vec![byte; len]).unwrap();
                        let end = at as usize + len;
                        model.resize(model.len().max(end), 0);
                        model[at as usize..end].fill(byte);
                    }
                    Step::Read(at, len) => {
                        let mut bytes = vec![0; len];
                        if let Some(expected) = model.get(at as usize..at as usize + len) {
                            disk.read_at(at, &mut bytes).unwrap();
                            prop_assert!(bytes == expected, "{len} at {at}");
                        }
                    }
                    Step::WillRead(at, len) => disk.will_read(at, len),
                    Step::Trim(at, len) => {
                        disk.trim(at, len).unwrap();
                        let now = all(model.len()).unwrap();
                        for (at_now, (byte, was)) in now.iter().zip(&model).enumerate() {
                            let is_trimmed = (at..at.saturating_add(len)).contains(&(at_now as u64));
                            prop_assert!(byte == was || is_trimmed && *byte == 0, "byte {at_now}");
                        }
                        model = now;
                    }
                    Step::Resize(len) => {
                        disk.resize(len).unwrap();
                        prop_assert_eq!(disk.size().unwrap(), len);
                        model.resize(len as usize, 0);
                    }
                    Step::Sync => disk.sync().unwrap(),
                }
                let size = disk.size().unwrap();
                prop_assert!((model.len() as u64..=(model.len() as u64).next_multiple_of(unit)).contains(&size));
                model.resize(size as usize, 0);
            }
            prop_assert!(all(model.len()).unwrap() == model);
        }
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

//! Files of the operating system behind [`Disk`] and [`Volume`]: positioned reads and writes, real syncs, advisory
//! locks. Nothing here knows what the bytes mean, buffers them, or tries again what the system refused.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation
)]

use super::{Disk, LockGuard, OpenMode, Volume};
use crate::base::{Error, Result};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of the unit in which `stat` counts allocation, whatever the file system's own blocks are.
const STAT_BLOCK: u64 = 512;

/// An open file.
#[derive(Debug)]
pub struct FileDisk {
    file: File,
    path: PathBuf,
    writable: bool,
    /// Resizes begun so far, and how many of them a full sync has covered: a data sync alone need not carry a
    /// shrunk length to the device.
    resizes: AtomicU64,
    synced_resizes: AtomicU64,
}

impl FileDisk {
    /// Opens or creates the file at `path`.
    pub fn open(path: impl Into<PathBuf>, mode: OpenMode) -> Result<FileDisk> {
        let path = path.into();
        let writable = mode != OpenMode::Read;
        let opened = OpenOptions::new().read(true).write(writable).create_new(mode == OpenMode::CreateNew).open(&path);
        match opened {
            Ok(file) => {
                // A process before this one may have died with a length that no sync has covered.
                let (resizes, synced_resizes) = (AtomicU64::new(1), AtomicU64::new(0));
                Ok(FileDisk { file, path, writable, resizes, synced_resizes })
            }
            // A folder that is not there is no reason to advise creating the database.
            Err(source) if mode == OpenMode::CreateNew => Err(failed("cannot create", &path, source)),
            Err(source) => Err(missing_or_failed("cannot open", &path, source)),
        }
    }

    fn writable(&self) -> Result<()> {
        if self.writable { Ok(()) } else { Err(Error::ReadOnly) }
    }

    fn io(&self, action: &'static str, source: std::io::Error) -> Error {
        Error::io(action, &self.path, source)
    }
}

impl Disk for FileDisk {
    fn size(&self) -> Result<u64> {
        let metadata = self.file.metadata().map_err(|e| self.io("cannot get the size of", e))?;
        Ok(metadata.len())
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buf, offset).map_err(|e| self.io("cannot read", e))
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.writable()?;
        self.file.write_all_at(buf, offset).map_err(|e| self.io("cannot write", e))
    }

    fn sync(&self) -> Result<()> {
        let resizes = self.resizes.load(Ordering::Acquire);
        if self.synced_resizes.load(Ordering::Acquire) >= resizes {
            return self.file.sync_data().map_err(|e| self.io("cannot sync", e));
        }
        self.file.sync_all().map_err(|e| self.io("cannot sync", e))?;
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
        // Counted after the change: a sync that sees the new count also sees the new length.
        self.resizes.fetch_add(1, Ordering::AcqRel);
        resized
    }

    /// Allocates every hole before `len` too, trimmed ranges included: a write into one could fail otherwise.
    fn reserve(&self, len: u64) -> Result<()> {
        self.writable()?;
        if len == 0 {
            return Ok(());
        }
        system::allocate(&self.file, len).map_err(|e| self.io("cannot reserve space for", e))
    }

    fn allocated(&self) -> Result<u64> {
        let metadata = self.file.metadata().map_err(|e| self.io("cannot get the size of", e))?;
        Ok(metadata.blocks().saturating_mul(STAT_BLOCK))
    }
}

/// A folder of the file system.
#[derive(Debug, Clone)]
pub struct FileVolume {
    folder: PathBuf,
}

impl FileVolume {
    /// The folder at `folder`, which is not looked at before the first use.
    pub fn new(folder: impl Into<PathBuf>) -> FileVolume {
        FileVolume { folder: folder.into() }
    }

    /// The volume and the name for the file at `path`, which need not exist. A symbolic link is followed first: the
    /// files that the engine keeps beside a database must be the same by whatever name it is opened. The folder is
    /// made absolute, so that a later change of the working directory does not matter.
    pub fn for_file(path: &Path) -> Result<(FileVolume, String)> {
        let full = match path.canonicalize() {
            Ok(full) => full,
            Err(e) if e.kind() == ErrorKind::NotFound => {
                std::path::absolute(path).map_err(|e| Error::io("cannot find", path, e))?
            }
            Err(e) => return Err(Error::io("cannot find", path, e)),
        };
        match (full.parent(), full.file_name().map(OsStr::to_str)) {
            (Some(folder), Some(Some(name))) => Ok((FileVolume::new(folder), name.to_owned())),
            _ => Err(Error::Option {
                option: "path",
                value: format!("{path:?}"),
                expected: "the path of a file whose name is UTF-8".to_owned(),
            }),
        }
    }
}

impl Volume for FileVolume {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        Ok(Arc::new(FileDisk::open(self.path(name), mode)?))
    }

    fn remove(&self, name: &str) -> Result<()> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => Err(Error::io("cannot remove", path, e)),
            _ => Ok(()),
        }
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        let path = self.path(from);
        let target = self.path(to);
        system::rename_new(&path, &target).map_err(|e| match e.kind() {
            ErrorKind::AlreadyExists => Error::Exists { path: target },
            _ => missing_or_failed("cannot rename", &path, e),
        })
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let failed = |e| Error::io("cannot open the folder", &self.folder, e);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if let Some(name) = entry.file_name().to_str()
                && name.starts_with(prefix)
                && !entry.file_type().map_err(failed)?.is_dir()
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn sync(&self) -> Result<()> {
        let folder = File::open(&self.folder).map_err(|e| Error::io("cannot open the folder", &self.folder, e))?;
        folder.sync_all().map_err(|e| Error::io("cannot sync the folder", &self.folder, e))
    }

    fn lock(&self, name: &str, exclusive: bool) -> Result<Box<dyn LockGuard>> {
        let path = self.path(name);
        // A file of its own open file description: the lock belongs to that, so a second handle of this process
        // is refused like any other, and closing other handles of the file leaves it alone. Network file systems
        // want it writable for an exclusive lock; a shared one must work where nothing can be written.
        let opened = OpenOptions::new().read(true).write(exclusive).open(&path);
        let file = opened.map_err(|e| missing_or_failed("cannot open", &path, e))?;
        let taken = if exclusive { file.try_lock() } else { file.try_lock_shared() };
        match taken {
            Ok(()) => Ok(Box::new(FileLock { file })),
            Err(TryLockError::WouldBlock) => Err(Error::Locked { path }),
            Err(TryLockError::Error(e)) => Err(Error::io("cannot lock", path, e)),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// A held lock; the system drops it with the file, thus also when the process dies.
#[derive(Debug)]
struct FileLock {
    file: File,
}

impl LockGuard for FileLock {}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing is not enough: a child process that is just being started holds a copy of the open file until it
        // runs its own program, and the lock with it. A failure leaves what closing does.
        let _ = self.file.unlock();
    }
}

/// The error for a file that must not exist, or could not be made.
fn failed(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
        _ => Error::io(action, path, source),
    }
}

/// The error for a file that must exist.
fn missing_or_failed(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    match source.kind() {
        ErrorKind::NotFound => Error::NotFound { path: path.to_owned() },
        _ => Error::io(action, path, source),
    }
}

/// Allocation calls of Linux. A file system that lacks one is no error: both are advice where it is so.
#[cfg(target_os = "linux")]
mod system {
    use rustix::fs::{CWD, FallocateFlags, RenameFlags, fallocate, renameat_with};
    use rustix::io::{Errno, retry_on_intr};
    use std::fs::File;
    use std::io::Result;
    use std::path::Path;

    /// Renames unless something has the new name.
    pub(super) fn rename_new(from: &Path, to: &Path) -> Result<()> {
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // A file system that cannot do it at once.
            Err(Errno::INVAL | Errno::NOSYS) => super::link_new(from, to),
            renamed => Ok(renamed?),
        }
    }

    pub(super) fn punch_hole(file: &File, offset: u64, len: u64) -> Result<()> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        advice(retry_on_intr(|| fallocate(file, flags, offset, len)))
    }

    pub(super) fn allocate(file: &File, len: u64) -> Result<()> {
        advice(retry_on_intr(|| fallocate(file, FallocateFlags::KEEP_SIZE, 0, len)))
    }

    pub(super) fn advice(result: rustix::io::Result<()>) -> Result<()> {
        match result {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
            result => Ok(result?),
        }
    }
}

/// Other systems: neither call is needed for correctness.
#[cfg(not(target_os = "linux"))]
mod system {
    use std::fs::File;
    use std::io::Result;

    pub(super) use super::link_new as rename_new;

    pub(super) fn punch_hole(_: &File, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    pub(super) fn allocate(_: &File, _: u64) -> Result<()> {
        Ok(())
    }
}

/// Gives a file another name unless something has that, then takes the old one away. A crash in between leaves both.
fn link_new(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::hard_link(from, to)?;
    std::fs::remove_file(from)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    #[test]
    fn a_full_device_and_a_used_up_quota_are_the_typed_error() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("full");
            let disk = FileDisk::open(&path, OpenMode::CreateNew).unwrap();
            match disk.io("cannot write", kind.into()) {
                Error::Full { path: named } => assert_eq!(named, path),
                other => panic!("{kind}: {other}"),
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_full_device_of_the_system_says_full() {
        let disk = FileDisk::open("/dev/full", OpenMode::Write).unwrap();
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
    fn a_sync_after_a_resize_covers_it_once() {
        let folder = tempfile::tempdir().unwrap();
        let disk = FileDisk::open(folder.path().join("f"), OpenMode::CreateNew).unwrap();
        disk.resize(10).unwrap();
        assert!(disk.synced_resizes.load(Ordering::Relaxed) < disk.resizes.load(Ordering::Relaxed));
        disk.sync().unwrap();
        assert_eq!(disk.synced_resizes.load(Ordering::Relaxed), disk.resizes.load(Ordering::Relaxed));
    }

    #[test]
    fn a_link_and_its_target_are_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        std::fs::write(&real, b"x").unwrap();
        std::fs::create_dir(folder.path().join("sub")).unwrap();
        let link = folder.path().join("sub").join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let (by_link, link_name) = FileVolume::for_file(&link).unwrap();
        let (by_name, name) = FileVolume::for_file(&real).unwrap();
        assert_eq!((by_link.folder, link_name), (by_name.folder, name));
    }

    #[test]
    fn a_path_to_come_is_split_and_one_without_a_name_is_refused() {
        let (volume, name) = FileVolume::for_file(Path::new("to-come.duramen")).unwrap();
        assert_eq!((volume.folder, name.as_str()), (std::env::current_dir().unwrap(), "to-come.duramen"));
        assert!(matches!(FileVolume::for_file(Path::new("/")), Err(Error::Option { option: "path", .. })));
    }
}

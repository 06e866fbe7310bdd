//! The interface to the operating system: a [`Disk`] is an open file, a [`Volume`] is the folder that contains it.
//!
//! The engine does all its I/O through these two traits, so that a test can replace the device by one that loses power
//! at any time. This layer knows no file formats and no policies.

mod atomic_support;
mod blocks;
mod cached_reads;
mod counted;
mod device;
mod direct;
mod file;
mod folder;
mod memory;
mod mount;
mod opener;
mod overlay;
mod process_id;
mod read_ahead;
mod trim_support;
mod write_kind;

pub use atomic_support::AtomicSupport;
#[cfg(test)]
pub(crate) use blocks::parts;
pub(crate) use blocks::{BLOCK, SECTOR};
pub use counted::Written;
pub(crate) use counted::{CountedDisk, CountedVolume, WriteCounts};
pub use device::DeviceDisk;
pub use file::FileDisk;
pub use folder::FileVolume;
pub use memory::{MemoryDisk, MemoryVolume};
pub(crate) use opener::Opener;
pub use overlay::OverlayVolume;
pub(crate) use overlay::read_readable_parts;
pub use trim_support::TrimSupport;
pub use write_kind::WriteKind;

use crate::base::Result;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

/// An open file, real or simulated. All methods can be called from several threads at the same time.
pub trait Disk: Send + Sync + Debug {
    /// The length in bytes.
    fn size(&self) -> Result<u64>;
    /// Fills `buf` with the bytes at `offset`. It is an error of the kind `UnexpectedEof` if the file ends before the
    /// last of them.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
    /// Writes all of `buf` at `offset`, and grows the file if needed. The write is durable only after [`Disk::sync`].
    /// `kind` has no effect on the file; disks that measure writes count by it.
    fn write_as(&self, kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()>;
    /// Writes bytes of no known kind, as [`Disk::write_as`] does with [`WriteKind::Other`].
    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        self.write_as(WriteKind::Other, offset, buf)
    }
    /// Returns once all earlier writes and resizes are on the device.
    fn sync(&self) -> Result<()>;
    /// Returns when `bytes` are on the device. The caller must have written them at `offset` and nothing else there
    /// since. The file must already have contained this range at the last sync. Other writes and resizes may not be on
    /// the device yet.
    fn sync_bytes(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let _ = (offset, bytes);
        self.sync()
    }
    /// Discards `len` bytes at `offset`. Afterwards each whole block of 4 KiB in this range reads as zeros or as
    /// before. After a power cut before the next sync it can again be either. All other bytes in the range also read as
    /// zeros or as before.
    fn trim(&self, offset: u64, len: u64) -> Result<()>;
    /// Sets the length; new bytes are zero. Space reserved beyond the length is freed if the file gets shorter or stays
    /// as it is. A file that gets longer keeps that space.
    fn resize(&self, len: u64) -> Result<()>;
    /// Hints that these bytes will be read soon, so that the device can begin to read them. It is never an error and
    /// changes no result.
    fn will_read(&self, offset: u64, len: u64) {
        let _ = (offset, len);
    }
    /// False if [`Disk::will_read`] has no effect now, because reads find all bytes in the file cache.
    fn wants_hints(&self) -> bool {
        true
    }
    /// Hints that the system should read the bytes from `offset` on from the device again. Bytes that are not on the
    /// device yet stay in the file cache.
    fn forget_cached(&self, offset: u64) {
        let _ = offset;
    }
    /// Makes all further reads and writes bypass the file cache of the system. False if that is not supported. A file
    /// that grows by a write may then end later, with zeros up to the end of a block of the device.
    fn use_direct_io(&self) -> Result<bool> {
        Ok(false)
    }
    /// Reserves space, so that writes up to `len` do not fail on a full device, if the file system supports it.
    fn reserve(&self, len: u64) -> Result<()> {
        self.reserve_range(0..len)
    }
    /// Reserves space for the bytes of `range`, which may be inside the file or beyond its end.
    fn reserve_range(&self, range: Range<u64>) -> Result<()>;
    /// True if writes of aligned blocks of 4 KiB are atomic: after a power cut, and after a write that returned an
    /// error, each block has its old content or its new content, never a mixture.
    fn writes_blocks_whole(&self) -> bool {
        false
    }
    /// True if a trim takes little time, as a discard of a drive does. To punch a hole in a file takes longer than a
    /// write on most file systems.
    fn trims_cheaply(&self) -> bool {
        false
    }
    /// The greatest length, if the file is a block device. Such a file always exists, and it can be neither renamed nor
    /// replaced. It counts as empty until [`Disk::complete`] is called.
    fn capacity(&self) -> Option<u64> {
        None
    }
    /// Makes all that was written durable. From then on an empty block device counts as a file with this content, also
    /// after a power cut.
    fn complete(&self) -> Result<()> {
        self.sync()
    }
    /// The same open file after it was renamed: `path` is for messages. `None` if it must be opened by its new name.
    fn renamed(&self, path: &std::path::Path) -> Option<Arc<dyn Disk>> {
        let _ = path;
        None
    }
    /// The number of bytes allocated on the device. It can be smaller than [`Disk::size`] if the file has holes.
    fn allocated(&self) -> Result<u64>;
}

/// The mode of [`Volume::open`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// The file must exist; it is opened for reading only.
    Read,
    /// The file must exist; it is opened for reading and writing.
    Write,
    /// The file must not exist; it is created.
    CreateNew,
}

/// A folder of files. Names are plain file names. Creating, removing and renaming are durable only after
/// [`Volume::sync`].
///
/// A caller that removes or replaces a file that others may open must hold the exclusive lock of the file. Then
/// [`Volume::lock`] never returns a file that has lost its name.
pub trait Volume: Send + Sync + Debug {
    /// Opens or creates a file. The errors are [`crate::Error::NotFound`] and [`crate::Error::Exists`].
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>>;
    /// Creates a file, as [`OpenMode::CreateNew`] does, with the permissions of the file `beside`. If there is no such
    /// file, or if there are no permissions, the new file gets the default permissions.
    fn create_beside(&self, name: &str, beside: &str) -> Result<Arc<dyn Disk>> {
        let _ = beside;
        self.open(name, OpenMode::CreateNew)
    }
    /// Gives the existing file `name` the permissions that [`Volume::create_beside`] would give to a new one.
    fn share_permissions(&self, name: &str, beside: &str) -> Result<()> {
        let _ = (name, beside);
        Ok(())
    }
    /// Removes a file. A missing file is not an error.
    fn remove(&self, name: &str) -> Result<()>;
    /// Renames a file. It is atomic and replaces nothing: [`crate::Error::Exists`] if the new name is in use.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    /// Renames a file and atomically replaces the file `to`. There is a file of that name at all times.
    fn replace(&self, from: &str, to: &str) -> Result<()>;
    /// Atomically gives each of two files the name of the other one. False if the file system cannot do that; then
    /// nothing has changed.
    fn exchange(&self, one: &str, other: &str) -> Result<bool> {
        let _ = (one, other);
        Ok(false)
    }
    /// The names that begin with `prefix`, sorted.
    fn list(&self, prefix: &str) -> Result<Vec<String>>;
    /// Makes earlier creations, removals and renames durable.
    fn sync(&self) -> Result<()>;
    /// Opens the existing file `name`, for writing if `exclusive`, and takes its lock, shared or exclusive. Returns
    /// [`crate::Error::Locked`] at once if the lock is held. The file still has its name when it is locked. The lock is
    /// released when the guard is dropped, and by the system when the process dies. A renamed file keeps its lock.
    fn lock(&self, name: &str, exclusive: bool) -> Result<Locked>;
    /// The path of the file, for messages.
    fn path(&self, name: &str) -> std::path::PathBuf;
}

/// A file that is open and locked.
#[derive(Debug)]
pub struct Locked {
    /// The file.
    pub disk: Arc<dyn Disk>,
    /// Its lock.
    pub guard: Box<dyn LockGuard>,
}

/// Holds a lock until it is dropped.
pub trait LockGuard: Send + Sync + Debug {
    /// True if the name still belongs to the locked file, and not to another file.
    fn is_of(&self, name: &str) -> Result<bool>;
}

//! The interface to the operating system: a [`Disk`] is an open file, a [`Volume`] is the folder that contains it.
//!
//! The engine does all its I/O through these two traits, so that a test can replace the device by one that loses power
//! at any time. File formats and policies must not be in this layer.

mod blocks;
mod file;
mod folder;
mod memory;
mod overlay;

pub use file::FileDisk;
pub use folder::FileVolume;
pub use memory::{MemoryDisk, MemoryVolume};
pub use overlay::OverlayVolume;
pub(crate) use overlay::read_what_can_be;

use crate::base::Result;
use std::fmt::Debug;
use std::sync::Arc;

/// An open file, or what stands in for one. All methods may be called from several threads at once.
pub trait Disk: Send + Sync + Debug {
    /// The length in bytes.
    fn size(&self) -> Result<u64>;
    /// Fills `buf` from `offset`; an error if the file ends before.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
    /// Writes all of `buf` at `offset`, growing the file if need be. Durable only after [`Disk::sync`].
    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()>;
    /// Returns once all earlier writes and resizes are on the device.
    fn sync(&self) -> Result<()>;
    /// Says that `len` bytes at `offset` are not needed any more: they may read as anything afterwards.
    fn trim(&self, offset: u64, len: u64) -> Result<()>;
    /// Sets the length; new bytes are zero. What was reserved beyond the length is given back, also where that stays the
    /// same.
    fn resize(&self, len: u64) -> Result<()>;
    /// Makes sure that writes up to `len` will not fail for want of space, where the file system can promise it.
    fn reserve(&self, len: u64) -> Result<()>;
    /// Bytes allocated on the device, which may be less than [`Disk::size`] where the file has holes.
    fn allocated(&self) -> Result<u64>;
}

/// How [`Volume::open`] treats what is, or is not, there.
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
/// Who removes a file that others may open, or puts another one in its place, holds its lock exclusively while doing so:
/// then [`Volume::lock`] never gives anybody a file that has lost its name.
pub trait Volume: Send + Sync + Debug {
    /// Opens or creates a file; [`crate::Error::NotFound`] and [`crate::Error::Exists`] say which it was.
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>>;
    /// Creates a file, as [`OpenMode::CreateNew`] does, for those who may read and write the file `beside`, and nobody
    /// else; where there is no such file, or no such thing as permissions, it is a file as any other.
    fn create_beside(&self, name: &str, beside: &str) -> Result<Arc<dyn Disk>> {
        let _ = beside;
        self.open(name, OpenMode::CreateNew)
    }
    /// Removes a file; it is no error if it is not there.
    fn remove(&self, name: &str) -> Result<()>;
    /// Renames a file; [`crate::Error::Exists`] where something has the new name already, however late it came.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    /// Renames a file over another one, which has no name any more then: at no moment has nothing the name `to`.
    fn replace(&self, from: &str, to: &str) -> Result<()>;
    /// The names that begin with `prefix`, sorted.
    fn list(&self, prefix: &str) -> Result<Vec<String>>;
    /// Makes earlier creations, removals and renames durable.
    fn sync(&self) -> Result<()>;
    /// Opens the existing file `name`, to write if `exclusive`, and takes its lock, shared or exclusive, or gives
    /// [`crate::Error::Locked`] at once. The file has its name still when it is locked. The lock is released when the
    /// guard is dropped, and by the system when its process dies, however it dies; a renamed file keeps it.
    fn lock(&self, name: &str, exclusive: bool) -> Result<Locked>;
    /// Where the file is, for messages to people.
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

/// Holds a lock until dropped.
pub trait LockGuard: Send + Sync + Debug {
    /// Whether it is the locked file that has the name now, and not one that came in its place.
    fn is_of(&self, name: &str) -> Result<bool>;
}

//! How a database is opened: [`Builder`]. Every option has a default that suits most; none changes what the data mean.

use crate::base::{Error, Result, limits};
use crate::db::Database;
use crate::txn::Durability;
use std::path::Path;
use std::time::Duration;

/// Bytes of cache that a database has unless told otherwise.
pub const DEFAULT_CACHE: usize = 64 << 20;
/// The least number of pages a cache holds, whatever its size in bytes.
pub const MIN_CACHE_PAGES: usize = 64;

/// Options for creating or opening a database.
///
/// ```
/// # fn main() -> duramen::Result<()> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("small.duramen");
/// let db = duramen::Database::builder().page_size(16384).cache(8 << 20).create(&path)?;
/// # drop(db);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) page_size: Option<usize>,
    pub(crate) cache: usize,
    pub(crate) durability: Durability,
    pub(crate) flush_interval: Duration,
    pub(crate) checkpoint_bytes: u64,
    pub(crate) background: bool,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder {
            page_size: None,
            cache: DEFAULT_CACHE,
            durability: Durability::Commit,
            flush_interval: Duration::from_millis(100),
            checkpoint_bytes: 64 << 20,
            background: true,
        }
    }
}

impl Builder {
    /// The size of a page in bytes, a power of two: 4096 to 65536, in memory from 256. Default
    /// [`limits::DEFAULT_PAGE_SIZE`]. It is fixed when a database is created and ignored when one is opened.
    #[must_use]
    pub fn page_size(mut self, bytes: usize) -> Builder {
        self.page_size = Some(bytes);
        self
    }

    /// How many bytes of pages are kept in memory, at least [`MIN_CACHE_PAGES`] pages. Default [`DEFAULT_CACHE`]. An
    /// in-memory database keeps everything.
    #[must_use]
    pub fn cache(mut self, bytes: usize) -> Builder {
        self.cache = bytes;
        self
    }

    /// When commits count as done, unless a transaction says otherwise. Default [`Durability::Commit`].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Builder {
        self.durability = durability;
        self
    }

    /// How often the log is synced for [`Durability::Interval`]. Default 100 ms.
    #[must_use]
    pub fn flush_interval(mut self, interval: Duration) -> Builder {
        self.flush_interval = interval;
        self
    }

    /// A checkpoint is taken each time the log has grown by this many bytes; recovery reads at most about twice as
    /// much. Default 64 MiB.
    #[must_use]
    pub fn checkpoint_bytes(mut self, bytes: u64) -> Builder {
        self.checkpoint_bytes = bytes;
        self
    }

    /// Whether a thread takes checkpoints, syncs the log at intervals and frees dropped pages. Default `true`; without
    /// it, call [`Database::maintain`].
    #[must_use]
    pub fn background(mut self, background: bool) -> Builder {
        self.background = background;
        self
    }

    /// Creates a database in a new file.
    ///
    /// # Errors
    /// [`Error::Exists`] if the file is there already.
    pub fn create(&self, path: impl AsRef<Path>) -> Result<Database> {
        let (volume, name) = super::open::split_path(path.as_ref())?;
        self.create_on(volume, &name)
    }

    /// Opens a database for reading and writing, recovering it if it was not closed cleanly.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Locked`], [`Error::NotADatabase`], [`Error::FormatVersion`] and what recovery
    /// finds.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Database> {
        let (volume, name) = super::open::split_path(path.as_ref())?;
        self.open_on(volume, &name)
    }

    /// Opens a database for reading only; several processes may do so at once.
    ///
    /// # Errors
    /// As [`Builder::open`], and [`Error::NeedsRecovery`] if it was not closed cleanly.
    pub fn open_read_only(&self, path: impl AsRef<Path>) -> Result<Database> {
        let (volume, name) = super::open::split_path(path.as_ref())?;
        self.open_read_only_on(volume, &name)
    }

    /// A database in memory, gone when dropped.
    ///
    /// # Errors
    /// [`Error::Option`] for a page size that cannot be.
    pub fn in_memory(&self) -> Result<Database> {
        super::open::in_memory(self)
    }

    pub(crate) fn checked_page_size(&self, in_memory: bool) -> Result<usize, Error> {
        let page_size = self.page_size.unwrap_or(limits::DEFAULT_PAGE_SIZE);
        limits::check_page_size(page_size, in_memory)?;
        Ok(page_size)
    }

    pub(crate) fn frames(&self, page_size: usize) -> usize {
        (self.cache / page_size).max(MIN_CACHE_PAGES)
    }
}

//! The options of [`Builder`] that bound the work of a recovery.

use super::options::Builder;
use crate::base::{Error, Result};
use crate::txn::RedoBounds;

/// The default of [`Builder::checkpoint_bytes`]: 64 MiB.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("forest.duramen");
/// use duramen::{Database, db::DEFAULT_CHECKPOINT_BYTES};
///
/// let db = Database::builder().checkpoint_bytes(DEFAULT_CHECKPOINT_BYTES / 4).create(&path)?;
/// assert!(db.stats().log_bytes < DEFAULT_CHECKPOINT_BYTES / 4);
/// # Ok::<(), duramen::Error>(())
/// ```
pub const DEFAULT_CHECKPOINT_BYTES: u64 = 64 << 20;
/// The least default of [`Builder::checkpoint_pages`].
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("forest.duramen");
/// use duramen::{Database, db::DEFAULT_CHECKPOINT_PAGES};
///
/// let db = Database::builder().checkpoint_pages(DEFAULT_CHECKPOINT_PAGES / 4).create(&path)?;
/// assert!(db.stats().redo_pages < DEFAULT_CHECKPOINT_PAGES / 4);
/// # Ok::<(), duramen::Error>(())
/// ```
pub const DEFAULT_CHECKPOINT_PAGES: u64 = 65_536;

/// The minimum bounds. With smaller ones checkpoints would write more than commits.
const MIN_BYTES: u64 = 4096;
const MIN_PAGES: u64 = 16;

/// The maximum number of background writers.
const MAX_WRITERS: usize = 4;

impl Builder {
    /// Bounds the log that a recovery reads, in bytes: a checkpoint begins when the log has this number of bytes since
    /// the redo point. At least 4096. Default [`DEFAULT_CHECKPOINT_BYTES`]. A smaller bound makes recoveries shorter
    /// and writes pages more often.
    ///
    /// The background thread takes the checkpoint while commits continue. If they add as much again before it ends, the
    /// next commit waits for it. So a recovery reads at most twice as much, and what the last transaction wrote. It
    /// reads more only if no checkpoint could be taken, because the device was full. Without [`Builder::background`],
    /// [`Database::maintain`](crate::Database::maintain) takes the checkpoint at the bound, and a commit at twice the
    /// bound. [`DatabaseStats::log_bytes`](crate::db::DatabaseStats::log_bytes) has the present value.
    ///
    /// ```
    /// # use duramen::{Database, TableDef};
    /// # const TREES: TableDef<u64, u64> = TableDef::new("trees");
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// let db = Database::builder().checkpoint_bytes(64 << 10).background(false).create(&path)?;
    /// for tree in 0..3000 {
    ///     let mut tx = db.begin_write()?;
    /// #     tx.set_durability(duramen::Durability::None);
    ///     tx.open_table(TREES)?.put(tree, 0)?;
    ///     tx.commit()?;
    ///     assert!(db.stats().log_bytes < 2 * (64 << 10) + 10_000);
    /// }
    /// while db.maintain()? {}
    /// assert!(db.stats().log_bytes < 64 << 10);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn checkpoint_bytes(mut self, bytes: u64) -> Builder {
        self.checkpoint_bytes = bytes;
        self
    }

    /// Bounds the pages that a recovery reads: a checkpoint begins when the log has changed this number of different
    /// pages since the redo point. At least 16. Default: as many as the [cache](Builder::cache) holds, but at least
    /// [`DEFAULT_CHECKPOINT_PAGES`]. Random reads of pages take most of the time of a recovery if the changes are
    /// scattered over a database that is larger than the memory. A smaller bound makes recoveries shorter and writes
    /// pages more often.
    ///
    /// Checkpoints and the waiting of commits are as for [`Builder::checkpoint_bytes`].
    /// [`DatabaseStats::redo_pages`](crate::db::DatabaseStats::redo_pages) has the present value. A recovery whose
    /// cache holds fewer pages than it must read reads some of them more than once.
    ///
    /// ```
    /// # use duramen::{Database, TableDef};
    /// # const TREES: TableDef<u64, u64> = TableDef::new("trees");
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("forest.duramen");
    /// let db = Database::builder().page_size(4096).checkpoint_pages(100).background(false).create(&path)?;
    /// for tree in 0..3000u64 {
    ///     let mut tx = db.begin_write()?;
    /// #     tx.set_durability(duramen::Durability::None);
    ///     tx.open_table(TREES)?.put(tree.wrapping_mul(0x9E37_79B9_7F4A_7C15), tree)?;
    ///     tx.commit()?;
    ///     assert!(db.stats().redo_pages < 2 * 100 + 10);
    /// }
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn checkpoint_pages(mut self, pages: u64) -> Builder {
        self.checkpoint_pages = Some(pages);
        self
    }

    /// Fails if a bound is too small, or if there are too many writers.
    pub(crate) fn check_bounds(&self) -> Result<()> {
        if self.writers > MAX_WRITERS {
            let expected = format!("at most {MAX_WRITERS}");
            return Err(Error::Option { option: "writers", value: self.writers.to_string(), expected });
        }
        let least = |option, value: u64, least: u64, unit| match value < least {
            true => {
                Err(Error::Option { option, value: value.to_string(), expected: format!("at least {least}{unit}") })
            }
            false => Ok(()),
        };
        least("checkpoint_bytes", self.checkpoint_bytes, MIN_BYTES, " bytes")?;
        least("checkpoint_pages", self.checkpoint_pages.unwrap_or(DEFAULT_CHECKPOINT_PAGES), MIN_PAGES, "")
    }

    /// The bounds of a database with pages of this size.
    pub(super) fn redo_bounds(&self, page_size: usize) -> RedoBounds {
        let default = || DEFAULT_CHECKPOINT_PAGES.max(self.frames(page_size) as u64);
        RedoBounds { bytes: self.checkpoint_bytes, pages: self.checkpoint_pages.unwrap_or_else(default) }
    }
}

//! The redo log: batches of opaque bytes, one after the other, in segment files beside the database.
//!
//! The layer knows bytes and LSNs only. The format is in `docs/format/log.md`.
//!
//! * `batch`: the bytes of one batch.
//! * `segment`: names and headers of the files. `files`: which files of a volume belong to the log.
//! * `writer`: [`Log`], with append and reserve. `tail`: the writes to its last segment. `group_commit`: one sync for
//!   all threads that wait. `rotation`: how segments are begun, used again and removed.
//! * `reader`: [`LogReader`], which reads the batches up to the valid end. `damage`: whether that end is a torn tail.
//! * `resume`: from a reader to a [`Log`] of a new epoch.
//!
//! [`Log::append`] writes once and does not sync.
//! [`Watermark::make_durable`](crate::base::watermark::Watermark::make_durable) is group commit: one thread syncs while
//! others append. The syncs of batches run one after the other, so that every failure is seen. After a failed sync the
//! log acknowledges, appends and removes nothing more.
//!
//! A recovery calls in this order: read, redo, [`Log::resume`], a checkpoint whose redo point is in the new epoch, and
//! [`Log::remove_before`]. If it is interrupted anywhere, the redo point in the superblock still reads the same
//! batches. A clean close first writes a superblock that needs no log, and then calls [`Log::remove_all`].
mod batch;
mod damage;
mod files;
mod group_commit;
mod reader;
mod resume;
mod rotation;
mod segment;
mod tail;
mod window;
mod writer;

pub use batch::{BATCH_HEADER, Batch, BatchBuffer, MAX_PAYLOAD};
pub use reader::{LogEnd, LogReader, read, read_damaged};
pub use segment::SEGMENT_HEADER;
pub use writer::Log;

use crate::base::{Error, Lsn, checksum::checksum};
use crate::io::Volume;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes of a device block: a sparse log starts each flush at a multiple of it.
pub const DEVICE_BLOCK: u64 = 4096;

/// The place of a log, and its database.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// The folder of the segments.
    pub volume: Arc<dyn Volume>,
    /// The prefix of the names of the segments: `NAME-log` for `NAME-log.000001` and so on.
    pub prefix: String,
    /// The database's id. Segments of another database are never read.
    pub database: u128,
    /// The layout of batches in new segments. Each segment contains its own.
    pub shape: LogShape,
}

impl LogConfig {
    /// The initial value of all header checksums of this database, so that bytes of another database are never valid.
    fn seed(&self) -> u32 {
        checksum(&self.database.to_le_bytes())
    }

    /// The name of the database's file: the prefix without its `-log`.
    fn database_name(&self) -> &str {
        self.prefix.strip_suffix("-log").unwrap_or(&self.prefix)
    }

    /// The error if files of the log are missing.
    pub(crate) fn missing(&self) -> Error {
        Error::MissingLog { path: self.database_path(), log: self.volume.path(&self.prefix) }
    }

    /// The database's file, for messages.
    pub(crate) fn database_path(&self) -> PathBuf {
        self.volume.path(self.database_name())
    }
}

/// The layout of commits in the log: [`Builder::log_shape`](crate::Builder::log_shape) chooses it.
///
/// ```
/// use duramen::{Database, db::LogShape, io::MemoryVolume};
/// use std::sync::Arc;
///
/// let volume = Arc::new(MemoryVolume::new());
/// let db = Database::builder().log_shape(LogShape::Sparse).create_on(volume.clone(), "forest")?;
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// let tx = db.begin_write()?;
/// tx.open_table(TREES)?.put("oak", 700)?;
/// tx.commit()?;
/// drop(db);
/// assert!(Database::builder().open_on(volume, "forest").is_ok(), "each opening can have another shape");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LogShape {
    // The padding takes no LSNs: otherwise a flush would change the end of the log while a writer assigns LSNs from it.
    /// Without padding. A commit that is flushed alone writes the end of the commit before it again, because a device
    /// writes whole blocks of 4 KiB.
    #[default]
    Packed = 0,
    /// Each flush begins a new block of 4 KiB, and zeros fill the rest of its last block. So no block is written twice,
    /// and a drive that compresses stores the zeros in almost no space. On other drives the log takes at least 4 KiB a
    /// flush.
    Sparse = 1,
}

/// A position in the log. The superblock contains one, the redo point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogPosition {
    /// The start of a batch, or the end of the log.
    pub lsn: Lsn,
    /// The epoch of the log that wrote it, [`Log::epoch`]. Segments of earlier epochs are never read.
    pub epoch: u32,
}

#[cfg(test)]
mod tests;

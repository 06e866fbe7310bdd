//! [`Watermark`] says up to which LSN the log is written and durable. The page store, a layer that does not know the
//! log, uses this trait to follow the write-ahead rule.

use super::{Lsn, Result};

/// The state of the log that a page store needs for the write-ahead rule: a page is written only when its log is
/// durable.
pub trait Watermark: Send + Sync {
    /// All bytes of the log before this LSN are on the device. It is always the end of a batch.
    fn durable(&self) -> Lsn;
    /// All bytes before this LSN are in the log, durable or not. It is always the end of a batch: a page with this LSN
    /// or a greater one belongs to a batch that is still being applied.
    fn appended(&self) -> Lsn;
    /// Returns when all bytes before `lsn` are durable. The result is true if this call had to sync. `lsn` must be at
    /// most [`Watermark::appended`].
    fn make_durable(&self, lsn: Lsn) -> Result<bool>;
}

//! [`Watermark`]: how far the log is written and durable. The page store, a layer that does not know the log, uses this
//! trait to follow the write-ahead rule.

use super::{Lsn, Result};

/// What a page store asks of the log before a page may reach the device (write-ahead rule): a layer below the log
/// sees only this.
pub trait Watermark: Send + Sync {
    /// Everything before this LSN is on the device. Always a batch's end.
    fn durable(&self) -> Lsn;
    /// Everything before this LSN is in the log, durable or not. Always a batch's end: a page whose LSN is at or
    /// past it belongs to a batch that is still being applied.
    fn appended(&self) -> Lsn;
    /// Returns once everything before `lsn` is durable; `lsn` must be at most [`Watermark::appended`].
    fn make_durable(&self, lsn: Lsn) -> Result<()>;
}

//! Counts the pages that a store compresses and decompresses, and the time that this takes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The work of page compression since the database was opened ([`Metrics::compression`](crate::db::Metrics)). A page
/// that was compressed and then did not get smaller, or missed its [`Target`](crate::db::Target), counts as missed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CompressionTotals {
    /// Pages that were compressed when they were written.
    pub compressed: u64,
    /// Pages whose compression saved no place or missed the target: they were written uncompressed.
    pub missed: u64,
    /// The recompressed pages among the compressed and the missed ones: they had an image before.
    pub recompressed: u64,
    /// The time of both, with the decompression that checks the result.
    pub compress_time: Duration,
    /// Pages that were decompressed when they were read.
    pub decompressed: u64,
    /// The time of that.
    pub decompress_time: Duration,
    /// Leaves that were split because they missed their target ([`Overflow::Split`](crate::db::Overflow)).
    pub split: u64,
}

impl CompressionTotals {
    /// The work since `earlier`, which is of the same database.
    ///
    /// ```
    /// let db = duramen::Database::in_memory()?;
    /// let before = db.metrics().compression;
    /// assert_eq!(db.metrics().compression.since(&before).compressed, 0);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn since(&self, earlier: &CompressionTotals) -> CompressionTotals {
        CompressionTotals {
            compressed: self.compressed.saturating_sub(earlier.compressed),
            missed: self.missed.saturating_sub(earlier.missed),
            recompressed: self.recompressed.saturating_sub(earlier.recompressed),
            compress_time: self.compress_time.saturating_sub(earlier.compress_time),
            decompressed: self.decompressed.saturating_sub(earlier.decompressed),
            decompress_time: self.decompress_time.saturating_sub(earlier.decompress_time),
            split: self.split.saturating_sub(earlier.split),
        }
    }
}

/// The same, while threads count. Times are in nanoseconds.
#[derive(Debug, Default)]
pub(in crate::store) struct CompressionCounters {
    compressed: AtomicU64,
    missed: AtomicU64,
    recompressed: AtomicU64,
    compress_time: AtomicU64,
    decompressed: AtomicU64,
    decompress_time: AtomicU64,
}

impl CompressionCounters {
    /// Counts a page that was given to a coder for writing.
    pub(in crate::store) fn note_compressed(&self, is_smaller: bool, started: Instant) {
        let pages = if is_smaller { &self.compressed } else { &self.missed };
        pages.fetch_add(1, Ordering::Relaxed);
        self.compress_time.fetch_add(nanoseconds(started), Ordering::Relaxed);
    }

    /// Counts pages that were given to a coder and have replaced an image.
    pub(in crate::store) fn note_recompressed(&self, pages: u64) {
        self.recompressed.fetch_add(pages, Ordering::Relaxed);
    }

    /// Counts a page that was decompressed.
    pub(in crate::store) fn note_decompressed(&self, started: Instant) {
        self.decompressed.fetch_add(1, Ordering::Relaxed);
        self.decompress_time.fetch_add(nanoseconds(started), Ordering::Relaxed);
    }

    pub(in crate::store) fn totals(&self) -> CompressionTotals {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CompressionTotals {
            compressed: of(&self.compressed),
            missed: of(&self.missed),
            recompressed: of(&self.recompressed),
            compress_time: Duration::from_nanos(of(&self.compress_time)),
            decompressed: of(&self.decompressed),
            decompress_time: Duration::from_nanos(of(&self.decompress_time)),
            split: 0,
        }
    }
}

fn nanoseconds(started: Instant) -> u64 {
    u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

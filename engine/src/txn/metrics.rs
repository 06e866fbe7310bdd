//! [`Metrics`]: how much a database has written, and how much data its users have put. The counting is in `io` and
//! `store`.

use super::engine::Engine;
use crate::store::{CompressionTotals, PageCompression, StoreKind, WriteTotals};
use std::sync::atomic::Ordering;

/// The bytes that a database has written, and the sizes of its file. `Database::metrics` returns them. The counters are
/// always on and take no locks.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("forest.duramen");
/// # const TREES: duramen::TableDef<&str, u64> = duramen::TableDef::new("trees");
/// use duramen::{Database, io::WriteKind};
///
/// let db = Database::create(&path)?;
/// let tx = db.begin_write()?;
/// tx.open_table(TREES)?.put("oak", 700)?;
/// tx.commit()?;
/// db.checkpoint()?;
///
/// let metrics = db.metrics();
/// for kind in WriteKind::ALL {
///     let written = metrics.since_open.written(kind);
///     println!("{}: {} bytes in {} calls", kind.name(), written.bytes, written.calls);
/// }
/// let total = metrics.since_open.total_amplification().unwrap_or(0.0);
/// println!("{total:.1} bytes written for each of {} bytes of user data", metrics.since_open.user_bytes);
/// db.close()?;
///
/// let life = Database::open(&path)?.metrics().life;
/// assert!(life.user_bytes == 11 && life.all_written().bytes >= metrics.life.all_written().bytes);
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Metrics {
    /// Since the database was opened.
    pub since_open: WriteTotals,
    /// Since the database was created in this file. Each checkpoint saves it. After a crash, the writes after the last
    /// checkpoint are missing.
    pub life: WriteTotals,
    /// Length of the file in bytes: its apparent size. 0 in memory.
    pub file_bytes: u64,
    /// Bytes of the file on the device. Fewer than its length if the file has holes (a copy may fill them), more if
    /// space is reserved after its end. A device that compresses data may use less.
    pub allocated_bytes: u64,
    /// Bytes of all pages, without compression.
    pub page_bytes: u64,
    /// Bytes of changed segments in the delta blocks in use, without the headers of the blocks, estimated from a sample
    /// of the pages. 0 for the page store `table`.
    pub delta_bytes: u64,
    /// The work of page compression since the database was opened.
    pub compression: CompressionTotals,
}

impl Metrics {
    /// Bytes of changed segments in delta blocks for each byte of pages: the space that delta blocks add (equations 3
    /// and 4 of the B-minus-tree paper). The headers of the blocks are not counted.
    ///
    /// ```
    /// let db = duramen::Database::in_memory()?;
    /// assert_eq!(db.metrics().beta(), 0.0);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn beta(&self) -> f64 {
        if self.page_bytes == 0 { 0.0 } else { self.delta_bytes as f64 / self.page_bytes as f64 }
    }
}

impl Engine {
    /// The bytes written, and the sizes of the file.
    pub(crate) fn metrics(&self) -> Metrics {
        let Some(store) = &self.store else { return Metrics::default() };
        let (stats, file) = (store.stats(), store.file());
        Metrics {
            since_open: file.written(),
            life: file.written_in_life(),
            file_bytes: stats.file_bytes,
            allocated_bytes: file.allocated(),
            page_bytes: stats.pages.saturating_mul(self.full_page_size() as u64),
            delta_bytes: store.delta_bytes(),
            compression: CompressionTotals {
                split: self.overflow_splits.load(Ordering::Relaxed),
                ..store.compression().map(PageCompression::totals).unwrap_or_default()
            },
        }
    }

    /// Bytes of a page, including the bytes that the store keeps after each page.
    pub(super) fn full_page_size(&self) -> usize {
        let kind = self.store.as_ref().map(|store| store.file().kind());
        self.page_size() + kind.map_or(0, StoreKind::trailer)
    }
}

//! The part of `stat` that is about the database as a whole: its file, what was written to it, and what its file system
//! can do.

use duramen::db::{Metrics, StoreKind, WriteTotals};
use duramen::io::{FileVolume, TrimSupport, WriteKind};
use duramen::{Database, Result};
use serde::Serialize;

/// The file.
#[derive(Serialize)]
pub(super) struct DatabaseRow {
    store: Option<&'static str>,
    /// Threshold, segment and blocks, or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<String>,
    page_size: usize,
    /// Length of the file: its apparent size.
    file_bytes: u64,
    /// Bytes of the file on the device.
    allocated_bytes: u64,
    /// Bytes of page images in the file.
    live_bytes: u64,
    /// Free bytes in the file.
    free_bytes: u64,
    pages: u64,
    /// Delta blocks in use.
    delta_bytes: u64,
    /// Bytes of delta blocks for each byte of pages.
    beta: f64,
}

/// What was written in some time.
#[derive(Serialize)]
pub(super) struct Totals {
    /// Keys and values that were put, and keys that were deleted.
    user_bytes: u64,
    /// Syncs of the file, and of the log.
    data_syncs: u64,
    log_syncs: u64,
    /// Those of the log that evictions needed.
    forced_log_syncs: u64,
    writes: Vec<KindRow>,
}

/// What was written of a kind, or in total.
#[derive(Serialize)]
struct KindRow {
    kind: &'static str,
    calls: u64,
    written_bytes: u64,
    /// Written bytes for each user byte.
    amplification: Option<f64>,
}

/// What the file system can do.
#[derive(Serialize)]
pub(super) struct FileSystem {
    /// Whether it punches holes, so that trimmed space is free for other files: `found`, `missing` or `unknown`.
    trim: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_no_trim: Option<String>,
    /// Whether a power cut leaves a block of 4 KiB either as it was or as it was written.
    atomic_4k_writes: &'static str,
    why_not_atomic: &'static str,
}

/// What is to be known of a database beyond its tables.
#[derive(Serialize)]
pub(super) struct Whole {
    database: DatabaseRow,
    /// Since the database was created.
    life: Totals,
    /// Since this program opened the database, if anything was written: by a recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    since_open: Option<Totals>,
    file_system: FileSystem,
    warnings: Vec<&'static str>,
}

impl Whole {
    pub(super) fn of(db: &Database) -> Result<Whole> {
        let (stats, metrics) = (db.stats(), db.metrics());
        let mut warnings = Vec::new();
        if metrics.allocated_bytes < metrics.file_bytes {
            warnings.push("The file has holes. A copy may fill them: use cp --sparse=always, or dump.");
        }
        let database = DatabaseRow {
            store: stats.store.map(StoreKind::name),
            delta: stats.delta.map(|delta| delta.to_string()),
            page_size: stats.page_size,
            file_bytes: stats.file_bytes,
            allocated_bytes: stats.allocated_bytes,
            live_bytes: stats.live_bytes,
            free_bytes: stats.free_bytes,
            pages: stats.pages,
            delta_bytes: metrics.delta_bytes,
            beta: metrics.beta(),
        };
        let Metrics { life, since_open, .. } = metrics;
        let since_open = (since_open != WriteTotals::default()).then(|| totals(&since_open));
        let file_system = file_system(FileVolume::for_file(db.path())?.0.trim_support());
        Ok(Whole { database, life: totals(&life), since_open, file_system, warnings })
    }
}

fn totals(of: &WriteTotals) -> Totals {
    let row = |kind, written: duramen::io::Written, amplification| KindRow {
        kind,
        calls: written.calls,
        written_bytes: written.bytes,
        amplification,
    };
    let kinds = WriteKind::ALL.into_iter().map(|kind| row(kind.name(), of.written(kind), of.amplification(kind)));
    let writes = std::iter::once(row("total", of.all_written(), of.total_amplification())).chain(kinds).collect();
    let WriteTotals { user_bytes, data_syncs, log_syncs, forced_log_syncs, .. } = *of;
    Totals { user_bytes, data_syncs, log_syncs, forced_log_syncs, writes }
}

fn file_system(trim: TrimSupport) -> FileSystem {
    let (trim, why_no_trim) = match trim {
        TrimSupport::Found => ("found", None),
        TrimSupport::Missing { why } => ("missing", Some(why)),
        TrimSupport::Unknown { why } => ("unknown", Some(why)),
    };
    // The system's cache may pass a block on in parts, whatever the device does.
    let why_not_atomic = "writes go through the system's cache";
    FileSystem { trim, why_no_trim, atomic_4k_writes: "unknown", why_not_atomic }
}

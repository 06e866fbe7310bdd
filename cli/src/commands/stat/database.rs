//! The part of `stat` that is about the database as a whole: its file, what was written to it, and what its file system
//! can do.

use duramen::db::{Metrics, StoreKind, WriteTotals};
use duramen::io::{AtomicSupport, FileVolume, TrimSupport, WriteKind};
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
    /// Bytes of changes in the delta blocks in use.
    delta_used_bytes: u64,
    /// Bytes of delta blocks for each byte of pages.
    beta: f64,
}

/// The work of the recovery at opening.
#[derive(Serialize)]
struct RecoveryRow {
    /// Bytes of the log.
    log_bytes: u64,
    /// Distinct pages that the log changes.
    pages: u64,
    /// Page operations of the log: those that were applied, and those whose effect the pages in the file already had.
    applied: u64,
    skipped: u64,
    seconds: f64,
}

/// The writes in a period.
#[derive(Serialize)]
pub(super) struct Totals {
    /// Bytes of keys and values that were put, and of keys that were deleted.
    user_bytes: u64,
    /// Syncs of the file, and of the log.
    data_syncs: u64,
    log_syncs: u64,
    /// Syncs of the log that evictions needed.
    forced_log_syncs: u64,
    writes: Vec<KindRow>,
}

/// The writes of a kind, or all writes.
#[derive(Serialize)]
struct KindRow {
    kind: &'static str,
    calls: u64,
    written_bytes: u64,
    /// Written bytes for each user byte.
    amplification: Option<f64>,
}

/// The capabilities of the file system.
#[derive(Serialize)]
pub(super) struct FileSystem {
    /// Whether the file system punches holes, so that trimmed space is free for other files: `found`, `missing` or
    /// `unknown`.
    trim: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_no_trim: Option<String>,
    /// Whether the file system offers writes after which a block of 4 KiB has either its old or its new content,
    /// whenever the power is cut: `found`, `missing` or `unknown`.
    atomic_4k_writes: &'static str,
    /// Why the database does not rely on them.
    why_not_atomic: String,
}

/// The report on a database besides its tables.
#[derive(Serialize)]
pub(super) struct Whole {
    database: DatabaseRow,
    /// Since the database was created.
    life: Totals,
    /// The recovery, if the database was not closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<RecoveryRow>,
    /// Since this program opened the database, if it wrote anything, which only a recovery does.
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
            delta_used_bytes: metrics.delta_bytes,
            beta: metrics.beta(),
        };
        let Metrics { life, since_open, .. } = metrics;
        let since_open = (since_open != WriteTotals::default()).then(|| totals(&since_open));
        let (folder, name) = FileVolume::for_file(db.path())?;
        let file_system = file_system(folder.trim_support_of(&name), folder.atomic_support_of(&name));
        let recovery = stats.recovery.map(|done| RecoveryRow {
            log_bytes: done.log_bytes,
            pages: done.pages,
            applied: done.applied,
            skipped: done.skipped,
            seconds: done.time.as_secs_f64(),
        });
        Ok(Whole { database, life: totals(&life), recovery, since_open, file_system, warnings })
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

fn file_system(trim: TrimSupport, atomic: AtomicSupport) -> FileSystem {
    let (trim, why_no_trim) = match trim {
        TrimSupport::Found => ("found", None),
        TrimSupport::Missing { why } => ("missing", Some(why)),
        TrimSupport::Unknown { why } => ("unknown", Some(why)),
    };
    let (atomic_4k_writes, why_not_atomic) = match atomic {
        // The cache may write a block in parts, whatever the device supports.
        AtomicSupport::Found => ("found", "they are not used: writes go through the system's cache".to_owned()),
        AtomicSupport::Missing { why } => ("missing", why),
        AtomicSupport::Unknown { why } => ("unknown", why),
    };
    FileSystem { trim, why_no_trim, atomic_4k_writes, why_not_atomic }
}

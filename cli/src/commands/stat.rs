//! `stat`: how large the database and its tables are, and how their pages are filled.

use super::open;
use crate::args::Stat;
use crate::failure::{Found, Result};
use crate::report;
use duramen::db::DatabaseStats;
use duramen::tree::TreeStats;
use duramen::{Database, Error, TableInfo};
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<DatabaseRow>,
    tables: Vec<TableRow>,
}

/// The database as a whole.
#[derive(Serialize)]
struct DatabaseRow {
    page_size: usize,
    file_bytes: u64,
    /// Page images in the file.
    live_bytes: u64,
    /// What can be used again.
    free_bytes: u64,
    pages: u64,
}

/// A table.
#[derive(Serialize)]
struct TableRow {
    name: String,
    key_type: String,
    value_type: String,
    keys: &'static str,
    separators: &'static str,
    entries: u64,
    levels: usize,
    leaf_pages: u64,
    inner_pages: u64,
    /// Pages of long keys' runs.
    run_pages: u64,
    /// Values kept outside the leaves.
    large_values: u64,
    /// All keys side by side, uncompressed.
    raw_key_bytes: u64,
    /// What the leaves spend on keys.
    key_list_bytes: u64,
    /// And on values.
    record_list_bytes: u64,
    /// Key list bytes to an entry.
    bytes_per_key: f64,
    /// The part of the leaves that is in use.
    leaf_fill: f64,
}

/// Prints the report: of the database and all tables, or of one table.
pub(super) fn run(args: &Stat) -> Result<Found> {
    let db = open::reading(&args.database)?;
    let stats = db.stats();
    let mut tables = db.begin_read()?.tables()?;
    if let Some(name) = &args.table {
        tables.retain(|table| table.name == *name);
        if tables.is_empty() {
            return Err(Error::NoTable { table: name.clone() }.into());
        }
    }
    let tables = tables.into_iter().map(|table| row(&db, table, stats.page_size)).collect::<Result<_>>()?;
    let database = args.table.is_none().then(|| database(&stats));
    report::print(&Report { database, tables }, args.report.format)?;
    Ok(Found::There)
}

fn database(stats: &DatabaseStats) -> DatabaseRow {
    let DatabaseStats { page_size, file_bytes, live_bytes, free_bytes, pages, .. } = *stats;
    DatabaseRow { page_size, file_bytes, live_bytes, free_bytes, pages }
}

fn row(db: &Database, table: TableInfo, page_size: usize) -> Result<TableRow> {
    let stats: TreeStats = db.table_stats(&table.name)?;
    let leaves = stats.levels.first().copied().unwrap_or_default();
    let TableInfo { name, key_type, value_type, entries, keys, separators, .. } = table;
    Ok(TableRow {
        name,
        key_type,
        value_type,
        keys,
        separators,
        entries,
        levels: stats.levels.len(),
        leaf_pages: leaves.pages,
        inner_pages: stats.levels.iter().skip(1).map(|level| level.pages).sum(),
        run_pages: stats.run_pages,
        large_values: stats.large_records,
        raw_key_bytes: leaves.raw_key_bytes,
        key_list_bytes: leaves.key_list_bytes,
        record_list_bytes: leaves.record_list_bytes,
        bytes_per_key: part(leaves.key_list_bytes, leaves.entries),
        leaf_fill: part(leaves.used_bytes, leaves.pages * page_size as u64),
    })
}

fn part(some: u64, of: u64) -> f64 {
    some as f64 / of.max(1) as f64
}

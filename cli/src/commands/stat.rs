//! `stat`: how large the database and its tables are, and how their pages are filled.

use super::open;
use crate::args::Stat;
use crate::failure::{Found, Result};
use crate::report;
use duramen::db::{DatabaseStats, LevelStats, TreeStats};
use duramen::{Codec, Error, TableInfo};
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    #[serde(skip_serializing_if = "Option::is_none")]
    database: Option<DatabaseRow>,
    tables: Vec<TableRow>,
    /// Of each table the leaves first, the root last.
    levels: Vec<LevelRow>,
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
    /// How blocks of keys are compressed; `-` without blocks.
    codec: Option<&'static str>,
    separators: &'static str,
    entries: u64,
    /// Levels of the tree.
    height: usize,
    /// Children of an inner page, on average.
    fan_out: f64,
    /// Pages of long keys' runs.
    run_pages: u64,
    /// Values kept outside the leaves.
    large_values: u64,
    /// All keys side by side, uncompressed.
    raw_key_bytes: u64,
    /// What the leaves spend on keys, slots included.
    key_list_bytes: u64,
    /// And on values.
    record_list_bytes: u64,
    /// The bytes spent on keys to those of the keys.
    ratio: f64,
}

/// A level of a table's tree. Sizes of keys are averages of an entry, those of headers of a page.
#[derive(Serialize)]
struct LevelRow {
    table: String,
    /// 0: the leaves.
    level: usize,
    pages: u64,
    /// The part of the pages that is in use.
    fill: f64,
    /// An inner page has as many children.
    entries_per_page: f64,
    /// The key as it is, or as far as a separator needs it.
    raw_bytes_per_key: f64,
    /// What the key list spends on it, its slot included.
    bytes_per_key: f64,
    /// Header and fences.
    header_bytes_per_page: f64,
    ratio: f64,
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
    let mut report = Report {
        database: args.table.is_none().then(|| database(&stats)),
        tables: Vec::with_capacity(tables.len()),
        levels: Vec::new(),
    };
    for table in tables {
        let tree = db.table_stats(&table.name)?;
        report.levels.extend((0..).zip(&tree.levels).map(|(at, level)| row(&table.name, at, level, stats.page_size)));
        report.tables.push(summary(table, &tree));
    }
    report::print(&report, args.report.format)?;
    Ok(Found::There)
}

fn database(stats: &DatabaseStats) -> DatabaseRow {
    let DatabaseStats { page_size, file_bytes, live_bytes, free_bytes, pages, .. } = *stats;
    DatabaseRow { page_size, file_bytes, live_bytes, free_bytes, pages }
}

fn summary(table: TableInfo, stats: &TreeStats) -> TableRow {
    let TableInfo { name, key_type, value_type, entries, keys, codec, separators, .. } = table;
    let leaves = stats.levels.first().copied().unwrap_or_default();
    let inner: u64 = stats.levels.iter().skip(1).map(|level| level.pages).sum();
    let children: u64 = stats.levels.iter().skip(1).map(|level| level.entries).sum();
    TableRow {
        name,
        key_type,
        value_type,
        keys,
        codec: codec.map(Codec::name),
        separators,
        entries,
        height: stats.levels.len(),
        fan_out: part(children, inner),
        run_pages: stats.run_pages,
        large_values: stats.large_records,
        raw_key_bytes: leaves.raw_key_bytes,
        key_list_bytes: leaves.key_list_bytes,
        record_list_bytes: leaves.record_list_bytes,
        ratio: part(leaves.key_list_bytes, leaves.raw_key_bytes),
    }
}

fn row(table: &str, at: usize, level: &LevelStats, page_size: usize) -> LevelRow {
    LevelRow {
        table: table.to_owned(),
        level: at,
        pages: level.pages,
        fill: part(level.used_bytes, level.pages * page_size as u64),
        entries_per_page: part(level.entries, level.pages),
        raw_bytes_per_key: part(level.raw_key_bytes, level.entries),
        bytes_per_key: part(level.key_list_bytes, level.entries),
        header_bytes_per_page: part(level.front_bytes, level.pages),
        ratio: part(level.key_list_bytes, level.raw_key_bytes),
    }
}

fn part(some: u64, of: u64) -> f64 {
    some as f64 / of.max(1) as f64
}

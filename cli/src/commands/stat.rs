//! `stat`: the sizes of the database and its tables, and how full their pages are.

use super::open;
use crate::args::Stat;
use crate::failure::{Failure, Found, Result};
use crate::report::{self, Parts};
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
    separators: String,
    /// Whether it gives out keys.
    auto_increment: bool,
    entries: u64,
    /// Levels of the tree.
    height: usize,
    /// Children of an inner page, on average.
    fanout: f64,
    /// Pages of long keys' runs.
    run_pages: u64,
    /// Pages of the key heap, of a table whose leaves keep their keys there.
    heap_pages: u64,
    /// What is in use of them.
    heap_used_bytes: u64,
    /// Values kept outside the leaves.
    large_values: u64,
    /// Their bytes.
    large_value_bytes: u64,
    /// All keys side by side, uncompressed.
    raw_key_bytes: u64,
    /// What the leaves spend on keys, slots included.
    key_list_bytes: u64,
    /// The compression ratio of keys, see [`ratio`]; what the key heap has of them included.
    ratio: f64,
    /// All values side by side, large ones too.
    raw_value_bytes: u64,
    /// What the leaves spend on values, slots included; of large ones only where they are.
    record_list_bytes: u64,
    /// Both to an entry.
    raw_bytes_per_value: f64,
    /// Likewise.
    bytes_per_value: f64,
}

/// A level of a table's tree. Sizes of keys are averages of an entry, those of the front of a page.
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
    front_bytes_per_page: f64,
    /// The compression ratio of keys, see [`ratio`].
    ratio: f64,
}

/// The tables are printed in three parts: their layout, their pages outside the tree, and their bytes.
const IN_PARTS: Parts<'_> = Parts { labels: &["name", "table", "level"], begins: &["run_pages", "raw_key_bytes"] };

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
    let mut damaged = None;
    for table in tables {
        let tree = db.table_stats(&table.name)?;
        if let (None, Some(problem)) = (&damaged, tree.problems.first()) {
            let name = table.name.escape_debug();
            damaged = Some(format!("table \"{name}\", page {}: {}", problem.page, problem.what));
        }
        report.levels.extend((0..).zip(&tree.levels).map(|(at, level)| row(&table.name, at, level, stats.page_size)));
        report.tables.push(summary(table, &tree));
    }
    report::print_in_parts(&report, args.report.format, IN_PARTS)?;
    match damaged {
        None => Ok(Found::There),
        Some(what) => {
            let told = "the figures are for what can be read; check lists all damage";
            Err(Failure::Unsound(format!("{} is damaged: {what}; {told}", args.database.db.display())))
        }
    }
}

fn database(stats: &DatabaseStats) -> DatabaseRow {
    let DatabaseStats { page_size, file_bytes, live_bytes, free_bytes, pages, .. } = *stats;
    DatabaseRow { page_size, file_bytes, live_bytes, free_bytes, pages }
}

fn summary(table: TableInfo, stats: &TreeStats) -> TableRow {
    let TableInfo { name, key_type, value_type, entries, keys, codec, separators, next_key, .. } = table;
    let leaves = stats.levels.first().copied().unwrap_or_default();
    let inner: u64 = stats.levels.iter().skip(1).map(|level| level.pages).sum();
    let raw_value_bytes = leaves.raw_record_bytes + stats.large_value_bytes;
    let children: u64 = stats.levels.iter().skip(1).map(|level| level.entries).sum();
    TableRow {
        name,
        key_type,
        value_type,
        keys,
        codec: codec.map(Codec::name),
        separators,
        auto_increment: next_key.is_some(),
        entries,
        height: stats.levels.len(),
        fanout: part(children, inner),
        run_pages: stats.run_pages,
        heap_pages: stats.heap_pages,
        heap_used_bytes: stats.heap_used_bytes,
        large_values: stats.large_records,
        large_value_bytes: stats.large_value_bytes,
        raw_key_bytes: leaves.raw_key_bytes,
        key_list_bytes: leaves.key_list_bytes,
        ratio: ratio(&LevelStats { key_list_bytes: leaves.key_list_bytes + stats.heap_used_bytes, ..leaves }),
        raw_value_bytes,
        record_list_bytes: leaves.record_list_bytes,
        raw_bytes_per_value: part(raw_value_bytes, entries),
        bytes_per_value: part(leaves.record_list_bytes, entries),
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
        front_bytes_per_page: part(level.front_bytes, level.pages),
        ratio: ratio(level),
    }
}

/// The compression ratio of a level's keys: what they take plain, each with four bytes for its place and length, to what
/// the key lists take. The same as `duramen-bench keys` says, and the paper.
fn ratio(level: &LevelStats) -> f64 {
    part(level.raw_key_bytes + 4 * level.entries, level.key_list_bytes)
}

fn part(some: u64, of: u64) -> f64 {
    some as f64 / of.max(1) as f64
}

//! `stat`: the sizes of the database and its tables, what was written to it, and how full its pages are. The database
//! as a whole is in `database`.

mod database;

use super::open;
use super::plan::{compression_name, target_name};
use crate::args::Stat;
use crate::failure::{Completion, Failure, Result};
use crate::report::{self, ColumnParts};
use database::Whole;
use duramen::db::{DictionaryInfo, LevelStats, TreeStats};
use duramen::{Codec, Error, TableInfo};
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    whole: Option<Whole>,
    tables: Vec<TableRow>,
    /// The levels of each table, from the leaves to the root.
    levels: Vec<LevelRow>,
}

/// A table.
#[derive(Serialize)]
struct TableRow {
    name: String,
    key_type: String,
    value_type: String,
    keys: &'static str,
    /// The codec of blocks; `-` without blocks.
    codec: Option<&'static str>,
    /// How pages are compressed in the file.
    compression: String,
    target: String,
    separators: String,
    /// True if the table assigns keys.
    auto_increment: bool,
    entries: u64,
    /// Bytes of the dictionary with which pages are compressed. The file has them twice.
    dictionary_bytes: u64,
    /// The number of levels of the tree.
    height: usize,
    /// The average number of children of an inner page.
    fanout: f64,
    /// Pages of the runs of long keys.
    run_pages: u64,
    /// Pages of the key heap, if the table has one.
    heap_pages: u64,
    /// Bytes in use in these pages.
    heap_used_bytes: u64,
    /// The number of values outside the leaves.
    large_values: u64,
    /// Bytes of these values.
    large_value_bytes: u64,
    /// Bytes of all keys, uncompressed, without the rest of long keys that is in their runs.
    raw_key_bytes: u64,
    /// Bytes that the leaves use for keys, slots included.
    key_list_bytes: u64,
    /// The compression ratio of keys, see [`ratio`]; the key heap is included.
    ratio: f64,
    /// Bytes of all values, large ones too.
    raw_value_bytes: u64,
    /// Bytes that the leaves use for values, slots included, with references to large values.
    record_list_bytes: u64,
    /// `raw_value_bytes` for each entry.
    raw_bytes_per_value: f64,
    /// `record_list_bytes` for each entry.
    bytes_per_value: f64,
}

/// A level of the tree of a table. Sizes are averages of an entry, or of a page.
#[derive(Serialize)]
struct LevelRow {
    table: String,
    /// 0: the leaves.
    level: usize,
    pages: u64,
    /// The part of the pages that is in use, up to 1.
    fill: f64,
    /// Entries of a page; for an inner page, its children.
    entries_per_page: f64,
    /// Bytes of an uncompressed key or separator.
    raw_bytes_per_key: f64,
    /// Bytes that the key list uses for it, slot included.
    bytes_per_key: f64,
    /// Bytes of the header and the fences.
    front_bytes_per_page: f64,
    /// The compression ratio of keys, see [`ratio`].
    ratio: f64,
}

/// The tables are printed in three parts: their layout, their pages outside the tree, and their bytes.
const IN_PARTS: ColumnParts<'_> =
    ColumnParts { labels: &["name", "table", "level"], begins: &["run_pages", "raw_key_bytes"] };

/// Prints the report: of the database and all tables, or of one table.
pub(super) fn run(args: &Stat) -> Result<Completion> {
    let db = open::reading(&args.database)?;
    let page_size = db.stats().page_size;
    let mut tables = db.begin_read()?.tables()?;
    if let Some(name) = &args.table {
        tables.retain(|table| table.name == *name);
        if tables.is_empty() {
            return Err(Error::NoTable { table: name.clone() }.into());
        }
    }
    let mut report = Report {
        whole: args.table.is_none().then(|| Whole::of(&db)).transpose()?,
        tables: Vec::with_capacity(tables.len()),
        levels: Vec::new(),
    };
    let (mut damaged, dictionaries) = (None, db.dictionaries()?);
    for table in tables {
        let tree = db.table_stats(&table.name)?;
        if let (None, Some(problem)) = (&damaged, tree.problems.first()) {
            let name = table.name.escape_debug();
            damaged = Some(format!("table \"{name}\", page {}: {}", problem.page, problem.what));
        }
        report.levels.extend((0..).zip(&tree.levels).map(|(at, level)| row(&table.name, at, level, page_size)));
        let of_table = |one: &&DictionaryInfo| one.is_used && one.table.as_ref() == Some(&table.name);
        let dictionary_bytes = dictionaries.iter().find(of_table).map_or(0, |one| one.bytes);
        report.tables.push(summary(table, &tree, dictionary_bytes));
    }
    let printed = report::print_in_parts(&report, args.report.format, IN_PARTS);
    match damaged {
        // Damage is an error also if nobody reads the report.
        None => printed.map(|()| Completion::Done),
        Some(what) => {
            let advice = "the figures are for what can be read; check lists all damage";
            Err(Failure::Unsound(format!("{} is damaged: {what}; {advice}", args.database.db.display())))
        }
    }
}

fn summary(table: TableInfo, stats: &TreeStats, dictionary_bytes: u64) -> TableRow {
    let TableInfo {
        name,
        key_type,
        value_type,
        entries,
        keys,
        codec,
        compression,
        target,
        overflow,
        dictionary,
        separators,
        next_key,
        ..
    } = table;
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
        compression: compression_name(compression, dictionary),
        target: target_name(target, overflow),
        separators,
        auto_increment: next_key.is_some(),
        entries,
        dictionary_bytes,
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

/// The compression ratio of the keys of a level: their bytes in plain form, with four bytes each for offset and length,
/// divided by the bytes of the key lists. `duramen-bench keys` and the paper use the same definition.
fn ratio(level: &LevelStats) -> f64 {
    part(level.raw_key_bytes + 4 * level.entries, level.key_list_bytes)
}

fn part(some: u64, of: u64) -> f64 {
    some as f64 / of.max(1) as f64
}

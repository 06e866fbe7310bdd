//! `tables`: lists the tables.

use super::open;
use super::plan::{compression_name, target_name};
use crate::args::Tables;
use crate::failure::{Completion, Result};
use crate::report;
use duramen::{Codec, TableInfo};
use serde::Serialize;

/// A table in a report.
#[derive(Serialize)]
pub(super) struct Row {
    name: String,
    key_type: String,
    value_type: String,
    entries: u64,
    keys: &'static str,
    /// The codec of blocks; `-` without blocks.
    codec: Option<&'static str>,
    compression: String,
    target: String,
    separators: String,
    /// True if the table assigns keys.
    auto_increment: bool,
}

impl From<TableInfo> for Row {
    fn from(table: TableInfo) -> Row {
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
        let (codec, auto_increment) = (codec.map(Codec::name), next_key.is_some());
        let (compression, target) = (compression_name(compression, dictionary), target_name(target, overflow));
        Row { name, key_type, value_type, entries, keys, codec, compression, target, separators, auto_increment }
    }
}

/// Prints a row for each table.
pub(super) fn run(args: &Tables) -> Result<Completion> {
    let db = open::reading(&args.database)?;
    let rows: Vec<Row> = db.begin_read()?.tables()?.into_iter().map(Row::from).collect();
    report::print(&rows, args.report.format)?;
    Ok(Completion::Done)
}

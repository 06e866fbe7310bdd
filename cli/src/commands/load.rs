//! `load`: loads a list of keys, or of keys and values, into a table.
//!
//! The whole input is read, encoded and sorted before the table is changed, so bad input changes nothing.

use super::open::{WriteTarget, disk_bytes, options};
use super::write::{self, LoadTotals, TableSpec};
use crate::args::Load;
use crate::failure::{Completion, Failure, Result};
use crate::input::{Input, InputEntry};
use crate::progress::{Meter, Unit};
use crate::report;
use crate::size::length;
use crate::sort::{Sorted, Sorter};
use crate::typed::TextForm;
use duramen::base::limits::MAX_KEY;
use indicatif::HumanCount;
use serde::Serialize;
use std::path::Path;
use std::time::Instant;

/// How to write a value in a line.
const VALUE_ADVICE: &str = "write a TAB after the key and then the value, which may be empty";

/// The minimum memory for sorting, in bytes. With less, a large input has so many parts that they are merged many
/// times.
const MIN_MEMORY: usize = 16 << 20;

/// The report.
#[derive(Serialize)]
struct Summary<'a> {
    table: &'a str,
    /// The number of different keys in the input.
    keys: u64,
    /// The number of entries that a later entry with the same key replaced.
    replaced: u64,
    /// One for a new table; one for each batch for an existing table.
    commits: u64,
    input_bytes: u64,
    /// Bytes of the whole database on the device, with all its tables.
    database_bytes: u64,
    /// `database_bytes` divided by `input_bytes`; `-` if the database existed before, or the input is empty.
    database_to_input: Option<f64>,
    seconds: f64,
}

/// The sorted input.
struct Gathered {
    sorted: Sorted,
    entries: u64,
    bytes: u64,
    has_values: bool,
}

/// Loads and prints a summary.
pub(super) fn run(args: &Load) -> Result<Completion> {
    let start = Instant::now();
    // No other process can use an open database. So it is opened when the input has begun.
    let mut input = Input::open(&args.source.file, args.text, &args.csv)?;
    let mut first = InputEntry::default();
    let first = input.source.next(&mut first)?.then_some(first);
    let target = WriteTarget::open(&args.database, args.writing, &args.table, &args.new_table)?;
    let gathered = gather(args, &target, input, first)?;
    let fresh = target.is_fresh();
    let written = store(args, &target, gathered.sorted, gathered.has_values)?;
    target.close()?;
    let database_bytes = disk_bytes(&args.database)?;
    let summary = Summary {
        table: &args.table,
        keys: written.entries,
        replaced: gathered.entries - written.entries,
        commits: written.commits,
        input_bytes: gathered.bytes,
        database_bytes,
        database_to_input: (fresh && gathered.bytes > 0).then(|| database_bytes as f64 / gathered.bytes as f64),
        seconds: start.elapsed().as_secs_f64(),
    };
    report::print(&summary, args.report.format)?;
    Ok(Completion::Done)
}

/// Encodes and sorts the input: the `first` entry, which was read already, and the rest.
fn gather(args: &Load, target: &WriteTarget, input: Input, first: Option<InputEntry>) -> Result<Gathered> {
    let (keys, values) = target.text_forms(&args.new_table, args.text.hex)?;
    let Input { mut source, bytes, size } = input;
    let folder = args.database.db.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut sorter = Sorter::new(length(args.memory).max(MIN_MEMORY), folder.unwrap_or(Path::new(".")));
    let mut meter = Meter::begin("reading", Unit::Bytes, size, args.database.quiet);
    let mut more = first.is_some();
    let (mut entry, mut entries, mut has_values) = (first.unwrap_or_default(), 0, false);
    while more {
        if !entry.has_value {
            let advice = if args.csv.csv { "name its column with --value-column" } else { VALUE_ADVICE };
            let refused = |why| Failure::input(source.place(), format!("{why}: {advice}"));
            target.require_value().map_err(refused)?;
        }
        let (key, value) = encode(&entry, &keys, &values).map_err(|why| Failure::input(source.place(), why))?;
        sorter.add(&key, &value)?;
        has_values |= entry.has_value;
        entries += 1;
        if Meter::is_due(entries) {
            meter.show(bytes.get(), || format!("{} entries", HumanCount(entries)));
        }
        more = source.next(&mut entry)?;
    }
    for doubt in source.doubts() {
        meter.print(&format!("note: {doubt}"));
    }
    drop(meter);
    let _sorting = Meter::begin("sorting", Unit::Count("entries"), None, args.database.quiet);
    Ok(Gathered { sorted: sorter.finish()?, entries, bytes: bytes.get(), has_values })
}

fn encode(entry: &InputEntry, keys: &TextForm, values: &TextForm) -> duramen::Result<(Vec<u8>, Vec<u8>)> {
    let key = keys.encode(&entry.key)?;
    if key.len() > MAX_KEY {
        return Err(duramen::Error::KeyTooLong { len: key.len(), max: MAX_KEY });
    }
    Ok((key, values.encode(&entry.value)?))
}

/// Writes the sorted entries to the table, and creates it if it does not exist.
fn store(args: &Load, target: &WriteTarget, sorted: Sorted, has_values: bool) -> Result<LoadTotals> {
    let mut meter = Meter::begin("writing", Unit::Count("keys"), sorted.known_len(), args.database.quiet);
    if target.table.is_some() {
        return write::batches(target.db(), &args.table, args.batch, sorted, &mut meter);
    }
    let (keys, values) = target.text_forms(&args.new_table, args.text.hex)?;
    let has_values = has_values || args.new_table.value_type.is_some();
    let new = TableSpec {
        name: &args.table,
        key_type: &keys.type_name(),
        value_type: &if has_values { values.type_name() } else { "()".to_owned() },
        options: options(&args.new_table)?,
        is_copy: false,
        next_key: None,
        fill: f32::from(args.fill) / 100.0,
    };
    let entries = write::bulk(target.db(), &new, sorted, &mut meter)?;
    Ok(LoadTotals { entries, commits: 1 })
}

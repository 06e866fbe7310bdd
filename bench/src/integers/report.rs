//! Tables, JSON and CSV of `duramen-bench integers`. Nothing is measured here.

use super::Args;
use super::measure::{Operation, Row};
use clap::ValueEnum;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Map, Number, Value};
use std::io::Write;

/// A ratio to a reference: its name, and its value for a row and for the row of plain keys beside it.
type Ratio = (&'static str, fn(&Row, Option<&Row>) -> Option<f64>);

/// For times less is better, for `..._speed_...` more is better.
const RATIOS: [Ratio; 9] = [
    ("sum_to_vec", |row, _| over(row, Operation::Sum, &row.vec)),
    ("cursor_to_vec", |row, _| over(row, Operation::Cursor, &row.vec)),
    ("average_to_sum_of_part", |row, _| {
        Some(row.times.get(&Operation::Average)? / (row.times.get(&Operation::Sum)? * row.upper_part))
    }),
    ("lookup_in_order_to_plain", |row, plain| over(row, Operation::LookupInOrder, &plain?.times)),
    ("lookup_random_to_plain", |row, plain| over(row, Operation::LookupRandom, &plain?.times)),
    ("lookup_random_to_vec", |row, _| over(row, Operation::LookupRandom, &row.vec)),
    ("lookup_random_speed_to_btreemap", |row, _| speed(row, Operation::LookupRandom)),
    ("insert_in_order_speed_to_btreemap", |row, _| speed(row, Operation::InsertInOrder)),
    ("insert_random_speed_to_btreemap", |row, _| speed(row, Operation::InsertRandom)),
];

fn over(row: &Row, operation: Operation, reference: &super::measure::Times) -> Option<f64> {
    Some(row.times.get(&operation)? / reference.get(&operation)?)
}

fn speed(row: &Row, operation: Operation) -> Option<f64> {
    Some(row.btreemap.get(&operation)? / row.times.get(&operation)?)
}

/// Rounds to four significant digits, the precision of a measurement.
fn rounded(value: f64) -> Value {
    if value == 0.0 || !value.is_finite() {
        return Number::from_f64(value).map_or(Value::Null, Value::Number);
    }
    let scale = 10f64.powf(3.0 - value.abs().log10().floor());
    Number::from_f64((value * scale).round() / scale).map_or(Value::Null, Value::Number)
}

/// The fields of a row. All rows of a run have the same names.
fn fields(args: &Args, rows: &[Row], row: &Row) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| fields.insert(name.to_owned(), value);
    set("codec", row.layout.name().into());
    set("data", args.data.to_string().into());
    set("fill", args.fill.to_possible_value().map_or(Value::Null, |fill| fill.get_name().into()));
    set("keys", row.keys.into());
    set("page_size", args.page_bytes().into());
    set("block", row.layout.block().into());
    set("bytes_per_key", rounded(row.bytes_per_key));
    // These runs have too few keys for a sum of more than 64 bits.
    set("sum", u64::try_from(row.sum).map_or_else(|_| row.sum.to_string().into(), Value::from));
    set("count", row.count.into());
    let time = |time: Option<&f64>| time.map_or(Value::Null, |time| rounded(*time));
    for operation in &args.operations {
        set(operation.field(), time(row.times.get(operation)));
    }
    for operation in &args.operations {
        if let Some(of_vec) = row.vec.get(operation) {
            set(&format!("vec_{}", operation.field()), rounded(*of_vec));
        }
        if let Some(of_map) = row.btreemap.get(operation) {
            set(&format!("btreemap_{}", operation.field()), rounded(*of_map));
        }
    }
    for (name, ratio) in RATIOS {
        set(name, ratio(row, row.plain(rows)).map_or(Value::Null, rounded));
    }
    fields
}

/// An array of objects, one for each layout and number of keys.
pub(super) fn json(args: &Args, rows: &[Row]) -> serde_json::Result<String> {
    let objects: Vec<Map<String, Value>> = rows.iter().map(|row| fields(args, rows, row)).collect();
    serde_json::to_string_pretty(&objects)
}

/// One line for each layout and number of keys, after a header.
pub(super) fn csv(args: &Args, rows: &[Row], out: impl Write) -> Result<(), csv::Error> {
    let mut writer = csv::Writer::from_writer(out);
    for (i, row) in rows.iter().enumerate() {
        let fields = fields(args, rows, row);
        if i == 0 {
            writer.write_record(fields.keys())?;
        }
        writer.write_record(fields.values().map(|value| match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            number => number.to_string(),
        }))?;
    }
    Ok(writer.flush()?)
}

/// A table for people: nanoseconds for each key, and the ratios below.
pub(super) fn table(args: &Args, rows: &[Row]) -> String {
    let names: Vec<&str> = args.operations.iter().map(|operation| operation.field()).collect();
    let mut times = new_table(["codec", "keys", "bytes/key"].into_iter().chain(names));
    for row in rows {
        let mut cells = vec![row.layout.to_string(), row.keys.to_string(), format!("{:.3}", row.bytes_per_key)];
        cells.extend(args.operations.iter().map(|operation| shown(row.times.get(operation).copied())));
        times.add_row(cells);
    }
    let mut seen = 0;
    for row in rows.iter().filter(|row| std::mem::replace(&mut seen, row.keys) != row.keys) {
        for (name, reference) in [("Vec", &row.vec), ("BTreeMap", &row.btreemap)] {
            let mut cells = vec![name.to_owned(), row.keys.to_string(), String::new()];
            cells.extend(args.operations.iter().map(|operation| shown(reference.get(operation).copied())));
            times.add_row(cells);
        }
    }
    let shown_ratios: Vec<&Ratio> =
        RATIOS.iter().filter(|(_, ratio)| rows.iter().any(|row| ratio(row, row.plain(rows)).is_some())).collect();
    let mut ratios = new_table(["codec", "keys"].into_iter().chain(shown_ratios.iter().map(|(name, _)| *name)));
    for row in rows {
        let mut cells = vec![row.layout.to_string(), row.keys.to_string()];
        cells.extend(shown_ratios.iter().map(|(_, ratio)| shown(ratio(row, row.plain(rows)))));
        ratios.add_row(cells);
    }
    format!("{times}\n{ratios}")
}

fn new_table<'n>(header: impl Iterator<Item = &'n str>) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_HORIZONTAL_ONLY).set_header(header.map(|name| name.replace('_', " ")));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn shown(value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(value) if value < 0.01 => format!("{value:.5}"),
        Some(value) if value < 10.0 => format!("{value:.3}"),
        Some(value) => format!("{value:.1}"),
    }
}

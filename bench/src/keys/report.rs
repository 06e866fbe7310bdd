//! The output of the workload over key lists. Nothing is measured here.

use super::args::Args;
use super::comparing::Comparing;
use super::measure::{Measured, Speeds};
use super::sizes::Sizes;
use crate::Result;
use crate::stats::median;
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// A speed: the median of the rounds, their spread, and the median ratio to the `BTreeMap`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Speed {
    pub(super) kops: f64,
    /// The difference between the greatest and the least, divided by the median.
    spread: f64,
    x_btreemap: f64,
}

/// A value for each step. The scans are in the order of the options.
pub(super) struct Steps<T> {
    pub(super) insert: T,
    pub(super) search: T,
    pub(super) range: Vec<T>,
    pub(super) delete: T,
}

/// One layout with one width of values.
pub(super) struct Row {
    keys: String,
    separators: String,
    values: usize,
    pub(super) steps: Steps<Speed>,
    btreemap: Steps<f64>,
    pub(super) sizes: Sizes,
    pub(super) comparing: Comparing,
}

/// A layout in the output for programs.
#[derive(Serialize)]
struct Object<'a> {
    layout: &'a str,
    separators: &'a str,
    values: usize,
    page_size: usize,
    insert_kops: f64,
    search_kops: f64,
    /// For the longest range.
    range_kops: f64,
    delete_kops: f64,
    /// By the length of the range.
    ranges_kops: BTreeMap<usize, f64>,
    x_btreemap: Four,
    ranges_x_btreemap: BTreeMap<usize, f64>,
    btreemap_kops: Four,
    spread: Four,
    #[serde(flatten)]
    sizes: &'a Sizes,
    /// Average bytes that a search needs to distinguish two keys.
    comparison_bytes: f64,
    /// The part of the time of a search that comparing whole keys would need.
    comparing_share: f64,
}

#[derive(Serialize)]
struct Four {
    insert: f64,
    search: f64,
    range: f64,
    delete: f64,
}

/// Combines each layout with the `BTreeMap` with the same values.
pub(super) fn rows(measured: &[Measured], comparing: &Comparing) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut map: &[Speeds] = &[];
    for one in measured {
        match (one.layout, &one.sizes) {
            (Some(layout), Some(sizes)) => rows.push(Row {
                keys: layout.keys(),
                separators: layout.separators(),
                values: one.values,
                steps: each(&one.rounds, |pick| speed(&one.rounds, map, pick)),
                btreemap: each(&one.rounds, |pick| median(map.iter().map(pick).collect())),
                sizes: sizes.clone(),
                comparing: *comparing,
            }),
            _ => map = &one.rounds,
        }
    }
    rows
}

/// Computes a value for each step. `make` gets a function that selects the speed of the step.
fn each<T>(rounds: &[Speeds], make: impl Fn(&dyn Fn(&Speeds) -> f64) -> T) -> Steps<T> {
    let ranges = rounds.first().map_or(0, |round| round.range.len());
    Steps {
        insert: make(&|round| round.insert),
        search: make(&|round| round.search),
        range: (0..ranges).map(|i| make(&move |round: &Speeds| round.range[i])).collect(),
        delete: make(&|round| round.delete),
    }
}

fn speed(rounds: &[Speeds], map: &[Speeds], pick: &dyn Fn(&Speeds) -> f64) -> Speed {
    let all: Vec<f64> = rounds.iter().map(pick).collect();
    let (least, most) = all.iter().fold((f64::MAX, 0f64), |(least, most), &one| (least.min(one), most.max(one)));
    let ratios = rounds.iter().zip(map).map(|(ours, theirs)| pick(ours) / pick(theirs).max(f64::MIN_POSITIVE));
    let x_btreemap = median(ratios.collect());
    let kops = median(all);
    Speed { kops, spread: (most - least) / kops.max(f64::MIN_POSITIVE), x_btreemap }
}

/// The index of the longest range.
fn longest(ranges: &[usize]) -> usize {
    ranges.iter().enumerate().max_by_key(|(_, len)| **len).map_or(0, |(at, _)| at)
}

impl Row {
    fn object<'a>(&'a self, args: &Args) -> Object<'a> {
        let longest = longest(&args.range);
        let of = |pick: fn(&Speed) -> f64| Four {
            insert: round(pick(&self.steps.insert)),
            search: round(pick(&self.steps.search)),
            range: round(self.steps.range.get(longest).map_or(0.0, pick)),
            delete: round(pick(&self.steps.delete)),
        };
        let (kops, x_btreemap, spread) = (of(|s| s.kops), of(|s| s.x_btreemap), of(|s| s.spread));
        let ranges = |pick: fn(&Speed) -> f64| -> BTreeMap<usize, f64> {
            args.range.iter().copied().zip(self.steps.range.iter().map(|speed| round(pick(speed)))).collect()
        };
        Object {
            layout: &self.keys,
            separators: &self.separators,
            values: self.values,
            page_size: args.page_bytes(),
            insert_kops: kops.insert,
            search_kops: kops.search,
            range_kops: kops.range,
            delete_kops: kops.delete,
            ranges_kops: ranges(|s| s.kops),
            x_btreemap,
            ranges_x_btreemap: ranges(|s| s.x_btreemap),
            btreemap_kops: Four {
                insert: round(self.btreemap.insert),
                search: round(self.btreemap.search),
                range: round(self.btreemap.range.get(longest).copied().unwrap_or_default()),
                delete: round(self.btreemap.delete),
            },
            spread,
            sizes: &self.sizes,
            comparison_bytes: round(self.comparing.bytes),
            comparing_share: round(self.comparing_share()),
        }
    }
}

fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// An array of objects.
pub(super) fn json(args: &Args, rows: &[Row]) -> Result<String> {
    let objects: Vec<Object<'_>> = rows.iter().map(|row| row.object(args)).collect();
    Ok(serde_json::to_string_pretty(&objects)?)
}

/// A header line, then a line for each layout. Nested names are joined by points.
pub(super) fn csv(args: &Args, rows: &[Row], out: impl Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for (i, row) in rows.iter().enumerate() {
        let mut cells = Vec::new();
        flatten("", &serde_json::to_value(row.object(args))?, &mut cells);
        if i == 0 {
            writer.write_record(cells.iter().map(|(name, _)| name))?;
        }
        writer.write_record(cells.iter().map(|(_, text)| text))?;
    }
    Ok(writer.flush()?)
}

fn flatten(name: &str, value: &serde_json::Value, cells: &mut Vec<(String, String)>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                flatten(&name, value, cells);
            }
        }
        serde_json::Value::String(text) => cells.push((name.to_owned(), text.clone())),
        serde_json::Value::Null => cells.push((name.to_owned(), String::new())),
        other => cells.push((name.to_owned(), other.to_string())),
    }
}

/// A table of speeds, with the ratio to the `BTreeMap` in brackets, and a table of sizes.
pub(super) fn tables(args: &Args, rows: &[Row]) -> String {
    let mut speeds = Table::new();
    let ranges = args.range.iter().map(|len| format!("range-{len}"));
    let steps = || ["insert", "search"].map(str::to_owned).into_iter().chain(ranges.clone());
    speeds.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    speeds.set_header(["layout", "values"].map(str::to_owned).into_iter().chain(steps()).chain(["delete".to_owned()]));
    let mut last = None;
    for row in rows {
        if last != Some(row.values) {
            last = Some(row.values);
            let map = &row.btreemap;
            let all = [map.insert, map.search].into_iter().chain(map.range.iter().copied()).chain([map.delete]);
            let names = ["BTreeMap".to_owned(), row.values.to_string()];
            speeds.add_row(names.into_iter().chain(all.map(|kops| format!("{kops:.0}"))));
        }
        let all = [row.steps.insert, row.steps.search].into_iter().chain(row.steps.range.iter().copied());
        let cells = all.chain([row.steps.delete]).map(|speed| {
            let spread = if args.repeat > 1 { format!(" ±{:.0}%", speed.spread * 50.0) } else { String::new() };
            format!("{:.0} ({:.2}x){spread}", speed.kops, speed.x_btreemap)
        });
        speeds.add_row([row.name(), row.values.to_string()].into_iter().chain(cells));
    }
    let mut sizes = Table::new();
    sizes.load_preset(presets::UTF8_HORIZONTAL_ONLY);
    sizes.set_header([
        "layout",
        "values",
        "page B/key",
        "list B/entry",
        "ratio",
        "height",
        "fan-out",
        "pages",
        "inner",
        "fill",
        "MiB",
    ]);
    for row in rows {
        let size = &row.sizes;
        sizes.add_row([
            row.name(),
            row.values.to_string(),
            format!("{:.1}", size.page_bytes_per_key),
            format!("{:.1}", size.list_bytes),
            format!("{:.2}", size.ratio),
            size.height.to_string(),
            format!("{:.1}", size.fanout),
            size.pages.to_string(),
            size.inner_pages.to_string(),
            format!("{:.0}%", size.leaf_fill * 100.0),
            format!("{:.1}", size.resident_bytes as f64 / f64::from(1 << 20)),
        ]);
    }
    for table in [&mut speeds, &mut sizes] {
        table.column_iter_mut().skip(1).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    }
    format!("thousand operations a second (x BTreeMap)\n{speeds}\n{sizes}")
}

impl Row {
    /// The name of the layout.
    pub(super) fn name(&self) -> String {
        format!("{}/{}", self.keys, self.separators)
    }

    /// The part of the time of a search of this layout that comparing whole keys would need.
    pub(super) fn comparing_share(&self) -> f64 {
        self.comparing.nanos * self.steps.search.kops / 1e6
    }
}

/// A row with this layout and this speed of searches, and nothing else.
#[cfg(test)]
pub(super) fn row_for_tests(name: &str, search: f64) -> Row {
    let (keys, separators) = name.split_once('/').expect("a layout");
    let (none, search) = (Speed::default(), Speed { kops: search, ..Speed::default() });
    Row {
        keys: keys.to_owned(),
        separators: separators.to_owned(),
        values: 0,
        steps: Steps { insert: none, search, range: Vec::new(), delete: none },
        btreemap: Steps { insert: 0.0, search: 0.0, range: Vec::new(), delete: 0.0 },
        sizes: Sizes::default(),
        comparing: Comparing { bytes: 0.0, comparisons: 0.0, nanos: 0.0 },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_taken_round_by_round() {
        let round = |search| Speeds { search, ..Speeds::default() };
        let (ours, map) = ([round(10.0), round(60.0), round(30.0)], [round(10.0), round(20.0), round(20.0)]);
        let speed = speed(&ours, &map, &|round| round.search);
        assert_eq!((speed.kops, speed.x_btreemap), (30.0, 1.5));
        assert!((speed.spread - 50.0 / 30.0).abs() < 1e-9);
        assert_eq!(median(Vec::new()), 0.0);
    }

    #[test]
    fn the_longest_scans_represent_all_in_any_order_of_the_options() {
        assert_eq!([longest(&[100, 10]), longest(&[10, 100]), longest(&[5])], [0, 1, 0]);
    }
}

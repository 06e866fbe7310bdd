//! The output of the workload `larger`.

use super::args::Args;
use crate::Result;
use crate::bars::{Bar, Bars};
use crate::contest::{Figures, Format};
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use serde_json::{Map, Value, json};

/// A store and its figures.
type Measured<'a> = (&'static str, &'a Figures);

/// The name of a figure in JSON, its title, and its format in a table.
struct Row(&'static str, &'static str, fn(f64) -> String);

const ROWS: &[Row] = &[
    Row("load_kops", "load, K records/s", tenths),
    Row("overwrite_kops", "overwrites, 1 a commit, K/s", tenths),
    Row("read_kops", "point reads, K/s", tenths),
    Row("scan_kops", "scan, K records/s", whole),
    Row("cold_scan_kops", "cold scan, K records/s", whole),
    Row("cold_scan_of_file_speed", "cold scan, of the speed of the file", hundredths),
    Row("threads_kops", "point reads by several threads, K/s", tenths),
    Row("alone_kops", "point reads, each timed, K/s", tenths),
    Row("beside_kops", "the same beside overwrites, K/s", tenths),
    Row("beside_p50_us", "a read beside overwrites, median, us", tenths),
    Row("beside_p99_us", "a read beside overwrites, 99 %, us", tenths),
    Row("beside_overwrite_kops", "these overwrites, K/s", tenths),
    Row("written_per_user_byte", "bytes of write calls a user byte", hundredths),
    Row("open_bytes", "allocated while open, MB", megabytes),
    Row("closed_bytes", "allocated when closed, MB", megabytes),
    Row("cached_read_kops", "all in the cache: point reads, K/s", whole),
    Row("own_read_ns", "the benchmark's part of each read, ns", whole),
    Row("cached_scan_kops", "all in the cache: scan, K records/s", whole),
    Row("synced_kops", "synced commits of one, K/s", tenths),
];

/// The figures of which there is a chart.
const CHARTS: [&str; 8] = [
    "load_kops",
    "overwrite_kops",
    "read_kops",
    "scan_kops",
    "open_bytes",
    "cached_read_kops",
    "cached_scan_kops",
    "synced_kops",
];

fn whole(value: f64) -> String {
    format!("{value:.0}")
}

fn tenths(value: f64) -> String {
    format!("{value:.1}")
}

fn hundredths(value: f64) -> String {
    format!("{value:.2}")
}

fn megabytes(bytes: f64) -> String {
    format!("{:.0}", bytes / 1e6)
}

/// Prints the figures of one run, for the program that has started it.
pub(super) fn print_one(name: &str, figures: &Figures) -> Result<()> {
    println!("{}", json!({ name: figures.to_json() }));
    Ok(())
}

/// Prints the figures of all stores, and draws them.
pub(super) fn print(args: &Args, results: &[Measured<'_>]) -> Result<()> {
    match args.format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&object(args, results))?),
        Format::Table => println!("{}", table(results)),
    }
    let Some(folder) = &args.svg else { return Ok(()) };
    for Row(name, title, _) in ROWS.iter().filter(|row| CHARTS.contains(&row.0)) {
        if results.iter().any(|(_, figures)| figures.get(name).is_some()) {
            std::fs::write(folder.join(format!("larger-{name}.svg")), chart(name, title, results).svg())?;
        }
    }
    Ok(())
}

fn chart(name: &str, title: &str, results: &[Measured<'_>]) -> Bars {
    let unit = if name.ends_with("_bytes") { 1e6 } else { 1.0 };
    let bar = |(store, figures): &Measured<'_>| {
        Some(Bar { name: (*store).to_owned(), parts: vec![figures.get(name)? / unit], claimed: None })
    };
    Bars {
        title: title.to_owned(),
        height: String::new(),
        parts: Vec::new(),
        bars: results.iter().filter_map(bar).collect(),
    }
}

/// The figures of each store, those of the first divided by those of each other, and the options.
fn object(args: &Args, results: &[Measured<'_>]) -> Value {
    let figures: Map<_, _> = results.iter().map(|(name, figures)| ((*name).to_owned(), figures.to_json())).collect();
    let ratios: Map<_, _> = results
        .split_first()
        .into_iter()
        .flat_map(|((_, ours), others)| {
            others.iter().map(|(name, theirs)| ((*name).to_owned(), ours.over(theirs).to_json()))
        })
        .collect();
    json!({
        "engines": figures,
        "ratios": ratios,
        "workload": {
            "records": args.records,
            "record_size": args.record_size,
            "cache": args.cache.0,
            "page_size": args.page_size.map(|size| size.0),
            "compress": args.compress.to_string(),
            "direct_io": args.direct_io,
            "commit": args.commit,
            "overwrites": args.overwrites,
            "threads": args.threads,
            "rounds": args.rounds,
            "seed": args.seed,
        },
    })
}

fn table(results: &[Measured<'_>]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    table.set_header([""].into_iter().chain(results.iter().map(|(name, _)| *name)));
    for Row(name, title, show) in ROWS {
        let values: Vec<_> = results.iter().map(|(_, figures)| figures.get(name)).collect();
        if values.iter().any(Option::is_some) {
            let cells = values.into_iter().map(|value| value.map_or_else(String::new, show));
            table.add_row([(*title).to_owned()].into_iter().chain(cells));
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

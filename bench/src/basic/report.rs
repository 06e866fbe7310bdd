//! The output of the benchmark.

use super::args::Args;
use crate::Result;
use crate::contest::{Figures, Format};
use comfy_table::presets::UTF8_BORDERS_ONLY;
use comfy_table::{CellAlignment, Table};
use serde_json::{Value, json};

/// The name of a figure in JSON, its title in a table, and its format there.
type Row = (&'static str, &'static str, fn(f64) -> String);

/// The figures that a table shows. Those in `kops`, for which more is better, are first.
const ROWS: &[Row] = &[
    ("load_kops", "load, K entries/s", plain),
    ("read_kops", "point reads, K/s", plain),
    ("scan_kops", "scans of 100, K/s", plain),
    ("overwrite_kops", "overwrites, K/s", plain),
    ("delete_kops", "deletes, K/s", plain),
    ("disk_bytes", "allocated when loaded and closed, MiB", mebibytes),
    ("load_disk_bytes", "allocated after the load, MiB", mebibytes),
    ("overwrite_disk_bytes", "allocated after overwriting, MiB", mebibytes),
    ("delete_disk_bytes", "allocated after deleting 90 %, MiB", mebibytes),
    ("compact_disk_bytes", "allocated after compacting, MiB", mebibytes),
    ("fresh_disk_bytes", "allocated by a fresh load of the rest, MiB", mebibytes),
    ("compact_seconds", "compacting, s", fine),
    ("resident_bytes", "resident while reading, MiB", mebibytes),
    ("peak_resident_bytes", "most ever resident, MiB", mebibytes),
    ("load_commit_p50_us", "commit while loading, median, us", plain),
    ("load_commit_p99_us", "commit while loading, 99 %, us", plain),
    ("load_commit_p999_us", "commit while loading, 99.9 %, us", plain),
    ("overwrite_commit_p50_us", "commit while overwriting, median, us", plain),
    ("overwrite_commit_p99_us", "commit while overwriting, 99 %, us", plain),
    ("overwrite_commit_p999_us", "commit while overwriting, 99.9 %, us", plain),
];

fn plain(value: f64) -> String {
    format!("{value:.0}")
}

fn fine(value: f64) -> String {
    format!("{value:.2}")
}

fn mebibytes(bytes: f64) -> String {
    format!("{:.1}", bytes / f64::from(1 << 20))
}

/// Prints the figures of one contestant.
pub(super) fn print_one(format: Format, name: &str, figures: &Figures) -> Result<()> {
    match format {
        Format::Json => println!("{}", json!({ name: figures.to_json() })),
        Format::Table => println!("{}", table([(name, figures)])),
    }
    Ok(())
}

/// Prints the figures of both contestants, and those of the first divided by those of the second.
pub(super) fn print(args: &Args, both: [(&str, &Figures); 2]) -> Result<()> {
    match args.format {
        Format::Json => println!("{}", serde_json::to_string_pretty(&object(args, both))?),
        Format::Table => println!("{}", table(both)),
    }
    Ok(())
}

fn object(args: &Args, [(name, ours), (rival, theirs)]: [(&str, &Figures); 2]) -> Value {
    json!({
        name: ours.to_json(),
        rival: theirs.to_json(),
        "ratios": ours.over(theirs).to_json(),
        "workload": {
            "key": format!("{:?}", args.key),
            "value": args.value,
            "cache": args.cache.map(|size| size.0),
            "page_size": args.page_size.map(|size| size.0),
            "disk": format!("{:?}", args.disk).to_lowercase(),
            "durability": format!("{:?}", args.durability).to_lowercase(),
            "threads": args.threads,
            "commit": args.commit,
            "repeat": args.repeat,
        },
    })
}

fn table<const N: usize>(contestants: [(&str, &Figures); N]) -> Table {
    let mut table = Table::new();
    table.load_preset(UTF8_BORDERS_ONLY);
    let names = contestants.iter().map(|(name, _)| (*name).to_owned());
    let ratio = |text: &str| (N == 2).then(|| text.to_owned());
    table.set_header([String::new()].into_iter().chain(names).chain(ratio("ratio")));
    for (name, title, show) in ROWS {
        let figures = contestants.map(|(_, figures)| figures.get(name));
        if figures.iter().all(Option::is_none) {
            continue;
        }
        let cells = figures.iter().map(|figure| figure.map_or_else(String::new, show));
        let over = match figures[..] {
            [Some(ours), Some(theirs)] if theirs > 0.0 => ratio(&fine(ours / theirs)),
            _ => ratio(""),
        };
        table.add_row([(*title).to_owned()].into_iter().chain(cells).chain(over));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

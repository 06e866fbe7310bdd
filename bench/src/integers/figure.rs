//! The figures of `duramen-bench integers` over the number of keys, like figures 8 to 10 of the Upscaledb paper: sizes,
//! and times relative to those of plain keys. Nothing is measured here.

use super::measure::{Operation, Row};
use crate::chart::Chart;
use std::path::Path;

/// Table 2 of the Upscaledb paper: bytes per key of ClusterData with 20 million keys.
const PAPER_SIZES: [(&str, f64); 7] = [
    ("plain", 4.02),
    ("vbyte", 1.06),
    ("masked-vbyte", 1.06),
    ("varint-gb", 1.31),
    ("for", 1.26),
    ("simd-for", 1.28),
    ("bp128", 0.37),
];

/// Figures 9a to 9d of the Upscaledb paper as its text (4.3.1) describes them, as times relative to plain keys. If it
/// gives a range, this is the end that is named with the codec. The curves themselves are images.
const PAPER_LOOKUPS: [(&str, f64); 4] = [("simd-for", 1.2), ("for", 1.4), ("vbyte", 1.6), ("bp128", 1.6)];
const PAPER_CURSORS: [(&str, f64); 2] = [("simd-for", 1.08), ("vbyte", 1.11)];
const PAPER_SUMS: [(&str, f64); 1] = [("bp128", 0.6)];
const PAPER_INSERTS: [(&str, f64); 2] = [("simd-for", 2.5), ("for", 2.5)];

type Figure = (&'static str, &'static str, Operation, &'static [(&'static str, f64)]);

const FIGURES: [Figure; 7] = [
    ("lookup", "Lookup in order, time to plain", Operation::LookupInOrder, &PAPER_LOOKUPS),
    ("lookup-random", "Lookup at random, time to plain", Operation::LookupRandom, &[]),
    ("cursor", "Cursor, time to plain", Operation::Cursor, &PAPER_CURSORS),
    ("sum", "SUM, time to plain", Operation::Sum, &PAPER_SUMS),
    ("average", "AVERAGE WHERE key > max / 2, time to plain", Operation::Average, &[]),
    ("insert", "Insert in order, time to plain", Operation::InsertInOrder, &PAPER_INSERTS),
    ("insert-random", "Insert at random, time to plain", Operation::InsertRandom, &[]),
];

/// Writes the figures into `dir`, which must exist. Operations that were not measured, or not beside plain keys, have
/// no figure.
pub(super) fn write_all(rows: &[Row], dir: &Path) -> std::io::Result<()> {
    let names: Vec<String> = rows.iter().map(|row| row.layout.to_string()).collect();
    let place = |row: &Row| (row.keys as f64).log10();
    let mut marks: Vec<_> = rows.iter().map(|row| (place(row), row.keys.to_string())).collect();
    marks.dedup();
    let write = |name: &str, title: &str, points: Vec<(&str, f64, f64)>, paper: &[(&str, f64)]| {
        if points.is_empty() {
            return Ok(());
        }
        let svg = Chart {
            title,
            axis: "keys",
            height: "",
            logarithmic: false,
            points,
            marks: marks.clone(),
            palette: &[],
            paper,
        }
        .svg();
        std::fs::write(dir.join(format!("integers-{name}.svg")), svg)
    };
    let sizes = names.iter().zip(rows).map(|(name, row)| (name.as_str(), place(row), row.bytes_per_key));
    write("size", "Size, bytes per key", sizes.collect(), &PAPER_SIZES)?;
    for (name, title, operation, paper) in FIGURES {
        let relative = |row: &Row| Some(row.times.get(&operation)? / row.plain(rows)?.times.get(&operation)?);
        let points = names.iter().zip(rows).filter_map(|(name, row)| Some((name.as_str(), place(row), relative(row)?)));
        write(name, title, points.collect(), paper)?;
    }
    Ok(())
}

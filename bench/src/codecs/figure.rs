//! The figures of `duramen-bench codecs` over the bit width. Nothing is measured here.

use super::measure::Row;
use crate::chart::Chart;
use std::path::Path;

/// A figure: its file, its title, and the value of a row that it shows.
type Figure = (&'static str, &'static str, fn(&Row) -> f64);

const FIGURES: [Figure; 8] = [
    ("size", "Size, bits per integer", |row| row.bits_per_int),
    ("decode", "Decoding, Gint/s", |row| row.decode_gints),
    ("decode-ratio", "Decoding, against memcpy", |row| row.decode_to_memcpy),
    ("select", "Select, M/s", |row| row.select_mops),
    ("search", "Lower bound, against partition_point", |row| row.search_to_partition),
    ("insert", "Insert, M/s", |row| row.insert_mops),
    ("insert-naive", "Insert by encoding again, M/s", |row| row.naive_insert_mops),
    ("sum", "Sum, Gint/s", |row| row.sum_gints),
];

/// Figure 6b of the Upscaledb paper as its text (4.2) describes it, in Gint/s on a Haswell of 2013: SIMD FOR over 7,
/// twice as fast as BP128, and VByte at most about 1. The text does not contain the curves. These values are drawn as
/// dashed lines beside their codecs.
const PAPER_DECODE: [(&str, f64); 3] = [("simd-for", 7.0), ("bp128", 3.5), ("vbyte", 1.0)];

/// Writes every figure into `dir`, which must exist.
pub(super) fn write_all(rows: &[Row], dir: &Path) -> std::io::Result<()> {
    let mut bits: Vec<u32> = rows.iter().map(|row| row.bits).collect();
    bits.dedup();
    for (name, title, value) in FIGURES {
        let paper: &[_] = if name == "decode" { &PAPER_DECODE } else { &[] };
        let points = rows.iter().map(|row| (row.codec, f64::from(row.bits), value(row))).collect();
        let marks = bits.iter().map(|bits| (f64::from(*bits), bits.to_string())).collect();
        let svg =
            Chart { title, axis: "bits of a gap", height: "", logarithmic: false, points, marks, palette: &[], paper }
                .svg();
        std::fs::write(dir.join(format!("codecs-{name}.svg")), svg)?;
    }
    Ok(())
}

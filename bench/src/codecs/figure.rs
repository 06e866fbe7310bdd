//! SVG line charts of `duramen-bench codecs` over the bit width. Nothing is measured here.

use std::fmt::Write;
use std::path::Path;

use super::measure::Row;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 130.0;
const TOP: f64 = 36.0;
const BOTTOM: f64 = 44.0;
const COLOURS: [&str; 8] = ["#444444", "#c0392b", "#e67e22", "#b7950b", "#27ae60", "#2980b9", "#8e44ad", "#16a085"];

/// A figure: its file, its title, what it shows of a row.
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

/// What the text of seed 001 (4.2) says about its figure 6b, Gint/s on a Haswell of 2013: SIMD FOR over 7, twice as fast
/// as BP128, VByte at most about 1. The curves themselves are not in the text. Drawn dashed where the codec is shown.
const PAPER_DECODE: [(&str, f64); 3] = [("simd-for", 7.0), ("bp128", 3.5), ("vbyte", 1.0)];

/// Writes every figure into `dir`, which is made if need be.
pub(super) fn write_all(rows: &[Row], dir: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(dir)?;
    for (name, title, value) in FIGURES {
        let paper: &[_] = if name == "decode" { &PAPER_DECODE } else { &[] };
        std::fs::write(dir.join(format!("codecs-{name}.svg")), chart(rows, title, value, paper))?;
    }
    Ok(())
}

/// A round number of `top / 4` or a little more.
fn tick(top: f64) -> f64 {
    let scale = 10f64.powf((top / 4.0).log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|step| step * scale * 4.0 >= top);
    step.unwrap_or(10.0) * scale
}

fn chart(rows: &[Row], title: &str, value: fn(&Row) -> f64, paper: &[(&str, f64)]) -> String {
    let papers = paper.iter().map(|&(_, level)| level);
    let top = rows.iter().map(value).chain(papers).fold(f64::MIN_POSITIVE, f64::max);
    let step = tick(top);
    let (first, last) = rows.iter().fold((u32::MAX, 0), |(a, b), row| (a.min(row.bits), b.max(row.bits)));
    let span = f64::from((last - first.min(last)).max(1));
    let x = |bits: u32| LEFT + f64::from(bits - first) / span * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / (4.0 * step) * (HEIGHT - TOP - BOTTOM);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{title}</text>\n"
    );
    for i in 0..=4 {
        let mark = step * f64::from(i);
        let (y, right) = (y(mark), WIDTH - RIGHT);
        let _ = writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#dddddd\"/>");
        let _ = writeln!(svg, "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{mark}</text>", LEFT - 6.0, y + 4.0);
    }
    let mut bits: Vec<u32> = rows.iter().map(|row| row.bits).collect();
    bits.dedup();
    for &bits in bits.iter().step_by(bits.len().div_ceil(12).max(1)) {
        let (x, y) = (x(bits), HEIGHT - BOTTOM + 16.0);
        let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\">{bits}</text>");
    }
    let (middle, foot) = ((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0);
    let _ = writeln!(svg, "<text x=\"{middle}\" y=\"{foot}\" text-anchor=\"middle\">bits of a gap</text>");
    let mut codecs: Vec<&str> = Vec::new();
    for row in rows {
        if !codecs.contains(&row.codec) {
            codecs.push(row.codec);
        }
    }
    for (i, codec) in codecs.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let points = rows.iter().filter(|row| row.codec == *codec);
        let points: Vec<_> = points.map(|row| format!("{:.1},{:.1}", x(row.bits), y(value(row)))).collect();
        let points = points.join(" ");
        let _ = writeln!(svg, "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>");
        let (x, y) = (WIDTH - RIGHT + 10.0, TOP + 18.0 * (i as f64 + 0.5));
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y:.1}\" fill=\"{colour}\">{codec}</text>");
    }
    for &(codec, level) in paper {
        let Some(i) = codecs.iter().position(|&shown| shown == codec) else { continue };
        svg += &paper_level(codec, COLOURS[i % COLOURS.len()], level, y(level));
    }
    svg + "</svg>\n"
}

/// A dashed line across the chart, named.
fn paper_level(codec: &str, colour: &str, level: f64, y: f64) -> String {
    let (right, text) = (WIDTH - RIGHT, y - 4.0);
    format!(
        "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"{colour}\" stroke-dasharray=\"5 4\"/>\n\
         <text x=\"{}\" y=\"{text:.1}\" fill=\"{colour}\" font-size=\"10\">paper: {codec} {level}</text>\n",
        LEFT + 4.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_top() {
        for (top, step) in [(4.0, 1.0), (7.9, 2.0), (33.0, 10.0), (0.9, 0.25), (95.0, 25.0)] {
            assert!((tick(top) - step).abs() < 1e-9, "{top}: {}", tick(top));
        }
    }
}

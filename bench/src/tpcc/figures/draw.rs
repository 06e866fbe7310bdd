//! Draws charts and writes tables of figures.

use super::paper::{Figure, Panel};
use super::runs::Run;
use crate::Result;
use crate::bars::{Bar, Bars};
use crate::claims::Results;
use crate::page;
use std::io::Write;

/// Returns the charts of a figure with their names.
pub(super) fn charts(figure: &Figure, results: &Results<Run>) -> Vec<(String, String)> {
    let several = figure.panels.len() > 1;
    let letter =
        |at: usize| ('a'..).nth(at).filter(|_| several).map_or_else(String::new, |letter| format!("-{letter}"));
    let chart = |(at, panel): (usize, &Panel)| {
        let bars = panel.bars.iter().filter_map(|bar| {
            Some(Bar { name: bar.name.clone(), parts: vec![bar.number.of(results)?], claimed: bar.paper })
        });
        let bars = Bars {
            title: format!("{}: {}", page::heading(figure.id), figure.title),
            height: panel.height.to_owned(),
            parts: Vec::new(),
            bars: bars.collect(),
        };
        (format!("{}{}", page::name(figure.id), letter(at)), bars.svg())
    };
    figure.panels.iter().enumerate().map(chart).collect()
}

/// The rows of a figure: what, our number, and that of the paper.
fn rows(figure: &Figure, results: &Results<Run>) -> Vec<[String; 4]> {
    let number = |number: Option<f64>| number.map_or_else(String::new, |number| format!("{number:.3}"));
    let of_panel = |panel: &Panel| {
        let row = |bar: &super::paper::Shown| {
            [panel.height.to_owned(), bar.name.clone(), number(bar.number.of(results)), number(bar.paper)]
        };
        panel.bars.iter().map(row).collect::<Vec<_>>()
    };
    figure.panels.iter().flat_map(of_panel).collect()
}

const COLUMNS: [&str; 4] = ["what", "of", "here", "paper"];

/// Writes the numbers of a figure, one on each line.
pub(super) fn csv(figure: &Figure, results: &Results<Run>, out: impl Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(COLUMNS)?;
    rows(figure, results).iter().try_for_each(|row| writer.write_record(row))?;
    Ok(writer.flush()?)
}

/// Returns them as an HTML table.
pub(super) fn table(figure: &Figure, results: &Results<Run>) -> String {
    let line = |cells: &[String], tag: &str| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", page::escape(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    let rows: String = rows(figure, results).iter().map(|row| line(row, "td")).collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!("<table>{}{rows}</table>\n", line(&COLUMNS.map(str::to_owned), "th")),
    }
}

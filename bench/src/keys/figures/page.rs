//! The parts of the page that only these figures have: their sections and the introduction.

use super::Args;
use super::claims::{self, Measure};
use super::experiments::Point;
use super::paper::Figure;
use super::sources;
use crate::page::{self, Section, escape};
use std::fmt::Write;

/// The section of a figure.
pub(super) fn section(figure: &Figure, points: &[Point], charts: Vec<(String, String)>) -> Section {
    let findings = figure.claims.iter().map(|claim| (claim.says, claims::compare(claim.test, points))).collect();
    let (id, title, note) = (figure.id, figure.title, figure.note);
    Section { id, title, note, findings, table: table(figure, points), charts }
}

/// The numbers of a figure: a row for each layout of each run, a column for each measure.
fn table(figure: &Figure, points: &[Point]) -> String {
    let measures = figure.sort.measures();
    if measures.is_empty() || points.is_empty() {
        return String::new();
    }
    let mut html = String::from("<table><tr><th>run</th><th>layout</th>");
    measures.iter().for_each(|measure| html += &format!("<th>{}</th>", measure.name()));
    html += "</tr>\n";
    for point in points {
        for row in &point.rows {
            let _ = write!(html, "<tr><td>{}</td><td>{}</td>", escape(&point.mark), row.name());
            for measure in measures {
                let digits =
                    if matches!(measure, Measure::Pages | Measure::InnerPages | Measure::Height) { 0 } else { 2 };
                let _ = write!(html, "<td>{:.digits$}</td>", measure.of(row));
            }
            html += "</tr>\n";
        }
    }
    html + "</table>\n"
}

/// The whole page.
pub(super) fn html(args: &Args, sections: &[Section]) -> String {
    let about = format!(
        "The figures 8 to 26 and tables 3 to 6 of <i>Revisiting B-tree Compression: An Experimental Study</i> \
         (SIGMOD 2024), reproduced with {} keys instead of 100 million; seed {}, rounds {}. Replacements: {}",
        args.n,
        args.seed,
        args.repeat,
        escape(&sources::described(args)),
    );
    page::html("B-tree key compression: the paper and Duramen", &about, sections)
}

//! The page that sets what the paper says beside what was found: one file that needs no other.

use super::Args;
use super::claims::{self, Finding, Measure};
use super::experiments::Point;
use super::paper::Figure;
use super::sources;
use std::fmt::Write;

/// A figure or table on the page.
pub(super) struct Section<'f> {
    figure: &'f Figure,
    findings: Vec<(&'static str, Finding)>,
    table: String,
    charts: Vec<(String, String)>,
}

impl<'f> Section<'f> {
    /// What is to be shown of a figure.
    pub(super) fn new(figure: &'f Figure, points: &[Point], charts: Vec<(String, String)>) -> Section<'f> {
        let findings = figure.claims.iter().map(|claim| (claim.says, claims::ask(claim.asked, points))).collect();
        Section { figure, findings, table: table(figure, points), charts }
    }

    fn disagreements(&self) -> impl Iterator<Item = &(&'static str, Finding)> {
        self.findings.iter().filter(|(_, finding)| finding.agrees == Some(false))
    }
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

/// Text as HTML takes it.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "body{font:15px/1.45 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}\
svg{width:32em;max-width:100%}table{border-collapse:collapse;margin:1em 0}\
td,th{border-bottom:1px solid #ddd;padding:.15em .6em;text-align:right}\
td:first-child,td:nth-child(2),th:first-child,th:nth-child(2){text-align:left}\
.yes{color:#1e7d34}.no{color:#b3261e;font-weight:bold}.none{color:#777}";

/// The whole page.
pub(super) fn html(args: &Args, sections: &[Section<'_>]) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>B-tree key compression: the paper and \
         Duramen</title><style>{STYLE}</style></head><body>\n<h1>B-tree key compression: the paper and Duramen</h1>\n"
    );
    let all: Vec<&Finding> = sections.iter().flat_map(|section| &section.findings).map(|(_, found)| found).collect();
    let count = |agrees: Option<bool>| all.iter().filter(|finding| finding.agrees == agrees).count();
    let _ = writeln!(
        html,
        "<p>The figures 8 to 26 and tables 3 to 6 of <i>Revisiting B-tree Compression: An Experimental Study</i> \
         (SIGMOD 2024), made again with {} keys where the paper has 100 million; seed {}, rounds {}. Stand-ins: {}</p>\n\
         <p>Of {} claims {} hold here, {} do not, {} could not be asked.</p>",
        args.n,
        args.seed,
        args.repeat,
        escape(&sources::described(args)),
        all.len(),
        count(Some(true)),
        count(Some(false)),
        count(None)
    );
    html += "<h2>Where they disagree</h2>\n<ul>\n";
    for section in sections {
        for (says, finding) in section.disagreements() {
            let (id, title) = (section.figure.name(), section.figure.title);
            let _ = writeln!(
                html,
                "<li><a href=\"#{id}\">{title}</a>: {}. Here: {}.</li>",
                escape(says),
                escape(&finding.ours)
            );
        }
    }
    html += "</ul>\n";
    sections.iter().for_each(|section| section_html(section, &mut html));
    html + "</body></html>\n"
}

fn section_html(section: &Section<'_>, html: &mut String) {
    let figure = section.figure;
    let sort = if figure.id.starts_with("table") { "Table" } else { "Figure" };
    let number = figure.id.trim_start_matches("table");
    let _ = writeln!(html, "<h2 id=\"{}\">{sort} {number}. {}</h2>", figure.name(), escape(figure.title));
    if !figure.note.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", escape(figure.note));
    }
    if !section.findings.is_empty() {
        *html += "<table><tr><th>the paper says</th><th>here</th><th></th></tr>\n";
        for (says, finding) in &section.findings {
            let (class, verdict) = match finding.agrees {
                Some(true) => ("yes", "holds"),
                Some(false) => ("no", "does not hold"),
                None => ("none", "not asked"),
            };
            let (says, ours) = (escape(says), escape(&finding.ours));
            let _ = writeln!(html, "<tr><td>{says}</td><td>{ours}</td><td class=\"{class}\">{verdict}</td></tr>");
        }
        *html += "</table>\n";
    }
    section.charts.iter().for_each(|(_, svg)| *html += svg);
    if !section.table.is_empty() {
        let _ = writeln!(html, "<details><summary>the numbers</summary>{}</details>", section.table);
    }
}

//! The page that compares the claims of a paper with the results: a single file.

use std::fmt::Write;

/// The result for a claim.
pub(crate) struct Finding {
    pub(crate) ours: String,
    /// `None` if the values of the claim were not measured.
    pub(crate) agrees: Option<bool>,
}

/// A figure or table on the page.
pub(crate) struct Section {
    /// The number of the figure. For a table `table` and its number; for another section a word.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// The differences from the paper.
    pub(crate) note: &'static str,
    /// The claims and their results.
    pub(crate) findings: Vec<(&'static str, Finding)>,
    /// The numbers as an HTML table.
    pub(crate) table: String,
    /// The names and the contents of charts.
    pub(crate) charts: Vec<(String, String)>,
}

/// The name of the files of a section, and of its anchor on the page.
pub(crate) fn name(id: &str) -> String {
    if id.starts_with(|first: char| first.is_ascii_digit()) { format!("figure{id}") } else { id.to_owned() }
}

/// The heading of a section.
pub(crate) fn heading(id: &str) -> String {
    match id.strip_prefix("table") {
        Some(number) => format!("Table {number}"),
        None if name(id) == id => id[..1].to_uppercase() + &id[1..],
        None => format!("Figure {id}"),
    }
}

/// Text with escapes for HTML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const STYLE: &str = "body{font:15px/1.45 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}\
svg{width:32em;max-width:100%}table{border-collapse:collapse;margin:1em 0}\
td,th{border-bottom:1px solid #ddd;padding:.15em .6em;text-align:right}\
td:first-child,td:nth-child(2),th:first-child,th:nth-child(2){text-align:left}\
.yes{color:#1e7d34}.no{color:#b3261e;font-weight:bold}.none{color:#777}";

/// The whole page. `about` is HTML: the paper, and the scale here.
pub(crate) fn html(title: &str, about: &str, sections: &[Section]) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style>\
         </head><body>\n<h1>{title}</h1>\n"
    );
    let all: Vec<&Finding> = sections.iter().flat_map(|section| &section.findings).map(|(_, found)| found).collect();
    let count = |agrees: Option<bool>| all.iter().filter(|finding| finding.agrees == agrees).count();
    let _ = writeln!(
        html,
        "<p>{about}</p>\n<p>Of {} claims {} hold here, {} do not, {} could not be compared.</p>",
        all.len(),
        count(Some(true)),
        count(Some(false)),
        count(None)
    );
    html += "<h2>Where they disagree</h2>\n<ul>\n";
    for section in sections {
        for (says, finding) in section.findings.iter().filter(|(_, finding)| finding.agrees == Some(false)) {
            let (id, title) = (name(section.id), section.title);
            let (says, ours) = (escape(says), escape(&finding.ours));
            let _ = writeln!(html, "<li><a href=\"#{id}\">{title}</a>: {says}. Here: {ours}.</li>");
        }
    }
    html += "</ul>\n";
    sections.iter().for_each(|section| section_html(section, &mut html));
    html + "</body></html>\n"
}

fn section_html(section: &Section, html: &mut String) {
    let (heading, title) = (heading(section.id), escape(section.title));
    let _ = writeln!(html, "<h2 id=\"{}\">{heading}. {title}</h2>", name(section.id));
    if !section.note.is_empty() {
        let _ = writeln!(html, "<p>{}</p>", escape(section.note));
    }
    if !section.findings.is_empty() {
        *html += "<table><tr><th>the paper says</th><th>here</th><th></th></tr>\n";
        for (says, finding) in &section.findings {
            let (class, verdict) = match finding.agrees {
                Some(true) => ("yes", "holds"),
                Some(false) => ("no", "does not hold"),
                None => ("none", "not compared"),
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

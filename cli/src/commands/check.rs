//! `check`: looks at every page and tells what is wrong.

use super::open;
use crate::args::Check;
use crate::failure::{Failure, Found, Result};
use crate::progress::{Meter, Unit};
use crate::report;
use crate::typed;
use duramen::TableInfo;
use duramen::db::Finding;
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    sound: bool,
    pages: u64,
    tables: Vec<TableRow>,
    findings: Vec<FindingRow>,
}

#[derive(Serialize)]
struct TableRow {
    name: String,
    entries: u64,
    pages: u64,
}

/// Something that is wrong, and the keys that are lost by it.
#[derive(Serialize)]
struct FindingRow {
    table: Option<String>,
    /// `-` for what is no page.
    page: Option<u32>,
    what: String,
    /// What is lost by it: `nothing`, `tables`, `all keys`, or `keys`.
    lost: &'static str,
    /// The key that those lost begin at; `-`: at the first.
    lost_from: Option<String>,
    /// The key that they end before; `-`: at the last.
    lost_to: Option<String>,
}

/// Prints the report; anything wrong is a failure.
pub(super) fn run(args: &Check) -> Result<Found> {
    let db = open::reading(&args.database)?;
    let total = db.stats().pages;
    let mut meter = Meter::begin("checking", Unit::Count("pages"), Some(total), args.progress.quiet);
    let checked = db.verify(|pages| meter.show(pages, String::new))?;
    drop(meter);
    let (infos, _) = db.begin_read()?.salvage_tables()?;
    let tables = checked.tables.iter().map(|(name, stats)| TableRow {
        name: name.clone(),
        entries: stats.entries(),
        pages: stats.levels.iter().map(|level| level.pages).sum::<u64>() + stats.run_pages,
    });
    let report = Report {
        sound: checked.findings.is_empty(),
        pages: checked.pages,
        tables: tables.collect(),
        findings: checked.findings.iter().map(|finding| row(finding, &infos)).collect(),
    };
    report::print(&report, args.report.format)?;
    match report.findings.as_slice() {
        [] => Ok(Found::There),
        [first, rest @ ..] => {
            let others = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            let page = first.page.map_or_else(String::new, |page| format!("page {page}: "));
            let (path, what) = (args.database.db.display(), &first.what);
            let advice = "restore a backup, or save what is left with dump --skip-damaged";
            let advice =
                if report.findings.iter().all(|finding| finding.lost == NOTHING) { "nothing is lost" } else { advice };
            Err(Failure::Unsound(format!("{path} is damaged: {page}{what}{others}; {advice}")))
        }
    }
}

/// No key is lost.
const NOTHING: &str = "nothing";

fn row(finding: &Finding, tables: &[TableInfo]) -> FindingRow {
    let table = finding.table.as_ref().and_then(|name| tables.iter().find(|table| table.name == *name));
    let key = |bytes: &[u8]| table.map(|table| typed::bound(bytes, &table.key_type));
    FindingRow {
        table: finding.table.clone(),
        page: Some(finding.page.0).filter(|_| !finding.page.is_none()),
        what: finding.what.clone(),
        lost: match (finding.lost, table, &finding.upper) {
            (false, ..) => NOTHING,
            (true, None, _) => "tables",
            (true, Some(_), None) if finding.lower.is_empty() => "all keys",
            (true, ..) => "keys",
        },
        lost_from: Some(&finding.lower).filter(|lower| !lower.is_empty()).and_then(|lower| key(lower)),
        lost_to: finding.upper.as_ref().and_then(|upper| key(upper)),
    }
}

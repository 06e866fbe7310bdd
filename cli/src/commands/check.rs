//! `check`: checks every page and reports the findings, and what can be saved from a damaged database.

use super::losses::lost_commits;
use super::lost_range::LostRange;
use super::open;
use super::salvage::Rest;
use crate::args::Check;
use crate::failure::{Completion, Failure, Result};
use crate::progress::{Meter, Unit};
use crate::report;
use crate::typed;
use duramen::db::{Damage, Finding};
use duramen::{Error, TableInfo};
use indicatif::HumanCount;
use serde::Serialize;

#[derive(Serialize)]
struct Report {
    sound: bool,
    /// The number of pages read; `-` if the database can only be opened as damaged.
    pages: Option<u64>,
    tables: Vec<TableRow>,
    findings: Vec<FindingRow>,
    /// Present if something may be lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<SavedRow>,
}

#[derive(Serialize)]
struct TableRow {
    name: String,
    entries: u64,
    pages: Option<u64>,
}

/// A finding, and the keys that are lost.
#[derive(Serialize)]
struct FindingRow {
    table: Option<String>,
    /// `-` if the finding is not in a page, or if the page is unknown.
    page: Option<u32>,
    what: String,
    /// The loss that it causes: `nothing`, `value`, `keys`, `all keys`, `names` (of tables, with their types), or
    /// `commits`.
    lost: &'static str,
    /// The first lost key; `-` for no lower bound.
    lost_from: Option<String>,
    /// The key after the lost keys; `-` for no upper bound.
    lost_to: Option<String>,
}

/// The entries that `dump --skip-damaged` saves.
#[derive(Serialize)]
struct SavedRow {
    entries: u64,
    /// The number of entries that there should be; `-` if it is unknown: see [`Rest::total`].
    of_entries: Option<u64>,
    /// True if some entries may be in an older state.
    older_states: bool,
    /// Lost commits, and the lost ranges; adjacent ranges are joined.
    lost: Vec<LostRow>,
}

#[derive(Serialize)]
struct LostRow {
    /// `-` for lost commits, which may be of all tables.
    table: Option<String>,
    keys: Option<String>,
    what: String,
}

/// The result of the check, before it is reported.
struct Checked {
    pages: Option<u64>,
    tables: Vec<TableRow>,
    findings: Vec<Finding>,
    infos: Vec<TableInfo>,
}

const NOTHING: &str = "nothing";
const KEYS: &str = "keys";
const NAMES: &str = "names";

/// Prints the report. Any finding is a failure.
pub(super) fn run(args: &Check) -> Result<Completion> {
    let report = match verify(args) {
        Ok(checked) => assess(args, checked)?,
        Err(Failure::Engine(
            cause @ (Error::Corrupt { .. }
            | Error::CorruptMeta { .. }
            | Error::CorruptLog { .. }
            | Error::MissingLog { .. }),
        )) => unopened(&cause, &Rest::read(&args.database, args.database.quiet)?),
        Err(other) => return Err(other),
    };
    let printed = report::print(&report, args.report.format);
    match report.findings.as_slice() {
        // Damage is an error also if nobody reads the report.
        [] => printed.map(|()| Completion::Done),
        [first, rest @ ..] => {
            let others = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            let page = first.page.map_or_else(String::new, |page| format!("page {page}: "));
            let (path, what) = (args.database.db.display(), &first.what);
            let advice = report.saved.as_ref().map_or_else(|| "nothing is lost".to_owned(), advice);
            Err(Failure::Unsound(format!("{path} is damaged: {page}{what}{others}; {advice}")))
        }
    }
}

fn advice(saved: &SavedRow) -> String {
    let entries = HumanCount(saved.entries);
    let of = saved.of_entries.map_or_else(String::new, |of| format!(" of {}", HumanCount(of)));
    let older = if saved.older_states { ", some perhaps in an older state," } else { "" };
    format!("restore a backup, or save {entries}{of} entries{older} with `duramen dump --skip-damaged`")
}

/// Checks every page of a database that can be opened.
fn verify(args: &Check) -> Result<Checked> {
    let db = open::reading(&args.database)?;
    let total = db.stats().pages;
    let mut meter = Meter::begin("checking", Unit::Count("pages"), Some(total), args.database.quiet);
    let checked = db.verify(|pages| meter.show(pages, String::new))?;
    let (infos, _) = db.begin_read()?.salvage_tables()?;
    let tables = checked.tables.iter().map(|(name, stats)| TableRow {
        name: name.clone(),
        entries: stats.entries(),
        pages: Some(stats.levels.iter().map(|level| level.pages).sum::<u64>() + stats.run_pages + stats.heap_pages),
    });
    Ok(Checked { pages: Some(checked.pages), tables: tables.collect(), findings: checked.findings, infos })
}

/// If something may be lost, finds out what can be saved and what each finding loses.
fn assess(args: &Check, checked: Checked) -> Result<Report> {
    let Checked { pages, tables, findings, infos } = checked;
    let lossy = findings.iter().any(|finding| finding.lost);
    let rest = lossy.then(|| Rest::read(&args.database, args.database.quiet)).transpose()?;
    Ok(Report {
        sound: findings.is_empty(),
        pages,
        tables,
        findings: findings.iter().map(|finding| row(finding, &infos, rest.as_ref())).collect(),
        saved: rest.as_ref().map(saved),
    })
}

/// The report for a database that cannot be opened normally because of `cause`.
fn unopened(cause: &Error, rest: &Rest) -> Report {
    let tables = rest.tables.iter().map(|table| TableRow {
        name: table.info.name.clone(),
        entries: table.info.entries,
        pages: None,
    });
    let reported = rest.damage.iter().filter(|damage| !matches!(damage, Damage::OlderPages));
    let mut findings: Vec<FindingRow> =
        reported.map(|damage| without_place(damage.table(), damage.to_string(), costs(damage))).collect();
    let cause = cause.without_advice();
    let is_known = rest.damage.iter().any(|damage| matches!(damage, Damage::Superblocks { .. }));
    if !is_known && findings.iter().all(|finding| finding.what != cause) {
        let lost = if rest.tables.iter().any(|table| !table.lost.is_empty()) { KEYS } else { NOTHING };
        findings.insert(0, without_place(None, cause, lost));
    }
    Report { sound: false, pages: None, tables: tables.collect(), findings, saved: Some(saved(rest)) }
}

/// A finding without a page and without keys.
fn without_place(table: Option<&str>, what: String, lost: &'static str) -> FindingRow {
    FindingRow { table: table.map(str::to_owned), page: None, what, lost, lost_from: None, lost_to: None }
}

/// The losses by damage, other than keys. Reading the tables finds the lost keys.
fn costs(damage: &Damage) -> &'static str {
    match damage {
        Damage::Catalog { .. } | Damage::CatalogOlder | Damage::TableFound { named: false, .. } => NAMES,
        Damage::Leaves { .. } => KEYS,
        other => lost_commits(other).map_or(NOTHING, |_| "commits"),
    }
}

fn saved(rest: &Rest) -> SavedRow {
    let lost = rest.tables.iter().flat_map(|table| {
        let row = |range: &LostRange| LostRow {
            table: Some(table.info.name.clone()),
            keys: Some(range.keys(&table.info.key_type)),
            what: range.why(),
        };
        table.lost.iter().map(row)
    });
    let commits = rest.lost_commits().map(|what| LostRow { table: None, keys: None, what: what.to_owned() });
    SavedRow {
        entries: rest.entries(),
        of_entries: rest.total(),
        older_states: rest.is_guessed(),
        lost: commits.chain(lost).collect(),
    }
}

fn row(finding: &Finding, infos: &[TableInfo], rest: Option<&Rest>) -> FindingRow {
    let page = Some(finding.page.0).filter(|_| !finding.page.is_none() && !finding.page.is_unknown());
    let info = finding.table.as_ref().and_then(|name| infos.iter().find(|info| info.name == *name));
    let names = rest.is_some_and(Rest::has_lost_names);
    let (lost, range) = match (finding.lost, info) {
        (false, _) => (NOTHING, None),
        (true, None) => (if names { NAMES } else { NOTHING }, None),
        (true, Some(info)) => match lost_range(finding, &info.name, rest) {
            None => (NOTHING, None),
            Some(range) if range.is_all() => ("all keys", None),
            Some(range) => (if range.is_value() { "value" } else { KEYS }, Some((range, info))),
        },
    };
    let key = |key: &[u8], info: &TableInfo| typed::bound(key, &info.key_type);
    let from = range.as_ref().filter(|(range, _)| !range.lower.is_empty()).map(|(range, info)| key(&range.lower, info));
    let to = range.as_ref().and_then(|(range, info)| Some(key(range.upper.as_ref()?, info)));
    let (table, what) = (finding.table.clone(), finding.what.clone());
    FindingRow { table, page, what, lost, lost_from: from, lost_to: to }
}

/// The lost keys of a damaged page of a table, from the first to the last.
fn lost_range(finding: &Finding, table: &str, rest: Option<&Rest>) -> Option<LostRange> {
    let table = rest?.tables.iter().find(|rest| rest.info.name == table)?;
    let mut lost = table.lost.iter().filter_map(|range| range.within(&finding.lower, finding.upper.as_deref()));
    let first = lost.next()?;
    Some(match lost.next_back() {
        Some(last) => first.up_to(last.upper),
        None => first,
    })
}

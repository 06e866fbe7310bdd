//! `analyze`: shows what page compression would save and cost, and what a strategy would choose.

use super::{open, plan};
use crate::args::Analyze;
use crate::failure::{Completion, Result};
use crate::progress::PhaseMeter;
use crate::report;
use duramen::db::{
    Compression, CompressionPlan, DictionaryAnalysis, MethodAnalysis, Reason, Strategy, TableAnalysis, Target,
};
use serde::Serialize;
use std::time::Duration;

#[derive(Serialize)]
struct Report {
    strategy: String,
    /// How the strategy compresses the tables that it chooses.
    compress: String,
    /// The length of their places.
    target: String,
    tables: Vec<TableRow>,
    targets: Vec<TargetRow>,
    methods: Vec<MethodRow>,
    /// The effect of dictionaries, if they are requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    dictionaries: Vec<DictionaryRow>,
}

/// A table, and what the strategy chooses for it.
#[derive(Serialize)]
struct TableRow {
    name: String,
    pages: u64,
    sampled: u64,
    /// Bytes of its pages without compression.
    plain_bytes: u64,
    now: String,
    /// Bytes of its pages in the file.
    stored_bytes: u64,
    choice: String,
    saved_of_plain_bytes: u64,
    /// The bytes that the choice saves in comparison with the present compression. Negative if it takes more.
    saved_of_stored_bytes: i64,
    /// The time that the choice takes: of writing all its pages once, and of reading them once.
    write_seconds: f64,
    read_seconds: f64,
    why: String,
}

/// The choice of the strategy with another target.
#[derive(Serialize)]
struct TargetRow {
    target: String,
    /// Tables that it would compress, of those of the plan that were sampled.
    chosen: usize,
    of: usize,
    saved_of_plain_bytes: u64,
    note: &'static str,
}

/// The effect of a method on a table.
#[derive(Serialize)]
struct MethodRow {
    table: String,
    method: String,
    target: String,
    /// SS: the share of bytes that the method saves.
    saving: f64,
    /// CPss: the share that it saves in the median page.
    median_saving: f64,
    /// True if the lower bound holds: (1 - delta) CPss <= SS.
    lower_bound: Option<bool>,
    /// True if the upper bound holds: SS <= CPss.
    upper_bound: bool,
    saved_of_plain_bytes: u64,
    /// The average time of a page.
    write_us: f64,
    read_us: f64,
    /// That of all pages of the table.
    write_seconds: f64,
    read_seconds: f64,
}

/// The effect of a dictionary on a table that is compressed without one.
#[derive(Serialize)]
struct DictionaryRow {
    table: String,
    /// Bytes that it takes in the file, where it is twice.
    dictionary_bytes: u64,
    /// The share of the compressed pages that it saves.
    saving: f64,
    saved_bytes: u64,
    /// True if it is worth it.
    pays: bool,
}

/// Prints the analysis.
pub(super) fn run(args: &Analyze) -> Result<Completion> {
    let plan = plan::of(&args.plan, Strategy::SELECTIVE)?;
    let db = open::reading(&args.database)?;
    let mut meter = PhaseMeter::new("rebuilding", args.database.quiet);
    let tables = db.analyze(&plan, |progress| meter.show(progress));
    drop(meter);
    let tables = tables?;
    let (strategy, compress) = (plan.strategy(), plan.compression().to_string());
    let rows = |table: &TableAnalysis| {
        table.methods.iter().map(|method| method_row(table, strategy, method)).collect::<Vec<_>>()
    };
    let report = Report {
        strategy: strategy.to_string(),
        compress,
        target: plan.page_target().to_string(),
        targets: targets(&tables, &plan),
        dictionaries: tables.iter().filter_map(dictionary_row).collect(),
        methods: tables.iter().filter(|table| table.sampled > 0).flat_map(rows).collect(),
        tables: tables.into_iter().map(|table| table_row(table, &args.plan.group)).collect(),
    };
    report::print(&report, args.report.format)?;
    Ok(Completion::Done)
}

fn dictionary_row(table: &TableAnalysis) -> Option<DictionaryRow> {
    let DictionaryAnalysis { bytes, saving, saved_bytes, pays } = table.dictionary?;
    Some(DictionaryRow { table: table.table.clone(), dictionary_bytes: bytes, saving, saved_bytes, pays })
}

fn table_row(table: TableAnalysis, groups: &[String]) -> TableRow {
    // These reasons do not depend on sampled pages, so the group does not matter.
    let ignores_group = matches!(table.reason, Reason::StrategyNone | Reason::StrategyAll | Reason::LeftOut);
    let group = groups.iter().find(|group| !ignores_group && group.split(',').any(|name| name == table.table));
    let chosen =
        table.methods.iter().find(|method| (method.compression, method.target) == (table.choice, table.choice_target));
    let (write_seconds, read_seconds) = chosen.map_or((0.0, 0.0), |method| seconds(&table, method));
    TableRow {
        saved_of_plain_bytes: chosen.map_or(0, |method| method.saved_bytes),
        stored_bytes: table.current_bytes,
        saved_of_stored_bytes: table.current_bytes.cast_signed().saturating_sub_unsigned(table.choice_bytes),
        write_seconds,
        read_seconds,
        name: table.table,
        pages: table.pages,
        sampled: table.sampled,
        plain_bytes: table.bytes,
        now: with_target(table.current, table.current_target),
        choice: with_target(table.choice, table.choice_target),
        why: match group {
            Some(group) => format!("{}, in the group {group}", table.reason),
            None => table.reason.to_string(),
        },
    }
}

/// The names of a compression and a target in one column.
fn with_target(compression: Compression, target: Target) -> String {
    match target {
        Target::Fit => compression.to_string(),
        Target::Bytes(_) => format!("{compression} {target}"),
    }
}

/// The choices of the strategy with each target.
fn targets(tables: &[TableAnalysis], plan: &CompressionPlan) -> Vec<TargetRow> {
    let is_of_plan = |table: &&TableAnalysis| table.sampled > 0 && table.reason != Reason::LeftOut;
    let sampled: Vec<&TableAnalysis> = tables.iter().filter(is_of_plan).collect();
    let is_planned = |method: &&MethodAnalysis| method.compression == plan.compression();
    let all = sampled.first().map_or(&[][..], |table| &table.methods).iter().filter(is_planned);
    let row = |target: Target| {
        let of_target = |table: &&TableAnalysis| {
            let methods = table.methods.iter().filter(is_planned);
            methods
                .filter(|method| method.target == target && method.reason.compresses())
                .map(|method| method.saved_bytes)
                .next()
        };
        let saved: Vec<u64> = sampled.iter().filter_map(of_target).collect();
        let note = match saved.len() {
            _ if !matches!(plan.strategy(), Strategy::Selective { .. }) => "",
            0 => "nothing to select: no table",
            chosen if chosen == sampled.len() => "nothing to select: every table",
            _ => "",
        };
        TargetRow {
            target: target.to_string(),
            chosen: saved.len(),
            of: sampled.len(),
            saved_of_plain_bytes: saved.iter().sum(),
            note,
        }
    };
    all.map(|method| row(method.target)).collect()
}

/// The time of compressing all pages of a table once, and of decompressing them once.
fn seconds(table: &TableAnalysis, method: &MethodAnalysis) -> (f64, f64) {
    let of_all = |page: Duration| page.as_secs_f64() * table.pages as f64;
    (of_all(method.write_time), of_all(method.read_time))
}

fn method_row(table: &TableAnalysis, strategy: Strategy, method: &MethodAnalysis) -> MethodRow {
    let MethodAnalysis { saving, median_saving, .. } = *method;
    let lower_bound = match strategy {
        Strategy::Selective { delta, .. } => Some(method.meets_lower_bound(delta)),
        _ => None,
    };
    let (write_seconds, read_seconds) = seconds(table, method);
    MethodRow {
        table: table.table.clone(),
        method: method.compression.to_string(),
        target: method.target.to_string(),
        saving,
        median_saving,
        lower_bound,
        upper_bound: method.meets_upper_bound(),
        saved_of_plain_bytes: method.saved_bytes,
        write_us: method.write_time.as_secs_f64() * 1e6,
        read_us: method.read_time.as_secs_f64() * 1e6,
        write_seconds,
        read_seconds,
    }
}

//! The form of a claim of the paper, and the test that compares it with the results. The claims must not be in this
//! file.

use super::measure::Results;
use super::runs::Run;
use crate::page::Finding;
use serde_json::Value;

/// A value that is computed from a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Measure {
    /// Physical bytes written for each user byte: of all kinds together, and of one kind.
    Total,
    Log,
    Page,
    Delta,
    Table,
    /// Physical bytes of all kinds except the log.
    WithoutLog,
    /// The physical bytes of page writes, each write rounded up to blocks, divided by the bytes without rounding.
    Waste,
    /// Bytes of delta blocks for each byte of pages, in percent.
    Beta,
    /// Bytes of space for each byte of records, before and after compression.
    LogicalSpace,
    PhysicalSpace,
    /// Operations per second of the modelled drive.
    Overwrites,
    Reads,
    Scans,
}

/// All measures: the columns of a CSV file.
pub(super) const ALL: [Measure; 13] = [
    Measure::Total,
    Measure::Log,
    Measure::Page,
    Measure::Delta,
    Measure::Table,
    Measure::WithoutLog,
    Measure::Waste,
    Measure::Beta,
    Measure::LogicalSpace,
    Measure::PhysicalSpace,
    Measure::Overwrites,
    Measure::Reads,
    Measure::Scans,
];

impl Measure {
    /// Returns the name of the measure in text.
    pub(super) fn name(self) -> &'static str {
        match self {
            Measure::Total => "write amplification",
            Measure::Log => "write amplification of the log",
            Measure::Page => "write amplification of pages",
            Measure::Delta => "write amplification of delta blocks",
            Measure::Table => "write amplification of the page table",
            Measure::WithoutLog => "write amplification without the log",
            Measure::Waste => "aligned bytes of pages to compressed bytes",
            Measure::Beta => "beta, %",
            Measure::LogicalSpace => "logical space, bytes a byte of records",
            Measure::PhysicalSpace => "physical space, bytes a byte of records",
            Measure::Overwrites => "overwrites a second of the drive",
            Measure::Reads => "reads a second of the drive",
            Measure::Scans => "scans of 100 a second of the drive",
        }
    }

    /// Returns the name of the measure on the axis of a chart.
    pub(super) fn axis(self) -> &'static str {
        match self {
            Measure::Total => "physical bytes written for each user byte",
            Measure::Log => "physical bytes of the log for each user byte",
            Measure::Page => "physical bytes of pages for each user byte",
            Measure::Delta => "physical bytes of delta blocks for each user byte",
            Measure::Table => "physical bytes of page tables for each user byte",
            Measure::WithoutLog => "physical bytes without the log for each user byte",
            Measure::Waste => "aligned bytes for each compressed byte",
            Measure::Beta => "beta: bytes of delta blocks, % of those of pages",
            Measure::LogicalSpace => "logical bytes for each byte of records",
            Measure::PhysicalSpace => "physical bytes for each byte of records",
            Measure::Overwrites => "overwrites a second, model of the drive",
            Measure::Reads => "reads a second, model of the drive",
            Measure::Scans => "scans a second, model of the drive",
        }
    }

    /// Returns the measure of a run, if the run was measured.
    pub(super) fn of(self, run: &Run, results: &Results) -> Option<f64> {
        let object = results.get(run)?;
        let get = |path: &str| object.pointer(path).and_then(Value::as_f64);
        match self {
            Measure::Total => get("/wa_physical/total"),
            Measure::Log => get("/wa_physical/log"),
            Measure::Page => get("/wa_physical/page"),
            Measure::Delta => get("/wa_physical/delta"),
            Measure::Table => get("/wa_physical/table"),
            Measure::WithoutLog => Some(get("/wa_physical/total")? - get("/wa_physical/log")?),
            Measure::Waste => Some(get("/wa_aligned/page")? / get("/wa_physical/page")?),
            Measure::Beta => Some(100.0 * get("/beta")?),
            Measure::LogicalSpace => Some(get("/logical_bytes")? / records(object)?),
            Measure::PhysicalSpace => Some(get("/physical_bytes")? / records(object)?),
            Measure::Overwrites => get("/device_tps/overwrites"),
            Measure::Reads => get("/device_tps/reads"),
            Measure::Scans => get("/device_tps/scans"),
        }
    }
}

/// Returns the bytes of all records.
fn records(object: &Value) -> Option<f64> {
    let workload = &object["workload"];
    Some(workload["records"].as_f64()? * workload["record_size"].as_f64()?)
}

/// A number that is computed from the results.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    /// The measure of one run.
    One(Measure, Run),
    /// The quotient of the first run's measure and the second run's.
    Ratio(Measure, Run, Run),
}

impl Number {
    fn of(self, results: &Results) -> Option<f64> {
        match self {
            Number::One(measure, run) => measure.of(&run, results),
            Number::Ratio(measure, run, to) => Some(measure.of(&run, results)? / measure.of(&to, results)?),
        }
        .filter(|number| number.is_finite())
    }

    /// Returns the runs that the number needs.
    #[cfg(test)]
    pub(super) fn runs(self) -> Vec<Run> {
        match self {
            Number::One(_, run) => vec![run],
            Number::Ratio(_, run, to) => vec![run, to],
        }
    }
}

/// A statement of the paper, as a question about the results.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// The number is within a quarter of this value.
    About(Number, f64),
    /// The number is at most a twentieth above this value.
    Most(Number, f64),
    /// The number is at most a twentieth below this value.
    Least(Number, f64),
    /// The first number is nearer to 1 than the second.
    Nearer(Number, Number),
}

/// A claim: in text, and as a question.
pub(super) struct Claim {
    pub(super) says: &'static str,
    pub(super) asked: Asked,
}

/// Answers a question from the results.
pub(super) fn ask(asked: Asked, results: &Results) -> Finding {
    let found = match asked {
        Asked::About(number, paper) => {
            number.of(results).map(|ours| (format!("{ours:.2} (paper {paper})"), (ours - paper).abs() <= 0.25 * paper))
        }
        Asked::Most(number, paper) => {
            number.of(results).map(|ours| (format!("{ours:.2} (at most {paper})"), ours <= 1.05 * paper))
        }
        Asked::Least(number, paper) => {
            number.of(results).map(|ours| (format!("{ours:.2} (at least {paper})"), ours >= 0.95 * paper))
        }
        Asked::Nearer(number, than) => number.of(results).zip(than.of(results)).map(|(ours, other)| {
            let far = |ratio: f64| ratio.ln().abs();
            (format!("{ours:.2}, and {other:.2}"), far(ours) < far(other))
        }),
    };
    match found {
        Some((ours, agrees)) => Finding { ours, agrees: Some(agrees) },
        None => Finding { ours: "not measured".to_owned(), agrees: None },
    }
}

#[cfg(test)]
mod tests {
    use super::super::runs::Store;
    use super::*;
    use serde_json::json;

    #[test]
    fn claims_are_borne_out_or_not() {
        let runs = [Store::Table, Store::Baseline, Store::Whole].map(Run::far);
        let [table, baseline, whole] = runs;
        let totals = [40.0, 80.0, 30.0].map(|total| json!({"wa_physical": {"total": total, "log": 1.0}}));
        let results: Results = runs.into_iter().zip(totals).collect();
        let one = |run| Number::One(Measure::Total, run);
        let ratio = |run, to| Number::Ratio(Measure::Total, run, to);
        let agrees = |asked| ask(asked, &results).agrees;
        assert_eq!([32.0, 31.0].map(|paper| agrees(Asked::About(one(table), paper))), [Some(true), Some(false)]);
        assert_eq!([38.5, 38.0].map(|paper| agrees(Asked::Most(one(table), paper))), [Some(true), Some(false)]);
        assert_eq!([42.0, 43.0].map(|paper| agrees(Asked::Least(one(table), paper))), [Some(true), Some(false)]);
        let (far, near) = (ratio(table, baseline), ratio(whole, table));
        assert_eq!(agrees(Asked::Nearer(near, far)), Some(true));
        assert_eq!(agrees(Asked::Nearer(far, near)), Some(false));
        assert_eq!(agrees(Asked::Nearer(far, ratio(whole, table.threads(4)))), None);
        assert_eq!(agrees(Asked::About(Number::One(Measure::Beta, table), 1.0)), None);
        assert_eq!(ask(Asked::About(Number::One(Measure::WithoutLog, whole), 29.0), &results).ours, "29.00 (paper 29)");
    }
}

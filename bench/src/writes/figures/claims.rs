//! The values that the claims of the paper are about.

use super::measure::Results;
use super::runs::Run;
use crate::claims;
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
}

impl claims::Measure<Run> for Measure {
    fn of(self, run: &Run, results: &Results) -> Option<f64> {
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

/// A number, a question and a claim about these values.
pub(super) type Number = claims::Number<Measure, Run>;
pub(super) type Asked = claims::Asked<Measure, Run>;
pub(super) type Claim = claims::Claim<Measure, Run>;

#[cfg(test)]
mod tests {
    use super::super::runs::Store;
    use super::*;
    use crate::claims::Measure as _;
    use serde_json::json;

    #[test]
    fn a_measure_is_computed_from_the_result_of_its_run() {
        let run = Run::far(Store::Whole);
        let results: Results = [(run, json!({"wa_physical": {"total": 30.0, "log": 1.0}}))].into_iter().collect();
        assert_eq!(Measure::WithoutLog.of(&run, &results), Some(29.0));
        assert_eq!(Measure::Beta.of(&run, &results), None);
        assert_eq!(Measure::Total.of(&Run::far(Store::Table), &results), None);
    }
}

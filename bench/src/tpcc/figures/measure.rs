//! Measures the runs of the figures.

use super::Args;
use super::runs::Run;
use crate::Result;
use crate::claims::Results;
use crate::kept::Kept;
use crate::progress::Progress;
use crate::stats::median;
use crate::tpcc::{report, run};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The file of the results, in the folder of the figures.
const FILE: &str = "runs.jsonl";

/// Measures all runs, one after the other. Calls `done` at the beginning and with each new result.
pub(super) fn measure(
    runs: &BTreeSet<Run>,
    args: &Args,
    mut done: impl FnMut(&Results<Run>) -> Result<()>,
) -> Result<()> {
    let (mut kept, found) = Kept::begin(&args.out.join(FILE), args.resume)?;
    let mut rounds: Results<Run> = Results::new();
    let mut left = Vec::new();
    for round in 0..args.repeat {
        for run in runs {
            let options = run.options(args, args.seed + u64::from(round));
            let wanted = identity(&report::workload(&options));
            match found.iter().find(|result| identity(&result["workload"]) == wanted) {
                Some(result) => add(&mut rounds, run, result.clone()),
                None => left.push((*run, options)),
            }
        }
    }
    let mut progress = Progress::new(left.iter().map(|_| 1.0));
    done(&medians(&rounds))?;
    for (run, options) in left {
        let result = report::object(&options, &run::measure(&options)?);
        kept.add(&result)?;
        add(&mut rounds, &run, result);
        progress.done(1.0, &run);
        done(&medians(&rounds))?;
    }
    Ok(())
}

/// The options of a result. The bytes of cache follow from the others.
fn identity(workload: &Value) -> Value {
    let mut identity = workload.clone();
    identity["cache"] = Value::Null;
    identity
}

fn add(rounds: &mut Results<Run>, run: &Run, result: Value) {
    match rounds.entry(*run).or_insert_with(|| json!([])) {
        Value::Array(results) => results.push(result),
        other => *other = json!([result]),
    }
}

fn medians(rounds: &Results<Run>) -> Results<Run> {
    let of =
        |results: &Value| results.as_array().map_or(Value::Null, |results| middle(&results.iter().collect::<Vec<_>>()));
    rounds.iter().map(|(run, results)| (*run, of(results))).collect()
}

/// The median of each number in objects of one form.
fn middle(objects: &[&Value]) -> Value {
    match objects.first() {
        Some(Value::Number(_)) => json!(median(objects.iter().filter_map(|value| value.as_f64()).collect())),
        Some(Value::Object(first)) => first
            .keys()
            .map(|key| (key.clone(), middle(&objects.iter().map(|object| &object[key]).collect::<Vec<_>>())))
            .collect(),
        Some(Value::Array(first)) => {
            (0..first.len()).map(|at| middle(&objects.iter().map(|array| &array[at]).collect::<Vec<_>>())).collect()
        }
        Some(other) => (*other).clone(),
        None => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_rounds_is_that_of_each_number() {
        let round =
            |tpm: f64, saved: f64| json!({"tpm": tpm, "name": "s", "tables": [{"saved": saved, "compressed": true}]});
        let (a, b, c) = (round(1.0, 0.5), round(3.0, 0.3), round(2.0, 0.4));
        assert_eq!(middle(&[&a, &b, &c]), round(2.0, 0.4));
        assert_eq!(middle(&[&b]), b);
    }
}

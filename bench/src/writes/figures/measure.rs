//! Measures the runs of the figures.

use super::Args;
use super::runs::{Population, Run};
use crate::claims;
use crate::kept::Kept;
use crate::progress::Progress;
use crate::writes::run::{Measured, Populated, Work};
use crate::writes::{self, report};
use crate::{Result, writes::figures::peers};
use duramen_sim::DeviceModel;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

/// The results of runs: the object that `writes` prints, with additional values.
pub(super) type Results = claims::Results<Run>;

/// The file of the results, in the folder of the figures.
const FILE: &str = "runs.jsonl";

/// Measures all runs. The runs on one population are measured one after the other, and several populations at the same
/// time.
/// Calls `done` at the beginning and with each new result.
pub(super) fn measure(runs: &[Run], args: &Args, mut done: impl FnMut(&Results) -> Result<()>) -> Result<Results> {
    let mut results: Results = peers::load(args, runs)?.into_iter().collect();
    let (mut kept, found) = Kept::begin(&args.out.join(FILE), args.resume)?;
    let mut populations: BTreeMap<Population, Vec<(Run, writes::Args)>> = BTreeMap::new();
    for run in runs {
        let Some(options) = run.options(args) else { continue };
        let workload = report::workload(&options);
        if let Some(result) = found.iter().find(|result| result["workload"] == workload) {
            results.insert(*run, result.clone());
            continue;
        }
        let of_population = populations.entry(run.population).or_default();
        if !of_population.iter().any(|(other, _)| other == run) {
            of_population.push((*run, options));
        }
    }
    let weights: BTreeMap<Run, f64> = populations.values().flat_map(|runs| weights(runs)).collect();
    let mut progress = Progress::new(weights.values().copied());
    done(&results)?;
    // The map ends with the largest populations, which begin first.
    let left = Mutex::new(populations);
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..args.jobs {
            let (left, sender) = (&left, sender.clone());
            scope.spawn(move || work(left, &sender));
        }
        drop(sender);
        for measured in receiver {
            let (run, result) = measured?;
            kept.add(&result)?;
            results.insert(run, result);
            progress.done(weights.get(&run).copied().unwrap_or_default(), &run);
            done(&results)?;
        }
        Ok(results)
    })
}

/// The runs on each population that are not yet measured.
type Left = Mutex<BTreeMap<Population, Vec<(Run, writes::Args)>>>;

/// Measures populations until none is left, or until the receiver of the results has ended.
fn work(left: &Left, sender: &Sender<Result<(Run, Value)>>) {
    loop {
        let next = left.lock().map(|mut left| left.pop_last());
        let Ok(Some((_, runs))) = next else { return };
        let Some((_, first)) = runs.first() else { continue };
        let populated = Populated::new(first);
        for (run, options) in &runs {
            let measured = match &populated {
                Ok(populated) => populated.measure(options).map(|measured| (*run, object(options, &measured))),
                Err(error) => Err(error.to_string().into()),
            };
            if sender.send(measured).is_err() {
                return;
            }
        }
    }
}

/// Returns the approximate duration of each run. The first run includes populating.
fn weights(runs: &[(Run, writes::Args)]) -> impl Iterator<Item = (Run, f64)> {
    runs.iter().enumerate().map(|(at, (run, options))| {
        let leaves = run.population.leaves() as f64;
        // The workload has two or three cycles of about this many overwrites. Each cycle overwrites every leaf.
        let overwrites = leaves * leaves.ln();
        let populating = options.records as f64 / 5.0 + 5.0 * leaves;
        (*run, 2.0 * overwrites * options.page_size.0 as f64 / 8192.0 + if at == 0 { populating } else { 0.0 })
    })
}

/// Returns the object that `writes` prints, with the operations per second of the modelled drive when each thread has
/// one call at a time.
fn object(options: &writes::Args, measured: &Measured) -> Value {
    let mut object = report::object(options, measured);
    let tps = |work: &Work| work.operations as f64 / DeviceModel::COMPRESSING.seconds(&work.counts, options.threads);
    let (overwrites, reads, scans) = (&measured.overwrites, &measured.reads, &measured.scans);
    object["device_tps"] = json!({"overwrites": tps(overwrites), "reads": tps(reads), "scans": tps(scans)});
    object
}

//! Runs of other stores, which `duramen-peers` measures: the runs that the figures need, and the run that each result
//! belongs to.

use super::runs::{Logging, Run, Scale, Store};
use super::{Args, paper};
use crate::{Result, kept};
use duramen_sim::{DeviceModel, Traffic};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;

/// A store that another program measures.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Peer {
    /// RocksDB.
    RocksDb,
    /// WiredTiger.
    WiredTiger,
}

impl Peer {
    /// Returns the name in results, in lower case without spaces.
    pub fn name(self) -> &'static str {
        match self {
            Peer::RocksDb => "rocksdb",
            Peer::WiredTiger => "wiredtiger",
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Peer::RocksDb => "RocksDB",
            Peer::WiredTiger => "WiredTiger",
        })
    }
}

/// A run of another store that the figures need.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PeerRun {
    /// The store.
    pub peer: Peer,
    /// The bytes of the paper's data set that this run represents. RocksDB's memtables, files and levels have the same
    /// proportions to the data set as in the paper.
    pub stands_for: u64,
    /// Bytes of a WiredTiger page.
    pub page_size: u64,
    /// Bytes of a record, including the 8 bytes of its key.
    pub record_size: u32,
    /// The number of records.
    pub records: u64,
    /// Bytes of the cache.
    pub cache: u64,
    /// Seconds between flushes of the log; 0 if it is flushed with each commit.
    pub flush_seconds: u32,
    /// The number of threads.
    pub threads: u32,
}

impl PeerRun {
    /// Returns true if `result`, as `duramen-peers` prints it, is the result of this run.
    pub fn has(&self, result: &Value) -> bool {
        let number = |path: &str| result.pointer(path).and_then(Value::as_u64);
        let numbers = [
            ("/workload/records", self.records),
            ("/workload/record_size", u64::from(self.record_size)),
            ("/workload/threads", u64::from(self.threads)),
            ("/workload/flush_seconds", u64::from(self.flush_seconds)),
            ("/workload/stands_for", self.stands_for),
        ];
        // RocksDB has no pages.
        let page = self.peer == Peer::RocksDb || number("/workload/page_size") == Some(self.page_size);
        let store = result["store"].as_str() == Some(self.peer.name());
        store && page && numbers.iter().all(|&(path, expected)| number(path) == Some(expected))
    }
}

impl fmt::Display for PeerRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PeerRun { peer, page_size, record_size, records, threads, flush_seconds, .. } = self;
        let pages = page_size / 1024;
        write!(f, "{peer}, {records} records of {record_size} B, pages of {pages} KiB, ")?;
        write!(f, "log flushed every {flush_seconds} s, threads: {threads}")
    }
}

/// Returns all runs of other stores that the figures need. Runs with the same data set are adjacent.
pub fn peer_runs() -> Vec<PeerRun> {
    let figures = paper::figures();
    let runs: BTreeSet<PeerRun> = figures.iter().flat_map(|figure| &figure.runs).filter_map(of).collect();
    // RocksDB has no pages: the runs for pages of 8 KiB also represent those for pages of 16 KiB.
    runs.into_iter().filter(|run| run.peer != Peer::RocksDb || run.page_size == 8192).collect()
}

/// RocksDB's least memtable, and its default.
const MEMTABLE: u64 = 64 << 10;
const DEFAULT_MEMTABLE: u64 = 64 << 20;
/// WiredTiger's least cache.
const CACHE: u64 = 1 << 20;

/// Returns the run of another store that corresponds to a run.
fn of(run: &Run) -> Option<PeerRun> {
    let Store::Peer(peer) = run.population.store else { return None };
    let stands_for = match run.population.scale {
        Scale::Far => 150_000_000_000,
        Scale::Near => 500_000_000_000,
    };
    let records = match peer {
        // Fewer records would need a smaller memtable.
        Peer::RocksDb => stands_for / DEFAULT_MEMTABLE * MEMTABLE / u64::from(run.population.record),
        Peer::WiredTiger => run.population.records(),
    };
    Some(PeerRun {
        peer,
        stands_for,
        page_size: run.population.page,
        record_size: run.population.record,
        records,
        cache: CACHE,
        flush_seconds: if run.logging == Logging::Minute { 60 } else { 0 },
        threads: run.threads,
    })
}

/// Returns a result with the operations per second of the modelled drive.
fn with_speeds(result: &Value, threads: u32) -> Value {
    let tps = |part: &str| {
        let number = |name: &str| result[part][name].as_u64();
        let traffic = |logical_bytes, physical_bytes| Traffic { logical_bytes, physical_bytes, ..Traffic::default() };
        // In the model of this drive, write calls and bytes read from the medium take no time.
        let read = Traffic { calls: number("read_calls")?, ..traffic(number("read_bytes")?, 0) };
        let written = traffic(number("written_logical")?, number("written_physical")?);
        let seconds = DeviceModel::COMPRESSING.seconds_of(read, written, number("syncs")?, threads);
        Some(number("operations")? as f64 / seconds)
    };
    let mut result = result.clone();
    result["device_tps"] = json!({"overwrites": tps("overwrites"), "reads": tps("reads"), "scans": tps("scans")});
    result
}

/// Returns the results in the file of `--peers`, each with its run.
pub(super) fn load(args: &Args, runs: &[Run]) -> Result<Vec<(Run, Value)>> {
    let Some(file) = &args.peers else { return Ok(Vec::new()) };
    let results = kept::read(file)?;
    let found = runs.iter().filter_map(|run| {
        let peer = of(run)?;
        results.iter().find(|result| peer.has(result)).map(|result| (*run, with_speeds(result, run.threads)))
    });
    let found: Vec<(Run, Value)> = found.collect();
    if found.is_empty() {
        return Err(format!("{}: no result is of a run of these figures", file.display()).into());
    }
    Ok(found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns a result in the form that `duramen-peers` prints.
    pub(in super::super) fn result(run: &PeerRun, page_size: u64) -> Value {
        let part = json!({
            "operations": 1000, "read_calls": 900, "read_bytes": 900 * 8192,
            "written_logical": 0, "written_physical": 0, "syncs": 0,
        });
        json!({
            "store": run.peer.name(), "wa_physical": {"total": 8.0, "log": 1.0, "page": 7.0}, "physical_bytes": 1,
            "logical_bytes": 2, "overwrites": part, "reads": part, "scans": part,
            "workload": {
                "records": run.records, "record_size": run.record_size, "page_size": page_size, "cache": run.cache,
                "threads": run.threads, "flush_seconds": run.flush_seconds, "stands_for": run.stands_for,
            },
        })
    }

    #[test]
    fn every_run_of_the_figures_finds_its_result_and_no_other() {
        let runs = peer_runs();
        let results: Vec<Value> = runs.iter().map(|run| result(run, run.page_size)).collect();
        for (at, run) in runs.iter().enumerate() {
            let found: Vec<usize> = (0..results.len()).filter(|other| run.has(&results[*other])).collect();
            assert_eq!(found, [at], "{run}");
        }
        let figures = paper::figures();
        let peers: Vec<PeerRun> = figures.iter().flat_map(|figure| &figure.runs).filter_map(of).collect();
        assert!(peers.iter().all(|run| results.iter().any(|result| run.has(result))), "a run is not measured");
        let (rocks, tiger) = (&runs[0], &runs[runs.len() - 1]);
        assert!(rocks.has(&result(rocks, 1)), "RocksDB has no pages");
        assert!(!tiger.has(&result(tiger, 1)) && !tiger.has(&result(&PeerRun { records: 1, ..tiger.clone() }, 8192)));
    }

    #[test]
    fn reads_take_the_time_of_their_calls_blocks_and_bytes() {
        let result = with_speeds(&result(&peer_runs()[0], 8192), 4);
        // A call takes 80 us and two blocks 5 us each, four at a time; 8 KiB take 2.56 us on the bus.
        let expected = 1000.0 / (900.0 * (90e-6 / 4.0 + 8192.0 / 3.2e9));
        let found = result["device_tps"]["reads"].as_f64().unwrap_or_default();
        assert!((found - expected).abs() < 1e-6 * expected, "{found}, not {expected}");
    }
}

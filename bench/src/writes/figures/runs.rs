//! The runs that the figures are made from, and how they are measured. The use of the results must not be in this file.

use super::Args;
use crate::Result;
use crate::writes::run::{Measured, Populated, Work};
use crate::writes::{self, DiskKind, Flush, Format, Log, report};
use bytesize::ByteSize;
use duramen::db::DeltaBlocks;
use duramen_sim::DeviceModel;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;
use std::time::Duration;

/// Pages of the cache.
const FRAMES: u64 = 64;

/// Leaves to a page of the cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Scale {
    /// 33, as the paper's 500 GB to 15 GB.
    Near,
    /// 150, as its 150 GB to 1 GB.
    Far,
}

impl Scale {
    pub(super) fn leaves(self) -> u64 {
        match self {
            Scale::Near => 33,
            Scale::Far => 150,
        }
    }
}

/// A page store and how it writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Store {
    /// `table`, with its page table written at checkpoints.
    Table,
    /// `table --persist-table`: the paper's baseline.
    Baseline,
    /// `shadow` without delta blocks.
    Whole,
    /// `shadow` with delta blocks: threshold, bytes of a segment, blocks.
    Delta(u16, u16, u8),
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Store::Table => f.write_str("table"),
            Store::Baseline => f.write_str("baseline"),
            Store::Whole => f.write_str("shadow"),
            Store::Delta(threshold, segment, blocks) => write!(f, "{threshold},{segment},{blocks}"),
        }
    }
}

/// When the log is flushed, and its shape.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Logging {
    /// Each minute, packed.
    Minute,
    /// With each commit, packed.
    Packed,
    /// With each commit, sparse.
    Sparse,
}

/// What is populated once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Shape {
    pub(super) scale: Scale,
    pub(super) page: u64,
    pub(super) record: u32,
    pub(super) store: Store,
}

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Run {
    pub(super) shape: Shape,
    pub(super) logging: Logging,
    pub(super) threads: u32,
}

impl Run {
    /// The run of the paper's 150 GB with records of 128 bytes, pages of 8 KiB and one thread.
    pub(super) fn far(store: Store) -> Run {
        let shape = Shape { scale: Scale::Far, page: 8192, record: 128, store };
        Run { shape, logging: Logging::Minute, threads: 1 }
    }

    /// The same with the paper's 500 GB.
    pub(super) fn near(store: Store) -> Run {
        let run = Run::far(store);
        Run { shape: Shape { scale: Scale::Near, ..run.shape }, ..run }
    }

    pub(super) fn record(self, record: u32) -> Run {
        Run { shape: Shape { record, ..self.shape }, ..self }
    }

    pub(super) fn page(self, page: u64) -> Run {
        Run { shape: Shape { page, ..self.shape }, ..self }
    }

    pub(super) fn threads(self, threads: u32) -> Run {
        Run { threads, ..self }
    }

    pub(super) fn logging(self, logging: Logging) -> Run {
        Run { logging, ..self }
    }

    /// What differs between the lines of a chart.
    pub(super) fn series(&self) -> String {
        let log = match self.logging {
            Logging::Minute => "",
            Logging::Packed => " packed",
            Logging::Sparse => " sparse",
        };
        format!("{}{log}", self.shape.store)
    }

    /// The options of the benchmark.
    fn options(&self, args: &Args) -> writes::Args {
        let Shape { scale, page, record, store } = self.shape;
        // A leaf is about three quarters full of records.
        let records = scale.leaves() * FRAMES * page * 3 / 4 / u64::from(record);
        let (store, persist_table, delta) = match store {
            Store::Table => (writes::Store::Table, false, DeltaBlocks::OFF),
            Store::Baseline => (writes::Store::Table, true, DeltaBlocks::OFF),
            Store::Whole => (writes::Store::Shadow, false, DeltaBlocks::OFF),
            Store::Delta(threshold, segment, blocks) => {
                (writes::Store::Shadow, false, DeltaBlocks { threshold, segment, blocks })
            }
        };
        let (flush, log) = match self.logging {
            Logging::Minute => (Flush::Interval(Duration::from_secs(60)), Log::Packed),
            Logging::Packed => (Flush::Commit, Log::Packed),
            Logging::Sparse => (Flush::Commit, Log::Sparse),
        };
        writes::Args {
            records: if args.quick { 3000 } else { records as usize },
            record_size: record,
            page_size: ByteSize(page),
            cache: ByteSize(FRAMES * page),
            threads: self.threads,
            store,
            persist_table,
            delta,
            log,
            flush,
            disk: DiskKind::Metered,
            dir: None,
            seed: args.seed,
            format: Format::Json,
        }
    }
}

/// Results of runs: the object that `writes` prints, and more.
pub(super) type Results = BTreeMap<Run, Value>;

/// Measures all runs, those of a shape one after the other, several shapes at a time.
pub(super) fn measure(runs: &[Run], args: &Args) -> Result<Results> {
    let mut shapes: BTreeMap<Shape, Vec<Run>> = BTreeMap::new();
    for run in runs {
        let of_shape = shapes.entry(run.shape).or_default();
        if !of_shape.contains(run) {
            of_shape.push(*run);
        }
    }
    let total: usize = shapes.values().map(Vec::len).sum();
    // The largest shapes are last in the map, and begin first.
    let left = Mutex::new(shapes);
    let done = Mutex::new(Results::new());
    let work = || -> Result<()> {
        while let Some((_, runs)) = { left.lock().map_err(|_| "a thread has panicked")?.pop_last() } {
            let Some(first) = runs.first() else { continue };
            let populated = Populated::new(&first.options(args))?;
            for run in runs {
                let options = run.options(args);
                let measured = populated.measure(&options)?;
                let mut done = done.lock().map_err(|_| "a thread has panicked")?;
                done.insert(run, object(&options, &measured));
                eprintln!("measured {} of {total}: {run}", done.len());
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..args.jobs).map(|_| scope.spawn(work)).collect();
        jobs.into_iter().try_for_each(|job| job.join().map_err(|_| "a thread has panicked")?)
    })?;
    Ok(done.into_inner().map_err(|_| "a thread has panicked")?)
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shape { scale, page, record, .. } = self.shape;
        let (store, leaves, page) = (self.series(), scale.leaves(), page / 1024);
        write!(
            f,
            "{store}, records of {record} B, pages of {page} KiB, {leaves} leaves a frame, threads: {}",
            self.threads
        )
    }
}

/// What `writes` prints, the operations a second of the modelled drive with a call of each thread at a time, and space
/// for each byte of records.
fn object(options: &writes::Args, measured: &Measured) -> Value {
    let mut object = report::object(options, measured);
    let tps = |work: &Work| work.operations as f64 / DeviceModel::COMPRESSING.seconds(&work.counts, options.threads);
    let (overwrites, reads, scans) = (&measured.overwrites, &measured.reads, &measured.scans);
    object["device_tps"] = json!({"overwrites": tps(overwrites), "reads": tps(reads), "scans": tps(scans)});
    let records = (options.records * options.record_size as usize) as f64;
    let (logical, physical) = (measured.file_bytes as f64 / records, measured.stored_bytes as f64 / records);
    object["space"] = json!({"logical": logical, "physical": physical});
    object
}

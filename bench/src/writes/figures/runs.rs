//! The runs that the figures need.

use super::Args;
use super::peers::Peer;
use crate::numbers::index;
use crate::writes::{self, DiskKind, Flush, Format, Log};
use bytesize::ByteSize;
use duramen::db::{DeltaBlocks, StoreKind};
use std::fmt;
use std::time::Duration;

/// The number of pages of the cache.
const FRAMES: u64 = 64;

/// The number of leaves for each page of the cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Scale {
    /// 33, as with 500 GB and a cache of 15 GB in the paper.
    Near,
    /// 150, as with 150 GB and a cache of 1 GB in the paper.
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

/// A page store and its options.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Store {
    /// The store `table`, which writes its page table at checkpoints.
    Table,
    /// The store `table` with `--persist-table`: the paper's baseline.
    Baseline,
    /// The store `shadow` without delta blocks.
    Whole,
    /// The store `shadow` with delta blocks: threshold, bytes of a segment, number of blocks.
    Delta(u16, u16, u8),
    /// Another store, measured by another program.
    Peer(Peer),
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Store::Table => f.write_str("table"),
            Store::Baseline => f.write_str("baseline"),
            Store::Whole => f.write_str("shadow"),
            Store::Delta(threshold, segment, blocks) => write!(f, "delta {threshold},{segment},{blocks}"),
            Store::Peer(peer) => write!(f, "{peer}"),
        }
    }
}

/// The time of log flushes, and the shape of the log.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Logging {
    /// A flush each minute, packed.
    Minute,
    /// A flush with each commit, packed.
    Packed,
    /// A flush with each commit, sparse.
    Sparse,
}

impl Logging {
    pub(super) fn flush(self) -> &'static str {
        if self == Logging::Minute { "each minute" } else { "each commit" }
    }

    pub(super) fn shape(self) -> &'static str {
        if self == Logging::Sparse { "sparse" } else { "packed" }
    }
}

/// The parameters of a populated database, which several runs share.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Population {
    pub(super) scale: Scale,
    pub(super) page: u64,
    pub(super) record: u32,
    pub(super) store: Store,
}

impl Population {
    pub(super) fn leaves(&self) -> u64 {
        self.scale.leaves() * FRAMES
    }

    /// Returns the number of records. They fill about three quarters of a leaf.
    pub(super) fn records(&self) -> u64 {
        self.leaves() * self.page * 3 / 4 / u64::from(self.record)
    }
}

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Run {
    pub(super) population: Population,
    pub(super) logging: Logging,
    pub(super) threads: u32,
}

impl Run {
    /// Returns the run for the paper's 150 GB with records of 128 bytes, pages of 8 KiB and one thread.
    pub(super) fn far(store: Store) -> Run {
        let population = Population { scale: Scale::Far, page: 8192, record: 128, store };
        Run { population, logging: Logging::Minute, threads: 1 }
    }

    /// Returns the same run for the paper's 500 GB.
    pub(super) fn near(store: Store) -> Run {
        let run = Run::far(store);
        Run { population: Population { scale: Scale::Near, ..run.population }, ..run }
    }

    pub(super) fn record(self, record: u32) -> Run {
        Run { population: Population { record, ..self.population }, ..self }
    }

    pub(super) fn page(self, page: u64) -> Run {
        Run { population: Population { page, ..self.population }, ..self }
    }

    pub(super) fn threads(self, threads: u32) -> Run {
        Run { threads, ..self }
    }

    pub(super) fn logging(self, logging: Logging) -> Run {
        Run { logging, ..self }
    }

    /// Returns the options of the benchmark; `None` for another store.
    pub(super) fn options(&self, args: &Args) -> Option<writes::Args> {
        let Population { page, record, store, .. } = self.population;
        let (store, persist_table, delta) = match store {
            Store::Table => (StoreKind::Table, false, DeltaBlocks::OFF),
            Store::Baseline => (StoreKind::Table, true, DeltaBlocks::OFF),
            Store::Whole => (StoreKind::Shadow, false, DeltaBlocks::OFF),
            Store::Delta(threshold, segment, blocks) => {
                (StoreKind::Shadow, false, DeltaBlocks { threshold, segment, blocks })
            }
            Store::Peer(_) => return None,
        };
        let (flush, log) = match self.logging {
            Logging::Minute => (Flush::Interval(Duration::from_secs(60)), Log::Packed),
            Logging::Packed => (Flush::Commit, Log::Packed),
            Logging::Sparse => (Flush::Commit, Log::Sparse),
        };
        Some(writes::Args {
            records: if args.quick { 3000 } else { index(self.population.records()) },
            record_size: record,
            varied: false,
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
        })
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Population { scale, page, record, store } = self.population;
        let (leaves, page, flush) = (scale.leaves(), page / 1024, self.logging.flush());
        write!(f, "{store}, records of {record} B, pages of {page} KiB, {leaves} leaves for each page of the cache, ")?;
        write!(f, "log flushed {flush}, threads: {}", self.threads)
    }
}

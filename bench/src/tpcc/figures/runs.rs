//! The runs that the figures need.

use super::Args;
use crate::numbers::short;
use crate::tpcc::columns::Encoding;
use crate::tpcc::{self, Device, DiskKind, Format, Mix};
use duramen::db::{Compression, Overflow, Strategy, Target};
use std::fmt;

/// A strategy with its compression.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Method {
    /// *N*: no compression.
    None,
    /// *A*: all tables, as InnoDB compresses them. A page that misses its target is split.
    All,
    /// *S*: the tables that the selective strategy chooses.
    Selective,
    /// *A* with a target of a quarter of a page.
    Small,
    /// *A*, but a page that misses its target keeps a place of its whole length.
    Spill,
    /// The same with LZ4.
    Lz4,
    /// *A* with Zstandard, each page in a place that fits it.
    Fit,
}

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Run {
    pub(super) is_lean: bool,
    pub(super) reads: bool,
    pub(super) method: Method,
}

impl Run {
    /// The standard mix with rows of InnoDB's width.
    pub(super) const fn standard(method: Method) -> Run {
        Run { is_lean: false, reads: false, method }
    }

    /// The read-intensive mix.
    pub(super) fn reads(self) -> Run {
        Run { reads: true, ..self }
    }

    /// The engine's own rows, with Zstandard and places that fit.
    pub(super) fn lean(self) -> Run {
        Run { is_lean: true, ..self }
    }

    /// Returns the options of the benchmark.
    pub(super) fn options(&self, args: &Args, seed: u64) -> tpcc::Args {
        let page = short(tpcc::PAGE.0);
        let (half, quarter) = (Target::Bytes(page / 2), Target::Bytes(page / 4));
        let (strategy, compression, target, overflow) = match self.method {
            Method::None => (Strategy::None, Compression::Zlib(6), half, Overflow::Spill),
            Method::All => (Strategy::All, Compression::Zlib(6), half, Overflow::Split),
            Method::Selective => (Strategy::SELECTIVE, Compression::Zlib(6), half, Overflow::Spill),
            Method::Small => (Strategy::All, Compression::Zlib(6), quarter, Overflow::Split),
            Method::Spill => (Strategy::All, Compression::Zlib(6), half, Overflow::Spill),
            Method::Lz4 => (Strategy::All, Compression::Lz4, half, Overflow::Spill),
            Method::Fit => (Strategy::All, Compression::Zstd(3), Target::Fit, Overflow::Spill),
        };
        let (rows, compression, target) = match self.is_lean {
            true => (Encoding::Lean, Compression::Zstd(3), Target::Fit),
            false => (Encoding::Innodb, compression, target),
        };
        let (warehouses, seconds, warmup, scale) = match args.quick {
            true => (2, 1, 0, 50),
            false => (args.warehouses, args.seconds, args.warmup, 1),
        };
        tpcc::Args {
            warehouses,
            mix: if self.reads { Mix::Read } else { Mix::Standard },
            connections: tpcc::CONNECTIONS,
            terminals: tpcc::TERMINALS,
            seconds,
            warmup,
            cache: None,
            page_size: tpcc::PAGE,
            strategy,
            compress: Some(compression),
            target: Some(target),
            overflow,
            rows,
            disk: DiskKind::Metered,
            dir: None,
            device: Device::SataSsd,
            queue_depth: tpcc::QUEUE_DEPTH,
            processors: tpcc::PROCESSORS,
            seed,
            format: Format::Json,
            scale,
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = match self.method {
            Method::None => "none",
            Method::All => "all",
            Method::Selective => "selective",
            Method::Small => "all, 4 KiB",
            Method::Spill => "all, spill",
            Method::Lz4 => "all, LZ4, spill",
            Method::Fit => "all, Zstandard, fit",
        };
        let (mix, rows) =
            (if self.reads { "read" } else { "standard" }, if self.is_lean { "lean" } else { "InnoDB's" });
        write!(f, "{method}, {mix} mix, {rows} rows")
    }
}

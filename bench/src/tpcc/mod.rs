//! `duramen-bench tpcc`: the TPC-C benchmark, for the strategies of page compression (paper on selective compression,
//! section 5). `docs/benchmarks/tpcc.md` explains the figures.

mod columns;
mod consistency;
mod data;
mod demand;
pub mod figures;
mod keys;
mod load;
mod report;
mod rows;
mod run;
mod schema;
mod terminals;
mod transactions;

use crate::Result;
use crate::numbers::short;
use crate::size;
use bytesize::ByteSize;
use clap::ValueEnum;
use columns::Encoding;
use demand::Machine;
use duramen::db::{Compression, Overflow, Strategy, Target};
use duramen_sim::DeviceModel;
use schema::{Scale, Storage};
use std::path::PathBuf;

/// The defaults of options.
const CONNECTIONS: u32 = 20;
const TERMINALS: u32 = 10;
const PAGE: ByteSize = ByteSize::kib(16);
const QUEUE_DEPTH: u32 = 32;
const PROCESSORS: u32 = 4;

/// Measures TPC-C with a strategy of page compression
#[derive(clap::Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct Args {
    /// Warehouses, of about 75 MB each
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    warehouses: u32,
    /// The mix of transactions
    #[arg(long, value_enum, default_value_t = Mix::Standard)]
    mix: Mix,
    /// Connections: threads that run transactions
    #[arg(long, default_value_t = CONNECTIONS, value_parser = clap::value_parser!(u32).range(1..=256))]
    connections: u32,
    /// Terminals of a warehouse, which wait for a connection
    #[arg(long, default_value_t = TERMINALS, value_parser = clap::value_parser!(u32).range(1..=10))]
    terminals: u32,
    /// Seconds that are measured; with `--disk metered` those of a virtual clock
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Seconds before that
    #[arg(long, default_value_t = 20)]
    warmup: u32,
    /// Bytes of cache [default: 1/45 of the data without compression, as in the paper]
    #[arg(long, value_name = "BYTES", value_parser = size::parse)]
    cache: Option<ByteSize>,
    /// Bytes of a page
    #[arg(long, default_value_t = PAGE, value_name = "BYTES", value_parser = size::parse)]
    page_size: ByteSize,
    /// Which tables are compressed: none, all, selective[:DELTA][:strict]
    #[arg(long, default_value_t = Strategy::SELECTIVE)]
    strategy: Strategy,
    /// How: lz4, zstd[:LEVEL], zlib[:LEVEL] [default: zlib for rows of InnoDB, else zstd]
    #[arg(long)]
    compress: Option<Compression>,
    /// The length of the places of compressed pages: fit, 4K, 8K [default: 8K for rows of InnoDB, else fit]
    #[arg(long)]
    target: Option<Target>,
    /// What happens to pages that miss it: spill or split
    #[arg(long, default_value_t = Overflow::Spill)]
    overflow: Overflow,
    /// The encoding of rows and keys
    #[arg(long, value_enum, default_value_t = Encoding::Lean)]
    rows: Encoding,
    /// Where the file is
    #[arg(long, value_enum, default_value_t = DiskKind::Metered)]
    disk: DiskKind,
    /// The folder under which the file is made [default: the current one]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The device whose time is computed
    #[arg(long, value_enum, default_value_t = Device::SataSsd)]
    device: Device,
    /// Calls that wait for the device at the same time
    #[arg(long, default_value_t = QUEUE_DEPTH, value_parser = clap::value_parser!(u32).range(1..))]
    queue_depth: u32,
    /// Processors of the virtual clock: the paper's machine has four
    #[arg(long, default_value_t = PROCESSORS, value_parser = clap::value_parser!(u32).range(1..))]
    processors: u32,
    /// Where random numbers begin
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Divides the customers, orders and items, for tests
    #[arg(long, default_value_t = 1, hide = true)]
    scale: u32,
}

/// A mix of transactions: table 1 of the paper.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Mix {
    /// That of the specification, which mostly writes.
    Standard,
    /// One that mostly reads.
    Read,
}

/// The place of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DiskKind {
    /// In memory. The calls are counted, and the time of the device is computed.
    Metered,
    /// In a folder of this machine.
    File,
}

/// A device.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Device {
    /// The solid-state drive of the paper.
    SataSsd,
    /// The hard disk of the paper.
    HardDisk,
    /// A solid-state drive on PCIe.
    NvmeSsd,
    /// A drive that compresses.
    Compressing,
}

impl Device {
    fn model(self) -> DeviceModel {
        match self {
            Device::SataSsd => DeviceModel::SATA_SSD,
            Device::HardDisk => DeviceModel::HARD_DISK,
            Device::NvmeSsd => DeviceModel::NVME_SSD,
            Device::Compressing => DeviceModel::COMPRESSING,
        }
    }
}

/// How a result is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// One object, for programs.
    Json,
}

impl Args {
    fn scale(&self) -> Scale {
        Scale::divided(self.scale.max(1))
    }

    /// The machine of the virtual clock.
    fn machine(&self) -> Machine {
        Machine { device: self.device.model(), queue_depth: self.queue_depth, processors: self.processors }
    }

    fn storage(&self) -> Storage {
        let (compression, target) = match self.rows {
            Encoding::Innodb => (Compression::Zlib(6), Target::Bytes(short(self.page_size.0) / 2)),
            Encoding::Lean => (Compression::Zstd(3), Target::Fit),
        };
        Storage {
            encoding: self.rows,
            strategy: self.strategy,
            compression: self.compress.unwrap_or(compression),
            target: self.target.unwrap_or(target),
            overflow: self.overflow,
        }
    }
}

/// Runs the benchmark.
///
/// # Errors
/// Errors of the engine, and a consistency condition that does not hold.
pub fn run(args: &Args) -> Result<()> {
    let measured = run::measure(args)?;
    report::print(args, &measured)
}

#[cfg(test)]
mod tests {
    use super::data::Population;
    use super::load::Loader;
    use super::transactions::{Shop, Terminal, TransactionKind};
    use super::*;
    use crate::random::Random;
    use clap::Parser;
    use duramen::Database;
    use std::collections::HashSet;
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    fn args(options: &[&str]) -> Args {
        let options = std::iter::once("").chain(options.iter().copied());
        Program::try_parse_from(options).unwrap_or_else(|error| panic!("{error}")).args
    }

    /// A small database in memory.
    pub(super) fn small_shop(warehouses: u32) -> Shop {
        let args = args(&["--scale", "100"]);
        let storage = args.storage();
        let population = Population { seed: 1, scale: args.scale() };
        let loader = Loader { population, warehouses, storage: &storage, compressed: HashSet::new() };
        let volume = Arc::new(duramen::io::MemoryVolume::new());
        let db = Database::builder().background(false).create_on(volume, "tpcc").unwrap();
        loader.load(&db, |_| ()).unwrap();
        let (writers, serial) = (AtomicU64::new(0), AtomicU64::new(0));
        Shop { db, encoding: args.rows, scale: population.scale, warehouses, reads_before: true, writers, serial }
    }

    #[test]
    fn the_conditions_hold_at_first_and_after_many_transactions() {
        let shop = small_shop(2);
        consistency::check(&shop).unwrap();
        let mut random = Random::new(9);
        let mut rolled_back = 0;
        for number in 0..3000 {
            let terminal = Terminal { warehouse: number % 2 + 1, district: number % 10 + 1 };
            let kind = TransactionKind::ALL[random.below(5)];
            rolled_back += u32::from(shop.run(kind, terminal, &mut random).unwrap().rolled_back);
        }
        consistency::check(&shop).unwrap();
        assert!(rolled_back > 0);
    }

    #[test]
    fn a_run_measures_every_strategy_and_its_savings_are_exact() {
        let few = ["--scale", "50", "--warehouses", "2", "--seconds", "1", "--warmup", "0", "--connections", "4"];
        let object = |more: &[&str]| {
            let args = args(&[&few[..], more].concat());
            report::object(&args, &run::measure(&args).unwrap_or_else(|error| panic!("{error}")))
        };
        for rows in ["lean", "innodb"] {
            let none = object(&["--rows", rows, "--strategy", "none"]);
            assert!(none["tpm"].as_f64().is_some_and(|tpm| tpm > 100.0), "{none}");
            assert!(none["saved"].as_f64().is_some_and(|saved| saved.abs() < 0.25), "{none}");
            assert_eq!(none["work"]["compressed_pages"], 0);
            for of in ["read", "write"] {
                let [calls, seeks] = ["calls", "seeks"].map(|what| none["work"][format!("{of}_{what}")].as_u64());
                assert!(seeks > Some(0) && seeks <= calls, "{of}: {none}");
            }
            let (devices, payment) = (&none["devices"], &none["kinds"]["payment"]);
            assert!(devices["sata-ssd"]["tpm"].as_f64() > devices["hard-disk"]["tpm"].as_f64(), "{none}");
            assert!(payment["lock_wait_ms"].is_number() && payment["p99_ms"].as_f64() > Some(0.01), "{none}");
            let all = object(&["--rows", rows, "--strategy", "all", "--target", "fit", "--mix", "read"]);
            assert!(all["saved"].as_f64().is_some_and(|saved| saved > 0.1), "{all}");
            assert!(all["work"]["decompressed_pages"].as_u64().is_some_and(|pages| pages > 0), "{all}");
        }
    }

    #[test]
    fn a_run_on_files_takes_the_time_of_this_machine() {
        let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
        let dir = folder.path().to_str().unwrap_or_default();
        let few = ["--scale", "50", "--warehouses", "1", "--seconds", "3", "--warmup", "0", "--connections", "4"];
        let args = args(&[&few[..], &["--disk", "file", "--dir", dir]].concat());
        let measured = run::measure(&args).unwrap_or_else(|error| panic!("{error}"));
        let object = report::object(&args, &measured);
        assert!(object["tpm"].as_f64() > Some(0.0), "{object}");
        assert_eq!(object["bottleneck"], "this machine");
        let work = &object["work"];
        assert!(work["seconds"] == work["wall_seconds"] && work["seconds"].as_f64() >= Some(3.0), "{object}");
        let left = std::fs::read_dir(folder.path()).unwrap_or_else(|error| panic!("{error}")).count();
        assert_eq!(left, 0, "the files are not removed");
    }
}

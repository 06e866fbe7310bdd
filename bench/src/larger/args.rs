//! The options of the workload `larger`.

use crate::contest::{Config, DiskKind, Durability, Format};
use crate::size;
use bytesize::ByteSize;
use clap::ValueEnum;
use duramen::db::Compression;
use std::path::PathBuf;

/// Bytes of a key.
pub(super) const KEY: usize = 8;

/// Loads, overwrites, reads and scans records that do not fit the cache; and measures each.
#[derive(clap::Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct Args {
    /// How many records
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..))]
    pub records: u32,
    /// Bytes of a record: 8 are its key, half of the others are zeros, and the rest is random
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(9..=1024))]
    pub record_size: u32,
    /// Bytes of cache
    #[arg(long, default_value = "32MiB", value_name = "BYTES", value_parser = size::parse)]
    pub cache: ByteSize,
    /// Bytes of a page of Duramen, such as 8KiB [default: its own]
    #[arg(long, value_name = "BYTES", value_parser = size::parse)]
    pub page_size: Option<ByteSize>,
    /// Read and write pages with direct I/O, without the file cache of the system: Duramen, RocksDB and WiredTiger. The
    /// other stores have no such option
    #[arg(long)]
    pub direct_io: bool,
    /// How Duramen compresses its pages: none, lz4, zstd or zlib, the latter two with a level such as zstd:9
    #[arg(long, default_value_t = Compression::None, value_name = "METHOD")]
    pub compress: Compression,
    /// Records in a commit while loading
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub commit: u32,
    /// Overwrites [default: half as many as records]
    #[arg(long)]
    pub overwrites: Option<u32>,
    /// Synced commits of one overwrite
    #[arg(long, default_value_t = 20_000)]
    pub synced: u32,
    /// Threads of the step `threads`
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub threads: u32,
    /// The stores, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub engines: Vec<String>,
    /// What to measure besides the load, separated by commas
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Step::ALL)]
    pub steps: Vec<Step>,
    /// Rounds. Each measures every store once; the results are medians
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// The folder in which files are created, and removed afterwards
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
    /// The seed of keys and orders
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The format of the result
    #[arg(long, default_value = "table")]
    pub format: Format,
    /// The folder for the figures
    #[arg(long, value_name = "FOLDER")]
    pub svg: Option<PathBuf>,
    /// Run only this store, in this process
    #[arg(long, value_name = "NAME", hide = true)]
    pub only: Option<String>,
}

impl Args {
    /// The options of a store with these bytes of cache.
    pub(super) fn config(&self, cache: usize, durability: Durability) -> Config {
        Config {
            cache,
            page_size: self.page_size.map(size::length),
            durability,
            disk: DiskKind::File,
            key_width: Some(KEY),
            value_width: self.record_size as usize - KEY,
            compression: self.compress,
            direct_io: self.direct_io,
        }
    }

    /// Bytes of cache in which everything has room.
    pub(super) fn all_cached(&self) -> usize {
        4 * self.records as usize * self.record_size as usize + (64 << 20)
    }
}

/// A part of the workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Step {
    /// Overwrites at random, each a commit that is not synced.
    Overwrite,
    /// Reads at random by one thread.
    Read,
    /// Scans all records.
    Scan,
    /// Reads at random by several threads.
    Threads,
    /// Reads at random by one thread, beside one that overwrites.
    Beside,
    /// Scans all records when no file is in the cache of the system.
    Cold,
    /// Reads and scans with everything in the cache of the store.
    Cached,
    /// Overwrites at random, each a commit that is synced, with everything in the cache.
    Synced,
}

impl Step {
    const ALL: [Step; 8] =
        [Step::Overwrite, Step::Read, Step::Scan, Step::Threads, Step::Beside, Step::Cold, Step::Cached, Step::Synced];
}

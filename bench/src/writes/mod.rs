//! `duramen-bench writes`: write amplification under random overwrites (B-minus-tree paper, section 4).
//! `docs/benchmarks/writes.md` explains the numbers.

mod data;
pub mod figures;
mod report;
mod run;

use crate::Result;
use crate::size;
use bytesize::ByteSize;
use clap::ValueEnum;
use duramen::db::{DeltaBlocks, StoreKind};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Measures the bytes that random overwrites write to a drive that compresses, by kind
#[derive(clap::Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct Args {
    /// The number of records
    #[arg(long, default_value_t = 460_800)]
    records: usize,
    /// Bytes of a record, including the 8 bytes of its key
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(12..=1024))]
    record_size: u32,
    /// Give a value a new length with each overwrite, between half of its bytes and all of them
    #[arg(long)]
    varied: bool,
    /// Bytes of a page, such as 8KiB
    #[arg(long, default_value = "8KiB", value_name = "BYTES", value_parser = size::parse)]
    page_size: ByteSize,
    /// Bytes of cache; there are at least 64 pages
    #[arg(long, default_value = "512KiB", value_name = "BYTES", value_parser = size::parse)]
    cache: ByteSize,
    /// Threads that overwrite, read and scan
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    threads: u32,
    /// The page store
    #[arg(long, default_value_t = StoreKind::Table, value_name = "STORE")]
    store: StoreKind,
    /// Write the page table of `table` after each flush of pages, not only at checkpoints
    #[arg(long)]
    persist_table: bool,
    /// Delta blocks of the store `shadow`: THRESHOLD,SEGMENT,BLOCKS or off
    #[arg(long, default_value_t = DeltaBlocks::default())]
    delta: DeltaBlocks,
    /// The layout of the log
    #[arg(long, value_enum, default_value_t = Log::Packed)]
    log: Log,
    /// When the log is flushed: commit, interval:SECONDSs, or none
    #[arg(long, default_value = "interval:60s")]
    flush: Flush,
    /// Where the drive keeps its contents; both kinds count the bytes written
    #[arg(long, value_enum, default_value_t = DiskKind::Metered)]
    disk: DiskKind,
    /// The folder in which the file is created [default: the current folder]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The seed of random keys, values and orders
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The format of the result
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// The layout of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Log {
    /// Commits are adjacent.
    Packed,
    /// Each flush begins a new block.
    Sparse,
}

/// The place of the drive's contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum DiskKind {
    /// In memory.
    Metered,
    /// In a file.
    File,
}

/// The format of a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Format {
    /// A table for people.
    Table,
    /// One JSON object for programs.
    Json,
}

/// The time of log flushes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flush {
    /// With each commit.
    Commit,
    /// At this interval.
    Interval(Duration),
    /// When pages are written.
    None,
}

impl FromStr for Flush {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Flush, String> {
        let seconds = text.strip_prefix("interval:").and_then(|time| time.strip_suffix('s')?.parse().ok());
        match (text, seconds) {
            ("commit", _) => Ok(Flush::Commit),
            ("none", _) => Ok(Flush::None),
            (_, Some(seconds @ 1..)) => Ok(Flush::Interval(Duration::from_secs(seconds))),
            _ => Err("it is not one of commit, interval:60s (any number of seconds), none".to_owned()),
        }
    }
}

impl std::fmt::Display for Flush {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Flush::Commit => f.write_str("commit"),
            Flush::Interval(time) => write!(f, "interval:{}s", time.as_secs()),
            Flush::None => f.write_str("none"),
        }
    }
}

/// Runs the benchmark.
///
/// # Errors
/// Errors of the engine, and an error for wrong results of the engine.
pub fn run(args: &Args) -> Result<()> {
    if args.records < 1000 {
        return Err("--records must be at least 1000".into());
    }
    let measured = run::measure(args)?;
    report::print(args, &measured)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    /// Parses options as a user types them.
    pub(super) fn args(options: &[&str]) -> Args {
        let options = std::iter::once("").chain(options.iter().copied());
        Program::try_parse_from(options).unwrap_or_else(|error| panic!("{error}")).args
    }

    #[test]
    fn flushes_are_read_as_they_are_written_and_wrong_ones_refused() {
        for text in ["commit", "interval:60s", "none"] {
            assert_eq!(text.parse::<Flush>().map(|flush| flush.to_string()).as_deref(), Ok(text));
        }
        for wrong in ["", "interval", "interval:0s", "interval:1m", "interval:1"] {
            assert!(wrong.parse::<Flush>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_page_table_that_is_persisted_is_written_with_each_page() {
        let tables = [&[][..], &["--persist-table"]].map(|more| {
            // The pages are in several chunks, so that few of the pages that are written together share one.
            let args = args(&[&["--records", "3000", "--record-size", "1024", "--flush", "none"], more].concat());
            let measured = run::measure(&args).unwrap_or_else(|error| panic!("{error}"));
            let object = report::object(&args, &measured);
            let of = |kind: &str| object["wa_logical"][kind].as_f64().unwrap_or(f64::NAN);
            of("table") / of("page")
        });
        assert!(tables[0] < 0.05 && tables[1] > 0.2, "{tables:?}");
    }

    #[test]
    fn a_small_run_counts_every_kind_and_adds_them_up() {
        for store in ["table", "shadow"] {
            adds_up(store);
        }
        for unknown in [["", "--store", "slots"], ["", "--delta", "none"], ["", "--threads", "17"]] {
            assert!(Program::try_parse_from(unknown).is_err(), "{unknown:?}");
        }
    }

    fn adds_up(store: &str) {
        let few = ["--records", "4000", "--record-size", "64", "--flush", "commit", "--log", "sparse"];
        let args = args(&[&few[..], &["--threads", "2", "--store", store]].concat());
        let measured = run::measure(&args).unwrap_or_else(|error| panic!("{error}"));
        let object = report::object(&args, &measured);
        let number = |of: &str, kind: &str| object[of][kind].as_f64().unwrap_or(f64::NAN);
        for of in ["wa_physical", "wa_logical"] {
            let sum: f64 = ["log", "page", "delta", "table", "superblock"].map(|kind| number(of, kind)).iter().sum();
            assert!((sum - number(of, "total")).abs() < 1e-9, "{object}");
            assert!(number(of, "log") > 0.5 && number(of, "page") > 0.0, "{object}");
        }
        assert!(number("wa_physical", "total") < number("wa_logical", "total"), "{object}");
        assert!((0.01..1.0).contains(&number("alpha", "log")), "{object}");
    }
}

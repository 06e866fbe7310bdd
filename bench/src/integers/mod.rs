//! `duramen-bench integers`: tables of integer keys inside the engine, for each codec (Upscaledb paper, Table 2 and
//! figures 8 to 11). `docs/benchmarks/integers.md` explains the results.

mod data;
mod figure;
mod layout;
mod measure;
mod report;
mod simd;
mod store;

pub use data::Data;
pub use layout::{BlockSize, Layout};
pub use measure::Operation;

use crate::Result;
use crate::options::{Format, KeyType, make_folder};
use crate::size;
use bytesize::ByteSize;
use clap::ValueEnum;
use std::path::PathBuf;

/// The order in which keys are inserted into a table that is then read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Fill {
    /// Keys in order: pages and blocks are full.
    InOrder,
    /// Keys at random: they are between half full and full.
    Random,
}

/// Measures tables of integer keys in memory, codec by codec, beside a sorted `Vec` and a `BTreeMap`, in alternation
#[derive(clap::Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct Args {
    /// Keys: cluster (Anh and Moffat's ClusterData), uniform, dense, timestamps, or file:PATH of little-endian u32
    #[arg(long, default_value = "cluster")]
    data: Data,
    /// The number of keys. Several numbers are measured one after the other.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000_000])]
    n: Vec<usize>,
    /// Codecs to measure. Also `fixed` and `head`, lists of whole keys.
    #[arg(long, value_delimiter = ',', default_values_t = Layout::codecs())]
    codecs: Vec<Layout>,
    /// The order in which the tables that are read are filled.
    #[arg(long, value_enum, default_value_t = Fill::InOrder)]
    fill: Fill,
    /// The maximum number of keys of a block. Both are measured in the same rounds. Blocks of BP128 always have 128.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [BlockSize::Keys256])]
    block: Vec<BlockSize>,
    /// What to time.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Operation::all())]
    operations: Vec<Operation>,
    /// The key type of the tables. The keys are the same.
    #[arg(long, value_enum, default_value_t = KeyType::U32)]
    keys: KeyType,
    /// Bytes of a page, such as 4KiB
    #[arg(long, default_value = "16KiB", value_name = "BYTES", value_parser = size::parse)]
    page_size: ByteSize,
    /// The number of point lookups of a round.
    #[arg(long, default_value_t = 1_000_000)]
    lookups: usize,
    /// The number of keys inserted in a round: the first keys of the set.
    #[arg(long, default_value_t = 1_000_000)]
    inserts: usize,
    /// Entries in a commit.
    #[arg(long, default_value_t = 1_000)]
    commit: usize,
    /// Rounds. Each measures everything once, and the medians are shown.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seed of keys and orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How to print.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Also writes the figures as SVG into this directory.
    #[arg(long)]
    svg: Option<PathBuf>,
}

impl Args {
    fn page_bytes(&self) -> usize {
        size::length(self.page_size)
    }

    /// The layouts to measure: each codec in blocks of each size.
    fn layouts(&self) -> impl Iterator<Item = Layout> {
        self.codecs.iter().flat_map(|codec| codec.in_blocks_of(&self.block))
    }

    /// True if the `BTreeMap` of all keys is needed: it is only used for lookups.
    fn wants_map(&self) -> bool {
        self.operations.iter().any(|one| matches!(one, Operation::LookupInOrder | Operation::LookupRandom))
    }

    /// Fails if the options cannot be measured.
    fn check(&self) -> Result<()> {
        let numbers = [
            ("--n", self.n.iter().copied().min().unwrap_or(0)),
            ("--lookups", self.lookups),
            ("--inserts", self.inserts),
            ("--commit", self.commit),
            ("--rounds", self.rounds),
            ("--codecs", self.codecs.len()),
            ("--block", self.block.len()),
        ];
        match numbers.into_iter().find(|(_, number)| *number == 0) {
            Some((option, _)) => Err(format!("{option} must be at least 1").into()),
            None => Ok(()),
        }
    }
}

/// Measures the tables, prints the results and draws the figures.
///
/// # Errors
/// Wrong options, errors of reading keys, errors of the engine, and wrong answers.
pub fn run(args: &Args) -> Result<()> {
    args.check()?;
    args.svg.as_deref().map_or(Ok(()), make_folder)?;
    let mut rows = Vec::new();
    for &n in &args.n {
        rows.extend(measure::all(args, n)?);
    }
    match args.format {
        Format::Table => println!("{}", report::table(args, &rows)),
        Format::Json => println!("{}", report::json(args, &rows)?),
        Format::Csv => report::csv(args, &rows, std::io::stdout().lock())?,
    }
    if let Some(dir) = &args.svg {
        figure::write_all(&rows, dir)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use serde_json::Value;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    fn args(options: &str) -> Args {
        let words = std::iter::once("integers").chain(options.split_whitespace());
        Program::try_parse_from(words).expect("sound options").args
    }

    #[test]
    fn every_codec_gives_an_object_with_a_figure_for_each_operation() {
        for keys in ["u32", "u64"] {
            let args = args(&format!("--n 3000,9000 --lookups 500 --inserts 2500 --rounds 1 --keys {keys}"));
            let mut rows = Vec::new();
            for &n in &args.n {
                rows.extend(measure::all(&args, n).expect("right answers"));
            }
            assert_eq!(rows.len(), 16);
            let objects: Vec<Value> = serde_json::from_str(&report::json(&args, &rows).expect("text")).expect("JSON");
            for (object, row) in objects.iter().zip(&rows) {
                assert_eq!(object["codec"], row.layout.name());
                assert_eq!(
                    (object["keys"].as_u64(), object["count"].as_u64()),
                    (Some(row.keys as u64), Some(row.count))
                );
                assert_eq!(object["sum"].as_u64().map(u128::from), Some(row.sum));
                for operation in Operation::all() {
                    assert!(object[operation.field()].as_f64().is_some_and(|time| time > 0.0), "{operation:?}");
                }
                assert!(object["sum_to_vec"].is_f64() && object["insert_random_speed_to_btreemap"].is_f64());
            }
            let mut csv = Vec::new();
            report::csv(&args, &rows, &mut csv).expect("writes");
            assert_eq!(String::from_utf8(csv).expect("text").lines().count(), rows.len() + 1);
            assert!(report::table(&args, &rows).contains("BTreeMap"));
        }
    }

    #[test]
    fn figures_are_drawn_of_what_was_measured() {
        let args = args("--n 5000 --rounds 1 --operations sum --codecs plain,bp128,fixed,head --data dense");
        let rows = measure::all(&args, 5000).expect("right answers");
        let folder = tempfile::tempdir().expect("a folder");
        figure::write_all(&rows, folder.path()).expect("writes");
        let mut files: Vec<_> = std::fs::read_dir(folder.path())
            .expect("a folder")
            .map(|file| file.expect("a file").file_name().into_string().expect("text"))
            .collect();
        files.sort();
        assert_eq!(files, ["integers-size.svg", "integers-sum.svg"]);
        let [plain, bp128, fixed, _] = &rows[..] else { panic!("four layouts") };
        // One page, compared with two pages and a root.
        assert!(bp128.bytes_per_key * 2.0 < plain.bytes_per_key && fixed.layout.block() == 0);
    }

    #[test]
    fn tables_filled_at_random_are_larger_with_the_same_keys() {
        let bytes = |fill: &str| {
            let args = args(&format!("--n 40000 --rounds 1 --operations sum --codecs plain --fill {fill}"));
            measure::all(&args, 40_000).expect("right answers")[0].bytes_per_key
        };
        assert!(bytes("random") > bytes("in-order") * 1.1);
    }

    #[test]
    fn blocks_of_both_sizes_are_measured_beside_each_other() {
        let args = args("--n 5000 --rounds 1 --operations sum --codecs plain,simd-for,bp128 --block 256,128");
        let rows = measure::all(&args, 5000).expect("right answers");
        let objects: Vec<Value> = serde_json::from_str(&report::json(&args, &rows).expect("text")).expect("JSON");
        let column = |name: &str| objects.iter().map(|object| object[name].clone()).collect::<Vec<_>>();
        assert_eq!(column("codec"), ["plain", "plain", "simd-for", "simd-for", "bp128"]);
        assert_eq!(column("block"), [256, 128, 256, 128, 128]);
        assert!(report::table(&args, &rows).contains("simd-for:128"));
    }

    #[test]
    fn options_that_cannot_be_measured_are_refused() {
        for options in ["--n 0", "--rounds 0", "--commit 0"] {
            assert!(args(options).check().is_err(), "{options}");
        }
    }
}

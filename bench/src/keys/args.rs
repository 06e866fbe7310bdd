//! The options of the workload over key lists, and the layouts that it measures. The engine defines the layouts: an
//! unknown name is an error.

use super::data::Data;
use crate::Result;
use crate::options::Format;
use crate::size;
use bytesize::ByteSize;
use clap::ValueEnum;
use duramen::TableOptions;
use duramen::db::Compression;
use duramen::db::types::{KeyLayout, Separators};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Loads, searches, scans and deletes byte keys with every given layout and with the standard library's `BTreeMap`, in
/// alternation
#[derive(clap::Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct Args {
    /// Keys: uniform:n=..,len=32,domain=10, normal:n=..,scale=.., words:n=.., urls:n=.., emails:n=.., uuids:n=..,
    /// tuples:n=.., integers:n=.. (8 bytes), file:PATH (its lines), paths:DIR or names:DIR (of the files under it), or
    /// tpch:sf=.. (LINEITEM rows)
    #[arg(long, default_value = "uniform:n=2000000,len=32,domain=10")]
    pub data: Data,
    /// Use at most this number of keys of the data
    #[arg(long)]
    pub n: Option<usize>,
    /// Bytes of a page, such as 512 or 4KiB [default: 512 in memory, 4 KiB elsewhere]
    #[arg(long, value_name = "BYTES", value_parser = size::parse)]
    pub page_size: Option<ByteSize>,
    /// `all` (the paper's eight), or a list such as head/tail,plain/full
    #[arg(long, default_value = "all")]
    pub layouts: Layouts,
    /// Where the databases are: `metered` is a disk in memory that counts what is read and written
    #[arg(long, default_value = "memory")]
    pub disk: DiskKind,
    /// Bytes of cache of each database, such as 64MiB [default: more than the data]
    #[arg(long, value_name = "BYTES", value_parser = size::parse)]
    pub cache: Option<ByteSize>,
    /// How pages are compressed on the disk: none, lz4, zstd, zlib; the last two may have a level, as in zstd:9
    #[arg(long, default_value_t = Compression::None)]
    pub compress: Compression,
    /// For databases on a disk, whether inner pages are `cached` like leaves, or `resident` in the cache as long as a
    /// leaf can be evicted instead, as in the paper
    #[arg(long, default_value = "cached")]
    pub inner: Inner,
    /// Entries that a scan reads. Several numbers are measured one after the other
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100])]
    pub range: Vec<usize>,
    /// Bytes of a value, 0 for none. Several numbers are measured in the same rounds
    #[arg(long, value_delimiter = ',', default_values_t = [0])]
    pub values: Vec<usize>,
    /// Entries in a commit
    #[arg(long, default_value_t = 1_000)]
    pub commit: usize,
    /// Rounds. The medians are reported
    #[arg(long, default_value_t = 1)]
    pub repeat: usize,
    /// The folder in which files are created [default: the current one]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// The seed of random keys and orders
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// The format of the result
    #[arg(long, default_value = "table")]
    pub format: Format,
}

impl Args {
    /// Fails if the options cannot be measured.
    pub(super) fn check(&self) -> Result<()> {
        let positive = [("--repeat", self.repeat), ("--commit", self.commit), ("--n", self.n.unwrap_or(1))];
        if let Some((option, _)) = positive.into_iter().find(|(_, value)| *value == 0) {
            return Err(format!("{option} must be at least 1").into());
        }
        if self.range.contains(&0) || self.range.is_empty() {
            return Err("--range must be at least 1".into());
        }
        if self.disk == DiskKind::Memory && self.compress != Compression::None {
            return Err("--compress needs --disk file or metered: pages in memory are not compressed".into());
        }
        if self.values.is_empty() {
            return Err("--values must have at least one width".into());
        }
        Ok(())
    }

    /// Bytes of a page of each database.
    pub(super) fn page_bytes(&self) -> usize {
        let default = if self.disk == DiskKind::Memory { 512 } else { 4096 };
        self.page_size.map_or(default, size::length)
    }
}

/// The place of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DiskKind {
    /// In memory, without a log.
    Memory,
    /// In a file, with a log.
    File,
    /// On a disk in memory that counts bytes, with a log.
    Metered,
}

/// The pages that are evicted first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Inner {
    /// Pages that were not used for long, inner pages and leaves.
    Cached,
    /// Leaves first.
    Resident,
}

/// A key list and a separator rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    keys: KeyLayout,
    separators: Separators,
}

impl Layout {
    /// The name of the key list.
    pub fn keys(self) -> String {
        self.keys.to_string()
    }

    /// The name of the separator rule.
    pub fn separators(self) -> String {
        self.separators.to_string()
    }

    /// The options of a table with this layout.
    pub(super) fn options(self) -> TableOptions {
        TableOptions { keys: Some(self.keys), separators: Some(self.separators), ..TableOptions::default() }
    }

    /// True if all keys must have one length.
    pub(super) fn is_fixed(self) -> bool {
        self.keys == KeyLayout::Fixed
    }
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}/{}", self.keys, self.separators))
    }
}

impl FromStr for Layout {
    type Err = String;

    /// A key list without a separator rule means the combination in the paper.
    fn from_str(text: &str) -> std::result::Result<Layout, String> {
        let (keys, separators) = match text.split_once('/') {
            Some(pair) => pair,
            None => (text, if text.starts_with("wiredtiger") { "tail" } else { "full" }),
        };
        let why = |cause: duramen::Error| cause.to_string();
        Ok(Layout { keys: keys.parse().map_err(why)?, separators: separators.parse().map_err(why)? })
    }
}

/// The paper's eight techniques.
const PAPER: [&str; 8] =
    ["plain/full", "head/full", "plain/tail", "head/tail", "db2/full", "wiredtiger/tail", "myisam/full", "pkb/full"];

/// The layouts of a run, each once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layouts(pub Vec<Layout>);

impl FromStr for Layouts {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Layouts, String> {
        if text == "all" {
            return Ok(Layouts(PAPER.iter().map(|name| name.parse()).collect::<std::result::Result<_, _>>()?));
        }
        let mut layouts = Vec::new();
        for name in text.split(',') {
            let layout = name.trim().parse()?;
            if !layouts.contains(&layout) {
                layouts.push(layout);
            }
        }
        Ok(Layouts(layouts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.parse::<Layouts>().expect("layouts").0.iter().map(Layout::to_string).collect()
    }

    #[test]
    fn layouts_are_named_in_pairs_without_repetition() {
        assert_eq!(names("head/tail, plain,head/tail"), ["head/tail", "plain/full"]);
        assert_eq!(names("all"), PAPER);
        for wrong in ["", "head/", "heads/tail", "head/tails", "head/tail/full"] {
            assert!(wrong.parse::<Layouts>().is_err(), "{wrong}");
        }
    }
}

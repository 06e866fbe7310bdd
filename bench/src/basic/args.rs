//! The options of the basic workload.

use crate::Result;
use crate::contest::{Config, DiskKind, Durability, Format};
use crate::keyset::Keys;
use crate::size;
use bytesize::ByteSize;
use duramen::db::Compression;
use fastrand::Rng;
use std::path::PathBuf;
use std::str::FromStr;

/// The default number of entries. If the keys are from a file, all of its lines are used.
const ENTRIES: usize = 2_000_000;

/// Loads in random order, reads, scans, overwrites, deletes nine tenths, compacts; and measures each.
#[derive(clap::Args, Clone, Debug)]
#[command(args_override_self = true)]
pub struct Args {
    /// How many entries [default: 2000000; of a file: all lines]
    #[arg(long)]
    pub n: Option<usize>,
    /// Keys: uniform:len=32,domain=10 (length, and number of different bytes), file:PATH (its lines), or u64
    #[arg(long, default_value = "uniform:len=32,domain=10")]
    pub key: KeySource,
    /// Bytes of a value
    #[arg(long, value_name = "BYTES", default_value_t = 8)]
    pub value: usize,
    /// Bytes of cache, such as 64MiB [default: more than the data]
    #[arg(long, value_name = "BYTES", value_parser = size::parse)]
    pub cache: Option<ByteSize>,
    /// Bytes of a page, such as 8KiB [default: each store's own]
    #[arg(long, value_name = "BYTES", value_parser = size::parse)]
    pub page_size: Option<ByteSize>,
    /// Whether the database is in memory or in a file
    #[arg(long, default_value = "file")]
    pub disk: DiskKind,
    /// The folder in which files are created [default: the current one]
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// Threads that read and scan. There is always one writer
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Rounds. The medians are reported
    #[arg(long, default_value_t = 1)]
    pub repeat: usize,
    /// When commits reach the device
    #[arg(long, default_value = "interval")]
    pub durability: Durability,
    /// Entries in a commit
    #[arg(long, default_value_t = 1_000)]
    pub commit: usize,
    /// The seed of random keys and orders
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Leave out all but the load, the reopening and the reads
    #[arg(long)]
    pub reads_only: bool,
    /// The format of the result
    #[arg(long, default_value = "table")]
    pub format: Format,
    /// Run only this contestant, in this process
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
}

impl Args {
    /// The number of entries to make, or the maximum to read.
    pub fn entries(&self) -> usize {
        match (&self.n, &self.key) {
            (Some(n), _) => *n,
            (None, KeySource::File(_)) => usize::MAX,
            (None, _) => ENTRIES,
        }
    }

    /// The options of a store. The default cache is larger than the data.
    pub(super) fn config(&self, keys: &Keys) -> Config {
        let data = keys.bytes() + keys.len() * (self.value + 16);
        Config {
            cache: self.cache.map_or(4 * data + (64 << 20), size::length),
            page_size: self.page_size.map(size::length),
            durability: self.durability,
            disk: self.disk,
            key_width: keys.width(),
            value_width: self.value,
            compression: Compression::None,
            direct_io: false,
        }
    }
}

/// The source of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeySource {
    /// Byte strings of one length. Each byte is one of `domain` bytes from `0` on.
    Uniform {
        /// Bytes of a key.
        len: usize,
        /// The number of different bytes.
        domain: u8,
    },
    /// The lines of a file.
    File(PathBuf),
    /// Random integers, big-endian.
    U64,
}

impl KeySource {
    /// At most `n` of its keys.
    pub(super) fn keys(&self, n: usize, rng: &mut Rng) -> Result<Keys> {
        match self {
            KeySource::Uniform { len, domain } => Keys::uniform(n, *len, *domain, rng),
            KeySource::File(path) => Keys::lines(path, n),
            KeySource::U64 => Keys::collect(|push| {
                (0..n).for_each(|_| push(&rng.u64(..).to_be_bytes()));
                Ok(())
            }),
        }
    }
}

impl FromStr for KeySource {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<KeySource, String> {
        if text == "u64" {
            return Ok(KeySource::U64);
        }
        if let Some(path) = text.strip_prefix("file:") {
            return Ok(KeySource::File(path.into()));
        }
        let parts = text.strip_prefix("uniform").ok_or("it must begin with uniform or file:, or be u64")?;
        let (mut len, mut domain) = (32, 10);
        for part in parts.trim_start_matches(':').split(',').filter(|part| !part.is_empty()) {
            let (name, number) = part.split_once('=').ok_or_else(|| format!("{part:?} is not name=number"))?;
            let bad = |cause: std::num::ParseIntError| format!("{name}: {cause}");
            match name {
                "len" => len = number.parse().map_err(bad)?,
                "domain" => domain = number.parse().map_err(bad)?,
                _ => return Err(format!("{name:?} is neither len nor domain")),
            }
        }
        if len == 0 || domain == 0 {
            return Err("len and domain are at least 1".to_owned());
        }
        Ok(KeySource::Uniform { len, domain })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_sources_are_read_and_wrong_ones_refused() {
        let uniform = |len, domain| Ok(KeySource::Uniform { len, domain });
        assert_eq!("uniform:len=16,domain=4".parse(), uniform(16, 4));
        assert_eq!("uniform:domain=2".parse(), uniform(32, 2));
        assert_eq!("uniform".parse(), uniform(32, 10));
        assert_eq!("u64".parse(), Ok(KeySource::U64));
        assert_eq!("file:a:b".parse(), Ok(KeySource::File("a:b".into())));
        for wrong in
            ["", "u32", "uniform:len", "uniform:len=x", "uniform:width=3", "uniform:len=0", "uniform:domain=999"]
        {
            assert!(wrong.parse::<KeySource>().is_err(), "{wrong}");
        }
    }
}

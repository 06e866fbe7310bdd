//! The settings in which each set of keys is measured.

use super::super::args::{self, DiskKind, Inner};
use super::super::data::Data;
use super::Args;
use crate::options::Format;
use bytesize::ByteSize;
use clap::ValueEnum;
use duramen::db::Compression;
use serde::{Deserialize, Serialize};

/// A setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Setting {
    /// In memory, without values.
    Memory,
    /// In memory, with values of 100 bytes.
    Values,
    /// On a metered disk, with values of 8 bytes and a cache for a quarter of the data.
    Quarter,
    /// The same with pages that LZ4 compresses.
    Lz4,
    /// The same with pages that Zstandard compresses.
    Zstd,
}

/// The minimum size of the cache in bytes.
const MIN_CACHE: usize = 256 << 10;

impl Setting {
    pub(super) const ALL: [Setting; 5] =
        [Setting::Memory, Setting::Values, Setting::Quarter, Setting::Lz4, Setting::Zstd];

    pub(super) fn name(self) -> &'static str {
        match self {
            Setting::Memory => "in memory",
            Setting::Values => "in memory, values of 100 bytes",
            Setting::Quarter => "cache for a quarter",
            Setting::Lz4 => "cache for a quarter, LZ4",
            Setting::Zstd => "cache for a quarter, Zstandard",
        }
    }

    pub(super) fn is_on_disk(self) -> bool {
        matches!(self, Setting::Quarter | Setting::Lz4 | Setting::Zstd)
    }

    fn values(self) -> usize {
        match self {
            Setting::Memory => 0,
            Setting::Values => 100,
            Setting::Quarter | Setting::Lz4 | Setting::Zstd => 8,
        }
    }

    /// The options of the workload for so many keys of so many bytes together.
    pub(super) fn options(self, args: &Args, data: &Data, bytes: usize, keys: usize) -> args::Args {
        let quarter = ((bytes + keys * self.values()) / 4).max(MIN_CACHE);
        args::Args {
            data: data.clone(),
            n: Some(args.n),
            page_size: Some(args.page_size),
            layouts: args.layouts.clone(),
            disk: if self.is_on_disk() { DiskKind::Metered } else { DiskKind::Memory },
            cache: self.is_on_disk().then_some(ByteSize(quarter as u64)),
            compress: match self {
                Setting::Lz4 => Compression::Lz4,
                Setting::Zstd => Compression::Zstd(3),
                _ => Compression::None,
            },
            inner: Inner::Cached,
            range: vec![100],
            values: vec![self.values()],
            commit: 1_000,
            repeat: args.repeat,
            dir: None,
            seed: args.seed,
            format: Format::Json,
        }
    }
}

//! The page compression of tables, at random. Tests must not be in this file.

use duramen::db::types::TableOptions;
use duramen::db::{Compression, Overflow, Target};

/// The page store `shadow` does not compress pages of 4 KiB, and smaller pages have fewer targets.
const SMALLEST: usize = 8192;

/// These options, mostly with page compression if pages are long enough. `page`: bytes of a page.
pub(crate) fn drawn(rng: &mut fastrand::Rng, page: usize, options: TableOptions) -> TableOptions {
    if page < SMALLEST || rng.u8(0..3) == 0 {
        return options;
    }
    // A build without the C libraries has no Zstandard.
    let zstd = "zstd:1".parse().unwrap_or(Compression::Lz4);
    let compression = [Compression::Lz4, Compression::Lz4, zstd, Compression::Zlib(1)][rng.usize(..4)];
    let target = [Target::Fit, Target::Bytes(1024), Target::Bytes(2048)][rng.usize(..3)];
    let overflow = [Overflow::Spill, Overflow::Split][rng.usize(..2)];
    TableOptions { compression, target, overflow, ..options }
}

//! Chooses the page compression of tables at random.

use duramen::db::types::TableOptions;
use duramen::db::{Compression, Overflow, Target};

/// Tables with smaller pages get no page compression: the page store `shadow` cannot compress pages of 4 KiB, and small
/// pages have few targets.
const SMALLEST: usize = 8192;

/// Returns `options` with a random page compression in two of three cases, if a page of `page` bytes is large enough.
pub(crate) fn drawn(rng: &mut fastrand::Rng, page: usize, options: TableOptions) -> TableOptions {
    if page < SMALLEST || rng.u8(0..3) == 0 {
        return options;
    }
    // A build without the C libraries cannot parse the name of Zstandard. It uses LZ4 instead.
    let zstd = "zstd:1".parse().unwrap_or(Compression::Lz4);
    let compression = [Compression::Lz4, Compression::Lz4, zstd, Compression::Zlib(1)][rng.usize(..4)];
    let target = [Target::Fit, Target::Bytes(1024), Target::Bytes(2048)][rng.usize(..3)];
    let overflow = [Overflow::Spill, Overflow::Split][rng.usize(..2)];
    TableOptions { compression, target, overflow, ..options }
}

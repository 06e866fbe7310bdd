//! Compresses pages only to measure it: the bytes that they would take in the file, and the time. Nothing is written here.

use super::image::{IMAGE_HEADER, most_compressed};
use super::place::GRAIN;
use crate::store::Compression;
use crate::store::compress::Coders;
use std::time::{Duration, Instant};

/// The coders and buffers of a series of trials.
#[derive(Debug, Default)]
pub struct Trial {
    coders: Coders,
    compressed: Vec<u8>,
    again: Vec<u8>,
}

/// The result of one trial.
#[derive(Clone, Copy, Debug)]
pub struct TrialResult {
    /// Bytes of the page's image in the file. If the page does not become smaller, those of the page as it is.
    pub stored_bytes: u64,
    /// The time that compression takes, with the decompression that checks it.
    pub write_time: Duration,
    /// The time that decompression takes.
    pub read_time: Duration,
}

impl Trial {
    /// Compresses a packed page.
    pub fn run(&mut self, compression: Compression, packed: &[u8]) -> TrialResult {
        let image = |len: usize| (IMAGE_HEADER + len).next_multiple_of(GRAIN) as u64;
        let as_it_is =
            TrialResult { stored_bytes: image(packed.len()), write_time: Duration::ZERO, read_time: Duration::ZERO };
        let Some(most) = most_compressed(packed.len()).filter(|_| compression != Compression::None) else {
            return as_it_is;
        };
        let begun = Instant::now();
        let encoding = self.coders.compress(compression, packed, most, &mut self.compressed);
        let write_time = begun.elapsed();
        let Some(encoding) = encoding else { return TrialResult { write_time, ..as_it_is } };
        self.again.resize(packed.len(), 0);
        let begun = Instant::now();
        let result = self.coders.decompress(encoding, &self.compressed, &mut self.again);
        let read_time = begun.elapsed();
        debug_assert!(result.is_ok_and(|len| len == Some(packed.len())));
        TrialResult { stored_bytes: image(self.compressed.len()), write_time, read_time }
    }
}

//! Compresses pages only to measure it: the bytes that they would take in the file, and the time. Nothing is written
//! here.

use super::{Coders, Compression, CompressionDictionary, DictionaryId, PagePolicy, Places};
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
    packed: usize,
    /// Bytes after compression; `None` if they are not fewer.
    compressed: Option<usize>,
    /// The time that compression takes, with the decompression that checks it.
    pub write_time: Duration,
    /// The time that decompression takes.
    pub read_time: Duration,
}

impl TrialResult {
    /// Bytes after compression, or of the page if they are not fewer.
    pub fn bytes(&self) -> usize {
        self.compressed.unwrap_or(self.packed)
    }

    /// Bytes of the place that the page would get. `policy` has the compression of the trial, or none.
    pub fn place_bytes(&self, policy: PagePolicy, places: &Places) -> u64 {
        places.place_len(policy, self.kept(policy, places).unwrap_or(self.packed)) as u64
    }

    /// True if the page would be compressed in the file.
    pub fn is_compressed(&self, policy: PagePolicy, places: &Places) -> bool {
        self.kept(policy, places).is_some()
    }

    /// Bytes after compression, if the page would be compressed in the file.
    fn kept(&self, policy: PagePolicy, places: &Places) -> Option<usize> {
        let most = places.most_compressed(policy, self.packed)?;
        self.compressed.filter(|len| *len <= most)
    }
}

impl Trial {
    /// Compresses a packed page.
    pub fn run(&mut self, compression: Compression, packed: &[u8]) -> TrialResult {
        self.run_with(compression, None, packed)
    }

    /// Compresses a packed page, with a dictionary if there is one.
    pub(crate) fn run_with(
        &mut self,
        compression: Compression,
        cdict: Option<&CompressionDictionary>,
        packed: &[u8],
    ) -> TrialResult {
        let begun = Instant::now();
        let most = packed.len().saturating_sub(1);
        let encoding = self.coders.compress(compression, cdict, packed, most, &mut self.compressed);
        let result = TrialResult {
            packed: packed.len(),
            compressed: encoding.map(|_| self.compressed.len()),
            write_time: begun.elapsed(),
            read_time: Duration::ZERO,
        };
        let Some(encoding) = encoding else { return result };
        self.again.resize(packed.len(), 0);
        let begun = Instant::now();
        let find = |_: DictionaryId| cdict.map(|cdict| cdict.dictionary.clone());
        let len = self.coders.decompress(encoding, &self.compressed, &find, &mut self.again);
        debug_assert_eq!(len, Ok(packed.len()));
        TrialResult { read_time: begun.elapsed(), ..result }
    }
}

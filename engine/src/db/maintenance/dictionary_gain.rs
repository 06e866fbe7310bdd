//! Measures what a dictionary saves: trains it on half of the sampled pages of a table, and compresses the other half
//! with it.

use super::strategy::scaled;
use crate::base::limits::PAGE_HEADER;
use crate::store::{
    Compression, CompressionDictionary, DICTIONARY_COPIES, Dictionary, DictionaryId, PagePolicy, Places, Trial,
    sealed_dictionary, train,
};
use std::sync::Arc;

/// The sizes of dictionaries that are tried.
const SIZES: [usize; 3] = [16 << 10, 64 << 10, 110 << 10];
/// The steps of [`gain`]: compressing the sample, and for each size training and compressing once more.
pub(super) const STEPS: u64 = 1 + 2 * SIZES.len() as u64;
/// The minimum number of pages in a sample.
const MIN_PAGES: usize = 32;
/// The maximum number of bytes of pages of a table that are kept, and of all tables together.
const MAX_BYTES: usize = 12 << 20;
const MAX_BYTES_TOGETHER: usize = 64 << 20;
/// The minimum part of the bytes of a table that makes a dictionary worth it.
const MIN_SAVING: f64 = 0.02;

/// Sampled pages of a table.
#[derive(Debug)]
pub(super) struct SampledPages {
    packed: Vec<Vec<u8>>,
    bytes: usize,
    most: usize,
    /// All pages that were seen, and how many of them there are for each one that is kept.
    seen: usize,
    stride: usize,
}

impl SampledPages {
    /// No pages yet. `tables`: how many tables are sampled together.
    pub(super) fn new(tables: usize) -> SampledPages {
        let most = MAX_BYTES.min(MAX_BYTES_TOGETHER / tables.max(1));
        SampledPages { packed: Vec::new(), bytes: 0, most, seen: 0, stride: 1 }
    }

    /// True if a dictionary can be trained on them.
    pub(super) fn are_enough(&self) -> bool {
        self.packed.len() >= MIN_PAGES
    }

    /// Adds a page, unless there are too many.
    pub(super) fn add(&mut self, packed: &[u8]) {
        if self.seen.is_multiple_of(self.stride) {
            self.packed.push(packed.to_vec());
            self.bytes += packed.len();
        }
        self.seen += 1;
        if self.bytes > self.most {
            let mut at = 0..;
            self.packed.retain(|_| at.next().is_some_and(|at: usize| at.is_multiple_of(2)));
            self.bytes = self.packed.iter().map(Vec::len).sum();
            self.stride *= 2;
        }
    }
}

/// A trained dictionary, the bytes that it takes, and those that it would save in its table.
#[derive(Clone, Debug)]
pub(super) struct Gain {
    /// The dictionary.
    pub(super) trained: Vec<u8>,
    /// Bytes that it takes in the file.
    pub(super) bytes: u64,
    /// The share of the bytes of the compressed pages that it saves.
    pub(super) saving: f64,
    /// Bytes that it saves in the whole table, estimated.
    pub(super) saved_bytes: u64,
    /// True if it saves more than it takes, and enough to be worth it.
    pub(super) pays: bool,
}

/// Finds the best dictionary, and computes what it would save. `scale`: pages of the file for each page that was seen.
/// `current`: the dictionary that the table has now. It calls `step_done` [`STEPS`] times. `None` if no dictionary
/// can be trained.
pub(super) fn gain(
    pages: &SampledPages,
    scale: f64,
    policy: PagePolicy,
    places: Places,
    page_size: usize,
    current: Option<Arc<CompressionDictionary>>,
    mut step_done: impl FnMut(),
) -> Option<Gain> {
    let Compression::Zstd(level) = policy.compression else { return None };
    let even =
        |keep_even: bool| pages.packed.iter().zip(0usize..).filter(move |(_, at)| at.is_multiple_of(2) == keep_even);
    let joined: Vec<u8> = even(true).flat_map(|(page, _)| page).copied().collect();
    let lengths: Vec<usize> = even(true).map(|(page, _)| page.len()).collect();
    let mut trial = Trial::default();
    let mut stored = |cdict: Option<&CompressionDictionary>| -> u64 {
        let run = |(page, _): (&Vec<u8>, usize)| trial.run_with(policy.compression, cdict, page);
        even(false).map(run).map(|result| result.place_bytes(policy, &places)).sum()
    };
    let before = stored(current.as_deref());
    step_done();
    let scale = scale * pages.seen as f64 / even(false).count().max(1) as f64;
    let mut try_out = |trained: Vec<u8>| {
        let sealed = sealed_dictionary(DictionaryId(u32::MAX), &trained);
        let cdict =
            Dictionary::open(&sealed).and_then(|dictionary| CompressionDictionary::new(Arc::new(dictionary), level))?;
        let saved = before.saturating_sub(stored(Some(&cdict)));
        let (bytes, saved_bytes) = (bytes_of(sealed.len(), &places, page_size), scaled(saved, scale));
        let saving = saved as f64 / before.max(1) as f64;
        let pays = saved_bytes > bytes && saving >= MIN_SAVING;
        Some(Gain { trained, bytes, saving, saved_bytes, pays })
    };
    let net = |gain: &Gain| i128::from(gain.saved_bytes) - i128::from(gain.bytes);
    let mut best: Option<Gain> = None;
    for most in SIZES {
        let trained = train(&joined, &lengths, most);
        step_done();
        let gain = trained.and_then(&mut try_out);
        step_done();
        best = match (best, gain) {
            (Some(best), Some(gain)) if (best.pays, net(&best)) < (gain.pays, net(&gain)) => Some(gain),
            (best, gain) => best.or(gain),
        };
    }
    best
}

/// Bytes in the file of a dictionary that has `len` bytes.
fn bytes_of(len: usize, places: &Places, page_size: usize) -> u64 {
    let capacity = page_size.saturating_sub(PAGE_HEADER);
    let place = |payload: usize| places.place_len(PagePolicy::default(), PAGE_HEADER + payload);
    let copy = len / capacity * place(capacity) + if len.is_multiple_of(capacity) { 0 } else { place(len % capacity) };
    (copy * DICTIONARY_COPIES) as u64
}

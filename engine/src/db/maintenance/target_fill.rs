//! [`TargetFill`]: how full a bulk load fills leaves that must compress to the target of their table.

use crate::page::Page;
use crate::store::{Compression, CompressionDictionary, Overflow, PageCompression, PagePolicy, Target, Trial};
use std::sync::Arc;

/// How full leaves may be, so that nearly all of them compress to the target of their table. Only tables that split
/// leaves which miss the target need this. It compresses a sample of the leaves.
pub(super) struct TargetFill {
    sample: Option<LeafSizes>,
    part: f32,
}

/// The sizes of leaves after compression.
struct LeafSizes {
    compression: Compression,
    dictionary: Option<Arc<CompressionDictionary>>,
    trial: Trial,
    /// The part of a page that meets the target without compression.
    least: f32,
    /// The bytes that leaves shall compress to.
    aim: f32,
    /// The bytes that leaves of the whole usual length compress to: the mean, and the mean deviation from it. Newer
    /// leaves count more.
    mean: f32,
    deviation: f32,
    leaves: usize,
}

impl TargetFill {
    /// The part of the target that leaves shall take. The rest is for updates: a leaf that misses the target takes
    /// twice the space.
    const AIM: f32 = 0.98;
    /// The first leaves, as many as this number, are all compressed. Then one leaf in this number is.
    const SAMPLE: usize = 16;

    /// For pages of `page_size` bytes of a table with this policy. `dictionary` is what they are compressed with.
    pub(super) fn new(
        policy: PagePolicy,
        page_size: usize,
        compression: Option<&PageCompression>,
        dictionary: Option<Arc<CompressionDictionary>>,
    ) -> TargetFill {
        let most = match policy {
            PagePolicy { overflow: Overflow::Spill, .. } | PagePolicy { target: Target::Fit, .. } => None,
            PagePolicy { target: Target::Bytes(_), .. } => {
                compression.and_then(|compression| compression.places().most_compressed(policy, page_size))
            }
        };
        #[allow(clippy::cast_precision_loss)]
        let sample = most.map(|most| LeafSizes {
            compression: policy.compression,
            dictionary,
            trial: Trial::default(),
            least: (most as f32 / page_size as f32).min(1.0),
            aim: most as f32 * Self::AIM,
            mean: 0.0,
            deviation: 0.0,
            leaves: 0,
        });
        TargetFill { sample, part: 1.0 }
    }

    /// The part of its usual bytes to which the next leaf is filled.
    pub(super) fn part(&self) -> f32 {
        self.part
    }

    /// Notes a packed page that was filled to that part.
    pub(super) fn note(&mut self, packed: &[u8]) {
        let Some(sample) = self.sample.as_mut().filter(|_| Page::new(packed).is_leaf()) else { return };
        let leaf = sample.leaves;
        sample.leaves += 1;
        if leaf < Self::SAMPLE || leaf.is_multiple_of(Self::SAMPLE) {
            let result = sample.trial.run_with(sample.compression, sample.dictionary.as_deref(), packed);
            self.part = sample.part_after(leaf, self.part, result.bytes());
        }
    }
}

impl LeafSizes {
    /// The part for the next leaves, after one that was filled to `part` compresses to `bytes`.
    fn part_after(&mut self, leaf: usize, part: f32, bytes: usize) -> f32 {
        #[allow(clippy::cast_precision_loss)]
        let (whole, weight) = (bytes as f32 / part, 1.0 / (leaf + 1).min(TargetFill::SAMPLE) as f32);
        let difference = whole - self.mean;
        self.mean += weight * difference;
        if leaf > 0 {
            self.deviation += weight * (difference.abs() - self.deviation);
        }
        // If the lengths of leaves vary evenly around the mean, one leaf in 50 is longer than this.
        (self.aim / (self.mean + 2.5 * self.deviation).max(1.0)).clamp(self.least, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> LeafSizes {
        LeafSizes {
            compression: Compression::Lz4,
            dictionary: None,
            trial: Trial::default(),
            least: 0.5,
            aim: 8000.0,
            mean: 0.0,
            deviation: 0.0,
            leaves: 0,
        }
    }

    /// The part after leaves of 16,384 bytes that compress to `share(leaf)` of what they are filled to.
    fn part_after(sample: &mut LeafSizes, leaves: usize, share: impl Fn(usize) -> f32) -> f32 {
        (0..leaves).fold(1.0, |part, leaf| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let bytes = (16_384.0 * part * share(leaf)) as usize;
            sample.part_after(leaf, part, bytes)
        })
    }

    #[test]
    fn leaves_are_filled_so_that_they_meet_the_target() {
        let of = |share: fn(usize) -> f32| part_after(&mut sample(), 100, share);
        assert!((of(|_| 0.7) - 8000.0 / 16_384.0 / 0.7).abs() < 0.001, "{}", of(|_| 0.7));
        assert_eq!(of(|_| 0.4), 1.0, "leaves may be full");
        assert_eq!(of(|_| 1.0), 0.5, "half a page needs no compression");
        let varied = of(|leaf| [0.66, 0.7, 0.74][leaf % 3]);
        assert!((8000.0 / 16_384.0 / 0.8..8000.0 / 16_384.0 / 0.72).contains(&varied), "{varied}");
    }

    #[test]
    fn one_leaf_is_enough_to_find_the_part() {
        let part = part_after(&mut sample(), 1, |_| 0.7);
        assert!((part - 8000.0 / 16_384.0 / 0.7).abs() < 0.001, "{part}");
    }

    #[test]
    fn the_part_follows_the_data() {
        let part = part_after(&mut sample(), 300, |leaf| if leaf < 100 { 0.6 } else { 0.8 });
        assert!((part - 8000.0 / 16_384.0 / 0.8).abs() < 0.01, "{part}");
    }
}

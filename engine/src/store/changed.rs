//! [`ChangedParts`]: the parts of a page that have changed since the image that its store names as the base.

use crate::base::bytes::must_fit;
use std::ops::Range;

/// One bit for each of [`ChangedParts::SEGMENTS`] segments. All have the same length, except the last ones, which a
/// page may be too short for. The LSN, the first [`ChangedParts::LSN`] bytes of a page, is in no segment: each change
/// changes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChangedParts(pub(super) [u64; ChangedParts::WORDS]);

impl ChangedParts {
    pub(super) const WORDS: usize = 4;
    /// Segments of a page: of 32 bytes in a slot of 8 KiB.
    pub const SEGMENTS: usize = 64 * ChangedParts::WORDS;
    /// Bytes of the LSN.
    pub const LSN: usize = 8;
    /// No part of the page, other than its LSN.
    pub const NONE: ChangedParts = ChangedParts([0; ChangedParts::WORDS]);
    /// Everything, or there is no base.
    pub const ALL: ChangedParts = ChangedParts([u64::MAX; ChangedParts::WORDS]);

    /// Bytes of a segment of a page of that size.
    pub fn segment(page_size: usize) -> usize {
        page_size.div_ceil(ChangedParts::SEGMENTS).next_power_of_two()
    }

    /// The parts in which two states of a page differ.
    pub fn between(before: &[u8], after: &[u8]) -> ChangedParts {
        let mut changed = ChangedParts::NONE;
        for range in ChangedParts::ALL.ranges(after.len()) {
            if before.get(range.clone()) != after.get(range.clone()) {
                changed.add(range, after.len());
            }
        }
        changed
    }

    /// Adds the segments that these bytes of a page of that size are in.
    pub fn add(&mut self, range: Range<usize>, page_size: usize) {
        let len = ChangedParts::segment(page_size);
        for segment in range.start / len..range.end.div_ceil(len) {
            let word = self.0.get_mut(segment / 64);
            must_fit(word.is_some());
            if let Some(word) = word {
                *word |= 1 << (segment % 64);
            }
        }
    }

    /// A lower bound of the number of bytes in the changed segments in a page of this size. The first and the last
    /// segment may be shorter than the others, so two segments are left out.
    pub fn min_bytes(self, page_size: usize) -> usize {
        let segments = self.0.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        segments.saturating_sub(2) * ChangedParts::segment(page_size)
    }

    /// The bytes of the segments, of a page of that size, in order.
    pub fn ranges(self, page_size: usize) -> impl Iterator<Item = Range<usize>> {
        let len = ChangedParts::segment(page_size);
        let has = move |segment: &usize| self.0.get(segment / 64).is_some_and(|word| word >> (segment % 64) & 1 == 1);
        let segments = page_size.div_ceil(len);
        (0..segments).filter(has).map(move |segment| {
            let end = ((segment + 1) * len).min(page_size);
            (segment * len).max(ChangedParts::LSN).min(end)..end
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_byte_that_differs_is_in_a_changed_segment_and_no_other_is(
            shift in 12u32..=16, shorter in 0usize..20, hits in proptest::collection::vec((0usize..1 << 16, 1u8..), 0..20),
        ) {
            let before = vec![7; (1 << shift) - shorter];
            let mut after = before.clone();
            hits.iter().for_each(|(at, mask)| after[at % before.len()] ^= mask);
            let mut copy = before.clone();
            copy[..ChangedParts::LSN].copy_from_slice(&after[..ChangedParts::LSN]);
            let changed = ChangedParts::between(&before, &after);
            let bytes = changed.ranges(before.len()).map(|range| range.len()).sum::<usize>();
            prop_assert!(changed.min_bytes(before.len()) <= bytes);
            for range in changed.ranges(before.len()) {
                prop_assert_ne!(&before[range.clone()], &after[range.clone()]);
                copy[range.clone()].copy_from_slice(&after[range]);
            }
            prop_assert_eq!(copy, after);
        }
    }

    #[test]
    fn everything_is_the_whole_page() {
        assert_eq!(ChangedParts::ALL.ranges(4096).map(|range| range.len()).sum::<usize>(), 4096 - ChangedParts::LSN);
        assert_eq!(ChangedParts::NONE.ranges(4096).count(), 0);
    }
}

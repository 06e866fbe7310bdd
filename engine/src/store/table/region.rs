//! One region of the file: a bitmap of its grains, and the search for free runs in it.

use crate::base::bytes::get_u64;

/// Grains of a region: 1 MiB of file. No image crosses the border of a region.
pub(crate) const REGION: u32 = 2048;
const WORDS: usize = (REGION / 64) as usize;
/// Bytes of its bitmap in a file.
pub(crate) const REGION_BYTES: usize = WORDS * 8;

/// Which grains of a region are used: one bit each.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Region {
    used: [u64; WORDS],
    free: u32,
}

impl Region {
    pub(crate) fn new() -> Region {
        Region { used: [0; WORDS], free: REGION }
    }

    /// A region without a free grain.
    pub(crate) fn full() -> Region {
        Region { used: [u64::MAX; WORDS], free: 0 }
    }

    /// The region with this bitmap.
    pub(crate) fn decode(bytes: &[u8]) -> Region {
        let mut region = Region::new();
        for (at, word) in region.used.iter_mut().enumerate() {
            *word = get_u64(bytes, at * 8);
        }
        region.free = region.used.iter().map(|word| word.count_zeros()).sum();
        region
    }

    /// Appends its bitmap.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.used.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
    }

    /// How many grains are free.
    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    /// The first position at or after `from` whose bit is `wanted`, or `REGION`.
    fn next(&self, from: u32, wanted: bool) -> u32 {
        let flip = if wanted { 0 } else { u64::MAX };
        let mut mask = u64::MAX.checked_shl(from % 64).unwrap_or(0);
        for (index, word) in (0u32..).zip(&self.used).skip((from / 64) as usize) {
            let hits = (word ^ flip) & mask;
            if hits != 0 {
                return index * 64 + hits.trailing_zeros();
            }
            mask = u64::MAX;
        }
        REGION
    }

    /// The position after the last used one before `to`, or 0.
    fn after_last_used(&self, to: u32) -> u32 {
        for index in (0..to.div_ceil(64)).rev() {
            let word = self.used.get(index as usize).copied().unwrap_or(0);
            let reach = to - index * 64;
            let hits = if reach >= 64 { word } else { word & ((1 << reach) - 1) };
            if hits != 0 {
                return index * 64 + 64 - hits.leading_zeros();
            }
        }
        0
    }

    /// The position after the last used one.
    pub(crate) fn end(&self) -> u32 {
        self.after_last_used(REGION)
    }

    /// The lowest free run of at least `grains` from a multiple of `align`: its position, or else the length of the
    /// longest free run, wherever it begins.
    pub(crate) fn find(&self, grains: u32, align: u32) -> Result<u32, u32> {
        let (mut at, mut longest) = (0, 0);
        while at < REGION {
            let start = self.next(at, false);
            at = self.next(start, true);
            let aligned = start.next_multiple_of(align);
            if start < REGION && aligned + grains <= at {
                return Ok(aligned);
            }
            longest = longest.max(at - start);
        }
        Err(longest)
    }

    /// The first free run that ends after position `from` and has at least `grains` from a multiple of `align`: this
    /// multiple, and the end of the run.
    pub(crate) fn find_from(&self, from: u32, grains: u32, align: u32) -> Option<(u32, u32)> {
        let mut at = from;
        while at < REGION {
            let start = self.next(at, false);
            at = self.next(start, true);
            let start = self.after_last_used(start);
            let aligned = start.next_multiple_of(align);
            if start < REGION && aligned + grains <= at {
                return Some((aligned, at));
            }
        }
        None
    }

    /// How many runs of `grains` find room in it, as far as `end`.
    pub(crate) fn longest_places(&self, grains: u32, end: u32) -> u32 {
        let (mut at, mut longest_places) = (0, 0);
        while at < end {
            let start = self.next(at, false);
            at = self.next(start, true);
            longest_places += at.min(end).saturating_sub(start) / grains.max(1);
        }
        longest_places
    }

    /// True if all of `grains` positions from `at` are used.
    pub(crate) fn is_used(&self, at: u32, grains: u32) -> bool {
        self.next(at, false) >= at.saturating_add(grains)
    }

    /// The length of the free run that `at` lies in.
    pub(crate) fn run_around(&self, at: u32) -> u32 {
        self.next(at, true).saturating_sub(self.after_last_used(at))
    }

    /// Marks `grains` positions from `from`. False, with nothing changed, where one of them is `used` already or lies
    /// outside.
    pub(crate) fn mark(&mut self, from: u32, grains: u32, used: bool) -> bool {
        let to = from.saturating_add(grains);
        let words = (from / 64) as usize..to.div_ceil(64) as usize;
        let Some(words) = self.used.get_mut(words).filter(|_| to <= REGION) else { return false };
        // The bits of the run in the word that has the bit `base`.
        let bits_at = |base: u32| {
            let (low, high) = (from.max(base), to.min(base + 64));
            if low < high { (u64::MAX >> (64 - (high - low))) << (low % 64) } else { 0 }
        };
        let bases = || (from / 64 * 64..).step_by(64);
        let flip = if used { 0 } else { u64::MAX };
        if words.iter().zip(bases()).any(|(word, base)| (word ^ flip) & bits_at(base) != 0) {
            return false;
        }
        for (word, base) in words.iter_mut().zip(bases()) {
            *word ^= bits_at(base);
        }
        self.free = if used { self.free - grains } else { self.free + grains };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same questions asked of a plain array.
    fn longest_runs(model: &[bool]) -> Vec<(usize, usize)> {
        let (mut runs, mut start) = (Vec::new(), None);
        for (at, &used) in model.iter().chain([&true]).enumerate() {
            match (used, start) {
                (false, None) => start = Some(at),
                (true, Some(from)) => {
                    runs.push((from, at - from));
                    start = None;
                }
                _ => {}
            }
        }
        runs
    }

    proptest! {
        #[test]
        fn a_region_is_an_array_of_bits(steps in proptest::collection::vec((0u32..REGION, 1u32..300, any::<bool>()), 1..60), asks in proptest::collection::vec((1u32..400, prop_oneof![Just(1u32), Just(8)]), 10)) {
            let (mut region, mut model) = (Region::new(), vec![false; REGION as usize]);
            for (from, grains, used) in steps {
                let to = from + grains;
                let range = from as usize..(to as usize).min(model.len());
                let possible = to <= REGION && model[range.clone()].iter().all(|&bit| bit != used);
                prop_assert_eq!(region.mark(from, grains, used), possible);
                if possible {
                    model[range].fill(used);
                }
                prop_assert_eq!(region.free() as usize, model.iter().filter(|&&bit| !bit).count());
                prop_assert_eq!(region.end() as usize, model.iter().rposition(|&bit| bit).map_or(0, |at| at + 1));
            }
            let runs = longest_runs(&model);
            for (grains, align) in asks {
                let mut places = runs.iter().map(|(from, len)| (from.next_multiple_of(align as usize), from + len));
                let expected = places.find(|(at, end)| at + grains as usize <= *end).map(|(at, _)| at);
                let found = region.find(grains, align);
                prop_assert_eq!(found.ok().map(|at| at as usize), expected);
                if let Err(longest) = found {
                    prop_assert_eq!(longest as usize, runs.iter().map(|run| run.1).max().unwrap_or(0));
                }
            }
            for (from, len) in runs {
                prop_assert_eq!(region.run_around(u32::try_from(from + len / 2).unwrap_or(0)) as usize, len);
            }
        }
    }
}

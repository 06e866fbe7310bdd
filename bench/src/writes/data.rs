//! The records: keys that look random, and values of which one half is zeros and the other half looks random.

use crate::random::Random;

/// The keys of a run, in order.
pub(super) struct Keys(Vec<u64>);

impl Keys {
    pub(super) fn new(count: usize, seed: u64) -> Keys {
        let mut random = Random::new(seed);
        let mut keys: Vec<u64> = (0..count + count / 64).map(|_| random.next()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.truncate(count);
        Keys(keys)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, rank: usize) -> u64 {
        self.0[rank]
    }

    /// Returns all keys in random order.
    pub(super) fn shuffled(&self, random: &mut Random) -> Vec<u64> {
        let mut keys = self.0.clone();
        random.shuffle(&mut keys);
        keys
    }
}

/// Fills a value with zeros, followed by bytes that look random.
pub(super) fn fill(value: &mut [u8], random: &mut Random) {
    let zeros = value.len() / 2;
    value[..zeros].fill(0);
    for part in value[zeros..].chunks_mut(8) {
        let word = random.next().to_le_bytes();
        part.copy_from_slice(&word[..part.len()]);
    }
}

/// Counts the overwrites of each leaf. The key range is divided among the leaves evenly.
pub(super) struct Rewritten {
    keys: usize,
    times: Vec<u8>,
    /// The number of leaves that have not been rewritten twice.
    left: usize,
}

impl Rewritten {
    pub(super) fn new(keys: usize, leaves: usize) -> Rewritten {
        let leaves = leaves.clamp(1, keys);
        Rewritten { keys, times: vec![0; leaves], left: leaves }
    }

    /// Notes an overwrite. Returns false once all leaves have been rewritten twice.
    pub(super) fn note(&mut self, rank: usize) -> bool {
        let leaf = rank * self.times.len() / self.keys;
        if let Some(times) = self.times.get_mut(leaf)
            && *times < 2
        {
            *times += 1;
            self.left -= usize::from(*times == 2);
        }
        self.left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_half_zeros() {
        let mut value = [1; 120];
        fill(&mut value, &mut Random::new(1));
        assert!(value[..60].iter().all(|byte| *byte == 0));
        assert!(value[60..].iter().filter(|byte| **byte == 0).count() < 5);
    }

    #[test]
    fn completion_is_reported_after_two_rewrites_of_every_leaf() {
        let mut rewritten = Rewritten::new(4, 2);
        assert_eq!([0, 1, 0, 2, 3, 3].map(|rank| rewritten.note(rank)), [true, true, true, true, false, false]);
        // The number of keys is not a multiple of the number of leaves.
        let mut rewritten = Rewritten::new(10, 7);
        assert_eq!((0..20).filter(|n| rewritten.note(n % 10)).count(), 19, "the last key completes it");
    }
}

//! The values of a run. A value is computed from the rank of its key and from how often it was written, so every value
//! that is read can be checked without storing it.

use crate::random::mix;

/// The rule for the values of a run.
#[derive(Clone, Copy)]
pub(crate) struct Values {
    /// The length of a value in bytes.
    pub(crate) width: usize,
    /// How many bytes at its end are zeros. The others are random.
    zeros: usize,
}

impl Values {
    /// Random values of this length.
    pub(crate) fn new(width: usize) -> Values {
        Values { width, zeros: 0 }
    }

    /// Values of this length whose second half is zeros.
    pub(crate) fn half_zeros(width: usize) -> Values {
        Values { width, zeros: width / 2 }
    }

    /// Replaces `out` by the value of the key of `rank` after the write number `generation`.
    #[inline]
    pub(crate) fn make(self, rank: usize, generation: u64, out: &mut Vec<u8>) {
        out.clear();
        for part in self.parts(rank, generation) {
            let left = self.width - self.zeros - out.len();
            out.extend_from_slice(&part[..left.min(8)]);
        }
        out.resize(self.width, 0);
    }

    /// True if the value is the one of [`Values::make`].
    #[inline]
    pub(crate) fn are(self, rank: usize, generation: u64, value: &[u8]) -> bool {
        // The check is a part of what is timed, and keys without values are the most common case.
        if self.width == 0 {
            return value.is_empty();
        }
        let Some((random, zeros)) = value.split_at_checked(self.width - self.zeros) else { return false };
        // Comparing whole words is faster than comparing slices of variable length.
        let ((words, rest), mut parts) = (random.as_chunks(), self.parts(rank, generation));
        let (zero_words, zero_rest) = zeros.as_chunks::<8>();
        zeros.len() == self.zeros
            && words.iter().zip(&mut parts).fold(true, |right, (there, part)| right & (*there == part))
            && (rest.is_empty() || parts.next().is_some_and(|part| *rest == part[..rest.len()]))
            && zero_words.iter().fold(0, |bits, word| bits | u64::from_ne_bytes(*word)) == 0
            && zero_rest.iter().all(|byte| *byte == 0)
    }

    #[inline]
    fn parts(self, rank: usize, generation: u64) -> impl Iterator<Item = [u8; 8]> {
        let seed = (rank as u64) << 8 | generation;
        (0..(self.width - self.zeros).div_ceil(8) as u64)
            .map(move |part| mix(seed.wrapping_add(part << 48)).to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_right_for_its_key_and_generation_only() {
        let halves = [3, 16, 120].map(Values::half_zeros);
        for values in [1, 8, 13, 100].map(Values::new).into_iter().chain(halves) {
            let width = values.width;
            let mut value = Vec::new();
            values.make(5, 1, &mut value);
            assert_eq!(value.len(), width);
            assert!(values.are(5, 1, &value));
            assert!(!values.are(6, 1, &value) && !values.are(5, 2, &value) && !values.are(5, 1, &value[1..]));
            assert_eq!(value.iter().rev().take_while(|byte| **byte == 0).count(), values.zeros);
            value[width - 1] ^= 1;
            assert!(!values.are(5, 1, &value));
        }
    }
}

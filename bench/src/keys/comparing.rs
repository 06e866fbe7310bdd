//! The cost of comparing whole keys (section 5.4 of the paper): how many bytes a search needs to distinguish two keys,
//! and how long the comparisons take if all keys are in the processor's cache. No store is used here.

use crate::clock::thread_seconds;
use crate::keyset::Keys;
use fastrand::Rng;
use std::hint::black_box;

/// The number of searches.
const PROBES: usize = 20_000;
/// The number of searches before each measurement. The keys that they compare stay in the processor's cache.
const CHUNK: usize = 200;

/// The cost of comparing in a binary search of all keys, which is about the cost in a tree with plain pages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparing {
    /// Bytes of two keys that are compared before one is known to be greater, on average.
    pub(super) bytes: f64,
    /// The number of comparisons in a search.
    pub(super) comparisons: f64,
    /// Nanoseconds of the comparisons of a search, with all keys in the processor's cache.
    pub(super) nanos: f64,
}

/// The pairs of keys that searches compare.
#[derive(Default)]
struct Pairs {
    bytes: Vec<u8>,
    /// The ends of the two keys of each comparison.
    ends: Vec<(usize, usize)>,
}

impl Pairs {
    fn push(&mut self, sought: &[u8], other: &[u8]) {
        self.bytes.extend_from_slice(sought);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(other);
        self.ends.push((middle, self.bytes.len()));
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(middle, end)| {
            let pair = (&self.bytes[start..middle], &self.bytes[middle..end]);
            start = end;
            pair
        })
    }
}

/// Searches random keys in the sorted ones.
pub(super) fn measure(keys: &Keys, rng: &mut Rng) -> Comparing {
    let probes = PROBES.min(keys.len());
    let (mut bytes, mut comparisons, mut seconds) = (0, 0, 0.0);
    let mut done = 0;
    while done < probes {
        let mut pairs = Pairs::default();
        let chunk = CHUNK.min(probes - done);
        for _ in 0..chunk {
            search(keys, keys.get(rng.usize(..keys.len())), &mut pairs);
        }
        bytes += pairs.iter().map(|(sought, other)| compared_bytes(sought, other)).sum::<usize>();
        comparisons += pairs.ends.len();
        let started = thread_seconds();
        for (sought, other) in pairs.iter() {
            black_box(black_box(sought).cmp(black_box(other)));
        }
        seconds += thread_seconds() - started;
        done += chunk;
    }
    Comparing {
        bytes: bytes as f64 / comparisons.max(1) as f64,
        comparisons: comparisons as f64 / probes as f64,
        nanos: seconds * 1e9 / probes as f64,
    }
}

fn search(keys: &Keys, sought: &[u8], pairs: &mut Pairs) {
    let (mut low, mut high) = (0, keys.len());
    while low < high {
        let middle = low.midpoint(high);
        let other = keys.get(middle);
        pairs.push(sought, other);
        match other.cmp(sought) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => return,
        }
    }
}

/// The number of bytes up to the first difference. If one key is a prefix of the other, or they are equal, the length
/// of the longer one.
fn compared_bytes(a: &[u8], b: &[u8]) -> usize {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    (common + 1).min(a.len().max(b.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_up_to_the_first_that_differs() {
        assert_eq!(
            [compared_bytes(b"abc", b"abd"), compared_bytes(b"ab", b"abd"), compared_bytes(b"ab", b"ab")],
            [3, 3, 2]
        );
        assert_eq!([compared_bytes(b"x", b"abd"), compared_bytes(b"", b"")], [1, 0]);
    }

    #[test]
    fn a_search_halves_the_keys() {
        let keys = Keys::collect(|push| {
            (0..1023).for_each(|i: u32| push(format!("common/{i:04}").as_bytes()));
            Ok(())
        })
        .expect("keys");
        let comparing = measure(&keys, &mut Rng::with_seed(1));
        assert!((8.0..=10.0).contains(&comparing.comparisons), "{comparing:?}");
        assert!((8.0..=11.0).contains(&comparing.bytes) && comparing.nanos > 0.0, "{comparing:?}");
    }
}

//! What comparing whole keys takes (section 5.4 of the paper): how many bytes tell two keys apart when one is sought, and
//! how long that takes where nothing has to be waited for. No store is in here.

use crate::clock::thread_seconds;
use crate::keyset::Keys;
use fastrand::Rng;
use std::hint::black_box;

/// Keys that are sought.
const PROBES: usize = 20_000;
/// Keys that are sought before the clock runs once: what they are compared with stays near.
const CHUNK: usize = 200;

/// What comparing takes in a search that halves all the keys there are, which is what the pages of a plain tree amount to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparing {
    /// Bytes of the two keys that are looked at before one is known to be the greater, on average.
    pub(super) bytes: f64,
    /// Comparisons in a search.
    pub(super) comparisons: f64,
    /// Nanoseconds that those of a search take, all keys being near.
    pub(super) nanos: f64,
}

/// The keys that a search compares, side by side.
#[derive(Default)]
struct Pairs {
    bytes: Vec<u8>,
    /// Where the two keys of a comparison end.
    ends: Vec<(usize, usize)>,
}

impl Pairs {
    fn push(&mut self, sought: &[u8], met: &[u8]) {
        self.bytes.extend_from_slice(sought);
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(met);
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

/// Looks random keys up in the sorted ones.
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
        bytes += pairs.iter().map(|(sought, met)| looked_at(sought, met)).sum::<usize>();
        comparisons += pairs.ends.len();
        let started = thread_seconds();
        for (sought, met) in pairs.iter() {
            black_box(black_box(sought).cmp(black_box(met)));
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
        let met = keys.get(middle);
        pairs.push(sought, met);
        match met.cmp(sought) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => return,
        }
    }
}

/// Bytes up to the one that tells the two apart; where one is the other's beginning, or is the other, all it has.
fn looked_at(a: &[u8], b: &[u8]) -> usize {
    let common = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    (common + 1).min(a.len().max(b.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_up_to_the_first_that_differs() {
        assert_eq!([looked_at(b"abc", b"abd"), looked_at(b"ab", b"abd"), looked_at(b"ab", b"ab")], [3, 3, 2]);
        assert_eq!([looked_at(b"x", b"abd"), looked_at(b"", b"")], [1, 0]);
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

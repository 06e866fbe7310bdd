//! The keys of a run: made or read before anything is timed, kept sorted, named by their rank.

use super::args::KeySource;
use crate::Result;
use fastrand::Rng;
use std::io::BufRead;

/// Sorted keys without duplicates, one behind the other.
pub(super) struct Keys {
    bytes: Vec<u8>,
    /// Where each key begins, and where the last ends.
    starts: Vec<usize>,
}

impl Keys {
    /// At most `n` keys of a source.
    pub(super) fn of(source: &KeySource, n: usize, rng: &mut Rng) -> Result<Keys> {
        let mut found = Keys { bytes: Vec::new(), starts: vec![0] };
        match source {
            KeySource::Uniform { len, domain } => {
                for _ in 0..n {
                    found.bytes.extend((0..*len).map(|_| b'0'.wrapping_add(rng.u8(..*domain))));
                    found.starts.push(found.bytes.len());
                }
            }
            KeySource::U64 => {
                for _ in 0..n {
                    found.bytes.extend_from_slice(&rng.u64(..).to_be_bytes());
                    found.starts.push(found.bytes.len());
                }
            }
            KeySource::File(path) => {
                let file = std::fs::File::open(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
                for line in std::io::BufReader::new(file).split(b'\n').take(n) {
                    found.bytes.extend_from_slice(&line?);
                    found.starts.push(found.bytes.len());
                }
            }
        }
        let keys = found.sorted();
        if keys.len() == 0 {
            return Err("there are no keys".into());
        }
        u32::try_from(keys.len()).map_err(|_| "there are more than 2^32 keys")?;
        Ok(keys)
    }

    fn sorted(self) -> Keys {
        let mut slices: Vec<&[u8]> = (0..self.len()).map(|rank| self.get(rank)).collect();
        slices.sort_unstable();
        slices.dedup();
        let mut keys =
            Keys { bytes: Vec::with_capacity(self.bytes.len()), starts: Vec::with_capacity(slices.len() + 1) };
        keys.starts.push(0);
        for slice in slices {
            keys.bytes.extend_from_slice(slice);
            keys.starts.push(keys.bytes.len());
        }
        keys
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The key of a rank.
    #[inline]
    pub(super) fn get(&self, rank: usize) -> &[u8] {
        &self.bytes[self.starts[rank]..self.starts[rank + 1]]
    }

    /// The length of each, if it is the same for all.
    pub(super) fn width(&self) -> Option<usize> {
        let width = self.get(0).len();
        self.starts.windows(2).all(|pair| pair[1] - pair[0] == width).then_some(width)
    }

    /// All ranks in random order.
    pub(super) fn shuffled(&self, rng: &mut Rng) -> Vec<u32> {
        let mut ranks: Vec<u32> = (0..self.len() as u32).collect();
        rng.shuffle(&mut ranks);
        ranks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_unique_and_the_same_for_the_same_seed() {
        let source = KeySource::Uniform { len: 2, domain: 10 };
        let make = || Keys::of(&source, 1_000, &mut Rng::with_seed(7)).unwrap();
        let (keys, again) = (make(), make());
        assert_eq!((keys.len(), keys.width()), (100, Some(2)));
        for rank in 0..keys.len() {
            assert_eq!(keys.get(rank), format!("{rank:02}").as_bytes());
            assert_eq!(keys.get(rank), again.get(rank));
        }
        let mut ranks = keys.shuffled(&mut Rng::with_seed(1));
        ranks.sort_unstable();
        assert!(ranks.iter().copied().eq(0..100));
    }

    #[test]
    fn the_lines_of_a_file_are_keys() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        std::fs::write(&path, "pear\napple\n\napple\nfig").unwrap();
        let read = |n| Keys::of(&KeySource::File(path.clone()), n, &mut Rng::with_seed(1)).unwrap();
        let keys = read(usize::MAX);
        let all: Vec<&[u8]> = (0..keys.len()).map(|rank| keys.get(rank)).collect();
        assert_eq!(all, [&b""[..], b"apple", b"fig", b"pear"]);
        assert_eq!((keys.width(), read(2).len()), (None, 2));
    }
}

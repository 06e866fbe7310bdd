//! The keys of a run. They are made or read before anything is timed, are sorted, and are identified by their rank.

use crate::Result;
use crate::numbers::short;
use fastrand::Rng;
use std::io::BufRead;
use std::path::Path;

/// Sorted keys without duplicates.
pub(crate) struct Keys {
    bytes: Vec<u8>,
    /// The start of each key, and the end of the last one.
    starts: Vec<usize>,
    /// The length of a key, if all have the same length. Then [`Keys::get`] does not read `starts`, where a read is
    /// usually a cache miss.
    width: Option<usize>,
}

impl Keys {
    /// The keys that `make` passes to `push`, sorted and without duplicates. An error if there are none.
    pub(crate) fn collect(make: impl FnOnce(&mut dyn FnMut(&[u8])) -> Result<()>) -> Result<Keys> {
        let mut found = Keys { bytes: Vec::new(), starts: vec![0], width: None };
        make(&mut |key| {
            found.bytes.extend_from_slice(key);
            found.starts.push(found.bytes.len());
        })?;
        let keys = found.sorted();
        if keys.len() == 0 {
            return Err("there are no keys".into());
        }
        u32::try_from(keys.len()).map_err(|_| "there are more than 2^32 keys")?;
        Ok(keys)
    }

    /// `n` keys of `len` bytes. Each byte is one of `domain` bytes from `0` on. Duplicates are removed.
    pub(crate) fn uniform(n: usize, len: usize, domain: u8, rng: &mut Rng) -> Result<Keys> {
        Keys::collect(|push| {
            let mut key = vec![0; len];
            for _ in 0..n {
                key.fill_with(|| b'0'.wrapping_add(rng.u8(..domain)));
                push(&key);
            }
            Ok(())
        })
    }

    /// The first `n` lines of a file.
    pub(crate) fn lines(path: &Path, n: usize) -> Result<Keys> {
        let file = std::fs::File::open(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
        Keys::collect(|push| {
            for line in std::io::BufReader::new(file).split(b'\n').take(n) {
                push(&line?);
            }
            Ok(())
        })
    }

    fn sorted(self) -> Keys {
        let mut slices: Vec<&[u8]> = (0..self.len()).map(|rank| self.get(rank)).collect();
        slices.sort_unstable();
        slices.dedup();
        let width = slices.first().map_or(0, |first| first.len());
        let width = slices.iter().all(|slice| slice.len() == width).then_some(width);
        let starts = Vec::with_capacity(slices.len() + 1);
        let mut keys = Keys { bytes: Vec::with_capacity(self.bytes.len()), starts, width };
        keys.starts.push(0);
        for slice in slices {
            keys.bytes.extend_from_slice(slice);
            keys.starts.push(keys.bytes.len());
        }
        keys
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Bytes of all keys.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The key of a rank.
    #[inline]
    pub(crate) fn get(&self, rank: usize) -> &[u8] {
        match self.width {
            Some(width) => &self.bytes[rank * width..][..width],
            None => &self.bytes[self.starts[rank]..self.starts[rank + 1]],
        }
    }

    /// Replaces `out` by the keys of `ranks`, in that order.
    pub(crate) fn gather(&self, ranks: &[u32], out: &mut Gathered) {
        out.bytes.clear();
        out.ends.clear();
        for &rank in ranks {
            out.bytes.extend_from_slice(self.get(rank as usize));
            out.ends.push(out.bytes.len());
        }
    }

    /// The length of a key, if all have the same length.
    pub(crate) fn width(&self) -> Option<usize> {
        self.width
    }

    /// All ranks in order.
    pub(crate) fn ranks(&self) -> std::ops::Range<u32> {
        0..short(self.len())
    }

    /// All ranks in random order.
    pub(crate) fn shuffled(&self, rng: &mut Rng) -> Vec<u32> {
        let mut ranks: Vec<u32> = self.ranks().collect();
        rng.shuffle(&mut ranks);
        ranks
    }
}

/// Keys in the order of their use. Reading them causes no cache misses that would be counted for the store.
#[derive(Default)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Gathered {
    /// The keys in their order.
    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let key = &self.bytes[start..end];
            start = end;
            key
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_unique_and_the_same_for_the_same_seed() {
        let make = || Keys::uniform(1_000, 2, 10, &mut Rng::with_seed(7)).unwrap();
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
        let read = |n| Keys::lines(&path, n).unwrap();
        let keys = read(usize::MAX);
        let all: Vec<&[u8]> = (0..keys.len()).map(|rank| keys.get(rank)).collect();
        assert_eq!(all, [&b""[..], b"apple", b"fig", b"pear"]);
        assert_eq!((keys.width(), read(2).len()), (None, 2));
    }
}

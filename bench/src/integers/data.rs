//! The sets of integer keys, sorted and without duplicates.

use crate::Result;
use crate::numbers::short;
use crate::random::Random;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// The source of the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// ClusterData of Anh and Moffat: `n` keys in clusters within `[0, 9n/8)`.
    Cluster,
    /// Uniform over all u32.
    Uniform,
    /// 1, 2, 3 and so on.
    Dense,
    /// Seconds since 1970: events a few seconds apart, with some pauses.
    Timestamps,
    /// A file of little-endian u32.
    File(PathBuf),
}

/// The first timestamp, and the maximum length of a pause in seconds.
const FIRST_TIME: u32 = 1_000_000_000;
const PAUSE: usize = 600;

/// Ranges of so few keys are not divided into clusters.
const SMALL: usize = 10;

impl Data {
    /// `n` of its keys. A file may have fewer.
    pub(super) fn keys(&self, n: usize, random: &mut Random) -> Result<Vec<u32>> {
        let mut keys = Vec::with_capacity(n);
        match self {
            Data::Cluster => {
                let range = u32::try_from(n as u64 * 9 / 8).map_err(|_| "so many keys are no u32")?;
                clustered(n, 0, range.max(short(n)), random, &mut keys);
            }
            Data::Uniform => {
                while keys.len() < n {
                    let missing = n - keys.len();
                    keys.extend((0..missing).map(|_| (random.next() >> 32) as u32));
                    keys.sort_unstable();
                    keys.dedup();
                }
            }
            Data::Dense => keys.extend(1..=u32::try_from(n)?),
            Data::Timestamps => {
                let mut time = FIRST_TIME;
                for _ in 0..n {
                    keys.push(time);
                    let bits = random.next();
                    let pause = if bits.is_multiple_of(1000) { short(random.below(PAUSE)) } else { 0 };
                    time = time.checked_add(1 + (bits >> 60) as u32 + pause).ok_or("so many timestamps are no u32")?;
                }
            }
            Data::File(path) => {
                let bytes = std::fs::read(path).map_err(|cause| format!("{}: {cause}", path.display()))?;
                let (numbers, rest) = bytes.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(format!("{}: its length is no multiple of 4", path.display()).into());
                }
                keys.extend(numbers.iter().map(|number| u32::from_le_bytes(*number)));
                keys.sort_unstable();
                keys.dedup();
                keys.truncate(n);
            }
        }
        Ok(keys)
    }
}

/// Draws a number of keys of `[from, to)`.
type Draw = fn(usize, u32, u32, &mut Random, &mut Vec<u32>);

/// Draws `count` keys of `[from, to)`, which must have at least so many, in clusters. The number of keys is halved, the
/// range is divided at a random point so that both halves fit, and each half is again uniform or in clusters.
fn clustered(count: usize, from: u32, to: u32, random: &mut Random, keys: &mut Vec<u32>) {
    let range = (to - from) as usize;
    if count == range || count <= SMALL {
        return uniform(count, from, to, random, keys);
    }
    let left = count / 2;
    let cut = from + short(left + random.below(range - count + 1));
    let [first, second]: [Draw; 2] = match random.next() >> 62 {
        0 => [uniform, clustered],
        1 => [clustered, uniform],
        _ => [clustered, clustered],
    };
    first(left, from, cut, random, keys);
    second(count - left, cut, to, random, keys);
}

/// Draws `count` keys of `[from, to)`. All sets of this size have the same probability.
fn uniform(count: usize, from: u32, to: u32, random: &mut Random, keys: &mut Vec<u32>) {
    let mut wanted = count;
    for key in from..to {
        if random.below((to - key) as usize) < wanted {
            keys.push(key);
            wanted -= 1;
        }
    }
}

impl FromStr for Data {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Data, String> {
        match text {
            "cluster" | "clusterdata" => Ok(Data::Cluster),
            "uniform" => Ok(Data::Uniform),
            "dense" => Ok(Data::Dense),
            "timestamps" => Ok(Data::Timestamps),
            _ => match text.strip_prefix("file:") {
                Some(path) => Ok(Data::File(path.into())),
                None => Err("it is none of cluster, uniform, dense, timestamps, file:PATH".to_owned()),
            },
        }
    }
}

impl fmt::Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Data::Cluster => f.pad("cluster"),
            Data::Uniform => f.pad("uniform"),
            Data::Dense => f.pad("dense"),
            Data::Timestamps => f.pad("timestamps"),
            Data::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sorted_and_have_the_given_size_and_are_reproducible() {
        for name in ["cluster", "uniform", "dense", "timestamps"] {
            let data: Data = name.parse().expect("a set");
            assert_eq!(data.to_string(), name);
            for n in [0, 1, 11, 5000] {
                let keys = data.keys(n, &mut Random::new(7)).expect("keys");
                assert_eq!(keys.len(), n, "{name}");
                assert!(keys.windows(2).all(|two| two[0] < two[1]), "{name}");
                assert_eq!(keys, data.keys(n, &mut Random::new(7)).expect("keys"));
            }
        }
        assert!("clusters".parse::<Data>().is_err());
    }

    #[test]
    fn clusters_lie_within_nine_eighths_and_are_denser_than_chance() {
        let n = 80_000;
        let keys = Data::Cluster.keys(n, &mut Random::new(1)).expect("keys");
        assert!(keys.last().is_some_and(|last| (*last as usize) < n * 9 / 8));
        // With uniform keys an eighth would have a missing neighbour. Clusters have fewer and longer gaps.
        let gaps = keys.windows(2).filter(|two| two[1] - two[0] > 1).count();
        assert!(gaps < n / 12, "{gaps}");
    }

    #[test]
    fn a_file_of_little_endian_numbers_is_sorted() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let numbers = [70_000u32, 3, 3, 9];
        std::fs::write(file.path(), numbers.map(u32::to_le_bytes).concat()).expect("writes");
        let data: Data = format!("file:{}", file.path().display()).parse().expect("a set");
        assert_eq!(data.keys(10, &mut Random::new(1)).expect("keys"), [3, 9, 70_000]);
        assert_eq!(data.keys(2, &mut Random::new(1)).expect("keys"), [3, 9]);
        std::fs::write(file.path(), [1, 2, 3]).expect("writes");
        assert!(data.keys(10, &mut Random::new(1)).is_err());
    }
}

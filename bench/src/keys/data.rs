//! The sets of keys: generated, read from a file, or the rows of TPC-H.

use super::made::Made;
use crate::Result;
use crate::keyset::Keys;
use clap::ValueEnum;
use fastrand::Rng;
use std::collections::BTreeMap;
use std::f64::consts::TAU;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The default number of keys of generated sets.
const KEYS: usize = 2_000_000;
/// The number of digits of a normally distributed key.
const NORMAL_DIGITS: usize = 32;
/// The number of these digits after the point.
const NORMAL_FRACTION: u32 = 16;
/// The maximum scale whose keys have [`NORMAL_DIGITS`] digits.
const MAX_SCALE: f64 = 1e14;

/// The source of the keys.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Byte strings of one length. Each byte is one of `domain` bytes from `0` on.
    Uniform {
        /// The number of keys drawn. Duplicates are removed.
        n: usize,
        /// Bytes of a key.
        len: usize,
        /// The number of different bytes.
        domain: u8,
    },
    /// Normally distributed decimal numbers of 32 digits, 16 of them after the point, which is not written.
    Normal {
        /// The number of keys drawn. Duplicates are removed.
        n: usize,
        /// The standard deviation.
        scale: f64,
    },
    /// The lines of a file.
    File(PathBuf),
    /// The paths of the files under a folder, on its own file system.
    Paths(PathBuf),
    /// The names of these files.
    Names(PathBuf),
    /// Made keys of a common kind.
    Made {
        /// The kind.
        kind: Made,
        /// The number of keys made. Duplicates are removed.
        n: usize,
    },
    /// The rows of TPC-H's LINEITEM, all columns as one key.
    Tpch {
        /// The scale factor: about 6 million rows at 1.
        sf: f64,
    },
}

impl Data {
    /// At max `max` of its keys.
    pub(super) fn keys(&self, max: usize, rng: &mut Rng) -> Result<Keys> {
        match self {
            Data::Uniform { n, len, domain } => Keys::uniform(max.min(*n), *len, *domain, rng),
            Data::Normal { n, scale } => Keys::collect(|push| {
                (0..max.min(*n)).for_each(|_| push(normal_key(*scale, rng).as_bytes()));
                Ok(())
            }),
            Data::Made { kind, n } => Keys::collect(|push| {
                kind.make(max.min(*n), rng, push);
                Ok(())
            }),
            Data::File(path) => Keys::lines(path, max),
            Data::Paths(folder) => files(folder, max, |path| Some(path.as_os_str())),
            Data::Names(folder) => files(folder, max, Path::file_name),
            Data::Tpch { sf } => Keys::collect(|push| {
                let rows = tpchgen::generators::LineItemGenerator::new(*sf, 1, 1);
                rows.iter().take(max).for_each(|row| push(row.to_string().as_bytes()));
                Ok(())
            }),
        }
    }
}

/// The result of `of` for each file and folder under `folder`, without other file systems, for at max `max` of them.
/// Files that cannot be read are left out.
fn files(folder: &Path, max: usize, of: impl Fn(&Path) -> Option<&OsStr>) -> Result<Keys> {
    let device = std::fs::metadata(folder).map_err(|cause| format!("{}: {cause}", folder.display()))?.dev();
    Keys::collect(|push| {
        let (mut folders, mut found) = (vec![folder.to_owned()], 0);
        while let Some(folder) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            for entry in entries.flatten().take(max - found) {
                let path = entry.path();
                if let Some(key) = of(&path) {
                    push(key.as_bytes());
                    found += 1;
                }
                if entry.metadata().is_ok_and(|about| about.is_dir() && about.dev() == device) {
                    folders.push(path);
                }
            }
        }
        Ok(())
    })
}

/// A number of the normal distribution around the middle of all numbers with [`NORMAL_DIGITS`] digits.
#[expect(clippy::cast_possible_truncation, reason = "the fraction is cut off, and the constants are small")]
fn normal_key(scale: f64, rng: &mut Rng) -> String {
    // The method of Box and Muller. 1 - f64() is never 0.
    let deviation = (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (TAU * rng.f64()).cos();
    let middle = 5 * 10i128.pow(NORMAL_DIGITS as u32 - 1);
    let number = middle + (deviation * scale * 10f64.powi(NORMAL_FRACTION as i32)) as i128;
    format!("{number:0NORMAL_DIGITS$}")
}

impl FromStr for Data {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Data, String> {
        if let Some(path) = text.strip_prefix("file:") {
            return Ok(Data::File(path.into()));
        }
        if let Some(folder) = text.strip_prefix("paths:") {
            return Ok(Data::Paths(folder.into()));
        }
        if let Some(folder) = text.strip_prefix("names:") {
            return Ok(Data::Names(folder.into()));
        }
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let mut given = BTreeMap::new();
        for part in rest.split(',').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| format!("{part:?} is not name=number"))?;
            given.insert(name, value);
        }
        let data = match kind {
            "uniform" => Data::Uniform {
                n: take(&mut given, "n", KEYS)?,
                len: take(&mut given, "len", 32)?,
                domain: take(&mut given, "domain", 10)?,
            },
            "normal" => Data::Normal { n: take(&mut given, "n", KEYS)?, scale: take(&mut given, "scale", 1e6)? },
            "tpch" => Data::Tpch { sf: take(&mut given, "sf", 0.1)? },
            _ => match Made::from_str(kind, false) {
                Ok(kind) => Data::Made { kind, n: take(&mut given, "n", KEYS)? },
                Err(_) => {
                    let made = Made::value_variants().iter().filter_map(Made::to_possible_value);
                    let names: Vec<String> = made.map(|value| value.get_name().to_owned()).collect();
                    let names = names.join(", ");
                    return Err(format!("it must begin with uniform, normal, {names}, file:, paths:, names: or tpch"));
                }
            },
        };
        if let Some(name) = given.keys().next() {
            return Err(format!("{kind} has no {name:?}"));
        }
        match data {
            Data::Uniform { len: 0, .. } | Data::Uniform { domain: 0, .. } => {
                Err("len and domain are at least 1".to_owned())
            }
            Data::Normal { scale, .. } if !(scale > 0.0 && scale <= MAX_SCALE) => {
                Err(format!("scale is above 0 and at max {MAX_SCALE:e}"))
            }
            Data::Tpch { sf } if !(sf > 0.0 && sf <= 1000.0) => Err("sf is above 0 and at max 1000".to_owned()),
            data => Ok(data),
        }
    }
}

/// Removes a number from the given parameters and returns it, or the default.
fn take<T: FromStr>(given: &mut BTreeMap<&str, &str>, name: &str, default: T) -> std::result::Result<T, String>
where
    T::Err: std::fmt::Display,
{
    given.remove(name).map_or(Ok(default), |text| text.parse().map_err(|cause| format!("{name}: {cause}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_read_and_wrong_ones_refused() {
        assert_eq!("uniform:n=5,len=16".parse(), Ok(Data::Uniform { n: 5, len: 16, domain: 10 }));
        assert_eq!("normal:n=7,scale=100".parse(), Ok(Data::Normal { n: 7, scale: 100.0 }));
        assert_eq!("tpch:sf=0.01".parse(), Ok(Data::Tpch { sf: 0.01 }));
        assert_eq!("urls:n=3".parse(), Ok(Data::Made { kind: Made::Urls, n: 3 }));
        assert_eq!("file:a:b".parse(), Ok(Data::File("a:b".into())));
        let wrong =
            ["", "uniforms", "uniform:n", "uniform:n=x", "uniform:scale=1", "uniform:len=0", "uniform:domain=999"];
        for wrong in wrong.into_iter().chain(["normal:scale=0", "normal:scale=nan", "normal:scale=1e20", "tpch:sf=0"]) {
            assert!(wrong.parse::<Data>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn normal_keys_have_the_deviation_of_their_scale() {
        let mut rng = Rng::with_seed(1);
        for (scale, common) in [(1.0, 14), (1e6, 8), (1e14, 0)] {
            let keys = Data::Normal { n: 1_000, scale }.keys(usize::MAX, &mut rng).expect("keys");
            assert_eq!((keys.len(), keys.width()), (1_000, Some(NORMAL_DIGITS)));
            // The middle is 5 followed by zeros, so a key begins with 4999 or with 5000.
            let leading = |rank: usize| match keys.get(rank) {
                [b'5', rest @ ..] => rest.iter().take_while(|byte| **byte == b'0').count(),
                [b'4', rest @ ..] => rest.iter().take_while(|byte| **byte == b'9').count(),
                _ => 0,
            };
            let least = (0..keys.len()).map(leading).min().expect("keys");
            assert!(least.abs_diff(common) <= 1, "{scale}: {least} digits agree");
        }
    }

    #[test]
    fn files_under_a_folder_are_keys_by_path_and_by_name() {
        let root = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(root.path().join("sub")).expect("a folder");
        for name in ["one", "sub/one", "sub/two"] {
            std::fs::write(root.path().join(name), "").expect("a file");
        }
        let all = |data: Data, max| {
            let keys = data.keys(max, &mut Rng::with_seed(1)).expect("keys");
            (0..keys.len()).map(|rank| String::from_utf8_lossy(keys.get(rank)).into_owned()).collect::<Vec<_>>()
        };
        let paths = all(Data::Paths(root.path().into()), usize::MAX);
        let expected = ["one", "sub", "sub/one", "sub/two"].map(|name| root.path().join(name).display().to_string());
        assert_eq!(paths, expected);
        assert_eq!(all(Data::Names(root.path().into()), usize::MAX), ["one", "sub", "two"]);
        assert_eq!(all(Data::Paths(root.path().into()), 1).len(), 1);
        assert!(Data::Names("/no/such/folder".into()).keys(1, &mut Rng::with_seed(1)).is_err());
        assert_eq!("paths:/usr".parse(), Ok(Data::Paths("/usr".into())));
    }

    #[test]
    fn rows_of_lineitem_are_keys() {
        let keys = Data::Tpch { sf: 0.001 }.keys(500, &mut Rng::with_seed(1)).expect("keys");
        assert_eq!(keys.len(), 500);
        assert!((0..500).all(|rank| (90..160).contains(&keys.get(rank).len())));
    }
}

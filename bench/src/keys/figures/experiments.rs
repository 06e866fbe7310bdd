//! The runs from which the figures are made: their keys, pages and disks.

use super::Args;
use super::sources;
use crate::Result;
use crate::keys::args::{self, DiskKind, Inner};
use crate::keys::data::Data;
use crate::keys::report::Row;
use crate::keys::{comparing, measure, report};
use crate::options::Format;
use bytesize::ByteSize;
use fastrand::Rng;

/// A series of runs that differ in one parameter.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Experiment {
    Radii,
    Memory,
    Parts,
    Disk,
    Counts,
    Lengths,
    MemoryPages,
    DiskPages,
    Domains,
    Scales,
    TpchMemory,
    TpchDisk,
    Paths,
    Titles,
    RealSets,
}

/// One run of a series.
pub(super) struct Point {
    /// The value of that parameter.
    pub(super) mark: String,
    /// One for each layout.
    pub(super) rows: Vec<Row>,
    /// The number of keys of each length.
    pub(super) lengths: Vec<(usize, usize)>,
    /// For keys that begin with digits: the part of the keys in each of 100 equal ranges of all possible keys.
    pub(super) spread: Vec<f64>,
}

/// Radii of tail separators, including the default of a sixth, and whole keys.
const RADII: &str =
    "plain/full,plain/tail:25,plain/tail:50,plain/tail:100,plain/tail,plain/tail:250,plain/tail:333,plain/tail:450";
/// Lengths of the partial keys of PkB.
const PARTS: &str = "pkb:1/full,pkb:2/full,pkb:3/full,pkb:4/full,pkb:5/full,pkb:6/full,pkb:7/full,pkb:8/full";

/// One run: its mark, its keys, its page size, and whether the database is in memory.
struct Setting {
    mark: String,
    data: Data,
    page: u64,
    disk: DiskKind,
    layouts: &'static str,
}

impl Setting {
    fn memory(mark: impl ToString, data: Data, page: u64) -> Setting {
        Setting { mark: mark.to_string(), data, page, disk: DiskKind::Memory, layouts: "all" }
    }

    fn disk(mark: impl ToString, data: Data, page: u64) -> Setting {
        Setting { disk: DiskKind::File, ..Setting::memory(mark, data, page) }
    }
}

fn uniform(n: usize, len: usize, domain: u8) -> Data {
    Data::Uniform { n, len, domain }
}

fn settings(experiment: Experiment, args: &Args) -> Vec<Setting> {
    let n = args.n;
    let default = || uniform(n, 32, 10);
    // About 6 million rows at a scale of 1.
    let tpch = || Data::Tpch { sf: (n as f64 / 5.9e6).max(1e-4) };
    match experiment {
        Experiment::Radii => vec![Setting { layouts: RADII, ..Setting::memory("radii", default(), 512) }],
        Experiment::Memory => vec![Setting::memory("memory", default(), 512)],
        Experiment::Parts => vec![Setting { layouts: PARTS, ..Setting::disk("parts", default(), 4096) }],
        Experiment::Disk => vec![Setting::disk("disk", default(), 4096)],
        Experiment::Counts => [n / 100, n / 10, n].map(|n| Setting::memory(n, uniform(n.max(10), 32, 10), 512)).into(),
        Experiment::Lengths => [16, 32, 64, 96].map(|len| Setting::memory(len, uniform(n, len, 10), 512)).into(),
        Experiment::MemoryPages => {
            [256, 512, 1024, 2048, 4096].map(|page| Setting::memory(page, default(), page)).into()
        }
        Experiment::DiskPages => [4096, 8192, 16384].map(|page| Setting::disk(page, default(), page)).into(),
        Experiment::Domains => {
            [10, 26, 36, 62].map(|domain| Setting::memory(domain, uniform(n, 32, domain), 1024)).into()
        }
        Experiment::Scales => ["1", "1e3", "1e6", "1e9", "1e12"]
            .map(|mark| {
                let scale = mark.parse().unwrap_or(1.0);
                Setting::memory(mark, Data::Normal { n, scale }, 512)
            })
            .into(),
        Experiment::TpchMemory => vec![Setting::memory("memory", tpch(), 1024)],
        Experiment::TpchDisk => vec![Setting::disk("disk", tpch(), 4096)],
        Experiment::Paths => vec![Setting::memory("paths", sources::paths(args), 4096)],
        Experiment::Titles => vec![Setting::memory("titles", sources::titles(args), 1024)],
        Experiment::RealSets => {
            let sets = [("titles", sources::titles(args)), ("paths", sources::paths(args)), ("TPC-H", tpch())];
            let two = |(mark, data)| Setting { layouts: "plain/full,myisam/full", ..Setting::memory(mark, data, 1024) };
            sets.map(two).into()
        }
    }
}

/// Runs the whole series.
pub(super) fn measure(experiment: Experiment, args: &Args) -> Result<Vec<Point>> {
    settings(experiment, args).into_iter().map(|setting| point(setting, args)).collect()
}

fn point(setting: Setting, args: &Args) -> Result<Point> {
    let mut rng = Rng::with_seed(args.seed);
    let keys = setting.data.keys(args.n, &mut rng)?;
    // On a disk, the cache has an eighth of the data.
    let cache = (setting.disk == DiskKind::File).then(|| ByteSize((keys.bytes() / 8).max(1 << 20) as u64));
    let run = args::Args {
        data: setting.data,
        n: Some(args.n),
        page_size: Some(ByteSize(setting.page)),
        layouts: setting.layouts.parse()?,
        disk: setting.disk,
        cache,
        compress: duramen::db::Compression::None,
        inner: if setting.disk == DiskKind::File { Inner::Resident } else { Inner::Cached },
        range: vec![10, 100],
        values: vec![0],
        commit: 1_000,
        repeat: args.repeat,
        dir: args.dir.clone(),
        seed: args.seed,
        format: Format::Csv,
    };
    let mut lengths = std::collections::BTreeMap::new();
    let mut spread = vec![0.0; 100];
    for rank in 0..keys.len() {
        *lengths.entry(keys.get(rank).len()).or_default() += 1;
        if let [tens @ b'0'..=b'9', ones @ b'0'..=b'9', ..] = keys.get(rank) {
            spread[usize::from((tens - b'0') * 10 + (ones - b'0'))] += 1.0 / keys.len() as f64;
        }
    }
    let comparing = comparing::measure(&keys, &mut rng);
    let rows = report::rows(&measure::all(&run, &keys, &mut rng)?, &comparing);
    Ok(Point { mark: setting.mark, rows, lengths: lengths.into_iter().collect(), spread })
}

//! The figures and tables of the paper on selective compression, and its claims, in our words. The numbers are from its
//! text and its tables, because it does not give the values of its bars.

use super::claims::Device::{self, Hdd, Ssd};
use super::claims::{Asked, Claim, Measure, Number};
use super::runs::{Method, Run};
use crate::claims::Number::{One, Ratio, Value};
use std::collections::BTreeSet;

/// A bar: its name, our number, and that of the paper if it gives one.
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) number: Number,
    pub(super) paper: Option<f64>,
}

/// A chart.
pub(super) struct Panel {
    /// The measure that its bars show, with the unit.
    pub(super) height: &'static str,
    pub(super) bars: Vec<Shown>,
}

/// A figure or table of the paper, or its guidelines.
pub(super) struct Figure {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// The differences from the paper.
    pub(super) note: &'static str,
    pub(super) panels: Vec<Panel>,
    pub(super) claims: Vec<Claim>,
}

impl Figure {
    /// The runs that it needs.
    pub(super) fn runs(&self) -> BTreeSet<Run> {
        let shown = self.panels.iter().flat_map(|panel| &panel.bars).flat_map(|bar| bar.number.runs());
        shown.chain(self.claims.iter().flat_map(|claim| claim.asked.runs())).copied().collect()
    }
}

const NONE: Run = Run::standard(Method::None);
const ALL: Run = Run::standard(Method::All);
const SELECTIVE: Run = Run::standard(Method::Selective);
const SMALL: Run = Run::standard(Method::Small);
const SPILL: Run = Run::standard(Method::Spill);
const LZ4: Run = Run::standard(Method::Lz4);
const FIT: Run = Run::standard(Method::Fit);

fn shown(name: impl Into<String>, number: Number, paper: impl Into<Option<f64>>) -> Shown {
    Shown { name: name.into(), number, paper: paper.into() }
}

fn tpm(run: Run, device: Device) -> Number {
    let none = Run { method: Method::None, ..run };
    Ratio(Measure::Tpm(device), run, none)
}

fn loading(run: Run, device: Device) -> Number {
    Ratio(Measure::Loading(device), run, NONE)
}

fn claim(says: &'static str, asked: Asked) -> Claim {
    Claim { says, asked }
}

/// All figures and tables, in the paper's order, and the guidelines.
pub(super) fn figures() -> Vec<Figure> {
    let standard = [strategies(), throughput(), target(), target_loading()];
    [sequential(), random(), savings()]
        .into_iter()
        .chain(standard)
        .chain([reading(), times(), load(), guidelines()])
        .collect()
}

const KIB: u64 = 1024;

fn sequential() -> Figure {
    let paper = [[486.2, 260.8], [132.6, 130.6]];
    let bars = |at: usize, reads| {
        let bar = |device: Device| {
            shown(device.name(), Value(device.speed(reads, false, 1024 * KIB, 1)), paper[device as usize][at])
        };
        Device::ALL.map(bar).into_iter().collect()
    };
    Figure {
        id: "table2",
        title: "Sequential speeds of the devices",
        note: "The model of each device (duramen_sim::DeviceModel), with calls of 1 MiB. Its constants are fitted to the \
               random calls of 4 KiB in table 3.",
        panels: vec![
            Panel { height: "read, MB/s", bars: bars(0, true) },
            Panel { height: "write, MB/s", bars: bars(1, false) },
        ],
        claims: Vec::new(),
    }
}

fn random() -> Figure {
    // Block size and queue depth; reads and writes of each device.
    let paper = [
        (512 * KIB, 1, [[334.3, 250.7], [44.7, 76.5]]),
        (4 * KIB, 1, [[23.9, 82.1], [0.6, 1.2]]),
        (4 * KIB, 32, [[318.9, 118.3], [1.2, 1.1]]),
    ];
    let panel = |height, reads: bool| {
        let bars = paper.iter().flat_map(|(bytes, depth, speeds)| {
            Device::ALL.map(|device| {
                let name = format!("{} {}K QD{depth}", device.name(), bytes / KIB);
                let ours = device.speed(reads, true, *bytes, *depth);
                shown(name, Value(ours), speeds[device as usize][usize::from(!reads)])
            })
        });
        Panel { height, bars: bars.collect() }
    };
    let speed = |device: Device, depth| Value(device.speed(true, true, 4 * KIB, depth));
    Figure {
        id: "table3",
        title: "Random speeds of the devices",
        note: "The model of each device.",
        panels: vec![panel("read, MB/s", true), panel("write, MB/s", false)],
        claims: vec![
            claim("SSD reads 4 KiB at random with 23.9 MB/s", Asked::Within(speed(Ssd, 1), 23.9, 2.4)),
            claim("SSD reads 318.9 MB/s with 32 calls in the queue", Asked::Within(speed(Ssd, 32), 318.9, 32.0)),
            claim("HDD hardly gains from a queue: 0.6 and 1.2 MB/s", Asked::Within(speed(Hdd, 32), 1.2, 0.15)),
        ],
    }
}

/// Names of tables, with the savings in table 4.
const TABLES: [(&str, f64); 9] = [
    ("stock", 34.0),
    ("order_line", 49.0),
    ("customer", 27.0),
    ("orders", 50.0),
    ("history", 50.0),
    ("new_order", 43.0),
    ("item", 33.0),
    ("district", 44.0),
    ("warehouse", 35.0),
];

fn savings() -> Figure {
    let bars =
        |run| TABLES.map(|(name, paper)| shown(name, One(Measure::TableSaved(name), run), paper)).into_iter().collect();
    let size = |name| Ratio(Measure::TableSize(name), ALL, NONE);
    let sizes = TABLES[..7].iter().map(|(name, paper)| shown(*name, size(name), 1.0 - paper / 100.0)).collect();
    let grown = |says, name, paper: f64| claim(says, Asked::Most(size(name), 1.0 - (paper - 8.0) / 100.0));
    let near =
        |says, name, paper: f64| claim(says, Asked::Greater(One(Measure::TableSaved(name), ALL), Value(paper - 8.0)));
    let chosen = |says, name, is| claim(says, Asked::Within(One(Measure::IsCompressed(name), SELECTIVE), is, 0.0));
    Figure {
        id: "table4",
        title: "Space savings of each table",
        note: "A table is counted with its indexes. Its size without compression is that of an entry in a database of one \
               warehouse without compression, times its entries. All with zlib and 8 KiB, as InnoDB: pages that miss are \
               split; beside it, spilled. Savings may be 8 points below the paper's. The mix splits leaves, with and without \
               compression: the third chart compares the sizes after the same mix.",
        panels: vec![
            Panel { height: "saved, %", bars: bars(ALL) },
            Panel { height: "saved with spill, %", bars: bars(SPILL) },
            Panel { height: "size of that with N after the same mix", bars: sizes },
        ],
        claims: vec![
            near("STOCK saves 34 %", "stock", 34.0),
            near("ORDER-LINE saves 49 %", "order_line", 49.0),
            near("CUSTOMER saves 27 %", "customer", 27.0),
            near("ORDER saves 50 %", "orders", 50.0),
            grown("ORDER saves 50 % of its size with N after the same mix", "orders", 50.0),
            near("HISTORY saves 50 %", "history", 50.0),
            near("NEW-ORDER saves 43 %", "new_order", 43.0),
            grown("NEW-ORDER saves 43 % of its size with N after the same mix", "new_order", 43.0),
            near("ITEM saves 33 %", "item", 33.0),
            chosen("Selective compresses ORDER-LINE", "order_line", 1.0),
            chosen("Selective compresses ORDER", "orders", 1.0),
            chosen("Selective compresses HISTORY", "history", 1.0),
            chosen("Selective does not compress STOCK", "stock", 0.0),
            chosen("Selective does not compress CUSTOMER", "customer", 0.0),
        ],
    }
}

/// The transactions a minute of the paper follow from table 5: 20 connections, each with one transaction at a time.
const fn tpm_of(milliseconds: f64) -> f64 {
    20.0 * 60_000.0 / milliseconds
}

fn strategies() -> Figure {
    let ratio = |device: Device, name: &str, run, paper: f64| {
        shown(format!("{} {name}", device.name()), tpm(run, device), paper)
    };
    let beside = |name: &str, run: Run| {
        Device::ALL.map(|device| shown(format!("{} {name}", device.name()), tpm(run, device), None))
    };
    let mut ratios = vec![
        ratio(Ssd, "A", ALL, 316.0 / 509.0),
        ratio(Ssd, "S", SELECTIVE, 316.0 / 292.0),
        ratio(Hdd, "A", ALL, 5322.0 / 7246.0),
        ratio(Hdd, "S", SELECTIVE, 5322.0 / 4968.0),
    ];
    ratios.extend(beside("A spill", SPILL));
    ratios.extend(beside("A fit", FIT));
    ratios.extend(beside("A LZ4", LZ4));
    ratios.extend(beside("S lean", SELECTIVE.lean()));
    ratios.extend(beside("A lean", SPILL.lean()));
    let saved = |run| One(Measure::Saved, run);
    Figure {
        id: "1",
        title: "Throughput and space with each strategy, standard mix",
        note: "A: all tables, zlib, 8 KiB, pages that miss are split. S: selective. Beside the paper's: A with spill, with \
               Zstandard and places that fit, and with LZ4 and spill, and the engine's own rows (lean) with Zstandard and places \
               that fit. The paper's ratios follow from table 5.",
        panels: vec![
            Panel { height: "TPM, of N", bars: ratios },
            Panel {
                height: "space saved, %",
                bars: vec![
                    shown("A", saved(ALL), 37.6),
                    shown("S", saved(SELECTIVE), 17.3),
                    shown("A spill", saved(SPILL), None),
                    shown("A fit", saved(FIT), None),
                    shown("A LZ4", saved(LZ4), None),
                    shown("S lean", saved(SELECTIVE.lean()), None),
                    shown("A lean", saved(SPILL.lean()), None),
                ],
            },
        ],
        claims: vec![
            claim("S has 1.1 times the TPM of N on SSD", Asked::Least(tpm(SELECTIVE, Ssd), 1.1)),
            claim("S saves 17.3 % of the space", Asked::Least(saved(SELECTIVE), 17.3)),
            claim("S saves less than A", Asked::Greater(saved(ALL), saved(SELECTIVE))),
            claim("S has up to 1.7 times the TPM of A", Asked::About(Ratio(Measure::Tpm(Ssd), SELECTIVE, ALL), 1.7)),
        ],
    }
}

fn throughput() -> Figure {
    let bars = |device: Device, paper: [f64; 3]| {
        let bar = |((name, run), paper): ((&str, Run), f64)| shown(name, One(Measure::Tpm(device), run), tpm_of(paper));
        [("A", ALL), ("S", SELECTIVE), ("N", NONE)].into_iter().zip(paper).map(bar).collect()
    };
    let ratios = [
        (Ssd, "A", ALL, 24_075.0 / 7_815.0),
        (Ssd, "S", SELECTIVE, 10_868.0 / 7_815.0),
        (Hdd, "A", ALL, 32_045.0 / 15_525.0),
        (Hdd, "S", SELECTIVE, 17_304.0 / 15_525.0),
    ];
    let ratio = |(device, name, run, paper): (Device, &str, Run, f64)| {
        shown(format!("{} {name}", device.name()), loading(run, device), paper)
    };
    Figure {
        id: "2",
        title: "Throughput and loading time with each strategy, standard mix",
        note: "The paper's machine, cache and data are different, so only ratios can be compared. Its TPM follow from table 5. \
               A bulk load in key order loads each table.",
        panels: vec![
            Panel { height: "TPM, SSD", bars: bars(Ssd, [509.0, 292.0, 316.0]) },
            Panel { height: "TPM, HDD", bars: bars(Hdd, [7246.0, 4968.0, 5322.0]) },
            Panel { height: "loading time, of N", bars: ratios.into_iter().map(ratio).collect() },
        ],
        claims: vec![
            claim(
                "The TPM of SSD are orders of magnitude higher than those of HDD",
                Asked::Least(One(Measure::SsdToHdd, NONE), 10.0),
            ),
            claim("Loading with S takes 1.1 to 1.4 times as long as with N", Asked::Most(loading(SELECTIVE, Ssd), 1.4)),
            claim(
                "Loading with A takes up to 2.2 times as long as with S",
                Asked::Most(Ratio(Measure::Loading(Ssd), ALL, SELECTIVE), 2.2),
            ),
        ],
    }
}

fn target() -> Figure {
    let saved = |run| One(Measure::Saved, run);
    let bars = Device::ALL.into_iter().flat_map(|device| {
        [("8K", ALL), ("4K", SMALL)]
            .map(|(name, run)| shown(format!("{} {name}", device.name()), tpm(run, device), None))
    });
    Figure {
        id: "3",
        title: "Targets of 8 KiB and 4 KiB: space and throughput",
        note: "All tables, standard mix. Pages that miss are split.",
        panels: vec![
            Panel {
                height: "space saved, %",
                bars: vec![shown("8K", saved(ALL), 37.6), shown("4K", saved(SMALL), None)],
            },
            Panel { height: "TPM, of N", bars: bars.collect() },
        ],
        claims: vec![
            claim("4 KiB saves about as much as 8 KiB", Asked::About(Ratio(Measure::Saved, SMALL, ALL), 1.0)),
            claim("4 KiB has about the TPM of 8 KiB on SSD", Asked::About(Ratio(Measure::Tpm(Ssd), SMALL, ALL), 1.0)),
            claim("4 KiB has about the TPM of 8 KiB on HDD", Asked::About(Ratio(Measure::Tpm(Hdd), SMALL, ALL), 1.0)),
        ],
    }
}

fn target_loading() -> Figure {
    let bars = Device::ALL.into_iter().flat_map(|device| {
        [("8K", ALL), ("4K", SMALL)]
            .map(|(name, run)| shown(format!("{} {name}", device.name()), loading(run, device), None))
    });
    Figure {
        id: "4",
        title: "Targets of 8 KiB and 4 KiB: loading time",
        note: "",
        panels: vec![Panel { height: "loading time, of N", bars: bars.collect() }],
        claims: vec![claim(
            "Loading with 4 KiB takes longer than with 8 KiB",
            Asked::Greater(loading(SMALL, Ssd), loading(ALL, Ssd)),
        )],
    }
}

fn reading() -> Figure {
    let [none, all, selective, spill, fit] = [NONE, ALL, SELECTIVE, SPILL, FIT].map(Run::reads);
    let bars = Device::ALL.into_iter().flat_map(|device| {
        let bar = |(name, run)| shown(format!("{} {name}", device.name()), tpm(run, device), None);
        [("A", all), ("S", selective), ("A spill", spill), ("A fit", fit), ("A lean", spill.lean())].map(bar)
    });
    let seeks = |measure| {
        let bar = |(name, run)| shown(name, One(measure, run), None);
        [("A", all), ("S", selective), ("A spill", spill), ("A fit", fit), ("N", none)].map(bar).into_iter().collect()
    };
    Figure {
        id: "5",
        title: "Throughput with each strategy, read-intensive mix",
        note: "The text of the paper gives no numbers of this figure. A fit: Zstandard, and places that fit instead of 8 KiB. \
               A call seeks if it does not continue where the call before it ended. The hard disk needs nearly all of its time \
               for seeks.",
        panels: vec![
            Panel { height: "TPM, of N", bars: bars.collect() },
            Panel { height: "seeks of reads, a transaction", bars: seeks(Measure::ReadSeeks) },
            Panel { height: "seeks of writes, a transaction", bars: seeks(Measure::WriteSeeks) },
        ],
        claims: vec![
            claim("A has higher TPM than S on SSD", Asked::Greater(tpm(all, Ssd), tpm(selective, Ssd))),
            claim("A has about the TPM of S on HDD", Asked::About(Ratio(Measure::Tpm(Hdd), all, selective), 1.0)),
            claim("S has about the TPM of N on SSD", Asked::About(tpm(selective, Ssd), 1.0)),
            claim("S has about the TPM of N on HDD", Asked::About(tpm(selective, Hdd), 1.0)),
        ],
    }
}

fn times() -> Figure {
    let names = [("A", ALL), ("S", SELECTIVE), ("N", NONE)];
    let panel = |height, of: &dyn Fn(Run) -> Number, paper: [Option<f64>; 3]| Panel {
        height,
        bars: names.into_iter().zip(paper).map(|((name, run), paper)| shown(name, of(run), paper)).collect(),
    };
    let one = |measure| move |run| One(measure, run);
    let (lock, coding) = (one(Measure::LockWait), one(Measure::Coding));
    Figure {
        id: "table5",
        title: "Time of a transaction",
        note: "The time of a transaction is that of the virtual clock with 20 connections. File I/O is the time of its calls one \
               after the other. Lock waits and compression are measured on this machine, with the device in memory.",
        panels: vec![
            panel("transaction, ms, SSD", &one(Measure::Response(Ssd)), [509.0, 292.0, 316.0].map(Some)),
            panel("file I/O, ms, SSD", &one(Measure::FileIo(Ssd)), [63.0, 143.0, 188.0].map(Some)),
            panel("transaction, ms, HDD", &one(Measure::Response(Hdd)), [7246.0, 4968.0, 5322.0].map(Some)),
            panel("file I/O, ms, HDD", &one(Measure::FileIo(Hdd)), [1332.0, 3424.0, 3919.0].map(Some)),
            panel("lock wait, ms", &lock, [333.0, 40.0, 5.0].map(Some)),
            panel("compression, ms", &coding, [Some(83.0), Some(13.0), None]),
        ],
        claims: vec![
            claim(
                "The file I/O of S takes less time than that of N",
                Asked::Greater(One(Measure::FileIo(Ssd), NONE), One(Measure::FileIo(Ssd), SELECTIVE)),
            ),
            claim(
                "The file I/O of A takes less time than that of S",
                Asked::Greater(One(Measure::FileIo(Ssd), SELECTIVE), One(Measure::FileIo(Ssd), ALL)),
            ),
            claim("A compresses more than S", Asked::Greater(coding(ALL), coding(SELECTIVE))),
            claim(
                "The lock waits of A are 8.3 to 9.5 times those of S",
                Asked::Least(Ratio(Measure::LockWait, ALL, SELECTIVE), 8.3),
            ),
        ],
    }
}

fn load() -> Figure {
    let names = [("A", ALL), ("S", SELECTIVE), ("N", NONE)];
    let panel = |height, measure, paper: [Option<f64>; 3]| Panel {
        height,
        bars: names.into_iter().zip(paper).map(|((name, run), paper)| shown(name, One(measure, run), paper)).collect(),
    };
    Figure {
        id: "table6",
        title: "Loading",
        note: "The paper loads 90 GB.",
        panels: vec![
            panel("loading time, s, SSD", Measure::Loading(Ssd), [24_075.0, 10_868.0, 7_815.0].map(Some)),
            panel("loading time, s, HDD", Measure::Loading(Hdd), [32_045.0, 17_304.0, 15_525.0].map(Some)),
            panel("compression, s", Measure::LoadingCoding, [Some(15_028.0), Some(3_090.0), None]),
            panel("processor use, %, SSD", Measure::LoadingUse(Ssd), [80.0, 57.0, 38.0].map(Some)),
            panel("processor use, %, HDD", Measure::LoadingUse(Hdd), [38.0, 22.0, 11.0].map(Some)),
        ],
        claims: vec![
            claim(
                "Loading with A uses the processors more than with N on SSD",
                Asked::Greater(One(Measure::LoadingUse(Ssd), ALL), One(Measure::LoadingUse(Ssd), NONE)),
            ),
            claim(
                "Compression takes 4.9 times as long in A as in S",
                Asked::About(Ratio(Measure::LoadingCoding, ALL, SELECTIVE), 4.86),
            ),
        ],
    }
}

fn guidelines() -> Figure {
    let [all, selective] = [ALL, SELECTIVE].map(Run::reads);
    Figure {
        id: "guidelines",
        title: "The five guidelines of the paper",
        note: "",
        panels: Vec::new(),
        claims: vec![
            claim("1: for write-intensive workloads S saves space", Asked::Least(One(Measure::Saved, SELECTIVE), 17.3)),
            claim("1: and does not reduce the TPM on SSD", Asked::Least(tpm(SELECTIVE, Ssd), 1.0)),
            claim("1: nor on HDD", Asked::Least(tpm(SELECTIVE, Hdd), 1.0)),
            claim(
                "2: for read-intensive workloads on SSD, A has higher TPM than S",
                Asked::Greater(tpm(all, Ssd), tpm(selective, Ssd)),
            ),
            claim("2: and than N", Asked::Least(tpm(all, Ssd), 1.0)),
            claim(
                "3: for unknown workloads, S is comparable to N: standard mix",
                Asked::Least(tpm(SELECTIVE, Ssd), 1.0),
            ),
            claim("3: read-intensive mix", Asked::Least(tpm(selective, Ssd), 1.0)),
            claim(
                "4: compression is effective on SSD as on HDD",
                Asked::Least(Ratio(Measure::Tpm(Ssd), SELECTIVE, NONE), 1.0),
            ),
            claim(
                "5: a target of 4 KiB makes loading slower on SSD",
                Asked::Greater(loading(SMALL, Ssd), loading(ALL, Ssd)),
            ),
            claim("5: and on HDD", Asked::Greater(loading(SMALL, Hdd), loading(ALL, Hdd))),
            claim("5: it does not save more", Asked::Most(Ratio(Measure::Saved, SMALL, ALL), 1.0)),
            claim("5: it does not raise the TPM on SSD", Asked::Most(Ratio(Measure::Tpm(Ssd), SMALL, ALL), 1.0)),
            claim("5: nor on HDD", Asked::Most(Ratio(Measure::Tpm(Hdd), SMALL, ALL), 1.0)),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_paper_agree_with_each_other() {
        assert!((tpm_of(316.0) - 3797.0).abs() < 1.0);
        let tables = [36_904, 26_308, 21_592, 3_056, 2_404, 456, 18, 9];
        let chosen = [26_308 - 13_296, 3_056 - 1_536, 2_404 - 1_208];
        let saved = f64::from(chosen.iter().sum::<i32>()) / f64::from(tables.iter().sum::<i32>());
        assert!((saved - 0.173).abs() < 0.001, "{saved}");
    }

    #[test]
    fn figures_1_to_5_tables_2_to_6_and_the_guidelines_are_there() {
        let figures = figures();
        let ids: Vec<&str> = figures.iter().map(|figure| figure.id).collect();
        assert_eq!(ids, ["table2", "table3", "table4", "1", "2", "3", "4", "5", "table5", "table6", "guidelines"]);
        let runs: BTreeSet<Run> = figures.iter().flat_map(Figure::runs).collect();
        assert!([FIT, FIT.reads()].iter().all(|run| runs.contains(run)) && runs.len() == 17, "{runs:?}");
        let guidelines = &figures[ids.len() - 1];
        for number in 1..=5 {
            assert!(guidelines.claims.iter().any(|claim| claim.says.starts_with(&format!("{number}: "))), "{number}");
        }
        assert!(figures.iter().all(|figure| figure.claims.iter().all(|claim| !claim.asked.runs().is_empty())
            || figure.id.starts_with("table3")));
    }
}

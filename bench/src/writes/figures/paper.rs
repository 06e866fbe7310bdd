//! The figures and tables of the B-minus-tree paper and what it says about them, in our words. Numbers are those of its
//! text and tables: its curves are not in it. Nothing is measured here.

use super::claims::{Asked, Claim, Measure, Number};
use super::runs::{Logging, Run, Store};
use Number::{One, Ratio};

/// What the axis below a chart is.
#[derive(Clone, Copy)]
pub(super) enum Axis {
    /// There is no chart.
    Nothing,
    /// A bar for each run.
    Stores,
    Threads,
    Thresholds,
}

/// A figure or table of the paper.
pub(super) struct Figure {
    /// Its number; of a table `table` and its number.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// What is different here.
    pub(super) note: &'static str,
    pub(super) axis: Axis,
    pub(super) measures: &'static [Measure],
    pub(super) runs: Vec<Run>,
    pub(super) claims: Vec<Claim>,
}

/// The paper's delta blocks, and those with its longer segments.
const PAPER: Store = Store::Delta(2048, 128, 1);
const WIDE: Store = Store::Delta(2048, 256, 1);
/// The default, and several delta blocks a page.
const DEFAULT: Store = Store::Delta(700, 32, 1);
const SEVERAL: Store = Store::Delta(3000, 32, 16);

const RECORDS: [u32; 3] = [128, 32, 16];
const PAGES: [u64; 2] = [8192, 16384];
const THREADS: [u32; 3] = [1, 4, 16];

/// Each of these runs with each number of threads.
fn threaded(runs: &[Run]) -> Vec<Run> {
    runs.iter().flat_map(|run| THREADS.map(|threads| run.threads(threads))).collect()
}

/// These stores with each record size.
fn each_record(base: fn(Store) -> Run, page: u64, stores: &[Store]) -> Vec<Run> {
    RECORDS.iter().flat_map(|record| stores.iter().map(|store| base(*store).record(*record).page(page))).collect()
}

fn about(says: &'static str, number: Number, paper: f64) -> Claim {
    Claim { says, asked: Asked::About(number, paper) }
}

fn most(says: &'static str, number: Number, paper: f64) -> Claim {
    Claim { says, asked: Asked::Most(number, paper) }
}

fn least(says: &'static str, number: Number, paper: f64) -> Claim {
    Claim { says, asked: Asked::Least(number, paper) }
}

fn nearer(says: &'static str, number: Number, than: Number) -> Claim {
    Claim { says, asked: Asked::Nearer(number, than) }
}

/// All of them, in the paper's order.
pub(super) fn figures() -> Vec<Figure> {
    let beginning = [alignment(), first_space(), first_writes(), minute_far(), minute_near(), commit_log()];
    let rest = [commit_total(), space(), thresholds(), beta()];
    beginning.into_iter().chain(rest).chain(speeds()).collect()
}

fn alignment() -> Figure {
    let image = |page| Run::far(Store::Table).page(page);
    Figure {
        id: "1",
        title: "Space that pages waste if they are compressed before they are written",
        note: "The bytes of each page write after compression, rounded up to blocks of 4 KiB, to these bytes. The \
               paper has an example.",
        axis: Axis::Stores,
        measures: &[Measure::Waste],
        runs: PAGES.iter().flat_map(|page| [Store::Table, Store::Whole].map(|s| Run::far(s).page(*page))).collect(),
        claims: vec![
            least(
                "a page of 16 KiB, compressed to 5 KB, takes 8 KB: 1.6 times as much",
                One(Measure::Waste, image(16384)),
                1.1,
            ),
            nearer(
                "the waste is a part of a block, and so a smaller part of a large page",
                One(Measure::Waste, image(16384)),
                One(Measure::Waste, image(8192)),
            ),
        ],
    }
}

fn first_space() -> Figure {
    let table = Run::far(Store::Table);
    let physical = One(Measure::PhysicalSpace, table);
    Figure {
        id: "table1",
        title: "Space of a B-tree",
        note: "The paper has 280 GB and 104 GB for 150 GB of records in WiredTiger, and 218 GB and 129 GB in RocksDB.",
        axis: Axis::Nothing,
        measures: &[Measure::LogicalSpace, Measure::PhysicalSpace],
        runs: vec![table, Run::far(Store::Baseline)],
        claims: vec![
            about("a B-tree takes 1.87 times the records before compression", One(Measure::LogicalSpace, table), 1.87),
            about("it takes 0.69 times the records after compression", physical, 0.69),
            most("it takes less after compression than RocksDB, with 0.86 times the records", physical, 0.86),
        ],
    }
}

fn first_writes() -> Figure {
    let runs = threaded(&[Run::far(Store::Baseline), Run::far(PAPER)]);
    Figure {
        id: "4",
        title: "Write amplification without a log",
        note: "The paper has RocksDB beside WiredTiger; here the B-minus-tree is beside the baseline.",
        axis: Axis::Threads,
        measures: &[Measure::WithoutLog],
        claims: vec![most(
            "RocksDB writes a quarter of what WiredTiger writes: the B-minus-tree is to write no more than that",
            Ratio(Measure::WithoutLog, Run::far(PAPER), Run::far(Store::Baseline)),
            0.25,
        )],
        runs,
    }
}

fn minute_far() -> Figure {
    let mut runs = threaded(&each_record(Run::far, 8192, &[Store::Baseline, PAPER, DEFAULT]));
    runs.extend(each_record(Run::far, 8192, &[Store::Table, Store::Whole, WIDE, SEVERAL]));
    runs.extend(each_record(Run::far, 16384, &[Store::Baseline, PAPER, DEFAULT, SEVERAL]));
    let (baseline, delta) = (Run::far(Store::Baseline), Run::far(PAPER));
    let total = |run, to| Ratio(Measure::Total, run, to);
    Figure {
        id: "9",
        title: "Write amplification, log flushed each minute, 150 leaves a frame",
        note: "The paper has 1 to 16 threads everywhere, its own 4 threads that write pages, and WiredTiger and \
               RocksDB, too. Its text gives these numbers without a number of threads; ours are of one.",
        axis: Axis::Threads,
        measures: &[Measure::Total],
        claims: vec![
            about("WiredTiger, as the baseline, has 64 with 128 B and 8 KiB", One(Measure::Total, baseline), 64.0),
            most("the B-minus-tree has 8 with 128 B and 8 KiB", One(Measure::Total, delta), 8.0),
            most("RocksDB has 14 there, more than the B-minus-tree", One(Measure::Total, delta), 14.0),
            about(
                "the baseline has four times as much with records of a quarter",
                total(baseline.record(32), baseline),
                4.0,
            ),
            about("the baseline has twice as much with pages of 16 KiB", total(baseline.page(16384), baseline), 2.0),
            nearer("the B-minus-tree grows less with small records", total(delta.record(16), delta), {
                total(baseline.record(16), baseline)
            }),
            nearer("the B-minus-tree grows less with large pages", total(delta.page(16384), delta), {
                total(baseline.page(16384), baseline)
            }),
            most("the baseline writes less with 16 threads than with one", total(baseline.threads(16), baseline), 0.95),
            nearer("the B-minus-tree depends less on threads", total(delta.threads(16), delta), {
                total(baseline.threads(16), baseline)
            }),
            least("segments of 256 B write more than those of 128 B", total(Run::far(WIDE), delta), 1.0),
            nearer("segments matter more with small records", total(Run::far(WIDE), delta), {
                total(Run::far(WIDE).record(16), delta.record(16))
            }),
        ],
        runs,
    }
}

fn minute_near() -> Figure {
    let stores = [Store::Baseline, PAPER, WIDE, DEFAULT];
    let mut runs: Vec<Run> = PAGES.iter().flat_map(|page| threaded(&each_record(Run::near, *page, &stores))).collect();
    runs.extend(PAGES.iter().flat_map(|page| each_record(Run::near, *page, &[SEVERAL])));
    let run = |store| Run::near(store).record(32).threads(4);
    let (baseline, delta) = (run(Store::Baseline), run(PAPER));
    let far = |store| Run::far(store).record(32).threads(4);
    let total = |run| One(Measure::Total, run);
    runs.extend([far(Store::Baseline), far(PAPER)]);
    Figure {
        id: "10",
        title: "Write amplification, log flushed each minute, 33 leaves a frame",
        note: "The numbers are those that the paper gives for records of 32 B and 4 threads.",
        axis: Axis::Threads,
        measures: &[Measure::Total],
        claims: vec![
            about("WiredTiger, as the baseline, has 268 with 8 KiB", total(baseline), 268.0),
            about("it has 530 with 16 KiB", total(baseline.page(16384)), 530.0),
            most("the B-minus-tree has 28 with 8 KiB", total(delta), 28.0),
            most("it has 36 with 16 KiB", total(delta.page(16384)), 36.0),
            most("RocksDB has 38 with 500 GB, more than the B-minus-tree", total(delta), 38.0),
            about(
                "a B-tree depends little on the size of the data",
                Ratio(Measure::Total, baseline, far(Store::Baseline)),
                1.0,
            ),
            about("so does the B-minus-tree", Ratio(Measure::Total, delta, far(PAPER)), 1.0),
        ],
        runs,
    }
}

/// The runs with a flush each commit, at 33 leaves a frame.
fn commits() -> Vec<Run> {
    let packed = each_record(Run::near, 8192, &[Store::Baseline]).into_iter().map(|run| run.logging(Logging::Packed));
    let sparse = each_record(Run::near, 8192, &[PAPER, DEFAULT]).into_iter().map(|run| run.logging(Logging::Sparse));
    threaded(&packed.chain(sparse).collect::<Vec<_>>())
}

fn commit_log() -> Figure {
    let packed = Run::near(Store::Baseline).logging(Logging::Packed);
    let sparse = Run::near(PAPER).logging(Logging::Sparse);
    let log = |run, to| Ratio(Measure::Log, run, to);
    Figure {
        id: "11",
        title: "Write amplification of the log, flushed with each commit",
        note: "33 leaves a frame; the log does not depend on that.",
        axis: Axis::Threads,
        measures: &[Measure::Log],
        claims: vec![
            most("a packed log writes less with 16 threads than with one", log(packed.threads(16), packed), 0.75),
            nearer(
                "a sparse log depends less on threads",
                log(sparse.threads(16), sparse),
                log(packed.threads(16), packed),
            ),
            about(
                "a packed log writes four times as much with records of a quarter",
                log(packed.record(32), packed),
                4.0,
            ),
            nearer("a sparse log grows less", log(sparse.record(32), sparse), log(packed.record(32), packed)),
            most("a sparse log writes much less than a packed one", log(sparse, packed), 0.5),
        ],
        runs: commits(),
    }
}

fn commit_total() -> Figure {
    let packed = Run::near(Store::Baseline).logging(Logging::Packed);
    let sparse = Run::near(PAPER).logging(Logging::Sparse);
    let minute = |run: Run| Ratio(Measure::Total, run, run.logging(Logging::Minute));
    let mut runs = commits();
    runs.extend([packed, sparse].map(|run| run.logging(Logging::Minute)));
    Figure {
        id: "12",
        title: "Write amplification, log flushed with each commit",
        note: "33 leaves a frame where the paper has 150.",
        axis: Axis::Threads,
        measures: &[Measure::Total],
        claims: vec![
            about("the B-minus-tree writes about as much as with a flush each minute", minute(sparse), 1.0),
            least("the baseline writes more than with a flush each minute", minute(packed), 1.05),
            most(
                "the B-minus-tree writes less than RocksDB, 14 without these flushes",
                One(Measure::Total, sparse),
                14.0,
            ),
        ],
        runs,
    }
}

fn space() -> Figure {
    let [table, delta] = [Run::near(Store::Table), Run::near(PAPER)];
    let tuned = [Store::Delta(1024, 128, 1), Store::Delta(4096, 128, 1), DEFAULT, SEVERAL].map(Run::near);
    Figure {
        id: "13",
        title: "Space, pages of 8 KiB",
        note: "The paper has 452 GB for 500 GB of records in the B-minus-tree, and 431 GB in RocksDB.",
        axis: Axis::Stores,
        measures: &[Measure::LogicalSpace, Measure::PhysicalSpace],
        claims: vec![
            least(
                "the B-minus-tree takes much more than a B-tree before compression",
                Ratio(Measure::LogicalSpace, delta, table),
                1.5,
            ),
            most("it takes 0.90 times the records after compression", One(Measure::PhysicalSpace, delta), 0.904),
            most("a B-tree takes less after compression", Ratio(Measure::PhysicalSpace, table, delta), 1.0),
            most("a small threshold takes less space", Ratio(Measure::PhysicalSpace, tuned[0], tuned[1]), 1.0),
        ],
        runs: [table, Run::near(Store::Baseline), delta].into_iter().chain(tuned).collect(),
    }
}

fn thresholds() -> Figure {
    let stores = [1024, 2048, 4096].map(|threshold| Store::Delta(threshold, 128, 1));
    let [low, middle, high] = stores.map(Run::near);
    let total = |run, to| Ratio(Measure::Total, run, to);
    Figure {
        id: "14",
        title: "Write amplification over the threshold",
        note: "33 leaves a frame, one thread, segments of 128 B.",
        axis: Axis::Thresholds,
        measures: &[Measure::Total],
        runs: PAGES.iter().flat_map(|page| each_record(Run::near, *page, &stores)).collect(),
        claims: vec![
            most("a threshold of 2 KiB writes less than one of 1 KiB", total(middle, low), 0.95),
            most("one of 4 KiB writes less than one of 2 KiB", total(high, middle), 0.95),
            nearer("each doubling gains less", total(high, middle), total(middle, low)),
        ],
    }
}

/// The paper's table 2: bytes of a page, of a segment and the threshold, then beta in percent, and the three in words.
const BETA: [(u64, u16, u16, f64, &str); 12] = [
    (8192, 128, 4096, 27.0, "8 KiB, 128 B, 4 KiB"),
    (8192, 128, 2048, 12.4, "8 KiB, 128 B, 2 KiB"),
    (8192, 128, 1024, 5.6, "8 KiB, 128 B, 1 KiB"),
    (8192, 256, 4096, 26.3, "8 KiB, 256 B, 4 KiB"),
    (8192, 256, 2048, 11.5, "8 KiB, 256 B, 2 KiB"),
    (8192, 256, 1024, 4.8, "8 KiB, 256 B, 1 KiB"),
    (16384, 128, 4096, 12.7, "16 KiB, 128 B, 4 KiB"),
    (16384, 128, 2048, 6.0, "16 KiB, 128 B, 2 KiB"),
    (16384, 128, 1024, 2.8, "16 KiB, 128 B, 1 KiB"),
    (16384, 256, 4096, 12.3, "16 KiB, 256 B, 4 KiB"),
    (16384, 256, 2048, 5.6, "16 KiB, 256 B, 2 KiB"),
    (16384, 256, 1024, 2.3, "16 KiB, 256 B, 1 KiB"),
];

fn beta() -> Figure {
    let store = |segment, threshold| Store::Delta(threshold, segment, 1);
    let cells = BETA
        .map(|(page, segment, threshold, paper, says)| (Run::near(store(segment, threshold)).page(page), paper, says));
    Figure {
        id: "table2",
        title: "Space of delta blocks to that of pages: beta",
        note: "33 leaves a frame, records of 128 B. A claim names the page, the segment and the threshold.",
        axis: Axis::Thresholds,
        measures: &[Measure::Beta],
        claims: cells.iter().map(|(run, paper, says)| most(says, One(Measure::Beta, *run), *paper)).collect(),
        runs: cells.into_iter().map(|(run, ..)| run).collect(),
    }
}

/// Figures 15 to 17: reads, scans and overwrites.
fn speeds() -> [Figure; 3] {
    let runs = threaded(&[Store::Table, Store::Baseline, PAPER, DEFAULT, SEVERAL].map(Run::far));
    let [baseline, delta] = [Store::Baseline, PAPER].map(|store| Run::far(store).threads(16));
    let to = |measure| Ratio(measure, delta, baseline);
    let figure = |id, title, measures, claims| {
        let note = "Operations a second of the model of the paper's drive, with a call of each thread at a time. The \
                    time of the processor is not in them.";
        Figure { id, title, note, axis: Axis::Threads, measures, runs: runs.clone(), claims }
    };
    let reads =
        about("the B-minus-tree reads 57,000 where WiredTiger reads 71,000: 0.8 times", to(Measure::Reads), 0.8);
    let scans = nearer("scans differ less than reads", to(Measure::Scans), to(Measure::Reads));
    let writes = least("the B-minus-tree overwrites 2.1 times as fast as the baseline", to(Measure::Overwrites), 2.1);
    [
        figure("15", "Random reads", &[Measure::Reads], vec![reads]),
        figure("16", "Random scans of 100 records", &[Measure::Scans], vec![scans]),
        figure("17", "Random overwrites", &[Measure::Overwrites], vec![writes]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use duramen::db::DeltaBlocks;
    use std::collections::BTreeSet;

    #[test]
    fn the_default_is_the_default_of_the_engine() {
        assert_eq!(DEFAULT.to_string(), DeltaBlocks::default().to_string());
    }

    #[test]
    fn every_claim_asks_for_runs_that_its_figure_has() {
        for figure in figures() {
            for claim in &figure.claims {
                let numbers = match claim.asked {
                    Asked::About(number, _) | Asked::Most(number, _) | Asked::Least(number, _) => vec![number],
                    Asked::Nearer(number, than) => vec![number, than],
                };
                for run in numbers.into_iter().flat_map(Number::runs) {
                    assert!(figure.runs.contains(&run), "{}, {:?}: {run}", figure.id, claim.says);
                }
            }
            assert_eq!(figure.runs.iter().collect::<BTreeSet<_>>().len(), figure.runs.len(), "{}", figure.id);
        }
    }
}

//! Write amplification with few flushes of the log: figures 4, 9, 10 and 14.

use super::{
    Axis, DEFAULT, Figure, PAGES, PAPER, ROCKS, SEVERAL, TIGER, WIDE, about, each_record, least, most, nearer, threaded,
};
use crate::claims::Number::{One, Ratio};
use crate::writes::figures::claims::{Claim, Measure};
use crate::writes::figures::runs::{Run, Store};

pub(super) fn first_writes() -> Figure {
    let runs = threaded(&[Store::Baseline, PAPER, TIGER, ROCKS].map(Run::far));
    let [rocks, tiger] = [ROCKS, TIGER].map(Run::far);
    let to = |run: Run, to: Run| Ratio(Measure::WithoutLog, run, to);
    Figure {
        id: "4",
        title: "Write amplification without a log",
        note: "The paper has RocksDB and WiredTiger. Here the log is on, and its bytes are left out.",
        axis: Axis::Threads,
        measures: &[Measure::WithoutLog],
        claims: vec![
            most(
                "RocksDB writes a quarter of what a B-tree writes. Here: the B-minus-tree against the baseline",
                to(Run::far(PAPER), Run::far(Store::Baseline)),
                0.25,
            ),
            about("RocksDB writes a quarter of what WiredTiger writes, with 1 thread", to(rocks, tiger), 0.25),
            about(
                "RocksDB writes a quarter of what WiredTiger writes, with 16 threads",
                to(rocks.threads(16), tiger.threads(16)),
                0.25,
            ),
        ],
        runs,
    }
}

pub(super) fn minute_far() -> Figure {
    let mut runs = threaded(&each_record(Run::far, 8192, &[Store::Baseline, PAPER, DEFAULT]));
    runs.extend(each_record(Run::far, 8192, &[Store::Table, Store::Whole, WIDE, SEVERAL]));
    runs.extend(each_record(Run::far, 16384, &[Store::Baseline, PAPER, DEFAULT, SEVERAL, TIGER, ROCKS]));
    runs.extend(threaded(&each_record(Run::far, 8192, &[TIGER, ROCKS])));
    Figure {
        id: "9",
        title: "Write amplification, log flushed each minute, 150 leaves for each page of the cache",
        note: "The paper measures every setting with 1 to 16 threads. Its text gives these numbers without a number of \
               threads. Claims are about one thread, records of 128 B and pages of 8 KiB, if they do not say otherwise.",
        axis: Axis::Threads,
        measures: &[Measure::Total],
        claims: far_stores().into_iter().chain(far_settings()).collect(),
        runs,
    }
}

/// The claims that compare stores.
fn far_stores() -> Vec<Claim> {
    let [baseline, delta, tiger, rocks] = [Store::Baseline, PAPER, TIGER, ROCKS].map(Run::far);
    let total = |run, to| Ratio(Measure::Total, run, to);
    vec![
        about(
            "The write amplification of WiredTiger, here of the baseline, is 64 (128 B, 8 KiB)",
            One(Measure::Total, baseline),
            64.0,
        ),
        about("The write amplification of WiredTiger is 64 (128 B, 8 KiB)", One(Measure::Total, tiger), 64.0),
        about("The baseline writes as much as WiredTiger (128 B, 8 KiB)", total(baseline, tiger), 1.0),
        most("The write amplification of the B-minus-tree is 8 (128 B, 8 KiB)", One(Measure::Total, delta), 8.0),
        least("WiredTiger writes 8 times as much as the B-minus-tree (128 B, 8 KiB)", total(tiger, delta), 8.0),
        most(
            "The B-minus-tree writes less than RocksDB, whose write amplification is 14 (128 B, 8 KiB)",
            One(Measure::Total, delta),
            14.0,
        ),
        about("The write amplification of RocksDB is 14 (128 B)", One(Measure::Total, rocks), 14.0),
        least("RocksDB writes up to twice as much as the B-minus-tree (128 B, 8 KiB)", total(rocks, delta), 1.75),
        most(
            "RocksDB writes as little as a quarter of what the B-minus-tree writes (16 B, 16 KiB)",
            total(rocks.record(16).page(16384), delta.record(16).page(16384)),
            0.25,
        ),
        nearer(
            "RocksDB depends less than WiredTiger on the size of records (16 B against 128 B)",
            total(rocks.record(16), rocks),
            total(tiger.record(16), tiger),
        ),
    ]
}

/// The claims about the sizes of records, pages and segments, and about threads.
fn far_settings() -> Vec<Claim> {
    let [baseline, delta] = [Store::Baseline, PAPER].map(Run::far);
    let total = |run, to| Ratio(Measure::Total, run, to);
    vec![
        about(
            "The write amplification of a B-tree, here the baseline, is 4 times as high with 32 B as with 128 B",
            total(baseline.record(32), baseline),
            4.0,
        ),
        about(
            "A B-tree, here the baseline, writes twice as much with pages of 16 KiB as with 8 KiB",
            total(baseline.page(16384), baseline),
            2.0,
        ),
        nearer(
            "The B-minus-tree depends less than the baseline on the size of records (16 B against 128 B)",
            total(delta.record(16), delta),
            total(baseline.record(16), baseline),
        ),
        nearer(
            "The B-minus-tree depends less than the baseline on the size of pages (16 KiB against 8 KiB)",
            total(delta.page(16384), delta),
            total(baseline.page(16384), baseline),
        ),
        most(
            "A B-tree, here the baseline, writes less with 16 threads than with 1",
            total(baseline.threads(16), baseline),
            0.95,
        ),
        nearer(
            "The B-minus-tree depends less than the baseline on the number of threads",
            total(delta.threads(16), delta),
            total(baseline.threads(16), baseline),
        ),
        least("Segments of 256 B write more than segments of 128 B", total(Run::far(WIDE), delta), 1.0),
        nearer(
            "The size of segments matters more with records of 16 B than with 128 B",
            total(Run::far(WIDE), delta),
            total(Run::far(WIDE).record(16), delta.record(16)),
        ),
    ]
}

pub(super) fn minute_near() -> Figure {
    let stores = [Store::Baseline, PAPER, WIDE, DEFAULT];
    let mut runs: Vec<Run> = PAGES.iter().flat_map(|page| threaded(&each_record(Run::near, *page, &stores))).collect();
    runs.extend(PAGES.iter().flat_map(|page| each_record(Run::near, *page, &[SEVERAL])));
    runs.extend(PAGES.iter().flat_map(|page| threaded(&each_record(Run::near, *page, &[TIGER, ROCKS]))));
    runs.extend([Store::Baseline, PAPER, ROCKS].map(|store| Run::far(store).record(32).threads(4)));
    Figure {
        id: "10",
        title: "Write amplification, log flushed each minute, 33 leaves for each page of the cache",
        note: "Claims are about records of 32 B and 4 threads, if they do not say otherwise.",
        axis: Axis::Threads,
        measures: &[Measure::Total],
        claims: near_claims(),
        runs,
    }
}

fn near_claims() -> Vec<Claim> {
    let near = |store| Run::near(store).record(32).threads(4);
    let [baseline, delta, tiger, rocks] = [Store::Baseline, PAPER, TIGER, ROCKS].map(near);
    let far = |store| Run::far(store).record(32).threads(4);
    let total = |run| One(Measure::Total, run);
    let to = |run, to| Ratio(Measure::Total, run, to);
    vec![
        about(
            "The write amplification of WiredTiger, here of the baseline, is 268 with pages of 8 KiB",
            total(baseline),
            268.0,
        ),
        about(
            "The write amplification of WiredTiger, here of the baseline, is 530 with pages of 16 KiB",
            total(baseline.page(16384)),
            530.0,
        ),
        about("The write amplification of WiredTiger is 268 with pages of 8 KiB", total(tiger), 268.0),
        about("The write amplification of WiredTiger is 530 with pages of 16 KiB", total(tiger.page(16384)), 530.0),
        most("The write amplification of the B-minus-tree is 28 with pages of 8 KiB", total(delta), 28.0),
        most("The write amplification of the B-minus-tree is 36 with pages of 16 KiB", total(delta.page(16384)), 36.0),
        most("The B-minus-tree writes less than RocksDB, whose write amplification is 38 (8 KiB)", total(delta), 38.0),
        about("The write amplification of RocksDB is 38", total(rocks), 38.0),
        about("WiredTiger writes 7.1 times as much as RocksDB with pages of 8 KiB", to(tiger, rocks), 7.1),
        about(
            "WiredTiger writes 13.9 times as much as RocksDB with pages of 16 KiB",
            to(tiger.page(16384), rocks),
            13.9,
        ),
        most("The B-minus-tree writes 0.74 times as much as RocksDB with pages of 8 KiB", to(delta, rocks), 0.74),
        most("The B-minus-tree writes as much as RocksDB with pages of 16 KiB", to(delta.page(16384), rocks), 1.0),
        least(
            "RocksDB writes up to three times as much as the B-minus-tree (128 B, 8 KiB)",
            to(rocks.record(128), delta.record(128)),
            2.5,
        ),
        most(
            "RocksDB writes as little as half of what the B-minus-tree writes (16 B, 16 KiB)",
            to(rocks.record(16), delta.record(16).page(16384)),
            0.5,
        ),
        least("RocksDB writes more with 500 GB of records than with 150 GB", to(rocks, far(ROCKS)), 1.1),
        about(
            "A B-tree, here the baseline, depends little on the size of the data set",
            to(baseline, far(Store::Baseline)),
            1.0,
        ),
        about("The B-minus-tree depends little on the size of the data set", to(delta, far(PAPER)), 1.0),
    ]
}

pub(super) fn thresholds() -> Figure {
    let stores = [1024, 2048, 4096].map(|threshold| Store::Delta(threshold, 128, 1));
    let [low, middle, high] = stores.map(Run::near);
    let total = |run, to| Ratio(Measure::Total, run, to);
    Figure {
        id: "14",
        title: "Write amplification over the threshold",
        note: "33 leaves for each page of the cache, one thread, segments of 128 B. Claims are about records of 128 B and \
               pages of 8 KiB.",
        axis: Axis::Thresholds,
        measures: &[Measure::Total],
        runs: PAGES.iter().flat_map(|page| each_record(Run::near, *page, &stores)).collect(),
        claims: vec![
            most("A threshold of 2 KiB writes less than one of 1 KiB", total(middle, low), 0.95),
            most("A threshold of 4 KiB writes less than one of 2 KiB", total(high, middle), 0.95),
            nearer(
                "The second doubling of the threshold gains less than the first one",
                total(high, middle),
                total(middle, low),
            ),
        ],
    }
}

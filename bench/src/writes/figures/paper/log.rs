//! Write amplification with a flush of the log for each commit: figures 11 and 12.

use super::{Axis, DEFAULT, Figure, PAPER, ROCKS, TIGER, about, each_record, least, most, nearer, threaded};
use crate::claims::Number::{One, Ratio};
use crate::writes::figures::claims::Measure;
use crate::writes::figures::runs::{Logging, Run, Store};

/// The runs with a flush at each commit, at 33 leaves for each page of the cache.
fn commits() -> Vec<Run> {
    let packed = each_record(Run::near, 8192, &[Store::Baseline, TIGER, ROCKS]);
    let packed = packed.into_iter().map(|run| run.logging(Logging::Packed));
    let sparse = each_record(Run::near, 8192, &[PAPER, DEFAULT]).into_iter().map(|run| run.logging(Logging::Sparse));
    threaded(&packed.chain(sparse).collect::<Vec<_>>())
}

pub(super) fn commit_log() -> Figure {
    let packed = Run::near(Store::Baseline).logging(Logging::Packed);
    let sparse = Run::near(PAPER).logging(Logging::Sparse);
    let [tiger, rocks] = [TIGER, ROCKS].map(|store| Run::near(store).logging(Logging::Packed));
    let log = |run, to| Ratio(Measure::Log, run, to);
    Figure {
        id: "11",
        title: "Write amplification of the log, flushed with each commit",
        note: "33 leaves for each page of the cache; the log does not depend on that. The B-minus-tree has a sparse log, \
               the other stores have a packed one. Claims are about records of 128 B and one thread, if they do not say \
               otherwise.",
        axis: Axis::Threads,
        measures: &[Measure::Log],
        claims: vec![
            most("A packed log writes less with 16 threads than with 1", log(packed.threads(16), packed), 0.75),
            nearer(
                "A sparse log depends less than a packed one on the number of threads",
                log(sparse.threads(16), sparse),
                log(packed.threads(16), packed),
            ),
            about(
                "The write amplification of a packed log is 4 times as high with 32 B as with 128 B",
                log(packed.record(32), packed),
                4.0,
            ),
            nearer(
                "A sparse log depends less than a packed one on the size of records (32 B against 128 B)",
                log(sparse.record(32), sparse),
                log(packed.record(32), packed),
            ),
            most("A sparse log writes much less than a packed one", log(sparse, packed), 0.5),
            most("The log of WiredTiger writes less with 16 threads than with 1", log(tiger.threads(16), tiger), 0.75),
            most("The log of RocksDB writes less with 16 threads than with 1", log(rocks.threads(16), rocks), 0.75),
            about(
                "The write amplification of the log of WiredTiger is 4 times as high with 32 B as with 128 B",
                log(tiger.record(32), tiger),
                4.0,
            ),
            about(
                "The write amplification of the log of RocksDB is 4 times as high with 32 B as with 128 B",
                log(rocks.record(32), rocks),
                4.0,
            ),
        ],
        runs: commits(),
    }
}

pub(super) fn commit_total() -> Figure {
    let packed = Run::near(Store::Baseline).logging(Logging::Packed);
    let sparse = Run::near(PAPER).logging(Logging::Sparse);
    let [tiger, rocks] = [TIGER, ROCKS].map(|store| Run::near(store).logging(Logging::Packed));
    let minute = |run: Run| Ratio(Measure::Total, run, run.logging(Logging::Minute));
    let mut runs = commits();
    runs.extend([packed, sparse, tiger, rocks].map(|run| run.logging(Logging::Minute)));
    Figure {
        id: "12",
        title: "Write amplification, log flushed with each commit",
        note: "33 leaves for each page of the cache, where the paper has 150. The B-minus-tree has a sparse log, the other \
               stores have a packed one. Claims are about records of 128 B and one thread.",
        axis: Axis::Threads,
        measures: &[Measure::Total],
        claims: vec![
            about("The B-minus-tree writes as much as with a flush each minute", minute(sparse), 1.0),
            least("A B-tree, here the baseline, writes more than with a flush each minute", minute(packed), 1.05),
            most(
                "The B-minus-tree writes less than RocksDB, whose write amplification is 14 even without these flushes",
                One(Measure::Total, sparse),
                14.0,
            ),
            least("WiredTiger writes more than with a flush each minute", minute(tiger), 1.05),
            least("RocksDB writes more than with a flush each minute", minute(rocks), 1.05),
            most("The B-minus-tree writes less than RocksDB", Ratio(Measure::Total, sparse, rocks), 1.0),
        ],
        runs,
    }
}

//! Operations per second: figures 15 to 17.

use super::{Axis, DEFAULT, Figure, PAPER, ROCKS, SEVERAL, TIGER, about, least, most, nearer, threaded};
use crate::claims::Number::Ratio;
use crate::writes::figures::claims::Measure;
use crate::writes::figures::runs::{Run, Store};

/// Figures 15 to 17: reads, scans and overwrites.
pub(super) fn speeds() -> [Figure; 3] {
    let runs = threaded(&[Store::Table, Store::Baseline, PAPER, DEFAULT, SEVERAL, TIGER, ROCKS].map(Run::far));
    let [baseline, delta, tiger, rocks] =
        [Store::Baseline, PAPER, TIGER, ROCKS].map(|store| Run::far(store).threads(16));
    let figure = |id, title, measures, claims| {
        let note = "Operations a second of a model of the paper's drive, if each thread waits for one call at a time. The \
                    time of the processor is not included. Claims are about 16 threads.";
        Figure { id, title, note, axis: Axis::Threads, measures, runs: runs.clone(), claims }
    };
    let to = |run, to| Ratio(Measure::Reads, run, to);
    let reads = vec![
        about("The B-minus-tree reads 0.8 times as fast as a B-tree, here the baseline", to(delta, baseline), 0.8),
        about(
            "The B-minus-tree reads 0.8 times as fast as WiredTiger: 57,000 against 71,000 reads a second",
            to(delta, tiger),
            0.8,
        ),
        about("RocksDB reads as fast as the B-minus-tree", to(rocks, delta), 1.0),
    ];
    let scan = |run, to| Ratio(Measure::Scans, run, to);
    let scans = vec![
        nearer(
            "Scans of the B-minus-tree and the baseline differ less than reads",
            scan(delta, baseline),
            to(delta, baseline),
        ),
        most("RocksDB scans slower than WiredTiger", scan(rocks, tiger), 0.9),
        most("RocksDB scans slower than the B-minus-tree", scan(rocks, delta), 0.9),
    ];
    let write = |to| Ratio(Measure::Overwrites, delta, to);
    let writes = vec![
        least("The B-minus-tree overwrites 2.1 times as fast as the baseline", write(baseline), 2.1),
        least("The B-minus-tree overwrites 2.1 times as fast as WiredTiger", write(tiger), 2.1),
        least("The B-minus-tree overwrites 1.19 times as fast as RocksDB", write(rocks), 1.19),
    ];
    [
        figure("15", "Random reads", &[Measure::Reads], reads),
        figure("16", "Random scans of 100 records", &[Measure::Scans], scans),
        figure("17", "Random overwrites", &[Measure::Overwrites], writes),
    ]
}

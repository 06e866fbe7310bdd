//! Space: figures 1 and 13, tables 1 and 2.

use super::{Axis, DEFAULT, Figure, PAGES, PAPER, ROCKS, SEVERAL, TIGER, about, least, most, nearer};
use crate::claims::Number::{One, Ratio};
use crate::writes::figures::claims::Measure;
use crate::writes::figures::runs::{Run, Store};

pub(super) fn alignment() -> Figure {
    let image = |page| Run::far(Store::Table).page(page);
    Figure {
        id: "1",
        title: "Space that compression before writing wastes",
        note: "A store that compresses a page itself takes whole blocks of 4 KiB for it. The chart has the bytes of \
               these blocks for each compressed byte. The paper has only an example.",
        axis: Axis::Stores,
        measures: &[Measure::Waste],
        runs: PAGES.iter().flat_map(|page| [Store::Table, Store::Whole].map(|s| Run::far(s).page(*page))).collect(),
        claims: vec![
            least(
                "A page of 16 KiB that is compressed to 5 KB takes 8 KB, 1.6 times as much",
                One(Measure::Waste, image(16384)),
                1.1,
            ),
            nearer(
                "The waste is a part of one block, so it matters less with pages of 16 KiB than with pages of 8 KiB",
                One(Measure::Waste, image(16384)),
                One(Measure::Waste, image(8192)),
            ),
        ],
    }
}

pub(super) fn first_space() -> Figure {
    let [table, tiger, rocks] = [Store::Table, TIGER, ROCKS].map(Run::far);
    let of = |run| One(Measure::PhysicalSpace, run);
    Figure {
        id: "table1",
        title: "Space of a B-tree and of an LSM-tree",
        note: "The paper has 280 GB before and 104 GB after compression for 150 GB of records in WiredTiger, and 218 GB \
               and 129 GB in RocksDB.",
        axis: Axis::Nothing,
        measures: &[Measure::LogicalSpace, Measure::PhysicalSpace],
        runs: [Store::Table, Store::Baseline, TIGER, ROCKS].map(Run::far).to_vec(),
        claims: vec![
            about(
                "A B-tree, here table, takes 1.87 times the bytes of the records before compression",
                One(Measure::LogicalSpace, table),
                1.87,
            ),
            about("A B-tree, here table, takes 0.69 times the bytes of the records after compression", of(table), 0.69),
            most(
                "A B-tree, here table, takes less after compression than RocksDB: 0.86 times the bytes of the records",
                of(table),
                0.86,
            ),
            about(
                "WiredTiger takes 1.87 times the bytes of the records before compression",
                One(Measure::LogicalSpace, tiger),
                1.87,
            ),
            about("WiredTiger takes 0.69 times the bytes of the records after compression", of(tiger), 0.69),
            about(
                "RocksDB takes 1.45 times the bytes of the records before compression",
                One(Measure::LogicalSpace, rocks),
                1.45,
            ),
            about("RocksDB takes 0.86 times the bytes of the records after compression", of(rocks), 0.86),
            most(
                "RocksDB takes less than WiredTiger before compression",
                Ratio(Measure::LogicalSpace, rocks, tiger),
                1.0,
            ),
            least(
                "RocksDB takes more than WiredTiger after compression",
                Ratio(Measure::PhysicalSpace, rocks, tiger),
                1.0,
            ),
        ],
    }
}

pub(super) fn space() -> Figure {
    let [table, delta] = [Run::near(Store::Table), Run::near(PAPER)];
    let [tiger, rocks] = [TIGER, ROCKS].map(Run::near);
    let tuned = [Store::Delta(1024, 128, 1), Store::Delta(4096, 128, 1), DEFAULT, SEVERAL].map(Run::near);
    Figure {
        id: "13",
        title: "Space, pages of 8 KiB",
        note: "The paper has 452 GB on the drive for 500 GB of records in the B-minus-tree, and 431 GB in RocksDB.",
        axis: Axis::Stores,
        measures: &[Measure::LogicalSpace, Measure::PhysicalSpace],
        claims: vec![
            least(
                "The B-minus-tree takes much more than a B-tree, here table, before compression",
                Ratio(Measure::LogicalSpace, delta, table),
                1.5,
            ),
            most(
                "The B-minus-tree takes 0.90 times the bytes of the records after compression",
                One(Measure::PhysicalSpace, delta),
                0.904,
            ),
            most(
                "A B-tree, here table, takes less than the B-minus-tree after compression",
                Ratio(Measure::PhysicalSpace, table, delta),
                1.0,
            ),
            most(
                "RocksDB takes less than WiredTiger before compression",
                Ratio(Measure::LogicalSpace, rocks, tiger),
                0.9,
            ),
            most(
                "WiredTiger takes less than RocksDB after compression",
                Ratio(Measure::PhysicalSpace, tiger, rocks),
                1.0,
            ),
            about(
                "The B-minus-tree takes 1.05 times as much as RocksDB after compression",
                Ratio(Measure::PhysicalSpace, delta, rocks),
                1.05,
            ),
            most(
                "A threshold of 1 KiB takes less space than one of 4 KiB",
                Ratio(Measure::PhysicalSpace, tuned[0], tuned[1]),
                1.0,
            ),
        ],
        runs: [table, Run::near(Store::Baseline), delta].into_iter().chain(tuned).chain([tiger, rocks]).collect(),
    }
}

/// The paper's table 2: the bytes of a page, the bytes of a segment and the threshold, then beta in percent, and the
/// row in text.
const BETA: [(u64, u16, u16, f64, &str); 12] = [
    (8192, 128, 4096, 27.0, "27.0 % with pages of 8 KiB, segments of 128 B and a threshold of 4 KiB"),
    (8192, 128, 2048, 12.4, "12.4 % with pages of 8 KiB, segments of 128 B and a threshold of 2 KiB"),
    (8192, 128, 1024, 5.6, "5.6 % with pages of 8 KiB, segments of 128 B and a threshold of 1 KiB"),
    (8192, 256, 4096, 26.3, "26.3 % with pages of 8 KiB, segments of 256 B and a threshold of 4 KiB"),
    (8192, 256, 2048, 11.5, "11.5 % with pages of 8 KiB, segments of 256 B and a threshold of 2 KiB"),
    (8192, 256, 1024, 4.8, "4.8 % with pages of 8 KiB, segments of 256 B and a threshold of 1 KiB"),
    (16384, 128, 4096, 12.7, "12.7 % with pages of 16 KiB, segments of 128 B and a threshold of 4 KiB"),
    (16384, 128, 2048, 6.0, "6.0 % with pages of 16 KiB, segments of 128 B and a threshold of 2 KiB"),
    (16384, 128, 1024, 2.8, "2.8 % with pages of 16 KiB, segments of 128 B and a threshold of 1 KiB"),
    (16384, 256, 4096, 12.3, "12.3 % with pages of 16 KiB, segments of 256 B and a threshold of 4 KiB"),
    (16384, 256, 2048, 5.6, "5.6 % with pages of 16 KiB, segments of 256 B and a threshold of 2 KiB"),
    (16384, 256, 1024, 2.3, "2.3 % with pages of 16 KiB, segments of 256 B and a threshold of 1 KiB"),
];

pub(super) fn beta() -> Figure {
    let store = |segment, threshold| Store::Delta(threshold, segment, 1);
    let cells = BETA
        .map(|(page, segment, threshold, paper, says)| (Run::near(store(segment, threshold)).page(page), paper, says));
    Figure {
        id: "table2",
        title: "Beta: bytes of delta blocks for each byte of pages",
        note: "33 leaves for each page of the cache, records of 128 B.",
        axis: Axis::Thresholds,
        measures: &[Measure::Beta],
        claims: cells.iter().map(|(run, paper, says)| most(says, One(Measure::Beta, *run), *paper)).collect(),
        runs: cells.into_iter().map(|(run, ..)| run).collect(),
    }
}

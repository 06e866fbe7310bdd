//! The figures and tables of the B-minus-tree paper and its claims, in our words. The numbers are from its text and its
//! tables, because it does not give the values of its curves.

mod log;
mod pages;
mod space;
mod speed;

use super::claims::{Asked, Claim, Measure, Number};
use super::peers::Peer;
use super::runs::{Run, Store};

/// The horizontal axis of a chart.
#[derive(Clone, Copy)]
pub(super) enum Axis {
    /// The figure has no chart.
    Nothing,
    /// The chart has a bar for each run.
    Stores,
    Threads,
    Thresholds,
}

/// A figure or table of the paper.
pub(super) struct Figure {
    /// The number of the figure; for a table, `table` and its number.
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    /// The differences from the paper.
    pub(super) note: &'static str,
    pub(super) axis: Axis,
    pub(super) measures: &'static [Measure],
    pub(super) runs: Vec<Run>,
    pub(super) claims: Vec<Claim>,
}

/// Delta blocks as in the paper, and with the longer segments of the paper.
const PAPER: Store = Store::Delta(2048, 128, 1);
const WIDE: Store = Store::Delta(2048, 256, 1);
/// The default delta blocks, and several delta blocks for each page.
const DEFAULT: Store = Store::Delta(700, 32, 1);
const SEVERAL: Store = Store::Delta(3000, 32, 16);

/// The other stores in the paper.
const ROCKS: Store = Store::Peer(Peer::RocksDb);
const TIGER: Store = Store::Peer(Peer::WiredTiger);

/// All stores, in the order of their colours.
pub(super) const STORES: [Store; 9] =
    [Store::Baseline, TIGER, ROCKS, Store::Table, Store::Whole, PAPER, WIDE, DEFAULT, SEVERAL];

const RECORDS: [u32; 3] = [128, 32, 16];
const PAGES: [u64; 2] = [8192, 16384];
const THREADS: [u32; 3] = [1, 4, 16];

/// Returns each of these runs with each number of threads.
fn threaded(runs: &[Run]) -> Vec<Run> {
    runs.iter().flat_map(|run| THREADS.map(|threads| run.threads(threads))).collect()
}

/// Returns runs of these stores with each record size.
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

/// Returns all figures and tables, in the paper's order.
pub(super) fn figures() -> Vec<Figure> {
    let beginning = [space::alignment(), space::first_space(), pages::first_writes()];
    let writes = [pages::minute_far(), pages::minute_near(), log::commit_log(), log::commit_total()];
    let rest = [space::space(), pages::thresholds(), space::beta()];
    beginning.into_iter().chain(writes).chain(rest).chain(speed::speeds()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use duramen::db::DeltaBlocks;
    use std::collections::BTreeSet;

    #[test]
    fn the_default_is_the_default_of_the_engine() {
        assert_eq!(DEFAULT.to_string(), format!("delta {}", DeltaBlocks::default()));
    }

    #[test]
    fn every_claim_asks_for_runs_that_its_figure_has() {
        for figure in figures() {
            for claim in &figure.claims {
                for run in claim.asked.runs() {
                    assert!(figure.runs.contains(run), "{}, {:?}: {run}", figure.id, claim.says);
                }
            }
            assert_eq!(figure.runs.iter().collect::<BTreeSet<_>>().len(), figure.runs.len(), "{}", figure.id);
        }
    }
}

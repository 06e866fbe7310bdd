//! Promise: after a power cut at any moment, which loses any part of the unsynced writes, the database has every
//! acknowledged commit and no part of any other commit. Its trees are sound, and no page is lost. The same is true if
//! the power fails again during the recovery.
//!
//! `DURAMEN_CRASH_STATES` is the number of states to check (30,000 by default), `DURAMEN_CRASH_SEED` the first seed.

use crate::workload::session::{Mark, NAME, Session, kill, number, recover};
use crate::workload::stores::STORES;
use crate::workload::{DELTAS, Workload, options, page_size_of, parallel};
use duramen::db::{DeltaBlocks, LogShape, StoreKind};
use duramen::{Durability, Result};
use duramen_sim::model::{Change, Model};
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::sync::Arc;

/// Steps of one history.
const STEPS: usize = 110;
/// One state of so many has its recovery cut, too, at every event.
const RECUT: usize = 211;

/// How the database of a history keeps its pages and its log.
#[derive(Clone, Copy, Debug)]
struct Shape {
    store: StoreKind,
    /// For the store `shadow`.
    delta: DeltaBlocks,
    /// The recoveries of a sparse log go on in a packed one.
    log: LogShape,
}

impl Shape {
    fn all() -> impl Iterator<Item = Shape> {
        let table = (StoreKind::Table, DeltaBlocks::OFF);
        let stores = std::iter::once(table).chain(DELTAS.map(|delta| (StoreKind::Shadow, delta)));
        let logs = [LogShape::Packed, LogShape::Sparse];
        stores.flat_map(move |(store, delta)| logs.map(|log| Shape { store, delta, log }))
    }

    fn of(store: StoreKind) -> Shape {
        Shape { store, delta: DELTAS[1], log: LogShape::Packed }
    }
}

/// A workload that has run on a volume.
struct History {
    shape: Shape,
    seed: u64,
    volume: FailingVolume,
    model: Model,
}

impl History {
    fn record(shape: Shape, seed: u64) -> History {
        let volume = FailingVolume::new(seed);
        // Some file systems punch no holes.
        let volume = if (seed + seed / 100).is_multiple_of(3) { volume.without_trims() } else { volume };
        let mut model = Model::new();
        let mut run = || {
            let db = options()
                .page_size(page_size_of(shape.store, shape.delta))
                .store(shape.store)
                .delta(shape.delta)
                .log_shape(shape.log)
                .persist_table(shape.log == LogShape::Sparse)
                .create_on(Arc::new(volume.clone()), NAME)?;
            let mut session = Session::new(db, &volume, &mut model);
            session.run(&mut Workload::new(seed), STEPS)?;
            session.close();
            Ok::<_, duramen::Error>(())
        };
        run().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        History { shape, seed, volume, model }
    }

    fn words(&self, cut: Cut) -> String {
        format!("{:?}, seed {}, {cut:?}, a {}", self.shape, self.seed, self.volume.describe(cut.event))
    }
}

/// Cuts the recovery of a cut at every event. Returns how many states that gave.
fn cut_again(history: &History, cut: Cut, first: &FailingVolume) -> usize {
    let cuts = first.cuts(1);
    for (number, &again) in cuts.iter().enumerate() {
        let state = first.crash(again);
        let mark = Mark::before(first, again.event).or_else(|| Mark::before(&history.volume, cut.event));
        match recover(&state, &history.model, mark.map(Mark::after_power_cut), number.is_multiple_of(6)) {
            Ok(Some((db, _))) => kill(&state, db),
            Ok(None) => {}
            Err(why) => {
                panic!("{}; then {again:?}, a {}: {why}", history.words(cut), first.describe(again.event))
            }
        }
    }
    cuts.len()
}

/// Tries `cuts` of a history; returns how many states were looked at.
fn try_cuts(history: &History, cuts: &[Cut], recut: usize) -> usize {
    let mut states = 0;
    for (number, &cut) in cuts.iter().enumerate() {
        let volume = history.volume.crash(cut);
        let mark = Mark::before(&history.volume, cut.event);
        let bounds = mark.map(Mark::after_power_cut);
        let recovered = recover(&volume, &history.model, bounds, number.is_multiple_of(6));
        let recovered = recovered.unwrap_or_else(|why| panic!("{}: {why}", history.words(cut)));
        states += 1;
        let Some((db, commits)) = recovered else { continue };
        if number % recut == recut / 2 {
            Mark::of(commits).set(&volume);
            drop(db);
            states += cut_again(history, cut, &volume);
        } else {
            kill(&volume, db);
        }
    }
    states
}

#[test]
fn acknowledged_commits_survive_every_cut_and_every_commit_is_whole() {
    let (wanted, first) = (number("DURAMEN_CRASH_STATES", 30_000), number("DURAMEN_CRASH_SEED", 1) as u64);
    let shapes: Vec<_> = Shape::all().collect();
    let all = (first..).zip(&shapes);
    parallel::each(all, |(seed, shape)| acknowledged_commits_survive(*shape, wanted / shapes.len(), seed));
}

fn acknowledged_commits_survive(shape: Shape, wanted: usize, first: u64) {
    let mut states = 0;
    for seed in (first..).step_by(100) {
        let history = History::record(shape, seed);
        let all = history.volume.cuts(1);
        // The recoveries that are cut give as many states again.
        let every = all.len().div_ceil((wanted / 2).max(1));
        let cuts: Vec<_> = all.into_iter().skip(seed as usize % every).step_by(every).collect();
        states += try_cuts(&history, &cuts, RECUT);
        if std::env::var("DURAMEN_CRASH_VERBOSE").is_ok() {
            println!(
                "{shape:?}, seed {seed}: {} events, {} cuts, {states} states",
                history.volume.events(),
                cuts.len()
            );
        }
        if states >= wanted {
            break;
        }
    }
}

/// The log has the whole transaction, the pages have nothing of it yet: recovery must not hand out the page ids that
/// the transaction has reserved, nor take the pages it has written for nobody's.
#[test]
fn a_large_transaction_cut_before_its_first_piece_keeps_the_pages_it_reserved() -> Result<()> {
    STORES.into_iter().try_for_each(cut_a_large_transaction)
}

fn cut_a_large_transaction(store: StoreKind) -> Result<()> {
    let volume = FailingVolume::new(0);
    let mut model = Model::new();
    let mut session = Session::create(store, 1, &volume, &mut model)?;
    let put = |key: u32, len: usize| Change::Put {
        table: "a".into(),
        key: key.to_be_bytes().to_vec(),
        value: vec![key as u8; len],
    };
    let large = (0..800).map(|n: u32| put(n.wrapping_mul(2_654_435_761), 80)).chain((0..4).map(|n| put(n, 9000)));
    session.commit(large.collect(), Durability::Commit)?;
    let overwrite = (0..700).map(|n: u32| put(n.wrapping_mul(2_654_435_761), 70)).chain((2..9).map(|n| put(n, 7000)));
    session.commit(overwrite.collect(), Durability::None)?;
    session.kill();
    let history = History { shape: Shape::of(store), seed: 0, volume, model };
    let cuts = history.volume.cuts(2);
    try_cuts(&history, &cuts, cuts.len());
    Ok(())
}

#[test]
fn an_empty_durable_commit_makes_earlier_commits_durable() -> Result<()> {
    STORES.into_iter().try_for_each(commit_nothing)
}

fn commit_nothing(store: StoreKind) -> Result<()> {
    let volume = FailingVolume::new(0);
    let mut model = Model::new();
    let mut session = Session::create(store, 1, &volume, &mut model)?;
    let put = Change::Put { table: "a".into(), key: b"k".to_vec(), value: b"v".to_vec() };
    session.commit(vec![put], Durability::None)?;
    session.db.begin_write()?.commit()?;
    let state = volume.crash(Cut { event: volume.events(), choice: CutChoice::DropUnsynced });
    session.kill();
    let recovered = recover(&state, &model, Some((1, 1)), true);
    assert_eq!(recovered.map(|found| found.map(|(_, commits)| commits)), Ok(Some(1)));
    Ok(())
}

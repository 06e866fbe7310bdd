//! Promise: cut the power at any moment, with any part of what was not synced lost, and the database comes back with
//! every acknowledged commit and with whole commits only; its trees are sound and no page is lost. So it does when the
//! power goes again while it recovers.
//!
//! `DURAMEN_CRASH_STATES` sets how many states are looked at (20,000 unless told otherwise), `DURAMEN_CRASH_SEED` the
//! first seed.

mod workload;

use duramen::{Database, Durability, Error, ReadTransaction, Result};
use duramen_sim::model::{Change, Model};
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::collections::VecDeque;
use std::sync::Arc;
use workload::{Step, Workload, apply, contents, options};

const NAME: &str = "t.duramen";
/// Steps of one history.
const STEPS: usize = 110;
/// One state of so many has its recovery cut, too, at every event.
const RECUT: usize = 211;

/// A mark in the history: commits that were begun, and commits that were acknowledged as durable.
#[derive(Clone, Copy)]
struct Mark {
    issued: u64,
    acknowledged: u64,
}

impl Mark {
    fn set(self, volume: &FailingVolume) {
        volume.mark(self.issued << 32 | self.acknowledged);
    }

    fn before(volume: &FailingVolume, event: usize) -> Option<Mark> {
        let mark = volume.last_mark_before(event)?;
        Some(Mark { issued: mark >> 32, acknowledged: mark & u64::from(u32::MAX) })
    }
}

/// A snapshot and the number of commits it must show.
struct Held {
    tx: ReadTransaction,
    commits: u64,
}

impl Held {
    /// What it shows is what there was when it was opened.
    fn check(&self, model: &Model) -> Result<()> {
        if let Err(mismatch) = model.check(self.commits, self.commits, &contents(&self.tx)?) {
            panic!("a snapshot: {mismatch}");
        }
        Ok(())
    }
}

/// A workload that has run on a volume.
struct History {
    seed: u64,
    volume: FailingVolume,
    model: Model,
}

impl History {
    fn record(seed: u64) -> History {
        let volume = FailingVolume::new(seed);
        let mut model = Model::new();
        run(seed, &volume, &mut model).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        History { seed, volume, model }
    }

    fn words(&self, cut: Cut) -> String {
        format!("seed {}, {cut:?}, a {}", self.seed, self.volume.describe(cut.event))
    }
}

fn create(volume: &FailingVolume) -> Result<(Database, Mark)> {
    let db = options().create_on(Arc::new(volume.clone()), NAME)?;
    let mark = Mark { issued: 0, acknowledged: 0 };
    mark.set(volume);
    Ok((db, mark))
}

fn commit(
    db: &Database,
    volume: &FailingVolume,
    model: &mut Model,
    mark: &mut Mark,
    changes: Vec<Change>,
    durability: Durability,
) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(durability);
    apply(&tx, &changes)?;
    mark.issued = model.commit(changes);
    mark.set(volume);
    tx.commit()?;
    if durability == Durability::Commit {
        mark.acknowledged = mark.issued;
    }
    mark.set(volume);
    Ok(())
}

fn run(seed: u64, volume: &FailingVolume, model: &mut Model) -> Result<()> {
    let (db, mut mark) = create(volume)?;
    let mut workload = Workload::new(seed);
    let mut held = VecDeque::new();
    for _ in 0..STEPS {
        match workload.next(model.now()) {
            Step::Commit { changes, durability } => {
                commit(&db, volume, model, &mut mark, changes, durability)?;
            }
            Step::Abort(changes) => {
                let tx = db.begin_write()?;
                apply(&tx, &changes)?;
                tx.abort();
            }
            Step::Checkpoint => {
                db.checkpoint()?;
                mark.acknowledged = mark.issued;
            }
            Step::Maintain => drop(db.maintain()?),
            Step::Compact => {
                db.compact(|_| ())?;
                mark.acknowledged = mark.issued;
            }
            Step::Snapshot => held.push_back(Held { tx: db.begin_read()?, commits: mark.issued }),
            Step::Release => {
                if let Some(oldest) = held.pop_front() {
                    oldest.check(model)?;
                }
            }
        }
        mark.set(volume);
    }
    held.into_iter().try_for_each(|held| held.check(model))?;
    drop(db);
    Mark { acknowledged: mark.issued, ..mark }.set(volume);
    Ok(())
}

/// Opens what a cut has left and compares it with the model; gives the number of commits found, and nothing where the
/// cut came before the database was there.
fn recover(
    volume: &FailingVolume,
    model: &Model,
    mark: Option<Mark>,
    small: bool,
) -> Result<Option<(Database, u64)>, String> {
    // The small cache gives up pages while it redoes; with the large one a checkpoint writes them all at once.
    let cache = if small { 0 } else { 8 << 20 };
    let db = match options().cache(cache).open_on(Arc::new(volume.clone()), NAME) {
        Err(Error::NotFound { .. }) if mark.is_none() => return Ok(None),
        opened => opened.map_err(|error| format!("it does not open: {error}"))?,
    };
    let Mark { issued, acknowledged } = mark.unwrap_or(Mark { issued: 0, acknowledged: 0 });
    let found = db.begin_read().and_then(|tx| contents(&tx)).map_err(|error| error.to_string())?;
    let commits = model.check(acknowledged, issued, &found).map_err(|mismatch| mismatch.to_string())?;
    let report = db.verify(|_| ()).map_err(|error| error.to_string())?;
    if let Some(finding) = report.findings.first() {
        return Err(format!("{} findings: {finding:?}", report.findings.len()));
    }
    Ok(Some((db, commits)))
}

/// Ends the process that has the database open, as a power cut would.
fn kill(volume: &FailingVolume, db: Database) {
    volume.power_off_at(Some(0));
    drop(db);
}

/// Cuts the recovery of a cut at every event. Returns how many states that gave.
fn cut_again(history: &History, cut: Cut, first: &FailingVolume) -> usize {
    let cuts = first.cuts(1);
    for (number, &again) in cuts.iter().enumerate() {
        let state = first.crash(again);
        let mark = Mark::before(first, again.event).or_else(|| Mark::before(&history.volume, cut.event));
        match recover(&state, &history.model, mark, number.is_multiple_of(6)) {
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
        let recovered = recover(&volume, &history.model, mark, number.is_multiple_of(6));
        let recovered = recovered.unwrap_or_else(|why| panic!("{}: {why}", history.words(cut)));
        states += 1;
        let Some((db, commits)) = recovered else { continue };
        if number % recut == recut / 2 {
            Mark { issued: commits, acknowledged: commits }.set(&volume);
            drop(db);
            states += cut_again(history, cut, &volume);
        } else {
            kill(&volume, db);
        }
    }
    states
}

fn number(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn acknowledged_commits_survive_every_cut_and_every_commit_is_whole() {
    let (wanted, first) = (number("DURAMEN_CRASH_STATES", 20_000), number("DURAMEN_CRASH_SEED", 1) as u64);
    let mut states = 0;
    for seed in first.. {
        let history = History::record(seed);
        let cuts = history.volume.cuts(1);
        states += try_cuts(&history, &cuts, RECUT);
        if std::env::var("DURAMEN_CRASH_VERBOSE").is_ok() {
            println!("seed {seed}: {} events, {} cuts, {states} states", history.volume.events(), cuts.len());
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
    let volume = FailingVolume::new(0);
    let mut model = Model::new();
    let (db, mut mark) = create(&volume)?;
    let put = |key: u32, len: usize| Change::Put {
        table: "a".into(),
        key: key.to_be_bytes().to_vec(),
        value: vec![key as u8; len],
    };
    let large = (0..800).map(|n: u32| put(n.wrapping_mul(2_654_435_761), 80)).chain((0..4).map(|n| put(n, 9000)));
    commit(&db, &volume, &mut model, &mut mark, large.collect(), Durability::Commit)?;
    let overwrite = (0..700).map(|n: u32| put(n.wrapping_mul(2_654_435_761), 70)).chain((2..9).map(|n| put(n, 7000)));
    commit(&db, &volume, &mut model, &mut mark, overwrite.collect(), Durability::None)?;
    kill(&volume, db);
    volume.power_off_at(None);
    let history = History { seed: 0, volume, model };
    let cuts = history.volume.cuts(2);
    try_cuts(&history, &cuts, cuts.len());
    Ok(())
}

#[test]
fn a_durable_commit_of_nothing_makes_the_commits_before_it_durable() -> Result<()> {
    let volume = FailingVolume::new(0);
    let mut model = Model::new();
    let (db, mut mark) = create(&volume)?;
    let put = Change::Put { table: "a".into(), key: b"k".to_vec(), value: b"v".to_vec() };
    commit(&db, &volume, &mut model, &mut mark, vec![put], Durability::None)?;
    db.begin_write()?.commit()?;
    let state = volume.crash(Cut { event: volume.events(), choice: CutChoice::DropUnsynced });
    let mark = Mark { issued: 1, acknowledged: 1 };
    let recovered = recover(&state, &model, Some(mark), true);
    assert_eq!(recovered.map(|found| found.map(|(_, commits)| commits)), Ok(Some(1)));
    Ok(())
}

//! Promise: a process dies, or a sync fails, at any moment, and the machine keeps running. The next process reads data
//! that are only in the file cache and continues with them. Then the power fails, at any later moment. The database
//! still has every acknowledged commit, and everything that an open database has returned.
//!
//! `DURAMEN_CRASH_STATES` is the number of states to check (20,000 by default), `DURAMEN_CRASH_SEED` the first seed.

use crate::workload::session::{Mark, NAME, Session, kill, number, recover};
use crate::workload::stores::STORES;
use crate::workload::{Workload, contents, options, parallel};
use duramen::db::StoreKind;
use duramen::{Database, Durability, Error, Result};
use duramen_sim::model::{Change, Model};
use duramen_sim::{Cut, CutChoice, Death, DeathKind, FailingVolume, Fault, Trigger};
use std::rc::Rc;
use std::sync::Arc;

/// Steps of the first process.
const STEPS: usize = 90;
/// At most so many steps are those of a process after it.
const LATER_STEPS: usize = 9;
/// Power cuts of what each process leaves.
const CUTS: usize = 5;

/// The work of one process on a volume.
struct Life {
    store: StoreKind,
    volume: FailingVolume,
    /// The position of its first event in the history.
    born: usize,
    /// The state before it had opened the database, and the acknowledged part of that.
    before: (Rc<Model>, Option<Mark>),
    model: Rc<Model>,
    /// In words, from the first process on.
    words: String,
}

impl Life {
    fn first(store: StoreKind, seed: u64) -> Life {
        let (volume, mut model) = (FailingVolume::new(seed), Model::new());
        let mut run = || {
            let mut session = Session::create(store, seed, &volume, &mut model)?;
            session.run(&mut Workload::new(seed), STEPS)?;
            session.close();
            Ok::<_, Error>(())
        };
        run().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let before = (Rc::new(Model::new()), None);
        Life { store, volume, born: 0, before, model: Rc::new(model), words: format!("{store:?}, seed {seed}") }
    }

    /// The state at an event, and the acknowledged part of that.
    fn at(&self, event: usize) -> (&Rc<Model>, Option<Mark>) {
        match Mark::before(&self.volume, event) {
            Some(mark) => (&self.model, Some(mark)),
            None => (&self.before.0, self.before.1),
        }
    }

    /// The process after this one, which dies at `death`.
    fn next(&self, death: Death, rng: &mut fastrand::Rng) -> Life {
        let words = format!("{}, {death:?}, a {}", self.words, self.volume.describe(death.event));
        let fail = |why: String| -> ! { panic!("{words}: {why}") };
        let (model, mark) = self.at(death.event);
        let volume = self.volume.outlive(death);
        let born = volume.events();
        if rng.u8(0..8) == 0 {
            look(&volume, model, mark).unwrap_or_else(|why| fail(format!("read only: {why}")));
        }
        let recovered = recover(&volume, model, mark.map(Mark::after_death), rng.u8(0..6) == 0);
        let recovered = recovered.unwrap_or_else(|why| fail(why));
        let commits = recovered.as_ref().map_or(0, |(_, commits)| *commits);
        let mut now = Model::beginning_with(model.after(commits));
        let work = || {
            let mut session = match recovered {
                Some((db, _)) => Session::new(db, &volume, &mut now),
                None => Session::create(self.store, rng.u64(..), &volume, &mut now)?,
            };
            session.run(&mut Workload::later(rng.u64(..), 1 + born as u64), rng.usize(0..=LATER_STEPS))?;
            if rng.bool() {
                session.close()
            } else {
                session.kill()
            }
            Ok::<_, Error>(())
        };
        work().unwrap_or_else(|error| fail(error.to_string()));
        Life { store: self.store, volume, born, before: (model.clone(), mark), model: Rc::new(now), words }
    }

    /// Cuts the power at events of this process. Returns how many states that gave.
    fn cut(&self, cuts: usize, rng: &mut fastrand::Rng) -> usize {
        let mut all: Vec<Cut> = self.volume.cuts(1).into_iter().filter(|cut| cut.event >= self.born).collect();
        rng.shuffle(&mut all);
        all.truncate(cuts);
        for &cut in &all {
            let (model, mark) = self.at(cut.event);
            let state = self.volume.crash(cut);
            match recover(&state, model, mark.map(Mark::after_power_cut), rng.u8(0..6) == 0) {
                Ok(Some((db, _))) => kill(&state, db),
                Ok(None) => {}
                Err(why) => panic!("{}; then {cut:?}, a {}: {why}", self.words, self.volume.describe(cut.event)),
            }
        }
        all.len()
    }
}

/// Opens for reading alone, which sees all or says that it cannot.
fn look(volume: &FailingVolume, model: &Model, mark: Option<Mark>) -> Result<(), String> {
    let db = match options().open_read_only_on(Arc::new(volume.clone()), NAME) {
        Err(Error::NeedsRecovery { .. }) => return Ok(()),
        Err(Error::NotFound { .. }) if mark.is_none() => return Ok(()),
        opened => opened.map_err(|error| error.to_string())?,
    };
    let (least, most) = mark.map(Mark::after_death).unwrap_or_default();
    let found = db.begin_read().and_then(|tx| contents(&tx)).map_err(|error| error.to_string())?;
    model.check(least, most, &found).map(drop).map_err(|mismatch| mismatch.to_string())
}

#[test]
fn acknowledged_commits_survive_a_death_of_the_process_and_a_later_power_cut() {
    let (wanted, first) = (number("DURAMEN_CRASH_STATES", 20_000), number("DURAMEN_CRASH_SEED", 1) as u64);
    parallel::each(STORES, |store| survive_deaths(store, wanted / STORES.len(), first));
}

fn survive_deaths(store: StoreKind, wanted: usize, first: u64) {
    let mut states = 0;
    for seed in first.. {
        let life = Life::first(store, seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        for death in life.volume.deaths(seed) {
            let later = life.next(death, &mut rng);
            states += later.cut(CUTS, &mut rng);
            if rng.u8(0..4) == 0 {
                let deaths = later.volume.deaths(rng.u64(..));
                let own: Vec<Death> = deaths.into_iter().filter(|death| death.event >= later.born).collect();
                let last = later.next(own[rng.usize(..own.len())], &mut rng);
                states += last.cut(CUTS, &mut rng);
            }
            if states >= wanted {
                return;
            }
        }
        if std::env::var("DURAMEN_CRASH_VERBOSE").is_ok() {
            println!("{store:?}, seed {seed}: {} events, {states} states", life.volume.events());
        }
    }
}

/// Everything that writes is refused, and the log gets no more files.
fn assert_stopped(db: &Database, volume: &FailingVolume, what: &str) -> Result<()> {
    use duramen::io::Volume;
    let segments = volume.list(&format!("{NAME}-log."))?;
    for durability in [Durability::Commit, Durability::Interval, Durability::None] {
        let committed = db.begin_write().and_then(|mut tx| {
            tx.set_durability(durability);
            tx.commit()
        });
        assert!(matches!(committed, Err(Error::Poisoned { .. })), "{what}: {committed:?}");
    }
    let taken = db.checkpoint();
    assert!(matches!(taken, Err(Error::Poisoned { .. })), "{what}: {taken:?}");
    assert_eq!(volume.list(&format!("{NAME}-log."))?, segments, "{what}");
    Ok(())
}

/// The first process goes on after a failed sync, as long as it is let.
#[test]
fn after_any_failed_sync_nothing_is_acknowledged_and_earlier_commits_survive_a_power_cut() -> Result<()> {
    let (wanted, first) = (number("DURAMEN_CRASH_STATES", 20_000) / 20, number("DURAMEN_CRASH_SEED", 1) as u64);
    STORES.into_iter().try_for_each(|store| survive_failed_syncs(store, wanted / STORES.len(), first))
}

fn survive_failed_syncs(store: StoreKind, wanted: usize, first: u64) -> Result<()> {
    let mut states = 0;
    for seed in first.. {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (volume, mut model) = (FailingVolume::new(seed), Model::new());
        let mut session = Session::create(store, seed, &volume, &mut model)?;
        volume.inject(Fault::FailSync, Trigger::once().after(rng.u64(0..120)));
        let mut workload = Workload::new(seed);
        let mut worked = Ok(());
        while volume.struck(Fault::FailSync) == 0 && worked.is_ok() {
            worked = session.run(&mut workload, 1);
        }
        let words = format!("{store:?}, seed {seed}, a failed sync: {worked:?}");
        assert_eq!(volume.struck(Fault::FailSync), 1, "{words}");
        assert_stopped(&session.db, &volume, &words)?;
        drop(session);
        let life = Life { store, before: (Rc::new(Model::new()), None), born: 0, model: Rc::new(model), volume, words };
        let end = Death { event: life.volume.events(), kind: DeathKind::Killed(seed) };
        states += life.cut(CUTS, &mut rng) + life.next(end, &mut rng).cut(2 * CUTS, &mut rng);
        if states >= wanted {
            break;
        }
    }
    Ok(())
}

/// The superblock of a checkpoint fails to get to the device, the next process believes what it reads, and reuses
/// places.
#[test]
fn a_superblock_that_only_the_file_cache_has_is_made_durable_before_anything_else_is_written() -> Result<()> {
    STORES.into_iter().try_for_each(lose_superblocks)
}

fn lose_superblocks(store: StoreKind) -> Result<()> {
    let (volume, mut model) = (FailingVolume::new(0), Model::new());
    let mut session = Session::create(store, 0, &volume, &mut model)?;
    let put = |key: u32, len: usize| Change::Put {
        table: "a".into(),
        key: key.to_be_bytes().to_vec(),
        value: vec![key as u8; len],
    };
    for round in 0..4 {
        session.commit((0..200).map(|key| put(key, 60 + round)).collect(), Durability::Commit)?;
        session.db.checkpoint()?;
    }
    session.commit(vec![put(7, 7)], Durability::Commit)?;
    session.kill();
    let life = Life {
        store,
        before: (Rc::new(Model::new()), None),
        born: 0,
        model: Rc::new(model),
        volume,
        words: "it".into(),
    };
    let superblock = |event: &usize| life.volume.describe(*event).starts_with("write of 4096 bytes at");
    let syncs = (0..life.volume.events()).filter(superblock).map(|event| event + 1);
    let (mut failed, mut rng) = (0, fastrand::Rng::with_seed(1));
    for event in syncs.filter(|event| life.volume.describe(*event).starts_with("sync of 4096 bytes at")) {
        failed += 1;
        for seed in 0..8 {
            life.next(Death { event, kind: DeathKind::FailedSync(seed) }, &mut rng).cut(usize::MAX, &mut rng);
        }
    }
    assert!(failed >= 4, "{failed}");
    Ok(())
}

/// A page written outside the log gets no sync, and is only in the file cache. The next process uses the page for
/// something else and dies before it writes the page. Redo of the third process then finds the old image.
#[test]
fn an_image_with_a_failed_sync_is_no_base_of_a_delta() -> Result<()> {
    let (volume, mut model) = (FailingVolume::new(0), Model::new());
    // With chains of deltas.
    let mut session = Session::create(StoreKind::Shadow, 2, &volume, &mut model)?;
    let put = |table: &str, key: u32| Change::Put {
        table: table.into(),
        key: key.to_be_bytes().to_vec(),
        value: b"a value that takes some room".to_vec(),
    };
    session.commit((0..600).map(|key| put("a", key)).collect(), Durability::Commit)?;
    session.db.checkpoint()?;
    let loading = volume.events();
    session.db.compact(|_| ())?;
    session.kill();
    let is_sync = |event: &usize| volume.describe(*event).starts_with("sync of file 0");
    let mut failed = 0;
    for event in (loading..volume.events()).filter(is_sync) {
        failed += 1;
        let next = volume.outlive(Death { event, kind: DeathKind::FailedSync(failed) });
        let mut now = Model::beginning_with(model.after(1));
        let mut second = Session::new(options().open_on(Arc::new(next.clone()), NAME)?, &next, &mut now);
        second.commit((0..300).map(|key| put("b", key)).collect(), Durability::Commit)?;
        second.kill();
        let last = next.outlive(Death { event: next.events(), kind: DeathKind::Killed(failed) });
        options().open_on(Arc::new(last.clone()), NAME)?.checkpoint()?;
        for choice in [CutChoice::DropUnsynced, CutChoice::Random(1), CutChoice::Random(2)] {
            let state = last.crash(Cut { event: last.events(), choice });
            let recovered = recover(&state, &now, Some((1, 1)), true);
            let recovered = recovered.unwrap_or_else(|why| panic!("event {event}: {why}"));
            recovered.into_iter().for_each(|(db, _)| kill(&state, db));
        }
    }
    assert!(failed > 0);
    Ok(())
}

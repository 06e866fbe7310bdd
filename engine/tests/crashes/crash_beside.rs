//! Promise: a power cut at any moment of a checkpoint loses nothing, even if commits change pages while the checkpoint
//! writes them.

use crate::workload::stores::STORES;
use crate::workload::{Step, Workload, apply, contents, options};
use duramen::db::StoreKind;
use duramen::{Database, Durability, Result};
use duramen_sim::model::{Change, Model};
use duramen_sim::{Cut, CutChoice, FailingVolume, HookedVolume, Hooks};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const NAME: &str = "t.duramen";

/// Something that happens once, at the next write to the database's file.
#[derive(Default)]
struct AtWrite(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl std::fmt::Debug for AtWrite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("AtWrite").field(&self.0.lock().is_some()).finish()
    }
}

impl Hooks for AtWrite {
    fn before_write(&self, name: &str, _: u64, _: usize) -> Result<()> {
        let happening = if name == NAME { self.0.lock().take() } else { None };
        if let Some(happen) = happening {
            happen();
        }
        Ok(())
    }
}

fn put(table: &str, key: u32, len: usize) -> Change {
    Change::Put { table: table.to_owned(), key: key.to_be_bytes().to_vec(), value: vec![key as u8; len] }
}

fn commit(db: &Database, model: &Mutex<Model>, changes: Vec<Change>, durability: Durability) -> Result<u64> {
    let mut tx = db.begin_write()?;
    tx.set_durability(durability);
    apply(&tx, &changes)?;
    let number = model.lock().commit(changes);
    tx.commit()?;
    Ok(number)
}

/// Recovers what a cut has left; panics unless that is sound and has a number of commits in the given bounds.
fn check(volume: &FailingVolume, model: &Model, (acknowledged, issued): (u64, u64), what: &str) {
    let db = options().open_on(Arc::new(volume.clone()), NAME);
    let db = db.unwrap_or_else(|error| panic!("{what}: it does not open: {error}"));
    let found = db.begin_read().and_then(|tx| contents(&tx)).unwrap_or_else(|error| panic!("{what}: {error}"));
    model.check(acknowledged, issued, &found).unwrap_or_else(|mismatch| panic!("{what}: {mismatch}"));
    let report = db.verify(|_| ()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(report.findings.is_empty(), "{what}: {:?}", report.findings);
    volume.power_off_at(Some(0));
}

/// A leaf is changed and freed, and its id taken by a page of a large value, all after the checkpoint's redo point and
/// before its table point. Redo comes by the leaf's operations, which must not touch the page that the table has.
#[test]
fn redo_leaves_a_page_alone_that_was_reused_outside_the_log_during_a_checkpoint() -> Result<()> {
    STORES.into_iter().try_for_each(reuse_a_page_during_a_checkpoint)
}

fn reuse_a_page_during_a_checkpoint(store: StoreKind) -> Result<()> {
    let (volume, at_write) = (FailingVolume::new(0), Arc::new(AtWrite::default()));
    let db = options()
        .store(store)
        .create_on(Arc::new(HookedVolume::new(Arc::new(volume.clone()), at_write.clone())), NAME)?;
    let model = Arc::new(Mutex::new(Model::new()));
    commit(&db, &model, (0..400).map(|key| put("a", key, 100)).collect(), Durability::Commit)?;
    commit(&db, &model, vec![put("b", 0, 10)], Durability::Commit)?;
    db.checkpoint()?;
    // Something for the checkpoint to write, away from the leaves in question.
    commit(&db, &model, vec![put("b", 1, 10)], Durability::Commit)?;
    let meanwhile = {
        let (db, model) = (db.clone(), model.clone());
        move || {
            let remove = |key: u32| Change::Remove { table: "a".into(), key: key.to_be_bytes().to_vec() };
            commit(&db, &model, (100..320).map(|key| put("a", key, 90)).collect(), Durability::Commit).unwrap();
            commit(&db, &model, (80..340).map(remove).collect(), Durability::Commit).unwrap();
            commit(&db, &model, (500..505).map(|key| put("b", key, 9000)).collect(), Durability::Commit).unwrap();
        }
    };
    *at_write.0.lock() = Some(Box::new(meanwhile));
    db.checkpoint()?;
    assert!(at_write.0.lock().is_none(), "the checkpoint has written nothing");
    let state = volume.crash(Cut { event: volume.events(), choice: CutChoice::DropUnsynced });
    let commits = model.lock().commits();
    check(&state, &model.lock(), (commits, commits), &format!("{store:?}, after the checkpoint"));
    Ok(())
}

/// Checkpoints of both kinds, the writing of dirty pages and reclaiming run on threads of their own, as fast as they
/// can, beside the commits.
fn beside(store: StoreKind, seed: u64) -> Result<(FailingVolume, Model)> {
    let volume = FailingVolume::new(seed);
    let db = options().store(store).cache(400 << 10).create_on(Arc::new(volume.clone()), NAME)?;
    let model = Mutex::new(Model::new());
    let over = AtomicBool::new(false);
    let acknowledged = AtomicU64::new(0);
    volume.mark(0);
    std::thread::scope(|scope| {
        let background = |checkpoints: bool| {
            let (db, over) = (&db, &over);
            scope.spawn(move || -> Result<()> {
                for round in 0u64.. {
                    if over.load(Ordering::Acquire) {
                        break;
                    }
                    if checkpoints && round.is_multiple_of(4) {
                        db.checkpoint()?;
                    }
                    db.maintain()?;
                    std::thread::yield_now();
                }
                Ok(())
            })
        };
        let background = [true, false].map(background);
        let written = (|| {
            let mut workload = Workload::new(seed);
            for _ in 0..80 {
                let step = workload.next(model.lock().now());
                let (changes, durability) = match step {
                    Step::Commit { changes, durability } => (changes, durability),
                    Step::Abort(changes) => {
                        apply(&db.begin_write()?, &changes)?;
                        continue;
                    }
                    _ => continue,
                };
                volume.mark((model.lock().commits() + 1) << 32 | acknowledged.load(Ordering::Acquire));
                let number = commit(&db, &model, changes, durability)?;
                if durability == Durability::Commit {
                    acknowledged.store(number, Ordering::Release);
                }
                volume.mark(number << 32 | acknowledged.load(Ordering::Acquire));
            }
            Ok(())
        })();
        over.store(true, Ordering::Release);
        background.into_iter().try_for_each(|thread| thread.join().expect("a background thread")).and(written)
    })?;
    volume.power_off_at(Some(0));
    drop(db);
    volume.power_off_at(None);
    Ok((volume, model.into_inner()))
}

#[test]
fn acknowledged_commits_survive_cuts_beside_checkpoints_on_another_thread() -> Result<()> {
    for seed in 0..6 {
        let store = STORES[seed as usize % STORES.len()];
        let (volume, model) = beside(store, seed)?;
        // Marks are numbers of commits: nothing is asked of cuts before the first.
        let cuts = volume.cuts(1);
        let step = (cuts.len() / 170).max(1);
        for cut in cuts.into_iter().skip(seed as usize).step_by(step) {
            let Some(mark) = volume.last_mark_before(cut.event) else { continue };
            let bounds = (mark & u64::from(u32::MAX), mark >> 32);
            let (events, event) = (volume.events(), volume.describe(cut.event));
            let what = format!("{store:?}, seed {seed}, {cut:?} of {events} events, a {event}");
            check(&volume.crash(cut), &model, bounds, &what);
        }
    }
    Ok(())
}

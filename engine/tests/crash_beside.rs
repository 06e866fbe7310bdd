//! Promise: what holds for power cuts holds beside running checkpoints, too: a checkpoint that commits overtake while
//! it writes leaves what recovery needs, at every moment.

mod workload;

use duramen::io::{Disk, LockGuard, OpenMode, Volume};
use duramen::{Database, Durability, Result};
use duramen_sim::model::{Change, Model};
use duramen_sim::{Cut, CutChoice, FailingVolume};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use workload::{Step, Workload, apply, contents, options};

const NAME: &str = "t.duramen";

/// What happens at the next write to the database's file.
type Hook = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

/// A volume on which something happens between two steps of a checkpoint.
#[derive(Clone)]
struct Hooked {
    volume: FailingVolume,
    at_write: Hook,
}

impl std::fmt::Debug for Hooked {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.volume.fmt(f)
    }
}

#[derive(Debug)]
struct HookedDisk {
    disk: Arc<dyn Disk>,
    volume: Hooked,
    hooked: bool,
}

impl Volume for Hooked {
    fn open(&self, name: &str, mode: OpenMode) -> Result<Arc<dyn Disk>> {
        let disk = self.volume.open(name, mode)?;
        Ok(Arc::new(HookedDisk { disk, volume: self.clone(), hooked: name == NAME }))
    }

    fn remove(&self, name: &str) -> Result<()> {
        self.volume.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.volume.rename(from, to)
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>> {
        self.volume.list(prefix)
    }

    fn sync(&self) -> Result<()> {
        Volume::sync(&self.volume)
    }

    fn lock(&self, name: &str, exclusive: bool) -> Result<Box<dyn LockGuard>> {
        self.volume.lock(name, exclusive)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.volume.path(name)
    }
}

impl Disk for HookedDisk {
    fn size(&self) -> Result<u64> {
        self.disk.size()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.disk.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, buf: &[u8]) -> Result<()> {
        let hook = if self.hooked { self.volume.at_write.lock().take() } else { None };
        if let Some(hook) = hook {
            hook();
        }
        self.disk.write_at(offset, buf)
    }

    fn sync(&self) -> Result<()> {
        self.disk.sync()
    }

    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        self.disk.trim(offset, len)
    }

    fn resize(&self, len: u64) -> Result<()> {
        self.disk.resize(len)
    }

    fn reserve(&self, len: u64) -> Result<()> {
        self.disk.reserve(len)
    }

    fn allocated(&self) -> Result<u64> {
        self.disk.allocated()
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
    let volume = Hooked { volume: FailingVolume::new(0), at_write: Hook::default() };
    let db = options().create_on(Arc::new(volume.clone()), NAME)?;
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
    *volume.at_write.lock() = Some(Box::new(meanwhile));
    db.checkpoint()?;
    assert!(volume.at_write.lock().is_none(), "the checkpoint has written nothing");
    let end = volume.volume.events();
    let state = volume.volume.crash(Cut { event: end, choice: CutChoice::DropUnsynced });
    let commits = model.lock().commits();
    check(&state, &model.lock(), (commits, commits), "after the checkpoint");
    Ok(())
}

/// Checkpoints and reclaiming run on a thread of their own, as fast as they can, beside the commits.
fn beside(seed: u64) -> Result<(FailingVolume, Model)> {
    let volume = FailingVolume::new(seed);
    let db = options().cache(400 << 10).create_on(Arc::new(volume.clone()), NAME)?;
    let model = Mutex::new(Model::new());
    let over = AtomicBool::new(false);
    let acknowledged = AtomicU64::new(0);
    volume.mark(0);
    std::thread::scope(|scope| {
        let background = scope.spawn(|| -> Result<()> {
            while !over.load(Ordering::Acquire) {
                db.checkpoint()?;
                db.maintain()?;
                std::thread::yield_now();
            }
            Ok(())
        });
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
        background.join().expect("the background thread").and(written)
    })?;
    volume.power_off_at(Some(0));
    drop(db);
    volume.power_off_at(None);
    Ok((volume, model.into_inner()))
}

#[test]
fn acknowledged_commits_survive_cuts_beside_checkpoints_on_another_thread() -> Result<()> {
    for seed in 0..4 {
        let (volume, model) = beside(seed)?;
        // Marks are numbers of commits: nothing is asked of cuts before the first.
        let cuts = volume.cuts(1);
        let step = (cuts.len() / 250).max(1);
        for cut in cuts.into_iter().skip(seed as usize).step_by(step) {
            let Some(mark) = volume.last_mark_before(cut.event) else { continue };
            let bounds = (mark & u64::from(u32::MAX), mark >> 32);
            let what = format!("seed {seed}, {cut:?} of {} events, a {}", volume.events(), volume.describe(cut.event));
            check(&volume.crash(cut), &model, bounds, &what);
        }
    }
    Ok(())
}

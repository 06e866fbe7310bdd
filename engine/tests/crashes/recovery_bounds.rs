//! Promise: the work of a recovery is bounded. `Builder::checkpoint_bytes` bounds the log that it reads, and
//! `Builder::checkpoint_pages` the distinct pages. Commits wait only if they are faster than a checkpoint.

use crate::workload::killed::killed;
use crate::workload::stores::STORES;
use crate::workload::{DELTAS, Step, Workload, apply, contents, options};
use duramen::db::{DatabaseStats, DeltaBlocks, LogShape, Phase, Progress, Recovery, StoreKind};
use duramen::io::{MemoryVolume, Volume};
use duramen::{Builder, Database, Durability, Error, Result, TableDef};
use duramen_sim::model::Model;
use duramen_sim::{HookedVolume, Hooks};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const NAME: &str = "t.duramen";
const TABLE: TableDef<u64, &[u8]> = TableDef::new("t");
/// Large enough that a recovery reads each page once.
const LARGE_CACHE: usize = 32 << 20;

/// The work of a recovery: bytes of log and pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Work(u64, u64);

impl Work {
    /// The work of a recovery if it began now.
    fn now(db: &Database) -> Work {
        let DatabaseStats { log_bytes, redo_pages, .. } = db.stats();
        Work(log_bytes, redo_pages)
    }

    /// True if it is so many times one of the bounds.
    fn reaches(self, bounds: Work, times: u64) -> bool {
        self.0 >= times * bounds.0 || self.1 >= times * bounds.1
    }

    /// True if it is at most so many times the bounds, and what a transaction has added.
    fn is_within(self, bounds: Work, times: u64, transaction: Work) -> bool {
        self.0 <= times * bounds.0 + transaction.0 && self.1 <= times * bounds.1 + transaction.1
    }

    /// The work that a transaction has added. Before it there was less than twice the bounds.
    fn since(self, before: Work) -> Work {
        Work(self.0.saturating_sub(before.0), self.1.saturating_sub(before.1))
    }
}

/// The superblocks are before this offset of the file, and nothing else.
const SUPERBLOCKS: u64 = 8192;
/// Records of a filled database.
const RECORDS: u64 = 50_000;
/// No transaction of the workload adds more.
const LARGEST: Work = Work(600_000, 600);

/// Recovers the files of a process that is killed now. The recovery reports its progress up to its end.
fn recover(volume: &MemoryVolume) -> Result<(Database, Recovery)> {
    let reports = Arc::new(Mutex::new(Vec::new()));
    let kept = reports.clone();
    let options = options().cache(LARGE_CACHE).on_recovery(move |progress| kept.lock().unwrap().push(progress));
    let db = options.open_on(killed(volume, NAME)?, NAME)?;
    let recovery = db.stats().recovery.expect("it was not closed");
    let reports = reports.lock().unwrap();
    let (of, phase) = (recovery.log_bytes, Phase::Recovering);
    assert!(reports.iter().all(|progress| (progress.phase, progress.of) == (phase, of)), "{reports:?}");
    assert!(reports.is_sorted_by_key(|progress| progress.done), "{reports:?}");
    assert_eq!(reports.last(), Some(&Progress { phase, done: of, of }));
    let ends = reports.iter().filter(|progress| progress.done == of).count();
    assert_eq!(ends, 1, "the end is reported once: {reports:?}");
    // At least one for each MiB and the padding of the log.
    assert!(reports.len() as u64 > of / (2 << 20), "{} reports of {of} bytes", reports.len());
    Ok((db, recovery))
}

/// Puts a record of 100 bytes under each of these numbers, at places that look random.
fn put(db: &Database, numbers: std::ops::Range<u64>) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::None);
    let mut table = tx.open_table(TABLE)?;
    numbers.into_iter().try_for_each(|number| table.put(place(number), &[number as u8; 92][..]))?;
    drop(table);
    tx.commit()
}

fn place(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// The parameters of a case.
#[derive(Clone, Copy, Debug)]
struct Case {
    seed: u64,
    store: StoreKind,
    delta: DeltaBlocks,
    log: LogShape,
    bounds: Work,
    cache: usize,
}

fn case() -> impl Strategy<Value = Case> {
    let stores = proptest::sample::select(&STORES);
    let delta = proptest::sample::select(&DELTAS);
    let log = proptest::sample::select(&[LogShape::Packed, LogShape::Sparse]);
    let bounds = (4096u64..200_000, 16u64..200).prop_map(|(bytes, pages)| Work(bytes, pages));
    let cache = proptest::sample::select(&[0, LARGE_CACHE]);
    (any::<u64>(), stores, delta, log, bounds, cache).prop_map(|(seed, store, delta, log, bounds, cache)| Case {
        seed,
        store,
        delta,
        log,
        bounds,
        cache,
    })
}

/// One step of a workload. Returns the most that it can have added to the work of a recovery.
fn step(db: &Database, workload: &mut Workload, model: &mut Model, bounds: Work) -> Result<Work> {
    let before = Work::now(db);
    match workload.next(model.now()) {
        Step::Commit { changes, durability } => {
            let mut tx = db.begin_write()?;
            tx.set_durability(durability);
            apply(&tx, &changes)?;
            model.commit(changes);
            tx.commit()?;
            if before.reaches(bounds, 2) {
                // The commit has waited for a checkpoint.
                assert!(Work::now(db).is_within(LARGEST, 1, Work(0, 0)), "{:?} after {before:?}", Work::now(db));
                return Ok(LARGEST);
            }
            let added = Work::now(db).since(before);
            assert!(added.is_within(LARGEST, 1, Work(0, 0)), "{added:?}");
            return Ok(added);
        }
        Step::Abort(changes) => apply(&db.begin_write()?, &changes)?,
        Step::Checkpoint => db.checkpoint()?,
        Step::Maintain => {
            while db.maintain()? {}
            assert!(!Work::now(db).reaches(bounds, 1), "{:?} after a checkpoint", Work::now(db));
        }
        Step::Compact => drop(db.compact(|_| ())?),
        Step::Snapshot | Step::Release => {}
    }
    Ok(Work(0, 0))
}

fn check(case: Case) -> Result<()> {
    let Case { seed, store, delta, log, bounds, cache } = case;
    let volume = Arc::new(MemoryVolume::new());
    let options = options().store(store).delta(delta).log_shape(log).cache(cache);
    let db = options.checkpoint_bytes(bounds.0).checkpoint_pages(bounds.1).create_on(volume.clone(), NAME)?;
    let (mut workload, mut model) = (Workload::new(seed), Model::new());
    for at in 0..60 {
        let before = Work::now(&db);
        let added = step(&db, &mut workload, &mut model, bounds)?;
        let left = Work::now(&db);
        assert!(
            left.is_within(bounds, 2, added) || left.is_within(before, 1, Work(0, 0)),
            "step {at}: {left:?} after {added:?}"
        );
        if at % 12 == 11 {
            let (recovered, done) = recover(&volume)?;
            // A page that was freed need not be read.
            assert!(
                Work(done.log_bytes, done.pages).is_within(left, 1, Work(0, 0)),
                "step {at}: {done:?} for {left:?}"
            );
            assert!(contents(&recovered.begin_read()?)? == *model.now(), "step {at}");
            assert_eq!(Work::now(&recovered), Work(0, 0), "a checkpoint ends a recovery");
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_recovery_does_at_most_twice_the_bounds_and_a_transaction(case in case()) {
        check(case)?;
    }
}

/// Counts the reads of the file of the database, and calls something when a superblock is written.
#[derive(Default)]
struct Watch {
    reads: AtomicU64,
    at_superblock: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("reads", &self.reads).finish_non_exhaustive()
    }
}

impl Hooks for Watch {
    fn before_read(&self, name: &str, _offset: u64, _len: usize) -> Result<()> {
        self.reads.fetch_add(u64::from(name == NAME), Ordering::Relaxed);
        Ok(())
    }

    fn before_write(&self, name: &str, offset: u64, _len: usize) -> Result<()> {
        if name == NAME && offset < SUPERBLOCKS {
            let hook = self.at_superblock.lock().unwrap().take();
            hook.into_iter().for_each(|hook| hook());
        }
        Ok(())
    }
}

/// A database of more than 1,200 leaves, in a file whose calls are watched.
fn filled(options: &Builder) -> Result<(Arc<MemoryVolume>, Arc<Watch>, Database)> {
    let (volume, watch) = (Arc::new(MemoryVolume::new()), Arc::new(Watch::default()));
    let db = options.create_on(Arc::new(HookedVolume::new(volume.clone(), watch.clone())), NAME)?;
    put(&db, 0..RECORDS)?;
    db.checkpoint()?;
    assert!(db.stats().pages > 1200, "{:?}", db.stats());
    Ok((volume, watch, db))
}

#[test]
fn a_recovery_reads_the_pages_that_were_changed_and_hardly_any_other() -> Result<()> {
    for store in STORES {
        let options = options().store(store).cache(LARGE_CACHE).checkpoint_bytes(1 << 30).checkpoint_pages(150);
        let (volume, _, db) = filled(&options)?;
        let mut most = 0;
        for number in 0..700 {
            put(&db, number..number + 1)?;
            most = most.max(db.stats().redo_pages);
        }
        assert!((290..310).contains(&most), "{store:?}: {most} pages at most");
        let left = db.stats().redo_pages;
        let watch = Arc::new(Watch::default());
        let copy = HookedVolume::new(killed(&volume, NAME)?, watch.clone());
        let recovered = options.open_on(Arc::new(copy), NAME)?;
        let (reads, done) = (watch.reads.load(Ordering::Relaxed), recovered.stats().recovery.unwrap());
        assert_eq!(done.pages, left, "{store:?}: no page was freed");
        assert!((left..left + 30).contains(&reads), "{store:?}: {reads} reads for {left} pages");
    }
    Ok(())
}

#[test]
fn pages_that_change_while_a_checkpoint_is_taken_count_after_it() -> Result<()> {
    for store in STORES {
        let (volume, watch, db) = filled(&options().store(store).cache(LARGE_CACHE).checkpoint_bytes(1 << 30))?;
        put(&db, 0..100)?;
        std::thread::scope(|scope| {
            // The checkpoint's thread must not commit itself: it holds locks.
            *watch.at_superblock.lock().unwrap() = Some(Box::new({
                let beside = db.clone();
                move || std::thread::spawn(move || put(&beside, 1000..1200).unwrap()).join().unwrap()
            }));
            scope.spawn(|| db.checkpoint().unwrap());
        });
        put(&db, 1100..1300)?;
        let left = db.stats().redo_pages;
        let done = recover(&volume)?.1;
        assert!(left > 200, "{store:?}: {left} pages");
        assert_eq!(done.pages, left, "{store:?}");
    }
    Ok(())
}

/// The results of commits during a checkpoint. The superblock of the checkpoint is written when a recovery has a given
/// number of pages to redo, or after a time limit.
struct Beside {
    most_pages: u64,
    took_too_long: bool,
}

/// Commits without pause. A checkpoint begins at `bound` pages. It is held up until a recovery has `held_until` pages
/// to redo, or until `patience` is over. A count of commits would depend on the speed of the checkpoint's thread.
fn commit_beside_a_checkpoint(store: StoreKind, bound: u64, held_until: u64, patience: Duration) -> Result<Beside> {
    let options = options().store(store).cache(LARGE_CACHE).checkpoint_bytes(1 << 30).checkpoint_pages(bound);
    let (_, watch, db) = filled(&options.background(true).flush_interval(Duration::from_secs(3600)))?;
    let pages = Arc::new(AtomicU64::new(0));
    let (held_up, over) = std::sync::mpsc::channel();
    let now = pages.clone();
    let hook = move || {
        let begun = Instant::now();
        while now.load(Ordering::Acquire) < held_until && begun.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
        held_up.send(begun.elapsed() >= patience).unwrap();
    };
    let mut hook: Option<Box<dyn FnOnce() + Send>> = Some(Box::new(hook));
    for number in 0..RECORDS {
        // The filling may have asked for a checkpoint that is still being taken.
        if db.stats().redo_pages > bound / 2 && hook.is_some() {
            *watch.at_superblock.lock().unwrap() = hook.take();
        }
        put(&db, number..number + 1)?;
        pages.fetch_max(db.stats().redo_pages, Ordering::AcqRel);
        if let Ok(took_too_long) = over.try_recv() {
            return Ok(Beside { most_pages: pages.load(Ordering::Acquire), took_too_long });
        }
    }
    panic!("{store:?}: no checkpoint was taken");
}

#[test]
fn commits_do_not_wait_for_a_checkpoint_that_began_at_the_bound() -> Result<()> {
    for store in STORES {
        let Beside { most_pages, took_too_long } =
            commit_beside_a_checkpoint(store, 400, 700, Duration::from_secs(60))?;
        assert!(!took_too_long, "{store:?}: a commit has waited at {most_pages} pages");
        assert!((700..=810).contains(&most_pages), "{store:?}: {most_pages} pages");
    }
    Ok(())
}

#[test]
fn commits_that_outrun_a_checkpoint_wait_for_it() -> Result<()> {
    for store in STORES {
        let Beside { most_pages, took_too_long } =
            commit_beside_a_checkpoint(store, 200, 1000, Duration::from_millis(500))?;
        assert!(took_too_long && most_pages <= 410, "{store:?}: {most_pages} pages");
    }
    Ok(())
}

#[test]
fn bounds_that_are_too_small_are_refused() -> Result<()> {
    let volume = Arc::new(MemoryVolume::new());
    options().create_on(volume.clone(), NAME)?.close()?;
    let refused = [
        (options().checkpoint_bytes(4095), "checkpoint_bytes", "4095"),
        (options().checkpoint_bytes(0), "checkpoint_bytes", "0"),
        (options().checkpoint_pages(15), "checkpoint_pages", "15"),
    ];
    for (options, name, text) in refused {
        for opened in
            [options.open_on(volume.clone(), NAME), options.create_on(volume.clone(), "u"), options.in_memory()]
        {
            match opened {
                Err(Error::Option { option, value, .. }) => assert_eq!((option, value.as_str()), (name, text)),
                other => panic!("{name} {text}: {:?}", other.map(drop)),
            }
        }
    }
    assert_eq!(volume.list("u")?, [""; 0], "nothing was created");
    let options = options().checkpoint_bytes(u64::MAX).checkpoint_pages(u64::MAX);
    put(&options.open_on(volume, NAME)?, 0..1000)
}

#[test]
fn an_overwrite_changes_no_page_of_the_catalog() -> Result<()> {
    const COUNTED: TableDef<u64, u64> = TableDef::new("counted").auto_increment();
    let db = options().create_on(Arc::new(MemoryVolume::new()), NAME)?;
    let put = |key, value| {
        let tx = db.begin_write()?;
        tx.open_table(COUNTED)?.put(key, value)?;
        tx.commit()?;
        Ok::<_, Error>(Work::now(&db).1)
    };
    put(7, 0)?;
    db.checkpoint()?;
    assert_eq!(put(7, 1)?, 1, "the leaf");
    assert_eq!(put(9, 2)?, 2, "the leaf and the count of entries");
    assert_eq!(put(8, 3)?, 2);
    // The next key is above all that the table has had.
    let tx = db.begin_write()?;
    assert_eq!(tx.open_table(COUNTED)?.push(4)?.value(), 10);
    Ok(())
}

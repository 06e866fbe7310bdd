//! Promises about syncs and panics: one failed sync, in any thread, stops all writing. A panic that leaves a change
//! incomplete does so, too. Nothing is synced without need.

use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::io::{OpenMode, Volume};
use duramen::{Builder, Database, Durability, Error, Result, TableDef};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, HookedVolume, Hooks, Trigger};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

const NAME: &str = "t.duramen";
const T: TableDef<u32, &[u8]> = TableDef::new("t");
/// The maximum number of syncs of a checkpoint.
const MAX_SYNCS: usize = 8;

/// A function that is called at each write (with its offset) and before each sync of a file.
type Happening = Box<dyn FnMut(&str, Option<u64>) -> Result<()> + Send>;

/// Something that happens until it is taken away.
#[derive(Default)]
struct Beside(Mutex<Option<Happening>>);

impl Beside {
    fn set(&self, happening: impl FnMut(&str, Option<u64>) -> Result<()> + Send + 'static) {
        *self.0.lock() = Some(Box::new(happening));
    }

    /// The function is not called for the calls that it makes itself.
    fn happen(&self, name: &str, at: Option<u64>) -> Result<()> {
        self.0.try_lock().and_then(|mut happening| happening.as_mut().map(|happen| happen(name, at))).unwrap_or(Ok(()))
    }
}

impl std::fmt::Debug for Beside {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Beside")
    }
}

impl Hooks for Beside {
    fn before_write(&self, name: &str, offset: u64, _: usize) -> Result<()> {
        self.happen(name, Some(offset))
    }

    fn before_sync(&self, name: Option<&str>) -> Result<()> {
        name.map_or(Ok(()), |name| self.happen(name, None))
    }
}

fn options() -> Builder {
    Database::builder().page_size(4096).cache(0).checkpoint_bytes(64 << 10).background(false)
}

fn hooked(options: &Builder) -> Result<(FailingVolume, Arc<Beside>, Database)> {
    let (volume, beside) = (FailingVolume::new(1), Arc::new(Beside::default()));
    let db = options.create_on(Arc::new(HookedVolume::new(Arc::new(volume.clone()), beside.clone())), NAME)?;
    Ok((volume, beside, db))
}

fn put(db: &Database, keys: std::ops::Range<u32>, durability: Durability) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(durability);
    keys.into_iter().try_for_each(|key| tx.open_table(T)?.put(key, [key as u8; 100].as_slice()))?;
    tx.commit()
}

fn keys(db: &Database) -> Result<Vec<u32>> {
    db.begin_read()?.open_table(T)?.range(..).map(|entry| entry.map(|(key, _)| key.value())).collect()
}

fn failed() -> Error {
    Error::Io { action: "cannot sync", path: NAME.into(), source: std::io::Error::other("the device has failed") }
}

/// How the device is after a power cut now.
fn after_a_cut(volume: &FailingVolume, choice: CutChoice) -> Result<Database> {
    let state = volume.crash(Cut { event: volume.events(), choice });
    options().open_on(Arc::new(state), NAME)
}

#[test]
fn after_a_failed_sync_of_the_file_no_commit_is_acknowledged_and_the_log_gets_no_more_files() -> Result<()> {
    STORES.into_iter().try_for_each(fail_a_sync)
}

fn fail_a_sync(store: StoreKind) -> Result<()> {
    let (volume, beside, db) = hooked(&options().store(store))?;
    put(&db, 0..50, Durability::Commit)?;
    beside.set(|name, at| if name == NAME && at.is_none() { Err(failed()) } else { Ok(()) });
    assert!(db.checkpoint().is_err());
    *beside.0.lock() = None;
    let segments = volume.list("t.duramen-log.")?;
    for key in 50..90 {
        let refused = put(&db, key..key + 1, Durability::Commit);
        assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
        assert!(matches!(db.checkpoint(), Err(Error::Poisoned { .. })));
    }
    assert_eq!(volume.list("t.duramen-log.")?, segments);
    assert_eq!(keys(&db)?.len(), 50, "what was visible stays so");
    drop(db);
    assert_eq!(keys(&after_a_cut(&volume, CutChoice::DropUnsynced)?)?.len(), 50);
    Ok(())
}

/// The number of segments of the log, without spare files.
fn segments_in_use(volume: &FailingVolume) -> Result<usize> {
    let is_used = |name: &String| {
        let mut shape = [0; 4];
        volume.open(name, OpenMode::Read).and_then(|disk| disk.read_at(36, &mut shape)).map(|()| shape[0] != 2)
    };
    let used: Vec<bool> = volume.list("t.duramen-log.")?.iter().map(is_used).collect::<Result<_>>()?;
    Ok(used.into_iter().filter(|used| *used).count())
}

/// A write that fails changes nothing that is durable, and what it was for can be written again.
#[test]
fn a_checkpoint_whose_writes_fail_is_tried_again_and_the_log_gets_no_more_files() -> Result<()> {
    STORES.into_iter().try_for_each(fail_writes)
}

fn fail_writes(store: StoreKind) -> Result<()> {
    for full in [false, true] {
        let (volume, beside, db) = hooked(&options().store(store))?;
        put(&db, 0..50, Durability::Commit)?;
        let segments = volume.list("t.duramen-log.")?.len();
        let error = move || if full { Error::Full { path: NAME.into() } } else { failed() };
        beside.set(move |name, at| if name == NAME && at.is_some() { Err(error()) } else { Ok(()) });
        for key in 50..90 {
            put(&db, key..key + 1, Durability::Commit)?;
            let refused = db.checkpoint();
            assert!(matches!(refused, Err(Error::Io { .. } | Error::Full { .. })), "{refused:?}");
        }
        assert!(volume.list("t.duramen-log.")?.len() <= segments + 1, "{:?}", volume.list("t.duramen-log.")?);
        let failing = after_a_cut(&volume, CutChoice::DropUnsynced)?;
        assert_eq!(keys(&failing)?.len(), 90);
        *beside.0.lock() = None;
        db.checkpoint()?;
        assert_eq!(segments_in_use(&volume)?, 1, "what no recovery needs is gone");
        put(&db, 90..100, Durability::Commit)?;
        assert_eq!(keys(&after_a_cut(&volume, CutChoice::DropUnsynced)?)?.len(), 100);
        db.checkpoint()?;
        assert!(db.stats().log_bytes < 1000 && segments_in_use(&volume)? == 1, "{:?}", db.stats());
        assert!(volume.list("t.duramen-log.")?.len() <= 3, "{:?}", volume.list("t.duramen-log.")?);
        db.close()?;
    }
    Ok(())
}

#[test]
fn an_interval_is_kept_while_pages_wait_to_be_freed_and_a_transaction_stays_open() -> Result<()> {
    STORES.into_iter().try_for_each(keep_an_interval)
}

fn keep_an_interval(store: StoreKind) -> Result<()> {
    let options = options().store(store).cache(64 << 20).flush_interval(Duration::from_millis(10));
    let volume = FailingVolume::new(1);
    let db = options.background(true).create_on(Arc::new(volume.clone()), NAME)?;
    for turn in 0..5 {
        put(&db, 0..200_000, Durability::Commit)?;
        // The background thread has much to free, for which it needs the writer's lock.
        let tx = db.begin_write()?;
        tx.drop_table("t")?;
        tx.commit()?;
        put(&db, 0..1, Durability::Interval)?;
        let open = db.begin_write()?;
        wait_until_durable(&volume, turn)?;
        drop(open);
    }
    Ok(())
}

/// Looks until the commit before is durable, for so long as no interval ever is.
fn wait_until_durable(volume: &FailingVolume, turn: u32) -> Result<()> {
    let begun = Instant::now();
    while keys(&after_a_cut(volume, CutChoice::DropUnsynced)?).map_or(0, |keys| keys.len()) != 1 {
        assert!(begun.elapsed() < Duration::from_secs(20), "turn {turn}");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

#[test]
fn a_failed_sync_in_the_background_stops_writers() -> Result<()> {
    STORES.into_iter().try_for_each(fail_a_sync_in_the_background)
}

fn fail_a_sync_in_the_background(store: StoreKind) -> Result<()> {
    let options =
        options().store(store).background(true).flush_interval(Duration::from_millis(5)).checkpoint_bytes(4096);
    let (_volume, beside, db) = hooked(&options)?;
    beside.set(|name, at| if name == NAME && at.is_none() { Err(failed()) } else { Ok(()) });
    let start = Instant::now();
    while put(&db, 0..50, Durability::None).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(60), "writers go on after a failed checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(matches!(put(&db, 0..1, Durability::None), Err(Error::Poisoned { .. })));
    Ok(())
}

#[test]
fn a_failed_sync_of_the_log_for_the_writers_stops_all_writing() -> Result<()> {
    STORES.into_iter().try_for_each(sync_for_writers)
}

fn sync_for_writers(store: StoreKind) -> Result<()> {
    let options =
        options().store(store).background(true).checkpoint_bytes(1 << 30).flush_interval(Duration::from_secs(3600));
    let (_volume, beside, db) = hooked(&options)?;
    let syncs = Arc::new(AtomicU64::new(0));
    let counted = syncs.clone();
    beside.set(move |_, at| {
        let is_sync = at.is_none() && std::thread::current().name() == Some("duramen-log");
        // All syncs of this thread after the first one fail.
        if is_sync && counted.fetch_add(1, Ordering::SeqCst) > 0 { Err(failed()) } else { Ok(()) }
    });
    let start = Instant::now();
    let mut first = 0;
    while put(&db, first..first + 50, Durability::None).is_ok() {
        assert!(start.elapsed() < Duration::from_secs(60), "{} syncs", syncs.load(Ordering::SeqCst));
        first = (first + 50) % 10_000;
    }
    assert!(syncs.load(Ordering::SeqCst) > 1);
    assert!(matches!(put(&db, 0..1, Durability::None), Err(Error::Poisoned { .. })));
    Ok(())
}

/// While a checkpoint syncs its superblock, a commit with pages outside the log syncs the same file and fails: what is
/// lost is the superblock, and the system tells only one of the two.
#[test]
fn a_checkpoint_beside_a_failed_sync_of_another_thread_is_not_taken_for_durable() -> Result<()> {
    STORES.into_iter().try_for_each(fail_a_sync_of_another_thread)
}

fn fail_a_sync_of_another_thread(store: StoreKind) -> Result<()> {
    let (volume, beside, db) = hooked(&options().store(store))?;
    for round in 0..3 {
        put(&db, 0..300 + round, Durability::Commit)?;
        db.checkpoint()?;
    }
    put(&db, 0..400, Durability::Commit)?;
    let bulk = db.begin_write()?;
    let mut load = bulk.bulk_load("bulk", "bytes", "bytes", Default::default(), 1.0)?;
    (0..50u32).try_for_each(|key| load.push(&key.to_be_bytes(), &[7; 300]))?;
    load.finish()?;
    let mut bulk = Some(bulk);
    let mut superblock = false;
    let failing = volume.clone();
    let (done, finished) = std::sync::mpsc::channel();
    beside.set(move |name, at| {
        if name != NAME {
            return Ok(());
        }
        if let Some(at) = at {
            superblock = at < 8192;
        } else if superblock && let Some(bulk) = bulk.take() {
            // The next sync fails, and it is the commit's if it does not wait for this one.
            failing.inject(Fault::FailSync, Trigger::once());
            let (report, reported) = std::sync::mpsc::channel();
            let done = done.clone();
            std::thread::spawn(move || {
                let committed = bulk.commit();
                let _ = (report.send(()), done.send(committed));
            });
            let _ = reported.recv_timeout(Duration::from_millis(500));
        }
        Ok(())
    });
    let taken = db.checkpoint();
    let committed = finished.recv().expect("the commit has ended");
    *beside.0.lock() = None;
    assert!(taken.is_err() && committed.is_err(), "{taken:?}, {committed:?}");
    let refused = put(&db, 0..1, Durability::Commit);
    assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
    drop(db);
    for seed in 0..20 {
        assert_eq!(keys(&after_a_cut(&volume, CutChoice::Random(seed))?)?.len(), 400);
    }
    Ok(())
}

/// Runs `work`, in which the next write to a file of that name panics.
fn panicking<T>(beside: &Beside, name: &'static str, work: impl FnOnce() -> T) -> bool {
    beside.set(move |written, at| {
        assert!(at.is_none() || !written.starts_with(name), "a panic on purpose");
        Ok(())
    });
    let panicked = catch_unwind(AssertUnwindSafe(work)).is_err();
    *beside.0.lock() = None;
    panicked
}

#[test]
fn a_panic_while_a_commit_is_applied_stops_all_writing() -> Result<()> {
    STORES.into_iter().try_for_each(panic_in_a_commit)
}

fn panic_in_a_commit(store: StoreKind) -> Result<()> {
    let (volume, beside, db) = hooked(&options().store(store))?;
    put(&db, 0..100, Durability::Commit)?;
    // Its pages are changed already when it is put in the log.
    assert!(panicking(&beside, "t.duramen-log", || put(&db, 50..150, Durability::Commit)));
    for _ in 0..2 {
        let refused = put(&db, 200..300, Durability::Commit);
        assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
        assert!(matches!(db.checkpoint(), Err(Error::Poisoned { .. })));
    }
    assert!(db.close().is_err(), "what is half done must not be closed over");
    let db = options().open_on(Arc::new(volume.clone()), NAME)?;
    assert_eq!(keys(&db)?, (0..100).collect::<Vec<_>>());
    assert!(db.verify(|_| ())?.findings.is_empty());
    Ok(())
}

#[test]
fn a_panic_between_the_pieces_of_a_large_transaction_stops_all_writing() -> Result<()> {
    STORES.into_iter().try_for_each(panic_between_pieces)
}

fn panic_between_pieces(store: StoreKind) -> Result<()> {
    let (volume, beside, db) = hooked(&options().store(store))?;
    put(&db, 0..100, Durability::Commit)?;
    // The cache is small: pages are written to the file to make room for others.
    assert!(panicking(&beside, NAME, || put(&db, 0..20_000, Durability::Commit)));
    let refused = put(&db, 0..1, Durability::Commit);
    assert!(matches!(refused, Err(Error::Poisoned { .. })), "{refused:?}");
    drop(db);
    let found = keys(&options().open_on(Arc::new(volume), NAME)?)?.len();
    assert!(found == 100 || found == 20_000, "{found}");
    Ok(())
}

#[test]
fn a_panic_in_the_background_stops_all_writing_and_closing_does_not_hang() -> Result<()> {
    STORES.into_iter().try_for_each(panic_in_the_background)
}

fn panic_in_the_background(store: StoreKind) -> Result<()> {
    let options =
        options().store(store).background(true).flush_interval(Duration::from_millis(5)).checkpoint_bytes(4096);
    let (volume, beside, db) = hooked(&options)?;
    put(&db, 0..100, Durability::Commit)?;
    beside.set(|name, at| {
        let background = std::thread::current().name() == Some("duramen");
        assert!(!background || name != NAME || at.is_none(), "a panic on purpose");
        Ok(())
    });
    let (start, mut acknowledged) = (Instant::now(), 100);
    while put(&db, acknowledged..acknowledged + 10, Durability::Commit).is_ok() {
        acknowledged += 10;
        assert!(start.elapsed() < Duration::from_secs(60), "writers go on without background work");
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(db);
    *beside.0.lock() = None;
    let found = keys(&options.open_on(Arc::new(volume), NAME)?)?.len();
    assert!(found as u32 >= acknowledged, "{found} of {acknowledged}");
    Ok(())
}

/// Counts syncs of the log while a database with a short interval is left alone after a commit.
fn syncs_of_the_log(durability: Durability, until: u64) -> Result<u64> {
    let options = options().background(true).flush_interval(Duration::from_millis(2)).durability(durability);
    let (_volume, beside, db) = hooked(&options)?;
    let syncs = Arc::new(AtomicU64::new(0));
    let counted = syncs.clone();
    beside.set(move |name, at| {
        counted.fetch_add(u64::from(at.is_none() && name.starts_with("t.duramen-log")), Ordering::AcqRel);
        Ok(())
    });
    let start = Instant::now();
    for key in 0.. {
        put(&db, key..key + 1, durability)?;
        std::thread::sleep(Duration::from_millis(10));
        let most = Duration::from_millis(if until == 0 { 300 } else { 60_000 });
        if start.elapsed() > most || (until > 0 && syncs.load(Ordering::Acquire) >= until) {
            break;
        }
    }
    Ok(syncs.load(Ordering::Acquire))
}

#[test]
fn commits_without_durability_are_not_synced_at_intervals_and_others_are() -> Result<()> {
    assert_eq!(syncs_of_the_log(Durability::None, 0)?, 0);
    assert_eq!(syncs_of_the_log(Durability::Interval, 2)?, 2);
    Ok(())
}

#[test]
fn threads_that_wait_for_a_checkpoint_share_the_next_one() -> Result<()> {
    STORES.into_iter().try_for_each(share_a_checkpoint)
}

fn share_a_checkpoint(store: StoreKind) -> Result<()> {
    const WAITERS: usize = 12;
    let (_volume, beside, db) = hooked(&options().store(store))?;
    put(&db, 0..100, Durability::Commit)?;
    let superblocks = Arc::new(AtomicU64::new(0));
    let counted = superblocks.clone();
    beside.set(move |name, at| {
        if name == NAME && at.is_some_and(|at| at < 8192) && counted.fetch_add(1, Ordering::AcqRel) == 0 {
            // The first checkpoint waits until the others have come.
            std::thread::sleep(Duration::from_secs(2));
        }
        Ok(())
    });
    std::thread::scope(|scope| {
        let first = scope.spawn(|| db.checkpoint());
        let start = Instant::now();
        while superblocks.load(Ordering::Acquire) == 0 && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let others: Vec<_> = (0..WAITERS).map(|_| scope.spawn(|| db.checkpoint())).collect();
        others.into_iter().chain([first]).try_for_each(|taken| taken.join().expect("a thread"))
    })?;
    // One that comes late, on a busy machine, may have one of its own.
    let taken = superblocks.load(Ordering::Acquire);
    assert!((2..=4).contains(&taken), "{taken} checkpoints for {WAITERS} that waited");
    Ok(())
}

/// The files that were written to and synced, in order; true for a sync. The folder has an empty name.
#[derive(Debug, Default)]
struct WritesAndSyncs(Mutex<Vec<(String, bool)>>);

impl Hooks for WritesAndSyncs {
    fn before_write(&self, name: &str, _: u64, _: usize) -> Result<()> {
        self.0.lock().push((name.to_owned(), false));
        Ok(())
    }

    fn before_rename(&self, _: &str, _: &str) -> Result<()> {
        self.0.lock().push((String::new(), false));
        Ok(())
    }

    fn before_sync(&self, name: Option<&str>) -> Result<()> {
        self.0.lock().push((name.unwrap_or_default().to_owned(), true));
        Ok(())
    }
}

#[test]
fn a_checkpoint_syncs_no_file_twice_without_a_write_between() -> Result<()> {
    for store in STORES {
        let calls = Arc::new(WritesAndSyncs::default());
        let volume = HookedVolume::new(Arc::new(FailingVolume::new(1)), calls.clone());
        let db = options().store(store).create_on(Arc::new(volume), NAME)?;
        for _ in 0..5 {
            (0..500).step_by(10).try_for_each(|key| put(&db, key..key + 10, Durability::None))?;
            calls.0.lock().clear();
            db.checkpoint()?;
        }
        // The last checkpoint begins a segment in a file that was a segment before.
        let calls = std::mem::take(&mut *calls.0.lock());
        let syncs: Vec<&String> = calls.iter().filter(|(_, is_sync)| *is_sync).map(|(name, _)| name).collect();
        let mut written: Vec<&String> = Vec::new();
        for (at, (name, is_sync)) in calls.iter().enumerate() {
            // The first sync of a file is for what was written before the checkpoint.
            let is_first = !calls.iter().take(at).any(|call| call == &(name.clone(), true));
            assert!(!is_sync || is_first || written.contains(&name), "{store}: {name:?} is synced again: {syncs:?}");
            match is_sync {
                true => written.retain(|other| *other != name),
                false => written.push(name),
            }
        }
        assert!(syncs.len() <= MAX_SYNCS, "{store}: {} syncs: {syncs:?}", syncs.len());
    }
    Ok(())
}

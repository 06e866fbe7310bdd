//! Promise: corrected errors do not return. The name of each test says what was wrong.

use duramen::io::{FileVolume, MemoryVolume, Volume};
use duramen::{Database, Durability, Error, Result, TableDef, TableOptions, WriteTransaction};
use duramen_sim::{Cut, CutChoice, FailingVolume, HookedVolume, Hooks};
use parking_lot::{Condvar, Mutex};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const TABLE: TableDef<u32, &str> = TableDef::new("t");
const NAME: &str = "t.duramen";

fn options() -> duramen::Builder {
    Database::builder().page_size(4096).cache(1 << 20).background(false)
}

fn put(db: &Database, keys: std::ops::Range<u32>, durability: Durability) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(durability);
    let mut table = tx.open_table(TABLE)?;
    for key in keys {
        table.put(key, "a value that takes some room")?;
    }
    drop(table);
    tx.commit()
}

fn entries(db: &Database) -> Result<u64> {
    let tx = db.begin_read()?;
    let table = tx.open_table(TABLE)?;
    assert_eq!(table.iter().filter(Result::is_ok).count() as u64, table.len());
    Ok(table.len())
}

/// The files that a killed process leaves, after the system has written its cache.
fn killed(volume: &FailingVolume) -> FailingVolume {
    volume.crash(Cut { event: volume.events(), choice: CutChoice::KeepAll })
}

/// A door that syncs of the log wait at while it is shut; and a database file that can be full on its own.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<(bool, usize)>,
    changed: Condvar,
    full: AtomicBool,
}

impl Gate {
    fn shut(&self, shut: bool) {
        self.state.lock().0 = shut;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock();
        state.1 += 1;
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |(shut, _)| *shut);
        state.1 -= 1;
    }

    fn await_waiting(&self) {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |(_, waiting)| *waiting == 0);
    }
}

impl Hooks for Gate {
    fn before_write(&self, name: &str, offset: u64, _: usize) -> Result<()> {
        // The superblocks have their place.
        match name == NAME && offset >= 8192 && self.full.load(Ordering::Relaxed) {
            true => Err(Error::Full { path: NAME.into() }),
            false => Ok(()),
        }
    }

    fn before_sync(&self, name: Option<&str>) -> Result<()> {
        if name.is_some_and(|name| name.contains("-log")) {
            self.pass();
        }
        Ok(())
    }
}

#[test]
fn a_later_non_durable_commit_does_not_expose_a_commit_that_waits_for_its_sync() -> Result<()> {
    for freeing in [false, true] {
        let gate = Arc::new(Gate::default());
        let db = options().create_on(Arc::new(HookedVolume::new(Arc::new(MemoryVolume::new()), gate.clone())), NAME)?;
        put(&db, 0..2000, Durability::Commit)?;
        if freeing {
            let tx = db.begin_write()?;
            tx.drop_table("t")?;
            tx.commit()?;
        }
        gate.shut(true);
        std::thread::scope(|scope| -> Result<()> {
            let durable = scope.spawn(|| put(&db, 5000..5001, Durability::Commit));
            gate.await_waiting();
            // It may wait for the other's sync, too, or not; it must not make the other's commit visible.
            let later = scope.spawn(|| match freeing {
                true => db.maintain().map(drop),
                false => put(&db, 5001..5002, Durability::None),
            });
            std::thread::sleep(Duration::from_millis(50));
            let tx = db.begin_read()?;
            let seen = match tx.open_table(TABLE) {
                Ok(table) => table.get(5000)?.is_some(),
                Err(_) => false,
            };
            gate.shut(false);
            durable.join().expect("a durable commit")?;
            later.join().expect("a later commit")?;
            assert!(!seen, "a commit was seen that a power cut could have taken back");
            assert!(db.begin_read()?.open_table(TABLE)?.get(5000)?.is_some());
            Ok(())
        })?;
    }
    Ok(())
}

/// Works while a commit is applied and waits for the device, so that no snapshot sees it yet.
fn beside_a_waiting_commit(
    waiting: impl FnOnce(&WriteTransaction) -> Result<()> + Send,
    work: impl FnOnce(&Database) -> Result<()> + Send,
) -> Result<()> {
    let gate = Arc::new(Gate::default());
    let db = options().create_on(Arc::new(HookedVolume::new(Arc::new(MemoryVolume::new()), gate.clone())), NAME)?;
    put(&db, 0..2000, Durability::Commit)?;
    gate.shut(true);
    std::thread::scope(|scope| {
        let commit = scope.spawn(|| {
            let tx = db.begin_write()?;
            waiting(&tx)?;
            tx.commit()
        });
        gate.await_waiting();
        let work = scope.spawn(|| work(&db));
        // The work after its own commit waits as well.
        std::thread::sleep(Duration::from_millis(50));
        gate.shut(false);
        commit.join().expect("a commit")?;
        work.join().expect("work beside it")
    })
}

fn names(tx: &WriteTransaction) -> Result<Vec<String>> {
    Ok(tx.tables()?.into_iter().map(|table| table.name).collect())
}

#[test]
fn a_writing_transaction_lists_the_tables_of_a_commit_that_no_snapshot_sees_yet() -> Result<()> {
    let new: TableDef<u32, &str> = TableDef::new("new");
    beside_a_waiting_commit(
        |tx| tx.open_table(new).map(drop),
        |db| {
            assert_eq!(db.begin_read()?.tables()?.len(), 1, "a snapshot must not see it");
            assert_eq!(names(&db.begin_write()?)?, ["new", "t"]);
            Ok(())
        },
    )?;
    beside_a_waiting_commit(
        |tx| tx.drop_table("t").map(drop),
        |db| {
            assert_eq!(names(&db.begin_write()?)?, [""; 0]);
            Ok(())
        },
    )?;
    beside_a_waiting_commit(
        |tx| tx.rename_table("t", "renamed"),
        |db| {
            assert_eq!(names(&db.begin_write()?)?, ["renamed"]);
            Ok(())
        },
    )
}

#[test]
fn a_compaction_takes_the_tables_of_a_commit_that_no_snapshot_sees_yet() -> Result<()> {
    beside_a_waiting_commit(
        |tx| tx.rename_table("t", "renamed"),
        |db| {
            assert_eq!(db.compact(|_| ())?.entries, 2000);
            Ok(())
        },
    )?;
    beside_a_waiting_commit(
        |tx| tx.drop_table("t").map(drop),
        |db| {
            assert_eq!(db.compact(|_| ())?.entries, 0);
            Ok(())
        },
    )
}

#[test]
fn two_threads_that_free_the_same_table_free_it_once() -> Result<()> {
    for round in 0..6 {
        let db = options().create_on(Arc::new(MemoryVolume::new()), NAME)?;
        put(&db, 0..20_000, Durability::None)?;
        let tx = db.begin_write()?;
        tx.drop_table("t")?;
        tx.commit()?;
        std::thread::scope(|scope| {
            let free = || while db.maintain().expect("freeing") {};
            let threads = [scope.spawn(free), scope.spawn(free)];
            put(&db, 0..3000 + round, Durability::None).expect("a commit beside");
            threads.into_iter().for_each(|thread| thread.join().expect("freeing"));
        });
        assert_eq!(db.verify(|_| ())?.findings, []);
        assert_eq!(db.begin_read()?.open_table(TABLE)?.len(), u64::from(3000 + round));
    }
    Ok(())
}

#[test]
fn a_page_is_not_moved_before_its_transaction_has_committed() -> Result<()> {
    let volume = FailingVolume::new(1);
    let db = options().create_on(Arc::new(volume.clone()), NAME)?;
    put(&db, 0..30_000, Durability::Commit)?;
    db.checkpoint()?;
    let tx = db.begin_write()?;
    tx.drop_table("t")?;
    tx.commit()?;
    while db.maintain()? {}
    let tx = db.begin_write()?;
    let mut bulk = tx.bulk_load("t", "u32", "str", TableOptions::default(), 1.0)?;
    for key in 0..3000u32 {
        bulk.push(&key.to_be_bytes(), b"a value")?;
    }
    bulk.finish()?;
    // On a full device a checkpoint moves pages into free runs, but not beside a transaction.
    volume.limit_space(Some(0));
    let _ = db.checkpoint();
    volume.limit_space(None);
    tx.commit()?;
    assert_eq!(entries(&options().open_on(Arc::new(killed(&volume)), NAME)?)?, 3000);
    Ok(())
}

#[test]
fn the_first_piece_of_an_incomplete_transaction_is_not_joined_to_the_next() -> Result<()> {
    let volume = FailingVolume::new(1);
    let db = options().create_on(Arc::new(volume.clone()), NAME)?;
    put(&db, 0..100, Durability::Commit)?;
    let from = volume.events();
    put(&db, 100..120_000, Durability::Commit)?;
    // Zeros may follow a piece in its write.
    let bytes = |event| volume.describe(event).strip_prefix("write of ")?.split(' ').next()?.parse::<u64>().ok();
    let is_piece = |event: &usize| bytes(*event).is_some_and(|bytes| bytes >= 4_194_000);
    let piece = (from..volume.events()).find(is_piece).expect("a transaction of several pieces");
    let cut = volume.crash(Cut { event: piece + 1, choice: CutChoice::KeepAll });
    // A recovery whose checkpoint finds no room leaves the log as it is.
    let gate = Arc::new(Gate::default());
    gate.full.store(true, Ordering::Relaxed);
    let db = options().open_on(Arc::new(HookedVolume::new(Arc::new(cut.clone()), gate.clone())), NAME)?;
    gate.full.store(false, Ordering::Relaxed);
    assert_eq!(entries(&db)?, 100);
    put(&db, 1000..12_000, Durability::Commit)?;
    assert_eq!(entries(&options().open_on(Arc::new(killed(&cut)), NAME)?)?, 11_100);
    Ok(())
}

#[test]
fn long_keys_of_one_transaction_do_not_outgrow_the_cache() -> Result<()> {
    for (cache, keys) in [(0, 200u32), (1 << 20, 350)] {
        let volume = FailingVolume::new(1);
        let db = options().cache(cache).create_on(Arc::new(volume.clone()), NAME)?;
        let tx = db.begin_write()?;
        let mut table = tx.create_untyped("t", "bytes", "bytes", TableOptions::default())?;
        for key in 0..keys {
            table.put(&[&[b'x'; 900][..], &key.to_be_bytes()].concat(), b"v")?;
        }
        drop(table);
        tx.commit()?;
        let again = options().cache(cache).open_on(Arc::new(killed(&volume)), NAME)?;
        assert_eq!(again.begin_read()?.open_untyped("t")?.len(), u64::from(keys));
    }
    Ok(())
}

/// Another program creates the same database just when this one has seen that there is none.
#[derive(Debug)]
struct Rival {
    path: Mutex<Option<PathBuf>>,
    created: Mutex<Option<Database>>,
}

impl Hooks for Rival {
    fn after_list(&self) -> Result<()> {
        if let Some(path) = self.path.lock().take() {
            let db = options().create(path)?;
            put(&db, 0..100, Durability::Commit)?;
            *self.created.lock() = Some(db);
        }
        Ok(())
    }
}

#[test]
fn a_creator_does_not_replace_the_file_of_an_earlier_creator() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let rival = Arc::new(Rival { path: Mutex::new(Some(path.clone())), created: Mutex::default() });
    let volume = HookedVolume::new(Arc::new(FileVolume::open(folder.path()).unwrap()), rival.clone());
    assert!(matches!(options().create_on(Arc::new(volume), NAME), Err(Error::Exists { .. })));
    rival.created.lock().take().expect("the first creator's database").close()?;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(entries(&options().open(&path)?)?, 100);
    Ok(())
}

#[test]
fn only_files_of_abandoned_creations_are_removed() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let id = "0123456789abcdef0123456789abcdef";
    let left =
        [format!("{NAME}.{id}.new"), format!("{NAME}.new"), format!("{NAME}.1.new"), format!("{NAME}2.{id}.new")];
    left.iter().for_each(|file| std::fs::write(folder.path().join(file), b"half").unwrap());
    let at_work = FileVolume::open(folder.path()).unwrap();
    let another = format!("{NAME}.{}.new", id.replace('0', "f"));
    std::fs::write(folder.path().join(&another), b"half").unwrap();
    let lock = at_work.lock(&another, true)?;
    options().create(&path)?.close()?;
    let mut found: Vec<String> = at_work.list("")?;
    let mut expected: Vec<String> = left[1..].iter().cloned().chain([another, NAME.to_owned()]).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    drop(lock);
    Ok(())
}

#[test]
fn a_read_only_opening_does_not_overlook_a_log_that_goes_on() -> Result<()> {
    let volume = FailingVolume::new(1);
    let db = options().create_on(Arc::new(volume.clone()), NAME)?;
    put(&db, 0..100, Durability::Commit)?;
    let state = killed(&volume);
    state.flip_bits(NAME, 100, 1)?;
    let opened = options().open_read_only_on(Arc::new(state.clone()), NAME);
    assert!(matches!(opened, Err(Error::NeedsRecovery { .. })));
    assert_eq!(entries(&options().open_on(Arc::new(state), NAME)?)?, 100);
    Ok(())
}

#[test]
fn a_bulk_load_that_is_not_finished_leaves_no_pages_behind() -> Result<()> {
    let db = options().create_on(Arc::new(MemoryVolume::new()), NAME)?;
    let tx = db.begin_write()?;
    let mut bulk = tx.bulk_load("b", "u32", "str", TableOptions::default(), 1.0)?;
    for key in 0..3000u32 {
        bulk.push(&key.to_be_bytes(), b"a value")?;
    }
    drop(bulk);
    assert!(matches!(tx.commit(), Err(Error::TableState { table, .. }) if table == "b"));
    put(&db, 0..10, Durability::Commit)?;
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

/// The bounds of a range need no type beside the table's, whichever of them is left out.
#[test]
fn every_form_of_a_range_is_taken_for_every_type_of_keys() -> Result<()> {
    macro_rules! ranges {
        ($name:literal, $key:ty, $low:expr, $high:expr) => {{
            const OF: TableDef<$key, ()> = TableDef::new($name);
            let db = Database::in_memory()?;
            let tx = db.begin_write()?;
            let mut table = tx.open_table(OF)?;
            table.put($low, ())?;
            table.put($high, ())?;
            assert_eq!(table.range(..).count(), 2);
            assert_eq!((table.range($low..).count(), table.range(..$high).count()), (2, 1));
            assert_eq!((table.range($low..$high).count(), table.range($low..=$high).count()), (1, 2));
            table.remove_range($high..);
            drop(table);
            tx.commit()?;
            let table = db.begin_read()?.open_table(OF)?;
            assert_eq!((table.range(..).count(), table.range(&$low..=&$low).count()), (1, 1));
            assert_eq!(duramen::query::Query::of(&table).range(..).run(&[])?.len(), 0);
            let tx = db.begin_write()?;
            let mut table = tx.open_table(OF)?;
            table.remove_range(..);
            assert!(table.is_empty()?);
        }};
    }
    ranges!("text", &str, "a", "p");
    ranges!("owned text", String, "a", "p");
    ranges!("numbers", u32, 1, 2);
    ranges!("signed numbers", i64, -1, 1);
    ranges!("pairs", (&str, u64), ("a", 1), ("a", 2));
    ranges!("bytes", &[u8], b"a".as_slice(), b"p".as_slice());
    ranges!("arrays", [u8; 2], &[1, 2], &[1, 3]);
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    tx.open_table(TABLE)?.put(7, "oak")?;
    tx.commit()?;
    assert_eq!(db.begin_read()?.open_table(TABLE)?.keys(..).sum::<Result<u32>>()?, 7);
    Ok(())
}

#[test]
fn a_table_may_be_given_the_name_that_it_has_and_a_missing_one_is_named() -> Result<()> {
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    tx.open_table(TABLE)?.put(1, "oak")?;
    tx.rename_table("t", "t")?;
    let missing = |result: Result<()>| matches!(result, Err(Error::NoTable { table }) if table == "missing");
    assert!(missing(tx.rename_table("missing", "t")) && missing(tx.rename_table("missing", "missing")));
    tx.commit()?;
    let tx = db.begin_write()?;
    tx.rename_table("t", "t")?;
    tx.drop_table("t")?;
    assert!(matches!(tx.rename_table("t", "t"), Err(Error::NoTable { .. })));
    tx.abort();
    assert_eq!(db.begin_read()?.open_table(TABLE)?.len(), 1);
    Ok(())
}

/// A `main` that returns `duramen::Result` prints the debug form of the error.
#[test]
fn an_error_debugs_as_it_displays() {
    let error = Database::open("no such folder/t.duramen").map(drop).unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(format!("{error:?}").ends_with(": create it first"));
}

#[test]
fn the_cause_that_stopped_all_writing_is_reported_once() -> Result<()> {
    let volume = FailingVolume::new(5);
    let db = options().create_on(Arc::new(volume.clone()), NAME)?;
    put(&db, 0..10, Durability::Commit)?;
    volume.inject(duramen_sim::Fault::FailSync, duramen_sim::Trigger::once());
    let failures = [put(&db, 10..20, Durability::Commit), put(&db, 20..30, Durability::Commit), db.checkpoint()];
    for message in
        failures.map(|failed| failed.unwrap_err().to_string()).into_iter().chain([db.close().unwrap_err().to_string()])
    {
        assert!(message.matches("the database cannot be written").count() <= 1, "{message}");
    }
    Ok(())
}

/// The input of `put_stream` may panic: a commit after it must free the pages of the incomplete value. The input may
/// also write another large value: no lock may be held while it is read.
#[test]
fn put_stream_tolerates_a_reader_that_panics_or_writes_another_value() -> Result<()> {
    struct Input<F>(usize, F);

    impl<F: FnMut()> std::io::Read for Input<F> {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            match self.0.checked_sub(1) {
                Some(left) => self.0 = left,
                None => (self.1)(),
            }
            buf.fill(7);
            Ok(buf.len())
        }
    }

    let db = options().create_on(Arc::new(MemoryVolume::new()), NAME)?;
    let tx = db.begin_write()?;
    let new = |name| tx.create_untyped(name, "str", "bytes", TableOptions::default());
    let (mut outer, mut inner) = (new("outer")?, new("inner")?);
    let mut panics = Input(300, || panic!("of the reader"));
    let panicked = catch_unwind(AssertUnwindSafe(|| outer.put_stream(b"lost", 2_000_000, &mut panics)));
    assert!(panicked.is_err());
    let write = || inner.put_stream(b"inner", 100_000, &mut [3; 100_000].as_slice()).unwrap();
    outer.put_stream(b"outer", 1_000_000, &mut Input(20, write))?;
    drop((outer, inner));
    tx.commit()?;
    let tx = db.begin_read()?;
    assert!(tx.open_untyped("outer")?.get(b"lost")?.is_none());
    assert_eq!(tx.open_untyped("outer")?.get(b"outer")?.map(|value| value.len()), Some(1_000_000));
    assert_eq!(tx.open_untyped("inner")?.get(b"inner")?.map(|value| value.len()), Some(100_000));
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

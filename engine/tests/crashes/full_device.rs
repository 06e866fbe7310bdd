//! Promise: on a full device an operation that needs space returns one clear error and leaves committed data unchanged.
//! The database can still be read, and entries and tables can be removed, which frees space. It can be opened after a
//! crash. None of this needs more space on the device.

use crate::workload::stores::STORES;
use duramen::db::{Compression, StoreKind};
use duramen::io::{OpenMode, Volume};
use duramen::{Database, Durability, Error, Result, TableDef, TableOptions};
use duramen_sim::{FailingVolume, HookedVolume, Hooks};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const OLD: TableDef<u32, &[u8]> = TableDef::new("old");
const NEW: TableDef<u32, &[u8]> = TableDef::new("new");
const NAME: &str = "t.duramen";
const OLD_ENTRIES: u32 = 30_000;
/// The greatest length of a file in [`ShortFiles`].
const LONGEST_FILE: u64 = 6 << 20;

fn options(cache: usize) -> duramen::Builder {
    Database::builder().page_size(4096).cache(cache).checkpoint_bytes(256 << 10).background(false)
}

fn put(db: &Database, table: TableDef<u32, &'static [u8]>, keys: std::ops::Range<u32>) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::None);
    let mut open = tx.open_table(table)?;
    for key in keys {
        // The old table's keys come in order, the new one's change pages everywhere.
        let key = if table.name() == OLD.name() { key } else { key.wrapping_mul(2_654_435_761) };
        open.put(key, &[key as u8; 100][..])?;
    }
    drop(open);
    tx.commit()
}

fn len(db: &Database, table: TableDef<u32, &'static [u8]>) -> Result<u32> {
    let tx = db.begin_read()?;
    let table = tx.open_table(table)?;
    assert_eq!(table.iter().filter(Result::is_ok).count() as u64, table.len());
    Ok(table.len() as u32)
}

/// Bytes of the new table's values.
fn bytes_of(db: &Database) -> Result<u64> {
    db.begin_read()?.open_table(NEW)?.iter().map(|entry| Ok(entry?.1.value().len() as u64)).sum()
}

/// A database of some size on a device that is then filled to the brim. Gives the entries of the new table.
fn fill(store: StoreKind, volume: &FailingVolume, cache: usize, space: u64) -> Result<(Database, u32)> {
    let db = options(cache).store(store).create_on(Arc::new(volume.clone()), NAME)?;
    for from in (0..OLD_ENTRIES).step_by(1000) {
        put(&db, OLD, from..from + 1000)?;
        while db.maintain()? {}
    }
    put(&db, NEW, 0..100)?;
    volume.limit_space(Some(space));
    let mut entries = 100;
    loop {
        match put(&db, NEW, entries..entries + 100) {
            Ok(()) => entries += 100,
            Err(Error::Full { .. }) => return Ok((db, entries)),
            Err(other) => panic!("{other}"),
        }
        assert!(entries < 100_000);
        match db.maintain() {
            Ok(_) | Err(Error::Full { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
}

/// Drops the old table and goes on with the room that gives.
fn make_room(db: &Database, entries: u32) -> Result<()> {
    let tx = db.begin_write()?;
    assert!(tx.drop_table("old")?);
    tx.commit().expect("dropping");
    // The first checkpoint lets the table go, the second its places.
    for _ in 0..2 {
        while db.maintain().expect("maintaining") {}
        db.checkpoint().unwrap_or_else(|error| panic!("a checkpoint: {error} {:?}", db.stats()));
    }
    for from in (entries..entries + 1000).step_by(100) {
        put(db, NEW, from..from + 100)?;
    }
    assert_eq!(len(db, NEW)?, entries + 1000);
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

/// Page stores, bytes of cache and bytes left on the device.
fn cases() -> impl Iterator<Item = (StoreKind, usize, u64)> {
    let cases =
        |store| (0..9).map(move |step: u64| (store, [0, 1 << 20, 16 << 20][step as usize % 3], step * step * 40_960));
    STORES.into_iter().flat_map(cases)
}

#[test]
fn a_table_can_be_dropped_on_a_full_device_and_writing_goes_on() -> Result<()> {
    for (store, cache, space) in cases() {
        let volume = FailingVolume::new(space);
        let (db, entries) = fill(store, &volume, cache, space)?;
        assert_eq!((len(&db, OLD)?, len(&db, NEW)?), (OLD_ENTRIES, entries), "{store:?}, {space} bytes");
        make_room(&db, entries).unwrap_or_else(|error| panic!("{store:?}, {space} bytes: {error}"));
        db.close()?;
        assert_eq!(len(&options(cache).open_on(Arc::new(volume), NAME)?, NEW)?, entries + 1000);
    }
    Ok(())
}

/// When the device becomes full, nearly all pages are new and only in the cache. Their writes need the reserved space,
/// and removals must still work.
#[test]
fn a_table_can_be_dropped_on_a_device_that_is_small_for_the_cache() -> Result<()> {
    for (store, space) in STORES.into_iter().flat_map(|store| [4, 6, 9, 14].map(|mib| (store, mib << 20))) {
        let what = format!("{store:?}, {space} bytes");
        let volume = FailingVolume::new(space);
        volume.limit_space(Some(space));
        let options = Database::builder().page_size(4096).cache(64 << 20).background(false);
        let db = options.clone().store(store).create_on(Arc::new(volume.clone()), NAME)?;
        put(&db, NEW, 0..100)?;
        let full =
            (0..1000).find_map(|from| put(&db, OLD, from * 500..(from + 1) * 500).err().map(|error| (from, error)));
        let Some((groups, Error::Full { .. })) = full else { panic!("{what}: {full:?}") };
        assert_eq!(len(&db, OLD)?, groups * 500, "{what}");
        let tx = db.begin_write()?;
        tx.open_table(NEW)?.remove_range(0..u32::MAX);
        tx.commit().unwrap_or_else(|error| panic!("{what}: removing entries: {error}"));
        make_room(&db, 0).unwrap_or_else(|error| panic!("{what}: {error}"));
        db.close()?;
        assert_eq!(len(&options.open_on(Arc::new(volume), NAME)?, NEW)?, 1000, "{what}");
    }
    Ok(())
}

#[test]
fn a_killed_process_leaves_a_database_that_opens_on_a_full_device() -> Result<()> {
    for (store, cache, space) in cases() {
        let what = format!("{store:?}, {space} bytes, a cache of {cache}");
        let volume = FailingVolume::new(space);
        let (db, entries) = fill(store, &volume, cache, space)?;
        volume.limit_space(Some(0));
        volume.power_off_at(Some(0));
        drop(db);
        volume.power_off_at(None);
        let db = options(cache).open_on(Arc::new(volume.clone()), NAME);
        let db = db.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((len(&db, OLD)?, len(&db, NEW)?), (OLD_ENTRIES, entries), "{what}");
        make_room(&db, entries).unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    Ok(())
}

/// The pages of a dropped table are holes, and new pages have been written there since the last checkpoint. A recovery
/// may write these pages again, but nothing beside them.
#[test]
fn a_killed_process_that_has_written_new_pages_into_holes_leaves_a_database_that_opens_on_a_full_device() -> Result<()>
{
    for (store, cache) in STORES.into_iter().flat_map(|store| [(store, 0), (store, 1 << 20), (store, 16 << 20)]) {
        let what = format!("{store:?}, a cache of {cache}");
        let volume = FailingVolume::new(1);
        let db = options(0).store(store).checkpoint_bytes(1 << 40).create_on(Arc::new(volume.clone()), NAME)?;
        put(&db, OLD, 0..OLD_ENTRIES)?;
        db.checkpoint()?;
        put(&db, NEW, 0..100)?;
        make_room(&db, 100)?;
        // The next one trims the pages.
        (0..2).try_for_each(|_| db.checkpoint())?;
        // In order, so that each page is written once.
        (0..OLD_ENTRIES).step_by(1000).try_for_each(|from| put(&db, OLD, from..from + 1000))?;
        volume.power_off_at(Some(0));
        drop(db);
        volume.power_off_at(None);
        // Nothing is left of what the file had reserved; what the log has reserved is far less than these pages.
        let file = volume.open(NAME, OpenMode::Write)?;
        file.resize(file.size()?)?;
        volume.limit_space(Some(0));
        let db = options(cache).open_on(Arc::new(volume.clone()), NAME);
        let db = db.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((len(&db, OLD)?, len(&db, NEW)?), (OLD_ENTRIES, 1100), "{what}");
        assert_eq!(db.verify(|_| ())?.findings, [], "{what}");
    }
    Ok(())
}

#[test]
fn writing_goes_on_once_there_is_room_again() -> Result<()> {
    for space in [0, 100_000, 1 << 20] {
        let volume = FailingVolume::new(space);
        let (db, entries) = fill(StoreKind::Table, &volume, 1 << 20, space)?;
        volume.limit_space(None);
        put(&db, NEW, entries..entries + 100)?;
        assert_eq!((len(&db, OLD)?, len(&db, NEW)?), (OLD_ENTRIES, entries + 100));
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    Ok(())
}

/// Each commit sets aside far more of the log than it needs.
#[test]
fn unused_reservations_of_commits_are_released() -> Result<()> {
    for space in [3 << 20, 7 << 19, 4 << 20] {
        let volume = FailingVolume::new(space);
        let db = options(64 << 20).create_on(Arc::new(volume.clone()), NAME)?;
        put(&db, OLD, 0..OLD_ENTRIES)?;
        db.close()?;
        volume.limit_space(Some(space));
        let db = options(64 << 20).open_on(Arc::new(volume.clone()), NAME)?;
        for from in (0..OLD_ENTRIES).step_by(500).cycle().take(120) {
            put(&db, OLD, from..from + 500).unwrap_or_else(|error| panic!("{space} bytes, from {from}: {error}"));
        }
        assert_eq!(len(&db, OLD)?, OLD_ENTRIES);
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    Ok(())
}

/// Such a transaction is in the log twice, and splits pages that it has just filled.
#[test]
fn a_large_transaction_is_refused_before_it_begins() -> Result<()> {
    let mut refused = 0;
    for space in (20..120u64).step_by(4).map(|step| step << 20) {
        let volume = FailingVolume::new(space);
        let builder = Database::builder().page_size(16 << 10).cache(1 << 20).background(false);
        let db = builder.create_on(Arc::new(volume.clone()), NAME)?;
        put(&db, OLD, 0..100)?;
        volume.limit_space(Some(space));
        for round in 0..4 {
            let tx = db.begin_write()?;
            let mut table = tx.open_table(NEW)?;
            for key in 0..4000u32 {
                let len = (key.wrapping_mul(40_503) >> 3) as usize % 3200;
                table.put((key + 4000 * round).wrapping_mul(2_654_435_761), &vec![key as u8; len][..])?;
            }
            drop(table);
            match tx.commit() {
                Ok(()) => assert_eq!(len(&db, NEW)?, 4000 * (round + 1)),
                Err(Error::Full { .. }) => {
                    refused += 1;
                    break;
                }
                Err(other) => panic!("{space} bytes: {other}"),
            }
        }
        assert_eq!(len(&db, OLD)?, 100);
    }
    assert!((5..30).contains(&refused), "{refused}");
    Ok(())
}

#[test]
fn a_commit_that_splits_many_pages_is_refused_before_it_begins() -> Result<()> {
    let mut refused = 0;
    for space in (0..48u64).map(|step| step * (384 << 10)) {
        let volume = FailingVolume::new(1);
        let db = options(64 << 20).create_on(Arc::new(volume.clone()), NAME)?;
        let tx = db.begin_write()?;
        let mut bulk = tx.bulk_load("new", "u32", "bytes", TableOptions::default(), 1.0)?;
        for key in 0..20_000u32 {
            bulk.push(&(key * 2).to_be_bytes(), &[key as u8; 100])?;
        }
        bulk.finish()?;
        tx.commit()?;
        db.checkpoint()?;
        volume.limit_space(Some(space));
        let tx = db.begin_write()?;
        let mut table = tx.open_table(NEW)?;
        // One entry into each full leaf.
        for key in (0..20_000).step_by(30) {
            table.put(key * 2 + 1, &[1; 100][..])?;
        }
        drop(table);
        let entries = match tx.commit() {
            Ok(()) => {
                db.checkpoint()?;
                20_000 + 20_000u32.div_ceil(30)
            }
            Err(Error::Full { .. }) => {
                refused += 1;
                20_000
            }
            Err(other) => panic!("{space} bytes: {other}"),
        };
        assert!(db.begin_write().is_ok(), "{space} bytes: writing was stopped");
        assert_eq!((len(&db, NEW)?, db.verify(|_| ())?.findings), (entries, vec![]), "{space} bytes");
    }
    assert!((1..48).contains(&refused), "{refused}");
    Ok(())
}

#[test]
fn large_values_leave_committed_pages_the_room_they_were_promised() -> Result<()> {
    let volume = FailingVolume::new(1);
    let db = options(16 << 20).create_on(Arc::new(volume.clone()), NAME)?;
    put(&db, OLD, 0..OLD_ENTRIES)?;
    put(&db, NEW, 0..100)?;
    db.checkpoint()?;
    put(&db, OLD, 0..OLD_ENTRIES / 2)?;
    volume.limit_space(Some(0));
    let tx = db.begin_write()?;
    let mut table = tx.open_table(NEW)?;
    let refused = (0..10_000).find_map(|n| table.put(100_000 + n, &[1; 40_000][..]).err());
    assert!(matches!(refused, Some(Error::Full { .. })), "{refused:?}");
    drop(table);
    drop(tx);
    db.checkpoint()?;
    make_room(&db, 100)
}

/// The pages of a replaced value are free only after a checkpoint, and nothing but a full device asks for one here.
#[test]
fn large_values_are_replaced_on_a_full_device() -> Result<()> {
    for (len, keys, space) in [(40_000usize, 20, 4 << 20), (1 << 20, 1, 4 << 20), (10_000, 400, 8 << 20)] {
        let volume = FailingVolume::new(1);
        let db = options(1 << 20).checkpoint_bytes(1 << 30).create_on(Arc::new(volume.clone()), NAME)?;
        let replace = |round: u32| {
            let tx = db.begin_write()?;
            tx.open_table(NEW)?.put(round % keys, &vec![round as u8; len][..])?;
            tx.commit()
        };
        (0..keys).try_for_each(replace)?;
        db.checkpoint()?;
        volume.limit_space(Some(space));
        for round in 0..20 * keys {
            replace(round).unwrap_or_else(|error| panic!("{len} bytes, round {round}: {error}"));
        }
        assert_eq!((bytes_of(&db)?, db.verify(|_| ())?.findings), (len as u64 * u64::from(keys), vec![]));
    }
    Ok(())
}

#[test]
fn a_creation_without_room_says_so_and_leaves_nothing() -> Result<()> {
    let mut made = None;
    for space in (0..16).map(|blocks| blocks << 12).chain((1..40).map(|quarters| quarters << 18)) {
        let volume = FailingVolume::new(1);
        volume.limit_space(Some(space));
        let created = options(0).create_on(Arc::new(volume.clone()), NAME);
        match created {
            Err(Error::Full { path }) => {
                assert!(volume.list("")?.is_empty(), "with {space} bytes: {:?}", volume.list(""));
                assert_eq!(path, volume.path(NAME), "the error names the database");
                let begun = options(0).begin_create_on(Arc::new(volume.clone()), NAME).map(drop);
                assert!(matches!(&begun, Err(Error::Full { path: named }) if *named == path), "{begun:?}");
            }
            Err(other) => panic!("with {space} bytes: {other}"),
            Ok(db) => {
                assert!(db.begin_write().is_ok(), "with {space} bytes");
                made = made.or(Some(space));
            }
        }
        volume.limit_space(None);
        assert!(options(0).open_or_create_on(Arc::new(volume), NAME).is_ok() || made.is_some());
    }
    assert!(made.is_some_and(|space| space > 0), "{made:?}");
    Ok(())
}

/// Delays each write of the thread that writes pages until the sender of `open` is dropped.
#[derive(Debug)]
struct Gate {
    reached: mpsc::Sender<()>,
    open: Mutex<mpsc::Receiver<()>>,
}

impl Hooks for Gate {
    fn before_write(&self, _name: &str, _offset: u64, _len: usize) -> Result<()> {
        if std::thread::current().name() == Some("duramen-pages") {
            self.reached.send(()).unwrap();
            // At most a minute, so that a test that fails ends.
            let _ = self.open.lock().unwrap().recv_timeout(Duration::from_secs(60));
        }
        Ok(())
    }
}

/// A bulk load writes pages in a thread, and large values beside it. If both were promised the same room, they would
/// use that of the dirty pages.
#[test]
fn room_for_pages_outside_the_log_is_promised_to_one_thread_at_a_time() -> Result<()> {
    let ((reached, is_reached), (open, is_open)) = (mpsc::channel(), mpsc::channel());
    let gate = Arc::new(Gate { reached, open: Mutex::new(is_open) });
    let volume = Arc::new(HookedVolume::new(Arc::new(FailingVolume::new(1)), gate));
    let db = options(1 << 20).compression_threads(2).create_on(volume, NAME)?;
    let tx = db.begin_write()?;
    let compressed = TableOptions { compression: Compression::Lz4, ..TableOptions::default() };
    let mut bulk = tx.bulk_load("loaded", "u64", "bytes", compressed, 1.0)?;
    // More than one batch, and less than two.
    (0..4000u64).try_for_each(|key| bulk.push(&key.to_be_bytes(), &[7; 400]))?;
    is_reached.recv().unwrap();
    let is_written = Arc::new(AtomicBool::new(false));
    let opening = std::thread::spawn({
        let is_written = is_written.clone();
        move || {
            std::thread::sleep(Duration::from_millis(300));
            is_written.store(true, Ordering::SeqCst);
            drop(open);
        }
    });
    bulk.push(&4000u64.to_be_bytes(), &[7; 100_000])?;
    assert!(is_written.load(Ordering::SeqCst), "the value did not wait for the pages");
    opening.join().unwrap();
    assert_eq!(bulk.finish()?, 4001);
    tx.commit()?;
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

/// A file system with a greatest length of files.
#[derive(Debug)]
struct ShortFiles;

impl Hooks for ShortFiles {
    fn before_write(&self, name: &str, offset: u64, len: usize) -> Result<()> {
        self.before_growth(name, offset + len as u64)
    }

    fn before_growth(&self, name: &str, end: u64) -> Result<()> {
        match end > LONGEST_FILE {
            true => Err(Error::io("cannot write", name, std::io::ErrorKind::FileTooLarge.into())),
            false => Ok(()),
        }
    }
}

/// The database uses the whole length, also where it would have the file grow by more. Then a commit is refused, and
/// space can be freed and used again.
#[test]
fn the_greatest_length_of_a_file_is_a_full_device() -> Result<()> {
    for store in STORES {
        let volume = FailingVolume::new(1);
        let hooked: Arc<dyn Volume> = Arc::new(HookedVolume::new(Arc::new(volume.clone()), Arc::new(ShortFiles)));
        let db = options(64 << 10).store(store).create_on(hooked.clone(), NAME)?;
        let mut entries = 0;
        loop {
            match put(&db, NEW, entries..entries + 100) {
                Ok(()) => entries += 100,
                Err(Error::Full { .. }) => break,
                Err(other) => panic!("{store}: {other}"),
            }
            while db.maintain()? {}
        }
        let len = volume.open(NAME, OpenMode::Read)?.size()?;
        assert!(len > LONGEST_FILE - (2 << 20), "{store}: {len} bytes");
        let tx = db.begin_write()?;
        tx.open_table(NEW)?.remove_range(..1 << 31);
        tx.commit()?;
        while db.maintain()? {}
        db.checkpoint()?;
        db.checkpoint()?;
        put(&db, NEW, 0..100)?;
        db.close()?;
        let db = options(64 << 10).open_on(hooked, NAME)?;
        put(&db, NEW, 0..100)?;
        assert_eq!(db.verify(|_| ())?.findings, [], "{store}");
        db.close()?;
    }
    Ok(())
}

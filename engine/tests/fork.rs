//! Child processes made by `fork` have copies of the handles and open files of their parent. They must not write to
//! these files, not release the locks, and not wait for the threads of the parent.

#[path = "workload/child.rs"]
mod child;
#[path = "workload/numbers.rs"]
mod numbers;
#[path = "workload/stores.rs"]
mod stores;

use child::in_child;
use duramen::db::{Compression, WriteTransaction};
use duramen::io::{FileVolume, OpenMode, Volume};
use duramen::{Builder, Database, Durability, Error, Result, TableDef, TableOptions};
use duramen_sim::{HookedVolume, Hooks};
use numbers::{TABLE, keys};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use stores::STORES;

/// A table that is larger than the cache.
const LARGE: TableDef<u64, &[u8]> = TableDef::new("large");

/// How often a child process is made while threads of the parent work.
const FORKS: usize = 40;

fn options() -> Builder {
    Database::builder().cache(1 << 20).page_size(4096)
}

fn put(db: &Database, key: u64) -> Result<()> {
    let tx = db.begin_write()?;
    tx.open_table(TABLE)?.put(&key, &key)?;
    tx.commit()
}

/// The names and the bytes of all files of a folder.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let mut files: Vec<_> =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect();
    files.sort();
    files
}

/// True if this process cannot write because its parent has opened the files.
fn is_refused<R>(result: Result<R>) -> bool {
    matches!(result, Err(Error::Forked { .. }))
}

/// A child drops or closes a handle. It must not wait for threads that it does not have, not close the database, and
/// not release the lock.
#[test]
fn a_forked_child_does_not_close_or_unlock_the_database() -> Result<()> {
    for background in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let db = options().background(background).create(&path)?;
        put(&db, 1)?;
        let db = in_child(db, |db| {
            assert!(is_refused(db.begin_write()) && is_refused(db.checkpoint()) && is_refused(db.maintain()));
            drop(db);
        });
        let db = in_child(db, |db| assert!(is_refused(db.close())));
        assert!(matches!(Database::open(&path), Err(Error::Locked { .. })), "the parent has the lock");
        put(&db, 2)?;
        drop(db);
        assert_eq!(keys(&Database::open(&path)?)?, 2);
    }
    in_child(Database::in_memory()?, |db| assert!(is_refused(db.begin_write())));
    Ok(())
}

#[test]
fn a_transaction_of_the_parent_cannot_commit_in_a_child_process() -> Result<()> {
    for store in STORES {
        for durability in [Durability::Commit, Durability::None] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("f");
            let db = options().background(false).store(store).create(&path)?;
            let mut tx = db.begin_write()?;
            tx.set_durability(durability);
            tx.open_table(TABLE)?.put(&1, &1)?;
            let before = files(folder.path());
            let (db, tx) = in_child((db, tx), |(_db, tx)| assert!(is_refused(tx.commit())));
            let (db, tx) = in_child((db, tx), |(_db, tx)| {
                let mut large = tx.create_untyped("large", "u64", "bytes", TableOptions::default()).unwrap();
                assert!(is_refused(large.put_stream(&[0; 8], 3 << 20, &mut std::io::repeat(7))));
            });
            assert!(files(folder.path()) == before, "a child process has written");
            tx.commit()?;
            drop(db);
            let db = Database::open(&path)?;
            assert_eq!(keys(&db)?, 1);
            assert_eq!(db.verify(|_| ())?.findings, []);
        }
    }
    Ok(())
}

fn put_large(db: &Database, keys: std::ops::Range<u64>, byte: u8) -> Result<()> {
    for first in keys.clone().step_by(100) {
        let mut tx = db.begin_write()?;
        tx.set_durability(Durability::None);
        let mut table = tx.open_table(LARGE)?;
        (first..keys.end.min(first + 100)).try_for_each(|key| table.put(&key, &[byte; 500][..]))?;
        drop(table);
        tx.commit()?;
    }
    Ok(())
}

#[test]
fn a_read_in_a_child_process_writes_no_page_to_make_room_in_the_cache() -> Result<()> {
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let db = options().background(false).store(store).create(&path)?;
        put_large(&db, 0..6000, 0)?;
        // These entries fit the cache, so nearly all pages in the cache are dirty.
        put_large(&db, 4400..6000, 1)?;
        put_large(&db, 4400..6000, 2)?;
        let before = files(folder.path());
        let db = in_child(db, |db| {
            let reader = db.begin_read().unwrap();
            let table = reader.open_table(LARGE).unwrap();
            let read = (0..6000u64).try_for_each(|key| table.get(&key).map(drop));
            assert!(read.is_err(), "no page was evicted");
        });
        assert!(files(folder.path()) == before, "{store:?}: a child process has written");
        let table = db.begin_read()?.open_table(LARGE)?;
        for key in 0..6000 {
            let byte = if key < 4400 { 0 } else { 2 };
            assert_eq!(table.get(&key)?.map(|value| value.value() == [byte; 500]), Some(true), "{store:?}: {key}");
        }
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    Ok(())
}

#[test]
fn a_child_process_does_not_remove_an_unfinished_database_of_its_parent() -> Result<()> {
    for empty in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        if empty {
            fs::write(&path, "").unwrap();
        }
        let new = options().background(false).begin_create(&path)?;
        put(new.database(), 1)?;
        let before = files(folder.path());
        let new = in_child(new, drop);
        let new = in_child(new, |new| assert!(is_refused(new.finish())));
        assert!(files(folder.path()) == before, "a child process has written");
        match options().begin_create(&path) {
            Err(Error::Locked { .. }) if empty => {}
            // This call would remove the unfinished file of `new` if that file were not locked.
            other => drop(other?),
        }
        assert!(files(folder.path()) == before);
        new.finish()?;
        assert_eq!(keys(&Database::open(&path)?)?, 1);
    }
    Ok(())
}

/// Keeps a thread waiting that writes large pieces, or the thread `duramen-sync` of a test.
#[derive(Debug, Default)]
struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_open: bool,
    waiting: bool,
}

impl Gate {
    fn change(&self, change: impl FnOnce(&mut GateState)) {
        change(&mut self.state.lock().unwrap());
        self.changed.notify_all();
    }

    /// Waits at most two minutes, so that a test that fails ends.
    fn wait(&self, until: impl Fn(&GateState) -> bool) {
        let (state, limit) = (self.state.lock().unwrap(), Duration::from_secs(120));
        drop(self.changed.wait_timeout_while(state, limit, |state| !until(state)).unwrap());
    }
}

impl Gate {
    fn pass(&self, thread: &str) -> Result<()> {
        if std::thread::current().name() == Some(thread) {
            self.change(|state| state.waiting = true);
            self.wait(|state| state.is_open);
        }
        Ok(())
    }
}

impl Hooks for Gate {
    fn before_write(&self, _name: &str, _offset: u64, _len: usize) -> Result<()> {
        self.pass("duramen-pages")
    }

    fn before_sync(&self, _name: Option<&str>) -> Result<()> {
        self.pass("duramen-sync")
    }
}

/// Loads until a thread waits at the gate with pages to write.
fn load_until_a_thread_writes(tx: &WriteTransaction) -> Result<()> {
    let compressed = TableOptions { compression: Compression::Lz4, ..TableOptions::default() };
    let mut bulk = tx.bulk_load("loaded", "u64", "bytes", compressed, 1.0)?;
    (0..4000u64).try_for_each(|key| bulk.push(&key.to_be_bytes(), &[7; 400]))
}

#[test]
fn a_child_process_does_not_wait_for_a_thread_of_its_parent_that_writes_pages() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let volume = Arc::new(HookedVolume::new(Arc::new(FileVolume::open(folder.path())?), gate.clone()));
    let options = options().background(false).compression_threads(2);
    let db = options.create_on(volume.clone(), "f")?;
    let tx = db.begin_write()?;
    load_until_a_thread_writes(&tx)?;
    gate.wait(|state| state.waiting);
    let (db, tx) = in_child((db, tx), |(_db, tx)| drop(tx));
    let (db, tx) = in_child((db, tx), |(_db, tx)| assert!(is_refused(tx.commit())));
    gate.change(|state| state.is_open = true);
    drop(tx);
    put(&db, 1)?;
    drop(db);
    let db = options.open_on(volume, "f")?;
    assert_eq!(keys(&db)?, 1);
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

/// A read of the child process needs a frame, and all frames have changes whose log is not durable.
#[test]
fn a_child_process_does_not_wait_for_a_sync_of_its_parent() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let volume = Arc::new(HookedVolume::new(Arc::new(FileVolume::open(folder.path())?), gate.clone()));
    let db = Arc::new(options().background(false).create_on(volume, "f")?);
    put_large(&db, 0..6000, 0)?;
    put_large(&db, 4400..6000, 1)?;
    put_large(&db, 4400..6000, 2)?;
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Interval);
    tx.open_table(TABLE)?.put(&1, &1)?;
    tx.commit()?;
    let same = db.clone();
    let syncs = std::thread::Builder::new().name("duramen-sync".into()).spawn(move || same.maintain().map(drop));
    gate.wait(|state| state.waiting);
    let db = in_child(db, |db| {
        assert!(is_refused(db.maintain()) && is_refused(db.compact(|_| ())));
        let reader = db.begin_read().unwrap();
        let table = reader.open_table(LARGE).unwrap();
        let read = (0..6000u64).try_for_each(|key| table.get(&key).map(drop));
        assert!(is_refused(read), "no page was evicted");
    });
    gate.change(|state| state.is_open = true);
    syncs.unwrap().join().unwrap()?;
    assert_eq!(keys(&db)?, 1);
    Ok(())
}

/// A thread of the parent often holds the locks of the snapshots at the time of the fork.
#[test]
fn a_child_process_drops_a_snapshot_without_the_locks_of_its_parent() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let db = Arc::new(options().background(false).create(folder.path().join("f"))?);
    put(&db, 1)?;
    let stop = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (db, stop) = (db.clone(), stop.clone());
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) && db.begin_read().is_ok() {})
        })
        .collect();
    let mut reader = db.begin_read()?;
    for _ in 0..FORKS {
        reader = in_child(reader, drop);
    }
    stop.store(true, Ordering::Relaxed);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((keys(&db)?, db.stats().snapshots), (1, 1));
    drop(reader);
    assert_eq!(db.stats().snapshots, 0);
    Ok(())
}

#[test]
fn a_child_process_does_not_wait_for_the_threads_of_its_parent_that_read_ahead() -> Result<()> {
    const MIB: usize = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let volume = FileVolume::open(folder.path())?;
    let mut file = volume.open("f", OpenMode::CreateNew)?;
    file.write_at(0, &vec![7; 4 * MIB])?;
    file.sync()?;
    if !file.use_direct_io()? {
        println!("SKIPPED: this test needs a file system with direct I/O");
        return Ok(());
    }
    for _ in 0..FORKS {
        file.will_read(0, 4 * MIB as u64);
        file = in_child(file, |file| {
            file.will_read(0, 4 * MIB as u64);
            let mut bytes = vec![0; 4 * MIB];
            file.read_at(0, &mut bytes).unwrap();
            assert!(bytes == [7; 4 * MIB]);
            drop(file);
        });
    }
    Ok(())
}

#[test]
fn files_and_folders_of_the_parent_can_only_be_read_in_a_child_process() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let volume = FileVolume::open(folder.path())?;
    let (one, other) = (volume.open("one", OpenMode::CreateNew)?, volume.open("other", OpenMode::CreateNew)?);
    one.write_at(0, &[7; 8192])?;
    drop(other);
    let locked = volume.lock("other", true)?;
    let before = files(folder.path());
    let (volume, _, locked) = in_child((volume, one, locked), |(volume, one, locked)| {
        assert!(is_refused(one.write_at(0, b"x")) && is_refused(one.trim(0, 4096)) && is_refused(one.resize(0)));
        assert!(is_refused(one.reserve(1 << 20)));
        // The system reports a failed write to the first sync of any process that shares the open file.
        assert!(is_refused(one.sync()) && is_refused(volume.sync()));
        assert!(is_refused(volume.open("new", OpenMode::CreateNew)) && is_refused(volume.create_beside("new", "one")));
        assert!(is_refused(volume.open("one", OpenMode::Write)) && is_refused(volume.lock("one", true)));
        assert!(is_refused(volume.share_permissions("one", "other")) && is_refused(volume.remove("one")));
        assert!(is_refused(volume.rename("one", "new")) && is_refused(volume.replace("one", "other")));
        assert!(is_refused(volume.exchange("one", "other")));
        one.read_at(0, &mut [0; 8192]).unwrap();
        drop(locked);
        drop(volume.lock("one", false).unwrap());
    });
    assert!(files(folder.path()) == before);
    assert!(matches!(volume.lock("other", true), Err(Error::Locked { .. })), "the child has released the lock");
    drop(locked);
    volume.lock("other", true)?;
    Ok(())
}

//! Promise: whichever call of the device fails, no acknowledged commit is lost, also if the handle continues after it.

use super::hostile::{NAME, TABLE, options, put};
use crate::workload::files::bytes_of;
use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::io::{MemoryVolume, OpenMode, Volume};
use duramen::{Database, Durability, Error, Result, TableDef};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, HookedVolume, Hooks, Trigger};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs commits until one fails; gives how many succeeded, and the failure.
fn commit_until_failure(db: &Database, from: u32) -> (u32, Option<Error>) {
    for commit in 0..60 {
        let done = put(db, (from + commit) * 50..(from + commit + 1) * 50).and_then(|()| match commit % 10 {
            9 => db
                .checkpoint()
                .map_err(|error| Error::io("cannot checkpoint", NAME, std::io::Error::other(error.to_string()))),
            _ => Ok(()),
        });
        if let Err(error) = done {
            // A checkpoint comes after its commit.
            return (commit + u32::from(error.to_string().contains("cannot checkpoint")), Some(error));
        }
    }
    (60, None)
}

fn count(db: &Database) -> Result<u32> {
    let tx = db.begin_read()?;
    let table = match tx.open_table(TABLE) {
        Err(Error::NoTable { .. }) => return Ok(0),
        table => table?,
    };
    let keys: Vec<u32> = table.iter().map(|entry| entry.map(|(key, _)| key.value())).collect::<Result<_>>()?;
    assert!(keys.iter().copied().eq(0..keys.len() as u32));
    Ok(keys.len() as u32)
}

#[test]
fn a_failing_device_loses_nothing_that_was_acknowledged() -> Result<()> {
    let mut failures = 0;
    let faults =
        [Fault::FailWrite, Fault::FailLate, Fault::FailSync, Fault::FailRead, Fault::Refuse, Fault::RefuseLate];
    for fault in faults {
        for after in 0..40 {
            let volume = FailingVolume::new(after);
            let db = options().durability(Durability::Commit).create_on(Arc::new(volume.clone()), NAME)?;
            put(&db, 0..50)?;
            volume.inject(fault, Trigger::once().after(after * 3));
            let (commits, failure) = commit_until_failure(&db, 1);
            failures += u32::from(failure.is_some());
            let what = format!("{fault:?} after {after}: {failure:?}");
            let acknowledged = 50 * (commits + 1);
            assert!(count(&db).unwrap_or_else(|error| panic!("{what}: {error}")) >= acknowledged, "{what}");
            drop(db);
            volume.inject(fault, Trigger::never());
            for choice in [CutChoice::KeepAll, CutChoice::DropUnsynced] {
                let state = volume.crash(Cut { event: volume.events(), choice });
                let db = options().open_on(Arc::new(state), NAME).unwrap_or_else(|error| panic!("{what}: {error}"));
                let found = count(&db)?;
                assert!(found == acknowledged || found == acknowledged + 50, "{what}: {found} of {acknowledged}");
            }
        }
    }
    assert!(failures > 40, "{failures}");
    Ok(())
}

/// Failures that need not stop writers: the next try can succeed.
#[test]
fn a_database_that_goes_on_after_a_failed_call_loses_nothing() -> Result<()> {
    let mut gone_on = 0;
    for fault in [Fault::FailWrite, Fault::FailLate, Fault::FailRead, Fault::Refuse, Fault::RefuseLate] {
        for (store, after) in STORES.into_iter().flat_map(|store| (0..40).map(move |after| (store, after))) {
            gone_on += go_on_after(fault, store, after)?;
        }
    }
    assert!(gone_on > 40, "{gone_on}");
    Ok(())
}

/// Commits and takes checkpoints while one call fails. Then cuts the power after the last mark and after every fourth
/// mark before it. Returns 1 if a call has failed and all commits have succeeded.
fn go_on_after(fault: Fault, store: StoreKind, after: u64) -> Result<u32> {
    let what = format!("{store:?}, {fault:?} after {after}");
    let volume = FailingVolume::new(after);
    let db = options().store(store).durability(Durability::Commit).create_on(Arc::new(volume.clone()), NAME)?;
    volume.inject(fault, Trigger::once().after(after * 2));
    let (mut acknowledged, mut failures, mut marks) = (0, 0, Vec::new());
    while acknowledged < 20 {
        match put(&db, acknowledged * 50..(acknowledged + 1) * 50) {
            Ok(()) => acknowledged += 1,
            // A call that is refused has changed nothing, so writing need not stop.
            Err(Error::Poisoned { .. }) if fault != Fault::Refuse => break,
            Err(_) => failures += 1,
        }
        assert!(failures < 3, "{what}");
        marks.push((volume.events(), acknowledged));
        if acknowledged % 4 == 3 {
            failures += u32::from(db.checkpoint().is_err());
        }
    }
    drop(db);
    marks.push((volume.events(), acknowledged));
    for (event, acknowledged) in marks.into_iter().rev().step_by(4) {
        for choice in [CutChoice::KeepAll, CutChoice::DropUnsynced, CutChoice::Random(after)] {
            let state = volume.crash(Cut { event, choice });
            let db = options().open_on(Arc::new(state), NAME).unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = count(&db)?;
            assert!(found == acknowledged * 50 || found == acknowledged * 50 + 50, "{what}: {found}, {acknowledged}");
            assert_eq!(db.verify(|_| ())?.findings, [], "{what}");
        }
    }
    Ok(u32::from(failures > 0 && acknowledged == 20))
}

/// A commit that finds the device full takes checkpoints, and removes spare files of the log.
#[test]
fn a_full_device_with_a_failing_call_loses_nothing() -> Result<()> {
    /// Entries in a commit.
    const PER: u32 = 4000;
    let (mut full, mut failed) = (0, 0);
    for fault in [Fault::Refuse, Fault::RefuseLate] {
        for (store, after) in STORES.into_iter().flat_map(|store| (0..30).step_by(2).map(move |after| (store, after))) {
            let what = format!("{store:?}, {fault:?} after {after}");
            let volume = FailingVolume::new(after);
            let db = options().store(store).durability(Durability::Commit).create_on(Arc::new(volume.clone()), NAME)?;
            volume.inject(fault, Trigger::once().after(after));
            let mut acknowledged = 0;
            for round in 0..30 {
                if round % 3 == 0 {
                    volume.limit_space(Some(if round % 6 == 0 { 16 << 10 } else { 256 << 10 }));
                }
                match put(&db, acknowledged * PER..(acknowledged + 1) * PER) {
                    Ok(()) => acknowledged += 1,
                    Err(Error::Full { .. }) => full += 1,
                    Err(Error::Poisoned { .. }) => break,
                    Err(_) => failed += 1,
                }
            }
            drop(db);
            for choice in [CutChoice::KeepAll, CutChoice::DropUnsynced, CutChoice::Random(after)] {
                let state = volume.crash(Cut { event: volume.events(), choice });
                state.limit_space(None);
                let db = options().open_on(Arc::new(state), NAME).unwrap_or_else(|error| panic!("{what}: {error}"));
                let found = count(&db)?;
                assert!(
                    found == acknowledged * PER || found == acknowledged * PER + PER,
                    "{what}: {found}, {acknowledged}"
                );
                assert_eq!(db.verify(|_| ())?.findings, [], "{what}");
            }
        }
    }
    assert!(full > 100 && failed > 10, "{full} times full, {failed} times another error");
    Ok(())
}

/// Places of the database file that cannot be read.
#[derive(Debug, Default)]
struct BadPlaces(Mutex<Vec<u64>>);

impl Hooks for BadPlaces {
    fn before_read(&self, name: &str, offset: u64, len: usize) -> Result<()> {
        let is_bad = |place: &u64| (offset..offset + len as u64).contains(place);
        match name == NAME && self.0.lock().iter().any(is_bad) {
            true => Err(Error::io("cannot read", NAME, std::io::Error::other("a bad place"))),
            false => Ok(()),
        }
    }
}

/// The places of these bytes in the database file.
fn places_of(volume: &MemoryVolume, wanted: &[u8]) -> Result<Vec<u64>> {
    let bytes = bytes_of(volume, NAME)?;
    Ok((0..).zip(bytes.windows(wanted.len())).filter(|(_, found)| *found == wanted).map(|(at, _)| at).collect())
}

/// The page is a leaf of a dropped table, or a page of one of its large values. It stays in use until it can be read.
#[test]
fn a_page_of_a_dropped_table_that_cannot_be_read_stops_no_writer() -> Result<()> {
    const DROPPED: TableDef<u32, &[u8]> = TableDef::new("dropped");
    const MARK: &[u8] = b"this place cannot be read";
    for (store, keys, len) in STORES.into_iter().flat_map(|store| [(store, 2000, 100), (store, 5, 10_000)]) {
        let what = format!("{store:?}, {len} bytes");
        let (files, bad) = (Arc::new(MemoryVolume::new()), Arc::new(BadPlaces::default()));
        let volume = Arc::new(HookedVolume::new(files.clone(), bad.clone()));
        let db = options().store(store).create_on(volume.clone(), NAME)?;
        put(&db, 0..50)?;
        let tx = db.begin_write()?;
        for key in 0..keys {
            let mut value = vec![7; len];
            if key == keys / 2 {
                value[len / 2..][..MARK.len()].copy_from_slice(MARK);
            }
            tx.open_table(DROPPED)?.put(key, value.as_slice())?;
        }
        tx.commit()?;
        db.close()?;
        let places = places_of(&files, MARK)?;
        assert!(!places.is_empty(), "{what}");
        *bad.0.lock() = places;
        let mut db = options().open_on(volume.clone(), NAME)?;
        let tx = db.begin_write()?;
        assert!(tx.drop_table("dropped")?);
        tx.commit()?;
        for round in 1..4 {
            while db.maintain()? {}
            assert_eq!(db.stats().detached, 0, "{what}");
            put(&db, round * 50..(round + 1) * 50)?;
            db.close()?;
            db = options().open_on(volume.clone(), NAME)?;
            assert_eq!(count(&db)?, (round + 1) * 50, "{what}");
        }
        bad.0.lock().clear();
        while db.maintain()? {}
        assert_eq!(db.verify(|_| ())?.findings, [], "{what}");
        db.close()?;
        let stats = options().open_on(volume, NAME)?.stats();
        assert_eq!(stats.detached, 0, "{what}");
    }
    Ok(())
}

/// The block of 4 KiB at `at` of the database file cannot be written.
#[derive(Debug)]
struct BadBlock {
    at: u64,
    hits: AtomicU32,
}

impl Hooks for BadBlock {
    fn before_write(&self, name: &str, offset: u64, len: usize) -> Result<()> {
        if name != NAME || offset >= self.at + 4096 || offset + len as u64 <= self.at {
            return Ok(());
        }
        self.hits.fetch_add(1, Ordering::Relaxed);
        Err(Error::io("cannot write", NAME, std::io::Error::other("a bad block")))
    }
}

/// Opens a killed database, commits, takes a checkpoint and closes, while one block of the file cannot be written.
/// Returns how many writes have failed.
fn use_with_bad_block(killed: &FailingVolume, at: u64) -> Result<u32> {
    let hooks = Arc::new(BadBlock { at, hits: AtomicU32::new(0) });
    let volume: Arc<dyn Volume> = Arc::new(HookedVolume::new(Arc::new(killed.clone()), hooks.clone()));
    let db = options().open_on(volume.clone(), NAME)?;
    assert_eq!(count(&db)?, 1500);
    put(&db, 1000..2000)?;
    db.checkpoint()?;
    put(&db, 0..500)?;
    db.close()?;
    let db = options().open_on(volume, NAME)?;
    assert_eq!(count(&db)?, 2000);
    assert_eq!(db.verify(|_| ())?.findings, [], "byte {at}");
    db.close()?;
    Ok(hooks.hits.load(Ordering::Relaxed))
}

#[test]
fn a_block_that_cannot_be_written_stops_neither_an_opening_nor_a_checkpoint_nor_a_close() -> Result<()> {
    let volume = FailingVolume::new(1);
    let db = options().create_on(Arc::new(volume.clone()), NAME)?;
    put(&db, 0..1000)?;
    db.checkpoint()?;
    put(&db, 500..1500)?;
    let end = volume.open(NAME, OpenMode::Read)?.size()?.min(512 << 10);
    let killed = Cut { event: volume.events(), choice: CutChoice::KeepAll };
    let mut hit = 0;
    // The superblocks are before that.
    for at in (8192..end).step_by(4096) {
        let hits = use_with_bad_block(&volume.crash(killed), at).unwrap_or_else(|error| panic!("byte {at}: {error}"));
        hit += u32::from(hits > 0);
    }
    assert!(hit > 8, "{hit}");
    Ok(())
}

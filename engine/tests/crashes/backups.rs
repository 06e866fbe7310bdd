//! Promise: a copy of a closed database that replaces the file beside a newer log never gets the commits of that log,
//! and an error says so. A damaged superblock of the file looks similar: then the log counts, also if a recovery is
//! cut.

use crate::workload::stores::STORES;
use duramen::db::{Damage, StoreKind};
use duramen::io::{MemoryVolume, OpenMode, Volume};
use duramen::{Builder, Database, Durability, Error, Result, TableDef, TableOptions};
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::sync::Arc;

const NAME: &str = "t.duramen";
const LOG: &str = "t.duramen-log";
const TABLE: TableDef<u32, &[u8]> = TableDef::new("t");
const KEYS: u32 = 300;

fn options() -> Builder {
    Database::builder().page_size(4096).cache(0).checkpoint_bytes(1 << 40).background(false)
}

fn put(db: &Database, keys: std::ops::Range<u32>, value: u8) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Commit);
    let mut table = tx.open_table(TABLE)?;
    keys.into_iter().try_for_each(|key| table.put(key, [value; 100].as_slice()))?;
    drop(table);
    tx.commit()
}

/// Writes pages that bypass the log.
fn load(db: &Database) -> Result<()> {
    let tx = db.begin_write()?;
    let mut table = tx.bulk_load("loaded", "u32", "bytes", TableOptions::default(), 1.0)?;
    (0..KEYS).try_for_each(|key| table.push(&key.to_be_bytes(), &[3; 500]))?;
    table.finish()?;
    tx.commit()
}

fn copy(from: &MemoryVolume, to: &MemoryVolume, prefix: &str) -> Result<()> {
    for name in from.list(prefix)? {
        let file = from.open(&name, OpenMode::Read)?;
        let mut bytes = vec![0; usize::try_from(file.size()?).unwrap()];
        file.read_at(0, &mut bytes)?;
        to.open(&name, OpenMode::CreateNew)?.write_at(0, &bytes)?;
    }
    Ok(())
}

/// Fails unless all keys have that value.
fn check(db: &Database, value: u8) -> Result<()> {
    let table = db.begin_read()?.open_table(TABLE)?;
    assert_eq!(table.len(), u64::from(KEYS));
    table.iter().try_for_each(|entry| {
        assert_eq!(entry?.1.value(), [value; 100]);
        Ok(())
    })
}

fn restore_beside_a_newer_log(store: StoreKind, loads: bool) -> Result<()> {
    let (volume, restored) = (Arc::new(MemoryVolume::new()), Arc::new(MemoryVolume::new()));
    let db = options().store(store).create_on(volume.clone(), NAME)?;
    put(&db, 0..KEYS, 1)?;
    db.close()?;
    copy(&volume, &restored, NAME)?;
    let db = options().open_on(volume.clone(), NAME)?;
    put(&db, 0..KEYS, 2)?;
    if loads {
        load(&db)?;
    }
    // The process is killed.
    copy(&volume, &restored, LOG)?;
    let refused = |opened: Result<Database>| match opened {
        Err(Error::CorruptLog { what, .. }) => assert!(what.contains("earlier copy"), "{what}"),
        other => panic!("{store}: {other:?}"),
    };
    refused(options().open_on(restored.clone(), NAME));
    refused(options().open_read_only_on(restored.clone(), NAME));
    let (db, damage) = options().open_damaged_on(restored.clone(), NAME)?;
    assert!(damage.iter().any(|damage| matches!(damage, Damage::Log { .. })), "{damage:?}");
    check(&db, 1)?;
    drop(db);
    restored.list(LOG)?.iter().try_for_each(|name| restored.remove(name))?;
    let db = options().open_on(restored, NAME)?;
    check(&db, 1)?;
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

#[test]
fn a_restored_copy_does_not_get_the_commits_of_the_log_beside_it() -> Result<()> {
    for store in STORES {
        restore_beside_a_newer_log(store, false)?;
        restore_beside_a_newer_log(store, true)?;
    }
    Ok(())
}

/// The recovery makes both superblocks sound before the newer one says that the log is needed.
#[test]
fn a_cut_recovery_after_a_damaged_superblock_is_not_taken_for_a_restored_copy() -> Result<()> {
    for (store, damaged) in STORES.into_iter().flat_map(|store| [(store, 0), (store, 1)]) {
        let volume = FailingVolume::new(1);
        let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
        put(&db, 0..KEYS, 1)?;
        db.close()?;
        let db = options().open_on(Arc::new(volume.clone()), NAME)?;
        put(&db, 0..KEYS, 2)?;
        let killed = volume.crash(Cut { event: volume.events(), choice: CutChoice::KeepAll });
        killed.flip_bits(NAME, damaged * 4096 + 100, 0xa5)?;
        let before = killed.events();
        drop(options().open_on(Arc::new(killed.clone()), NAME)?);
        for event in before..=killed.events() {
            for choice in [CutChoice::KeepAll, CutChoice::DropUnsynced] {
                let again = killed.crash(Cut { event, choice });
                let what = format!("{store}, superblock {damaged}, {choice:?} after {event}");
                let db = options().open_on(Arc::new(again), NAME).unwrap_or_else(|error| panic!("{what}: {error}"));
                check(&db, 2)?;
                assert_eq!(db.verify(|_| ())?.findings, [], "{what}");
            }
        }
    }
    Ok(())
}

/// A program that copies a file need not sync it.
#[test]
fn a_copy_that_was_not_synced_keeps_its_commits() -> Result<()> {
    for store in STORES {
        let closed = Arc::new(MemoryVolume::new());
        let db = options().store(store).create_on(closed.clone(), NAME)?;
        put(&db, 0..KEYS, 1)?;
        db.close()?;
        let volume = FailingVolume::new(1);
        let file = closed.open(NAME, OpenMode::Read)?;
        let mut bytes = vec![0; usize::try_from(file.size()?).unwrap()];
        file.read_at(0, &mut bytes)?;
        volume.open(NAME, OpenMode::CreateNew)?.write_at(0, &bytes)?;
        let db = options().open_on(Arc::new(volume.clone()), NAME)?;
        put(&db, 0..KEYS, 2)?;
        let cut = Cut { event: volume.events(), choice: CutChoice::DropUnsynced };
        check(&options().open_on(Arc::new(volume.crash(cut)), NAME)?, 2)?;
    }
    Ok(())
}

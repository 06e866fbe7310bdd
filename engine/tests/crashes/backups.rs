//! Promise: if a copy of a closed database replaces the file and a newer log stays in the folder, opening returns an
//! error. The commits of that log are never applied to the copy. A database with a damaged superblock looks similar,
//! but there the log is applied, also if the power fails during the recovery.

use crate::one_table::{NAME, TABLE, options, put};
use crate::workload::files::copy;
use crate::workload::stores::STORES;
use duramen::db::{Damage, StoreKind};
use duramen::io::{MemoryVolume, Volume};
use duramen::{Database, Error, Result, TableOptions};
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::sync::Arc;

const LOG: &str = "t.duramen-log";
const KEYS: u32 = 300;

/// Writes pages that bypass the log.
fn load(db: &Database) -> Result<()> {
    let tx = db.begin_write()?;
    let mut table = tx.bulk_load("loaded", "u32", "bytes", TableOptions::default(), 1.0)?;
    (0..KEYS).try_for_each(|key| table.push(&key.to_be_bytes(), &[3; 500]))?;
    table.finish()?;
    tx.commit()
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
    put(&db, 0..KEYS, &[1; 100])?;
    db.close()?;
    copy(&*volume, &*restored, NAME)?;
    let db = options().open_on(volume.clone(), NAME)?;
    put(&db, 0..KEYS, &[2; 100])?;
    if loads {
        load(&db)?;
    }
    // The process is killed.
    copy(&*volume, &*restored, LOG)?;
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
        put(&db, 0..KEYS, &[1; 100])?;
        db.close()?;
        let db = options().open_on(Arc::new(volume.clone()), NAME)?;
        put(&db, 0..KEYS, &[2; 100])?;
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
        put(&db, 0..KEYS, &[1; 100])?;
        db.close()?;
        let volume = FailingVolume::new(1);
        copy(&*closed, &volume, NAME)?;
        let db = options().open_on(Arc::new(volume.clone()), NAME)?;
        put(&db, 0..KEYS, &[2; 100])?;
        let cut = Cut { event: volume.events(), choice: CutChoice::DropUnsynced };
        check(&options().open_on(Arc::new(volume.crash(cut)), NAME)?, 2)?;
    }
    Ok(())
}

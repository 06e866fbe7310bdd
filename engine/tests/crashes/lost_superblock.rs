//! Promise: after a checkpoint either superblock is enough. If the device has lost the write of one and the other is
//! damaged later, the database reports that it is damaged.

use crate::one_table::{NAME, TABLE, options};
use crate::workload::files::{self, bytes_of};
use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::io::{MemoryVolume, OpenMode, Volume};
use duramen::{Database, Durability, Error, Result, TableDef};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, HookedVolume, Hooks, Trigger};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const OTHER: TableDef<u32, &[u8]> = TableDef::new("other");
const KEYS: u32 = 1500;
const SUPERBLOCK: u64 = 4096;

fn change(
    db: &Database,
    table: TableDef<u32, &'static [u8]>,
    keys: std::ops::Range<u32>,
    value: Option<u8>,
) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Commit);
    let mut open = tx.open_table(table)?;
    for key in keys {
        match value {
            Some(value) => open.put(key, &[value; 100][..])?,
            None => drop(open.remove(key)?),
        }
    }
    drop(open);
    tx.commit()
}

/// Copies the files whose names begin with `prefix` and that `to` does not have.
fn copy(from: &MemoryVolume, to: &MemoryVolume, prefix: &str) -> Result<()> {
    for name in from.list(prefix)? {
        let bytes = bytes_of(from, &name)?;
        if let Ok(copy) = to.open(&name, OpenMode::CreateNew) {
            copy.write_at(0, &bytes)?;
        }
    }
    Ok(())
}

/// Fills, empties and fills again, so that pages are freed and used again, with `checkpoints` checkpoints between.
/// Returns the files of a killed process with the whole log, and a superblock of the checkpoint before the last one.
fn work(store: StoreKind, checkpoints: usize) -> Result<(MemoryVolume, [u8; SUPERBLOCK as usize])> {
    let (volume, old_log) = (Arc::new(MemoryVolume::new()), MemoryVolume::new());
    let mut older = [0; SUPERBLOCK as usize];
    let db = options().store(store).create_on(volume.clone(), NAME)?;
    change(&db, TABLE, 0..KEYS, Some(1))?;
    db.checkpoint()?;
    change(&db, TABLE, 0..KEYS, None)?;
    for number in 0..checkpoints {
        // Each checkpoint has something to write.
        change(&db, OTHER, 0..1, Some(number as u8))?;
        copy(&volume, &old_log, &format!("{NAME}-log"))?;
        volume.open(NAME, OpenMode::Read)?.read_at(0, &mut older)?;
        db.checkpoint()?;
        while db.maintain()? {}
    }
    change(&db, OTHER, 0..KEYS, Some(9))?;
    let killed = MemoryVolume::new();
    copy(&volume, &killed, NAME)?;
    copy(&old_log, &killed, NAME)?;
    Ok((killed, older))
}

fn count(db: &Database, table: TableDef<u32, &'static [u8]>, value: u8) -> Result<usize> {
    let tx = db.begin_read()?;
    let table = tx.open_table(table)?;
    table.iter().try_fold(0, |count, entry| {
        assert_eq!(entry?.1.value(), [value; 100]);
        Ok(count + 1)
    })
}

#[test]
fn an_older_superblock_whose_log_was_removed_is_an_error() -> Result<()> {
    for (store, checkpoints) in STORES.into_iter().flat_map(|store| (1..4).map(move |count| (store, count))) {
        for damaged in 0..2 {
            let (volume, older) = work(store, checkpoints)?;
            let file = volume.open(NAME, OpenMode::Write)?;
            file.write_at((1 - damaged) * SUPERBLOCK, &older)?;
            file.write_at(damaged * SUPERBLOCK + 100, &[0xa5; 8])?;
            drop(file);
            let what = format!("{store:?}, {checkpoints} checkpoints, superblock {damaged}");
            let all = || -> Result<_> {
                let db = options().open_on(Arc::new(volume), NAME)?;
                Ok((db.verify(|_| ())?.findings, count(&db, TABLE, 1)?, count(&db, OTHER, 9)?))
            };
            match all() {
                Err(Error::Corrupt { .. } | Error::CorruptLog { .. } | Error::MissingLog { .. }) => {}
                other => panic!("{what}: {other:?}"),
            }
        }
    }
    Ok(())
}

/// Each checkpoint removes log, and frees places or slots.
#[test]
fn after_a_checkpoint_that_removes_log_either_superblock_is_enough() -> Result<()> {
    for (store, damaged) in STORES.into_iter().flat_map(|store| [(store, 0), (store, 1)]) {
        let volume = FailingVolume::new(1);
        let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
        for value in 2..5 {
            change(&db, TABLE, 0..KEYS, Some(value))?;
            db.checkpoint()?;
        }
        change(&db, OTHER, 0..KEYS, Some(9))?;
        let after = volume.crash(Cut { event: volume.events(), choice: CutChoice::DropUnsynced });
        after.flip_bits(NAME, damaged * SUPERBLOCK + 100, 0xa5)?;
        let db = options().open_on(Arc::new(after), NAME)?;
        assert_eq!(db.verify(|_| ())?.findings, [], "{store}, superblock {damaged}");
        let found = (count(&db, TABLE, 4)?, count(&db, OTHER, 9)?);
        assert_eq!(found, (KEYS as usize, KEYS as usize), "{store}, superblock {damaged}");
    }
    Ok(())
}

/// A checkpoint of the places frees places that the superblock before it refers to.
#[test]
fn after_a_checkpoint_of_the_places_either_superblock_is_enough() -> Result<()> {
    for damaged in 0..2 {
        let volume = Arc::new(MemoryVolume::new());
        let db = options().superseded_bytes(64 << 10).create_on(volume.clone(), NAME)?;
        // Several times as many as the cache has room for.
        let keys = 8 * KEYS;
        change(&db, TABLE, 0..keys, Some(1))?;
        db.checkpoint()?;
        let (mut value, mut freed) = (1, 0);
        while freed < 3 {
            value += 1;
            for first in (0..keys).step_by(100) {
                change(&db, TABLE, first..first + 100, Some(value))?;
                let (before, log) = (db.stats().free_bytes, db.stats().log_bytes);
                while db.maintain()? {}
                freed += u64::from(db.stats().free_bytes > before && db.stats().log_bytes == log);
            }
        }
        // The freed places are used.
        change(&db, OTHER, 0..KEYS, Some(9))?;
        let killed = MemoryVolume::new();
        copy(&volume, &killed, NAME)?;
        killed.open(NAME, OpenMode::Write)?.write_at(damaged * SUPERBLOCK + 100, &[0xa5; 8])?;
        let db = options().open_on(Arc::new(killed), NAME)?;
        assert_eq!(db.verify(|_| ())?.findings, [], "superblock {damaged}");
        assert_eq!((count(&db, TABLE, value)?, count(&db, OTHER, 9)?), (keys as usize, KEYS as usize));
    }
    Ok(())
}

/// While no log segment can be begun, a checkpoint frees places and the log stays. A recovery begins at this checkpoint
/// with either superblock.
#[test]
fn after_a_checkpoint_that_cannot_begin_a_segment_either_superblock_is_enough() -> Result<()> {
    let mut recoveries = Vec::new();
    for damaged in 0..2 {
        let volume = FailingVolume::new(1);
        let db = options().create_on(Arc::new(volume.clone()), NAME)?;
        volume.inject(Fault::Refuse, Trigger::always().on("t.duramen-log.000002"));
        for value in 2..5 {
            change(&db, TABLE, 0..KEYS, Some(value))?;
            db.checkpoint()?;
        }
        change(&db, OTHER, 0..KEYS, Some(9))?;
        assert!(volume.struck(Fault::Refuse) > 0);
        let after = volume.crash(Cut { event: volume.events(), choice: CutChoice::DropUnsynced });
        after.flip_bits(NAME, damaged * SUPERBLOCK + 100, 0xa5)?;
        let db = options().open_on(Arc::new(after), NAME)?;
        assert_eq!(db.verify(|_| ())?.findings, [], "superblock {damaged}");
        assert_eq!((count(&db, TABLE, 4)?, count(&db, OTHER, 9)?), (KEYS as usize, KEYS as usize));
        recoveries.push(db.stats().recovery.unwrap().log_bytes);
    }
    assert!(recoveries[0] == recoveries[1] && recoveries[0] > 100_000, "{recoveries:?}");
    Ok(())
}

/// Counts the writes of superblocks down. The write that brings the counter to zero fails; all other writes succeed.
#[derive(Debug, Default)]
struct FailedWrite(AtomicUsize);

impl Hooks for FailedWrite {
    fn before_write(&self, name: &str, offset: u64, _len: usize) -> Result<()> {
        let is_superblock = name == NAME && offset < 2 * SUPERBLOCK;
        match self.0.load(Ordering::Acquire) {
            left @ 1.. if is_superblock => {
                self.0.store(left - 1, Ordering::Release);
                if left == 1 { Err(Error::Full { path: NAME.into() }) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }
}

/// The files of a killed process whose last checkpoint could write only one of its two superblocks, and the log after
/// it. All keys of [`TABLE`] have the value 6.
fn with_an_older_superblock(store: StoreKind, keys: u32) -> Result<MemoryVolume> {
    let (volume, failed) = (Arc::new(MemoryVolume::new()), Arc::new(FailedWrite::default()));
    let hooked = Arc::new(HookedVolume::new(volume.clone(), failed.clone()));
    let db = options().store(store).superseded_bytes(64 << 10).create_on(hooked, NAME)?;
    change(&db, TABLE, 0..keys, Some(1))?;
    db.checkpoint()?;
    for value in 2..7 {
        if value == 5 {
            failed.0.store(2, Ordering::Release);
            // Only the store with places takes checkpoints of them.
            assert!(store == StoreKind::Table || db.checkpoint().is_err());
        }
        for first in (0..keys).step_by(100) {
            change(&db, TABLE, first..first + 100, Some(value))?;
            // No checkpoint comes after the one that fails.
            while (value < 5 || failed.0.load(Ordering::Acquire) > 0) && matches!(db.maintain(), Ok(true)) {}
        }
    }
    assert_eq!(failed.0.load(Ordering::Acquire), 0, "a write has failed");
    let killed = MemoryVolume::new();
    copy(&volume, &killed, NAME)?;
    Ok(killed)
}

/// If the second of the two writes fails, the older superblock stays valid. So its places are not used again.
#[test]
fn a_checkpoint_that_writes_one_of_two_superblocks_frees_no_places() -> Result<()> {
    // Several times as many as the cache has room for.
    let keys = 8 * KEYS;
    for (store, damaged) in STORES.into_iter().flat_map(|store| [(store, 0), (store, 1)]) {
        let killed = with_an_older_superblock(store, keys)?;
        killed.open(NAME, OpenMode::Write)?.write_at(damaged * SUPERBLOCK + 100, &[0xa5; 8])?;
        let db = options().open_on(Arc::new(killed), NAME)?;
        assert_eq!(db.verify(|_| ())?.findings, [], "{store}, superblock {damaged}");
        assert_eq!(count(&db, TABLE, 6)?, keys as usize, "{store}, superblock {damaged}");
    }
    Ok(())
}

/// A recovery does not know the places that the older superblock refers to. So it writes the newer one to both slots
/// before it uses a place.
#[test]
fn a_recovery_beside_an_older_superblock_uses_none_of_its_places() -> Result<()> {
    let keys = 4 * KEYS;
    let killed = with_an_older_superblock(StoreKind::Table, keys)?;
    let volume = FailingVolume::new(1);
    files::copy(&killed, &volume, NAME)?;
    volume.list(NAME)?.iter().try_for_each(|name| volume.open(name, OpenMode::Write)?.sync())?;
    volume.sync()?;
    let before = volume.events();
    drop(options().open_on(Arc::new(volume.clone()), NAME)?);
    let events = volume.events() - before;
    for (part, damaged) in (0..12).flat_map(|part| [(part, 0), (part, 1)]) {
        let cut = Cut { event: before + events * part / 12, choice: CutChoice::KeepAll };
        let after = volume.crash(cut);
        after.flip_bits(NAME, damaged * SUPERBLOCK + 100, 0xa5)?;
        let db = options().open_on(Arc::new(after), NAME)?;
        assert_eq!(db.verify(|_| ())?.findings, [], "superblock {damaged}, {cut:?}");
        assert_eq!(count(&db, TABLE, 6)?, keys as usize, "superblock {damaged}, {cut:?}");
    }
    Ok(())
}

//! Promise: if one read of the device returns wrong bytes, and later ones the right bytes, then no commit is lost.

use crate::one_table::{NAME, TABLE, options, put};
use crate::workload::stores::STORES;
use duramen::io::{OpenMode, Volume};
use duramen::{Database, Durability, Error, Result, TableDef};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, HookedVolume, Hooks, Trigger};
use std::sync::Arc;

const KEYS: u32 = 600;
/// The last keys. Each gets a small commit at the end, so that the log ends with several batches.
const SMALL: u32 = 20;

/// Opens a killed database once for each read of the files that `trigger` selects. In each opening that read returns
/// wrong bytes. Then opens the database without a fault and asserts that it has all entries. Returns how many of the
/// openings with a fault failed, and how many succeeded.
fn spoil_each_read(
    volume: &FailingVolume,
    fault: Fault,
    trigger: impl Fn() -> Trigger,
    what: &str,
) -> Result<(u32, u32)> {
    let killed = Cut { event: volume.events(), choice: CutChoice::KeepAll };
    let (mut refused, mut opened) = (0, 0);
    for calls in 0.. {
        let next = volume.crash(killed);
        let open = || options().open_on(Arc::new(next.clone()), NAME);
        next.inject(fault, trigger().after(calls));
        match open().and_then(Database::close) {
            Ok(()) => opened += 1,
            Err(_) => refused += 1,
        }
        let struck = next.struck(fault) > 0;
        next.inject(fault, Trigger::never());
        let db = open()?;
        assert_eq!(db.verify(|_| ())?.findings, [], "{what}, read {calls}");
        let table = db.begin_read()?.open_table(TABLE)?;
        assert_eq!(table.len(), u64::from(KEYS));
        for entry in table.range(..) {
            let (key, value) = entry?;
            let key = key.value();
            assert_eq!(value.value(), [2; 200], "{what}, key {key}: its commit is lost after read {calls}");
        }
        if !struck {
            break;
        }
    }
    Ok((refused, opened))
}

#[test]
fn a_read_that_returns_wrong_bytes_once_loses_no_commit() -> Result<()> {
    for store in STORES {
        let volume = FailingVolume::new(1);
        let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
        put(&db, 0..KEYS, &[1; 200])?;
        db.checkpoint()?;
        put(&db, 0..KEYS - SMALL, &[2; 200])?;
        (KEYS - SMALL..KEYS).try_for_each(|key| put(&db, key..key + 1, &[2; 200]))?;
        for fault in [Fault::SpoilFront, Fault::SpoilBack] {
            let in_file = || Trigger::once().on_file(NAME);
            let what = format!("{store}, {fault:?}, the database");
            let (refused, opened) = spoil_each_read(&volume, fault, in_file, &what)?;
            assert!(refused + opened > 20, "{what}: {refused} openings were refused, and {opened} were not");
            let in_log = || Trigger::once().on(format!("{NAME}-log"));
            let what = format!("{store}, {fault:?}, the log");
            let (refused, opened) = spoil_each_read(&volume, fault, in_log, &what)?;
            assert!(opened > 4, "{what}: {refused} openings were refused, and {opened} were not");
        }
    }
    Ok(())
}

/// A folder in which trims are as slow as in a file system.
fn slow_trims(volume: &FailingVolume) -> Arc<dyn Volume> {
    #[derive(Debug)]
    struct NoHooks;
    impl Hooks for NoHooks {}
    Arc::new(HookedVolume::new(Arc::new(volume.clone()), Arc::new(NoHooks)))
}

/// A part of the file cannot be read during a recovery, and can be read again later. Until then the log is gone: what
/// the recovery could not change must not be read in its old state.
#[test]
fn a_page_that_recovery_could_not_read_gives_an_error_later_and_no_old_entry() -> Result<()> {
    for store in STORES {
        let volume = FailingVolume::new(1);
        let db = options().store(store).create_on(slow_trims(&volume), NAME)?;
        put(&db, 0..KEYS, &[1; 200])?;
        db.checkpoint()?;
        put(&db, 0..KEYS, &[2; 200])?;
        let len = volume.open(NAME, OpenMode::Read)?.size()?;
        let killed = Cut { event: volume.events(), choice: CutChoice::KeepAll };
        let (mut lost, mut whole) = (0, 0);
        for (at, kill) in (8192..len).step_by(6144).flat_map(|at| [(at + 100, false), (at + 100, true)]) {
            let mut device = volume.crash(killed);
            device.flip_bits(NAME, at, 0xa5)?;
            if let Ok(db) = options().open_on(slow_trims(&device), NAME) {
                if kill {
                    device = device.crash(Cut { event: device.events(), choice: CutChoice::KeepAll });
                } else {
                    // It fails if an allocation map is damaged. The log stays then.
                    drop(db.close());
                }
            }
            device.flip_bits(NAME, at, 0xa5)?;
            let read = || -> Result<()> {
                let db = options().open_on(slow_trims(&device), NAME)?;
                let table = db.begin_read()?.open_table(TABLE)?;
                for key in 0..KEYS {
                    let found = table.get(key)?.map(|value| value.value().to_vec());
                    assert_eq!(found, Some(vec![2; 200]), "{store}, key {key}, byte {at}, killed: {kill}");
                }
                Ok(())
            };
            match read() {
                Ok(()) => whole += 1,
                Err(Error::Corrupt { .. } | Error::CorruptMeta { .. }) => lost += 1,
                Err(other) => return Err(other),
            }
        }
        assert!(lost > 0 && whole > 0, "{store}: {lost} lost a page, {whole} did not");
    }
    Ok(())
}

/// The pages of the dropped table are in two allocation maps, and neither map is in the cache. The values of table
/// `next` take the ids of its pages.
#[test]
fn a_wrong_read_while_pages_are_freed_loses_no_commit() -> Result<()> {
    const VALUE: usize = 100_000;
    let volume = FailingVolume::new(1);
    let db = options().create_on(Arc::new(volume.clone()), NAME)?;
    let fill = |db: &Database, table: TableDef<u32, &[u8]>, keys: std::ops::Range<u32>, len: usize| -> Result<()> {
        let mut tx = db.begin_write()?;
        tx.set_durability(Durability::Commit);
        let mut open = tx.open_table(table)?;
        keys.into_iter().try_for_each(|key| open.put(key, &*vec![key as u8; len]))?;
        drop(open);
        tx.commit()
    };
    let [dropped, next] = ["dropped", "next"].map(TableDef::new);
    fill(&db, dropped, 0..1, 10)?;
    // Only its values take ids later, so each run has the pages of a run before.
    fill(&db, next, 9..10, 10)?;
    // More than the pages of a map.
    fill(&db, TableDef::new("large"), 0..1, 70 << 20)?;
    fill(&db, dropped, 1..4, VALUE)?;
    fill(&db, TABLE, 0..KEYS, 1000)?;
    db.close()?;
    let closed = Cut { event: volume.events(), choice: CutChoice::KeepAll };
    for calls in 0.. {
        let volume = volume.crash(closed);
        let open = || options().open_on(Arc::new(volume.clone()), NAME);
        let db = open()?;
        let mut tx = db.begin_write()?;
        tx.set_durability(Durability::Commit);
        tx.drop_table("dropped")?;
        tx.commit()?;
        assert_eq!(db.begin_read()?.open_table(TABLE)?.range(..).count(), KEYS as usize);
        volume.inject(Fault::SpoilFront, Trigger::once().after(calls).on_file(NAME));
        while matches!(db.maintain(), Ok(true)) {}
        let struck = volume.struck(Fault::SpoilFront) > 0;
        volume.inject(Fault::SpoilFront, Trigger::never());
        let written = fill(&db, next, 0..3, VALUE);
        let closed = db.close();
        assert_eq!(written.is_ok(), closed.is_ok(), "read {calls}");
        let db = open()?;
        while db.maintain()? {}
        assert_eq!(db.verify(|_| ())?.findings, [], "read {calls}");
        if written.is_ok() {
            let table = db.begin_read()?.open_table(next)?;
            for key in 0..3u32 {
                let value = table.get(key)?;
                assert!(value.is_some_and(|value| value.value() == vec![key as u8; VALUE]), "key {key}, read {calls}");
            }
        }
        if !struck {
            break;
        }
    }
    Ok(())
}

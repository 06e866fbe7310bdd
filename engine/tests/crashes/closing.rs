//! Promise: closing a database leaves one dense file with all entries, or returns an error. After an error the log
//! stays, and nothing is lost.

use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::{Database, Durability, Error, Result, TableDef};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, Trigger};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

const TABLE: TableDef<u64, &str> = TableDef::new("t");
const NAME: &str = "t.duramen";

fn options() -> duramen::Builder {
    Database::builder().page_size(4096).cache(1 << 20).checkpoint_bytes(1 << 20).background(false)
}

/// Commits in random order, so that pages are written again and again.
fn fill(db: &Database, commits: u64) -> Result<()> {
    for commit in 0..commits {
        let mut tx = db.begin_write()?;
        tx.set_durability(Durability::None);
        let mut table = tx.open_table(TABLE)?;
        for n in 0..500u64 {
            table.put((commit * 500 + n).wrapping_mul(0x9E37_79B9_7F4A_7C15), "a value of some length")?;
        }
        drop(table);
        tx.commit()?;
        while db.maintain()? {}
    }
    Ok(())
}

fn entries(db: &Database) -> Result<u64> {
    let tx = db.begin_read()?;
    let table = tx.open_table(TABLE)?;
    assert_eq!(table.iter().count() as u64, table.len());
    Ok(table.len())
}

/// Bytes that the file takes on the device.
fn allocated(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks() * 512
}

#[test]
fn a_closed_file_has_little_free_space_and_no_log() -> Result<()> {
    STORES.into_iter().try_for_each(close)
}

fn close(store: StoreKind) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let db = options().store(store).create(&path)?;
    fill(&db, 120)?;
    let (open, on_device) = (db.stats(), allocated(&path));
    db.close()?;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let db = options().open(&path)?;
    let closed = db.stats();
    assert!(on_device > allocated(&path), "{on_device} bytes on the device, then {}", allocated(&path));
    let deltas = if store == StoreKind::Shadow { closed.pages * 2 * 4096 } else { 0 };
    let dense = closed.live_bytes + closed.live_bytes / 16 + deltas + (256 << 10);
    assert!(allocated(&path) <= dense + (64 << 10), "{store:?}: {} bytes: {closed:?}", allocated(&path));
    if store == StoreKind::Table {
        assert!(open.file_bytes > closed.file_bytes, "{open:?}, then {closed:?}");
        assert!(closed.file_bytes <= dense + (64 << 10), "{closed:?}");
    }
    assert_eq!(entries(&db)?, 60_000);
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

#[test]
fn a_close_that_fails_says_so_and_loses_nothing() -> Result<()> {
    let faults = [Fault::FailWrite, Fault::FailLate, Fault::FailSync, Fault::Refuse, Fault::RefuseLate];
    STORES.into_iter().flat_map(|store| faults.map(|fault| (store, fault))).try_for_each(fail_to_close)
}

fn fail_to_close((store, fault): (StoreKind, Fault)) -> Result<()> {
    let mut failures = 0;
    // The first sync is that of the log. It makes the commits durable.
    for after in (1..30).step_by(3) {
        let volume = FailingVolume::new(after);
        let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
        fill(&db, 30)?;
        volume.inject(fault, Trigger::once().after(after));
        let closed = db.close();
        failures += u32::from(closed.is_err());
        volume.inject(fault, Trigger::never());
        let choice = if closed.is_ok() { CutChoice::DropUnsynced } else { CutChoice::KeepAll };
        let state = volume.crash(Cut { event: volume.events(), choice });
        let db = options().open_on(Arc::new(state), NAME)?;
        assert_eq!(entries(&db)?, 15_000, "{store:?}, {fault:?} after {after}: {closed:?}");
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    assert!(failures > 0, "{store:?}, {fault:?}: {failures}");
    Ok(())
}

#[test]
fn a_close_does_not_affect_other_handles() -> Result<()> {
    let volume = FailingVolume::new(0);
    let db = options().create_on(Arc::new(volume.clone()), NAME)?;
    fill(&db, 1)?;
    let tx = db.begin_read()?;
    let clone = db.clone();
    db.close()?;
    clone.close()?;
    assert_eq!(tx.open_table(TABLE)?.len(), 500);
    assert!(matches!(options().open_on(Arc::new(volume.clone()), NAME), Err(Error::Locked { .. })));
    drop(tx);
    assert_eq!(entries(&options().open_on(Arc::new(volume), NAME)?)?, 500);
    Ok(())
}

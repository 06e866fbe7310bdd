//! Promise: closing leaves one dense file with everything in it, or says why not; then the log stays and nothing is lost.

use duramen::{Database, Durability, Error, Result, TableDef};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, Trigger};
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

#[test]
fn a_closed_file_has_few_gaps_and_no_log() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let db = options().create(&path)?;
    fill(&db, 120)?;
    let open = db.stats();
    db.close()?;
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let db = options().open(&path)?;
    let closed = db.stats();
    assert!(open.file_bytes > closed.file_bytes, "{open:?}, then {closed:?}");
    let dense = closed.live_bytes + closed.live_bytes / 16 + (256 << 10);
    assert!(closed.file_bytes <= dense + (64 << 10), "{closed:?}");
    assert_eq!(entries(&db)?, 60_000);
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

#[test]
fn a_close_that_fails_says_so_and_loses_nothing() -> Result<()> {
    let mut failures = 0;
    for after in 0..30 {
        let volume = FailingVolume::new(after);
        let db = options().create_on(Arc::new(volume.clone()), NAME)?;
        fill(&db, 30)?;
        volume.inject(if after % 2 == 0 { Fault::FailWrite } else { Fault::FailSync }, Trigger::once().after(after));
        let closed = db.close();
        failures += u32::from(closed.is_err());
        volume.inject(Fault::FailWrite, Trigger::never());
        volume.inject(Fault::FailSync, Trigger::never());
        let choice = if closed.is_ok() { CutChoice::DropUnsynced } else { CutChoice::KeepAll };
        let state = volume.crash(Cut { event: volume.events(), choice });
        let db = options().open_on(Arc::new(state), NAME)?;
        assert_eq!(entries(&db)?, 15_000, "a fault after {after}: {closed:?}");
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    assert!(failures > 5, "{failures}");
    Ok(())
}

#[test]
fn a_close_leaves_the_database_to_whoever_still_has_it() -> Result<()> {
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

//! Tests of the background writers in an open database.

use crate::base::Result;
use crate::db::StoreKind;
use crate::{Builder, Database, Durability, Error, TableDef};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const T: TableDef<u32, &[u8]> = TableDef::new("t");
const ENTRIES: u32 = 20_000;

/// A cache of a tenth of the pages, and bounds that are reached all the time.
fn options(store: StoreKind) -> Builder {
    let options = Database::builder().page_size(8192).store(store).cache(400 << 10);
    options.checkpoint_bytes(1 << 20).superseded_bytes(128 << 10).durability(Durability::None)
}

fn value(number: u32) -> [u8; 120] {
    let mut value = [0; 120];
    value[..4].copy_from_slice(&number.to_le_bytes());
    value
}

fn number(value: &[u8]) -> u32 {
    value.first_chunk().map_or(0, |number| u32::from_le_bytes(*number))
}

fn fill(db: &Database) -> Result<()> {
    for first in (0..ENTRIES).step_by(1000) {
        let tx = db.begin_write()?;
        (first..first + 1000).try_for_each(|key| tx.open_table(T)?.put(key, &value(0)[..]))?;
        tx.commit()?;
    }
    Ok(())
}

/// Each number of a key is greater than the one before it.
fn overwrite(db: &Database, newest: &[AtomicU32]) -> Result<()> {
    for number in 1..6000u32 {
        let key = number.wrapping_mul(2_654_435_761) % ENTRIES;
        let tx = db.begin_write()?;
        tx.open_table(T)?.put(key, &value(number)[..])?;
        tx.commit()?;
        newest[key as usize].store(number, Ordering::SeqCst);
    }
    Ok(())
}

fn read_until(over: &AtomicBool, db: &Database, newest: &[AtomicU32], seed: u32) -> Result<()> {
    for step in seed.. {
        if over.load(Ordering::SeqCst) {
            break;
        }
        let key = step.wrapping_mul(40_503) % ENTRIES;
        let before = newest[key as usize].load(Ordering::SeqCst);
        let found = db.begin_read()?.open_table(T)?.get(&key)?.map(|value| number(value.value()));
        assert!(found.is_some_and(|found| found >= before), "key {key}: {found:?}, and {before} before");
    }
    Ok(())
}

/// The handle is dropped while there are dirty pages and the writers may be at work.
fn work_beside(store: StoreKind, writers: usize) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let newest: Vec<AtomicU32> = (0..ENTRIES).map(|_| AtomicU32::new(0)).collect();
    let db = options(store).writers(writers).create(&path)?;
    fill(&db)?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = |seed| {
            let (over, db, newest) = (&over, &db, &newest);
            scope.spawn(move || read_until(over, db, newest, seed))
        };
        let readers = [0, 9999].map(reader);
        let written = overwrite(&db, &newest);
        over.store(true, Ordering::SeqCst);
        readers.into_iter().try_for_each(|reader| reader.join().expect("a reader")).and(written)
    })?;
    assert!(db.stats().cache_pages < db.stats().pages / 2);
    drop(db);
    let db = options(store).open(&path)?;
    assert!(db.stats().recovery.is_none(), "it was closed");
    assert_eq!(db.verify(|_| ())?.findings, []);
    let table = db.begin_read()?.open_table(T)?;
    for (key, newest) in (0..).zip(&newest) {
        let found = table.get(&key)?.map(|value| number(value.value()));
        assert_eq!(found, Some(newest.load(Ordering::SeqCst)), "key {key}");
    }
    Ok(())
}

#[test]
fn reads_and_commits_beside_any_number_of_writers_lose_nothing() -> Result<()> {
    for store in [StoreKind::Table, StoreKind::Shadow] {
        [0, 1, 4].into_iter().try_for_each(|writers| work_beside(store, writers))?;
    }
    assert!(matches!(options(StoreKind::Table).writers(5).in_memory(), Err(Error::Option { option: "writers", .. })));
    Ok(())
}

//! Promise: tables with a key heap need no larger cache than other tables, and a damaged key costs only the entries
//! that depend on it.

use duramen::db::types::{KeyLayout, Separators};
use duramen::{Builder, Database, Error, Result, TableOptions};
use std::fs;
use std::path::Path;

const ENTRIES: usize = 20_000;

/// Of so few pages that one in four heap pages of a leaf's is more than a batch may change.
fn options() -> Builder {
    Database::builder().page_size(4096).cache(64 << 12).background(false)
}

fn key(n: usize) -> Vec<u8> {
    format!("{n:08}{:x<200}", "").into_bytes()
}

fn create(db: &Database) -> Result<()> {
    let (keys, separators) = (Some(KeyLayout::PkbHeap), Some(Separators::Full));
    let tx = db.begin_write()?;
    tx.create_untyped("t", "bytes", "bytes", TableOptions { keys, separators, ..TableOptions::default() })?;
    tx.commit()
}

/// All keys, in no order, so that each leaf's are in many heap pages.
fn filled(path: &Path) -> Result<Database> {
    let db = options().create(path)?;
    create(&db)?;
    let scattered: Vec<usize> = (0..ENTRIES).map(|n| n * 7919 % ENTRIES).collect();
    for some in scattered.chunks(1000) {
        let tx = db.begin_write()?;
        let mut table = tx.open_untyped("t")?;
        some.iter().try_for_each(|n| table.put(&key(*n), b""))?;
        drop(table);
        tx.commit()?;
    }
    let stats = db.table_stats("t")?;
    assert!(stats.heap_pages > 5 * stats.levels[0].pages, "{stats:?}");
    Ok(db)
}

fn count(db: &Database) -> Result<u64> {
    db.begin_read()?.open_untyped("t")?.count(..)
}

#[test]
fn a_large_removal_here_and_there_fits_a_small_cache() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let db = filled(&path)?;
    let tx = db.begin_write()?;
    let mut table = tx.open_untyped("t")?;
    for n in (0..ENTRIES).step_by(20) {
        table.delete(&key(n))?;
    }
    drop(table);
    tx.commit()?;
    db.close()?;
    let db = options().open(&path)?;
    assert_eq!(count(&db)?, (ENTRIES - ENTRIES / 20) as u64);
    assert!(db.verify(|_| ())?.findings.is_empty());
    Ok(())
}

#[test]
fn a_table_and_a_range_are_given_back_in_a_small_cache() -> Result<()> {
    for whole in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.duramen");
        let db = filled(&path)?;
        let before = db.begin_read()?;
        let tx = db.begin_write()?;
        if whole {
            tx.drop_table("t")?;
        } else {
            let (lower, upper) = (key(1003), key(17_001));
            tx.open_untyped("t")?.remove_range(lower.as_slice()..upper.as_slice());
        }
        tx.commit()?;
        // Until it ends, a snapshot sees what it saw, at the edges of the range too.
        let table = before.open_untyped("t")?;
        assert_eq!(table.count(..)?, ENTRIES as u64);
        for n in [1002, 1003, 1004, 9000, 16_999, 17_000, 17_001] {
            assert!(table.get(&key(n))?.is_some(), "{n}");
        }
        let from = key(990);
        let mut found = table.range(from.as_slice()..);
        for n in 990..1030 {
            assert_eq!(found.next_with(|found, _| found == key(n))?, Some(true), "{n}");
        }
        drop(found);
        drop((table, before));
        assert!(db.verify(|_| ())?.findings.is_empty());
        db.close()?;
        let db = Database::builder().page_size(4096).cache(64 << 12).open(&path)?;
        db.close()?;
        let db = options().open(&path)?;
        assert!(db.verify(|_| ())?.findings.is_empty());
        if !whole {
            assert_eq!(count(&db)?, (1003 + ENTRIES - 17_001) as u64);
        }
        let stats = db.stats();
        let left = if whole { 40 } else { 1200 };
        assert!(stats.pages < left, "{stats:?}");
    }
    Ok(())
}

#[test]
fn a_damaged_key_of_a_neighbour_is_found_before_anything_changes() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let long: Vec<u8> = [&b"m"[..], &[b'x'; 1500], b"TAILMARK", &[b'y'; 400]].concat();
    let db = options().create(&path)?;
    create(&db)?;
    let tx = db.begin_write()?;
    for key in [b"a", &long[..], b"z"] {
        tx.open_untyped("t")?.put(key, b"old")?;
    }
    tx.commit()?;
    db.close()?;
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(8).position(|window| window == b"TAILMARK").expect("the run of the long key");
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    let db = options().open(&path)?;
    let put = |key: &[u8]| {
        let tx = db.begin_write()?;
        tx.open_untyped("t")?.put(key, b"new")?;
        tx.commit()
    };
    assert!(matches!(put(b"n"), Err(Error::Corrupt { .. })), "beside it");
    put(b"z1")?;
    assert!(matches!(put(b"l"), Err(Error::Corrupt { .. })), "on the other side");
    put(b"A")?;
    let table = db.begin_read()?.open_untyped("t")?;
    assert_eq!(table.get(b"z1")?.as_deref(), Some(&b"new"[..]));
    assert_eq!(table.get(b"A")?.as_deref(), Some(&b"new"[..]));
    Ok(())
}

//! Tests of the space that replaced pages take while a database is open.

use crate::base::Result;
use crate::{Builder, Database, Durability, TableDef};
use std::path::Path;

const NAME: &str = "t.duramen";
const T: TableDef<u32, &[u8]> = TableDef::new("t");
const ENTRIES: u32 = 60_000;

fn options() -> Builder {
    // 256 pages are in the cache, and about 2,000 in the table.
    Database::builder().page_size(4096).cache(1 << 20).background(false).durability(Durability::None)
}

fn filled(options: &Builder, path: &Path) -> Result<Database> {
    let db = options.create(path)?;
    for first in (0..ENTRIES).step_by(1000) {
        let tx = db.begin_write()?;
        (first..first + 1000).try_for_each(|key| tx.open_table(T)?.put(key, &[1; 120][..]))?;
        tx.commit()?;
    }
    db.checkpoint()?;
    Ok(db)
}

/// Overwrites scattered entries, one a commit.
fn overwrite(db: &Database, numbers: std::ops::Range<u32>) -> Result<()> {
    for number in numbers {
        let tx = db.begin_write()?;
        tx.open_table(T)?.put(number.wrapping_mul(2_654_435_761) % ENTRIES, &[2; 120][..])?;
        tx.commit()?;
    }
    Ok(())
}

fn entries(db: &Database) -> Result<Vec<(u32, u8)>> {
    let table = db.begin_read()?.open_table(T)?;
    table
        .iter()
        .map(|entry| entry.map(|(key, value)| (key.value(), value.value().first().copied().unwrap_or(0))))
        .collect()
}

#[test]
fn a_checkpoint_of_the_places_frees_replaced_places_and_keeps_the_redo_point() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let db = filled(&options().superseded_bytes(64 << 10), &path)?;
    let engine = &db.shared().engine;
    let mut number = 0;
    while !engine.has_many_superseded_images() {
        overwrite(&db, number..number + 20)?;
        number += 20;
        assert!(number < 20_000, "the overwrites replace pages");
    }
    let before = db.stats();
    assert!(db.maintain()?);
    let after = db.stats();
    assert!(!engine.has_many_superseded_images());
    assert_eq!((after.log_bytes, after.redo_pages), (before.log_bytes, before.redo_pages), "the redo point stays");
    assert!(after.free_bytes > before.free_bytes + before.live_bytes / 8, "{before:?} {after:?}");
    // As after the death of the process, with images that are newer than the redo point.
    overwrite(&db, number..number + 500)?;
    let copy = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copy.path().join(file.file_name())).unwrap();
    }
    let recovered = options().open(copy.path().join(NAME))?;
    assert!(recovered.stats().recovery.is_some());
    assert_eq!(recovered.verify(|_| ())?.findings, []);
    assert_eq!(entries(&recovered)?, entries(&db)?);
    recovered.close()?;
    db.close()
}

#[test]
fn a_file_that_is_written_to_stays_near_the_size_of_its_pages() -> Result<()> {
    let grown = |least: u64| -> Result<f64> {
        let folder = tempfile::tempdir().unwrap();
        let db = filled(&options().superseded_bytes(least), &folder.path().join(NAME))?;
        for first in (0..20_000).step_by(50) {
            overwrite(&db, first..first + 50)?;
            while db.maintain()? {}
        }
        let stats = db.stats();
        db.close()?;
        Ok(stats.file_bytes as f64 / stats.live_bytes as f64)
    };
    // A quarter waits for a checkpoint, room is set aside for all dirty pages, and a file grows by 1 MiB at least.
    let (bounded, unbounded) = (grown(64 << 10)?, grown(u64::MAX)?);
    assert!(bounded < 1.8 && bounded + 0.3 < unbounded, "{bounded} and {unbounded} times the live bytes");
    Ok(())
}

#[test]
fn a_file_becomes_shorter_while_the_database_is_open() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let db = filled(&options(), &folder.path().join(NAME))?;
    let before = db.stats();
    // The images that stay are the last ones of the file.
    let tx = db.begin_write()?;
    tx.open_table(T)?.remove_range(..ENTRIES / 16 * 15);
    tx.commit()?;
    let open = db.begin_write()?;
    (0..4).try_for_each(|_| db.checkpoint())?;
    let waiting = db.stats();
    drop(open);
    for key in ENTRIES..ENTRIES + 20 {
        while db.maintain()? {}
        let tx = db.begin_write()?;
        tx.open_table(T)?.put(key, &[2; 120][..])?;
        tx.commit()?;
        db.checkpoint()?;
    }
    let after = db.stats();
    assert!(after.file_bytes < before.file_bytes / 2, "{before:?} {after:?}");
    assert_eq!(waiting.file_bytes, before.file_bytes, "an open transaction keeps images where they are");
    assert_eq!(db.verify(|_| ())?.findings, []);
    assert_eq!(entries(&db)?.len(), ENTRIES as usize / 16 + 20);
    db.close()
}

//! Promise: writes beside a damaged page neither stop all writing nor prevent the next opening.

use crate::hostile::{NAME, TABLE, options, put};
use duramen::{Database, Error, Result};
use std::fs;
use std::path::Path;

const ENTRIES: u32 = 3000;

/// Flips a bit of the first place of `marker` in the file.
fn damage(path: &Path, marker: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.windows(marker.len()).position(|window| window == marker).expect("the marker in the file");
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// The keys below `entries` that cannot be read. All others have an entry, except those in `removed`.
fn lost(db: &Database, removed: std::ops::Range<u32>) -> Result<Vec<u32>> {
    let tx = db.begin_read()?;
    let table = tx.open_table(TABLE)?;
    let mut lost = Vec::new();
    for key in 0..ENTRIES {
        match table.get(key) {
            Err(Error::Corrupt { .. }) => lost.push(key),
            found => assert_eq!(found?.is_none(), removed.contains(&key), "key {key}"),
        }
    }
    Ok(lost)
}

/// A closed database with a damaged leaf in the middle, and the keys that are lost.
fn with_a_damaged_leaf(path: &Path) -> Result<std::ops::Range<u32>> {
    let db = options().create(path)?;
    put(&db, 0..ENTRIES)?;
    db.close()?;
    damage(path, format!("the value of {:08}", ENTRIES / 2).as_bytes());
    let lost = lost(&options().open(path)?, 0..0)?;
    let (first, last) = (lost[0], lost[lost.len() - 1]);
    assert_eq!(lost.len() as u32, last - first + 1);
    assert!(lost.len() < 200, "{lost:?}");
    Ok(first..last + 1)
}

/// The keys are consecutive, so both ends of the lost range are separators.
#[test]
fn ranges_that_end_or_begin_at_a_damaged_leaf_are_removed() -> Result<()> {
    for large in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        let broken = with_a_damaged_leaf(&path)?;
        let whole = fs::read(&path).unwrap();
        for removed in [0..broken.start, broken.end..ENTRIES, broken.end..broken.end + 1, broken.end..ENTRIES - 10] {
            fs::write(&path, &whole).unwrap();
            let db = options().open(&path)?;
            let tx = db.begin_write()?;
            let mut table = tx.open_table(TABLE)?;
            table.remove_range(removed.clone());
            if large {
                // More pages than fit in one batch.
                (ENTRIES..40_000).try_for_each(|key| table.put(key, "another value of this table"))?;
            }
            drop(table);
            tx.commit().unwrap_or_else(|error| panic!("{removed:?}: {error}"));
            put(&db, ENTRIES..ENTRIES + 1)?;
            db.close()?;
            let db = options().open(&path)?;
            assert_eq!(lost(&db, removed.clone())?, broken.clone().collect::<Vec<u32>>(), "{removed:?}");
            assert_eq!(db.verify(|_| ())?.findings.len(), 1, "{removed:?}");
            while db.maintain()? {}
            db.close()?;
        }
    }
    Ok(())
}

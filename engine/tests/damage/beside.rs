//! Promise: writes beside a damaged page neither stop all writing nor prevent the next opening, also if they are a
//! range removal, a split, or a large transaction that is unfinished when the process dies.

use crate::hostile::{NAME, TABLE, damage, options, put};
use crate::workload::files::bytes_of;
use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::db::types::{KeyLayout, Separators};
use duramen::{Database, Error, Result, TableOptions};
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::fs;
use std::path::Path;
use std::sync::Arc;

const ENTRIES: u32 = 3000;

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

/// A long key. The bytes from `head` on are in pages of its own.
fn long(head: &[u8], end: &[u8]) -> Vec<u8> {
    [head, &[b'x'; 1500], end, &[b'y'; 100]].concat()
}

/// A closed database with these long keys in one leaf. The bytes `TAILMARK` of one of them are damaged.
fn with_a_damaged_key(path: &Path, keys: &[Vec<u8>]) -> Result<Database> {
    let db = options().create(path)?;
    let (keys_in, separators) = (Some(KeyLayout::Head), Some(Separators::Full));
    let tx = db.begin_write()?;
    let layout = TableOptions { keys: keys_in, separators, ..TableOptions::default() };
    tx.create_untyped("t", "bytes", "bytes", layout)?;
    tx.commit()?;
    keys.iter().try_for_each(|key| put_bytes(&db, key))?;
    db.close()?;
    damage(path, b"TAILMARK");
    options().open(path)
}

fn put_bytes(db: &Database, key: &[u8]) -> Result<()> {
    let tx = db.begin_write()?;
    tx.open_untyped("t")?.put(key, &[b'v'; 40])?;
    tx.commit()
}

/// Short keys on both sides of the long keys, so that their leaf is cut between long keys.
fn short_keys() -> impl Iterator<Item = String> {
    (0..60).flat_map(|n| [format!("a{n:02}"), format!("n{n:02}")])
}

#[test]
fn a_leaf_is_split_beside_a_damaged_key_without_reading_it() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let db = with_a_damaged_key(&path, &[long(b"k", b""), long(b"l", b"TAILMARK"), long(b"m", b"")])?;
    for key in short_keys() {
        put_bytes(&db, key.as_bytes()).unwrap_or_else(|error| panic!("{key}: {error}"));
    }
    let table = db.begin_read()?.open_untyped("t")?;
    for (key, is_damaged) in [(long(b"k", b""), false), (long(b"l", b"TAILMARK"), true), (long(b"m", b""), false)] {
        assert_eq!(matches!(table.get(&key), Err(Error::Corrupt { .. })), is_damaged);
    }
    Ok(())
}

/// Only the whole keys say where a leaf can be cut between them.
#[test]
fn a_damaged_key_that_a_split_needs_is_found_before_anything_changes() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let db = with_a_damaged_key(&path, &[long(b"m", b"a"), long(b"m", b"bTAILMARK"), long(b"m", b"c")])?;
    let mut refused = 0;
    for key in short_keys() {
        match put_bytes(&db, key.as_bytes()) {
            Err(Error::Corrupt { .. }) => refused += 1,
            other => other.unwrap_or_else(|error| panic!("{key}: {error}")),
        }
    }
    assert!((1..110).contains(&refused), "{refused}");
    let tx = db.begin_write()?;
    tx.create_untyped("other", "bytes", "bytes", TableOptions::default())?;
    tx.commit()
}

/// The process dies in the middle of a large transaction, and a leaf that the rest of it changes is damaged. The bit is
/// flipped back later: a change that is lost once stays lost.
#[test]
fn an_unfinished_transaction_is_completed_beside_a_damaged_leaf() -> Result<()> {
    STORES.into_iter().try_for_each(complete_beside_a_damaged_leaf)
}

/// The files of a process that died at different moments of a large transaction, which changes all entries.
pub(super) fn killed_in_a_large_transaction(store: StoreKind) -> Result<Vec<(usize, FailingVolume)>> {
    let volume = FailingVolume::new(1);
    let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
    put(&db, 0..ENTRIES)?;
    db.checkpoint()?;
    let begun = volume.events();
    let tx = db.begin_write()?;
    let mut table = tx.open_table(TABLE)?;
    let new = format!("new{:>100}", "");
    (0..2 * ENTRIES).try_for_each(|key| table.put(key, new.as_str()))?;
    drop(table);
    tx.commit()?;
    let ended = volume.events();
    let events = (begun..ended).step_by(((ended - begun) / 20).max(1));
    Ok(events.map(|event| (event, volume.crash(Cut { event, choice: CutChoice::KeepAll }))).collect())
}

fn complete_beside_a_damaged_leaf(store: StoreKind) -> Result<()> {
    let (marker, mut with_losses) = (format!("the value of {:08}", ENTRIES - 100), 0);
    for (event, state) in killed_in_a_large_transaction(store)? {
        let at = bytes_of(&state, NAME)?.windows(marker.len()).position(|window| window == marker.as_bytes());
        let at = at.expect("the old value in the file") as u64;
        state.flip_bits(NAME, at, 1)?;
        let db = options().open_on(Arc::new(state.clone()), NAME);
        let db = db.unwrap_or_else(|error| panic!("{store}, cut at {event}: {error}"));
        let lost = new_or_lost(&db, &format!("{store}, cut at {event}"))?;
        let is_new = db.begin_read()?.open_table(TABLE)?.len() > u64::from(ENTRIES);
        if is_new && lost > 0 {
            with_losses += 1;
            put(&db, 0..1)?;
            db.verify(|_| ())?;
        }
        // Before the next checkpoint, and after a close.
        let died = state.crash(Cut { event: state.events(), choice: CutChoice::KeepAll });
        drop(db);
        for state in [died, state] {
            // Another page may be there by now.
            if bytes_of(&state, NAME)?[at as usize + 1..].starts_with(&marker.as_bytes()[1..]) {
                state.flip_bits(NAME, at, 1)?;
            }
            let db = options().open_on(Arc::new(state), NAME)?;
            let again = new_or_lost(&db, &format!("{store}, cut at {event}, again"))?;
            assert!(again == lost || !is_new && again == 0, "{store}, cut at {event}: {again}");
        }
    }
    assert!(with_losses > 2, "{store}: {with_losses}");
    Ok(())
}

/// How many of the first keys cannot be read. All others have the old value, or all have the new one.
pub(super) fn new_or_lost(db: &Database, what: &str) -> Result<u32> {
    let tx = db.begin_read()?;
    let table = tx.open_table(TABLE)?;
    let is_new = table.len() > u64::from(ENTRIES);
    let mut lost = 0;
    for key in 1..ENTRIES {
        match table.get_with(key, |value| value.starts_with("new")) {
            Err(Error::Corrupt { .. }) => lost += 1,
            found => assert_eq!(found?, Some(is_new), "{what}: key {key}"),
        }
    }
    Ok(lost)
}

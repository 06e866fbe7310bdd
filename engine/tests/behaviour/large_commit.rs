//! Promise: a transaction can be larger than the cache. It is committed, or refused before anything has changed. If the
//! process dies in the middle of it, the next opening completes it with a cache of the same size.

use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::io::{OpenMode, Volume};
use duramen::{Codec, Database, Durability, Error, Key, Result, TableDef, Value};
use duramen_sim::{Cut, CutChoice, FailingVolume, HookedVolume, Hooks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const TABLE: TableDef<u32, &[u8]> = TableDef::new("t");
const NAMES: TableDef<&[u8], &[u8]> = TableDef::new("names");
const NAME: &str = "t.duramen";

fn options(cache: usize) -> duramen::Builder {
    Database::builder().page_size(4096).cache(cache).background(false)
}

fn scattered(key: u32) -> u32 {
    key.wrapping_mul(2_654_435_761)
}

/// Commits entries of 100 bytes under scattered keys.
fn put(db: &Database, keys: std::ops::Range<u32>, byte: u8) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::None);
    let mut table = tx.open_table(TABLE)?;
    for key in keys {
        table.put(scattered(key), &[byte; 100][..])?;
    }
    drop(table);
    tx.commit()
}

fn entries(db: &Database) -> Result<u64> {
    let tx = db.begin_read()?;
    let table = tx.open_table(TABLE)?;
    assert_eq!(table.iter().filter(|entry| entry.is_ok()).count() as u64, table.len());
    Ok(table.len())
}

fn check(db: &Database, expected: u64) -> Result<()> {
    assert_eq!(entries(db)?, expected);
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

/// The limit of a batch is lowered, so that it is met with little.
#[test]
fn a_commit_that_is_longer_than_a_batch_may_be_is_committed_in_pieces() -> Result<()> {
    STORES.into_iter().try_for_each(commit_more_than_a_batch)
}

fn commit_more_than_a_batch(store: StoreKind) -> Result<()> {
    let db = options(64 << 20).store(store).batch_bytes(1 << 20).create_on(Arc::new(FailingVolume::new(1)), NAME)?;
    put(&db, 0..50_000, 1)?;
    check(&db, 50_000)?;
    // One change to each of very many leaves, and new entries between the old ones.
    put(&db, 0..100_000, 2)?;
    check(&db, 100_000)?;
    let tx = db.begin_write()?;
    let mut table = tx.open_table(TABLE)?;
    for key in 0..100_000 {
        table.remove(scattered(key))?;
    }
    drop(table);
    tx.commit()?;
    check(&db, 0)?;
    db.close()
}

/// Removes many small ranges, some of which lie in one leaf and others in several.
fn remove_ranges(db: &Database, ranges: u32) -> Result<()> {
    let tx = db.begin_write()?;
    let mut table = tx.open_table(TABLE)?;
    let width = u32::MAX / ranges;
    for range in 0..ranges {
        let from = range * width;
        table.remove_range(from..from + width / 2);
    }
    drop(table);
    tx.commit()
}

fn left(ranges: u32, keys: u32) -> u64 {
    let width = u32::MAX / ranges;
    let removed = |key: &u32| scattered(*key) / width < ranges && scattered(*key) % width < width / 2;
    (0..keys).filter(|key| !removed(key)).count() as u64
}

#[test]
fn very_many_ranges_are_removed_in_one_commit_in_the_smallest_cache() -> Result<()> {
    STORES.into_iter().try_for_each(remove_very_many_ranges)
}

fn remove_very_many_ranges(store: StoreKind) -> Result<()> {
    for (cache, keys, ranges) in [(0, 40_000, 2_000), (0, 40_000, 30), (0, 40_000, 1), (1 << 20, 100_000, 20_000)] {
        let volume = FailingVolume::new(1);
        let db = options(cache).store(store).create_on(Arc::new(volume.clone()), NAME)?;
        for from in (0..keys).step_by(1000) {
            put(&db, from..from + 1000, 1)?;
        }
        db.checkpoint()?;
        let begun = volume.events();
        remove_ranges(&db, ranges).unwrap_or_else(|error| panic!("{store:?}, {ranges} ranges: {error}"));
        check(&db, left(ranges, keys))?;
        while db.maintain()? {}
        check(&db, left(ranges, keys))?;
        // Whenever the process dies meanwhile, the same cache is enough to open the database again.
        let end = volume.events();
        for event in (begun..end).step_by(((end - begun) / 7).max(1)) {
            let state = volume.crash(Cut { event, choice: CutChoice::KeepAll });
            let db = options(cache).open_on(Arc::new(state), NAME);
            let db = db.unwrap_or_else(|error| panic!("{store:?}, {ranges} ranges, cut at {event}: {error}"));
            let found = entries(&db)?;
            assert!(
                found == u64::from(keys) || found == left(ranges, keys),
                "{store:?}, {ranges} ranges, cut at {event}: {found}"
            );
            assert_eq!(db.verify(|_| ())?.findings, []);
        }
    }
    Ok(())
}

#[test]
fn keys_and_separators_as_long_as_can_be_fit_in_the_smallest_cache() -> Result<()> {
    for seed in 0..12u64 {
        let page_size = [65536, 65536, 4096][seed as usize % 3];
        let store = STORES[seed as usize / 3 % STORES.len()];
        let db = options(0).store(store).page_size(page_size).create_on(Arc::new(FailingVolume::new(seed)), NAME)?;
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = move |below: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % below
        };
        let mut model = std::collections::BTreeSet::new();
        for commit in 0..24 {
            let tx = db.begin_write()?;
            let mut table = tx.open_table(NAMES)?;
            for _ in 0..next(60) {
                let mut key = vec![7; 65_000 + next(500) as usize];
                let at = key.len() - 1 - next(3) as usize * 20_000;
                key[at] = next(250) as u8;
                if next(3) > 0 {
                    table.put(key.as_slice(), &[1; 9][..])?;
                    model.insert(key);
                } else if let Some(old) = model.range(key..).next().cloned() {
                    table.remove(old.as_slice())?;
                    model.remove(&old);
                }
            }
            drop(table);
            tx.commit().unwrap_or_else(|error| panic!("{store:?}, seed {seed}, commit {commit}: {error}"));
            while db.maintain()? {}
        }
        let tx = db.begin_read()?;
        let table = tx.open_table(NAMES)?;
        assert!(table.iter().map(|entry| entry.unwrap().0.value().to_vec()).eq(model), "seed {seed}");
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    Ok(())
}

#[test]
fn very_many_tables_are_created_and_dropped_in_one_commit_in_the_smallest_cache() -> Result<()> {
    STORES.into_iter().try_for_each(create_very_many_tables)
}

fn create_very_many_tables(store: StoreKind) -> Result<()> {
    let db = options(0).store(store).create_on(Arc::new(FailingVolume::new(1)), NAME)?;
    let name = |number: u32| format!("a table of many, this one number {number}");
    let tx = db.begin_write()?;
    for number in 0..3000 {
        let name = name(number);
        tx.open_table(TableDef::<u32, &[u8]>::new(&name))?.put(number, &[1; 10][..])?;
    }
    tx.commit()?;
    assert_eq!(db.begin_read()?.tables()?.len(), 3000);
    let tx = db.begin_write()?;
    for number in 0..3000 {
        tx.drop_table(&name(number))?;
    }
    tx.commit()?;
    while db.maintain()? {}
    assert!(db.begin_read()?.tables()?.is_empty());
    assert_eq!(db.verify(|_| ())?.findings, []);
    db.close()
}

/// Pages that become free by removing ranges are noted in the log and in the catalog. There must be room for that
/// before anything changes.
#[test]
fn ranges_removed_on_a_nearly_full_device_leave_a_database_that_closes_and_goes_on() -> Result<()> {
    STORES.into_iter().try_for_each(remove_ranges_on_a_nearly_full_device)
}

fn remove_ranges_on_a_nearly_full_device(store: StoreKind) -> Result<()> {
    let mut refused = 0;
    for space in (0..12u64).map(|number| number << 21) {
        let volume = FailingVolume::new(space);
        let db = options(1 << 20).store(store).checkpoint_bytes(256 << 10).create_on(Arc::new(volume.clone()), NAME)?;
        for from in (0..40_000).step_by(1000) {
            put(&db, from..from + 1000, 1)?;
            while db.maintain()? {}
        }
        db.checkpoint()?;
        volume.limit_space(Some(space));
        let expected = match remove_ranges(&db, 1000) {
            Ok(()) => left(1000, 40_000),
            Err(Error::Full { .. }) => {
                refused += 1;
                40_000
            }
            Err(other) => panic!("{store:?}, {space} bytes: {other}"),
        };
        check(&db, expected)?;
        match put(&db, 40_000..40_001, 1) {
            Ok(()) | Err(Error::Full { .. }) => {}
            Err(other) => panic!("{store:?}, {space} bytes: {other}"),
        }
        let now = entries(&db)?;
        db.close().unwrap_or_else(|error| panic!("{store:?}, {space} bytes: closing: {error}"));
        assert_eq!(volume.list("")?.len(), 1, "{store:?}, {space} bytes: a log is left");
        let db = options(1 << 20).open_on(Arc::new(volume.clone()), NAME)?;
        check(&db, now)?;
        volume.limit_space(None);
        drop(db);
        let db = options(1 << 20).open_on(Arc::new(volume), NAME)?;
        while db.maintain()? {}
        check(&db, now)?;
        put(&db, 50_000..50_100, 1)?;
    }
    assert!((1..11).contains(&refused), "{store:?}: {refused}");
    Ok(())
}

/// The most room that the log has had, as seen at each write.
#[derive(Debug)]
struct Peak(FailingVolume, AtomicU64);

impl Hooks for Peak {
    fn before_write(&self, _: &str, _: u64, _: usize) -> Result<()> {
        let mut room = 0;
        for segment in self.0.list("t.duramen-log")? {
            room += self.0.open(&segment, OpenMode::Read)?.allocated()?;
        }
        self.1.fetch_max(room, Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn the_log_of_a_large_commit_takes_at_most_three_and_a_half_times_its_changes() -> Result<()> {
    const CHANGES: u32 = 200_000;
    for (ordered, store) in [true, false].into_iter().zip(STORES) {
        let volume = FailingVolume::new(1);
        let peak = Arc::new(Peak(volume.clone(), AtomicU64::new(0)));
        let hooked = Arc::new(HookedVolume::new(Arc::new(volume.clone()), peak.clone()));
        let options = Database::builder().cache(1 << 20).checkpoint_bytes(1 << 20).background(false);
        let db = options.store(store).create_on(hooked, NAME)?;
        // New entries, then others in their places.
        for value in [[1; 96], [2; 96]] {
            let tx = db.begin_write()?;
            let mut table = tx.open_table(TABLE)?;
            for key in 0..CHANGES {
                table.put(if ordered { key } else { scattered(key) }, &value[..])?;
            }
            drop(table);
            std::thread::scope(|scope| -> Result<()> {
                let commit = scope.spawn(|| tx.commit());
                // Requests for checkpoints meanwhile do not make it longer.
                while !commit.is_finished() {
                    db.checkpoint()?;
                    db.maintain()?;
                }
                commit.join().unwrap()
            })?;
            let peak = peak.1.swap(0, Ordering::Relaxed) as f64 / f64::from(CHANGES * 100);
            assert!((1.9..3.5).contains(&peak), "{peak} times the changes {}, ordered: {ordered}", value[0]);
            // The last checkpoint may have begun before the commit ended.
            db.checkpoint()?;
            let kept: u64 = volume.list("t.duramen-log")?.iter().map(|name| room(&volume, name)).sum();
            assert!(kept < 4 << 20, "{kept} bytes are kept");
            check(&db, u64::from(CHANGES))?;
        }
    }
    Ok(())
}

fn room(volume: &FailingVolume, name: &str) -> u64 {
    volume.open(name, OpenMode::Read).and_then(|disk| disk.allocated()).unwrap_or(0)
}

/// A reader that begins during the commit sees the state before it. A reader that begins afterwards sees all of it.
#[test]
fn a_large_commit_is_seen_whole_or_not_at_all_while_it_is_made() -> Result<()> {
    STORES.into_iter().try_for_each(see_a_large_commit)
}

fn see_a_large_commit(store: StoreKind) -> Result<()> {
    let db = options(1 << 20).store(store).create_on(Arc::new(FailingVolume::new(1)), NAME)?;
    put(&db, 0..60_000, 1)?;
    let before = db.begin_read()?;
    let tx = db.begin_write()?;
    let mut table = tx.open_table(TABLE)?;
    table.remove_range(0..u32::MAX / 8);
    for key in 0..60_000 {
        match key % 3 {
            0 => drop(table.put(scattered(key), &[2; 90][..])?),
            1 => drop(table.remove(scattered(key))?),
            _ => {}
        }
        table.put(scattered(key + 100_000), &[3; 100][..])?;
    }
    drop(table);
    let look = |tx: &duramen::ReadTransaction, from: u32| -> Result<()> {
        for key in (from..60_000).step_by(997) {
            let found = tx.open_table(TABLE)?.get(scattered(key))?.map(|value| value.value().to_vec());
            assert_eq!(found, Some(vec![1; 100]));
            assert!(tx.open_table(TABLE)?.get(scattered(key + 100_000))?.is_none());
        }
        assert_eq!(tx.open_table(TABLE)?.iter().count(), 60_000);
        Ok(())
    };
    std::thread::scope(|scope| -> Result<()> {
        let commit = scope.spawn(|| tx.commit());
        let mut rounds = 0;
        while !commit.is_finished() {
            let now = db.begin_read()?;
            // It may have come to its end just now.
            if now.open_table(TABLE)?.len() == 60_000 {
                look(&now, rounds)?;
            }
            rounds += 1;
        }
        commit.join().unwrap()
    })?;
    look(&before, 0)?;
    let after = db.begin_read()?;
    let table = after.open_table(TABLE)?;
    assert_eq!(table.iter().count() as u64, table.len());
    let removed = |key: u32| scattered(key) < u32::MAX / 8;
    for key in (0..60_000).step_by(331) {
        let expected = match key % 3 {
            0 => Some(vec![2; 90]),
            1 => None,
            _ => (!removed(key)).then(|| vec![1; 100]),
        };
        assert_eq!(table.get(scattered(key))?.map(|value| value.value().to_vec()), expected);
        assert!(table.get(scattered(key + 100_000))?.is_some());
    }
    drop((before, table, after));
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

#[test]
fn a_large_commit_without_room_to_be_finished_is_finished_once_there_is_some() -> Result<()> {
    STORES.into_iter().try_for_each(finish_without_room)
}

fn finish_without_room(store: StoreKind) -> Result<()> {
    let volume = FailingVolume::new(1);
    let db = options(0).store(store).create_on(Arc::new(volume.clone()), NAME)?;
    put(&db, 0..10_000, 1)?;
    // Without spare files of the log, whose room a recovery could use.
    db.close()?;
    let db = options(0).open_on(Arc::new(volume.clone()), NAME)?;
    let begun = volume.events();
    put(&db, 10_000..60_000, 2)?;
    let end = volume.events();
    let mut refused = 0;
    for event in (begun..end).step_by(((end - begun) / 12).max(1)) {
        let state = volume.crash(Cut { event, choice: CutChoice::KeepAll });
        // Somebody else has taken all the room that is not allocated to the files.
        state.limit_space(Some(0));
        match options(0).open_on(Arc::new(state.clone()), NAME) {
            Ok(db) => drop(db),
            Err(Error::Full { .. }) => refused += 1,
            Err(other) => panic!("{store:?}, cut at {event}: {other}"),
        }
        state.limit_space(None);
        let db = options(0).open_on(Arc::new(state), NAME);
        let db = db.unwrap_or_else(|error| panic!("{store:?}, cut at {event}, opened again: {error}"));
        let found = entries(&db)?;
        assert!(found == 10_000 || found == 60_000, "{store:?}, cut at {event}: {found}");
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    // `KeepAll` keeps reservations, too. With `shadow`, the room that was set aside before the power cut is therefore
    // still allocated beyond the end of the file.
    assert_eq!(refused == 0, store == StoreKind::Shadow, "{store:?}: {refused} openings were without room");
    Ok(())
}

/// A run of new keys can be longer than all offsets of a page, and then only a part of it goes to this page.
#[test]
fn ascending_integers_of_one_commit_fill_pages_of_64_kib() -> Result<()> {
    fn fill<K: Key + for<'k> Key<Ref<'k> = K>, V: Copy + for<'v> Value<Ref<'v> = V>>(
        codec: Codec,
        key: impl Fn(u32) -> K,
        value: V,
    ) -> Result<()> {
        let table = TableDef::<K, V>::new("t").codec(codec);
        let db = Database::builder().page_size(65_536).in_memory()?;
        let tx = db.begin_write()?;
        let mut open = tx.open_table(table)?;
        (0..30_000).try_for_each(|n| open.put(key(n), value))?;
        drop(open);
        tx.commit()?;
        assert_eq!(db.verify(|_| ())?.findings, [], "{codec}");
        assert_eq!(db.begin_read()?.open_table(table)?.iter().count(), 30_000, "{codec}");
        Ok(())
    }
    for codec in Codec::ALL {
        fill::<u64, ()>(codec, |n| u64::from(n) << 16, ())?;
        fill::<u64, u32>(codec, |n| u64::from(n) << 40, 7)?;
        fill::<u32, ()>(codec, |n| n << 8, ())?;
        fill::<u32, u8>(codec, |n| n << 16, 7)?;
    }
    Ok(())
}

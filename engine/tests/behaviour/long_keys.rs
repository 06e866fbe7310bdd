//! Promise: keys that are too long for a page are in the order of their bytes, although a page has only their first
//! bytes. This holds for scans, counts, queries, range deletes, loads, compaction and salvage, in every layout.

use crate::workload::{keys::key_of_a_group, layouts};
use duramen::db::{DEFAULT_FILL, ReadOnlyUntypedTable, Salvaged, types::TableOptions};
use duramen::io::MemoryVolume;
use duramen::query::{Aggregate, Number, Outcome, Query};
use duramen::{Database, Result, TableDef};
use duramen_sim::{HookedVolume, Hooks};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const NAME: &str = "t";
type Model = BTreeMap<Vec<u8>, Vec<u8>>;
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Keys of several pages, of one page and just too long for one, and short ones among them. They agree in all that a
/// page keeps.
fn key(rng: &mut fastrand::Rng, page_size: usize) -> Vec<u8> {
    let lens = [0, page_size / 8 - 14, page_size / 5, page_size / 5 + 1, page_size / 3, 3 * page_size];
    let mut key = vec![b'k'; lens[rng.usize(..lens.len())]];
    key.push(rng.u8(b'a'..=b'y'));
    key.extend(vec![0xff; rng.usize(0..2)]);
    key
}

fn bounds(rng: &mut fastrand::Rng, page_size: usize) -> Range {
    let mut bound = || match (rng.u8(0..8), key(rng, page_size)) {
        (0, _) => Bound::Unbounded,
        (1..5, key) => Bound::Included(key),
        (_, key) => Bound::Excluded(key),
    };
    (bound(), bound())
}

fn slices(range: &Range) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (range.0.as_ref().map(Vec::as_slice), range.1.as_ref().map(Vec::as_slice))
}

fn inside(model: &Model, range: &Range) -> Vec<(Vec<u8>, Vec<u8>)> {
    let above = |key: &[u8]| match &range.0 {
        Bound::Unbounded => true,
        Bound::Included(low) => key >= low.as_slice(),
        Bound::Excluded(low) => key > low.as_slice(),
    };
    let below = |key: &[u8]| match &range.1 {
        Bound::Unbounded => true,
        Bound::Included(high) => key <= high.as_slice(),
        Bound::Excluded(high) => key < high.as_slice(),
    };
    let entries = model.iter().filter(|(key, _)| above(key) && below(key));
    entries.map(|(key, value)| (key.clone(), value.clone())).collect()
}

fn change(db: &Database, model: &mut Model, rng: &mut fastrand::Rng, options: TableOptions) -> Result<()> {
    let page_size = db.stats().page_size;
    let tx = db.begin_write()?;
    if rng.u8(0..12) == 0 {
        tx.drop_table(NAME)?;
        let mut bulk = tx.bulk_load(NAME, "bytes", "bytes", options, DEFAULT_FILL)?;
        model.iter().try_for_each(|(key, value)| bulk.push(key, value))?;
        bulk.finish()?;
    }
    let mut table = tx.open_untyped(NAME)?;
    if rng.u8(0..3) == 0 {
        let range = bounds(rng, page_size);
        table.remove_range(slices(&range));
        inside(model, &range).iter().for_each(|(key, _)| drop(model.remove(key)));
    }
    for _ in 0..rng.usize(1..20) {
        let key = key(rng, page_size);
        match rng.u8(0..4) {
            0 => {
                table.delete(&key)?;
                model.remove(&key);
            }
            _ => {
                let value = rng.u64(..).to_be_bytes();
                table.put(&key, &value)?;
                model.insert(key, value.to_vec());
            }
        }
    }
    assert_eq!(table.len()?, model.len() as u64);
    let range = bounds(rng, page_size);
    assert_eq!(table.range(slices(&range)).collect::<Result<Vec<_>>>()?, inside(model, &range));
    drop(table);
    tx.commit()
}

fn look(table: &ReadOnlyUntypedTable, model: &Model, range: &Range) -> Result<()> {
    let expected = inside(model, range);
    assert_eq!(table.range(slices(range)).collect::<Result<Vec<_>>>()?, expected);
    let mut back = table.range(slices(range)).rev().collect::<Result<Vec<_>>>()?;
    back.reverse();
    assert_eq!(back, expected);
    assert_eq!(table.count(slices(range))?, expected.len() as u64);
    let (mut salvage, mut left) = (table.salvage(slices(range)), Vec::new());
    while let Some(found) = salvage.next_with(|key, value| (key.to_vec(), value.to_vec()))? {
        match found {
            Salvaged::Entry(entry) => left.push(entry),
            Salvaged::Lost(lost) => panic!("{lost:?}"),
        }
    }
    assert_eq!(left, expected);
    if let Some((key, value)) = expected.first() {
        assert_eq!(table.get(key)?.as_ref(), Some(value));
        let prefix = &key[..key.len() - 1];
        let with = model.keys().filter(|key| key.starts_with(prefix));
        assert!(table.prefix(prefix).map(|entry| entry.unwrap().0).eq(with.cloned()));
    }
    Ok(())
}

fn query(db: &Database, model: &Model, range: &Range, threads: usize) -> Result<()> {
    let table = db.begin_read()?.open_table(TableDef::<&[u8], &[u8]>::new(NAME))?;
    let query = || Query::of(&table).range(slices(range)).threads(threads);
    let count = |entries: usize| vec![Outcome::Number(Number::Unsigned(entries as u128))];
    let expected = inside(model, range);
    assert_eq!(query().run(&[Aggregate::Count])?, count(expected.len()));
    let odd = expected.iter().filter(|(_, value)| value[7] % 2 == 1);
    assert_eq!(query().filter(|_, value| value[7] % 2 == 1).run(&[Aggregate::Count])?, count(odd.count()));
    Ok(())
}

fn run(db: &Database, seed: u64, options: TableOptions, rounds: usize) -> Result<()> {
    let (mut rng, mut model, mut held) = (fastrand::Rng::with_seed(seed), Model::new(), None);
    let page_size = db.stats().page_size;
    let tx = db.begin_write()?;
    drop(tx.create_untyped(NAME, "bytes", "bytes", options)?);
    tx.commit()?;
    for round in 0..rounds {
        change(db, &mut model, &mut rng, options)?;
        match rng.u8(0..10) {
            0 => drop(db.compact(|_| ())?),
            1 => while db.maintain()? {},
            2 => held = Some((db.begin_read()?, model.clone())),
            _ => {}
        }
        for _ in 0..3 {
            let range = bounds(&mut rng, page_size);
            look(&db.begin_read()?.open_untyped(NAME)?, &model, &range)?;
            query(db, &model, &range, 1 + round % 3)?;
            if let Some((tx, model)) = &held {
                look(&tx.open_untyped(NAME)?, model, &range)?;
            }
        }
    }
    drop(held);
    let findings = db.verify(|_| ())?.findings;
    assert!(findings.is_empty(), "{findings:?}");
    Ok(())
}

#[test]
fn long_keys_are_in_order_for_every_read_in_every_layout() -> Result<()> {
    for (n, layout) in layouts::for_keys_of_any_length().into_iter().enumerate() {
        let options = TableOptions { keys: Some(layout), ..TableOptions::default() };
        for page_size in [256, 512, 1024] {
            println!("{layout} in pages of {page_size} bytes");
            let db = Database::builder().page_size(page_size).background(false).in_memory()?;
            run(&db, n as u64, options, 40)?;
        }
        let folder = tempfile::tempdir().unwrap();
        let db = Database::builder().page_size(4096).background(false).create(folder.path().join("t"))?;
        run(&db, n as u64, options, 15)?;
    }
    Ok(())
}

#[test]
fn a_count_of_long_keys_begins_and_ends_where_a_scan_does() -> Result<()> {
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    let key = |n: u32| [format!("K{n:03}").into_bytes(), vec![b'k'; 1996]].concat();
    let mut table = tx.create_untyped(NAME, "bytes", "bytes", TableOptions::default())?;
    (0..300).try_for_each(|n| table.put(&key(n), b"value"))?;
    drop(table);
    tx.commit()?;
    let table = db.begin_read()?.open_untyped(NAME)?;
    for n in 0..300 {
        assert_eq!(table.count(b"K".as_slice()..&key(n))?, u64::from(n));
        assert_eq!(table.count(key(n).as_slice()..)?, u64::from(300 - n));
        assert_eq!(table.count(format!("K{n:03}").as_bytes()..)?, u64::from(300 - n));
    }
    Ok(())
}

#[test]
fn a_short_key_among_long_ones_is_never_taken_for_another() -> Result<()> {
    for layout in layouts::for_keys_of_any_length() {
        for (seed, page_size) in [(1, 256), (2, 512), (3, 1024), (4, 4096), (5, 4096)] {
            let db = Database::builder().page_size(page_size).background(false).in_memory()?;
            let (mut rng, mut model) = (fastrand::Rng::with_seed(seed), BTreeMap::new());
            let tx = db.begin_write()?;
            let options = TableOptions { keys: Some(layout), ..TableOptions::default() };
            drop(tx.create_untyped(NAME, "bytes", "bytes", options)?);
            tx.commit()?;
            for _ in 0..60 {
                let tx = db.begin_write()?;
                let mut table = tx.open_untyped(NAME)?;
                for _ in 0..20 {
                    let (n, value) = (rng.u32(0..300), rng.u32(..).to_be_bytes());
                    if rng.u8(0..3) == 0 {
                        table.delete(&key_of_a_group(n, page_size))?;
                        model.remove(&n);
                    } else {
                        table.put(&key_of_a_group(n, page_size), &value)?;
                        model.insert(n, value);
                    }
                }
                drop(table);
                tx.commit()?;
                let table = db.begin_read()?.open_untyped(NAME)?;
                for n in 0..300 {
                    let found = table.get(&key_of_a_group(n, page_size))?;
                    let expected = model.get(&n).map(|value| value.to_vec());
                    assert_eq!(found, expected, "key {n} in {layout}, pages of {page_size} bytes");
                }
            }
            assert_eq!(db.verify(|_| ())?.findings, []);
        }
    }
    Ok(())
}

/// Hooks that can stop one read until the test lets it continue.
#[derive(Debug, Default)]
struct SlowRead {
    next: Mutex<Option<(SyncSender<()>, Receiver<()>)>>,
    went_on: AtomicBool,
}

impl SlowRead {
    /// Stops the next read. The receiver gets a message when the read waits; a message to the sender lets the read
    /// continue.
    fn stop_next(&self) -> (Receiver<()>, SyncSender<()>) {
        let ((waits, waiting), (go_on, told)) = (sync_channel(1), sync_channel(1));
        *self.next.lock().unwrap() = Some((waits, told));
        (waiting, go_on)
    }
}

impl Hooks for SlowRead {
    fn before_read(&self, name: &str, _: u64, _: usize) -> Result<()> {
        let next = if name == NAME { self.next.lock().unwrap().take() } else { None };
        if let Some((waits, told)) = next {
            waits.send(()).unwrap();
            self.went_on.store(told.recv_timeout(Duration::from_secs(20)).is_ok(), Ordering::Release);
        }
        Ok(())
    }
}

#[test]
fn a_commit_to_a_leaf_does_not_wait_for_the_read_of_one_of_its_keys() -> Result<()> {
    let volume = Arc::new(MemoryVolume::new());
    let long = [b'k'; 3000];
    let put = |db: &Database, key: &[u8]| -> Result<()> {
        let tx = db.begin_write()?;
        tx.open_untyped(NAME)?.put(key, b"value")?;
        tx.commit()
    };
    let db = Database::builder().create_on(volume.clone(), NAME)?;
    let tx = db.begin_write()?;
    drop(tx.create_untyped(NAME, "bytes", "bytes", TableOptions::default())?);
    tx.commit()?;
    put(&db, &long)?;
    db.close()?;

    let slow = Arc::new(SlowRead::default());
    let db = Database::builder().open_on(Arc::new(HookedVolume::new(volume, slow.clone())), NAME)?;
    let table = db.begin_read()?.open_untyped(NAME)?;
    // From here on the leaf is in memory, and the rest of the long key is not.
    assert_eq!(table.get(b"a")?, None);
    let (waiting, go_on) = slow.stop_next();
    std::thread::scope(|scope| -> Result<()> {
        let reader = scope.spawn(|| table.get(&long));
        waiting.recv_timeout(Duration::from_secs(20)).expect("the key was not read from the device");
        put(&db, b"a")?;
        let _ = go_on.send(());
        assert_eq!(reader.join().unwrap()?.as_deref(), Some(b"value".as_slice()));
        Ok(())
    })?;
    assert!(slow.went_on.load(Ordering::Acquire), "the commit waited for the reader");
    assert_eq!(db.begin_read()?.open_untyped(NAME)?.get(b"a")?.as_deref(), Some(b"value".as_slice()));
    Ok(())
}

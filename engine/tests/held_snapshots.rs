//! Promise: a snapshot that stays open for long needs memory for each changed key, not for each change, and not more
//! than the limit. The time to drop it is proportional to the memory that it needs.

#[path = "workload/stores.rs"]
mod stores;

use duramen::db::StoreKind;
use duramen::{Builder, Database, Durability, Error, ReadTransaction, Result, TableDef};
use std::time::{Duration, Instant};
use stores::STORES;

const T: TableDef<u64, &[u8]> = TableDef::new("t");

fn write(db: &Database, entries: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::None);
    let mut table = tx.open_table(T)?;
    entries.into_iter().try_for_each(|(key, value)| table.put(key, &*value))?;
    drop(table);
    tx.commit()
}

fn read(snapshot: &ReadTransaction, key: u64) -> Result<Option<Vec<u8>>> {
    Ok(snapshot.open_table(T)?.get(key)?.map(|value| value.value().to_vec()))
}

fn quiet() -> Builder {
    Database::builder().page_size(4096).cache(0).background(false).durability(Durability::None)
}

/// The most memory that this process has had, in KiB; `None` where the system does not say.
fn most_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// With `DURAMEN_OVERWRITES=10000000`, and no other test beside it, it looks at all the memory that so many cost.
#[test]
fn a_snapshot_held_for_millions_of_overwrites_of_few_keys_keeps_each_key_once() -> Result<()> {
    STORES.into_iter().try_for_each(overwrite_under_a_snapshot)
}

fn overwrite_under_a_snapshot(store: StoreKind) -> Result<()> {
    const KEYS: u64 = 1000;
    let wanted = std::env::var("DURAMEN_OVERWRITES").ok().and_then(|count| count.parse().ok());
    let overwrites = wanted.unwrap_or(200_000u64);
    let folder = tempfile::tempdir().unwrap();
    let db = quiet().store(store).create(folder.path().join("held.duramen"))?;
    write(&db, (0..KEYS).map(|key| (key, vec![0; 100])))?;
    write(&db, (0..KEYS).map(|key| (key, key.to_be_bytes().repeat(12))))?;
    let (memory, snapshot) = (most_memory(), db.begin_read()?);
    for turn in 0..overwrites / KEYS {
        write(&db, (0..KEYS).map(|key| (key, (key + turn + 1).to_be_bytes().repeat(12))))?;
        db.maintain()?;
    }
    let stats = db.stats();
    let grown = memory.zip(most_memory()).map(|(before, after)| after - before);
    println!("{overwrites} overwrites: {} events in {} bytes, {grown:?} KiB more", stats.versions, stats.version_bytes);
    // One event a key, and what the catalog says of the table.
    assert!(stats.versions <= 1010 && stats.version_bytes < 1 << 20, "{stats:?}");
    assert!(wanted.and(grown).is_none_or(|grown| grown < 64 << 10), "{grown:?} KiB");
    for key in 0..KEYS {
        assert_eq!(read(&snapshot, key)?, Some(key.to_be_bytes().repeat(12)));
    }
    drop(snapshot);
    assert_eq!(db.stats().versions, 0);
    Ok(())
}

#[test]
fn many_snapshots_are_consistent_and_dropped_quickly_in_any_order() -> Result<()> {
    let db = quiet().in_memory()?;
    let mut rng = fastrand::Rng::with_seed(11);
    let mut held = Vec::new();
    for turn in 0..3000u64 {
        write(&db, (0..20).map(|key| (key, (turn + key).to_be_bytes().to_vec())))?;
        held.push((db.begin_read()?, turn));
    }
    write(&db, (0..20).map(|key| (key, vec![])))?;
    db.maintain()?;
    rng.shuffle(&mut held);
    let begun = Instant::now();
    while let Some((snapshot, turn)) = held.pop() {
        let key = rng.u64(0..20);
        assert_eq!(read(&snapshot, key)?, Some((turn + key).to_be_bytes().to_vec()));
        drop(snapshot);
        // One event of each key, and of the table's entry, for each snapshot that is left.
        assert!(db.stats().versions <= 22 * held.len(), "{} for {}", db.stats().versions, held.len());
    }
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!((db.stats().versions, db.stats().version_bytes), (0, 0));
    Ok(())
}

#[test]
fn commits_are_refused_at_the_version_memory_limit_until_readers_are_dropped() -> Result<()> {
    let db = quiet().version_memory(1 << 20).in_memory()?;
    let all = |byte: u8| (0..8000u64).map(move |key| (key, vec![byte; 50]));
    write(&db, all(1))?;
    let (oldest, newer) = (db.begin_read()?, db.begin_read()?);
    write(&db, all(2))?;
    for byte in 3..6 {
        let refused = write(&db, [(0, vec![byte])]).unwrap_err();
        let message = refused.to_string();
        let Error::HeldBack { changes, bytes, limit, seconds, .. } = refused else { panic!("{refused:?}") };
        assert!(changes >= 8000 && bytes > limit && limit == 1 << 20 && seconds < 600, "{message}");
        assert!(
            message.contains("the oldest snapshot, at LSN") && message.contains("drop that read transaction"),
            "{message}"
        );
    }
    // Nothing has changed, and reading goes on, in snapshots that begin now as well.
    assert_eq!(read(&db.begin_read()?, 0)?, Some(vec![2; 50]));
    assert_eq!(read(&oldest, 7999)?, Some(vec![1; 50]));
    drop(oldest);
    assert!(matches!(write(&db, all(3)), Err(Error::HeldBack { .. })), "the other needs the same");
    drop(newer);
    write(&db, all(3))?;
    assert_eq!(read(&db.begin_read()?, 0)?, Some(vec![3; 50]));
    // Without readers nothing counts, however much a commit replaces.
    (4..9).try_for_each(|byte| write(&db, all(byte)))
}

/// Pages that are dropped and not freed yet are not counted.
#[test]
fn unreferenced_subtrees_do_not_count_as_version_memory() -> Result<()> {
    let db = quiet().page_size(512).version_memory(8 << 10).in_memory()?;
    write(&db, (0..8000).map(|key| (key, vec![1; 50])))?;
    for range in 0..200 {
        let tx = db.begin_write()?;
        tx.open_table(T)?.remove_range(range * 40..range * 40 + 39);
        tx.commit()?;
    }
    assert!(db.stats().detached * 64 > 8 << 10);
    let young = db.begin_read()?;
    write(&db, [(0, vec![2; 50])])?;
    write(&db, [(1, vec![2; 50])])?;
    drop(young);
    while db.maintain()? {}
    assert_eq!(db.stats().detached, 0);
    Ok(())
}

/// A sync that takes as long as a test says.
#[derive(Debug, Default)]
struct Slow {
    held: parking_lot::Mutex<bool>,
    go_on: parking_lot::Condvar,
}

impl duramen_sim::Hooks for Slow {
    fn before_sync(&self, _: Option<&str>) -> Result<()> {
        let mut held = self.held.lock();
        self.go_on.wait_while(&mut held, |held| *held);
        Ok(())
    }
}

/// Versions that commits replace while they wait for the device are kept for snapshots that may yet begin. Without an
/// open snapshot they hold no commit back.
#[test]
fn versions_of_commits_that_wait_for_a_sync_refuse_no_commit() -> Result<()> {
    STORES.into_iter().try_for_each(wait_for_the_device)
}

fn wait_for_the_device(store: StoreKind) -> Result<()> {
    let (volume, slow) =
        (std::sync::Arc::new(duramen_sim::FailingVolume::new(1)), std::sync::Arc::new(Slow::default()));
    let volume = duramen_sim::HookedVolume::new(volume, slow.clone());
    let db = quiet().store(store).version_memory(4096).create_on(std::sync::Arc::new(volume), "t.duramen")?;
    write(&db, (0..100).map(|key| (key, vec![1; 500])))?;
    db.checkpoint()?;
    *slow.held.lock() = true;
    let outcome = std::thread::scope(|scope| {
        let commits: Vec<_> = (0..100u64)
            .map(|key| {
                let db = &db;
                scope.spawn(move || {
                    let mut tx = db.begin_write()?;
                    tx.set_durability(Durability::Commit);
                    tx.open_table(T)?.put(key, &[2; 500][..])?;
                    tx.commit()
                })
            })
            .collect();
        let begun = Instant::now();
        while db.stats().versions < 100 && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let waiting = db.stats();
        *slow.held.lock() = false;
        slow.go_on.notify_all();
        assert!(waiting.version_bytes > 4096, "{waiting:?}");
        commits.into_iter().try_for_each(|commit| commit.join().unwrap())
    });
    outcome?;
    let snapshot = db.begin_read()?;
    (0..100).try_for_each(|key| read(&snapshot, key).map(|value| assert_eq!(value, Some(vec![2; 500]))))
}

#[test]
fn large_values_that_no_snapshot_reads_give_their_pages_back_beside_one_that_is_held() -> Result<()> {
    STORES.into_iter().try_for_each(give_large_values_back)
}

fn give_large_values_back(store: StoreKind) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.duramen");
    let db = quiet().store(store).create(&path)?;
    let large = |turn: u64, key: u64| (turn * 10 + key).to_be_bytes().repeat(5000);
    let turn = |turn: u64| write(&db, (0..3).map(|key| (key, large(turn, key))));
    turn(0)?;
    let mut held = vec![(db.begin_read()?, 0)];
    for at in 1..60 {
        turn(at)?;
        if at == 20 || at == 40 {
            held.push((db.begin_read()?, at));
        }
        if at % 7 == 0 {
            db.checkpoint()?;
        }
    }
    db.checkpoint()?;
    // Three snapshots' values, those of now, and those of the last commit: ten pages each.
    assert!(db.stats().pages < 5 * 3 * 10 + 20, "{:?}", db.stats());
    for drop_at in [1, 0, 0] {
        for (snapshot, at) in &held {
            for key in 0..3 {
                assert_eq!(read(snapshot, key)?, Some(large(*at, key)), "of turn {at}");
            }
        }
        drop(held.remove(drop_at));
        turn(100 + held.len() as u64)?;
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    turn(200)?;
    db.maintain()?;
    db.checkpoint()?;
    assert!(db.stats().pages < 3 * 10 + 20, "{:?}", db.stats());
    db.close()?;
    let db = quiet().open(&path)?;
    assert_eq!(read(&db.begin_read()?, 2)?, Some(large(200, 2)));
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

#[test]
fn ranges_removed_again_and_again_beside_a_held_snapshot_cost_memory_once() -> Result<()> {
    let db = quiet().in_memory()?;
    let fill = |byte: u8| write(&db, (0..2000u64).map(|key| (key, vec![byte; 40])));
    fill(0)?;
    let snapshot = db.begin_read()?;
    let mut bytes = Vec::new();
    for turn in 1..60 {
        let tx = db.begin_write()?;
        tx.open_table(T)?.remove_range(0..);
        tx.commit()?;
        fill(turn)?;
        db.maintain()?;
        bytes.push(db.stats().version_bytes);
    }
    // Only the notes of the catalog about each subtree that waits grow.
    assert!(bytes[58] < bytes[5] + 54 * 600, "{bytes:?}");
    assert_eq!(
        snapshot.open_table(T)?.iter().filter(|entry| entry.as_ref().unwrap().1.value() == [0; 40]).count(),
        2000
    );
    drop(snapshot);
    while db.maintain()? {}
    assert_eq!((db.stats().versions, db.stats().detached), (0, 0));
    Ok(())
}

/// Half of the snapshot's life every commit replaces one key alone.
#[test]
fn removing_the_versions_of_a_dropped_snapshot_takes_linear_time() -> Result<()> {
    let time = |keys: u64| -> Result<Duration> {
        let db = quiet().in_memory()?;
        write(&db, (0..keys).map(|key| (key, vec![1; 8])))?;
        let snapshot = db.begin_read()?;
        write(&db, (0..keys).map(|key| (key, vec![2; 8])))?;
        (0..keys / 10).try_for_each(|_| write(&db, [(7, vec![3; 8])]))?;
        let begun = Instant::now();
        drop(snapshot);
        write(&db, [(7, vec![4; 8])])?;
        while db.maintain()? {}
        assert!(db.stats().versions <= 3);
        Ok(begun.elapsed())
    };
    time(10_000)?;
    let (few, many) = (time(20_000)?, time(200_000)?);
    println!("{few:?} for 20,000 keys, {many:?} for 200,000");
    assert!(many < 40 * few.max(Duration::from_millis(20)), "{few:?} and {many:?}");
    Ok(())
}

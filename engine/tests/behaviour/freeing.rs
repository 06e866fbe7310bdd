//! Promise: pages of dropped tables and removed ranges are freed while writers and readers continue. Each step of the
//! freeing is small, however many pages there are.

use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::io::MemoryVolume;
use duramen::{Builder, Database, Durability, Error, Result, TableDef};
use duramen_sim::{HookedVolume, Hooks};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

const T: TableDef<u32, &[u8]> = TableDef::new("t");

fn options() -> Builder {
    Database::builder().page_size(512).cache(64 << 20).background(false).durability(Durability::None)
}

#[test]
fn a_transaction_that_is_the_last_handle_closes_the_database_when_it_is_dropped() -> Result<()> {
    for store in STORES {
        let volume = Arc::new(MemoryVolume::new());
        let db = options().store(store).page_size(4096).create_on(volume.clone(), "t")?;
        let tx = db.begin_write()?;
        let mut table = tx.open_table(T)?;
        (0..2000).try_for_each(|key| table.put(key, [7; 100].as_slice()))?;
        drop(table);
        tx.commit()?;
        let tx = db.begin_write()?;
        tx.drop_table("t")?;
        tx.commit()?;
        assert_eq!(db.stats().detached, 1, "the close must free the pages of the table");
        let tx = db.begin_write()?;
        drop(db);
        let (ended, end) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            drop(tx);
            ended.send(())
        });
        end.recv_timeout(Duration::from_secs(60)).expect("the close waits for the transaction's own lock");
        assert_eq!(options().open_on(volume, "t")?.stats().detached, 0, "{store:?}");
    }
    Ok(())
}

/// With `DURAMEN_RANGES=20000` it says how long so many take.
#[test]
fn ranges_removed_one_by_one_beside_a_held_snapshot_are_seen_by_it_and_freed_after_it() -> Result<()> {
    const WIDTH: u32 = 40;
    let wanted = std::env::var("DURAMEN_RANGES").ok().and_then(|count| count.parse().ok());
    let ranges: u32 = wanted.unwrap_or(1000);
    for together in [false, true] {
        let db = options().in_memory()?;
        let tx = db.begin_write()?;
        let mut table = tx.open_table(T)?;
        (0..ranges * WIDTH).try_for_each(|key| table.put(key, key.to_be_bytes().repeat(10).as_slice()))?;
        drop(table);
        tx.commit()?;
        let (snapshot, begun) = (db.begin_read()?, Instant::now());
        let remove = |from: u32, to: u32| {
            let tx = db.begin_write()?;
            let mut table = tx.open_table(T)?;
            (from..to).for_each(|range| table.remove_range(range * WIDTH..(range + 1) * WIDTH - 1));
            drop(table);
            tx.commit()
        };
        match together {
            true => remove(0, ranges)?,
            false => (0..ranges).try_for_each(|range| remove(range, range + 1))?,
        }
        let removed = begun.elapsed();
        assert!(db.stats().detached >= ranges as usize / 2, "{:?}", db.stats());
        let begun = Instant::now();
        assert_eq!(snapshot.open_table(T)?.range(..).count(), (ranges * WIDTH) as usize);
        let read = begun.elapsed();
        assert_eq!(db.begin_read()?.open_table(T)?.len(), u64::from(ranges));
        let begun = Instant::now();
        drop(snapshot);
        let dropped = begun.elapsed();
        while db.maintain()? {}
        println!(
            "{ranges} ranges, together: {together}: removed {removed:?}, read {read:?}, dropped {dropped:?}, freed {:?}",
            begun.elapsed()
        );
        let stats = db.stats();
        assert_eq!((stats.detached, stats.versions, stats.version_bytes), (0, 0, 0));
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    Ok(())
}

thread_local! {
    static SLOW: Cell<bool> = const { Cell::new(false) };
}

/// Makes the log slow for one thread, so that the writer's lock goes to another one after each of its batches.
#[derive(Debug)]
struct SlowLog;

impl Hooks for SlowLog {
    fn before_write(&self, name: &str, _: u64, _: usize) -> Result<()> {
        if name.contains("-log") && SLOW.get() {
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

/// A compaction frees only the pages that it has dropped itself, not those that others detach meanwhile. Each commit of
/// the writers detaches more pages than it frees in a batch. If it freed those too, it would end only after them.
#[test]
fn a_compaction_ends_during_continuous_writes() -> Result<()> {
    STORES.into_iter().try_for_each(compact_beside_writers)
}

fn compact_beside_writers(store: StoreKind) -> Result<()> {
    const TURNS: u32 = 500;
    let volume = HookedVolume::new(Arc::new(MemoryVolume::new()), Arc::new(SlowLog));
    let db = options().store(store).page_size(4096).create_on(Arc::new(volume), "t")?;
    let turn = |turn: u32| {
        let tx = db.begin_write()?;
        let mut table = tx.open_table(T)?;
        table.remove_range(..);
        (0..2000).try_for_each(|key| table.put(key, turn.to_be_bytes().repeat(100).as_slice()))?;
        drop(table);
        tx.commit()
    };
    turn(0)?;
    let (over, turns) = (AtomicBool::new(false), AtomicU32::new(0));
    let work = || {
        while !over.load(Ordering::Acquire) {
            match turns.fetch_add(1, Ordering::AcqRel) {
                TURNS.. => return,
                number => turn(number).unwrap(),
            }
        }
    };
    let passed = std::thread::scope(|scope| {
        // They wait for the lock, which the compaction has as long as it writes tables anew.
        let mut writers = Vec::new();
        SLOW.set(true);
        let compacted = db.compact(|_| writers.extend((0..4).map(|_| scope.spawn(work))));
        let passed = turns.load(Ordering::Acquire);
        over.store(true, Ordering::Release);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        compacted.map(|_| passed)
    })?;
    assert!(passed < TURNS, "{store:?}: it waited for the writers");
    Ok(())
}

/// A database file that can be full.
#[derive(Debug, Default)]
struct FullFile(AtomicBool);

impl Hooks for FullFile {
    fn before_write(&self, name: &str, _: u64, _: usize) -> Result<()> {
        match name == "t" && self.0.load(Ordering::SeqCst) {
            true => Err(Error::Full { path: name.into() }),
            false => Ok(()),
        }
    }
}

#[test]
fn versions_that_no_snapshot_needs_are_removed_also_while_the_device_is_full() -> Result<()> {
    // The close of a snapshot removes only a part of so many.
    const KEYS: u32 = 50_000;
    let file = Arc::new(FullFile::default());
    let volume = Arc::new(HookedVolume::new(Arc::new(MemoryVolume::new()), file.clone()));
    let db = options().page_size(4096).checkpoint_bytes(1 << 20).create_on(volume, "t")?;
    let fill = |byte| -> Result<()> {
        let tx = db.begin_write()?;
        let mut table = tx.open_table(T)?;
        (0..KEYS).try_for_each(|key| table.put(key, [byte; 100].as_slice()))?;
        drop(table);
        tx.commit()
    };
    fill(1)?;
    let snapshot = db.begin_read()?;
    fill(2)?;
    file.0.store(true, Ordering::SeqCst);
    drop(snapshot);
    assert!(db.stats().versions > 0, "nothing is left to be removed");
    let full = db.maintain();
    assert!(matches!(full, Err(Error::Full { .. })), "{full:?}");
    assert_eq!(db.stats().versions, 0);
    file.0.store(false, Ordering::SeqCst);
    while db.maintain()? {}
    db.close()
}

//! Promise: what was dropped or removed is freed beside writers and readers; however much there is, each part costs no more than
//! its share.

use duramen::{Builder, Database, Durability, Result, TableDef};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const T: TableDef<u32, &[u8]> = TableDef::new("t");

fn options() -> Builder {
    Database::builder().page_size(512).cache(64 << 20).background(false).durability(Durability::None)
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

/// What others detach while it frees what it has dropped itself is not its work.
#[test]
fn a_compaction_ends_beside_a_writer_that_never_rests() -> Result<()> {
    let db = options().checkpoint_bytes(4096).in_memory()?;
    let turn = |turn: u32| {
        let tx = db.begin_write()?;
        let mut table = tx.open_table(T)?;
        table.remove_range(..);
        (0..200).try_for_each(|key| table.put(key, turn.to_be_bytes().as_slice()))?;
        drop(table);
        tx.commit()
    };
    turn(0)?;
    let (over, begun) = (AtomicBool::new(false), Instant::now());
    std::thread::scope(|scope| {
        let writers = [1, 2].map(|from| {
            let (over, turn) = (&over, &turn);
            scope.spawn(move || {
                let mut number = from;
                while !over.load(Ordering::Acquire) && begun.elapsed() < Duration::from_secs(20) {
                    turn(number).unwrap();
                    number += 2;
                }
            })
        });
        let compacted = db.compact(|_| ());
        over.store(true, Ordering::Release);
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        compacted
    })?;
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    Ok(())
}

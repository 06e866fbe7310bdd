//! Queries in Rust: filters, large sums, and scans beside a writer. The tests of `duramen-query` compare every
//! aggregate with a plain scan.

use super::*;
use crate::TableDef;
use crate::db::Database;
use crate::page::Codec;
use crate::txn::{Latched, VisibleEntries};

#[test]
fn the_keys_alone_are_those_of_a_scan_also_at_an_older_snapshot() {
    for codec in Codec::ALL {
        let table = TableDef::<u32, i32>::new("t").codec(codec);
        let db = Database::builder().page_size(512).in_memory().unwrap();
        let change = |put: &[(u32, i32)], remove: &[u32]| {
            let tx = db.begin_write().unwrap();
            let mut entries = tx.open_table(table).unwrap();
            put.iter().for_each(|(key, value)| entries.put(*key, *value).unwrap());
            remove.iter().for_each(|key| drop(entries.remove(*key).unwrap()));
            drop(entries);
            tx.commit().unwrap();
        };
        let entries: Vec<(u32, i32)> = (0..5000u32).map(|n| (n * 7 + n % 5, 1)).collect();
        entries.chunks(500).for_each(|part| change(part, &[]));
        let before = db.begin_read().unwrap();
        change(&[(3, 3), (20_003, 4)], &[700, 21_000, 21_007]);
        for tx in [before, db.begin_read().unwrap()] {
            let table = tx.open_table(table).unwrap();
            let all: Vec<u32> = table.iter().map(|entry| entry.unwrap().0.value()).collect();
            let keys = |range: std::ops::Range<u32>| table.keys(range).map(Result::unwrap).collect::<Vec<u32>>();
            assert_eq!(table.keys(..).map(Result::unwrap).collect::<Vec<_>>(), all);
            for range in [0..1, 5..900, 699..21_008, 3000..3000, 30_000..u32::MAX] {
                let inside = all.iter().copied().filter(|key| range.contains(key)).collect::<Vec<_>>();
                assert_eq!(keys(range), inside, "{codec}");
            }
        }
    }
}

#[test]
fn sums_of_the_greatest_keys_do_not_wrap() {
    let db = Database::in_memory().unwrap();
    const KEYS: TableDef<u64, ()> = TableDef::new("t").codec(Codec::For);
    let tx = db.begin_write().unwrap();
    (0..1000).for_each(|n| tx.open_table(KEYS).unwrap().put(u64::MAX - n, ()).unwrap());
    tx.commit().unwrap();
    let table = db.begin_read().unwrap().open_table(KEYS).unwrap();
    let found = Query::of(&table).run(&[Aggregate::Sum(Column::Key)]).unwrap();
    let expected = u128::from(u64::MAX) * 1000 - 999 * 500;
    assert_eq!(found, [Outcome::Number(Number::Unsigned(expected))]);
}

#[test]
fn sums_of_128_bits_depend_neither_on_order_nor_on_threads() {
    const SIGNED: TableDef<u32, i128> = TableDef::new("signed");
    const UNSIGNED: TableDef<u32, u128> = TableDef::new("unsigned");
    let db = Database::builder().page_size(512).in_memory().unwrap();
    let tx = db.begin_write().unwrap();
    // Parts of the first sum, of any length from either end, have more than 128 bits. The whole has not.
    for n in 0..1000 {
        let number = if n < 500 { i128::MAX - n } else { -i128::MAX + n };
        tx.open_table(SIGNED).unwrap().put(n as u32, number).unwrap();
        tx.open_table(UNSIGNED).unwrap().put(n as u32, u128::MAX).unwrap();
    }
    tx.commit().unwrap();
    let tx = db.begin_read().unwrap();
    let expected = (500..1000i128).sum::<i128>() - (0..500i128).sum::<i128>();
    for threads in [1, 4] {
        let table = tx.open_table(SIGNED).unwrap();
        let query = Query::of(&table).threads(threads);
        let sum = Outcome::Number(Number::Signed(expected));
        assert_eq!(query.run(&[Aggregate::Sum(Column::Value)]).unwrap(), [sum]);
        let table = tx.open_table(UNSIGNED).unwrap();
        let average = Outcome::Number(Number::Float(u128::MAX as f64));
        assert_eq!(Query::of(&table).threads(threads).run(&[Aggregate::Average(Column::Value)]).unwrap(), [average]);
        let sum = Query::of(&table).threads(threads).run(&[Aggregate::Sum(Column::Value)]);
        assert!(matches!(sum, Err(Error::SumTooLarge { .. })));
    }
}

#[test]
fn filters_see_large_values_whole_and_may_read_the_table_themselves() {
    const SCANS: TableDef<u32, &[u8]> = TableDef::new("t");
    let db = Database::in_memory().unwrap();
    let put = |key: u32, len: usize| {
        let tx = db.begin_write().unwrap();
        tx.open_table(SCANS).unwrap().put(key, vec![key as u8; len].as_slice()).unwrap();
        tx.commit().unwrap();
    };
    (0..20).for_each(|key| put(key, if key % 2 == 0 { 100_000 } else { 100 }));
    let before = db.begin_read().unwrap();
    put(0, 7);
    for (tx, large) in [(before, 10), (db.begin_read().unwrap(), 9)] {
        let scans = tx.open_table(SCANS).unwrap();
        let found = Query::of(&scans)
            .filter(|key, scan| {
                let read = scans.get(key).unwrap().unwrap();
                scan.len() > 10_000 && read.value() == scan && scan.iter().all(|byte| *byte == key as u8)
            })
            .run(&[Aggregate::Count])
            .unwrap();
        assert_eq!(found, [Outcome::Number(Number::Unsigned(large))]);
    }
}

#[test]
fn a_filter_that_reads_does_not_stop_a_writer_that_splits_its_leaf() {
    const T: TableDef<u32, u32> = TableDef::new("t");
    let db = Database::builder().page_size(512).in_memory().unwrap();
    let put = |keys: std::ops::Range<u32>| {
        let tx = db.begin_write().unwrap();
        keys.for_each(|key| tx.open_table(T).unwrap().put(key, key).unwrap());
        tx.commit().unwrap();
    };
    put(0..30);
    let table = db.begin_read().unwrap().open_table(T).unwrap();
    // The leaf is split while the filter is at work on it: were it latched, neither could go on.
    let split = std::sync::Once::new();
    let count = Query::of(&table)
        .threads(1)
        .filter(|key, _| {
            split.call_once(|| put(30..2000));
            table.get(key).unwrap().is_some()
        })
        .run(&[Aggregate::Count]);
    assert_eq!(count.unwrap(), [Outcome::Number(Number::Unsigned(30))]);
}

/// The leaf to the right of the one that is looked at is merged away, and its page let go, before it is asked for.
#[test]
fn a_scan_continues_when_the_next_leaf_is_freed() {
    const KEYS: TableDef<u64, ()> = TableDef::new("keys");
    const COUNT: u64 = 2000;
    for stop in (100..1000).step_by(100) {
        let db = Database::builder().page_size(256).background(false).in_memory().unwrap();
        let tx = db.begin_write().unwrap();
        (0..COUNT).for_each(|key| tx.open_table(KEYS).unwrap().put(key << 20, ()).unwrap());
        tx.commit().unwrap();
        let table = db.begin_read().unwrap().open_table(KEYS).unwrap();
        let (engine, tree, snapshot) = table.untyped().source();
        let (mut seen, mut removed) = (0, false);
        let mut visit = |part: VisibleEntries<'_>| {
            let VisibleEntries::Leaf(page, slots) = part else {
                seen += 1;
                return Ok(());
            };
            seen += slots.len() as u64;
            let mut upper = Vec::new();
            if seen > stop && !removed && page.upper_fence_into(&mut upper) {
                removed = true;
                let tx = db.begin_write()?;
                tx.open_table(KEYS)?.untyped().remove_range(..upper.as_slice());
                tx.commit()?;
            }
            Ok(())
        };
        engine.leaves(tree, snapshot, &KeyRange::default(), Latched::Yes, &mut visit).unwrap();
        assert_eq!((seen, removed), (COUNT, true));
    }
}

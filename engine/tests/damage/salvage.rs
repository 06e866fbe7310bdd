//! Promise: a damaged page costs its key range, and all other entries can be saved. The tests flip a bit anywhere in
//! the file: the saved entries and the ranges that are reported as lost make up the whole table.

use crate::workload::parallel;
use crate::workload::stores::STORES;
use duramen::db::types::{KeyLayout, Separators};
use duramen::db::{Lost, ReadOnlyUntypedTable, Salvaged, StoreKind};
use duramen::{Database, Error, Result, TableOptions};
use std::fs;
use std::path::Path;

const ENTRIES: usize = 1500;
const NAME: &str = "t.duramen";

fn options() -> duramen::Builder {
    Database::builder().page_size(4096).cache(0).background(false)
}

/// Long enough for three levels of pages.
fn key(n: usize) -> Vec<u8> {
    format!("{n:06}{:x<170}", "").into_bytes()
}

/// Of some keys too long for a leaf.
fn value(n: usize) -> Vec<u8> {
    format!("the value of {n:06}, ").repeat(if n % 150 == 7 { 1000 } else { 2 }).into_bytes()
}

fn build(store: StoreKind, path: &Path, keys: KeyLayout) -> Result<()> {
    let db = options().store(store).create(path)?;
    let tx = db.begin_write()?;
    let options = TableOptions { keys: Some(keys), separators: Some(Separators::Full), ..TableOptions::default() };
    {
        let mut table = tx.create_untyped("t", "bytes", "bytes", options)?;
        (0..ENTRIES).try_for_each(|n| table.put(&key(n), &value(n)))?;
    }
    tx.commit()?;
    assert!(db.table_stats("t")?.levels.len() >= 3);
    db.close()
}

/// The numbers of the readable entries, and the lost ranges.
fn salvage(table: &ReadOnlyUntypedTable, from: usize, to: usize) -> Result<(Vec<usize>, Vec<Lost>)> {
    let (mut left, mut lost) = (Vec::new(), Vec::new());
    let (lower, upper) = (key(from), key(to));
    let mut salvage = table.salvage(lower.as_slice()..upper.as_slice());
    let read = |key: &[u8], value: &[u8]| (key.to_vec(), value.to_vec());
    while let Some(found) = salvage.next_with(read)? {
        match found {
            Salvaged::Entry((found, its_value)) => {
                let n = std::str::from_utf8(&found[..6]).unwrap().parse().unwrap();
                assert!(found == key(n) && its_value == value(n), "{n}");
                left.push(n);
            }
            Salvaged::Lost(range) => lost.push(range),
        }
    }
    Ok((left, lost))
}

/// Holds that `from..to` is what is left and what is lost, in order and nothing twice; gives how many keys are lost.
fn judge(table: &ReadOnlyUntypedTable, from: usize, to: usize, what: &str) -> Result<usize> {
    let (left, lost) = salvage(table, from, to)?;
    assert!(left.is_sorted_by(|a, b| a < b), "{what}: out of order");
    for range in &lost {
        assert!(range.upper.as_ref().is_none_or(|upper| *upper > range.lower), "{what}: {range:?}");
        assert!(matches!(range.cause, Error::Corrupt { .. }), "{what}: {range:?}");
    }
    assert!(lost.is_sorted_by(|a, b| a.upper.as_ref().is_some_and(|end| *end <= b.lower)), "{what}: {lost:?}");
    let is_lost = |n: usize| {
        let key = key(n);
        lost.iter().any(|range| range.lower <= key && range.upper.as_ref().is_none_or(|upper| key < *upper))
    };
    for n in from..to {
        assert_ne!(left.binary_search(&n).is_ok(), is_lost(n), "{what}: {n} of {lost:?}");
    }
    Ok(to - from - left.len())
}

/// Flips a bit of a table's file, in one place after the other, and says of each how many keys are lost by it, and what
/// counting says.
fn flip(store: StoreKind, keys: KeyLayout, mut look: impl FnMut(&str, usize, Result<u64>)) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    build(store, &path, keys)?;
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(1009).filter(|at| whole[*at] != 0) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&path, bytes).unwrap();
        let tx = match options().open_read_only(&path) {
            Ok(db) => db.begin_read()?,
            // The positions of pages are damaged.
            Err(Error::CorruptMeta { .. }) => continue,
            Err(other) => panic!("{store:?}, byte {at}: {other}"),
        };
        let (tables, errors) = tx.salvage_tables()?;
        if tables.is_empty() {
            assert!(matches!(errors[..], [Error::Corrupt { .. }]), "{store:?}, byte {at}: {errors:?}");
            continue;
        }
        let table = tx.open_untyped("t")?;
        let what = format!("{store:?}, byte {at}");
        let lost = judge(&table, 0, ENTRIES, &what)?;
        judge(&table, 100, 900, &what)?;
        look(&what, lost, table.count(..));
    }
    Ok(())
}

#[test]
fn salvage_after_any_bit_flip_reports_the_loss_and_reads_the_rest() {
    parallel::each(STORES, |store| flip_bits(store).unwrap());
}

fn flip_bits(store: StoreKind) -> Result<()> {
    let (mut sound, mut keys, mut leaves, mut inner) = (0, 0, 0, 0);
    flip(store, KeyLayout::Plain, |what, lost, counted| {
        match lost {
            0 => sound += 1,
            1 => keys += 1,
            2..=40 => leaves += 1,
            _ => inner += 1,
        }
        // Runs of large values are not read for counting.
        assert_eq!(counted.is_err(), lost > 1, "{what}: {counted:?}, {lost} lost");
        assert!(counted.is_err() || counted.is_ok_and(|counted| counted == ENTRIES as u64));
    })?;
    assert!(keys > 3 && leaves > 20 && inner > 0, "{store:?}: {sound} sound, {keys} keys, {leaves} leaves, {inner}");
    Ok(())
}

#[test]
fn a_page_of_the_key_heap_costs_its_keys_alone() {
    parallel::each(STORES, |store| flip_bits_of_a_key_heap(store).unwrap());
}

fn flip_bits_of_a_key_heap(store: StoreKind) -> Result<()> {
    let (mut heap, mut inner) = (0, 0);
    flip(store, KeyLayout::PkbHeap, |_, lost, _| {
        // Some twenty keys are in a page of the heap, hundreds of parts in a leaf.
        heap += usize::from((2..=24).contains(&lost));
        inner += usize::from(lost > 24);
    })?;
    assert!(heap > 40 && inner > 0, "{store:?}: {heap} heap pages, {inner} leaves and inner pages");
    Ok(())
}

#[test]
fn only_operations_that_need_a_damaged_heap_page_fail() -> Result<()> {
    STORES.into_iter().try_for_each(damage_a_key_heap)
}

fn damage_a_key_heap(store: StoreKind) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    build(store, &path, KeyLayout::PkbHeap)?;
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(170).position(|window| window == &key(750)[..170]).expect("a key of the heap");
    bytes[at] ^= 1;
    fs::write(&path, bytes).unwrap();
    let db = options().open(&path)?;
    let report = db.verify(|_| ())?;
    assert!(report.findings.iter().any(|finding| finding.lost) && report.findings.len() < 9, "{:?}", report.findings);
    let put = |n: usize| {
        let tx = db.begin_write()?;
        tx.open_untyped("t")?.put(&[&key(n)[..], b"+"].concat(), b"new")?;
        tx.commit()
    };
    assert!(matches!(put(750), Err(Error::Corrupt { .. })));
    put(10)?;
    assert!(matches!(put(751), Err(Error::Corrupt { .. })), "and again");
    put(1400)?;
    let table = db.begin_read()?.open_untyped("t")?;
    assert_eq!(table.get(&[&key(1400)[..], b"+"].concat())?.as_deref(), Some(&b"new"[..]));
    assert!(table.get(&key(750)).is_err());
    Ok(())
}

#[test]
fn salvage_of_an_undamaged_table_returns_each_range_whole() -> Result<()> {
    STORES.into_iter().try_for_each(salvage_ranges)
}

fn salvage_ranges(store: StoreKind) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    build(store, &path, KeyLayout::Plain)?;
    let db = options().open_read_only(&path)?;
    let table = db.begin_read()?.open_untyped("t")?;
    for (from, to) in [(0, ENTRIES), (17, 18), (700, 700), (9, 3), (1400, 2000)] {
        let (left, lost) = salvage(&table, from, to)?;
        assert!(lost.is_empty() && left.into_iter().eq(from..to.min(ENTRIES)), "{store:?}, {from}..{to}");
    }
    Ok(())
}

//! Promise: after a power cut, the death of the process or a device error at any moment of a compaction that adds or
//! drops dictionaries, every committed entry can be read, and the next process goes on.

#![cfg(feature = "zstd")]

use crate::workload::documents::{DOCUMENTS, document, put};
use crate::workload::stores::STORES;
use duramen::db::{Compression, CompressionPlan, StoreKind, Strategy};
use duramen::{Builder, Database, Error, Result};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, Trigger};
use std::sync::Arc;

const NAME: &str = "t.duramen";
const KEYS: u64 = 3000;
/// The kind of all documents is 0 at the beginning, and 1 after this mark.
const OVERWRITTEN: u64 = 2;

fn options() -> Builder {
    // Pages are evicted all the time, and written with the dictionary.
    Database::builder().cache(400 << 10).background(false)
}

fn open(volume: &FailingVolume) -> Result<Database> {
    options().open_on(Arc::new(volume.clone()), NAME)
}

fn plan(dictionary: bool) -> CompressionPlan {
    CompressionPlan::new(Strategy::All, Compression::Zstd(3)).dictionary(dictionary)
}

/// A device with a database that is durable, as a killed process leaves it.
fn device(store: StoreKind) -> Result<FailingVolume> {
    let volume = FailingVolume::new(1);
    let page_size = if store == StoreKind::Table { 4096 } else { 16384 };
    let db = options().store(store).page_size(page_size).create_on(Arc::new(volume.clone()), NAME)?;
    put(&db, DOCUMENTS, 0..KEYS, 0)?;
    db.checkpoint()?;
    // A power cut makes all durable and forgets the history.
    Ok(volume.crash(Cut { event: volume.events(), choice: CutChoice::KeepAll }))
}

/// Adds a dictionary, replaces it by another one, and drops that.
fn work(volume: &FailingVolume) -> Result<()> {
    let db = open(volume)?;
    db.compact(|_| ())?;
    let first = db.dictionaries()?;
    assert!(first.len() == 1 && first[0].is_used, "{first:?}");
    volume.mark(1);
    put(&db, DOCUMENTS, 0..KEYS, 1)?;
    volume.mark(OVERWRITTEN);
    db.compact(|_| ())?;
    let second = db.dictionaries()?;
    assert!(second.len() == 1 && second[0].number > first[0].number, "{second:?}");
    volume.mark(3);
    // Redo has images that name the dictionary.
    put(&db, DOCUMENTS, (0..KEYS).step_by(9), 1)?;
    volume.mark(4);
    db.compact_with(&plan(false), |_| ())?;
    assert_eq!(db.dictionaries()?, []);
    volume.mark(5);
    db.close()
}

/// Opens the database, and reads all entries. Returns their kind.
fn look(volume: &FailingVolume, what: &str) -> u64 {
    let db = open(volume).unwrap_or_else(|error| panic!("{what}: {error}"));
    let kind = kind(&db, what);
    db.close().unwrap_or_else(|error| panic!("{what}: {error}"));
    kind
}

fn kind(db: &Database, what: &str) -> u64 {
    assert_eq!(db.verify(|_| ()).unwrap().findings, [], "{what}");
    let table = db.begin_read().unwrap().open_table(DOCUMENTS).unwrap();
    let first = table.get(0).unwrap().unwrap().value().to_owned();
    let kind = u64::from(first != document(0, 0));
    assert_eq!(table.len(), KEYS, "{what}");
    for entry in table.range(..) {
        let (key, value) = entry.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(value.value(), document(key.value(), kind), "{what}");
    }
    kind
}

/// Goes on with the database: writes, compacts, and so adds and drops dictionaries again.
fn go_on(volume: &FailingVolume, what: &str) {
    let fail = |error: Error| -> ! { panic!("{what}: later: {error}") };
    let db = open(volume).unwrap_or_else(|error| fail(error));
    put(&db, DOCUMENTS, 0..KEYS, 1)
        .and_then(|()| db.compact_with(&plan(true), |_| ()))
        .unwrap_or_else(|error| fail(error));
    let all = db.dictionaries().unwrap_or_else(|error| fail(error));
    assert!(all.len() == 1 && all[0].is_used, "{what}: later: {all:?}");
    assert_eq!(kind(&db, what), 1);
    db.close().unwrap_or_else(|error| fail(error));
    assert_eq!(look(volume, what), 1);
}

/// About so many of them, evenly.
fn some<T>(all: Vec<T>, count: usize) -> impl Iterator<Item = T> {
    let step = (all.len() / count).max(1);
    all.into_iter().step_by(step)
}

#[test]
fn a_cut_anywhere_leaves_every_entry_readable() -> Result<()> {
    for store in STORES {
        let volume = device(store)?;
        work(&volume)?;
        for (number, cut) in (0..).zip(some(volume.cuts(2), 50)) {
            let what = format!("{store:?}, {cut:?}: {}", volume.describe(cut.event));
            let mark = volume.last_mark_before(cut.event).unwrap_or(0);
            let left = volume.crash(cut);
            let kind = look(&left, &what);
            assert!(kind == 1 || mark < OVERWRITTEN, "{what}: the commit is lost");
            if number % 10 == 0 {
                go_on(&left, &what);
            }
        }
    }
    Ok(())
}

#[test]
fn recovery_after_a_kill_and_a_later_power_cut_keeps_dictionaries() -> Result<()> {
    for store in STORES {
        let volume = device(store)?;
        work(&volume)?;
        for death in some(volume.deaths(1), 6) {
            let what = format!("{store:?}, {death:?}: {}", volume.describe(death.event));
            let next = volume.outlive(death);
            let born = next.events();
            go_on(&next, &what);
            let cuts: Vec<Cut> = next.cuts(1).into_iter().filter(|cut| cut.event > born).collect();
            for cut in some(cuts, 6) {
                look(&next.crash(cut), &format!("{what}; then {cut:?}: {}", next.describe(cut.event)));
            }
        }
    }
    Ok(())
}

#[test]
fn a_device_that_fails_anywhere_loses_no_entry() -> Result<()> {
    let faults = [Fault::FailRead, Fault::FailWrite, Fault::FailSync];
    for (store, fault) in STORES.into_iter().flat_map(|store| faults.map(|fault| (store, fault))) {
        let mut refused = 0;
        for number in 0u64.. {
            let calls = number * number * 60 + number;
            let volume = device(store)?;
            volume.inject(fault, Trigger::once().after(calls));
            let what = format!("{store:?}, {fault:?} after {calls}");
            let worked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&volume)));
            let struck = volume.struck(fault) > 0;
            volume.inject(fault, Trigger::never());
            refused += u64::from(!matches!(worked, Ok(Ok(()))));
            for (turn, choice) in (0..).zip([CutChoice::KeepAll, CutChoice::DropUnsynced]) {
                let cut = volume.crash(Cut { event: volume.events(), choice });
                look(&cut, &what);
                if turn == number % 2 {
                    go_on(&cut, &what);
                }
            }
            if !struck {
                break;
            }
        }
        assert!(refused > 1, "{store:?}, {fault:?}: {refused}");
    }
    Ok(())
}

/// The device fails for a while, and works again before the recovery ends. Four reads in a row are all attempts to read
/// the two copies of a dictionary.
#[test]
fn reads_that_fail_while_a_database_is_opened_lose_no_commit() -> Result<()> {
    for (store, reads) in STORES.into_iter().flat_map(|store| [2, 4, 9].map(|reads| (store, reads))) {
        let volume = device(store)?;
        let db = open(&volume)?;
        db.compact(|_| ())?;
        db.checkpoint()?;
        // The pages need the dictionary, and only the log has the commits.
        put(&db, DOCUMENTS, 0..KEYS, 1)?;
        let killed = Cut { event: volume.events(), choice: CutChoice::KeepAll };
        let mut refused = 0;
        for number in 0u64.. {
            let calls = if number < 30 { number } else { number * number };
            let what = format!("{store:?}, {reads} reads fail after {calls}");
            let next = volume.crash(killed);
            next.inject(Fault::FailRead, Trigger::times(reads).after(calls));
            refused += u64::from(open(&next).and_then(Database::close).is_err());
            let struck = next.struck(Fault::FailRead) > 0;
            next.inject(Fault::FailRead, Trigger::never());
            assert_eq!(look(&next, &what), 1, "{what}: the commits are lost");
            if !struck {
                break;
            }
        }
        assert!(refused > 1, "{store:?}: {refused}");
    }
    Ok(())
}

//! Promise: after a power cut, the death of the process or a device error at any moment of a conversion, the file is
//! the complete old database or the complete new one. The next conversion removes unfinished files.

use crate::workload::kinds::{Entries, contents, kinds};
use crate::workload::stores::STORES;
use duramen::db::{Compression, CompressionPlan, StoreKind, Strategy};
use duramen::io::Volume;
use duramen::{Builder, Database, Error, Result, TableDef, TableInfo};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, Trigger};
use std::sync::Arc;

const NAME: &str = "t.duramen";
const LATER: TableDef<u32, u32> = TableDef::new("later");

type Contents = Vec<(TableInfo, Entries)>;

fn options() -> Builder {
    Database::builder().cache(1 << 20).background(false)
}

fn convert(volume: &FailingVolume, store: StoreKind) -> Result<()> {
    options().store(store).convert_on(Arc::new(volume.clone()), NAME, |_| ()).map(drop)
}

/// A device with one database, closed or as a killed process leaves it, of which all is durable; and its contents.
fn device(store: StoreKind, closed: bool) -> Result<(FailingVolume, Contents)> {
    let mut rng = fastrand::Rng::with_seed(2);
    let volume = FailingVolume::new(1);
    let db = options().page_size(8192).store(store).create_on(Arc::new(volume.clone()), NAME)?;
    for kind in kinds(6, &mut rng).iter().step_by(5) {
        kind.put(&db, &mut rng)?;
    }
    db.compact_with(&CompressionPlan::new(Strategy::All, Compression::Lz4), |_| ())?;
    let contents = contents(&db)?;
    if closed {
        db.close()?;
    }
    // A power cut makes all durable and forgets the history.
    Ok((volume.crash(Cut { event: volume.events(), choice: CutChoice::KeepAll }), contents))
}

/// Every pair of stores, from a database that was closed and one that was not.
fn cases() -> impl Iterator<Item = (StoreKind, StoreKind, bool)> {
    let goals = |store| STORES.into_iter().map(move |goal| (store, goal));
    STORES.into_iter().flat_map(goals).flat_map(|(store, goal)| [(store, goal, true), (store, goal, false)])
}

/// Opens the database, which must have everything, and returns its store.
fn look(volume: &FailingVolume, expected: &Contents, what: &str) -> StoreKind {
    let db = options().open_on(Arc::new(volume.clone()), NAME).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(contents(&db).unwrap_or_else(|error| panic!("{what}: {error}")) == *expected, "{what}");
    assert_eq!(db.verify(|_| ()).unwrap().findings, [], "{what}");
    let store = db.stats().store.unwrap();
    db.close().unwrap_or_else(|error| panic!("{what}: {error}"));
    store
}

/// Looks at what a crash has left, then converts it, after which nothing else is in the folder.
fn look_and_convert(volume: &FailingVolume, expected: &Contents, next: StoreKind, what: &str) -> StoreKind {
    let store = look(volume, expected, what);
    convert(volume, next).unwrap_or_else(|error| panic!("{what}: the next conversion: {error}"));
    assert_eq!(volume.list("").unwrap(), [NAME], "{what}");
    assert_eq!(look(volume, expected, what), next, "{what}");
    store
}

#[test]
fn a_conversion_that_is_cut_anywhere_leaves_the_old_database_or_the_new_one() -> Result<()> {
    for (store, goal, closed) in cases() {
        let (volume, expected) = device(store, closed)?;
        convert(&volume, goal)?;
        volume.mark(1);
        let (mut old, mut new) = (0, 0);
        for cut in volume.cuts(2) {
            let what = format!("{store:?} to {goal:?}, closed: {closed}, {cut:?}: {}", volume.describe(cut.event));
            let returned = volume.last_mark_before(cut.event).is_some();
            let found = look_and_convert(&volume.crash(cut), &expected, STORES[cut.event % 2], &what);
            assert!(found == goal || (found == store && !returned), "{what}: {found:?}");
            if found == goal { new += 1 } else { old += 1 }
        }
        assert!(store == goal || (old > 100 && new > 5), "{store:?} to {goal:?}: {old} and {new}");
    }
    Ok(())
}

#[test]
fn recovery_after_a_killed_conversion_and_a_later_power_cut_loses_nothing() -> Result<()> {
    for (store, goal, closed) in cases() {
        let (volume, expected) = device(store, closed)?;
        convert(&volume, goal)?;
        let mut rng = fastrand::Rng::with_seed(u64::from(closed));
        for death in volume.deaths(1) {
            let what = format!("{store:?} to {goal:?}, closed: {closed}, {death:?}: {}", volume.describe(death.event));
            let fail = |error: Error| -> ! { panic!("{what}: {error}") };
            let next = volume.outlive(death);
            let born = next.events();
            let again = rng.bool();
            if again {
                look_and_convert(&next, &expected, STORES[death.event % 2], &what);
            } else {
                let db = options().open_on(Arc::new(next.clone()), NAME).unwrap_or_else(|error| fail(error));
                let tx = db.begin_write()?;
                tx.open_table(LATER)?.put(&7, &7)?;
                tx.commit()?;
                next.mark(1);
                drop(db);
            }
            // All that the next process has read and committed stays.
            let mut cuts: Vec<Cut> = next.cuts(1).into_iter().filter(|cut| cut.event > born).collect();
            rng.shuffle(&mut cuts);
            for cut in cuts.into_iter().take(3) {
                let what = format!("{what}; then {cut:?}: {}", next.describe(cut.event));
                let left = next.crash(cut);
                let committed = next.last_mark_before(cut.event).is_some();
                let db = options().open_on(Arc::new(left), NAME).unwrap_or_else(|error| panic!("{what}: {error}"));
                let mut found = contents(&db)?;
                let later = found.iter().position(|(info, _)| info.name == LATER.name());
                assert!(!committed || later.is_some(), "{what}: the later commit is lost");
                later.map(|at| found.remove(at));
                assert!(found == expected, "{what}");
            }
        }
    }
    Ok(())
}

#[test]
fn a_device_that_fails_anywhere_leaves_the_old_database_or_the_new_one() -> Result<()> {
    let faults =
        [Fault::FailRead, Fault::FailWrite, Fault::FailLate, Fault::FailSync, Fault::Refuse, Fault::RefuseLate];
    for ((store, goal, closed), fault) in cases().flat_map(|case| faults.map(|fault| (case, fault))) {
        let mut refused = 0;
        for calls in 0.. {
            let (volume, expected) = device(store, closed)?;
            volume.inject(fault, Trigger::once().after(calls));
            let what = format!("{store:?} to {goal:?}, closed: {closed}, {fault:?} after {calls}");
            let converted = convert(&volume, goal);
            let struck = volume.struck(fault) > 0;
            volume.inject(fault, Trigger::never());
            refused += u64::from(converted.is_err());
            for choice in [CutChoice::KeepAll, CutChoice::DropUnsynced] {
                let cut = volume.crash(Cut { event: volume.events(), choice });
                let found = look(&cut, &expected, &what);
                assert!(found == goal || (found == store && converted.is_err()), "{what}: {found:?}");
            }
            look_and_convert(&volume, &expected, goal, &what);
            if !struck {
                converted.unwrap_or_else(|error| panic!("{what}: {error}"));
                break;
            }
        }
        assert!(refused > 3, "{store:?} to {goal:?}, {fault:?}: {refused}");
    }
    Ok(())
}

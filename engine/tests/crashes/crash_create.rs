//! Power cuts while a database is created: in a new file, in an empty file, and in a file that gets its name when it is
//! complete.

use crate::workload::numbers::{TABLE, keys};
use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::io::{OpenMode, Volume};
use duramen::{Builder, Database, Error, Result};
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::sync::Arc;

const NAME: &str = "t.duramen";

fn options() -> Builder {
    Database::builder().cache(1 << 20).page_size(4096).background(false)
}

fn put(db: &Database, key: u64) -> Result<()> {
    let tx = db.begin_write()?;
    tx.open_table(TABLE)?.put(&key, &key)?;
    tx.commit()
}

/// A folder, in which an empty file may wait.
fn folder(empty: bool) -> Result<FailingVolume> {
    let volume = FailingVolume::new(1);
    if empty {
        volume.open(NAME, OpenMode::CreateNew)?;
    }
    // A power cut makes all durable and forgets the history.
    Ok(volume.crash(Cut { event: volume.events(), choice: CutChoice::KeepAll }))
}

/// A new and an empty file for each store.
fn cases() -> impl Iterator<Item = (StoreKind, bool)> {
    STORES.into_iter().flat_map(|store| [(store, false), (store, true)])
}

/// Cuts the power everywhere and looks at what is left: as many keys as the last mark says, or more.
fn cut(store: StoreKind, volume: &FailingVolume, empty: bool, may_be_absent: impl Fn(u64) -> bool) -> Result<()> {
    for cut in volume.cuts(4) {
        let what = format!("{store:?}, {cut:?}: {}", volume.describe(cut.event));
        let state = volume.crash(cut);
        let known = volume.last_mark_before(cut.event).unwrap_or(0);
        match options().open_on(Arc::new(state.clone()), NAME) {
            Ok(db) => {
                assert!(keys(&db)? >= known.saturating_sub(1), "{what}");
                db.close()?;
            }
            Err(Error::NotFound { .. }) => assert!(!empty && may_be_absent(known), "{what}"),
            Err(Error::NotADatabase { .. }) => {
                assert!(empty && may_be_absent(known), "{what}");
                assert_eq!(state.open(NAME, OpenMode::Read)?.size()?, 0, "{what}");
            }
            Err(error) => panic!("{what}: {error}"),
        }
        let db = options()
            .store(store)
            .open_or_create_on(Arc::new(state.clone()), NAME)
            .unwrap_or_else(|error| panic!("{what}: {error}"));
        put(&db, 100)?;
        db.close()?;
        // A database whose creation was cut off is gone when the next one is created.
        if may_be_absent(known) && state.list("")? != [NAME] {
            state.remove(NAME)?;
            options().store(store).create_on(Arc::new(state.clone()), NAME)?.close()?;
            assert_eq!(state.list("")?, [NAME], "{what}");
        }
    }
    Ok(())
}

#[test]
fn a_creation_that_is_cut_anywhere_leaves_the_former_file_or_a_whole_database() -> Result<()> {
    for (store, empty) in cases() {
        let volume = folder(empty)?;
        let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
        volume.mark(1);
        for key in 0..3 {
            put(&db, key)?;
            volume.mark(key + 2);
            // Goes on in another segment of the log.
            db.checkpoint()?;
        }
        db.close()?;
        cut(store, &volume, empty, |known| known == 0)?;
    }
    Ok(())
}

#[test]
fn a_database_that_is_cut_before_it_is_finished_is_not_there() -> Result<()> {
    for (store, empty) in cases() {
        let volume = folder(empty)?;
        let new = options().store(store).begin_create_on(Arc::new(volume.clone()), NAME)?;
        for key in 0..3 {
            put(new.database(), key)?;
        }
        assert!(volume.list(NAME)?.len() > 1);
        new.finish()?;
        // All that was committed comes with the name.
        volume.mark(4);
        cut(store, &volume, empty, |known| known == 0)?;
        let left = options().open_on(Arc::new(volume), NAME)?;
        assert_eq!(keys(&left)?, 3);
    }
    Ok(())
}

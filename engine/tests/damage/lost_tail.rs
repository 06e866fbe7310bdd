//! Promise: if the durable end of the log is lost, the commits in it are missing as a whole, or a read returns an error
//! of damage. This holds for the process that recovers and for all later ones, even if pages with changes of the lost
//! commits were written.

use crate::workload::files;
use duramen::db::{DeltaBlocks, StoreKind};
use duramen::io::{MemoryVolume, OpenMode, Volume};
use duramen::{Builder, Database, Durability, Error, Result, TableDef};
use std::sync::Arc;

const NAME: &str = "t.duramen";
const TABLE: TableDef<u32, &[u8]> = TableDef::new("t");
const OTHER: TableDef<u32, &[u8]> = TableDef::new("other");
const KEYS: u32 = 1500;
/// The maximum number of entries that may be refused: those of about two leaves.
const MAX_UNREAD: u32 = KEYS / 20;

fn options() -> Builder {
    Database::builder().page_size(4096).cache(0).checkpoint_bytes(1 << 40).background(false)
}

fn put(
    db: &Database,
    table: TableDef<u32, &'static [u8]>,
    keys: impl IntoIterator<Item = u32>,
    value: u8,
) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Commit);
    let mut open = tx.open_table(table)?;
    keys.into_iter().try_for_each(|key| open.put(key, &[value; 100][..]))?;
    drop(open);
    tx.commit()
}

/// The last segment of the log, and its content. After the end of the log are zeros or what an earlier segment has
/// left.
fn end_of_log(volume: &MemoryVolume) -> Result<(String, Vec<u8>)> {
    let name = volume.list(&format!("{NAME}-log."))?.pop().expect("a log");
    let bytes = files::bytes_of(volume, &name)?;
    Ok((name, bytes))
}

/// A copy of the files, as a process finds them after the death of the one before.
fn copy(volume: &MemoryVolume) -> Result<Arc<MemoryVolume>> {
    let copied = MemoryVolume::new();
    files::copy(volume, &copied, NAME)?;
    Ok(Arc::new(copied))
}

/// Reads all entries. Each is that of the commit before the lost one, or reading it is an error. Returns the number of
/// errors.
fn look(db: &Database, what: &str) -> Result<u32> {
    let tx = db.begin_read()?;
    let table = tx.open_table(TABLE)?;
    let mut unread = 0;
    for key in 0..KEYS {
        match table.get(key) {
            Ok(value) => assert_eq!(value.expect(what).value(), [1; 100], "{what}, key {key}"),
            Err(Error::Corrupt { .. }) => unread += 1,
            Err(other) => panic!("{what}, key {key}: {other}"),
        }
    }
    Ok(unread)
}

/// The work of the recovering process after the recovery.
#[derive(Clone, Copy, Debug)]
enum Recovery {
    Nothing,
    /// It looks at all entries.
    Look,
    /// It commits as much again as the log has lost.
    Commit,
}

#[test]
fn commits_that_the_log_has_lost_do_not_come_back_in_part() -> Result<()> {
    let chain = DeltaBlocks { threshold: 2048, segment: 64, blocks: 4 };
    let shadow = [DeltaBlocks::OFF, DeltaBlocks::default(), chain].map(|delta| (StoreKind::Shadow, delta));
    for (store, delta) in shadow.into_iter().chain([(StoreKind::Table, DeltaBlocks::OFF)]) {
        for recovery in [Recovery::Nothing, Recovery::Look, Recovery::Commit] {
            // Whole pages, and small parts of pages.
            let first = lose_tail(store, delta, recovery, &[1])?;
            let second = lose_tail(store, delta, recovery, &[15])?;
            // Small parts of pages that were written whole before.
            let both = lose_tail(store, delta, recovery, &[1, 15])?;
            let unread = [first, second, both];
            let what = format!("{store:?}, {delta}, {recovery:?}: {unread:?} entries cannot be read");
            assert!(unread.iter().all(|entries| *entries <= MAX_UNREAD), "{what}");
        }
    }
    Ok(())
}

/// Loses a commit for each of `steps`, which changes one entry in so many. Returns the most entries that a process
/// could not read.
fn lose_tail(store: StoreKind, delta: DeltaBlocks, recovery: Recovery, steps: &[usize]) -> Result<u32> {
    let volume = Arc::new(MemoryVolume::new());
    let db = options().store(store).delta(delta).create_on(volume.clone(), NAME)?;
    put(&db, TABLE, 0..KEYS, 7)?;
    put(&db, OTHER, 0..KEYS, 1)?;
    db.checkpoint()?;
    if delta.blocks > 0 {
        // Durable deltas, which are more than one in a chain.
        for part in 0..2 {
            put(&db, TABLE, (part..KEYS).step_by(2), 7)?;
            db.checkpoint()?;
            put(&db, TABLE, (0..KEYS).skip(part as usize).step_by(2), 1)?;
            db.checkpoint()?;
        }
    } else {
        put(&db, TABLE, 0..KEYS, 1)?;
        db.checkpoint()?;
    }
    put(&db, OTHER, 0..1, 2)?;
    let (segment, before) = end_of_log(&volume)?;
    for step in steps {
        put(&db, TABLE, (0..KEYS).step_by(*step), 9)?;
        // The cache is small: the pages of the other table take the frames of these, which are written.
        put(&db, OTHER, 0..KEYS, 3)?;
    }
    let mut killed = copy(&volume)?;
    let lost = killed.open(&segment, OpenMode::Write)?;
    lost.resize(0)?;
    lost.write_at(0, &before)?;
    let mut most = 0;
    for process in 0..4 {
        let what = format!("{store:?}, delta blocks {delta}, one in {steps:?}, {recovery:?}, process {process}");
        let db = options().open_on(killed.clone(), NAME)?;
        match recovery {
            Recovery::Look => drop(look(&db, &what)?),
            Recovery::Commit => put(&db, OTHER, 0..KEYS, 4)?,
            Recovery::Nothing => {}
        }
        // Every other one is killed.
        if process % 2 == 0 {
            let left = copy(&killed)?;
            drop(db);
            killed = left;
        } else {
            db.close()?;
        }
        let seen = copy(&killed)?;
        most = most.max(look(&options().open_on(seen, NAME)?, &format!("{what}, and the next one"))?);
    }
    Ok(most)
}

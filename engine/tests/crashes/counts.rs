//! Promise: if a commit changes only the number of entries of a table, it logs the difference, and not the catalog
//! record. The addition happens exactly once, wherever a large commit and its recovery are
//! interrupted.

use crate::workload::killed;
use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::io::{MemoryVolume, OpenMode, Volume};
use duramen::log::{self, LogConfig, LogPosition, LogShape};
use duramen::page::PageOp;
use duramen::{Database, Durability, Result, TableDef, store};
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const NAME: &str = "t.duramen";
const TABLE: TableDef<u32, &[u8]> = TableDef::new("t");
const NUMBERED: TableDef<u64, &[u8]> = TableDef::new("numbered").auto_increment();
/// The root page of the catalog, which is a leaf as long as there are few tables.
const CATALOG: [u8; 4] = [1, 0, 0, 0];
/// The offset of the number of entries in the record of a table.
const ENTRIES_AT: u16 = 8;

fn options(cache: usize) -> duramen::Builder {
    Database::builder().page_size(4096).cache(cache).background(false)
}

/// Commits the changes of `write`. Returns the operations on the catalog in the batch of this commit.
fn on_catalog(
    db: &Database,
    volume: &MemoryVolume,
    write: impl FnOnce(&duramen::WriteTransaction) -> Result<()>,
) -> Result<Vec<String>> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Commit);
    write(&tx)?;
    tx.commit()?;
    let volume = killed::killed(volume, NAME)?;
    let (_, meta) = store::open(volume.open(NAME, OpenMode::Read)?, Path::new(NAME))?;
    let config =
        LogConfig { volume, prefix: format!("{NAME}-log"), database: meta.database_id, shape: LogShape::Packed };
    let mut reader = log::read(config, LogPosition { lsn: meta.redo, epoch: meta.epoch }, meta.last)?.unwrap();
    let mut payload = Vec::new();
    while let Some(batch) = reader.next()? {
        payload = batch.payload;
    }
    let (mut operations, mut input) = (Vec::new(), payload.as_slice());
    while let Some(([1, page @ ..], rest)) = input.split_first_chunk::<5>() {
        input = rest;
        let op = PageOp::decode(&mut input)?;
        if *page == CATALOG {
            operations.push(format!("{op:?}"));
        }
    }
    assert!(input.is_empty(), "another record than that of an operation");
    Ok(operations)
}

#[test]
fn a_commit_writes_by_how_much_the_number_of_entries_changes() -> Result<()> {
    let volume = Arc::new(MemoryVolume::new());
    let db = options(1 << 20).create_on(volume.clone(), NAME)?;
    let value: &[u8] = &[7; 20];
    on_catalog(&db, &volume, |tx| tx.open_table(TABLE)?.put(1, value))?;
    on_catalog(&db, &volume, |tx| tx.open_table(NUMBERED)?.push(value).map(drop))?;
    // The slots: the next table id, "numbered", "t".
    let add = |delta| vec![format!("{:?}", PageOp::AddToRecord { slot: 2, offset: ENTRIES_AT, delta })];
    let put = |keys: std::ops::Range<u32>| {
        on_catalog(&db, &volume, |tx| {
            let mut table = tx.open_table(TABLE)?;
            keys.into_iter().try_for_each(|key| table.put(key, value))
        })
    };
    assert_eq!(put(2..3)?, add(1));
    assert_eq!(put(1..60)?, add(57));
    assert_eq!(put(1..60)?, [""; 0], "the number stays the same");
    let removed = on_catalog(&db, &volume, |tx| {
        let mut table = tx.open_table(TABLE)?;
        table.remove_range(10..20);
        table.remove(30).map(drop)
    })?;
    assert_eq!(removed, add(-11));
    // The next key changes together with the number.
    let numbered = on_catalog(&db, &volume, |tx| tx.open_table(NUMBERED)?.push(value).map(drop))?;
    assert!(matches!(&numbered[..], [op] if op.starts_with("Replace { slot: 1,")), "{numbered:?}");
    let tx = db.begin_read()?;
    assert_eq!((tx.open_table(TABLE)?.len(), tx.open_table(NUMBERED)?.len()), (48, 2));
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

#[test]
fn a_snapshot_keeps_its_numbers_of_entries_with_and_without_a_file() -> Result<()> {
    for db in [Database::in_memory()?, options(1 << 20).create_on(Arc::new(MemoryVolume::new()), NAME)?] {
        let mut snapshots = Vec::new();
        for number in 1..20u64 {
            let tx = db.begin_write()?;
            let mut table = tx.open_table(TABLE)?;
            // One entry less after every third commit.
            match number % 3 {
                0 => assert!(table.remove(number as u32 - 1)?.is_some()),
                _ => table.put(number as u32, b"new".as_slice())?,
            }
            drop(table);
            tx.commit()?;
            snapshots.push((db.begin_read()?, number / 3 + number % 3));
        }
        for (snapshot, entries) in snapshots {
            assert_eq!(snapshot.open_table(TABLE)?.len(), entries);
        }
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    Ok(())
}

/// Enough tables, with names so long, that the leaves of the catalog change in several pieces in the smallest cache.
const TABLES: u32 = 480;

fn name(number: u32) -> String {
    format!("table {number:04} {:x<300}", "")
}

/// Creates all tables, each with one entry.
fn create(db: &Database) -> Result<()> {
    for from in (0..TABLES).step_by(80) {
        let tx = db.begin_write()?;
        for number in from..from + 80 {
            tx.open_table(TableDef::<u32, &[u8]>::new(&name(number)))?.put(number, b"old".as_slice())?;
        }
        tx.commit()?;
    }
    db.checkpoint()
}

/// Changes all of the first `tables` tables in one commit. Most get new entries. In between, some are dropped, renamed
/// and created, so that steps of all kinds meet in one leaf of the catalog.
fn change(db: &Database, tables: u32) -> Result<()> {
    let tx = db.begin_write()?;
    for number in 0..tables {
        let name = name(number);
        match number % 16 {
            3 => drop(tx.drop_table(&name)?),
            7 => tx.rename_table(&name, &format!("{name} renamed"))?,
            11 => tx.open_table(TableDef::<u32, &[u8]>::new(&format!("{name} new")))?.put(number, b"new".as_slice())?,
            _ => {
                let mut table = tx.open_table(TableDef::<u32, &[u8]>::new(&name))?;
                (0..=number % 3).try_for_each(|more| table.put(number + 1 + more, b"new".as_slice()))?;
            }
        }
    }
    tx.commit()
}

/// The numbers of entries in the catalog, after a check that they are those of the trees.
fn counts(db: &Database) -> Result<BTreeMap<String, u64>> {
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(db.begin_read()?.tables()?.into_iter().map(|table| (table.name, table.entries)).collect())
}

#[test]
fn numbers_change_in_one_batch_among_other_changes_of_the_catalog() -> Result<()> {
    for tables in [TABLES, 40, 12, 2] {
        let db = options(64 << 20).create_on(Arc::new(MemoryVolume::new()), NAME)?;
        create(&db)?;
        change(&db, tables)?;
        counts(&db)?;
    }
    Ok(())
}

#[test]
fn a_number_changes_once_if_a_large_commit_and_its_recovery_are_interrupted_anywhere() -> Result<()> {
    STORES.into_iter().try_for_each(interrupt)
}

fn interrupt(store: StoreKind) -> Result<()> {
    let volume = FailingVolume::new(1);
    let db = options(0).store(store).create_on(Arc::new(volume.clone()), NAME)?;
    create(&db)?;
    let old = counts(&db)?;
    let begun = volume.events();
    change(&db, TABLES)?;
    let (end, new) = (volume.events(), counts(&db)?);
    let mut completed = 0;
    for event in (begun..end).step_by(((end - begun) / 24).max(1)) {
        let state = volume.crash(Cut { event, choice: CutChoice::KeepAll });
        let begun = state.events();
        let found = counts(&options(0).open_on(Arc::new(state.clone()), NAME)?)?;
        let what = format!("{store:?}, cut at {event} of {begun}..{end}");
        assert!(found == old || found == new, "{what}");
        completed += u32::from(found == new);
        // The recovery is interrupted, too.
        let end = state.events();
        for again in (begun..end).step_by(((end - begun) / 4).max(1)) {
            let state = state.crash(Cut { event: again, choice: CutChoice::KeepAll });
            let again = counts(&options(0).open_on(Arc::new(state), NAME)?)?;
            assert!(again == found, "{what}, the recovery cut at {again:?}");
        }
    }
    assert!(completed > 5, "{store:?}: {completed} recoveries completed the commit");
    Ok(())
}

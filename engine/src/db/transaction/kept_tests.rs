//! The states of tables that are kept between transactions have the rows of the catalog, whatever a transaction did.

use super::table_state::{KeptTables, MAX_KEPT, Name, TableState};
use crate::db::{CompressionPlan, Strategy};
use crate::store::Compression;
use crate::{Database, Error, Result, TableDef, TableOptions, WriteTransaction};
use parking_lot::Mutex;
use std::sync::Arc;

const PLAIN: TableDef<u32, u32> = TableDef::new("t");
const NOTES: TableDef<u64, &str> = TableDef::new("notes").auto_increment();

/// A database with one entry in the table `t`, whose state is kept.
fn database() -> Result<Database> {
    let db = Database::builder().background(false).version_memory(1 << 10).in_memory()?;
    commit(&db, |tx| tx.open_table(PLAIN)?.put(1, 1))?;
    assert_eq!(db.shared().kept_tables.names(), ["t"]);
    Ok(db)
}

/// Adds a note and returns its key.
fn push(tx: &WriteTransaction, note: &str) -> Result<u64> {
    Ok(tx.open_table(NOTES)?.push(note)?.value())
}

fn commit<R>(db: &Database, work: impl FnOnce(&WriteTransaction) -> Result<R>) -> Result<R> {
    let tx = db.begin_write()?;
    let done = work(&tx)?;
    tx.commit().map(|()| done)
}

/// The number of entries that the next transaction finds, which is that of the catalog.
fn entries(db: &Database, name: &str) -> Result<u64> {
    let catalogued = db.begin_read()?.open_untyped(name)?.info().entries;
    assert_eq!(db.begin_write()?.open_untyped(name)?.len()?, catalogued);
    Ok(catalogued)
}

#[test]
fn the_entries_of_a_commit_are_counted() -> Result<()> {
    let db = database()?;
    commit(&db, |tx| {
        let mut table = tx.open_table(PLAIN)?;
        (1..10).try_for_each(|key| table.put(key, key))
    })?;
    assert_eq!(commit(&db, |tx| tx.open_table(PLAIN)?.len())?, 9);
    commit(&db, |tx| tx.open_table(PLAIN)?.remove(3).map(drop))?;
    assert_eq!(commit(&db, |tx| tx.open_table(PLAIN)?.len())?, 8);
    assert_eq!(entries(&db, "t")?, 8);
    Ok(())
}

#[test]
fn a_transaction_does_not_repeat_the_writes_of_the_one_before() -> Result<()> {
    let db = database()?;
    let end = db.shared().engine.last_end();
    commit(&db, |tx| tx.open_table(PLAIN).map(drop))?;
    assert_eq!(db.shared().engine.last_end(), end, "nothing was written");
    commit(&db, |tx| {
        tx.open_table(PLAIN)?.remove_range(..);
        Ok(())
    })?;
    let end = db.shared().engine.last_end();
    commit(&db, |tx| tx.open_table(PLAIN).map(drop))?;
    assert_eq!(db.shared().engine.last_end(), end, "nothing was removed");
    Ok(())
}

#[test]
fn nothing_is_kept_of_a_transaction_that_does_not_commit() -> Result<()> {
    let db = database()?;
    assert_eq!(commit(&db, |tx| push(tx, "first"))?, 1);
    let tx = db.begin_write()?;
    assert_eq!(push(&tx, "second")?, 2);
    tx.open_table(PLAIN)?.put(2, 2)?;
    drop(tx);
    assert_eq!(entries(&db, "t")?, 1);
    assert_eq!(commit(&db, |tx| push(tx, "second, too"))?, 2);
    assert_eq!(commit(&db, |tx| push(tx, "third"))?, 3);
    // A commit that fails has changed nothing.
    let snapshot = db.begin_read()?;
    commit(&db, |tx| (0..1000).try_for_each(|key| tx.open_table(PLAIN)?.put(key, 0)))?;
    let refused = commit(&db, |tx| {
        tx.open_table(PLAIN)?.put(1000, 0)?;
        push(tx, "fourth")
    });
    assert!(matches!(refused, Err(Error::HeldBack { .. })), "{refused:?}");
    drop(snapshot);
    assert_eq!((entries(&db, "t")?, entries(&db, "notes")?), (1000, 3));
    assert_eq!(commit(&db, |tx| push(tx, "fourth, too"))?, 4);
    Ok(())
}

#[test]
fn a_name_opens_the_table_that_got_it_last() -> Result<()> {
    let db = database()?;
    let bad = |table: &str| -> Result<()> {
        let refused = db.begin_write()?.open_untyped(table)?.put(b"k", b"v").unwrap_err();
        assert!(refused.to_string().contains(table), "{refused}");
        Ok(())
    };
    commit(&db, |tx| {
        tx.open_untyped("t")?.put(&2u32.to_be_bytes(), &2u32.to_be_bytes())?;
        tx.rename_table("t", "renamed")
    })?;
    // This check is the first one: a transaction that does not commit does not return the state, so a later check would
    // not use a kept state.
    bad("renamed")?;
    assert!(matches!(db.begin_write()?.open_untyped("t"), Err(Error::NoTable { .. })));
    assert_eq!(entries(&db, "renamed")?, 2);
    // The same name, with other types.
    commit(&db, |tx| tx.create_untyped("t", "str", "str", TableOptions::default())?.put(b"k", b"v"))?;
    assert_eq!(entries(&db, "t")?, 1);
    commit(&db, |tx| {
        assert!(matches!(tx.open_table(PLAIN), Err(Error::TableType { .. })));
        tx.drop_table("t")?;
        tx.rename_table("renamed", "t")
    })?;
    assert!(matches!(db.begin_write()?.open_untyped("renamed"), Err(Error::NoTable { .. })));
    assert_eq!(commit(&db, |tx| tx.open_table(PLAIN)?.len())?, 2);
    commit(&db, |tx| tx.drop_table("t"))?;
    assert!(matches!(db.begin_write()?.open_untyped("t"), Err(Error::NoTable { .. })));
    assert!(!db.begin_write()?.exists("t")?);
    Ok(())
}

#[test]
fn a_table_that_was_rebuilt_is_found_at_its_new_root() -> Result<()> {
    let folder = tempfile::tempdir().map_err(|e| Error::io("create", "a folder", e))?;
    let db = Database::builder().background(false).create(folder.path().join("db"))?;
    commit(&db, |tx| tx.open_table(PLAIN)?.put(1, 1))?;
    db.compact_with(&CompressionPlan::new(Strategy::All, Compression::Lz4), |_| ())?;
    commit(&db, |tx| {
        let mut table = tx.open_untyped("t")?;
        assert_eq!(table.info().compression, Compression::Lz4);
        table.put(&2u32.to_be_bytes(), &2u32.to_be_bytes())
    })?;
    assert_eq!(db.begin_read()?.open_table(PLAIN)?.get(2)?.map(|value| value.value()), Some(2));
    commit(&db, |tx| {
        tx.drop_table("t")?;
        let mut bulk = tx.bulk_load("t", "u32", "u32", TableOptions::default(), 1.0)?;
        bulk.push(&3u32.to_be_bytes(), &3u32.to_be_bytes())?;
        bulk.finish()
    })?;
    commit(&db, |tx| tx.open_table(PLAIN)?.put(4, 4))?;
    assert_eq!(entries(&db, "t")?, 2);
    Ok(())
}

#[test]
fn a_handle_of_bytes_checks_them_after_a_handle_of_types() -> Result<()> {
    let db = database()?;
    for _ in 0..2 {
        commit(&db, |tx| {
            tx.open_table(PLAIN)?.put(1, 1)?;
            assert!(matches!(tx.open_untyped("t")?.put(b"key", b"value"), Err(Error::NotEncoded { .. })));
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn a_limited_number_of_tables_is_kept() -> Result<()> {
    let db = database()?;
    let names: Vec<String> = (0..3 * MAX_KEPT).map(|number| format!("table {number:02}")).collect();
    for turn in 0..3u32 {
        for name in &names {
            let table = TableDef::<u32, u32>::new(name);
            commit(&db, |tx| tx.open_table(table)?.put(turn, turn))?;
        }
        let all: u64 = commit(&db, |tx| Ok(tx.tables()?.iter().map(|table| table.entries).sum()))?;
        assert_eq!(all, 1 + u64::from(turn + 1) * names.len() as u64);
        assert_eq!(db.shared().kept_tables.names().len(), MAX_KEPT);
    }
    Ok(())
}

#[test]
fn the_tables_that_were_used_last_are_kept() -> Result<()> {
    let db = Database::builder().background(false).in_memory()?;
    let used = |number: usize| {
        let name = format!("table {number:02}");
        commit(&db, |tx| tx.open_table(TableDef::<u32, u32>::new(&name))?.put(1, 1))
    };
    (0..MAX_KEPT).try_for_each(used)?;
    used(0)?;
    used(MAX_KEPT)?;
    let mut expected: Vec<String> = (2..MAX_KEPT).map(|number| format!("table {number:02}")).collect();
    expected.extend(["table 00".to_owned(), format!("table {MAX_KEPT:02}")]);
    assert_eq!(db.shared().kept_tables.names(), expected);
    Ok(())
}

#[test]
fn a_name_is_kept_once() -> Result<()> {
    let db = database()?;
    let entry = db.begin_write()?.open_untyped("t")?.state.entry.clone();
    let kept = KeptTables::default();
    let state = || Arc::new(Mutex::new(TableState::new("t".into(), entry.clone())));
    let keep = |name: Name| kept.keep([("t".to_owned(), name)].into());
    let (one, two) = (state(), state());
    keep(Name::Open(one));
    keep(Name::Open(two.clone()));
    assert!(kept.take("t").is_some_and(|(_, taken)| Arc::ptr_eq(&taken, &two)) && kept.take("t").is_none());
    keep(Name::Open(two));
    keep(Name::Gone);
    assert!(kept.take("t").is_none());
    Ok(())
}

//! Threads that share one writing transaction.

use duramen::{Database, Error, Result, TableDef, TableOptions, WriteTransaction};
use std::sync::Barrier;

const OLD: TableDef<u32, u32> = TableDef::new("old");
const NEW: TableDef<u32, u32> = TableDef::new("new");
const ROUNDS: u32 = 3000;

/// The number of entries of all tables.
fn entries(tx: &WriteTransaction) -> Result<u64> {
    Ok(tx.tables()?.iter().map(|table| table.entries).sum())
}

/// Runs `change` while another thread creates table `new` with one entry. Returns the entries of all tables and the
/// result of the change.
fn beside_a_creation<T: Send>(tx: &WriteTransaction, change: impl Fn() -> Result<T> + Sync) -> Result<(u64, bool)> {
    let start = Barrier::new(2);
    let (created, changed) = std::thread::scope(|scope| {
        let creating = scope.spawn(|| {
            start.wait();
            tx.open_table(NEW)?.put(1, 1)
        });
        start.wait();
        let changed = change();
        (creating.join().expect("no panic"), changed)
    });
    created?;
    match changed {
        Ok(_) => Ok((entries(tx)?, true)),
        Err(Error::TableExists { .. }) => Ok((entries(tx)?, false)),
        Err(other) => Err(other),
    }
}

#[test]
fn a_renamed_table_does_not_replace_one_that_another_thread_creates() -> Result<()> {
    let db = Database::in_memory()?;
    for round in 0..ROUNDS {
        let tx = db.begin_write()?;
        tx.open_table(OLD)?.put(2, 2)?;
        let (entries, renamed) = beside_a_creation(&tx, || tx.rename_table("old", "new"))?;
        assert_eq!(entries, 2, "round {round}, renamed: {renamed}");
    }
    Ok(())
}

#[test]
fn a_bulk_load_does_not_replace_a_table_that_another_thread_creates() -> Result<()> {
    let db = Database::in_memory()?;
    for round in 0..ROUNDS {
        let tx = db.begin_write()?;
        let mut load = tx.bulk_load("new", "u32", "u32", TableOptions::default(), 1.0)?;
        load.push(&2u32.to_be_bytes(), &2u32.to_be_bytes())?;
        let load = std::sync::Mutex::new(Some(load));
        let finish = || load.lock().expect("no panic").take().expect("it runs once").finish();
        let (entries, loaded) = beside_a_creation(&tx, finish)?;
        assert_eq!(entries, if loaded { 2 } else { 1 }, "round {round}, loaded: {loaded}");
    }
    Ok(())
}

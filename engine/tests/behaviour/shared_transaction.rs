//! Threads that share one writing transaction.

use duramen::db::Compression;
use duramen::{Database, Durability, Error, Result, TableDef, TableOptions, WriteTransaction};
use duramen_sim::{Cut, CutChoice, FailingVolume, HookedVolume, Hooks};
use std::sync::{Arc, Barrier};
use std::time::Duration;

const OLD: TableDef<u32, u32> = TableDef::new("old");
const NEW: TableDef<u32, u32> = TableDef::new("new");
const ROUNDS: u32 = 3000;
/// Entries of a loaded table: many batches of pages.
const LOADED: u32 = 60_000;

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

/// Loads a table in a transaction that another thread uses too.
fn load(tx: &WriteTransaction, name: &str) -> Result<()> {
    let options = TableOptions { compression: Compression::Lz4, ..TableOptions::default() };
    let mut load = tx.bulk_load(name, "u32", "bytes", options, 1.0)?;
    for key in 0..LOADED {
        let mut value = [0; 100];
        value[..50].fill_with(|| fastrand::u8(..));
        load.push(&key.to_be_bytes(), &value)?;
    }
    load.finish().map(drop)
}

/// Writes take so long that a thread often waits for its batch while the other thread has one to write.
#[derive(Debug)]
struct SlowWrites;

impl Hooks for SlowWrites {
    fn before_write(&self, _: &str, _: u64, _: usize) -> Result<()> {
        std::thread::sleep(Duration::from_millis(3));
        Ok(())
    }
}

#[test]
fn two_bulk_loads_beside_each_other_lose_no_page() -> Result<()> {
    let volume = FailingVolume::new(1);
    let options = || Database::builder().compression_threads(2).background(false);
    let slow = HookedVolume::new(Arc::new(volume.clone()), Arc::new(SlowWrites));
    let db = options().create_on(Arc::new(slow), "t.duramen")?;
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Commit);
    std::thread::scope(|scope| -> Result<()> {
        let loads = ["left", "right"].map(|name| scope.spawn(|| load(&tx, name)));
        loads.into_iter().try_for_each(|load| load.join().expect("no panic"))
    })?;
    tx.commit()?;
    let killed = volume.crash(Cut { event: volume.events(), choice: CutChoice::KeepAll });
    let db = options().open_on(Arc::new(killed), "t.duramen")?;
    assert_eq!(db.verify(|_| ())?.findings, []);
    let tx = db.begin_read()?;
    for name in ["left", "right"] {
        assert_eq!(tx.open_untyped(name)?.range(..).count(), LOADED as usize, "{name}");
    }
    Ok(())
}

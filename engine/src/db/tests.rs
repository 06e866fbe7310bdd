//! With any page store, a database behaves like a `BTreeMap`: through commits, range removals, large values, bulk
//! loads, dropped tables, checkpoints, compactions, reopenings and recoveries, with the smallest cache.

use crate::io::{MemoryVolume, OpenMode, Volume};
use crate::store::{Compression, DROPS_FAIL, StoreKind};
use crate::{Builder, Database, Result, TableDef, TableOptions, WriteTransaction};
use std::collections::BTreeMap;
use std::sync::Arc;

const TABLE: TableDef<&[u8], &[u8]> = TableDef::new("t");
const NAME: &str = "db";

struct Run {
    options: Builder,
    volume: MemoryVolume,
    db: Database,
    model: BTreeMap<Vec<u8>, Vec<u8>>,
    rng: fastrand::Rng,
}

/// The files in their current state, as a killed process leaves them.
fn copy(volume: &MemoryVolume) -> MemoryVolume {
    let copy = MemoryVolume::new();
    for name in volume.list("").unwrap() {
        let file = volume.open(&name, OpenMode::Read).unwrap();
        let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
        file.read_at(0, &mut bytes).unwrap();
        copy.open(&name, OpenMode::CreateNew).unwrap().write_at(0, &bytes).unwrap();
    }
    copy
}

impl Run {
    fn new(store: StoreKind, seed: u64) -> Run {
        let options = Builder { store: Some(store), ..Database::builder().page_size(4096).cache(0).background(false) };
        let volume = MemoryVolume::new();
        let db = options.create_on(Arc::new(volume.clone()), NAME).unwrap();
        let tx = db.begin_write().unwrap();
        tx.open_table(TABLE).unwrap();
        tx.commit().unwrap();
        Run { options, volume, db, model: BTreeMap::new(), rng: fastrand::Rng::with_seed(seed) }
    }

    fn key(&mut self) -> Vec<u8> {
        let number = self.rng.u16(..3000);
        let rest = if self.rng.u8(..40) == 0 { 3000 } else { usize::from(number % 30) };
        [&number.to_be_bytes()[..], &vec![7; rest]].concat()
    }

    fn commit(&mut self) {
        let tx = self.db.begin_write().unwrap();
        let mut table = tx.open_table(TABLE).unwrap();
        for _ in 0..self.rng.usize(1..60) {
            let key = self.key();
            match self.rng.u8(..100) {
                0 => {
                    let end = self.key();
                    let (from, to) = if key < end { (key, end) } else { (end, key) };
                    table.remove_range(from.as_slice()..to.as_slice());
                    self.model.retain(|key, _| *key < from || *key >= to);
                }
                1..20 => {
                    table.remove(key.as_slice()).unwrap();
                    self.model.remove(&key);
                }
                dice => {
                    let len = if dice < 23 { self.rng.usize(5000..20_000) } else { self.rng.usize(..200) };
                    let value = vec![self.rng.u8(..); len];
                    table.put(key.as_slice(), value.as_slice()).unwrap();
                    self.model.insert(key, value);
                }
            }
        }
        drop(table);
        tx.commit().unwrap();
    }

    /// Drops the table and bulk-loads it again, which frees most pages and writes as many new ones past the log.
    fn reload(&mut self) {
        let tx = self.db.begin_write().unwrap();
        tx.drop_table("t").unwrap();
        let mut bulk = tx.bulk_load("t", "bytes", "bytes", TableOptions::default(), 0.9).unwrap();
        self.model.iter().for_each(|(key, value)| bulk.push(key, value).unwrap());
        bulk.finish().unwrap();
        tx.commit().unwrap();
    }

    fn reopen(&mut self, kill: bool) {
        let killed = copy(&self.volume);
        std::mem::replace(&mut self.db, Database::in_memory().unwrap()).close().unwrap();
        if kill {
            self.volume = killed;
        }
        self.db = self.options.open_on(Arc::new(self.volume.clone()), NAME).unwrap();
        self.check();
    }

    fn check(&self) {
        let read = self.db.begin_read().unwrap();
        let table = read.open_table(TABLE).unwrap();
        let found = table.iter().map(|entry| entry.map(|(key, value)| (key.value().to_vec(), value.value().to_vec())));
        let found: BTreeMap<Vec<u8>, Vec<u8>> = found.collect::<Result<_, _>>().unwrap();
        assert!(found == self.model, "{} entries instead of {}", found.len(), self.model.len());
        assert!(self.db.verify(|_| ()).unwrap().findings.is_empty());
    }

    fn step(&mut self) {
        match self.rng.u8(..40) {
            0..26 => self.commit(),
            26..30 => self.db.checkpoint().unwrap(),
            30..33 => while self.db.maintain().unwrap() {},
            33 => drop(self.db.compact(|_| {}).unwrap()),
            34..36 => self.reload(),
            36..39 => self.reopen(true),
            _ => self.reopen(false),
        }
    }
}

#[test]
fn a_database_is_a_map_with_every_page_store() {
    for &store in StoreKind::ALL {
        for seed in 0..40 {
            let mut run = Run::new(store, seed);
            (0..60).for_each(|_| run.step());
            run.check();
            assert_eq!(run.db.stats().store, Some(store));
        }
    }
}

/// A dictionary with an id that another one had, written by a commit that failed, could be taken for that one.
#[test]
fn an_id_of_a_dictionary_is_not_given_again_after_a_crash() -> Result<()> {
    let mut run = Run::new(StoreKind::Table, 0);
    let ids = run.db.dictionary_ids(2)?;
    run.reopen(true);
    let later = run.db.dictionary_ids(1)?;
    assert!(ids[0] < ids[1] && ids[1] < later[0], "{ids:?}, {later:?}");
    Ok(())
}

/// The catalog's record of a table has the number of entries, so a commit that adds entries logs an addition
/// to it, and not the whole record.
#[test]
fn a_commit_that_changes_no_number_of_entries_writes_only_its_entries() {
    let table: TableDef<u64, u64> = TableDef::new("a table whose name is longer than its entries");
    let options = Database::builder().page_size(4096).background(false);
    let db = options.create_on(Arc::new(MemoryVolume::new()), NAME).unwrap();
    let log_bytes = |key, value: Option<u64>| {
        let before = db.stats().log_bytes;
        let tx = db.begin_write().unwrap();
        match value {
            Some(value) => tx.open_table(table).unwrap().put(key, value).unwrap(),
            None => drop(tx.open_table(table).unwrap().remove(key).unwrap()),
        }
        tx.commit().unwrap();
        let tx = db.begin_read().unwrap();
        assert_eq!(tx.open_table(table).unwrap().get(key).unwrap().map(|found| found.value()), value);
        (db.stats().log_bytes - before, tx.tables().unwrap()[0].entries)
    };
    for key in 0..10 {
        log_bytes(key, Some(key));
    }
    let ((added, eleven), (replaced, still)) = (log_bytes(10, Some(1)), log_bytes(10, Some(2)));
    assert_eq!((eleven, still), (11, 11));
    let record = table.name().len() as u64;
    assert!((1..record).contains(&(added - replaced)), "{replaced} bytes of log, and {added} for a new entry");
    assert_eq!(log_bytes(99, None), (0, 11), "a removal of nothing");
    assert_eq!(log_bytes(10, None).1, 10);
}

#[test]
fn pages_that_the_store_cannot_drop_are_dropped_by_a_later_checkpoint() {
    let db = Run::new(StoreKind::Slots, 0).db;
    let set = |value: &[u8]| {
        let tx = db.begin_write().unwrap();
        tx.open_table(TABLE).unwrap().put([1].as_slice(), value).unwrap();
        tx.commit().unwrap();
        db.checkpoint().unwrap();
        while db.maintain().unwrap() {}
    };
    let pages = || (db.stats().live_bytes / 4096, db.stats().free_pages);
    set(&[7]);
    let small = pages();
    set(&[7; 500_000]);
    assert!(pages().0 >= small.0 + 100);
    DROPS_FAIL.set(true);
    set(&[7]);
    let (kept, free) = pages();
    assert!(kept >= small.0 + 100, "the store has {kept} pages");
    DROPS_FAIL.set(false);
    (0..2).for_each(|_| db.checkpoint().unwrap());
    assert_eq!(pages().0, small.0);
    assert!(pages().1 >= free + 100, "the ids are free");
    assert!(db.verify(|_| ()).unwrap().findings.is_empty());
}

#[test]
fn the_store_forgets_the_policies_of_tables_that_do_not_exist() -> Result<()> {
    let compressed = TableOptions { compression: Compression::Lz4, ..TableOptions::default() };
    let create = |tx: &WriteTransaction, name: &str| tx.create_untyped(name, "u32", "bytes", compressed).map(drop);
    for store in [StoreKind::Table, StoreKind::Shadow] {
        let options = Database::builder().page_size(8192).store(store).background(false);
        let db = options.create_on(Arc::new(MemoryVolume::new()), NAME)?;
        let policies = || db.shared().engine.compression().unwrap().policy_count();
        let load = |tx: &WriteTransaction, name: &str| {
            let mut bulk = tx.bulk_load(name, "u32", "bytes", compressed, 1.0)?;
            bulk.push(&[0; 4], b"oak")?;
            bulk.finish().map(drop)
        };
        for commits in [true, false] {
            for _ in 0..20 {
                let tx = db.begin_write()?;
                create(&tx, "t")?;
                create(&tx, "u")?;
                load(&tx, "v")?;
                for name in ["t", "u", "v"] {
                    assert!(!commits || tx.drop_table(name)?);
                }
                assert_eq!(policies(), 3, "the pages of new tables are written before the commit");
                if commits {
                    tx.commit()?;
                } else {
                    drop(tx);
                }
                assert_eq!(policies(), 0, "{store:?}, {commits}");
            }
        }
        let tx = db.begin_write()?;
        create(&tx, "t")?;
        load(&tx, "v")?;
        tx.rename_table("t", "w")?;
        tx.commit()?;
        assert_eq!(policies(), 2);
        let tx = db.begin_write()?;
        assert!(tx.drop_table("v")? && tx.drop_table("w")?);
        drop(tx);
        assert_eq!(policies(), 2, "the tables are still there");
    }
    Ok(())
}

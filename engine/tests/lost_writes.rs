//! Promise: if the device has acknowledged a write of the file and not applied it, and the database was closed after that,
//! then reads return what was committed, or an error. They never return older data.

#[path = "workload/stores.rs"]
mod stores;

use duramen::db::{DeltaBlocks, StoreKind};
use duramen::{Database, Durability, Error, Result, TableDef};
use duramen_sim::{FailingVolume, Fault, Trigger};
use std::collections::BTreeMap;
use std::sync::Arc;
use stores::STORES;

const NAME: &str = "t.duramen";
const TABLE: TableDef<u64, &[u8]> = TableDef::new("t");

type Model = BTreeMap<u64, Vec<u8>>;

fn options(store: StoreKind, blocks: u8) -> duramen::Builder {
    let delta = DeltaBlocks { blocks, ..DeltaBlocks::default() };
    Database::builder().store(store).delta(delta).page_size(4096).cache(128 << 10).background(false)
}

/// Commits values for some keys; each round has other values.
fn put(db: &Database, model: &mut Model, round: u64, keys: impl Iterator<Item = u64>) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::None);
    let mut table = tx.open_table(TABLE)?;
    for key in keys {
        let value = [round.to_le_bytes(), key.to_le_bytes(), [round as u8; 8], [0; 8]].concat();
        table.put(key, value.as_slice())?;
        model.insert(key, value);
    }
    drop(table);
    tx.commit()
}

/// Fills a database that does not fit its cache, then changes it, with checkpoints, after a close. Returns what it has.
fn work(volume: &FailingVolume, store: StoreKind, blocks: u8, lost: Trigger) -> Result<Model> {
    let mut model = Model::new();
    let db = options(store, blocks).create_on(Arc::new(volume.clone()), NAME)?;
    for from in (0..8000).step_by(1000) {
        put(&db, &mut model, 0, from..from + 1000)?;
    }
    db.close()?;
    volume.inject(Fault::LoseWrite, lost);
    let db = options(store, blocks).open_on(Arc::new(volume.clone()), NAME)?;
    for round in 1..40 {
        let keys = (0..30).map(|step| (round * 7919 + step * step * 31) % 8000);
        put(&db, &mut model, round, keys)?;
        match round % 10 {
            5 => db.checkpoint()?,
            // New pages, at the end of the file.
            7 => put(&db, &mut model, round, (0..200).map(|step| 8000 + round * 1000 + step))?,
            _ => {}
        }
    }
    db.close()?;
    Ok(model)
}

/// Reads everything; `None` if there is an error, which must not be a surprise.
fn read(volume: &FailingVolume) -> Option<Model> {
    let all = || -> Result<Model> {
        let db = Database::builder().open_on(Arc::new(volume.clone()), NAME)?;
        let tx = db.begin_read()?;
        let table = tx.open_table(TABLE)?;
        table.iter().map(|entry| entry.map(|(key, value)| (key.value(), value.value().to_vec()))).collect()
    };
    match all() {
        Ok(model) => Some(model),
        Err(Error::Corrupt { .. } | Error::CorruptMeta { .. } | Error::CorruptLog { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

fn every_lost_write_is_found(store: StoreKind, blocks: u8) {
    let volume = FailingVolume::new(1);
    let counter = Trigger::never().on(NAME);
    let model = work(&volume, store, blocks, counter).unwrap();
    assert!(read(&volume).is_some_and(|found| found == model));
    let (mut found, mut lost) = (0, 0);
    // Every third write, to save time.
    for number in (0..).step_by(3) {
        let volume = FailingVolume::new(1);
        let lose = Trigger::once().on(NAME).after(number);
        // The page may be read again before the close.
        let Ok(model) = work(&volume, store, blocks, lose) else {
            found += 1;
            continue;
        };
        if volume.struck(Fault::LoseWrite) == 0 {
            break;
        }
        lost += 1;
        match read(&volume) {
            None => found += 1,
            Some(now) => assert!(now == model, "write {number} was lost, and older data are read"),
        }
    }
    assert!(lost > 50 && found > lost / 10, "{found} of {lost}");
}

#[test]
fn a_lost_write_is_found_after_a_close() {
    for store in STORES {
        match store {
            StoreKind::Shadow => [0, 1, 4].into_iter().for_each(|blocks| every_lost_write_is_found(store, blocks)),
            _ => every_lost_write_is_found(store, 0),
        }
    }
}

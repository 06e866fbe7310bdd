//! Promise: if the device has acknowledged a write to the file without applying it, and the database was closed after
//! that, then reads return committed data or an error. They never return older data.

use crate::workload::stores::STORES;
use duramen::db::{DeltaBlocks, StoreKind};
use duramen::{Database, Durability, Error, Result, TableDef};
use duramen_sim::{FailingVolume, Fault, Trigger};
use std::collections::BTreeMap;
use std::sync::Arc;

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

/// The first write that may be lost.
#[derive(Clone, Copy, PartialEq, Debug)]
enum First {
    Creation,
    AfterClose,
}

/// Fills a database that does not fit its cache, then changes it, with checkpoints, after a close. Returns what it has.
fn work(volume: &FailingVolume, store: StoreKind, blocks: u8, first: First, lost: Trigger) -> Result<Model> {
    let mut model = Model::new();
    if first == First::Creation {
        volume.inject(Fault::LoseWrite, lost.clone());
    }
    let db = options(store, blocks).create_on(Arc::new(volume.clone()), NAME)?;
    for from in (0..8000).step_by(1000) {
        put(&db, &mut model, 0, from..from + 1000)?;
    }
    db.close()?;
    if first == First::AfterClose {
        volume.inject(Fault::LoseWrite, lost);
    }
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

/// The reader of the database.
#[derive(Clone, Copy, Debug)]
enum Reader {
    Process,
    ReadOnly,
    Conversion,
    /// It may read older data if it says that something is damaged.
    Rescue,
}

const READERS: [Reader; 4] = [Reader::Process, Reader::ReadOnly, Reader::Conversion, Reader::Rescue];

/// Reads everything; `None` if there is an error, which must be one that says what is damaged.
fn read(volume: &FailingVolume, reader: Reader) -> Option<Model> {
    let all = || -> Result<Model> {
        let volume = Arc::new(volume.clone());
        let db = match reader {
            Reader::Process => Database::builder().open_on(volume, NAME)?,
            Reader::ReadOnly => Database::builder().open_read_only_on(volume, NAME)?,
            Reader::Conversion => {
                Database::builder().store(StoreKind::Table).convert_on(volume.clone(), NAME, |_| ())?;
                Database::builder().open_on(volume, NAME)?
            }
            Reader::Rescue => {
                let (db, damage) = Database::builder().open_damaged_on(volume, NAME)?;
                if let Some(damage) = damage.first() {
                    return Err(Error::CorruptMeta { what: "the file", why: damage.to_string() });
                }
                db
            }
        };
        let tx = db.begin_read()?;
        let table = tx.open_table(TABLE)?;
        table.iter().map(|entry| entry.map(|(key, value)| (key.value(), value.value().to_vec()))).collect()
    };
    match all() {
        Ok(model) => Some(model),
        Err(Error::Corrupt { .. } | Error::CorruptMeta { .. } | Error::CorruptLog { .. }) => None,
        Err(Error::NeedsRecovery { .. }) if matches!(reader, Reader::ReadOnly) => None,
        Err(other) => panic!("{reader:?}: {other}"),
    }
}

/// Loses every `step`th write of the file, one in each run.
fn every_lost_write_is_found(store: StoreKind, blocks: u8, first: First, step: usize) {
    let volume = FailingVolume::new(1);
    let model = work(&volume, store, blocks, first, Trigger::never().on(NAME)).unwrap();
    for reader in READERS {
        assert!(read(&volume, reader).is_some_and(|found| found == model));
    }
    let (mut found, mut lost) = (0, 0);
    for (number, reader) in (0..).step_by(step).zip(READERS.into_iter().cycle()) {
        let volume = FailingVolume::new(1);
        let lose = Trigger::once().on(NAME).after(number);
        // The page may be read again before the close.
        let Ok(model) = work(&volume, store, blocks, first, lose) else {
            found += 1;
            continue;
        };
        if volume.struck(Fault::LoseWrite) == 0 {
            break;
        }
        lost += 1;
        match read(&volume, reader) {
            None => found += 1,
            Some(now) => {
                assert!(now == model, "{store:?}, {first:?}: write {number} was lost, and {reader:?} reads older data")
            }
        }
    }
    assert!(lost > 20 && found > lost / 20, "{store:?}, {first:?}: {found} of {lost}");
}

fn stores() -> impl Iterator<Item = (StoreKind, u8)> {
    let blocks = |store| if store == StoreKind::Shadow { &[0, 1, 4][..] } else { &[0] };
    STORES.into_iter().flat_map(move |store| blocks(store).iter().map(move |blocks| (store, *blocks)))
}

#[test]
fn a_lost_write_is_found_after_a_close() {
    stores().for_each(|(store, blocks)| every_lost_write_is_found(store, blocks, First::AfterClose, 3));
}

#[test]
fn a_lost_write_of_the_creation_or_soon_after_is_found_after_a_close() {
    stores().for_each(|(store, blocks)| every_lost_write_is_found(store, blocks, First::Creation, 6));
}

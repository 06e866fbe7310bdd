//! Page ids that are used again: the pages of a table that is freed get the content of a transaction that is dropped,
//! and then that of one that commits. A recovery from any end of the log returns the last content.

use crate::io::{MemoryVolume, OpenMode, Volume};
use crate::{Builder, Database, Result, TableDef, TableOptions};
use std::sync::Arc;

const NAME: &str = "db";
const LOADED: TableDef<u32, &[u8]> = TableDef::new("loaded");
const KEYS: u32 = 1500;

fn options(cache: usize) -> Builder {
    // Few superseded images suffice for a checkpoint of the places. A bulk load takes several batches.
    let options = Database::builder().page_size(4096).cache(cache).background(false);
    options.superseded_bytes(1).batch_bytes(16 << 10).checkpoint_bytes(1 << 40)
}

/// Fills the table with this value, and does `before_end` before the transaction commits or is dropped.
fn load(db: &Database, value: u8, commit: bool, before_end: impl FnOnce() -> Result<()>) -> Result<()> {
    let tx = db.begin_write()?;
    let mut bulk = tx.bulk_load(LOADED.name(), "u32", "bytes", TableOptions::default(), 1.0)?;
    (0..KEYS).try_for_each(|key| bulk.push(&key.to_be_bytes(), &[value; 1000]))?;
    bulk.finish()?;
    before_end()?;
    if commit { tx.commit() } else { Ok(()) }
}

fn read(volume: &MemoryVolume, name: &str) -> Vec<u8> {
    let file = volume.open(name, OpenMode::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// The files, where the log ends at this offset of its segment.
fn cut(volume: &MemoryVolume, segment: &str, end: usize) -> Arc<MemoryVolume> {
    let copy = MemoryVolume::new();
    for name in volume.list("").unwrap() {
        let mut bytes = read(volume, &name);
        if name == segment {
            bytes[end..].fill(0);
        }
        copy.open(&name, OpenMode::CreateNew).unwrap().write_at(0, &bytes).unwrap();
    }
    Arc::new(copy)
}

#[test]
fn a_recovery_does_not_return_the_pages_of_a_dropped_transaction() -> Result<()> {
    let volume = MemoryVolume::new();
    let db = options(0).create_on(Arc::new(volume.clone()), NAME)?;
    let put = |name: &str, value: u8| -> Result<()> {
        let tx = db.begin_write()?;
        let mut table = tx.open_table(TableDef::<u32, &[u8]>::new(name))?;
        (0..KEYS).try_for_each(|key| table.put(key, &[value; 1000][..]))?;
        drop(table);
        tx.commit()
    };
    put("other", 1)?;
    put("freed", 1)?;
    db.checkpoint()?;
    // A recovery reads these pages for the operations on them.
    put("freed", 2)?;
    let tx = db.begin_write()?;
    tx.drop_table("freed")?;
    tx.commit()?;
    while db.maintain()? {}
    // Superseded images are the reason for a checkpoint of the places.
    put("other", 2)?;
    let engine = &db.shared().engine;
    let store_lsn = || engine.page_store().unwrap().file().meta().store_lsn;
    let before = store_lsn();
    load(&db, 3, false, || engine.checkpoint_places())?;
    assert!(store_lsn() > before, "the checkpoint has the pages of the transaction that is dropped");
    let segments = volume.list(&format!("{NAME}-log."))?;
    let old: Vec<Vec<u8>> = segments.iter().map(|name| read(&volume, name)).collect();
    load(&db, 4, true, || Ok(()))?;
    assert_eq!(volume.list(&format!("{NAME}-log."))?, segments);
    let mut loaded = [0, 0];
    for (name, old) in segments.iter().zip(old) {
        let new = read(&volume, name);
        let changed: Vec<usize> = (0..new.len()).filter(|at| old.get(*at) != new.get(*at)).collect();
        let (Some(first), Some(last)) = (changed.first(), changed.last()) else { continue };
        for end in (*first..*last + 1024).step_by(1024) {
            // What recovery has read stays in the cache.
            let db = options(64 << 20).open_on(cut(&volume, name, end.min(new.len())), NAME)?;
            assert_eq!(db.verify(|_| ())?.findings, [], "the log ends at {end}");
            let tx = db.begin_read()?;
            if tx.tables()?.len() == 1 {
                loaded[0] += 1;
                continue;
            }
            loaded[1] += 1;
            let table = tx.open_table(LOADED)?;
            for key in 0..KEYS {
                let value = table.get(key)?;
                assert!(value.is_some_and(|value| value.value() == [4; 1000]), "key {key}, the log ends at {end}");
            }
        }
    }
    assert!(loaded.iter().all(|times| *times > 4), "{loaded:?}");
    Ok(())
}

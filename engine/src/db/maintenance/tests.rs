//! Tests of maintenance with more allocation maps than the smallest cache has pages, and beside a checkpoint.

use crate::base::{PageId, Result, TableId};
use crate::db::StoreKind;
use crate::io::MemoryVolume;
use crate::store::{Dictionary, DictionaryId, DictionaryPlace, sealed_dictionary};
use crate::txn::ids_per_map;
use crate::{Builder, Database, TableDef};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const NAME: &str = "t.duramen";
const T: TableDef<u32, &[u8]> = TableDef::new("t");
const U: TableDef<u32, &[u8]> = TableDef::new("u");
/// More maps than the smallest cache has pages.
const MAPS: u32 = 76;

fn options() -> Builder {
    Database::builder().page_size(4096).cache(0).background(false)
}

/// Two tables with large values whose pages are in many different allocation maps.
fn scattered(path: &Path) -> Result<Database> {
    let db = options().create(path)?;
    for map in 0..MAPS {
        let tx = db.begin_write()?;
        tx.open_table(T)?.put(map, &*vec![1; 3000])?;
        tx.open_table(U)?.put(map, &*vec![2; 3000])?;
        tx.commit()?;
        // The ids between them are taken now, and are free after the database is opened again.
        db.shared().engine.skip_page_ids(ids_per_map(4096))?;
    }
    db.close()?;
    let db = options().open(path)?;
    assert!(db.shared().engine.map_count() >= MAPS as usize && db.stats().cache_pages < u64::from(MAPS));
    Ok(db)
}

fn check(db: &Database, large: &[(TableDef<u32, &[u8]>, usize)]) -> Result<()> {
    assert_eq!(db.verify(|_| ())?.findings, []);
    for (table, entries) in large {
        let table = db.begin_read()?.open_table(*table)?;
        let is_large = |key: &u32| matches!(table.get(key), Ok(Some(value)) if value.value().len() == 3000);
        assert_eq!((0..MAPS).filter(is_large).count(), *entries);
    }
    Ok(())
}

#[test]
fn large_values_in_very_many_allocation_maps_are_freed_in_the_smallest_cache() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let db = scattered(&folder.path().join(NAME))?;
    let tx = db.begin_write()?;
    tx.drop_table("t")?;
    tx.commit()?;
    while db.maintain()? {}
    assert_eq!(db.stats().detached, 0);
    check(&db, &[(U, MAPS as usize)])?;
    db.close()
}

#[test]
fn freeing_runs_in_many_allocation_maps_works_with_the_smallest_cache() -> Result<()> {
    for way in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        let db = scattered(&folder.path().join(NAME))?;
        let tx = db.begin_write()?;
        for map in 0..MAPS {
            let mut table = tx.open_table(U)?;
            match way {
                0 => table.put(map, &[3; 7][..])?,
                1 => drop(table.remove(map)?),
                _ => table.remove_range(map..map + 1),
            }
        }
        tx.commit()?;
        check(&db, &[(T, MAPS as usize), (U, 0)])?;
        db.close()?;
    }
    Ok(())
}

/// A running checkpoint may lead to images that name a dictionary although no newer image does.
#[test]
fn a_dictionary_is_left_out_only_when_the_running_checkpoint_has_ended() -> Result<()> {
    for kind in [StoreKind::Table, StoreKind::Shadow] {
        let options = Database::builder().store(kind).page_size(16384).background(false);
        let db = options.create_on(Arc::new(MemoryVolume::new()), NAME)?;
        let engine = &db.shared().engine;
        let compression = engine.compression().unwrap();
        let place = DictionaryPlace { id: DictionaryId(7), table: TableId(9), firsts: [5, 6].map(PageId) };
        let trained = [&0xEC30_A437_u32.to_le_bytes()[..], &[7; 300]].concat();
        compression.add_dictionary(place, Dictionary::open(&sealed_dictionary(place.id, &trained)).unwrap());
        std::thread::scope(|scope| {
            let held = engine.hold_batches();
            let checkpoint = scope.spawn(|| db.checkpoint());
            while !engine.has_running_checkpoint() {
                std::thread::yield_now();
            }
            let (left_out, is_left_out) = std::sync::mpsc::channel();
            scope.spawn(move || {
                engine.leave_out_dictionaries(&[place.id]);
                left_out.send(()).unwrap();
            });
            assert!(is_left_out.recv_timeout(Duration::from_millis(100)).is_err(), "{kind:?}");
            assert_eq!(compression.dictionary_places(), [place], "{kind:?}");
            drop(held);
            checkpoint.join().expect("a checkpoint")?;
            is_left_out.recv().unwrap();
            assert_eq!(compression.dictionary_places(), [], "{kind:?}");
            Ok::<(), crate::Error>(())
        })?;
        db.checkpoint()?;
        db.close()?;
    }
    Ok(())
}

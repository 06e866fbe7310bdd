//! Promise: if the free pages or places are unknown, or if there is no space for a log, the database can still be
//! opened and committed data can be read. An attempt to write returns an error with the cause.

use crate::workload::files::bytes_of;
use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::io::{OpenMode, Volume};
use duramen::{Database, Durability, Error, Result, TableDef, TableOptions};
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const TABLE: TableDef<u32, &[u8]> = TableDef::new("t");
const ENTRIES: u32 = 1300;
const GRAIN: usize = 512;
/// Bytes before the first page.
const FRONT: usize = 8192;

fn options() -> duramen::Builder {
    Database::builder().page_size(4096).cache(1 << 20).background(false)
}

/// More pages than a chunk of the page table covers, and one inner page.
fn fill(db: &Database) -> Result<()> {
    let tx = db.begin_write()?;
    let mut table = tx.open_table(TABLE)?;
    for key in 0..ENTRIES {
        table.put(key, &[key as u8; 900][..])?;
    }
    drop(table);
    tx.commit()
}

fn build(store: StoreKind) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let db = options().store(store).create(&path).unwrap();
    fill(&db).unwrap();
    db.close().unwrap();
    (folder, path)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

fn number(bytes: &[u8], at: usize) -> usize {
    usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
}

/// How many entries can be read; the others must be said to be corrupt.
fn readable(db: &Database) -> Result<u32> {
    let tx = db.begin_read()?;
    let table = tx.open_table(TABLE)?;
    let mut readable = 0;
    for key in 0..ENTRIES {
        match table.get(key) {
            Ok(found) => {
                assert_eq!(found.expect("an entry is gone, and nothing was said").value(), [key as u8; 900]);
                readable += 1;
            }
            Err(Error::Corrupt { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(readable)
}

/// Opens it in every way, several times: no way makes it worse for the next.
fn opens_for_reading(path: &Path, expected: std::ops::Range<u32>, cause: &str) -> Result<()> {
    for _ in 0..2 {
        let db = options().open(path)?;
        let found = readable(&db)?;
        assert!(expected.contains(&found), "{found} entries can be read");
        match db.begin_write() {
            Err(stopped @ Error::Poisoned { .. }) => assert!(stopped.to_string().contains(cause), "{stopped}"),
            other => panic!("{:?}", other.map(drop)),
        }
        assert!(!db.verify(|_| ())?.findings.is_empty());
        assert!(db.close().is_err());
        assert!(expected.contains(&readable(&options().open_read_only(path)?)?));
    }
    Ok(())
}

/// The process dies. Neither what its log had reserved or filled with zeros is left, nor a spare file.
fn die_without_reserve(db: Database, volume: &FailingVolume) -> Result<()> {
    volume.power_off_at(Some(0));
    drop(db);
    volume.power_off_at(None);
    for name in volume.list("t.duramen-log")? {
        let bytes = bytes_of(volume, &name)?;
        if bytes[36] == 2 {
            volume.remove(&name)?;
        } else {
            let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
            volume.open(&name, OpenMode::Write)?.resize(end)?;
        }
    }
    Ok(())
}

#[test]
fn a_damaged_allocation_map_stops_writers_only() -> Result<()> {
    for store in STORES {
        let (_folder, path) = build(store);
        let bytes = fs::read(&path).unwrap();
        let is_map = |image: &[u8]| match store {
            StoreKind::Table => image[4..8] == [0; 4] && image[12..16] == *b"\0IMG",
            // The first slots are those of page 0.
            _ => image.iter().any(|byte| *byte != 0),
        };
        let at = bytes.chunks(GRAIN).skip(FRONT / GRAIN).position(is_map).expect("the image of page 0") * GRAIN;
        flip(&path, FRONT + at + 100);
        opens_for_reading(&path, ENTRIES..ENTRIES + 1, "the allocation map is corrupt: page 0")?;
    }
    Ok(())
}

#[test]
fn a_lost_allocation_map_stops_writers_only() -> Result<()> {
    // The values have the same length, so without a new table no page is allocated, and the log does not name the map.
    lose_the_map(false)?;
    lose_the_map(true)
}

fn lose_the_map(is_in_log: bool) -> Result<()> {
    let volume = FailingVolume::new(1);
    let db = options().store(StoreKind::Shadow).create_on(Arc::new(volume.clone()), "t.duramen")?;
    fill(&db)?;
    db.checkpoint()?;
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Commit);
    (0..ENTRIES).try_for_each(|key| tx.open_table(TABLE)?.put(key, &[key as u8; 900][..]))?;
    if is_in_log {
        drop(tx.create_untyped("new", "u32", "u32", TableOptions::default())?);
    }
    tx.commit()?;
    let killed = volume.crash(Cut { event: volume.events(), choice: CutChoice::KeepAll });
    let file = killed.open("t.duramen", OpenMode::Write)?;
    let mut area = vec![0; 2 * 4096 + 2 * 4096];
    file.read_at(FRONT as u64, &mut area)?;
    assert!(area.iter().any(|byte| *byte != 0), "the area of page 0 is not there");
    file.write_at(FRONT as u64, &vec![0; area.len()])?;
    drop(file);
    for _ in 0..2 {
        let db = options().open_on(Arc::new(killed.clone()), "t.duramen")?;
        assert_eq!(readable(&db)?, ENTRIES);
        match db.begin_write() {
            Err(stopped @ Error::Poisoned { .. }) => assert!(stopped.to_string().contains("the allocation map")),
            other => panic!("{:?}", other.map(drop)),
        }
        assert!(!db.verify(|_| ())?.findings.is_empty());
        assert!(db.close().is_err());
    }
    Ok(())
}

#[test]
fn a_damaged_chunk_of_the_page_table_costs_its_pages_and_stops_writers() -> Result<()> {
    let (_folder, path) = build(StoreKind::Table);
    let bytes = fs::read(&path).unwrap();
    // Both superblocks of a closed file say the same. The directory's first location is that of the first group of
    // chunks, whose second location is that of pages 256 to 511.
    let at = |location: usize| (number(&bytes, location) & ((1 << 40) - 1)) * GRAIN;
    let group = at(number(&bytes, 84) * GRAIN);
    let chunk = at(group + 12);
    flip(&path, chunk + 7);
    opens_for_reading(&path, ENTRIES / 2..ENTRIES - 100, "pages 256 to 511")
}

#[test]
fn a_device_without_room_for_a_log_stops_writers_until_there_is_some() -> Result<()> {
    STORES.into_iter().try_for_each(open_without_room_for_a_log)
}

fn open_without_room_for_a_log(store: StoreKind) -> Result<()> {
    let volume = FailingVolume::new(0);
    let db = options().store(store).create_on(Arc::new(volume.clone()), "t.duramen")?;
    fill(&db)?;
    db.close()?;
    volume.limit_space(Some(0));
    let db = options().open_on(Arc::new(volume.clone()), "t.duramen")?;
    assert_eq!(readable(&db)?, ENTRIES);
    let refused = db.begin_write().map(drop).expect_err("a database without a log");
    assert!(matches!(&refused, Error::Poisoned { cause } if cause.contains("no space left")), "{refused}");
    // Nothing was going on that could have been stopped.
    assert!(refused.to_string().starts_with("the database cannot be written: no space left on"), "{refused}");
    drop(db);
    volume.limit_space(None);
    let db = options().open_on(Arc::new(volume.clone()), "t.duramen")?;
    fill(&db)?;
    // Nor is it lost for reading when it was not closed.
    die_without_reserve(db, &volume)?;
    volume.limit_space(Some(0));
    let db = options().open_on(Arc::new(volume.clone()), "t.duramen")?;
    assert_eq!(readable(&db)?, ENTRIES);
    assert!(matches!(db.begin_write(), Err(Error::Poisoned { cause }) if cause.contains("no space left")));
    drop(db);
    volume.limit_space(None);
    let db = options().open_on(Arc::new(volume), "t.duramen")?;
    fill(&db)?;
    db.close()
}

/// Redo gives up pages in the small cache, although no log goes on. The power fails meanwhile or after it.
#[test]
fn a_recovery_without_room_for_a_log_can_be_cut_and_repeated() -> Result<()> {
    STORES.into_iter().try_for_each(cut_a_recovery_without_a_log)
}

fn cut_a_recovery_without_a_log(store: StoreKind) -> Result<()> {
    let volume = FailingVolume::new(0);
    // The first process writes no page after its checkpoint.
    let db = options().store(store).cache(64 << 20).create_on(Arc::new(volume.clone()), "t.duramen")?;
    fill(&db)?;
    db.checkpoint()?;
    fill(&db)?;
    die_without_reserve(db, &volume)?;
    volume.limit_space(Some(0));
    let (begun, options) = (volume.events(), options().cache(0));
    let db = options.open_on(Arc::new(volume.clone()), "t.duramen")?;
    assert_eq!(readable(&db)?, ENTRIES, "{store:?}");
    assert!(matches!(db.begin_write(), Err(Error::Poisoned { cause }) if cause.contains("no space left")));
    drop(db);
    let cuts: Vec<_> = volume.cuts(1).into_iter().filter(|cut| cut.event >= begun).collect();
    assert!(cuts.len() > 50, "{store:?}: redo has written nothing: {} cuts", cuts.len());
    let step = cuts.len() / 100;
    for cut in cuts.into_iter().step_by(step) {
        let what = format!("{store:?}, {cut:?}, a {}", volume.describe(cut.event));
        let db = options.open_on(Arc::new(volume.crash(cut)), "t.duramen");
        let db = db.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!((readable(&db)?, db.verify(|_| ())?.findings), (ENTRIES, vec![]), "{what}");
        fill(&db)?;
    }
    Ok(())
}

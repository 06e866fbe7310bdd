//! Promise: damage to what all else hangs on (superblocks, page table, catalog, inner pages, log) costs no more than the
//! pages that it hits. Wherever a sector of the file is damaged, what a rescue finds and what it tells as lost make up
//! the whole database, and no entry is a wrong one.

use duramen::db::types::KeyLayout;
use duramen::db::{ReadOnlyUntypedTable, Salvaged};
use duramen::io::{MemoryVolume, OpenMode, Volume};
use duramen::{Codec, Database, Error, Result, TableOptions};
use std::collections::BTreeMap;
use std::sync::Arc;

const NAME: &str = "forest";
const SECTOR: usize = 512;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> duramen::Builder {
    Database::builder().page_size(4096).cache(0).background(false)
}

/// The tables, in the order in which they are made.
fn tables() -> Vec<(&'static str, TableOptions, Entries)> {
    let name = |n: u32| format!("{n:06}{:x<150}", "").into_bytes();
    let text = |n: u32| format!("the value of {n:06}, ").repeat(if n % 150 == 7 { 700 } else { 2 }).into_bytes();
    let long = |n: u32| format!("{:y<3000}{n:06}", "").into_bytes();
    let keys = |keys| TableOptions { keys: Some(keys), ..TableOptions::default() };
    let blocks = TableOptions { codec: Some(Codec::SimdFor), ..TableOptions::default() };
    vec![
        ("names", keys(KeyLayout::Plain), (0..700).map(|n| (name(n), text(n))).collect()),
        ("numbers", blocks, (0..6000u32).map(|n| (n.to_be_bytes().to_vec(), n.to_be_bytes().to_vec())).collect()),
        ("long", keys(KeyLayout::Head), (0..40).map(|n| (long(n), text(n))).collect()),
        ("small", keys(KeyLayout::Head), (0..3).map(|n| (name(n), text(n))).collect()),
    ]
}

fn types(name: &str) -> (&'static str, &'static str) {
    if name == "numbers" { ("u32", "u32") } else { ("bytes", "bytes") }
}

/// A database of these tables; open, or closed in order.
fn build() -> Result<(Arc<MemoryVolume>, Database)> {
    let volume = Arc::new(MemoryVolume::new());
    let db = options().create_on(volume.clone(), NAME)?;
    for (name, options, entries) in tables() {
        let tx = db.begin_write()?;
        {
            let mut table = tx.create_untyped(name, types(name).0, types(name).1, options)?;
            entries.iter().try_for_each(|(key, value)| table.put(key, value).map(drop))?;
        }
        tx.commit()?;
    }
    Ok((volume, db))
}

fn content(volume: &MemoryVolume, name: &str) -> Vec<u8> {
    let disk = volume.open(name, OpenMode::Read).unwrap();
    let mut bytes = vec![0; usize::try_from(disk.size().unwrap()).unwrap()];
    disk.read_at(0, &mut bytes).unwrap();
    bytes
}

/// A copy of the files in which the bytes from `at` on are overwritten.
fn damaged(volume: &MemoryVolume, name: &str, at: usize, with: &[u8]) -> Arc<MemoryVolume> {
    let copy = MemoryVolume::new();
    for file in volume.list(NAME).unwrap() {
        let disk = copy.open(&file, OpenMode::CreateNew).unwrap();
        disk.write_at(0, &content(volume, &file)).unwrap();
        if file == name {
            disk.write_at(at as u64, with).unwrap();
        }
    }
    Arc::new(copy)
}

/// How many entries are lost; holds that all others are there, as they were, and that those are told.
fn judge(table: &ReadOnlyUntypedTable, model: &Entries, what: &str) -> Result<usize> {
    let (mut left, mut lost) = (0, Vec::new());
    let mut salvage = table.salvage(..);
    while let Some(found) = salvage.next_with(|key, value| assert_eq!(model.get(key).unwrap(), value, "{what}"))? {
        match found {
            Salvaged::Entry(()) => left += 1,
            Salvaged::Lost(range) => lost.push(range),
        }
    }
    let is_lost = |key: &[u8]| {
        lost.iter().any(|range| *range.lower <= *key && range.upper.as_ref().is_none_or(|upper| key < upper.as_slice()))
    };
    let told = model.keys().filter(|key| is_lost(key)).count();
    assert!(left + told >= model.len(), "{what}: {left} are left of {}, {told} are told as lost", model.len());
    Ok(model.len() - left)
}

/// Opens what is left and judges each table, under its own name or by its number; gives how many entries are lost.
fn rescue(volume: Arc<MemoryVolume>, what: &str) -> Result<(Vec<usize>, Vec<String>)> {
    let before: Vec<_> = volume.list(NAME)?.iter().map(|file| content(&volume, file)).collect();
    let (db, damage) = options().open_damaged_on(volume.clone(), NAME)?;
    assert!(matches!(db.begin_write(), Err(Error::ReadOnly)));
    let tx = db.begin_read()?;
    let mut lost = Vec::new();
    for (n, (name, _, entries)) in tables().into_iter().enumerate() {
        let table = match tx.open_untyped(name) {
            Err(Error::NoTable { .. }) => tx.open_untyped(&format!("table-{}", n + 1)),
            opened => opened,
        };
        lost.push(match table {
            Ok(table) => judge(&table, &entries, &format!("{what}, {name}"))?,
            Err(error) => {
                assert!(!damage.is_empty(), "{what}, {name}: {error}");
                entries.len()
            }
        });
    }
    let after: Vec<_> = volume.list(NAME)?.iter().map(|file| content(&volume, file)).collect();
    assert!(before == after, "{what}: the files are not touched");
    Ok((lost, damage))
}

/// The most entries of each table that one page can have.
const PAGE_HAS: [usize; 4] = [30, 2700, 40, 3];

#[test]
fn wherever_a_sector_is_damaged_no_more_than_its_page_is_lost() -> Result<()> {
    let (volume, db) = build()?;
    db.close()?;
    let size = content(&volume, NAME).len();
    let (mut none, mut some) = (0, 0);
    // Coprime to the sectors of pages and chunks: all kinds are hit.
    for at in (0..size / SECTOR).step_by(3) {
        let what = format!("sector {at}");
        let (lost, damage) = rescue(damaged(&volume, NAME, at * SECTOR, &[0xA5; SECTOR]), &what)?;
        let total: usize = lost.iter().sum();
        assert!(lost.iter().zip(PAGE_HAS).all(|(lost, most)| *lost <= most), "{what}: {lost:?}, {damage:?}");
        assert!(lost.iter().filter(|lost| **lost > 0).count() <= 1, "{what}: {lost:?}");
        if total == 0 { none += 1 } else { some += 1 }
    }
    assert!(none > 10 && some > 100, "{none} {some}");
    Ok(())
}

#[test]
fn nothing_is_lost_with_all_that_leads_to_the_pages() -> Result<()> {
    let (volume, db) = build()?;
    db.close()?;
    let (lost, damage) = rescue(damaged(&volume, NAME, 0, &[0; 8192]), "both superblocks")?;
    assert_eq!(lost, [0; 4]);
    assert!(damage[0].starts_with("the superblock"), "{damage:?}");
    // The catalog's images, all of them: its root is page 1 and says so.
    let bytes = content(&volume, NAME);
    let copy = damaged(&volume, NAME, 0, &bytes[..1]);
    let disk = copy.open(NAME, OpenMode::Write)?;
    for at in (8192..bytes.len()).step_by(SECTOR) {
        if bytes[at + 13..at + 16] == *b"IMG" && bytes[at + 4..at + 8] == 1u32.to_le_bytes() {
            disk.write_at(at as u64, &[0; SECTOR])?;
        }
    }
    let (lost, damage) = rescue(copy.clone(), "no catalog")?;
    assert_eq!(lost, [0; 4]);
    assert!(damage.iter().any(|line| line.contains("table-2")), "{damage:?}");
    let tables = options().open_damaged_on(copy, NAME)?.0.begin_read()?.tables()?;
    let found: Vec<_> = tables.iter().map(|table| (&*table.name, &*table.key_type, table.entries)).collect();
    let expected =
        [("table-1", "bytes", 700), ("table-2", "u32", 6000), ("table-3", "bytes", 40), ("table-4", "bytes", 3)];
    assert_eq!(found, expected);
    Ok(())
}

#[test]
fn of_a_file_damaged_in_many_places_nothing_wrong_is_read_and_all_loss_is_told() -> Result<()> {
    let (volume, db) = build()?;
    db.close()?;
    let sectors = content(&volume, NAME).len() / SECTOR;
    let mut random = 7u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize
    };
    for round in 0..60 {
        let copy = damaged(&volume, NAME, 0, b"");
        let disk = copy.open(NAME, OpenMode::Write)?;
        for _ in 0..2 + next() % 40 {
            disk.write_at((next() % sectors * SECTOR) as u64, &[0x5A; SECTOR])?;
        }
        rescue(copy, &format!("round {round}"))?;
    }
    Ok(())
}

#[test]
fn a_file_cut_short_loses_what_was_behind_the_cut() -> Result<()> {
    let (volume, db) = build()?;
    db.close()?;
    let size = content(&volume, NAME).len();
    for part in 1..8 {
        let copy = damaged(&volume, NAME, 0, b"");
        copy.open(NAME, OpenMode::Write)?.resize((size * part / 8) as u64)?;
        rescue(copy, &format!("{part} of 8"))?;
    }
    Ok(())
}

#[test]
fn what_is_no_database_is_none() -> Result<()> {
    let volume = Arc::new(MemoryVolume::new());
    assert!(matches!(options().open_damaged_on(volume.clone(), NAME), Err(Error::NotFound { .. })));
    volume.open(NAME, OpenMode::CreateNew)?.write_at(0, &[b'x'; 100_000])?;
    assert!(matches!(options().open_damaged_on(volume, NAME), Err(Error::NotADatabase { .. })));
    Ok(())
}

#[test]
fn of_a_damaged_log_all_before_the_damage_is_kept() -> Result<()> {
    let (volume, db) = build()?;
    let log = volume.list(&format!("{NAME}-log"))?.pop().unwrap();
    let crashed = damaged(&volume, NAME, 0, b"");
    db.close()?;
    let (lost, damage) = rescue(crashed.clone(), "a sound log")?;
    assert_eq!((lost, damage.len()), (vec![0; 4], 0));
    let bytes = content(&crashed, &log);
    let mut kept = Vec::new();
    for part in 1..16 {
        let copy = damaged(&crashed, &log, bytes.len() / 16 * part, &[0xA5; SECTOR]);
        assert!(matches!(options().open_on(copy.clone(), NAME), Err(Error::CorruptLog { .. })), "part {part}");
        let (db, damage) = options().open_damaged_on(copy, NAME)?;
        assert!(damage.iter().any(|line| line.starts_with("the log: ")), "{damage:?}");
        let tables = db.begin_read()?.tables()?;
        kept.push(tables.len());
        for table in tables {
            let (_, _, entries) = tables_by_name(&table.name);
            assert_eq!(judge(&db.begin_read()?.open_untyped(&table.name)?, &entries, "cut log")?, 0);
        }
    }
    assert!(kept.is_sorted() && kept[0] < kept[14], "{kept:?}");
    let copy = damaged(&crashed, NAME, 0, b"");
    copy.remove(&log)?;
    assert!(matches!(options().open_on(copy.clone(), NAME), Err(Error::MissingLog { .. })));
    let (db, damage) = options().open_damaged_on(copy, NAME)?;
    assert!(damage[0].contains("missing"), "{damage:?}");
    assert!(db.begin_read()?.tables()?.is_empty(), "no checkpoint was taken since the creation");
    Ok(())
}

fn tables_by_name(name: &str) -> (&'static str, TableOptions, Entries) {
    tables().into_iter().find(|table| table.0 == name).unwrap()
}

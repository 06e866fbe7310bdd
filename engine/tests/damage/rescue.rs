//! Promise: damage to the central structures (superblocks, page table, catalog, inner pages, log) costs only the
//! entries of the damaged pages. Wherever a sector of the file is damaged, the entries that a rescue finds and the
//! losses that it reports make up the whole database, and no entry is wrong.

use crate::workload::files::{self, bytes_of};
use duramen::db::types::KeyLayout;
use duramen::db::{Compression, Damage, Overflow, ReadOnlyUntypedTable, Salvaged, StoreKind, Target};
use duramen::io::{MemoryVolume, OpenMode, Volume};
use duramen::{Codec, Database, Error, Result, TableOptions};
use duramen_sim::{HookedVolume, Hooks};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const NAME: &str = "forest";
const SUPERBLOCK: usize = 4096;
const SECTOR: usize = 512;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn options() -> duramen::Builder {
    Database::builder().page_size(4096).cache(0).background(false)
}

/// The tables, in the order in which they are made.
fn tables() -> Vec<(&'static str, TableOptions, Entries)> {
    let name = |n: u32| format!("{n:06}{:x<150}", "").into_bytes();
    let text = |n: u32| format!("the value of {n:06}, ").repeat(if n % 150 == 7 { 700 } else { 2 }).into_bytes();
    // Three of every four bytes do not compress. So a full page misses its target of half a page, and a half-full page
    // meets it.
    let mixed = |n: u32| n.wrapping_mul(0x9E37_79B9) >> 8;
    let long = |n: u32| format!("{:03}{:y<3000}{n:06}", n / 50, "").into_bytes();
    let keys = |keys| TableOptions { keys: Some(keys), ..TableOptions::default() };
    let blocks = TableOptions { codec: Some(Codec::SimdFor), ..TableOptions::default() };
    vec![
        ("names", keys(KeyLayout::Plain), (0..700).map(|n| (name(n), text(n))).collect()),
        (
            "numbers",
            blocks,
            (0..6000u32).map(|n| (n.to_be_bytes().to_vec(), mixed(n).to_be_bytes().to_vec())).collect(),
        ),
        ("long", keys(KeyLayout::Head), (0..150).map(|n| (long(n), text(n))).collect()),
        ("small", keys(KeyLayout::Head), (0..3).map(|n| (name(n), text(n))).collect()),
    ]
}

/// The store `shadow` does not compress pages of 4 KiB.
fn page_size(store: StoreKind) -> usize {
    if store == StoreKind::Table { 4096 } else { 8192 }
}

/// The options of a table with its compression. The tables `names` and `numbers` have half a page as their target. The
/// pages of `names` meet it. Full pages of `numbers` miss it, and are split until they meet it.
fn compressed(table: &str, store: StoreKind, options: TableOptions) -> TableOptions {
    let half = Target::Bytes(u32::try_from(page_size(store) / 2).unwrap());
    match table {
        "names" => TableOptions { compression: Compression::Lz4, target: half, ..options },
        "numbers" => {
            TableOptions { compression: Compression::Zlib(6), target: half, overflow: Overflow::Split, ..options }
        }
        "long" => TableOptions { compression: Compression::Zstd(3), ..options },
        _ => options,
    }
}

fn types(name: &str) -> (&'static str, &'static str) {
    if name == "numbers" { ("u32", "u32") } else { ("bytes", "bytes") }
}

/// A database of these tables, and of every other entry an older value, or one that was removed, in pages that nothing
/// leads to any more. It is open.
fn build(store: StoreKind) -> Result<(Arc<MemoryVolume>, Database)> {
    let volume = Arc::new(MemoryVolume::new());
    let db = options().page_size(page_size(store)).store(store).create_on(volume.clone(), NAME)?;
    let wrong = |name: &str, value: &[u8]| if name == "numbers" { vec![9; 4] } else { [b"old ", value].concat() };
    for (name, options, entries) in tables() {
        let tx = db.begin_write()?;
        {
            let options = compressed(name, store, options);
            let mut table = tx.create_untyped(name, types(name).0, types(name).1, options)?;
            entries.iter().try_for_each(|(key, value)| table.put(key, &wrong(name, value)).map(drop))?;
            table.put(&[7; 4], &wrong(name, b""))?;
        }
        tx.commit()?;
    }
    db.checkpoint()?;
    for (name, _, entries) in tables() {
        let tx = db.begin_write()?;
        {
            let mut table = tx.open_untyped(name)?;
            table.remove(&[7; 4])?;
            entries.iter().try_for_each(|(key, value)| table.put(key, value).map(drop))?;
        }
        tx.commit()?;
    }
    Ok((volume, db))
}

/// As [`build`], with the pages split that miss their target, and closed in order.
fn built(store: StoreKind) -> Result<Arc<MemoryVolume>> {
    let (volume, db) = build(store)?;
    for _ in 0..4 {
        db.checkpoint()?;
        while db.maintain()? {}
    }
    let totals = db.metrics().compression;
    assert!(totals.compressed > 0 && totals.missed > 0 && totals.split > 0, "{totals:?}");
    db.checkpoint()?;
    db.close()?;
    Ok(volume)
}

/// The bytes of all files.
fn all_bytes(volume: &MemoryVolume) -> Result<Vec<Vec<u8>>> {
    volume.list(NAME)?.iter().map(|file| bytes_of(volume, file)).collect()
}

/// A copy of the files in which the bytes from `at` on are overwritten.
fn damaged(volume: &MemoryVolume, name: &str, at: usize, with: &[u8]) -> Arc<MemoryVolume> {
    let copy = MemoryVolume::new();
    files::copy(volume, &copy, NAME).unwrap();
    copy.open(name, OpenMode::Write).unwrap().write_at(at as u64, with).unwrap();
    Arc::new(copy)
}

/// Whether entries may be there that were changed or removed since.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Old {
    Never,
    MayBe,
}

/// A value that no entry has any more.
fn is_old(value: &[u8]) -> bool {
    value == [9; 4] || value.starts_with(b"old ")
}

/// The end of a key or a value, in words.
fn show(bytes: &[u8]) -> String {
    bytes[bytes.len().saturating_sub(20)..].escape_ascii().to_string()
}

/// The number of lost entries. Asserts that all other entries are as they were, and that the salvage reports the lost
/// ones.
fn judge(table: &ReadOnlyUntypedTable, model: &Entries, old: Old, what: &str) -> Result<usize> {
    let (mut left, mut lost) = (BTreeSet::new(), Vec::new());
    let mut salvage = table.salvage(..);
    let read = |key: &[u8], value: &[u8]| {
        let key = key.to_vec();
        let right = model.get(&key).is_some_and(|right| *right == value);
        assert!(right || old == Old::MayBe && is_old(value), "{what}: key {} has {}", show(&key), show(value));
        key
    };
    while let Some(found) = salvage.next_with(read)? {
        match found {
            Salvaged::Entry(key) => assert!(left.insert(key), "{what}: given twice"),
            Salvaged::Lost(range) => lost.push(range),
        }
    }
    let is_lost = |key: &[u8]| {
        lost.iter().any(|range| *range.lower <= *key && range.upper.as_ref().is_none_or(|upper| key < upper.as_slice()))
    };
    let unreported = model.keys().find(|key| !left.contains(*key) && !is_lost(key));
    assert!(
        unreported.is_none(),
        "{what}: {:?} is neither there nor reported as lost",
        unreported.map(|key| show(key))
    );
    Ok(model.keys().filter(|key| !left.contains(*key)).count())
}

/// Opens what is left and judges each table, under its own name or by its number; gives how many entries are lost.
fn rescue(volume: Arc<MemoryVolume>, old: Old, what: &str) -> Result<(Vec<usize>, Vec<Damage>)> {
    let before = all_bytes(&volume)?;
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
            Ok(table) => judge(&table, &entries, old, &format!("{what}, {name}"))?,
            Err(error) => {
                assert!(!damage.is_empty(), "{what}, {name}: {error}");
                entries.len()
            }
        });
    }
    for damage in &damage {
        assert!(!damage.to_string().contains("--skip-damaged"), "{what}: {damage}");
    }
    let after = all_bytes(&volume)?;
    assert!(before == after, "{what}: the files are not touched");
    Ok((lost, damage))
}

/// The most entries of each table that one page of 4 KiB can have.
const PAGE_HAS: [usize; 4] = [30, 2700, 100, 3];

#[test]
fn wherever_a_sector_is_damaged_no_more_than_its_page_is_lost() -> Result<()> {
    damage_sectors(StoreKind::Table, 4)?;
    // Half of that file are holes, and its pages are not packed.
    damage_sectors(StoreKind::Shadow, 17)
}

fn damage_sectors(store: StoreKind, step: usize) -> Result<()> {
    let volume = built(store)?;
    let size = bytes_of(&*volume, NAME)?.len();
    let (mut none, mut some) = (0, 0);
    // Every chunk and the directory have more sectors than that.
    for at in (0..size / SECTOR).step_by(step) {
        let what = format!("{store:?}, sector {at}");
        let (lost, damage) = rescue(damaged(&volume, NAME, at * SECTOR, &[0xA5; SECTOR]), Old::Never, &what)?;
        let total: usize = lost.iter().sum();
        let most = PAGE_HAS.map(|most| most * page_size(store) / 4096);
        assert!(lost.iter().zip(most).all(|(lost, most)| *lost <= most), "{what}: {lost:?}, {damage:?}");
        assert!(lost.iter().filter(|lost| **lost > 0).count() <= 1, "{what}: {lost:?}");
        if total == 0 { none += 1 } else { some += 1 }
    }
    assert!(none > 10 && some > 60, "{none} {some}");
    Ok(())
}

#[test]
fn all_pages_are_found_from_the_slots_alone() -> Result<()> {
    for page_size in [4096, 16384] {
        let volume = Arc::new(MemoryVolume::new());
        let db = options().page_size(page_size).store(StoreKind::Shadow).create_on(volume.clone(), NAME)?;
        for (name, options, entries) in tables() {
            let tx = db.begin_write()?;
            let mut table = tx.create_untyped(name, types(name).0, types(name).1, options)?;
            entries.iter().try_for_each(|(key, value)| table.put(key, value).map(drop))?;
            drop(table);
            tx.commit()?;
        }
        db.close()?;
        // The first page of all is an allocation map: without it the geometry is in the others.
        for len in [8192, 8192 + 2 * page_size] {
            let what = format!("{len} bytes of a file with pages of {page_size}");
            let copy = damaged(&volume, NAME, 0, &vec![0; len]);
            let opened = options().open_on(copy.clone(), NAME).map(drop);
            assert!(matches!(opened, Err(Error::CorruptMeta { .. })), "{what}: {opened:?}");
            let (lost, damage) = rescue(copy, Old::Never, &what)?;
            assert_eq!(lost, [0; 4], "{what}: {damage:?}");
            assert!(matches!(damage[0], Damage::Superblocks { .. }), "{what}: {damage:?}");
        }
        for byte in 0..2 {
            let copy = damaged(&volume, NAME, byte * 4096, &[0; 4096]);
            assert_eq!(rescue(copy, Old::Never, "a superblock")?.0, [0; 4]);
        }
    }
    Ok(())
}

#[test]
fn a_damaged_map_of_slots_loses_nothing_and_is_reported() -> Result<()> {
    let volume = built(StoreKind::Shadow)?;
    let (_, damage) = rescue(volume.clone(), Old::Never, "undamaged")?;
    assert!(damage.is_empty(), "{damage:?}");
    // The map is the last thing in the file, and one block of it has all these pages.
    let size = bytes_of(&*volume, NAME)?.len();
    let (lost, damage) = rescue(damaged(&volume, NAME, size - 100, &[0xA5]), Old::Never, "the map")?;
    assert_eq!(lost, [0; 4]);
    match &damage[..] {
        [Damage::SlotMapPart { first, last }] => assert!(first.0 == 0 && last.0 > 20 && last.0 < 2040, "{damage:?}"),
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[test]
fn a_rescue_without_superblocks_or_catalog_loses_nothing() -> Result<()> {
    let volume = built(StoreKind::Table)?;
    let (lost, damage) = rescue(damaged(&volume, NAME, 0, &[0; 8192]), Old::Never, "both superblocks")?;
    assert_eq!(lost, [0; 4]);
    assert!(matches!(damage[0], Damage::Superblocks { .. }), "{damage:?}");
    // The catalog's images, all of them: its root is page 1 and says so.
    let bytes = bytes_of(&*volume, NAME)?;
    let copy = damaged(&volume, NAME, 0, &bytes[..1]);
    let disk = copy.open(NAME, OpenMode::Write)?;
    for at in (8192..bytes.len()).step_by(SECTOR) {
        if bytes[at + 13..at + 16] == *b"IMG" && bytes[at + 4..at + 8] == 1u32.to_le_bytes() {
            disk.write_at(at as u64, &[0; SECTOR])?;
        }
    }
    let (lost, damage) = rescue(copy.clone(), Old::Never, "no catalog")?;
    assert_eq!(lost, [0; 4]);
    let unnamed: Vec<_> =
        damage.iter().filter(|damage| matches!(damage, Damage::TableFound { named: false, .. })).collect();
    assert!(unnamed.iter().any(|damage| damage.table() == Some("table-2")) && unnamed.len() == 4, "{damage:?}");
    let tables = options().open_damaged_on(copy, NAME)?.0.begin_read()?.tables()?;
    let found: Vec<_> = tables.iter().map(|table| (&*table.name, &*table.key_type, table.entries)).collect();
    let expected =
        [("table-1", "bytes", 700), ("table-2", "u32", 6000), ("table-3", "bytes", 150), ("table-4", "bytes", 3)];
    assert_eq!(found, expected);
    Ok(())
}

#[test]
fn a_file_damaged_in_many_places_gives_no_wrong_entry_and_every_loss_is_reported() -> Result<()> {
    let volume = built(StoreKind::Table)?;
    let sectors = bytes_of(&*volume, NAME)?.len() / SECTOR;
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
        rescue(copy, Old::MayBe, &format!("round {round}"))?;
    }
    Ok(())
}

#[test]
fn a_truncated_file_gives_no_wrong_entry_and_every_loss_is_reported() -> Result<()> {
    let volume = built(StoreKind::Table)?;
    let size = bytes_of(&*volume, NAME)?.len();
    for part in 1..8 {
        let copy = damaged(&volume, NAME, 0, b"");
        copy.open(NAME, OpenMode::Write)?.resize((size * part / 8) as u64)?;
        // Of a page whose image was after the cut there may be an older one before it.
        rescue(copy, Old::MayBe, &format!("{part} of 8"))?;
    }
    Ok(())
}

#[test]
fn a_file_that_is_not_a_database_is_refused() -> Result<()> {
    let volume = Arc::new(MemoryVolume::new());
    assert!(matches!(options().open_damaged_on(volume.clone(), NAME), Err(Error::NotFound { .. })));
    volume.open(NAME, OpenMode::CreateNew)?.write_at(0, &[b'x'; 100_000])?;
    assert!(matches!(options().open_damaged_on(volume, NAME), Err(Error::NotADatabase { .. })));
    Ok(())
}

/// The device loses the write of one superblock, and later damages the other one.
#[test]
fn an_older_superblock_does_not_bring_older_entries_back() -> Result<()> {
    let (volume, db) = build(StoreKind::Table)?;
    let older = bytes_of(&*volume, NAME)?[..SUPERBLOCK].to_vec();
    db.checkpoint()?;
    let crashed = damaged(&volume, NAME, 0, b"");
    db.close()?;
    for slot in [0, 1] {
        let lost = damaged(&crashed, NAME, (1 - slot) * SUPERBLOCK, &older);
        let copy = damaged(&lost, NAME, slot * SUPERBLOCK + 64, &[0xA5; SECTOR]);
        let (lost, damage) = rescue(copy, Old::Never, &format!("superblock {slot}"))?;
        assert_eq!(lost, [0; 4], "{damage:?}");
        assert!(damage.iter().any(|found| matches!(found, Damage::Superblock { slot: it } if *it == slot)), "{slot}");
    }
    Ok(())
}

/// A disk that cannot read one sector.
#[derive(Debug)]
struct BadSector {
    file: String,
    at: u64,
}

impl Hooks for BadSector {
    fn before_read(&self, name: &str, offset: u64, len: usize) -> Result<()> {
        if name == self.file && offset < self.at + SECTOR as u64 && self.at < offset + len as u64 {
            return Err(Error::io("cannot read", name, std::io::ErrorKind::Other.into()));
        }
        Ok(())
    }
}

#[test]
fn unreadable_sectors_give_no_wrong_entry_and_every_loss_is_reported() -> Result<()> {
    let (volume, db) = build(StoreKind::Table)?;
    let log = volume.list(&format!("{NAME}-log"))?.pop().unwrap();
    let crashed = damaged(&volume, NAME, 0, b"");
    db.close()?;
    for (volume, file) in [(volume, NAME), (crashed.clone(), NAME), (crashed, &log)] {
        for sector in (0..bytes_of(&*volume, file)?.len() / SECTOR).step_by(83) {
            let hooks = Arc::new(BadSector { file: file.to_owned(), at: (sector * SECTOR) as u64 });
            let (db, _) = options().open_damaged_on(Arc::new(HookedVolume::new(volume.clone(), hooks)), NAME)?;
            for table in db.begin_read()?.tables()? {
                // Of a log that ends early older values are right.
                if let (true, Some(found)) = (file == NAME, tables().into_iter().find(|found| found.0 == table.name)) {
                    judge(
                        &db.begin_read()?.open_untyped(&table.name)?,
                        &found.2,
                        Old::Never,
                        &format!("sector {sector}"),
                    )?;
                }
            }
        }
    }
    Ok(())
}

#[test]
fn a_catalog_of_many_pages_is_found_again() -> Result<()> {
    let volume = Arc::new(MemoryVolume::new());
    let options = || options().cache(8 << 20);
    let db = options().create_on(volume.clone(), NAME)?;
    let name = |n: u32| format!("{n:04}{:-<300}", "");
    let tx = db.begin_write()?;
    for n in 0..400 {
        tx.create_untyped(&name(n), "u32", "()", TableOptions::default())?.put(&n.to_be_bytes(), b"")?;
    }
    tx.commit()?;
    db.close()?;
    for at in (16..bytes_of(&*volume, NAME)?.len() / SECTOR).step_by(13) {
        let (db, damage) = options().open_damaged_on(damaged(&volume, NAME, at * SECTOR, &[0xA5; SECTOR]), NAME)?;
        let tx = db.begin_read()?;
        let found = tx.tables()?;
        assert_eq!(found.len(), 400, "sector {at}: {damage:?}");
        let lost = found.iter().filter(|table| tx.open_untyped(&table.name).and_then(|table| table.count(..)).is_err());
        assert!(lost.count() <= 1, "sector {at}: {damage:?}");
    }
    Ok(())
}

#[test]
fn all_batches_before_the_damage_of_a_log_are_kept() -> Result<()> {
    let (volume, db) = build(StoreKind::Table)?;
    let log = volume.list(&format!("{NAME}-log"))?.pop().unwrap();
    let crashed = damaged(&volume, NAME, 0, b"");
    db.close()?;
    let (lost, damage) = rescue(crashed.clone(), Old::Never, "a sound log")?;
    assert_eq!((lost, damage.len()), (vec![0; 4], 0));
    let bytes = bytes_of(&*crashed, &log)?;
    // After it are zeros.
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    let mut kept = Vec::new();
    for part in 1..16 {
        let copy = damaged(&crashed, &log, end / 16 * part, &[0xA5; SECTOR]);
        assert!(matches!(options().open_on(copy.clone(), NAME), Err(Error::CorruptLog { .. })), "part {part}");
        let (db, damage) = options().open_damaged_on(copy, NAME)?;
        let log = |found: &Damage| matches!(found, Damage::Log { cause: Error::CorruptLog { .. } });
        assert!(damage.iter().any(log), "{damage:?}");
        let torn = damage.iter().any(|found| matches!(found, Damage::LogTorn));
        // A commit is there whole, or not at all, unless the damage is reported.
        let first = |name: &str, entries: &Entries| -> Result<bool> {
            let table = db.begin_read()?.open_untyped(name)?;
            let (right, count) = entries.iter().try_fold((0, 0), |(right, count), (key, value)| {
                Ok::<_, Error>((right + usize::from(table.get(key)?.as_ref() == Some(value)), count + 1))
            })?;
            assert!(right == 0 || right == count || torn, "part {part}, {name}: {right} of {count}");
            Ok(right > 0)
        };
        let changed = tables().iter().map(|(name, _, entries)| first(name, entries)).collect::<Result<Vec<_>>>()?;
        kept.push(changed.iter().filter(|changed| **changed).count());
    }
    assert!(kept.is_sorted() && kept[0] < kept[14], "{kept:?}");
    let copy = damaged(&crashed, NAME, 0, b"");
    copy.remove(&log)?;
    assert!(matches!(options().open_on(copy.clone(), NAME), Err(Error::MissingLog { .. })));
    let (db, damage) = options().open_damaged_on(copy, NAME)?;
    assert!(matches!(damage[0], Damage::Log { cause: Error::MissingLog { .. } }), "{damage:?}");
    assert_eq!(db.begin_read()?.tables()?.len(), 4, "the last checkpoint has them");
    Ok(())
}

#[test]
fn an_old_copy_of_the_catalog_does_not_hide_tables() -> Result<()> {
    let volume = Arc::new(MemoryVolume::new());
    // All pages are written at the end, the catalog among the last.
    let options = || options().cache(8 << 20);
    let db = options().create_on(volume.clone(), NAME)?;
    db.checkpoint()?;
    let (name, table_options, entries) = tables().swap_remove(0);
    let tx = db.begin_write()?;
    {
        let mut table = tx.create_untyped(name, "bytes", "bytes", table_options)?;
        entries.iter().try_for_each(|(key, value)| table.put(key, value).map(drop))?;
    }
    tx.commit()?;
    db.close()?;
    let bytes = bytes_of(&*volume, NAME)?;
    let is_catalog = |at: &usize| bytes[at + 13..at + 16] == *b"IMG" && bytes[at + 4..at + 8] == 1u32.to_le_bytes();
    let copies: Vec<usize> = (8192..bytes.len()).step_by(SECTOR).filter(is_catalog).collect();
    let len = |at: &usize| u32::from_le_bytes(bytes[at + 8..at + 12].try_into().unwrap());
    let oldest = *copies.iter().min_by_key(|at| len(at)).unwrap();
    assert!(copies.len() > 1, "the catalog of the creation, which knows no table, is still there");
    let copy = damaged(&volume, NAME, 0, &[0; 8192]);
    let disk = copy.open(NAME, OpenMode::Write)?;
    copies.iter().filter(|at| **at != oldest).try_for_each(|at| disk.write_at(*at as u64, &[0; SECTOR]))?;
    let (db, damage) = options().open_damaged_on(copy, NAME)?;
    let tx = db.begin_read()?;
    let found = tx.tables()?;
    assert_eq!(found.len(), 1, "{damage:?}");
    assert_eq!(judge(&tx.open_untyped(&found[0].name)?, &entries, Old::Never, "an old catalog")?, 0);
    assert!(damage.iter().any(|found| matches!(found, Damage::CatalogOlder)), "{damage:?}");
    Ok(())
}

/// Puts a value at each of the keys, which are one byte long.
fn put(db: &Database, table: &str, keys: std::ops::Range<u8>, value: &[u8]) -> Result<()> {
    let tx = db.begin_write()?;
    {
        let mut table = tx.open_untyped(table)?;
        keys.into_iter().try_for_each(|key| table.put(&[key], value))?;
    }
    tx.commit()
}

#[test]
fn a_page_older_than_the_start_of_the_log_loses_its_keys_and_the_rest_of_the_log_is_applied() -> Result<()> {
    let volume = Arc::new(MemoryVolume::new());
    let db = options().create_on(volume.clone(), NAME)?;
    for name in ["first", "second"] {
        let tx = db.begin_write()?;
        drop(tx.create_untyped(name, "bytes", "bytes", TableOptions::default())?);
        tx.commit()?;
        put(&db, name, 0..3, b"old")?;
    }
    db.checkpoint()?;
    put(&db, "first", 0..40, b"older")?;
    db.checkpoint()?;
    // The log begins with the page of forty entries.
    put(&db, "first", 39..40, b"newer")?;
    put(&db, "second", 0..3, b"newer")?;
    let crashed = damaged(&volume, NAME, 0, b"");
    drop(db);
    let bytes = bytes_of(&*crashed, NAME)?;
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    // The superblock that counts has the greater sequence, and says where the directory of the page table is.
    let superblock = if number(32) > number(4096 + 32) { 0 } else { 4096 };
    let directory = usize::try_from(number(superblock + 84)).unwrap() * SECTOR;
    let newest = bytes.windows(5).rposition(|text| text == b"older").unwrap() / SECTOR * SECTOR;
    let copy = damaged(&crashed, NAME, directory, &[0xA5; SECTOR]);
    copy.open(NAME, OpenMode::Write)?.write_at(newest as u64, &[0; SECTOR])?;
    let (db, damage) = options().open_damaged_on(copy, NAME)?;
    assert!(damage.iter().all(|damage| !matches!(damage, Damage::Log { .. })), "{damage:?}");
    assert!(matches!(damage[0], Damage::PageTable { .. }), "{damage:?}");
    let tx = db.begin_read()?;
    let second = tx.open_untyped("second")?;
    assert!((0..3).all(|key| second.get(&[key]).unwrap().as_deref() == Some(b"newer")), "{damage:?}");
    let first = tx.open_untyped("first")?;
    let lost = first.salvage(..).next_with(|key, value| (key.to_vec(), value.to_vec()))?;
    assert!(matches!(lost, Some(Salvaged::Lost(_))), "{lost:?}");
    Ok(())
}

#[test]
fn a_dropped_table_does_not_come_back_while_the_catalog_can_be_read() -> Result<()> {
    let volume = built(StoreKind::Table)?;
    let db = options().open_on(volume.clone(), NAME)?;
    let tx = db.begin_write()?;
    assert!(tx.drop_table("numbers")?);
    tx.commit()?;
    db.checkpoint()?;
    let copy = damaged(&volume, NAME, 0, &[0; 8192]);
    drop(db);
    // Its pages are still in the file, and free.
    let (db, damage) = options().open_damaged_on(copy, NAME)?;
    let names: Vec<_> = db.begin_read()?.tables()?.into_iter().map(|table| table.name).collect();
    assert_eq!(names, ["long", "names", "small"], "{damage:?}");
    Ok(())
}

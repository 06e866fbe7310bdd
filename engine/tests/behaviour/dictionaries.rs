//! Promise: a dictionary is trained where it pays, pages are compressed with it, and it is never dropped while an image
//! names it. Whoever reads the file finds it: a reader, a recovery, and a rescue. Power cuts are in
//! `crash_dictionaries`.

#![cfg(feature = "zstd")]

use crate::workload::documents::{DOCUMENTS, document, put};
use crate::workload::files;
use crate::workload::stores::STORES;
use duramen::base::checksum::checksum;
use duramen::db::{Compression, CompressionPlan, Damage, DictionaryInfo, Phase, Progress, StoreKind, Strategy};
use duramen::io::{MemoryVolume, OpenMode, Volume};
use duramen::{Builder, Database, Durability, Error, Result, TableDef};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const NAME: &str = "t.duramen";

fn options() -> Builder {
    Database::builder().cache(1 << 20).background(false)
}

fn check(db: &Database, table: TableDef<u64, &str>, count: u64, kind: u64) -> Result<()> {
    assert_eq!(db.verify(|_| ())?.findings, []);
    let table = db.begin_read()?.open_table(table)?;
    assert_eq!(table.len(), count);
    for entry in table.range(..) {
        let (key, value) = entry?;
        assert_eq!(value.value(), document(key.value(), kind));
    }
    Ok(())
}

fn build(volume: &Arc<MemoryVolume>, store: StoreKind, keys: u64) -> Result<Database> {
    let page_size = if store == StoreKind::Table { 8192 } else { 16384 };
    let db = options().store(store).page_size(page_size).create_on(volume.clone(), NAME)?;
    put(&db, DOCUMENTS, 0..keys, 0)?;
    Ok(db)
}

fn used(db: &Database) -> Result<Vec<u32>> {
    let all: Vec<DictionaryInfo> = db.dictionaries()?;
    Ok(all.iter().filter(|one| one.is_used).map(|one| one.number).collect())
}

#[test]
fn a_compaction_trains_a_dictionary_that_saves_space() -> Result<()> {
    for store in STORES {
        let volume = Arc::new(MemoryVolume::new());
        let db = build(&volume, store, 30_000)?;
        assert_eq!(db.dictionaries()?, []);
        let plain = CompressionPlan::new(Strategy::All, Compression::Zstd(3));
        db.compact_with(&plain, |_| ())?;
        let without = db.stats().live_bytes;
        assert_eq!(db.dictionaries()?, []);
        let plan = plain.dictionary(true);
        let analysis = db.analyze(&plan, |_| ())?[0].dictionary.unwrap();
        assert!(analysis.pays && analysis.saved_bytes > analysis.bytes, "{analysis:?}");
        db.compact_with(&plan, |_| ())?;
        let with = db.stats().live_bytes;
        let [dictionary] = &db.dictionaries()?[..] else { panic!("{:?}", db.dictionaries()) };
        assert_eq!((dictionary.table.as_deref(), dictionary.is_used), (Some("documents"), true));
        assert!(with < without - analysis.bytes / 2, "{store:?}: {with} and {without} bytes: {analysis:?}");
        check(&db, DOCUMENTS, 30_000, 0)?;
        // It is as good for the same data: another compaction keeps it.
        db.compact(|_| ())?;
        assert_eq!(used(&db)?, [dictionary.number]);
        db.close()?;
        for _ in 0..2 {
            let db = options().open_on(volume.clone(), NAME)?;
            assert_eq!(used(&db)?, [dictionary.number]);
            check(&db, DOCUMENTS, 30_000, 0)?;
            put(&db, DOCUMENTS, (0..30_000).step_by(7), 0)?;
            db.close()?;
        }
        let db = options().open_read_only_on(volume.clone(), NAME)?;
        check(&db, DOCUMENTS, 30_000, 0)?;
    }
    Ok(())
}

#[test]
fn a_plan_for_one_table_leaves_the_dictionaries_of_others_as_they_are() -> Result<()> {
    const OTHER: TableDef<u64, &str> = TableDef::new("other").compression(Compression::Zstd(3)).dictionary(true);
    for store in STORES {
        let volume = Arc::new(MemoryVolume::new());
        let db = build(&volume, store, 30_000)?;
        put(&db, OTHER, 0..30_000, 0)?;
        let plan = CompressionPlan::new(Strategy::All, Compression::Zstd(3)).dictionary(true).table("documents");
        for table in db.analyze(&plan, |_| ())? {
            assert_eq!(table.dictionary.is_some(), table.table == "documents", "{store:?}: {table:?}");
        }
        db.compact_with(&plan, |_| ())?;
        let [dictionary] = &db.dictionaries()?[..] else { panic!("{store:?}: {:?}", db.dictionaries()) };
        assert_eq!((dictionary.table.as_deref(), dictionary.is_used), (Some("documents"), true));
        db.compact_with(&CompressionPlan::new(Strategy::All, Compression::Lz4).table("other"), |_| ())?;
        assert_eq!(used(&db)?, [dictionary.number], "{store:?}");
        check(&db, DOCUMENTS, 30_000, 0)?;
        check(&db, OTHER, 30_000, 0)?;
    }
    Ok(())
}

/// The phases before [`Phase::Shrinking`] in order, each with how much it did. Panics if one of them is not complete.
fn whole_phases(reports: &[Progress]) -> Vec<(Phase, u64)> {
    let reports = reports.split(|progress| progress.phase == Phase::Shrinking).next().unwrap_or(&[]);
    assert!(reports.is_sorted_by_key(|progress| (progress.phase, progress.done)), "{reports:?}");
    let phases = reports.chunk_by(|one, next| one.phase == next.phase).filter_map(<[Progress]>::last);
    phases
        .map(|progress| {
            assert_eq!(progress.done, progress.of, "{reports:?}");
            (progress.phase, progress.of)
        })
        .collect()
}

/// Each page of the file is sampled for dictionaries after the analysis of the strategy, if there is one. Then they are
/// trained. A compaction that drops one looks at each page before.
#[test]
fn a_compaction_reports_all_of_its_work_for_dictionaries() -> Result<()> {
    for strategy in [Strategy::All, Strategy::SELECTIVE] {
        let db = build(&Arc::new(MemoryVolume::new()), StoreKind::Table, 10_000)?;
        db.checkpoint()?;
        let pages = db.stats().pages;
        let mut reports = Vec::new();
        let plan = CompressionPlan::new(strategy, Compression::Zstd(3)).dictionary(true);
        db.compact_with(&plan, |done| reports.push(done))?;
        let expected =
            [(Phase::Sampling, pages), (Phase::Training, 7), (Phase::Rebuilding, 10_000), (Phase::Freeing, 1)];
        let analyzed = [(Phase::Analyzing, pages)];
        let analyzed = if strategy == Strategy::All { &[][..] } else { &analyzed };
        assert_eq!(whole_phases(&reports), [analyzed, &expected].concat(), "{reports:?}");
        let starts = reports.iter().filter(|progress| progress.phase == Phase::Training && progress.done == 0);
        assert_eq!(starts.count(), 1, "{reports:?}");

        assert_eq!(db.dictionaries()?.len(), 1);
        let pages = db.stats().pages;
        let mut reports = Vec::new();
        db.analyze(&plan, |done| reports.push(done))?;
        let expected = [(Phase::Analyzing, pages), (Phase::Sampling, pages), (Phase::Training, 7)];
        assert_eq!(whole_phases(&reports), expected, "{reports:?}");

        let mut reports = Vec::new();
        db.compact_with(&CompressionPlan::new(Strategy::None, Compression::Lz4), |done| reports.push(done))?;
        let searched = reports.iter().rfind(|progress| progress.phase == Phase::Searching);
        assert!(searched.is_some_and(|progress| progress.done == progress.of && progress.of > 0), "{reports:?}");
        assert_eq!(db.dictionaries()?, []);
    }
    Ok(())
}

#[test]
fn compactions_of_two_threads_run_one_after_another() -> Result<()> {
    for store in STORES {
        let db = build(&Arc::new(MemoryVolume::new()), store, 3000)?;
        let (db, second_works) = (&db, &AtomicBool::new(false));
        std::thread::scope(|scope| {
            let mut second = None;
            db.compact(|progress| {
                second.get_or_insert_with(|| {
                    scope.spawn(|| db.compact(|_| second_works.store(true, Ordering::Relaxed)).map(drop))
                });
                if progress.phase == Phase::Freeing {
                    std::thread::sleep(Duration::from_millis(100));
                }
                assert!(!second_works.load(Ordering::Relaxed), "{store:?}: both work in {:?}", progress.phase);
            })?;
            second.expect("the first has reported").join().unwrap()
        })?;
        assert!(second_works.load(Ordering::Relaxed));
        check(db, DOCUMENTS, 3000, 0)?;
    }
    Ok(())
}

#[test]
fn a_table_that_is_renamed_during_compactions_keeps_its_dictionary() -> Result<()> {
    const EMPTY: TableDef<u64, &str> = TableDef::new("empty");
    let names = [DOCUMENTS.name(), "another name of the same table"];
    let db = build(&Arc::new(MemoryVolume::new()), StoreKind::Table, 6_000)?;
    let plan = CompressionPlan::new(Strategy::All, Compression::Zstd(3)).dictionary(true);
    db.compact_with(&plan, |_| ())?;
    let dictionary = used(&db)?;
    assert_eq!(dictionary.len(), 1);
    put(&db, EMPTY, 0..1, 0)?;
    let other = plan.table("empty");
    let (db, stop) = (&db, &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let renaming = scope.spawn(|| -> Result<()> {
            for at in (0..2).cycle() {
                let mut tx = db.begin_write()?;
                tx.set_durability(Durability::None);
                tx.rename_table(names[at], names[1 - at])?;
                tx.commit()?;
                if at == 1 && stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            Ok(())
        });
        let compacted = (0..300).try_for_each(|_| db.compact_with(&other, |_| ()).map(drop));
        stop.store(true, Ordering::Relaxed);
        renaming.join().unwrap()?;
        compacted
    })?;
    assert_eq!(used(db)?, dictionary);
    check(db, DOCUMENTS, 6_000, 0)
}

#[test]
fn small_tables_and_random_values_get_no_dictionary() -> Result<()> {
    const RANDOM: TableDef<u64, &[u8]> = TableDef::new("random").compression(Compression::Zstd(3)).dictionary(true);
    for store in STORES {
        let volume = Arc::new(MemoryVolume::new());
        let db = build(&volume, store, 300)?;
        let tx = db.begin_write()?;
        let mut rng = fastrand::Rng::with_seed(1);
        let mut random = tx.open_table(RANDOM)?;
        for key in 0..10_000 {
            let value: [u8; 100] = std::array::from_fn(|_| rng.u8(..));
            random.put(key, value.as_slice())?;
        }
        drop(random);
        tx.commit()?;
        db.compact(|_| ())?;
        assert_eq!(db.dictionaries()?, []);
        check(&db, DOCUMENTS, 300, 0)?;
    }
    let other = TableDef::<u64, &str>::new("other").compression(Compression::Lz4).dictionary(true);
    let tx = Database::in_memory()?.begin_write()?;
    assert!(matches!(tx.open_table(other), Err(Error::Option { option: "dictionary", .. })));
    Ok(())
}

#[test]
fn a_dictionary_stays_as_long_as_an_image_names_it() -> Result<()> {
    for store in STORES {
        let volume = Arc::new(MemoryVolume::new());
        let db = build(&volume, store, 30_000)?;
        db.compact(|_| ())?;
        let [first] = used(&db)?[..] else { panic!("no dictionary") };
        // Other documents need another dictionary. The snapshot needs the pages that name the first one.
        let snapshot = db.begin_read()?.open_table(DOCUMENTS)?;
        put(&db, DOCUMENTS, 0..30_000, 1)?;
        db.compact(|_| ())?;
        let [second] = used(&db)?[..] else { panic!("no dictionary") };
        assert!(second > first);
        assert_eq!(db.dictionaries()?.iter().map(|one| one.number).collect::<Vec<_>>(), [first, second]);
        for entry in snapshot.range(..) {
            let (key, value) = entry?;
            assert_eq!(value.value(), document(key.value(), 0));
        }
        drop(snapshot);
        db.compact(|_| ())?;
        assert_eq!(db.dictionaries()?.iter().map(|one| one.number).collect::<Vec<_>>(), [second]);
        check(&db, DOCUMENTS, 30_000, 1)?;
        // Without the option no new image names it.
        db.compact_with(&CompressionPlan::new(Strategy::All, Compression::Zstd(3)), |_| ())?;
        assert_eq!(db.dictionaries()?, []);
        check(&db, DOCUMENTS, 30_000, 1)?;
        db.compact_with(&CompressionPlan::new(Strategy::All, Compression::Zstd(3)).dictionary(true), |_| ())?;
        assert!(used(&db)?[0] > second, "a number is used once");
        let tx = db.begin_write()?;
        tx.drop_table("documents")?;
        tx.commit()?;
        assert_eq!(db.dictionaries()?[0].table, None);
        db.compact(|_| ())?;
        assert_eq!(db.dictionaries()?, []);
        assert_eq!(db.verify(|_| ())?.findings, []);
        db.close()?;
    }
    Ok(())
}

/// The large values are in pages of their own, which a compaction copies only if it must.
#[test]
fn a_compaction_after_an_interrupted_one_replaces_the_dictionary_of_large_values_too() -> Result<()> {
    const KEYS: u64 = 20_000;
    let large = |key: u64| (0..200).map(|part| document(key + part, 0)).collect::<String>();
    for store in STORES {
        let volume = Arc::new(MemoryVolume::new());
        let db = build(&volume, store, KEYS)?;
        let tx = db.begin_write()?;
        (KEYS..KEYS + 20).try_for_each(|key| tx.open_table(DOCUMENTS)?.put(key, large(key).as_str()).map(drop))?;
        tx.commit()?;
        db.compact(|_| ())?;
        let [first] = used(&db)?[..] else { panic!("no dictionary") };
        put(&db, DOCUMENTS, 0..KEYS, 1)?;
        let mut killed = None;
        db.compact(|progress| {
            if progress.phase == Phase::Rebuilding {
                killed = killed.take().or_else(|| Some(copy(&volume)));
            }
        })?;
        let db = options().open_on(killed.unwrap()?, NAME)?;
        let [second] = used(&db)?[..] else { panic!("no dictionary") };
        assert!(second > first && db.dictionaries()?.len() == 2, "{store:?}: {:?}", db.dictionaries());
        db.compact(|_| ())?;
        assert_eq!(db.dictionaries()?.iter().map(|one| one.number).collect::<Vec<_>>(), [second], "{store:?}");
        assert_eq!(db.verify(|_| ())?.findings, []);
        let table = db.begin_read()?.open_table(DOCUMENTS)?;
        for (key, expected) in [(7, document(7, 1)), (KEYS + 7, large(KEYS + 7))] {
            assert_eq!(table.get(key)?.map(|value| value.value().to_owned()), Some(expected));
        }
    }
    Ok(())
}

/// The files of a database as they are now: those that a kill leaves.
fn copy(volume: &MemoryVolume) -> Result<Arc<MemoryVolume>> {
    let copied = MemoryVolume::new();
    files::copy(volume, &copied, NAME)?;
    Ok(Arc::new(copied))
}

#[test]
fn a_recovery_and_a_rescue_find_the_dictionary() -> Result<()> {
    for store in STORES {
        let volume = Arc::new(MemoryVolume::new());
        let db = build(&volume, store, 30_000)?;
        db.compact(|_| ())?;
        put(&db, DOCUMENTS, (0..30_000).step_by(5), 0)?;
        // A bulk load has images that only the log names.
        const COPY: TableDef<u64, &str> = TableDef::new("copy").compression(Compression::Zstd(3)).dictionary(true);
        let tx = db.begin_write()?;
        let mut load = tx.bulk_load("copy", "u64", "str", COPY.options(), 0.9)?;
        for key in 0..5000u64 {
            load.push(&key.to_be_bytes(), document(key, 0).as_bytes())?;
        }
        load.finish()?;
        tx.commit()?;
        let killed = copy(&volume)?;
        drop(db);
        let recovered = options().open_on(killed.clone(), NAME)?;
        assert_eq!(used(&recovered)?.len(), 1);
        check(&recovered, DOCUMENTS, 30_000, 0)?;
        check(&recovered, COPY, 5000, 0)?;
        recovered.close()?;
        // Without superblocks only the pages tell where dictionaries are.
        killed.open(NAME, OpenMode::Write)?.write_at(0, &[0; 8192])?;
        let (db, damage) = options().open_damaged_on(killed, NAME)?;
        assert!(damage.iter().any(|one| matches!(one, Damage::Superblocks { .. })), "{damage:?}");
        let table = db.begin_read()?.open_table(DOCUMENTS)?;
        assert_eq!(table.range(..).filter(|entry| entry.is_ok()).count(), 30_000, "{store:?}");
    }
    Ok(())
}

/// The positions of the copies of a dictionary in the file. It begins with the magic number of Zstandard and its own.
fn copies(volume: &MemoryVolume, number: u32) -> Result<Vec<u64>> {
    let needle = [0xEC30_A437, number].map(u32::to_le_bytes).concat();
    let file = files::bytes_of(volume, NAME)?;
    Ok((0u64..).zip(file.windows(needle.len())).filter(|(_, bytes)| *bytes == needle).map(|(at, _)| at).collect())
}

#[test]
fn one_copy_may_be_damaged_and_without_both_an_error_names_page_and_dictionary() -> Result<()> {
    for store in STORES {
        let volume = Arc::new(MemoryVolume::new());
        let db = build(&volume, store, 10_000)?;
        db.compact(|_| ())?;
        let [number] = used(&db)?[..] else { panic!("no dictionary") };
        db.close()?;
        let copies = copies(&volume, number)?;
        assert_eq!(copies.len(), 2, "{store:?}");
        for damaged in 0..3 {
            let volume = copy(&volume)?;
            for at in &copies[..damaged.min(copies.len())] {
                volume.open(NAME, OpenMode::Write)?.write_at(at + 100, &[0x5A; 9])?;
            }
            let before = files::bytes_of(&*volume, NAME)?;
            let db = options().open_read_only_on(volume.clone(), NAME)?;
            let found = db.begin_read()?.open_table(DOCUMENTS)?.get(7);
            if damaged < 2 {
                assert_eq!(found?.map(|value| value.value().to_owned()), Some(document(7, 0)), "{store:?}");
                continue;
            }
            let Err(Error::Corrupt { what, .. }) = found else { panic!("{store:?}: {:?}", found.map(|_| ())) };
            assert_eq!(what, format!("its image needs dictionary {number}, which is missing or damaged"));
            assert!(!db.verify(|_| ())?.findings.is_empty());
            assert_eq!(db.dictionaries()?.len(), 1);
            drop(db);
            assert!(files::bytes_of(&*volume, NAME)? == before);
            let db = options().open_on(volume.clone(), NAME)?;
            assert!(matches!(put(&db, DOCUMENTS, 0..9, 0), Err(Error::Corrupt { .. })));
            assert!(matches!(db.compact(|_| ()), Err(Error::Corrupt { .. })));
            assert_eq!(db.dictionaries()?.len(), 1, "it is not dropped");
            drop(db);
            let (db, _) = options().open_damaged_on(volume, NAME)?;
            let table = db.begin_read()?.open_table(DOCUMENTS)?;
            assert!(table.range(..).next().is_none_or(|entry| entry.is_err()), "{store:?}");
        }
    }
    Ok(())
}

/// A field of the place of a dictionary, by its offset, and a wrong value.
type Forgery = (usize, u32);

/// Offsets in the place of a dictionary.
const NUMBER: usize = 0;
const TABLE: usize = 4;
const FIRST: usize = 8;
const SECOND: usize = 12;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn set_u32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Offsets in a superblock: its sequence number, the bytes of the store, and its checksum.
const SEQUENCE: usize = 32;
const STORE_HEADER: usize = 84;
const CHECKSUM: usize = 4092;

/// A golden file whose newest superblock leads to other values: those of the place of its dictionary, and perhaps
/// another count of dictionaries. The checksums are right.
fn forged(store: StoreKind, forgeries: &[Forgery], count: Option<u32>) -> Result<Arc<MemoryVolume>> {
    let name = if store == StoreKind::Table { "dictionary" } else { "shadow-dictionary" };
    let path = format!("{}/tests/golden/{name}.duramen", env!("CARGO_MANIFEST_DIR"));
    let mut file = std::fs::read(path).unwrap();
    let newest = if u32_at(&file, SEQUENCE) > u32_at(&file, 4096 + SEQUENCE) { 0 } else { 4096 };
    let header = newest + STORE_HEADER;
    if store == StoreKind::Shadow {
        forgeries.iter().for_each(|(at, value)| set_u32(&mut file, header + 420 + at, *value));
        count.iter().for_each(|count| file[header + 18..header + 20].copy_from_slice(&(*count as u16).to_le_bytes()));
    } else {
        // The places are at the end of the directory.
        let (start, len) = (512 * u32_at(&file, header) as usize, u32_at(&file, header + 8) as usize);
        assert_eq!(checksum(&file[start..start + len]), u32_at(&file, header + 16));
        forgeries.iter().for_each(|(at, value)| set_u32(&mut file, start + len - 16 + at, *value));
        let crc = checksum(&file[start..start + len]);
        set_u32(&mut file, header + 16, crc);
        count.iter().for_each(|count| set_u32(&mut file, header + 24, *count));
    }
    let crc = checksum(&file[newest..newest + CHECKSUM]);
    set_u32(&mut file, newest + CHECKSUM, crc);
    let volume = MemoryVolume::new();
    volume.open(NAME, OpenMode::CreateNew)?.write_at(0, &file)?;
    Ok(Arc::new(volume))
}

/// The kind of the documents in a golden file.
fn kind_in(db: &Database) -> u64 {
    if db.stats().store == Some(StoreKind::Table) { 0 } else { 5 }
}

/// Looks for keys. Returns how many answers are errors, each of which names a page and the dictionary.
fn refused(db: &Database, number: u32) -> Result<usize> {
    let kind = kind_in(db);
    let (table, mut refused) = (db.begin_read()?.open_table(DOCUMENTS)?, 0);
    for key in (0..1000).step_by(9) {
        match table.get(key) {
            Ok(value) => assert_eq!(value.unwrap().value(), document(key, kind)),
            Err(Error::Corrupt { page, what }) => {
                assert!(!page.is_none() && what.contains(&format!("dictionary {number},")), "{page}: {what}");
                refused += 1;
            }
            Err(other) => return Err(other),
        }
    }
    Ok(refused)
}

#[test]
fn a_superblock_that_names_a_wrong_place_of_a_dictionary_costs_at_most_the_pages_that_need_it() -> Result<()> {
    for store in STORES {
        let sound = options().open_read_only_on(forged(store, &[], None)?, NAME)?;
        let number = used(&sound)?[0];
        assert_eq!(refused(&sound, number)?, 0);
        drop(sound);
        let places = [1, u32::MAX];
        let one = places.iter().flat_map(|page| [vec![(FIRST, *page)], vec![(SECOND, *page)]]);
        let harmless = one.chain([vec![(TABLE, 0)], vec![(TABLE, u32::MAX)]]);
        let both = places.iter().map(|page| vec![(FIRST, *page), (SECOND, *page)]);
        let harmful = both.chain([0, number + 1, u32::MAX].map(|other| vec![(NUMBER, other)]));
        for (forgeries, is_harmful) in harmless.map(|one| (one, false)).chain(harmful.map(|one| (one, true))) {
            let (what, volume) = (format!("{store:?}: {forgeries:?}"), forged(store, &forgeries, None)?);
            let db = options().open_read_only_on(volume.clone(), NAME)?;
            assert_eq!(refused(&db, number)? > 0, is_harmful, "{what}");
            assert_eq!(db.verify(|_| ())?.findings.is_empty(), !is_harmful, "{what}");
            drop(db);
            let db = options().open_on(volume.clone(), NAME)?;
            let written = put(&db, DOCUMENTS, 0..9, kind_in(&db));
            let compacted = db.compact(|_| ());
            if is_harmful {
                assert!(
                    matches!((written, compacted), (Err(Error::Corrupt { .. }), Err(Error::Corrupt { .. }))),
                    "{what}"
                );
                assert!(!db.dictionaries()?.is_empty(), "{what}: it is not dropped");
            } else {
                written?;
                compacted?;
                assert_eq!(refused(&db, number)?, 0, "{what}");
                assert_eq!(db.verify(|_| ())?.findings, [], "{what}");
            }
        }
        for count in [0, 2, 63, 64, 65, 0xFFFF] {
            match options().open_read_only_on(forged(store, &[], Some(count))?, NAME) {
                Ok(db) => drop(refused(&db, number)?),
                Err(Error::CorruptMeta { .. }) => {}
                Err(other) => panic!("{store:?}, {count} dictionaries: {other}"),
            }
        }
    }
    Ok(())
}

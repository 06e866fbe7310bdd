//! Promise: a wrong page id in the log, in the catalog or in a page, with all checksums right, gives an error or the
//! right data. It costs neither memory nor time, and no entries. Content in the log that is not the content of a page
//! gives an error.

use duramen::base::{PageId, TableId, bytes};
use duramen::db::{Compression, StoreKind};
use duramen::io::{FileVolume, OpenMode, Volume};
use duramen::log::{self, Log, LogConfig, LogPosition, LogShape};
use duramen::page::{Page, PageOp, map_page, run_page};
use duramen::store::{self, ID_SLACK};
use duramen::{Database, Durability, Error, Result, TableDef};
use parking_lot::{Mutex, MutexGuard};
use std::borrow::Cow;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const TABLE: TableDef<u32, &[u8]> = TableDef::new("t");
const LONG: TableDef<&[u8], &[u8]> = TableDef::new("long");
const ENTRIES: u32 = 600;
const NAME: &str = "t.duramen";
const PAGE_SIZE: usize = 4096;
/// The offset of the tag of the key list in a page.
const KEY_LIST: usize = 28;

fn options() -> duramen::Builder {
    Database::builder().page_size(PAGE_SIZE).cache(1 << 20).background(false)
}

/// Inner pages, long keys and values in runs, and a change that only the log has.
fn build(clean: bool) -> tempfile::TempDir {
    build_as(clean, StoreKind::Table, Compression::None)
}

fn build_as(clean: bool, store: StoreKind, compression: Compression) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let page_size = match (store, compression) {
        (StoreKind::Table, _) | (_, Compression::None) => PAGE_SIZE,
        // The store `shadow` does not compress pages of 4 KiB.
        _ => 2 * PAGE_SIZE,
    };
    let db = options().page_size(page_size).store(store).create(folder.path().join(NAME)).unwrap();
    let put = |keys: std::ops::Range<u32>| {
        let mut tx = db.begin_write().unwrap();
        tx.set_durability(Durability::Commit);
        {
            let (mut table, mut long) =
                (tx.open_table(TABLE.compression(compression)).unwrap(), tx.open_table(LONG).unwrap());
            for key in keys {
                table.put(key, vec![7; if key % 100 == 50 { 9000 } else { 60 }].as_slice()).unwrap();
                if key % 50 == 0 {
                    let key = [&key.to_be_bytes()[..], &[7; 3000]].concat();
                    long.put(key.as_slice(), b"oak".as_slice()).unwrap();
                }
            }
        }
        tx.commit().unwrap();
    };
    put(0..ENTRIES / 2);
    db.checkpoint().unwrap();
    put(ENTRIES / 2..ENTRIES);
    if clean {
        db.close().unwrap();
        return folder;
    }
    let killed = tempfile::tempdir().unwrap();
    copy(folder.path(), killed.path());
    killed
}

fn copy(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// The peak of the address space of this process in bytes; 0 if the system does not report it.
fn most_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    peak.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).map_or(0, |kib: u64| kib * 1024)
}

/// Runs `attack` alone, and holds its memory and time against what a sound database of this size takes.
fn bounded(attack: impl FnOnce()) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone: MutexGuard<'_, ()> = ALONE.lock();
    let (before, start) = (most_memory(), Instant::now());
    attack();
    let grown = most_memory() - before;
    assert!(grown < 256 << 20, "{} MiB", grown >> 20);
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

/// Ids that no page of these databases has.
const BEYOND: [u32; 4] = [ID_SLACK * 2, 1 << 31, u32::MAX - 4096, u32::MAX];

/// Adds a batch to the log of a killed database, as a program that knows all checksums can.
fn append(folder: &Path, kind: u8, payload: &[u8]) {
    let volume: Arc<dyn Volume> = Arc::new(FileVolume::open(folder).unwrap());
    let (_, meta) = store::open(volume.open(NAME, OpenMode::Read).unwrap(), Path::new(NAME)).unwrap();
    let prefix = format!("{NAME}-log");
    let config = LogConfig { volume, prefix, database: meta.database_id, shape: LogShape::Packed };
    let from = LogPosition { lsn: meta.redo, epoch: meta.epoch };
    let log = Log::resume(log::read(config, from, meta.last).unwrap().unwrap()).unwrap();
    let end = log.append(kind, payload).unwrap();
    duramen::base::watermark::Watermark::make_durable(&log, end).unwrap();
}

fn operation(page: u32, op: &PageOp<'_>) -> Vec<u8> {
    let mut record = [&[1][..], &page.to_le_bytes()].concat();
    op.encode(&mut record);
    record
}

/// Every kind of record that names a page, with that id.
fn records(page: u32) -> Vec<(&'static str, u8, Vec<u8>)> {
    let map = page - page % duramen::page::map_bits(PAGE_SIZE);
    let format = |packed: Vec<u8>| PageOp::Format { packed: Cow::Owned(packed) };
    let run = run_page(PageId(page), TableId(1), PageId::NONE, b"oak");
    let id = page.to_le_bytes();
    // A place of one grain inside the file, and one far beyond its end.
    let (inside, far) = (
        [&[12, 16, 0, 0, 0, 0, 1, 0, 0][..], &[0; 4]].concat(),
        [&[12, 0, 0, 0, 0, 16, 1, 0, 0][..], &[0; 4]].concat(),
    );
    let layout = [2, 0, 0, 2, 0, 0, 2, 1, 0, 0];
    vec![
        ("a new page", 1, operation(page, &format(run))),
        ("a change", 1, operation(page, &PageOp::Remove { from: 0, to: 1 })),
        ("an addition", 1, operation(page, &PageOp::AddToRecord { slot: 0, offset: 8, delta: 1 })),
        ("a new map", 1, operation(map, &format(map_page(PAGE_SIZE, PageId(map))))),
        ("taken pages", 1, operation(map, &PageOp::SetBits { from: page - map, count: 1 })),
        ("freed pages", 1, operation(map, &PageOp::ClearBits { from: page - map, count: 1 })),
        ("a place", 1, [&[2][..], &id, &inside].concat()),
        ("a place beyond the file", 1, [&[2][..], &7u32.to_le_bytes(), &far].concat()),
        ("an adopted page", 2, [&[3, 2][..], &id, &[1], &inside].concat()),
        ("an adopted page beyond the file", 2, [&[3, 2][..], &7u32.to_le_bytes(), &[1], &far].concat()),
        ("a reserved page", 2, [&[3, 2][..], &id, &[0]].concat()),
        ("a new tree", 2, [&[3, 1][..], &9u32.to_le_bytes(), &id, &layout, &[3, 0]].concat()),
        ("a tree that is dropped", 2, [&[3, 1][..], &9u32.to_le_bytes(), &id, &layout, &[4, 0, 0]].concat()),
        (
            "a tree that is put into",
            2,
            [&[3, 1][..], &9u32.to_le_bytes(), &id, &layout, &[6, 0, 0, 1, 7, 1, 7]].concat(),
        ),
        (
            "a tree to whose record is added",
            2,
            [&[3, 1][..], &9u32.to_le_bytes(), &id, &layout, &[8, 0, 1, 7, 8, 2]].concat(),
        ),
    ]
}

fn is_reported(error: &Error) -> bool {
    matches!(
        error,
        Error::Corrupt { .. } | Error::CorruptMeta { .. } | Error::CorruptLog { .. } | Error::Poisoned { .. }
    )
}

#[test]
fn a_log_record_with_an_impossible_page_id_is_rejected() {
    bounded(|| {
        let sound = build(false);
        for page in BEYOND {
            for (what, kind, record) in records(page) {
                let folder = tempfile::tempdir().unwrap();
                copy(sound.path(), folder.path());
                append(folder.path(), kind, &record);
                let what = format!("{what} {page}");
                let path = folder.path().join(NAME);
                let error = options().open(&path).and_then(Database::close).expect_err(&what);
                assert!(is_reported(&error), "{what}: {error}");
                let (db, damage) = options().open_damaged(&path).unwrap();
                let table = db.begin_read().unwrap().open_table(TABLE).unwrap();
                let entries = table.iter().filter(Result::is_ok).count();
                assert!(entries == ENTRIES as usize, "{what}: {entries} entries, {damage:?}");
            }
        }
    });
}

/// Reads and writes everything in every way. Returns the first error.
fn use_all(path: &Path) -> Result<()> {
    let db = options().open(path)?;
    db.verify(|_| ())?;
    let tx = db.begin_read()?;
    for table in tx.tables()? {
        let table = tx.open_untyped(&table.name)?;
        let _ = (table.count(..), table.range(..).find(Result::is_err), table.range(..).rev().find(Result::is_err));
        let mut salvage = table.salvage(..);
        while salvage.next_with(|_, _| ())?.is_some() {}
    }
    drop(tx);
    for key in [0, 50, 250, ENTRIES - 1] {
        let tx = db.begin_write()?;
        tx.open_table(TABLE)?.insert(key, b"new".as_slice())?;
        tx.commit()?;
    }
    drop_tables(db)
}

/// Drops everything.
fn drop_all(path: &Path) -> Result<()> {
    drop_tables(options().open(path)?)
}

fn drop_tables(db: Database) -> Result<()> {
    let tx = db.begin_write()?;
    tx.drop_table("t")?;
    tx.drop_table("long")?;
    tx.commit()?;
    while db.maintain()? {}
    db.close()
}

/// Changes a page of a closed database, with all checksums.
fn patch(folder: &Path, page: PageId, change: impl FnOnce(&mut [u8])) {
    let volume = FileVolume::open(folder).unwrap();
    let disk = volume.open(NAME, OpenMode::Write).unwrap();
    let (store, meta) = store::open(disk, Path::new(NAME)).unwrap();
    let mut bytes = vec![0; meta.page_size];
    assert!(store.read(page, &mut bytes).unwrap().is_some());
    change(&mut bytes);
    store.write(page, &bytes).unwrap();
    store.finish(store.begin_checkpoint(), meta).unwrap();
    store.close(meta).unwrap();
}

/// Every four bytes of a page that may be the id of another page are replaced by an id that no page has. Such ids are
/// those of a child, a neighbour, a root in the catalog, the first page of a run and a page of a key heap.
#[test]
fn an_id_above_the_high_water_in_a_page_is_rejected() {
    bounded(|| {
        let sound = build(true);
        let volume = FileVolume::open(sound.path()).unwrap();
        let disk = volume.open(NAME, OpenMode::Read).unwrap();
        let (store, meta) = store::open(disk, Path::new(NAME)).unwrap();
        let mut bytes = vec![0; PAGE_SIZE];
        let (mut tried, mut refused) = (0, 0);
        for page in store.pages().unwrap() {
            assert!(store.read(page, &mut bytes).unwrap().is_some());
            let ids = 2..meta.high_water;
            let places: Vec<usize> =
                (12..PAGE_SIZE - 4).filter(|at| ids.contains(&bytes::get_u32(&bytes, *at))).collect();
            // In a page of keys and values most of these places do not hold an id.
            let every = places.len() / 12 + 1;
            for (number, at) in places.into_iter().step_by(every).enumerate() {
                let folder = tempfile::tempdir().unwrap();
                copy(sound.path(), folder.path());
                let id = BEYOND[number % BEYOND.len()];
                patch(folder.path(), page, |bytes| bytes::put_u32(bytes, at, id));
                tried += 1;
                // The replaced bytes may not have been an id. Every error counts.
                refused += usize::from(use_all(&folder.path().join(NAME)).is_err());
            }
        }
        assert!(tried > 100 && refused > 20, "{refused} of {tried}");
    });
}

/// The page and the offset of a large record of [`TABLE`], and a leaf of the other table.
fn large_record(folder: &Path) -> (PageId, usize, u32) {
    let volume = FileVolume::open(folder).unwrap();
    let (store, meta) = store::open(volume.open(NAME, OpenMode::Read).unwrap(), Path::new(NAME)).unwrap();
    let mut bytes = vec![0; meta.page_size];
    let (mut record, mut leaves) = (None, Vec::new());
    for page in store.pages().unwrap() {
        assert!(store.read(page, &mut bytes).unwrap().is_some());
        let length = bytes.windows(4).rposition(|window| window == 9000u32.to_le_bytes());
        let [table, kind] = [bytes::get_u32(&bytes, 12), u32::from(bytes[26])];
        match length {
            Some(at) if kind == 1 && table > 0 => record = Some((page, at - 4, table)),
            _ if kind == 1 && table > 0 => leaves.push((page.0, table)),
            _ => {}
        }
    }
    let (page, at, own) = record.expect("a large record");
    let other = leaves.iter().find(|(_, table)| *table != own).expect("a leaf of the other table");
    (page, at, other.0)
}

/// The record is removed in several ways. The run stays allocated, nothing else is freed, and writing goes on.
fn replace_and_remove_large_record(store: StoreKind, compression: Compression) {
    bounded(|| {
        let sound = build_as(true, store, compression);
        let (page, at, other) = large_record(sound.path());
        let mut damages: Vec<(u32, u32)> = BEYOND.map(|first| (first, 9000)).to_vec();
        damages.extend([(0, 9000), (1, 9000), (other, 9000), (other, 1), (other, u32::MAX), (16384, 9000)]);
        for (first, len) in damages {
            for way in 0..4 {
                let folder = tempfile::tempdir().unwrap();
                copy(sound.path(), folder.path());
                patch(folder.path(), page, |bytes| {
                    bytes::put_u32(bytes, at, first);
                    bytes::put_u32(bytes, at + 4, len);
                });
                let path = folder.path().join(NAME);
                let what = format!("{}, {compression}, way {way}, to {first} of {len}", store.name());
                remove_all(&path, way).unwrap_or_else(|error| panic!("{what}: {error}"));
                // The damage and the lost entries are reported, and everything else is as it was.
                let db = options().open(&path).unwrap();
                let tx = db.begin_read().unwrap();
                assert_eq!(tx.open_table(LONG).unwrap().iter().filter(Result::is_ok).count(), ENTRIES as usize / 50);
                let findings = db.verify(|_| ()).unwrap().findings;
                assert!(!findings.is_empty(), "{what}");
                drop((tx, db));
                drop_all(&path).unwrap_or_else(|error| panic!("{what}: {error}"));
            }
        }
    });
}

#[test]
fn a_wrong_large_record_loses_only_its_own_value() {
    replace_and_remove_large_record(StoreKind::Table, Compression::None);
}

#[test]
fn a_wrong_large_record_of_a_compressed_table_loses_only_its_own_value() {
    replace_and_remove_large_record(StoreKind::Table, Compression::Lz4);
}

#[test]
fn a_wrong_large_record_in_the_shadow_store_loses_only_its_own_value() {
    replace_and_remove_large_record(StoreKind::Shadow, Compression::None);
    replace_and_remove_large_record(StoreKind::Shadow, Compression::Lz4);
}

/// The log's content of a page is a page, or the log is refused: none is read by another key list than it names.
#[test]
fn a_page_of_the_log_with_an_unknown_key_list_is_refused() {
    let sound = build(false);
    let (page, _, _) = large_record(sound.path());
    let mut content = Vec::new();
    {
        let volume = FileVolume::open(sound.path()).unwrap();
        let (store, _) = store::open(volume.open(NAME, OpenMode::Read).unwrap(), Path::new(NAME)).unwrap();
        let mut bytes = vec![0; PAGE_SIZE];
        assert!(store.read(page, &mut bytes).unwrap().is_some());
        Page::new(&bytes).packed_into(&mut content);
    }
    let open_with = |tag: [u8; 3]| {
        let folder = tempfile::tempdir().unwrap();
        copy(sound.path(), folder.path());
        let mut packed = content.clone();
        packed[KEY_LIST..KEY_LIST + 3].copy_from_slice(&tag);
        append(folder.path(), 1, &operation(page.0, &PageOp::Format { packed: Cow::Owned(packed) }));
        options().open(folder.path().join(NAME)).and_then(Database::close)
    };
    let [kind, codec, variant] = [content[KEY_LIST], content[KEY_LIST + 1], content[KEY_LIST + 2]];
    open_with([kind, codec, variant]).unwrap();
    // Of no list, of no codec, of no variant, and of a list that has other bytes.
    for tag in [[0, 0, 0], [u8::MAX; 3], [kind, 200, variant], [kind, codec, 200], [2, 0, 0]] {
        let error = open_with(tag).expect_err("a page of another key list");
        assert!(matches!(&error, Error::Corrupt { page: id, .. } if *id == page), "{tag:?}: {error}");
    }
}

/// Removes all large values of a table in one of several ways, beside a snapshot that is held meanwhile, and works on.
fn remove_all(path: &Path, way: u32) -> Result<()> {
    let db = options().open(path)?;
    let snapshot = db.begin_read()?;
    let tx = db.begin_write()?;
    match way {
        0 => (50..ENTRIES)
            .step_by(100)
            .try_for_each(|key| tx.open_table(TABLE).map(|mut table| table.remove_range(key..=key)))?,
        1 => (50..ENTRIES).step_by(100).try_for_each(|key| tx.open_table(TABLE)?.put(key, b"new".as_slice()))?,
        2 => tx.open_table(TABLE)?.remove_range(..),
        _ => drop(tx.drop_table("t")?),
    }
    tx.commit()?;
    // The errors of the snapshot name lost pages: never page 0, which is sound.
    let table = snapshot.open_table(TABLE)?;
    let lost: Vec<Error> = (50..ENTRIES).step_by(100).filter_map(|key| table.get(key).err()).collect();
    assert!(!lost.is_empty(), "way {way}");
    for error in lost {
        let Error::Corrupt { page, what } = &error else { panic!("way {way}: {error}") };
        assert!(!page.is_none(), "way {way}: {error}");
        let named = page.is_unknown() || what.contains("a large value of table number");
        assert!(way != 1 || named, "way {way}: {error}");
    }
    drop(table);
    drop(snapshot);
    while db.maintain()? {}
    let tx = db.begin_write()?;
    (0..50).try_for_each(|key| tx.open_table(TABLE)?.put(key, vec![8; 9000].as_slice()))?;
    tx.commit()?;
    assert_eq!(db.stats().detached, 0);
    db.close()
}

#[test]
fn a_root_in_the_catalog_beyond_all_pages_costs_its_table_alone() -> Result<()> {
    let sound = build(true);
    let volume = FileVolume::open(sound.path()).unwrap();
    let (store, _) = store::open(volume.open(NAME, OpenMode::Read)?, Path::new(NAME))?;
    let mut catalog = vec![0; PAGE_SIZE];
    assert!(store.read(PageId(1), &mut catalog)?.is_some());
    drop(store);
    // After the table's number is its root, then how many entries it has.
    let entries = u64::from(ENTRIES).to_le_bytes();
    let at = catalog.windows(8).position(|window| window == entries).expect("the entry of the table") - 4;
    for root in BEYOND {
        bounded(|| {
            let folder = tempfile::tempdir().unwrap();
            copy(sound.path(), folder.path());
            patch(folder.path(), PageId(1), |bytes| bytes::put_u32(bytes, at, root));
            let path = folder.path().join(NAME);
            let (db, _) = options().open_damaged(&path).unwrap();
            let table = db.begin_read().unwrap().open_table(TABLE).unwrap();
            assert_eq!(table.iter().filter(Result::is_ok).count(), ENTRIES as usize);
            drop((table, db));
            let db = options().open(&path).unwrap();
            let tx = db.begin_read().unwrap();
            assert!(matches!(tx.open_table(TABLE).unwrap().get(7), Err(Error::Corrupt { .. })));
            assert_eq!(tx.open_table(LONG).unwrap().iter().filter(Result::is_ok).count(), ENTRIES as usize / 50);
            assert!(!db.verify(|_| ()).unwrap().findings.is_empty());
            drop((tx, db));
            assert!(use_all(&path).is_err());
        });
    }
    Ok(())
}

/// A superblock that says there are more pages than any file can have, and a page table that has none of them.
#[test]
fn an_impossible_high_water_takes_no_memory() {
    bounded(|| {
        for clean in [true, false] {
            let folder = build(clean);
            let path = folder.path().join(NAME);
            let mut bytes = fs::read(&path).unwrap();
            for slot in [0, 4096] {
                bytes::put_u32(&mut bytes, slot + 44, u32::MAX);
                let crc = duramen::base::checksum::checksum(&bytes[slot..slot + 4092]);
                bytes::put_u32(&mut bytes, slot + 4092, crc);
            }
            fs::write(&path, bytes).unwrap();
            use_all(&path).unwrap();
        }
    });
}

/// A file may have room for many pages at its end and nothing before it.
#[test]
fn a_place_far_out_in_a_sparse_file_costs_no_more_than_any_other() {
    const END: u64 = 1 << 42;
    bounded(|| {
        let folder = build(true);
        let path = folder.path().join(NAME);
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        if file.set_len(END).is_err() {
            return;
        }
        let mut bytes = vec![0; 8192];
        use std::os::unix::fs::FileExt;
        let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
        file.read_exact_at(&mut bytes, 0).unwrap();
        // The directory of the page table moves to the very end.
        let [first, len] = [84, 92].map(|at| bytes::get_u64(&bytes, at));
        let mut directory = vec![0; len as usize];
        file.read_exact_at(&mut directory, first * 512).unwrap();
        let place = END - len.next_multiple_of(512);
        file.write_all_at(&directory, place).unwrap();
        for slot in [0, 4096] {
            bytes::put_u64(&mut bytes, slot + 84, place / 512);
            let crc = duramen::base::checksum::checksum(&bytes[slot..slot + 4092]);
            bytes::put_u32(&mut bytes, slot + 4092, crc);
        }
        file.write_all_at(&bytes, 0).unwrap();
        drop(file);
        use_all(&path).unwrap();
        assert!(fs::metadata(&path).unwrap().len() < 1 << 30, "closing cuts off what is free");
    });
}

/// A directory of the page table that has as many policies as a number can say, nearly all of them in a hole of the
/// file.
#[test]
fn policies_in_a_hole_of_the_file_take_no_memory() {
    use std::os::unix::fs::FileExt;
    let folder = build(true);
    let path = folder.path().join(NAME);
    let file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let end = file.metadata().unwrap().len().next_multiple_of(512);
    let policies_len = 8 * u64::from(u32::MAX);
    let len_of_hole = policies_len + (1 << 20);
    if file.set_len(end + len_of_hole).is_err() {
        println!("SKIPPED: this test needs a file system with files of 32 GiB");
        return;
    }
    let mut bytes = vec![0; 8192];
    file.read_exact_at(&mut bytes, 0).unwrap();
    let [first, len] = [84, 92].map(|at| bytes::get_u64(&bytes, at));
    let mut directory = vec![0; len as usize];
    file.read_exact_at(&mut directory, first * 512).unwrap();
    file.write_all_at(&directory, end).unwrap();
    for slot in [0, 4096] {
        assert_eq!(bytes::get_u32(&bytes, slot + 104), 0, "policies of this database");
        bytes::put_u64(&mut bytes, slot + 84, end / 512);
        bytes::put_u64(&mut bytes, slot + 92, len + policies_len);
        bytes::put_u32(&mut bytes, slot + 104, u32::MAX);
        let crc = duramen::base::checksum::checksum(&bytes[slot..slot + 4092]);
        bytes::put_u32(&mut bytes, slot + 4092, crc);
    }
    file.write_all_at(&bytes, 0).unwrap();
    drop(file);
    bounded(|| {
        let refused = options().open(&path).expect_err("the policies are no policies");
        assert!(matches!(refused, Error::CorruptMeta { .. }), "{refused}");
    });
}

/// Records that take or free more pages than an allocation map has.
#[test]
fn a_log_record_with_an_impossible_range_of_pages_is_rejected() {
    let per_map = duramen::page::map_bits(PAGE_SIZE);
    // Of map 0, and of a page that is no map.
    let ranges = [(0, 0, 1 << 28), (0, 0, u32::MAX), (0, 7, per_map - 6), (0, per_map, 1), (0, 7, 0), (1, 7, 1)];
    for store in [StoreKind::Table, StoreKind::Shadow] {
        let sound = build_as(false, store, Compression::None);
        for (map, from, count) in ranges {
            for op in [PageOp::ClearBits { from, count }, PageOp::SetBits { from, count }] {
                bounded(|| {
                    let folder = tempfile::tempdir().unwrap();
                    copy(sound.path(), folder.path());
                    append(folder.path(), 1, &operation(map, &op));
                    let path = folder.path().join(NAME);
                    let what = format!("{}, {op:?} of page {map}", store.name());
                    let error = options().open(&path).and_then(Database::close).expect_err(&what);
                    assert!(is_reported(&error), "{what}: {error}");
                });
            }
        }
    }
}

#[test]
fn page_ids_in_the_log_below_the_high_water_slack_are_accepted() -> Result<()> {
    let folder = build(false);
    let volume = FileVolume::open(folder.path()).unwrap();
    let (_, meta) = store::open(volume.open(NAME, OpenMode::Read)?, Path::new(NAME))?;
    assert!(!meta.clean);
    let page = meta.high_water + ID_SLACK - 1;
    let packed = run_page(PageId(page), TableId(1), PageId::NONE, b"oak");
    append(folder.path(), 1, &operation(page, &PageOp::Format { packed: Cow::Owned(packed) }));
    bounded(|| use_all(&folder.path().join(NAME)).unwrap());
    Ok(())
}

/// Both superblocks know the pages before the log names them, so that one superblock may be lost. No checkpoint that
/// has begun before takes that back.
#[test]
fn both_superblocks_know_of_the_pages_that_the_log_names() -> Result<()> {
    let folder = build(true);
    let disk = FileVolume::open(folder.path()).unwrap().open(NAME, OpenMode::Write)?;
    let high_waters = || {
        let bytes = fs::read(folder.path().join(NAME)).unwrap();
        [0, 4096].map(|slot| bytes::get_u32(&bytes, slot + 44))
    };
    let (store, meta) = store::open(disk, Path::new(NAME))?;
    let old = meta.high_water;
    store.file().write_meta(meta)?;
    store.file().raise_high_water(old + ID_SLACK)?;
    assert_eq!(high_waters(), [old; 2], "nothing is written before that is needed");
    store.file().raise_high_water(old + ID_SLACK + 1)?;
    store.file().raise_high_water(old + ID_SLACK + 2)?;
    assert_eq!(high_waters(), [old + ID_SLACK + 1; 2]);
    store.file().raise_high_water(old + 5 * ID_SLACK)?;
    assert_eq!(high_waters(), [old + 5 * ID_SLACK; 2]);
    store.finish(store.begin_checkpoint(), meta)?;
    assert_eq!(high_waters(), [old + 5 * ID_SLACK; 2], "a checkpoint that is older");
    Ok(())
}

//! Promise: whatever is wrong with the files or the request, the result is one clear typed error or the
//! right data, never a panic and never wrong data. Committed data stay readable. A corrupt page costs its key range and
//! not the database.

use crate::workload::stores::STORES;
use duramen::base::checksum::checksum;
use duramen::db::Damage;
use duramen::db::StoreKind;
use duramen::{Database, Durability, Error, Result, TableDef};
use std::fs;
use std::path::{Path, PathBuf};

pub(super) const TABLE: TableDef<u32, &str> = TableDef::new("t");
const ENTRIES: u32 = 3000;
pub(super) const NAME: &str = "t.duramen";

pub(super) fn options() -> duramen::Builder {
    Database::builder().page_size(4096).cache(0).background(false)
}

/// The value of a key; with it a key's place in the file is found.
fn value(key: u32) -> String {
    format!("the value of {key:08}")
}

pub(super) fn put(db: &Database, keys: std::ops::Range<u32>) -> Result<()> {
    let tx = db.begin_write()?;
    let mut table = tx.open_table(TABLE)?;
    for key in keys {
        table.put(key, value(key).as_str())?;
    }
    drop(table);
    tx.commit()
}

fn copy(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

/// A database in a folder of its own: closed in order, or as a killed process leaves it, with half of it in the log.
fn build(clean: bool) -> tempfile::TempDir {
    build_in(StoreKind::Table, clean)
}

fn build_in(store: StoreKind, clean: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let db = options().store(store).create(folder.path().join(NAME)).unwrap();
    for from in (0..ENTRIES).step_by(500) {
        put(&db, from..from + 500).unwrap();
        if from == 1000 {
            db.checkpoint().unwrap();
        }
    }
    if clean {
        drop(db);
        return folder;
    }
    let killed = tempfile::tempdir().unwrap();
    copy(folder.path(), killed.path());
    killed
}

fn logs(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut logs: Vec<PathBuf> = files.filter(|path| path.to_string_lossy().contains("-log")).collect();
    logs.sort();
    logs
}

/// Reads what there is: every key that is found has its value, and keys are missing only after an error or in whole
/// commits from the end. Gives the number of keys that can be read.
fn judge(path: &Path, what: &str) -> Result<u32> {
    judge_opened(&options().open(path)?, what)
}

fn judge_opened(db: &Database, what: &str) -> Result<u32> {
    let tx = db.begin_read()?;
    let table = match tx.open_table(TABLE) {
        Err(Error::NoTable { .. }) => return Ok(0),
        table => table?,
    };
    let claimed = table.len() as u32;
    assert!(claimed.is_multiple_of(500) && claimed <= ENTRIES, "{what}: {claimed} entries");
    let mut readable = 0;
    for key in 0..ENTRIES {
        match table.get_with(key, str::to_owned) {
            Ok(Some(found)) => {
                assert!(key < claimed && found == value(key), "{what}: key {key} has {found:?}");
                readable += 1;
            }
            Ok(None) => assert!(key >= claimed, "{what}: key {key} is gone, and nothing was said"),
            Err(Error::Corrupt { .. }) => {}
            Err(other) => panic!("{what}: key {key}: {other}"),
        }
    }
    let scanned: Vec<Result<u32>> = table.iter().map(|entry| entry.map(|(key, _)| key.value())).collect();
    for (place, key) in scanned.iter().enumerate() {
        match key {
            Ok(key) => assert_eq!(*key as usize, place, "{what}: a scan leaves keys out"),
            Err(error) => assert!(matches!(error, Error::Corrupt { .. }), "{what}: a scan: {error}"),
        }
    }
    let failed = scanned.last().is_some_and(Result::is_err);
    assert!(failed || scanned.len() == claimed as usize, "{what}: a scan ends early");
    Ok(readable)
}

#[test]
fn files_that_are_no_database_are_refused() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let open = || options().open(&path).map(drop);
    assert!(matches!(open(), Err(Error::NotFound { .. })));
    for content in [b"".as_slice(), b"x", b"SQLite format 3\0", &[0; 100_000], &[b'y'; 8192]] {
        fs::write(&path, content).unwrap();
        assert!(matches!(open(), Err(Error::NotADatabase { .. })), "{:?}", open());
        assert_eq!(fs::read(&path).unwrap(), content, "a foreign file was written to");
    }
    assert!(matches!(options().create(&path).map(drop), Err(Error::Exists { .. })));
    for (bad, file) in [("no such folder", "a/b.duramen"), ("a file for a folder", "t.duramen/b.duramen")] {
        let made = options().create(folder.path().join(file)).map(drop);
        assert!(matches!(made, Err(Error::Io { .. } | Error::NotFound { .. })), "{bad}: {made:?}");
    }
    assert!(matches!(options().open(folder.path()).map(drop), Err(Error::Io { .. } | Error::NotADatabase { .. })));
    Ok(())
}

#[test]
fn a_newer_format_is_named() {
    let folder = build(true);
    let path = folder.path().join(NAME);
    let mut bytes = fs::read(&path).unwrap();
    for at in [8, 4096 + 8] {
        bytes[at..at + 4].copy_from_slice(&77u32.to_le_bytes());
    }
    fs::write(&path, bytes).unwrap();
    assert!(matches!(options().open(&path), Err(Error::FormatVersion { found: 77, .. })));
}

/// Writes `value` at byte `at` of the superblock in `slot`, and the checksum that then is right.
fn set_field(file: &mut [u8], slot: usize, at: usize, value: u32) {
    let superblock = &mut file[slot * 4096..][..4096];
    superblock[at..at + 4].copy_from_slice(&value.to_le_bytes());
    let crc = checksum(&superblock[..4092]);
    superblock[4092..].copy_from_slice(&crc.to_le_bytes());
}

/// The database is intact: neither recovery nor rescue may look for damage or write to the file.
#[test]
fn a_page_store_of_a_newer_version_is_named() {
    for clean in [true, false] {
        let folder = build(clean);
        let path = folder.path().join(NAME);
        let whole = fs::read(&path).unwrap();
        for slots in [&[0, 1][..], &[0], &[1]] {
            let mut bytes = whole.clone();
            slots.iter().for_each(|slot| set_field(&mut bytes, *slot, 52, 77));
            fs::write(&path, &bytes).unwrap();
            let opened = [
                options().open(&path).map(drop),
                options().open_read_only(&path).map(drop),
                options().open_damaged(&path).map(drop),
            ];
            for error in opened.map(Result::unwrap_err) {
                assert!(matches!(error, Error::UnknownStore { found: 77, .. }), "{error}");
                assert!(error.to_string().contains("page store number 77"), "{error}");
            }
            assert!(fs::read(&path).unwrap() == bytes, "the file was written to");
        }
    }
}

#[test]
fn a_truncated_file_gives_an_error_or_the_right_data() {
    for (store, clean) in STORES.into_iter().flat_map(|store| [(store, true), (store, false)]) {
        let folder = build_in(store, clean);
        let path = folder.path().join(NAME);
        let whole = fs::metadata(&path).unwrap().len();
        for len in (0..whole).step_by(1 + whole as usize / 40).chain([whole - 1]) {
            let cut = tempfile::tempdir().unwrap();
            copy(folder.path(), cut.path());
            let path = cut.path().join(NAME);
            fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
            let what = format!("{store:?}, clean {clean}, cut to {len} of {whole} bytes");
            match options().convert(&path, |_| ()).map(|report| report.entries) {
                Ok(entries) => assert_eq!(entries, u64::from(ENTRIES), "{what}: converted"),
                Err(Error::NotADatabase { .. } | Error::CorruptMeta { .. } | Error::Corrupt { .. }) => {}
                // The log changes pages that are cut off, or only the older superblock is left and its log is gone.
                Err(Error::CorruptLog { .. } | Error::MissingLog { .. }) if !clean => {}
                Err(other) => panic!("{what}: converted: {other}"),
            }
            match judge(&path, &what) {
                Ok(ENTRIES) => {}
                Ok(keys) => {
                    let db = options().open(&path).unwrap();
                    assert_eq!(db.begin_read().unwrap().open_table(TABLE).unwrap().len(), ENTRIES.into(), "{what}");
                    let findings = db.verify(|_| ()).unwrap().findings;
                    assert!(!clean && !findings.is_empty(), "{what}: {keys} keys, and nothing is said to be damaged");
                }
                Err(Error::NotADatabase { .. } | Error::CorruptMeta { .. } | Error::Corrupt { .. }) => {}
                Err(Error::CorruptLog { .. } | Error::MissingLog { .. }) if !clean => {}
                Err(other) => panic!("{what}: {other}"),
            }
        }
    }
}

/// True for a log file that no recovery needs, which the next segment is written to.
fn is_spare(log: &Path) -> bool {
    fs::read(log).unwrap()[36] == 2
}

/// Flips a bit in a file, one at a time, `every` so many bytes, and opens with `open`. Gives how many flips there were,
/// how often the database opened, and how often no key was lost.
fn flip(folder: &Path, file: &str, every: usize, open: impl Fn(PathBuf) -> Result<Database>) -> (u32, u32, u32) {
    let whole = fs::read(folder.join(file)).unwrap();
    let (mut tried, mut opened, mut intact) = (0, 0, 0);
    let flipped = tempfile::tempdir().unwrap();
    // Zeros are room that the file has grown by, and padding.
    for at in (0..whole.len()).step_by(every).filter(|at| whole[*at] != 0) {
        logs(flipped.path()).iter().for_each(|log| fs::remove_file(log).unwrap());
        copy(folder, flipped.path());
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(flipped.path().join(file), bytes).unwrap();
        tried += 1;
        match open(flipped.path().join(NAME)).and_then(|db| judge_opened(&db, &format!("{file}, byte {at}"))) {
            Ok(readable) => {
                // No later batch vouches for the last commit; for all others one does.
                assert!(file == NAME || readable >= ENTRIES - 500, "{file}, byte {at}: {readable} entries");
                opened += 1;
                intact += u32::from(readable == ENTRIES);
            }
            Err(
                Error::NotADatabase { .. }
                | Error::FormatVersion { .. }
                | Error::CorruptMeta { .. }
                | Error::Corrupt { .. }
                | Error::CorruptLog { .. }
                | Error::MissingLog { .. },
            ) => {}
            Err(other) => panic!("{file}, byte {at}: {other}"),
        }
    }
    (tried, opened, intact)
}

#[test]
fn flipped_bits_in_a_closed_file_give_errors_or_the_right_data() {
    for store in [StoreKind::Table, StoreKind::Shadow] {
        let folder = build_in(store, true);
        let (tried, opened, intact) = flip(folder.path(), NAME, 97, |path| options().open_read_only(path));
        flip(folder.path(), NAME, 97 * 11, |path| options().open(path));
        // Only the page table and the catalog are needed for everything; both superblocks say the same.
        assert!(opened * 10 > tried * 7, "{store:?}: {opened} of {tried} opened");
        assert!(intact < opened, "{store:?}: no flip was noticed");
    }
}

#[test]
fn flipped_bits_in_an_unclean_file_or_its_log_give_errors_or_the_right_data() {
    for store in [StoreKind::Table, StoreKind::Shadow] {
        let folder = build_in(store, false);
        flip(folder.path(), NAME, 97 * 5, |path| options().open(path));
        let logs = logs(folder.path());
        assert!(!logs.is_empty());
        for log in logs {
            let name = log.file_name().unwrap().to_string_lossy().into_owned();
            let (tried, opened, intact) = flip(folder.path(), &name, 97 * 5, |path| options().open(path));
            if is_spare(&log) {
                // Only its header is read. A damaged one can look like the header of a segment.
                assert!(opened + 1 >= tried && intact == opened, "{store:?}: {opened} of {tried} with {name} opened");
            } else {
                assert!(opened < tried, "{store:?}: no flip in {name} was noticed");
            }
        }
    }
}

/// The superblock from before opening says that all is in the file: the log knows better.
#[test]
fn a_damaged_superblock_does_not_lose_records_of_the_log() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    drop(options().create(&path)?);
    let db = options().open(&path)?;
    (0..6).try_for_each(|part| put(&db, part * 500..(part + 1) * 500))?;
    let sequence = |bytes: &[u8], slot: usize| u64::from_le_bytes(bytes[slot * 4096 + 32..][..8].try_into().unwrap());
    let whole = fs::read(&path).unwrap();
    let newest = usize::from(sequence(&whole, 1) > sequence(&whole, 0));
    let killed = tempfile::tempdir().unwrap();
    copy(folder.path(), killed.path());
    let mut bytes = whole;
    bytes[newest * 4096 + 100] ^= 1;
    fs::write(killed.path().join(NAME), bytes).unwrap();
    assert_eq!(judge(&killed.path().join(NAME), "the newest superblock is damaged")?, ENTRIES);
    Ok(())
}

#[test]
fn a_damaged_superblock_is_found_and_written_anew() -> Result<()> {
    let folder = build(true);
    let path = folder.path().join(NAME);
    let whole = fs::read(&path).unwrap();
    // A flipped bit; and, with the right checksum, an impossible page size, flags and length of the store's bytes.
    let damages = [None, Some((12, 4097)), Some((40, u32::MAX)), Some((80, 4009))];
    for (slot, damage) in [0, 1].into_iter().flat_map(|slot| damages.map(|damage| (slot, damage))) {
        let mut bytes = whole.clone();
        match damage {
            None => bytes[slot * 4096 + 100] ^= 1,
            Some((at, value)) => set_field(&mut bytes, slot, at, value),
        }
        fs::write(&path, bytes).unwrap();
        let (db, damage) = options().open_damaged(&path)?;
        assert!(matches!(damage[..], [Damage::Superblock { slot: found }] if found == slot), "{damage:?}");
        drop(db);
        let db = options().open_read_only(&path)?;
        let findings = db.verify(|_| ())?.findings;
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].page.is_none() && findings[0].what.starts_with(&format!("superblock {slot} is damaged")));
        assert_eq!(judge_opened(&db, "a superblock is damaged")?, ENTRIES);
        drop(db);
        let db = options().open(&path)?;
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    Ok(())
}

#[test]
fn a_missing_log_and_a_log_of_another_database_are_named() {
    let folder = build(false);
    let other = build(false);
    let path = folder.path().join(NAME);
    assert!(matches!(options().open_read_only(&path), Err(Error::NeedsRecovery { .. })));
    let own = logs(folder.path());
    own.iter().for_each(|log| fs::remove_file(log).unwrap());
    let error = options().open(&path).map(drop).unwrap_err();
    assert!(matches!(error, Error::MissingLog { .. }) && error.to_string().contains("t.duramen-log.NUMBER"), "{error}");
    for log in logs(other.path()) {
        fs::copy(&log, folder.path().join(log.file_name().unwrap())).unwrap();
    }
    assert!(matches!(options().open(&path), Err(Error::MissingLog { .. })));
}

#[test]
fn a_missing_newest_segment_of_the_log_is_named() -> Result<()> {
    let (folder, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let db = options().checkpoint_bytes(4 << 20).background(false).create(folder.path().join(NAME))?;
    let put = |keys: std::ops::Range<u32>, value: &str| {
        let mut tx = db.begin_write()?;
        tx.set_durability(Durability::Commit);
        let mut table = tx.open_table(TABLE)?;
        keys.into_iter().try_for_each(|key| table.put(key, value))?;
        drop(table);
        tx.commit()
    };
    // After a quarter of `checkpoint_bytes` the log continues in another segment, without a checkpoint.
    (0..16).try_for_each(|part| put(part * 100..(part + 1) * 100, &"x".repeat(1000)))?;
    while db.maintain()? {}
    put(1600..1601, "the newest commit")?;
    for name in logs(folder.path()).into_iter().chain([folder.path().join(NAME)]) {
        fs::copy(&name, copy.path().join(name.file_name().unwrap())).unwrap();
    }
    let newest = |log: &PathBuf| fs::read(log).unwrap().windows(17).any(|bytes| bytes == b"the newest commit");
    let newest: Vec<PathBuf> = logs(copy.path()).into_iter().filter(newest).collect();
    assert!(newest.len() == 1 && !newest[0].ends_with("t.duramen-log.000001"), "{newest:?}");
    fs::remove_file(&newest[0]).unwrap();
    let opened = options().open(copy.path().join(NAME)).map(drop);
    assert!(matches!(&opened, Err(Error::CorruptLog { what, .. }) if what.contains("is missing")), "{opened:?}");
    db.close()
}

/// Flips a bit of the first place of `marker` in the file.
pub(crate) fn damage(path: &Path, marker: &[u8]) {
    let mut bytes = fs::read(path).unwrap();
    let at = bytes.windows(marker.len()).position(|window| window == marker).expect("the marker in the file");
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_corrupt_page_costs_its_key_range_and_not_the_database() -> Result<()> {
    let folder = build(true);
    let path = folder.path().join(NAME);
    damage(&path, value(1500).as_bytes());

    let lost = |db: &Database| -> Result<Vec<u32>> {
        let tx = db.begin_read()?;
        let table = tx.open_table(TABLE)?;
        Ok((0..ENTRIES).filter(|key| matches!(table.get(*key), Err(Error::Corrupt { .. }))).collect())
    };
    let db = options().open(&path)?;
    let range = lost(&db)?;
    assert!(range.contains(&1500) && range.len() < 200, "{range:?}");
    let (first, last) = (range[0], range[range.len() - 1]);
    assert_eq!(range.len() as u32, last - first + 1);
    {
        let tx = db.begin_read()?;
        let table = tx.open_table(TABLE)?;
        let mut forward = table.iter();
        assert_eq!(forward.by_ref().take_while(Result::is_ok).count() as u32, first);
        assert_eq!(table.keys(..).take(10 * ENTRIES as usize).filter(Result::is_err).count(), 1, "the error ends it");
        assert!(matches!(table.iter().nth(first as usize), Some(Err(Error::Corrupt { .. }))));
        assert_eq!(table.iter().rev().take_while(Result::is_ok).count() as u32, ENTRIES - 1 - last);
    }
    let report = db.verify(|_| ())?;
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
    assert!(report.findings[0].lower.as_slice() <= first.to_be_bytes().as_slice());

    // Writes there are refused and do no harm; elsewhere all goes on.
    assert!(matches!(put(&db, 1500..1501), Err(Error::Corrupt { .. })));
    put(&db, ENTRIES..ENTRIES + 300)?;
    put(&db, 0..10)?;
    drop(db);
    let db = options().open(&path)?;
    assert_eq!(lost(&db)?, range);
    assert_eq!(db.begin_read()?.open_table(TABLE)?.get(ENTRIES + 299)?.unwrap().value(), value(ENTRIES + 299));

    // The table can be dropped. What hangs on the lost page cannot be freed, but that stops nobody.
    let tx = db.begin_write()?;
    assert!(tx.drop_table("t")?);
    tx.commit()?;
    while db.maintain()? {}
    put(&db, 0..500)?;
    drop(db);
    let db = options().open(&path)?;
    while db.maintain()? {}
    assert_eq!(db.begin_read()?.open_table(TABLE)?.len(), 500);
    Ok(())
}

#[test]
fn invalid_requests_are_refused_and_change_nothing() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let db = options().create(&path)?;
    put(&db, 0..10)?;
    let bytes: TableDef<&[u8], &[u8]> = TableDef::new("bytes");
    let tx = db.begin_write()?;
    {
        let mut table = tx.open_table(bytes)?;
        let long = vec![1; duramen::base::limits::MAX_KEY + 1];
        assert!(matches!(table.insert(long.as_slice(), b"".as_slice()), Err(Error::KeyTooLong { .. })));
        assert!(matches!(table.untyped().delete(&long), Err(Error::KeyTooLong { .. })));
        let endless = table.untyped().put_stream(b"k", u64::from(u32::MAX) + 1, &mut std::io::repeat(0));
        assert!(matches!(endless, Err(Error::ValueTooLong { .. })));
        let short = table.untyped().put_stream(b"k", 100_000, &mut &[0u8; 50_000][..]);
        let message = short.unwrap_err().to_string();
        assert!(message.contains("the input ended before the given length"), "{message}");
        table.insert(&long[1..], b"the longest".as_slice())?;
        assert!(matches!(tx.open_table(bytes), Err(Error::TableState { .. })));
    }
    let wrong: TableDef<u64, &str> = TableDef::new("t");
    assert!(matches!(tx.open_table(wrong), Err(Error::TableType { part: "keys", .. })));
    assert!(matches!(tx.open_untyped("nobody"), Err(Error::NoTable { .. })));
    assert!(matches!(tx.rename_table("nobody", "x"), Err(Error::NoTable { .. })));
    assert!(matches!(tx.rename_table("t", "bytes"), Err(Error::TableExists { .. })));
    tx.commit()?;
    let tx = db.begin_read()?;
    assert!(matches!(tx.open_table(wrong), Err(Error::TableType { .. })));
    assert!(matches!(tx.open_untyped("nobody"), Err(Error::NoTable { .. })));
    assert_eq!((tx.open_table(TABLE)?.len(), tx.open_table(bytes)?.len()), (10, 1));
    assert_eq!(db.verify(|_| ())?.findings, []);
    assert!(matches!(options().page_size(1000).create(folder.path().join("x")), Err(Error::Option { .. })));
    Ok(())
}

#[test]
fn a_folder_that_is_not_there_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none").join(NAME);
    let message = options().create(&path).map(drop).unwrap_err().to_string();
    assert!(message.starts_with("cannot open the folder") && message.contains("none:"), "{message}");
    assert!(matches!(options().open(&path), Err(Error::NotFound { .. })));
}

#[test]
fn a_second_handle_and_a_second_process_are_refused_at_once() -> Result<()> {
    if let Ok(path) = std::env::var("DURAMEN_TEST_SECOND") {
        assert!(matches!(options().open(&path), Err(Error::Locked { .. })));
        assert!(matches!(options().open_read_only(&path), Err(Error::Locked { .. })));
        return Ok(());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let db = options().create(&path)?;
    assert!(matches!(options().open(&path), Err(Error::Locked { .. })));
    let second = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "hostile::a_second_handle_and_a_second_process_are_refused_at_once"])
        .env("DURAMEN_TEST_SECOND", &path)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&second.stdout);
    assert!(second.status.success() && printed.contains("1 passed"), "{printed}");
    drop(db);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "a clean close leaves one file");
    let readers = [options().open_read_only(&path)?, options().open_read_only(&path)?];
    assert!(matches!(options().open(&path), Err(Error::Locked { .. })));
    assert!(matches!(readers[0].begin_write().map(drop), Err(Error::ReadOnly)));
    drop(readers);
    options().open(&path).map(drop)
}

//! Promise: a conversion to any page store, page size and delta blocks keeps all tables. A conversion that fails leaves
//! the database and its folder unchanged. `crash_convert` has the power cuts.

use crate::workload::files::bytes_of;
use crate::workload::kinds::{Entries, FilledTable, contents, kinds};
use crate::workload::stores::STORES;
use duramen::db::{Compression, DeltaBlocks, Phase, Progress, StoreKind, Target};
use duramen::io::{FileVolume, MemoryVolume, OpenMode, Volume};
use duramen::{Builder, Database, Error, Result, TableDef, TableInfo, TableOptions};
use duramen_sim::{FailingVolume, HookedVolume, Hooks};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

const NAME: &str = "t.duramen";

fn options() -> Builder {
    Database::builder().page_size(4096).cache(1 << 20).background(false)
}

/// Without a page size, so that a conversion keeps that of the database.
fn to(store: StoreKind) -> Builder {
    Database::builder().store(store).cache(1 << 20).background(false)
}

fn make(store: StoreKind, path: &Path, kinds: &[FilledTable], rng: &mut fastrand::Rng) -> Result<()> {
    let db = options().store(store).create(path)?;
    kinds.iter().try_for_each(|kind| kind.put(&db, rng))?;
    db.close()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Asserts that the database has the expected entries and no damage.
fn check(db: &Database, kinds: &[FilledTable], infos: &[TableInfo], what: &str) -> Result<()> {
    assert_eq!(db.verify(|_| ())?.findings, [], "{what}");
    let found = contents(db)?;
    assert_eq!(found.iter().map(|(info, _)| info).collect::<Vec<_>>(), infos.iter().collect::<Vec<_>>(), "{what}");
    for (info, entries) in &found {
        let kind = kinds.iter().find(|kind| kind.name == info.name).unwrap();
        assert!(*entries == kind.entries, "{what}: table {}", info.name);
        assert_eq!(info.next_key, kind.next_key, "{what}: table {}", info.name);
    }
    assert_eq!(found.len(), kinds.len(), "{what}");
    Ok(())
}

#[test]
fn a_target_that_the_new_pages_cannot_have_leaves_the_compression() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let db = Database::builder().page_size(16384).create(&path)?;
    let tx = db.begin_write()?;
    let (compression, target) = (Compression::Lz4, Target::Bytes(8192));
    let options = TableOptions { compression, target, ..TableOptions::default() };
    drop(tx.create_untyped("t", "u32", "bytes", options)?);
    tx.commit()?;
    db.close()?;
    Database::builder().page_size(8192).convert(&path, |_| ())?;
    let tables = Database::open(&path)?.begin_read()?.tables()?;
    assert_eq!((tables[0].compression, tables[0].target), (compression, Target::Fit));
    Ok(())
}

#[test]
fn tables_of_every_kind_are_the_same_after_every_conversion() -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(18);
    let kinds = kinds(400, &mut rng);
    let volume = Arc::new(MemoryVolume::new());
    let db = options().store(StoreKind::Table).create_on(volume.clone(), NAME)?;
    kinds.iter().try_for_each(|kind| kind.put(&db, &mut rng))?;
    let infos = db.begin_read()?.tables()?;
    db.close()?;
    let paper = DeltaBlocks { threshold: 2048, segment: 128, blocks: 1 };
    let chain = DeltaBlocks { threshold: 1024, segment: 32, blocks: 8 };
    let (table, shadow) = (to(StoreKind::Table), to(StoreKind::Shadow));
    let usual = DeltaBlocks::default();
    // The options, and what the database then has.
    let steps = [
        (shadow.clone(), StoreKind::Shadow, 4096, Some(usual)),
        (shadow.clone().delta(paper), StoreKind::Shadow, 4096, Some(paper)),
        (shadow.clone(), StoreKind::Shadow, 4096, Some(paper)),
        (table.clone(), StoreKind::Table, 4096, None),
        (table.clone(), StoreKind::Table, 4096, None),
        (Database::builder().page_size(65536), StoreKind::Table, 65536, None),
        (shadow.page_size(8192).delta(chain), StoreKind::Shadow, 8192, Some(chain)),
        (Database::builder().page_size(32768), StoreKind::Shadow, 32768, Some(chain)),
        (table.page_size(4096), StoreKind::Table, 4096, None),
    ];
    for (at, (options, store, page_size, delta)) in steps.into_iter().enumerate() {
        let what = format!("step {at}, {store:?}, {page_size}, {delta:?}");
        let mut last = None;
        let report = options.convert_on(volume.clone(), NAME, |done| {
            assert!(last.is_none_or(|last: Progress| last.done <= done.done), "{what}");
            last = Some(done);
        })?;
        let entries = kinds.iter().map(|kind| kind.entries.len() as u64).sum();
        assert_eq!(last, Some(Progress { phase: Phase::Rebuilding, done: entries, of: entries }), "{what}");
        assert_eq!(
            (report.entries, report.bytes_after),
            (entries, volume.open(NAME, OpenMode::Read)?.size()?),
            "{what}"
        );
        assert_eq!(volume.list("")?, [NAME], "{what}");
        let db = Database::builder().open_on(volume.clone(), NAME)?;
        let stats = db.stats();
        assert_eq!((stats.store, stats.page_size, stats.delta), (Some(store), page_size, delta), "{what}");
        check(&db, &kinds, &infos, &what)?;
        // It goes on as any database does.
        let tx = db.begin_write()?;
        let mut table = tx.open_untyped("assigned")?;
        let next = table.push(b"a note")?;
        assert_eq!(next, kinds.iter().find_map(|kind| kind.next_key).unwrap().to_be_bytes(), "{what}");
        drop(table);
        tx.abort();
        db.close()?;
    }
    Ok(())
}

#[test]
fn a_database_that_was_not_closed_is_recovered_first() -> Result<()> {
    for (store, goal) in STORES.into_iter().flat_map(|store| STORES.map(|goal| (store, goal))) {
        let mut rng = fastrand::Rng::with_seed(7);
        let kinds = kinds(30, &mut rng);
        let volume = FailingVolume::new(1);
        let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
        kinds.iter().try_for_each(|kind| kind.put(&db, &mut rng))?;
        let killed =
            volume.crash(duramen_sim::Cut { event: volume.events(), choice: duramen_sim::CutChoice::DropUnsynced });
        let infos = db.begin_read()?.tables()?;
        assert!(killed.list(NAME)?.len() > 1, "there is a log");
        to(goal).convert_on(Arc::new(killed.clone()), NAME, |_| ())?;
        assert_eq!(killed.list("")?, [NAME]);
        let db = options().open_on(Arc::new(killed), NAME)?;
        assert_eq!(db.stats().store, Some(goal));
        check(&db, &kinds, &infos, &format!("{store:?} to {goal:?}"))?;
    }
    Ok(())
}

#[test]
fn a_database_is_locked_during_its_conversion() -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(3);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    make(StoreKind::Table, &path, &kinds(20, &mut rng), &mut rng)?;
    let mut asked = 0;
    to(StoreKind::Shadow).convert(&path, |_| {
        asked += 1;
        let locked = |error| matches!(error, Err(Error::Locked { .. }));
        assert!(locked(options().open(&path).map(drop)), "to write");
        assert!(locked(options().open_read_only(&path).map(drop)), "to read");
        assert!(locked(to(StoreKind::Table).convert(&path, |_| ()).map(drop)), "to convert");
        assert!(locked(options().open_or_create(&path).map(drop)), "to open or create");
        assert!(matches!(options().create(&path), Err(Error::Exists { .. })), "to create");
    })?;
    assert!(asked > 0);
    // Nor does a conversion begin while somebody has it.
    for reader in [false, true] {
        let held = if reader { options().open_read_only(&path) } else { options().open(&path) }?;
        assert!(matches!(to(StoreKind::Table).convert(&path, |_| ()), Err(Error::Locked { .. })));
        held.close()?;
    }
    assert_eq!(names(folder.path()), [NAME]);
    Ok(())
}

#[test]
fn the_files_of_a_killed_conversion_are_removed_by_the_next_one() -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(4);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    make(StoreKind::Table, &path, &kinds(20, &mut rng), &mut rng)?;
    let before = contents(&Database::open(&path)?)?;
    // The file of one and its log, the log of another, and a second name of the database itself: a file system without
    // a rename that replaces nothing may keep both names.
    let left = |id: u128, rest: &str| folder.path().join(format!("{NAME}.{id:032x}.new{rest}"));
    fs::write(left(1, ""), "half of it").unwrap();
    fs::write(left(1, "-log.000001"), "a log").unwrap();
    fs::write(left(2, "-log.000001"), "a log").unwrap();
    fs::hard_link(&path, left(3, "")).unwrap();
    // Of another database, and of one that is being created.
    fs::write(folder.path().join(format!("u.{NAME}.{:032x}.new", 1)), "").unwrap();
    to(StoreKind::Shadow).convert(&path, |_| ())?;
    assert_eq!(names(folder.path()), [NAME.to_owned(), format!("u.{NAME}.{:032x}.new", 1)]);
    let db = Database::open(&path)?;
    assert!(contents(&db)? == before);
    Ok(())
}

#[test]
fn the_new_file_is_in_the_place_of_the_old_one_and_open_to_the_same_people() -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(5);
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir(at("real")).unwrap();
    symlink("real", at("folder")).unwrap();
    symlink("folder/t.duramen", at("link")).unwrap();
    make(StoreKind::Table, &at("real/t.duramen"), &kinds(5, &mut rng), &mut rng)?;
    for mode in [0o640, 0o600, 0o666] {
        fs::set_permissions(at("real/t.duramen"), Permissions::from_mode(mode)).unwrap();
        let before = fs::metadata(at("real/t.duramen")).unwrap();
        to(StoreKind::Shadow).convert(at("link"), |_| ())?;
        let after = fs::metadata(at("real/t.duramen")).unwrap();
        assert_eq!(after.mode() & 0o7777, mode);
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_ne!(after.ino(), before.ino());
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(
            (names(folder.path()), names(&at("real"))),
            (vec!["folder".into(), "link".into(), "real".into()], vec![NAME.into()])
        );
    }
    Ok(())
}

/// Moves the database away during the conversion, and puts another, which stays open, in its place.
#[derive(Debug)]
struct Intruder {
    path: PathBuf,
    /// True: when the conversion first reads the locked database. False: just before the new one gets its name.
    early: bool,
    other: OnceLock<Database>,
}

const TREES: TableDef<u64, u64> = TableDef::new("trees");

impl Intruder {
    fn come(&self) -> Result<()> {
        if self.other.get().is_none() {
            fs::rename(&self.path, self.path.with_extension("moved")).unwrap();
            let other = self.other.get_or_init(|| options().create(&self.path).unwrap());
            let tx = other.begin_write()?;
            tx.open_table(TREES)?.put(&1, &700)?;
            tx.commit()?;
        }
        Ok(())
    }
}

impl Hooks for Intruder {
    fn before_read(&self, name: &str, _: u64, _: usize) -> Result<()> {
        if self.early && name == NAME { self.come() } else { Ok(()) }
    }

    fn before_exchange(&self, _: &str, _: &str) -> Result<()> {
        if self.early { Ok(()) } else { self.come() }
    }
}

#[test]
fn another_database_that_gets_the_name_before_the_exchange_stays() -> Result<()> {
    intrude(false)
}

#[test]
fn another_database_that_gets_the_name_at_the_beginning_keeps_its_log() -> Result<()> {
    intrude(true)
}

fn intrude(early: bool) -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(8);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(NAME);
    let kinds = kinds(5, &mut rng);
    make(StoreKind::Table, &path, &kinds, &mut rng)?;
    let intruder = Arc::new(Intruder { path: path.clone(), early, other: OnceLock::new() });
    let volume = HookedVolume::new(Arc::new(FileVolume::open(folder.path())?), intruder.clone());
    let converted = to(StoreKind::Shadow).convert_on(Arc::new(volume), NAME, |_| ());
    assert!(matches!(converted, Err(Error::NotFound { .. })), "{converted:?}");
    assert_eq!(names(folder.path()), [NAME, "t.duramen-log.000001", "t.moved"]);
    // As if the process that has it were killed now.
    let killed = tempfile::tempdir().unwrap();
    for name in names(folder.path()) {
        fs::copy(folder.path().join(&name), killed.path().join(&name)).unwrap();
    }
    let db = options().open(killed.path().join(NAME))?;
    assert_eq!(db.stats().store, Some(StoreKind::Table));
    assert_eq!(db.begin_read()?.open_table(TREES)?.get(&1)?.map(|years| years.value()), Some(700));
    assert_eq!(options().open(path.with_extension("moved"))?.begin_read()?.tables()?.len(), kinds.len());
    Ok(())
}

#[test]
fn a_file_that_is_no_database_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::write(at("empty"), "").unwrap();
    fs::write(at("text"), "a text".repeat(5000)).unwrap();
    let convert = |path: &str| to(StoreKind::Shadow).convert(at(path), |_| ());
    assert!(matches!(convert("missing"), Err(Error::NotFound { .. })));
    assert!(matches!(convert("no/folder"), Err(Error::NotFound { .. })));
    assert!(matches!(convert("empty"), Err(Error::NotADatabase { .. })));
    assert!(matches!(convert("text"), Err(Error::NotADatabase { .. })));
    let odd = Database::builder().page_size(5000).convert(at("text"), |_| ());
    assert!(matches!(odd, Err(Error::Option { .. })));
    assert_eq!(names(folder.path()), ["empty", "text"]);
    assert_eq!(fs::read_to_string(at("text")).unwrap(), "a text".repeat(5000));
}

/// A volume with one database, closed, and its contents.
fn volume(store: StoreKind, count: usize) -> Result<(FailingVolume, Vec<(TableInfo, Entries)>)> {
    let mut rng = fastrand::Rng::with_seed(6);
    let volume = FailingVolume::new(1);
    let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
    kinds(count, &mut rng).iter().try_for_each(|kind| kind.put(&db, &mut rng))?;
    let contents = contents(&db)?;
    db.close()?;
    Ok((volume, contents))
}

#[test]
fn a_full_device_leaves_the_old_database() -> Result<()> {
    for (store, goal) in STORES.into_iter().flat_map(|store| STORES.map(|goal| (store, goal))) {
        let (volume, before) = volume(store, 40)?;
        let (mut refused, mut space) = (0, 0);
        loop {
            volume.limit_space(Some(space));
            let what = format!("{store:?} to {goal:?}, {space} bytes");
            match to(goal).convert_on(Arc::new(volume.clone()), NAME, |_| ()) {
                Ok(_) => break,
                Err(Error::Full { path }) => assert_eq!(path, volume.path(NAME), "{what}"),
                Err(other) => panic!("{what}: {other}"),
            }
            refused += 1;
            assert_eq!(volume.list("")?, [NAME], "{what}");
            // Not a byte more is needed to read it.
            let db = options().open_read_only_on(Arc::new(volume.clone()), NAME)?;
            assert_eq!(db.stats().store, Some(store), "{what}");
            assert!(contents(&db)? == before, "{what}");
            db.close()?;
            space += 64 << 10;
        }
        assert!(refused > 3, "{store:?} to {goal:?}");
        let db = options().open_read_only_on(Arc::new(volume.clone()), NAME)?;
        assert!(db.stats().store == Some(goal) && contents(&db)? == before);
        assert!(db.stats().allocated_bytes <= space + volume.open(NAME, OpenMode::Read)?.allocated()?);
    }
    Ok(())
}

/// The contents of a database, or the error of reading them.
fn found(volume: &MemoryVolume) -> Result<Vec<(TableInfo, Entries)>, String> {
    let read = || contents(&options().open_read_only_on(Arc::new(volume.clone()), NAME)?);
    read().map_err(|error: Error| error.to_string())
}

#[test]
fn a_damaged_database_is_refused_with_the_name_of_the_table_and_left_as_it_was() -> Result<()> {
    for (store, goal) in STORES.into_iter().flat_map(|store| STORES.map(|goal| (store, goal))) {
        let mut rng = fastrand::Rng::with_seed(8);
        let volume = MemoryVolume::new();
        let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
        kinds(30, &mut rng).iter().try_for_each(|kind| kind.put(&db, &mut rng))?;
        let before = contents(&db)?;
        db.close()?;
        let bytes = bytes_of(&volume, NAME)?;
        let (mut tables, mut whole) = (std::collections::BTreeSet::new(), 0);
        for at in (0..bytes.len()).step_by(1999).filter(|at| bytes[*at] != 0) {
            let what = format!("{store:?} to {goal:?}, byte {at}");
            let damaged = MemoryVolume::new();
            let disk = damaged.open(NAME, OpenMode::CreateNew)?;
            disk.write_at(0, &bytes)?;
            disk.write_at(at as u64, &[bytes[at] ^ 1 << (at % 8)])?;
            let left = found(&damaged);
            match to(goal).convert_on(Arc::new(damaged.clone()), NAME, |_| ()) {
                Ok(_) => {
                    whole += 1;
                    assert!(found(&damaged).as_ref() == Ok(&before), "{what}");
                }
                Err(Error::Corrupt { what: message, .. }) if message.starts_with("table ") => {
                    let name = message.split('"').nth(1).unwrap().to_owned();
                    assert!(before.iter().any(|(info, _)| info.name == name), "{what}: {message}");
                    tables.insert(name);
                    assert!(found(&damaged) == left, "{what}");
                }
                // A page of the catalog, an allocation map, or what says where pages are.
                Err(Error::Corrupt { .. } | Error::CorruptMeta { .. }) => assert!(found(&damaged) == left, "{what}"),
                Err(other) => panic!("{what}: {other}"),
            }
            assert_eq!(damaged.list("")?, [NAME], "{what}");
        }
        assert!(tables.len() > 10 && whole > 0, "{store:?} to {goal:?}: {tables:?}, {whole}");
    }
    Ok(())
}

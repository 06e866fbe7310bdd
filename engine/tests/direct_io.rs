//! Promise: a database that is read and written with direct I/O behaves as any other, on a file system and on a device
//! with blocks of 4 KiB, also when it is opened in turn with and without it. Where direct I/O is not supported, opening
//! fails with `Error::Option`.

#[path = "workload/stores.rs"]
mod stores;

use duramen::db::StoreKind;
use duramen::io::MemoryVolume;
use duramen::{Builder, Database, Durability, Error, Result, TableDef};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use stores::STORES;

const TABLE: TableDef<u64, &[u8]> = TableDef::new("trees");

type Model = BTreeMap<u64, Vec<u8>>;

fn options(store: StoreKind) -> Builder {
    Database::builder().store(store).page_size(8192).cache(1 << 20).durability(Durability::None).direct_io(true)
}

/// The database; `None` if the file system of `path` has no direct I/O.
fn created(store: StoreKind, path: &Path) -> Result<Option<Database>> {
    match options(store).create(path) {
        Err(Error::Option { option: "direct_io", .. }) => {
            #[cfg(target_os = "linux")]
            assert!(!is_said_to_be_supported(path), "the system says that it is supported");
            println!("SKIPPED: this test needs a file system with direct I/O");
            Ok(None)
        }
        db => db.map(Some),
    }
}

/// Entries of different lengths, so that images begin and end anywhere.
fn put(db: &Database, model: &mut Model, keys: Range<u64>, step: u64, round: u64) -> Result<()> {
    for first in keys.clone().step_by(500) {
        let tx = db.begin_write()?;
        let mut table = tx.open_table(TABLE)?;
        for key in (first..keys.end.min(first + 500)).step_by(step as usize) {
            let random = key.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ round;
            let value = vec![random as u8; (random >> 40) as usize % 300];
            table.put(key, value.as_slice())?;
            model.insert(key, value);
        }
        drop(table);
        tx.commit()?;
    }
    Ok(())
}

fn agrees(db: &Database, model: &Model) -> Result<()> {
    let table = db.begin_read()?.open_table(TABLE)?;
    let mut expected = model.iter();
    for entry in table.range(..) {
        let (key, value) = entry?;
        assert_eq!(Some((&key.value(), &value.value().to_vec())), expected.next());
    }
    assert!(expected.next().is_none());
    for (key, value) in model.iter().step_by(97) {
        assert_eq!(
            table.get(*key)?.map(|found| found.value().to_vec()).as_deref(),
            Some(value.as_slice()),
            "key {key}"
        );
    }
    assert!(db.verify(|_| ())?.findings.is_empty());
    Ok(())
}

/// One thread commits and takes checkpoints while three threads read. Then the database is opened several times, each
/// second time without direct I/O.
fn use_it(store: StoreKind, path: &Path, db: Database) -> Result<()> {
    let mut model = Model::new();
    put(&db, &mut model, 0..20_000, 1, 0)?;
    agrees(&db, &model)?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3u64 {
            let (db, stop) = (&db, &stop);
            scope.spawn(move || {
                let mut seed = thread;
                while !stop.load(Ordering::Relaxed) {
                    seed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
                    let from = seed >> 32;
                    let table = db.begin_read().unwrap().open_table(TABLE).unwrap();
                    assert!(table.get(from % 20_000).unwrap().is_some());
                    let read = table.range(from % 20_000..).take(200).filter(|entry| entry.is_ok()).count();
                    assert_eq!(read as u64, (20_000 - from % 20_000).min(200));
                }
            });
        }
        let written = (1..4).try_for_each(|round| {
            put(&db, &mut model, 0..20_000, 3, round)?;
            db.checkpoint()
        });
        stop.store(true, Ordering::Relaxed);
        written
    })?;
    agrees(&db, &model)?;
    drop(db);
    for round in 4..8 {
        let db = options(store).direct_io(round % 2 == 0).open(path)?;
        agrees(&db, &model)?;
        put(&db, &mut model, 0..20_000, 7, round)?;
        agrees(&db, &model)?;
        db.close()?;
    }
    agrees(&options(store).open_read_only(path)?, &model)?;
    let (db, damage) = options(store).open_damaged(path)?;
    assert!(damage.is_empty(), "{damage:?}");
    agrees(&db, &model)
}

/// Checks recovery after the death of the process: copies the files of an open database and opens the copy. A device
/// cannot be copied in this way.
fn recovers(store: StoreKind, path: &Path) -> Result<()> {
    let mut model = Model::new();
    let db = options(store).background(false).open(path)?;
    db.begin_read()?.open_table(TABLE)?.range(..).try_for_each(|entry| {
        let (key, value) = entry?;
        model.insert(key.value(), value.value().to_vec());
        Ok::<(), Error>(())
    })?;
    put(&db, &mut model, 0..20_000, 5, 9)?;
    db.checkpoint()?;
    put(&db, &mut model, 0..20_000, 3, 10)?;
    let copies = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap().flatten() {
        std::fs::copy(file.path(), copies.path().join(file.file_name())).unwrap();
    }
    drop(db);
    let copy = copies.path().join(path.file_name().unwrap());
    let needed = options(store).open_read_only(&copy).map(drop);
    assert!(matches!(needed, Err(Error::NeedsRecovery { .. })), "{needed:?}");
    agrees(&options(store).open(&copy)?, &model)
}

#[test]
fn a_file_behaves_like_a_map() -> Result<()> {
    // The second folder is a tmpfs on Linux, which has no device below it.
    let folders = [std::env::temp_dir(), "/dev/shm".into()].into_iter().filter(|folder| folder.is_dir());
    for (folder, store) in folders.flat_map(|folder| STORES.map(|store| (folder.clone(), store))) {
        let folder = tempfile::tempdir_in(folder).unwrap();
        let path = folder.path().join("forest.duramen");
        let Some(db) = created(store, &path)? else { continue };
        #[cfg(target_os = "linux")]
        assert!(is_open_directly(&path), "the system knows of it");
        use_it(store, &path, db)?;
        recovers(store, &path)?;
    }
    Ok(())
}

#[test]
fn a_volume_without_direct_io_is_refused_and_keeps_no_files() -> Result<()> {
    use duramen::io::Volume;
    for store in STORES {
        let volume = Arc::new(MemoryVolume::new());
        let refused = options(store).create_on(volume.clone(), "forest").map(drop);
        assert!(matches!(refused, Err(Error::Option { option: "direct_io", .. })), "{refused:?}");
        assert!(volume.list("")?.is_empty());
        options(store).direct_io(false).create_on(volume.clone(), "forest")?.close()?;
        let refused = options(store).open_on(volume.clone(), "forest").map(drop).unwrap_err();
        let expected = "option direct_io cannot be true: it must be false, because the file system of ";
        assert!(refused.to_string().starts_with(expected), "{refused}");
        options(store).direct_io(false).open_on(volume, "forest")?;
    }
    options(StoreKind::Table).in_memory().map(drop)
}

/// True if the system says that files beside `path` can be used with direct I/O.
#[cfg(target_os = "linux")]
fn is_said_to_be_supported(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
    let file = tempfile::NamedTempFile::new_in(path.parent().unwrap()).unwrap();
    statx(CWD, file.path(), AtFlags::empty(), StatxFlags::DIOALIGN)
        .is_ok_and(|stat| (1..=4096).contains(&stat.stx_dio_offset_align))
}

/// True if this process has the file open with direct I/O.
#[cfg(target_os = "linux")]
fn is_open_directly(path: &Path) -> bool {
    let path = path.canonicalize().unwrap();
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter(|link| std::fs::read_link(link.path()).is_ok_and(|target| target == path)).any(|link| {
        let info = Path::new("/proc/self/fdinfo").join(link.file_name());
        let info = std::fs::read_to_string(info).unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap_or_default();
        let direct = rustix::fs::OFlags::DIRECT.bits();
        u32::from_str_radix(flags.trim(), 8).is_ok_and(|flags| flags & direct != 0)
    })
}

/// Devices of the system.
#[cfg(target_os = "linux")]
mod system {
    use super::*;
    use duramen_sim::LoopDevice;

    #[test]
    fn a_device_with_blocks_of_4_kib_behaves_like_a_map() -> Result<()> {
        for store in STORES {
            let folder = tempfile::tempdir().unwrap();
            let backing = folder.path().join("backing");
            std::fs::File::create(&backing).unwrap().set_len(256 << 20).unwrap();
            let device = match LoopDevice::with_blocks(&backing, 4096) {
                Ok(device) => device,
                Err(why) => {
                    println!("SKIPPED: this test needs a loop device: {why}");
                    return Ok(());
                }
            };
            let path = folder.path().join("forest.duramen");
            std::os::unix::fs::symlink(device.path(), &path).unwrap();
            let Some(db) = created(store, &path)? else { return Ok(()) };
            use_it(store, &path, db)?;
        }
        Ok(())
    }
}

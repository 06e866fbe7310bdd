//! Promise: while the process has too many open files, nothing that is acknowledged is lost, commits go on, and calls
//! that need another file return an error. It is a program of its own, because it uses up the descriptors of its
//! process.

#[path = "workload/stores.rs"]
mod stores;

use duramen::{Builder, Database, Durability, Error, Result, TableDef};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::path::Path;
use stores::STORES;

const T: TableDef<u32, &[u8]> = TableDef::new("t");
const COMMITS: u32 = 400;

fn options() -> Builder {
    Database::builder()
        .page_size(4096)
        .cache(1 << 20)
        .checkpoint_bytes(4 << 20)
        .background(false)
        .durability(Durability::None)
}

fn put(db: &Database, keys: std::ops::Range<u32>) -> Result<()> {
    for key in keys {
        let tx = db.begin_write()?;
        tx.open_table(T)?.put(key, &[key as u8; 30_000][..])?;
        tx.commit()?;
        while db.maintain()? {}
    }
    Ok(())
}

fn log_files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.contains("-log.")).collect();
    names.sort_unstable();
    names
}

/// Opens files until the process can open no more.
fn use_up() -> Vec<File> {
    let mut files = Vec::new();
    loop {
        match File::open("/dev/null") {
            Ok(file) => files.push(file),
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::MFILE.raw_os_error()));
                return files;
            }
        }
    }
}

#[test]
fn a_process_with_too_many_open_files_goes_on_with_its_database() -> Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum }).unwrap();
    for store in STORES {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.duramen");
        let db = options().store(store).create(&path)?;
        put(&db, 0..COMMITS)?;

        let (before, files) = (log_files(folder.path()), use_up());
        assert!(matches!(options().create(folder.path().join("other")), Err(Error::Io { .. })));
        put(&db, COMMITS..2 * COMMITS)?;
        db.checkpoint()?;
        assert_eq!(db.begin_read()?.open_table(T)?.len(), u64::from(2 * COMMITS));
        drop(files);
        assert!(log_files(folder.path()).iter().all(|name| before.contains(name)), "{store:?}: a file was created");

        put(&db, 2 * COMMITS..3 * COMMITS)?;
        db.checkpoint()?;
        assert!(!log_files(folder.path()).iter().all(|name| before.contains(name)), "{store:?}: no new segment");
        let files = use_up();
        // The names of the log cannot be listed, so it stays.
        assert!(db.close().is_err(), "{store:?}");
        drop(files);
        let db = options().open(&path)?;
        assert_eq!(db.verify(|_| ())?.findings, []);
        assert_eq!(db.begin_read()?.open_table(T)?.len(), u64::from(3 * COMMITS));
        db.close()?;
        assert_eq!(log_files(folder.path()), [""; 0]);
    }
    Ok(())
}

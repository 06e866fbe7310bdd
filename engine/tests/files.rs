//! The files of a database: their places, their permissions, and several processes that open the same path at the same
//! time without losing data.

#[path = "workload/child.rs"]
mod child;
#[path = "workload/numbers.rs"]
mod numbers;
#[path = "workload/stores.rs"]
mod stores;

use child::in_child;
use duramen::db::StoreKind;
use duramen::io::{FileVolume, OpenMode, Volume};
use duramen::{Builder, Database, Durability, Error, Result};
use duramen_sim::{HookedVolume, Hooks};
use numbers::{TABLE, keys};
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::fd::FromRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use stores::STORES;

fn options() -> Builder {
    in_store(StoreKind::Table)
}

fn in_store(store: StoreKind) -> Builder {
    Database::builder().store(store).cache(1 << 20).page_size(4096)
}

fn put(db: &Database, key: u64) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::None);
    tx.open_table(TABLE)?.put(&key, &key)?;
    tx.commit()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// A way to open a path.
type Open = fn(&Builder, &Path) -> Result<Database>;

/// Two threads open one path at once, each in its own way, commit and close.
fn race(rounds: u64, empty: bool, open: [Open; 2]) {
    for round in 0..rounds {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.duramen");
        if empty {
            fs::write(&path, "").unwrap();
        }
        let options = in_store(STORES[round as usize % STORES.len()]);
        let committed = AtomicU64::new(0);
        let barrier = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            for (key, open) in open.into_iter().enumerate() {
                let (options, path, committed, barrier) = (&options, &path, &committed, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    match open(options, path) {
                        Ok(db) => {
                            put(&db, key as u64).unwrap();
                            db.close().unwrap();
                            committed.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(Error::Locked { .. } | Error::Exists { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                });
            }
        });
        let committed = committed.into_inner();
        assert!(committed > 0, "in round {round} nobody has got the database");
        let db = options.open(&path).unwrap_or_else(|error| panic!("in round {round}: {error}"));
        assert_eq!(keys(&db).unwrap(), committed, "in round {round}");
        db.close().unwrap();
        assert_eq!(names(folder.path()), ["t.duramen"]);
    }
}

#[test]
fn concurrent_open_or_create_of_a_path_loses_nothing() {
    race(100, false, [|options, path| options.open_or_create(path); 2]);
}

#[test]
fn concurrent_creates_of_a_path_lose_nothing() {
    race(40, false, [|options, path| options.create(path), |options, path| options.open_or_create(path)]);
    race(40, false, [|options, path| options.create(path); 2]);
}

#[test]
fn concurrent_creates_in_an_empty_file_lose_nothing() {
    race(40, true, [|options, path| options.create(path), |options, path| options.open_or_create(path)]);
    race(40, true, [|options, path| options.open_or_create(path); 2]);
}

#[test]
fn a_database_through_a_link_has_its_log_beside_the_file() -> Result<()> {
    STORES.into_iter().try_for_each(follow_a_link)
}

fn follow_a_link(store: StoreKind) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir(at("real")).unwrap();
    symlink("real", at("folder")).unwrap();
    symlink("folder/t.duramen", at("link")).unwrap();
    // The link leads to nothing yet.
    let db = in_store(store).create(at("link"))?;
    put(&db, 1)?;
    assert_eq!(names(&at("real")), ["t.duramen", "t.duramen-log.000001"]);
    assert!(matches!(options().open(at("real/t.duramen")), Err(Error::Locked { .. })));
    std::mem::forget(db);
    // A copy is what a killed process leaves.
    fs::create_dir(at("killed")).unwrap();
    for name in names(&at("real")) {
        fs::copy(at("real").join(&name), at("killed").join(&name)).unwrap();
    }
    let db = options().open(at("killed/t.duramen"))?;
    assert_eq!(keys(&db)?, 1);
    Ok(())
}

#[test]
fn a_folder_that_is_renamed_takes_its_database_along() -> Result<()> {
    STORES.into_iter().try_for_each(rename_a_folder)
}

fn rename_a_folder(store: StoreKind) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir_all(at("a/b")).unwrap();
    let db = in_store(store).create(at("a/b/t.duramen"))?;
    fs::rename(at("a"), at("c")).unwrap();
    for key in 0..10 {
        put(&db, key)?;
        db.checkpoint()?;
    }
    db.close()?;
    assert_eq!(names(&at("c/b")), ["t.duramen"]);
    assert_eq!(keys(&options().open(at("c/b/t.duramen"))?)?, 10);
    Ok(())
}

#[test]
fn the_log_has_the_permissions_of_the_database() -> Result<()> {
    STORES.into_iter().try_for_each(give_permissions)
}

fn give_permissions(store: StoreKind) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    for access in [0o600, 0o640, 0o666, 0o604] {
        // An empty file, as by `touch` or `NamedTempFile`.
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(access)).unwrap();
        let db = in_store(store).create(&path)?;
        assert_eq!(mode(&path), access, "the empty file's");
        for key in 0..3 {
            put(&db, key)?;
            for name in names(folder.path()) {
                assert_eq!(mode(&folder.path().join(&name)), access, "{name}");
            }
            db.checkpoint()?;
        }
        // A log segment that is used again gets what the database has by then.
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        put(&db, 3)?;
        db.checkpoint()?;
        let newest = names(folder.path()).pop().unwrap();
        assert!(newest.contains("-log.") && mode(&folder.path().join(&newest)) == 0o600, "{newest}");
        db.close()?;
        fs::remove_file(&path).unwrap();
    }
    in_store(store).create(&path)?.close()?;
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(mode(&path), mode(&plain), "a new database has what every new file has");
    Ok(())
}

#[test]
fn an_empty_file_becomes_a_database_and_no_other_file_does() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let file = tempfile::NamedTempFile::new_in(folder.path()).unwrap();
    let error = options().open(file.path()).unwrap_err();
    assert!(matches!(error, Error::NotADatabase { .. }) && error.to_string().contains("create"), "{error}");
    options().open_or_create(file.path())?.close()?;
    assert!(matches!(options().create(file.path()), Err(Error::Exists { .. })));
    drop(file);
    assert_eq!(names(folder.path()), Vec::<String>::new());
    let path = folder.path().join("other");
    for content in [&b"x"[..], &[0; 8192]] {
        fs::write(&path, content).unwrap();
        assert!(matches!(options().create(&path), Err(Error::Exists { .. })));
        assert!(matches!(options().open_or_create(&path), Err(Error::NotADatabase { .. })));
        assert_eq!(fs::read(&path).unwrap(), content);
    }
    Ok(())
}

#[test]
fn an_empty_file_that_another_process_initializes_is_not_taken() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    fs::write(&path, "").unwrap();
    let held = fs::File::open(&path).unwrap();
    held.lock().unwrap();
    for made in [options().create(&path), options().open_or_create(&path)] {
        assert!(matches!(made, Err(Error::Locked { .. })));
    }
    drop(held);
    options().create(&path)?.close()?;
    assert_eq!(names(folder.path()), ["t.duramen"]);
    Ok(())
}

#[test]
fn a_database_whose_file_was_removed_does_not_touch_the_next_one() -> Result<()> {
    STORES.into_iter().try_for_each(remove_an_open_file)
}

fn remove_an_open_file(store: StoreKind) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let removed = in_store(store).create(&path)?;
    put(&removed, 1)?;
    fs::remove_file(&path).unwrap();
    // Its log has the numbers that the removed one's had.
    in_store(store).create(&path)?.close()?;
    let db = options().open(&path)?;
    put(&db, 2)?;
    let log = names(folder.path());
    put(&removed, 3)?;
    // Errors of the removed database's own files are ignored.
    let _ = removed.checkpoint();
    let _ = removed.close();
    assert!(log.iter().all(|name| folder.path().join(name).exists()), "{log:?}: {:?}", names(folder.path()));
    put(&db, 4)?;
    db.close()?;
    assert_eq!(keys(&options().open(&path)?)?, 2);
    Ok(())
}

/// A device without space for the log of a database that is being created. When the creation takes its file away,
/// another program has moved the file and created another database.
#[derive(Debug)]
struct Intruder {
    path: PathBuf,
    other: OnceLock<Database>,
}

impl Hooks for Intruder {
    fn before_write(&self, name: &str, _: u64, _: usize) -> Result<()> {
        if name.contains("-log.") { Err(Error::Full { path: self.path.clone() }) } else { Ok(()) }
    }

    fn before_rename(&self, from: &str, _: &str) -> Result<()> {
        if from == "t.duramen" {
            fs::rename(&self.path, self.path.with_extension("moved")).unwrap();
            let other = self.other.get_or_init(|| options().create(&self.path).unwrap());
            put(other, 1)?;
        }
        Ok(())
    }
}

#[test]
fn a_creation_that_fails_removes_its_own_file_only() -> Result<()> {
    STORES.into_iter().try_for_each(fail_a_creation)
}

fn fail_a_creation(store: StoreKind) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let intruder = Arc::new(Intruder { path: path.clone(), other: OnceLock::new() });
    let volume = HookedVolume::new(Arc::new(FileVolume::open(folder.path())?), intruder.clone());
    let created = in_store(store).create_on(Arc::new(volume), "t.duramen");
    assert!(matches!(created, Err(Error::Full { .. })), "{created:?}");
    assert_eq!(names(folder.path()), ["t.duramen", "t.duramen-log.000001", "t.moved"]);
    put(intruder.other.get().expect("another database"), 2)
}

#[test]
fn an_unfinished_creation_is_invisible_and_is_removed_by_the_next_one() -> Result<()> {
    STORES.into_iter().try_for_each(leave_a_creation)
}

fn leave_a_creation(store: StoreKind) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let new = in_store(store).begin_create(&path)?;
    put(new.database(), 1)?;
    assert!(matches!(options().open(&path), Err(Error::NotFound { .. })));
    drop(new);
    assert_eq!(names(folder.path()), Vec::<String>::new());

    // A killed process leaves this: a copy of the files under a name of the same form.
    let new = in_store(store).begin_create(&path)?;
    put(new.database(), 1)?;
    for name in names(folder.path()) {
        let id = name.split('.').nth(2).unwrap().to_owned();
        fs::copy(folder.path().join(&name), folder.path().join(name.replace(&id, &"7".repeat(32)))).unwrap();
    }
    fs::write(folder.path().join(format!("t.duramen.{}.new-log.000001", "8".repeat(32))), "its file is gone").unwrap();
    let clone = new.database().clone();
    assert!(matches!(new.finish(), Err(Error::Locked { .. })), "a clone is left");
    drop(clone);

    let new = in_store(store).begin_create(&path)?;
    put(new.database(), 2)?;
    new.finish()?;
    assert_eq!(names(folder.path()), ["t.duramen"]);
    assert_eq!(keys(&options().open(&path)?)?, 1);
    Ok(())
}

#[test]
fn finishing_a_database_does_not_replace_another_file() -> Result<()> {
    STORES.into_iter().try_for_each(finish_two_creations)
}

fn finish_two_creations(store: StoreKind) -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.duramen");
    let (first, second) = (in_store(store).begin_create(&path)?, in_store(store).begin_create(&path)?);
    put(first.database(), 1)?;
    put(second.database(), 2)?;
    put(second.database(), 3)?;
    second.finish()?;
    assert!(matches!(first.finish(), Err(Error::Exists { .. })));
    assert_eq!(keys(&options().open(&path)?)?, 2);
    assert_eq!(names(folder.path()), ["t.duramen"]);
    Ok(())
}

/// The variable that gives the child process its folder.
const CHILD_FOLDER: &str = "DURAMEN_TEST_FILES_FOLDER";

#[test]
#[ignore = "the child process of another_working_folder_leaves_a_database_where_it_is"]
fn child_process_changes_its_working_folder() {
    // Somebody who runs all ignored tests is not the parent.
    let Ok(folder) = std::env::var(CHILD_FOLDER) else { return };
    std::env::set_current_dir(Path::new(&folder).join("here")).unwrap();
    let db = options().create("t.duramen").unwrap();
    put(&db, 0).unwrap();
    std::env::set_current_dir("../there").unwrap();
    for key in 1..10 {
        put(&db, key).unwrap();
        // Each needs a new segment.
        db.checkpoint().unwrap();
    }
    put(&db, 10).unwrap();
    std::thread::sleep(Duration::from_millis(1));
    // Killed, as far as the files can tell.
    std::process::exit(0);
}

#[test]
fn another_working_folder_leaves_a_database_where_it_is() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    ["here", "there"].iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_process_changes_its_working_folder", "--ignored", "--nocapture"])
        .env(CHILD_FOLDER, folder.path())
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    assert_eq!(names(&folder.path().join("there")), Vec::<String>::new());
    let db = options().open(folder.path().join("here/t.duramen"))?;
    assert_eq!(keys(&db)?, 11);
    Ok(())
}

#[test]
fn a_pipe_is_refused_without_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let (fifo, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
    rustix::fs::mknodat(rustix::fs::CWD, &path, fifo, mode, 0).unwrap();
    let options = Database::builder();
    for refused in [options.create(&path), options.open_or_create(&path), options.open(&path)] {
        let message = refused.map(drop).unwrap_err().to_string();
        assert!(message.contains("not a regular file"), "{message}");
    }
    assert!(Database::open_read_only(&path).is_err());
    assert!(!std::fs::metadata(&path).unwrap().is_file(), "it was replaced");
}

/// The descriptors of the standard streams.
const STREAMS: std::ops::Range<i32> = 0..3;

/// Closes the standard streams of a child process, whose other threads are missing.
fn close_streams() {
    // SAFETY: nothing in this process uses these descriptors.
    STREAMS.for_each(|stream| drop(unsafe { File::from_raw_fd(stream) }));
}

#[test]
fn messages_to_closed_standard_streams_are_not_written_into_a_database() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    in_child(path.clone(), |path| {
        close_streams();
        let db = options().background(false).create(&path).unwrap();
        (0..2000).for_each(|key| put(&db, key).unwrap());
        for stream in STREAMS {
            // SAFETY: the descriptor is closed, or belongs to a file of the database if the code is wrong.
            let mut stream = std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(stream) });
            drop(stream.write_all(&[b'x'; 9000]));
        }
        // Closing the database could repair it, so it is not closed.
        std::mem::forget(db);
    });
    let db = Database::open(&path)?;
    assert_eq!(keys(&db)?, 2000);
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

#[test]
fn a_file_that_can_get_no_descriptor_of_its_own_is_not_created() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    in_child(folder.path().to_owned(), |folder| {
        let volume = FileVolume::open(&folder).unwrap();
        let others: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        close_streams();
        assert!(volume.open("new", OpenMode::CreateNew).is_err());
        assert!(matches!(volume.open("new", OpenMode::Read), Err(Error::NotFound { .. })));
        drop(others);
    });
    assert_eq!(names(folder.path()), [""; 0]);
    Ok(())
}

/// On some network file systems a lock keeps other descriptors, also of the same process, from reading and writing.
#[cfg(target_os = "linux")]
#[test]
fn a_database_has_one_open_descriptor_of_its_file() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("t.duramen");
    let open = || {
        let all = fs::read_dir("/proc/self/fd").unwrap();
        let targets = all.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok());
        // The name of a database that is being created begins like its own.
        let is_file = |name: &str| name.starts_with("t.duramen") && !name.contains("-log");
        targets
            .filter(|target| {
                target.parent() == path.parent()
                    && target.to_str().is_some_and(|target| target.rsplit('/').next().is_some_and(is_file))
            })
            .count()
    };
    let db = options().create(&path)?;
    assert_eq!(open(), 1);
    put(&db, 1)?;
    db.close()?;
    let db = options().open(&path)?;
    assert_eq!(open(), 1);
    drop(db);
    fs::remove_file(&path).unwrap();
    let new = options().begin_create(&path)?;
    assert_eq!(open(), 1);
    new.finish()?;
    assert_eq!(open(), 0);
    Ok(())
}

/// The path of a file that is mounted alone, for the process that [`a_file_that_is_mounted_alone_is_refused`] starts.
#[cfg(target_os = "linux")]
const MOUNTED: &str = "DURAMEN_TEST_MOUNTED";

/// Its log would be in the file system of the folder.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_is_mounted_alone_is_refused() -> Result<()> {
    if let Some(path) = std::env::var_os(MOUNTED) {
        match options().open(&path) {
            Err(Error::Option { option: "path", expected, .. }) => assert!(expected.contains("mounted alone")),
            other => panic!("{other:?}"),
        }
        // Nothing is written, so there will be no log.
        assert_eq!(keys(&Database::open_read_only(&path)?)?, 1);
        return Ok(());
    }
    let folder = tempfile::tempdir().unwrap();
    let [file, mounted] = ["file", "mounted"].map(|name| folder.path().join(name));
    let db = options().create(&file)?;
    put(&db, 1)?;
    db.close()?;
    fs::write(&mounted, b"").unwrap();
    let in_mounts = |script: &str| {
        let mut command = std::process::Command::new("unshare");
        command.args(["-rm", "sh", "-c", &format!("mount --bind \"$0\" \"$1\" && {script}")]);
        command.args([&file, &mounted]).arg(std::env::current_exe().unwrap()).env(MOUNTED, &mounted);
        command.output()
    };
    if !in_mounts("true").is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: this test needs `unshare` and the right to mount");
        return Ok(());
    }
    let output = in_mounts("exec \"$2\" --exact a_file_that_is_mounted_alone_is_refused").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

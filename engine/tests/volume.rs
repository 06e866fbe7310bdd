//! Every volume keeps the same promises. While nothing fails, files, memory and the simulated devices behave alike, so
//! a test on one of them is valid for the others.

use duramen::Error;
use duramen::io::{FileVolume, MemoryVolume, OpenMode, Volume};
use duramen_sim::FailingVolume;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `check` on an empty volume of each kind.
fn on_each(check: fn(&dyn Volume)) {
    let folder = tempfile::tempdir().unwrap();
    check(&FileVolume::open(folder.path()).unwrap());
    check(&MemoryVolume::new());
    check(&FailingVolume::new(1));
}

fn content(volume: &dyn Volume, name: &str) -> Vec<u8> {
    let disk = volume.open(name, OpenMode::Read).unwrap();
    let mut bytes = vec![0; disk.size().unwrap() as usize];
    disk.read_at(0, &mut bytes).unwrap();
    bytes
}

fn create(volume: &dyn Volume, name: &str, bytes: &[u8]) {
    volume.open(name, OpenMode::CreateNew).unwrap().write_at(0, bytes).unwrap();
}

#[test]
fn open_says_whether_a_file_is_missing_or_there_already() {
    on_each(|volume| {
        for mode in [OpenMode::Read, OpenMode::Write] {
            assert!(matches!(volume.open("a", mode), Err(Error::NotFound { path }) if path == volume.path("a")));
        }
        create(volume, "a", b"x");
        let again = volume.open("a", OpenMode::CreateNew);
        assert!(matches!(again, Err(Error::Exists { path }) if path == volume.path("a")));
        assert_eq!(content(volume, "a"), b"x");
    });
}

#[test]
fn writes_grow_a_file_over_zeros_and_reads_past_its_end_fail() {
    on_each(|volume| {
        let disk = volume.open("a", OpenMode::CreateNew).unwrap();
        disk.write_at(10_000, b"end").unwrap();
        assert_eq!(disk.size().unwrap(), 10_003);
        let mut bytes = [1; 4];
        disk.read_at(9_998, &mut bytes).unwrap();
        assert_eq!(&bytes, b"\0\0en");
        for offset in [10_000, 10_003, 1 << 40] {
            match disk.read_at(offset, &mut [0; 4]) {
                Err(Error::Io { source, .. }) => assert_eq!(source.kind(), ErrorKind::UnexpectedEof),
                other => panic!("{other:?}"),
            }
        }
        disk.read_at(10_003, &mut []).unwrap();
        disk.sync().unwrap();
    });
}

#[test]
fn resize_cuts_and_grows_by_zeros() {
    on_each(|volume| {
        let disk = volume.open("a", OpenMode::CreateNew).unwrap();
        disk.write_at(0, &[7; 6000]).unwrap();
        disk.resize(5000).unwrap();
        disk.resize(9000).unwrap();
        disk.sync().unwrap();
        let mut expected = vec![7; 5000];
        expected.resize(9000, 0);
        assert_eq!(content(volume, "a"), expected);
    });
}

#[test]
fn trim_keeps_the_size_and_the_rest_and_gives_space_back() {
    on_each(|volume| {
        let disk = volume.open("a", OpenMode::CreateNew).unwrap();
        disk.write_at(0, &[7; 1 << 20]).unwrap();
        disk.sync().unwrap();
        let before = disk.allocated().unwrap();
        assert!(before >= 1 << 20, "{before}");
        disk.trim(1 << 18, 1 << 19).unwrap();
        disk.trim(0, 0).unwrap();
        let after = disk.allocated().unwrap();
        assert!(after <= before - (1 << 19) + 8192, "{before} -> {after}");
        let bytes = content(volume, "a");
        assert_eq!(bytes.len(), 1 << 20);
        assert!(bytes[..1 << 18].iter().chain(&bytes[3 << 18..]).all(|&b| b == 7));
    });
}

#[test]
fn reserve_changes_neither_size_nor_content() {
    on_each(|volume| {
        let disk = volume.open("a", OpenMode::CreateNew).unwrap();
        disk.write_at(0, b"abc").unwrap();
        disk.reserve(1 << 20).unwrap();
        disk.reserve(0).unwrap();
        assert_eq!(content(volume, "a"), b"abc");
    });
}

#[test]
fn a_handle_for_reading_cannot_write() {
    on_each(|volume| {
        create(volume, "a", b"abc");
        let disk = volume.open("a", OpenMode::Read).unwrap();
        for result in [disk.write_at(0, b"x"), disk.resize(1), disk.trim(0, 1), disk.reserve(10)] {
            assert!(matches!(result, Err(Error::ReadOnly)));
        }
        disk.sync().unwrap();
        assert_eq!(content(volume, "a"), b"abc");
    });
}

#[test]
fn names_come_and_go_and_are_listed_sorted() {
    on_each(|volume| {
        for name in ["db", "db-log.2", "db-log.10", "other"] {
            create(volume, name, name.as_bytes());
        }
        assert_eq!(volume.list("db").unwrap(), ["db", "db-log.10", "db-log.2"]);
        assert_eq!(volume.list("none").unwrap(), Vec::<String>::new());
        volume.remove("db-log.2").unwrap();
        volume.remove("db-log.2").unwrap();
        assert!(matches!(volume.rename("db-log.10", "db"), Err(Error::Exists { path }) if path == volume.path("db")));
        volume.rename("db-log.10", "new").unwrap();
        volume.sync().unwrap();
        assert_eq!(volume.list("").unwrap(), ["db", "new", "other"]);
        assert_eq!((content(volume, "db"), content(volume, "new")), (b"db".to_vec(), b"db-log.10".to_vec()));
        assert!(matches!(volume.rename("gone", "x"), Err(Error::NotFound { path }) if path == volume.path("gone")));
    });
}

#[test]
fn an_open_file_outlives_its_name() {
    on_each(|volume| {
        create(volume, "a", b"old");
        let disk = volume.open("a", OpenMode::Read).unwrap();
        volume.remove("a").unwrap();
        create(volume, "a", b"new");
        let mut bytes = [0; 3];
        disk.read_at(0, &mut bytes).unwrap();
        assert_eq!(&bytes, b"old");
    });
}

#[test]
fn a_second_handle_is_locked_out_until_the_first_is_dropped() {
    on_each(|volume| {
        assert!(matches!(volume.lock("a", true), Err(Error::NotFound { .. })));
        create(volume, "a", b"");
        let first = volume.lock("a", true).unwrap();
        for exclusive in [true, false] {
            let second = volume.lock("a", exclusive);
            assert!(matches!(second, Err(Error::Locked { path }) if path == volume.path("a")));
        }
        // Opening and closing the file by other handles must not take the lock away.
        drop(volume.open("a", OpenMode::Write).unwrap());
        assert!(matches!(volume.lock("a", true), Err(Error::Locked { .. })));
        drop(first);
        let readers = [volume.lock("a", false).unwrap(), volume.lock("a", false).unwrap()];
        assert!(matches!(volume.lock("a", true), Err(Error::Locked { .. })));
        drop(readers);
        drop(volume.lock("a", true).unwrap());
    });
}

#[test]
fn a_renamed_file_keeps_its_lock() {
    on_each(|volume| {
        create(volume, "a", b"");
        let _held = volume.lock("a", true).unwrap();
        volume.rename("a", "b").unwrap();
        create(volume, "a", b"");
        drop(volume.lock("a", true).unwrap());
        assert!(matches!(volume.lock("b", true), Err(Error::Locked { .. })));
    });
}

#[test]
fn a_read_only_folder_can_be_read_and_locked_for_reading() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let volume = FileVolume::open(folder.path()).unwrap();
    create(&volume, "a", b"abc");
    let mode = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(&volume.path("a"), 0o444);
    mode(folder.path(), 0o555);
    let _held = volume.lock("a", false).unwrap();
    assert_eq!(content(&volume, "a"), b"abc");
    assert_eq!(volume.list("").unwrap(), ["a"]);
    mode(folder.path(), 0o755);
}

#[test]
fn a_missing_folder_is_named_and_a_file_is_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gone");
    assert!(matches!(FileVolume::open(&path), Err(Error::Io { path: named, .. }) if named == path));
    std::fs::write(&path, "x").unwrap();
    assert!(matches!(FileVolume::open(&path), Err(Error::Io { path: named, .. }) if named == path));
}

#[test]
fn a_lock_is_of_the_file_that_has_the_name_and_gives_a_handle_of_that_file() {
    on_each(|volume| {
        create(volume, "a", b"old");
        let held = volume.lock("a", true).unwrap();
        held.disk.write_at(0, b"new").unwrap();
        assert_eq!(content(volume, "a"), b"new");
        assert!(held.guard.is_of("a").unwrap() && !held.guard.is_of("b").unwrap());
        volume.rename("a", "b").unwrap();
        assert!(held.guard.is_of("b").unwrap() && !held.guard.is_of("a").unwrap());
        create(volume, "a", b"");
        assert!(!held.guard.is_of("a").unwrap());
        drop(held);
        let shared = volume.lock("b", false).unwrap();
        assert!(matches!(shared.disk.write_at(0, b"x"), Err(Error::ReadOnly)));
    });
}

#[test]
fn a_file_that_replaces_another_does_not_get_its_handles_and_lock() {
    on_each(|volume| {
        create(volume, "a", b"a");
        create(volume, "b", b"b");
        let (old, new) = (volume.lock("b", true).unwrap(), volume.lock("a", true).unwrap());
        volume.replace("a", "b").unwrap();
        assert_eq!(volume.list("").unwrap(), ["b"]);
        assert_eq!(content(volume, "b"), b"a");
        assert!(!old.guard.is_of("b").unwrap() && new.guard.is_of("b").unwrap());
        drop(old);
        assert!(matches!(volume.lock("b", true), Err(Error::Locked { .. })));
        drop(new);
        drop(volume.lock("b", true).unwrap());
        assert!(matches!(volume.replace("gone", "b"), Err(Error::NotFound { path }) if path == volume.path("gone")));
    });
}

#[test]
fn the_lock_of_a_removed_file_is_not_given_to_a_waiter() {
    let folder = tempfile::tempdir().unwrap();
    let volume = FileVolume::open(folder.path()).unwrap();
    create(&volume, "a", b"");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..3000 {
                // Under the lock, as the contract wants it.
                let held = volume.lock("a", true);
                if held.is_ok() {
                    volume.remove("a").unwrap();
                }
                drop(held);
                let _ = volume.open("a", OpenMode::CreateNew);
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            if let Ok(held) = volume.lock("a", true) {
                assert!(held.guard.is_of("a").unwrap(), "a file that has lost its name was locked");
            }
        }
    });
}

/// The variable that gives the child process the folder of the file to lock.
const LOCK_FOLDER: &str = "DURAMEN_TEST_LOCK_FOLDER";

#[test]
#[ignore = "the child process of a_lock_dies_with_the_process_that_held_it"]
fn holds_a_lock_until_killed() {
    // Somebody who runs all ignored tests is not the parent.
    let Ok(folder) = std::env::var(LOCK_FOLDER) else { return };
    let volume = FileVolume::open(folder).unwrap();
    let _held = volume.lock("a", true).unwrap();
    println!("\nlocked");
    // Ends with the parent at the latest.
    std::io::stdin().lines().for_each(drop);
}

#[test]
fn a_lock_dies_with_the_process_that_held_it() {
    let folder = tempfile::tempdir().unwrap();
    let volume = FileVolume::open(folder.path()).unwrap();
    create(&volume, "a", b"");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holds_a_lock_until_killed", "--ignored", "--nocapture"])
        .env(LOCK_FOLDER, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "locked"), "the child took the lock");
    assert!(matches!(volume.lock("a", true), Err(Error::Locked { .. })));
    child.kill().unwrap();
    child.wait().unwrap();
    drop(volume.lock("a", true).unwrap());
}

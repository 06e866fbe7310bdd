//! A restored database has what the dumped one had; a damaged dump leaves nothing behind.

use crate::place::Place;
use std::io::Write;
use std::process::Stdio;

fn forest() -> Place {
    let place = Place::new();
    place.ok("load t.duramen trees --key-type str --value-type u32 --keys plain", "oak\t700\nelm\t300\n");
    place.ok("load t.duramen bytes -0", b"\xFF\n\0\xFE\t\x01\0");
    let numbers: String = (0..30_000).map(|i| format!("{i}\n")).collect();
    place.ok("load t.duramen numbers --key-type u64 --separators full", numbers);
    place
}

#[test]
fn tables_come_back_with_their_types_and_layouts() {
    let place = forest();
    place.ok("dump t.duramen t.dump", "");
    place.ok("restore u.duramen t.dump --page-size 16K", "");
    let both = |command: &str| ["t", "u"].map(|db| place.run(&command.replace("DB", &format!("{db}.duramen")), ""));
    for command in ["tables DB", "scan DB trees", "scan DB numbers", "scan DB bytes -0"] {
        let [dumped, restored] = both(command);
        assert_eq!(dumped.status, 0);
        assert_eq!(dumped, restored, "{command}");
    }
    assert_eq!(place.files(), ["t.dump", "t.duramen", "u.duramen"]);
}

#[test]
fn a_dump_passes_through_pipes_and_may_hold_one_table() {
    let place = forest();
    let dump = place.run("dump t.duramen --table trees", "");
    assert_eq!((dump.status, dump.err.as_str()), (0, ""));
    let report: serde_json::Value =
        serde_json::from_str(&place.ok("restore u.duramen --format json", dump.out)).unwrap();
    assert_eq!(report["tables"][0]["name"], "trees");
    assert_eq!(report["tables"][0]["entries"], 2);
    assert_eq!(place.ok("scan u.duramen trees", ""), "elm\t300\noak\t700\n");
}

#[test]
fn a_damaged_dump_is_refused_and_leaves_no_database() {
    let place = forest();
    let dump = place.run("dump t.duramen", "").out;
    let mut flipped = dump.clone();
    flipped[dump.len() / 2] ^= 1;
    for bad in [&dump[..dump.len() - 1], &dump[..1000], &flipped, b"oak\n", b""] {
        assert!(place.error("restore u.duramen", bad).contains("the dump"));
        assert_eq!(place.files(), ["t.duramen"]);
    }
}

#[test]
fn restore_does_not_overwrite_an_existing_database() {
    let place = forest();
    let dump = place.run("dump t.duramen --table trees", "").out;
    assert!(place.error("restore t.duramen", dump).contains("already exists"));
    assert_eq!(place.ok("scan t.duramen numbers --count", ""), "30000\n");
}

#[test]
fn a_failed_dump_keeps_the_database_and_the_old_dump() {
    let place = Place::new();
    place.ok("load t.duramen t", (0..50_000).map(|i| format!("key {i:08}\tvalue {i}\n")).collect::<String>());
    assert!(place.error("dump t.duramen t.duramen", "").contains("is a database"));
    place.ok("dump t.duramen good.dump", "");
    let good = std::fs::read(place.path("good.dump")).unwrap();
    let mut bytes = std::fs::read(place.path("t.duramen")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].iter_mut().for_each(|byte| *byte = !*byte);
    std::fs::write(place.path("t.duramen"), bytes).unwrap();
    let message = place.error("dump t.duramen good.dump", "");
    assert!(message.contains("is corrupt: table \"t\": "), "{message}");
    assert_eq!(std::fs::read(place.path("good.dump")).unwrap(), good);
    assert_eq!(place.files(), ["good.dump", "t.duramen"]);
    assert_eq!(place.run("dump t.duramen no/folder.dump", "").status, 2);
}

#[test]
fn a_dump_changes_no_other_file() {
    let place = Place::new();
    place.ok("load x.new t", "oak\n");
    std::fs::write(place.path("y.new"), "precious").unwrap();
    place.ok("dump x.new x", "");
    place.ok("dump x.new y", "");
    assert_eq!(std::fs::read(place.path("y.new")).unwrap(), b"precious");
    assert_eq!(place.ok("scan x.new t", ""), "oak\n");
    place.ok("restore z x", "");
    assert_eq!(place.ok("scan z t", ""), "oak\n");
    assert_eq!(place.files(), ["x", "x.new", "y", "y.new", "z"]);
    // Even where nothing of it says any more that it is a database.
    place.damage("x.new", 0);
    assert!(place.error("dump x.new ./x.new", "").contains("is a database"));
    std::fs::write(place.path("x.new-log.000001"), b"DURALOG\n and more").unwrap();
    assert!(place.error("dump z x.new-log.000001", "").contains("is a database"));
}

#[test]
fn a_dump_does_not_replace_a_database_with_a_damaged_superblock() {
    let place = Place::new();
    place.ok("load a.duramen t", "oak\n");
    place.ok("load b.duramen t", "elm\n");
    for superblock in [0, 4096] {
        let sound = std::fs::read(place.path("b.duramen")).unwrap();
        place.damage("b.duramen", superblock);
        let damaged = std::fs::read(place.path("b.duramen")).unwrap();
        assert!(place.error("dump a.duramen b.duramen", "").contains("is a database"), "at {superblock}");
        assert_eq!(std::fs::read(place.path("b.duramen")).unwrap(), damaged, "at {superblock}");
        assert_eq!(place.ok("scan b.duramen t", ""), "elm\n");
        std::fs::write(place.path("b.duramen"), sound).unwrap();
    }
}

#[cfg(unix)]
mod unix {
    use crate::place::Place;
    use std::fs::{Permissions, metadata, read_link, set_permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode(place: &Place, name: &str) -> u32 {
        metadata(place.path(name)).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn a_dump_has_the_permissions_of_the_file_it_replaces_or_of_any_new_one() {
        let place = Place::new();
        place.ok("load t.duramen t", "oak\n");
        std::fs::write(place.path("any"), "").unwrap();
        place.ok("dump t.duramen new", "");
        assert_eq!(mode(&place, "new"), mode(&place, "any"), "as the umask has it");
        for kept in [0o600, 0o644, 0o660] {
            set_permissions(place.path("new"), Permissions::from_mode(kept)).unwrap();
            place.ok("dump t.duramen new", "");
            assert_eq!(mode(&place, "new"), kept);
        }
    }

    /// Another user can replace a file of the superuser that he can read. The new file has another group.
    #[test]
    fn another_user_replaces_only_what_he_can_read_and_gives_no_permissions_to_his_group() {
        use std::os::unix::{fs::MetadataExt, process::CommandExt};
        let place = Place::new();
        place.ok("load t.duramen t", "oak\n");
        std::fs::write(place.path("dump"), "old").unwrap();
        if metadata(place.path("dump")).unwrap().uid() != 0 {
            println!("SKIPPED: only the superuser can run the program as another user");
            return;
        }
        let other = 65_534;
        std::fs::copy(env!("CARGO_BIN_EXE_duramen"), place.path("program")).unwrap();
        for (file, mode) in [("", 0o777), ("program", 0o755), ("t.duramen", 0o644)] {
            set_permissions(place.path(file), Permissions::from_mode(mode)).unwrap();
        }
        let mut command = std::process::Command::new(place.path("program"));
        let dump = command.args(["dump", "t.duramen", "dump"]).current_dir(place.path("")).gid(other).uid(other);
        set_permissions(place.path("dump"), Permissions::from_mode(0o600)).unwrap();
        let refused = dump.output().unwrap();
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && message.contains("cannot read the existing file"), "{message}");
        assert_eq!(std::fs::read(place.path("dump")).unwrap(), b"old");
        set_permissions(place.path("dump"), Permissions::from_mode(0o674)).unwrap();
        let run = dump.output().unwrap();
        assert!(run.status.success(), "{run:?}");
        let made = metadata(place.path("dump")).unwrap();
        assert_eq!((made.uid(), made.gid(), mode(&place, "dump")), (other, other, 0o604));
    }

    #[test]
    fn a_dump_to_a_symbolic_link_writes_the_target() {
        let place = Place::new();
        place.ok("load t.duramen t", "oak\n");
        std::fs::create_dir(place.path("far")).unwrap();
        std::fs::write(place.path("far/old"), "old").unwrap();
        symlink("far/old", place.path("to_old")).unwrap();
        symlink("to_none", place.path("to_link")).unwrap();
        symlink("far/none", place.path("to_none")).unwrap();
        symlink("circle", place.path("circle")).unwrap();
        for (link, file) in [("to_old", "far/old"), ("to_link", "far/none")] {
            place.ok(&format!("dump t.duramen {link}"), "");
            assert!(read_link(place.path(link)).is_ok(), "{link} is a link no more");
            assert!(std::fs::read(place.path(file)).unwrap().starts_with(b"duramen dump 1\n"), "{file}");
        }
        assert!(place.error("dump t.duramen circle", "").contains("cannot create circle"));
        symlink("t.duramen", place.path("to_itself")).unwrap();
        assert!(place.error("dump t.duramen to_itself", "").contains("is a database"));
        assert_eq!(std::fs::read_dir(place.path("far")).unwrap().count(), 2);
    }

    #[test]
    fn a_dump_to_a_device_is_written_directly() {
        let place = Place::new();
        place.ok("load t.duramen t", "oak\n");
        assert_eq!(place.ok("dump t.duramen /dev/null", ""), "");
        assert!(!metadata("/dev/null").unwrap().is_file());
        assert!(place.error("dump t.duramen .", "").contains("cannot create ."));
    }
}

#[test]
fn a_killed_restore_leaves_no_database() {
    let place = forest();
    place.ok("dump t.duramen t.dump", "");
    let dump = std::fs::read(place.path("t.dump")).unwrap();
    let mut child = place.command(&["restore", "u.duramen"]).stdin(Stdio::piped()).spawn().unwrap();
    // All but the end: the tables are there, and more is awaited.
    child.stdin.take().unwrap().write_all(&dump[..dump.len() - 1]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(place.error("tables u.duramen", "").contains("there is no database"));
    place.ok("restore u.duramen t.dump", "");
    assert_eq!(place.ok("scan u.duramen numbers --count", ""), "30000\n");
    assert!(place.error("restore u.duramen t.dump", "").contains("already exists"));
}

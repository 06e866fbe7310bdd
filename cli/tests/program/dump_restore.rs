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
fn a_database_that_is_there_is_not_overwritten() {
    let place = forest();
    let dump = place.run("dump t.duramen --table trees", "").out;
    assert!(place.error("restore t.duramen", dump).contains("exists already"));
    assert_eq!(place.ok("scan t.duramen numbers --count", ""), "30000\n");
}

#[test]
fn a_dump_that_fails_costs_nobody_a_database_or_the_dump_before() {
    let place = Place::new();
    place.ok("load t.duramen t", (0..50_000).map(|i| format!("key {i:08}\tvalue {i}\n")).collect::<String>());
    assert!(place.error("dump t.duramen t.duramen", "").contains("is a database"));
    place.ok("dump t.duramen good.dump", "");
    let good = std::fs::read(place.path("good.dump")).unwrap();
    let mut bytes = std::fs::read(place.path("t.duramen")).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].iter_mut().for_each(|byte| *byte = !*byte);
    std::fs::write(place.path("t.duramen"), bytes).unwrap();
    assert!(place.error("dump t.duramen good.dump", "").contains("is corrupt"));
    assert_eq!(std::fs::read(place.path("good.dump")).unwrap(), good);
    assert_eq!(place.files(), ["good.dump", "t.duramen"]);
    assert_eq!(place.run("dump t.duramen no/folder.dump", "").status, 2);
}

#[test]
fn a_dump_touches_no_file_but_its_own() {
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

    #[test]
    fn a_link_stays_and_what_it_leads_to_is_written() {
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
    fn what_is_no_file_is_written_as_it_is() {
        let place = Place::new();
        place.ok("load t.duramen t", "oak\n");
        assert_eq!(place.ok("dump t.duramen /dev/null", ""), "");
        assert!(!metadata("/dev/null").unwrap().is_file());
        assert!(place.error("dump t.duramen .", "").contains("cannot create ."));
    }
}

#[test]
fn a_restore_that_is_killed_leaves_nothing_that_looks_like_a_database() {
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
    assert!(place.error("restore u.duramen t.dump", "").contains("exists already"));
}

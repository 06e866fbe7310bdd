//! Bad input gives one clear line and changes nothing.

use crate::place::Place;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

#[test]
fn a_wrong_line_is_named_and_nothing_is_loaded() {
    let place = Place::new();
    let message = place.error("load t.duramen t --key-type u8", "1\n2\n300\n");
    assert!(message.contains("line 3") && message.contains("\"300\"") && message.contains("0 to 255"), "{message}");
    assert_eq!(place.files(), [""; 0]);
    place.ok("load t.duramen t --key-type u8", "1\n");
    place.error("load t.duramen t", "2\nx\n");
    assert_eq!(place.ok("scan t.duramen t", ""), "1\n");
}

#[test]
fn a_path_with_a_slash_at_its_end_is_no_file() {
    let place = Place::new();
    for command in ["put t.duramen/ t a", "load t.duramen/. t", "restore t.duramen/"] {
        let lines = if command.starts_with("restore") { "duramen dump 1\nend\n" } else { "a\n" };
        let message = place.error(command, lines);
        assert!(message.contains("the path of a database cannot be t.duramen/"), "{command}: {message}");
        assert_eq!(place.files(), [""; 0], "{command}");
    }
    place.ok("put t.duramen t a", "");
    assert!(place.error("get t.duramen/ t a", "").contains("cannot be t.duramen/"));
    assert!(place.error("dump t.duramen d/", "").contains("d/"));
    assert_eq!(place.files(), ["t.duramen"]);
}

#[test]
fn too_long_keys_are_reported_with_their_line() {
    let place = Place::new();
    let message = place.error("load t.duramen t", format!("a\n{}\n", "k".repeat(65_537)));
    assert!(message.contains("line 2") && message.contains("65537"), "{message}");
}

#[test]
fn errors_name_missing_tables_and_files() {
    let place = Place::new();
    for command in
        ["scan no.duramen t", "get no.duramen t k", "del no.duramen t k", "tables no.duramen", "dump no.duramen"]
    {
        assert!(place.error(command, "").contains("no database at"), "{command}");
    }
    place.ok("put t.duramen t a", "");
    for command in ["scan t.duramen no", "get t.duramen no k", "del t.duramen no k", "dump t.duramen --table no"] {
        assert!(place.error(command, "").contains("no table \"no\""), "{command}");
    }
    assert!(place.error("load t.duramen t no.txt", "").contains("no.txt"));
    assert!(place.error("load no/t.duramen t", "a\n").contains("no: "));
    assert_eq!(place.files(), ["t.duramen"]);
}

#[test]
fn other_types_and_layouts_than_the_tables_own_are_refused() {
    let place = Place::new();
    place.ok("load t.duramen t --key-type u32", "1\n");
    let message = place.error("load t.duramen t --key-type str", "a\n");
    assert!(message.contains("u32") && message.contains("str"), "{message}");
    let message = place.error("load t.duramen t --keys plain", "1\n");
    assert!(message.contains("--keys blocks"), "{message}");
    let message = place.error("load t.duramen t", "1\tvalue\n");
    assert!(message.contains("line 1") && message.contains("type ()"), "{message}");
    assert!(place.error("get t.duramen t oak", "").contains("\"oak\""));
    let message = place.error("scan t.duramen t --prefix 1", "");
    assert!(message.contains("not the beginning of a value of type u32") && message.contains("range"), "{message}");
}

#[test]
fn an_argument_that_is_not_utf8_gives_a_one_line_error() {
    let argument: &OsStr = OsStrExt::from_bytes(b"\xff.duramen");
    let output =
        std::process::Command::new(env!("CARGO_BIN_EXE_duramen")).args([argument, OsStr::new("scan")]).output();
    let output = output.unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && error.lines().count() == 1, "{error}");
}

#[test]
fn invalid_options_give_a_one_line_error() {
    let place = Place::new();
    for (arguments, word) in [
        (
            "load t.duramen t --keys tail",
            "plain or fixed or head or db2 or wiredtiger or wiredtiger-best or wiredtiger-both or myisam or pkb or pkb-heap",
        ),
        ("load t.duramen t --key-type u7", "u7"),
        ("load t.duramen t --key-type f64", "f64"),
        ("load t.duramen t --keys fixed", "fixed"),
        ("load t.duramen t --page-size 5000", "5000"),
        ("load t.duramen t --cache many", "many"),
        ("load t.duramen t --key-column 2", "--csv"),
        ("load t.duramen", "<TABLE>"),
        ("scan t.duramen t --limit x", "see duramen scan --help"),
        ("scan t.duramen t --limit -1", "invalid value '-1' for '--limit <COUNT>'"),
        ("fly", "see duramen --help"),
        ("tables t.duramen --compress lz4", "unexpected argument '--compress' found; see duramen tables --help"),
        ("tabels t.duramen", "unrecognized subcommand 'tabels'; tip: a similar subcommand exists: 'tables'; see"),
        ("", "command"),
    ] {
        let message = place.error(arguments, "a\n");
        assert!(message.contains(word), "{arguments}: {message}");
        assert_eq!(place.files(), [""; 0], "{arguments}");
    }
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let place = Place::new();
    for content in [&b"no database"[..], &[0; 100_000]] {
        std::fs::write(place.path("t.duramen"), content).unwrap();
        for command in ["scan t.duramen t", "load t.duramen t", "put t.duramen t a", "tables t.duramen"] {
            assert!(place.error(command, "a\n").contains("t.duramen"), "{command}");
        }
        assert_eq!(std::fs::read(place.path("t.duramen")).unwrap(), content);
        assert_eq!(place.files(), ["t.duramen"]);
    }
}

#[test]
fn an_empty_file_is_taken_for_a_new_database_and_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let path = place.path("t.duramen");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    place.ok("put d t oak", "");
    place.ok("dump d dump", "");
    for command in ["load t.duramen t", "put t.duramen t a", "push t.duramen t a", "restore t.duramen dump"] {
        std::fs::write(&path, "").unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        assert!(place.error("scan t.duramen t", "").contains("create the database first"));
        place.ok(command, "a\n");
        assert_eq!(place.ok("scan t.duramen t --count", ""), "1\n", "{command}");
        assert_eq!(mode(), 0o640, "{command}");
    }
    std::fs::write(&path, "").unwrap();
    assert!(place.error("load t.duramen t --hex", "xy\n").contains("line 1"));
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    assert_eq!(place.files(), ["d", "dump", "t.duramen"]);
}

#[test]
fn bad_hexadecimal_is_named() {
    let place = Place::new();
    assert!(place.error("load t.duramen t --hex", "00\nxy\n").contains("line 2"));
    assert!(place.error("put t.duramen t 0 --hex", "").contains("\"0\""));
}

#[test]
fn loading_a_database_file_is_refused_and_crlf_lines_give_a_note() {
    let place = Place::new();
    place.ok("put t.duramen t oak", "");
    assert!(place.error("load u.duramen t t.duramen -q", "").contains("is a Duramen database"));
    assert_eq!(place.files(), ["t.duramen"]);
    let run = place.run("load u.duramen t -q", "oak\t1\r\nelm\t2\r\n");
    assert!(run.status == 0 && run.err.starts_with("note: every line ends with CR LF"), "{}", run.err);
    assert_eq!(place.ok("get u.duramen t oak", ""), "1\r\n");
}

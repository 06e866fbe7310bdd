//! Databases whose process was killed.

use crate::place::Place;
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The first line of an input. `load` opens the database after it.
const FIRST: &[u8] = b"the first of several lines\n";

/// Returns true if a superblock of the file says that the database needs its log.
fn is_in_use(place: &Place) -> bool {
    let bytes = std::fs::read(place.path("t.duramen")).unwrap();
    [40, 4096 + 40].into_iter().any(|flags| bytes[flags] == 0)
}

/// Makes a database with one table and leaves it unclosed: kills a process that has the database open.
fn killed() -> Place {
    killed_with(&[])
}

/// As the function above, with these options of the killed process.
fn killed_with(options: &[&str]) -> Place {
    let place = Place::new();
    place.ok("load t.duramen t", "oak\nelm\n");
    let mut load = place.command(&[&["load", "t.duramen", "t", "-q"], options].concat());
    // It has the database open and waits for the rest of its input.
    let mut child = load.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(FIRST).unwrap();
    let start = Instant::now();
    while !is_in_use(&place) {
        assert!(start.elapsed() < Duration::from_secs(60), "the database is not opened");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(place.files(), ["t.duramen", "t.duramen-log.000001"]);
    place
}

#[test]
fn reading_recovers_the_database_of_a_killed_process() {
    let place = killed();
    assert_eq!(place.ok("scan t.duramen t", ""), "elm\noak\n");
    assert_eq!(place.files(), ["t.duramen"]);
}

#[test]
fn stat_reports_the_work_of_the_last_recovery() {
    let place = killed();
    let stat = |place: &Place| -> serde_json::Value {
        serde_json::from_str(&place.ok("stat t.duramen --format json", "")).unwrap()
    };
    let recovery = stat(&place)["recovery"].clone();
    assert!(recovery["log_bytes"].as_u64().is_some_and(|bytes| bytes < 1 << 20), "{recovery}");
    assert!(recovery["pages"].as_u64().is_some_and(|pages| pages < 16), "{recovery}");
    assert!(stat(&place)["recovery"].is_null(), "it was closed since");
}

#[test]
fn load_and_compact_have_options_for_the_recovery_bounds() {
    let place = Place::new();
    place.ok("load t.duramen t -q", "oak\nelm\n");
    for (option, least) in [("--checkpoint-pages", "16"), ("--checkpoint-bytes", "4096")] {
        for command in ["load t.duramen t -q", "compact t.duramen -q"] {
            place.ok(&format!("{command} {option} {least}"), "yew\n");
            let refused = place.error(&format!("{command} {option} 15"), "yew\n");
            let name = option.trim_start_matches("--").replace('-', "_");
            assert!(refused.contains(&name) && refused.contains(&format!("at least {least}")), "{refused}");
        }
    }
}

#[test]
fn the_shape_of_the_log_can_be_given() {
    for (options, shape) in [(&[][..], 0), (&["--log", "packed"], 0), (&["--log", "sparse"], 1)] {
        let place = killed_with(options);
        let segment = std::fs::read(place.path("t.duramen-log.000001")).unwrap();
        assert_eq!(segment[36], shape, "{options:?}");
        assert_eq!(place.ok("scan t.duramen t", ""), "elm\noak\n");
        place.ok("compact t.duramen -q --log sparse", "");
    }
    let refused = Place::new().error("load t.duramen t --log dense", "yew\n");
    assert!(refused.contains("--log") && refused.contains("packed, sparse"), "{refused}");
}

#[test]
fn the_message_of_a_missing_log_names_its_files() {
    let place = killed();
    std::fs::remove_file(place.path("t.duramen-log.000001")).unwrap();
    let message = place.error("scan t.duramen t", "");
    assert!(message.contains("t.duramen-log.NUMBER") && message.contains("missing"), "{message}");
}

/// The message names the cause: a file that may not be longer counts as a full device.
/// Only a user without permission to write gets the advice that another user must recover
/// the database.
#[cfg(unix)]
#[test]
fn the_message_of_a_failed_recovery_has_the_error_of_the_system() {
    let place = killed();
    let scan = "trap '' XFSZ; ulimit -f 0; exec \"$0\" scan t.duramen t";
    let program = env!("CARGO_BIN_EXE_duramen");
    let run = Command::new("sh").args(["-c", scan, program]).current_dir(place.path("")).output().unwrap();
    let message = String::from_utf8(run.stderr).unwrap();
    assert!(run.status.code() == Some(2) && message.contains("no space left on the device of t.duramen"), "{message}");
    assert!(message.contains("the limit of the length of files"), "{message}");
    assert!(!message.contains("recovers it"), "{message}");
    assert_eq!(place.ok("scan t.duramen t", ""), "elm\noak\n");
}

#[test]
fn a_load_during_a_creation_by_another_process_gives_advice() {
    let place = Place::new();
    let mut load = place.command(&["load", "n.duramen", "t"]);
    let mut child = load.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(FIRST).unwrap();
    let begun = Instant::now();
    let is_new = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().to_string_lossy().starts_with("n.duramen.")
    };
    while !std::fs::read_dir(place.path(".")).unwrap().any(is_new) {
        assert!(begun.elapsed() < Duration::from_secs(60), "the load does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    place.ok("put n.duramen t oak 700", "");
    child.stdin.take().unwrap().write_all(b"elm\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && message.contains("created by another process meanwhile: run the command again"),
        "{message}"
    );
    assert_eq!(place.ok("get n.duramen t oak", ""), "700\n");
}

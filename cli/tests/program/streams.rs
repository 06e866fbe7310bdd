//! Standard streams that are closed, that cannot be used, or whose reader ends early.

use crate::place::Place;
use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

fn lines() -> String {
    (0..20_000).map(|n| format!("key {n:08}\tvalue {n}\n")).collect()
}

fn built() -> Place {
    let place = Place::new();
    place.ok("load t.duramen t -q", lines());
    place
}

/// The exit status and standard error of a run with these streams.
fn run(place: &Place, arguments: &str, input: impl Into<Stdio>, output: impl Into<Stdio>) -> (i32, String) {
    let mut command = place.command(&arguments.split_whitespace().collect::<Vec<_>>());
    let run = command.stdin(input).stdout(output).stderr(Stdio::piped()).output().unwrap();
    (run.status.code().unwrap(), String::from_utf8(run.stderr).unwrap())
}

/// The same of a run by a shell, with redirections.
fn shell(place: &Place, arguments: &str, redirections: &str) -> (i32, String) {
    let script = format!("exec \"$0\" {arguments} {redirections}");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_duramen")]).current_dir(place.path(""));
    let run = command.stdin(Stdio::null()).output().unwrap();
    (run.status.code().unwrap(), String::from_utf8(run.stderr).unwrap())
}

#[test]
fn damage_is_an_error_also_if_nobody_reads_the_output() {
    let place = built();
    let unread = |arguments: &str| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        run(&place, arguments, Stdio::null(), writer)
    };
    let commands = [
        "check t.duramen -q",
        "stat t.duramen",
        "scan t.duramen t --skip-damaged",
        "scan t.duramen t --skip-damaged --count",
    ];
    for command in commands {
        assert_eq!(unread(command), (0, String::new()), "{command}");
    }
    place.damage_text("t.duramen", "value 10000");
    for command in commands {
        let (status, message) = unread(command);
        assert!(status == 2 && message.contains("error: ") && message.contains("damaged"), "{command}: {message}");
    }
    // Only what was asked for counts.
    assert_eq!(unread("scan t.duramen t --skip-damaged --limit 10"), (0, String::new()));
    let (status, message) = unread("dump t.duramen --skip-damaged -q");
    assert!(status == 2 && message.contains("cannot write the output"), "{message}");
}

#[test]
fn a_dump_whose_reader_ends_early_is_an_error() {
    let place = built();
    assert!(Command::new("mkfifo").arg(place.path("fifo")).status().unwrap().success());
    let mut dump = place.command(&["dump", "t.duramen", "fifo", "-q"]).stderr(Stdio::piped()).spawn().unwrap();
    File::open(place.path("fifo")).unwrap().read_exact(&mut [0]).unwrap();
    let mut message = String::new();
    dump.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert_eq!(dump.wait().unwrap().code(), Some(2));
    assert!(message.contains("cannot write the output"), "{message}");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    assert_eq!(run(&place, "dump t.duramen -q", Stdio::null(), writer).0, 2);
}

#[test]
fn input_that_cannot_be_read_is_not_taken_for_empty_input() {
    let place = Place::new();
    place.ok("put t.duramen t key 7", "");
    let commands = ["put t.duramen t key -", "load t.duramen new -q", "push t.duramen p -", "restore u.duramen"];
    for command in commands {
        let only_written = File::create(place.path("other")).unwrap();
        let (status, message) = run(&place, command, only_written, Stdio::null());
        assert!(status == 2 && message.contains("cannot read"), "{command}: {message}");
        let (status, message) = shell(&place, command, "<&-");
        assert!(status == 2 && message.contains("cannot read standard input: it is closed"), "{command}: {message}");
    }
    assert_eq!(place.ok("get t.duramen t key", ""), "7\n");
    assert_eq!(place.ok("tables t.duramen --format json", "").matches("\"name\"").count(), 1);
    assert_eq!(place.files(), ["other", "t.duramen"]);
    assert_eq!(shell(&place, "put t.duramen t key -", "</dev/null"), (0, String::new()));
    assert_eq!(place.ok("get t.duramen t key", ""), "\n");
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let place = Place::new();
    place.ok("put t.duramen t key 7", "");
    std::fs::write(place.path("other"), "").unwrap();
    let commands = [
        "dump t.duramen",
        "scan t.duramen t",
        "get t.duramen t key",
        "tables t.duramen",
        "stat t.duramen",
        "--version",
        "load --help",
    ];
    for command in commands {
        let (status, message) = run(&place, command, Stdio::null(), File::open(place.path("other")).unwrap());
        assert!(status == 2 && message.contains("cannot write the output"), "{command}: {message}");
    }
    for file in ["-", "/dev/stdout"] {
        let (status, message) = shell(&place, &format!("dump t.duramen {file}"), ">&-");
        assert!(status == 2 && message.contains("cannot write the output: it is closed"), "{message}");
    }
    assert_eq!(shell(&place, "dump t.duramen", ">/dev/null"), (0, String::new()));
}

#[test]
fn a_dump_to_an_open_descriptor_is_added_to_the_file() {
    let place = Place::new();
    place.ok("put t.duramen t key 7", "");
    place.ok("put other.duramen t key 8", "");
    let dump = place.ok("dump t.duramen", "");
    assert_eq!(place.ok("dump t.duramen /dev/stdout", ""), dump, "a pipe");
    std::os::unix::fs::symlink("/dev/stdout", place.path("link")).unwrap();
    for (file, redirection) in [("/dev/stdout", ">>log"), ("link", ">>log"), ("/dev/fd/7", "7>>log"), ("-", ">>log")] {
        std::fs::write(place.path("log"), "before\n").unwrap();
        let log = File::open(place.path("log")).unwrap();
        assert_eq!(shell(&place, &format!("dump t.duramen {file}"), redirection), (0, String::new()), "{file}");
        let mut found = String::new();
        (&log).read_to_string(&mut found).unwrap();
        assert_eq!(found, format!("before\n{dump}"), "{file}");
    }
    let whole = std::fs::read(place.path("other.duramen")).unwrap();
    for (file, redirection) in [("/dev/fd/7", "7>>other.duramen"), ("-", ">>other.duramen")] {
        let (status, message) = shell(&place, &format!("dump t.duramen {file}"), redirection);
        assert!(status == 2 && message.contains("is a database"), "{message}");
        assert_eq!(std::fs::read(place.path("other.duramen")).unwrap(), whole);
    }
    let (status, message) = shell(&place, "dump t.duramen -", ">>t.duramen");
    assert!(status == 2 && message.contains("is a database"), "{message}");
    assert_eq!(place.ok("dump t.duramen", ""), dump, "the database itself");
    assert_eq!(place.files(), ["link", "log", "other.duramen", "t.duramen"]);
}

//! `get`, `put` and `del`, and the exit status that scripts rely on.

use crate::place::Place;

#[test]
fn put_creates_the_database_and_the_table() {
    let place = Place::new();
    place.ok("put t.duramen trees oak 700", "");
    place.ok("put t.duramen trees oak 701", "");
    assert_eq!(place.ok("get t.duramen trees oak", ""), "701\n");
    place.ok("put t.duramen n -7 -9 --key-type i8 --value-type i64", "");
    assert_eq!(place.ok("get t.duramen n -7", ""), "-9\n");
    assert_eq!(place.run("get t.duramen n -7 -0", "").out, b"-9\0");
    assert_eq!(place.files(), ["t.duramen"]);
}

#[test]
fn values_of_any_bytes_are_read_from_standard_input_and_printed_as_they_are() {
    let place = Place::new();
    let long: Vec<u8> = (0..300_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    for value in [&b""[..], b"-", b"\n", b"two\nlines\r\n\0\xFF\t", &long] {
        assert_eq!(place.ok("put t.duramen t key -", value), "");
        let run = place.run("get t.duramen t key --raw", "");
        assert!((run.status, run.err.as_str()) == (0, "") && run.out == value, "{} bytes", value.len());
    }
    place.ok("put t.duramen t 6b6579 - --hex", "6f616b0a");
    assert!(place.error("put t.duramen t 6b6579 - --hex", "6f616b0").contains("odd number of digits"));
    assert_eq!(place.ok("get t.duramen t 6b6579 --hex --raw", ""), "6f616b0a");
    place.ok("put t.duramen n 7 - --key-type u8 --value-type i16", "-9");
    assert_eq!(place.ok("get t.duramen n 7 --raw", ""), "-9");
    assert!(place.error("put t.duramen n 7 -", "-9\n").contains("i16"));
    assert!(place.error("get t.duramen n 7 --raw -0", "").contains("cannot be used with"));
    assert_eq!(place.ok("push t.duramen p oak - yew", "two\nlines\n"), "1\n2\n3\n");
    assert_eq!(place.run("get t.duramen p 2 --raw", "").out, b"two\nlines\n");
    assert!(place.error("push t.duramen p - -", "oak").contains("standard input can be one value only"));
}

#[test]
fn a_missing_key_exits_with_1_and_prints_nothing() {
    let place = Place::new();
    place.ok("put t.duramen t a 1", "");
    let nothing = |arguments: &str| {
        let run = place.run(arguments, "");
        assert_eq!((run.status, run.out.as_slice(), run.err.as_str()), (1, &b""[..], ""), "{arguments}");
    };
    nothing("get t.duramen t b");
    nothing("del t.duramen t b");
    nothing("del t.duramen t a b");
    nothing("get t.duramen t a");
}

/// A command that waits for its input must not keep others from the database.
#[test]
fn load_and_put_open_the_database_after_their_first_input() {
    use std::io::Write;
    use std::process::Stdio;
    let place = Place::new();
    place.ok("put t.duramen t oak 1", "");
    for (command, input) in [("load t.duramen t -q", "elm\t2\n"), ("put t.duramen t elm -", "2")] {
        let mut waiting = place.command(&command.split(' ').collect::<Vec<_>>());
        let mut child = waiting.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 300 {
            assert_eq!(place.ok("get t.duramen t oak", ""), "1\n", "{command}");
        }
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{command}");
        assert_eq!(place.ok("get t.duramen t elm", ""), "2\n", "{command}");
        place.ok("del t.duramen t elm", "");
    }
}

#[test]
fn del_removes_all_keys_it_is_given() {
    let place = Place::new();
    place.ok("load t.duramen t", "a\nb\nc\n");
    place.ok("del t.duramen t a c", "");
    assert_eq!(place.ok("scan t.duramen t", ""), "b\n");
}

#[test]
fn a_key_that_is_given_twice_was_found_once() {
    let place = Place::new();
    place.ok("load t.duramen t --key-type u8", "1\n2\n3\n");
    place.ok("del t.duramen t 1 2 1 01", "");
    assert_eq!(place.ok("scan t.duramen t", ""), "3\n");
    assert_eq!(place.run("del t.duramen t 3 9 3 9", "").status, 1);
}

#[test]
fn del_removes_a_range_and_reports_an_empty_one() {
    let place = Place::new();
    let nothing = |arguments: &str| {
        let run = place.run(arguments, "");
        assert_eq!((run.status, run.out.as_slice(), run.err.as_str()), (1, &b""[..], ""), "{arguments}");
    };
    let numbers: String = (0..30_000).map(|n| format!("{n}\tvalue {n}\n")).collect();
    place.ok("load t.duramen t --key-type u32", numbers);
    assert_eq!(place.ok("del t.duramen t --from 10 --to 29990", ""), "");
    assert_eq!(place.ok("scan t.duramen t --count", ""), "20\n");
    nothing("del t.duramen t --from 10 --to 29990");
    nothing("del t.duramen t --from 5 --to 5");
    nothing("del t.duramen t --from 7 --to 5");
    place.ok("del t.duramen t --to 8", "");
    place.ok("del t.duramen t --from 29992", "");
    assert_eq!(place.ok("scan t.duramen t", ""), "8\tvalue 8\n9\tvalue 9\n29990\tvalue 29990\n29991\tvalue 29991\n");

    place.ok("load t.duramen words", "elm\noak\noakum\noats\nyew\n");
    place.ok("del t.duramen words --prefix oak", "");
    assert_eq!(place.ok("scan t.duramen words", ""), "elm\noats\nyew\n");
    nothing("del t.duramen words --prefix oak");
    place.ok("del t.duramen words --prefix 6f --hex", "");
    assert_eq!(place.ok("scan t.duramen words", ""), "elm\nyew\n");
    assert!(place.ok("check t.duramen --format json", "").contains("\"sound\": true"));
}

#[test]
fn del_requires_either_keys_or_a_range() {
    let place = Place::new();
    place.ok("load t.duramen t", "a\nb\n");
    for option in ["--from a", "--to b", "--prefix a"] {
        assert!(place.error(&format!("del t.duramen t a {option}"), "").contains("cannot be used with"), "{option}");
    }
    assert!(place.error("del t.duramen t", "").contains("--from, --to or --prefix"), "neither");
    for more in [&[][..], &["--to", "b"]] {
        let run = place.run_args(&[&["del", "t.duramen", "t", "--prefix", ""], more].concat(), "");
        assert!(run.status == 2 && run.err.contains("empty --prefix") && run.err.contains("--from"), "{}", run.err);
    }
    assert_eq!(place.ok("scan t.duramen t", ""), "a\nb\n");
    // The way that the error names.
    assert_eq!(place.run_args(&["del", "t.duramen", "t", "--from", ""], "").status, 0);
    assert_eq!(place.ok("scan t.duramen t", ""), "");
}

#[test]
fn values_of_a_table_are_not_replaced_by_missing_ones() {
    for value_type in ["bytes", "str"] {
        let place = Place::new();
        place.ok(&format!("load t.duramen t --value-type {value_type}"), "oak\t700\nyew\t9\n");
        for (command, input, place_of_it) in [
            ("put t.duramen t yew", "", "error: "),
            ("load t.duramen t", "oak\t1\nyew\n", "line 2: "),
            ("load t.duramen t -0", "yew\0", "line 1: "),
            ("load t.duramen t --csv", "oak,1\n", "line 1: "),
            ("load t.duramen t --csv --header", "tree,years\nyew,1\n", "line 2: "),
        ] {
            let message = place.error(command, input);
            let says = format!("{place_of_it}there is no value, and the table has values: ");
            assert!(message.contains(&says), "{command}: {message}");
            assert_eq!(place.ok("scan t.duramen t", ""), "oak\t700\nyew\t9\n", "{command}");
        }
        assert_eq!(place.run_args(&["put", "t.duramen", "t", "yew", ""], "").status, 0);
        place.ok("load t.duramen t", "oak\t\n");
        place.ok("load t.duramen t --csv --value-column 2", "elm,\n");
        assert_eq!(place.ok("scan t.duramen t", ""), "elm\noak\nyew\n");
        place.ok("load t.duramen keys", "oak\n");
        place.ok("load t.duramen keys", "elm\n");
        place.ok("put t.duramen keys yew", "");
        assert_eq!(place.ok("scan t.duramen keys", ""), "elm\noak\nyew\n");
    }
}

#[test]
fn hexadecimal_keys_and_values_are_stored_bytes() {
    let place = Place::new();
    place.ok("put t.duramen t ff00 0a --hex", "");
    assert_eq!(place.ok("get t.duramen t FF00 --hex", ""), "0a\n");
    assert_eq!(place.ok("scan t.duramen t --hex --prefix ff", ""), "ff00\t0a\n");
    place.ok("del t.duramen t ff00 --hex", "");
    assert_eq!(place.ok("scan t.duramen t --count", ""), "0\n");
}

#[test]
fn help_and_version_are_no_errors() {
    let place = Place::new();
    assert!(place.ok("--help", "").contains("scan"));
    assert!(place.ok("load --help", "").contains("--csv"));
    assert!(place.ok("load --help", "").contains("those before it stay"));
    assert!(place.ok("dump --help", "").contains("--skip-damaged"));
    let help = place.ok("load --help", "");
    for layout in duramen::db::types::KeyLayout::ALL {
        let line = help.lines().find(|line| line.contains(layout.documentation())).unwrap_or_default();
        let names = line.split_once(": ").map(|(_, names)| names.split(", "));
        assert!(names.is_some_and(|mut names| names.any(|name| name == layout.to_string())), "{layout}: {help}");
    }
    for command in ["drop", "rename", "del"] {
        assert!(place.ok(&format!("{command} --help"), "").contains("<DB>"), "{command}");
    }
    assert!(place.ok("--version", "").starts_with("duramen "));
}

#[cfg(unix)]
#[test]
fn a_closed_pipe_ends_a_scan_quietly() {
    use std::io::{BufRead, BufReader, Read};
    use std::process::Stdio;
    let place = Place::new();
    let lines: String = (0..100_000).map(|i| format!("{i:032}\n")).collect();
    place.ok("load t.duramen t", lines);
    let mut scan = place.command(&["scan", "t.duramen", "t"]);
    let mut child = scan.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::with_capacity(64, child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let mut message = String::new();
    child.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert_eq!((child.wait().unwrap().code(), message.as_str()), (Some(0), ""));
    assert_eq!(first, format!("{:032}\n", 0));
}

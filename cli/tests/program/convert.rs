//! `compact --store` and `--page-size`.

use crate::place::Place;
use serde_json::Value;
use std::fmt::Write;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A database with two tables: text with some large values, and numbers.
fn forest(entries: u32) -> Place {
    let place = Place::new();
    let mut text = String::new();
    for n in 0..entries {
        let long = if n % 5000 == 7 { 20_000 } else { 0 };
        writeln!(text, "forest/of/the/north/{n:07}\tvalue {n}{:x<long$}", "").unwrap();
    }
    place.ok("load t.duramen t -q", text);
    place.ok("load t.duramen n --key-type u64 -q", (0..entries).map(|n| format!("{}\n", n * 7)).collect::<String>());
    place
}

fn contents(place: &Place) -> [String; 3] {
    ["scan t.duramen t", "scan t.duramen n", "tables t.duramen"].map(|command| place.ok(command, ""))
}

fn json(place: &Place, command: &str) -> Value {
    serde_json::from_str(&place.ok(&format!("{command} --format json"), "")).unwrap()
}

#[test]
fn a_database_is_converted_to_another_store_and_page_size_and_back() {
    let place = forest(20_000);
    let before = contents(&place);
    let paper = "2048,128,1";
    let steps = [
        ("--store shadow", "shadow", 8192, Some("700,32,1")),
        ("--store shadow --delta 2048,128,1", "shadow", 8192, Some(paper)),
        ("--page-size 16K", "shadow", 16384, Some(paper)),
        ("--store shadow", "shadow", 16384, Some(paper)),
        ("--store table --page-size 4K", "table", 4096, None),
        ("--store table", "table", 4096, None),
    ];
    for (options, store, page_size, delta) in steps {
        let report = json(&place, &format!("compact t.duramen {options}"));
        assert_eq!(report["entries"], 40_000, "{options}");
        let stat = &json(&place, "stat t.duramen")["database"];
        let found = (stat["store"].as_str(), stat["page_size"].as_u64(), stat["delta"].as_str());
        assert_eq!(found, (Some(store), Some(page_size), delta), "{options}");
        assert_eq!(report["after_bytes"], stat["allocated_bytes"], "{options}");
        assert_eq!(contents(&place), before, "{options}");
        assert_eq!(json(&place, "check t.duramen")["sound"], true, "{options}");
        assert_eq!(place.files(), ["t.duramen"], "{options}");
    }
    let message = place.ok("compact t.duramen --store table", "");
    assert!(message.contains("entries") && message.contains("40,000"), "{message}");
}

#[test]
fn invalid_conversions_are_refused_before_any_change() {
    let place = forest(100);
    let before = contents(&place);
    for (options, message) in [
        ("--page-size 5000", "--page-size cannot be 5000"),
        ("--store tables", "--store"),
        ("--delta off", "--store"),
        ("--store shadow --delta 1,2", "--delta"),
    ] {
        let error = place.error(&format!("compact t.duramen {options}"), "");
        assert!(error.contains(message), "{options}: {error}");
    }
    assert!(place.error("compact u.duramen --store shadow", "").contains("u.duramen"));
    std::fs::write(place.path("text"), "a text").unwrap();
    assert!(place.error("compact text --store shadow", "").contains("is not a Duramen database"));
    assert_eq!(contents(&place), before);
    assert_eq!(place.files(), ["t.duramen", "text"]);
}

#[test]
fn a_damaged_leaf_is_named_and_the_database_stays_as_it_was() {
    let place = forest(20_000);
    place.damage_text("t.duramen", "value 12345");
    let damaged = std::fs::read(place.path("t.duramen")).unwrap();
    let named =
        |message: &str| message.contains("is corrupt: table \"t\": ") && message.contains("dump --skip-damaged");
    let message = place.error("compact t.duramen --store shadow -q", "");
    assert!(named(&message), "{message}");
    assert!(std::fs::read(place.path("t.duramen")).unwrap() == damaged);
    // In place, the compaction has written some pages before it met the leaf.
    for options in ["", " --compress lz4"] {
        let message = place.error(&format!("compact t.duramen -q{options}"), "");
        assert!(named(&message), "{message}");
    }
    assert_eq!(place.files(), ["t.duramen"]);
}

/// Stops a process. Returns once all its threads have stopped: until then it may complete a system call.
fn stop(child: &Child) {
    assert!(Command::new("kill").args(["-STOP", &child.id().to_string()]).status().unwrap().success());
    let is_stopped = |task: std::fs::DirEntry| {
        // The state is after the name of the program, which is in parentheses.
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with(['T', 'Z', 'X']))
    };
    let tasks = || std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().flatten();
    while !tasks().all(is_stopped) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The temporary files of conversions that are running or were killed.
fn unfinished(place: &Place) -> Vec<String> {
    place.files().into_iter().filter(|name| name.ends_with(".new")).collect()
}

#[test]
fn a_killed_conversion_loses_nothing_and_the_database_is_locked_meanwhile() {
    let place = forest(100_000);
    let before = contents(&place);
    let mut rng = fastrand::Rng::with_seed(9);
    let mut killed = 0;
    for round in 0..20 {
        let store = if round % 2 == 0 { "shadow" } else { "table" };
        let (begun, left) = (Instant::now(), unfinished(&place));
        // A process creates its file, and removes those of killed conversions, only while it holds the lock.
        let is_unfinished = || unfinished(&place).iter().any(|name| !left.contains(name));
        let mut command = place.command(&["compact", "t.duramen", "--store", store, "-q"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while !is_unfinished() && child.try_wait().unwrap().is_none() && begun.elapsed().as_secs() < 60 {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(if round == 0 { 0 } else { rng.u64(0..200) }));
        if child.try_wait().unwrap().is_some() {
            assert_eq!(contents(&place), before, "round {round}");
            continue;
        }
        stop(&child);
        // As long as the new file has its temporary name the process holds the lock.
        if is_unfinished() {
            killed += 1;
            for command in ["get t.duramen n 7", "put t.duramen n 1", "compact t.duramen --store table -q"] {
                let message = place.error(command, "");
                assert!(message.contains("is already open"), "round {round}: {command}: {message}");
            }
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(contents(&place), before, "round {round}");
    }
    assert!(killed > 0);
    let report = json(&place, "compact t.duramen --store shadow");
    assert_eq!(report["entries"], 200_000);
    assert_eq!(place.files(), ["t.duramen"], "nothing is left of what was killed");
    assert_eq!(contents(&place), before);
    assert_eq!(json(&place, "check t.duramen")["sound"], true);
}

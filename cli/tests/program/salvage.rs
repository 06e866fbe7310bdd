//! The undamaged data of a damaged database can be saved, and the losses are reported.

use crate::place::{Place, Run};
use std::collections::BTreeMap;

const ENTRIES: u32 = 2000;

/// Keys of a table with three levels of pages, some with values too long for a leaf.
fn entries() -> BTreeMap<String, String> {
    let value = |n: u32| format!("value {n}, ").repeat(if n % 700 == 50 { 2000 } else { 1 });
    (0..ENTRIES).map(|n| (format!("key {n:06}{:.<90}", ""), value(n))).collect()
}

fn lines<'e>(entries: impl IntoIterator<Item = (&'e String, &'e String)>) -> String {
    entries.into_iter().map(|(key, value)| format!("{key}\t{value}\n")).collect()
}

fn built() -> Place {
    let place = Place::new();
    place.ok("load t.duramen t --page-size 4K --keys plain --separators full -q", lines(&entries()));
    place
}

/// Whether a line of complaint says that `key` is lost.
fn loses(line: &str, key: &str) -> bool {
    let quoted: Vec<&str> = line.split('"').skip(3).step_by(2).collect();
    assert!(line.starts_with("lost: table \"t\", ") && line.contains(": page "), "{line}");
    match quoted[..] {
        [one] if line.contains("the value of") => key == one,
        [from] if line.contains("to the end") => from <= key,
        [to] => key < to,
        [from, to] => from <= key && key < to,
        _ => line.contains("all keys"),
    }
}

/// Holds a salvage against what is there and what it complains of; gives how many keys are lost.
fn judge(place: &Place, run: &Run, left: &str, what: &str) -> usize {
    let entries = entries();
    let mut messages: Vec<&str> = run.err.lines().collect();
    let end = messages.pop().unwrap_or_default();
    let damaged = messages.extract_if(.., |line| line.starts_with("damaged: ")).count();
    let (lost, kept): (Vec<_>, Vec<_>) =
        entries.iter().partition(|(key, _)| messages.iter().any(|line| loses(line, key)));
    assert!(left == lines(kept), "{what}: {}", run.err);
    assert_eq!(run.status, if lost.is_empty() && damaged == 0 { 0 } else { 2 }, "{what}: {}", run.err);
    if !lost.is_empty() {
        let ranges = if messages.len() == 1 {
            "1 range of keys".to_owned()
        } else {
            format!("{} ranges of keys", messages.len())
        };
        assert!(end.starts_with("error: the database is damaged") && end.contains(&ranges), "{what}: {end}");
        let check = place.run("check t.duramen -q --format json", "");
        assert_eq!(check.status, 2, "{what}");
    }
    lost.len()
}

#[test]
fn wherever_a_database_is_damaged_a_dump_of_the_rest_restores() {
    let place = built();
    let whole = std::fs::read(place.path("t.duramen")).unwrap();
    let (mut nothing, mut values, mut leaves) = (0, 0, 0);
    for at in (0..whole.len()).step_by(4096 + 512) {
        std::fs::write(place.path("t.duramen"), &whole).unwrap();
        place.damage("t.duramen", at);
        let run = place.run("dump t.duramen d --skip-damaged -q", "");
        place.ok("restore u.duramen d -q", "");
        let left = place.ok("scan u.duramen t", "");
        match judge(&place, &run, &left, &format!("at {at}")) {
            0 => nothing += usize::from(run.status == 2),
            1 => values += 1,
            lost => {
                assert!(lost <= 60, "at {at}: {lost} keys are lost");
                leaves += 1;
            }
        }
        ["u.duramen", "d"].iter().for_each(|file| std::fs::remove_file(place.path(file)).unwrap());
    }
    assert!(nothing > 1 && values > 1 && leaves > 10, "{nothing} times nothing, {values} values, {leaves} leaves");
}

#[test]
fn a_damaged_inner_page_costs_nothing_and_a_damaged_table_is_not_compacted() {
    let place = built();
    // Tables before and after the damaged one.
    let others = lines(&entries()).replace('.', "-");
    for table in ["a", "z"] {
        place.ok(&format!("load t.duramen {table} --fill 50 -q"), &others);
    }
    let whole = std::fs::read(place.path("t.duramen")).unwrap();
    let number = |key: &[u8]| {
        let digits = key.strip_suffix(b"......").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        std::str::from_utf8(digits).unwrap().parse::<u32>().ok()
    };
    // Neighbouring keys of a leaf have nearly consecutive numbers. In an inner page a whole leaf is between two of
    // them.
    let keys: Vec<(usize, u32)> =
        (0..).zip(whole.windows(12)).filter_map(|(at, key)| Some((at, number(key)?))).collect();
    let are_separators =
        |two: &[(usize, u32)]| (5..100).contains(&two[0].1.abs_diff(two[1].1)) && two[1].0 - two[0].0 < 200;
    let inner = keys.windows(4).filter(|four| four.windows(2).all(are_separators));
    // Nothing leads past the leftmost one.
    let at = inner.min_by_key(|four| four[0].1).expect("four separators side by side")[0].0;
    place.damage("t.duramen", at);
    let run = place.run("scan t.duramen t --skip-damaged", "");
    let left = String::from_utf8(run.out.clone()).unwrap();
    let lost = judge(&place, &run, &left, "an inner page");
    assert_eq!((run.status, lost, run.err.lines().count()), (2, 0, 2), "{}", run.err);
    let fills = || {
        let stat: serde_json::Value =
            serde_json::from_slice(&place.run("stat t.duramen --format json", "").out).unwrap();
        let levels = stat["levels"].as_array().unwrap().clone();
        let fill = |table: &str| {
            let is_leaf = |level: &&serde_json::Value| level["table"] == table && level["level"] == 0;
            levels.iter().find(is_leaf).map(|level| level["fill"].as_f64().unwrap())
        };
        ["a", "z"].map(|table| fill(table).unwrap())
    };
    assert!(fills().iter().all(|fill| *fill < 0.6), "{:?}", fills());
    assert!(place.error("compact t.duramen -q", "").contains("is corrupt: table \"t\": "));
    assert!(fills().iter().all(|fill| *fill > 0.8), "{:?}", fills());
    assert_eq!(place.ok("scan t.duramen z", ""), others);
    let run = place.run("scan t.duramen t --skip-damaged", "");
    assert_eq!(String::from_utf8(run.out).unwrap(), left);
}

#[test]
fn scan_skip_damaged_supports_ranges_limits_and_counts() {
    let place = built();
    place.damage_text("t.duramen", "value 1000, ");
    let message = place.error("scan t.duramen t --count", "");
    assert!(message.contains("is corrupt"), "{message}");
    let run = place.run("scan t.duramen t --count --skip-damaged", "");
    let left: u32 = String::from_utf8(run.out).unwrap().trim().parse().unwrap();
    assert!(run.status == 2 && left < ENTRIES && left > ENTRIES - 60, "{left}: {}", run.err);
    let run =
        place.run_args(&["scan", "t.duramen", "t", "--skip-damaged", "--from", "key 0010", "--to", "key 0011"], "");
    let rest = run.out.iter().filter(|byte| **byte == b'\n').count();
    assert!(run.status == 2 && rest > 40 && rest < 100, "{rest}: {}", run.err);
    // Damage outside the requested range is not reported.
    let sound = place.run_args(&["scan", "t.duramen", "t", "--skip-damaged", "--to", "key 0003", "--count"], "");
    assert_eq!((sound.status, sound.out.as_slice(), sound.err.as_str()), (0, &b"300\n"[..], ""));
    assert_eq!(place.ok("scan t.duramen t --skip-damaged --limit 5", "").lines().count(), 5);
    assert!(place.error("scan t.duramen t --skip-damaged --reverse", "").contains("--reverse"));
}

#[test]
fn dump_skip_damaged_does_not_overwrite_an_existing_dump() {
    let place = built();
    place.ok("dump t.duramen d -q", "");
    let good = std::fs::read(place.path("d")).unwrap();
    place.damage_text("t.duramen", "value 1000, ");
    assert!(place.error("dump t.duramen d --skip-damaged", "").contains("already exists"));
    assert_eq!(std::fs::read(place.path("d")).unwrap(), good);
    let run = place.run("dump t.duramen --skip-damaged --table t", "");
    assert_eq!((run.status, run.err.lines().count()), (2, 2), "{}", run.err);
    place.ok("restore u.duramen - -q", run.out);
    let message = place.run("dump t.duramen --skip-damaged", "").err;
    assert!(message.contains(" of 2,000 entries were dumped; lost: 1 range of keys of \"t\""), "{message}");
    assert_eq!(place.files(), ["d", "t.duramen", "u.duramen"]);
}

#[test]
fn without_superblocks_or_catalog_all_entries_are_saved() {
    let place = built();
    let whole = std::fs::read(place.path("t.duramen")).unwrap();
    // Its root is page 1, and its image says so.
    let is_root = |grain: &[u8]| grain[4..8] == 1u32.to_le_bytes() && grain[13..16] == *b"IMG";
    let root = whole.chunks(512).position(is_root).unwrap() * 512;
    for (what, from, len, name) in [("superblocks", 0, 8192, "t"), ("catalog", root, 512, "table-1")] {
        let mut bytes = whole.clone();
        bytes[from..from + len].fill(0xA5);
        std::fs::write(place.path("t.duramen"), bytes).unwrap();
        assert!(place.error("scan t.duramen t", "").contains("--skip-damaged"), "{what}");
        let run = place.run("dump t.duramen d --skip-damaged -q", "");
        assert_eq!(run.status, 2, "{what}: {}", run.err);
        assert!(run.err.contains("2,000 of 2,000 entries were dumped"), "{what}: {}", run.err);
        let counted = run.err.contains("the total has only the entries in pages that were found");
        assert_eq!(counted, what == "catalog", "{what}: {}", run.err);
        let run = place.run("check t.duramen --format json -q", "");
        let report: serde_json::Value = serde_json::from_slice(&run.out).unwrap();
        assert_eq!(report["saved"]["of_entries"].is_null(), what == "catalog", "{what}: {report}");
        let about = |finding: &&serde_json::Value| finding["what"].as_str().unwrap().contains("superblock");
        let found = report["findings"].as_array().unwrap().iter().filter(about).count();
        assert_eq!(found, usize::from(what == "superblocks"), "{what}: {report}");
        place.ok("restore u.duramen d -q", "");
        assert_eq!(place.ok(&format!("scan u.duramen {name}"), ""), lines(&entries()), "{what}");
        ["u.duramen", "d"].iter().for_each(|file| std::fs::remove_file(place.path(file)).unwrap());
    }
}

/// A damaged allocation map only prevents writing: all entries can be read, and each of these commands reports it.
#[test]
fn commands_that_look_for_damage_or_write_report_a_damaged_allocation_map() {
    let place = built();
    let mut bytes = std::fs::read(place.path("t.duramen")).unwrap();
    let is_map = |grain: &[u8]| grain[4..8] == [0; 4] && grain[13..16] == *b"IMG";
    let maps = bytes.chunks_mut(512).filter(|grain| is_map(grain)).map(|grain| grain[100] ^= 1).count();
    assert!(maps > 0);
    std::fs::write(place.path("t.duramen"), bytes).unwrap();
    let commands = ["check t.duramen -q", "dump t.duramen d --skip-damaged -q", "scan t.duramen t --skip-damaged"];
    for command in commands {
        let run = place.run(command, "");
        assert!(run.status == 2 && run.err.contains("allocation map"), "{command}: {}", run.err);
        assert!(command.starts_with("check") || run.err.contains("2,000"), "{command}: {}", run.err);
    }
    assert_eq!(place.ok("scan t.duramen t", ""), lines(&entries()), "what only reads has no need of it");
    for command in ["put t.duramen t oak 7", "del t.duramen t oak", "push t.duramen u oak", "compact t.duramen -q"] {
        let message = place.error(command, "");
        assert!(message.contains("the allocation map is corrupt: page 0: "), "{command}: {message}");
        assert!(
            message.contains("dump --skip-damaged") && message.contains("tables can be copied to a new database"),
            "{command}: {message}"
        );
        assert_eq!(message.matches("the database cannot be written").count(), 1, "{command}: {message}");
    }
    place.ok("restore u.duramen d -q", "");
    assert_eq!(place.ok("scan u.duramen t", ""), lines(&entries()));
    place.ok("check u.duramen -q", "");
    place.ok("compact t.duramen --store table -q", "");
    assert_eq!(place.ok("scan t.duramen t", ""), lines(&entries()), "a conversion reads, and makes new maps");
    place.ok("check t.duramen -q", "");
}

#[test]
fn salvage_of_an_undamaged_database_returns_everything() {
    let place = built();
    let (plain, careful) = (place.run("dump t.duramen", ""), place.run("dump t.duramen --skip-damaged", ""));
    assert!(plain == careful && plain.status == 0 && plain.err.is_empty());
}

/// A load into a table that is there goes on batch by batch, up to what stops it.
#[test]
fn a_failed_load_reports_the_number_of_committed_entries() {
    let place = built();
    place.damage_text("t.duramen", "value 1000, ");
    let changed: BTreeMap<String, String> = entries().into_keys().map(|key| (key, "new".to_owned())).collect();
    let message = place.error("load t.duramen t --batch 100 -q", lines(&changed));
    let (_, count) = message.split_once("the first ").unwrap_or_else(|| panic!("{message}"));
    let count: usize = count.split(' ').next().unwrap().parse().unwrap();
    assert!(message.contains("is corrupt") && message.contains("are in table \"t\" already"), "{message}");
    assert!(count > 800 && count <= 1000 && count.is_multiple_of(100), "{message}");
    let scan = place.run("scan t.duramen t --skip-damaged", "");
    let new = String::from_utf8(scan.out).unwrap().lines().filter(|line| line.ends_with("\tnew")).count();
    assert_eq!(new, count);
}

#[test]
fn del_removes_an_entry_whose_large_value_is_damaged() {
    let key = format!("key 000050{:.<90}", "");
    let ways: [&[&str]; 3] = [&[&key], &["--prefix", "key 00005"], &["--from", "key 000050", "--to", "key 000051"]];
    for store in ["table", "shadow"] {
        let place = Place::new();
        place.ok(&format!("load t.duramen t --page-size 4K --store {store} -q"), lines(&entries()));
        place.damage_text("t.duramen", "value 50, ");
        let damaged = std::fs::read(place.path("t.duramen")).unwrap();
        assert!(place.run_args(&["get", "t.duramen", "t", &key], "").err.contains("is corrupt"));
        for way in ways {
            std::fs::write(place.path("t.duramen"), &damaged).unwrap();
            let del = [&["del", "t.duramen", "t"], way].concat();
            let run = place.run_args(&del, "");
            assert_eq!((run.status, run.err.as_str()), (0, ""), "{store}: {way:?}");
            assert_eq!(place.run_args(&del, "").status, 1, "{store}: {way:?}: nothing is left to remove");
            let mut left = entries();
            left.retain(|kept, _| !kept.starts_with(if way[0] == "--prefix" { "key 00005" } else { "key 000050" }));
            assert_eq!(place.ok("scan t.duramen t", ""), lines(&left), "{store}: {way:?}");
        }
    }
}

//! `check` shows what can be saved of a damaged database, whatever prevents opening it. The totals of
//! `dump --skip-damaged` are right.

use crate::place::Place;
use duramen::{Database, TableDef};
use serde_json::Value;

const ENTRIES: u32 = 2000;

fn built() -> Place {
    let place = Place::new();
    let lines: String = (0..ENTRIES).map(|n| format!("key {n:06}{:.<90}\tvalue {n}, \n", "")).collect();
    place.ok("load t.duramen t --page-size 4K --keys plain --separators full -q", lines);
    place
}

/// The report of `check`, and its error message.
fn check(place: &Place) -> (Value, String) {
    let run = place.run("check t.duramen -q --format json", "");
    assert_eq!((run.status, run.err.matches('\n').count()), (2, 1), "{}", run.err);
    let report: Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!(report["sound"], false);
    (report, run.err)
}

fn number(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// The offsets of the directory of the page table, of its first group of chunks, and of the first chunk.
fn page_table(bytes: &[u8]) -> [usize; 3] {
    let newer = if number(bytes, 32) > number(bytes, 4096 + 32) { 0 } else { 4096 };
    let place = |at: usize| (number(bytes, at) & ((1 << 40) - 1)) as usize * 512;
    let directory = number(bytes, newer + 84) as usize * 512;
    let group = place(directory);
    [directory, group, place(group)]
}

#[test]
fn without_a_page_table_all_is_saved_and_check_says_so() {
    let place = built();
    let whole = std::fs::read(place.path("t.duramen")).unwrap();
    let parts = page_table(&whole).map(|at| ("page table", at, 4));
    for (what, at, len) in parts.into_iter().chain([("superblock", 0, 8192)]) {
        let mut bytes = whole.clone();
        bytes[at..at + len].fill(0xA5);
        std::fs::write(place.path("t.duramen"), bytes).unwrap();
        let (report, message) = check(&place);
        let findings = report["findings"].as_array().unwrap();
        assert!(findings.iter().all(|finding| finding["lost"] == "nothing"), "{what}: {report}");
        assert!(findings.iter().any(|finding| finding["what"].as_str().unwrap().contains(what)), "{what}: {report}");
        let saved = &report["saved"];
        assert_eq!((&saved["entries"], &saved["of_entries"]), (&ENTRIES.into(), &ENTRIES.into()), "{what}: {report}");
        assert!(saved["older_states"] == true && saved["lost"].as_array().unwrap().is_empty(), "{what}: {report}");
        assert!(
            message.contains("save 2,000 of 2,000 entries") && message.contains("dump --skip-damaged"),
            "{message}"
        );
    }
}

#[test]
fn check_of_a_truncated_file_counts_the_readable_entries() {
    let place = built();
    let whole = std::fs::read(place.path("t.duramen")).unwrap();
    for part in [1, 2, 3] {
        std::fs::write(place.path("t.duramen"), &whole[..whole.len() / 4 * part]).unwrap();
        let (report, message) = check(&place);
        let scan = place.run("dump t.duramen d --skip-damaged -q", "").err;
        std::fs::remove_file(place.path("d")).unwrap();
        let saved = &report["saved"];
        assert!(saved["entries"].as_u64().unwrap() < u64::from(ENTRIES), "{report}");
        assert!(message.contains("is damaged: ") && message.contains("dump --skip-damaged"), "{message}");
        let count =
            message.split("save ").nth(1).unwrap().split(" entries").next().unwrap().split(',').collect::<String>();
        let dumped = scan.split("not be read: ").nth(1).unwrap_or(&scan).split(',').collect::<String>();
        assert!(dumped.starts_with(count.trim_end()), "{message} {scan}");
    }
}

#[test]
fn pages_side_by_side_are_one_range_of_lost_keys() {
    let place = built();
    (1000..1100).step_by(20).for_each(|n| place.damage_text("t.duramen", &format!("value {n}, ")));
    let run = place.run("dump t.duramen --skip-damaged -q", "");
    let lines: Vec<&str> = run.err.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains(" more)") && lines[1].contains("1 range of keys"), "{}", run.err);
    let (report, _) = check(&place);
    assert!(report["findings"].as_array().unwrap().len() > 1, "each page by itself: {report}");
    let [lost] = &report["saved"]["lost"].as_array().unwrap()[..] else { panic!("{report}") };
    assert!(lines[0].starts_with(&format!("lost: table \"t\", {}: ", lost["keys"].as_str().unwrap())), "{report}");
}

const NUMBERS: TableDef<u32, u32> = TableDef::new("numbers");

/// Puts `from` and the next 999 numbers in one commit.
fn put(db: &Database, from: u32) {
    let tx = db.begin_write().unwrap();
    {
        let mut numbers = tx.open_table(NUMBERS).unwrap();
        (from..from + 1000).for_each(|n| numbers.put(n, n).unwrap());
    }
    tx.commit().unwrap();
}

/// Copies the files of the open database, as a power cut would leave them.
fn cut_power(place: &Place) {
    for from in place.files().iter().filter(|name| name.starts_with("open")) {
        let to = from.replacen("open", "t.duramen", 1);
        std::fs::copy(place.path(from), place.path(&to)).unwrap();
    }
}

#[test]
fn check_of_a_damaged_log_reports_the_loss_and_no_total() {
    let place = Place::new();
    let db = Database::builder().background(false).create(place.path("open")).unwrap();
    (0..10_000).step_by(1000).for_each(|from| put(&db, from));
    cut_power(&place);
    drop(db);
    let log = std::fs::read(place.path("t.duramen-log.000001")).unwrap();
    let end = log.iter().rposition(|byte| *byte != 0).unwrap();
    place.damage("t.duramen-log.000001", end / 2);
    assert!(place.error("stat t.duramen", "").contains("the log is corrupt"));
    let (report, message) = check(&place);
    let finding = &report["findings"][0];
    assert!(finding["what"].as_str().unwrap().starts_with("the log: ") && finding["lost"] == "commits", "{report}");
    let saved = report["saved"]["entries"].as_u64().unwrap();
    assert!(saved > 0 && saved < 10_000 && saved.is_multiple_of(1000) && report["saved"]["of_entries"].is_null());
    assert_eq!(report["saved"]["lost"][0]["what"], "all commits after the damage in the log", "{report}");
    assert!(!message.contains(" of ") && message.contains("dump --skip-damaged"), "{message}");
    let run = place.run("dump t.duramen d --skip-damaged -q", "");
    let lines: Vec<&str> = run.err.lines().collect();
    assert!(run.status == 2 && lines[0].starts_with("damaged: the log: at LSN "), "{}", run.err);
    assert!(!lines[0].contains("--skip-damaged") && lines[1].contains("lost: all commits"), "{}", run.err);
    assert!(!lines[1].contains(" of ") || lines[1].contains("entries were dumped; lost"), "{}", run.err);
    place.ok("restore u.duramen d -q", "");
    assert_eq!(place.ok("scan u.duramen numbers --count", "").trim(), saved.to_string());
}

/// First the log is whole, but its start is unknown. Then there is no log.
#[test]
fn check_and_dump_say_which_commits_are_lost_with_a_log_that_is_not_read() {
    let place = Place::new();
    let db = Database::builder().background(false).create(place.path("open")).unwrap();
    put(&db, 0);
    db.checkpoint().unwrap();
    put(&db, 1000);
    cut_power(&place);
    drop(db);
    let whole = std::fs::read(place.path("t.duramen")).unwrap();
    std::fs::write(place.path("t.duramen"), [&[0xA5; 8192], &whole[8192..]].concat()).unwrap();
    only_what_is_in_the_log_is_lost(&place, "without superblocks");
    std::fs::write(place.path("t.duramen"), whole).unwrap();
    let is_log = |name: &&String| name.starts_with("t.duramen-log");
    place.files().iter().filter(is_log).for_each(|name| std::fs::remove_file(place.path(name)).unwrap());
    only_what_is_in_the_log_is_lost(&place, "without a log");
}

fn only_what_is_in_the_log_is_lost(place: &Place, what: &str) {
    let (report, _) = check(place);
    let lost = &report["saved"]["lost"];
    assert_eq!(lost.as_array().map(Vec::len), Some(1), "{what}: {report}");
    assert_eq!(lost[0]["what"], "the commits that are not in the database file", "{what}: {report}");
    let run = place.run("dump t.duramen --skip-damaged -q", "");
    assert!(
        run.status == 2 && run.err.contains("; lost: the commits that are not in the database file\n"),
        "{}",
        run.err
    );
}

/// An older state of a leaf may have entries that are removed by now, which the catalog does not count.
#[test]
fn skip_damaged_saves_at_most_the_recorded_number_of_entries() {
    let place = built();
    // Leaves room in front of the leaf below, so that what a close writes does not take the place of its older state.
    place.run_args(&["put", "t.duramen", "t", &format!("key 000001{:.<90}", ""), "other"], "");
    place.run_args(&["del", "t.duramen", "t", &format!("key 001000{:.<90}", "")], "");
    let whole = std::fs::read(place.path("t.duramen")).unwrap();
    let [directory, ..] = page_table(&whole);
    let neighbour = b"value 1001, ";
    let states: Vec<usize> = (0..whole.len()).filter(|at| whole[*at..].starts_with(neighbour)).collect();
    let mut more = 0;
    for at in states {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes[directory..directory + 4].fill(0xA5);
        std::fs::write(place.path("t.duramen"), bytes).unwrap();
        let (report, message) = check(&place);
        let saved = &report["saved"];
        more += u32::from(saved["entries"].as_u64().unwrap() == u64::from(ENTRIES));
        let of = saved["of_entries"].as_u64();
        assert!(of.is_none_or(|of| saved["entries"].as_u64().unwrap() <= of), "{report}");
        assert!(!message.contains("2,000 of 1,999"), "{message}");
        let dump = place.run("dump t.duramen --skip-damaged -q", "").err;
        assert!(!dump.contains("2,000 of 1,999"), "{dump}");
    }
    assert_eq!(more, 1, "an older state of the leaf has the removed entry");
}

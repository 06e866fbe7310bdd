//! `stat`, `check` and `compact`.

use crate::place::Place;
use serde_json::Value;
use std::io::{Read, Seek, SeekFrom, Write};

fn json(place: &Place, arguments: &str) -> Value {
    serde_json::from_str(&place.ok(&format!("{arguments} --format json"), "")).unwrap()
}

fn numbered(count: u32) -> String {
    (0..count).map(|i| format!("a common beginning of all keys, then {i:010}\tvalue {i}\n")).collect()
}

#[test]
fn stat_shows_what_head_compression_saves() {
    let place = Place::new();
    place.ok("load t.duramen head --keys head", numbered(20_000));
    place.ok("load t.duramen plain --keys plain", numbered(20_000));
    let stat = json(&place, "stat t.duramen");
    let [head, plain] = [&stat["tables"][0], &stat["tables"][1]];
    assert_eq!((head["name"].as_str(), plain["name"].as_str()), (Some("head"), Some("plain")));
    assert_eq!(head["entries"], 20_000);
    assert_eq!(head["raw_key_bytes"], plain["raw_key_bytes"]);
    assert!(head["key_list_bytes"].as_u64().unwrap() * 2 < plain["key_list_bytes"].as_u64().unwrap(), "{stat}");
    let level = |table: &str, level: u64| {
        let rows = stat["levels"].as_array().unwrap().iter();
        rows.filter(|row| row["table"] == table && row["level"] == level).collect::<Vec<_>>()
    };
    let [leaves] = level("head", 0)[..] else { panic!("{stat}") };
    assert!(leaves["fill"].as_f64().unwrap() > 0.85, "filled to the grain below 95 %: {stat}");
    assert_eq!(leaves["raw_bytes_per_key"], 47.0);
    assert!(
        leaves["ratio"].as_f64().unwrap() < 0.6 && leaves["header_bytes_per_page"].as_f64().unwrap() > 36.0,
        "{stat}"
    );
    assert_eq!(level("head", head["height"].as_u64().unwrap() - 1)[0]["pages"], 1, "the root: {stat}");
    assert_eq!(head["fan_out"].as_f64().unwrap().round(), leaves["pages"].as_f64().unwrap(), "one inner page: {stat}");
    assert_eq!(stat["database"]["page_size"], 8192);
    let one = json(&place, "stat t.duramen plain");
    assert_eq!(one["tables"][0]["name"], "plain");
    assert_eq!(one.get("database"), None);
    assert!(place.error("stat t.duramen no", "").contains("no table \"no\""));
}

#[test]
fn check_of_a_sound_database_says_so() {
    let place = Place::new();
    place.ok("load t.duramen t", numbered(20_000));
    let check = json(&place, "check t.duramen");
    assert_eq!(check["sound"], true);
    assert_eq!(check["tables"][0]["entries"], 20_000);
    assert_eq!(check["findings"], Value::Array(Vec::new()));
}

#[test]
fn check_of_a_damaged_database_names_what_is_lost_and_the_rest_stays_readable() {
    let place = Place::new();
    place.ok("load t.duramen t", numbered(20_000));
    let path = place.path("t.duramen");
    let mut file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    let at = SeekFrom::Start(file.metadata().unwrap().len() / 2);
    let mut bytes = [0; 64];
    file.seek(at).unwrap();
    file.read_exact(&mut bytes).unwrap();
    file.seek(at).unwrap();
    file.write_all(&bytes.map(|byte| !byte)).unwrap();
    drop(file);
    let run = place.run("check t.duramen --format json", "");
    assert_eq!((run.status, run.err.matches('\n').count()), (2, 1), "{}", run.err);
    let report: Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!(report["sound"], false);
    let finding = &report["findings"][0];
    assert_eq!(finding["table"], "t");
    let lost_from = finding["lost_from"].as_str().unwrap();
    assert!(place.run_args(&["scan", "t.duramen", "t", "--to", lost_from], "").status == 0);
    assert!(place.error("scan t.duramen t --count --from a", "").contains("corrupt"));
}

#[test]
fn compact_shrinks_the_file_and_keeps_the_entries() {
    let place = Place::new();
    place.ok("load t.duramen t", numbered(20_000));
    place.ok("load t.duramen gone", numbered(40_000));
    let keys: Vec<String> =
        (0..20_000).filter(|i| i % 10 != 0).map(|i| format!("a common beginning of all keys, then {i:010}")).collect();
    for keys in keys.chunks(1000) {
        let mut arguments = vec!["del", "t.duramen", "t"];
        arguments.extend(keys.iter().map(String::as_str));
        assert_eq!(place.run_args(&arguments, "").status, 0);
    }
    let before = place.ok("scan t.duramen t", "");
    let compact = json(&place, "compact t.duramen");
    assert!(compact["after_bytes"].as_u64() < compact["before_bytes"].as_u64(), "{compact}");
    assert_eq!(place.ok("scan t.duramen t", ""), before);
    assert_eq!(json(&place, "check t.duramen")["sound"], true);
    assert_eq!(place.files(), ["t.duramen"]);
}

#[test]
fn reports_for_people_have_the_same_names() {
    let place = Place::new();
    place.ok("load t.duramen t", "a\tb\n");
    for (command, word) in [
        ("stat t.duramen", "entries per page"),
        ("check t.duramen", "sound"),
        ("tables t.duramen", "key type"),
        ("compact t.duramen", "after"),
    ] {
        assert!(place.ok(command, "").contains(word), "{command}");
    }
}

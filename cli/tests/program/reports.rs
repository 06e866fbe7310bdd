//! `stat`, `check` and `compact`.

use crate::place::Place;
use serde_json::Value;

fn numbered(count: u32) -> String {
    (0..count).map(|i| format!("a common beginning of all keys, then {i:010}\tvalue {i}\n")).collect()
}

#[test]
fn stat_shows_what_head_compression_saves() {
    let place = Place::new();
    place.ok("load t.duramen head --keys head", numbered(20_000));
    place.ok("load t.duramen plain --keys plain", numbered(20_000));
    let stat = place.json("stat t.duramen");
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
        leaves["ratio"].as_f64().unwrap() > 1.8 && leaves["front_bytes_per_page"].as_f64().unwrap() > 36.0,
        "{stat}"
    );
    assert_eq!(level("head", head["height"].as_u64().unwrap() - 1)[0]["pages"], 1, "the root: {stat}");
    let [plain_leaves] = level("plain", 0)[..] else { panic!("{stat}") };
    let ratio = plain_leaves["ratio"].as_f64().unwrap();
    assert!(
        (1.0..1.1).contains(&ratio) && plain["ratio"].as_f64() == Some(ratio),
        "plain is what it is measured by: {stat}"
    );
    assert_eq!(head["fanout"].as_f64().unwrap().round(), leaves["pages"].as_f64().unwrap(), "one inner page: {stat}");
    assert_eq!(stat["database"]["page_size"], 8192);
    let one = place.json("stat t.duramen plain");
    assert_eq!(one["tables"][0]["name"], "plain");
    assert_eq!(one.get("database"), None);
    assert!(place.error("stat t.duramen no", "").contains("no table \"no\""));
}

#[test]
fn stat_shows_what_values_take_wherever_they_are() {
    let place = Place::new();
    let long = "v".repeat(100_000);
    place.ok("load t.duramen t", format!("a\t12345\nb\t{long}\nc\t1\n"));
    place.ok("load t.duramen keys", "a\nb\n");
    let stat = place.json("stat t.duramen");
    let [keys, values] = [&stat["tables"][0], &stat["tables"][1]];
    assert_eq!((values["large_values"].as_u64(), values["large_value_bytes"].as_u64()), (Some(1), Some(100_000)));
    assert_eq!(values["raw_value_bytes"], 100_006);
    assert_eq!(values["raw_bytes_per_value"].as_f64().unwrap(), 100_006.0 / 3.0);
    let list = values["record_list_bytes"].as_u64().unwrap();
    assert!((18..60).contains(&list), "two values and what leads to the third: {list}");
    assert_eq!(values["bytes_per_value"].as_f64().unwrap(), list as f64 / 3.0);
    assert_eq!((keys["raw_value_bytes"].as_u64(), keys["record_list_bytes"].as_u64()), (Some(0), Some(0)));
}

#[test]
fn check_of_a_sound_database_says_so() {
    let place = Place::new();
    place.ok("load t.duramen t", numbered(20_000));
    let check = place.json("check t.duramen");
    assert_eq!(check["sound"], true);
    assert_eq!(check["tables"][0]["entries"], 20_000);
    assert_eq!(check["findings"], Value::Array(Vec::new()));
}

#[test]
fn check_of_a_damaged_database_names_what_is_lost_and_the_rest_stays_readable() {
    let place = Place::new();
    place.ok("load t.duramen t", numbered(20_000));
    place.damage_text("t.duramen", "value 10000");
    let run = place.run("check t.duramen --format json", "");
    assert_eq!((run.status, run.err.matches('\n').count()), (2, 1), "{}", run.err);
    let report: Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!(report["sound"], false);
    let finding = &report["findings"][0];
    assert_eq!(finding["table"], "t");
    let lost_from = finding["lost_from"].as_str().unwrap();
    assert!(place.run_args(&["scan", "t.duramen", "t", "--to", lost_from], "").status == 0);
    for bounds in ["", "--from a", "--limit 20000"] {
        assert!(place.error(&format!("scan t.duramen t --count {bounds}"), "").contains("corrupt"), "{bounds}");
    }
}

#[test]
fn check_reports_each_damaged_page_once() {
    let place = Place::new();
    place.ok("load t.duramen t", format!("oak\tQuercus robur\nelm\tUlmus glabra{}\n", "!".repeat(100_000)));
    let sound = std::fs::read(place.path("t.duramen")).unwrap();
    // The table's only leaf; a page of a value's run, which costs its key.
    for (text, lost, from, to) in
        [("Quercus", "all keys", None, None), ("Ulmus", "value", Some("elm"), Some("0x656c6d00"))]
    {
        std::fs::write(place.path("t.duramen"), &sound).unwrap();
        place.damage_text("t.duramen", text);
        let run = place.run("check t.duramen --format json", "");
        let report: Value = serde_json::from_slice(&run.out).unwrap();
        let finding = &report["findings"][0];
        let page = finding["page"].as_u64().unwrap();
        assert_eq!(run.err.matches("page").count(), 1, "{}", run.err);
        assert!(run.err.contains(&format!("is damaged: page {page}: ")) && run.err.contains("dump --skip-damaged"));
        assert!(!run.err.contains("is corrupt") && !run.err.contains("duramen check"), "{}", run.err);
        assert_eq!((finding["lost_from"].as_str(), finding["lost_to"].as_str()), (from, to), "{report}");
        assert_eq!(finding["lost"], lost);
    }
}

#[test]
fn check_of_a_damaged_catalog_says_so() {
    let place = Place::new();
    place.ok("load t.duramen a_name_to_be_found", "oak\n");
    place.damage_text("t.duramen", "to_be_found");
    let run = place.run("check t.duramen --format json", "");
    let report: Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!((run.status, report["findings"].as_array().unwrap().len()), (2, 1), "{report}");
    assert!(report["findings"][0]["table"].is_null() && report["tables"].as_array().unwrap().is_empty(), "{report}");
    assert_eq!(report["findings"][0]["lost"], "names");
    assert_eq!((&report["saved"]["entries"], &report["saved"]["lost"]), (&1.into(), &Value::Array(Vec::new())));
}

#[test]
fn stat_reports_the_writes_since_creation() {
    let place = Place::new();
    place.ok("load t.duramen t", "oak\tQuercus\n");
    let before = place.json("stat t.duramen");
    assert_eq!(before["life"]["user_bytes"], 10);
    assert!(before["since_open"].is_null(), "{before}");
    place.ok("put t.duramen t elm Ulmus", "");
    let stat = place.json("stat t.duramen");
    assert_eq!(stat["life"]["user_bytes"], 10 + 8);
    let row = |stat: &Value, kind: &str| {
        let rows = stat["life"]["writes"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["kind"] == kind).unwrap()
    };
    for kind in ["log", "page", "table", "superblock"] {
        let bytes = |stat: &Value| row(stat, kind)["written_bytes"].as_u64().unwrap();
        assert!(bytes(&stat) > bytes(&before), "{kind}: {stat}");
    }
    let rows = stat["life"]["writes"].as_array().unwrap().iter();
    let sum: u64 = rows.filter(|row| row["kind"] != "total").map(|row| row["written_bytes"].as_u64().unwrap()).sum();
    let total = row(&stat, "total");
    assert_eq!(total["written_bytes"], sum);
    assert!((total["amplification"].as_f64().unwrap() - sum as f64 / 18.0).abs() < 1e-6, "{stat}");
    assert_eq!((&stat["database"]["beta"], &stat["database"]["delta_used_bytes"]), (&0.0.into(), &0.into()));
}

#[test]
fn stat_warns_of_holes_and_reports_file_system_features() {
    let place = Place::new();
    place.ok("load t.duramen t --store shadow", numbered(2000));
    let stat = place.json("stat t.duramen");
    let system = &stat["file_system"];
    assert_eq!(system["trim"] == "found", system["why_no_trim"].is_null(), "{stat}");
    assert!(["found", "missing", "unknown"].contains(&system["atomic_4k_writes"].as_str().unwrap()), "{stat}");
    assert!(system["why_not_atomic"].as_str().unwrap().len() > 10, "{stat}");
    let holes = stat["database"]["allocated_bytes"].as_u64() < stat["database"]["file_bytes"].as_u64();
    assert_eq!(!stat["warnings"].as_array().unwrap().is_empty(), holes, "{stat}");
    if system["trim"] == "found" {
        assert!(holes && place.ok("stat t.duramen", "").contains("cp --sparse=always"), "{stat}");
    }
}

#[test]
fn stat_of_a_damaged_table_says_that_it_is_not_whole() {
    let place = Place::new();
    place.ok("load t.duramen t", numbered(20_000));
    place.damage_text("t.duramen", "value 10000");
    let run = place.run("stat t.duramen --format json", "");
    let report: Value = serde_json::from_slice(&run.out).unwrap();
    assert_eq!((run.status, &report["tables"][0]["name"]), (2, &"t".into()), "{}", run.err);
    assert!(run.err.contains("is damaged: table \"t\", page ") && run.err.contains("what can be read"), "{}", run.err);
}

#[test]
fn check_finds_a_superblock_that_is_damaged() {
    let place = Place::new();
    place.ok("load t.duramen t", "a\n");
    for slot in [0, 1] {
        place.damage("t.duramen", slot * 4096 + 100);
        let run = place.run("check t.duramen --format json", "");
        let report: Value = serde_json::from_slice(&run.out).unwrap();
        assert_eq!((run.status, report["findings"].as_array().unwrap().len()), (2, 1), "{report}");
        assert!(report["findings"][0]["page"].is_null());
        assert_eq!(report["findings"][0]["lost"], "nothing");
        assert!(run.err.contains(&format!("is damaged: superblock {slot} is damaged: ")), "{}", run.err);
        assert_eq!(run.err.matches("nothing is lost").count(), 1, "{}", run.err);
        // The next command that writes also writes this superblock again.
        place.ok("put t.duramen t b", "");
        assert_eq!(place.json("check t.duramen")["sound"], true);
    }
}

#[test]
fn a_page_store_of_a_newer_version_is_no_damage() {
    let place = Place::new();
    place.ok("load t.duramen t", "a\n");
    let mut bytes = std::fs::read(place.path("t.duramen")).unwrap();
    let superblock = &mut bytes[..4096];
    superblock[52..56].copy_from_slice(&77u32.to_le_bytes());
    let crc = crc_fast::crc32_iscsi(&superblock[..4092]);
    superblock[4092..].copy_from_slice(&crc.to_le_bytes());
    std::fs::write(place.path("t.duramen"), bytes).unwrap();
    for command in ["check t.duramen", "scan t.duramen t", "dump t.duramen d --skip-damaged", "put t.duramen t b"] {
        let message = place.error(command, "");
        assert!(message.contains("uses page store number 77") && message.contains("use a newer version"), "{message}");
    }
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
    let compact = place.json("compact t.duramen");
    assert!(compact["after_bytes"].as_u64() < compact["before_bytes"].as_u64(), "{compact}");
    assert_eq!(place.ok("scan t.duramen t", ""), before);
    assert_eq!(place.json("check t.duramen")["sound"], true);
    assert_eq!(place.files(), ["t.duramen"]);
}

#[test]
fn reports_for_people_have_the_same_names() {
    let place = Place::new();
    place.ok("load t.duramen t", "a\tb\n");
    for (command, word) in [
        ("stat t.duramen", "front bytes"),
        ("check t.duramen", "sound"),
        ("tables t.duramen", "key type"),
        ("compact t.duramen", "after"),
    ] {
        assert!(place.ok(command, "").contains(word), "{command}");
    }
}

#[test]
fn stat_fits_in_100_columns_whatever_the_tables_are() {
    let place = Place::new();
    place.ok(&format!("load t.duramen {}", "long-name-".repeat(20)), numbered(20_000));
    place.ok(
        "load t.duramen pairs --key-type (str,str,str,str,str,str) --value-type option<u64>",
        "a,b,c,d,e,f\tnone\n",
    );
    place.ok("load t.duramen numbers --key-type u64", (0..200_000).map(|key| format!("{key}\n")).collect::<String>());
    for command in ["stat t.duramen", "stat t.duramen numbers"] {
        let shown = place.ok(command, "");
        let widest = shown.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= 100, "{widest}");
        assert!(shown.contains("numbers") && shown.contains("raw bytes"), "{shown}");
    }
    assert_eq!(place.json("stat t.duramen")["tables"][0]["name"], "long-name-".repeat(20), "JSON keeps all");
}

//! `analyze`, and `compact --strategy`.

use crate::place::Place;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Two tables: text, and digits that look random.
fn forest() -> Place {
    let place = Place::new();
    let (mut text, mut random) = (String::new(), String::new());
    let mut state = 1u64;
    for n in 0..8000 {
        writeln!(text, "forest/of/the/north/{n:05}\tbeech, ash, oak, elm, yew, beech, ash, oak, elm, yew").unwrap();
        write!(random, "{n:05}\t").unwrap();
        for _ in 0..8 {
            state = state.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(1);
            write!(random, "{:016x}", state ^ (state >> 29)).unwrap();
        }
        random.push('\n');
    }
    place.ok("load t.duramen text -q", text);
    place.ok("load t.duramen random -q", random);
    place
}

fn compressions(place: &Place) -> BTreeMap<String, String> {
    let tables = place.json("tables t.duramen");
    let row = |row: &serde_json::Value| {
        let field = |name: &str| row[name].as_str().unwrap().to_owned();
        (field("name"), field("compression"))
    };
    tables.as_array().unwrap().iter().map(row).collect()
}

/// The size of the database after a compaction.
fn size(report: serde_json::Value) -> u64 {
    report["after_bytes"].as_u64().unwrap()
}

#[test]
fn tables_are_analyzed_and_compressed_as_a_strategy_chooses() {
    let place = forest();
    let before = ["text", "random"].map(|table| place.ok(&format!("scan t.duramen {table}"), ""));
    let report = place.json("analyze t.duramen --strategy selective:0.2:strict --compress lz4");
    assert_eq!((report["strategy"].as_str(), report["compress"].as_str()), (Some("selective:0.2:strict"), Some("lz4")));
    assert_eq!(report["tables"].as_array().unwrap().len(), 2);
    assert_eq!(report["methods"].as_array().unwrap().len(), 24, "two tables, three methods, and fit, 1K, 2K and 4K");
    assert_eq!(report["targets"].as_array().unwrap().len(), 4);
    let text = place.ok("analyze t.duramen", "");
    for expected in ["close to CPss", "zstd:3", "lower bound", "upper bound"] {
        assert!(text.contains(expected), "{text}");
    }

    let report = place.json("analyze t.duramen");
    let chosen: Vec<_> =
        report["tables"].as_array().unwrap().iter().map(|row| row["choice"].as_str().unwrap()).collect();
    assert_eq!(chosen, ["none", "lz4"], "{report}");
    // The time of a table is that of a page times its pages.
    let (tables, methods) = (report["tables"].as_array().unwrap(), report["methods"].as_array().unwrap());
    let table = tables.iter().find(|row| row["choice"] == "lz4").unwrap();
    let method =
        |row: &&serde_json::Value| row["table"] == table["name"] && row["method"] == "lz4" && row["target"] == "fit";
    let method = methods.iter().find(method).unwrap();
    let share = |field: &str| method[field].as_f64().unwrap();
    assert!(method["lower_bound"] == true && 0.9 * share("median_saving") <= share("saving") + 1e-6, "{report}");
    for (seconds, page) in [("write_seconds", "write_us"), ("read_seconds", "read_us")] {
        let expected = method[page].as_f64().unwrap() * 1e-6 * table["pages"].as_f64().unwrap();
        assert!(expected > 0.0 && (table[seconds].as_f64().unwrap() / expected - 1.0).abs() < 1e-6, "{report}");
        assert_eq!(method[seconds], table[seconds]);
    }
    assert_eq!(tables.iter().find(|row| row["choice"] == "none").unwrap()["write_seconds"], 0.0);
    let plain = size(place.json("compact t.duramen"));
    let selective = size(place.json("compact t.duramen --strategy selective"));
    assert_eq!(
        compressions(&place),
        BTreeMap::from([("random", "none"), ("text", "lz4")].map(|(a, b)| (a.into(), b.into())))
    );
    let all = size(place.json("compact t.duramen --compress zstd:9 --compression-threads 1"));
    assert!(compressions(&place).values().all(|found| found == "zstd:9"));
    assert!(all < selective && selective < plain, "{all} {selective} {plain}");
    assert_eq!(["text", "random"].map(|table| place.ok(&format!("scan t.duramen {table}"), "")), before);
    assert_eq!(place.json("check t.duramen")["sound"], true);
    // One table gets another compression, and the other table stays as it is.
    place.ok("compact t.duramen --table random --strategy none", "");
    assert_eq!(compressions(&place)["random"], "none");
    assert_eq!(compressions(&place)["text"], "zstd:9");
    let report = place.json("analyze t.duramen --table text --group text,random");
    let why = |row: &serde_json::Value| row["why"].as_str().unwrap().to_owned();
    let whys: Vec<_> = report["tables"].as_array().unwrap().iter().map(why).collect();
    assert_eq!(whys[0], "the plan is for other tables");
    assert!(whys[1].ends_with("in the group text,random"), "{report}");
    let report = place.json("analyze t.duramen --table text");
    let targets = report["targets"].as_array().unwrap();
    assert_eq!((&targets[0]["chosen"], &targets[0]["of"]), (&1.into(), &1.into()), "{report}");
    assert_eq!(targets[0]["note"], "nothing to select: every table");
    place.ok("compact t.duramen --table random --compress zstd:9", "");
    // A plain compaction keeps the compression of each table.
    place.ok("compact t.duramen", "");
    assert!(compressions(&place).values().all(|found| found == "zstd:9"));
}

#[test]
fn compressed_tables_are_compared_with_plain_ones_and_restored_with_their_targets() {
    let place = forest();
    let plain = size(place.json("compact t.duramen"));
    place.ok("compact t.duramen --compress zstd:9", "");
    // The choice is compared with no compression, and with the present one.
    let sizes = |strategy: &str| {
        let report = place.json(&format!("analyze t.duramen --strategy {strategy} --compress zstd:9"));
        let text = report["tables"].as_array().unwrap().iter().find(|row| row["name"] == "text").unwrap().clone();
        ["plain_bytes", "stored_bytes", "saved_of_plain_bytes", "saved_of_stored_bytes"]
            .map(|field| text[field].as_i64().unwrap())
    };
    let [plain_bytes, stored, saved_of_plain, saved_of_stored] = sizes("all");
    assert_eq!((saved_of_plain, saved_of_stored), (plain_bytes - stored, 0));
    assert_eq!(sizes("none"), [plain_bytes, stored, 0, stored - plain_bytes]);
    place.ok("compact t.duramen --compress zlib --target 4K", "");
    let target = |table: usize| place.json("tables t.duramen")[table]["target"].as_str().unwrap().to_owned();
    assert_eq!((target(0), target(1)), ("4K".into(), "4K".into()));
    place.ok("dump t.duramen t.dump", "");
    place.ok("restore other.duramen t.dump --compression-threads 3", "");
    assert_eq!(place.json("tables other.duramen")[0]["target"], "4K");
    place.ok("restore small.duramen t.dump --page-size 4KiB", "");
    assert_eq!(place.json("tables small.duramen")[0]["target"], "fit");
    let again = size(place.json("compact t.duramen --strategy none"));
    assert!(again.abs_diff(plain) < plain / 50, "{again} {plain}");
    assert!(compressions(&place).values().all(|found| found == "none"));
}

#[test]
fn a_dictionary_is_trained_where_it_pays_and_the_option_is_kept() {
    let place = forest();
    let mut documents = String::new();
    let word = |number: u64| format!("{:x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut state = 7u64;
    for n in 0..20_000 {
        write!(documents, "{n:05}\t").unwrap();
        for _ in 0..8 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            write!(documents, "{} ", word(state >> 33 & 1023)).unwrap();
        }
        documents.push('\n');
    }
    place.ok("load t.duramen documents -q --dictionary", &documents);
    assert_eq!(compressions(&place)["documents"], "zstd:3 dictionary");
    let report = place.json("analyze t.duramen --dictionary -q");
    assert_eq!(report["compress"], "zstd:3");
    let rows = report["dictionaries"].as_array().unwrap();
    let pays = |table| rows.iter().find(|row| row["table"] == table).map(|row| row["pays"].as_bool().unwrap());
    assert_eq!((pays("documents"), pays("text")), (Some(true), Some(false)), "{report}");
    let bytes = |table| {
        place.json("stat t.duramen")["tables"]
            .as_array()
            .unwrap()
            .iter()
            .find(|row| row["name"] == table)
            .and_then(|row| row["dictionary_bytes"].as_u64())
            .unwrap()
    };
    assert_eq!(bytes("documents"), 0);
    let before = place.ok("scan t.duramen documents", "");
    place.ok("compact t.duramen -q", "");
    assert!(bytes("documents") > 10_000 && bytes("text") == 0);
    assert_eq!(place.ok("scan t.duramen documents", ""), before);
    assert_eq!(place.json("check t.duramen")["sound"], true);
    place.ok("dump t.duramen t.dump", "");
    place.ok("restore other.duramen t.dump", "");
    assert_eq!(place.json("tables other.duramen")[0]["compression"], "zstd:3 dictionary");
    place.ok("compact t.duramen --store shadow --page-size 16K", "");
    assert_eq!(compressions(&place)["documents"], "zstd:3 dictionary");
    assert_eq!(place.ok("scan t.duramen documents", ""), before);
    assert_eq!(place.json("check t.duramen")["sound"], true);
    place.ok("restore small.duramen t.dump --store shadow --page-size 4K", "");
    assert_eq!(place.json("tables small.duramen")[0]["compression"], "none");
}

#[test]
fn the_selective_strategy_leaves_an_empty_table_as_it_is() {
    let place = forest();
    place.ok("load t.duramen empty -q --compress zstd:5 --dictionary --target 4K --overflow split", "");
    let before = place.json("tables t.duramen")[0].clone();
    let report = place.json("analyze t.duramen");
    assert!(report["tables"][0]["why"].as_str().unwrap().contains("so few pages"), "{report}");
    place.ok("compact t.duramen --strategy selective", "");
    let after = place.json("tables t.duramen")[0].clone();
    assert_eq!((before["name"].as_str(), before["compression"].as_str()), (Some("empty"), Some("zstd:5 dictionary")));
    assert_eq!((&after["compression"], &after["target"]), (&before["compression"], &before["target"]));
    assert_eq!(compressions(&place)["text"], "lz4");
}

#[test]
fn a_plan_that_cannot_be_met_is_an_error_that_says_why() {
    let place = forest();
    for (command, says) in [
        ("analyze t.duramen --strategy some", "selective:DELTA"),
        ("analyze t.duramen --compress none", "--strategy none"),
        ("analyze t.duramen --target 3K", "--target"),
        ("compact t.duramen --target 8K", "1K to 4K"),
        ("compact t.duramen --compress lz4 --dictionary", "--dictionary"),
        ("load t.duramen new --compress lz4 --dictionary", "--dictionary needs --compress zstd"),
        ("load t.duramen text --dictionary", "created without --dictionary"),
        ("analyze t.duramen --group text,nobody", "nobody"),
        ("analyze t.duramen --table nobody", "nobody"),
        ("compact t.duramen --table nobody --compress lz4", "nobody"),
        ("compact t.duramen --table text", "--compress"),
        ("analyze t.duramen --group text,random --group text", "group"),
        ("compact t.duramen --strategy all --store shadow", "conversion"),
        ("compact t.duramen --compress lz4 --compression-threads 0", "--compression-threads"),
        ("load t.duramen new --compress lz4 --compression-threads many", "--compression-threads"),
        ("analyze missing.duramen", "missing.duramen"),
    ] {
        let message = place.error(command, "");
        assert!(message.contains(says), "{command}: {message}");
    }
    place.ok("compact t.duramen --store shadow --page-size 4K", "");
    let message = place.error("analyze t.duramen", "");
    assert!(message.contains("shadow"), "{message}");
}

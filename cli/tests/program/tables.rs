//! `drop`, `rename` and the output of `tables`.

use crate::place::Place;

#[test]
fn drop_removes_one_table_and_its_name_is_free_again() {
    let place = Place::new();
    place.ok("load t.duramen a", "1\n2\n");
    place.ok("load t.duramen b", "3\n");
    assert_eq!(place.ok("drop t.duramen a", ""), "");
    assert!(place.error("scan t.duramen a", "").contains("no table \"a\""));
    assert_eq!(place.ok("scan t.duramen b", ""), "3\n");
    place.ok("load t.duramen a --key-type u8", "9\n");
    assert_eq!(place.ok("scan t.duramen a", ""), "9\n");
    assert!(place.error("drop t.duramen c", "").contains("no table \"c\""));
    assert!(place.error("drop no.duramen a", "").contains("no database at"));
    assert!(place.ok("check t.duramen --format json", "").contains("\"sound\": true"));
    assert_eq!(place.files(), ["t.duramen"]);
}

#[test]
fn rename_keeps_everything_but_the_name() {
    let place = Place::new();
    place.ok("load t.duramen a --key-type u32 --keys blocks", "7\n8\n");
    place.ok("load t.duramen b", "x\n");
    assert_eq!(place.ok("rename t.duramen a c", ""), "");
    assert_eq!(place.ok("scan t.duramen c --from 8", ""), "8\n");
    assert!(place.ok("tables t.duramen --format json", "").contains("\"keys\": \"blocks\""));
    assert!(place.error("scan t.duramen a", "").contains("no table \"a\""));
    assert!(place.error("rename t.duramen a d", "").contains("no table \"a\""));
    assert!(place.error("rename t.duramen c b", "").contains("table \"b\" already exists"));
    assert_eq!(place.run_args(&["rename", "t.duramen", "c", ""], "").status, 2);
    assert_eq!(place.ok("scan t.duramen b", ""), "x\n");
}

#[test]
fn auto_increment_is_reported_and_cannot_be_added_later() {
    let place = Place::new();
    place.ok("load t.duramen plain --key-type u64", "1\n");
    place.ok("put t.duramen serial 1 --key-type u64 --auto-increment", "");
    for report in ["tables t.duramen", "stat t.duramen"] {
        let report: serde_json::Value =
            serde_json::from_str(&place.ok(&format!("{report} --format json"), "")).unwrap();
        let rows = report.get("tables").unwrap_or(&report);
        let serial = |row: usize| (rows[row]["name"].as_str().unwrap(), rows[row]["auto_increment"].as_bool());
        assert_eq!([serial(0), serial(1)], [("plain", Some(false)), ("serial", Some(true))], "{report}");
    }
    for command in ["load t.duramen plain", "put t.duramen plain 2"] {
        let message = place.error(&format!("{command} --auto-increment"), "2\n");
        assert!(message.contains("created without --auto-increment"), "{message}");
    }
    assert_eq!(place.ok("scan t.duramen plain", ""), "1\n");
    place.ok("load t.duramen serial --auto-increment", "5\n");
    place.ok("put t.duramen serial 6", "");
    assert_eq!(place.ok("scan t.duramen serial", ""), "1\n5\n6\n");
}

#[test]
fn pushed_values_get_unique_keys() {
    let place = Place::new();
    assert_eq!(place.ok("push t.duramen events started stopped", ""), "1\n2\n");
    place.ok("del t.duramen events 2", "");
    place.ok("dump t.duramen d -q", "");
    place.ok("restore u.duramen d -q", "");
    for database in ["t.duramen", "u.duramen"] {
        assert_eq!(place.ok(&format!("push {database} events again"), ""), "3\n", "{database}");
        assert_eq!(place.ok(&format!("scan {database} events"), ""), "1\tstarted\n3\tagain\n");
    }
    assert_eq!(place.ok("push t.duramen typed --key-type u32 --value-type u32 7", ""), "1\n");
    assert_eq!(place.ok("push t.duramen typed -", "8"), "2\n");
    assert!(place.error("push t.duramen typed seven", "").contains("seven"));
    place.ok("put t.duramen plain 1 x --key-type u64", "");
    assert!(place.error("push t.duramen plain x", "").contains("--auto-increment"));
    assert!(place.error("push t.duramen typed 7 --key-type u64", "").contains("u32"));
}

#[test]
fn a_key_that_is_put_alone_makes_a_table_of_keys() {
    let place = Place::new();
    place.ok("put t.duramen keys oak", "");
    place.ok("put t.duramen pairs oak Quercus", "");
    let tables = place.ok("tables t.duramen --format json", "");
    let tables: serde_json::Value = serde_json::from_str(&tables).unwrap();
    let types: Vec<_> = (0..2).map(|row| tables[row]["value_type"].as_str().unwrap()).collect();
    assert_eq!(types, ["()", "bytes"]);
}

#[test]
fn pages_of_a_table_are_compressed_as_asked_and_stay_so_in_a_dump() {
    let place = Place::new();
    let rows: String = (0..20_000).map(|n| format!("{n:06}\tthe same text in each row, and {n}\n")).collect();
    let mut sizes = Vec::new();
    for method in ["none", "lz4", "zstd", "zlib:9"] {
        let name = format!("{}.duramen", method.replace(':', "-"));
        place.ok(&format!("load {name} t -q --compress {method}"), &rows);
        place.ok(&format!("check {name} -q"), "");
        assert_eq!(place.ok(&format!("scan {name} t"), ""), rows);
        place.ok(&format!("dump {name} d -q"), "");
        place.ok("restore again.duramen d -q", "");
        let table = |name: &str| place.json(&format!("stat {name}"))["tables"][0].clone();
        let wanted = if method == "zstd" { "zstd:3" } else { method };
        assert_eq!(table(&name)["compression"], wanted);
        assert_eq!(table("again.duramen"), table(&name));
        place.ok("restore shadow.duramen d -q --store shadow", "");
        assert_eq!(table("shadow.duramen")["compression"], wanted);
        assert_eq!(place.ok("scan shadow.duramen t", ""), rows);
        place.ok("restore small.duramen d -q --store shadow --page-size 4K", "");
        assert_eq!(table("small.duramen")["compression"], "none");
        sizes.push(std::fs::metadata(place.path(&name)).unwrap().len());
        for made in ["again.duramen", "shadow.duramen", "small.duramen"] {
            std::fs::remove_file(place.path(made)).unwrap();
        }
    }
    assert!(sizes[1] * 2 < sizes[0] && sizes[2] < sizes[1] && sizes[3] < sizes[1], "{sizes:?}");

    let error = place.error("load new.duramen t --compress lzma", "a\tb\n");
    assert!(error.contains("--compress") && error.contains("zstd:1 to zstd:22"), "{error}");
    let error = place.error("load new.duramen t --store shadow --page-size 4K --compress lz4", "a\tb\n");
    assert!(error.contains("--compress cannot be lz4") && error.contains("shadow"), "{error}");
    let error = place.error("load lz4.duramen t --compress zstd", "a\tb\n");
    assert!(error.contains("--compress lz4, not zstd:3"), "{error}");
}

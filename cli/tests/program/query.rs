//! Tables of integer blocks and aggregates over them.

use crate::place::Place;

/// The output of the program with these arguments.
fn ok(place: &Place, arguments: &[&str]) -> String {
    let run = place.run_args(arguments, "");
    assert_eq!((run.status, run.err.as_str()), (0, ""), "{arguments:?}");
    String::from_utf8(run.out).unwrap()
}

fn numbers(count: u32) -> String {
    (0..count).map(|n| format!("{}\t{}\n", n * 3, n % 10)).collect()
}

#[test]
fn every_codec_loads_scans_sums_and_comes_back_from_a_dump() {
    let codecs = ["plain", "vbyte", "masked-vbyte", "varint-gb", "stream-vbyte", "for", "simd-for", "bp128"];
    for (codec, keys) in codecs.map(|codec| (codec, "blocks")).into_iter().chain([("simd-for", "blocks:128")]) {
        let place = Place::new();
        let load = format!("load t.duramen t --key-type u32 --value-type u16 --codec {codec} --keys {keys}");
        place.ok(&load, numbers(20_000));
        assert_eq!(place.ok("scan t.duramen t --from 30 --to 37", ""), "30\t0\n33\t1\n36\t2\n");
        let asked = [
            "query",
            "t.duramen",
            "SUM(key), COUNT(*), MAX(key), SUM(value) FROM t WHERE key >= 30",
            "--format",
            "json",
        ];
        let expected = "{\n  \"SUM(key)\": 599969865,\n  \"COUNT(*)\": 19990,\n  \"MAX(key)\": 59997,\n  \"SUM(value)\": 89955\n}\n";
        assert_eq!(ok(&place, &asked), expected, "{codec}");
        place.ok("load t.duramen t", "31\t1\n1000000\t2\n");
        assert!(place.ok("tables t.duramen --format json", "").contains(&format!("\"codec\": \"{codec}\"")));
        place.ok("check t.duramen -q", "");
        place.ok("dump t.duramen d -q", "");
        place.ok("restore u.duramen d -q", "");
        assert_eq!(place.ok("scan u.duramen t", ""), place.ok("scan t.duramen t", ""));
        let stat = place.ok("stat u.duramen --format json", "");
        assert!(stat.contains(&format!("\"codec\": \"{codec}\"")) && stat.contains(&format!("\"{keys}\"")), "{stat}");
    }
}

#[test]
fn blocks_are_refused_for_other_keys_than_integers() {
    let place = Place::new();
    let message = place.error("load t.duramen t --codec bp128", "a\n");
    assert!(message.contains("blocks are for integers of 4 or 8 bytes"), "{message}");
    let message = place.error("load t.duramen t --key-type u32 --codec bp128 --keys blocks:128", "1\n");
    assert!(message.contains("it must be blocks: blocks of bp128 never have more than 128 keys"), "{message}");
    let message = place.error("load t.duramen t --key-type u32 --codec nope", "1\n");
    assert!(message.contains("unknown codec; one of plain"), "{message}");
}

#[test]
fn a_syntax_error_has_its_position() {
    let place = Place::new();
    place.ok("load t.duramen t --key-type i64 --keys blocks", "-5\n7\n");
    let run = place.run_args(&["query", "t.duramen", "SUM(key) FORM t"], "");
    let message = run.err;
    assert_eq!(run.status, 2);
    assert!(message.contains("at character 10, expected FROM"), "{message}");
    let all = ok(&place, &["query", "t.duramen", "MIN(key), AVERAGE(key) FROM t"]);
    assert!(all.contains("-5") && !all.contains("-5.") && all.contains("1.0"), "{all}");
    let table = ok(&place, &["query", "t.duramen", "MIN(key), TOP(key, 1) FROM t WHERE key > 9"]);
    assert!(table.contains("MIN(key)"), "{table}");
    assert_eq!(ok(&place, &["query", "t.duramen", "SUM(key) FROM t", "--format", "json"]), "{\n  \"SUM(key)\": 2\n}\n");
}

#[test]
fn a_query_of_too_many_numbers_ends_with_an_error_that_names_the_option() {
    let place = Place::new();
    place.ok("load t.duramen t --key-type u32 --value-type u16", numbers(2000));
    let query = |most: &str| place.run_args(&["query", "t.duramen", "DISTINCT(key) FROM t", "--max-numbers", most], "");
    assert_eq!(query("2000").status, 0);
    let refused = query("1999");
    assert!(refused.status == 2 && refused.err.contains("more than 1999 numbers"), "{}", refused.err);
    assert!(refused.err.contains("--max-numbers"), "{}", refused.err);
}

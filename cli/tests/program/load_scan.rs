//! A scan prints what was loaded: lines, values, types, any bytes, CSV, ranges.

use crate::place::Place;

#[test]
fn keys_come_back_sorted_and_once() {
    let place = Place::new();
    place.ok("load t.duramen words", "oak\nelm\noak\nash\n");
    assert_eq!(place.ok("scan t.duramen words", ""), "ash\nelm\noak\n");
    assert_eq!(place.ok("scan t.duramen words --reverse --limit 2", ""), "oak\nelm\n");
    assert_eq!(place.ok("scan t.duramen words --count", ""), "3\n");
    assert_eq!(place.files(), ["t.duramen"]);
}

#[test]
fn of_equal_keys_the_last_value_wins_within_a_load_and_across_loads() {
    let place = Place::new();
    place.ok("load t.duramen t", "a\t1\nb\t2\na\t3\n");
    assert_eq!(place.ok("scan t.duramen t", ""), "a\t3\nb\t2\n");
    place.ok("load t.duramen t --batch 1", "b\t4\nc\t5\nb\t6\n");
    assert_eq!(place.ok("scan t.duramen t", ""), "a\t3\nb\t6\nc\t5\n");
}

#[test]
fn a_scan_loaded_again_is_the_same_table() {
    let place = Place::new();
    place.ok("load t.duramen t", "a\nb\t\nc\td\te\n\n");
    let scan = place.ok("scan t.duramen t", "");
    assert_eq!(scan, "\na\nb\nc\td\te\n");
    place.ok("load t.duramen again", &scan);
    assert_eq!(place.ok("scan t.duramen again", ""), scan);
}

#[test]
fn any_bytes_pass_with_nul_ended_lines_and_in_hexadecimal() {
    let place = Place::new();
    place.ok("load t.duramen t -0", b"b\n\t\xFF\0a\xFE\0");
    assert_eq!(place.run("scan t.duramen t -0", "").out, b"a\xFE\0b\n\t\xFF\0");
    let hex = place.ok("scan t.duramen t --hex", "");
    assert_eq!(hex, "61fe\n620a\tff\n");
    place.ok("load t.duramen u --hex", &hex);
    assert_eq!(place.run("scan t.duramen u -0", "").out, b"a\xFE\0b\n\t\xFF\0");
}

#[test]
fn numbers_order_as_numbers_and_print_as_numbers() {
    let place = Place::new();
    place.ok("load t.duramen t --key-type i32 --value-type f64", "10\t1.5\n-3\t-0.25\n2\tinf\n");
    assert_eq!(place.ok("scan t.duramen t", ""), "-3\t-0.25\n2\tinf\n10\t1.5\n");
    assert_eq!(place.ok("scan t.duramen t --from -3 --to 10", ""), "-3\t-0.25\n2\tinf\n");
    assert_eq!(place.ok("get t.duramen t -3", ""), "-0.25\n");
}

#[test]
fn tuples_order_by_their_parts_and_have_prefixes() {
    let place = Place::new();
    place.ok("load t.duramen t --key-type (str,u16)", "oak,10\noak,9\nelm,7\noaks,1\na\\,b,1\n");
    assert_eq!(place.ok("scan t.duramen t", ""), "a\\,b,1\nelm,7\noak,9\noak,10\noaks,1\n");
    assert_eq!(place.ok("scan t.duramen t --prefix oak", ""), "oak,9\noak,10\noaks,1\n");
    assert_eq!(place.ok("scan t.duramen t --prefix oak,", ""), "oak,9\noak,10\n");
}

#[test]
fn ranges_include_their_beginning_and_not_their_end() {
    let place = Place::new();
    place.ok("load t.duramen t", "a\naa\nab\nb\nc\n");
    for (options, expected) in [
        ("--from aa --to b", "aa\nab\n"),
        ("--prefix a", "a\naa\nab\n"),
        ("--prefix a --from aa --reverse", "ab\naa\n"),
        ("--prefix a --to ab --limit 1", "a\n"),
        ("--from c --to a", ""),
        ("--from x", ""),
        ("--limit 0", ""),
        ("--prefix a --count", "3\n"),
        ("--prefix a --count --limit 2", "2\n"),
        ("--count --limit 4", "4\n"),
        ("--from x --count", "0\n"),
    ] {
        assert_eq!(place.ok(&format!("scan t.duramen t {options}"), ""), expected, "{options}");
    }
}

#[test]
fn csv_columns_become_keys_and_values() {
    let place = Place::new();
    let text = "tree,years,place\n\"oak, red\",180,wood\nelm,90,\"the \"\"park\"\"\"\n";
    place.ok("load t.duramen t --csv --key-column tree --value-column place", text);
    assert_eq!(place.ok("scan t.duramen t", ""), "elm\tthe \"park\"\noak, red\twood\n");
    place.ok("load t.duramen u --csv --header --key-column 2 --key-column 1 --key-type (u32,str)", text);
    assert_eq!(place.ok("scan t.duramen u", ""), "90,elm\n180,oak\\, red\n");
}

#[test]
fn csv_rows_that_would_lose_a_field_are_refused() {
    let place = Place::new();
    let row = place.error("load t.duramen t --csv --key-column id --value-column text", "id,text\n1,big, old tree\n");
    assert!(row.contains("line 2: the number of fields is 3, and that of the first row is 2"), "{row}");
    let name = place.error("load t.duramen t --csv --key-column id --value-column x", "id,x,x\n1,2,3\n");
    assert!(name.contains("columns 2 and 3 are both called \"x\""), "{name}");
    assert_eq!(place.files(), [""; 0]);
}

#[test]
fn csv_fields_of_nul_bytes_are_loaded_like_others() {
    let place = Place::new();
    let nul = "\0".repeat(24);
    place.ok("load t.duramen t --csv --key-column 1 --value-column 2", format!("a,{nul}\nb,x{nul}\nc,\0\nd,1\n"));
    assert_eq!(place.ok("scan t.duramen t", ""), format!("a\t{nul}\nb\tx{nul}\nc\t\0\nd\t1\n"));
    assert!(place.error("load t.duramen u --csv --header", "tree,\"years\noak,9\n").contains("never closed"));
    assert_eq!(place.ok("tables t.duramen --format json", "").matches("\"name\"").count(), 1);
}

#[test]
fn an_input_larger_than_the_memory_for_sorting_is_sorted_in_parts() {
    let place = Place::new();
    let long = "!".repeat(1000);
    let lines: Vec<String> =
        (0..20_000u32).map(|i| format!("{:08}\t{i}{long}\n", i.wrapping_mul(2_654_435_761) % 15_000)).collect();
    // It is less than the least memory for sorting.
    place.ok("load t.duramen t --memory 64K", lines.concat());
    let model: std::collections::BTreeMap<_, _> = lines.iter().map(|line| line.split_once('\t').unwrap()).collect();
    let expected: String = model.iter().map(|(key, value)| format!("{key}\t{value}")).collect();
    assert_eq!(place.ok("scan t.duramen t", ""), expected);
    assert_eq!(place.files(), ["t.duramen"]);
}

#[test]
fn the_summary_counts_keys_bytes_and_what_was_replaced() {
    let place = Place::new();
    let summary = place.ok("load t.duramen t --format json", "b\na\nb\n");
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["keys"], 2);
    assert_eq!(summary["replaced"], 1);
    assert_eq!(summary["input_bytes"], 6);
    let database = summary["database_bytes"].as_u64().unwrap();
    assert!(database > 0);
    assert_eq!(summary["database_to_input"].as_f64().unwrap(), database as f64 / 6.0);
    assert_eq!(summary["commits"], 1);
    assert!(place.ok("load t.duramen t", "c\n").contains("keys"));
    let again = place.ok("load t.duramen t --batch 2 --format json", "d\ne\nf\ng\nh\n");
    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
    assert_eq!((again["commits"].as_u64(), again["keys"].as_u64()), (Some(3), Some(5)));
    assert!(again["database_to_input"].is_null(), "there is more in it than this input: {again}");
    let empty = place.ok("load empty.duramen t --format json", "");
    let empty: serde_json::Value = serde_json::from_str(&empty).unwrap();
    assert!(empty["database_to_input"].is_null(), "{empty}");
}

#[test]
fn tables_with_and_without_values_are_distinguished() {
    let place = Place::new();
    place.ok("load t.duramen keys --keys plain --separators full", "a\n");
    place.ok("load t.duramen values", "a\tb\n");
    let tables: serde_json::Value = serde_json::from_str(&place.ok("tables t.duramen --format json", "")).unwrap();
    assert_eq!(tables[0]["name"], "keys");
    assert_eq!(tables[0]["value_type"], "()");
    assert_eq!(tables[0]["keys"], "plain");
    assert_eq!(tables[0]["separators"], "full");
    assert_eq!(tables[1]["value_type"], "bytes");
    assert_eq!(tables[1]["entries"], 1);
}

#[test]
fn a_file_is_read_by_its_name_and_an_empty_one_makes_an_empty_table() {
    let place = Place::new();
    std::fs::write(place.path("list"), "a\nb").unwrap();
    std::fs::write(place.path("none"), "").unwrap();
    place.ok("load t.duramen t list", "");
    place.ok("load t.duramen empty none", "");
    assert_eq!(place.ok("scan t.duramen t", ""), "a\nb\n");
    assert_eq!(place.ok("scan t.duramen empty --count", ""), "0\n");
}

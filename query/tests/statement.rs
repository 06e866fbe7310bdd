//! Compares queries with a plain scan of the same snapshot: every codec and other key lists, several leaves, ranges,
//! predicates, threads, and snapshots with later commits. Also the errors for wrong texts.

use duramen::db::types::{DynType, TableOptions, Value};
use duramen::query::{Number, Outcome};
use duramen::{Codec, Database, ReadTransaction, TableDef};
use duramen_query::Statement;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A database with small pages and a table "t" of these entries, put in several transactions.
fn filled(key_type: &str, options: TableOptions, entries: &[(u32, i32)]) -> Database {
    let db = Database::builder().page_size(512).in_memory().unwrap();
    let tx = db.begin_write().unwrap();
    drop(tx.create_untyped("t", key_type, "i32", options).unwrap());
    tx.commit().unwrap();
    for part in entries.chunks(500) {
        change(&db, key_type, part, &[]);
    }
    db
}

fn encoded(key_type: &str, key: u32) -> Vec<u8> {
    let text = if key_type.starts_with('i') { (i64::from(key) - 1000).to_string() } else { key.to_string() };
    key_type.parse::<DynType>().unwrap().encode_text(text.as_bytes()).unwrap()
}

fn change(db: &Database, key_type: &str, put: &[(u32, i32)], remove: &[u32]) {
    let tx = db.begin_write().unwrap();
    let mut table = tx.open_untyped("t").unwrap();
    for (key, value) in put {
        let mut bytes = Vec::new();
        i32::encode(value, &mut bytes);
        table.put(&encoded(key_type, *key), &bytes).unwrap();
    }
    remove.iter().for_each(|key| table.delete(&encoded(key_type, *key)).unwrap());
    drop(table);
    tx.commit().unwrap();
}

/// All keys and values of a snapshot, from a scan.
fn scan(tx: &ReadTransaction) -> Vec<(i128, i128)> {
    let table = tx.open_untyped("t").unwrap();
    let info = table.info();
    let key_type: DynType = info.key_type.parse().unwrap();
    let read = |of: &DynType, bytes: &[u8]| {
        let mut text = Vec::new();
        of.decode_text(bytes, &mut text).unwrap();
        String::from_utf8(text).unwrap().parse::<i128>().unwrap()
    };
    let value_type = "i32".parse().unwrap();
    let entries = table.range(..).map(|entry| entry.unwrap());
    entries.map(|(key, value)| (read(&key_type, &key), read(&value_type, &value))).collect()
}

fn number(outcome: &Outcome) -> Option<f64> {
    match outcome {
        Outcome::Number(number) => Some(number.to_f64()),
        Outcome::Nothing => None,
        Outcome::List(_) => panic!("{outcome:?}"),
    }
}

/// Computes all aggregates of the entries for which `keep` is true, and compares them with a scan.
fn compare(tx: &ReadTransaction, predicate: &str, threads: usize, keep: impl Fn(i128, i128) -> bool) {
    let rows: Vec<(i128, i128)> = scan(tx).into_iter().filter(|(key, value)| keep(*key, *value)).collect();
    let ask = |what: &str| {
        let text = format!("{what} FROM t {predicate}");
        text.parse::<Statement>().unwrap().threads(threads).run(tx).unwrap()
    };
    let all = ask(
        "COUNT(*), SUM(key), SUM(value), AVG(key), AVERAGE(value), MIN(key), MAX(key), MIN(value), MAX(value), COUNT(DISTINCT value), COUNT(DISTINCT key)",
    );
    let (keys, values): (Vec<i128>, Vec<i128>) = rows.iter().copied().unzip();
    let average = |of: &[i128]| (!of.is_empty()).then(|| of.iter().sum::<i128>() as f64 / of.len() as f64);
    let float = |number: Option<&i128>| number.map(|number| *number as f64);
    let different: BTreeSet<i128> = values.iter().copied().collect();
    let expected = [
        Some(rows.len() as f64),
        Some(keys.iter().sum::<i128>() as f64),
        Some(values.iter().sum::<i128>() as f64),
        average(&keys),
        average(&values),
        float(keys.iter().min()),
        float(keys.iter().max()),
        float(values.iter().min()),
        float(values.iter().max()),
        Some(different.len() as f64),
        Some(rows.len() as f64),
    ];
    assert_eq!(all.iter().map(number).collect::<Vec<_>>(), expected, "{predicate}");
    // A single aggregate may be computed in another way.
    assert_eq!(number(&ask("COUNT(*)")[0]), expected[0]);
    assert_eq!(number(&ask("SUM(key)")[0]), expected[1]);
    assert_eq!(ask("MIN(key), MAX(key)").iter().map(number).collect::<Vec<_>>(), expected[5..7]);
    let lists = ask("DISTINCT(value), TOP(key, 7), BOTTOM(key, 7), TOP(value, 3), BOTTOM(value, 900), DISTINCT(key)");
    let list = |outcome: &Outcome| match outcome {
        Outcome::List(numbers) => numbers.iter().map(|number| number.to_f64() as i128).collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    let mut sorted = values;
    sorted.sort_unstable();
    assert_eq!(list(&lists[0]), different.into_iter().collect::<Vec<_>>());
    assert_eq!(list(&lists[1]), keys.iter().rev().take(7).copied().collect::<Vec<_>>());
    assert_eq!(list(&lists[2]), keys.iter().take(7).copied().collect::<Vec<_>>());
    assert_eq!(list(&lists[3]), sorted.iter().rev().take(3).copied().collect::<Vec<_>>());
    assert_eq!(list(&lists[4]), sorted.iter().take(900).copied().collect::<Vec<_>>());
    assert_eq!(list(&lists[5]), keys);
}

fn compare_all(tx: &ReadTransaction, a: i128, b: i128) {
    compare(tx, "", 1, |_, _| true);
    compare(tx, "", 3, |_, _| true);
    compare(tx, &format!("WHERE key >= {a} AND key < {b}"), 2, |key, _| key >= a && key < b);
    compare(tx, &format!("WHERE NOT key <= {a}"), 1, |key, _| key > a);
    compare(tx, &format!("WHERE key > {a} and (value % 3 = 1 or not value in (5, 6, -7))"), 2, |key, value| {
        key > a && (value % 3 == 1 || ![5, 6, -7].contains(&value))
    });
    compare(tx, &format!("WHERE key = {b} OR key % 10 != 3 AND value <= 50.5"), 1, |key, value| {
        key == b || key % 10 != 3 && value <= 50
    });
}

fn options() -> impl Strategy<Value = TableOptions> {
    let blocks = prop::sample::select(Codec::ALL.to_vec());
    let blocks = blocks.prop_map(|codec| TableOptions { codec: Some(codec), ..TableOptions::default() });
    prop_oneof![4 => blocks, 1 => Just(TableOptions::default())]
}

fn entries(most: usize) -> impl Strategy<Value = Vec<(u32, i32)>> {
    let key = prop_oneof![4 => 0u32..3000, 1 => (0u32..50).prop_map(|n| n * 100_003)];
    prop::collection::vec((key, -100i32..100), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 40, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn a_query_finds_what_a_scan_finds_also_at_an_older_snapshot(
        key_type in prop::sample::select(vec!["u32", "u64", "i32", "i64", "u16"]),
        options in options(),
        first in entries(2500),
        later in entries(400),
        removed in prop::collection::vec(0u32..3000, 0..300),
        (a, b) in (-1200i128..3200, -1200i128..3200),
    ) {
        let narrow = key_type == "u16";
        let options = if narrow { TableOptions::default() } else { options };
        let fits = |entries: &[(u32, i32)]| entries.iter().filter(|e| !narrow || e.0 < 60_000).copied().collect::<Vec<_>>();
        let db = filled(key_type, options, &fits(&first));
        let before = db.begin_read().unwrap();
        compare_all(&before, a, b);
        let old = scan(&before);
        change(&db, key_type, &fits(&later), &removed);
        prop_assert_eq!(&scan(&before), &old);
        compare_all(&before, a, b);
        compare_all(&db.begin_read().unwrap(), a, b);
        let tx = db.begin_write().unwrap();
        let (from, to) = (encoded(key_type, 700), encoded(key_type, 2500));
        tx.open_untyped("t").unwrap().remove_range(from.as_slice()..to.as_slice());
        tx.commit().unwrap();
        compare_all(&before, a, b);
        compare_all(&db.begin_read().unwrap(), a, b);
    }

    #[test]
    fn any_text_gives_a_query_or_an_error(text in "[a-zA-Z(),*%<>=! 0-9\"-]{0,60}") {
        let _ = text.parse::<Statement>();
        let _ = format!("COUNT(*) FROM t WHERE {text}").parse::<Statement>();
    }
}

#[test]
fn an_error_in_a_text_has_its_position() {
    let db = filled("u32", TableOptions::default(), &[(1, 1)]);
    let tx = db.begin_write().unwrap();
    drop(tx.create_untyped("words", "str", "()", TableOptions::default()).unwrap());
    tx.commit().unwrap();
    let message = |text: &str| {
        let outcome = text.parse::<Statement>().and_then(|statement| statement.run(&db.begin_read().unwrap()));
        outcome.unwrap_err().to_string()
    };
    for (text, at, words) in [
        ("", 1, "expected COUNT, SUM"),
        ("SUM(key) FORM t", 10, "expected FROM, found \"FORM\""),
        ("SUM key) FROM t", 5, "expected \"(\""),
        ("SUM(kex) FROM t", 5, "expected key or value"),
        ("COUNT(*) FROM t WHERE key > ", 29, "expected a number, found the end"),
        ("COUNT(*) FROM t WHERE key ~ 3", 27, "'~' has no meaning"),
        ("COUNT(*) FROM t WHERE key % 0 = 1", 29, "above 0"),
        ("COUNT(*) FROM t WHERE key 3", 27, "expected a comparison"),
        ("COUNT(*) FROM t key", 17, "expected WHERE or the end"),
        ("TOP(key, 0) FROM t", 10, "whole number from 1"),
        ("COUNT(*), SUM(key) FROM words", 11, "have type str, which is not a number"),
        ("COUNT(*) FROM words WHERE value = 1", 27, "have type (), which is not a number"),
    ] {
        let message = message(text);
        assert!(message.contains(&format!("at character {at},")) && message.contains(words), "{text}: {message}");
    }
    assert!(message("COUNT(*) FROM nothing").contains("nothing"));
    let deep = format!("COUNT(*) FROM t WHERE {}key = 1{}", "(".repeat(10_000), ")".repeat(10_000));
    assert!(message(&deep).contains("nested more than 64 deep"));
}

#[test]
fn a_predicate_of_very_many_terms_is_parsed_and_run() {
    let db = filled("u32", TableOptions::default(), &[(5, 1), (6, 2), (99_999, 3)]);
    let tx = db.begin_read().unwrap();
    for (joint, compare, expected) in [("OR", "=", 2u128), ("AND", "!=", 1)] {
        let terms: Vec<String> = (6..100_006).map(|n| format!("value {compare} {}", n % 50_000 + 2)).collect();
        let text = format!("COUNT(*) FROM t WHERE {}", terms.join(&format!(" {joint} ")));
        let statement = text.parse::<Statement>().unwrap();
        let outcome = statement.clone().run(&tx).unwrap();
        assert_eq!(outcome, [Outcome::Number(Number::Unsigned(expected))], "{joint}");
    }
}

#[test]
fn every_nan_is_above_all_numbers() {
    const F: TableDef<u32, f64> = TableDef::new("t");
    let db = Database::in_memory().unwrap();
    let tx = db.begin_write().unwrap();
    for (key, value) in [1.5, f64::NAN, -f64::NAN, f64::INFINITY, -0.0].into_iter().enumerate() {
        tx.open_table(F).unwrap().put(key as u32, value).unwrap();
    }
    tx.commit().unwrap();
    let tx = db.begin_read().unwrap();
    let ask = |text: &str| text.parse::<Statement>().unwrap().run(&tx).unwrap();
    let found = ask("MIN(value), COUNT(DISTINCT value) FROM t");
    assert_eq!(found, [Outcome::Number(Number::Float(0.0)), Outcome::Number(Number::Unsigned(4))]);
    assert!(matches!(ask("MAX(value) FROM t")[..], [Outcome::Number(Number::Float(max))] if max.is_nan()));
    assert_eq!(ask("COUNT(*) FROM t WHERE value > 1e308"), [Outcome::Number(Number::Unsigned(3))]);
    assert_eq!(ask("COUNT(*) FROM t WHERE value = 0"), [Outcome::Number(Number::Unsigned(1))]);
}

#[test]
fn exponents_may_have_a_sign() {
    let db = Database::in_memory().unwrap();
    const F: TableDef<u32, f64> = TableDef::new("t");
    let tx = db.begin_write().unwrap();
    for (key, value) in [-2.5e-3, 1e-9, 0.5, 40.0].into_iter().enumerate() {
        tx.open_table(F).unwrap().put(key as u32, value).unwrap();
    }
    tx.commit().unwrap();
    let tx = db.begin_read().unwrap();
    for (than, count) in [("1e-5", 2), ("-1E-2", 4), ("4e+1", 0), ("4.0e1", 0), ("2.5e0", 1)] {
        let asked = format!("COUNT(*) FROM t WHERE value > {than}").parse::<Statement>().unwrap();
        assert_eq!(asked.run(&tx).unwrap(), [Outcome::Number(Number::Unsigned(count))], "{than}");
    }
    for wrong in ["1e-", "1e+x", "1-2", "1e5-2"] {
        assert!(format!("COUNT(*) FROM t WHERE value > {wrong}").parse::<Statement>().is_err(), "{wrong}");
    }
}

/// Tests keys, for which comparisons become ranges, and values, for which they do not.
#[test]
fn integers_are_compared_exactly_with_numbers_that_have_a_point_or_an_exponent() {
    const T: TableDef<u64, u64> = TableDef::new("t");
    let db = Database::in_memory().unwrap();
    let tx = db.begin_write().unwrap();
    let small = (1 << 53) - 1..=(1 << 53) + 2;
    let large = [10_000_000_000_000_000_000, 10_000_000_000_000_000_001, u64::MAX];
    for number in small.chain(large) {
        tx.open_table(T).unwrap().put(number, number).unwrap();
    }
    tx.commit().unwrap();
    let tx = db.begin_read().unwrap();
    for (asked, count) in [
        ("= 1e19", 1),
        ("> 1e19", 2),
        ("IN (9007199254740993.0, 1e19)", 2),
        ("= 9007199254740993.0", 1),
        ("= 9007199254740992.5", 0),
        ("!= 9007199254740992.5", 7),
        (">= 9007199254740992.5", 5),
        ("> 9007199254740992.5", 5),
        ("< 9007199254740992.5", 2),
        ("<= 9007199254740992.5", 2),
        ("< 18446744073709551615.5", 7),
        ("< 1.8446744073709551616e19", 7),
        ("<= 18446744073709551614.9", 6),
        ("< 1e300", 7),
        ("> -1e300", 7),
        ("> -0.5", 7),
    ] {
        for column in ["key", "value"] {
            let text = format!("COUNT(*) FROM t WHERE {column} {asked}");
            let found = text.parse::<Statement>().unwrap().run(&tx).unwrap();
            assert_eq!(found, [Outcome::Number(Number::Unsigned(count))], "{text}");
        }
    }
}

#[test]
fn the_memory_of_a_query_is_bounded_for_any_number_of_threads() {
    let entries: Vec<(u32, i32)> = (0..20_000u32).map(|key| (key, i32::try_from(key % 1000).unwrap())).collect();
    let db = filled("u32", TableOptions::default(), &entries);
    let tx = db.begin_read().unwrap();
    let run = |words: &str, threads, most| {
        let statement: Statement = format!("{words} FROM t").parse().unwrap();
        statement.threads(threads).max_numbers(most).run(&tx)
    };
    for threads in [1, 2, 7, 16] {
        for (words, needed) in [
            ("COUNT(DISTINCT value)", 1000),
            ("DISTINCT(value), SUM(key)", 1000),
            ("DISTINCT(key)", 20_000),
            ("TOP(value, 700), BOTTOM(key, 300)", 1000),
            ("TOP(key, 1000000)", 20_000),
        ] {
            assert!(run(words, threads, needed).is_ok(), "{words} by {threads}");
            let refused = run(words, threads, needed - 1);
            assert!(
                matches!(refused, Err(duramen_query::Error::Engine(duramen::Error::TooManyNumbers { max })) if max == needed - 1),
                "{words}"
            );
        }
        assert!(run("SUM(value), MIN(key), COUNT(DISTINCT key), COUNT(*)", threads, 0).is_ok());
    }
}

//! Tables with types that a program has defined: they are dumped, restored, and read as bytes.

use crate::place::Place;
use duramen::db::types::KeyLayout;
use duramen::{Database, Error, Key, TableDef, TableOptions, Value};

/// Values and keys of a type that this test alone knows.
struct Metres;

impl Value for Metres {
    type Ref<'a> = u16;
    type View<'a> = u16;

    fn type_name() -> String {
        "metres".to_owned()
    }
    fn fixed_width() -> Option<usize> {
        Some(2)
    }
    fn encode(value: &u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&value.to_be_bytes());
    }
    fn decode(bytes: &[u8]) -> Result<u16, &'static str> {
        bytes.try_into().map(u16::from_be_bytes).map_err(|_| "it has not two bytes")
    }
}

impl Key for Metres {}

#[test]
fn tables_of_a_programs_own_types_are_dumped_restored_and_read_as_bytes() {
    const HEIGHTS: TableDef<&str, Metres> = TableDef::new("heights");
    const BY_HEIGHT: TableDef<Metres, Option<u8>> = TableDef::new("by height").keys(KeyLayout::Fixed);
    let place = Place::new();
    let db = Database::create(place.path("t.duramen")).unwrap();
    let tx = db.begin_write().unwrap();
    {
        let (mut heights, mut by_height) = (tx.open_table(HEIGHTS).unwrap(), tx.open_table(BY_HEIGHT).unwrap());
        for metre in 0..3000u16 {
            heights.put(format!("tree {metre}").as_str(), 0x4100 + metre % 26).unwrap();
            by_height.put(metre, Some(7)).unwrap();
        }
    }
    tx.commit().unwrap();
    db.close().unwrap();

    place.ok("compact t.duramen -q", "");
    place.ok("dump t.duramen d -q", "");
    place.ok("dump t.duramen e --skip-damaged -q", "");
    place.ok("restore u.duramen d -q", "");
    place.ok("restore v.duramen e -q --page-size 16K", "");
    place.ok("restore w.duramen d -q --store shadow", "");
    place.ok("dump w.duramen f -q", "");
    place.ok("restore x.duramen f -q --store table", "");
    let tables = place.ok("tables t.duramen", "");
    for database in ["u.duramen", "v.duramen", "w.duramen", "x.duramen"] {
        assert_eq!(place.ok(&format!("tables {database}"), ""), tables);
        place.ok(&format!("check {database} -q"), "");
        let db = Database::open(place.path(database)).unwrap();
        let tx = db.begin_read().unwrap();
        let heights = tx.open_table(HEIGHTS).unwrap();
        assert_eq!((heights.len(), heights.get("tree 7").unwrap().unwrap().value()), (3000, 0x4107));
        let by_height = tx.open_table(BY_HEIGHT).unwrap();
        assert!(by_height.iter().map(|entry| entry.unwrap().0.value()).eq(0..3000));
    }
    assert_eq!(place.run_args(&["get", "u.duramen", "heights", "tree 25"], "").out, b"A\x19\n");
    assert_eq!(
        place.run_args(&["scan", "u.duramen", "by height", "--hex", "--limit", "2"], "").out,
        b"0000\t0107\n0001\t0107\n"
    );
    assert_eq!(place.run_args(&["scan", "u.duramen", "by height", "--from", "\x0b\x09", "--count"], "").out, b"175\n");
    assert_eq!(place.run_args(&["put", "u.duramen", "heights", "new", "BC"], "").status, 0);
    let refused = place.run_args(&["put", "u.duramen", "heights", "new", "BCD"], "");
    assert!(refused.status == 2 && refused.err.contains("metres"), "{}", refused.err);
    assert_eq!(
        place.run_args(&["get", "u.duramen", "heights", "new", "--hex"], "").status,
        2,
        "keys are hexadecimal, too"
    );
    assert_eq!(place.run_args(&["get", "u.duramen", "heights", "6e6577", "--hex"], "").out, b"4243\n");
    assert_eq!(place.run_args(&["del", "u.duramen", "by height", "\x0b\x09"], "").status, 0);
    place.ok("load u.duramen heights", "loaded\tXY\n");
    assert_eq!(place.ok("scan u.duramen heights --count", ""), "3002\n");
    assert!(place.error("load w.duramen t --value-type metres", "").contains("'metres'"), "a misspelt type");
    let sums = place.run_args(&["query", "u.duramen", "COUNT(value), SUM(value) FROM heights"], "");
    assert!(sums.status == 2 && sums.err.contains("metres"), "{}", sums.err);
}

/// A type of this test whose values are any bytes, under a name and with a width.
macro_rules! bytes_named {
    ($type:ident, $name:literal, $width:expr) => {
        struct $type;

        impl Value for $type {
            type Ref<'a> = &'a [u8];
            type View<'a> = &'a [u8];

            fn type_name() -> String {
                $name.to_owned()
            }
            fn fixed_width() -> Option<usize> {
                $width
            }
            fn encode(value: &&[u8], out: &mut Vec<u8>) {
                out.extend_from_slice(value);
            }
            fn decode(bytes: &[u8]) -> Result<&[u8], &'static str> {
                Ok(bytes)
            }
        }

        impl Key for $type {}
    };
}

bytes_named!(Height, "f64", Some(8));
bytes_named!(Age, "option<u8>", Some(2));
bytes_named!(Country, "str", Some(2));
bytes_named!(Feet, "feet", Some(2));

/// Checks that a restored dump of a database has the same tables and entries.
fn comes_back(place: &Place, tables: &[&str]) {
    place.ok("dump t.duramen d -q", "");
    place.ok("restore u.duramen d -q", "");
    assert_eq!(place.ok("tables u.duramen", ""), place.ok("tables t.duramen", ""));
    for table in tables {
        let [left, right] = ["t", "u"].map(|database| place.ok(&format!("scan {database}.duramen {table} --hex"), ""));
        assert!(left == right && !left.is_empty(), "{table}");
    }
}

#[test]
fn keys_of_a_type_that_orders_the_values_of_an_engines_type_come_back() {
    const HEIGHTS: TableDef<Height, &str> = TableDef::new("heights");
    const AGES: TableDef<Age, &str> = TableDef::new("ages");
    const COUNTRIES: TableDef<Country, Country> = TableDef::new("countries").keys(KeyLayout::Fixed);
    let place = Place::new();
    let db = Database::create(place.path("t.duramen")).unwrap();
    let tx = db.begin_write().unwrap();
    for height in [0.5f64, 40.0, 115.0] {
        tx.open_table(HEIGHTS).unwrap().put(height.to_be_bytes().as_slice(), "tree").unwrap();
    }
    tx.open_table(AGES).unwrap().put([1, 7].as_slice(), "seven").unwrap();
    tx.open_table(AGES).unwrap().put([0, 0].as_slice(), "none").unwrap();
    tx.open_table(COUNTRIES).unwrap().put(b"at".as_slice(), b"de".as_slice()).unwrap();
    tx.commit().unwrap();
    db.close().unwrap();
    comes_back(&place, &["heights", "ages", "countries"]);
    let db = Database::open(place.path("u.duramen")).unwrap();
    let tx = db.begin_write().unwrap();
    assert_eq!(tx.open_table(HEIGHTS).unwrap().len().unwrap(), 3);
    let mut countries = tx.open_table(COUNTRIES).unwrap();
    assert!(matches!(countries.put(b"aut".as_slice(), b"de".as_slice()), Err(Error::KeyLength { .. })));
}

#[test]
fn streamed_bytes_that_are_no_encoding_of_their_type_come_back() {
    let place = Place::new();
    let db = Database::create(place.path("t.duramen")).unwrap();
    let tx = db.begin_write().unwrap();
    let mut texts = tx.create_untyped("texts", "u32", "str", TableOptions::default()).unwrap();
    for (key, len) in [(1u32, 3), (2, 100_000)] {
        texts.put_stream(&key.to_be_bytes(), len, &mut std::io::repeat(0xFF)).unwrap();
    }
    drop(texts);
    tx.commit().unwrap();
    db.close().unwrap();
    comes_back(&place, &["texts"]);
}

#[test]
fn a_table_refuses_other_lengths_than_its_types_have() {
    const FEET: TableDef<Feet, Feet> = TableDef::new("feet");
    let place = Place::new();
    let db = Database::create(place.path("t.duramen")).unwrap();
    let tx = db.begin_write().unwrap();
    let mut feet = tx.open_table(FEET).unwrap();
    feet.put(b"12".as_slice(), b"34".as_slice()).unwrap();
    for wrong in [&b""[..], b"1", b"123"] {
        assert!(matches!(feet.put(wrong, b"34".as_slice()), Err(Error::KeyLength { expected: 2, .. })), "{wrong:?}");
        assert!(matches!(feet.put(b"12".as_slice(), wrong), Err(Error::NotEncoded { .. })), "{wrong:?}");
    }
    drop(feet);
    tx.commit().unwrap();
    db.close().unwrap();
    comes_back(&place, &["feet"]);
}

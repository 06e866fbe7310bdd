//! Promise: no interface stores bytes that are no value of a table's type. Names that a table cannot have are refused.

use duramen::base::limits::{MAX_KEY, MAX_TABLE_NAME};
use duramen::db::BulkTable;
use duramen::db::types::KeyLayout;
use duramen::{Database, Error, Result, TableDef, TableOptions};
use duramen_sim::FailingVolume;
use std::sync::Arc;

fn refused<T>(put: Result<T>, bad: &'static str) -> bool {
    matches!(put, Err(Error::NotEncoded { table, part, .. }) if table == "t" && part == bad)
}

#[test]
fn only_encodings_get_into_an_untyped_table() -> Result<()> {
    /// A type, an encoding of one of its values, and bytes that are none.
    type TypeExample = (&'static str, &'static [u8], &'static [u8]);
    let cases: [(TypeExample, TypeExample); 4] = [
        (("str", b"oak", b"o\xFFk"), ("u32", &[0, 0, 0, 7], &[7])),
        (("(str,u8)", b"oak\0\0\x07", b"oak"), ("bool", &[1], &[2])),
        (("u64", &[7; 8], &[7; 9]), ("()", b"", b"x")),
        (("[u8;3]", b"oak", b"oa"), ("option<u8>", &[1, 5], &[2, 5])),
    ];
    for ((key_type, key, bad_key), (value_type, value, bad_value)) in cases {
        let db = Database::in_memory()?;
        let tx = db.begin_write()?;
        let mut table = tx.create_untyped("t", key_type, value_type, TableOptions::default())?;
        table.put(key, value)?;
        assert!(refused(table.put(bad_key, value), "keys"), "{key_type}");
        assert!(refused(table.insert(bad_key, value), "keys"), "{key_type}");
        assert!(refused(table.delete(bad_key), "keys"), "{key_type}");
        assert!(refused(table.put(key, bad_value), "values"), "{value_type}");
        assert_eq!((table.len()?, table.get(key)?.as_deref()), (1, Some(value)));
        drop(table);
        tx.abort();
        let tx = db.begin_write()?;
        let mut bulk = tx.bulk_load("t", key_type, value_type, TableOptions::default(), 1.0)?;
        assert!(refused(bulk.push(bad_key, value), "keys"), "{key_type}");
        assert!(refused(bulk.push(key, bad_value), "values"), "{value_type}");
        bulk.push(key, value)?;
        assert_eq!(bulk.finish()?, 1);
    }
    Ok(())
}

/// The values are too long for a record list of fixed length.
#[test]
fn put_stream_refuses_values_of_a_wrong_length() -> Result<()> {
    let db = Database::in_memory()?;
    for (value_type, len) in [("[u8;100]", 100), ("option<[u8;64]>", 65), ("[u8;70000]", 70_000)] {
        let tx = db.begin_write()?;
        let mut table = tx.create_untyped("t", "str", value_type, TableOptions::default())?;
        let value = vec![1; len];
        for bad in [5, len - 1, len + 1] {
            let bytes = vec![1; bad];
            assert!(refused(table.put_stream(b"oak", bad as u64, &mut bytes.as_slice()), "values"), "{value_type}");
        }
        table.put_stream(b"oak", len as u64, &mut value.as_slice())?;
        assert_eq!((table.get(b"oak")?, table.len()?), (Some(value), 1));
        drop(table);
        tx.abort();
    }
    Ok(())
}

#[test]
fn a_table_whose_keys_are_too_long_for_a_list_of_one_length_is_refused() -> Result<()> {
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    for len in [MAX_KEY + 1, 70_000] {
        let options = TableOptions { keys: Some(KeyLayout::Fixed), ..TableOptions::default() };
        let refused = tx.create_untyped("big", &format!("[u8;{len}]"), "()", options).map(drop);
        assert!(matches!(refused, Err(Error::Option { option: "keys", .. })), "{refused:?}");
    }
    tx.create_untyped("longest", &format!("[u8;{MAX_KEY}]"), "()", TableOptions::default())?;
    tx.commit()?;
    assert_eq!(db.begin_read()?.tables()?.len(), 1);
    Ok(())
}

#[test]
fn a_refused_large_value_of_a_bulk_load_leaves_no_pages() -> Result<()> {
    let folder = tempfile::tempdir().unwrap();
    let db = Database::create(folder.path().join("t.duramen"))?;
    let tx = db.begin_write()?;
    let mut bulk = tx.bulk_load("t", "bytes", "bytes", TableOptions::default(), 1.0)?;
    bulk.push(b"b", b"x")?;
    assert!(matches!(bulk.push(b"a", &[7; 100_000]), Err(Error::Unsorted { .. })));
    assert_eq!(bulk.finish()?, 1);
    tx.commit()?;
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

#[test]
fn a_bulk_load_does_not_continue_after_a_failed_write() -> Result<()> {
    let volume = FailingVolume::new(1);
    let db = Database::builder().background(false).create_on(Arc::new(volume.clone()), "t.duramen")?;
    let tx = db.begin_write()?;
    let mut bulk = tx.bulk_load("t", "u64", "bytes", TableOptions::default(), 1.0)?;
    volume.limit_space(Some(4 << 20));
    let push = |bulk: &mut BulkTable<'_>, key: u64| bulk.push(&key.to_be_bytes(), &[7; 100]);
    let full = (0..1_000_000u64).find(|key| push(&mut bulk, *key).is_err()).expect("the device is full");
    volume.limit_space(None);
    assert!(matches!(push(&mut bulk, full), Err(Error::TableState { .. })));
    assert!(matches!(bulk.finish(), Err(Error::TableState { .. })));
    assert!(matches!(tx.commit(), Err(Error::TableState { .. })));
    let tx = db.begin_write()?;
    let mut bulk = tx.bulk_load("t", "u64", "bytes", TableOptions::default(), 1.0)?;
    (0..1000).try_for_each(|key| push(&mut bulk, key))?;
    bulk.finish()?;
    tx.commit()?;
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

#[test]
fn an_empty_or_too_long_table_name_is_refused() -> Result<()> {
    let tx = Database::in_memory()?.begin_write()?;
    for bad in [String::new(), "t".repeat(MAX_TABLE_NAME + 1)] {
        let options = TableOptions::default;
        assert!(matches!(tx.create_untyped(&bad, "str", "str", options()), Err(Error::Option { .. })));
        assert!(matches!(tx.bulk_load(&bad, "str", "str", options(), 1.0), Err(Error::Option { .. })));
        tx.open_table(TableDef::<&str, &str>::new("t"))?;
        assert!(matches!(tx.rename_table("t", &bad), Err(Error::Option { .. })));
    }
    assert!(matches!(tx.open_table(TableDef::<&str, &str>::new("")), Err(Error::Option { .. })));
    let longest = "t".repeat(MAX_TABLE_NAME);
    tx.rename_table("t", &longest)?;
    tx.commit()
}

/// Long values beside a list of short ones of one length; streams and large pages' tables, too, keep to it.
#[test]
fn a_short_streamed_value_is_stored_inline() -> Result<()> {
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    let mut table = tx.create_untyped("t", "str", "u64", TableOptions::default())?;
    table.put_stream(b"oak", 8, &mut [7; 8].as_slice())?;
    assert!(refused(table.put_stream(b"elm", 9, &mut [7; 9].as_slice()), "values"));
    assert!(table.put_stream(b"elm", 8, &mut [7; 3].as_slice()).is_err(), "the stream is too short");
    assert_eq!((table.get(b"oak")?, table.len()?), (Some(vec![7; 8]), 1));
    drop(table);
    tx.commit()?;
    db.begin_write()?.open_table(TableDef::<&str, u64>::new("t"))?.put("yew", 3000)
}

#[test]
fn values_as_wide_as_small_pages_allow_are_kept_beside_the_longest_keys() -> Result<()> {
    for page_size in [256, 512, 1024] {
        let db = Database::builder().page_size(page_size).in_memory()?;
        for width in [1, 12, 13, 24, 25, 40, 64] {
            let tx = db.begin_write()?;
            let mut table =
                tx.create_untyped(&format!("t{width}"), "bytes", &format!("[u8;{width}]"), TableOptions::default())?;
            for len in 0..page_size {
                table.put(&vec![b'k'; len], &vec![len as u8; width])?;
            }
            drop(table);
            tx.commit()?;
        }
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    Ok(())
}

/// A type of a program's own, of which only that program knows how long its values are.
struct Own;

impl duramen::Value for Own {
    type Ref<'a> = u16;
    type View<'a> = u16;

    fn type_name() -> String {
        "own".to_owned()
    }
    fn fixed_width() -> Option<usize> {
        Some(2)
    }
    fn encode(value: &u16, out: &mut Vec<u8>) {
        out.extend_from_slice(&value.to_le_bytes());
    }
    fn decode(bytes: &[u8]) -> std::result::Result<u16, &'static str> {
        bytes.try_into().map(u16::from_le_bytes).map_err(|_| "it has not two bytes")
    }
}

impl duramen::Key for Own {}

#[test]
fn any_bytes_of_the_right_length_are_values_of_a_programs_own_type() -> Result<()> {
    const OWN: TableDef<&str, Own> = TableDef::new("t");
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    tx.open_table(OWN)?.put("oak", 700)?;
    let mut untyped = tx.open_untyped("t")?;
    assert_eq!(untyped.get(b"oak")?, Some(700u16.to_le_bytes().to_vec()));
    for wrong in [&[1, 2, 3][..], &[1], &[]] {
        assert!(matches!(untyped.put(b"elm", wrong), Err(Error::NotEncoded { .. })), "{wrong:?}");
    }
    assert!(matches!(untyped.put(b"\xFF", &[1, 2]), Err(Error::NotEncoded { .. })), "keys are text");
    untyped.put(b"elm", &[1, 2])?;
    untyped.put_stream(b"yew", 2, &mut &[3, 0][..])?;
    drop(untyped);
    tx.commit()?;
    let table = db.begin_read()?.open_table(OWN)?;
    assert_eq!((table.len(), table.get("elm")?.map(|own| own.value())), (3, Some(0x201)));
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

/// A table of a program's own types that is made by their names opens under them, whatever keeps its keys, and its keys
/// stay in the order of their bytes.
#[test]
fn a_table_made_by_the_names_of_a_programs_own_types_opens_under_them() -> Result<()> {
    let widths = TableOptions { key_width: Some(2), value_width: Some(2), ..TableOptions::default() };
    let fixed = TableOptions { keys: Some(duramen::db::types::KeyLayout::Fixed), ..widths };
    for (what, options) in [("unknown widths", TableOptions::default()), ("widths", widths), ("fixed keys", fixed)] {
        let db = Database::in_memory()?;
        let tx = db.begin_write()?;
        let mut bulk = tx.bulk_load("bulk", "own", "own", options, 1.0)?;
        let mut table = tx.create_untyped("t", "own", "own", options)?;
        for key in 0..2000u16 {
            bulk.push(&key.to_be_bytes(), &[1, 2])?;
            table.put(&(1999 - key).to_be_bytes(), &[1, 2])?;
        }
        if options.key_width.is_some() {
            assert!(matches!(table.put(b"oak", &[1, 2]), Err(Error::NotEncoded { .. })), "{what}");
            assert!(matches!(bulk.push(b"\xFF\xFF", &[1]), Err(Error::NotEncoded { .. })), "{what}");
        }
        drop(table);
        bulk.finish()?;
        tx.commit()?;
        db.compact(|_| ())?;
        for name in ["bulk", "t"] {
            let typed: TableDef<Own, Own> = TableDef::new(name);
            let tx = db.begin_write()?;
            tx.open_table(typed)?.put(u16::from_le_bytes([0, 7]), 9)?;
            tx.commit()?;
            let tx = db.begin_read()?;
            let table = tx.open_table(typed)?;
            let keys: Vec<u16> =
                table.iter().map(|e| e.map(|(key, _)| key.value().swap_bytes())).collect::<Result<_>>()?;
            assert!(keys.into_iter().eq(0..2000), "{what}");
            assert_eq!(table.get(u16::from_le_bytes([0, 7]))?.map(|own| own.value()), Some(9), "{what}");
            let salvaged = tx.open_untyped(name)?;
            let (mut salvage, mut entries) = (salvaged.salvage(..), 0);
            while salvage.next_with(|_, _| ())?.is_some() {
                entries += 1;
            }
            assert_eq!(entries, 2000);
        }
        assert_eq!(db.verify(|_| ())?.findings, []);
    }
    Ok(())
}

#[test]
fn widths_are_for_types_of_a_programs_own() -> Result<()> {
    let db = Database::in_memory()?;
    let tx = db.begin_write()?;
    let widths = TableOptions { key_width: Some(4), value_width: Some(3), ..TableOptions::default() };
    drop(tx.create_untyped("own values", "u32", "own", widths)?);
    assert!(matches!(tx.create_untyped("t", "u64", "own", widths), Err(Error::Option { option: "key_width", .. })));
    assert!(matches!(tx.create_untyped("t", "u32", "str", widths), Err(Error::Option { option: "value_width", .. })));
    assert!(matches!(tx.create_untyped("t", "f64", "own", widths), Err(Error::Option { option: "key type", .. })));
    // With a name of any length, there is a table or an error that says why not.
    for len in [10, 1000, 3000, 5000, 100_000] {
        let name = "long".repeat(len / 4);
        match tx.create_untyped(&format!("t{len}"), &name, &name, TableOptions::default()) {
            Ok(mut table) => table.put(b"oak", b"7")?,
            Err(error) => assert!(len >= 1000 && error.to_string().contains("name"), "{len}: {error}"),
        }
    }
    tx.commit()?;
    assert_eq!(db.verify(|_| ())?.findings, []);
    Ok(())
}

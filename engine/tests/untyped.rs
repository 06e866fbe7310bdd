//! Promise: bytes that no value of a table's type has do not get into it, whichever way they come, and names that no table
//! can have are refused.

use duramen::base::limits::MAX_TABLE_NAME;
use duramen::{Database, Error, Result, TableDef, TableOptions};

fn refused<T>(put: Result<T>, bad: &'static str) -> bool {
    matches!(put, Err(Error::NotEncoded { table, part, .. }) if table == "t" && part == bad)
}

#[test]
fn only_encodings_get_into_an_untyped_table() -> Result<()> {
    let cases: [(&str, &[u8], &[u8], &str, &[u8], &[u8]); 4] = [
        ("str", b"oak", b"o\xFFk", "u32", &[0, 0, 0, 7], &[7]),
        ("(str,u8)", b"oak\0\0\x07", b"oak", "bool", &[1], &[2]),
        ("u64", &[7; 8], &[7; 9], "()", b"", b"x"),
        ("[u8;3]", b"oak", b"oa", "option<u8>", &[1, 5], &[2, 5]),
    ];
    for (key_type, key, bad_key, value_type, value, bad_value) in cases {
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

#[test]
fn a_table_needs_a_name_of_bearable_length() -> Result<()> {
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

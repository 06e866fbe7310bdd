//! Promise: if one read of the device returns wrong bytes, and later ones the right bytes, then no commit is lost.

use duramen::{Builder, Database, Durability, Result, TableDef};
use duramen_sim::{Cut, CutChoice, FailingVolume, Fault, Trigger};
use std::sync::Arc;

const NAME: &str = "t.duramen";
const TABLE: TableDef<u32, &[u8]> = TableDef::new("t");
const KEYS: u32 = 600;

fn options() -> Builder {
    Database::builder().page_size(4096).cache(0).checkpoint_bytes(1 << 40).background(false)
}

fn put(db: &Database, value: u8) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Commit);
    let mut table = tx.open_table(TABLE)?;
    (0..KEYS).try_for_each(|key| table.put(key, [value; 200].as_slice()))?;
    drop(table);
    tx.commit()
}

#[test]
fn a_read_that_returns_wrong_bytes_once_loses_no_commit() -> Result<()> {
    let volume = FailingVolume::new(1);
    let db = options().create_on(Arc::new(volume.clone()), NAME)?;
    put(&db, 1)?;
    db.checkpoint()?;
    put(&db, 2)?;
    let killed = Cut { event: volume.events(), choice: CutChoice::KeepAll };
    let (mut refused, mut opened) = (0, 0);
    for calls in 0.. {
        let next = volume.crash(killed);
        let open = || options().open_on(Arc::new(next.clone()), NAME);
        next.inject(Fault::SpoilRead, Trigger::once().after(calls).on_file(NAME));
        match open().and_then(Database::close) {
            Ok(()) => opened += 1,
            Err(_) => refused += 1,
        }
        let struck = next.struck(Fault::SpoilRead) > 0;
        next.inject(Fault::SpoilRead, Trigger::never());
        let db = open()?;
        assert_eq!(db.verify(|_| ())?.findings, [], "read {calls}");
        let table = db.begin_read()?.open_table(TABLE)?;
        assert_eq!(table.len(), u64::from(KEYS));
        for entry in table.range(..) {
            let (key, value) = entry?;
            assert_eq!(value.value(), [2; 200], "key {}: its commit is lost after read {calls}", key.value());
        }
        if !struck {
            break;
        }
    }
    assert!(refused > 10 && opened > 1, "{refused} openings were refused, and {opened} were not");
    Ok(())
}

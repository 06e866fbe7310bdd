//! Promise: a page that a recovery cannot read costs nothing if the log replaces its whole content later, also if the
//! power goes at any moment of that recovery.

use crate::workload::stores::STORES;
use duramen::io::{OpenMode, Volume};
use duramen::{Builder, Database, Durability, Result, TableDef};
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::sync::Arc;

const NAME: &str = "t.duramen";
const TABLE: TableDef<u32, &[u8]> = TableDef::new("t");
const KEYS: u32 = 200;

fn options() -> Builder {
    Database::builder().page_size(4096).cache(0).checkpoint_bytes(1 << 40).background(false)
}

fn put(db: &Database, keys: std::ops::Range<u32>) -> Result<()> {
    let mut tx = db.begin_write()?;
    tx.set_durability(Durability::Commit);
    let mut table = tx.open_table(TABLE)?;
    keys.into_iter().try_for_each(|key| table.put(key, [0x5c; 100].as_slice()))?;
    drop(table);
    tx.commit()
}

/// Where the file has the values of the only leaf.
fn place_of_leaf(volume: &FailingVolume) -> Result<u64> {
    let file = volume.open(NAME, OpenMode::Read)?;
    let mut bytes = vec![0; usize::try_from(file.size()?).unwrap()];
    file.read_at(0, &mut bytes)?;
    Ok(bytes.windows(100).rposition(|window| window == [0x5c; 100]).expect("a value") as u64)
}

/// The log changes a root that is a leaf, and then makes it an inner page.
#[test]
fn a_damaged_page_that_the_log_formats_anew_is_recovered_whenever_the_power_goes() -> Result<()> {
    for store in STORES {
        let volume = FailingVolume::new(1);
        let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
        put(&db, 0..10)?;
        db.checkpoint()?;
        let leaf = place_of_leaf(&volume)?;
        put(&db, 10..12)?;
        put(&db, 12..KEYS)?;
        let damaged = volume.crash(Cut { event: volume.events(), choice: CutChoice::DropUnsynced });
        damaged.flip_bits(NAME, leaf, 0xff)?;
        let begun = damaged.events();
        let open = |volume: &FailingVolume| options().open_on(Arc::new(volume.clone()), NAME);
        open(&damaged)?.close()?;
        assert!(damaged.events() > begun + 10, "{store}: nothing was recovered");
        for event in begun..=damaged.events() {
            for choice in [CutChoice::DropUnsynced, CutChoice::KeepAll, CutChoice::Random(event as u64)] {
                let what = format!("{store}, {choice:?} after {}", damaged.describe(event));
                let db = open(&damaged.crash(Cut { event, choice })).unwrap_or_else(|error| panic!("{what}: {error}"));
                let table = db.begin_read()?.open_table(TABLE)?;
                assert_eq!(table.iter().filter(Result::is_ok).count(), KEYS as usize, "{what}");
                assert_eq!(db.verify(|_| ())?.findings, [], "{what}");
            }
        }
    }
    Ok(())
}

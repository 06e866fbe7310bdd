//! Promise: a page that a recovery cannot read costs nothing if the log replaces its whole content later, also if the
//! power goes at any moment of that recovery.

use crate::one_table::{NAME, TABLE, options, put};
use crate::workload::files::bytes_of;
use crate::workload::stores::STORES;
use duramen::Result;
use duramen_sim::{Cut, CutChoice, FailingVolume};
use std::sync::Arc;

const KEYS: u32 = 200;
const VALUE: [u8; 100] = [0x5c; 100];

/// Where the file has the values of the only leaf.
fn place_of_leaf(volume: &FailingVolume) -> Result<u64> {
    Ok(bytes_of(volume, NAME)?.windows(100).rposition(|window| window == VALUE).expect("a value") as u64)
}

/// The log changes a root that is a leaf, and then makes it an inner page.
#[test]
fn a_damaged_page_that_the_log_formats_anew_is_recovered_whenever_the_power_goes() -> Result<()> {
    for store in STORES {
        let volume = FailingVolume::new(1);
        let db = options().store(store).create_on(Arc::new(volume.clone()), NAME)?;
        put(&db, 0..10, &VALUE)?;
        db.checkpoint()?;
        let leaf = place_of_leaf(&volume)?;
        put(&db, 10..12, &VALUE)?;
        put(&db, 12..KEYS, &VALUE)?;
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

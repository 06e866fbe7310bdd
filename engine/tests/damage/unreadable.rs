//! Promise: a part of the file that the device cannot read is treated as a damaged one. Removals beside it or of it do
//! not stop all writing.

use crate::beside::{killed_in_a_large_transaction, new_or_lost};
use crate::hostile::{NAME, TABLE, options, put};
use crate::workload::files::bytes_of;
use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::{Builder, Database, Error, Result, TableDef};
use duramen_sim::{FailingVolume, HookedVolume, Hooks};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const ENTRIES: u32 = 3000;
const LARGE: TableDef<u32, &[u8]> = TableDef::new("large");

/// The byte of the file that cannot be read; `u64::MAX` if there is none.
#[derive(Debug)]
struct BadByte(AtomicU64);

impl Hooks for BadByte {
    fn before_read(&self, name: &str, offset: u64, len: usize) -> Result<()> {
        let bad = self.0.load(Ordering::SeqCst);
        if name != NAME || !(offset..offset + len as u64).contains(&bad) {
            return Ok(());
        }
        let source = std::io::Error::other("a bad sector");
        Err(Error::Io { action: "cannot read", path: NAME.into(), source })
    }
}

/// A device with one byte that cannot be read.
struct Device {
    volume: Arc<HookedVolume<BadByte>>,
    bad: Arc<BadByte>,
}

impl Device {
    /// A closed database that `fill` has filled, on a device that cannot read the first place of `marker`.
    fn new(store: StoreKind, marker: &[u8], fill: impl Fn(&Database) -> Result<()>) -> Result<Device> {
        let bad = Arc::new(BadByte(AtomicU64::new(u64::MAX)));
        let volume = Arc::new(HookedVolume::new(Arc::new(FailingVolume::new(1)), bad.clone()));
        let db = Device::options().store(store).create_on(volume.clone(), NAME)?;
        fill(&db)?;
        db.close()?;
        let bytes = bytes_of(&*volume, NAME)?;
        let at = bytes.windows(marker.len()).position(|window| window == marker).expect("the marker in the file");
        bad.0.store(at as u64, Ordering::SeqCst);
        Ok(Device { volume, bad })
    }

    fn options() -> Builder {
        options().superseded_bytes(u64::MAX)
    }

    fn open(&self) -> Result<Database> {
        Device::options().open_on(self.volume.clone(), NAME)
    }

    /// Writes, closes, opens and writes again.
    fn goes_on(&self, db: Database) -> Result<()> {
        assert_ne!(self.bad.0.load(Ordering::SeqCst), u64::MAX);
        let mut open = Some(db);
        for _ in 0..2 {
            let db = open.take().map_or_else(|| self.open(), Ok)?;
            while db.maintain()? {}
            let tx = db.begin_write()?;
            tx.open_table(TableDef::<u32, &str>::new("other"))?.put(1, "an entry")?;
            tx.commit()?;
            db.close()?;
        }
        Ok(())
    }
}

/// A table with a leaf that cannot be read.
fn with_a_bad_leaf(store: StoreKind) -> Result<Device> {
    Device::new(store, format!("the value of {:08}", ENTRIES / 2).as_bytes(), |db| put(db, 0..ENTRIES))
}

#[test]
fn a_table_with_an_unreadable_leaf_is_dropped() -> Result<()> {
    for store in STORES {
        let device = with_a_bad_leaf(store)?;
        let db = device.open()?;
        let tx = db.begin_write()?;
        assert!(tx.drop_table("t")?);
        tx.commit()?;
        device.goes_on(db)?;
    }
    Ok(())
}

#[test]
fn entries_beside_an_unreadable_leaf_are_removed() -> Result<()> {
    for store in STORES {
        let device = with_a_bad_leaf(store)?;
        let db = device.open()?;
        let mut removed = 0;
        for key in (0..ENTRIES).filter(|key| key % 50 > 0) {
            let tx = db.begin_write()?;
            match tx.open_table(TABLE)?.remove(key) {
                Err(Error::Io { .. }) => continue,
                found => assert!(found?.is_some(), "{store}, key {key}"),
            }
            match tx.commit() {
                Err(Error::Io { .. }) => {}
                committed => {
                    committed.unwrap_or_else(|error| panic!("{store}, key {key}: {error}"));
                    removed += 1;
                }
            }
        }
        assert!(removed > ENTRIES / 2, "{store}: {removed}");
        device.goes_on(db)?;
    }
    Ok(())
}

/// The process dies in the middle of a large transaction, and the device cannot read a leaf that the rest of the
/// transaction changes. A later opening may be able to read the leaf.
#[test]
fn an_opening_that_must_change_an_unreadable_leaf_fails_and_keeps_the_log() -> Result<()> {
    let marker = format!("the value of {:08}", ENTRIES - 100);
    for store in STORES {
        let mut failed = 0;
        for (event, state) in killed_in_a_large_transaction(store)? {
            let at = bytes_of(&state, NAME)?.windows(marker.len()).position(|window| window == marker.as_bytes());
            let bad = Arc::new(BadByte(AtomicU64::new(at.expect("the old value in the file") as u64)));
            let device = Device { volume: Arc::new(HookedVolume::new(Arc::new(state), bad.clone())), bad };
            let is_refused = match device.open() {
                Err(Error::Io { .. }) => true,
                opened => opened.map(|_| false)?,
            };
            device.bad.0.store(u64::MAX, Ordering::SeqCst);
            let db = device.open()?;
            let what = format!("{store}, cut at {event}");
            assert_eq!(new_or_lost(&db, &what)?, 0, "{what}");
            if is_refused {
                failed += 1;
                assert_eq!(db.begin_read()?.open_table(TABLE)?.len(), 2 * u64::from(ENTRIES), "{what}");
            }
        }
        assert!(failed > 2, "{store}: {failed}");
    }
    Ok(())
}

#[test]
fn a_large_value_with_an_unreadable_page_is_removed() -> Result<()> {
    for store in STORES {
        let value = [&[b'v'; 9000][..], b"TAILMARK", &[b'w'; 9000]].concat();
        let device = Device::new(store, b"TAILMARK", |db| {
            let tx = db.begin_write()?;
            tx.open_table(LARGE)?.put(7, value.as_slice())?;
            tx.commit()
        })?;
        let db = device.open()?;
        let tx = db.begin_write()?;
        tx.open_table(LARGE)?.untyped().delete(&7u32.to_be_bytes())?;
        tx.commit().unwrap_or_else(|error| panic!("{store}: {error}"));
        device.goes_on(db)?;
    }
    Ok(())
}

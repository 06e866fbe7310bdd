//! Promise: operations that read many pages hint early to the device which ones, so that it can read them together.
//! They give no hints for pages in the cache, and a read of a single key gives none.

use crate::workload::killed::killed;
use crate::workload::stores::STORES;
use duramen::db::StoreKind;
use duramen::io::MemoryVolume;
use duramen::{Builder, Database, Result, TableDef};
use duramen_sim::{HookedVolume, Hooks};
use std::sync::{Arc, Mutex};

const NAME: &str = "forest";
const TABLE: TableDef<u32, &[u8]> = TableDef::new("trees");
const ENTRIES: u32 = 20_000;

/// The reads of the database file, and which of them were hinted before.
#[derive(Debug, Default)]
struct Watch {
    hinted: Mutex<Vec<(u64, u64)>>,
    /// Reads, and those of them inside a hint.
    reads: Mutex<(usize, usize)>,
    /// Hinted bytes when the first of them were read: so much the device can read together.
    together: Mutex<Option<u64>>,
    /// Hinted bytes that were read.
    used: Mutex<u64>,
    /// Bytes that were hinted and not yet read, at each read.
    ahead: Mutex<Vec<u64>>,
}

impl Hooks for Watch {
    fn before_read(&self, name: &str, offset: u64, len: usize) -> Result<()> {
        if name == NAME {
            let inside = |&(from, to): &(u64, u64)| from <= offset && offset + len as u64 <= to;
            let hints = self.hinted.lock().unwrap();
            let hinted = hints.iter().any(inside);
            if hinted {
                self.together.lock().unwrap().get_or_insert(hints.iter().map(|(from, to)| to - from).sum());
            }
            let all: u64 = hints.iter().map(|(from, to)| to - from).sum();
            let mut used = self.used.lock().unwrap();
            *used += if hinted { len as u64 } else { 0 };
            self.ahead.lock().unwrap().push(all.saturating_sub(*used));
            let mut reads = self.reads.lock().unwrap();
            *reads = (reads.0 + 1, reads.1 + usize::from(hinted));
        }
        Ok(())
    }

    fn will_read(&self, name: &str, offset: u64, len: u64) -> bool {
        assert_eq!(name, NAME);
        self.hinted.lock().unwrap().push((offset, offset + len));
        true
    }
}

impl Watch {
    /// Runs `work` and gives its result, how many reads it made, how many of them were hinted, and how many hints.
    fn during<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<(T, usize, usize, usize)> {
        self.hinted.lock().unwrap().clear();
        *self.reads.lock().unwrap() = (0, 0);
        *self.used.lock().unwrap() = 0;
        self.ahead.lock().unwrap().clear();
        let result = work()?;
        let (reads, hinted) = *self.reads.lock().unwrap();
        Ok((result, reads, hinted, self.hinted.lock().unwrap().len()))
    }
}

fn options(cache: usize) -> Builder {
    Database::builder().page_size(4096).cache(cache).background(false).checkpoint_bytes(1 << 30)
}

/// Keys in an order without order, as far as 1 in `of` of them.
fn put(db: &Database, of: u32, value: u8) -> Result<()> {
    let tx = db.begin_write()?;
    let mut table = tx.open_table(TABLE)?;
    let mut keys = (0..ENTRIES).map(|n| n * 7919 % ENTRIES).filter(|key| key % of == 0);
    keys.try_for_each(|key| table.put(key, [value; 100].as_slice()))?;
    drop(table);
    tx.commit()
}

/// A database whose leaves are not in the order of their keys.
fn built(store: StoreKind) -> Result<Arc<MemoryVolume>> {
    let volume = Arc::new(MemoryVolume::new());
    let db = options(1 << 20).store(store).create_on(volume.clone(), NAME)?;
    (1..=3).try_for_each(|of| put(&db, 4 - of, 1))?;
    db.close()?;
    Ok(volume)
}

fn watched(volume: Arc<MemoryVolume>) -> (Arc<HookedVolume<Watch>>, Arc<Watch>) {
    let watch = Arc::new(Watch::default());
    (Arc::new(HookedVolume::new(volume, watch.clone())), watch)
}

#[test]
fn a_scan_a_check_and_a_commit_hint_the_pages_that_they_read() -> Result<()> {
    STORES.into_iter().try_for_each(hint_pages_to_read)
}

fn hint_pages_to_read(store: StoreKind) -> Result<()> {
    let (volume, watch) = watched(built(store)?);
    let db = options(1 << 16).open_on(volume.clone(), NAME)?;
    let scan = || Ok(db.begin_read()?.open_table(TABLE)?.iter().filter(Result::is_ok).count());
    let (entries, reads, hinted, _) = watch.during(scan)?;
    assert_eq!(entries, ENTRIES as usize);
    assert!(reads > 500 && hinted * 10 > reads * 9, "{store:?}, scan: {hinted} of {reads} reads were hinted");
    let (report, reads, hinted, _) = watch.during(|| db.verify(|_| ()))?;
    assert_eq!(report.findings, []);
    assert!(reads > 500 && hinted * 10 > reads * 9, "{store:?}, verify: {hinted} of {reads} reads were hinted");
    drop(db);
    let db = options(64 << 20).open_on(volume, NAME)?;
    let (_, reads, hinted, _) = watch.during(|| put(&db, 50, 2))?;
    assert!(reads > 300 && hinted * 10 > reads * 9, "{store:?}, commit: {hinted} of {reads} reads were hinted");
    Ok(())
}

#[test]
fn a_long_scan_always_has_hinted_leaves_ahead() -> Result<()> {
    let (volume, watch) = watched(built(StoreKind::Table)?);
    let db = options(1 << 16).open_on(volume, NAME)?;
    let (_, reads, ..) =
        watch.during(|| Ok(db.begin_read()?.open_table(TABLE)?.iter().filter(Result::is_ok).count()))?;
    let ahead = watch.ahead.lock().unwrap();
    // After the first hints, which are short, and before the last ones. A leaf has more than 1 KiB.
    let least = ahead[reads / 4..reads * 3 / 4].iter().min().unwrap();
    assert!(*least > 20 << 10, "{least} bytes");
    let early = ahead[..12].iter().max().unwrap();
    assert!(*early < 100 << 10, "{early} bytes after a few leaves");
    Ok(())
}

#[test]
fn cached_pages_and_short_scans_give_no_hints() -> Result<()> {
    STORES.into_iter().try_for_each(hint_nothing)
}

fn hint_nothing(store: StoreKind) -> Result<()> {
    let (volume, watch) = watched(built(store)?);
    let db = options(64 << 20).open_on(volume, NAME)?;
    let tx = db.begin_read()?;
    let table = tx.open_table(TABLE)?;
    let (_, reads, _, hints) = watch.during(|| table.get(77).map(drop))?;
    assert!(reads > 0 && hints == 0, "{reads} reads of one key, {hints} hints");
    let (_, reads, _, hints) = watch.during(|| table.range(5000..).take(30).try_for_each(|entry| entry.map(drop)))?;
    assert!(reads > 0 && hints == 0, "{reads} reads of a short scan, {hints} hints");
    let all = || table.iter().try_for_each(|entry| entry.map(drop));
    all()?;
    let (_, reads, _, hints) = watch.during(all)?;
    assert_eq!((reads, hints), (0, 0));
    let (_, reads, _, hints) = watch.during(|| put(&db, 50, 2))?;
    assert_eq!((reads, hints), (0, 0));
    Ok(())
}

#[test]
fn recovery_hints_the_pages_that_the_log_changes() -> Result<()> {
    STORES.into_iter().try_for_each(hint_recovery)
}

fn hint_recovery(store: StoreKind) -> Result<()> {
    let memory = built(store)?;
    let db = options(64 << 20).open_on(memory.clone(), NAME)?;
    (0..5).try_for_each(|value| put(&db, 7, value))?;
    let (volume, watch) = watched(killed(&memory, NAME)?);
    let (db, reads, hinted, _) = watch.during(|| options(64 << 20).open_on(volume, NAME))?;
    assert!(reads > 300 && hinted * 10 > reads * 8, "{store:?}, recovery: {hinted} of {reads} reads were hinted");
    let together = watch.together.lock().unwrap().unwrap();
    assert!(together > 100 * 2048, "{store:?}: {together} bytes of pages were asked for together");
    let tx = db.begin_read()?;
    let table = tx.open_table(TABLE)?;
    assert_eq!(table.get(7)?.unwrap().value(), [4; 100]);
    assert_eq!(table.get(8)?.unwrap().value(), [1; 100]);
    Ok(())
}

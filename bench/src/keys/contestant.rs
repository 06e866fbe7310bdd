//! What is measured: a table of a Duramen database through its public interface, and a `BTreeMap`. Each does a chunk
//! of operations at a time and checks every answer; who is timed when must never be known here.

use super::args::{Args, DiskKind, Layout};
use crate::Result;
use crate::keyset::Keys;
use crate::value::Values;
use duramen::io::MemoryVolume;
use duramen::tree::TreeStats;
use duramen::{Database, Durability};
use duramen_sim::{Meter, MeteredVolume};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// The name of the one table.
const TABLE: &str = "keys";
/// The name of the one file.
const FILE: &str = "keys.duramen";
/// What a cache has beyond the data unless told otherwise.
const CACHE_SLACK: usize = 64 << 20;

/// The keys of a run and the values that belong to them.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a> {
    pub(super) keys: &'a Keys,
    pub(super) values: Values,
}

/// Something that holds entries. `ranks` name keys; an `Err` is a wrong answer or the store's own.
pub(super) trait Contestant {
    /// Adds the entries of `ranks`.
    fn insert(&mut self, entries: Entries<'_>, ranks: &[u32]) -> Result<()>;
    /// Looks each key up and checks its value.
    fn search(&self, entries: Entries<'_>, ranks: &[u32]) -> Result<()>;
    /// Reads `len` entries from each of the keys on and checks them.
    fn scan(&self, entries: Entries<'_>, starts: &[u32], len: usize) -> Result<()>;
    /// Removes the keys of `ranks`.
    fn remove(&mut self, entries: Entries<'_>, ranks: &[u32]) -> Result<()>;
    /// Fails unless it holds exactly the entries that `present` admits. Never timed.
    fn verify(&self, entries: Entries<'_>, present: &dyn Fn(usize) -> bool) -> Result<()>;
}

/// The error of a contestant that answers wrong.
#[cold]
fn wrong_answer(what: &str, key: &[u8]) -> Box<dyn std::error::Error + Send + Sync> {
    format!("wrong answer: {what} {:?}", String::from_utf8_lossy(key)).into()
}

/// Compares a walk over entries with the keys from one rank on.
struct Walk<'a> {
    entries: Entries<'a>,
    rank: usize,
    end: usize,
    right: bool,
}

impl<'a> Walk<'a> {
    fn new(entries: Entries<'a>, start: usize, len: usize) -> Walk<'a> {
        Walk { entries, rank: start, end: (start + len).min(entries.keys.len()), right: true }
    }

    /// Whether to go on.
    #[inline]
    fn meets(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.right &= key == self.entries.keys.get(self.rank) && self.entries.values.are(self.rank, 0, value);
        self.rank += 1;
        self.right && self.rank < self.end
    }

    fn finish(self, start: usize) -> Result<()> {
        match self.right && self.rank == self.end {
            true => Ok(()),
            false => Err(wrong_answer("scan from", self.entries.keys.get(start))),
        }
    }
}

/// Compares all that a contestant holds with what it should.
fn compare(
    entries: Entries<'_>,
    present: &dyn Fn(usize) -> bool,
    mut next: impl FnMut(&mut dyn FnMut(&[u8], &[u8])) -> Result<bool>,
) -> Result<()> {
    let mut expected = (0..entries.keys.len()).filter(|rank| present(*rank));
    let mut wrong = None;
    while next(&mut |key, value| {
        let right = |rank: usize| entries.keys.get(rank) == key && entries.values.are(rank, 0, value);
        if !expected.next().is_some_and(right) {
            wrong = Some(key.to_vec());
        }
    })? {
        if let Some(key) = &wrong {
            return Err(wrong_answer("an entry that should not be there:", key));
        }
    }
    match expected.next() {
        Some(rank) => Err(wrong_answer("the entries end before", entries.keys.get(rank))),
        None => Ok(()),
    }
}

/// A Duramen table of one layout.
pub(super) struct Table {
    db: Database,
    commit: usize,
    meter: Option<Arc<Meter>>,
}

impl Table {
    /// An empty table; its file, if it has one, goes to `folder`.
    pub(super) fn create(args: &Args, entries: Entries<'_>, layout: Layout, folder: &Path) -> Result<Table> {
        let data = entries.keys.bytes() + entries.keys.len() * (entries.values.width + 64);
        let cache = args.cache.map_or(4 * data + CACHE_SLACK, |size| size.0 as usize);
        let builder = Database::builder().page_size(args.page_bytes()).cache(cache).durability(Durability::None);
        let (db, meter) = match args.disk {
            DiskKind::Memory => (builder.in_memory()?, None),
            DiskKind::File => (builder.create(folder.join(FILE))?, None),
            DiskKind::Metered => {
                let volume = MeteredVolume::new(Arc::new(MemoryVolume::new()));
                let meter = volume.meter();
                (builder.create_on(Arc::new(volume), FILE)?, Some(meter))
            }
        };
        let key_type = match entries.keys.width().filter(|_| layout.is_fixed()) {
            Some(width) => format!("[u8;{width}]"),
            None => "bytes".to_owned(),
        };
        let tx = db.begin_write()?;
        drop(tx.create_untyped(TABLE, &key_type, &format!("[u8;{}]", entries.values.width), layout.options())?);
        tx.commit()?;
        Ok(Table { db, commit: args.commit, meter })
    }

    /// What its pages hold.
    pub(super) fn stats(&self) -> Result<TreeStats> {
        let stats = self.db.table_stats(TABLE)?;
        match stats.problems.first() {
            Some(problem) => Err(format!("page {}: {}", problem.page, problem.what).into()),
            None => Ok(stats),
        }
    }

    /// Bytes of its cache, the frames and the array that finds them included.
    pub(super) fn cache_bytes(&self) -> u64 {
        self.db.stats().cache_bytes
    }

    /// Brings everything to the disk; bytes of page images there then. 0 in memory.
    pub(super) fn device_bytes(&self) -> Result<u64> {
        self.db.checkpoint()?;
        Ok(self.db.stats().live_bytes)
    }

    /// Bytes read from and written to the disk so far, where that is counted.
    pub(super) fn traffic(&self) -> Option<(u64, u64)> {
        self.meter.as_ref().map(|meter| (meter.bytes_read(), meter.bytes_written()))
    }
}

impl Contestant for Table {
    fn insert(&mut self, entries: Entries<'_>, ranks: &[u32]) -> Result<()> {
        let mut value = Vec::new();
        for ranks in ranks.chunks(self.commit) {
            let tx = self.db.begin_write()?;
            let mut table = tx.open_untyped(TABLE)?;
            for &rank in ranks {
                entries.values.make(rank as usize, 0, &mut value);
                table.put(entries.keys.get(rank as usize), &value)?;
            }
            drop(table);
            tx.commit()?;
        }
        Ok(())
    }

    fn search(&self, entries: Entries<'_>, ranks: &[u32]) -> Result<()> {
        let table = self.db.begin_read()?.open_untyped(TABLE)?;
        for &rank in ranks {
            let key = entries.keys.get(rank as usize);
            if table.get_with(key, |value| entries.values.are(rank as usize, 0, value))? != Some(true) {
                return Err(wrong_answer("search for", key));
            }
        }
        Ok(())
    }

    fn scan(&self, entries: Entries<'_>, starts: &[u32], len: usize) -> Result<()> {
        let table = self.db.begin_read()?.open_untyped(TABLE)?;
        for &start in starts {
            let mut walk = Walk::new(entries, start as usize, len);
            let mut found = table.range(entries.keys.get(start as usize)..);
            while found.next_with(|key, value| walk.meets(key, value))?.unwrap_or(false) {}
            walk.finish(start as usize)?;
        }
        Ok(())
    }

    fn remove(&mut self, entries: Entries<'_>, ranks: &[u32]) -> Result<()> {
        for ranks in ranks.chunks(self.commit) {
            let tx = self.db.begin_write()?;
            let mut table = tx.open_untyped(TABLE)?;
            ranks.iter().try_for_each(|rank| table.delete(entries.keys.get(*rank as usize)))?;
            drop(table);
            tx.commit()?;
        }
        Ok(())
    }

    fn verify(&self, entries: Entries<'_>, present: &dyn Fn(usize) -> bool) -> Result<()> {
        let table = self.db.begin_read()?.open_untyped(TABLE)?;
        let mut all = table.range(..);
        compare(entries, present, |each| Ok(all.next_with(&mut *each)?.is_some()))
    }
}

/// A value as a map keeps it.
pub(super) trait Kept {
    fn keep(value: &[u8]) -> Self;
    fn bytes(&self) -> &[u8];
}

impl Kept for () {
    fn keep(_: &[u8]) {}

    fn bytes(&self) -> &[u8] {
        &[]
    }
}

impl Kept for [u8; 8] {
    fn keep(value: &[u8]) -> [u8; 8] {
        value.try_into().unwrap_or_default()
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Kept for Box<[u8]> {
    fn keep(value: &[u8]) -> Box<[u8]> {
        value.into()
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

/// The standard library's map; a value that is neither empty nor of 8 bytes has a box of its own.
pub(super) struct Map<V>(BTreeMap<Box<[u8]>, V>);

/// An empty map for values of that width.
pub(super) fn map(width: usize) -> Box<dyn Contestant> {
    match width {
        0 => Box::new(Map::<()>(BTreeMap::new())),
        8 => Box::new(Map::<[u8; 8]>(BTreeMap::new())),
        _ => Box::new(Map::<Box<[u8]>>(BTreeMap::new())),
    }
}

impl<V: Kept> Contestant for Map<V> {
    fn insert(&mut self, entries: Entries<'_>, ranks: &[u32]) -> Result<()> {
        let mut value = Vec::new();
        for &rank in ranks {
            entries.values.make(rank as usize, 0, &mut value);
            self.0.insert(entries.keys.get(rank as usize).into(), V::keep(&value));
        }
        Ok(())
    }

    fn search(&self, entries: Entries<'_>, ranks: &[u32]) -> Result<()> {
        for &rank in ranks {
            let key = entries.keys.get(rank as usize);
            if !self.0.get(key).is_some_and(|value| entries.values.are(rank as usize, 0, value.bytes())) {
                return Err(wrong_answer("search for", key));
            }
        }
        Ok(())
    }

    fn scan(&self, entries: Entries<'_>, starts: &[u32], len: usize) -> Result<()> {
        for &start in starts {
            let mut walk = Walk::new(entries, start as usize, len);
            let from = Bound::Included(entries.keys.get(start as usize));
            for (key, value) in self.0.range::<[u8], _>((from, Bound::Unbounded)) {
                if !walk.meets(key, value.bytes()) {
                    break;
                }
            }
            walk.finish(start as usize)?;
        }
        Ok(())
    }

    fn remove(&mut self, entries: Entries<'_>, ranks: &[u32]) -> Result<()> {
        for &rank in ranks {
            self.0.remove(entries.keys.get(rank as usize));
        }
        Ok(())
    }

    fn verify(&self, entries: Entries<'_>, present: &dyn Fn(usize) -> bool) -> Result<()> {
        let mut all = self.0.iter();
        compare(entries, present, |each| {
            let next = all.next();
            next.into_iter().for_each(|(key, value)| each(key, value.bytes()));
            Ok(next.is_some())
        })
    }
}

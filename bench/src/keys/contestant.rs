//! The measured stores: a table of a Duramen database through its public interface, and a `BTreeMap`. Each carries out
//! a chunk of operations and checks every answer.

use super::args::{Args, DiskKind, Inner, Layout};
use crate::Result;
use crate::keyset::{Gathered, Keys};
use crate::size;
use crate::value::Values;
use duramen::db::TreeStats;
use duramen::db::UntypedTable;
use duramen::io::MemoryVolume;
use duramen::{Database, Durability, TableOptions};
use duramen_sim::{HookedVolume, Meter};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// The name of the table.
const TABLE: &str = "keys";
/// The name of the file.
const FILE: &str = "keys.duramen";
/// The default difference between the cache and the data, in bytes.
const CACHE_SLACK: usize = 64 << 20;

/// The keys of a run and the values that belong to them.
#[derive(Clone, Copy)]
pub(super) struct Entries<'a> {
    pub(super) keys: &'a Keys,
    pub(super) values: Values,
}

/// The keys of one turn, with their ranks.
#[derive(Clone, Copy)]
pub(super) struct Turn<'a> {
    pub(super) entries: Entries<'a>,
    pub(super) ranks: &'a [u32],
    pub(super) keys: &'a Gathered,
}

impl<'a> Turn<'a> {
    /// Ranks and keys.
    #[inline]
    fn iter(&self) -> impl Iterator<Item = (usize, &'a [u8])> + use<'a> {
        self.ranks.iter().map(|rank| *rank as usize).zip(self.keys.iter())
    }
}

/// A store of entries. An `Err` is a wrong answer or an error of the store.
pub(super) trait Contestant {
    /// Adds the entries of the turn's keys.
    fn insert(&mut self, turn: Turn<'_>) -> Result<()>;
    /// Looks up each key and checks its value.
    fn search(&self, turn: Turn<'_>) -> Result<()>;
    /// Reads `len` entries from each key on and checks them.
    fn scan(&self, turn: Turn<'_>, len: usize) -> Result<()>;
    /// Removes the keys.
    fn remove(&mut self, turn: Turn<'_>) -> Result<()>;
    /// Fails if it does not have exactly the entries for which `present` is true. Never timed.
    fn verify(&self, entries: Entries<'_>, present: &dyn Fn(usize) -> bool) -> Result<()>;
}

/// The error for a wrong answer.
#[cold]
fn wrong_answer(what: &str, key: &[u8]) -> Box<dyn std::error::Error + Send + Sync> {
    format!("wrong answer: {what} {:?}", String::from_utf8_lossy(key)).into()
}

/// Compares the entries of a scan with the keys from one rank on.
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

    /// Returns true if the scan must continue.
    #[inline]
    fn check(&mut self, key: &[u8], value: &[u8]) -> bool {
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

/// Compares all entries of a contestant with the expected ones.
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
    /// An empty table. Its file, if it has one, is in `folder`.
    pub(super) fn create(args: &Args, entries: Entries<'_>, layout: Layout, folder: &Path) -> Result<Table> {
        let data = entries.keys.bytes() + entries.keys.len() * (entries.values.width + 64);
        let cache = args.cache.map_or(4 * data + CACHE_SLACK, size::length);
        let builder = Database::builder().page_size(args.page_bytes()).cache(cache).durability(Durability::None);
        let builder = builder.resident_inner(args.inner == Inner::Resident);
        let (db, meter) = match args.disk {
            DiskKind::Memory => (builder.in_memory()?, None),
            DiskKind::File => (builder.create(folder.join(FILE))?, None),
            DiskKind::Metered => {
                let meter = Arc::new(Meter::default());
                let volume = HookedVolume::new(Arc::new(MemoryVolume::new()), meter.clone());
                (builder.create_on(Arc::new(volume), FILE)?, Some(meter))
            }
        };
        let key_type = match entries.keys.width().filter(|_| layout.is_fixed()) {
            Some(width) => format!("[u8;{width}]"),
            None => "bytes".to_owned(),
        };
        let tx = db.begin_write()?;
        let options = TableOptions { compression: args.compress, ..layout.options() };
        drop(tx.create_untyped(TABLE, &key_type, &format!("[u8;{}]", entries.values.width), options)?);
        tx.commit()?;
        Ok(Table { db, commit: args.commit, meter })
    }

    /// Statistics of its pages.
    pub(super) fn stats(&self) -> Result<TreeStats> {
        let stats = self.db.table_stats(TABLE)?;
        match stats.problems.first() {
            Some(problem) => Err(format!("page {}: {}", problem.page, problem.what).into()),
            None => Ok(stats),
        }
    }

    /// Bytes of its cache, including its tables.
    pub(super) fn cache_bytes(&self) -> u64 {
        self.db.stats().cache_bytes
    }

    /// Writes all pages to the disk and returns the bytes of page images there. 0 in memory.
    pub(super) fn device_bytes(&self) -> Result<u64> {
        self.db.checkpoint()?;
        Ok(self.db.stats().live_bytes)
    }

    /// Pages read from the disk so far.
    pub(super) fn page_reads(&self) -> u64 {
        self.db.stats().reads
    }

    /// Bytes read from and written to the disk so far, if that is counted.
    pub(super) fn traffic(&self) -> Option<(u64, u64)> {
        self.meter.as_ref().map(|meter| (meter.bytes_read(), meter.bytes_written()))
    }
}

impl Table {
    /// Runs `write` for each key of a turn, in transactions of [`Args::commit`] keys.
    fn write(
        &self,
        turn: Turn<'_>,
        mut write: impl FnMut(&mut UntypedTable<'_>, usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut keys = turn.iter();
        for ranks in turn.ranks.chunks(self.commit) {
            let tx = self.db.begin_write()?;
            let mut table = tx.open_untyped(TABLE)?;
            for (rank, key) in keys.by_ref().take(ranks.len()) {
                write(&mut table, rank, key)?;
            }
            drop(table);
            tx.commit()?;
        }
        Ok(())
    }
}

impl Contestant for Table {
    fn insert(&mut self, turn: Turn<'_>) -> Result<()> {
        let mut value = Vec::new();
        self.write(turn, |table, rank, key| {
            turn.entries.values.make(rank, 0, &mut value);
            Ok(table.put(key, &value)?)
        })
    }

    fn search(&self, turn: Turn<'_>) -> Result<()> {
        let table = self.db.begin_read()?.open_untyped(TABLE)?;
        for (rank, key) in turn.iter() {
            if table.get_with(key, |value| turn.entries.values.are(rank, 0, value))? != Some(true) {
                return Err(wrong_answer("search for", key));
            }
        }
        Ok(())
    }

    fn scan(&self, turn: Turn<'_>, len: usize) -> Result<()> {
        let table = self.db.begin_read()?.open_untyped(TABLE)?;
        for (start, key) in turn.iter() {
            let mut walk = Walk::new(turn.entries, start, len);
            let mut found = table.range(key..);
            while found.next_with(|key, value| walk.check(key, value))?.unwrap_or(false) {}
            walk.finish(start)?;
        }
        Ok(())
    }

    fn remove(&mut self, turn: Turn<'_>) -> Result<()> {
        self.write(turn, |table, _, key| Ok(table.delete(key)?))
    }

    fn verify(&self, entries: Entries<'_>, present: &dyn Fn(usize) -> bool) -> Result<()> {
        let table = self.db.begin_read()?.open_untyped(TABLE)?;
        let mut all = table.range(..);
        compare(entries, present, |each| Ok(all.next_with(&mut *each)?.is_some()))
    }
}

/// A value in the form in which a map stores it.
pub(super) trait Stored {
    fn store(value: &[u8]) -> Self;
    fn bytes(&self) -> &[u8];
}

impl Stored for () {
    fn store(_: &[u8]) {}

    fn bytes(&self) -> &[u8] {
        &[]
    }
}

impl Stored for [u8; 8] {
    fn store(value: &[u8]) -> [u8; 8] {
        value.try_into().unwrap_or_default()
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

impl Stored for Box<[u8]> {
    fn store(value: &[u8]) -> Box<[u8]> {
        value.into()
    }

    fn bytes(&self) -> &[u8] {
        self
    }
}

/// The map of the standard library. A value that is neither empty nor has 8 bytes is in a box of its own.
pub(super) struct Map<V>(BTreeMap<Box<[u8]>, V>);

/// An empty map for values of this width.
pub(super) fn map(width: usize) -> Box<dyn Contestant> {
    match width {
        0 => Box::new(Map::<()>(BTreeMap::new())),
        8 => Box::new(Map::<[u8; 8]>(BTreeMap::new())),
        _ => Box::new(Map::<Box<[u8]>>(BTreeMap::new())),
    }
}

impl<V: Stored> Contestant for Map<V> {
    fn insert(&mut self, turn: Turn<'_>) -> Result<()> {
        let mut value = Vec::new();
        for (rank, key) in turn.iter() {
            turn.entries.values.make(rank, 0, &mut value);
            self.0.insert(key.into(), V::store(&value));
        }
        Ok(())
    }

    fn search(&self, turn: Turn<'_>) -> Result<()> {
        for (rank, key) in turn.iter() {
            if !self.0.get(key).is_some_and(|value| turn.entries.values.are(rank, 0, value.bytes())) {
                return Err(wrong_answer("search for", key));
            }
        }
        Ok(())
    }

    fn scan(&self, turn: Turn<'_>, len: usize) -> Result<()> {
        for (start, key) in turn.iter() {
            let mut walk = Walk::new(turn.entries, start, len);
            for (key, value) in self.0.range::<[u8], _>((Bound::Included(key), Bound::Unbounded)) {
                if !walk.check(key, value.bytes()) {
                    break;
                }
            }
            walk.finish(start)?;
        }
        Ok(())
    }

    fn remove(&mut self, turn: Turn<'_>) -> Result<()> {
        turn.iter().for_each(|(_, key)| drop(self.0.remove(key)));
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

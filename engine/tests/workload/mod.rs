//! A mixed workload, chosen by a seed, for the tests of power cuts and of redo, and the model of its content.

// Every program of tests compiles this for itself and uses its part.
#![allow(dead_code)]

pub(crate) mod documents;
pub(crate) mod files;
pub(crate) mod keys;
pub(crate) mod killed;
pub(crate) mod kinds;
pub(crate) mod layouts;
pub(crate) mod numbers;
pub(crate) mod parallel;
pub(crate) mod session;
pub(crate) mod stores;

use duramen::db::types::TableOptions;
use duramen::db::{Compression, DEFAULT_FILL, DeltaBlocks, Overflow, StoreKind, Target};
use duramen::{Builder, Database, Durability, Error, ReadTransaction, Result, WriteTransaction};
use duramen_sim::model::{Change, Table, Tables};
use std::ops::Bound;

/// Each table keeps its keys in a way of its own, so that the tests have all key lists; `fixed` and `blocks` are
/// not for bytes.
fn table_options(table: &str) -> TableOptions {
    let layouts = layouts::for_keys_of_any_length();
    let which = table.bytes().map(usize::from).sum::<usize>() % (layouts.len() + 1);
    TableOptions { keys: layouts.get(which).copied(), ..TableOptions::default() }
}

/// Creates a table with its options. Its pages are compressed if the page store compresses pages.
fn create<T>(table: &str, create: impl Fn(TableOptions) -> Result<T>) -> Result<T> {
    let options = table_options(table);
    let all = [Compression::None, Compression::Lz4, Compression::Zstd(1), Compression::Zlib(1)];
    let compression = all[table.bytes().map(usize::from).sum::<usize>() % all.len()];
    let target = if table.len().is_multiple_of(2) { Target::Bytes(2048) } else { Target::Fit };
    match create(TableOptions { compression, target, overflow: Overflow::Split, ..options }) {
        Err(Error::Option { option: "compression" | "target", .. }) => create(options),
        created => created,
    }
}

/// The names that tables have.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Beyond this many entries more is removed than put.
const MANY: usize = 900;

/// Pages of 4 KiB, the smallest cache there is, no thread of its own: everything happens in the order that a test says.
pub(crate) fn options() -> Builder {
    let options = Database::builder().page_size(4096).cache(0).background(false);
    options.checkpoint_bytes(160 << 10).superseded_bytes(16 << 10)
}

/// Bytes of a page, where the page store is `shadow` with these delta blocks. A page of 4 KiB is never compressed
/// there.
pub(crate) fn page_size_of(store: StoreKind, delta: DeltaBlocks) -> usize {
    match (store, delta.blocks) {
        (StoreKind::Table, _) | (_, 4) => 4096,
        (_, 16) => 16384,
        _ => 8192,
    }
}

/// How databases write small changes of their pages, if their store can. Most deltas have several sectors, which can
/// tear.
pub(crate) const DELTAS: [DeltaBlocks; 4] = [
    DeltaBlocks::OFF,
    DeltaBlocks { threshold: 3900, segment: 32, blocks: 1 },
    DeltaBlocks { threshold: 3900, segment: 32, blocks: 4 },
    DeltaBlocks { threshold: 1500, segment: 32, blocks: 16 },
];

/// One thing to do.
#[derive(Debug)]
pub(crate) enum Step {
    /// A transaction that commits.
    Commit {
        changes: Vec<Change>,
        durability: Durability,
    },
    /// A transaction that is given up.
    Abort(Vec<Change>),
    Checkpoint,
    Maintain,
    Compact,
    /// Opens a snapshot that is kept for some steps.
    Snapshot,
    /// Closes the oldest snapshot.
    Release,
}

/// The next steps, as the seed and what there is in the database decide.
pub(crate) struct Workload {
    rng: fastrand::Rng,
    /// Makes every value a new one.
    written: u64,
}

impl Workload {
    pub(crate) fn new(seed: u64) -> Workload {
        Workload { rng: fastrand::Rng::with_seed(seed), written: 0 }
    }

    /// One that goes on in a database which others have filled: its values are none of theirs.
    pub(crate) fn later(seed: u64, generation: u64) -> Workload {
        Workload { rng: fastrand::Rng::with_seed(seed ^ generation << 48), written: generation << 40 }
    }

    pub(crate) fn next(&mut self, now: &Tables) -> Step {
        match self.rng.u8(0..100) {
            0..5 => Step::Checkpoint,
            5..12 => Step::Maintain,
            12..15 => Step::Snapshot,
            15..18 => Step::Release,
            18..21 => Step::Abort(self.transaction(now)),
            21..23 => Step::Compact,
            _ => {
                let durability = if self.rng.u8(0..10) < 7 { Durability::Commit } else { Durability::None };
                Step::Commit { changes: self.transaction(now), durability }
            }
        }
    }

    fn transaction(&mut self, now: &Tables) -> Vec<Change> {
        let full = now.values().map(Table::len).sum::<usize>() > MANY;
        let table = self.table(now);
        match self.rng.u8(0..100) {
            _ if full && self.rng.bool() => vec![self.remove_range(&table, now)],
            0..30 => (0..self.rng.usize(1..30)).map(|_| self.put(&table, 60)).collect(),
            30..40 => self.ascending(&table),
            40..52 => self.remove_run(&table, now),
            52..60 => vec![self.remove_range(&table, now)],
            60..70 => (0..self.rng.usize(1..4)).map(|_| self.put(&table, 12_000)).collect(),
            70..78 => (0..self.rng.usize(1..8)).map(|_| self.put_long_key(&table)).collect(),
            78..86 => self.naming(now),
            86..92 => self.large(&table, now),
            92..95 => vec![self.load(&table), self.put(&table, 60)],
            _ => {
                let mut changes = self.naming(now);
                changes.extend(self.remove_run("a", now));
                changes.extend((0..20).map(|_| self.put("b", 2500)));
                changes
            }
        }
    }

    fn table(&mut self, now: &Tables) -> String {
        let existing: Vec<&String> = now.keys().collect();
        match self.rng.choice(existing) {
            Some(name) if self.rng.u8(0..8) > 0 => name.clone(),
            _ => NAMES[self.rng.usize(..NAMES.len())].to_owned(),
        }
    }

    /// Keys meet again, and neighbours have much in common.
    fn key(&mut self) -> Vec<u8> {
        match self.rng.u8(0..3) {
            0 => self.rng.u16(0..1500).to_be_bytes().to_vec(),
            1 => format!("/usr/share/doc/package-{:04}/copyright", self.rng.u16(0..900)).into_bytes(),
            _ => format!("{}", self.rng.u16(0..2000)).into_bytes(),
        }
    }

    fn value(&mut self, len: usize) -> Vec<u8> {
        self.written += 1;
        let mut value = self.written.to_le_bytes().to_vec();
        value.resize(self.rng.usize(0..=len).max(8), self.written as u8);
        value
    }

    fn put(&mut self, table: &str, len: usize) -> Change {
        Change::Put { table: table.to_owned(), key: self.key(), value: self.value(len) }
    }

    /// Keys of several pages that differ at their ends only.
    fn put_long_key(&mut self, table: &str) -> Change {
        let mut key = vec![b'x'; self.rng.usize(800..6000)];
        key.push(self.rng.u8(0..16));
        match self.rng.bool() {
            true => Change::Remove { table: table.to_owned(), key },
            false => Change::Put { table: table.to_owned(), key, value: self.value(900) },
        }
    }

    fn ascending(&mut self, table: &str) -> Vec<Change> {
        let from = self.rng.u16(0..1400);
        let mut put = |n: u16| {
            let key = n.to_be_bytes().to_vec();
            Change::Put { table: table.to_owned(), key, value: self.value(40) }
        };
        (from..from + 100).map(&mut put).collect()
    }

    /// Neighbours go one by one, so that pages are merged.
    fn remove_run(&mut self, table: &str, now: &Tables) -> Vec<Change> {
        let Some(content) = now.get(table) else { return vec![self.put(table, 60)] };
        let skip = self.rng.usize(0..content.len().max(1));
        let keys = content.keys().skip(skip).take(self.rng.usize(1..300));
        keys.map(|key| Change::Remove { table: table.to_owned(), key: key.clone() }).collect()
    }

    fn remove_range(&mut self, table: &str, now: &Tables) -> Change {
        let count = now.get(table).map_or(0, Table::len);
        let mut bound = |least: usize| {
            let at = self.rng.usize(least..=count.max(least));
            let key = now.get(table).and_then(|content| content.keys().nth(at)).cloned();
            (at, key.map_or(Bound::Unbounded, Bound::Included))
        };
        let (at, from) = bound(0);
        let (_, to) = bound(at);
        let table = table.to_owned();
        match self.rng.u8(0..8) {
            0 => Change::RemoveRange { table, from: Bound::Unbounded, to },
            _ => Change::RemoveRange { table, from, to },
        }
    }

    /// Tables come, go and change their names.
    fn naming(&mut self, now: &Tables) -> Vec<Change> {
        let table = self.table(now);
        let free = NAMES.iter().find(|name| !now.contains_key(**name) && **name != table);
        match (now.contains_key(&table), free) {
            (true, Some(to)) if self.rng.bool() => vec![Change::Rename { table, to: (*to).to_owned() }],
            (true, _) if now.len() > 2 => vec![Change::Drop { table }],
            _ => vec![Change::Create { table: table.clone() }, self.put(&table, 60)],
        }
    }

    /// Pages that are written outside the log.
    fn load(&mut self, table: &str) -> Change {
        let lens = [40, 40, 40, 3000, 9000];
        let entries = (0..self.rng.usize(0..250)).map(|n| (self.key(), self.value(lens[n % lens.len()]))).collect();
        Change::Load { table: table.to_owned(), entries }
    }

    /// More than a quarter of the cache.
    fn large(&mut self, table: &str, now: &Tables) -> Vec<Change> {
        let mut changes = if self.rng.bool() { self.naming(now) } else { Vec::new() };
        if self.rng.bool() {
            changes.push(self.remove_range(table, now));
        }
        changes.extend((0..self.rng.usize(450..600)).map(|_| self.put(table, 80)));
        changes.extend((0..self.rng.usize(0..3)).map(|_| self.put(table, 9000)));
        changes
    }
}

/// Does `changes` in a transaction, in order.
pub(crate) fn apply(tx: &WriteTransaction, changes: &[Change]) -> Result<()> {
    // The last table used: opening one for each change would be slow, and two handles of one are refused.
    let mut open: Option<(String, duramen::db::UntypedTable<'_>)> = None;
    for change in changes {
        match change {
            Change::Create { table } => {
                open = None;
                if !tx.exists(table)? {
                    drop(create(table, |options| tx.create_untyped(table, "bytes", "bytes", options))?);
                }
            }
            Change::Drop { table } => {
                open = None;
                tx.drop_table(table)?;
            }
            Change::Rename { table, to } => {
                open = None;
                tx.rename_table(table, to)?;
            }
            Change::Load { table, entries } => {
                open = None;
                if tx.exists(table)? {
                    tx.drop_table(table)?;
                }
                let mut bulk = create(table, |options| tx.bulk_load(table, "bytes", "bytes", options, DEFAULT_FILL))?;
                entries.iter().try_for_each(|(key, value)| bulk.push(key, value))?;
                bulk.finish()?;
            }
            Change::Put { table, .. } | Change::Remove { table, .. } | Change::RemoveRange { table, .. } => {
                if open.as_ref().is_none_or(|(name, _)| name != table) {
                    drop(open.take());
                    let is_new = matches!(change, Change::Put { .. }) && !tx.exists(table)?;
                    let opened = match is_new {
                        true => create(table, |options| tx.create_untyped(table, "bytes", "bytes", options)),
                        false => tx.open_untyped(table),
                    };
                    open = match opened {
                        Ok(opened) => Some((table.clone(), opened)),
                        Err(Error::NoTable { .. }) => None,
                        Err(other) => return Err(other),
                    };
                }
                let Some((_, table)) = &mut open else { continue };
                change_entries(table, change)?;
            }
        }
    }
    Ok(())
}

fn change_entries(table: &mut duramen::db::UntypedTable<'_>, change: &Change) -> Result<()> {
    match change {
        Change::Put { key, value, .. } => table.put(key, value),
        Change::Remove { key, .. } => table.delete(key),
        Change::RemoveRange { from, to, .. } => {
            table.remove_range((from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice)));
            Ok(())
        }
        _ => Ok(()),
    }
}

/// All that a snapshot shows; the counts that tables keep of themselves must be right.
pub(crate) fn contents(tx: &ReadTransaction) -> Result<Tables> {
    let mut found = Tables::new();
    for info in tx.tables()? {
        let table = tx.open_untyped(&info.name)?;
        let content: Table = table.range(..).collect::<Result<_>>()?;
        assert_eq!(table.len(), content.len() as u64, "entries of table {:?}", info.name);
        found.insert(info.name, content);
    }
    Ok(found)
}

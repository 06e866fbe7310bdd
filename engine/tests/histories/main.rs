//! Promise: a database behaves like a set of ordered maps, whatever operations it gets, in any order. The random
//! histories have every key list, compressed pages, keys longer than pages, many tables that are created, dropped and
//! renamed, hundreds of range removals, values of many pages, snapshots that stay open during all of this, checkpoints,
//! compaction, clean and unclean ends, and the smallest cache.
//!
//! `DURAMEN_HISTORY_OPS` is the number of operations. `DURAMEN_HISTORY_SEED` runs one history only and prints its
//! steps.

mod draw;
#[path = "../workload/layouts.rs"]
mod layouts;
#[path = "../workload/policies.rs"]
mod policies;
#[path = "../workload/stores.rs"]
mod stores;

use draw::{DrawnRange, HistoryTable};
use duramen::db::{DEFAULT_FILL, ReadOnlyUntypedTable, StoreKind, UntypedTable};
use duramen::{Builder, Database, Durability, ReadTransaction, Result, WriteTransaction};
use fastrand::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stores::STORES;

type Entries = BTreeMap<Vec<u8>, Arc<[u8]>>;

/// The expected entries of a table. Each snapshot has a copy; copies share their common entries.
#[derive(Clone)]
struct Table {
    kind: HistoryTable,
    entries: Arc<Entries>,
}

type Model = BTreeMap<String, Table>;

/// Beyond this many entries a table is mostly taken from.
const MANY: usize = 1500;
const MAX_TABLES: usize = 24;
const MAX_SNAPSHOTS: usize = 6;
/// After so many histories that went wrong no more are tried.
const MAX_FAILURES: u64 = 8;
/// Operations of one history.
const LENGTH: u64 = 3000;

fn borrowed(bounds: &DrawnRange) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (bounds.0.as_ref().map(Vec::as_slice), bounds.1.as_ref().map(Vec::as_slice))
}

/// The entries of a range, none where its bounds cross.
fn within<'m>(
    entries: &'m Entries,
    bounds: &DrawnRange,
) -> impl DoubleEndedIterator<Item = (&'m Vec<u8>, &'m Arc<[u8]>)> {
    let crossed = match bounds {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Excluded(from), Bound::Excluded(to)) => from >= to,
        (Bound::Included(from) | Bound::Excluded(from), Bound::Included(to) | Bound::Excluded(to)) => from > to,
    };
    let bounds = if crossed { (Bound::Excluded(vec![]), Bound::Included(vec![])) } else { bounds.clone() };
    entries.range::<Vec<u8>, _>(bounds)
}

/// A database and what it must hold.
struct History {
    rng: Rng,
    store: StoreKind,
    page_size: usize,
    background: bool,
    /// `None` in memory.
    folder: Option<tempfile::TempDir>,
    /// How often it was killed: each time it goes on in a file of another name.
    killed: usize,
    db: Option<Database>,
    model: Model,
    snapshots: Vec<(ReadTransaction, Model)>,
    done: u64,
    verbose: bool,
}

impl History {
    fn new(seed: u64, verbose: bool) -> Result<History> {
        let mut rng = Rng::with_seed(seed);
        let in_memory = rng.u8(0..4) == 0;
        let page_size = 1 << if in_memory { rng.u32(9..17) } else { [12, 12, 13, 13, 14, 16][rng.usize(..6)] };
        let folder = (!in_memory).then(|| tempfile::tempdir().unwrap());
        let background = rng.u8(0..5) == 0;
        let (db, killed, model, snapshots) = (None, 0, Model::new(), Vec::new());
        let store = STORES[seed as usize % STORES.len()];
        let mut history =
            History { rng, store, page_size, background, folder, killed, db, model, snapshots, done: 0, verbose };
        history.db = Some(match history.path() {
            Some(path) => history.options().create(path)?,
            None => history.options().in_memory()?,
        });
        history.tell(|| {
            format!("{store:?}, pages of {page_size} bytes, in memory: {in_memory}, background: {background}")
        });
        Ok(history)
    }

    fn options(&self) -> Builder {
        let options =
            Database::builder().store(self.store).page_size(self.page_size).cache(0).background(self.background);
        options.checkpoint_bytes(1 << 20).durability(Durability::None)
    }

    /// A kind of table, mostly with page compression.
    fn draw_kind(&mut self) -> HistoryTable {
        let mut kind = HistoryTable::draw(&mut self.rng, self.page_size);
        kind.options = policies::drawn(&mut self.rng, self.page_size, kind.options);
        kind
    }

    fn path(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.path().join(format!("{}.duramen", self.killed)))
    }

    fn db(&self) -> &Database {
        self.db.as_ref().unwrap()
    }

    fn tell(&self, step: impl FnOnce() -> String) {
        if self.verbose {
            println!("{:6} {}", self.done, step());
        }
    }

    fn run(&mut self) -> Result<()> {
        while self.done < LENGTH {
            match self.rng.u8(0..100) {
                0..55 => self.transaction()?,
                55..80 => self.read_some()?,
                80..86 => self.open_snapshot()?,
                86..90 => self.drop_snapshot()?,
                90..93 => self.maintain()?,
                93..95 => self.checkpoint()?,
                95..96 => self.compact()?,
                96..98 => self.reopen()?,
                _ => self.kill()?,
            }
            self.done += 1;
        }
        self.check_all()?;
        self.end()
    }

    /// The name of a table that is there, or of one that may be.
    fn name(&mut self) -> String {
        let there = self.rng.choice(self.model.keys()).cloned();
        match there.filter(|_| self.rng.u8(0..12) > 0) {
            Some(name) => name,
            None => format!("t{}", self.rng.usize(..MAX_TABLES)),
        }
    }

    fn transaction(&mut self) -> Result<()> {
        let mut model = self.model.clone();
        let tx = self.db().begin_write()?;
        for _ in 0..self.rng.usize(1..4) {
            let name = self.name();
            match self.rng.u8(0..20) {
                0 => self.rename(&tx, &mut model, &name)?,
                1 => {
                    self.tell(|| format!("drop {name}"));
                    assert_eq!(tx.drop_table(&name)?, model.remove(&name).is_some());
                }
                2 => self.load(&tx, &mut model, &name)?,
                _ => self.change(&tx, &mut model, &name)?,
            }
        }
        let names: BTreeSet<String> = tx.tables()?.into_iter().map(|table| table.name).collect();
        assert!(names.iter().eq(model.keys()), "{names:?}");
        let aborted = self.rng.u8(0..10) == 0;
        self.tell(|| if aborted { "abort" } else { "commit" }.to_owned());
        if !aborted {
            tx.commit()?;
            self.model = model;
        }
        Ok(())
    }

    fn rename(&mut self, tx: &WriteTransaction, model: &mut Model, name: &str) -> Result<()> {
        let to = format!("t{}", self.rng.usize(..MAX_TABLES));
        if model.contains_key(&to) || !model.contains_key(name) {
            return Ok(());
        }
        self.tell(|| format!("rename {name} to {to}"));
        tx.rename_table(name, &to)?;
        let table = model.remove(name).unwrap();
        model.insert(to, table);
        Ok(())
    }

    fn load(&mut self, tx: &WriteTransaction, model: &mut Model, name: &str) -> Result<()> {
        let kind = self.draw_kind();
        let count = self.rng.usize(0..400);
        let entries: Entries =
            (0..count).map(|_| (kind.key(&mut self.rng), kind.value(&mut self.rng).into())).collect();
        self.tell(|| format!("load {name}, {} entries, {kind:?}", entries.len()));
        tx.drop_table(name)?;
        let mut bulk = tx.bulk_load(name, kind.keys, kind.values, kind.options, DEFAULT_FILL)?;
        entries.iter().try_for_each(|(key, value)| bulk.push(key, value))?;
        bulk.finish()?;
        self.done += entries.len() as u64 / 8;
        model.insert(name.to_owned(), Table { kind, entries: Arc::new(entries) });
        Ok(())
    }

    /// Changes entries of one table, and looks at it meanwhile.
    fn change(&mut self, tx: &WriteTransaction, model: &mut Model, name: &str) -> Result<()> {
        let mut open = match model.contains_key(name) {
            true => tx.open_untyped(name)?,
            false => {
                let kind = self.draw_kind();
                self.tell(|| format!("create {name}, {kind:?}"));
                model.insert(name.to_owned(), Table { kind, entries: Arc::default() });
                tx.create_untyped(name, kind.keys, kind.values, kind.options)?
            }
        };
        let Some(Table { kind, entries }) = model.get_mut(name) else { return Ok(()) };
        let entries = Arc::make_mut(entries);
        if self.rng.u8(0..20) == 0 {
            // Many at once.
            let many = [300, 1000, 1000, 5000][self.rng.usize(..4)];
            let ranges: Vec<DrawnRange> = (0..self.rng.usize(1..many)).map(|_| kind.narrow(&mut self.rng)).collect();
            self.tell(|| format!("remove {} ranges of {name}", ranges.len()));
            self.done += ranges.len() as u64 / 8;
            ranges.iter().for_each(|range| remove_range(&mut open, entries, range));
        }
        let runs = if self.rng.u8(0..12) == 0 { 300 } else { 40 };
        let ops = self.rng.usize(1..runs);
        self.tell(|| format!("change {name} {ops} times"));
        for _ in 0..ops {
            self.done += 1;
            self.change_one(&mut open, entries, kind)?;
        }
        if self.rng.u8(0..8) == 0 {
            assert_eq!(open.len()?, entries.len() as u64, "own entries of {name}");
        }
        Ok(())
    }

    fn change_one(&mut self, open: &mut UntypedTable<'_>, entries: &mut Entries, kind: &HistoryTable) -> Result<()> {
        let rng = &mut self.rng;
        let puts = if entries.len() > MANY { 20 } else { 50 };
        match rng.u8(0..100) {
            op if op < puts => {
                let (key, value) = (kind.key(rng), kind.value(rng));
                if rng.bool() {
                    open.put(&key, &value)?;
                    entries.insert(key, value.into());
                } else {
                    let old = open.insert(&key, &value)?;
                    assert_eq!(old.as_deref(), entries.insert(key, value.into()).as_deref());
                }
            }
            0..70 => {
                let key = kind.key(rng);
                assert_eq!(open.remove(&key)?.as_deref(), entries.remove(&key).as_deref());
            }
            70..80 => {
                // Neighbours, so that pages are merged.
                let from = kind.key(rng);
                let keys: Vec<Vec<u8>> = entries.range(from..).take(rng.usize(1..60)).map(|e| e.0.clone()).collect();
                for key in keys {
                    open.delete(&key)?;
                    entries.remove(&key);
                }
            }
            80..83 => remove_range(open, entries, &kind.narrow(rng)),
            83 => remove_range(open, entries, &kind.bounds(rng)),
            84..92 => {
                let key = kind.key(rng);
                assert_eq!(open.get(&key)?.as_deref(), entries.get(&key).map(|value| &**value));
            }
            _ => {
                let bounds = kind.bounds(rng);
                let found = open.range(borrowed(&bounds)).take(30);
                let right = within(entries, &bounds).take(30);
                same(found, right, "own entries");
                let found = open.range(borrowed(&bounds)).rev().take(30);
                same(found, within(entries, &bounds).rev().take(30), "own entries, backwards");
            }
        }
        Ok(())
    }

    /// Reads in a snapshot that is held, or in a new one.
    fn read_some(&mut self) -> Result<()> {
        let at = self.rng.usize(..=self.snapshots.len());
        let new;
        let (snapshot, model) = match self.snapshots.get(at) {
            Some((snapshot, model)) => (snapshot, model),
            None => {
                new = self.db().begin_read()?;
                (&new, &self.model)
            }
        };
        let Some((name, table)) = self.rng.choice(model.iter()) else { return Ok(()) };
        let open = snapshot.open_untyped(name)?;
        let count = self.rng.usize(1..20);
        if self.verbose {
            println!("{:6} read {name} in snapshot {at}, {count} times", self.done);
        }
        for _ in 0..count {
            self.done += 1;
            read_one(&mut self.rng, &open, table)?;
        }
        Ok(())
    }

    fn open_snapshot(&mut self) -> Result<()> {
        if self.snapshots.len() < MAX_SNAPSHOTS {
            self.tell(|| "open a snapshot".to_owned());
            self.snapshots.push((self.db().begin_read()?, self.model.clone()));
        }
        Ok(())
    }

    fn drop_snapshot(&mut self) -> Result<()> {
        if !self.snapshots.is_empty() {
            let at = self.rng.usize(..self.snapshots.len());
            self.tell(|| format!("drop snapshot {at}"));
            let (snapshot, model) = self.snapshots.swap_remove(at);
            if self.rng.bool() {
                check(&snapshot, &model)?;
            }
        }
        Ok(())
    }

    fn maintain(&mut self) -> Result<()> {
        self.tell(|| "maintain".to_owned());
        while self.db().maintain()? {}
        let stats = self.db().stats();
        let kept = (stats.versions, stats.detached) != (0, 0);
        // A thread may be about to free something.
        assert!(stats.snapshots > 0 || !kept || self.background, "{stats:?}");
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<()> {
        self.tell(|| "checkpoint".to_owned());
        self.db().checkpoint()
    }

    fn compact(&mut self) -> Result<()> {
        self.tell(|| "compact".to_owned());
        self.db().compact(|_| ()).map(drop)
    }

    /// Closes the database and opens it again.
    fn reopen(&mut self) -> Result<()> {
        let Some(path) = self.path() else { return Ok(()) };
        self.tell(|| "close and open".to_owned());
        self.end()?;
        self.db = Some(self.options().open(path)?);
        check(&self.db().begin_read()?, &self.model)
    }

    /// Goes on with the files as they are now, as after the end of a process that did not close them; a transaction
    /// that was open has left nothing.
    fn kill(&mut self) -> Result<()> {
        // Writes of a thread meanwhile would be in some of the copies and not in others.
        let folder = self.folder.as_ref().filter(|_| !self.background);
        let Some(folder) = folder.map(|folder| folder.path().to_owned()) else { return Ok(()) };
        self.tell(|| "kill and open".to_owned());
        let tx = self.db().begin_write()?;
        if let Some((name, table)) = self.rng.choice(self.model.iter()) {
            let (key, value) = (table.kind.key(&mut self.rng), table.kind.value(&mut self.rng));
            tx.open_untyped(name)?.put(&key, &value)?;
        }
        let (old, new) = (format!("{}.duramen", self.killed), format!("{}.duramen", self.killed + 1));
        for entry in std::fs::read_dir(&folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if let Some(rest) = name.strip_prefix(&old) {
                std::fs::copy(folder.join(&name), folder.join(format!("{new}{rest}"))).unwrap();
            }
        }
        drop(tx);
        self.snapshots.clear();
        self.db = None;
        std::fs::remove_file(folder.join(old)).unwrap();
        self.killed += 1;
        self.db = Some(self.options().open(folder.join(new))?);
        self.check_all()
    }

    fn check_all(&self) -> Result<()> {
        assert_eq!(self.db().verify(|_| ())?.findings, []);
        check(&self.db().begin_read()?, &self.model)?;
        self.snapshots.iter().try_for_each(|(snapshot, model)| check(snapshot, model))
    }

    /// Closes the database, which by then keeps nothing for snapshots.
    fn end(&mut self) -> Result<()> {
        for (snapshot, model) in self.snapshots.drain(..) {
            check(&snapshot, &model)?;
        }
        let db = self.db.take().unwrap();
        while db.maintain()? {}
        let stats = db.stats();
        assert!(self.background || (stats.snapshots, stats.versions, stats.detached) == (0, 0, 0), "{stats:?}");
        db.close()
    }
}

fn remove_range(open: &mut UntypedTable<'_>, entries: &mut Entries, bounds: &DrawnRange) {
    open.remove_range(borrowed(bounds));
    let keys: Vec<Vec<u8>> = within(entries, bounds).map(|(key, _)| key.clone()).collect();
    keys.iter().for_each(|key| drop(entries.remove(key)));
}

/// Fails unless both are the same entries.
fn same<'m>(
    found: impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>>,
    right: impl Iterator<Item = (&'m Vec<u8>, &'m Arc<[u8]>)>,
    what: &str,
) {
    let mut right = right;
    for (at, entry) in found.enumerate() {
        let (key, value) = entry.unwrap_or_else(|error| panic!("{what}, entry {at}: {error}"));
        let found = (&key, &Arc::from(value));
        let wanted = right.next();
        assert!(wanted == Some(found), "{what}, entry {at}: {}, not {}", short(Some(found)), short(wanted));
    }
    let missing = right.next();
    assert!(missing.is_none(), "{what}: {} is missing", short(missing));
}

fn short(entry: Option<(&Vec<u8>, &Arc<[u8]>)>) -> String {
    entry.map_or("nothing".to_owned(), |(key, value)| {
        let cut = |bytes: &[u8]| bytes[..bytes.len().min(40)].escape_ascii().to_string();
        format!("{}.. ({} bytes) with {}.. ({} bytes)", cut(key), key.len(), cut(value), value.len())
    })
}

fn read_one(rng: &mut Rng, open: &ReadOnlyUntypedTable, table: &Table) -> Result<()> {
    let Table { kind, entries } = table;
    let bounds = kind.bounds(rng);
    match rng.u8(0..10) {
        0..4 => {
            let key = kind.key(rng);
            let found = open.get(&key)?;
            let right = entries.get(&key).map(|value| &**value);
            assert!(
                found.as_deref() == right,
                "the value of {}",
                short(Some((&key, &right.unwrap_or_default().into())))
            );
        }
        4 | 5 => {
            let right = within(entries, &bounds).count() as u64;
            let found = open.count(borrowed(&bounds))?;
            assert_eq!(found, right, "entries of a range, counted; some: {}", short(within(entries, &bounds).next()));
        }
        6 => same(open.range(borrowed(&bounds)).take(40), within(entries, &bounds).take(40), "entries"),
        7 => same(open.range(borrowed(&bounds)).rev().take(40), within(entries, &bounds).rev().take(40), "backwards"),
        8 => {
            // From both ends at once.
            let (mut found, mut right) = (open.range(borrowed(&bounds)), within(entries, &bounds));
            for _ in 0..30 {
                let (found, right) = match rng.bool() {
                    true => (found.next(), right.next()),
                    false => (found.next_back(), right.next_back()),
                };
                same(found.into_iter(), right.into_iter(), "from both ends");
            }
        }
        _ => {
            let key = kind.key(rng);
            let found = open.get_stream(&key)?.map(|mut stream| {
                let mut value = Vec::new();
                std::io::Read::read_to_end(&mut stream, &mut value).unwrap();
                value
            });
            assert_eq!(found.as_deref(), entries.get(&key).map(|value| &**value));
        }
    }
    Ok(())
}

/// Everything in a snapshot.
fn check(snapshot: &ReadTransaction, model: &Model) -> Result<()> {
    let names: Vec<String> = snapshot.tables()?.into_iter().map(|table| table.name).collect();
    assert!(names.iter().eq(model.keys()), "tables {names:?}");
    for (name, table) in model {
        let open = snapshot.open_untyped(name)?;
        assert_eq!(open.len(), table.entries.len() as u64, "entries of {name}");
        assert_eq!(open.count(..)?, open.len(), "entries of {name}, counted");
        same(open.range(..), table.entries.iter(), name);
    }
    Ok(())
}

/// Runs the history of a seed; says how many operations it did, or what went wrong.
fn run(seed: u64, verbose: bool) -> Result<u64, String> {
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| -> Result<u64> {
        let mut history = History::new(seed, verbose)?;
        history.run()?;
        Ok(history.done)
    }));
    match outcome {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            Err(words.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
        }
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

#[test]
fn random_histories_agree_with_ordered_maps() {
    if let Some(seed) = number("DURAMEN_HISTORY_SEED") {
        run(seed, true).unwrap_or_else(|wrong| panic!("{wrong}"));
        return;
    }
    let wanted = number("DURAMEN_HISTORY_OPS").unwrap_or(1_000_000);
    let (next, done, failed) = (AtomicU64::new(1), AtomicU64::new(0), AtomicU64::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut wrong = Vec::new();
            while done.load(Ordering::Relaxed) < wanted && failed.load(Ordering::Relaxed) < MAX_FAILURES {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                match run(seed, false) {
                    Ok(ops) => drop(done.fetch_add(ops, Ordering::Relaxed)),
                    Err(words) => {
                        failed.fetch_add(1, Ordering::Relaxed);
                        let again = format!("DURAMEN_HISTORY_SEED={seed} cargo test -p duramen --test histories");
                        wrong.push(format!("{words}\nrepeat it with: {again}"));
                    }
                }
            }
            wrong
        };
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("a thread of the test")).collect()
    });
    println!("{} operations in {} histories", done.into_inner(), next.into_inner() - 1);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

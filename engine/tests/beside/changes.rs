//! Every kind of change, chosen by a seed. It is made in a transaction and in the history.

use super::world::{Between, Content, History, KINDS, World};
use crate::policies;
use duramen::db::{DEFAULT_FILL, UntypedTable};
use duramen::{Database, Durability, Error, Result, TableDef, WriteTransaction};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// Says in each snapshot which commit it is of.
pub(crate) const COMMIT: TableDef<u32, u64> = TableDef::new("commit");
const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

/// One transaction that changes tables and is mostly committed.
pub(crate) fn transaction(db: &Database, history: &History, rng: &mut fastrand::Rng) -> Result<()> {
    let mut tx = db.begin_write()?;
    let (number, world) = history.latest();
    let mut changing = Changing { tx: &tx, world: (*world).clone(), page_size: db.stats().page_size, rng };
    if changing.rng.u8(0..4) == 0 {
        changing.check_tables(number > 0)?;
    }
    for _ in 0..changing.rng.u8(1..4) {
        changing.change()?;
    }
    if changing.rng.u8(0..3) == 0 {
        changing.check_tables(number > 0)?;
    }
    let world = changing.world;
    if rng.u8(0..12) == 0 {
        return Ok(());
    }
    tx.open_table(COMMIT)?.put(0, number + 1)?;
    tx.set_durability(if rng.bool() { Durability::Commit } else { Durability::None });
    history.add(number + 1, world);
    tx.commit()
}

struct Changing<'t> {
    tx: &'t WriteTransaction,
    world: World,
    page_size: usize,
    rng: &'t mut fastrand::Rng,
}

impl Changing<'_> {
    fn change(&mut self) -> Result<()> {
        let free = NAMES.iter().find(|name| !self.world.contains_key(**name));
        let name = match (self.rng.choice(self.world.keys()).cloned(), free) {
            (None, None) => return Ok(()),
            (None, Some(free)) => return self.create(free),
            (Some(_), Some(free)) if self.world.len() < 3 || self.rng.u8(0..20) == 0 => return self.create(free),
            (Some(name), _) => name,
        };
        match self.rng.u8(0..100) {
            0..30 => self.put(&name, 40, false),
            30..40 => self.put(&name, 200, true),
            40..55 => self.remove(&name),
            55..78 => self.remove_ranges(&name),
            78..83 => self.drop_table(&name),
            83..88 => match free {
                Some(free) => self.rename(&name, free),
                None => Ok(()),
            },
            88..93 => self.load(&name),
            _ => self.look_into(&name),
        }
    }

    fn content(&mut self, name: &str) -> &mut Content {
        Arc::make_mut(self.world.get_mut(name).expect("a table of this name"))
    }

    fn open(&self, name: &str) -> Result<UntypedTable<'_>> {
        self.tx.open_untyped(name)
    }

    fn create(&mut self, name: &str) -> Result<()> {
        let kind = self.rng.choice(KINDS).expect("a kind");
        let options = kind.options(self.rng);
        let options = policies::drawn(self.rng, self.page_size, options);
        let (keys, values) = kind.types();
        drop(self.tx.create_untyped(name, keys, values, options)?);
        self.world.insert(name.to_owned(), Arc::new(Content { kind, options, entries: BTreeMap::new() }));
        for _ in 0..3 {
            self.put(name, 200, true)?;
        }
        Ok(())
    }

    fn put(&mut self, name: &str, most: u32, in_order: bool) -> Result<()> {
        let (kind, page_size) = (self.content(name).kind, self.page_size);
        let (first, count) = (self.rng.u32(0..kind.span()), self.rng.u32(1..=most));
        let mut new = Vec::new();
        for i in 0..count {
            let n = if in_order { (first + i).min(kind.span() - 1) } else { self.rng.u32(0..kind.span()) };
            new.push((n, self.rng.u32(..)));
        }
        let mut table = self.open(name)?;
        for (n, stamp) in &new {
            table.put(&kind.key(*n, page_size), &kind.value(*stamp, page_size))?;
        }
        drop(table);
        self.content(name).entries.extend(new);
        Ok(())
    }

    /// Neighbours go one by one, so that pages are merged.
    fn remove(&mut self, name: &str) -> Result<()> {
        let (kind, page_size) = (self.content(name).kind, self.page_size);
        let (from, most) = (self.rng.u32(0..kind.span()), self.rng.usize(1..200));
        let gone: Vec<u32> = self.content(name).entries.range(from..).take(most).map(|(n, _)| *n).collect();
        let mut table = self.open(name)?;
        for n in &gone {
            table.delete(&kind.key(*n, page_size))?;
        }
        drop(table);
        self.content(name).entries.retain(|n, _| !gone.contains(n));
        Ok(())
    }

    fn remove_ranges(&mut self, name: &str) -> Result<()> {
        let (kind, page_size) = (self.content(name).kind, self.page_size);
        for _ in 0..self.rng.u8(1..4) {
            let range = Between::any(kind, self.rng);
            let (from, to) = range.keys(kind, page_size);
            self.open(name)?.remove_range((from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice)));
            self.content(name).entries.retain(|n, _| !range.holds(*n));
        }
        self.put(name, 60, true)
    }

    fn drop_table(&mut self, name: &str) -> Result<()> {
        assert!(self.tx.drop_table(name)?, "table {name} is not there");
        self.world.remove(name);
        Ok(())
    }

    fn rename(&mut self, name: &str, to: &str) -> Result<()> {
        self.tx.rename_table(name, to)?;
        let content = self.world.remove(name).expect("a table of this name");
        self.world.insert(to.to_owned(), content);
        Ok(())
    }

    /// The same table, written bottom-up.
    fn load(&mut self, name: &str) -> Result<()> {
        let (Content { kind, options, .. }, page_size) = (self.content(name).clone(), self.page_size);
        let chosen: Vec<u32> = (0..kind.span()).filter(|_| self.rng.u8(0..3) == 0).collect();
        let entries: BTreeMap<u32, u32> = chosen.into_iter().map(|n| (n, self.rng.u32(..))).collect();
        let (keys, values) = kind.types();
        self.tx.drop_table(name)?;
        let mut bulk = self.tx.bulk_load(name, keys, values, options, DEFAULT_FILL)?;
        for (n, stamp) in &entries {
            bulk.push(&kind.key(*n, page_size), &kind.value(*stamp, page_size))?;
        }
        assert_eq!(bulk.finish()?, entries.len() as u64);
        self.content(name).entries = entries;
        Ok(())
    }

    /// The transaction sees its own changes over all that is committed.
    fn look_into(&mut self, name: &str) -> Result<()> {
        let (content, page_size) = (self.content(name).clone(), self.page_size);
        let range = Between::any(content.kind, self.rng);
        let (from, to) = range.keys(content.kind, page_size);
        let expected = content.entries.iter().filter(|(n, _)| range.holds(**n));
        let expected =
            expected.map(|(n, stamp)| (content.kind.key(*n, page_size), content.kind.value(*stamp, page_size)));
        let table = self.open(name)?;
        assert_eq!(table.len()?, content.entries.len() as u64, "entries of table {name} in a transaction");
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (from.as_ref().map(Vec::as_slice), to.as_ref().map(Vec::as_slice));
        let found = table.range(bounds).collect::<Result<Vec<_>>>()?;
        assert!(found.into_iter().eq(expected), "{range:?} of table {name} in a transaction");
        Ok(())
    }

    /// The transaction sees all tables that were committed, published or not.
    fn check_tables(&mut self, begun: bool) -> Result<()> {
        let found: Vec<_> = self.tx.tables()?.into_iter().map(|info| (info.name, info.entries)).collect();
        let tables = self.world.iter().map(|(name, content)| (name.clone(), content.entries.len() as u64));
        let mut expected: Vec<_> = tables.chain(begun.then(|| (COMMIT.name().to_owned(), 1))).collect();
        expected.sort();
        assert_eq!(found, expected, "the tables that a writing transaction sees");
        Ok(())
    }
}

/// Everything that changes no answer.
pub(crate) fn maintain(db: &Database, rng: &mut fastrand::Rng) -> Result<()> {
    match rng.u8(0..10) {
        0..3 => db.checkpoint(),
        3..5 => db.compact(|_| ()).map(drop),
        5..7 => {
            let report = db.verify(|_| ())?;
            assert!(report.findings.is_empty(), "{:?}", report.findings);
            Ok(())
        }
        7 => match db.table_stats(rng.choice(NAMES).expect("a name")) {
            Err(Error::NoTable { .. }) => Ok(()),
            stats => {
                assert_eq!(stats?.problems, []);
                Ok(())
            }
        },
        8 => {
            let stats = db.stats();
            assert!(stats.cache_pages > 0 && stats.free_bytes <= stats.file_bytes, "{stats:?}");
            Ok(())
        }
        _ => db.maintain().map(drop),
    }
}

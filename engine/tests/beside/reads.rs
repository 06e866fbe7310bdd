//! Every kind of read. Each is compared with the history.

use super::changes::COMMIT;
use super::world::{Between, Content, History, World, WorldTable};
use duramen::db::{ReadOnlyUntypedTable, Salvaged};
use duramen::query::{Aggregate, Column, Number, Outcome, Query};
use duramen::{Database, Error, ReadTransaction, Result, TableDef};
use std::io::Read;
use std::ops::Bound;
use std::sync::Arc;

/// A snapshot and what it must show.
pub(crate) struct Seen {
    tx: ReadTransaction,
    world: Arc<World>,
    number: u64,
    page_size: usize,
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;
type Keys = (Bound<Vec<u8>>, Bound<Vec<u8>>);

fn slices(keys: &Keys) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (keys.0.as_ref().map(Vec::as_slice), keys.1.as_ref().map(Vec::as_slice))
}

impl Seen {
    /// A snapshot of now.
    pub(crate) fn of(db: &Database, history: &History) -> Result<Seen> {
        let tx = db.begin_read()?;
        let number = tx.open_table(COMMIT)?.get(0)?.map_or(0, |number| number.value());
        Ok(Seen { tx, world: history.at(number), number, page_size: db.stats().page_size })
    }

    /// Looks at some table in some way.
    pub(crate) fn look(&self, rng: &mut fastrand::Rng) -> Result<()> {
        let Some((name, content)) = rng.choice(self.world.iter()) else { return self.look_at_tables() };
        let what = || format!("table {name} of commit {}, {:?} {:?}", self.number, content.kind, content.options.keys);
        let table = self.tx.open_untyped(name)?;
        assert_eq!(table.len(), content.entries.len() as u64, "entries of {}", what());
        let one = TableLook { table: &table, content, page_size: self.page_size, what: &what };
        match rng.u8(0..20) {
            0 => self.look_at_tables(),
            1..4 => one.get(rng),
            4..8 => one.range(rng),
            8 => one.both_ends(rng),
            9 => one.prefix(rng),
            10..13 => one.count(rng),
            13 | 14 => one.salvage(rng),
            _ => self.query(name, &one, rng),
        }
    }

    /// Looks at all of it.
    pub(crate) fn look_at_all(&self) -> Result<()> {
        self.look_at_tables()?;
        for (name, content) in self.world.iter() {
            let table = self.tx.open_untyped(name)?;
            let what = || format!("table {name} of commit {}", self.number);
            let one = TableLook { table: &table, content, page_size: self.page_size, what: &what };
            let found = table.range(..).collect::<Result<Entries>>()?;
            one.compare(&found, Between(Bound::Unbounded, Bound::Unbounded), "all of");
        }
        Ok(())
    }

    fn look_at_tables(&self) -> Result<()> {
        let expected = self.world.iter().map(|(name, content)| (name.clone(), content.entries.len() as u64));
        let mut expected: Vec<_> = expected.chain((self.number > 0).then(|| (COMMIT.name().to_owned(), 1))).collect();
        expected.sort();
        let (salvaged, errors) = self.tx.salvage_tables()?;
        for infos in [self.tx.tables()?, salvaged] {
            let found: Vec<_> = infos.into_iter().map(|info| (info.name, info.entries)).collect();
            assert_eq!(found, expected, "the tables of commit {}", self.number);
        }
        assert!(errors.is_empty(), "{errors:?}");
        assert!(matches!(self.tx.open_untyped("none"), Err(Error::NoTable { .. })));
        Ok(())
    }

    fn query(&self, name: &str, one: &TableLook<'_>, rng: &mut fastrand::Rng) -> Result<()> {
        let (kind, page_size) = (one.content.kind, self.page_size);
        let range = Between::any(kind, rng);
        let inside: Vec<(u32, u32)> =
            one.content.entries.iter().filter(|(n, _)| range.holds(**n)).map(|(n, stamp)| (*n, *stamp)).collect();
        let threads = rng.usize(1..4);
        let odd = rng.bool();
        let count = |few: &[(u32, u32)]| Outcome::Number(Number::Unsigned(few.len() as u128));
        let sum = |few: &[(u32, u32)]| {
            Outcome::Number(Number::Unsigned(few.iter().map(|(_, stamp)| u128::from(*stamp)).sum()))
        };
        let odds: Vec<_> = inside.iter().copied().filter(|(_, stamp)| !odd || stamp % 2 == 1).collect();
        let (found, expected) = match kind {
            WorldTable::Numbers => {
                let table = self.tx.open_table(TableDef::<u32, u64>::new(name))?;
                let query = Query::of(&table).range((range.0, range.1)).threads(threads);
                let query = if odd { query.filter(|_, stamp| stamp % 2 == 1) } else { query };
                let asked = [Aggregate::Count, Aggregate::Sum(Column::Value), Aggregate::Sum(Column::Key)];
                let keys = Outcome::Number(Number::Unsigned(odds.iter().map(|(n, _)| u128::from(*n)).sum()));
                (query.run(&asked)?, vec![count(&odds), sum(&odds), keys])
            }
            WorldTable::Keys => {
                let table = self.tx.open_table(TableDef::<u64, ()>::new(name))?;
                let key = |n| u64::from_be_bytes(kind.key(n, page_size).try_into().expect("8 bytes"));
                let bounds = (range.0.map(key), range.1.map(key));
                let keys: Vec<u64> = inside.iter().map(|(n, _)| key(*n)).collect();
                assert_eq!(table.keys(bounds).collect::<Result<Vec<_>>>()?, keys, "{range:?} of {}", (one.what)());
                let query = Query::of(&table).range(bounds).threads(threads);
                let total = Outcome::Number(Number::Unsigned(keys.iter().map(|key| u128::from(*key)).sum()));
                (query.run(&[Aggregate::Count, Aggregate::Sum(Column::Key)])?, vec![count(&inside), total])
            }
            WorldTable::Long => {
                let table = self.tx.open_table(TableDef::<&[u8], u64>::new(name))?;
                let keys = range.keys(kind, page_size);
                let query = Query::of(&table).range(slices(&keys)).threads(threads);
                let query = if odd { query.filter(|_, stamp| stamp % 2 == 1) } else { query };
                (query.run(&[Aggregate::Count, Aggregate::Sum(Column::Value)])?, vec![count(&odds), sum(&odds)])
            }
            WorldTable::Texts | WorldTable::Mixed => {
                let table = self.tx.open_table(TableDef::<&[u8], &[u8]>::new(name))?;
                let keys = range.keys(kind, page_size);
                let query = Query::of(&table).range(slices(&keys)).threads(threads);
                let query = if odd { query.filter(|_, value| value[0] % 2 == 1) } else { query };
                (query.run(&[Aggregate::Count])?, vec![count(&odds)])
            }
        };
        assert_eq!(found, expected, "a query of {range:?} of {}, {threads} threads, filter {odd}", (one.what)());
        Ok(())
    }
}

struct TableLook<'l> {
    table: &'l ReadOnlyUntypedTable,
    content: &'l Content,
    page_size: usize,
    what: &'l dyn Fn() -> String,
}

impl TableLook<'_> {
    fn key(&self, n: u32) -> Vec<u8> {
        self.content.kind.key(n, self.page_size)
    }

    fn value(&self, stamp: u32) -> Vec<u8> {
        self.content.kind.value(stamp, self.page_size)
    }

    fn compare(&self, found: &Entries, range: Between, how: &str) {
        let inside = self.content.entries.iter().filter(|(n, _)| range.holds(**n));
        let expected: Entries = inside.map(|(n, stamp)| (self.key(*n), self.value(*stamp))).collect();
        assert_eq!(found.len(), expected.len(), "entries of {range:?} of {}, {how}", (self.what)());
        for (found, expected) in found.iter().zip(&expected) {
            let what = self.what;
            assert_eq!(found.0.escape_ascii().to_string(), expected.0.escape_ascii().to_string(), "{}, {how}", what());
            assert_eq!(found.1, expected.1, "value of {} of {}, {how}", found.0.escape_ascii(), what());
        }
    }

    fn get(&self, rng: &mut fastrand::Rng) -> Result<()> {
        for _ in 0..30 {
            let n = rng.u32(0..self.content.kind.span());
            let key = self.key(n);
            let expected = self.content.entries.get(&n).map(|stamp| self.value(*stamp));
            let found = match rng.u8(0..3) {
                0 => self.table.get_stream(&key)?.map(|mut stream| {
                    let mut value = Vec::new();
                    stream.read_to_end(&mut value).map(|_| value).expect("the value as a stream")
                }),
                _ => self.table.get(&key)?,
            };
            assert_eq!(found, expected, "the value of {} of {}", key.escape_ascii(), (self.what)());
        }
        Ok(())
    }

    fn range(&self, rng: &mut fastrand::Rng) -> Result<()> {
        let range = Between::any(self.content.kind, rng);
        let keys = range.keys(self.content.kind, self.page_size);
        let forward = rng.bool();
        let found = self.table.range(slices(&keys));
        let found = match forward {
            true => found.collect::<Result<Entries>>()?,
            false => {
                let mut found = found.rev().collect::<Result<Entries>>()?;
                found.reverse();
                found
            }
        };
        self.compare(&found, range, if forward { "forward" } else { "backward" });
        Ok(())
    }

    /// From both ends by turns until they meet.
    fn both_ends(&self, rng: &mut fastrand::Rng) -> Result<()> {
        let range = Between::any(self.content.kind, rng);
        let keys = range.keys(self.content.kind, self.page_size);
        let (mut front, mut back) = (Entries::new(), Entries::new());
        let mut entries = self.table.range(slices(&keys));
        loop {
            let at_front = rng.bool();
            let entry = if at_front { entries.next() } else { entries.next_back() };
            match entry.transpose()? {
                Some(entry) if at_front => front.push(entry),
                Some(entry) => back.push(entry),
                None => break,
            }
        }
        front.extend(back.into_iter().rev());
        self.compare(&front, range, "from both ends");
        Ok(())
    }

    fn prefix(&self, rng: &mut fastrand::Rng) -> Result<()> {
        let mut prefix = self.key(rng.u32(0..self.content.kind.span()));
        let cut = rng.usize(0..6).min(prefix.len());
        prefix.truncate(prefix.len() - cut);
        let found = self.table.prefix(&prefix).map(|entry| entry.map(|(key, _)| key)).collect::<Result<Vec<_>>>()?;
        let keys = self.content.entries.keys().map(|n| self.key(*n)).filter(|key| key.starts_with(&prefix));
        assert!(found.into_iter().eq(keys), "prefix {} of {}", prefix.escape_ascii(), (self.what)());
        Ok(())
    }

    fn count(&self, rng: &mut fastrand::Rng) -> Result<()> {
        for _ in 0..5 {
            let range = Between::any(self.content.kind, rng);
            let keys = range.keys(self.content.kind, self.page_size);
            let expected = self.content.entries.keys().filter(|n| range.holds(**n)).count();
            assert_eq!(self.table.count(slices(&keys))?, expected as u64, "count of {range:?} of {}", (self.what)());
        }
        Ok(())
    }

    fn salvage(&self, rng: &mut fastrand::Rng) -> Result<()> {
        let range = Between::any(self.content.kind, rng);
        let keys = range.keys(self.content.kind, self.page_size);
        let mut salvage = self.table.salvage(slices(&keys));
        let mut found = Entries::new();
        while let Some(next) = salvage.next_with(|key, value| (key.to_vec(), value.to_vec()))? {
            match next {
                Salvaged::Entry(entry) => found.push(entry),
                Salvaged::Lost(lost) => panic!("{} has lost {lost:?}", (self.what)()),
            }
        }
        self.compare(&found, range, "salvaged");
        Ok(())
    }
}

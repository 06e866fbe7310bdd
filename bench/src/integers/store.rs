//! The measured stores: a table of a Duramen database through its public interface, and the references, a sorted `Vec`
//! and a `BTreeMap`. Each returns its results, which are checked.

use super::layout::Layout;
use super::simd::sum;
use crate::Result;
use duramen::db::types::Key;
use duramen::query::{Aggregate, Column, Number, Outcome, Query};
use duramen::{Database, Durability, ReadOnlyTable, TableDef};
use std::collections::BTreeMap;

/// The name of the table.
const TABLE: &str = "keys";

/// Adds a key to a checksum that depends on the order.
#[inline(always)]
pub(super) fn fold(sum: u64, key: u64) -> u64 {
    sum.rotate_left(1) ^ key
}

/// A store of keys in order.
pub(super) trait Store {
    /// Adds keys.
    fn insert(&mut self, keys: &[u32]) -> Result<()>;
    /// Looks up these keys one by one and returns how many exist.
    fn lookup(&self, keys: &[u32]) -> Result<usize>;
    /// The checksum of all keys, read one by one in order ([`fold`]).
    fn cursor(&self) -> Result<u64>;
    /// The sum of the keys.
    fn sum(&self) -> Result<u128>;
    /// The average of the keys above this one.
    fn average_above(&self, key: u32) -> Result<f64>;
    /// The number of keys.
    fn count(&self) -> Result<u64>;
    /// The number of keys above this one.
    fn count_above(&self, key: u32) -> Result<u64>;
}

/// An integer type of keys.
pub(super) trait TableKey: for<'a> Key<Ref<'a> = Self, View<'a> = Self> + From<u32> + Into<u64> + Copy {}

impl TableKey for u32 {}
impl TableKey for u64 {}

/// A Duramen table in memory.
pub(super) struct Table<K: TableKey> {
    db: Database,
    /// The number of entries in a commit.
    commit: usize,
    of: TableDef<'static, K, ()>,
}

impl<K: TableKey> Table<K> {
    /// An empty table, with a cache for this number of keys.
    pub(super) fn create(layout: Layout, page_size: usize, commit: usize, keys: usize) -> Result<Table<K>> {
        let cache = 64 * keys + (64 << 20);
        let db = Database::builder().page_size(page_size).cache(cache).durability(Durability::None).in_memory()?;
        let tx = db.begin_write()?;
        drop(tx.create_untyped(TABLE, &K::type_name(), "()", layout.options())?);
        tx.commit()?;
        Ok(Table { db, commit, of: TableDef::new(TABLE) })
    }

    fn open(&self) -> Result<ReadOnlyTable<K, ()>> {
        Ok(self.db.begin_read()?.open_table(self.of)?)
    }

    /// Bytes of all pages for each key.
    pub(super) fn bytes_per_key(&self) -> Result<f64> {
        let stats = self.db.table_stats(TABLE)?;
        if let Some(problem) = stats.problems.first() {
            return Err(format!("page {}: {}", problem.page, problem.what).into());
        }
        let pages: u64 = stats.levels.iter().map(|level| level.pages).sum();
        let entries = stats.levels.first().map_or(0, |leaves| leaves.entries);
        Ok(pages as f64 * self.db.stats().page_size as f64 / entries.max(1) as f64)
    }
}

/// The number of an outcome that must be a single number.
fn number(outcomes: &[Outcome]) -> Result<Number> {
    match outcomes {
        [Outcome::Number(number)] => Ok(*number),
        other => Err(format!("expected a number, found {other:?}").into()),
    }
}

fn unsigned(outcomes: &[Outcome]) -> Result<u128> {
    match number(outcomes)? {
        Number::Unsigned(number) => Ok(number),
        other => Err(format!("expected an unsigned number, found {other:?}").into()),
    }
}

impl<K: TableKey> Store for Table<K> {
    fn insert(&mut self, keys: &[u32]) -> Result<()> {
        for keys in keys.chunks(self.commit) {
            let tx = self.db.begin_write()?;
            let mut table = tx.open_table(self.of)?;
            keys.iter().try_for_each(|key| table.put(K::from(*key), ()))?;
            drop(table);
            tx.commit()?;
        }
        Ok(())
    }

    fn lookup(&self, keys: &[u32]) -> Result<usize> {
        let table = self.open()?;
        let mut found = 0;
        for key in keys {
            found += usize::from(table.contains_key(K::from(*key))?);
        }
        Ok(found)
    }

    fn cursor(&self) -> Result<u64> {
        let table = self.open()?;
        let mut all = 0;
        for key in table.keys(..) {
            all = fold(all, key?.into());
        }
        Ok(all)
    }

    fn sum(&self) -> Result<u128> {
        unsigned(&Query::of(&self.open()?).threads(1).run(&[Aggregate::Sum(Column::Key)])?)
    }

    fn average_above(&self, key: u32) -> Result<f64> {
        let above = (std::ops::Bound::Excluded(K::from(key)), std::ops::Bound::Unbounded);
        let table = self.open()?;
        Ok(number(&Query::of(&table).threads(1).range(above).run(&[Aggregate::Average(Column::Key)])?)?.to_f64())
    }

    fn count(&self) -> Result<u64> {
        Ok(unsigned(&Query::of(&self.open()?).threads(1).run(&[Aggregate::Count])?)?.try_into()?)
    }

    fn count_above(&self, key: u32) -> Result<u64> {
        let above = (std::ops::Bound::Excluded(K::from(key)), std::ops::Bound::Unbounded);
        Ok(unsigned(&Query::of(&self.open()?).threads(1).range(above).run(&[Aggregate::Count])?)?.try_into()?)
    }
}

/// A sorted array, which shows the cost of scanning alone.
pub(super) struct Sorted(pub(super) Vec<u32>);

impl Sorted {
    fn above(&self, key: u32) -> &[u32] {
        &self.0[self.0.partition_point(|other| *other <= key)..]
    }
}

impl Store for Sorted {
    /// Appends keys, which must be above all others.
    fn insert(&mut self, keys: &[u32]) -> Result<()> {
        self.0.extend_from_slice(keys);
        Ok(())
    }

    fn lookup(&self, keys: &[u32]) -> Result<usize> {
        Ok(keys.iter().filter(|key| self.0.binary_search(key).is_ok()).count())
    }

    fn cursor(&self) -> Result<u64> {
        Ok(self.0.iter().fold(0, |all, key| fold(all, u64::from(*key))))
    }

    fn sum(&self) -> Result<u128> {
        Ok(u128::from(sum(&self.0)))
    }

    fn average_above(&self, key: u32) -> Result<f64> {
        let above = self.above(key);
        Ok(sum(above) as f64 / above.len() as f64)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn count_above(&self, key: u32) -> Result<u64> {
        Ok(self.above(key).len() as u64)
    }
}

/// The standard library's ordered map.
pub(super) struct Map(pub(super) BTreeMap<u32, ()>);

impl Store for Map {
    fn insert(&mut self, keys: &[u32]) -> Result<()> {
        keys.iter().for_each(|key| {
            self.0.insert(*key, ());
        });
        Ok(())
    }

    fn lookup(&self, keys: &[u32]) -> Result<usize> {
        Ok(keys.iter().filter(|key| self.0.contains_key(key)).count())
    }

    fn cursor(&self) -> Result<u64> {
        Ok(self.0.keys().fold(0, |all, key| fold(all, u64::from(*key))))
    }

    fn sum(&self) -> Result<u128> {
        Ok(self.0.keys().map(|key| u128::from(*key)).sum())
    }

    fn average_above(&self, key: u32) -> Result<f64> {
        let above = self.0.range((std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded));
        let (sum, count) = above.fold((0u64, 0u64), |(sum, count), (key, ())| (sum + u64::from(*key), count + 1));
        Ok(sum as f64 / count as f64)
    }

    fn count(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn count_above(&self, key: u32) -> Result<u64> {
        Ok(self.0.range((std::ops::Bound::Excluded(key), std::ops::Bound::Unbounded)).count() as u64)
    }
}

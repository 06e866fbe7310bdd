//! Aggregates over the keys and the fixed-size numbers of a table. They run on pages: counts, sums and extremes come
//! from block headers and compressed blocks where possible.
//!
//! `docs/query.md` describes the aggregates. This layer knows neither page layouts nor versions. The crate
//! `duramen-query` parses queries that are text.

mod accumulator;
mod number;
mod run;
#[cfg(test)]
mod tests;

pub use number::{Number, NumberType};

use crate::base::{Error, Result, processors};
use crate::db::types::{Key, Value};
use crate::db::{ReadOnlyTable, ReadOnlyUntypedTable, encode_bounds};
use crate::txn::KeyRange;
use run::QueryPlan;
use std::marker::PhantomData;
use std::ops::RangeBounds;

/// The default limit of numbers that a query keeps in memory: about 50 MB.
///
/// ```
/// assert_eq!(duramen::query::MAX_NUMBERS, 1 << 20);
/// ```
pub const MAX_NUMBERS: u64 = 1 << 20;

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// An aggregate over the selected entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// The number of entries.
    Count,
    /// The sum of a column.
    Sum(Column),
    /// The average of a column.
    Average(Column),
    /// The least number of a column.
    Min(Column),
    /// The greatest number of a column.
    Max(Column),
    /// The number of different numbers in a column.
    CountDistinct(Column),
    /// The different numbers of a column, in order.
    Distinct(Column),
    /// The given number of greatest numbers of a column, the greatest first.
    Top(Column, usize),
    /// The given number of least numbers of a column, the least first.
    Bottom(Column, usize),
}

impl Aggregate {
    /// The column whose numbers it needs.
    ///
    /// ```
    /// use duramen::query::{Aggregate, Column};
    ///
    /// assert_eq!(Aggregate::Sum(Column::Key).column(), Some(Column::Key));
    /// assert_eq!(Aggregate::Count.column(), None);
    /// ```
    pub fn column(&self) -> Option<Column> {
        match *self {
            Aggregate::Count => None,
            Aggregate::Sum(column)
            | Aggregate::Average(column)
            | Aggregate::Min(column)
            | Aggregate::Max(column)
            | Aggregate::CountDistinct(column)
            | Aggregate::Distinct(column)
            | Aggregate::Top(column, _)
            | Aggregate::Bottom(column, _) => Some(column),
        }
    }
}

/// The result of an [`Aggregate`].
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// One number.
    Number(Number),
    /// No number: the average, the least or the greatest number of no entries.
    Nothing,
    /// Several numbers.
    List(Vec<Number>),
}

/// A query of a table in a snapshot.
///
/// ```
/// # fn main() -> duramen::Result<()> {
/// use duramen::query::{Aggregate, Column, Number, Outcome, Query};
/// use duramen::{Codec, Database, TableDef};
/// const READINGS: TableDef<u32, i64> = TableDef::new("readings").codec(Codec::SimdFor);
/// let db = Database::in_memory()?;
/// let tx = db.begin_write()?;
/// {
///     let mut readings = tx.open_table(READINGS)?;
///     for n in 0..1000u32 {
///         readings.put(n, i64::from(n) - 500)?;
///     }
/// }
/// tx.commit()?;
/// let readings = db.begin_read()?.open_table(READINGS)?;
/// let found = Query::of(&readings)
///     .range(10u32..20)
///     .filter(|key, _| key % 2 == 0)
///     .run(&[Aggregate::Count, Aggregate::Sum(Column::Value)])?;
/// let expected = [Number::Unsigned(5), Number::Signed(-2430)].map(Outcome::Number);
/// assert_eq!(found, expected);
/// # Ok(())
/// # }
/// ```
pub struct Query<'t, K: Key, V: Value> {
    table: &'t ReadOnlyUntypedTable,
    range: KeyRange,
    filter: Option<run::Filter<'t>>,
    threads: usize,
    max_numbers: u64,
    of: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value> Query<'t, K, V> {
    /// A query of all entries.
    pub fn of(table: &'t ReadOnlyTable<K, V>) -> Query<'t, K, V> {
        Query::over(table.untyped())
    }

    fn over(table: &'t ReadOnlyUntypedTable) -> Query<'t, K, V> {
        let (range, threads) = (KeyRange::default(), processors());
        Query { table, range, filter: None, threads, max_numbers: MAX_NUMBERS, of: PhantomData }
    }

    /// Selects the entries with keys in this range.
    #[must_use]
    pub fn range<'k>(mut self, range: impl RangeBounds<K::Ref<'k>>) -> Query<'t, K, V> {
        let (lower, upper) = encode_bounds::<K>(&range);
        self.range = KeyRange::of(lower, upper);
        self
    }

    /// Selects the entries for which `keep` returns true. It gets whole values, large ones too. It runs on copies of
    /// leaves, without any latch, and may run on several threads at the same time.
    #[must_use]
    pub fn filter(mut self, keep: impl Fn(K::View<'_>, V::View<'_>) -> bool + Sync + 't) -> Query<'t, K, V> {
        let table = self.table;
        let keep = Box::new(move |key: &[u8], value: &[u8]| {
            let key = K::decode(key).map_err(|what| undecodable(table, "keys", what))?;
            let value = V::decode(value).map_err(|what| undecodable(table, "values", what))?;
            Ok(keep(key, value))
        });
        self.filter = Some(run::Filter { keep, reads_values: true });
        self
    }

    /// As [`Query::filter`], by keys alone. No large value is read.
    ///
    /// ```
    /// use duramen::query::{Aggregate, Number, Outcome, Query};
    /// use duramen::{Database, TableDef};
    /// const TREES: TableDef<&str, &[u8]> = TableDef::new("trees");
    ///
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// for name in ["elm", "oak", "yew"] {
    ///     tx.open_table(TREES)?.put(name, [7; 100_000].as_slice())?;
    /// }
    /// tx.commit()?;
    /// let trees = db.begin_read()?.open_table(TREES)?;
    /// let found = Query::of(&trees).filter_keys(|name| name != "oak").run(&[Aggregate::Count])?;
    /// assert_eq!(found, [Outcome::Number(Number::Unsigned(2))]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn filter_keys(mut self, keep: impl Fn(K::View<'_>) -> bool + Sync + 't) -> Query<'t, K, V> {
        let table = self.table;
        let keep = Box::new(move |key: &[u8], _: &[u8]| {
            K::decode(key).map(&keep).map_err(|what| undecodable(table, "keys", what))
        });
        self.filter = Some(run::Filter { keep, reads_values: false });
        self
    }

    /// The number of threads that share the work. The default is the available parallelism of the machine.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Query<'t, K, V> {
        self.threads = threads;
        self
    }

    /// The limit of numbers that the query keeps in memory for [`Aggregate::Distinct`], [`Aggregate::CountDistinct`],
    /// [`Aggregate::Top`] and [`Aggregate::Bottom`]. The default is [`MAX_NUMBERS`]. A number takes about 50 bytes.
    ///
    /// ```
    /// use duramen::query::{Aggregate, Column, Query};
    /// use duramen::{Database, Error, TableDef};
    /// const READINGS: TableDef<u32, u64> = TableDef::new("readings");
    ///
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// for n in 0..1000u32 {
    ///     tx.open_table(READINGS)?.put(n, u64::from(n) % 10)?;
    /// }
    /// tx.commit()?;
    /// let readings = db.begin_read()?.open_table(READINGS)?;
    /// let different = |column| Query::of(&readings).max_numbers(10).run(&[Aggregate::Distinct(column)]);
    /// assert!(different(Column::Value).is_ok());
    /// assert!(matches!(different(Column::Key), Err(Error::TooManyNumbers { max: 10 })));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn max_numbers(mut self, max_numbers: u64) -> Query<'t, K, V> {
        self.max_numbers = max_numbers;
        self
    }

    /// Computes all `aggregates` in one pass.
    ///
    /// # Errors
    /// [`Error::TableState`] if a column does not have numbers, [`Error::SumTooLarge`], [`Error::TooManyNumbers`], and
    /// the errors of reading pages.
    pub fn run(self, aggregates: &[Aggregate]) -> Result<Vec<Outcome>> {
        let Query { table, range, filter, threads, max_numbers, .. } = self;
        run::run(table, &QueryPlan { aggregates: aggregates.to_vec(), range, filter, threads, max_numbers })
    }
}

impl<'t> Query<'t, &'static [u8], &'static [u8]> {
    /// A query of all entries of a table whose types are known only at run time. Ranges and filters take the encoded
    /// keys and values; [`NumberType`] decodes those that are numbers.
    ///
    /// ```
    /// use duramen::query::{Aggregate, Column, Number, NumberType, Outcome, Query};
    /// use duramen::{Database, TableDef};
    /// const READINGS: TableDef<u32, i64> = TableDef::new("readings");
    ///
    /// let db = Database::in_memory()?;
    /// let tx = db.begin_write()?;
    /// for n in 0..100u32 {
    ///     tx.open_table(READINGS)?.put(n, i64::from(n) - 50)?;
    /// }
    /// tx.commit()?;
    /// let readings = db.begin_read()?.open_untyped("readings")?;
    /// let values = NumberType::named(&readings.info().value_type).expect("readings are numbers");
    /// let found = Query::untyped(&readings)
    ///     .filter(|_, value| values.read(value) < Number::Signed(-45))
    ///     .run(&[Aggregate::Sum(Column::Value)])?;
    /// assert_eq!(found, [Outcome::Number(Number::Signed(-50 - 49 - 48 - 47 - 46))]);
    /// # Ok::<(), duramen::Error>(())
    /// ```
    pub fn untyped(table: &'t ReadOnlyUntypedTable) -> Self {
        Query::over(table)
    }
}

fn undecodable(table: &ReadOnlyUntypedTable, part: &str, what: &str) -> Error {
    let why = format!("an entry has {part} that cannot be decoded: {what}");
    Error::TableState { table: table.name().to_owned(), why }
}

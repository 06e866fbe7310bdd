//! Aggregates over the keys and the fixed-size numbers of a table. They run on pages: counts, sums and extremes come
//! from block headers and compressed blocks where possible.
//!
//! [`Query`] is the interface in Rust, [`Statement`] the one for queries as text; `docs/query.md` describes both. Page
//! layouts and versions must not be handled here.

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::cast_possible_truncation
)]

mod literal;
mod number;
mod parse;
mod predicate;
mod run;
mod statement;
mod tally;
#[cfg(test)]
mod tests;
mod token;

pub use number::Number;
pub use statement::Statement;

use crate::base::{Error, Result};
use crate::db::types::{Key, Value};
use crate::db::{ReadOnlyTable, encode_bounds};
use crate::txn::Stretch;
use run::Plan;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::LazyLock;

/// How many numbers a query keeps in memory at most, unless told otherwise: some 50 MB of them.
///
/// ```
/// assert_eq!(duramen::query::MOST_NUMBERS, 1 << 20);
/// ```
pub const MOST_NUMBERS: u64 = 1 << 20;

/// Which half of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// Something to find out about the entries that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// How many there are.
    Count,
    /// The sum of a column.
    Sum(Column),
    /// Its average.
    Average(Column),
    /// Its least number.
    Min(Column),
    /// Its greatest number.
    Max(Column),
    /// How many different numbers it has.
    CountDistinct(Column),
    /// Which different numbers it has, in order.
    Distinct(Column),
    /// Its greatest numbers, so many, the greatest first.
    Top(Column, usize),
    /// Its least numbers, so many, the least first.
    Bottom(Column, usize),
}

impl Aggregate {
    fn column(&self) -> Option<Column> {
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

/// What was found out.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// One number.
    Number(Number),
    /// Of no entries there is no average, and no least or greatest number.
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
    table: &'t ReadOnlyTable<K, V>,
    range: Stretch,
    filter: Option<run::Filter<'t>>,
    threads: usize,
    most: u64,
    of: PhantomData<fn() -> (K, V)>,
}

impl<'t, K: Key, V: Value> Query<'t, K, V> {
    /// A query of all entries.
    pub fn of(table: &'t ReadOnlyTable<K, V>) -> Query<'t, K, V> {
        let (range, threads) = (Stretch::default(), default_threads());
        Query { table, range, filter: None, threads, most: MOST_NUMBERS, of: PhantomData }
    }

    /// Only entries with keys in this range count.
    #[must_use]
    pub fn range<'k>(mut self, range: impl RangeBounds<K::Ref<'k>>) -> Query<'t, K, V> {
        let (lower, upper) = encode_bounds::<K>(&range);
        self.range = Stretch::of(lower, upper);
        self
    }

    /// Only entries count of which `keep` says so. It sees whole values, large ones too, and may do what it likes: it
    /// runs on copies of leaves, while nothing is latched, and perhaps on several threads at once.
    #[must_use]
    pub fn filter(mut self, keep: impl Fn(K::View<'_>, V::View<'_>) -> bool + Sync + 't) -> Query<'t, K, V> {
        let name = self.table.untyped().name();
        let broken = move |part: &str, what: &str| Error::TableState {
            table: name.to_owned(),
            why: format!("an entry has {part} that cannot be decoded: {what}"),
        };
        let keep = Box::new(move |key: &[u8], value: &[u8]| {
            let key = K::decode(key).map_err(|what| broken("keys", what))?;
            let value = V::decode(value).map_err(|what| broken("values", what))?;
            Ok(keep(key, value))
        });
        self.filter = Some(run::Filter { keep, reads_values: true });
        self
    }

    /// How many threads share the work, each with subtrees of its own; otherwise as many as the machine runs at once.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Query<'t, K, V> {
        self.threads = threads;
        self
    }

    /// How many numbers it may keep in memory, which lists of different, greatest and least ones, and the count of different
    /// ones, need; otherwise [`MOST_NUMBERS`]. A number takes some 50 bytes.
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
    /// let different = |column| Query::of(&readings).most_numbers(10).run(&[Aggregate::Distinct(column)]);
    /// assert!(different(Column::Value).is_ok());
    /// assert!(matches!(different(Column::Key), Err(Error::TooManyNumbers { most: 10 })));
    /// # Ok::<(), duramen::Error>(())
    /// ```
    #[must_use]
    pub fn most_numbers(mut self, most: u64) -> Query<'t, K, V> {
        self.most = most;
        self
    }

    /// Finds out all of `aggregates` in one go.
    ///
    /// # Errors
    /// [`Error::TableState`] where a column has no numbers, [`Error::SumTooLarge`], [`Error::TooManyNumbers`], and pages that
    /// cannot be read.
    pub fn run(self, aggregates: &[Aggregate]) -> Result<Vec<Outcome>> {
        let Query { table, range, filter, threads, most, .. } = self;
        run::run(table.untyped(), &Plan { aggregates: aggregates.to_vec(), range, filter, threads, most })
    }
}

/// As many threads as the machine runs at once. The system reads files to tell, longer than a small query takes: it is
/// asked once.
fn default_threads() -> usize {
    static THREADS: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *THREADS
}

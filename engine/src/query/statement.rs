//! [`Statement`]: a query as text, such as `SUM(key), COUNT(*) FROM t WHERE key >= 10 AND key < 99`.

use super::number::{Number, NumberType};
use super::parse::{Parsed, parse};
use super::predicate::split_range;
use super::run::{Filter, Plan, run};
use super::token::wrong;
use super::{Column, MOST_NUMBERS, Outcome, default_threads};
use crate::base::Result;
use crate::db::ReadTransaction;

/// A query that was parsed from a text. `docs/query.md` has the syntax.
///
/// ```
/// # fn main() -> duramen::Result<()> {
/// use duramen::query::{Number, Outcome, Statement};
/// # use duramen::{Codec, Database, TableDef};
/// # let db = Database::in_memory()?;
/// # let tx = db.begin_write()?;
/// # (0..100u32).try_for_each(|n| tx.open_table(TableDef::<u32, ()>::new("t").codec(Codec::Bp128))?.put(n, ()))?;
/// # tx.commit()?;
/// let statement: Statement = "SUM(key), COUNT(*) FROM t WHERE key >= 10 AND key < 99".parse()?;
/// let found = statement.run(&db.begin_read()?)?;
/// assert_eq!(found, [4806, 89].map(|number| Outcome::Number(Number::Unsigned(number))));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Statement {
    parsed: Parsed,
    threads: usize,
    most: u64,
}

impl std::str::FromStr for Statement {
    type Err = crate::Error;

    /// Parses a query. An error has the position in the text and says what is expected there.
    fn from_str(text: &str) -> Result<Statement> {
        Ok(Statement { parsed: parse(text)?, threads: default_threads(), most: MOST_NUMBERS })
    }
}

impl Statement {
    /// The number of threads that share the work. The default is the available parallelism of the machine.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Statement {
        self.threads = threads;
        self
    }

    /// The limit of numbers that the query keeps in memory, by default [`MOST_NUMBERS`]. See [`super::Query::most_numbers`].
    #[must_use]
    pub fn most_numbers(mut self, most: u64) -> Statement {
        self.most = most;
        self
    }

    /// The names of the aggregates, in the order of the outcomes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parsed.aggregates.iter().map(|(_, name, _)| name.as_str())
    }

    /// Runs the query on a snapshot.
    ///
    /// # Errors
    /// [`crate::Error::NoTable`], [`crate::Error::Query`] if a column does not have numbers,
    /// [`crate::Error::SumTooLarge`], [`crate::Error::TooManyNumbers`], and the errors of reading pages.
    pub fn run(&self, snapshot: &ReadTransaction) -> Result<Vec<Outcome>> {
        let table = snapshot.open_untyped(&self.parsed.table)?;
        let info = table.info();
        let [keys, values] = [&info.key_type, &info.value_type].map(|name| NumberType::named(name));
        let asked = self.parsed.aggregates.iter().filter_map(|(aggregate, _, at)| Some((aggregate.column()?, *at)));
        let tested = [(Column::Key, self.parsed.key_at), (Column::Value, self.parsed.value_at)];
        let tested = tested.into_iter().filter_map(|(column, at)| Some((column, at?)));
        for (column, at) in asked.chain(tested) {
            let (of, name, part) = match column {
                Column::Key => (keys, &info.key_type, "keys"),
                Column::Value => (values, &info.value_type, "values"),
            };
            if of.is_none() {
                return Err(wrong(
                    at,
                    format!("the {part} of table {} have type {name}, which is not a number", info.name),
                ));
            }
        }
        let (range, rest) = split_range(self.parsed.predicate.clone(), keys);
        let filter = rest.map(|predicate| {
            let read = |of: Option<NumberType>, bytes: &[u8]| of.map_or(Number::Unsigned(0), |of| of.read(bytes));
            let keep =
                Box::new(move |key: &[u8], value: &[u8]| Ok(predicate.holds(read(keys, key), read(values, value))));
            Filter { keep, reads_values: self.parsed.value_at.is_some() }
        });
        let aggregates = self.parsed.aggregates.iter().map(|(aggregate, ..)| *aggregate).collect();
        run(&table, &Plan { aggregates, range, filter, threads: self.threads, most: self.most })
    }
}

//! [`Statement`]: a query as text, such as `SUM(key), COUNT(*) FROM t WHERE key >= 10 AND key < 99`.

use crate::error::{Error, Result, wrong};
use crate::parse::{Parsed, parse};
use crate::predicate::split_range;
use duramen::ReadTransaction;
use duramen::query::{Column, Number, NumberType, Outcome, Query};

/// A query that was parsed from a text. `docs/query.md` has the syntax.
///
/// ```
/// # fn main() -> duramen_query::Result<()> {
/// use duramen::query::{Number, Outcome};
/// use duramen_query::Statement;
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
    threads: Option<usize>,
    max_numbers: Option<u64>,
}

impl std::str::FromStr for Statement {
    type Err = Error;

    /// Parses a query. An error contains the position in the text and what is expected there.
    fn from_str(text: &str) -> Result<Statement> {
        Ok(Statement { parsed: parse(text)?, threads: None, max_numbers: None })
    }
}

impl Statement {
    /// The number of threads that share the work. The default is the available parallelism of the machine.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Statement {
        self.threads = Some(threads);
        self
    }

    /// The limit of numbers that the query keeps in memory, as in [`Query::max_numbers`]. The default is
    /// [`duramen::query::MAX_NUMBERS`].
    #[must_use]
    pub fn max_numbers(mut self, max_numbers: u64) -> Statement {
        self.max_numbers = Some(max_numbers);
        self
    }

    /// The names of the aggregates, in the order of the outcomes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parsed.aggregates.iter().map(|(_, name, _)| name.as_str())
    }

    /// Runs the query on a snapshot.
    ///
    /// # Errors
    /// [`Error::Text`] if a column does not have numbers, and those of opening a table and of [`Query::run`].
    pub fn run(&self, snapshot: &ReadTransaction) -> Result<Vec<Outcome>> {
        let table = snapshot.open_untyped(&self.parsed.table)?;
        let info = table.info();
        let [keys, values] = [&info.key_type, &info.value_type].map(|name| NumberType::named(name));
        let aggregated =
            self.parsed.aggregates.iter().filter_map(|(aggregate, _, at)| Some((aggregate.column()?, *at)));
        let tested = [(Column::Key, self.parsed.key_at), (Column::Value, self.parsed.value_at)];
        let tested = tested.into_iter().filter_map(|(column, at)| Some((column, at?)));
        for (column, at) in aggregated.chain(tested) {
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
        let ((lower, upper), rest) = split_range(self.parsed.predicate.clone(), keys);
        let bounds = (lower.as_ref().map(Vec::as_slice), upper.as_ref().map(Vec::as_slice));
        let mut query = Query::untyped(&table).range(bounds);
        if let Some(threads) = self.threads {
            query = query.threads(threads);
        }
        if let Some(max_numbers) = self.max_numbers {
            query = query.max_numbers(max_numbers);
        }
        let read = |of: Option<NumberType>, bytes: &[u8]| of.map_or(Number::Unsigned(0), |of| of.read(bytes));
        query = match rest {
            None => query,
            Some(predicate) if self.parsed.value_at.is_some() => {
                query.filter(move |key, value| predicate.holds(read(keys, key), read(values, value)))
            }
            Some(predicate) => query.filter_keys(move |key| predicate.holds(read(keys, key), Number::Unsigned(0))),
        };
        let aggregates: Vec<_> = self.parsed.aggregates.iter().map(|(aggregate, ..)| *aggregate).collect();
        Ok(query.run(&aggregates)?)
    }
}

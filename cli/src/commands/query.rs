//! `query`: aggregates over a table's keys and numbers.

use super::open;
use crate::args::Query;
use crate::failure::{Found, Result};
use crate::report;
use duramen::query::{Number, Outcome, Statement};
use serde_json::{Map, Value};

/// Prints what was asked for: one field an aggregate.
pub(super) fn run(args: &Query) -> Result<Found> {
    let mut statement: Statement = args.statement.parse()?;
    if let Some(threads) = args.threads {
        statement = statement.threads(threads.into());
    }
    let db = open::reading(&args.database)?;
    let outcomes = statement.run(&db.begin_read()?)?;
    let fields = statement.names().map(str::to_owned).zip(outcomes.iter().map(shown));
    report::print(&fields.collect::<Map<String, Value>>(), args.report.format)?;
    Ok(Found::There)
}

fn shown(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Number(number) => json(*number),
        Outcome::Nothing => Value::Null,
        Outcome::List(numbers) => numbers.iter().copied().map(json).collect(),
    }
}

/// A number as JSON; one beyond what JSON's readers take is a string.
fn json(number: Number) -> Value {
    let plain = match number {
        Number::Unsigned(number) => u64::try_from(number).ok().map(Value::from),
        Number::Signed(number) => i64::try_from(number).ok().map(Value::from),
        Number::Float(number) => serde_json::Number::from_f64(number).map(Value::from),
    };
    plain.unwrap_or_else(|| Value::from(number.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_beyond_64_bits_become_strings() {
        assert_eq!(json(Number::Unsigned(7)), Value::from(7));
        assert_eq!(json(Number::Signed(-7)), Value::from(-7));
        assert_eq!(json(Number::Unsigned(1 << 64)), Value::from("18446744073709551616"));
        assert_eq!(json(Number::Float(f64::NAN)), Value::from("NaN"));
    }
}

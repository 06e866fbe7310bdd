//! `query`: aggregates over the keys and values of a table.

use super::open;
use crate::args::{Format, Query};
use crate::failure::{Completion, Result};
use crate::report;
use duramen::query::{Number, Outcome};
use duramen_query::Statement;
use serde_json::{Map, Value};

/// Prints the results: one field for each aggregate.
pub(super) fn run(args: &Query) -> Result<Completion> {
    let mut statement: Statement = args.statement.parse()?;
    if let Some(threads) = args.threads {
        statement = statement.threads(threads.into());
    }
    if let Some(most) = args.max_numbers {
        statement = statement.max_numbers(most);
    }
    let db = open::reading(&args.database)?;
    let outcomes = statement.run(&db.begin_read()?)?;
    let number = match args.report.format {
        Format::Json => json,
        Format::Table => text,
    };
    let values = outcomes.iter().map(|outcome| shown(outcome, number));
    report::print(&fields(statement.names(), values), args.report.format)?;
    Ok(Completion::Done)
}

/// One field for each aggregate, with its name. A repeated name gets a number.
fn fields<'n>(names: impl Iterator<Item = &'n str>, values: impl Iterator<Item = Value>) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in names.zip(values) {
        let again = (2..).map(|n| format!("{name} ({n})"));
        let free = std::iter::once(name.to_owned()).chain(again).find(|name| !fields.contains_key(name));
        fields.extend(free.map(|name| (name, value)));
    }
    fields
}

fn shown(outcome: &Outcome, number: fn(Number) -> Value) -> Value {
    match outcome {
        Outcome::Number(found) => number(*found),
        Outcome::Nothing => Value::Null,
        Outcome::List(numbers) => numbers.iter().copied().map(number).collect(),
    }
}

/// A number for people, with all digits, in the syntax of a query.
fn text(number: Number) -> Value {
    match number {
        Number::Float(float) => Value::from(format!("{float:?}")),
        whole => Value::from(whole.to_string()),
    }
}

/// A number as JSON. A number that does not fit in 64 bits is a string.
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
    fn repeated_aggregates_get_numbered_names() {
        let fields = fields(["a", "b", "a", "a"].into_iter(), (1..).map(Value::from));
        assert_eq!(Value::from(fields), serde_json::json!({"a": 1, "b": 2, "a (2)": 3, "a (3)": 4}));
    }

    #[test]
    fn numbers_for_people_have_all_digits() {
        let shown = |number| text(number).as_str().map(str::to_owned);
        assert_eq!(shown(Number::Signed(-9_007_199_254_740_993)).as_deref(), Some("-9007199254740993"));
        assert_eq!(shown(Number::Unsigned(1 << 64)).as_deref(), Some("18446744073709551616"));
        assert_eq!(shown(Number::Float(-1e-9)).as_deref(), Some("-1e-9"));
        assert_eq!(shown(Number::Float(1e300)).as_deref(), Some("1e300"));
        assert_eq!(shown(Number::Float(5.0)).as_deref(), Some("5.0"));
    }

    #[test]
    fn numbers_beyond_64_bits_become_strings() {
        assert_eq!(json(Number::Unsigned(7)), Value::from(7));
        assert_eq!(json(Number::Signed(-7)), Value::from(-7));
        assert_eq!(json(Number::Unsigned(1 << 64)), Value::from("18446744073709551616"));
        assert_eq!(json(Number::Float(f64::NAN)), Value::from("NaN"));
    }
}

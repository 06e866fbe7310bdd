//! Evaluates predicates for an entry, and derives a key range from them.

use crate::literal::Literal;
use duramen::query::{Column, Number, NumberType};
use std::cmp::Ordering;
use std::ops::Bound;

/// A range of encoded keys.
pub(crate) type KeyBounds = (Bound<Vec<u8>>, Bound<Vec<u8>>);

const ALL_KEYS: KeyBounds = (Bound::Unbounded, Bound::Unbounded);

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compare {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// A column, or its remainder after a division.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Operand {
    pub(crate) column: Column,
    pub(crate) modulo: Option<u64>,
}

/// A predicate.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Predicate {
    Compare(Operand, Compare, Literal),
    In(Operand, Vec<Literal>),
    /// A list, as in [`Predicate::Or`], so that a long text does not become a deep tree.
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
}

impl Compare {
    /// True for two numbers with this ordering.
    fn holds(self, left_to_right: Ordering) -> bool {
        match self {
            Compare::Equal => left_to_right.is_eq(),
            Compare::NotEqual => left_to_right.is_ne(),
            Compare::Less => left_to_right.is_lt(),
            Compare::AtMost => left_to_right.is_le(),
            Compare::Greater => left_to_right.is_gt(),
            Compare::AtLeast => left_to_right.is_ge(),
        }
    }
}

impl Operand {
    fn of(self, key: Number, value: Number) -> Number {
        let number = if self.column == Column::Key { key } else { value };
        self.modulo.map_or(number, |by| remainder(number, by))
    }
}

/// The remainder after division by `by`, which is not 0.
fn remainder(number: Number, by: u64) -> Number {
    match number {
        Number::Unsigned(number) => Number::Unsigned(number % u128::from(by)),
        Number::Signed(number) => Number::Signed(number % i128::from(by)),
        Number::Float(number) => Number::Float(number % by as f64),
    }
}

impl Predicate {
    /// True if the predicate selects the entry.
    pub(crate) fn holds(&self, key: Number, value: Number) -> bool {
        match self {
            Predicate::Compare(operand, compare, literal) => {
                compare.holds(literal.compared_with(operand.of(key, value)))
            }
            Predicate::In(operand, literals) => {
                let number = operand.of(key, value);
                literals.iter().any(|literal| literal.compared_with(number).is_eq())
            }
            Predicate::And(all) => all.iter().all(|one| one.holds(key, value)),
            Predicate::Or(any) => any.iter().any(|one| one.holds(key, value)),
            Predicate::Not(a) => !a.holds(key, value),
        }
    }
}

/// The least and the greatest integer that keys may have.
#[derive(Clone, Copy)]
struct Limits {
    low: i128,
    high: i128,
}

/// Splits a predicate into a key range and the rest, which must be evaluated for each entry. Only integer keys of up to
/// 64 bits have a range.
pub(crate) fn split_range(predicate: Option<Predicate>, keys: Option<NumberType>) -> (KeyBounds, Option<Predicate>) {
    let all = match keys {
        Some(NumberType::Unsigned(len)) if len <= 8 => Limits { low: 0, high: (1 << (8 * len)) - 1 },
        Some(NumberType::Signed(len)) if len <= 8 => {
            Limits { low: -(1 << (8 * len - 1)), high: (1 << (8 * len - 1)) - 1 }
        }
        _ => return (ALL_KEYS, predicate),
    };
    let Some(predicate) = predicate else { return (ALL_KEYS, None) };
    let mut limits = all;
    let rest = narrow(predicate, &mut limits);
    // The difference between two keys is the difference between their encodings.
    let len = keys.map_or(8, |of| match of {
        NumberType::Unsigned(len) | NumberType::Signed(len) | NumberType::Float(len) => len,
    });
    let key = |number: i128| {
        let above = u64::try_from(number - all.low).unwrap_or(u64::MAX);
        above.to_be_bytes().get(8 - len..).unwrap_or_default().to_vec()
    };
    if limits.low > limits.high {
        return ((Bound::Unbounded, Bound::Excluded(Vec::new())), rest);
    }
    let lower = if limits.low == all.low { Bound::Unbounded } else { Bound::Included(key(limits.low)) };
    let upper = if limits.high == all.high { Bound::Unbounded } else { Bound::Excluded(key(limits.high + 1)) };
    ((lower, upper), rest)
}

/// Narrows the limits by the parts of a predicate that use only the key. Returns the other parts.
fn narrow(predicate: Predicate, limits: &mut Limits) -> Option<Predicate> {
    match predicate {
        Predicate::And(all) => {
            let rest: Vec<_> = all.into_iter().filter_map(|one| narrow(one, limits)).collect();
            (!rest.is_empty()).then_some(Predicate::And(rest))
        }
        Predicate::Compare(operand @ Operand { column: Column::Key, modulo: None }, compare, literal) => {
            let Some((floor, whole)) = literal.as_integer().filter(|_| compare != Compare::NotEqual) else {
                return Some(Predicate::Compare(operand, compare, literal));
            };
            // For a number that is not an integer: the next integer above it and the last one below it.
            let (from, below) = if whole { (floor, floor - 1) } else { (floor + 1, floor) };
            let (low, high) = match compare {
                Compare::Equal | Compare::NotEqual => (from, floor),
                Compare::Less => (limits.low, below),
                Compare::AtMost => (limits.low, floor),
                Compare::Greater => (floor + 1, limits.high),
                Compare::AtLeast => (from, limits.high),
            };
            limits.low = limits.low.max(low);
            limits.high = limits.high.min(high);
            None
        }
        other => Some(other),
    }
}

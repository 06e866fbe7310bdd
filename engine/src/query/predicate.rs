//! Predicates of queries in words: what they say of an entry, and which range of keys they leave.

use super::Column;
use super::number::{Number, NumberType};
use crate::txn::Stretch;

/// A comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

/// A column, or what is left when it is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Operand {
    pub(super) column: Column,
    pub(super) modulo: Option<u64>,
}

/// A predicate.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Predicate {
    Compare(Operand, Compare, Number),
    In(Operand, Vec<Number>),
    /// Flat, and so is [`Predicate::Or`]: a long text must not become a deep tree.
    And(Vec<Predicate>),
    Or(Vec<Predicate>),
    Not(Box<Predicate>),
}

impl Compare {
    pub(super) fn holds(self, left: Number, right: Number) -> bool {
        match self {
            Compare::Equal => left == right,
            Compare::NotEqual => left != right,
            Compare::Less => left < right,
            Compare::AtMost => left <= right,
            Compare::Greater => left > right,
            Compare::AtLeast => left >= right,
        }
    }
}

impl Operand {
    fn of(self, key: Number, value: Number) -> Number {
        let number = if self.column == Column::Key { key } else { value };
        self.modulo.map_or(number, |by| number.modulo(by))
    }
}

impl Predicate {
    /// Whether an entry counts.
    pub(super) fn holds(&self, key: Number, value: Number) -> bool {
        match self {
            Predicate::Compare(operand, compare, number) => compare.holds(operand.of(key, value), *number),
            Predicate::In(operand, numbers) => numbers.contains(&operand.of(key, value)),
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

/// Takes from a predicate what it says of the keys' range, and gives the range and what is left to be asked of each
/// entry. Only integer keys of up to 64 bits have a range here.
pub(super) fn split_range(predicate: Option<Predicate>, keys: Option<NumberType>) -> (Stretch, Option<Predicate>) {
    let all = match keys {
        Some(NumberType::Unsigned(len)) if len <= 8 => Limits { low: 0, high: (1 << (8 * len)) - 1 },
        Some(NumberType::Signed(len)) if len <= 8 => {
            Limits { low: -(1 << (8 * len - 1)), high: (1 << (8 * len - 1)) - 1 }
        }
        _ => return (Stretch::default(), predicate),
    };
    let Some(predicate) = predicate else { return (Stretch::default(), None) };
    let mut limits = all;
    let rest = narrow(predicate, &mut limits);
    // The encodings of keys are as far above that of the least as the keys are.
    let len = keys.map_or(8, |of| match of {
        NumberType::Unsigned(len) | NumberType::Signed(len) | NumberType::Float(len) => len,
    });
    let key = |number: i128| {
        let above = u64::try_from(number - all.low).unwrap_or(u64::MAX);
        above.to_be_bytes().get(8 - len..).unwrap_or_default().to_vec()
    };
    if limits.low > limits.high {
        return (Stretch { lower: Vec::new(), upper: Some(Vec::new()) }, rest);
    }
    let lower = if limits.low == all.low { Vec::new() } else { key(limits.low) };
    let upper = (limits.high < all.high).then(|| key(limits.high + 1));
    (Stretch { lower, upper }, rest)
}

/// Narrows the limits by what the predicate asks of keys alone; gives what is left of it.
fn narrow(predicate: Predicate, limits: &mut Limits) -> Option<Predicate> {
    match predicate {
        Predicate::And(all) => {
            let rest: Vec<_> = all.into_iter().filter_map(|one| narrow(one, limits)).collect();
            (!rest.is_empty()).then_some(Predicate::And(rest))
        }
        Predicate::Compare(Operand { column: Column::Key, modulo: None }, compare, number) => {
            let integer = match number {
                Number::Signed(integer) => Some(integer),
                Number::Unsigned(integer) => i128::try_from(integer).ok(),
                Number::Float(_) => None,
            };
            let clear = integer.filter(|integer| integer.unsigned_abs() < 1 << 100);
            let Some(integer) = clear.filter(|_| compare != Compare::NotEqual) else {
                let operand = Operand { column: Column::Key, modulo: None };
                return Some(Predicate::Compare(operand, compare, number));
            };
            let (low, high) = match compare {
                Compare::Equal | Compare::NotEqual => (integer, integer),
                Compare::Less => (limits.low, integer - 1),
                Compare::AtMost => (limits.low, integer),
                Compare::Greater => (integer + 1, limits.high),
                Compare::AtLeast => (integer, limits.high),
            };
            limits.low = limits.low.max(low);
            limits.high = limits.high.min(high);
            None
        }
        other => Some(other),
    }
}

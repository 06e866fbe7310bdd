//! [`Accumulator`]: the intermediate results for one column, and how the results of several threads are combined.

use super::number::{Number, NumberType};
use crate::base::{Error, Result};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// The results that the aggregates need from a column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) sum: bool,
    pub(super) extremes: bool,
    pub(super) distinct: bool,
    pub(super) top: usize,
    pub(super) bottom: usize,
}

impl Needs {
    /// True if any result is needed.
    pub(super) fn any(self) -> bool {
        self != Needs::default()
    }

    /// True if every number must be read, in any order.
    pub(super) fn each(self) -> bool {
        self.distinct || self.top > 0 || self.bottom > 0
    }
}

/// A sum that loses nothing, whatever the order of its numbers: its low 128 bits, and how often they have wrapped
/// around.
#[derive(Clone, Copy, Debug)]
enum Sum {
    Unsigned(u128, u64),
    Signed(i128, i64),
    Float(f64),
}

impl Sum {
    /// Adds a number of this type.
    #[inline]
    fn add(&mut self, number: Number) {
        match (self, number) {
            (Sum::Unsigned(sum, wraps), Number::Unsigned(number)) => {
                let (low, wrapped) = sum.overflowing_add(number);
                (*sum, *wraps) = (low, *wraps + u64::from(wrapped));
            }
            (Sum::Signed(sum, wraps), Number::Signed(number)) => {
                let (low, wrapped) = sum.overflowing_add(number);
                (*sum, *wraps) = (low, *wraps + i64::from(wrapped) * if number < 0 { -1 } else { 1 });
            }
            (Sum::Float(sum), number) => *sum += number.to_f64(),
            (Sum::Unsigned(..) | Sum::Signed(..), _) => mixed_types(),
        }
    }

    /// Adds the sum of another thread, of the same column.
    fn join(&mut self, other: Sum) {
        match (&mut *self, other) {
            (Sum::Unsigned(_, wraps), Sum::Unsigned(low, more)) => {
                *wraps += more;
                self.add(Number::Unsigned(low));
            }
            (Sum::Signed(_, wraps), Sum::Signed(low, more)) => {
                *wraps += more;
                self.add(Number::Signed(low));
            }
            (Sum::Float(sum), Sum::Float(more)) => *sum += more,
            _ => mixed_types(),
        }
    }

    /// The sum, unless it has more than 128 bits.
    fn number(self) -> Option<Number> {
        match self {
            Sum::Unsigned(sum, 0) => Some(Number::Unsigned(sum)),
            Sum::Signed(sum, 0) => Some(Number::Signed(sum)),
            Sum::Float(sum) => Some(Number::Float(sum)),
            Sum::Unsigned(..) | Sum::Signed(..) => None,
        }
    }

    /// The nearest float, also of a sum that has more than 128 bits.
    fn to_f64(self) -> f64 {
        // 2^128: what one wrap stands for.
        let wrap = 2f64.powi(128);
        match self {
            Sum::Unsigned(sum, wraps) => sum as f64 + wraps as f64 * wrap,
            Sum::Signed(sum, wraps) => sum as f64 + wraps as f64 * wrap,
            Sum::Float(sum) => sum,
        }
    }
}

/// The type of a column's numbers is known before the first is read.
fn mixed_types() -> ! {
    unreachable!("a column has numbers of one type")
}

/// The intermediate results for a column.
#[derive(Debug)]
pub(super) struct Accumulator {
    what: &'static str,
    needs: Needs,
    pub(super) count: u64,
    sum: Sum,
    pub(super) min: Option<Number>,
    pub(super) max: Option<Number>,
    pub(super) distinct: BTreeSet<Number>,
    /// The greatest, the least of them first.
    top: BinaryHeap<Reverse<Number>>,
    /// The least, the greatest of them first.
    bottom: BinaryHeap<Number>,
}

impl Accumulator {
    pub(super) fn new(what: &'static str, of: Option<NumberType>, needs: Needs) -> Accumulator {
        let sum = match of {
            Some(NumberType::Signed(_)) => Sum::Signed(0, 0),
            Some(NumberType::Float(_)) => Sum::Float(0.0),
            _ => Sum::Unsigned(0, 0),
        };
        let (distinct, top, bottom) = (BTreeSet::new(), BinaryHeap::new(), BinaryHeap::new());
        Accumulator { what, needs, count: 0, sum, min: None, max: None, distinct, top, bottom }
    }

    /// Adds a number.
    #[inline]
    pub(super) fn add(&mut self, number: Number) {
        self.count += 1;
        if self.needs.sum {
            self.add_sum(number);
        }
        if self.needs.extremes {
            self.add_extreme(number);
        }
        if self.needs.each() {
            self.add_each(number);
        }
    }

    /// Adds to the sum, which must be of that type of number.
    #[inline]
    pub(super) fn add_sum(&mut self, number: Number) {
        self.sum.add(number);
    }

    /// Makes sure that a number is within the extremes.
    #[inline]
    pub(super) fn add_extreme(&mut self, number: Number) {
        self.min = Some(self.min.map_or(number, |min| min.min(number)));
        self.max = Some(self.max.map_or(number, |max| max.max(number)));
    }

    /// Adds a number to the sets that are needed.
    pub(super) fn add_each(&mut self, number: Number) {
        if self.needs.distinct {
            self.distinct.insert(number);
        }
        if self.needs.top > 0 {
            if self.top.len() < self.needs.top {
                self.top.push(Reverse(number));
            } else if let Some(mut least) = self.top.peek_mut().filter(|least| least.0 < number) {
                *least = Reverse(number);
            }
        }
        if self.needs.bottom > 0 {
            if self.bottom.len() < self.needs.bottom {
                self.bottom.push(number);
            } else if let Some(mut greatest) = self.bottom.peek_mut().filter(|greatest| **greatest > number) {
                *greatest = number;
            }
        }
    }

    /// Adds the results of another thread.
    pub(super) fn join(&mut self, other: Accumulator) {
        self.count += other.count;
        self.sum.join(other.sum);
        for extreme in [other.min, other.max].into_iter().flatten() {
            self.add_extreme(extreme);
        }
        self.distinct.extend(other.distinct);
        let (top, bottom) = (other.top.into_iter().map(|number| number.0), other.bottom);
        let needs = self.needs;
        self.needs = Needs { distinct: false, bottom: 0, ..needs };
        top.for_each(|number| self.add_each(number));
        self.needs = Needs { distinct: false, top: 0, ..needs };
        bottom.into_iter().for_each(|number| self.add_each(number));
        self.needs = needs;
    }

    /// The number of numbers that are kept.
    pub(super) fn numbers(&self) -> u64 {
        (self.distinct.len() + self.top.len() + self.bottom.len()) as u64
    }

    /// The sum.
    pub(super) fn total(&self) -> Result<Number> {
        self.sum.number().ok_or(Error::SumTooLarge { what: self.what })
    }

    /// The average, unless there is no number.
    pub(super) fn average(&self) -> Option<Number> {
        (self.count > 0).then(|| Number::Float(self.sum.to_f64() / self.count as f64))
    }

    /// The greatest numbers, the greatest first.
    pub(super) fn top(&self, most: usize) -> Vec<Number> {
        let mut numbers: Vec<Number> = self.top.iter().map(|number| number.0).collect();
        numbers.sort_by_key(|number| Reverse(*number));
        numbers.truncate(most);
        numbers
    }

    /// The least numbers, the least first.
    pub(super) fn bottom(&self, most: usize) -> Vec<Number> {
        let mut numbers: Vec<Number> = self.bottom.iter().copied().collect();
        numbers.sort();
        numbers.truncate(most);
        numbers
    }
}

//! [`Tally`]: the intermediate results for one column, and how the results of several threads are combined.

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

/// A sum that never wraps around.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sum {
    Unsigned(u128),
    Signed(i128),
    Float(f64),
}

/// The intermediate results for a column.
#[derive(Debug)]
pub(super) struct Tally {
    what: &'static str,
    needs: Needs,
    pub(super) count: u64,
    pub(super) sum: Sum,
    pub(super) min: Option<Number>,
    pub(super) max: Option<Number>,
    pub(super) distinct: BTreeSet<Number>,
    /// The greatest, the least of them first.
    top: BinaryHeap<Reverse<Number>>,
    /// The least, the greatest of them first.
    bottom: BinaryHeap<Number>,
}

impl Tally {
    pub(super) fn new(what: &'static str, of: Option<NumberType>, needs: Needs) -> Tally {
        let sum = match of {
            Some(NumberType::Signed(_)) => Sum::Signed(0),
            Some(NumberType::Float(_)) => Sum::Float(0.0),
            _ => Sum::Unsigned(0),
        };
        let (distinct, top, bottom) = (BTreeSet::new(), BinaryHeap::new(), BinaryHeap::new());
        Tally { what, needs, count: 0, sum, min: None, max: None, distinct, top, bottom }
    }

    /// Adds a number.
    #[inline]
    pub(super) fn add(&mut self, number: Number) -> Result<()> {
        self.count += 1;
        if self.needs.sum {
            self.add_sum(number)?;
        }
        if self.needs.extremes {
            self.add_extreme(number);
        }
        if self.needs.each() {
            self.add_each(number);
        }
        Ok(())
    }

    /// Adds to the sum, which must be of that type of number.
    #[inline]
    pub(super) fn add_sum(&mut self, number: Number) -> Result<()> {
        let sum = match (self.sum, number) {
            (Sum::Unsigned(sum), Number::Unsigned(number)) => sum.checked_add(number).map(Sum::Unsigned),
            (Sum::Signed(sum), Number::Signed(number)) => sum.checked_add(number).map(Sum::Signed),
            (Sum::Float(sum), number) => Some(Sum::Float(sum + number.to_f64())),
            _ => None,
        };
        self.sum = sum.ok_or(Error::SumTooLarge { what: self.what })?;
        Ok(())
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
    pub(super) fn join(&mut self, other: Tally) -> Result<()> {
        self.count += other.count;
        if self.needs.sum {
            self.add_sum(other.total())?;
        }
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
        Ok(())
    }

    /// The number of numbers that are kept.
    pub(super) fn numbers(&self) -> u64 {
        (self.distinct.len() + self.top.len() + self.bottom.len()) as u64
    }

    /// The sum.
    pub(super) fn total(&self) -> Number {
        match self.sum {
            Sum::Unsigned(sum) => Number::Unsigned(sum),
            Sum::Signed(sum) => Number::Signed(sum),
            Sum::Float(sum) => Number::Float(sum),
        }
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

//! [`Number`]: decodes the numbers of a column, and compares them.

use std::cmp::Ordering;
use std::fmt;

/// A number of a column, or a number computed from several.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    /// A number of an unsigned column.
    Unsigned(u128),
    /// A number of a signed column.
    Signed(i128),
    /// A number of a column of floats, or an average.
    Float(f64),
}

impl Number {
    /// The nearest float.
    pub fn to_f64(self) -> f64 {
        match self {
            Number::Unsigned(number) => number as f64,
            Number::Signed(number) => number as f64,
            Number::Float(number) => number,
        }
    }
}

impl Ord for Number {
    /// Compares values. -0 equals 0. All NaNs are equal, whatever their signs, and greater than all numbers.
    fn cmp(&self, other: &Number) -> Ordering {
        match (*self, *other) {
            (Number::Unsigned(a), Number::Unsigned(b)) => a.cmp(&b),
            (Number::Signed(a), Number::Signed(b)) => a.cmp(&b),
            (Number::Unsigned(a), Number::Signed(b)) => u128::try_from(b).map_or(Ordering::Greater, |b| a.cmp(&b)),
            (Number::Signed(a), Number::Unsigned(b)) => u128::try_from(a).map_or(Ordering::Less, |a| a.cmp(&b)),
            (a, b) => {
                let (a, b) = (a.to_f64(), b.to_f64());
                a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
            }
        }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Unsigned(number) => number.fmt(f),
            Number::Signed(number) => number.fmt(f),
            Number::Float(number) => number.fmt(f),
        }
    }
}

/// A type of numbers, with the length of its encodings in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberType {
    /// Unsigned integers.
    Unsigned(usize),
    /// Signed integers.
    Signed(usize),
    /// Floats.
    Float(usize),
}

impl NumberType {
    /// The type of that name, if it is a type of numbers.
    ///
    /// ```
    /// use duramen::query::NumberType;
    ///
    /// assert_eq!(NumberType::named("i32"), Some(NumberType::Signed(4)));
    /// assert_eq!(NumberType::named("str"), None);
    /// ```
    pub fn named(name: &str) -> Option<NumberType> {
        let (kind, bits) = name.split_at_checked(1)?;
        let bytes = match bits {
            "8" => 1,
            "16" => 2,
            "32" => 4,
            "64" => 8,
            "128" => 16,
            _ => return None,
        };
        match kind {
            "u" => Some(NumberType::Unsigned(bytes)),
            "i" => Some(NumberType::Signed(bytes)),
            "f" if bytes == 4 || bytes == 8 => Some(NumberType::Float(bytes)),
            _ => None,
        }
    }

    /// Decodes a number; 0 if the bytes have a wrong length.
    ///
    /// ```
    /// use duramen::query::{Number, NumberType};
    ///
    /// assert_eq!(NumberType::Unsigned(2).read(&[1, 0]), Number::Unsigned(256));
    /// ```
    #[inline]
    pub fn read(self, bytes: &[u8]) -> Number {
        let bits = || bytes.iter().fold(0u128, |bits, &byte| bits << 8 | u128::from(byte));
        match self {
            NumberType::Unsigned(len) if bytes.len() == len => Number::Unsigned(bits()),
            NumberType::Signed(len) if bytes.len() == len => Number::Signed(signed(bits(), len)),
            NumberType::Float(4) => {
                Number::Float(bytes.try_into().map_or(0.0, |bytes| f64::from(f32::from_be_bytes(bytes))))
            }
            NumberType::Float(_) => Number::Float(bytes.try_into().map_or(0.0, f64::from_be_bytes)),
            NumberType::Unsigned(_) => Number::Unsigned(0),
            NumberType::Signed(_) => Number::Signed(0),
        }
    }

    /// The difference between an encoding, read as an unsigned integer, and its number.
    pub(super) fn bias(self) -> u128 {
        match self {
            NumberType::Signed(len) => 1 << (8 * len - 1),
            _ => 0,
        }
    }
}

/// The number of an encoding with its sign bit flipped.
#[inline(always)]
fn signed(bits: u128, len: usize) -> i128 {
    let half = 1u128 << (8 * len - 1);
    bits.wrapping_sub(half).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nan_is_the_greatest_number_and_both_zeros_are_one() {
        let nans = [f64::NAN, -f64::NAN].map(Number::Float);
        for number in [Number::Float(f64::INFINITY), Number::Unsigned(u128::MAX), Number::Signed(-1)] {
            for nan in nans {
                assert_eq!((nan.cmp(&number), number.cmp(&nan)), (Ordering::Greater, Ordering::Less), "{number}");
            }
        }
        assert_eq!(nans[0], nans[1]);
        assert_eq!(Number::Float(-0.0), Number::Float(0.0));
        assert_eq!(Number::Float(-0.0), Number::Unsigned(0));
    }
}

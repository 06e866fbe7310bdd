//! Numbers in the text of a query, with an optional point and exponent, and their comparison with the numbers of a
//! column: exact for integers, with the nearest float for floats.

use duramen::query::Number;
use std::cmp::Ordering;

/// The maximum number of digits of an integer of 128 bits.
const MAX_DIGITS: i64 = 39;

/// A number as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Literal {
    /// The greatest integer that is not greater than the number; `None` if it has more than 128 bits.
    floor: Option<Number>,
    /// True if the number is that integer.
    whole: bool,
    /// The float that is nearest to the number.
    float: f64,
}

impl Literal {
    /// Parses digits with an optional point and exponent; `None` if they are not a number.
    pub(crate) fn parse(digits: &str, negative: bool) -> Option<Literal> {
        let float = digits.parse::<f64>().ok()?;
        let float = if negative { -float } else { float };
        let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
        let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all: String = [before, after].concat().trim_start_matches('0').to_owned();
        // An exponent that does not fit in 64 bits is beyond all limits.
        let beyond = if exponent.starts_with('-') { i64::MIN / 2 } else { i64::MAX / 2 };
        let point = exponent.parse::<i64>().unwrap_or(beyond).saturating_sub(i64::try_from(after.len()).ok()?);
        let (integer, whole) = integer_part(&all, point);
        let floor = integer.and_then(|above_zero| match (negative, whole) {
            (false, _) => Some(Number::Unsigned(above_zero)),
            (true, true) => 0i128.checked_sub_unsigned(above_zero).map(Number::Signed),
            (true, false) => 0i128.checked_sub_unsigned(above_zero)?.checked_sub(1).map(Number::Signed),
        });
        Some(Literal { floor, whole, float })
    }

    /// Compares a number of a column with this one.
    pub(crate) fn compared_with(&self, number: Number) -> Ordering {
        match (number, self.floor) {
            (Number::Float(_), _) => number.cmp(&Number::Float(self.float)),
            (_, Some(floor)) => match number.cmp(&floor) {
                Ordering::Equal if !self.whole => Ordering::Less,
                ordering => ordering,
            },
            (_, None) if self.float > 0.0 => Ordering::Less,
            (_, None) => Ordering::Greater,
        }
    }

    /// The greatest integer that is not greater than the number, if it has less than 101 bits, and whether they are
    /// equal.
    pub(crate) fn as_integer(&self) -> Option<(i128, bool)> {
        let floor = match self.floor? {
            Number::Signed(floor) => floor,
            Number::Unsigned(floor) => i128::try_from(floor).ok()?,
            Number::Float(_) => return None,
        };
        (floor.unsigned_abs() < 1 << 100).then_some((floor, self.whole))
    }
}

/// The integer part of the number with these digits, of which the first is not 0. If `point` is positive, that many
/// zeros follow the digits. If it is negative, that many digits are after the point. The second result is true if the
/// number is an integer.
fn integer_part(digits: &str, point: i64) -> (Option<u128>, bool) {
    if digits.is_empty() {
        return (Some(0), true);
    }
    match u32::try_from(point) {
        Ok(zeros) if point <= MAX_DIGITS => {
            let scale = 10u128.checked_pow(zeros);
            (digits.parse::<u128>().ok().zip(scale).and_then(|(number, scale)| number.checked_mul(scale)), true)
        }
        Ok(_) => (None, true),
        Err(_) if point > 0 => (None, true),
        Err(_) => {
            let cut = usize::try_from(point.unsigned_abs()).unwrap_or(usize::MAX);
            let (front, rest) = digits.split_at_checked(digits.len().saturating_sub(cut)).unwrap_or((digits, ""));
            let whole = rest.bytes().all(|digit| digit == b'0') && cut <= digits.len();
            (if front.is_empty() { Some(0) } else { front.parse().ok() }, whole)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn integer(text: &str) -> Option<(Number, bool)> {
        let (digits, negative) = text.strip_prefix('-').map_or((text, false), |digits| (digits, true));
        let literal = Literal::parse(digits, negative).unwrap();
        literal.floor.map(|floor| (floor, literal.whole))
    }

    #[test]
    fn integers_are_exact_however_they_are_written() {
        let unsigned = |number| Number::Unsigned(number);
        for (text, floor, whole) in [
            ("0", unsigned(0), true),
            ("0.0e9", unsigned(0), true),
            ("1e19", unsigned(10_000_000_000_000_000_000), true),
            ("9007199254740993.0", unsigned((1 << 53) + 1), true),
            ("9007199254740992.5", unsigned(1 << 53), false),
            ("18446744073709551615.5", unsigned(u64::MAX.into()), false),
            ("00012.50e1", unsigned(125), true),
            ("12.55e1", unsigned(125), false),
            ("1200e-2", unsigned(12), true),
            ("1e-3", unsigned(0), false),
            ("1e-999999999999999999999", unsigned(0), false),
            ("340282366920938463463374607431768211455", unsigned(u128::MAX), true),
            ("-9223372036854775807.5", Number::Signed(i64::MIN.into()), false),
            ("-0.5", Number::Signed(-1), false),
            ("-1e2", Number::Signed(-100), true),
        ] {
            assert_eq!(integer(text), Some((floor, whole)), "{text}");
        }
        for text in ["340282366920938463463374607431768211456", "1e39", "1e999999999999999999999", "-1e39"] {
            assert_eq!(integer(text), None, "{text}");
        }
        for text in ["1.2.3", "1e", "0x10", "."] {
            assert_eq!(Literal::parse(text, false), None, "{text}");
        }
    }

    #[test]
    fn floats_are_compared_as_floats_and_integers_exactly() {
        let compared = |number, text: &str| Literal::parse(text, false).unwrap().compared_with(number);
        assert_eq!(compared(Number::Float(1e23), "1e23"), Ordering::Equal);
        assert_eq!(compared(Number::Float(0.1), "0.1"), Ordering::Equal);
        assert_eq!(compared(Number::Unsigned(10_000_000_000_000_000_001), "1e19"), Ordering::Greater);
        assert_eq!(compared(Number::Signed((1 << 53) + 1), "9007199254740992.5"), Ordering::Greater);
        assert_eq!(compared(Number::Unsigned(u128::MAX), "1e39"), Ordering::Less);
        assert_eq!(Literal::parse("1e39", true).unwrap().compared_with(Number::Signed(i128::MIN)), Ordering::Greater);
    }
}

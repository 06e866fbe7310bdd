//! Conversions between types of numbers. They cannot fail: a number beyond the greatest one becomes the greatest one.

/// An integer as a length or an index.
pub(crate) fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// An integer in 32 bits.
pub(crate) fn short(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}

/// The integer part of a number, or 0 if the number is negative.
#[expect(clippy::cast_possible_truncation, reason = "the fraction is cut off")]
pub(crate) fn whole(number: f64) -> u64 {
    number as u64
}

/// The nearest integer.
#[expect(clippy::cast_possible_truncation, reason = "the number has no fraction after it was rounded")]
pub(crate) fn rounded(number: f64) -> i64 {
    number.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_become_the_nearest_one() {
        assert_eq!((index(7), index(u64::MAX)), (7, usize::MAX));
        assert_eq!((short(7usize), short(1u64 << 32)), (7, u32::MAX));
        assert_eq!((whole(7.9), whole(-1.0), whole(1e30)), (7, 0, u64::MAX));
        assert_eq!((rounded(7.5), rounded(-7.4), rounded(1e30)), (8, -7, i64::MAX));
    }
}

//! A half-open range of keys. All other forms of ranges are converted to it.

use crate::base::bytes;
use std::ops::Bound;

/// The keys from `lower` on that are less than `upper`. Without `upper`, all keys from `lower` on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// The smallest key that can be in the range.
    pub lower: Vec<u8>,
    /// The smallest key after the range; `None` if the range has no upper bound.
    pub upper: Option<Vec<u8>>,
}

impl KeyRange {
    /// The range between two bounds.
    pub fn of(lower: Bound<impl Into<Vec<u8>>>, upper: Bound<impl Into<Vec<u8>>>) -> KeyRange {
        let after = |mut key: Vec<u8>| {
            bytes::to_next(&mut key);
            key
        };
        let lower = match lower {
            Bound::Unbounded => Vec::new(),
            Bound::Included(key) => key.into(),
            Bound::Excluded(key) => after(key.into()),
        };
        let upper = match upper {
            Bound::Unbounded => None,
            Bound::Included(key) => Some(after(key.into())),
            Bound::Excluded(key) => Some(key.into()),
        };
        KeyRange { lower, upper }
    }

    /// The range between two keys. `None`: it has no upper bound.
    pub fn between(lower: &[u8], upper: Option<&[u8]>) -> KeyRange {
        KeyRange { lower: lower.to_vec(), upper: upper.map(<[u8]>::to_vec) }
    }

    /// True if no key can be in the range.
    pub fn is_empty(&self) -> bool {
        self.upper.as_ref().is_some_and(|upper| *upper <= self.lower)
    }

    /// True if `key` is in the range.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.lower.as_slice() <= key && self.is_above(key)
    }

    /// True if `key` is below the upper bound.
    pub fn is_above(&self, key: &[u8]) -> bool {
        self.upper.as_deref().is_none_or(|upper| key < upper)
    }

    /// True if the range extends at least to `upper`.
    pub fn reaches(&self, upper: Option<&[u8]>) -> bool {
        ends_by(upper, self.upper.as_deref())
    }

    /// The intersection of both ranges.
    pub fn within(self, other: &KeyRange) -> KeyRange {
        let upper = match (self.upper, other.upper.as_ref()) {
            (Some(own), Some(other)) => Some(own.min(other.clone())),
            (own, other) => own.or_else(|| other.cloned()),
        };
        KeyRange { lower: self.lower.max(other.lower.clone()), upper }
    }

    /// True if all of `other` is in the range.
    pub fn covers(&self, other: &KeyRange) -> bool {
        self.lower <= other.lower && self.reaches(other.upper.as_deref())
    }

    /// True if the ranges overlap or one begins at the end of the other.
    fn touches(&self, other: &KeyRange) -> bool {
        let reaches = |a: &KeyRange, b: &KeyRange| a.upper.as_ref().is_none_or(|upper| *upper >= b.lower);
        reaches(self, other) && reaches(other, self)
    }

    /// Adds the range to a sorted list of disjoint ranges.
    pub fn merge_into(mut self, list: &mut Vec<KeyRange>) {
        // The ranges that touch it are consecutive.
        let from = list.partition_point(|other| other.upper.as_ref().is_some_and(|upper| *upper < self.lower));
        let touched = list.iter().skip(from).take_while(|other| self.touches(other)).count();
        for other in list.drain(from..from + touched) {
            self.lower = self.lower.min(other.lower);
            if ends_by(self.upper.as_deref(), other.upper.as_deref()) {
                self.upper = other.upper;
            }
        }
        list.insert(from, self);
    }
}

/// True if the upper bound `a` is not after the upper bound `b`.
fn ends_by(a: Option<&[u8]>, b: Option<&[u8]>) -> bool {
    match (a, b) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(a), Some(b)) => a <= b,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key_range() -> impl Strategy<Value = KeyRange> {
        (0u8..30, prop::option::of(0u8..30)).prop_map(|(a, b)| KeyRange { lower: vec![a], upper: b.map(|b| vec![b]) })
    }

    proptest! {
        #[test]
        fn a_merged_list_has_the_keys_of_its_parts(parts in prop::collection::vec(key_range(), 0..8), key in 0u8..31) {
            let parts: Vec<KeyRange> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let mut list = Vec::new();
            parts.iter().for_each(|part| part.clone().merge_into(&mut list));
            let holds = |list: &[KeyRange]| list.iter().any(|part| part.contains(&[key]));
            prop_assert_eq!(holds(&list), holds(&parts));
            prop_assert!(list.windows(2).all(|two| two[0].upper.as_ref().is_some_and(|end| *end < two[1].lower)));
        }
    }

    proptest! {
        #[test]
        fn an_intersection_holds_the_keys_of_both_ranges(a in key_range(), b in key_range(), key in 0u8..31) {
            let both = a.clone().within(&b);
            prop_assert_eq!(both.contains(&[key]), a.contains(&[key]) && b.contains(&[key]));
        }
    }

    #[test]
    fn bounds_become_half_open() {
        let key = |key: &[u8]| key.to_vec();
        let both = KeyRange::of(Bound::Excluded(key(b"a")), Bound::Included(key(b"c")));
        assert_eq!(both, KeyRange { lower: key(b"a\0"), upper: Some(key(b"c\0")) });
        assert!(!both.contains(b"a") && both.contains(b"b") && both.contains(b"c") && !both.contains(b"ca"));
        assert!(KeyRange::of(Bound::Excluded(key(b"a")), Bound::Included(key(b"a"))).is_empty());
        assert!(both.covers(&KeyRange { lower: key(b"b"), upper: Some(key(b"c")) }));
        assert!(!both.covers(&KeyRange { lower: key(b"b"), upper: None }));
    }
}

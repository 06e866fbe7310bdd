//! Ranges of keys that a damaged table has lost, and their description. Adjacent ranges are joined.

use crate::typed;
use duramen::db::Lost;

/// A range of lost keys of a table.
#[derive(Clone, Debug)]
pub(super) struct LostRange {
    pub(super) lower: Vec<u8>,
    /// The upper bound, exclusive. `None` for no bound.
    pub(super) upper: Option<Vec<u8>>,
    /// The first cause.
    cause: String,
    /// The number of other causes.
    others: usize,
}

impl LostRange {
    /// The range of a [`Lost`] from salvaging a table.
    pub(super) fn new(lost: &Lost) -> LostRange {
        let cause = lost.cause.without_advice();
        LostRange { lower: lost.lower.clone(), upper: lost.upper.clone(), cause, others: 0 }
    }

    /// Joins a range that begins where this one ends. Returns false for any other.
    pub(super) fn join(&mut self, lost: &Lost) -> bool {
        if self.upper.as_ref() != Some(&lost.lower) {
            return false;
        }
        self.upper.clone_from(&lost.upper);
        self.others += usize::from(lost.cause.without_advice() != self.cause);
        true
    }

    /// The part of it between two keys, if there is one.
    pub(super) fn within(&self, lower: &[u8], upper: Option<&[u8]>) -> Option<LostRange> {
        let from = self.lower.as_slice().max(lower);
        let to = match (self.upper.as_deref(), upper) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        let left = to.is_none_or(|to| from < to);
        left.then(|| LostRange { lower: from.to_vec(), upper: to.map(<[u8]>::to_vec), ..self.clone() })
    }

    /// The same range with another upper bound.
    pub(super) fn up_to(self, upper: Option<Vec<u8>>) -> LostRange {
        LostRange { upper, ..self }
    }

    /// True if only the value of one key is lost, and the key is known.
    pub(super) fn is_value(&self) -> bool {
        self.upper.as_ref().and_then(|upper| upper.strip_suffix(&[0])) == Some(&self.lower)
    }

    /// True if all keys of the table are lost.
    pub(super) fn is_all(&self) -> bool {
        self.lower.is_empty() && self.upper.is_none()
    }

    /// The cause, without advice.
    pub(super) fn why(&self) -> String {
        match self.others {
            0 => self.cause.clone(),
            others => format!("{} (and {others} more)", self.cause),
        }
    }

    /// A description of the keys.
    pub(super) fn keys(&self, key_type: &str) -> String {
        let shown = |key: &[u8]| format!("\"{}\"", typed::bound(key, key_type).escape_debug());
        match (self.lower.as_slice(), &self.upper) {
            (key, Some(_)) if self.is_value() => format!("the value of {}", shown(key)),
            ([], None) => "all keys".to_owned(),
            ([], Some(upper)) => format!("keys up to {}", shown(upper)),
            (lower, None) => format!("keys from {} to the end", shown(lower)),
            (lower, Some(upper)) => format!("keys from {} to {}", shown(lower), shown(upper)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duramen::Error;
    use duramen::base::PageId;

    fn lost(lower: &str, upper: Option<&str>, page: u32) -> Lost {
        let upper = upper.map(|upper| upper.as_bytes().to_vec());
        Lost { lower: lower.into(), upper, cause: Error::corrupt(PageId(page), "it rots") }
    }

    #[test]
    fn adjacent_ranges_are_joined_and_others_are_not() {
        let mut range = LostRange::new(&lost("b", Some("d"), 7));
        assert!(!range.join(&lost("e", Some("f"), 8)));
        assert_eq!((range.keys("str").as_str(), range.why().as_str()), ("keys from \"b\" to \"d\"", "page 7: it rots"));
        assert!(range.join(&lost("d", Some("e"), 8)) && range.join(&lost("e", None, 9)));
        assert_eq!(range.keys("str"), "keys from \"b\" to the end");
        assert_eq!(range.why(), "page 7: it rots (and 2 more)");
        assert!(!range.join(&lost("", None, 7)), "no range follows the end");
    }

    #[test]
    fn a_lost_value_is_described_by_its_key() {
        assert_eq!(LostRange::new(&lost("oak", Some("oak\0"), 7)).keys("bytes"), "the value of \"oak\"");
        assert_eq!(
            LostRange::new(&lost("oak", Some("oak\0\0"), 7)).keys("bytes"),
            "keys from \"oak\" to \"0x6f616b0000\""
        );
    }

    #[test]
    fn a_part_of_a_range_is_between_two_keys() {
        let range = LostRange::new(&lost("b", Some("d"), 7));
        let part = |lower: &str, upper: Option<&str>| {
            let part = range.within(lower.as_bytes(), upper.map(str::as_bytes))?;
            Some(part.keys("str"))
        };
        assert_eq!(part("", None).unwrap(), "keys from \"b\" to \"d\"");
        assert_eq!(part("c", Some("x")).unwrap(), "keys from \"c\" to \"d\"");
        assert_eq!((part("d", None), part("", Some("b"))), (None, None));
    }
}

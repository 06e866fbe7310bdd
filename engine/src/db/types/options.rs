//! [`TableOptions`]: the options of a new table. The page layer implements them.

use crate::base::Error;
use crate::page::BlockRule;
pub use crate::page::KeyLayout;
use duramen_codec::Codec;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// How long the separators in inner pages are.
///
/// ```
/// use duramen::db::types::Separators;
///
/// assert_eq!("tail".parse::<Separators>()?, Separators::Tail);
/// assert_eq!(Separators::Full.to_string(), "full");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Separators {
    /// Whole keys, cut exactly in the middle of the page.
    Full,
    /// Tail compression: the shortest string that divides the page within its middle third.
    Tail,
    /// The same with another radius: so many thousandths of the page on each side of its middle, at most 500.
    TailWithin(u16),
}

/// The options of one table; `None` lets the engine choose.
///
/// Left open, keys of type `u32`, `u64`, `i32` and `i64` are kept in [`KeyLayout::Blocks`] and others [`KeyLayout::Head`], and
/// separators are [`Separators::Tail`], of blocks [`Separators::Full`]. Integer keys without an order to them, such as hashes,
/// are written faster as [`KeyLayout::Fixed`], and take no more room. A table keeps the options it was created with.
///
/// ```
/// use duramen::db::types::{KeyLayout, TableOptions};
///
/// let options = TableOptions { keys: Some("plain".parse()?), ..TableOptions::default() };
/// assert_eq!(options.keys, Some(KeyLayout::Plain));
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TableOptions {
    /// How pages keep their keys.
    pub keys: Option<KeyLayout>,
    /// How blocks of integer keys are compressed. Left open, [`TableOptions::DEFAULT_CODEC`].
    pub codec: Option<Codec>,
    /// How long separators are.
    pub separators: Option<Separators>,
    /// The table gives out keys of its own, 1, 2, 3 and so on: see [`crate::Table::push`]. Only for keys `u32` and `u64`.
    pub auto_increment: bool,
    /// The length of every key in bytes, where their type is a program's own and is known by its name only
    /// ([`crate::WriteTransaction::create_untyped`]). Of all others the type says it.
    pub key_width: Option<usize>,
    /// The same of every value.
    pub value_width: Option<usize>,
}

impl TableOptions {
    /// The codec of blocks unless another is named: of those that are smaller than plain keys the one with the quickest
    /// random inserts, lookups and sums.
    pub const DEFAULT_CODEC: Codec = BlockRule::DEFAULT_CODEC;
}

impl fmt::Display for KeyLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number() {
            Some(number) => f.pad(&format!("{}:{number}", self.stem())),
            None => f.pad(self.stem()),
        }
    }
}

impl FromStr for KeyLayout {
    type Err = Error;

    fn from_str(text: &str) -> Result<KeyLayout, Error> {
        let numbered = text.split_once(':').and_then(|(stem, part)| Some((KeyLayout::numbered(stem)?, stem, part)));
        match numbered {
            Some((layout, stem, part)) => {
                number("keys", text, part, 1..=8, &format!("{stem}:1 to {stem}:8")).map(layout)
            }
            None => choose("keys", text, &KeyLayout::ALL),
        }
    }
}

impl fmt::Display for Separators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Separators::Full => "full",
            Separators::Tail => "tail",
            Separators::TailWithin(radius) => return f.pad(&format!("tail:{radius}")),
        })
    }
}

impl FromStr for Separators {
    type Err = Error;

    fn from_str(text: &str) -> Result<Separators, Error> {
        match text.strip_prefix("tail:") {
            Some(radius) => {
                let expected = "tail:0 to tail:500, thousandths of a page";
                number("separators", text, radius, 0..=500, expected).map(Separators::TailWithin)
            }
            None => choose("separators", text, &[Separators::Full, Separators::Tail]),
        }
    }
}

/// The number behind an option's name, if it is within bounds.
fn number<T: FromStr + PartialOrd>(
    option: &'static str,
    text: &str,
    number: &str,
    bounds: RangeInclusive<T>,
    expected: &str,
) -> Result<T, Error> {
    let wrong = || Error::Option { option, value: format!("\"{text}\""), expected: expected.to_owned() };
    number.parse().ok().filter(|number| bounds.contains(number)).ok_or_else(wrong)
}

/// The one of `all` whose name is `text`.
fn choose<T: Copy + fmt::Display>(option: &'static str, text: &str, all: &[T]) -> Result<T, Error> {
    let names = || all.iter().map(T::to_string);
    match all.iter().zip(names()).find(|(_, name)| name == text) {
        Some((choice, _)) => Ok(*choice),
        None => {
            let expected = names().collect::<Vec<_>>().join(" or ");
            Err(Error::Option { option, value: format!("\"{text}\""), expected })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for layout in
            KeyLayout::ALL.into_iter().chain([KeyLayout::PkbPart(1), KeyLayout::PkbPart(8), KeyLayout::PkbHeapPart(3)])
        {
            assert_eq!(layout.to_string().parse::<KeyLayout>().unwrap(), layout);
        }
        for separators in [Separators::Full, Separators::Tail, Separators::TailWithin(500)] {
            assert_eq!(separators.to_string().parse::<Separators>().unwrap(), separators);
        }
    }

    #[test]
    fn a_wrong_name_is_told_with_what_would_be_right() {
        let told = "Plain".parse::<KeyLayout>().unwrap_err().to_string();
        let wiredtiger = "wiredtiger or wiredtiger-best or wiredtiger-both";
        let right = format!(
            "plain or fixed or head or db2 or {wiredtiger} or myisam or pkb or pkb-heap or blocks or blocks:128"
        );
        assert_eq!(told, format!("option keys cannot be \"Plain\": it must be {right}"));
        let told = "".parse::<Separators>().unwrap_err().to_string();
        assert_eq!(told, "option separators cannot be \"\": it must be full or tail");
        for (wrong, right) in [
            ("pkb:0", "pkb:1 to pkb:8"),
            ("pkb:9", "pkb:1 to pkb:8"),
            ("pkb:", "pkb:1 to pkb:8"),
            ("pkb-heap:9", "pkb-heap:1 to pkb-heap:8"),
            ("blocks:256", "blocks or blocks:128"),
        ] {
            assert!(wrong.parse::<KeyLayout>().unwrap_err().to_string().ends_with(right), "{wrong}");
        }
        assert!("tail:501".parse::<Separators>().unwrap_err().to_string().contains("tail:500"));
    }
}

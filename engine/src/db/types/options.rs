//! [`TableOptions`]: the options of a new table. The page layer implements their effect on pages.

use crate::base::Error;
pub use crate::page::KeyLayout;
use crate::page::{BlockRule, Codec, SeparatorRule};
use crate::store::{Compression, Overflow, PagePolicy, Target};
use std::fmt;
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
    /// Separators are whole keys. A page is split exactly in its middle.
    Full,
    /// Tail compression. A page is split where the separator is shortest within its middle third.
    Tail,
    /// Tail compression within another part of the page. The number is the distance on each side of its middle, in
    /// thousandths of the page, at most 500.
    TailWithin(u16),
}

/// The options of a table. The engine chooses those that are `None`.
///
/// It chooses [`KeyLayout::Blocks`] and [`Separators::Full`] for keys of type `u32`, `u64`, `i32` and `i64`, and
/// [`KeyLayout::Head`] and [`Separators::Tail`] for others. Use [`KeyLayout::Fixed`] for integer keys in random order,
/// such as hashes: writes are faster, and the keys take no more space. A table keeps the options with which it was
/// created.
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
    /// The layout of keys in pages.
    pub keys: Option<KeyLayout>,
    /// The codec of blocks of integer keys. The default is [`TableOptions::DEFAULT_CODEC`].
    pub codec: Option<Codec>,
    /// The rule for separators.
    pub separators: Option<Separators>,
    /// How the pages of the table are compressed in the file. The page store `shadow` does not compress pages of 4 KiB.
    pub compression: Compression,
    /// The length of the places that the pages of the table get in the file.
    pub target: Target,
    /// The treatment of pages that miss the target.
    pub overflow: Overflow,
    /// Whether pages may be compressed with a dictionary ([`crate::TableDef::dictionary`]).
    pub dictionary: bool,
    /// The table assigns the keys 1, 2, 3 and so on; see [`crate::Table::push`]. The keys must have type `u32` or
    /// `u64`.
    pub auto_increment: bool,
    /// The length of every key in bytes, for a type that a program has defined and of which only the name is known
    /// ([`crate::WriteTransaction::create_untyped`]). Any other type has its own length.
    pub key_width: Option<usize>,
    /// The length of every value in bytes, for such a type.
    pub value_width: Option<usize>,
}

impl TableOptions {
    /// The default codec of blocks. It has the fastest random inserts, lookups and sums of all codecs that compress.
    pub const DEFAULT_CODEC: Codec = BlockRule::DEFAULT_CODEC;

    /// How pages are compressed, and which places they get.
    pub(crate) fn policy(&self) -> PagePolicy {
        PagePolicy {
            compression: self.compression,
            target: self.target,
            overflow: self.overflow,
            dictionary: self.dictionary,
        }
    }
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
                let expected = || format!("{stem}:1 to {stem}:8");
                let part = part.parse().ok().filter(|part| (1..=8).contains(part));
                part.map(layout).ok_or_else(|| refused("keys", text, expected()))
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

impl Separators {
    /// The error for a radius that is too large or not a number.
    pub(in crate::db) fn refused(text: &str) -> Error {
        refused("separators", text, format!("tail:0 to tail:{}, thousandths of a page", SeparatorRule::WIDEST))
    }
}

impl FromStr for Separators {
    type Err = Error;

    fn from_str(text: &str) -> Result<Separators, Error> {
        match text.strip_prefix("tail:") {
            Some(radius) => {
                let radius = radius.parse().ok().filter(|radius| *radius <= SeparatorRule::WIDEST);
                radius.map(Separators::TailWithin).ok_or_else(|| Separators::refused(text))
            }
            None => choose("separators", text, &[Separators::Full, Separators::Tail]),
        }
    }
}

/// The element of `all` whose name is `text`.
fn choose<T: Copy + fmt::Display>(option: &'static str, text: &str, all: &[T]) -> Result<T, Error> {
    let names = || all.iter().map(T::to_string);
    match all.iter().zip(names()).find(|(_, name)| name == text) {
        Some((choice, _)) => Ok(*choice),
        None => Err(refused(option, text, names().collect::<Vec<_>>().join(" or "))),
    }
}

fn refused(option: &'static str, text: &str, expected: String) -> Error {
    Error::Option { option, value: format!("\"{text}\""), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed_names_are_printed_unchanged() {
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
    fn an_error_for_a_wrong_name_lists_the_right_ones() {
        let message = "Plain".parse::<KeyLayout>().unwrap_err().to_string();
        let wiredtiger = "wiredtiger or wiredtiger-best or wiredtiger-both";
        let right = format!(
            "plain or fixed or head or db2 or {wiredtiger} or myisam or pkb or pkb-heap or blocks or blocks:128"
        );
        assert_eq!(message, format!("option keys cannot be \"Plain\": it must be {right}"));
        let message = "".parse::<Separators>().unwrap_err().to_string();
        assert_eq!(message, "option separators cannot be \"\": it must be full or tail");
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

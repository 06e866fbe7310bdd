//! [`TableOptions`]: the options of a new table. The page layer implements them.

use crate::base::Error;
use duramen_codec::Codec;
use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// How a table's pages keep their keys.
///
/// ```
/// use duramen::db::types::KeyLayout;
///
/// assert_eq!("db2".parse::<KeyLayout>()?, KeyLayout::Db2);
/// assert_eq!(KeyLayout::ALL.map(|layout| layout.to_string())[0], "plain");
/// # Ok::<(), duramen::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum KeyLayout {
    /// Whole keys.
    Plain,
    /// Keys of one length, packed without slots: integers, hashes, UUIDs. Only for key types of a fixed width.
    Fixed,
    /// The common prefix of a page's keys is kept once, and the next four bytes of each key apart for quick search.
    Head,
    /// Several prefixes a page, each for a run of keys, chosen anew when a page is full, and four bytes of each key apart.
    Db2,
    /// Prefix deltas: each key as what it adds to the one before, about every tenth whole to search from (WiredTiger's
    /// *roll-forward distance control*). The smallest for keys that resemble their neighbours, such as paths and URLs, where
    /// pages are large.
    WiredTiger,
    /// Prefix deltas without whole keys, and in what room a page has left its *best prefix group*: the longest run of keys
    /// that one of them, kept whole there, completes. A search halves that run and goes through the rest.
    WiredTigerBest,
    /// Prefix deltas with both: about every tenth key whole, and the best prefix group.
    WiredTigerBoth,
    /// Prefix deltas without whole keys: smaller by a little, and a page is searched from its first key on. For pages
    /// of few keys.
    MyIsam,
    /// Whole keys, and apart from them a few bytes of each that tell it from the one before: two in memory, five in files.
    /// A search reads one whole key of a page at most; nothing is saved but what a page's keys have in common.
    Pkb,
    /// The same with so many bytes, 1 to 8, wherever the table is.
    PkbPart(u8),
    /// As [`KeyLayout::Pkb`], with the whole keys in pages of their own, the *key heap*: pages of partial keys are small enough
    /// to stay in memory ([`crate::Builder::resident_inner`]), and a search reads one key of the heap at most, none at all if the
    /// partial keys tell that a key is not there. A scan reads every key's heap page.
    PkbHeap,
    /// The same with so many bytes, 1 to 8, wherever the table is.
    PkbHeapPart(u8),
    /// Integers in compressed blocks, as long as the codec takes them: 256 keys, of BP128 128. [`TableOptions::codec`] says how.
    /// Only for keys `u32`, `u64`, `i32`, `i64`.
    Blocks,
    /// The same with blocks of up to 128 keys, for codecs that take longer ones.
    ShortBlocks,
}

impl KeyLayout {
    /// All of them, but for [`KeyLayout::PkbPart`] and [`KeyLayout::PkbHeapPart`].
    pub const ALL: [KeyLayout; 12] = [
        KeyLayout::Plain,
        KeyLayout::Fixed,
        KeyLayout::Head,
        KeyLayout::Db2,
        KeyLayout::WiredTiger,
        KeyLayout::WiredTigerBest,
        KeyLayout::WiredTigerBoth,
        KeyLayout::MyIsam,
        KeyLayout::Pkb,
        KeyLayout::PkbHeap,
        KeyLayout::Blocks,
        KeyLayout::ShortBlocks,
    ];
}

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
    pub const DEFAULT_CODEC: Codec = Codec::SimdFor;
}

impl fmt::Display for KeyLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            KeyLayout::Plain => "plain",
            KeyLayout::Fixed => "fixed",
            KeyLayout::Head => "head",
            KeyLayout::Db2 => "db2",
            KeyLayout::WiredTiger => "wiredtiger",
            KeyLayout::WiredTigerBest => "wiredtiger-best",
            KeyLayout::WiredTigerBoth => "wiredtiger-both",
            KeyLayout::MyIsam => "myisam",
            KeyLayout::Pkb => "pkb",
            KeyLayout::PkbPart(part) => return f.pad(&format!("pkb:{part}")),
            KeyLayout::PkbHeap => "pkb-heap",
            KeyLayout::PkbHeapPart(part) => return f.pad(&format!("pkb-heap:{part}")),
            KeyLayout::Blocks => "blocks",
            KeyLayout::ShortBlocks => "blocks:128",
        })
    }
}

impl FromStr for KeyLayout {
    type Err = Error;

    fn from_str(text: &str) -> Result<KeyLayout, Error> {
        match text.split_once(':') {
            Some(("pkb", part)) => number("keys", text, part, 1..=8, "pkb:1 to pkb:8").map(KeyLayout::PkbPart),
            Some(("pkb-heap", part)) => {
                number("keys", text, part, 1..=8, "pkb-heap:1 to pkb-heap:8").map(KeyLayout::PkbHeapPart)
            }
            _ => choose("keys", text, &KeyLayout::ALL),
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
#[allow(clippy::unwrap_used)]
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

//! The names of key lists in options, help, errors and statistics, and the [kind](KeyListKind) of list that a table
//! gets for its types. Each name has one line here; the compiler reports each place that must handle a new name.
//!
//! `table` has the kinds, with their bytes in a page. Neither table can be derived from the other, because the kind
//! that a name means depends on the type of the keys, on the codec, and on whether the database is in memory
//! ([`KeyLayout::kind`]).

use super::{BlockRule, Instantiation, KeyListKind};
use crate::base::limits::MAX_KEY;
use crate::base::{Error, Result};
use duramen_codec::Codec;

/// The names of a list, one for each length of parts.
macro_rules! numbered {
    ($name:literal) => {
        [
            concat!($name, ":1"),
            concat!($name, ":2"),
            concat!($name, ":3"),
            concat!($name, ":4"),
            concat!($name, ":5"),
            concat!($name, ":6"),
            concat!($name, ":7"),
            concat!($name, ":8"),
        ]
    };
}

macro_rules! key_layouts {
    ($(
        $(#[doc = $doc:literal])* $name:ident = $text:literal in $page:literal $((has_codec = $has_codec:literal))?
        $(, $(#[doc = $numbered_doc:literal])* $numbered:ident)?;
    )*) => {
        /// How a table's pages store their keys.
        ///
        /// ```
        /// use duramen::db::types::KeyLayout;
        ///
        /// assert_eq!("db2".parse::<KeyLayout>()?, KeyLayout::Db2);
        /// assert_eq!(KeyLayout::ALL.map(|layout| layout.to_string())[0], "plain");
        /// assert_eq!(KeyLayout::Db2.documentation(), "docs/layouts/db2.md");
        /// # Ok::<(), duramen::Error>(())
        /// ```
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum KeyLayout {
            $($(#[doc = $doc])* $name, $($(#[doc = $numbered_doc])* $numbered(u8),)?)*
        }

        impl KeyLayout {
            /// All layouts except those with a number.
            pub const ALL: [KeyLayout; [$($text),*].len()] = [$(KeyLayout::$name),*];

            /// Returns the name without its number.
            pub(crate) fn stem(self) -> &'static str {
                match self {
                    $(KeyLayout::$name => $text, $(KeyLayout::$numbered(_) => $text,)?)*
                }
            }

            /// Returns the number in the name, if there is one.
            pub(crate) fn number(self) -> Option<u8> {
                match self {
                    $(KeyLayout::$name => None, $(KeyLayout::$numbered(number) => Some(number),)?)*
                }
            }

            /// Returns the constructor of the numbered layout with that stem, if there is such a layout.
            pub(crate) fn numbered(stem: &str) -> Option<fn(u8) -> KeyLayout> {
                let all: &[(&str, fn(u8) -> KeyLayout)] = &[$($(($text, KeyLayout::$numbered),)?)*];
                all.iter().find(|(text, _)| *text == stem).map(|(_, layout)| *layout)
            }

            /// Returns the full name; without the number if no list has such a number.
            pub(crate) fn name(self) -> &'static str {
                let number = usize::from(self.number().unwrap_or(0));
                let names: &[&'static str] = match self {
                    $(KeyLayout::$name => &[], $(KeyLayout::$numbered(_) => &numbered!($text),)?)*
                };
                names.get(number.wrapping_sub(1)).copied().unwrap_or(self.stem())
            }

            /// Returns all names of the layout, including those with a number: `pkb, pkb:1 to pkb:8`.
            pub fn names(self) -> String {
                let name = self.stem();
                match KeyLayout::numbered(name) {
                    Some(_) => format!("{name}, {name}:1 to {name}:{}", KeyListKind::LONGEST_PART),
                    None => name.to_owned(),
                }
            }

            /// Returns true if a codec can be set, because keys are integers in blocks.
            pub(crate) fn has_codec(self) -> bool {
                match self {
                    $(KeyLayout::$name $(| KeyLayout::$numbered(_))? => false $(|| $has_codec)?,)*
                }
            }

            /// Returns the path of the repository's document that describes the bytes, with an example.
            pub fn documentation(self) -> &'static str {
                match self {
                    $(KeyLayout::$name $(| KeyLayout::$numbered(_))? => concat!("docs/layouts/", $page),)*
                }
            }
        }
    };
}

key_layouts! {
    /// Whole keys.
    Plain = "plain" in "plain.md";
    /// Keys of one length, packed without slots: integers, hashes, UUIDs. Only for key types of a fixed width.
    Fixed = "fixed" in "fixed.md";
    /// The common prefix of a page's keys is stored once. The next four bytes of each key are stored separately, for
    /// quick search.
    Head = "head" in "head.md";
    /// Several prefixes in each page, each for a run of keys; they are chosen again when a page is full. Four bytes of
    /// each key are stored separately.
    Db2 = "db2" in "db2.md";
    /// Prefix deltas: each key is stored as its difference from the key before. About every tenth key is whole, so that
    /// a search can begin there (WiredTiger's *roll-forward distance control*). The smallest layout for keys that
    /// resemble their neighbours, such as paths and URLs, in large pages.
    WiredTiger = "wiredtiger" in "prefix-delta.md";
    /// Prefix deltas without whole keys. The free room of a page holds the *best prefix group*: the longest run of keys
    /// that one base key completes, and the whole base key. A search uses binary search in that run and reads the other
    /// keys one by one.
    WiredTigerBest = "wiredtiger-best" in "prefix-delta.md";
    /// Prefix deltas with both: about every tenth key whole, and the best prefix group.
    WiredTigerBoth = "wiredtiger-both" in "prefix-delta.md";
    /// Prefix deltas without whole keys: slightly smaller, but a search begins at the page's first key. For pages of
    /// few keys.
    MyIsam = "myisam" in "prefix-delta.md";
    /// Whole keys, and separately a few bytes of each key that distinguish it from the key before: two in memory, five
    /// in files. A search reads at most one whole key of a page. The layout saves no space except the common prefix of
    /// a page's keys.
    Pkb = "pkb" in "pkb.md",
        /// As [`KeyLayout::Pkb`], with this number of bytes, 1 to 8, in memory and in files.
        PkbPart;
    /// As [`KeyLayout::Pkb`], with the whole keys in pages of their own, the *key heap*. Pages of partial keys are
    /// small enough to stay in memory ([`crate::Builder::resident_inner`]). A search reads at most one key of the heap,
    /// and none if the partial keys show that a key is absent. A scan reads every key's heap page.
    PkbHeap = "pkb-heap" in "pkb.md",
        /// As [`KeyLayout::PkbHeap`], with this number of bytes, 1 to 8, in memory and in files.
        PkbHeapPart;
    /// Integers in compressed blocks of the codec's greatest length: 256 keys, or 128 for BP128.
    /// [`TableOptions::codec`](crate::db::types::TableOptions::codec) sets the codec. Only for keys of type `u32`,
    /// `u64`, `i32`, `i64`.
    Blocks = "blocks" in "integers.md" (has_codec = true);
    /// As [`KeyLayout::Blocks`], with blocks of up to 128 keys, for codecs whose blocks can be longer.
    ShortBlocks = "blocks:128" in "integers.md" (has_codec = true);
}

/// The length of PkB's parts in bytes: the best values in the study.
const PART_IN_MEMORY: u8 = 2;
const PART_IN_FILES: u8 = 5;

/// The properties of a new table's keys.
#[derive(Clone, Copy, Debug)]
pub struct KeyProperties<'a> {
    /// The name of the type of the keys in error messages.
    pub type_name: &'a str,
    /// True if the keys are integers, and their bytes as big-endian numbers sort as the integers do.
    pub integers: bool,
    /// The length of each key in bytes, if all have the same length.
    pub width: Option<usize>,
    /// The requested codec.
    pub codec: Option<Codec>,
    /// True if the database is in memory.
    pub in_memory: bool,
}

impl KeyProperties<'_> {
    /// Returns the constructor of the kind of blocks for these keys, if they are integers that blocks can hold.
    fn blocks(&self) -> Option<fn(BlockRule) -> KeyListKind> {
        match self.width.filter(|_| self.integers) {
            Some(4) => Some(KeyListKind::Blocks32),
            Some(8) => Some(KeyListKind::Blocks64),
            Some(_) | None => None,
        }
    }
}

impl KeyLayout {
    /// Returns the layout if none is requested. `whole`: separators may be whole keys. Blocks require this.
    pub(crate) fn default_for(keys: &KeyProperties<'_>, whole: bool) -> KeyLayout {
        let blocks = keys.codec.is_some() || (whole && keys.blocks().is_some());
        if blocks { KeyLayout::Blocks } else { KeyLayout::Head }
    }

    /// Returns the kind of list for these keys.
    ///
    /// # Errors
    /// `Error::Option` if these keys cannot have this layout.
    pub(crate) fn kind(self, keys: &KeyProperties<'_>) -> Result<KeyListKind> {
        let refused = |expected| Err(Error::Option { option: "keys", value: self.to_string(), expected });
        let plain_or_head = |why: &str| refused(format!("plain or head for keys of type {}: {why}", keys.type_name));
        let usual_part = if keys.in_memory { PART_IN_MEMORY } else { PART_IN_FILES };
        let of_part = |kind: fn(u8) -> KeyListKind| match self.number().unwrap_or(usual_part) {
            part if (1..=KeyListKind::LONGEST_PART).contains(&part) => Ok(kind(part)),
            _ => refused(format!("{stem}:1 to {stem}:{}", KeyListKind::LONGEST_PART, stem = self.stem())),
        };
        let codec = keys.codec.unwrap_or(BlockRule::DEFAULT_CODEC);
        let of_rule = |rule| match (keys.blocks(), keys.codec) {
            (Some(kind), _) => Ok(kind(rule)),
            (None, asked) => {
                let expected =
                    format!("unset for keys of type {}: blocks are for integers of 4 or 8 bytes", keys.type_name);
                let Some(codec) = asked else { return refused(expected) };
                Err(Error::Option { option: "codec", value: codec.to_string(), expected })
            }
        };
        match self {
            KeyLayout::Plain => Ok(KeyListKind::Plain),
            KeyLayout::Fixed if keys.width.is_some_and(|width| (1..=MAX_KEY).contains(&width)) => {
                Ok(KeyListKind::Fixed)
            }
            KeyLayout::Fixed if keys.width.is_some_and(|width| width > MAX_KEY) => {
                plain_or_head(&format!("a key has {MAX_KEY} bytes at most"))
            }
            KeyLayout::Fixed => plain_or_head("they vary in length"),
            KeyLayout::Head => Ok(KeyListKind::Head),
            KeyLayout::Db2 => Ok(KeyListKind::Db2),
            KeyLayout::WiredTiger => Ok(KeyListKind::WiredTiger(Instantiation::RollForward)),
            KeyLayout::WiredTigerBest => Ok(KeyListKind::WiredTiger(Instantiation::BestGroup)),
            KeyLayout::WiredTigerBoth => Ok(KeyListKind::WiredTiger(Instantiation::Both)),
            KeyLayout::MyIsam => Ok(KeyListKind::MyIsam),
            KeyLayout::Pkb | KeyLayout::PkbPart(_) => of_part(KeyListKind::Pkb),
            KeyLayout::PkbHeap | KeyLayout::PkbHeapPart(_) => of_part(KeyListKind::PkbHeap),
            KeyLayout::Blocks => of_rule(BlockRule::long(codec)),
            KeyLayout::ShortBlocks => match BlockRule::short(codec) {
                Some(rule) => of_rule(rule),
                None => refused(format!("blocks: blocks of {codec} never have more than {} keys", codec.max_count())),
            },
        }
    }
}

impl KeyListKind {
    /// Returns the layout of this kind; without a number if the number is the default for files.
    pub(crate) fn layout(self) -> KeyLayout {
        match self {
            KeyListKind::Plain => KeyLayout::Plain,
            KeyListKind::Fixed => KeyLayout::Fixed,
            KeyListKind::Head => KeyLayout::Head,
            KeyListKind::Db2 => KeyLayout::Db2,
            KeyListKind::WiredTiger(Instantiation::RollForward) => KeyLayout::WiredTiger,
            KeyListKind::WiredTiger(Instantiation::BestGroup) => KeyLayout::WiredTigerBest,
            KeyListKind::WiredTiger(Instantiation::Both) => KeyLayout::WiredTigerBoth,
            KeyListKind::MyIsam => KeyLayout::MyIsam,
            KeyListKind::Pkb(PART_IN_FILES) => KeyLayout::Pkb,
            KeyListKind::Pkb(part) => KeyLayout::PkbPart(part),
            KeyListKind::PkbHeap(PART_IN_FILES) => KeyLayout::PkbHeap,
            KeyListKind::PkbHeap(part) => KeyLayout::PkbHeapPart(part),
            KeyListKind::Blocks32(rule) | KeyListKind::Blocks64(rule) => match rule.is_short() {
                true => KeyLayout::ShortBlocks,
                false => KeyLayout::Blocks,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_layout_names_map_to_each_other() {
        let mut named = Vec::new();
        for kind in KeyListKind::ALL {
            let (codec, width) = (kind.codec(), kind.key_len().or(Some(8)));
            let keys = KeyProperties { type_name: "integer", integers: true, width, codec, in_memory: false };
            let layout = kind.layout();
            assert_eq!(layout.kind(&keys).unwrap(), kind, "{layout}");
            assert_eq!(layout.has_codec(), codec.is_some(), "{layout}");
            named.push(layout);
        }
        for layout in KeyLayout::ALL {
            assert!(named.contains(&layout), "{layout}");
        }
    }
}

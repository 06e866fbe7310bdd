//! The names under which users ask for key lists: what options, help, errors and statistics call them, and which
//! [kind](KeyListKind) a table gets by its types. One line a name here; the compiler asks for the rest.

use super::{BlockRule, Instantiation, KeyListKind};
use crate::base::{Error, Result};
use duramen_codec::Codec;

/// The names of a list with each length of parts.
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
        $(#[doc = $doc:literal])* $name:ident = $text:literal in $page:literal
        $(, $(#[doc = $numbered_doc:literal])* $numbered:ident)?;
    )*) => {
        /// How a table's pages keep their keys.
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
            /// All of them, but for those with a number.
            pub const ALL: [KeyLayout; [$($text),*].len()] = [$(KeyLayout::$name),*];

            /// Its name, without its number if it has one.
            pub(crate) fn stem(self) -> &'static str {
                match self {
                    $(KeyLayout::$name => $text, $(KeyLayout::$numbered(_) => $text,)?)*
                }
            }

            /// Its number, if it has one.
            pub(crate) fn number(self) -> Option<u8> {
                match self {
                    $(KeyLayout::$name => None, $(KeyLayout::$numbered(number) => Some(number),)?)*
                }
            }

            /// What makes the layout with that stem and a number, if there is such a layout.
            pub(crate) fn numbered(stem: &str) -> Option<fn(u8) -> KeyLayout> {
                let all: &[(&str, fn(u8) -> KeyLayout)] = &[$($(($text, KeyLayout::$numbered),)?)*];
                all.iter().find(|(text, _)| *text == stem).map(|(_, layout)| *layout)
            }

            /// Its name in full; that without the number where no list has such a number.
            pub(crate) fn name(self) -> &'static str {
                let number = usize::from(self.number().unwrap_or(0));
                let names: &[&'static str] = match self {
                    $(KeyLayout::$name => &[], $(KeyLayout::$numbered(_) => &numbered!($text),)?)*
                };
                names.get(number.wrapping_sub(1)).copied().unwrap_or(self.stem())
            }

            /// All names of the layout, that with a number among them: `pkb, pkb:1 to pkb:8`.
            pub fn names(self) -> String {
                let name = self.stem();
                match KeyLayout::numbered(name) {
                    Some(_) => format!("{name}, {name}:1 to {name}:{}", KeyListKind::LONGEST_PART),
                    None => name.to_owned(),
                }
            }

            /// The file of the repository that describes its bytes, with an example.
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
    /// The common prefix of a page's keys is kept once, and the next four bytes of each key apart for quick search.
    Head = "head" in "head.md";
    /// Several prefixes a page, each for a run of keys, chosen anew when a page is full, and four bytes of each key apart.
    Db2 = "db2" in "db2.md";
    /// Prefix deltas: each key as what it adds to the one before, about every tenth whole to search from (WiredTiger's
    /// *roll-forward distance control*). The smallest for keys that resemble their neighbours, such as paths and URLs, where
    /// pages are large.
    WiredTiger = "wiredtiger" in "prefix-delta.md";
    /// Prefix deltas without whole keys, and in what room a page has left its *best prefix group*: the longest run of keys
    /// that one of them, kept whole there, completes. A search halves that run and goes through the rest.
    WiredTigerBest = "wiredtiger-best" in "prefix-delta.md";
    /// Prefix deltas with both: about every tenth key whole, and the best prefix group.
    WiredTigerBoth = "wiredtiger-both" in "prefix-delta.md";
    /// Prefix deltas without whole keys: smaller by a little, and a page is searched from its first key on. For pages
    /// of few keys.
    MyIsam = "myisam" in "prefix-delta.md";
    /// Whole keys, and apart from them a few bytes of each that tell it from the one before: two in memory, five in files.
    /// A search reads one whole key of a page at most; nothing is saved but what a page's keys have in common.
    Pkb = "pkb" in "pkb.md",
        /// The same with so many bytes, 1 to 8, wherever the table is.
        PkbPart;
    /// As [`KeyLayout::Pkb`], with the whole keys in pages of their own, the *key heap*: pages of partial keys are small enough
    /// to stay in memory ([`crate::Builder::resident_inner`]), and a search reads one key of the heap at most, none at all if the
    /// partial keys tell that a key is not there. A scan reads every key's heap page.
    PkbHeap = "pkb-heap" in "pkb.md",
        /// The same with so many bytes, 1 to 8, wherever the table is.
        PkbHeapPart;
    /// Integers in compressed blocks, as long as the codec takes them: 256 keys, of BP128 128.
    /// [`TableOptions::codec`](crate::db::types::TableOptions::codec) says how. Only for keys `u32`, `u64`, `i32`, `i64`.
    Blocks = "blocks" in "integers.md";
    /// The same with blocks of up to 128 keys, for codecs that take longer ones.
    ShortBlocks = "blocks:128" in "integers.md";
}

/// Bytes of PkB's parts, as the study found best.
const PART_IN_MEMORY: u8 = 2;
const PART_IN_FILES: u8 = 5;

/// The keys of a table to be created.
#[derive(Clone, Copy, Debug)]
pub struct KeysToKeep<'a> {
    /// The name of their type.
    pub key_type: &'a str,
    /// The bytes of each, where all have as many.
    pub width: Option<usize>,
    /// The codec that was asked for.
    pub codec: Option<Codec>,
    /// The database is in memory.
    pub in_memory: bool,
}

impl KeysToKeep<'_> {
    /// What makes the kind of blocks that the keys go to, if they are integers that go to blocks.
    fn blocks(&self) -> Option<fn(BlockRule) -> KeyListKind> {
        match self.key_type {
            "u32" | "i32" => Some(KeyListKind::Blocks32),
            "u64" | "i64" => Some(KeyListKind::Blocks64),
            _ => None,
        }
    }
}

impl KeyLayout {
    /// The layout where none is asked for. `whole`: separators may be whole keys, for blocks have no others.
    pub(crate) fn left_open(keys: &KeysToKeep<'_>, whole: bool) -> KeyLayout {
        let blocks = keys.codec.is_some() || (whole && keys.blocks().is_some());
        if blocks { KeyLayout::Blocks } else { KeyLayout::Head }
    }

    /// True where keys are integers in blocks, of which a codec says more.
    pub(crate) fn has_codec(self) -> bool {
        matches!(self, KeyLayout::Blocks | KeyLayout::ShortBlocks)
    }

    /// The kind of list that these keys get.
    ///
    /// # Errors
    /// `Error::Option` where they can have none of this layout.
    pub(crate) fn kind(self, keys: &KeysToKeep<'_>) -> Result<KeyListKind> {
        let refused = |expected| Err(Error::Option { option: "keys", value: self.to_string(), expected });
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
                    format!("left out for keys of type {}: blocks are for u32, u64, i32 and i64", keys.key_type);
                let Some(codec) = asked else { return refused(expected) };
                Err(Error::Option { option: "codec", value: codec.to_string(), expected })
            }
        };
        match self {
            KeyLayout::Plain => Ok(KeyListKind::Plain),
            KeyLayout::Fixed if keys.width.is_some_and(|width| width > 0) => Ok(KeyListKind::Fixed),
            KeyLayout::Fixed => {
                refused(format!("plain or head for keys of type {}, which vary in length", keys.key_type))
            }
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
                None => refused(format!("blocks with {codec}: they have {} keys at most as it is", codec.max_count())),
            },
        }
    }
}

impl KeyListKind {
    /// What users call it; without a number where that is the usual one of files.
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

//! The one table of key lists: the number of each in page headers, and its implementation. The enums that name, read,
//! change and build lists are generated from it, so that each access to a page has one `match`. A new list needs a file
//! or folder of its own, a line here, and a line in `layout` with its name for users.
//!
//! The names have a table of their own, because a name is not a kind. The name `blocks` stands for a kind of each codec
//! and width, `pkb` for one number of bytes in memory and another in files, and `wiredtiger`, `wiredtiger-best` and
//! `wiredtiger-both` are kinds with one number. A test of `layout` checks that the tables agree.

use super::blocks::{BlockRule, BlocksScheme};
use super::db2::Db2Scheme;
use super::delta::{DeltaScheme, Instantiation};
use super::fixed::FixedScheme;
use super::pkb::{OutOfLineScheme, PkbScheme};
use super::scheme::{Build, Scheme};
use super::slotted::SlottedScheme;
use std::ops::Range;

/// The parameter of a kind beyond its number: two bytes of a tag, the codec and the variant.
pub(crate) trait Parameter: Copy + 'static {
    /// All values, each with its bytes.
    const ALL: &'static [(Self, [u8; 2])];

    /// Returns the bytes of the parameter in a tag: codec and variant.
    fn bytes(self) -> [u8; 2];

    /// Returns the parameter with these bytes.
    fn of(bytes: [u8; 2]) -> Option<Self>;
}

/// Decodes the bytes of a kind after its number.
macro_rules! decoded {
    ($kind:ident, $bytes:expr) => {
        ($bytes == [0, 0]).then_some(KeyListKind::$kind)
    };
    ($kind:ident, $bytes:expr, $ty:ty) => {
        <$ty as Parameter>::of($bytes).map(KeyListKind::$kind)
    };
}

/// Encodes the bytes of a kind after its number.
macro_rules! encoded {
    () => {
        [0, 0]
    };
    ($parameter:ident) => {
        Parameter::bytes($parameter)
    };
}

/// Writes all kinds with one name and number, and their tags, to `$all` from place `$at` on.
macro_rules! listed {
    ($all:ident, $at:ident, $number:literal, $kind:ident) => {
        $all[$at] = (KeyListKind::$kind, [$number, 0, 0]);
        $at += 1;
    };
    ($all:ident, $at:ident, $number:literal, $kind:ident, $ty:ty) => {
        let mut next = 0;
        while next < <$ty as Parameter>::ALL.len() {
            let (parameter, [codec, variant]) = <$ty as Parameter>::ALL[next];
            $all[$at] = (KeyListKind::$kind(parameter), [$number, codec, variant]);
            ($at, next) = ($at + 1, next + 1);
        }
    };
}

/// Counts the kinds with one name.
macro_rules! counted {
    () => {
        1
    };
    ($ty:ty) => {
        <$ty as Parameter>::ALL.len()
    };
}

macro_rules! key_lists {
    (($d:tt) $($list:ident $scheme:ty {
        $($(#[doc = $doc:literal])* $kind:ident $(($parameter:ident: $ty:ty))? = $number:literal => $value:expr,)*
    })*) => {
        /// The kind of a key list. Its number is the first byte of its [tag](KeyListKind::tag). The compiler rejects
        /// two kinds with the same number or the same tag.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum KeyListKind {
            $($($(#[doc = $doc])* $kind $(($ty))? = $number,)*)*
        }

        impl KeyListKind {
            /// All kinds and their tags, which are distinct.
            #[allow(clippy::indexing_slicing)] // evaluated by the compiler, which rejects an index out of bounds
            pub(crate) const TAGS: [(KeyListKind, [u8; 3]); 0 $($(+ counted!($($ty)?))*)*] = {
                let mut all = [(KeyListKind::USUAL, [0; 3]); 0 $($(+ counted!($($ty)?))*)*];
                let mut at = 0;
                $($(listed!(all, at, $number, $kind $(, $ty)?);)*)*
                assert!(at == all.len());
                while at > 0 {
                    at -= 1;
                    let (mut other, [kind, codec, variant]) = (0, all[at].1);
                    while other < at {
                        let tag = all[other].1;
                        assert!(tag[0] != kind || tag[1] != codec || tag[2] != variant, "two key lists of one tag");
                        other += 1;
                    }
                }
                all
            };

            /// All kinds.
            #[allow(clippy::indexing_slicing)] // evaluated by the compiler, which rejects an index out of bounds
            pub const ALL: [KeyListKind; KeyListKind::TAGS.len()] = {
                let (mut all, mut at) = ([KeyListKind::USUAL; KeyListKind::TAGS.len()], 0);
                while at < all.len() {
                    (all[at], at) = (KeyListKind::TAGS[at].0, at + 1);
                }
                all
            };

            /// Returns the bytes that identify the kind in page headers and in the catalog: its number, its codec and
            /// its variant.
            #[inline(always)]
            pub fn tag(self) -> [u8; 3] {
                let (number, [codec, variant]) = match self {
                    $($(KeyListKind::$kind $(($parameter))? => ($number, encoded!($($parameter)?)),)*)*
                };
                [number, codec, variant]
            }

            /// Returns the kind with this tag.
            #[inline(always)]
            pub fn from_tag([number, codec, variant]: [u8; 3]) -> Option<KeyListKind> {
                match number {
                    $($($number => decoded!($kind, [codec, variant] $(, $ty)?),)*)*
                    // No kind has this number.
                    _ => None,
                }
            }

            #[inline(always)]
            pub(super) fn scheme(self) -> AnyScheme {
                match self {
                    $($(KeyListKind::$kind $(($parameter))? => AnyScheme::$list($value),)*)*
                }
            }
        }

        /// The implementation of a kind; see [`with_scheme`].
        #[derive(Clone, Copy)]
        pub(super) enum AnyScheme {
            $($list($scheme),)*
        }

        /// A key list to read. Any bytes are safe.
        #[derive(Clone, Copy)]
        pub(crate) enum KeyList<'a> {
            $($list(<$scheme as Scheme>::List<'a>),)*
        }

        /// A key list under construction.
        pub(crate) enum KeyListBuilder {
            $($list(<$scheme as Scheme>::Builder),)*
        }

        impl<'a> KeyList<'a> {
            /// Returns the list of that kind in `list` (the bytes of the list alone), with `count` entries.
            #[inline(always)]
            pub(crate) fn new(kind: KeyListKind, list: &'a [u8], count: usize, granule: usize) -> KeyList<'a> {
                match kind.scheme() {
                    $(AnyScheme::$list(scheme) => KeyList::$list(scheme.list(list, count, granule)),)*
                }
            }
        }

        impl KeyListBuilder {
            /// Begins a list for a page of up to `bytes` bytes.
            pub(crate) fn new(kind: KeyListKind, granule: usize, inner: bool, bytes: usize) -> KeyListBuilder {
                match kind.scheme() {
                    $(AnyScheme::$list(scheme) => KeyListBuilder::$list(scheme.builder(granule, inner, bytes)),)*
                }
            }

            /// Copies the entries of some slots of another list: see [`Build::take`]. Returns the bytes that the list
            /// then takes. Returns `None` if the two lists are not of one kind that supports this, or if this list
            /// cannot hold the keys.
            pub(crate) fn take(&mut self, list: &KeyList<'_>, slots: Range<usize>, cut: usize) -> Option<usize> {
                match self {
                    $(KeyListBuilder::$list(to) => {
                        let KeyList::$list(from) = list else { return None };
                        to.take(from, slots, cut).then(|| to.bytes())
                    })*
                }
            }
        }

        /// Runs `$call` with `$scheme` bound to the implementation of a kind.
        macro_rules! with_scheme {
            ($d kind:expr, $d scheme:ident => $d call:expr) => {
                match $d kind.scheme() {
                    $($crate::page::keys::table::AnyScheme::$list($d scheme) => $d call,)*
                }
            };
        }

        /// Runs `$call` with `$list` bound to the list in a [`KeyList`].
        macro_rules! with_list {
            ($d any:expr, $d list:ident => $d call:expr) => {
                match $d any {
                    $(KeyList::$list($d list) => $d call,)*
                }
            };
        }

        /// Runs `$call` with `$builder` bound to the builder in a [`KeyListBuilder`].
        macro_rules! with_builder {
            ($d any:expr, $d builder:ident => $d call:expr) => {
                match $d any {
                    $(KeyListBuilder::$list($d builder) => $d call,)*
                }
            };
        }
    };
}

key_lists! { ($)
    Slotted SlottedScheme {
        /// Whole keys, with slots.
        Plain = 1 => SlottedScheme::PLAIN,
        /// Keys with slots, without the common prefix of the page's fences.
        Head = 2 => SlottedScheme::HEAD,
    }
    Fixed FixedScheme {
        /// Keys of one length, packed, without slots.
        Fixed = 3 => FixedScheme,
    }
    Db2 Db2Scheme {
        /// Several prefixes, each for a run of keys, with slots.
        Db2 = 4 => Db2Scheme,
    }
    Delta DeltaScheme {
        /// Prefix deltas, searched from the first entry on without building keys.
        MyIsam = 5 => DeltaScheme::MYISAM,
        /// Prefix deltas, searched from the last whole key below the sought one, or among the keys that one base key
        /// completes.
        WiredTiger(ways: Instantiation) = 6 => DeltaScheme::wired_tiger(ways),
    }
    Pkb PkbScheme {
        /// Whole keys, and the part of each that distinguishes it from the key before. The part has 1 to
        /// [`KeyListKind::LONGEST_PART`] bytes.
        Pkb(part: u8) = 7 => PkbScheme { part: usize::from(part) },
    }
    OutOfLine OutOfLineScheme {
        /// The same parts, with the whole keys in pages of their own: the key heap.
        PkbHeap(part: u8) = 8 => OutOfLineScheme { part: usize::from(part) },
    }
    Blocks BlocksScheme {
        /// Integer keys of 4 bytes in compressed blocks.
        Blocks32(rule: BlockRule) = 9 => BlocksScheme { rule, wide: false },
        /// Integer keys of 8 bytes in compressed blocks.
        Blocks64(rule: BlockRule) = 10 => BlocksScheme { rule, wide: true },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use duramen_codec::Codec;

    #[test]
    fn every_kind_has_the_tag_of_the_table_and_no_other_bytes_are_tags() {
        for (kind, tag) in KeyListKind::TAGS {
            assert_eq!((kind.tag(), KeyListKind::from_tag(tag)), (tag, Some(kind)));
        }
        let bytes = || 0..=u8::MAX;
        let tags = bytes().flat_map(|number| bytes().flat_map(move |codec| bytes().map(move |v| [number, codec, v])));
        assert_eq!(tags.filter_map(KeyListKind::from_tag).count(), KeyListKind::ALL.len());
    }

    #[test]
    fn both_kernels_of_vbyte_name_one_codec() {
        let tag = |codec| KeyListKind::Blocks32(BlockRule::long(codec)).tag();
        let ([kind, codec, plain], [same_kind, same_codec, masked]) = (tag(Codec::VByte), tag(Codec::MaskedVByte));
        assert_eq!(([kind, codec], 0, 2), ([same_kind, same_codec], plain, masked));
    }
}

//! The kinds of key lists: their tags, and what can be said of a list without looking at its bytes. What the bytes are
//! is each list's own.

use super::blocks::{BlockRule, Spread};
use super::{db2, delta, pkb, slotted};
use duramen_codec::Codec;

/// How WiredTiger's list gets at a key without building all those before it (paper, section 2.5.3). A list with neither
/// way is [`KeyListKind::MyIsam`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Instantiation {
    /// Roll-forward distance control: about every tenth key is whole.
    RollForward,
    /// The best prefix group: the longest run of entries that one whole key completes, each by itself.
    BestGroup,
    /// Both.
    Both,
}

/// The kind of a key list; [`KeyListKind::tag`] is its tag in the page header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyListKind {
    /// Whole keys with slots.
    Plain,
    /// Keys of one length, packed, without slots.
    Fixed,
    /// Keys with slots, without the common prefix of the page's fences.
    Head,
    /// Several prefixes, each for a run of keys, and slots.
    Db2,
    /// Prefix deltas, searched from the first one on without building keys.
    MyIsam,
    /// Whole keys, and beside them what tells each from the one before, in so many bytes, 1 to [`KeyListKind::LONGEST_PART`].
    Pkb(u8),
    /// The same parts, and the whole keys in pages of their own: the key heap.
    PkbHeap(u8),
    /// Prefix deltas, searched from the last whole key below or among those that one whole key completes.
    WiredTiger(Instantiation),
    /// Integer keys of 4 bytes in compressed blocks.
    Blocks32(BlockRule),
    /// Integer keys of 8 bytes in compressed blocks.
    Blocks64(BlockRule),
}

/// What is added to the length of PkB's parts for their tag.
const PKB: u8 = 0x50;
/// The same where the keys are in the key heap.
const PKB_HEAP: u8 = 0x60;
/// Tag of the blocks of 4-byte keys of the first codec; the others follow.
const BLOCKS32: u8 = 0x40;
/// Likewise of 8-byte keys.
const BLOCKS64: u8 = 0x48;
/// What is added to either where the blocks are short.
const SHORT: u8 = 0x30;

impl KeyListKind {
    /// The kind of that tag.
    #[inline(always)]
    pub fn from_tag(tag: u8) -> Option<KeyListKind> {
        KeyListKind::BY_TAG.get(usize::from(tag)).copied().flatten()
    }

    /// The number that stands for the kind in page headers and in the catalog.
    #[inline(always)]
    pub const fn tag(self) -> u8 {
        match self {
            KeyListKind::Plain => 1,
            KeyListKind::Fixed => 2,
            KeyListKind::Head => 3,
            KeyListKind::Db2 => 4,
            KeyListKind::MyIsam => 5,
            KeyListKind::WiredTiger(Instantiation::RollForward) => 0x15,
            KeyListKind::WiredTiger(Instantiation::BestGroup) => 0x25,
            KeyListKind::WiredTiger(Instantiation::Both) => 0x35,
            KeyListKind::Pkb(2) => 6,
            KeyListKind::Pkb(5) => 0x16,
            KeyListKind::Pkb(part) => PKB.saturating_add(part),
            KeyListKind::PkbHeap(part) => PKB_HEAP.saturating_add(part),
            KeyListKind::Blocks32(rule) => KeyListKind::blocks_tag(BLOCKS32, rule),
            KeyListKind::Blocks64(rule) => KeyListKind::blocks_tag(BLOCKS64, rule),
        }
    }

    const fn blocks_tag(first: u8, rule: BlockRule) -> u8 {
        first + rule.codec() as u8 + if rule.is_short() { SHORT } else { 0 }
    }

    /// Every kind at the place of its tag: a search asks for it in each page.
    #[allow(clippy::indexing_slicing)] // done by the compiler, which would refuse one that fails
    const BY_TAG: [Option<KeyListKind>; 128] = {
        let mut kinds = [None; 128];
        let mut i = 0;
        while i < KeyListKind::ALL.len() {
            kinds[KeyListKind::ALL[i].tag() as usize] = Some(KeyListKind::ALL[i]);
            i += 1;
        }
        kinds
    };

    /// The most bytes of a key that a part of a PkB list has.
    pub const LONGEST_PART: u8 = 8;

    /// Eight without a number, two of PkB with each length of parts, and two of blocks with each rule.
    const COUNT: usize = 8 + 2 * KeyListKind::LONGEST_PART as usize + 2 * 15;

    /// All kinds.
    #[allow(clippy::indexing_slicing)]
    pub const ALL: [KeyListKind; KeyListKind::COUNT] = {
        let mut all = [KeyListKind::Plain; KeyListKind::COUNT];
        all[1] = KeyListKind::Fixed;
        all[2] = KeyListKind::Head;
        all[3] = KeyListKind::MyIsam;
        all[4] = KeyListKind::WiredTiger(Instantiation::RollForward);
        all[5] = KeyListKind::WiredTiger(Instantiation::BestGroup);
        all[6] = KeyListKind::WiredTiger(Instantiation::Both);
        all[7] = KeyListKind::Db2;
        let mut part = 1;
        while part <= KeyListKind::LONGEST_PART {
            all[7 + part as usize] = KeyListKind::Pkb(part);
            all[15 + part as usize] = KeyListKind::PkbHeap(part);
            part += 1;
        }
        let (mut codec, mut next) = (0, 8 + 2 * KeyListKind::LONGEST_PART as usize);
        while codec < Codec::ALL.len() {
            let long = BlockRule::long(Codec::ALL[codec]);
            all[next] = KeyListKind::Blocks32(long);
            all[next + 1] = KeyListKind::Blocks64(long);
            next += 2;
            if let Some(short) = BlockRule::short(Codec::ALL[codec]) {
                all[next] = KeyListKind::Blocks32(short);
                all[next + 1] = KeyListKind::Blocks64(short);
                next += 2;
            }
            codec += 1;
        }
        assert!(next == KeyListKind::COUNT);
        all
    };

    /// The length that every key must have, where the kind itself says it.
    pub fn key_len(self) -> Option<usize> {
        self.blocks().map(|(_, wide)| if wide { 8 } else { 4 })
    }

    /// How the blocks of a list of blocks are made, and whether its keys are those of 8 bytes.
    #[inline(always)]
    pub(in crate::page) fn blocks(self) -> Option<(BlockRule, bool)> {
        match self {
            KeyListKind::Blocks32(rule) => Some((rule, false)),
            KeyListKind::Blocks64(rule) => Some((rule, true)),
            _ => None,
        }
    }

    /// How the keys of a page of this list lie in its bytes, where that can be told.
    #[inline(always)]
    pub(crate) fn spread(self, page_size: usize) -> Option<Spread> {
        match self {
            KeyListKind::Blocks32(rule) => Spread::of(rule, page_size),
            _ => None,
        }
    }

    /// True where the list keeps keys without the common prefix of the page's fences.
    pub fn cuts_prefix(self) -> bool {
        !matches!(
            self,
            KeyListKind::Plain
                | KeyListKind::Fixed
                | KeyListKind::PkbHeap(_)
                | KeyListKind::Blocks32(_)
                | KeyListKind::Blocks64(_)
        )
    }

    /// True where neighbours share bytes of the list, so that whoever wants several entries walks ([`super::KeyWalk`]): it is
    /// quicker and says what each takes.
    #[inline(always)]
    pub(crate) fn is_walked(self) -> bool {
        matches!(self, KeyListKind::Db2 | KeyListKind::MyIsam | KeyListKind::WiredTiger(_))
    }

    /// True where a tree may have inner pages of this list: any run of a page's entries fits in a page again that has the
    /// first key of the run and the one behind it for fences. Where an entry takes less than its key, it might not.
    pub fn suits_inner_pages(self) -> bool {
        !self.is_walked() && self.blocks().is_none() && !self.keeps_keys_apart()
    }

    /// True where the page has parts of its keys only: the tree keeps the keys themselves in its key heap, and what the page
    /// says of keys ([`super::super::Page::key_into`] and all that compares them) means nothing.
    #[inline(always)]
    pub fn keeps_keys_apart(self) -> bool {
        matches!(self, KeyListKind::PkbHeap(_))
    }

    /// [`KeyListKind::keeps_keys_apart`] of a tag, quicker.
    #[inline(always)]
    pub(in crate::page) fn is_apart_tag(tag: u8) -> bool {
        tag > PKB_HEAP && tag <= PKB_HEAP + KeyListKind::LONGEST_PART
    }

    /// Bytes of the key in the parts of a PkB list.
    #[inline(always)]
    pub(in crate::page) fn part(self) -> usize {
        if let KeyListKind::Pkb(part) | KeyListKind::PkbHeap(part) = self { usize::from(part) } else { 0 }
    }

    /// True where the slotted list is dense if its suffixes allow it.
    #[inline(always)]
    pub(super) fn may_be_dense(self, inner: bool) -> bool {
        inner && self == KeyListKind::Head
    }

    /// True for the prefix-delta list with groups.
    #[inline(always)]
    pub(super) fn has_groups(self) -> bool {
        matches!(self, KeyListKind::WiredTiger(Instantiation::RollForward | Instantiation::Both))
    }

    /// True for the prefix-delta lists that keep their best prefix group, in room that nothing else has asked for.
    #[inline(always)]
    pub(in crate::page) fn has_best(self) -> bool {
        matches!(self, KeyListKind::WiredTiger(Instantiation::BestGroup | Instantiation::Both))
    }

    /// True where an inner page's key 0, which is empty, may be kept in `len` bytes (zeros).
    pub(in crate::page) fn bare_len_is_valid(self, len: usize) -> bool {
        match self {
            KeyListKind::Fixed => true,
            KeyListKind::Blocks32(_) | KeyListKind::Blocks64(_) => false,
            _ => len == 0,
        }
    }

    /// Bytes that an entry behind the first one of its page takes at the very least: its key has `len` bytes and agrees in
    /// `common` of them with the key before, which is all that the page's prefix, a group's or a delta can save it. `inner`:
    /// the page is an inner one.
    pub(crate) fn least_entry_bytes(self, len: usize, common: usize, inner: bool) -> usize {
        match self {
            KeyListKind::Plain | KeyListKind::Fixed => self.entry_bytes(len),
            KeyListKind::Db2 => slotted::entry_bytes(len.saturating_sub(common)),
            KeyListKind::MyIsam | KeyListKind::WiredTiger(_) => delta::least_entry_bytes(len.saturating_sub(common)),
            // Of blocks nothing is sure but their index.
            KeyListKind::Blocks32(_) | KeyListKind::Blocks64(_) => 0,
            KeyListKind::PkbHeap(_) => self.entry_bytes(0),
            // The list may be dense.
            KeyListKind::Head if inner && len.saturating_sub(common) <= slotted::HEAD => slotted::HEAD,
            KeyListKind::Head | KeyListKind::Pkb(_) => self.entry_bytes(len.saturating_sub(common)),
        }
    }

    /// Bytes that a suffix of that length takes, slots included, unused capacity not; of a list that is not dense.
    pub(in crate::page) fn entry_bytes(self, suffix_len: usize) -> usize {
        match self {
            KeyListKind::Plain | KeyListKind::Head => slotted::entry_bytes(suffix_len),
            KeyListKind::Fixed | KeyListKind::Blocks32(_) | KeyListKind::Blocks64(_) => suffix_len,
            KeyListKind::Db2 => db2::entry_bytes(suffix_len),
            KeyListKind::Pkb(_) => pkb::entry_bytes(suffix_len, self.part()),
            KeyListKind::PkbHeap(_) => pkb::apart::entry_bytes(self.part()),
            KeyListKind::MyIsam | KeyListKind::WiredTiger(_) => delta::entry_bytes(suffix_len, self.has_groups()),
        }
    }
}

//! Key lists: how the keys of a page are kept. A small closed interface with one `match` a page; one file a list.
//!
//! A key list sees *suffixes*: keys without the prefix that the page cuts off ([`KeyListKind::cuts_prefix`]). It
//! knows nothing of fences, records, inner pages (whose key 0 is an empty suffix) or long keys.

mod blocks;
mod build;
mod db2;
mod delta;
mod directory;
mod edit;
mod fixed;
mod kind;
mod pkb;
mod row;
mod slotted;
mod walk;

use crate::base::bytes;
pub(super) use blocks::Blocks;
pub use blocks::{BlockRule, Index, IntKey};
pub(super) use build::KeyListBuilder;
use db2::Db2;
use delta::Delta;
pub(super) use delta::best::LEAST_FOOT;
use edit::Plan;
pub(super) use edit::{
    KeyState, insert, insert_in_place, insert_run, is_changeable, remove, together, vacuumize, would_insert,
};
use fixed::Fixed;
pub use kind::{Instantiation, KeyListKind};
use pkb::Pkb;
pub use pkb::apart::KeyPlace;
pub(super) use pkb::apart::{Apart, OPEN, entry as apart_entry};
pub(super) use row::KeyRow;
use slotted::Slotted;
pub(super) use walk::{KeyWalk, Place, Walked};

/// Bytes of a suffix that room is made for before it is known.
pub(super) const USUAL_SUFFIX: usize = 48;

/// The granule that the capacity of slotted lists is rounded up to, in entries.
#[inline(always)]
pub(super) fn granule(page_size: usize) -> usize {
    (page_size / 512).clamp(1, 16)
}

/// The capacity of a slotted list of `count` entries: a multiple of `granule`, which is a power of two.
#[inline(always)]
pub(super) fn capacity(count: usize, granule: usize) -> usize {
    (count + granule - 1) & !(granule - 1)
}

/// A key list to read. Any bytes are safe.
#[derive(Clone, Copy)]
pub(super) enum KeyList<'a> {
    Slotted(Slotted<'a>),
    Fixed(Fixed<'a>),
    Pkb(Pkb<'a>),
    Apart(Apart<'a>),
    Db2(Db2<'a>),
    Delta(Delta<'a>),
    Blocks(Blocks<'a>),
}

impl<'a> KeyList<'a> {
    /// The list of that kind in `list` (its bytes alone), with `count` entries.
    #[inline(always)]
    pub(super) fn new(kind: KeyListKind, list: &'a [u8], count: usize, granule: usize) -> KeyList<'a> {
        match kind {
            KeyListKind::Plain | KeyListKind::Head => KeyList::Slotted(Slotted::new(list, count, granule)),
            KeyListKind::Fixed => KeyList::Fixed(Fixed::new(list, count)),
            KeyListKind::Pkb(_) => KeyList::Pkb(Pkb::new(list, count, granule, kind.part())),
            KeyListKind::PkbHeap(_) => KeyList::Apart(Apart::new(list, count, kind.part())),
            KeyListKind::Db2 => KeyList::Db2(Db2::new(list, count, granule)),
            KeyListKind::MyIsam | KeyListKind::WiredTiger(_) => KeyList::Delta(Delta::of_kind(list, count, kind)),
            KeyListKind::Blocks32(rule) => KeyList::Blocks(Blocks::new(rule, false, list, count)),
            KeyListKind::Blocks64(rule) => KeyList::Blocks(Blocks::new(rule, true, list, count)),
        }
    }

    /// The index of a list of blocks of that width.
    #[inline(always)]
    pub(super) fn index<T: IntKey>(&self) -> Option<Index<'a, T>> {
        match self {
            KeyList::Blocks(list) => list.index(),
            _ => None,
        }
    }

    /// `Ok(slot)` of the equal suffix, or `Err(slot)` of the first greater one. Of a list without its keys nothing.
    #[inline(always)]
    pub(super) fn search(&self, suffix: &[u8]) -> Result<usize, usize> {
        match self {
            KeyList::Slotted(list) => list.search(suffix),
            KeyList::Fixed(list) => list.search(suffix),
            KeyList::Pkb(list) => list.search(suffix),
            KeyList::Apart(_) => Err(0),
            KeyList::Db2(list) => list.search(suffix),
            KeyList::Delta(list) => list.search(suffix),
            KeyList::Blocks(list) => list.search(suffix),
        }
    }

    /// Appends the suffix of `slot` to `out`; nothing where there is no such slot.
    #[inline]
    pub(super) fn append(&self, slot: usize, out: &mut Vec<u8>) {
        match self {
            KeyList::Slotted(list) => list.append(slot, out),
            KeyList::Fixed(list) => out.extend_from_slice(list.key(slot)),
            KeyList::Pkb(list) => out.extend_from_slice(list.key(slot)),
            KeyList::Apart(list) => out.extend_from_slice(list.entry(slot)),
            KeyList::Db2(list) => list.append(slot, out),
            KeyList::Delta(list) => list.append(slot, out),
            KeyList::Blocks(list) => list.append(slot, out),
        }
    }

    /// Bytes of the list that the entry of `slot` takes, slots included, unused capacity not.
    #[inline]
    pub(super) fn entry_bytes(&self, slot: usize) -> usize {
        match self {
            KeyList::Slotted(list) => list.entry_bytes(slot),
            KeyList::Fixed(list) => list.stride(),
            KeyList::Pkb(list) => list.entry_bytes(slot),
            KeyList::Apart(list) => list.entry_bytes(),
            KeyList::Db2(list) => list.entry_bytes(slot),
            KeyList::Delta(list) => list.entry_bytes(slot),
            KeyList::Blocks(list) => list.entry_bytes(slot),
        }
    }

    /// True for a list that is dense, and not with this suffix.
    pub(super) fn is_dense_without(&self, suffix: &[u8]) -> bool {
        matches!(self, KeyList::Slotted(list) if list.is_dense_without(suffix))
    }

    /// Bytes of the list that are bytes of keys: the others are slots, lengths, directories and what is kept twice. A list of
    /// blocks, whose bits are both, counts whole.
    pub(super) fn kept_bytes(&self, list: &[u8], count: usize) -> usize {
        match self {
            KeyList::Delta(delta) => delta.kept_bytes(),
            KeyList::Db2(db2) => db2.kept_bytes(),
            KeyList::Blocks(_) => list.len(),
            KeyList::Apart(apart) => apart.kept_bytes(),
            _ => (0..count).map(|slot| self.suffix_len(slot)).sum(),
        }
    }

    /// The length of the suffix of `slot`.
    #[inline]
    pub(super) fn suffix_len(&self, slot: usize) -> usize {
        match self {
            KeyList::Slotted(list) => list.suffix_len(slot),
            KeyList::Fixed(list) => list.stride(),
            KeyList::Pkb(list) => list.key(slot).len(),
            KeyList::Apart(list) => list.entry_bytes(),
            KeyList::Db2(list) => list.suffix_len(slot),
            KeyList::Delta(list) => list.suffix_len(slot),
            KeyList::Blocks(list) => list.key_len(),
        }
    }

    /// The first slot from `from` on whose suffix is longer than `len`.
    pub(super) fn first_longer(&self, from: usize, len: usize) -> Option<usize> {
        match self {
            KeyList::Slotted(list) => list.first_longer(from, len),
            KeyList::Fixed(list) => list.first_longer(from, len),
            KeyList::Pkb(list) => list.first_longer(from, len),
            // How long any of them is the page does not know.
            KeyList::Apart(list) => (!list.entry(from).is_empty()).then_some(from),
            KeyList::Db2(list) => list.first_longer(from, len),
            KeyList::Delta(list) => list.first_longer(from, len),
            KeyList::Blocks(list) => list.first_longer(from, len),
        }
    }

    /// The length of the common prefix of the suffixes of `slot` and of the one before it.
    #[inline]
    pub(super) fn common_with_previous(&self, slot: usize) -> usize {
        match self {
            KeyList::Slotted(list) => list.common_with_previous(slot),
            KeyList::Fixed(list) => {
                slot.checked_sub(1).map_or(0, |left| bytes::common_prefix(list.key(left), list.key(slot)))
            }
            KeyList::Pkb(list) => list.common_with_previous(slot),
            KeyList::Apart(list) => list.offset(slot),
            KeyList::Db2(list) => list.common_in_group(slot).unwrap_or_else(|| self.built(slot, bytes::common_prefix)),
            KeyList::Delta(_) | KeyList::Blocks(_) => self.built(slot, bytes::common_prefix),
        }
    }

    /// True where the suffix of `slot` is above `suffix` and the list has a quick way to it.
    #[inline(always)]
    pub(super) fn is_above(&self, slot: usize, suffix: &[u8]) -> bool {
        match self {
            KeyList::Slotted(list) => list.compare(slot, suffix).is_gt(),
            KeyList::Fixed(list) => list.key(slot) > suffix,
            _ => false,
        }
    }

    /// True where the suffix of `slot` is above that of the one before it.
    #[inline]
    pub(super) fn is_above_previous(&self, slot: usize) -> bool {
        match self {
            KeyList::Slotted(list) => list.is_above_previous(slot),
            KeyList::Fixed(list) => slot.checked_sub(1).is_none_or(|left| list.key(left) < list.key(slot)),
            KeyList::Pkb(list) => list.is_above_previous(slot),
            KeyList::Apart(_) => true,
            KeyList::Db2(list) if slot > 0 => {
                list.is_above_in_group(slot).unwrap_or_else(|| self.built(slot, |left, right| left < right))
            }
            KeyList::Db2(_) | KeyList::Delta(_) | KeyList::Blocks(_) => {
                slot == 0 || self.built(slot, |left, right| left < right)
            }
        }
    }

    /// Asks about the suffixes of the slot before and of `slot`, as they are built; the default for slot 0.
    fn built<R: Default>(&self, slot: usize, ask: impl FnOnce(&[u8], &[u8]) -> R) -> R {
        let Some(before) = slot.checked_sub(1) else { return R::default() };
        let (mut left, mut right) = (Vec::new(), Vec::new());
        self.append(before, &mut left);
        self.append(slot, &mut right);
        ask(&left, &right)
    }

    /// Puts `place` before `slot`, or behind the last entry where there is no such slot.
    pub(super) fn seek(&self, place: &mut Place, slot: usize) {
        match self {
            KeyList::Delta(list) => list.seek(place, slot),
            _ => place.slot = slot,
        }
    }

    /// Passes the entry behind `place` and takes its key. False: the list has no more.
    #[inline]
    pub(super) fn advance(&self, place: &mut Place) -> bool {
        match self {
            KeyList::Delta(list) => return list.advance(place),
            KeyList::Db2(list) => return list.advance(place),
            _ => {
                place.key.clear();
                self.append(place.slot, &mut place.key);
                place.bytes = self.entry_bytes(place.slot);
                place.common = self.common_with_previous(place.slot);
                place.slot += 1;
            }
        }
        true
    }

    /// True where [`KeyList::check`] looks at the order of the keys as well.
    pub(super) fn checks_order(&self) -> bool {
        matches!(self, KeyList::Blocks(_))
    }

    /// Says what is wrong with the structure of the list (but for [`KeyList::checks_order`], not with the order of its
    /// keys).
    pub(super) fn check(&self, kind: KeyListKind, list: &[u8], count: usize) -> Result<(), String> {
        match self {
            KeyList::Slotted(slotted) => slotted.check(count),
            KeyList::Fixed(_) => fixed::check(list, count),
            KeyList::Pkb(pkb) => pkb.check(count),
            KeyList::Apart(apart) => apart.check(count),
            KeyList::Db2(db2) => db2.check(list, count),
            KeyList::Delta(delta) => delta.check(list, count, kind),
            KeyList::Blocks(blocks) => blocks.check(),
        }
        .map_err(|what| format!("key list {kind:?}: {what}"))
    }
}

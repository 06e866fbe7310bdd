//! Building a key list of any kind, entry by entry or from the entries of another list.

use super::blocks::BlocksBuilder;
use super::db2::{Db2Builder, Origin};
use super::delta::DeltaBuilder;
use super::fixed::FixedBuilder;
use super::pkb::PkbBuilder;
use super::pkb::apart::ApartBuilder;
use super::slotted::SlottedBuilder;
use super::{KeyList, KeyListKind, Walked};
use std::ops::Range;

/// A key list under construction.
pub(in crate::page) enum KeyListBuilder {
    Slotted(SlottedBuilder),
    Fixed(FixedBuilder),
    Pkb(PkbBuilder),
    Apart(ApartBuilder),
    Db2(Db2Builder),
    Delta(DeltaBuilder),
    Blocks(BlocksBuilder),
}

impl KeyListBuilder {
    /// Begins a list of up to some `bytes`.
    pub(in crate::page) fn new(kind: KeyListKind, granule: usize, inner: bool, bytes: usize) -> KeyListBuilder {
        match kind {
            KeyListKind::Plain | KeyListKind::Head => {
                KeyListBuilder::Slotted(SlottedBuilder::new(granule, bytes, kind.may_be_dense(inner)))
            }
            KeyListKind::Fixed => KeyListBuilder::Fixed(FixedBuilder::new(inner)),
            KeyListKind::Pkb(_) => KeyListBuilder::Pkb(PkbBuilder::new(granule, kind.part(), bytes)),
            KeyListKind::PkbHeap(_) => KeyListBuilder::Apart(ApartBuilder::new(kind.part(), bytes)),
            KeyListKind::Db2 => KeyListBuilder::Db2(Db2Builder::new(granule, bytes)),
            KeyListKind::MyIsam | KeyListKind::WiredTiger(_) => KeyListBuilder::Delta(DeltaBuilder::new(kind, bytes)),
            KeyListKind::Blocks32(rule) => KeyListBuilder::Blocks(BlocksBuilder::new(rule, false)),
            KeyListKind::Blocks64(rule) => KeyListBuilder::Blocks(BlocksBuilder::new(rule, true)),
        }
    }

    /// Bytes that the list takes with one more entry of `suffix`; `None` where it cannot hold that one at all.
    #[inline]
    pub(in crate::page) fn bytes_with(&self, suffix: &[u8]) -> Option<usize> {
        match self {
            KeyListBuilder::Slotted(list) => Some(list.bytes_with(suffix)),
            KeyListBuilder::Fixed(list) => list.bytes_with(suffix),
            KeyListBuilder::Pkb(list) => Some(list.bytes_with(suffix.len())),
            KeyListBuilder::Apart(list) => list.bytes_with(suffix),
            KeyListBuilder::Db2(list) => Some(list.bytes_with(suffix)),
            KeyListBuilder::Delta(list) => Some(list.bytes_with(suffix)),
            KeyListBuilder::Blocks(list) => list.bytes_with(suffix),
        }
    }

    /// Appends an entry; [`KeyListBuilder::bytes_with`] it is not `None`.
    #[inline]
    pub(in crate::page) fn push(&mut self, suffix: &[u8]) {
        match self {
            KeyListBuilder::Slotted(list) => list.push(suffix),
            KeyListBuilder::Fixed(list) => list.push(suffix),
            KeyListBuilder::Pkb(list) => list.push(suffix),
            KeyListBuilder::Apart(list) => list.push(suffix),
            KeyListBuilder::Db2(list) => list.push(suffix, None),
            KeyListBuilder::Delta(list) => list.push(suffix, None),
            KeyListBuilder::Blocks(list) => list.push(suffix),
        }
    }

    /// Appends an entry of another list of its kind, less the first `cut` bytes of its suffix, which has as many; returns the
    /// bytes that the list takes then. `None`: this list has no use for what a walk knows.
    #[inline]
    pub(in crate::page) fn push_walked(&mut self, entry: &Walked<'_>, cut: usize) -> Option<usize> {
        let suffix = entry.suffix.get(cut..).unwrap_or_default();
        match self {
            KeyListBuilder::Db2(list) => {
                list.push(suffix, Some(Origin::of(entry, cut)));
                Some(list.bytes())
            }
            KeyListBuilder::Delta(list) => {
                list.push(suffix, Some(entry.group));
                Some(list.bytes())
            }
            _ => None,
        }
    }

    /// Bytes of the list after a push that was to make it `expected`: fewer where it has found a better layout.
    #[inline]
    pub(in crate::page) fn bytes_after(&self, expected: usize) -> usize {
        match self {
            KeyListBuilder::Db2(list) => list.bytes(),
            _ => expected,
        }
    }

    /// Takes over the entries of some slots of another list, whole blocks at a time or each less the first `cut` bytes of its
    /// suffix, and returns the bytes that the list takes then. `None`: the two are not of one kind (of PkB's
    /// parts, of a codec) that knows how, or the keys are none that this one can hold.
    pub(in crate::page) fn take(&mut self, list: &KeyList<'_>, slots: Range<usize>, cut: usize) -> Option<usize> {
        match (self, list) {
            (KeyListBuilder::Blocks(to), KeyList::Blocks(from)) => to.take(from, slots).then(|| to.bytes()),
            (KeyListBuilder::Slotted(to), KeyList::Slotted(from)) => to.take(from, slots, cut).then(|| to.bytes()),
            (KeyListBuilder::Fixed(to), KeyList::Fixed(from)) if cut == 0 => to.take(from, slots).then(|| to.bytes()),
            (KeyListBuilder::Pkb(to), KeyList::Pkb(from)) => to.take(from, slots, cut).then(|| to.bytes()),
            (KeyListBuilder::Apart(to), KeyList::Apart(from)) => to.take(from, slots).then(|| to.bytes()),
            _ => None,
        }
    }

    /// Appends the finished list to `out`. It may take `room` bytes, no fewer than have been promised.
    pub(in crate::page) fn finish(self, room: usize, out: &mut Vec<u8>) {
        match self {
            KeyListBuilder::Slotted(list) => list.finish(out),
            KeyListBuilder::Fixed(list) => list.finish(out),
            KeyListBuilder::Pkb(list) => list.finish(out),
            KeyListBuilder::Apart(list) => list.finish(out),
            KeyListBuilder::Db2(list) => list.finish(out),
            KeyListBuilder::Delta(list) => list.finish(room, out),
            KeyListBuilder::Blocks(list) => list.finish(out),
        }
    }
}

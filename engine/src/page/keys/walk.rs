//! Going through the keys of a list in order, at one step a key whatever the list. What the keys are wanted for must
//! never be known here.

use super::{KeyList, USUAL_SUFFIX};

/// A place between two entries of a list, with the key before it.
#[derive(Clone, Default, Debug)]
pub(crate) struct WalkPosition {
    /// The slot of the entry behind it.
    pub(super) slot: usize,
    /// Where that entry is, in lists without slots.
    pub(super) at: usize,
    /// What [`Walked`] says of the entry before it.
    pub(super) group: usize,
    pub(super) prefix: usize,
    pub(super) bytes: usize,
    pub(super) lead: usize,
    pub(super) common: usize,
    /// The suffix of the entry before it, where it was built.
    pub(super) key: Vec<u8>,
}

impl WalkPosition {
    /// Goes before the first entry.
    pub(crate) fn clear(&mut self) {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        *self = WalkPosition { key, ..WalkPosition::default() };
    }

    /// Bytes of memory that it has.
    pub(crate) fn room(&self) -> usize {
        self.key.capacity()
    }
}

/// Goes through a list from some slot on.
pub(crate) struct KeyWalk<'a> {
    list: KeyList<'a>,
    end: usize,
    place: WalkPosition,
}

/// An entry that a walk has come by.
pub(crate) struct Walked<'w> {
    /// Its suffix.
    pub(crate) suffix: &'w [u8],
    /// The number of its group, where the list has groups.
    pub(crate) group: usize,
    /// Bytes of the list that it takes, with its group's if it is the first of one.
    pub(crate) bytes: usize,
    /// Bytes of the prefix that its group has in the list.
    pub(crate) prefix: usize,
    /// Bytes more that it takes where it is the first of its page.
    pub(crate) lead: usize,
    /// Bytes that its suffix has in common with the one before; known only where that was walked over too.
    pub(crate) common: usize,
}

impl<'a> KeyWalk<'a> {
    /// A walk from slot `from` of a list of `end` entries.
    pub(crate) fn new(list: KeyList<'a>, from: usize, end: usize) -> KeyWalk<'a> {
        let mut place = WalkPosition { key: Vec::with_capacity(USUAL_SUFFIX), ..WalkPosition::default() };
        list.seek(&mut place, from);
        KeyWalk { list, end, place }
    }

    /// The next entry.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<Walked<'_>> {
        if self.place.slot >= self.end || !self.list.advance(&mut self.place) {
            return None;
        }
        let WalkPosition { key, group, prefix, bytes, lead, common, .. } = &self.place;
        let (group, prefix, bytes, lead, common) = (*group, *prefix, *bytes, *lead, *common);
        Some(Walked { suffix: key, group, prefix, bytes, lead, common })
    }
}

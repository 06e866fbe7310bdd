//! Visits the keys of a list in order, one key a step, whatever the list.

use super::{KeyList, USUAL_SUFFIX};

/// A place between two entries of a list, with the key before it.
#[derive(Clone, Default, Debug)]
pub(crate) struct WalkPosition {
    /// The slot of the entry after the place.
    pub(super) slot: usize,
    /// The offset of that entry, in lists without slots.
    pub(super) at: usize,
    /// The fields of [`Walked`] for the entry before the place.
    pub(super) group: usize,
    pub(super) prefix: usize,
    pub(super) bytes: usize,
    pub(super) lead: usize,
    pub(super) common: usize,
    /// The suffix of the entry before the place, if it was built.
    pub(super) key: Vec<u8>,
}

impl WalkPosition {
    /// Moves before the first entry.
    pub(crate) fn clear(&mut self) {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        *self = WalkPosition { key, ..WalkPosition::default() };
    }

    /// Returns the allocated memory in bytes.
    pub(crate) fn room(&self) -> usize {
        self.key.capacity()
    }
}

/// Visits a list from a given slot on.
pub(crate) struct KeyWalk<'a> {
    list: KeyList<'a>,
    end: usize,
    place: WalkPosition,
}

/// An entry that a walk has visited.
pub(crate) struct Walked<'w> {
    /// The suffix of the entry.
    pub(crate) suffix: &'w [u8],
    /// The number of the entry's group, in lists with groups.
    pub(crate) group: usize,
    /// The bytes of the list that the entry takes, including those of its group if it is the first of the group.
    pub(crate) bytes: usize,
    /// The length of the prefix that its group has in the list.
    pub(crate) prefix: usize,
    /// The additional bytes of the entry if it is the first of its page.
    pub(crate) lead: usize,
    /// The length of the prefix that its suffix shares with the one before. Known only if the walk also visited that
    /// one.
    pub(crate) common: usize,
}

impl<'a> KeyWalk<'a> {
    /// Begins a walk at slot `from` of a list of `end` entries.
    pub(crate) fn new(list: KeyList<'a>, from: usize, end: usize) -> KeyWalk<'a> {
        let mut place = WalkPosition { key: Vec::with_capacity(USUAL_SUFFIX), ..WalkPosition::default() };
        list.seek(&mut place, from);
        KeyWalk { list, end, place }
    }

    /// Returns the next entry.
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

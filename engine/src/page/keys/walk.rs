//! Going through the keys of a list in order, at one step a key whatever the list. What the keys are wanted for must
//! never be known here.

use super::KeyList;
use super::delta::Place;

/// Goes through a list from some slot on.
pub(in crate::page) struct KeyWalk<'a> {
    list: KeyList<'a>,
    end: usize,
    place: Place,
}

/// An entry that a walk has come by.
pub(in crate::page) struct Walked<'w> {
    /// Its suffix.
    pub(in crate::page) suffix: &'w [u8],
    /// The number of its group, where the list has groups.
    pub(in crate::page) group: usize,
    /// Bytes of the list that it takes, with its group's if it is the first of one.
    pub(in crate::page) bytes: usize,
    /// Bytes that its suffix has in common with the one before; known only where that was walked over too.
    pub(in crate::page) common: usize,
}

impl<'a> KeyWalk<'a> {
    /// A walk from slot `from` of a list of `end` entries.
    pub(in crate::page) fn new(list: KeyList<'a>, from: usize, end: usize) -> KeyWalk<'a> {
        let mut place = Place::default();
        list.seek(&mut place, from);
        KeyWalk { list, end, place }
    }

    /// The next entry.
    #[inline]
    pub(in crate::page) fn step(&mut self) -> Option<Walked<'_>> {
        if self.place.slot >= self.end {
            return None;
        }
        self.list.advance(&mut self.place);
        let Place { key, group, bytes, common, .. } = &self.place;
        Some(Walked { suffix: key, group: *group, bytes: *bytes, common: *common })
    }
}

//! The directory in front of a key list whose keys are in groups: where each group begins and the head of its first
//! key.
//!
//! The layout is `[groups u16] [group; groups]`, where a group is `head u32 | first slot u16 | offset u16`.

use crate::base::bytes;

/// The bytes of the number of groups.
pub(super) const FIELD: usize = 2;
/// The bytes of a group.
pub(super) const GROUP: usize = 8;

/// A group of the directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct DirectoryGroup {
    /// The head of the group's first key.
    pub(super) head: u32,
    /// The group's first slot.
    pub(super) slot: usize,
    /// An offset whose meaning the list defines.
    pub(super) offset: usize,
}

impl DirectoryGroup {
    /// Decodes a group.
    #[inline(always)]
    pub(super) fn of(field: &[u8; GROUP]) -> DirectoryGroup {
        let (slot, offset) = (bytes::get_u16(field, 4), bytes::get_u16(field, 6));
        DirectoryGroup { head: bytes::get_u32(field, 0), slot: usize::from(slot), offset: usize::from(offset) }
    }

    /// Encodes the group. Numbers that do not fit occur only in a list under construction, which is then discarded.
    pub(super) fn field(self) -> [u8; GROUP] {
        let mut field = [0; GROUP];
        bytes::put_u32(&mut field, 0, self.head);
        bytes::put_u16(&mut field, 4, bytes::u16_clamped(self.slot));
        bytes::put_u16(&mut field, 6, bytes::u16_clamped(self.offset));
        field
    }
}

/// Returns how many groups the directory claims to have.
#[inline(always)]
pub(super) fn count(list: &[u8]) -> usize {
    usize::from(bytes::get_u16(list, 0))
}

/// Returns the end of a directory with that many groups.
#[inline(always)]
pub(super) fn end(groups: usize) -> usize {
    FIELD + GROUP * groups
}

/// Returns the groups; none if they are not within the list.
#[inline(always)]
pub(super) fn groups(list: &[u8]) -> &[[u8; GROUP]] {
    bytes::slice(list, FIELD, end(count(list))).as_chunks().0
}

/// Checks that the groups are in order, within `slots` and within the area that offsets point into, which ends at
/// `end`. A list with other groups must not be changed.
pub(super) fn check_order(groups: &[[u8; GROUP]], slots: usize, end: usize) -> Result<(), String> {
    let mut before = DirectoryGroup::default();
    for group in groups.iter().map(DirectoryGroup::of).chain([DirectoryGroup { head: 0, slot: slots, offset: end }]) {
        if group.slot < before.slot || group.offset < before.offset {
            return Err(format!("the groups at slots {} and {} are not in order", before.slot, group.slot));
        }
        before = group;
    }
    Ok(())
}

/// Changes the group with that index.
pub(super) fn change(list: &mut [u8], index: usize, change: impl FnOnce(&mut DirectoryGroup)) {
    let field = list.get_mut(end(index)..).and_then(|rest| rest.first_chunk_mut::<GROUP>());
    bytes::must_fit(field.is_some());
    if let Some(field) = field {
        let mut group = DirectoryGroup::of(field);
        change(&mut group);
        *field = group.field();
    }
}

/// Inserts a group in front of the group with that index. `used` is the length of the list; all bytes from there on
/// move back by [`GROUP`] bytes.
pub(super) fn open(list: &mut [u8], used: usize, index: usize, group: DirectoryGroup) {
    let (at, groups) = (end(index), count(list));
    bytes::shift(list, at, used, at + GROUP);
    bytes::put(list, at, &group.field());
    bytes::put_u16(list, 0, bytes::u16_of(groups + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_put_between_others_and_changed_in_place() {
        let mut list = [0; FIELD + 3 * GROUP + 1];
        list[FIELD] = 0xAA;
        let group = |head, slot, offset| DirectoryGroup { head, slot, offset };
        open(&mut list, FIELD + 1, 0, group(1, 0, 2));
        open(&mut list, FIELD + GROUP + 1, 1, group(3, 9, 70_000));
        open(&mut list, FIELD + 2 * GROUP + 1, 1, group(2, 4, 6));
        change(&mut list, 0, |first| first.offset += 1);
        let all: Vec<DirectoryGroup> = groups(&list).iter().map(DirectoryGroup::of).collect();
        assert_eq!(all, [group(1, 0, 3), group(2, 4, 6), group(3, 9, 65_535)]);
        assert_eq!(list.last(), Some(&0xAA), "the bytes after the directory are lost");
        assert_eq!(groups(&list[..FIELD + GROUP]), [[0; GROUP]; 0], "a truncated directory has no groups");
        assert!(std::panic::catch_unwind(move || change(&mut list, 3, |none| none.slot = 7)).is_err());
    }

    #[test]
    fn groups_out_of_order_are_found() {
        let field = |slot, offset| DirectoryGroup { head: 0, slot, offset }.field();
        let check = |groups: &[[u8; GROUP]]| check_order(groups, 9, 20);
        assert_eq!(check(&[]), Ok(()));
        assert_eq!(check(&[field(0, 0), field(4, 10), field(9, 20)]), Ok(()));
        assert!(check(&[field(4, 10), field(3, 12)]).is_err());
        assert!(check(&[field(4, 10), field(5, 9)]).is_err());
        assert!(check(&[field(10, 10)]).is_err());
        assert!(check(&[field(9, 21)]).is_err());
    }
}

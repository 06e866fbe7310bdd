//! The DB2 key list: several prefixes in each page, each for a run of keys, in front of a slotted list of the rests of
//! the keys. This file reads, searches and checks it; `edit` changes it, and `layout` chooses the prefixes.
//!
//! The layout is `[directory] [prefixes] [slotted list of the suffixes]`. A group's offset is the end of its prefix
//! among the prefixes; its head is the head of its first key, including the prefix. Without groups no key has a prefix.
//! An empty list has no bytes.

mod build;
pub(super) mod edit;
mod layout;
mod scheme;

use super::directory::{self, DirectoryGroup, FIELD, GROUP};
use super::row::KeyFront;
use super::scheme::{List, built};
use super::slotted::{self, HEAD, Slotted, head_of};
use super::{AdjacentKeys, WalkPosition};
use crate::base::bytes;
use crate::page::check::{cannot_hold, check_without_entries};
pub(super) use build::Db2Builder;
pub(super) use scheme::Db2Scheme;
use std::cmp::Ordering;
use std::ops::Range;

/// Returns the bytes that the list takes for a key of that length with a group of its own.
pub(super) fn entry_bytes(len: usize) -> usize {
    GROUP + slotted::entry_bytes(len)
}

/// The keys of a group.
#[derive(Clone, Copy)]
struct KeySpan<'a> {
    index: usize,
    first: usize,
    end: usize,
    prefix: &'a [u8],
}

/// A DB2 key list to read.
#[derive(Clone, Copy)]
pub(crate) struct Db2<'a> {
    groups: &'a [[u8; GROUP]],
    prefixes: &'a [u8],
    suffixes: Slotted<'a>,
    count: usize,
}

/// Returns the offset of the slotted list.
#[inline(always)]
fn suffixes_at(list: &[u8]) -> usize {
    let groups = directory::count(list);
    let front = directory::end(groups);
    if groups == 0 { front } else { front + usize::from(bytes::get_u16(list, front - 2)) }
}

impl<'a> Db2<'a> {
    #[inline(always)]
    pub(super) fn new(list: &'a [u8], count: usize, granule: usize) -> Db2<'a> {
        let prefixes = directory::end(directory::count(list));
        let at = suffixes_at(list);
        let suffixes = list.get(at..).unwrap_or_default();
        Db2 {
            groups: directory::groups(list),
            prefixes: bytes::slice(list, prefixes, at),
            suffixes: Slotted::new(suffixes, count, granule),
            // The list's length limits the number of entries of a hostile page, so that every loop over them ends soon.
            count: count.min(suffixes.len() / slotted::FIXED_PART),
        }
    }

    #[inline(always)]
    fn span(&self, index: usize) -> KeySpan<'a> {
        let Some(group) = self.groups.get(index).map(DirectoryGroup::of) else {
            return KeySpan { index: 0, first: 0, end: self.count, prefix: &[] };
        };
        let end = self.groups.get(index + 1).map_or(self.count, |next| DirectoryGroup::of(next).slot);
        KeySpan {
            index,
            first: group.slot.min(self.count),
            end: end.min(self.count),
            prefix: self.prefix(index, group),
        }
    }

    #[inline(always)]
    fn prefix(&self, index: usize, group: DirectoryGroup) -> &'a [u8] {
        let before = index.checked_sub(1).and_then(|before| self.groups.get(before));
        bytes::slice(self.prefixes, before.map_or(0, |before| DirectoryGroup::of(before).offset), group.offset)
    }

    /// Returns the span that contains `slot`.
    #[inline]
    fn span_of(&self, slot: usize) -> KeySpan<'a> {
        self.span(self.groups.partition_point(|group| DirectoryGroup::of(group).slot <= slot).saturating_sub(1))
    }

    /// Compares the first key of a group with `key`.
    #[inline(always)]
    fn compare_first(&self, index: usize, group: DirectoryGroup, key: &[u8], head: u32) -> Ordering {
        group.head.cmp(&head).then_with(|| {
            let prefix = self.prefix(index, group);
            match bytes::strip_prefix(key, prefix) {
                Some(suffix) => self.suffixes.compare(group.slot, suffix),
                None => bytes::compare(prefix, key),
            }
        })
    }

    /// Calls `visit` for the slots `[from, to)`, group by group, with the group's prefix, its slots, and the list that
    /// has the rests of its keys after the prefix.
    #[inline]
    pub(super) fn each_span(
        &self,
        from: usize,
        to: usize,
        mut visit: impl FnMut(&'a [u8], Range<usize>, &Slotted<'a>),
    ) {
        let (mut slot, to) = (from, to.min(self.count));
        while slot < to {
            let span = self.span_of(slot);
            let end = span.end.clamp(slot + 1, to);
            visit(span.prefix, slot..end, &self.suffixes);
            slot = end;
        }
    }

    /// Returns the bytes of the group if `slot` is its first slot, otherwise 0.
    fn opening(&self, span: KeySpan<'_>, slot: usize) -> usize {
        if self.groups.is_empty() || span.first != slot { 0 } else { GROUP + span.prefix.len() }
    }

    /// Returns the bytes of the heap that the group's prefix saves for an entry.
    fn saved_by(&self, prefix: &[u8], slot: usize) -> usize {
        if prefix.is_empty() {
            return 0;
        }
        let rest = self.suffixes.suffix_len(slot);
        slotted::heap_bytes(rest + prefix.len()) - slotted::heap_bytes(rest)
    }

    /// Returns the result of [`super::KeyList::common_with_previous`] if both slots are in one group.
    pub(super) fn common_in_group(&self, slot: usize) -> Option<usize> {
        let span = self.span_of(slot);
        (span.first < slot).then(|| span.prefix.len() + self.suffixes.common_with_previous(slot))
    }

    /// Returns the result of [`super::KeyList::is_above_previous`] if both slots are in one group.
    pub(super) fn is_above_in_group(&self, slot: usize) -> Option<bool> {
        (self.span_of(slot).first < slot).then(|| self.suffixes.is_above_previous(slot))
    }
}

impl<'a> List<'a> for Db2<'a> {
    #[inline]
    fn search(&self, key: &[u8]) -> Result<usize, usize> {
        if self.groups.is_empty() {
            return self.suffixes.search(key);
        }
        let head = head_of(key);
        let (mut low, mut high) = (0, self.groups.len());
        while low < high {
            let middle = low.midpoint(high);
            let Some(group) = self.groups.get(middle).map(DirectoryGroup::of) else { break };
            if self.compare_first(middle, group, key, head).is_le() {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(index) = low.checked_sub(1) else { return Err(0) };
        let span = self.span(index);
        match bytes::strip_prefix(key, span.prefix) {
            Some(suffix) => self.suffixes.search_in(span.first, span.end, suffix),
            // The key is above the first key of the group and does not have its prefix, so it is above all keys of the
            // group.
            None => Err(span.end),
        }
    }

    #[inline]
    fn append(&self, slot: usize, out: &mut Vec<u8>) {
        if slot < self.count {
            out.extend_from_slice(self.span_of(slot).prefix);
            self.suffixes.append(slot, out);
        }
    }

    fn entry_bytes(&self, slot: usize) -> usize {
        let span = self.span_of(slot);
        self.suffixes.entry_bytes(slot) + self.opening(span, slot)
    }

    #[inline(always)] // called for each entry of a leaf that a cursor visits
    fn suffix_len(&self, slot: usize) -> usize {
        self.span_of(slot).prefix.len() + self.suffixes.suffix_len(slot)
    }

    fn first_longer(&self, from: usize, len: usize) -> Option<usize> {
        (from..self.count).find(|slot| self.suffix_len(*slot) > len)
    }

    fn kept_bytes(&self, _count: usize) -> usize {
        self.prefixes.len() + (0..self.count).map(|slot| self.suffixes.suffix_len(slot)).sum::<usize>()
    }

    #[inline]
    fn advance(&self, place: &mut WalkPosition) -> bool {
        if place.slot >= self.count {
            return false;
        }
        let (slot, span) = (place.slot, self.span_of(place.slot));
        let entry = self.suffixes.entry(slot);
        let head = entry.head.to_be_bytes();
        let parts = [span.prefix, bytes::slice(&head, 0, entry.len.min(HEAD)), entry.rest];
        place.common = if span.first < slot {
            span.prefix.len() + self.suffixes.common_with_previous(slot)
        } else {
            common_with_parts(&place.key, parts)
        };
        place.key.clear();
        parts.iter().for_each(|part| place.key.extend_from_slice(part));
        let opening = self.opening(span, slot);
        place.bytes = slotted::entry_bytes(entry.len) + opening;
        place.lead = if opening > 0 || self.groups.is_empty() { 0 } else { GROUP + span.prefix.len() };
        (place.group, place.prefix) = (span.index, span.prefix.len());
        place.slot += 1;
        true
    }

    fn check(&self, list: &[u8], count: usize) -> Result<(), String> {
        if self.count != count {
            return Err(cannot_hold(list.len(), count, "entries"));
        }
        if count == 0 {
            return check_without_entries(list);
        }
        let groups = directory::count(list);
        if list.len() < FIELD || self.groups.len() != groups || suffixes_at(list) > list.len() {
            return Err(format!("{groups} groups and their prefixes in {} bytes", list.len()));
        }
        self.suffixes.check(list, self.count)?;
        let (mut slot, mut end, mut key) = (0, 0, Vec::new());
        for (index, group) in self.groups.iter().map(DirectoryGroup::of).enumerate() {
            let in_order = (index == 0) == (group.slot == 0) && (index == 0 || group.slot > slot);
            if !in_order || group.slot >= self.count || group.offset < end {
                return Err(format!("group {index} is out of order"));
            }
            (slot, end) = (group.slot, group.offset);
            key.clear();
            self.append(slot, &mut key);
            if group.head != head_of(&key) {
                return Err(format!("the head of group {index} is not that of its first key"));
            }
        }
        Ok(())
    }

    #[inline]
    fn common_with_previous(&self, slot: usize) -> usize {
        self.common_in_group(slot).unwrap_or_else(|| built(self, slot, bytes::common_prefix))
    }

    #[inline]
    fn is_above_previous(&self, slot: usize) -> bool {
        slot == 0 || self.is_above_in_group(slot).unwrap_or_else(|| built(self, slot, |left, right| left < right))
    }

    fn add_to(&self, row: &mut AdjacentKeys, prefix: &[u8], _place: &mut WalkPosition, from: usize, to: usize) {
        self.each_span(from, to, |group, slots, list| row.push_slotted(&KeyFront::new([prefix, group]), list, slots));
    }
}

/// Returns how many bytes of `key` agree with a key that consists of several parts.
fn common_with_parts(key: &[u8], parts: [&[u8]; 3]) -> usize {
    let mut common = 0;
    for part in parts {
        let agreed = bytes::common_prefix(key.get(common..).unwrap_or_default(), part);
        common += agreed;
        if agreed < part.len() {
            break;
        }
    }
    common
}

/// Returns false if the directory, the prefixes or the slots are not within the list. Such a list must not be changed.
pub(super) fn is_changeable(list: &[u8], count: usize, granule: usize) -> bool {
    if count == 0 {
        return list.is_empty();
    }
    let slots = slotted::FIXED_PART * super::capacity(count, granule);
    list.len() >= FIELD && suffixes_at(list) + slots <= list.len()
}

//! The prefix-delta key list: each key is stored as the length of the prefix that it shares with the key before, and
//! the rest. There is one encoding and two ways to search. *MyISAM* reads the entries from the first one on.
//! *WiredTiger* stores about every [`DISTANCE`]th key whole (*roll-forward distance control*) and begins at the last
//! whole key below the sought one, or it halves the entries that one base key completes (`best`). This file reads,
//! searches and checks a list; `edit` changes it.
//!
//! The layout of MyISAM is `[entries]`, that of WiredTiger `[directory] [entries]`. A group's offset is that of its
//! first entry, which shares nothing, so that its key is whole. An entry is
//! `varint(bytes shared with the key before) | varint(bytes of the rest) | rest`. The shared part is always as long as
//! possible. An empty list has no bytes.
//!
//! No search builds a key. Let the sought key agree with the key before an entry in m bytes, that key being below it.
//! If the entry shares more than m bytes, it is below the sought key. If it shares fewer, it is above. If it shares m,
//! its rest is compared from there on.

pub(super) mod best;
mod build;
pub(super) mod edit;
mod scheme;

use super::directory::{self, DirectoryGroup, FIELD, GROUP};
use super::row::KeyFront;
use super::scheme::List;
use super::slotted::head_of;
use super::{AdjacentKeys, WalkPosition};
use crate::base::{bytes, varint};
use crate::page::check::{cannot_hold, check_without_entries};
use best::{Best, GroupPosition};
pub(super) use build::DeltaBuilder;
pub(super) use scheme::DeltaScheme;
pub use scheme::Instantiation;
use std::cmp::Ordering;

/// The number of entries of a new group: WiredTiger's skipping distance. A group that has grown to twice as many
/// entries is cut in two.
pub(super) const DISTANCE: usize = 10;
/// The minimum number of bytes of an entry. It limits the number of entries of a hostile page, so that every loop over
/// them ends soon.
const MIN_ENTRY: usize = 2;

/// Returns the bytes of an entry.
#[inline(always)]
fn entry_size(shared: usize, rest: usize) -> usize {
    varint::size(shared) + varint::size(rest) + rest
}

/// Returns the bytes that the list takes for a suffix of that length that shares nothing and has no directory entry.
pub(super) fn entry_bytes(suffix_len: usize, grouped: bool) -> usize {
    entry_size(0, suffix_len) + if grouped { GROUP } else { 0 }
}

/// Returns the bytes of an entry with that many bytes of rest, whatever it shares.
pub(super) fn least_entry_bytes(rest: usize) -> usize {
    entry_size(0, rest)
}

/// An entry in the list.
#[derive(Clone, Copy)]
struct DeltaEntry {
    /// The number of bytes shared with the key before.
    shared: usize,
    /// The length of the rest.
    len: usize,
    /// The offset of the rest.
    rest: usize,
}

impl DeltaEntry {
    #[inline(always)]
    fn at(entries: &[u8], at: usize) -> DeltaEntry {
        match entries.get(at..).and_then(|entry| entry.first_chunk::<2>()) {
            Some(&[shared, len]) if (shared | len) < 0x80 => {
                DeltaEntry { shared: usize::from(shared), len: usize::from(len), rest: at + 2 }
            }
            _ => DeltaEntry::long_at(entries, at),
        }
    }

    #[cold]
    fn long_at(entries: &[u8], at: usize) -> DeltaEntry {
        let (shared, first) = varint::get(entries.get(at..).unwrap_or_default());
        let (len, second) = varint::get(entries.get(at + first..).unwrap_or_default());
        DeltaEntry { shared, len, rest: at + first + second }
    }

    #[inline(always)]
    fn end(&self) -> usize {
        self.rest + self.len
    }

    #[inline(always)]
    fn rest_in<'a>(&self, entries: &'a [u8]) -> &'a [u8] {
        bytes::slice(entries, self.rest, self.end())
    }

    /// Returns how many bytes of `suffix` agree with this entry's key. `agreed` is the same number for the entry
    /// before. Correct for keys in any order.
    #[inline(always)]
    fn agreed(&self, entries: &[u8], agreed: usize, suffix: &[u8]) -> usize {
        match self.shared.cmp(&agreed) {
            Ordering::Less => self.shared,
            Ordering::Greater => agreed,
            Ordering::Equal => {
                agreed + bytes::common_prefix(self.rest_in(entries), suffix.get(agreed..).unwrap_or_default())
            }
        }
    }
}

/// A run of entries that begins with a whole key: a group, or a list without groups.
#[derive(Clone, Copy)]
struct GroupSpan {
    /// The index of the group.
    index: usize,
    /// The group's slots.
    first: usize,
    end: usize,
    /// The offset of its first entry.
    at: usize,
}

/// A prefix-delta key list to read.
#[derive(Clone, Copy)]
pub(crate) struct Delta<'a> {
    groups: &'a [[u8; GROUP]],
    entries: &'a [u8],
    count: usize,
    grouped: bool,
    has_best: bool,
    best: Best<'a>,
}

impl<'a> Delta<'a> {
    #[inline(always)]
    pub(super) fn new(list: &'a [u8], count: usize, grouped: bool) -> Delta<'a> {
        if !grouped {
            let count = count.min(list.len() / MIN_ENTRY);
            return Delta { groups: &[], entries: list, count, grouped, has_best: false, best: Best::default() };
        }
        let front = entries_at(list);
        let groups = directory::groups(list);
        let entries = list.get(front..).unwrap_or_default();
        Delta {
            groups,
            entries,
            count: count.min(entries.len() / MIN_ENTRY),
            grouped,
            has_best: false,
            best: Best::default(),
        }
    }

    /// Returns the list of a scheme, which may have a footer with its best prefix group.
    #[inline(always)]
    pub(super) fn of_scheme(list: &'a [u8], count: usize, scheme: DeltaScheme) -> Delta<'a> {
        if !scheme.best {
            return Delta::new(list, count, scheme.grouped);
        }
        let (best, footer) = Best::of(list).unwrap_or_default();
        let list = bytes::slice(list, 0, list.len() - footer);
        Delta { best, has_best: true, ..Delta::new(list, count, scheme.grouped) }
    }

    /// Returns the span with that index, which must exist.
    #[inline(always)]
    fn span(&self, index: usize) -> GroupSpan {
        let Some(group) = self.groups.get(index).map(DirectoryGroup::of) else {
            return GroupSpan { index: 0, first: 0, end: self.count, at: 0 };
        };
        let end = self.groups.get(index + 1).map_or(self.count, |next| DirectoryGroup::of(next).slot);
        GroupSpan { index, first: group.slot.min(self.count), end: end.min(self.count), at: group.offset }
    }

    /// Returns the span that contains `slot`.
    fn span_of(&self, slot: usize) -> GroupSpan {
        self.span(self.groups.partition_point(|group| DirectoryGroup::of(group).slot <= slot).saturating_sub(1))
    }

    /// Returns the last span that begins at or below `suffix`; the first span if none does.
    #[inline(always)]
    fn span_for(&self, suffix: &[u8]) -> GroupSpan {
        if self.groups.len() <= 1 {
            return self.span(0);
        }
        let head = head_of(suffix);
        let begun = self.groups.partition_point(|group| {
            let group = DirectoryGroup::of(group);
            group.head < head
                || (group.head == head && {
                    let whole = DeltaEntry::at(self.entries, group.offset).rest_in(self.entries);
                    bytes::compare(whole, suffix).is_le()
                })
        });
        self.span(begun.saturating_sub(1))
    }

    /// Visits the entries up to `slot`. `visit`, which builds the keys, receives the number of bytes that each key
    /// shares with the one before, the length of its rest, and the list from the rest on.
    #[inline(always)]
    pub(super) fn pass(&self, place: &mut WalkPosition, slot: usize, mut visit: impl FnMut(usize, usize, &'a [u8])) {
        while place.slot < slot.min(self.count) {
            let entry = DeltaEntry::at(self.entries, place.at);
            visit(entry.shared, entry.len, self.entries.get(entry.rest..).unwrap_or_default());
            place.at = entry.end();
            place.slot += 1;
        }
    }

    /// Returns the offset of the entry of `slot`. Reads the entry headers from the start of the span; `slot` is not
    /// before the span.
    fn offset(&self, span: GroupSpan, slot: usize) -> usize {
        (span.first..slot.min(self.count)).fold(span.at, |at, _| DeltaEntry::at(self.entries, at).end())
    }

    /// Checks that the list can have `count` entries, and a group if it must have one. Otherwise the list must not be
    /// changed.
    fn check_count(&self, count: usize) -> Result<(), String> {
        if self.count == count && !(self.grouped && self.groups.is_empty()) {
            return Ok(());
        }
        Err(cannot_hold(self.entries.len(), count, "entries"))
    }

    /// Checks that an entry that ends at `end` is inside the list.
    fn check_end(&self, end: usize) -> Result<(), String> {
        let whole = end <= self.entries.len();
        if whole { Ok(()) } else { Err(format!("an entry ends at {end} of {} bytes", self.entries.len())) }
    }

    /// Returns the byte at `index` of the key of `slot`, which is in the span; `None` if the key is shorter.
    fn byte_of(&self, span: GroupSpan, slot: usize, index: usize) -> Option<&'a u8> {
        let (mut at, mut found) = (span.at, None);
        for _ in span.first..=slot {
            let entry = DeltaEntry::at(self.entries, at);
            if entry.shared <= index {
                found = entry.rest_in(self.entries).get(index - entry.shared);
            }
            at = entry.end();
        }
        found
    }

    /// Returns the entry of `slot`.
    fn entry(&self, slot: usize) -> DeltaEntry {
        DeltaEntry::at(self.entries, self.offset(self.span_of(slot), slot))
    }

    fn check_entries(&self, list: &[u8], count: usize) -> Result<(), String> {
        if self.count != count {
            return Err(cannot_hold(list.len(), count, "entries"));
        }
        if count == 0 {
            return check_without_entries(list);
        }
        if self.grouped && (self.groups.is_empty() || self.groups.len() != directory::count(list)) {
            return Err(format!("{} groups in {} bytes", self.groups.len(), list.len()));
        }
        let (mut key, mut at) = (Vec::new(), 0);
        let mut groups = self.groups.iter().map(DirectoryGroup::of).peekable();
        for slot in 0..self.count {
            let entry = DeltaEntry::at(self.entries, at);
            if entry.end() > self.entries.len() || entry.end() - at != entry_size(entry.shared, entry.len) {
                return Err(format!("entry {slot} is truncated"));
            }
            let rest = entry.rest_in(self.entries);
            if let Some(group) = groups.next_if(|group| group.slot == slot) {
                if group.offset != at || entry.shared != 0 || group.head != head_of(rest) {
                    return Err(format!("the group at slot {slot} does not match its entry"));
                }
            } else if slot == 0 && (self.grouped || entry.shared != 0) {
                return Err("the first key is not whole".into());
            } else if entry.shared > key.len() || (rest.first() == key.get(entry.shared) && !rest.is_empty()) {
                return Err(format!("entry {slot} shares fewer bytes than it could"));
            }
            key.truncate(entry.shared);
            key.extend_from_slice(rest);
            at = entry.end();
        }
        if at != self.entries.len() || groups.next().is_some() {
            return Err(format!("{} entries of {at} bytes in {} bytes", self.count, self.entries.len()));
        }
        Ok(())
    }
}

impl<'a> List<'a> for Delta<'a> {
    #[inline]
    fn search(&self, suffix: &[u8]) -> Result<usize, usize> {
        let span = self.span_for(suffix);
        let entries = self.entries;
        let (mut first, mut at, mut agreed) = (span.first, span.at, 0);
        if self.best.is_in(span) {
            match self.best.search(entries, suffix) {
                GroupPosition::Here(found) => return found,
                GroupPosition::Before => {}
                GroupPosition::After(slot, end, common) => (first, at, agreed) = (slot, end, common),
            }
        }
        let mut wanted = suffix.get(agreed..).unwrap_or_default();
        for slot in first..span.end {
            let entry = DeltaEntry::at(entries, at);
            at = entry.end();
            if entry.shared > agreed {
                continue;
            }
            if entry.shared < agreed {
                return Err(slot);
            }
            let there = entry.rest_in(entries);
            let common = bytes::common_prefix(there, wanted);
            match (there.get(common), wanted.get(common)) {
                (None, None) => return Ok(slot),
                (Some(_), None) => return Err(slot),
                (Some(there), Some(wanted)) if there > wanted => return Err(slot),
                _ => {}
            }
            agreed += common;
            wanted = wanted.get(common..).unwrap_or_default();
        }
        Err(span.end.max(span.first).min(self.count))
    }

    fn append(&self, slot: usize, out: &mut Vec<u8>) {
        if slot >= self.count {
            return;
        }
        let base = out.len();
        if let Some((whole, entry)) = self.best.member(self.entries, slot) {
            out.extend_from_slice(bytes::slice(whole, 0, entry.shared));
            out.extend_from_slice(entry.rest_in(self.entries));
            return;
        }
        let span = self.span_of(slot);
        let mut at = span.at;
        for _ in span.first..=slot {
            let entry = DeltaEntry::at(self.entries, at);
            out.truncate(base + entry.shared);
            out.extend_from_slice(entry.rest_in(self.entries));
            at = entry.end();
        }
    }

    fn entry_bytes(&self, slot: usize) -> usize {
        let span = self.span_of(slot);
        let at = self.offset(span, slot);
        let starts = !self.groups.is_empty() && span.first == slot;
        DeltaEntry::at(self.entries, at).end() - at + if starts { GROUP } else { 0 }
    }

    fn suffix_len(&self, slot: usize) -> usize {
        let entry = self.entry(slot);
        entry.shared + entry.len
    }

    fn first_longer(&self, from: usize, len: usize) -> Option<usize> {
        let span = self.span_of(from);
        let mut at = self.offset(span, from);
        (from..self.count).find(|_| {
            let entry = DeltaEntry::at(self.entries, at);
            at = entry.end();
            entry.shared + entry.len > len
        })
    }

    fn kept_bytes(&self, _count: usize) -> usize {
        let (mut at, mut sum) = (0, 0);
        for _ in 0..self.count {
            let entry = DeltaEntry::at(self.entries, at);
            sum += entry.len;
            at = entry.end();
        }
        sum
    }

    fn seek(&self, place: &mut WalkPosition, slot: usize) {
        let span = self.span_of(slot);
        if place.slot > slot || place.slot <= span.first {
            place.key.clear();
            (place.slot, place.at, place.group) = (span.first, span.at, span.index);
        }
        let mut key = std::mem::take(&mut place.key);
        self.pass(place, slot, |shared, len, tail| {
            key.truncate(shared);
            key.extend_from_slice(bytes::slice(tail, 0, len));
        });
        place.key = key;
    }

    #[inline]
    fn advance(&self, place: &mut WalkPosition) -> bool {
        if place.slot >= self.count {
            return false;
        }
        let entry = DeltaEntry::at(self.entries, place.at);
        let rest = entry.rest_in(self.entries);
        while self.groups.get(place.group + 1).is_some_and(|next| DirectoryGroup::of(next).slot <= place.slot) {
            place.group += 1;
        }
        let starts = self.groups.get(place.group).is_some_and(|group| DirectoryGroup::of(group).slot == place.slot);
        place.common = if starts { bytes::common_prefix(&place.key, rest) } else { entry.shared };
        place.bytes = entry.end() - place.at + if starts { GROUP } else { 0 };
        let alone = entry_bytes(entry.shared + entry.len, !self.groups.is_empty());
        place.lead = if starts || place.slot == 0 { 0 } else { alone.saturating_sub(place.bytes) };
        place.key.truncate(entry.shared);
        place.key.extend_from_slice(rest);
        place.at = entry.end();
        place.slot += 1;
        true
    }

    fn check(&self, list: &[u8], count: usize) -> Result<(), String> {
        if !self.has_best {
            return self.check_entries(list, count);
        }
        let Some((best, footer)) = Best::of(list) else { return Err("its footer is truncated".into()) };
        let entries = Delta { best: Best::default(), ..*self };
        entries.check_entries(bytes::slice(list, 0, list.len() - footer), count)?;
        best.check(&entries)
    }

    fn add_to(&self, row: &mut AdjacentKeys, prefix: &[u8], place: &mut WalkPosition, from: usize, to: usize) {
        let lead = KeyFront::new([prefix, &[]]);
        self.seek(place, from);
        let mut before = std::mem::take(&mut place.key);
        self.pass(place, to, |shared, len, tail| row.push_shared(&lead, &before, shared, len, tail));
        if let Some(last) = row.len().checked_sub(1) {
            before.clear();
            before.extend_from_slice(row.get(last).get(prefix.len()..).unwrap_or_default());
        }
        place.key = before;
    }
}

/// Returns the offset of the entries of a list with groups.
#[inline(always)]
fn entries_at(list: &[u8]) -> usize {
    directory::end(directory::count(list))
}

/// Returns false if the directory is not within the list. Such a list must not be changed.
pub(super) fn is_changeable(list: &[u8], count: usize, grouped: bool) -> bool {
    !grouped || (count == 0) == list.is_empty() && entries_at(list) <= list.len().max(FIELD)
}

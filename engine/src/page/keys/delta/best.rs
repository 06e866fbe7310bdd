//! WiredTiger's best prefix group: the longest run of entries that one whole key, the base, can complete, each
//! independently of the others. The group is at the end of a prefix-delta list, in room that is otherwise unused, and
//! holds the data for binary search in the run. It can be computed again from the list.
//!
//! These bytes are the *footer* of the list. Their layout is `[key of the base] [offset u16 of each member] [bytes of
//! that key u16] [slot of the base u16] [members u8]`, or `[0]` if there is no group or no room for one. The members
//! are the entries after the base. No member shares more than the member before it. The bytes that a member shares
//! with the entry before it are therefore also shared with the base.

use super::{Delta, DeltaEntry, GroupSpan, bytes, edit};
use crate::page::keys::scheme::{EditResult, List};
use crate::page::keys::{InsertPlan, KeyState};

/// The bytes of a footer without a group; every list with entries has room for it.
pub(crate) const MIN_FOOTER: usize = 1;
/// The bytes of the fields after the offsets.
const FIELDS: usize = 5;
/// The minimum number of members: binary search in fewer saves nothing.
const MIN_MEMBERS: usize = 2;
/// The maximum number of members, so that the number takes one byte.
const MAX_MEMBERS: usize = 255;

/// The best prefix group of a list. A list without a group has a value without members.
#[derive(Clone, Copy, Default)]
pub(super) struct Best<'a> {
    /// The slot of the base.
    slot: usize,
    /// The key of the base.
    base: &'a [u8],
    /// The offset of the entry of each member.
    members: &'a [[u8; 2]],
}

/// The position of a sought key, as far as the group determines it.
pub(super) enum GroupPosition {
    /// The result of the search.
    Here(Result<usize, usize>),
    /// The key is before the base.
    Before,
    /// The key is after the last member: the slot after that member, the offset of the entry there, and the number of
    /// bytes that agree with the last member.
    After(usize, usize, usize),
}

impl<'a> Best<'a> {
    /// Returns the group at the end of `list` and the length of its footer; `None` if the footer is not within the
    /// list.
    pub(super) fn of(list: &'a [u8]) -> Option<(Best<'a>, usize)> {
        let Some((&members, rest)) = list.split_last() else { return Some((Best::default(), 0)) };
        let members = usize::from(members);
        if members == 0 {
            return Some((Best::default(), MIN_FOOTER));
        }
        let (rest, fields) = rest.split_last_chunk::<{ FIELDS - 1 }>()?;
        let (len, slot) = (usize::from(bytes::get_u16(fields, 0)), usize::from(bytes::get_u16(fields, 2)));
        let (rest, offsets) = rest.split_at(rest.len().checked_sub(2 * members)?);
        let base = rest.get(rest.len().checked_sub(len)?..)?;
        Some((Best { slot, base, members: offsets.as_chunks().0 }, FIELDS + 2 * members + len))
    }

    fn entry(entries: &[u8], member: [u8; 2]) -> DeltaEntry {
        DeltaEntry::at(entries, usize::from(u16::from_le_bytes(member)))
    }

    /// Returns true if there is a group and all of it is in the span.
    pub(super) fn is_in(&self, span: GroupSpan) -> bool {
        !self.members.is_empty() && self.slot >= span.first && self.slot + self.members.len() < span.end
    }

    /// Searches the group by halving. A member that shares more bytes with the base than the sought key does is below
    /// the sought key, as the base is. A member that shares fewer is above it. Only members that share the same number
    /// of bytes are compared by their rest.
    pub(super) fn search(&self, entries: &[u8], suffix: &[u8]) -> GroupPosition {
        let agreed = bytes::common_prefix(self.base, suffix);
        let wanted = suffix.get(agreed..).unwrap_or_default();
        match (self.base.get(agreed), wanted.first()) {
            (None, None) => return GroupPosition::Here(Ok(self.slot)),
            (Some(_), None) => return GroupPosition::Before,
            (Some(there), Some(wanted)) if there > wanted => return GroupPosition::Before,
            _ => {}
        }
        let below = self.members.partition_point(|&member| {
            let entry = Self::entry(entries, member);
            entry.shared > agreed || (entry.shared == agreed && bytes::compare(entry.rest_in(entries), wanted).is_lt())
        });
        let slot = self.slot + 1 + below;
        match (self.members.get(below), self.members.last()) {
            (Some(&member), _) => {
                let entry = Self::entry(entries, member);
                let equal = entry.shared == agreed && entry.rest_in(entries) == wanted;
                GroupPosition::Here(if equal { Ok(slot) } else { Err(slot) })
            }
            (None, Some(&last)) => {
                let last = Self::entry(entries, last);
                GroupPosition::After(slot, last.end(), last.agreed(entries, agreed, suffix))
            }
            (None, None) => GroupPosition::Before,
        }
    }

    /// Returns the base's key, which completes the entry of `slot`, and the entry; `None` if `slot` is not a member.
    pub(super) fn member(&self, entries: &[u8], slot: usize) -> Option<(&'a [u8], DeltaEntry)> {
        let member = slot.checked_sub(self.slot + 1)?;
        Some((self.base, Self::entry(entries, *self.members.get(member)?)))
    }

    /// Checks that the group agrees with the entries of `view`.
    pub(super) fn check(&self, view: &Delta<'_>) -> Result<(), String> {
        if self.members.is_empty() {
            return Ok(());
        }
        let wrong = Err(format!("the best prefix group at slot {} does not match its entries", self.slot));
        let span = view.span_of(self.slot);
        let mut base = Vec::new();
        view.append(self.slot, &mut base);
        if !self.is_in(span) || base != self.base || self.members.len() < MIN_MEMBERS {
            return wrong;
        }
        let (mut at, mut most) = (view.offset(span, self.slot + 1), usize::MAX);
        for member in self.members {
            let entry = DeltaEntry::at(view.entries, at);
            if usize::from(u16::from_le_bytes(*member)) != at || entry.shared > most {
                return wrong;
            }
            (at, most) = (entry.end(), entry.shared);
        }
        Ok(())
    }
}

/// A run of entries that their base completes.
#[derive(Clone, Copy, Default)]
struct CandidateGroup {
    /// The slot of the base.
    slot: usize,
    /// The offset of the first member.
    at: usize,
    members: usize,
}

impl CandidateGroup {
    /// Returns the longest run of the list, the first one if there are several.
    fn longest(view: &Delta<'_>) -> CandidateGroup {
        let (mut best, mut run, mut most, mut at) = (CandidateGroup::default(), CandidateGroup::default(), 0, 0);
        let mut span = view.span(0);
        for slot in 0..view.count {
            let entry = DeltaEntry::at(view.entries, at);
            if entry.end() > view.entries.len() {
                break;
            }
            if slot == span.end {
                span = view.span(span.index + 1);
            }
            if slot == span.first {
                (run, most) = (CandidateGroup { slot, at: entry.end(), members: 0 }, usize::MAX);
            } else if entry.shared <= most && run.members < MAX_MEMBERS {
                run.members += 1;
                most = entry.shared;
            } else {
                (run, most) = (CandidateGroup { slot: slot - 1, at, members: 1 }, entry.shared);
            }
            if run.members > best.members {
                best = run;
            }
            at = entry.end();
        }
        best
    }
}

/// Writes the footer of a list that has `end` bytes without it, so that the list with its footer has at most `room`
/// bytes. Returns the length of the list with its footer. A list without entries gets no footer. If the group is too
/// long for the room, the footer has only its first members.
fn put_footer(list: &mut [u8], end: usize, count: usize, grouped: bool, room: usize) -> usize {
    if count == 0 {
        return end;
    }
    let footer = footer(bytes::slice(list, 0, end), count, grouped, room.saturating_sub(end));
    bytes::put(list, end, &footer);
    end + footer.len()
}

/// Returns the footer of a list with entries. It has at most `room` bytes if `room` is at least [`MIN_FOOTER`].
pub(super) fn footer(list: &[u8], count: usize, grouped: bool, room: usize) -> Vec<u8> {
    let view = Delta::new(list, count, grouped);
    let run = CandidateGroup::longest(&view);
    let mut footer = Vec::new();
    if run.members >= MIN_MEMBERS {
        view.append(run.slot, &mut footer);
    }
    let (len, spare) = (footer.len(), room.saturating_sub(footer.len() + FIELDS));
    let members = run.members.min(spare / 2);
    if members < MIN_MEMBERS {
        return vec![0];
    }
    let mut at = run.at;
    for _ in 0..members {
        footer.extend_from_slice(&bytes::u16_of(at).to_le_bytes());
        at = DeltaEntry::at(view.entries, at).end();
    }
    footer.extend_from_slice(&bytes::u16_of(len).to_le_bytes());
    footer.extend_from_slice(&bytes::u16_of(run.slot).to_le_bytes());
    footer.push(members.to_le_bytes()[0]);
    footer
}

/// Returns the state of the list without its footer, with room for the shortest footer.
fn without_foot(list: &[u8], state: KeyState) -> KeyState {
    let footer = Best::of(bytes::slice(list, 0, state.bytes)).map_or(0, |(_, footer)| footer);
    let room = state.room.saturating_sub(MIN_FOOTER);
    KeyState { bytes: state.bytes.saturating_sub(footer), room, ..state }
}

/// Returns false if the footer is not within the list. Such a list must not be changed.
pub(crate) fn is_changeable(list: &[u8], count: usize, grouped: bool) -> bool {
    Best::of(list).is_some_and(|(_, footer)| {
        super::is_changeable(bytes::slice(list, 0, list.len() - footer), count, grouped)
            && (count == 0) == list.is_empty()
    })
}

/// See [`crate::page::keys::plan`]. The group uses the room that remains.
pub(crate) fn plan(
    list: &[u8],
    state: KeyState,
    grouped: bool,
    slot: usize,
    suffix: &[u8],
) -> Result<InsertPlan, String> {
    let inner = without_foot(list, state);
    let plan = edit::plan(bytes::slice(list, 0, inner.bytes), inner, grouped, slot, suffix)?;
    Ok(InsertPlan { bytes: plan.bytes + MIN_FOOTER, ..plan })
}

/// See [`crate::page::keys::insert`]. The group is chosen again.
pub(crate) fn insert(list: &mut [u8], state: KeyState, grouped: bool, slot: usize, suffix: &[u8]) -> EditResult {
    let inner = without_foot(list, state);
    let plan = edit::plan(bytes::slice(list, 0, inner.bytes), inner, grouped, slot, suffix)?;
    if plan.bytes > inner.room {
        return Ok(None);
    }
    bytes::zero(list, inner.bytes, state.bytes);
    let planned = list.get_mut(..plan.bytes.max(inner.bytes)).unwrap_or_default();
    edit::insert(planned, inner, grouped, slot, suffix, plan);
    Ok(Some(put_footer(list, plan.bytes, state.count + 1, grouped, state.room)))
}

/// See [`crate::page::keys::remove`]. The group is chosen again, but the list never becomes longer.
pub(crate) fn remove(list: &mut [u8], state: KeyState, grouped: bool, from: usize, to: usize) -> Result<usize, String> {
    let inner = without_foot(list, state);
    let end = edit::remove(list.get_mut(..inner.bytes).unwrap_or_default(), inner, grouped, from, to)?;
    bytes::zero(list, inner.bytes, state.bytes);
    Ok(put_footer(list, end, state.count.saturating_sub(to - from), grouped, state.bytes))
}

/// See [`crate::page::keys::vacuumize`]. The group shrinks if other parts of the page need the room.
pub(crate) fn vacuumize(list: &mut [u8], state: KeyState, grouped: bool) -> Option<usize> {
    let inner = without_foot(list, state);
    if inner.bytes > inner.room || state.count == 0 {
        return None;
    }
    bytes::zero(list, inner.bytes, state.bytes);
    Some(put_footer(list, inner.bytes, state.count, grouped, state.room))
}

//! Changes a prefix-delta key list in place: only the next entry is encoded again, and a group that has become too
//! large is cut. The code does not rely on the order of the keys, because images of long keys may be in any order.

use super::{DISTANCE, Delta, DeltaEntry, DirectoryGroup, GROUP, GroupSpan, directory, entries_at, entry_size};
use crate::base::{bytes, varint};
use crate::page::keys::scheme::List;
use crate::page::keys::slotted::head_of;
use crate::page::keys::{InsertPlan, KeyState};
use std::cmp::Ordering;

/// The indexes of the results of [`plan`] in [`InsertPlan::found`].
const AT: usize = 0;
const SHARED: usize = 1;
const NEXT: usize = 2;
const CUT: usize = 3;

/// Returns the span that an insertion at `slot` goes to: the span of the entry before it.
fn span_before(view: &Delta<'_>, slot: usize) -> GroupSpan {
    view.span_of(slot.saturating_sub(1))
}

/// See [`crate::page::keys::plan`]. Finds the offset of the new entry, the number of bytes that it shares with the
/// entry before, the number that the next entry shares with it, and whether the group is cut. The group is cut only if
/// there is room for that.
pub(crate) fn plan(
    list: &[u8],
    state: KeyState,
    grouped: bool,
    slot: usize,
    suffix: &[u8],
) -> Result<InsertPlan, String> {
    if state.count == 0 {
        let directory = if grouped { directory::end(1) } else { 0 };
        return Ok(InsertPlan::of(directory + entry_size(0, suffix.len())));
    }
    let view = Delta::new(list, state.count, grouped);
    view.check_count(state.count)?;
    directory::check_order(view.groups, view.count, view.entries.len())?;
    let span = span_before(&view, slot);
    let (mut at, mut agreed) = (span.at, 0);
    for _ in span.first..slot {
        let entry = DeltaEntry::at(view.entries, at);
        agreed = entry.agreed(view.entries, agreed, suffix);
        at = entry.end();
    }
    view.check_end(at)?;
    // Entries of a damaged page may claim to share more bytes than the key has.
    let agreed = agreed.min(suffix.len());
    let own = (agreed, suffix.len() - agreed);
    let mut bytes = state.bytes + entry_size(own.0, own.1);
    let mut next = None;
    if slot < span.end {
        let entry = DeltaEntry::at(view.entries, at);
        view.check_end(entry.end())?;
        let shared = entry.agreed(view.entries, agreed, suffix);
        let coded = (shared, (entry.shared + entry.len).saturating_sub(shared));
        bytes = (bytes + entry_size(coded.0, coded.1)).saturating_sub(entry.end() - at);
        next = Some(coded);
    }
    let mut found = [0; 4];
    (found[AT], found[SHARED], found[NEXT]) = (at, agreed, next.map_or(0, |next| next.0));
    if grouped && span.end.saturating_sub(span.first) >= 2 * DISTANCE - 1 {
        // The entry in the middle of the group after the insertion.
        let middle = span.first + DISTANCE;
        let coded = match middle.checked_sub(slot) {
            Some(0) => Some(own),
            Some(1) => next,
            behind => {
                let old = if behind.is_some() { middle - 1 } else { middle };
                let entry = DeltaEntry::at(view.entries, view.offset(span, old));
                view.check_end(entry.end())?;
                Some((entry.shared, entry.len))
            }
        };
        if let Some((shared, len)) = coded {
            let cut = bytes + GROUP + entry_size(0, shared + len) - entry_size(shared, len);
            if cut <= state.room {
                (bytes, found[CUT]) = (cut, 1);
            }
        }
    }
    Ok(InsertPlan { bytes, found })
}

/// See [`crate::page::keys::insert`].
pub(crate) fn insert(list: &mut [u8], state: KeyState, grouped: bool, slot: usize, suffix: &[u8], plan: InsertPlan) {
    if state.count == 0 {
        let mut at = 0;
        if grouped {
            at = directory::end(1);
            bytes::zero(list, 0, at);
            directory::open(list, directory::end(0), 0, DirectoryGroup { head: head_of(suffix), slot: 0, offset: 0 });
        }
        put_entry(list, at, 0, suffix);
        return;
    }
    let span = span_before(&Delta::new(bytes::slice(list, 0, state.bytes), state.count, grouped), slot);
    let end = put_between(list, state, grouped, span, slot, suffix, plan);
    if grouped {
        for index in span.index + 1..directory::count(list) {
            directory::change(list, index, |group| {
                group.slot += 1;
                group.offset = group.offset.saturating_add(end).saturating_sub(state.bytes);
            });
        }
        if slot == 0 {
            directory::change(list, 0, |group| group.head = head_of(suffix));
        }
        if plan.found[CUT] == 1 {
            cut_group(list, end, span.index, state.count + 1);
        }
    }
}

/// Writes an entry and returns the offset after it.
fn put_entry(list: &mut [u8], at: usize, shared: usize, rest: &[u8]) -> usize {
    let at = varint::put(list, at, shared);
    let at = varint::put(list, at, rest.len());
    bytes::put(list, at, rest);
    at + rest.len()
}

/// Writes the new entry and encodes the next one again. Returns the list's end.
fn put_between(
    list: &mut [u8],
    state: KeyState,
    grouped: bool,
    span: GroupSpan,
    slot: usize,
    suffix: &[u8],
    plan: InsertPlan,
) -> usize {
    let [at, shared, next_shared, _] = plan.found;
    let base = if grouped { entries_at(list) } else { 0 };
    let rest = suffix.get(shared..).unwrap_or_default();
    let size = entry_size(shared, rest.len());
    if slot >= span.end {
        let at = base + at;
        bytes::shift(list, at, state.bytes, at + size);
        put_entry(list, at, shared, rest);
        return state.bytes + size;
    }
    let view = Delta::new(bytes::slice(list, 0, state.bytes), state.count, grouped);
    let next = DeltaEntry::at(view.entries, at);
    // Only if keys are in disorder does the next entry share fewer bytes than before. It then takes back the bytes that
    // it shared.
    let mut back = Vec::new();
    if next_shared < next.shared {
        view.append(slot.saturating_sub(1), &mut back);
        back.truncate(next.shared);
        back.drain(..next_shared.min(back.len()));
    }
    let dropped = next_shared.saturating_sub(next.shared).min(next.len);
    let next_len = back.len() + next.len - dropped;
    let kept = base + next.rest + dropped;
    let header = varint::size(next_shared) + varint::size(next_len);
    let moved = base + at + size + header + back.len();
    bytes::shift(list, kept, state.bytes, moved);
    let mut to = put_entry(list, base + at, shared, rest);
    to = varint::put(list, to, next_shared);
    to = varint::put(list, to, next_len);
    bytes::put(list, to, &back);
    (state.bytes + moved).saturating_sub(kept)
}

/// Cuts the group in its middle: the entry there gets its whole key and a place in the directory. `end` is the end of
/// the list.
fn cut_group(list: &mut [u8], end: usize, index: usize, count: usize) {
    let view = Delta::new(bytes::slice(list, 0, end), count, true);
    let middle = view.span(index).first + DISTANCE;
    let at = view.offset(view.span(index), middle);
    let entry = DeltaEntry::at(view.entries, at);
    let mut key = Vec::new();
    view.append(middle, &mut key);
    let (base, groups) = (entries_at(list), directory::count(list));
    let growth = entry_size(0, key.len()).saturating_sub(entry.end() - at);
    bytes::shift(list, base + entry.end(), end, base + entry.end() + growth);
    put_entry(list, base + at, 0, &key);
    directory::open(list, end + growth, index + 1, DirectoryGroup { head: head_of(&key), slot: middle, offset: at });
    for later in index + 2..=groups {
        directory::change(list, later, |group| group.offset += growth);
    }
}

/// The effect of a removal on the entry after it.
struct RemovalEffect {
    /// The offset of the first removed entry.
    begin: usize,
    /// The offset from which the list stays unchanged.
    kept: usize,
    /// The new encoding of the next entry: the number of bytes that it shares, and its rest. `None` if it stays
    /// unchanged or does not exist.
    coded: Option<(usize, Vec<u8>)>,
    /// The group that now begins with the next entry, because the group's first entry is removed.
    starts: Option<usize>,
}

impl RemovalEffect {
    fn find(view: &Delta<'_>, grouped: bool, from: usize, to: usize) -> RemovalEffect {
        let begin = view.offset(view.span_of(from), from);
        if to >= view.count {
            return RemovalEffect { begin, kept: view.entries.len(), coded: None, starts: None };
        }
        let span = view.span_of(to);
        let at = view.offset(span, to);
        if span.first == to {
            return RemovalEffect { begin, kept: at, coded: None, starts: None };
        }
        let kept = DeltaEntry::at(view.entries, at).end();
        if to == from + 1
            && span.first < from
            && let Some(coded) = RemovalEffect::without_one(view, span, begin, from)
        {
            let kept = if coded.is_some() { kept } else { at };
            return RemovalEffect { begin, kept, coded, starts: None };
        }
        let mut key = Vec::new();
        view.append(to, &mut key);
        if span.first >= from {
            return RemovalEffect { begin, kept, coded: Some((0, key)), starts: grouped.then_some(span.index) };
        }
        let mut before = Vec::new();
        view.append(from - 1, &mut before);
        let shared = bytes::common_prefix(&before, &key);
        key.drain(..shared);
        RemovalEffect { begin, kept, coded: Some((shared, key)), starts: None }
    }

    /// Computes the effect of one removed entry on the entry after it, without building a key: the additional bytes
    /// that the next entry shared are in the removed entry. Returns `None` if the keys must be compared.
    fn without_one(view: &Delta<'_>, span: GroupSpan, begin: usize, slot: usize) -> Option<Option<(usize, Vec<u8>)>> {
        let gone = DeltaEntry::at(view.entries, begin);
        let next = DeltaEntry::at(view.entries, gone.end());
        match next.shared.cmp(&gone.shared) {
            Ordering::Less => Some(None),
            Ordering::Equal => {
                // Both entries differ from the key before at the same byte. If keys are in disorder, the next entry
                // may agree with that key again.
                let rest = next.rest_in(view.entries).first();
                (view.byte_of(span, slot - 1, gone.shared) != rest).then_some(None)
            }
            Ordering::Greater => {
                let back = gone.rest_in(view.entries).get(..next.shared - gone.shared)?;
                Some(Some((gone.shared, [back, next.rest_in(view.entries)].concat())))
            }
        }
    }

    fn size(&self) -> usize {
        self.coded.as_ref().map_or(0, |(shared, rest)| entry_size(*shared, rest.len()))
    }
}

/// See [`crate::page::keys::remove`]. Never makes the list longer: the bytes that the next entry takes back were in
/// the removed entries.
pub(crate) fn remove(list: &mut [u8], state: KeyState, grouped: bool, from: usize, to: usize) -> Result<usize, String> {
    if to - from >= state.count {
        bytes::zero(list, 0, state.bytes);
        return Ok(0);
    }
    let base = if grouped { entries_at(list) } else { 0 };
    let view = Delta::new(list, state.count, grouped);
    view.check_count(state.count)?;
    let effect = RemovalEffect::find(&view, grouped, from, to);
    let moved = effect.begin + effect.size();
    view.check_end(effect.kept)?;
    if moved > effect.kept {
        return Err(format!("a removal of slots {from} to {to} would make the list longer"));
    }
    bytes::shift(list, base + effect.kept, state.bytes, base + moved);
    if let Some((shared, rest)) = &effect.coded {
        put_entry(list, base + effect.begin, *shared, rest);
    }
    let mut end = (state.bytes + moved).saturating_sub(effect.kept);
    if grouped {
        let dropped = GROUP * close_directory(list, from, to, &effect);
        bytes::shift(list, base, end, base - dropped);
        end -= dropped;
    }
    bytes::zero(list, end, state.bytes);
    Ok(end)
}

/// Removes the groups of removed entries from the directory and moves the later ones. Returns how many are removed.
fn close_directory(list: &mut [u8], from: usize, to: usize, effect: &RemovalEffect) -> usize {
    let groups = directory::count(list);
    let lost = effect.kept.saturating_sub(effect.begin + effect.size());
    let mut left = 0;
    for index in 0..groups {
        let mut stays = true;
        let mut field = DirectoryGroup::default();
        directory::change(list, index, |group| {
            if group.slot >= to {
                group.slot -= to - from;
                group.offset = group.offset.saturating_sub(lost);
            } else if group.slot >= from {
                stays = effect.starts == Some(index);
                let head = effect.coded.as_ref().map_or(0, |(_, key)| head_of(key));
                *group = DirectoryGroup { head, slot: from, offset: effect.begin };
            }
            field = *group;
        });
        if stays {
            directory::change(list, left, |group| *group = field);
            left += 1;
        }
    }
    bytes::put_u16(list, 0, bytes::u16_of(left));
    groups - left
}

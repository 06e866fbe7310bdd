//! Changes a DB2 key list: in place as long as there is room, under other prefixes if there is none.

use super::layout::{KeyBuffer, PrefixRun, optimize};
use super::{Db2, Db2Builder, DirectoryGroup, FIELD, GROUP, directory, head_of, suffixes_at};
use crate::base::bytes;
use crate::page::keys::scheme::{Build, List};
use crate::page::keys::slotted;
use crate::page::keys::{InsertPlan, KeyState, USUAL_SUFFIX};

/// The indexes of the results of [`plan`] in [`InsertPlan::found`]: the kind of insertion, and the group.
const HOW: usize = 0;
const INDEX: usize = 1;
/// The entry goes to an existing group.
const JOIN: usize = 0;
/// The entry gets a group of its own, in front of the group with that index.
const OPEN: usize = 1;
/// The list is laid out again.
const ANEW: usize = 2;

/// Returns the state of the slotted list alone.
fn inner(state: KeyState, base: usize) -> KeyState {
    KeyState { bytes: state.bytes.saturating_sub(base), ..state }
}

/// Returns the most bytes that directory and prefixes may take: a quarter of the room.
fn most(room: usize) -> usize {
    room / 4
}

/// See [`crate::page::keys::plan`]. The prefixes are chosen again if there is no room, or if the entry does not have
/// the prefix of the keys around it. Images of long keys may be out of order in this way.
pub(crate) fn plan(list: &[u8], state: KeyState, slot: usize, suffix: &[u8]) -> Result<InsertPlan, String> {
    if state.count == 0 {
        let empty = KeyState { bytes: 0, ..state };
        return Ok(InsertPlan::of(FIELD + slotted::edit::bytes_with(empty, false, suffix)));
    }
    let view = Db2::new(list, state.count, state.granule);
    directory::check_order(view.groups, view.count, view.prefixes.len())?;
    let (how, index, rest) = place(&view, slot, suffix);
    let opened = if how == OPEN { GROUP } else { 0 };
    let mut plan = InsertPlan::of(opened + slotted::edit::bytes_with(state, false, rest));
    (plan.found[HOW], plan.found[INDEX]) = (how, index);
    let too_many = (plan.bytes - opened).saturating_sub(state.room);
    if how == ANEW || (plan.bytes > state.room && may_save(&view, too_many, slot, suffix)) {
        let anew = laid_out(&view, state, slot, suffix).len();
        if anew < plan.bytes || how == ANEW {
            plan.bytes = anew;
            plan.found[HOW] = ANEW;
        }
    }
    Ok(plan)
}

/// The longest suffix whose length takes one byte.
const SHORT: usize = 0x7f;
/// The most keys for which the exact bound on the savings of prefixes is computed: its cost is quadratic.
const MANY: usize = 64;

/// Returns false if no choice of prefixes can save that many bytes. A group of n keys saves its prefix n - 1 times,
/// less its place in the directory. The prefix is no longer than the common prefix of any two neighbours in the group.
/// A key whose rest after the prefix is shorter than a head saves less; for the existing groups the exact number is
/// known. The caller considers that the new key may not need a group of its own.
fn may_save(view: &Db2<'_>, bytes: usize, slot: usize, suffix: &[u8]) -> bool {
    let (mut left, mut right) = (Vec::with_capacity(USUAL_SUFFIX), Vec::with_capacity(USUAL_SUFFIX));
    if let Some(before) = slot.checked_sub(1) {
        view.append(before, &mut left);
    }
    view.append(slot, &mut right);
    // The length of the common prefix of each key and the one before, including the new key.
    let mut common = Vec::with_capacity(view.count + 1);
    // The bytes that the existing groups cost and save.
    let (mut front, mut saved) = (0, 0);
    let around = (bytes::common_prefix(&left, suffix), bytes::common_prefix(suffix, &right));
    let spans = view.groups.len().max(1);
    for span in (0..spans).map(|index| view.span(index)) {
        front += if view.groups.is_empty() { 0 } else { GROUP + span.prefix.len() };
        for old in span.first..span.end {
            saved += view.saved_by(span.prefix, old);
            if old == slot {
                common.extend([around.0, around.1]);
            } else if old > span.first {
                common.push(view.common_in_group(old).unwrap_or(0));
            } else {
                left.clear();
                right.clear();
                if let Some(before) = old.checked_sub(1) {
                    view.append(before, &mut left);
                }
                view.append(old, &mut right);
                common.push(bytes::common_prefix(&left, &right));
            }
        }
    }
    if slot >= view.count {
        common.push(around.0);
    }
    // The length field of a long suffix may also become a byte shorter.
    let long = suffix.len() > SHORT || view.first_longer(0, SHORT).is_some();
    let reach = front + if long { common.len() } else { 0 };
    // Without groups there is no group to remove: a saving needs a new group.
    let wanted = bytes + saved;
    let least = if view.groups.is_empty() { wanted + GROUP } else { wanted };
    common.iter().sum::<usize>() + reach >= least && (common.len() > MANY || most_saved(&common) + reach >= wanted)
}

/// Returns the most bytes that groups of keys save. `common` is the length of the common prefix of each key and the one
/// before.
fn most_saved(common: &[usize]) -> usize {
    // `best` has the savings for the keys before each place. The cost of the greatest possible number of groups is
    // added to each, so that no value is negative.
    let debt = GROUP * common.len();
    let mut best = Vec::with_capacity(common.len() + 1);
    best.push(debt);
    for _ in common {
        let (mut least, mut most) = (usize::MAX, 0);
        let firsts = best.iter().zip(common).rev().enumerate();
        for (others, (before, with_previous)) in firsts {
            let saved = if others == 0 { 0 } else { others * least };
            most = most.max((before + saved).saturating_sub(GROUP));
            least = least.min(*with_previous);
        }
        best.push(most);
    }
    best.last().map_or(0, |most| most.saturating_sub(debt))
}

/// Returns how an entry is inserted, the group, and the rest of its suffix after the group's prefix.
fn place<'s>(view: &Db2<'_>, slot: usize, suffix: &'s [u8]) -> (usize, usize, &'s [u8]) {
    if view.groups.is_empty() {
        return (JOIN, 0, suffix);
    }
    let right = view.span_of(slot.min(view.count.saturating_sub(1)));
    let left = view.span_of(slot.saturating_sub(1));
    let mut sides = [left, right].map(|span| bytes::strip_prefix(suffix, span.prefix).map(|rest| (span.index, rest)));
    sides.sort_by_key(|side| side.map_or(usize::MAX, |(_, rest)| rest.len()));
    match sides {
        [Some((index, rest)), _] => (JOIN, index, rest),
        _ if left.index == right.index && slot > 0 && slot < view.count => (ANEW, 0, suffix),
        _ => (OPEN, if slot == 0 { 0 } else { left.index + 1 }, suffix),
    }
}

/// Returns the whole list with the entry, under the best prefixes.
fn laid_out(view: &Db2<'_>, state: KeyState, slot: usize, suffix: &[u8]) -> Vec<u8> {
    let (how, joined, _) = place(view, slot, suffix);
    let mut keys = KeyBuffer::of_about(2 * state.room);
    let mut now = Vec::new();
    let mut groups = view.groups.iter().map(DirectoryGroup::of).enumerate().peekable();
    for old in 0..=view.count {
        if old == slot {
            if how == OPEN {
                now.push(PrefixRun { first: slot, prefix: 0 });
            }
            keys.push(|out| out.extend_from_slice(suffix));
        }
        if old < view.count {
            if let Some((index, group)) = groups.next_if(|(_, group)| group.slot == old) {
                let with_new = old == slot && how == JOIN && index == joined;
                let first = if with_new { old } else { keys.len() };
                now.push(PrefixRun { first, prefix: view.prefix(index, group).len() });
            }
            keys.push(|out| view.append(old, out));
        }
    }
    let runs = optimize(&keys, &now, most(state.room));
    let mut builder = Db2Builder::new(state.granule, state.room);
    builder.lay_out(keys, &runs);
    let mut out = Vec::with_capacity(state.room);
    builder.finish(0, &mut out);
    out
}

/// See [`crate::page::keys::insert`].
pub(crate) fn insert(list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8], plan: InsertPlan) {
    let (how, index) = (plan.found[HOW], plan.found[INDEX]);
    if state.count == 0 {
        let sub = KeyState { bytes: 0, ..state };
        return slotted::edit::insert(list.get_mut(FIELD..).unwrap_or_default(), sub, false, slot, suffix);
    }
    if how == ANEW {
        let view = Db2::new(bytes::slice(list, 0, state.bytes), state.count, state.granule);
        let anew = laid_out(&view, state, slot, suffix);
        bytes::put(list, 0, &anew);
        bytes::zero(list, anew.len(), state.bytes);
        return;
    }
    let prefix = Db2::new(bytes::slice(list, 0, state.bytes), state.count, state.granule).span(index).prefix.len();
    let mut base = suffixes_at(list);
    let groups = directory::count(list);
    let mut rest = suffix;
    let mut first_behind = index + 1;
    if how == OPEN {
        let before = index.checked_sub(1).and_then(|before| directory::groups(list).get(before));
        let offset = before.map_or(0, |before| DirectoryGroup::of(before).offset);
        directory::open(list, state.bytes, index, DirectoryGroup { head: head_of(suffix), slot, offset });
        base += GROUP;
        let sub = KeyState { bytes: state.bytes + GROUP, ..state };
        for behind in first_behind..=groups {
            directory::change(list, behind, |group| group.slot += 1);
        }
        return slotted::edit::insert(list.get_mut(base..).unwrap_or_default(), inner(sub, base), false, slot, suffix);
    }
    if groups > 0 {
        rest = suffix.get(prefix..).unwrap_or_default();
        directory::change(list, index, |group| {
            // The entry may become the first of the second of the two groups around it.
            if group.slot == slot {
                group.head = head_of(suffix);
            }
        });
    } else {
        first_behind = 0;
    }
    for behind in first_behind..groups {
        directory::change(list, behind, |group| group.slot += 1);
    }
    slotted::edit::insert(list.get_mut(base..).unwrap_or_default(), inner(state, base), false, slot, rest);
}

/// See [`crate::page::keys::remove`]. Never makes the list longer.
pub(crate) fn remove(list: &mut [u8], state: KeyState, from: usize, to: usize) -> Result<usize, String> {
    if to - from >= state.count {
        bytes::zero(list, 0, state.bytes);
        return Ok(0);
    }
    let base = suffixes_at(list);
    let front = front_without(&Db2::new(list, state.count, state.granule), from, to);
    // Also if an offset did not fit in its field: the prefixes are then longer than any list.
    if front.len() > base {
        return Err(format!("prefixes overlap: some prefixes of {base} bytes take {} bytes", front.len()));
    }
    let suffixes = list.get_mut(base..state.bytes).unwrap_or_default();
    let left = slotted::edit::remove(suffixes, inner(state, base), from, to)?;
    bytes::shift(list, base, base + left, front.len());
    bytes::put(list, 0, &front);
    let end = front.len() + left;
    bytes::zero(list, end, state.bytes);
    Ok(end)
}

/// Returns the directory and prefixes without the entries `[from, to)`. Groups that lose all keys disappear with their
/// prefixes.
fn front_without(view: &Db2<'_>, from: usize, to: usize) -> Vec<u8> {
    let (mut groups, mut prefixes) = (Vec::with_capacity(view.groups.len()), Vec::with_capacity(view.prefixes.len()));
    let mut key = Vec::new();
    for index in 0..view.groups.len() {
        let span = view.span(index);
        if span.first >= from && span.end <= to {
            continue;
        }
        let first = if (from..to).contains(&span.first) { to } else { span.first };
        let mut head = view.groups.get(index).map_or(0, |group| DirectoryGroup::of(group).head);
        if first != span.first {
            key.clear();
            view.append(first, &mut key);
            head = head_of(&key);
        }
        prefixes.extend_from_slice(span.prefix);
        let slot = if first >= to { first - (to - from) } else { first };
        groups.push(DirectoryGroup { head, slot, offset: prefixes.len() }.field());
    }
    [&bytes::u16_of(groups.len()).to_le_bytes(), groups.as_flattened(), &prefixes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::keys::KeyListKind;
    use proptest::prelude::*;

    #[test]
    fn groups_save_their_prefixes_less_their_cost() {
        assert_eq!(most_saved(&[]), 0);
        assert_eq!(most_saved(&[0, 1, 1, 1]), 0, "a group costs more than it saves");
        assert_eq!(most_saved(&[0, 20, 20]), 2 * 20 - GROUP);
        assert_eq!(most_saved(&[0, 20, 20, 0, 30]), 2 * 20 + 30 - 2 * GROUP);
        assert_eq!(most_saved(&[0, 20, 18, 20]), 3 * 18 - GROUP, "one group, not two of a longer prefix");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 500, max_shrink_iters: 500, ..ProptestConfig::default() })]

        #[test]
        fn the_estimated_savings_of_prefixes_are_an_upper_bound(
            keys in prop::collection::btree_set("[ab]{0,20}|[ab]{120,140}", 2..24),
            new in 0usize..24,
            room in 64usize..2000,
        ) {
            let mut keys: Vec<String> = keys.into_iter().collect();
            let slot = new % keys.len();
            let suffix = keys.remove(slot);
            let mut builder = Db2Builder::new(1, 2000);
            keys.iter().for_each(|key| builder.push(key.as_bytes()));
            let mut list = Vec::new();
            builder.finish(0, &mut list);
            let state = KeyState {
                kind: KeyListKind::Db2,
                bytes: list.len(),
                count: keys.len(),
                granule: 1,
                inner: false,
                room,
            };
            let view = Db2::new(&list, keys.len(), 1);
            let (how, _, rest) = place(&view, slot, suffix.as_bytes());
            let opened = if how == OPEN { GROUP } else { 0 };
            let plain = opened + slotted::edit::bytes_with(state, false, rest);
            let anew = laid_out(&view, state, slot, suffix.as_bytes()).len();
            if how != ANEW && anew < plain {
                let saved = (plain - opened).saturating_sub(anew);
                prop_assert!(may_save(&view, saved, slot, suffix.as_bytes()), "{anew} bytes instead of {plain}");
            }
        }
    }
}

//! Changing a key list in its page, whatever its kind: an insertion is planned before it is done, so that one that does
//! not fit changes nothing. How a list changes its bytes is its own affair.

use super::{KeyListKind, blocks, capacity, db2, delta, fixed, pkb, slotted};
use crate::base::{Error, PageId, Result, bytes};

/// Where a key list stands, for changing it: its bytes now, its entries, the granule of the page.
#[derive(Clone, Copy)]
pub(in crate::page) struct KeyState {
    pub(in crate::page) kind: KeyListKind,
    pub(in crate::page) bytes: usize,
    pub(in crate::page) count: usize,
    pub(in crate::page) granule: usize,
    /// Key 0 is an inner page's: empty.
    pub(in crate::page) inner: bool,
    /// Bytes that the list may have at the most, with what else the operation brings in the page.
    pub(in crate::page) room: usize,
}

/// What an insertion makes of a list: found once, to know whether it fits, and then done.
#[derive(Clone, Copy, Default)]
pub(in crate::page) struct Plan {
    /// Bytes that the list takes afterwards.
    pub(in crate::page) bytes: usize,
    /// What the list found out on the way; only it knows what that is.
    pub(in crate::page) found: [usize; 4],
}

impl Plan {
    pub(super) fn of(bytes: usize) -> Plan {
        Plan { bytes, found: [0; 4] }
    }
}

/// False where the list's bytes cannot hold its entries' slots or keys: then it must not be changed.
#[inline]
pub(in crate::page) fn is_changeable(list: &[u8], state: KeyState) -> bool {
    match state.kind {
        KeyListKind::Plain | KeyListKind::Head => {
            state.bytes >= slotted::FIXED_PART * capacity(state.count, state.granule)
                || slotted::is_dense(state.bytes, state.count)
        }
        KeyListKind::Fixed => fixed::check(list, state.count).is_ok(),
        KeyListKind::Pkb(_) => pkb::is_changeable(list, state.count, state.granule, state.kind.part()),
        KeyListKind::PkbHeap(_) => pkb::apart::is_changeable(list, state.count, state.kind.part()),
        KeyListKind::Db2 => db2::is_changeable(list, state.count, state.granule),
        kind if kind.has_best() => delta::best::is_changeable(list, state.count, kind.has_groups()),
        KeyListKind::MyIsam | KeyListKind::WiredTiger(_) => {
            delta::is_changeable(list, state.count, state.kind.has_groups())
        }
        KeyListKind::Blocks32(rule) => blocks::is_changeable(list, rule, false, state.count),
        KeyListKind::Blocks64(rule) => blocks::is_changeable(list, rule, true, state.count),
    }
}

/// Puts `suffix` at `slot`, if the list then has at most `state.room` bytes, and returns how many it has. `list` has all
/// the bytes up to the record list, those behind `state.bytes` being zero. What a shorter list frees is zeroed.
#[inline]
pub(in crate::page) fn insert(
    page: PageId,
    list: &mut [u8],
    state: KeyState,
    slot: usize,
    suffix: &[u8],
) -> Result<Option<usize>> {
    if let Some(blocks) = state.kind.blocks() {
        return blocks::insert(list, blocks, state, slot, suffix).map_err(|what| Error::corrupt(page, what));
    }
    if state.kind.has_best() {
        return Ok(delta::best::insert(list, state, state.kind.has_groups(), slot, suffix));
    }
    let plan = plan(page, bytes::slice(list, 0, state.bytes), state, slot, suffix)?;
    if plan.bytes > state.room {
        return Ok(None);
    }
    insert_planned(list.get_mut(..plan.bytes.max(state.bytes)).unwrap_or_default(), state, slot, suffix, plan);
    Ok(Some(plan.bytes))
}

/// Puts the first of these suffixes at their slots of the list with those before, as long as the list can do that without
/// changing its length, and not `worth` of them go to one block; says how many. `list` is as for [`insert`].
pub(in crate::page) fn insert_in_place<'k>(
    list: &mut [u8],
    state: KeyState,
    worth: usize,
    suffixes: impl Iterator<Item = (usize, &'k [u8])> + Clone,
) -> usize {
    state.kind.blocks().map_or(0, |kind| blocks::insert_in_place(list, kind, state, worth, suffixes))
}

/// How many of these suffixes [`insert_run`] takes at once into a list of `count` keys: those that go to the same block as
/// the first; none where the list has no blocks.
pub(in crate::page) fn together<'k>(
    kind: KeyListKind,
    list: &[u8],
    count: usize,
    suffixes: impl Iterator<Item = &'k [u8]>,
) -> usize {
    match kind.blocks() {
        Some(blocks) if count > 0 => blocks::together(list, blocks, count, suffixes),
        _ => 0,
    }
}

/// Puts suffixes that are [`together`] at their slots of the list as it is now: all, or none if there is no room. `list` is
/// as for [`insert`].
pub(in crate::page) fn insert_run<'k>(
    page: PageId,
    list: &mut [u8],
    state: KeyState,
    suffixes: impl Iterator<Item = (usize, &'k [u8])>,
) -> Result<Option<usize>> {
    let Some(blocks) = state.kind.blocks() else { return Ok(None) };
    blocks::insert_run(list, blocks, state, suffixes).map_err(|what| Error::corrupt(page, what))
}

/// True where [`insert`] would put `suffix` at `slot` of `list`, its bytes alone; `None`: only trying tells.
pub(in crate::page) fn would_insert(
    page: PageId,
    list: &[u8],
    state: KeyState,
    slot: usize,
    suffix: &[u8],
) -> Result<Option<bool>> {
    if state.kind.blocks().is_some() {
        return Ok(None);
    }
    plan(page, list, state, slot, suffix).map(|plan| Some(plan.bytes <= state.room))
}

/// What putting `suffix` at `slot` makes of a list that is not of blocks.
#[inline]
fn plan(page: PageId, list: &[u8], state: KeyState, slot: usize, suffix: &[u8]) -> Result<Plan> {
    match state.kind {
        KeyListKind::Fixed => {
            fixed::bytes_with(list, state, suffix).map(Plan::of).map_err(|what| Error::corrupt(page, what))
        }
        KeyListKind::Pkb(_) => Ok(Plan::of(pkb::edit::bytes_with(state, state.kind.part(), suffix))),
        KeyListKind::PkbHeap(_) => pkb::apart::bytes_with(state, state.kind.part(), slot, suffix)
            .map(Plan::of)
            .map_err(|what| Error::corrupt(page, what)),
        KeyListKind::Db2 => Ok(db2::edit::plan(list, state, slot, suffix)),
        kind if kind.has_best() => Ok(delta::best::plan(list, state, kind.has_groups(), slot, suffix)),
        KeyListKind::MyIsam | KeyListKind::WiredTiger(_) => {
            Ok(delta::edit::plan(list, state, state.kind.has_groups(), slot, suffix))
        }
        _ => Ok(Plan::of(slotted::edit::bytes_with(state, suffix))),
    }
}

/// Puts `suffix` at `slot` as planned; `list` has the bytes of the plan or those of now, whichever are more.
#[inline]
fn insert_planned(list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8], plan: Plan) {
    match state.kind {
        KeyListKind::Fixed => fixed::insert(list, state, slot, suffix),
        KeyListKind::Pkb(_) => pkb::edit::insert(list, state, state.kind.part(), slot, suffix),
        KeyListKind::PkbHeap(_) => pkb::apart::insert(list, state, state.kind.part(), slot, suffix),
        KeyListKind::Db2 => db2::edit::insert(list, state, slot, suffix, plan),
        KeyListKind::MyIsam | KeyListKind::WiredTiger(_) => {
            delta::edit::insert(list, state, state.kind.has_groups(), slot, suffix, plan);
        }
        _ => slotted::edit::insert(list, state, slot, suffix),
    }
}

/// Takes the entries `[from, to)` out, zeroes what that frees and returns the bytes that the list takes then: `None`
/// where that would be more than `state.room`. `list` is as for [`insert`].
pub(in crate::page) fn remove(
    page: PageId,
    list: &mut [u8],
    state: KeyState,
    from: usize,
    to: usize,
) -> Result<Option<usize>> {
    if let Some(blocks) = state.kind.blocks() {
        return blocks::remove(list, blocks, state, from, to).map_err(|what| Error::corrupt(page, what));
    }
    let list = list.get_mut(..state.bytes).unwrap_or_default();
    Ok(Some(match state.kind {
        KeyListKind::Fixed => fixed::remove(list, state, from, to),
        KeyListKind::Pkb(_) => pkb::edit::remove(list, state, state.kind.part(), from, to),
        KeyListKind::PkbHeap(_) => pkb::apart::remove(list, state, state.kind.part(), from, to),
        KeyListKind::Db2 => db2::edit::remove(list, state, from, to),
        kind if kind.has_best() => delta::best::remove(list, state, kind.has_groups(), from, to),
        KeyListKind::MyIsam | KeyListKind::WiredTiger(_) => {
            delta::edit::remove(list, state, state.kind.has_groups(), from, to)
        }
        _ => slotted::edit::remove(list, state, from, to),
    }))
}

/// Lays the list out anew so that it takes at most `state.room` bytes, and returns how many; `None` where it cannot.
pub(in crate::page) fn vacuumize(list: &mut [u8], state: KeyState) -> Option<usize> {
    if state.kind.has_best() {
        return delta::best::vacuumize(list, state, state.kind.has_groups());
    }
    blocks::vacuumize(list, state.kind.blocks()?, state)
}

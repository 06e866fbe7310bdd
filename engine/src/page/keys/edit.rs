//! Changing a key list in its page, whatever its kind: an insertion is planned before it is done, so that one that does
//! not fit changes nothing. How a list changes its bytes is its own affair.

use super::KeyListKind;
use super::scheme::Scheme;
use crate::base::{Error, PageId, Result};

/// Where a key list stands, for changing it: its bytes now, its entries, the granule of the page.
#[derive(Clone, Copy)]
pub(crate) struct KeyState {
    pub(crate) kind: KeyListKind,
    pub(crate) bytes: usize,
    pub(crate) count: usize,
    pub(crate) granule: usize,
    /// Key 0 is an inner page's: empty.
    pub(crate) inner: bool,
    /// Bytes that the list may have at the most, with what else the operation brings in the page.
    pub(crate) room: usize,
}

/// What an insertion makes of a list: found once, to know whether it fits, and then done.
#[derive(Clone, Copy, Default)]
pub(crate) struct Plan {
    /// Bytes that the list takes afterwards.
    pub(crate) bytes: usize,
    /// What the list found out on the way; only it knows what that is.
    pub(crate) found: [usize; 4],
}

impl Plan {
    pub(super) fn of(bytes: usize) -> Plan {
        Plan { bytes, found: [0; 4] }
    }
}

/// See [`Scheme::is_changeable`].
#[inline]
pub(crate) fn is_changeable(list: &[u8], state: KeyState) -> bool {
    with_scheme!(state.kind, scheme => scheme.is_changeable(list, state))
}

/// Puts `suffix` at `slot`, if the list then has at most `state.room` bytes, and returns how many it has. `list` has all
/// the bytes up to the record list, those behind `state.bytes` being zero. What a shorter list frees is zeroed.
#[inline]
pub(crate) fn insert(
    page: PageId,
    list: &mut [u8],
    state: KeyState,
    slot: usize,
    suffix: &[u8],
) -> Result<Option<usize>> {
    with_scheme!(state.kind, scheme => scheme.insert(list, state, slot, suffix))
        .map_err(|what| Error::corrupt(page, what))
}

/// Puts the first of these suffixes at their slots of the list with those before, as long as the list can do that without
/// changing its length, and not `worth` of them go to one block; says how many. `list` is as for [`insert`].
pub(crate) fn insert_in_place<'k>(
    list: &mut [u8],
    state: KeyState,
    worth: usize,
    suffixes: impl Iterator<Item = (usize, &'k [u8])> + Clone,
) -> usize {
    with_scheme!(state.kind, scheme => scheme.insert_in_place(list, state, worth, suffixes))
}

/// How many of these suffixes [`insert_run`] takes at once into a list of `count` keys: those that go to the same block as
/// the first; none where the list has no blocks.
pub(crate) fn together<'k>(
    kind: KeyListKind,
    list: &[u8],
    count: usize,
    suffixes: impl Iterator<Item = &'k [u8]>,
) -> usize {
    with_scheme!(kind, scheme => scheme.together(list, count, suffixes))
}

/// Puts suffixes that are [`together`] at their slots of the list as it is now: all, or none if there is no room. `list` is
/// as for [`insert`].
pub(crate) fn insert_run<'k>(
    page: PageId,
    list: &mut [u8],
    state: KeyState,
    suffixes: impl Iterator<Item = (usize, &'k [u8])>,
) -> Result<Option<usize>> {
    with_scheme!(state.kind, scheme => scheme.insert_run(list, state, suffixes))
        .map_err(|what| Error::corrupt(page, what))
}

/// True where [`insert`] would put `suffix` at `slot` of `list`, its bytes alone; `None`: only trying tells.
pub(crate) fn would_insert(
    page: PageId,
    list: &[u8],
    state: KeyState,
    slot: usize,
    suffix: &[u8],
) -> Result<Option<bool>> {
    let plan = with_scheme!(state.kind, scheme => scheme.plan(list, state, slot, suffix));
    let plan = plan.map_err(|what| Error::corrupt(page, what))?;
    Ok(plan.map(|plan| plan.bytes <= state.room))
}

/// Takes the entries `[from, to)` out, of which there are some, zeroes what that frees and returns the bytes that the list takes then: `None`
/// where that would be more than `state.room`. `list` is as for [`insert`].
pub(crate) fn remove(page: PageId, list: &mut [u8], state: KeyState, from: usize, to: usize) -> Result<Option<usize>> {
    with_scheme!(state.kind, scheme => scheme.remove(list, state, from, to)).map_err(|what| Error::corrupt(page, what))
}

/// Lays the list out anew so that it takes at most `state.room` bytes, and returns how many; `None` where it cannot.
pub(crate) fn vacuumize(list: &mut [u8], state: KeyState) -> Option<usize> {
    with_scheme!(state.kind, scheme => scheme.vacuumize(list, state))
}

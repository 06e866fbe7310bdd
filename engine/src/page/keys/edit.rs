//! Changes a key list in its page, whatever its kind. An insertion is planned before it is done, so that an insertion
//! that does not fit changes nothing.

use super::KeyListKind;
use super::scheme::Scheme;
use crate::base::{Error, PageId, Result};

/// The state of a key list before a change: its length in bytes, its number of entries, the granule of the page.
#[derive(Clone, Copy)]
pub(crate) struct KeyState {
    pub(crate) kind: KeyListKind,
    pub(crate) bytes: usize,
    pub(crate) count: usize,
    pub(crate) granule: usize,
    /// The page is an inner page, whose key 0 is empty.
    pub(crate) inner: bool,
    /// The most bytes that the list may take. The operation's other bytes in the page are already subtracted.
    pub(crate) room: usize,
}

/// The plan of an insertion: computed once, to find out whether the insertion fits, and then executed.
#[derive(Clone, Copy, Default)]
pub(crate) struct InsertPlan {
    /// The bytes that the list takes afterwards.
    pub(crate) bytes: usize,
    /// Intermediate results of the list; only the list knows their meaning.
    pub(crate) found: [usize; 4],
}

impl InsertPlan {
    pub(super) fn of(bytes: usize) -> InsertPlan {
        InsertPlan { bytes, found: [0; 4] }
    }
}

/// See [`Scheme::is_changeable`].
#[inline]
pub(crate) fn is_changeable(list: &[u8], state: KeyState) -> bool {
    with_scheme!(state.kind, scheme => scheme.is_changeable(list, state))
}

/// Inserts `suffix` at `slot` if the list then takes at most `state.room` bytes, and returns its new length. `list` has
/// all the bytes up to the record list; those after `state.bytes` are zero. The bytes that a shorter list frees become
/// zero.
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

/// Inserts the first of these suffixes, each at its slot of the list with those before. Stops at a suffix that would
/// change the length of the list, and where `worth` suffixes go to one block. Returns how many were inserted. `list` is
/// as for [`insert`].
pub(crate) fn insert_in_place<'k>(
    list: &mut [u8],
    state: KeyState,
    worth: usize,
    suffixes: impl Iterator<Item = (usize, &'k [u8])> + Clone,
) -> usize {
    with_scheme!(state.kind, scheme => scheme.insert_in_place(list, state, worth, suffixes))
}

/// Returns how many of these suffixes [`insert_run`] inserts together into a list of `count` keys: those that go to the
/// same block as the first. Returns 0 if the list has no blocks.
pub(crate) fn count_in_one_block<'k>(
    kind: KeyListKind,
    list: &[u8],
    count: usize,
    suffixes: impl Iterator<Item = &'k [u8]>,
) -> usize {
    with_scheme!(kind, scheme => scheme.count_in_one_block(list, count, suffixes))
}

/// Inserts suffixes that all go to one block, see [`count_in_one_block`], each at its slot of the list as it is now:
/// all, or none if there is no room. `list` is as for [`insert`].
pub(crate) fn insert_run<'k>(
    page: PageId,
    list: &mut [u8],
    state: KeyState,
    suffixes: impl Iterator<Item = (usize, &'k [u8])>,
) -> Result<Option<usize>> {
    with_scheme!(state.kind, scheme => scheme.insert_run(list, state, suffixes))
        .map_err(|what| Error::corrupt(page, what))
}

/// Returns true if [`insert`] would put `suffix` at `slot` of `list`, the bytes of the list alone; `None` if only
/// trying can tell.
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

/// Takes out the entries `[from, to)`, a range that is not empty, zeroes the bytes that this frees and returns the new
/// length of the list. Returns `None` if the list would exceed `state.room`. `list` is as for [`insert`].
pub(crate) fn remove(page: PageId, list: &mut [u8], state: KeyState, from: usize, to: usize) -> Result<Option<usize>> {
    with_scheme!(state.kind, scheme => scheme.remove(list, state, from, to)).map_err(|what| Error::corrupt(page, what))
}

/// Lays the list out again in at most `state.room` bytes and returns its new length; `None` if this is impossible.
pub(crate) fn vacuumize(list: &mut [u8], state: KeyState) -> Option<usize> {
    with_scheme!(state.kind, scheme => scheme.vacuumize(list, state))
}

//! The interface of a key list: each list has one implementation of [`Scheme`], one of [`List`] to read it and one of
//! [`Build`] to build it. `table` has all lists.

use super::row::KeyFront;
use super::{AdjacentKeys, Blocks, InsertPlan, KeyListKind, KeyPlace, KeyState, OutOfLine, WalkPosition, Walked};
use crate::base::bytes;
use duramen_codec::Codec;
use std::ops::Range;

/// The number of bytes of a list after a change. `None`: the result would exceed the room, and nothing has changed. The
/// error says what is wrong with the list or with the change.
pub(crate) type EditResult = Result<Option<usize>, String>;

/// The error of a key of `len` bytes in a list whose keys have `of` bytes.
pub(super) fn wrong_length(len: usize, of: usize) -> String {
    format!("a key of {len} bytes does not belong in a list of keys of {of}")
}

/// The properties of a list that do not depend on its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Features {
    /// The list keeps keys without the common prefix of the page's fences.
    pub(crate) cuts_prefix: bool,
    /// Neighbours share bytes of the list. A caller that needs several entries walks ([`super::KeyWalk`]): a walk is
    /// quicker and reports the bytes of each entry.
    pub(crate) walked: bool,
    /// The list of the inner pages above such leaves. Any run of an inner page's entries must fit in a page again, with
    /// the first key of the run and the key after the run as its fences. A list in which an entry takes less than its
    /// key might break this.
    pub(crate) inner: KeyListKind,
    /// The length of every key, if the kind itself determines it.
    pub(crate) key_len: Option<usize>,
    /// The codec of the blocks, if keys are in blocks.
    pub(crate) codec: Option<Codec>,
    /// All keys have one length; the first key sets it.
    pub(crate) one_length: bool,
    /// The page holds only parts of its keys and the places of the whole keys.
    pub(crate) out_of_line: bool,
}

impl Features {
    /// The features of a list of keys of any length without the page's prefix.
    pub(super) const USUAL: Features = Features {
        cuts_prefix: true,
        walked: false,
        inner: KeyListKind::USUAL,
        key_len: None,
        codec: None,
        one_length: false,
        out_of_line: false,
    };
}

/// A key list: all properties of it that do not depend on its bytes.
pub(crate) trait Scheme: Copy {
    /// The list to read.
    type List<'a>: List<'a>;
    /// The list under construction.
    type Builder: Build;

    fn features(self) -> Features;

    /// Returns the list of `count` entries in `list` (the bytes of the list alone). Any bytes are safe.
    fn list(self, list: &[u8], count: usize, granule: usize) -> Self::List<'_>;

    /// Begins a list for a page of up to `bytes` bytes.
    fn builder(self, granule: usize, inner: bool, bytes: usize) -> Self::Builder;

    /// Returns the bytes that a suffix of that length takes, including its slot, without unused capacity.
    fn entry_bytes(self, suffix_len: usize) -> usize;

    /// See [`KeyListKind::least_entry_bytes`].
    fn least_entry_bytes(self, len: usize, common: usize, inner: bool) -> usize;

    /// Returns the bytes that each half of a divided page needs beyond those of the list's entries.
    fn spare(self, _granule: usize) -> usize {
        0
    }

    /// Returns the bytes of an unused slot, if the list has slots for a whole number of granules; otherwise 0.
    fn slot_bytes(self) -> usize {
        0
    }

    /// Returns the bytes in front of the list's entries.
    fn front(self) -> usize {
        0
    }

    /// Returns true if an inner page's key 0, which is empty, may be kept as `len` zero bytes.
    fn first_key_len_is_valid(self, len: usize) -> bool {
        len == 0
    }

    /// Returns false if the list's bytes cannot hold its entries' slots or keys. Such a list must not be changed.
    fn is_changeable(self, list: &[u8], state: KeyState) -> bool;

    /// Plans an insertion of `suffix` at `slot`. Returns `None` if only the insertion itself can tell whether it fits.
    fn plan(self, list: &[u8], state: KeyState, slot: usize, suffix: &[u8]) -> Result<Option<InsertPlan>, String>;

    /// See [`super::insert`].
    fn insert(self, list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8]) -> EditResult;

    /// See [`super::remove`].
    fn remove(self, list: &mut [u8], state: KeyState, from: usize, to: usize) -> EditResult;

    /// See [`super::vacuumize`].
    fn vacuumize(self, _list: &mut [u8], _state: KeyState) -> Option<usize> {
        None
    }

    /// See [`super::count_in_one_block`].
    fn count_in_one_block<'k>(self, _list: &[u8], _count: usize, _suffixes: impl Iterator<Item = &'k [u8]>) -> usize {
        0
    }

    /// See [`super::insert_run`].
    fn insert_run<'k>(
        self,
        _list: &mut [u8],
        _state: KeyState,
        _suffixes: impl Iterator<Item = (usize, &'k [u8])>,
    ) -> EditResult {
        Ok(None)
    }

    /// See [`super::insert_in_place`].
    fn insert_in_place<'k>(
        self,
        _list: &mut [u8],
        _state: KeyState,
        _worth: usize,
        _suffixes: impl Iterator<Item = (usize, &'k [u8])> + Clone,
    ) -> usize {
        0
    }

    /// See [`crate::page::out_of_line_image`]. Returns an empty image if keys are not out of line.
    fn image(self, _before: &[u8], _key: &[u8], _next: Option<&[u8]>, _place: KeyPlace) -> Vec<u8> {
        Vec::new()
    }

    /// See [`KeyListKind::likely_parts`].
    #[inline(always)]
    fn likely_parts(self, _page_size: usize, _part: impl FnOnce() -> Option<usize>) -> Option<[Range<usize>; 2]> {
        None
    }
}

/// Inserts into a list that can plan its insertions. `put` receives the larger of the bytes that the list takes before
/// and after.
#[inline(always)]
pub(super) fn insert_planned(
    scheme: impl Scheme,
    list: &mut [u8],
    state: KeyState,
    slot: usize,
    suffix: &[u8],
    put: impl FnOnce(&mut [u8], InsertPlan),
) -> EditResult {
    let plan = scheme.plan(bytes::slice(list, 0, state.bytes), state, slot, suffix)?;
    let Some(plan) = plan.filter(|plan| plan.bytes <= state.room) else { return Ok(None) };
    put(list.get_mut(..plan.bytes.max(state.bytes)).unwrap_or_default(), plan);
    Ok(Some(plan.bytes))
}

/// Returns the bytes of the list alone, to change.
#[inline(always)]
pub(super) fn own_bytes(list: &mut [u8], state: KeyState) -> &mut [u8] {
    list.get_mut(..state.bytes).unwrap_or_default()
}

/// A key list to read.
pub(crate) trait List<'a>: Copy {
    /// Returns `Ok(slot)` of the equal suffix, or `Err(slot)` of the first greater one. Not defined for a list that
    /// does not hold its keys.
    fn search(&self, suffix: &[u8]) -> Result<usize, usize>;

    /// Appends the suffix of `slot` to `out`; nothing if there is no such slot.
    fn append(&self, slot: usize, out: &mut Vec<u8>);

    /// Returns the bytes of the list that the entry of `slot` takes, including its slot, without unused capacity.
    fn entry_bytes(&self, slot: usize) -> usize;

    /// Returns the length of the suffix of `slot`.
    fn suffix_len(&self, slot: usize) -> usize;

    /// Returns the first slot from `from` on whose suffix is longer than `len`.
    fn first_longer(&self, from: usize, len: usize) -> Option<usize>;

    /// Checks the structure of the list. Checks the order of its keys only if [`List::checks_order`] returns true. The
    /// error says what is wrong.
    fn check(&self, list: &[u8], count: usize) -> Result<(), String>;

    /// Returns true if [`List::check`] also checks the order of the keys.
    fn checks_order(&self) -> bool {
        false
    }

    /// Returns true if the list is dense and would not be dense with this suffix.
    fn is_dense_without(&self, _suffix: &[u8]) -> bool {
        false
    }

    /// Returns how many bytes of the list are bytes of keys. The others are slots, lengths, directories and second
    /// copies. A list of blocks counts whole, because its bits are both.
    fn kept_bytes(&self, count: usize) -> usize {
        (0..count).map(|slot| self.suffix_len(slot)).sum()
    }

    /// Returns the length of the common prefix of the suffixes of `slot` and of the slot before it.
    #[inline]
    fn common_with_previous(&self, slot: usize) -> usize {
        built(self, slot, bytes::common_prefix)
    }

    /// Returns true if the suffix of `slot` is above `suffix` and the list has a quick way to it.
    #[inline(always)]
    fn is_above(&self, _slot: usize, _suffix: &[u8]) -> bool {
        false
    }

    /// Returns true if the suffix of `slot` is above that of the slot before it.
    #[inline]
    fn is_above_previous(&self, slot: usize) -> bool {
        slot == 0 || built(self, slot, |left, right| left < right)
    }

    /// Sets `place` before `slot`, or after the last entry if there is no such slot.
    #[inline]
    fn seek(&self, place: &mut WalkPosition, slot: usize) {
        place.slot = slot;
    }

    /// Moves `place` after the next entry and copies its key into `place`. Returns false if the list has no more
    /// entries.
    #[inline]
    fn advance(&self, place: &mut WalkPosition) -> bool {
        place.key.clear();
        self.append(place.slot, &mut place.key);
        place.bytes = self.entry_bytes(place.slot);
        place.common = self.common_with_previous(place.slot);
        place.slot += 1;
        true
    }

    /// See [`super::KeyList::add_to`].
    fn add_to(&self, row: &mut AdjacentKeys, prefix: &[u8], place: &mut WalkPosition, from: usize, to: usize) {
        let lead = KeyFront::new([prefix, &[]]);
        self.seek(place, from);
        while place.slot < to && self.advance(place) {
            row.push_tail(&lead, place.key.len(), &place.key);
        }
    }

    /// For a list of integers: returns how far `key` is from the key of `slot` to the next key, in 65536ths. `from`, if
    /// present, stands for the key of `slot`.
    #[inline(always)]
    fn part_of_way(&self, _from: Option<&[u8]>, _slot: usize, _key: &[u8]) -> Option<usize> {
        None
    }

    /// Returns the list as a list of blocks.
    #[inline(always)]
    fn blocks(&self) -> Option<Blocks<'a>> {
        None
    }

    /// Returns the list as a list whose keys are out of line.
    #[inline(always)]
    fn out_of_line(&self) -> Option<OutOfLine<'a>> {
        None
    }
}

/// Builds the suffixes of the slot before and of `slot` and calls `ask` with them. Returns the default for slot 0.
pub(super) fn built<'a, R: Default>(list: &impl List<'a>, slot: usize, ask: impl FnOnce(&[u8], &[u8]) -> R) -> R {
    let Some(before) = slot.checked_sub(1) else { return R::default() };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    list.append(before, &mut left);
    list.append(slot, &mut right);
    ask(&left, &right)
}

/// A key list under construction.
pub(crate) trait Build {
    /// The kind of list that it can copy entries from.
    type List<'a>;

    /// Returns the bytes of the list.
    fn bytes(&self) -> usize;

    /// Returns the bytes that the list takes with one more entry of `suffix`; `None` if it cannot hold this suffix at
    /// all.
    fn bytes_with(&self, suffix: &[u8]) -> Option<usize>;

    /// Appends an entry for which [`Build::bytes_with`] is not `None`.
    fn push(&mut self, suffix: &[u8]);

    /// Appends an entry of another list of the same kind, without the first `cut` bytes of its suffix, which is at
    /// least that long. Returns the bytes that the list then takes. Returns `None` if this kind of list has no use for
    /// the results of a walk.
    #[inline(always)]
    fn push_walked(&mut self, _entry: &Walked<'_>, _cut: usize) -> Option<usize> {
        None
    }

    /// Returns the bytes of the list after a push that was planned to make it `expected` bytes long. The result is
    /// smaller if the list has found a better layout.
    #[inline(always)]
    fn bytes_after(&self, expected: usize) -> usize {
        expected
    }

    /// Copies the entries of some slots of another list: whole blocks, or entries without the first `cut` bytes of
    /// their suffixes. Returns false if this list cannot copy from the other one or cannot hold its keys. Some entries
    /// may have been appended then.
    fn take(&mut self, _from: &Self::List<'_>, _slots: Range<usize>, _cut: usize) -> bool {
        false
    }

    /// Appends the finished list to `out`. It may take `room` bytes, which is at least the last size that was reported.
    fn finish(self, room: usize, out: &mut Vec<u8>);
}

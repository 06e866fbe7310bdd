//! What a key list has to bring: one implementation of [`Scheme`] a list, beside it what reads ([`List`]) and what builds
//! ([`Build`]) it. Which lists there are is in `table`. No layout of bytes belongs here.

use super::row::Lead;
use super::{Blocks, KeyListKind, KeyPlace, KeyRow, KeyState, OutOfLine, Plan, WalkPosition, Walked};
use crate::base::bytes;
use duramen_codec::Codec;
use std::ops::Range;

/// The bytes that a list has after a change; `None`: they would be more than it may have, and nothing has changed. Or what is
/// wrong with the list or with what was to go into it.
pub(crate) type EditResult = Result<Option<usize>, String>;

/// What a list can do, known without a look at its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Features {
    /// It keeps keys without the common prefix of the page's fences.
    pub(crate) cuts_prefix: bool,
    /// Neighbours share bytes of the list, so that whoever wants several entries walks ([`super::KeyWalk`]): it is quicker and
    /// says what each takes.
    pub(crate) walked: bool,
    /// The list that a tree with such leaves has in its inner pages. Any run of an inner page's entries fits in a page again
    /// that has the first key of the run and the one behind it for fences: where an entry takes less than its key it might not.
    pub(crate) inner: KeyListKind,
    /// The length that every key must have, where the kind itself says it.
    pub(crate) key_len: Option<usize>,
    /// The codec of the blocks that keys are in.
    pub(crate) codec: Option<Codec>,
    /// All keys have one length, which the first key sets.
    pub(crate) one_length: bool,
    /// The page has parts of its keys only, and says where the keys themselves are.
    pub(crate) out_of_line: bool,
}

impl Features {
    /// Those of a list of keys of any length without the page's prefix.
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

/// A key list: all that is known of it without its bytes.
pub(crate) trait Scheme: Copy {
    /// The list to read.
    type List<'a>: List<'a>;
    /// The list under construction.
    type Builder: Build;

    fn features(self) -> Features;

    /// The list of `count` entries in `list` (its bytes alone), to read. Any bytes are safe.
    fn list(self, list: &[u8], count: usize, granule: usize) -> Self::List<'_>;

    /// Begins a list of up to some `bytes`.
    fn builder(self, granule: usize, inner: bool, bytes: usize) -> Self::Builder;

    /// Bytes that a suffix of that length takes, slots included, unused capacity not.
    fn entry_bytes(self, suffix_len: usize) -> usize;

    /// See [`KeyListKind::least_entry_bytes`].
    fn least_entry_bytes(self, len: usize, common: usize, inner: bool) -> usize;

    /// Bytes of each half of a page that is cut in two, beyond those of the list's entries.
    fn spare(self, _granule: usize) -> usize {
        0
    }

    /// Bytes in front of the list's entries.
    fn front(self) -> usize {
        0
    }

    /// True where an inner page's key 0, which is empty, may be kept in `len` bytes (zeros).
    fn bare_len_is_valid(self, len: usize) -> bool {
        len == 0
    }

    /// False where the list's bytes cannot hold its entries' slots or keys: then it must not be changed.
    fn is_changeable(self, list: &[u8], state: KeyState) -> bool;

    /// What putting `suffix` at `slot` makes of the list; `None`: only trying tells.
    fn plan(self, list: &[u8], state: KeyState, slot: usize, suffix: &[u8]) -> Result<Option<Plan>, String>;

    /// See [`super::insert`].
    fn insert(self, list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8]) -> EditResult;

    /// See [`super::remove`].
    fn remove(self, list: &mut [u8], state: KeyState, from: usize, to: usize) -> EditResult;

    /// See [`super::vacuumize`].
    fn vacuumize(self, _list: &mut [u8], _state: KeyState) -> Option<usize> {
        None
    }

    /// See [`super::together`].
    fn together<'k>(self, _list: &[u8], _count: usize, _suffixes: impl Iterator<Item = &'k [u8]>) -> usize {
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

    /// See [`crate::page::out_of_line_image`]; empty where keys are not out of line.
    fn image(self, _before: &[u8], _key: &[u8], _next: Option<&[u8]>, _place: KeyPlace) -> Vec<u8> {
        Vec::new()
    }

    /// See [`KeyListKind::likely_parts`].
    #[inline(always)]
    fn likely_parts(self, _page_size: usize, _part: impl FnOnce() -> Option<usize>) -> Option<[Range<usize>; 2]> {
        None
    }
}

/// An insertion into a list that says beforehand what it takes: `put` gets the bytes of the plan or those of now, whichever
/// are more.
#[inline(always)]
pub(super) fn insert_planned(
    scheme: impl Scheme,
    list: &mut [u8],
    state: KeyState,
    slot: usize,
    suffix: &[u8],
    put: impl FnOnce(&mut [u8], Plan),
) -> EditResult {
    let plan = scheme.plan(bytes::slice(list, 0, state.bytes), state, slot, suffix)?;
    let Some(plan) = plan.filter(|plan| plan.bytes <= state.room) else { return Ok(None) };
    put(list.get_mut(..plan.bytes.max(state.bytes)).unwrap_or_default(), plan);
    Ok(Some(plan.bytes))
}

/// The bytes of a list alone, to change.
#[inline(always)]
pub(super) fn own_bytes(list: &mut [u8], state: KeyState) -> &mut [u8] {
    list.get_mut(..state.bytes).unwrap_or_default()
}

/// A key list to read.
pub(crate) trait List<'a>: Copy {
    /// `Ok(slot)` of the equal suffix, or `Err(slot)` of the first greater one. Of a list without its keys nothing.
    fn search(&self, suffix: &[u8]) -> Result<usize, usize>;

    /// Appends the suffix of `slot` to `out`; nothing where there is no such slot.
    fn append(&self, slot: usize, out: &mut Vec<u8>);

    /// Bytes of the list that the entry of `slot` takes, slots included, unused capacity not.
    fn entry_bytes(&self, slot: usize) -> usize;

    /// The length of the suffix of `slot`.
    fn suffix_len(&self, slot: usize) -> usize;

    /// The first slot from `from` on whose suffix is longer than `len`.
    fn first_longer(&self, from: usize, len: usize) -> Option<usize>;

    /// Says what is wrong with the structure of the list, but not with the order of its keys unless it
    /// [looks at that](List::checks_order).
    fn check(&self, list: &[u8], count: usize) -> Result<(), String>;

    /// True where [`List::check`] looks at the order of the keys as well.
    fn checks_order(&self) -> bool {
        false
    }

    /// True for a list that is dense, and not with this suffix.
    fn is_dense_without(&self, _suffix: &[u8]) -> bool {
        false
    }

    /// Bytes of the list that are bytes of keys: the others are slots, lengths, directories and what is kept twice. A list of
    /// blocks, whose bits are both, counts whole.
    fn kept_bytes(&self, count: usize) -> usize {
        (0..count).map(|slot| self.suffix_len(slot)).sum()
    }

    /// The length of the common prefix of the suffixes of `slot` and of the one before it.
    #[inline]
    fn common_with_previous(&self, slot: usize) -> usize {
        built(self, slot, bytes::common_prefix)
    }

    /// True where the suffix of `slot` is above `suffix` and the list has a quick way to it.
    #[inline(always)]
    fn is_above(&self, _slot: usize, _suffix: &[u8]) -> bool {
        false
    }

    /// True where the suffix of `slot` is above that of the one before it.
    #[inline]
    fn is_above_previous(&self, slot: usize) -> bool {
        slot == 0 || built(self, slot, |left, right| left < right)
    }

    /// Puts `place` before `slot`, or behind the last entry where there is no such slot.
    #[inline]
    fn seek(&self, place: &mut WalkPosition, slot: usize) {
        place.slot = slot;
    }

    /// Passes the entry behind `place` and takes its key. False: the list has no more.
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
    fn add_to(&self, row: &mut KeyRow, prefix: &[u8], place: &mut WalkPosition, from: usize, to: usize) {
        let lead = Lead::new([prefix, &[]]);
        self.seek(place, from);
        while place.slot < to && self.advance(place) {
            row.push_tail(&lead, place.key.len(), &place.key);
        }
    }

    /// How far `key` is on the way from the key of `slot`, or from `from` in its stead, to the next one, in 65536ths, in a list
    /// of integers.
    #[inline(always)]
    fn part_of_way(&self, _from: Option<&[u8]>, _slot: usize, _key: &[u8]) -> Option<usize> {
        None
    }

    /// The list as one of blocks.
    #[inline(always)]
    fn blocks(&self) -> Option<Blocks<'a>> {
        None
    }

    /// The list as one whose keys are out of line.
    #[inline(always)]
    fn out_of_line(&self) -> Option<OutOfLine<'a>> {
        None
    }
}

/// Asks about the suffixes of the slot before and of `slot`, as they are built; the default for slot 0.
pub(super) fn built<'a, R: Default>(list: &impl List<'a>, slot: usize, ask: impl FnOnce(&[u8], &[u8]) -> R) -> R {
    let Some(before) = slot.checked_sub(1) else { return R::default() };
    let (mut left, mut right) = (Vec::new(), Vec::new());
    list.append(before, &mut left);
    list.append(slot, &mut right);
    ask(&left, &right)
}

/// A key list under construction.
pub(crate) trait Build {
    /// What it can take entries over from.
    type List<'a>;

    /// Bytes of the list.
    fn bytes(&self) -> usize;

    /// Bytes that the list takes with one more entry of `suffix`; `None` where it cannot hold that one at all.
    fn bytes_with(&self, suffix: &[u8]) -> Option<usize>;

    /// Appends an entry; [`Build::bytes_with`] it is not `None`.
    fn push(&mut self, suffix: &[u8]);

    /// Appends an entry of another list of its kind, less the first `cut` bytes of its suffix, which has as many; returns the
    /// bytes that the list takes then. `None`: this list has no use for what a walk knows.
    #[inline(always)]
    fn push_walked(&mut self, _entry: &Walked<'_>, _cut: usize) -> Option<usize> {
        None
    }

    /// Bytes of the list after a push that was to make it `expected`: fewer where it has found a better layout.
    #[inline(always)]
    fn bytes_after(&self, expected: usize) -> usize {
        expected
    }

    /// Takes over the entries of some slots of another list, whole blocks at a time or each less the first `cut` bytes of its
    /// suffix. False: the other list is none that it knows how to take from, or the keys are none that this one can hold; some
    /// may have been appended then.
    fn take(&mut self, _from: &Self::List<'_>, _slots: Range<usize>, _cut: usize) -> bool {
        false
    }

    /// Appends the finished list to `out`. It may take `room` bytes, no fewer than have been promised.
    fn finish(self, room: usize, out: &mut Vec<u8>);
}

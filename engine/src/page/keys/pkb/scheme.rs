//! The implementations of [`Scheme`] for the two PkB key lists: with the whole keys in the page, and with the whole
//! keys out of line in the key heap.

use super::out_of_line::{self, OutOfLine, OutOfLineBuilder};
use super::{Pkb, PkbBuilder, edit};
use crate::page::keys::scheme::{EditResult, Features, Scheme, insert_planned, own_bytes};
use crate::page::keys::table::Parameter;
use crate::page::keys::{InsertPlan, KeyListKind, KeyPlace, KeyState};

/// The parameter of a PkB list: the bytes of a key in a part.
impl Parameter for u8 {
    #[allow(clippy::indexing_slicing)] // evaluated by the compiler, which rejects an index out of bounds
    const ALL: &'static [(u8, [u8; 2])] = &{
        let (mut all, mut part) = ([(0, [0; 2]); KeyListKind::LONGEST_PART as usize], 0);
        while part < KeyListKind::LONGEST_PART {
            part += 1;
            all[part as usize - 1] = (part, [0, part]);
        }
        all
    };

    #[inline(always)]
    fn bytes(self) -> [u8; 2] {
        [0, self]
    }

    #[inline(always)]
    fn of([codec, part]: [u8; 2]) -> Option<u8> {
        (codec == 0 && (1..=KeyListKind::LONGEST_PART).contains(&part)).then_some(part)
    }
}

/// The PkB key list.
#[derive(Clone, Copy)]
pub(crate) struct PkbScheme {
    /// The bytes of a key in a part.
    pub(crate) part: usize,
}

impl Scheme for PkbScheme {
    type List<'a> = Pkb<'a>;
    type Builder = PkbBuilder;

    #[inline(always)]
    fn features(self) -> Features {
        Features::USUAL
    }

    #[inline(always)]
    fn list(self, list: &[u8], count: usize, granule: usize) -> Pkb<'_> {
        Pkb::new(list, count, granule, self.part)
    }

    fn builder(self, granule: usize, _inner: bool, bytes: usize) -> PkbBuilder {
        PkbBuilder::new(granule, self.part, bytes)
    }

    fn entry_bytes(self, suffix_len: usize) -> usize {
        super::entry_bytes(suffix_len, self.part)
    }

    fn least_entry_bytes(self, len: usize, common: usize, _inner: bool) -> usize {
        self.entry_bytes(len.saturating_sub(common))
    }

    fn spare(self, granule: usize) -> usize {
        (granule - 1) * self.entry_bytes(0)
    }

    fn slot_bytes(self) -> usize {
        super::fixed(self.part)
    }

    fn is_changeable(self, list: &[u8], state: KeyState) -> bool {
        super::is_changeable(list, state.count, state.granule, self.part)
    }

    fn plan(self, _list: &[u8], state: KeyState, _slot: usize, suffix: &[u8]) -> Result<Option<InsertPlan>, String> {
        Ok(Some(InsertPlan::of(edit::bytes_with(state, self.part, suffix))))
    }

    fn insert(self, list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8]) -> EditResult {
        insert_planned(self, list, state, slot, suffix, |list, _| edit::insert(list, state, self.part, slot, suffix))
    }

    fn remove(self, list: &mut [u8], state: KeyState, from: usize, to: usize) -> EditResult {
        edit::remove(own_bytes(list, state), state, self.part, from, to).map(Some)
    }
}

/// The PkB key list without its heap.
#[derive(Clone, Copy)]
pub(crate) struct OutOfLineScheme {
    /// The bytes of a key in a part.
    pub(crate) part: usize,
}

impl Scheme for OutOfLineScheme {
    type List<'a> = OutOfLine<'a>;
    type Builder = OutOfLineBuilder;

    #[inline(always)]
    fn features(self) -> Features {
        Features { cuts_prefix: false, out_of_line: true, ..Features::USUAL }
    }

    #[inline(always)]
    fn list(self, list: &[u8], count: usize, _granule: usize) -> OutOfLine<'_> {
        OutOfLine::new(list, count, self.part)
    }

    fn builder(self, _granule: usize, _inner: bool, bytes: usize) -> OutOfLineBuilder {
        OutOfLineBuilder::new(self.part, bytes)
    }

    fn entry_bytes(self, _suffix_len: usize) -> usize {
        out_of_line::entry_bytes(self.part)
    }

    fn least_entry_bytes(self, _len: usize, _common: usize, _inner: bool) -> usize {
        out_of_line::entry_bytes(self.part)
    }

    fn image(self, before: &[u8], key: &[u8], next: Option<&[u8]>, place: KeyPlace) -> Vec<u8> {
        out_of_line::entry(self.part, before, key, next, place)
    }

    fn front(self) -> usize {
        out_of_line::OPEN
    }

    fn is_changeable(self, list: &[u8], state: KeyState) -> bool {
        out_of_line::is_changeable(list, state.count, self.part)
    }

    fn plan(self, _list: &[u8], state: KeyState, slot: usize, suffix: &[u8]) -> Result<Option<InsertPlan>, String> {
        out_of_line::bytes_with(state, self.part, slot, suffix).map(InsertPlan::of).map(Some)
    }

    fn insert(self, list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8]) -> EditResult {
        insert_planned(self, list, state, slot, suffix, |list, _| {
            out_of_line::insert(list, state, self.part, slot, suffix)
        })
    }

    fn remove(self, list: &mut [u8], state: KeyState, from: usize, to: usize) -> EditResult {
        Ok(Some(out_of_line::remove(own_bytes(list, state), state, self.part, from, to)))
    }
}

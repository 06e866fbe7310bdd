//! The implementation of [`Scheme`] for the key list of blocks.

use super::codec::IntKey;
use super::edit::{self, EditState};
use super::index::integer;
use super::rule::BlockRule;
use super::{Blocks, BlocksBuilder, Index, in_place, likely, run};
use crate::base::bytes;
use crate::page::keys::scheme::{EditResult, Features, Scheme, wrong_length};
use crate::page::keys::{InsertPlan, KeyListKind, KeyState};
use std::ops::Range;

/// The key list of blocks.
#[derive(Clone, Copy)]
pub(crate) struct BlocksScheme {
    pub(crate) rule: BlockRule,
    /// Keys have 8 bytes.
    pub(crate) wide: bool,
}

/// Runs `$call` with `$T` bound to the integer type of a list's keys.
macro_rules! each_type {
    ($scheme:expr, $T:ident => $call:expr) => {
        if $scheme.wide {
            type $T = u64;
            $call
        } else {
            type $T = u32;
            $call
        }
    };
}

impl BlocksScheme {
    fn place(self, state: KeyState) -> EditState {
        EditState { rule: self.rule, used: state.bytes, count: state.count, room: state.room }
    }
}

impl Scheme for BlocksScheme {
    type List<'a> = Blocks<'a>;
    type Builder = BlocksBuilder;

    #[inline(always)]
    fn features(self) -> Features {
        let key_len = Some(if self.wide { 8 } else { 4 });
        Features {
            cuts_prefix: false,
            inner: KeyListKind::Fixed,
            key_len,
            codec: Some(self.rule.codec()),
            ..Features::USUAL
        }
    }

    #[inline(always)]
    fn list(self, list: &[u8], count: usize, _granule: usize) -> Blocks<'_> {
        Blocks::new(self.rule, self.wide, list, count)
    }

    fn builder(self, _granule: usize, _inner: bool, _bytes: usize) -> BlocksBuilder {
        BlocksBuilder::new(self.rule, self.wide)
    }

    fn entry_bytes(self, suffix_len: usize) -> usize {
        suffix_len
    }

    /// A key takes no certain number of bytes: only the index of blocks has a fixed size.
    fn least_entry_bytes(self, _len: usize, _common: usize, _inner: bool) -> usize {
        0
    }

    fn first_key_len_is_valid(self, _len: usize) -> bool {
        false
    }

    /// Returns true if the bytes can hold the index that the list claims to have, and the list has an index exactly if
    /// it has keys.
    fn is_changeable(self, list: &[u8], state: KeyState) -> bool {
        let empty = state.count == 0;
        each_type!(self, T => {
            Index::<T>::new(self.rule.codec(), list, state.count).is_empty() == empty && empty == list.is_empty()
        })
    }

    fn plan(self, _list: &[u8], _state: KeyState, _slot: usize, _suffix: &[u8]) -> Result<Option<InsertPlan>, String> {
        Ok(None)
    }

    /// Inserts a key. If there is no room for it in the present layout, the list is laid out again, if that saves
    /// enough.
    fn insert(self, list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8]) -> EditResult {
        each_type!(self, T => insert::<T>(list, self.place(state), slot, suffix))
    }

    /// Removes keys. If the codec is not delete-stable, the list may need more room than there is.
    fn remove(self, list: &mut [u8], state: KeyState, from: usize, to: usize) -> EditResult {
        each_type!(self, T => edit::remove::<T>(list, self.place(state), from, to))
    }

    /// Lays the list out again. Returns `None` if the result does not fit or does not save enough.
    fn vacuumize(self, list: &mut [u8], state: KeyState) -> Option<usize> {
        let place = self.place(state);
        let packed = each_type!(self, T => edit::vacuumized::<T>(list, place))?;
        edit::put_all(list, &packed, place.used, place.room)
    }

    fn count_in_one_block<'k>(self, list: &[u8], count: usize, suffixes: impl Iterator<Item = &'k [u8]>) -> usize {
        each_type!(self, T => {
            let index = Index::<T>::new(self.rule.codec(), list, count);
            if count == 0 { 0 } else { run::count_in_one_block(&index, suffixes.map(integer)) }
        })
    }

    fn insert_run<'k>(
        self,
        list: &mut [u8],
        state: KeyState,
        suffixes: impl Iterator<Item = (usize, &'k [u8])>,
    ) -> EditResult {
        each_type!(self, T => {
            let integer = |(slot, key): (usize, &[u8])| {
                integer::<T>(key).map(|key| (slot, key)).ok_or_else(|| no_key::<T>(key))
            };
            run::insert(list, self.place(state), &suffixes.map(integer).collect::<Result<Vec<_>, _>>()?)
        })
    }

    fn insert_in_place<'k>(
        self,
        list: &mut [u8],
        state: KeyState,
        worth: usize,
        suffixes: impl Iterator<Item = (usize, &'k [u8])> + Clone,
    ) -> usize {
        each_type!(self, T => {
            let keys = suffixes.map(|(slot, key)| (slot, integer::<T>(key)));
            in_place::insert_some(list, self.place(state), worth, keys)
        })
    }

    #[inline(always)]
    fn likely_parts(self, page_size: usize, part: impl FnOnce() -> Option<usize>) -> Option<[Range<usize>; 2]> {
        if self.wide { None } else { likely::parts(self.rule, page_size, part) }
    }
}

fn insert<T: IntKey>(list: &mut [u8], place: EditState, slot: usize, key: &[u8]) -> EditResult {
    let key = integer::<T>(key).ok_or_else(|| no_key::<T>(key))?;
    if let Some(used) = edit::insert(list, place, slot, key)? {
        return Ok(Some(used));
    }
    let Some(packed) = edit::vacuumized::<T>(list, place) else { return Ok(None) };
    let mut trial = list.to_vec();
    let Some(used) = edit::put_all(&mut trial, &packed, place.used, place.room) else { return Ok(None) };
    let changed = edit::insert(&mut trial, EditState { used, ..place }, slot, key)?;
    if changed.is_some() {
        bytes::put(list, 0, &trial);
    }
    Ok(changed)
}

fn no_key<T: IntKey>(key: &[u8]) -> String {
    wrong_length(key.len(), T::BYTES)
}

//! The implementation of [`Scheme`] for the slotted key list: *plain*, with whole keys, and *head*, with keys without
//! the page's prefix.

use super::{FIXED_PART, HEAD, Slotted, SlottedBuilder, edit, is_dense};
use crate::page::keys::scheme::{EditResult, Features, Scheme, insert_planned, own_bytes};
use crate::page::keys::{InsertPlan, KeyListKind, KeyState, capacity};

/// The slotted key list.
#[derive(Clone, Copy)]
pub(crate) struct SlottedScheme {
    /// Keys lack the page's prefix. Many are then short, so that an inner page's list may be dense.
    head: bool,
}

impl SlottedScheme {
    pub(crate) const PLAIN: SlottedScheme = SlottedScheme { head: false };
    pub(crate) const HEAD: SlottedScheme = SlottedScheme { head: true };

    #[inline(always)]
    fn may_be_dense(self, inner: bool) -> bool {
        inner && self.head
    }
}

impl Scheme for SlottedScheme {
    type List<'a> = Slotted<'a>;
    type Builder = SlottedBuilder;

    #[inline(always)]
    fn features(self) -> Features {
        match self.head {
            true => Features::USUAL,
            false => Features { cuts_prefix: false, inner: KeyListKind::Plain, ..Features::USUAL },
        }
    }

    #[inline(always)]
    fn list(self, list: &[u8], count: usize, granule: usize) -> Slotted<'_> {
        Slotted::new(list, count, granule)
    }

    fn builder(self, granule: usize, inner: bool, bytes: usize) -> SlottedBuilder {
        SlottedBuilder::new(granule, bytes, self.may_be_dense(inner))
    }

    fn entry_bytes(self, suffix_len: usize) -> usize {
        super::entry_bytes(suffix_len)
    }

    fn slot_bytes(self) -> usize {
        FIXED_PART
    }

    fn least_entry_bytes(self, len: usize, common: usize, inner: bool) -> usize {
        match len.saturating_sub(common) {
            _ if !self.head => super::entry_bytes(len),
            rest if self.may_be_dense(inner) && rest <= HEAD => HEAD,
            rest => super::entry_bytes(rest),
        }
    }

    #[inline]
    fn is_changeable(self, _list: &[u8], state: KeyState) -> bool {
        state.bytes >= FIXED_PART * capacity(state.count, state.granule) || is_dense(state.bytes, state.count)
    }

    #[inline]
    fn plan(self, _list: &[u8], state: KeyState, _slot: usize, suffix: &[u8]) -> Result<Option<InsertPlan>, String> {
        Ok(Some(InsertPlan::of(edit::bytes_with(state, self.may_be_dense(state.inner), suffix))))
    }

    #[inline]
    fn insert(self, list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8]) -> EditResult {
        insert_planned(self, list, state, slot, suffix, |list, _| {
            edit::insert(list, state, self.may_be_dense(state.inner), slot, suffix);
        })
    }

    #[inline]
    fn remove(self, list: &mut [u8], state: KeyState, from: usize, to: usize) -> EditResult {
        edit::remove(own_bytes(list, state), state, from, to).map(Some)
    }
}

//! The implementation of [`Scheme`] for the DB2 key list.

use super::{Db2, Db2Builder, edit};
use crate::page::keys::scheme::{EditResult, Features, Scheme, insert_planned, own_bytes};
use crate::page::keys::{InsertPlan, KeyState, slotted};

/// The DB2 key list.
#[derive(Clone, Copy)]
pub(crate) struct Db2Scheme;

impl Scheme for Db2Scheme {
    type List<'a> = Db2<'a>;
    type Builder = Db2Builder;

    #[inline(always)]
    fn features(self) -> Features {
        Features { walked: true, ..Features::USUAL }
    }

    #[inline(always)]
    fn list(self, list: &[u8], count: usize, granule: usize) -> Db2<'_> {
        Db2::new(list, count, granule)
    }

    fn builder(self, granule: usize, _inner: bool, bytes: usize) -> Db2Builder {
        Db2Builder::new(granule, bytes)
    }

    fn entry_bytes(self, suffix_len: usize) -> usize {
        super::entry_bytes(suffix_len)
    }

    fn slot_bytes(self) -> usize {
        slotted::FIXED_PART
    }

    fn least_entry_bytes(self, len: usize, common: usize, _inner: bool) -> usize {
        slotted::entry_bytes(len.saturating_sub(common))
    }

    fn is_changeable(self, list: &[u8], state: KeyState) -> bool {
        super::is_changeable(list, state.count, state.granule)
    }

    fn plan(self, list: &[u8], state: KeyState, slot: usize, suffix: &[u8]) -> Result<Option<InsertPlan>, String> {
        edit::plan(list, state, slot, suffix).map(Some)
    }

    fn insert(self, list: &mut [u8], state: KeyState, slot: usize, suffix: &[u8]) -> EditResult {
        insert_planned(self, list, state, slot, suffix, |list, plan| edit::insert(list, state, slot, suffix, plan))
    }

    fn remove(self, list: &mut [u8], state: KeyState, from: usize, to: usize) -> EditResult {
        edit::remove(own_bytes(list, state), state, from, to).map(Some)
    }
}

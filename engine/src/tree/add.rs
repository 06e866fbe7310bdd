//! Adds to a number in the record of an entry. The record keeps its length, so no page is split or merged.

use super::edit::slot_u16;
use super::many::LeafHint;
use super::{PageWrite, Tree};
use crate::base::{Error, Result};
use crate::page::{Page, PageOp, Record};

impl Tree {
    /// Adds `delta` to the little-endian u64 at byte `offset` of the record of `key`. The sum saturates.
    ///
    /// `before` is called once, with the old record, before the leaf changes and under its exclusive latch. If it
    /// returns an error, nothing changes.
    ///
    /// # Errors
    /// `Error::Corrupt` if there is no such entry, or its record is a large one or too short; the errors of the store.
    pub fn add_to_record<S: PageWrite>(
        &self,
        store: &S,
        key: &[u8],
        offset: u16,
        delta: i64,
        before: impl FnOnce(Record<'_>) -> Result<()>,
    ) -> Result<()> {
        let (mut leaf, found) = self.latch_with_hint(store, LeafHint::NONE, key)?;
        let page = Page::new(&leaf);
        let Ok(slot) = found else {
            return Err(Error::corrupt(page.id(), "it has no entry of the key whose record is to be changed"));
        };
        let record = page.record(slot);
        if record.large {
            return Err(Error::corrupt(page.id(), format!("the record of slot {slot} is a large one")));
        }
        before(record)?;
        let slot = slot_u16(page, slot)?;
        self.must_fit(store, &mut leaf, &PageOp::AddToRecord { slot, offset, delta })
    }
}

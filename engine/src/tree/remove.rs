//! Removes an entry from its leaf. Then the leaf may be merged with a neighbour.

use super::edit::{is_underfull, slot_u16};
use super::insert::MAX_SPLITS;
use super::many::LeafHint;
use super::{PageWrite, Tree};
use crate::base::{Error, Result};
use crate::page::{Page, PageOp, Record};

impl Tree {
    /// Removes the entry of `key`. Returns true if there was one.
    ///
    /// If there is an entry, `before` is called once, with the record, before the leaf changes and under its exclusive
    /// latch. If it returns an error, nothing changes. If the record is a large one, the caller must free its run.
    pub fn remove<S: PageWrite>(
        &self,
        store: &S,
        key: &[u8],
        before: impl FnMut(Record<'_>) -> Result<()>,
    ) -> Result<bool> {
        self.remove_with_hint(store, LeafHint::NONE, key, before)
    }

    /// Like [`Tree::remove`], but first tries the place that the writer found before, with the conditions of
    /// [`Tree::put_with_hint`].
    ///
    /// # Errors
    /// The same as for [`Tree::remove`].
    pub fn remove_with_hint<S: PageWrite>(
        &self,
        store: &S,
        hint: LeafHint,
        key: &[u8],
        mut before: impl FnMut(Record<'_>) -> Result<()>,
    ) -> Result<bool> {
        let mut called = false;
        for _ in 0..MAX_SPLITS {
            let (mut leaf, found) = self.latch_with_hint(store, hint, key)?;
            let page = Page::new(&leaf);
            let Ok(slot) = found else { return Ok(false) };
            if !called {
                before(page.record(slot))?;
                called = true;
            }
            let (id, from, to) = (page.id(), slot_u16(page, slot)?, slot_u16(page, slot + 1)?);
            let owned = match self.is_owner(store, page, key.len()) {
                true => Some(self.owned_by(store, page, slot)?),
                false => None,
            };
            if store.apply(&mut leaf, &PageOp::Remove { from, to })? {
                let underfull = id != self.root && is_underfull(Page::new(&leaf));
                drop(leaf);
                if let Some(owned) = owned {
                    self.free_owned(store, owned)?;
                }
                if underfull {
                    self.rebalance(store, key)?;
                }
                return Ok(true);
            }
            // A layout may need more space for fewer keys.
            drop(leaf);
            self.split_leaf(store, key, None)?;
        }
        Err(Error::corrupt(self.root, "splitting its pages makes no room to remove an entry"))
    }
}

//! Putting an entry: in its leaf if it fits, after a split if not.

use super::edit::slot_u16;
use super::long_key::is_long;
use super::many::LeafHint;
use super::search::{Target, child_of};
use super::split::Pending;
use super::{PageWrite, Tree};
use crate::base::{Error, PageId, Result, limits};
use crate::page::{Page, PageOp, Record};

/// Where a writer begins to look for a key's leaf.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// Where its place was when the writer looked last.
    Hint(LeafHint),
    /// At a leaf that covered it before it was split: that one or the next may do so now.
    Beside(PageId),
}

/// More splits than one entry can ever need: each halves a page or makes room one level further up.
pub(super) const MAX_SPLITS: usize = 1024;

impl Tree {
    /// Puts `record` under `key`, in place of the one that is there; returns whether there was one.
    ///
    /// `before` is called once, with the old record, before the leaf changes and under its exclusive latch; an
    /// error from it leaves everything as it was. The old record's run, if it is a large one, is the caller's to
    /// free.
    ///
    /// # Errors
    /// `Error::KeyTooLong`; `Error::ValueTooLong` where the record exceeds `limits::max_record`, so that
    /// the record should have been a large one; what the store says.
    pub fn put<S: PageWrite>(
        &self,
        store: &S,
        key: &[u8],
        record: Record<'_>,
        before: impl FnMut(Option<Record<'_>>) -> Result<()>,
    ) -> Result<bool> {
        self.put_with_hint(store, LeafHint::NONE, key, record, before)
    }

    /// As [`Tree::put`], first looking where the key's place was when the writer looked last. That leaf must not have been
    /// freed or detached since, and no page id that was freed since may have been taken again.
    ///
    /// # Errors
    /// As [`Tree::put`].
    pub fn put_with_hint<S: PageWrite>(
        &self,
        store: &S,
        hint: LeafHint,
        key: &[u8],
        record: Record<'_>,
        before: impl FnMut(Option<Record<'_>>) -> Result<()>,
    ) -> Result<bool> {
        self.put_from(store, Start::Hint(hint), key, record, before)
    }

    /// As [`Tree::put_with_hint`].
    pub(super) fn put_from<S: PageWrite>(
        &self,
        store: &S,
        mut from: Start,
        key: &[u8],
        record: Record<'_>,
        mut before: impl FnMut(Option<Record<'_>>) -> Result<()>,
    ) -> Result<bool> {
        check_entry(store.page_size(), key, record)?;
        let mut noted = false;
        // What the page keeps for the key: a long one gets its run once, however often the leaf is split.
        let mut stored = None;
        for _ in 0..MAX_SPLITS {
            let (mut leaf, found) = self.latch_from(store, from, key)?;
            let page = Page::new(&leaf);
            from = Start::Beside(page.id());
            if !noted {
                before(found.ok().map(|slot| page.record(slot)))?;
                noted = true;
            }
            let (Ok(slot) | Err(slot)) = found;
            let at = slot_u16(page, slot)?;
            if found.is_ok() {
                if store.apply(&mut leaf, &PageOp::Replace { slot: at, record })? {
                    return Ok(true);
                }
                drop(leaf);
                self.split_leaf(store, key, None)?;
                continue;
            }
            let long;
            let apart;
            let image = if let Some(heap) = self.resolver(page) {
                apart = heap.image_for(store, page, slot, key, record)?;
                apart.as_slice()
            } else if is_long(key.len(), store.page_size()) {
                long = match stored.take() {
                    Some(image) => image,
                    None => self.store_key(store, key)?,
                };
                stored.insert(long).as_slice()
            } else {
                key
            };
            if store.apply(&mut leaf, &PageOp::Insert { slot: at, key: image, record })? {
                return Ok(false);
            }
            drop(leaf);
            let pending = Pending { slot, image, key, record_bytes: record.bytes.len() };
            self.split_leaf(store, key, Some(pending))?;
        }
        Err(Error::corrupt(self.root, "splitting its pages makes no room for an entry"))
    }

    /// The leaf that covers `key` under its exclusive latch, and what a search for the key finds there.
    pub(super) fn latch_from<'s, S: PageWrite>(
        &self,
        store: &'s S,
        from: Start,
        key: &[u8],
    ) -> Result<(S::Mut<'s>, std::result::Result<usize, usize>)> {
        match from {
            Start::Hint(hint) => self.latch_with_hint(store, hint, key),
            Start::Beside(id) => self.latch_beside(store, store.latch(id)?, id, key),
        }
    }

    /// The same. If the leaf is as it was when the writer looked, nothing has to be looked for.
    #[inline]
    pub(super) fn latch_with_hint<'s, S: PageWrite>(
        &self,
        store: &'s S,
        hint: LeafHint,
        key: &[u8],
    ) -> Result<(S::Mut<'s>, std::result::Result<usize, usize>)> {
        if hint.leaf.is_none() {
            return self.latch_found(store, key);
        }
        let leaf = store.latch(hint.leaf)?;
        let page = Page::new(&leaf);
        if page.lsn() == hint.lsn && self.check_page(page, hint.leaf, 0).is_ok() {
            return Ok((leaf, hint.found()));
        }
        self.latch_beside(store, leaf, hint.leaf, key)
    }

    /// The same of a leaf that has changed: it says itself which keys it covers, unless long ones are among them. If it was
    /// split, its right sibling may be the one.
    fn latch_beside<'s, S: PageWrite>(
        &self,
        store: &'s S,
        leaf: S::Mut<'s>,
        id: PageId,
        key: &[u8],
    ) -> Result<(S::Mut<'s>, std::result::Result<usize, usize>)> {
        let page = Page::new(&leaf);
        if key.len() <= limits::long_key_head(store.page_size()) && self.check_page(page, id, 0).is_ok() {
            if page.covers(key) {
                let found = self.locate(store, page, key)?;
                return Ok((leaf, found));
            }
            let right = page.right();
            if !page.below_upper(key) && !right.is_none() && right != id {
                drop(leaf);
                let leaf = store.latch(right)?;
                let page = Page::new(&leaf);
                if self.check_page(page, right, 0).is_ok() && page.covers(key) {
                    let found = self.locate(store, page, key)?;
                    return Ok((leaf, found));
                }
                drop(leaf);
                return self.latch_found(store, key);
            }
        }
        drop(leaf);
        self.latch_found(store, key)
    }

    /// As [`Tree::latch_with_hint`], from the root.
    fn latch_found<'s, S: PageWrite>(
        &self,
        store: &'s S,
        key: &[u8],
    ) -> Result<(S::Mut<'s>, std::result::Result<usize, usize>)> {
        let leaf = self.latch_leaf(store, key)?;
        let found = self.locate(store, Page::new(&leaf), key)?;
        Ok((leaf, found))
    }

    /// The leaf that covers `key` under its exclusive latch. Only the writer changes pages, so that between its
    /// shared and its exclusive latch nothing happens.
    pub(super) fn latch_leaf<'s, S: PageWrite>(&self, store: &'s S, key: &[u8]) -> Result<S::Mut<'s>> {
        let mut id = self.root;
        let mut latched = store.read(id)?;
        let mut level = Page::new(&latched).level();
        while level > 0 {
            let page = Page::new(&latched);
            self.check_page(page, id, level)?;
            let slot = self.slot_for(store, page, Target::Covering(key))?;
            id = child_of(page, slot)?;
            level -= 1;
            if level > 0 {
                let child = store.fetch(id)?;
                latched = child;
            } else {
                store.prefetch(id);
            }
        }
        drop(latched);
        let leaf = store.latch(id)?;
        let page = Page::new(&leaf);
        self.check_page(page, id, 0)?;
        self.check_target(page, Target::Covering(key))?;
        Ok(leaf)
    }
}

/// Whether an entry is one that a page may hold.
pub(super) fn check_entry(page_size: usize, key: &[u8], record: Record<'_>) -> Result<()> {
    if key.len() > limits::MAX_KEY {
        return Err(Error::KeyTooLong { len: key.len(), max: limits::MAX_KEY });
    }
    let room = limits::max_record(page_size, key.len());
    if record.bytes.len() > room {
        return Err(Error::ValueTooLong { len: record.bytes.len() as u64, max: room as u64 });
    }
    Ok(())
}

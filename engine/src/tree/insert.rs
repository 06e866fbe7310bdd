//! Inserts or replaces an entry in its leaf, after a split if it does not fit.

use super::edit::slot_u16;
use super::long_key::is_long;
use super::many::LeafHint;
use super::search::{LeafTarget, child_of};
use super::split::PendingInsert;
use super::{PageWrite, Tree};
use crate::base::{Error, PageId, Result, limits};
use crate::page::{Page, PageOp, Record};

/// The page where a writer begins to search for a key's leaf.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// The leaf that covered the key when the writer found its place.
    Hint(LeafHint),
    /// A leaf that covered the key before a split. This leaf or its right sibling may cover the key now.
    LeafOrSibling(PageId),
}

/// More splits than one entry can ever need. Each split halves a page or makes room one level higher.
pub(super) const MAX_SPLITS: usize = 1024;

impl Tree {
    /// Puts `record` under `key` and replaces an existing record. Returns true if there was one.
    ///
    /// `before` is called once, with the old record, before the leaf changes and under its exclusive latch. If it
    /// returns an error, nothing changes. If the old record is a large one, the caller must free its run.
    ///
    /// # Errors
    /// `Error::KeyTooLong`; `Error::ValueTooLong` if the record exceeds `limits::max_record`, so that it should have
    /// been a large one; the errors of the store.
    pub fn put<S: PageWrite>(
        &self,
        store: &S,
        key: &[u8],
        record: Record<'_>,
        before: impl FnMut(Option<Record<'_>>) -> Result<()>,
    ) -> Result<bool> {
        self.put_with_hint(store, LeafHint::NONE, key, record, before)
    }

    /// Like [`Tree::put`], but first tries the place that the writer found before. That leaf must not have been freed
    /// or detached since, and no page id that was freed since may have been used again.
    ///
    /// # Errors
    /// The same as for [`Tree::put`].
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

    /// Like [`Tree::put_with_hint`].
    pub(super) fn put_from<S: PageWrite>(
        &self,
        store: &S,
        mut from: Start,
        key: &[u8],
        record: Record<'_>,
        mut before: impl FnMut(Option<Record<'_>>) -> Result<()>,
    ) -> Result<bool> {
        check_entry(store.page_size(), key, record)?;
        let mut called = false;
        // The image of a long key. Its run is written once, even if the leaf is split several times.
        let mut stored = None;
        for _ in 0..MAX_SPLITS {
            let (mut leaf, found) = self.latch_from(store, from, key)?;
            let page = Page::new(&leaf);
            from = Start::LeafOrSibling(page.id());
            if !called {
                before(found.ok().map(|slot| page.record(slot)))?;
                called = true;
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
            let out_of_line;
            let image = if let Some(heap) = self.resolver(page) {
                out_of_line = heap.image_for(store, page, slot, key, record)?;
                out_of_line.as_slice()
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
            let pending = PendingInsert { slot, image, key, record_bytes: record.bytes.len() };
            self.split_leaf(store, key, Some(pending))?;
        }
        Err(Error::corrupt(self.root, "splitting its pages makes no room for an entry"))
    }

    /// The leaf that covers `key`, under its exclusive latch, and the result of a search for the key in it.
    pub(super) fn latch_from<'s, S: PageWrite>(
        &self,
        store: &'s S,
        from: Start,
        key: &[u8],
    ) -> Result<(S::Mut<'s>, std::result::Result<usize, usize>)> {
        match from {
            Start::Hint(hint) => self.latch_with_hint(store, hint, key),
            Start::LeafOrSibling(id) => self.latch_leaf_or_sibling(store, store.latch(id)?, id, key),
        }
    }

    /// The same from a hint. If the leaf has not changed since the writer found the place, no search is needed.
    #[inline]
    pub(super) fn latch_with_hint<'s, S: PageWrite>(
        &self,
        store: &'s S,
        hint: LeafHint,
        key: &[u8],
    ) -> Result<(S::Mut<'s>, std::result::Result<usize, usize>)> {
        if hint.leaf.is_none() {
            return self.latch_from_root(store, key);
        }
        let leaf = store.latch(hint.leaf)?;
        let page = Page::new(&leaf);
        if page.lsn() == hint.lsn && self.check_page(page, hint.leaf, 0).is_ok() {
            return Ok((leaf, hint.found()));
        }
        self.latch_leaf_or_sibling(store, leaf, hint.leaf, key)
    }

    /// The same from a leaf that has changed. Its fences show whether it covers the key, unless keys are long. If it
    /// was split, its right sibling may cover the key.
    fn latch_leaf_or_sibling<'s, S: PageWrite>(
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
                return self.latch_from_root(store, key);
            }
        }
        drop(leaf);
        self.latch_from_root(store, key)
    }

    /// The same from the root.
    fn latch_from_root<'s, S: PageWrite>(
        &self,
        store: &'s S,
        key: &[u8],
    ) -> Result<(S::Mut<'s>, std::result::Result<usize, usize>)> {
        let leaf = self.latch_leaf(store, key)?;
        let found = self.locate(store, Page::new(&leaf), key)?;
        Ok((leaf, found))
    }

    /// The leaf that covers `key`, under its exclusive latch. Only the writer changes pages, so no page can change
    /// between a shared and an exclusive latch.
    pub(super) fn latch_leaf<'s, S: PageWrite>(&self, store: &'s S, key: &[u8]) -> Result<S::Mut<'s>> {
        let mut id = self.root;
        let mut latched = store.read(id)?;
        let mut level = Page::new(&latched).level();
        while level > 0 {
            let page = Page::new(&latched);
            self.check_page(page, id, level)?;
            let slot = self.slot_for(store, page, LeafTarget::Covering(key))?;
            id = child_of(page, slot)?;
            level -= 1;
            if level > 0 {
                let child = store.fetch(id).map_or_else(|| store.read(id), Ok)?;
                latched = child;
            } else {
                store.prefetch(id);
            }
        }
        drop(latched);
        let leaf = store.latch(id)?;
        let page = Page::new(&leaf);
        self.check_page(page, id, 0)?;
        self.check_target(page, LeafTarget::Covering(key))?;
        Ok(leaf)
    }
}

/// Checks that a page may contain the entry.
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

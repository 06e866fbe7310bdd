//! Finds the places of many keys, for the writer. It works level by level: neighbouring keys share the read of a page,
//! and the pages of some keys are fetched from memory while others are searched.

use super::edit::slot_u16;
use super::search::{LeafTarget, child_of};
use super::{PageRead, Tree};
use crate::base::{Lsn, PageId, Result, limits};
use crate::page::Page;

/// The number of keys that are searched together. Their state fits in the caches of the processor.
const BATCH: usize = 256;
/// The number of keys between the key that is searched and the one whose page is prefetched.
const AHEAD: usize = 8;

/// The place of a key as the writer found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeafHint {
    /// The leaf that covers the key.
    pub leaf: PageId,
    /// The LSN of the leaf. As long as the leaf has this LSN, the hint is right.
    pub lsn: Lsn,
    /// The slot of the key, or the slot where it would be inserted.
    pub slot: u16,
    /// True if the key exists.
    pub there: bool,
    /// How many inner pages of the path to the leaf are not on the path of the key before, as far as the writer knows.
    pub inner: u8,
}

impl LeafHint {
    /// A hint without any information.
    pub const NONE: LeafHint = LeafHint { leaf: PageId::NONE, lsn: Lsn(0), slot: 0, there: false, inner: 0 };

    /// The same result as [`Page::search`].
    #[inline]
    pub(super) fn found(self) -> std::result::Result<usize, usize> {
        if self.there { Ok(self.slot.into()) } else { Err(self.slot.into()) }
    }
}

/// A key that is searched, and the page of its path that has been reached.
struct Sought<'k> {
    key: &'k [u8],
    page: PageId,
    /// The same field as in [`LeafHint`].
    inner: u8,
}

impl Tree {
    /// Finds the places of `keys`, which are sorted, and calls `each` with each place, in the same order.
    ///
    /// Only for the single writer: no latch is held between two levels, so no page may change in the meantime.
    ///
    /// # Errors
    /// The errors of the store, and of pages that do not match their parents.
    pub fn find_many<'k, S: PageRead>(
        &self,
        store: &S,
        mut keys: impl Iterator<Item = &'k [u8]>,
        mut each: impl FnMut(LeafHint),
    ) -> Result<()> {
        let height = Page::new(&store.read(self.root)?).level();
        let sought = |key| Sought { key, page: self.root, inner: 0 };
        let most = keys.size_hint().1.unwrap_or(BATCH).min(BATCH);
        // A commit of one write must not allocate memory for a batch.
        if most == 1 {
            let mut batch = keys.next().map(sought);
            debug_assert!(keys.next().is_none(), "there are more keys than their iterator has announced");
            return self.find_batch(store, height, batch.as_mut_slice(), &mut each);
        }
        let mut batch = Vec::with_capacity(most);
        keys.try_for_each(|key| {
            batch.push(sought(key));
            if batch.len() < BATCH {
                return Ok(());
            }
            self.find_batch(store, height, &mut batch, &mut each)?;
            batch.clear();
            Ok(())
        })?;
        self.find_batch(store, height, &mut batch, &mut each)
    }

    /// Finds the place of `key` if it is after the last entry of its leaf, and calls `look` with the key of that entry.
    /// Only for the single writer.
    ///
    /// # Errors
    /// The same as for [`Tree::find_many`].
    pub fn find_behind<S: PageRead, R>(
        &self,
        store: &S,
        key: &[u8],
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<(R, LeafHint)>> {
        let page_size = store.page_size();
        if key.len() > limits::long_key_head(page_size) {
            return Ok(None);
        }
        let mut path = Vec::new();
        let behind = self.leaf_with_path(store, LeafTarget::Covering(key), &mut path, |leaf| {
            let (slot, mut last) = (leaf.count().checked_sub(1)?, Vec::new());
            leaf.key_into(slot, &mut last);
            // If the last key were below the lower fence, keys between the two would belong to the leaf before.
            let is_whole = self.is_whole_in(leaf.keys(), last.len(), page_size);
            if !is_whole || last.as_slice() >= key || !leaf.covers(&last) {
                return None;
            }
            let slot = u16::try_from(leaf.count()).ok()?;
            Some((look(&last), LeafHint { leaf: leaf.id(), lsn: leaf.lsn(), slot, there: false, inner: 0 }))
        })?;
        let inner = u8::try_from(path.len()).unwrap_or(u8::MAX);
        Ok(behind.map(|(looked, hint)| (looked, LeafHint { inner, ..hint })))
    }

    /// Finds the places of these keys. Their pages are the root, and the tree has this height.
    fn find_batch<S: PageRead>(
        &self,
        store: &S,
        height: u8,
        keys: &mut [Sought<'_>],
        each: &mut impl FnMut(LeafHint),
    ) -> Result<()> {
        for level in (1..=height).rev() {
            self.step_down(store, level, keys)?;
        }
        store.will_read(keys.chunk_by(|a, b| a.page == b.page).filter_map(|same| Some(same.first()?.page)));
        self.search_leaves(store, keys, each)
    }

    /// Replaces the page of each key, which has this level, by the child that covers the key.
    fn step_down<S: PageRead>(&self, store: &S, level: u8, keys: &mut [Sought<'_>]) -> Result<()> {
        let mut rest = keys;
        let inline = limits::long_key_head(store.page_size());
        while let Some(first) = rest.first_mut() {
            first.inner += 1;
            let id = first.page;
            let latched = store.read(id)?;
            let page = Page::new(&latched);
            self.check_page(page, id, level)?;
            let (mut same, mut slot, mut child) = (0, 0, PageId::NONE);
            while let Some(Sought { key, page: at, .. }) = rest.get_mut(same).filter(|sought| sought.page == id) {
                // The keys are sorted, so a key often has the same child as the key before. The last child has no upper
                // bound.
                let last = slot + 1 == page.count();
                let known = same > 0 && (last || key.len() <= inline && page.is_above(slot + 1, key));
                if !known {
                    slot = self.slot_for(store, page, LeafTarget::Covering(key))?;
                    child = child_of(page, slot)?;
                    store.prefetch_place_of(child);
                }
                *at = child;
                same += 1;
                fetch_ahead(store, rest.get(same..).unwrap_or_default());
            }
            rest = rest.get_mut(same..).unwrap_or_default();
        }
        Ok(())
    }

    fn search_leaves<S: PageRead>(
        &self,
        store: &S,
        keys: &[Sought<'_>],
        each: &mut impl FnMut(LeafHint),
    ) -> Result<()> {
        let mut rest = keys;
        while let Some(&Sought { page: id, .. }) = rest.first() {
            let latched = store.read(id)?;
            let leaf = Page::new(&latched);
            self.check_page(leaf, id, 0)?;
            let same = rest.iter().take_while(|sought| sought.page == id).count();
            let (here, others) = rest.split_at_checked(same.max(1)).unwrap_or_default();
            // The keys are sorted: if the first and the last are within the fences, all are.
            let outermost = [here.first(), here.last().filter(|_| here.len() > 1)];
            for sought in outermost.into_iter().flatten() {
                self.check_target(leaf, LeafTarget::Covering(sought.key))?;
            }
            let mut found = Ok(0);
            for (i, &Sought { key, inner, .. }) in here.iter().enumerate() {
                fetch_ahead(store, rest.get(i + 1..).unwrap_or_default());
                // The keys are sorted: if one is greater than all keys of the leaf, so are the following ones.
                if found != Err(leaf.count()) {
                    found = self.locate(store, leaf, key)?;
                }
                let (Ok(slot) | Err(slot)) = found;
                let slot = slot_u16(leaf, slot)?;
                each(LeafHint { leaf: id, lsn: leaf.lsn(), slot, there: found.is_ok(), inner });
            }
            rest = others;
        }
        Ok(())
    }
}

/// Prefetches the page of a later key, unless the key before it has the same page.
#[inline]
fn fetch_ahead<S: PageRead>(store: &S, keys: &[Sought<'_>]) {
    if let [.., before, sought] = keys.get(..AHEAD).unwrap_or_default()
        && before.page != sought.page
    {
        store.prefetch(sought.page);
    }
}

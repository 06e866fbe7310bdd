//! Descents from the root to the leaf of a search. Each page is checked against its entry in its parent.

use super::attempts::Attempts;
use super::{KeyRange, LeafReadAhead, PageRead, Tree};
use crate::base::{Error, PageId, Result};
use crate::page::{Page, Record};

/// The highest level that a page may have. With two entries in each page, such a tree would have more pages than there
/// are ids.
pub(super) const MAX_LEVEL: u8 = 63;

/// If the leaves have at most this number of bytes, they stay in the caches of the processor, and prefetching parts of
/// them is not worth it.
const CACHED_LEAVES: usize = 2 << 20;

/// Two parts of a page, as byte ranges.
type LikelyParts = [std::ops::Range<usize>; 2];

/// The capacity that is reserved for the levels of a path.
const USUAL_HEIGHT: usize = 8;

/// The leaf that a descent selects.
#[derive(Clone, Copy, Debug)]
pub enum LeafTarget<'a> {
    /// The leftmost leaf.
    First,
    /// The rightmost leaf.
    Last,
    /// The leaf whose range contains the key.
    Covering(&'a [u8]),
    /// The leaf whose range contains the greatest keys below this one, or the leftmost leaf if there are none. A
    /// reverse cursor continues there from the lower fence of its leaf.
    Before(&'a [u8]),
}

impl KeyRange {
    /// True if `target` may select a leaf with this range.
    pub(super) fn is_for(&self, target: LeafTarget<'_>) -> bool {
        match target {
            LeafTarget::First | LeafTarget::Last => true,
            LeafTarget::Covering(key) => self.contains(key),
            LeafTarget::Before(key) => {
                let above = self.lower.is_empty() || self.lower.as_slice() < key;
                above && self.upper.as_deref().is_none_or(|upper| key <= upper)
            }
        }
    }
}

/// An event of a descent.
pub(super) enum Descent<'p> {
    /// It begins at the root, for the first time or again: events before this one do not count.
    Begins,
    /// It has latched an inner page and continues with the child at this slot.
    Passes(Page<'p>, usize),
}

/// A step of a descent: an inner page and the slot of the chosen child.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathStep {
    pub(super) id: PageId,
    pub(super) slot: usize,
}

impl Tree {
    /// Finds the leaf that covers `key` and calls `f` with it and the record of the key, under the shared latch of the
    /// leaf.
    pub fn get<S: PageRead, R>(
        &self,
        store: &S,
        key: &[u8],
        f: impl FnOnce(Page<'_>, Option<Record<'_>>) -> R,
    ) -> Result<R> {
        let attempts = Attempts::new(store);
        loop {
            let leaf = self.descend_in(&attempts, LeafTarget::Covering(key), |_| Ok(()))?;
            let page = Page::new(&leaf);
            match self.locate(&attempts, page, key) {
                Ok(found) => return Ok(f(page, found.ok().map(|slot| page.record(slot)))),
                Err(error) => attempts.again(leaf, error)?,
            }
        }
    }

    /// Calls `f` with the leaf whose range contains `key`, under its shared latch.
    pub fn leaf_for<S: PageRead, R>(&self, store: &S, key: &[u8], f: impl FnOnce(Page<'_>) -> R) -> Result<R> {
        self.leaf_at(store, LeafTarget::Covering(key), f)
    }

    /// Like [`Tree::leaf_at`]. `path` gets the ids of the inner pages on the path, from the root on.
    pub fn leaf_with_path<S: PageRead, R>(
        &self,
        store: &S,
        target: LeafTarget<'_>,
        path: &mut Vec<PageId>,
        f: impl FnOnce(Page<'_>) -> R,
    ) -> Result<R> {
        let leaf = self.descend_with(store, target, |event| {
            match event {
                Descent::Begins => path.clear(),
                Descent::Passes(page, _) => path.push(page.id()),
            }
            Ok(())
        })?;
        Ok(f(Page::new(&leaf)))
    }

    /// Calls `f` with the rightmost leaf, under its shared latch.
    pub fn last_leaf<S: PageRead, R>(&self, store: &S, f: impl FnOnce(Page<'_>) -> R) -> Result<R> {
        self.leaf_at(store, LeafTarget::Last, f)
    }

    /// Calls `f` with the leaf whose range contains the greatest keys below `key`, as [`LeafTarget::Before`] does,
    /// under its shared latch.
    pub fn leaf_before<S: PageRead, R>(&self, store: &S, key: &[u8], f: impl FnOnce(Page<'_>) -> R) -> Result<R> {
        self.leaf_at(store, LeafTarget::Before(key), f)
    }

    /// The keys between the subtrees of the root, in order. There are none if the root is a leaf.
    pub fn dividers<S: PageRead>(&self, store: &S) -> Result<Vec<Vec<u8>>> {
        let attempts = Attempts::new(store);
        loop {
            let root = store.read(self.root)?;
            match self.dividers_of(&attempts, Page::new(&root)) {
                Err(error) => attempts.again(root, error)?,
                dividers => return dividers,
            }
        }
    }

    fn dividers_of<S: PageRead>(&self, attempts: &Attempts<'_, S>, root: Page<'_>) -> Result<Vec<Vec<u8>>> {
        let mut dividers = Vec::new();
        for slot in if root.is_inner() { 1..root.count() } else { 0..0 } {
            let mut key = Vec::new();
            attempts.note(self.full_key(attempts, root, slot, &mut key))?;
            dividers.push(key);
        }
        attempts.complete().map(|()| dividers)
    }

    /// Calls `f` with the leaf that `target` selects, under its shared latch.
    pub fn leaf_at<S: PageRead, R>(
        &self,
        store: &S,
        target: LeafTarget<'_>,
        f: impl FnOnce(Page<'_>) -> R,
    ) -> Result<R> {
        let leaf = self.descend(store, target)?;
        Ok(f(Page::new(&leaf)))
    }

    /// Calls `f` with the leaf whose range contains `key`, and while it returns true, with the next leaf to the right,
    /// each under its shared latch. It ends early if a right link does not lead to the next leaf, or leads to a page
    /// that cannot be read. A caller that needs more leaves descends again; then a damaged page gives an error.
    pub fn leaves_from<S: PageRead>(
        &self,
        store: &S,
        key: &[u8],
        ahead: &mut LeafReadAhead,
        mut f: impl FnMut(Page<'_>) -> Result<bool>,
    ) -> Result<()> {
        let mut latched = self.descend(store, LeafTarget::Covering(key))?;
        let mut upper = Vec::new();
        loop {
            let leaf = Page::new(&latched);
            let right = leaf.right();
            if !right.is_none() {
                store.prefetch(right);
            }
            if !f(leaf)? || right.is_none() || right == leaf.id() || !leaf.upper_fence_into(&mut upper) {
                return Ok(());
            }
            // While this latch is held, the link does not change. But if the leaf has been detached, the link may be
            // out of date: the page may be free by now, or another page.
            let next = match store.fetch(right) {
                Some(next) => {
                    ahead.pass();
                    next
                }
                None => match read_missing(store, latched, right, || ahead.step(self, store, right, &upper)) {
                    Ok(Some(next)) => next,
                    Ok(None) | Err(Error::Corrupt { .. }) => return Ok(()),
                    Err(error) => return Err(error),
                },
            };
            let page = Page::new(&next);
            if self.check_page(page, right, 0).is_err() || page.lower_fence() != upper.as_slice() {
                return Ok(());
            }
            latched = next;
        }
    }

    /// The leaf that `target` selects, latched. The latch of each page is held until the child is latched, but not
    /// while a child is read from a device.
    #[inline]
    pub(super) fn descend<'s, S: PageRead>(&self, store: &'s S, target: LeafTarget<'_>) -> Result<S::Ref<'s>> {
        self.descend_with(store, target, |_| Ok(()))
    }

    /// Like [`Tree::descend`]. `note` is called with each event of the descent, in order.
    #[inline]
    pub(super) fn descend_with<'s, S: PageRead>(
        &self,
        store: &'s S,
        target: LeafTarget<'_>,
        note: impl FnMut(Descent<'_>) -> Result<()>,
    ) -> Result<S::Ref<'s>> {
        self.descend_in(&Attempts::new(store), target, note)
    }

    /// Like [`Tree::descend_with`], for a search that needs keys of the leaf, or for a `note` that needs keys of inner
    /// pages: they are read with `attempts`.
    #[inline]
    pub(super) fn descend_in<'s, S: PageRead>(
        &self,
        attempts: &Attempts<'s, S>,
        target: LeafTarget<'_>,
        mut note: impl FnMut(Descent<'_>) -> Result<()>,
    ) -> Result<S::Ref<'s>> {
        loop {
            note(Descent::Begins)?;
            if let Some(leaf) = self.try_descend(attempts, target, &mut note)? {
                return Ok(leaf);
            }
        }
    }

    /// One attempt of [`Tree::descend_in`]. `None` if it has to restart.
    #[inline(always)]
    fn try_descend<'s, S: PageRead>(
        &self,
        attempts: &Attempts<'s, S>,
        target: LeafTarget<'_>,
        note: &mut impl FnMut(Descent<'_>) -> Result<()>,
    ) -> Result<Option<S::Ref<'s>>> {
        let store = attempts.store();
        let mut id = self.root;
        let mut latched = store.read(id)?;
        let mut level = Page::new(&latched).level();
        loop {
            let page = Page::new(&latched);
            self.check_page(page, id, level)?;
            if level == 0 {
                // A wrong child on the path is detected here, because the ranges of leaves do not overlap.
                self.check_target(page, target)?;
                return Ok(Some(latched));
            }
            let found = self.slot_for(attempts, page, target);
            let slot = match found.and_then(|slot| note(Descent::Passes(page, slot)).map(|()| slot)) {
                Ok(slot) => slot,
                Err(error) => return attempts.again(latched, error).map(|()| None),
            };
            id = child_of(page, slot)?;
            let parts = if level == 1 { self.parts_of_leaf(page, slot, target, store.page_size()) } else { None };
            let child = match parts {
                Some(parts) => store.fetch_parts(id, parts),
                None => store.fetch(id),
            };
            latched = match child {
                Some(child) => child,
                None if attempts.keeps_latch() => store.read(id)?,
                None => match read_missing(store, latched, id, || ())? {
                    Some(child) => child,
                    None => {
                        attempts.count();
                        return Ok(None);
                    }
                },
            };
            level -= 1;
        }
    }

    /// For a parent of leaves: the parts of the child at `slot` that a search for the key will probably read. They are
    /// fetched at the same time.
    #[inline]
    fn parts_of_leaf(
        &self,
        page: Page<'_>,
        slot: usize,
        target: LeafTarget<'_>,
        page_size: usize,
    ) -> Option<LikelyParts> {
        let LeafTarget::Covering(key) = target else { return None };
        if page.id() == self.root && page.count() * page_size <= CACHED_LEAVES {
            return None;
        }
        page.likely_parts((self.layout.leaf, self.layout.records), slot, key)
    }

    /// How far the keys around `key` are affected by damage. Returns the upper bound, as a whole key, of the lowest
    /// page on the path to `key` that a parent refers to, and the error if that page or its path below cannot be read.
    /// Without an error, that page is the leaf.
    pub fn reach<S: PageRead>(&self, store: &S, key: &[u8]) -> (Option<Vec<u8>>, Result<()>) {
        let attempts = Attempts::new(store);
        let mut range = KeyRange::default();
        let found = self.descend_in(&attempts, LeafTarget::Covering(key), |event| {
            range = match event {
                Descent::Begins => KeyRange::default(),
                Descent::Passes(page, slot) => self.child_range(&attempts, page, slot, &range)?,
            };
            Ok(())
        });
        let found = found.map(drop);
        (range.upper, found)
    }

    /// The slot of the child of an inner page to descend to.
    #[inline]
    pub(super) fn slot_for<S: PageRead>(&self, store: &S, page: Page<'_>, target: LeafTarget<'_>) -> Result<usize> {
        Ok(match target {
            LeafTarget::First => 0,
            LeafTarget::Last => page.count().saturating_sub(1),
            LeafTarget::Covering(key) => match self.locate(store, page, key)? {
                Ok(slot) => slot,
                Err(slot) => slot.saturating_sub(1),
            },
            LeafTarget::Before(key) => {
                let (Ok(slot) | Err(slot)) = self.locate(store, page, key)?;
                slot.saturating_sub(1)
            }
        })
    }

    /// Checks that a page belongs to this tree and has the expected level.
    #[inline]
    pub(super) fn check_page(&self, page: Page<'_>, id: PageId, level: u8) -> Result<()> {
        let fits = if level == 0 { page.is_leaf() } else { page.is_inner() && page.count() > 0 };
        if fits && page.level() == level && page.table() == self.table && page.id() == id && level <= MAX_LEVEL {
            return Ok(());
        }
        Err(self.misplaced(page, id, level))
    }

    #[cold]
    fn misplaced(&self, page: Page<'_>, id: PageId, level: u8) -> Error {
        let what = format!(
            "expected page {id} of table {} at level {level}, found page {} of table {} at level {}, a {:?} page of {} entries",
            self.table,
            page.id(),
            page.table(),
            page.level(),
            page.kind(),
            page.count(),
        );
        Error::corrupt(id, what)
    }

    /// Checks that the fences of a page allow the target.
    #[inline]
    pub(super) fn check_target(&self, page: Page<'_>, target: LeafTarget<'_>) -> Result<()> {
        match target {
            LeafTarget::Covering(key) if !page.may_cover(key) => Err(wrong_fences(page)),
            _ => Ok(()),
        }
    }

    /// The path to the leaf that covers `key`: the inner pages from the root on, and the leaf. Only for the writer,
    /// because no page may change in the meantime.
    pub(super) fn path_to<S: PageRead>(&self, store: &S, key: &[u8]) -> Result<(Vec<PathStep>, PageId)> {
        let mut path = Vec::with_capacity(USUAL_HEIGHT);
        let leaf = self.descend_with(store, LeafTarget::Covering(key), |event| {
            PathStep::note(event, &mut path);
            Ok(())
        })?;
        Ok((path, Page::new(&leaf).id()))
    }

    /// The range of a child, as whole keys, from the separators around it. Without a separator on one side, the bound
    /// of the page's own range is used.
    pub(super) fn child_range<S: PageRead>(
        &self,
        store: &S,
        page: Page<'_>,
        slot: usize,
        range: &KeyRange,
    ) -> Result<KeyRange> {
        let mut child = KeyRange::default();
        if slot == 0 {
            child.lower.clone_from(&range.lower);
        } else {
            self.full_key(store, page, slot, &mut child.lower)?;
        }
        if slot + 1 < page.count() {
            let mut upper = Vec::new();
            self.full_key(store, page, slot + 1, &mut upper)?;
            child.upper = Some(upper);
        } else {
            child.upper.clone_from(&range.upper);
        }
        Ok(child)
    }
}

impl PathStep {
    /// Adds an event of a descent to the steps of the descent.
    pub(super) fn note(event: Descent<'_>, path: &mut Vec<PathStep>) {
        match event {
            Descent::Begins => path.clear(),
            Descent::Passes(page, slot) => path.push(PathStep { id: page.id(), slot }),
        }
    }
}

/// Reads a page that is not in memory, and to which the latched page `from` refers. The latch is released meanwhile,
/// and `hint` is called while nothing is latched. Returns the page, latched, or `None` if `from` may not refer to the
/// page any more.
#[cold]
#[inline(never)]
fn read_missing<'s, S: PageRead>(
    store: &'s S,
    from: S::Ref<'s>,
    missing: PageId,
    hint: impl FnOnce(),
) -> Result<Option<S::Ref<'s>>> {
    let page = Page::new(&from);
    let (id, lsn, frees) = (page.id(), page.lsn(), store.frees());
    drop(from);
    hint();
    // An error counts only if the page still refers to the missing one; then it occurs again below.
    drop(store.read(missing));
    let Ok(from) = store.read(id) else { return Ok(None) };
    // Each change of a page raises its LSN. Freeing a page does not change it.
    if Page::new(&from).lsn() != lsn || Page::new(&from).id() != id {
        return Ok(None);
    }
    let found = store.read(missing);
    // If `from` was freed, and then the tree changed or freed the missing page, the counter was raised before that. So
    // it is compared while the missing page is latched.
    if store.frees() == frees { found.map(Some) } else { Ok(None) }
}

/// The error of a page whose fences do not match the separators of its parent.
#[cold]
pub(super) fn wrong_fences(page: Page<'_>) -> Error {
    Error::corrupt(page.id(), "its fences do not match its parent")
}

/// The child at `slot`, which must exist. It is never the page itself, whose latch the caller may hold.
#[inline]
pub(super) fn child_of(page: Page<'_>, slot: usize) -> Result<PageId> {
    let child = page.child(slot);
    if child.is_none() || child == page.id() || slot >= page.count() {
        return Err(Error::corrupt(
            page.id(),
            format!("slot {slot} refers to page {child}, which cannot be its child"),
        ));
    }
    Ok(child)
}

//! Going down: from the root to the leaf that a search wants, each page checked against what its parent says of it.

use super::{PageRead, Tree};
use crate::base::{Error, PageId, Result};
use crate::page::{Page, Record, RecordListKind};

/// The highest level that a page may claim: with two entries a page, more pages than there are ids.
pub(super) const MAX_LEVEL: u8 = 63;

/// Bytes of leaves that stay in a processor's own caches, so that there is nothing to ask for.
const CACHED_LEAVES: usize = 2 << 20;

/// Two parts of a page's bytes.
type Parts = [std::ops::Range<usize>; 2];

/// Levels that the way to a leaf is made room for.
const USUAL_HEIGHT: usize = 8;

/// Which leaf a descent ends at.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// The leftmost one.
    First,
    /// The rightmost one.
    Last,
    /// The one whose range the key falls in.
    Covering(&'a [u8]),
    /// The one whose range holds the greatest keys below this one: where a reverse cursor goes on from a leaf's lower
    /// fence. The leftmost one if there are none below.
    Before(&'a [u8]),
}

/// A range as whole keys: at least `lower`, below `upper` if there is one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) lower: Vec<u8>,
    pub(super) upper: Option<Vec<u8>>,
}

impl Range {
    /// True where `target` may lead to a leaf of this range.
    pub(super) fn is_for(&self, target: Target<'_>) -> bool {
        let below = |key: &[u8]| self.upper.as_ref().is_none_or(|upper| key < upper.as_slice());
        match target {
            Target::First | Target::Last => true,
            Target::Covering(key) => self.lower.as_slice() <= key && below(key),
            Target::Before(key) => {
                let above = self.lower.is_empty() || self.lower.as_slice() < key;
                above && (below(key) || self.upper.as_deref() == Some(key))
            }
        }
    }
}

/// A step of a descent: an inner page and the slot of the child that was taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) id: PageId,
    pub(super) slot: usize,
}

impl Tree {
    /// Finds the leaf that covers `key` and runs `f` on it and the key's record, under the leaf's shared latch.
    pub fn get<S: PageRead, R>(
        &self,
        store: &S,
        key: &[u8],
        f: impl FnOnce(Page<'_>, Option<Record<'_>>) -> R,
    ) -> Result<R> {
        let leaf = self.descend(store, Target::Covering(key))?;
        let page = Page::new(&leaf);
        let found = self.locate(store, page, key)?;
        Ok(f(page, found.ok().map(|slot| page.record(slot))))
    }

    /// Runs `f` on the leaf whose range `key` falls in, under its shared latch.
    pub fn leaf_for<S: PageRead, R>(&self, store: &S, key: &[u8], f: impl FnOnce(Page<'_>) -> R) -> Result<R> {
        self.leaf_at(store, Target::Covering(key), f)
    }

    /// As [`Tree::leaf_for`]; `way` becomes the inner pages on the way there, from the root on.
    pub fn way_to<S: PageRead, R>(
        &self,
        store: &S,
        target: Target<'_>,
        way: &mut Vec<PageId>,
        f: impl FnOnce(Page<'_>) -> R,
    ) -> Result<R> {
        way.clear();
        let leaf = self.descend_noting(store, target, |page, _| {
            way.push(page.id());
            Ok(())
        })?;
        Ok(f(Page::new(&leaf)))
    }

    /// Runs `f` on the rightmost leaf, under its shared latch.
    pub fn last_leaf<S: PageRead, R>(&self, store: &S, f: impl FnOnce(Page<'_>) -> R) -> Result<R> {
        self.leaf_at(store, Target::Last, f)
    }

    /// Runs `f` on the leaf whose range holds the greatest keys below `key` (see [`Target::Before`]), under its
    /// shared latch.
    pub fn leaf_before<S: PageRead, R>(&self, store: &S, key: &[u8], f: impl FnOnce(Page<'_>) -> R) -> Result<R> {
        self.leaf_at(store, Target::Before(key), f)
    }

    /// The keys between the root's subtrees, in order; none where the root is a leaf.
    pub fn dividers<S: PageRead>(&self, store: &S) -> Result<Vec<Vec<u8>>> {
        let root = store.read(self.root)?;
        let page = Page::new(&root);
        let slots = if page.is_inner() { 1..page.count() } else { 0..0 };
        slots
            .map(|slot| {
                let mut key = Vec::new();
                self.full_key(store, page, slot, &mut key).map(|()| key)
            })
            .collect()
    }

    /// Runs `f` on the leaf that `target` names, under its shared latch.
    pub fn leaf_at<S: PageRead, R>(&self, store: &S, target: Target<'_>, f: impl FnOnce(Page<'_>) -> R) -> Result<R> {
        let leaf = self.descend(store, target)?;
        Ok(f(Page::new(&leaf)))
    }

    /// Runs `f` on the leaf whose range `key` falls in, and as long as it says so on the next to the right, each under its
    /// shared latch. It ends early where a right link does not lead to the next leaf, or to a page that cannot be read: who
    /// needs more descends again, and learns then whether that page is damaged.
    pub fn leaves_from<S: PageRead>(
        &self,
        store: &S,
        key: &[u8],
        mut f: impl FnMut(Page<'_>) -> Result<bool>,
    ) -> Result<()> {
        let mut latched = self.descend(store, Target::Covering(key))?;
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
            // While this latch is held the link stays. But if the leaf has been detached, it may be old: what it led to may be freed
            // by now, or another page.
            let next = match store.read(right) {
                Err(Error::Corrupt { .. }) => return Ok(()),
                next => next?,
            };
            let page = Page::new(&next);
            if self.check_page(page, right, 0).is_err() || page.lower_fence() != upper.as_slice() {
                return Ok(());
            }
            latched = next;
        }
    }

    /// The leaf that `target` names, latched; each page's latch is given up once its child's is held.
    #[inline]
    pub(super) fn descend<'s, S: PageRead>(&self, store: &'s S, target: Target<'_>) -> Result<S::Ref<'s>> {
        self.descend_noting(store, target, |_, _| Ok(()))
    }

    /// As [`Tree::descend`]; `note` sees each inner page, latched, and the slot that is taken in it.
    #[inline]
    pub(super) fn descend_noting<'s, S: PageRead>(
        &self,
        store: &'s S,
        target: Target<'_>,
        mut note: impl FnMut(Page<'_>, usize) -> Result<()>,
    ) -> Result<S::Ref<'s>> {
        let mut id = self.root;
        let mut latched = store.read(id)?;
        let mut level = Page::new(&latched).level();
        loop {
            let page = Page::new(&latched);
            self.check_page(page, id, level)?;
            if level == 0 {
                // A wrong turn on the way shows here: what leaves say of themselves divides the keys among them.
                self.check_target(page, target)?;
                return Ok(latched);
            }
            let slot = self.slot_for(store, page, target)?;
            note(page, slot)?;
            id = child_of(page, slot)?;
            let parts = if level == 1 { self.parts_of_leaf(page, slot, target, store.page_size()) } else { None };
            let child = match parts {
                Some(parts) => store.fetch_parts(id, parts)?,
                None => store.fetch(id)?,
            };
            latched = child;
            level -= 1;
        }
    }

    /// Of a parent of leaves: what of the child at `slot` a search for the key will read, where keys and bytes lie so evenly
    /// that the separators around the child tell. So the key's bytes and the index that leads to them are waited for once.
    #[inline]
    fn parts_of_leaf(&self, page: Page<'_>, slot: usize, target: Target<'_>, page_size: usize) -> Option<Parts> {
        let Target::Covering(key) = target else { return None };
        if page.id() == self.root && page.count() * page_size <= CACHED_LEAVES {
            return None;
        }
        // Beside records keys have only a part of the page, and which one is not known here.
        if self.layout.records != RecordListKind::None {
            return None;
        }
        page.likely_parts(self.layout.leaf, slot, key)
    }

    /// How far damage reaches: the end, as a whole key, of the range of the lowest page on the way to `key` that something
    /// leads to; and the error, if that page or the way from it cannot be read. Without one, the page is the leaf.
    pub fn reach<S: PageRead>(&self, store: &S, key: &[u8]) -> (Option<Vec<u8>>, Result<()>) {
        let mut range = Range::default();
        let found = self.descend_noting(store, Target::Covering(key), |page, slot| {
            range = self.child_range(store, page, slot, &range)?;
            Ok(())
        });
        let found = found.map(drop);
        (range.upper, found)
    }

    /// Of an inner page: the slot of the child to descend to.
    #[inline]
    pub(super) fn slot_for<S: PageRead>(&self, store: &S, page: Page<'_>, target: Target<'_>) -> Result<usize> {
        Ok(match target {
            Target::First => 0,
            Target::Last => page.count().saturating_sub(1),
            Target::Covering(key) => match self.locate(store, page, key)? {
                Ok(slot) => slot,
                Err(slot) => slot.saturating_sub(1),
            },
            Target::Before(key) => {
                let (Ok(slot) | Err(slot)) = self.locate(store, page, key)?;
                slot.saturating_sub(1)
            }
        })
    }

    /// Whether a page is one of this tree's, at the level where it was met.
    #[inline]
    pub(super) fn check_page(&self, page: Page<'_>, id: PageId, level: u8) -> Result<()> {
        let sort = if level == 0 { page.is_leaf() } else { page.is_inner() && page.count() > 0 };
        if sort && page.level() == level && page.table() == self.table && page.id() == id && level <= MAX_LEVEL {
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

    /// Whether the page's fences admit what led to it.
    #[inline]
    pub(super) fn check_target(&self, page: Page<'_>, target: Target<'_>) -> Result<()> {
        match target {
            Target::Covering(key) if !page.may_cover(key) => {
                Err(Error::corrupt(page.id(), "its fences are not those that its parent says"))
            }
            _ => Ok(()),
        }
    }

    /// The way to the leaf that covers `key`: the inner pages from the root on, and the leaf. For the writer, which
    /// knows that no page changes meanwhile.
    pub(super) fn path_to<S: PageRead>(&self, store: &S, key: &[u8]) -> Result<(Vec<Step>, PageId)> {
        let mut path = Vec::with_capacity(USUAL_HEIGHT);
        let leaf = self.descend_noting(store, Target::Covering(key), |page, slot| {
            path.push(Step { id: page.id(), slot });
            Ok(())
        })?;
        Ok((path, Page::new(&leaf).id()))
    }

    /// The range of a child as whole keys, from the separators around it; where the page has none on that side, the
    /// page's own range says it.
    pub(super) fn child_range<S: PageRead>(
        &self,
        store: &S,
        page: Page<'_>,
        slot: usize,
        range: &Range,
    ) -> Result<Range> {
        let mut child = Range::default();
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

/// The child at `slot`, which must be there; never the page itself, whose latch the caller may hold.
#[inline]
pub(super) fn child_of(page: Page<'_>, slot: usize) -> Result<PageId> {
    let child = page.child(slot);
    if child.is_none() || child == page.id() || slot >= page.count() {
        return Err(Error::corrupt(page.id(), format!("slot {slot} leads to page {child}, which is no child")));
    }
    Ok(child)
}

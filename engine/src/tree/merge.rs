//! Merging: if the entries of a page take less than a quarter of it, the page is joined with a neighbour under the same
//! parent, if both fit in one page. A root with one child gets the content of the child.

use super::edit::{is_underfull, peek, slot_u16};
use super::search::{LeafTarget, child_of};
use super::split::fences;
use super::{PageRead, PageWrite, Tree};
use crate::base::{Error, PageId, Result};
use crate::page::{Page, PageBuilder, PageOp};

/// `None` for a page that cannot be read. Merging only saves space, so an unreadable neighbour is not an error.
pub(super) fn unless_unreadable<T>(read: Result<T>) -> Result<Option<T>> {
    match read {
        Err(error) if error.is_of_a_page() => Ok(None),
        other => other.map(Some),
    }
}

impl Tree {
    /// Merges pages on the path to `key` that have become underfull, and lowers the root while it has one child.
    pub(super) fn rebalance<S: PageWrite>(&self, store: &S, key: &[u8]) -> Result<()> {
        // Each round that returns true has freed a page.
        while self.merge_towards(store, key)? || self.collapse_root(store)? {}
        Ok(())
    }

    /// Works from the root down, so that children come under one parent before they are merged. Returns true if pages
    /// were merged. Ends at an unreadable page: `key` may be the end of a removed range, and its leaf was not read
    /// before.
    fn merge_towards<S: PageWrite>(&self, store: &S, key: &[u8]) -> Result<bool> {
        let mut merged = false;
        let mut id = self.root;
        let mut level = peek(store, id, |page| page.level())?;
        while level > 0 {
            let Some((slot, child, count)) = unless_unreadable(self.child_towards(store, (id, level), key))? else {
                break;
            };
            let Some(underfull) = unless_unreadable(peek(store, child, is_underfull))? else { break };
            if underfull {
                let lefts = [slot.checked_sub(1), (slot + 1 < count).then_some(slot)];
                let mut done = false;
                for left in lefts.into_iter().flatten() {
                    done = done || self.merge_children(store, id, left)?;
                }
                if done {
                    merged = true;
                    continue;
                }
            }
            id = child;
            level -= 1;
        }
        Ok(merged)
    }

    /// The slot and the id of the child of an inner page to which the path to `key` leads, and the number of children.
    fn child_towards<S: PageRead>(
        &self,
        store: &S,
        (id, level): (PageId, u8),
        key: &[u8],
    ) -> Result<(usize, PageId, usize)> {
        let latched = store.read(id)?;
        let page = Page::new(&latched);
        self.check_page(page, id, level)?;
        let slot = self.slot_for(store, page, LeafTarget::Covering(key))?;
        Ok((slot, child_of(page, slot)?, page.count()))
    }

    /// Joins the children at `slot` and `slot + 1` of page `id` if they fit in one page with a quarter to spare, or if
    /// one of them is empty. Returns true if they were joined.
    fn merge_children<S: PageWrite>(&self, store: &S, id: PageId, slot: usize) -> Result<bool> {
        // The separator of inner pages moves down and keeps its run. The separator of leaves is dropped. Runs are read
        // before the exclusive latches are taken, because a corrupt run may refer to any page.
        let mut separator = Vec::new();
        let (run, level, left_id, right_id) = {
            let latched = store.read(id)?;
            let page = Page::new(&latched);
            page.key_into(slot + 1, &mut separator);
            let run = if page.level() == 1 { self.run_pages(store, id, &separator) } else { Ok(Vec::new()) };
            let Some(run) = unless_unreadable(run)? else { return Ok(false) };
            (run, page.level().saturating_sub(1), child_of(page, slot)?, child_of(page, slot + 1)?)
        };
        if left_id == right_id {
            return Err(Error::corrupt(id, format!("page {left_id} is a child of it twice")));
        }
        let Some(joined) = unless_unreadable(self.joined_image(store, left_id, right_id))? else { return Ok(false) };
        let mut parent = store.latch(id)?;
        let page = Page::new(&parent);
        let Some(mut left) = unless_unreadable(self.latch_checked(store, left_id, level))? else { return Ok(false) };
        let Some(right) = unless_unreadable(self.latch_checked(store, right_id, level))? else { return Ok(false) };
        let first = joined.as_deref().or(Page::new(&right).is_inner().then_some(&*separator));
        let Some(packed) = self.joined_content(store, Page::new(&left), Page::new(&right), first) else {
            return Ok(false);
        };
        let remove = PageOp::Remove { from: slot_u16(page, slot + 1)?, to: slot_u16(page, slot + 2)? };
        self.format_page(store, &mut left, packed)?;
        self.must_fit(store, &mut parent, &remove)?;
        drop(right);
        drop(left);
        drop(parent);
        for page in run {
            store.free(page)?;
        }
        store.free(right_id)?;
        Ok(true)
    }

    fn latch_checked<'s, S: PageWrite>(&self, store: &'s S, id: PageId, level: u8) -> Result<S::Mut<'s>> {
        let latched = store.latch(id)?;
        self.check_page(Page::new(&latched), id, level)?;
        Ok(latched)
    }

    /// The packed content of both pages in one. `first` replaces the key of the right page's first entry: in an inner
    /// page it is the separator, in a leaf with keys out of line another part. In other leaves that key stays.
    fn joined_content<S: PageRead>(
        &self,
        store: &S,
        left: Page<'_>,
        right: Page<'_>,
        first: Option<&[u8]>,
    ) -> Option<Vec<u8>> {
        let page_size = store.page_size();
        let empty = left.count() == 0 || right.count() == 0;
        let content = |page: Page<'_>| page.used().saturating_sub(page.front());
        if !empty && content(left) + content(right) > page_size {
            return None;
        }
        let (lower, _) = fences(left);
        let (_, upper) = fences(right);
        let spec = self.spec(left.id(), left.level(), &lower, upper.as_deref(), right.right());
        let mut builder = PageBuilder::new(page_size, &spec);
        let front = builder.used();
        let fits =
            builder.push_entries(left, 0..left.count(), None) && builder.push_entries(right, 0..right.count(), first);
        let spare = 4 * (builder.used() - front) <= 3 * page_size.saturating_sub(front);
        (fits && (spare || empty)).then(|| builder.finish())
    }

    /// If the root is an inner page with one child, moves the content of the child to the root. Returns true if it did.
    fn collapse_root<S: PageWrite>(&self, store: &S) -> Result<bool> {
        if !peek(store, self.root, |page| page.is_inner() && page.count() == 1)? {
            return Ok(false);
        }
        let mut root = store.latch(self.root)?;
        let page = Page::new(&root);
        let (child_id, level) = (child_of(page, 0)?, page.level().saturating_sub(1));
        if child_id == self.root {
            return Err(Error::corrupt(self.root, "the root is its own child"));
        }
        let Some(child) = unless_unreadable(self.latch_checked(store, child_id, level))? else { return Ok(false) };
        let content = Page::new(&child);
        let (lower, upper) = fences(page);
        let spec = self.spec(self.root, level, &lower, upper.as_deref(), PageId::NONE);
        let mut builder = PageBuilder::new(store.page_size(), &spec);
        if !builder.push_entries(content, 0..content.count(), None) {
            return Ok(false);
        }
        self.format_page(store, &mut root, builder.finish())?;
        drop(child);
        drop(root);
        store.free(child_id)?;
        Ok(true)
    }
}

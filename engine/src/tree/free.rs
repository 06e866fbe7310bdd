//! Freeing and counting subtrees that nothing leads to any more: detached by a range delete, or a dropped table's.

use super::edit::slot_u16;
use super::key_heap::Owned;
use super::search::{Step, child_of};
use super::{PageRead, PageWrite, Tree};
use crate::base::{Error, PageId, Result, limits};
use crate::page::{Page, PageOp, Record};
use std::collections::HashSet;

/// So many pages of the key heap are changed by one call at the most, for one leaf: a batch's pages stay in the cache until it
/// ends.
const HEAP_PAGES: usize = 12;

/// How far [`Tree::free_subtree`] has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreeProgress {
    /// Pages freed by this call, runs of keys among them.
    pub freed: usize,
    /// Nothing is left, the subtree's root is free as well.
    pub done: bool,
}

/// What a subtree holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SubtreeCount {
    /// Entries in its leaves.
    pub entries: u64,
    /// Leaves and inner pages; runs not counted.
    pub pages: u64,
}

/// What [`Tree::free_leaf`] did.
struct FreedLeaf {
    /// Pages that were freed.
    pages: usize,
    /// The leaf is one of them.
    gone: bool,
    /// Its keys were in the key heap, pages of which have changed.
    out_of_line: bool,
}

impl Tree {
    /// Frees pages of the subtree at `root` from its end until `enough` says so of how many they are, or all of it; between two
    /// calls it is still a valid subtree, so that the calls may be in different batches. It asks after each leaf and its runs, and
    /// ends without that where a leaf keeps its keys out of line. `large` is called with the large records of each leaf, whose runs are
    /// the caller's to free: it says how many of them, from the first on, it has freed, at least one. Those of the others are
    /// for the next call. No reader may look at the subtree any more.
    pub fn free_subtree<S: PageWrite>(
        &self,
        store: &S,
        root: PageId,
        enough: impl Fn(usize) -> bool,
        mut large: impl FnMut(&[Record<'_>]) -> Result<usize>,
    ) -> Result<FreeProgress> {
        let mut freed = 0;
        loop {
            let (path, leaf) = self.last_path(store, root)?;
            // What may be damaged is read before anything is freed.
            let stays = path.iter().rev().find(|step| step.slot > 0);
            let run = stays.map_or_else(|| Ok(Vec::new()), |step| self.separator_run(store, *step))?;
            let leaf = self.free_leaf(store, leaf, &mut large)?;
            freed += leaf.pages;
            if !leaf.gone {
                return Ok(FreeProgress { freed, done: false });
            }
            let mut gone = path.len();
            // Inner pages whose last child is gone go as well; the lowest that stays loses its last entry.
            for step in path.iter().rev().take_while(|step| step.slot == 0) {
                store.free(step.id)?;
                freed += 1;
                gone -= 1;
            }
            let Some(step) = gone.checked_sub(1).and_then(|last| path.get(last)) else {
                return Ok(FreeProgress { freed, done: true });
            };
            freed += self.drop_last(store, *step, run)?;
            if leaf.out_of_line || enough(freed) {
                return Ok(FreeProgress { freed, done: false });
            }
        }
    }

    /// The way to the last leaf of a subtree, whose fences are not asked: its outer ones may be out of date.
    fn last_path<S: PageRead>(&self, store: &S, root: PageId) -> Result<(Vec<Step>, PageId)> {
        let mut path = Vec::new();
        let subtree = Tree { root, ..*self };
        let leaf = subtree.descend_noting(store, super::Target::Last, |page, slot| {
            path.push(Step { id: page.id(), slot });
            Ok(())
        })?;
        Ok((path, Page::new(&leaf).id()))
    }

    /// Frees a leaf, or, if its keys are in many pages of the key heap, takes its last entries away, or, if not all runs of its large
    /// records have been freed, the records of those that have.
    fn free_leaf<S: PageWrite>(
        &self,
        store: &S,
        id: PageId,
        large: &mut impl FnMut(&[Record<'_>]) -> Result<usize>,
    ) -> Result<FreedLeaf> {
        let latched = store.read(id)?;
        let page = Page::new(&latched);
        // All that may be damaged is read before anything is freed.
        let (from, owned) = self.leaving(store, page)?;
        let slots: Vec<usize> = (from..page.count()).filter(|slot| page.record(*slot).large).collect();
        let records: Vec<_> = slots.iter().map(|slot| page.record(*slot)).collect();
        let done = if records.is_empty() { 0 } else { large(&records)?.max(1) };
        if done < records.len() {
            let done = slots.iter().take(done).map(|slot| slot_u16(page, *slot)).collect::<Result<Vec<_>>>()?;
            drop(latched);
            let mut leaf = store.latch(id)?;
            for slot in done {
                self.must_fit(store, &mut leaf, &PageOp::Replace { slot, record: Record::inline(&[]) })?;
            }
            return Ok(FreedLeaf { pages: 0, gone: false, out_of_line: false });
        }
        let (from, to) = (slot_u16(page, from)?, slot_u16(page, page.count())?);
        let (out_of_line, gone) = (self.resolver(page).is_some(), from == 0);
        drop(latched);
        if gone {
            store.free(id)?;
        } else {
            self.must_fit(store, &mut store.latch(id)?, &PageOp::Remove { from, to })?;
        }
        let own = usize::from(gone);
        let pages = owned.into_iter().try_fold(own, |pages, owned| Ok(pages + self.give_back(store, owned)?))?;
        Ok(FreedLeaf { pages, gone, out_of_line })
    }

    /// From which slot on the entries of a leaf are freed at once, and what they have outside it.
    fn leaving<S: PageRead>(&self, store: &S, page: Page<'_>) -> Result<(usize, Vec<Owned>)> {
        if let Some(heap) = self.resolver(page) {
            return heap.last_owned(store, page, HEAP_PAGES);
        }
        let (mut owned, mut from, inline) = (Vec::new(), 0, limits::max_inline_key(store.page_size()));
        while let Some(slot) = page.first_longer(from, inline) {
            owned.push(self.owned_by(store, page, slot)?);
            from = slot + 1;
        }
        Ok((0, owned))
    }

    /// The pages of the run of an inner page's separator.
    fn separator_run<S: PageRead>(&self, store: &S, step: Step) -> Result<Vec<PageId>> {
        let mut separator = Vec::new();
        Page::new(&store.read(step.id)?).key_into(step.slot, &mut separator);
        self.run_pages(store, step.id, &separator)
    }

    /// Removes the last entry of an inner page, whose child is gone, and frees its separator's run.
    fn drop_last<S: PageWrite>(&self, store: &S, step: Step, run: Vec<PageId>) -> Result<usize> {
        let mut latched = store.latch(step.id)?;
        let page = Page::new(&latched);
        let remove = PageOp::Remove { from: slot_u16(page, step.slot)?, to: slot_u16(page, step.slot + 1)? };
        self.must_fit(store, &mut latched, &remove)?;
        drop(latched);
        for &page in &run {
            store.free(page)?;
        }
        Ok(run.len())
    }

    /// Counts the entries and pages of the subtree at `root`.
    pub fn count_subtree<S: PageRead>(&self, store: &S, root: PageId) -> Result<SubtreeCount> {
        let mut total = SubtreeCount::default();
        let level = Page::new(&store.read(root)?).level();
        let mut waiting = vec![(root, level)];
        let mut seen = HashSet::new();
        while let Some((id, level)) = waiting.pop() {
            if !seen.insert(id) {
                return Err(Error::corrupt(id, "two parents lead to it"));
            }
            let latched = store.read(id)?;
            let page = Page::new(&latched);
            self.check_page(page, id, level)?;
            total.pages += 1;
            if level == 0 {
                total.entries += page.count() as u64;
                continue;
            }
            for slot in 0..page.count() {
                waiting.push((child_of(page, slot)?, level - 1));
            }
        }
        Ok(total)
    }
}

//! Frees unreachable subtrees: those that a range delete has detached, and those of a dropped table.

use super::edit::slot_u16;
use super::key_heap::LastEntries;
use super::search::PathStep;
use super::{PageRead, PageWrite, Tree};
use crate::base::{PageId, Result};
use crate::page::{Page, PageOp, Record};

/// The progress of [`Tree::free_subtree`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreeProgress {
    /// The number of pages freed by this call, with the runs of keys.
    pub freed: usize,
    /// True if the whole subtree is free, with its root.
    pub done: bool,
}

/// The result of [`Tree::free_leaf`].
struct FreedLeaf {
    /// The number of freed pages.
    pages: usize,
    /// True if the leaf itself was freed.
    gone: bool,
    /// True if pages of the key heap may have changed.
    changes_heap: bool,
}

impl Tree {
    /// Frees pages of the subtree at `root`, from its end, until `enough` returns true for the number of freed pages,
    /// or until the whole subtree is free. Between two calls it is a valid subtree, so the calls may be in different
    /// batches. `enough` is called after each leaf and its runs. A call also ends after a leaf that keeps its keys out
    /// of line, without asking `enough`. No reader may still use the subtree.
    ///
    /// `large` is called with the large records of each leaf. It frees the runs of some of them, from the first on and
    /// at least one, and returns their number. The others are left for the next call.
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
            // Pages that may be damaged are read before anything is freed.
            let stays = path.iter().rev().find(|step| step.slot > 0);
            let run = stays.map_or_else(|| Ok(Vec::new()), |step| self.separator_run(store, *step))?;
            let leaf = self.free_leaf(store, leaf, &mut large)?;
            freed += leaf.pages;
            if !leaf.gone {
                return Ok(FreeProgress { freed, done: false });
            }
            let mut gone = path.len();
            // An inner page without children is freed too. The lowest inner page that remains loses its last entry.
            for step in path.iter().rev().take_while(|step| step.slot == 0) {
                store.free(step.id)?;
                freed += 1;
                gone -= 1;
            }
            let Some(step) = gone.checked_sub(1).and_then(|last| path.get(last)) else {
                return Ok(FreeProgress { freed, done: true });
            };
            freed += self.drop_last(store, *step, run)?;
            if leaf.changes_heap || enough(freed) {
                return Ok(FreeProgress { freed, done: false });
            }
        }
    }

    /// The path to the last leaf of a subtree. Fences are not checked, because the outer fences of a detached subtree
    /// may be out of date.
    fn last_path<S: PageRead>(&self, store: &S, root: PageId) -> Result<(Vec<PathStep>, PageId)> {
        let mut path = Vec::new();
        let subtree = Tree { root, ..*self };
        let leaf = subtree.descend_with(store, super::LeafTarget::Last, |event| {
            PathStep::note(event, &mut path);
            Ok(())
        })?;
        Ok((path, Page::new(&leaf).id()))
    }

    /// Frees a leaf. If its keys are in too many pages of the key heap, removes its last entries instead. If `large`
    /// has not freed all runs, replaces the records whose runs are freed by empty ones instead.
    fn free_leaf<S: PageWrite>(
        &self,
        store: &S,
        id: PageId,
        large: &mut impl FnMut(&[Record<'_>]) -> Result<usize>,
    ) -> Result<FreedLeaf> {
        let latched = store.read(id)?;
        let page = Page::new(&latched);
        // Pages that may be damaged are read before anything is freed.
        let LastEntries { from, owned, changes_heap } = self.entries_to_free(store, page)?;
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
            return Ok(FreedLeaf { pages: 0, gone: false, changes_heap: false });
        }
        let (from, to) = (slot_u16(page, from)?, slot_u16(page, page.count())?);
        let gone = from == 0;
        drop(latched);
        if gone {
            store.free(id)?;
        } else {
            self.must_fit(store, &mut store.latch(id)?, &PageOp::Remove { from, to })?;
        }
        let own = usize::from(gone);
        let pages = owned.into_iter().try_fold(own, |pages, owned| Ok(pages + self.free_owned(store, owned)?))?;
        Ok(FreedLeaf { pages, gone, changes_heap })
    }

    /// The pages of the run of a separator in an inner page.
    fn separator_run<S: PageRead>(&self, store: &S, step: PathStep) -> Result<Vec<PageId>> {
        let mut separator = Vec::new();
        Page::new(&store.read(step.id)?).key_into(step.slot, &mut separator);
        self.run_pages(store, step.id, &separator)
    }

    /// Removes the last entry of an inner page, whose child is freed, and frees the run of its separator.
    fn drop_last<S: PageWrite>(&self, store: &S, step: PathStep, run: Vec<PageId>) -> Result<usize> {
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
}

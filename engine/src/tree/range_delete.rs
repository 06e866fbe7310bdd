//! Removes a range: detaches subtrees that are completely in the range, and removes the entries at its edges one by
//! one. If the keys of an edge leaf are in the key heap, its entries are detached in a leaf of their own.
//!
//! In each inner page at an edge of the range, the covered children are consecutive slots. A new, empty child takes
//! their place and their range, so no neighbour's fences have to change. Merging removes it afterwards.

use super::edit::{child_record, peek, slot_u16};
use super::long_key::is_long;
use super::merge::unless_unreadable;
use super::search::{LeafTarget, child_of};
use super::split::fences;
use super::{KeyRange, PageRead, PageWrite, Tree};
use crate::base::{Error, PageId, Result, limits};
use crate::page::{KeyWindow, Page, PageBuilder, PageOp, Record};
use std::collections::VecDeque;

/// The most entries that are removed in one step of a removal, if they own pages or if their keys are in pages of the
/// key heap.
const ENTRIES_PER_STEP: usize = 12;

/// A subtree that was detached: the tree does not refer to it. It stays readable, as a tree with this root, for keys
/// within its bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DetachedSubtree {
    /// The root of the subtree.
    pub root: PageId,
    /// The level of the root; 0 if it is a single leaf.
    pub level: u8,
    /// The lower bound of its keys.
    pub lower: Vec<u8>,
    /// The upper bound of its keys: all are less. `None` if it reached to the end of the tree.
    pub upper: Option<Vec<u8>>,
}

/// An entry or subtree that [`Tree::remove_range`] is about to remove.
#[derive(Clone, Copy, Debug)]
pub enum Removal<'a> {
    /// An entry at an edge of the range.
    Entry {
        /// The whole key.
        key: &'a [u8],
        /// The record. If it is a large one, the caller must free its run.
        record: Record<'a>,
    },
    /// A subtree with all its entries.
    Subtree(&'a DetachedSubtree),
}

/// The result of [`Tree::remove_range`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RemovedRange {
    /// The number of entries removed one by one.
    pub entries: u64,
    /// The detached subtrees, which are not freed.
    pub detached: Vec<DetachedSubtree>,
}

/// The overlap of a range with the children of an inner page.
struct Overlap {
    /// The slots of the children that are completely in the range.
    covered: std::ops::Range<usize>,
    /// The slots of the children where the range begins or ends.
    partial: Vec<usize>,
    /// True if the range begins with the first key that the child at `covered.start` may have.
    begins_at_child: bool,
}

/// An inner page, its level and the range of its keys.
type WaitingPage = (PageId, u8, KeyRange);

/// The removal of a range of keys in steps. Each step changes few pages and leaves a valid tree. Between the steps,
/// only the single writer may change the tree.
#[derive(Debug)]
pub struct RangeRemoval {
    keys: KeyRange,
    next: RemovalStep,
    /// Keys on whose paths pages may be underfull.
    underfull: VecDeque<Vec<u8>>,
}

/// The next step of a removal.
#[derive(Debug)]
enum RemovalStep {
    Begin,
    /// These inner pages, with their levels and ranges, may have children that are completely in the range.
    Detach(Vec<WaitingPage>),
    /// Removes entries from the leaf where the range begins.
    TrimFirst,
    /// Removes entries from the leaf where the range ends.
    TrimLast,
    Rebalance,
}

impl RangeRemoval {
    /// The removal of all entries of a range of keys.
    pub fn new(keys: KeyRange) -> RangeRemoval {
        RangeRemoval { keys, next: RemovalStep::Begin, underfull: VecDeque::new() }
    }

    /// Performs the next step on `tree` and adds its result to `removed`. Returns false if nothing is left to do.
    /// `before` is called as by [`Tree::remove_range`].
    pub fn step<S: PageWrite>(
        &mut self,
        tree: &Tree,
        store: &S,
        removed: &mut RemovedRange,
        before: &mut impl FnMut(Removal<'_>) -> Result<()>,
    ) -> Result<bool> {
        let known = removed.detached.len();
        self.next = match std::mem::replace(&mut self.next, RemovalStep::Rebalance) {
            RemovalStep::Begin if self.keys.is_empty() => return Ok(false),
            RemovalStep::Begin => {
                self.underfull.push_back(self.keys.lower.clone());
                let level = peek(store, tree.root, |page| page.level())?;
                if level > 0 && self.keys.lower.is_empty() && self.keys.upper.is_none() {
                    removed.detached.push(tree.detach_all(store, before)?);
                    RemovalStep::TrimFirst
                } else {
                    RemovalStep::Detach(vec![(tree.root, level, KeyRange::default())])
                }
            }
            RemovalStep::Detach(mut waiting) => {
                let done = tree.detach_covered(store, &self.keys, &mut waiting, removed, before)?;
                if done { RemovalStep::TrimFirst } else { RemovalStep::Detach(waiting) }
            }
            RemovalStep::TrimFirst => {
                let more = tree.trim(store, LeafTarget::Covering(&self.keys.lower), &self.keys, removed, before)?;
                if more { RemovalStep::TrimFirst } else { RemovalStep::TrimLast }
            }
            RemovalStep::TrimLast => {
                let end = self.keys.upper.as_deref().map_or(LeafTarget::Last, LeafTarget::Before);
                if tree.trim(store, end, &self.keys, removed, before)? {
                    RemovalStep::TrimLast
                } else {
                    self.underfull.extend(self.keys.upper.clone());
                    RemovalStep::Rebalance
                }
            }
            RemovalStep::Rebalance => {
                let Some(key) = self.underfull.pop_front() else { return Ok(false) };
                tree.rebalance(store, &key)?;
                RemovalStep::Rebalance
            }
        };
        self.underfull.extend(removed.detached.iter().skip(known).map(|subtree| subtree.lower.clone()));
        Ok(true)
    }
}

impl Tree {
    /// Removes all entries of a range of keys. [`RangeRemoval`] does this in steps.
    ///
    /// `before` is called with each entry before it is removed and with each subtree before it is detached, under the
    /// exclusive latch of the page with the entry or with the reference to the subtree. It is not called for the
    /// entries of detached subtrees. The pages of those do not change until [`Tree::free_subtree`].
    pub fn remove_range<S: PageWrite>(
        &self,
        store: &S,
        keys: &KeyRange,
        mut before: impl FnMut(Removal<'_>) -> Result<()>,
    ) -> Result<RemovedRange> {
        let mut removed = RemovedRange::default();
        let mut removal = RangeRemoval::new(keys.clone());
        while removal.step(self, store, &mut removed, &mut before)? {}
        Ok(removed)
    }

    /// Detaches the children of the last of these inner pages that are completely in the range, and adds the children
    /// where the range begins or ends to `waiting`. Returns true if no page was left.
    fn detach_covered<S: PageWrite>(
        &self,
        store: &S,
        keys: &KeyRange,
        waiting: &mut Vec<WaitingPage>,
        removed: &mut RemovedRange,
        before: &mut impl FnMut(Removal<'_>) -> Result<()>,
    ) -> Result<bool> {
        let Some(page) = waiting.pop() else { return Ok(true) };
        let covered = self.covered_children(store, &page, keys, waiting)?;
        if !covered.is_empty() {
            let (id, _, range) = &page;
            removed.detached.push(self.detach(store, *id, covered, range, before)?);
        }
        Ok(false)
    }

    /// The levels of the inner pages from which [`Tree::remove_range`] would detach children at present.
    pub fn detaching_levels<S: PageRead>(&self, store: &S, keys: &KeyRange) -> Result<Vec<u8>> {
        let mut levels = Vec::new();
        let level = peek(store, self.root, |page| page.level())?;
        let mut waiting = vec![(self.root, level, KeyRange::default())];
        while let Some(page) = waiting.pop().filter(|_| !keys.is_empty()) {
            if !self.covered_children(store, &page, keys, &mut waiting)?.is_empty() {
                levels.push(page.1);
            }
        }
        Ok(levels)
    }

    /// The slots of the children of a page that are to be detached. Adds the children where the range begins or ends to
    /// `waiting`. There are none if the page is a leaf.
    fn covered_children<S: PageRead>(
        &self,
        store: &S,
        &(id, level, ref range): &WaitingPage,
        keys: &KeyRange,
        waiting: &mut Vec<WaitingPage>,
    ) -> Result<std::ops::Range<usize>> {
        if level == 0 {
            return Ok(0..0);
        }
        let (mut covered, first) = {
            let latched = store.read(id)?;
            let page = Page::new(&latched);
            self.check_page(page, id, level)?;
            let overlap = self.overlap(store, page, range, keys)?;
            let child = |slot| Ok((child_of(page, slot)?, level - 1, self.child_range(store, page, slot, range)?));
            for slot in overlap.partial {
                waiting.push(child(slot)?);
            }
            let first = overlap.begins_at_child && !overlap.covered.is_empty();
            let first = first.then(|| child(overlap.covered.start)).transpose()?;
            (overlap.covered, first)
        };
        // To detach the first child, the right link of the leaf before it has to change. If that leaf cannot be read,
        // the leaf after it stays in the tree and loses its entries.
        if let Some(first) = first
            && unless_unreadable(self.leaf_before(store, &keys.lower, |_| ()))?.is_none()
        {
            waiting.push(first);
            covered.start += 1;
        }
        Ok(covered)
    }

    /// The overlap of `keys` with the children of a page with this range.
    fn overlap<S: PageRead>(&self, store: &S, page: Page<'_>, range: &KeyRange, keys: &KeyRange) -> Result<Overlap> {
        let begins_at_child = keys.lower == range.lower && !keys.lower.is_empty();
        let mut overlap = Overlap { covered: 0..page.count(), partial: Vec::new(), begins_at_child };
        if keys.lower > range.lower {
            let found = above_first(self.locate(store, page, &keys.lower)?);
            let (Ok(slot) | Err(slot)) = found;
            overlap.covered.start = slot.max(1);
            if found.is_err() {
                overlap.partial.push(slot.max(1) - 1);
            }
            overlap.begins_at_child = found.is_ok();
        }
        if let Some(to) = keys.upper.as_ref().filter(|_| !keys.reaches(range.upper.as_deref())) {
            match above_first(self.locate(store, page, to)?) {
                Ok(slot) => overlap.covered.end = slot,
                Err(slot) => {
                    overlap.covered.end = slot.max(1) - 1;
                    if !overlap.partial.contains(&(slot.max(1) - 1)) {
                        overlap.partial.push(slot.max(1) - 1);
                    }
                }
            }
        }
        Ok(overlap)
    }

    /// Detaches the children at `slots` of page `id` as one subtree and puts an empty child in their place.
    fn detach<S: PageWrite>(
        &self,
        store: &S,
        id: PageId,
        slots: std::ops::Range<usize>,
        range: &KeyRange,
        before: &mut impl FnMut(Removal<'_>) -> Result<()>,
    ) -> Result<DetachedSubtree> {
        let (first, last) = (slots.start, slots.end.saturating_sub(1));
        let (bounds, last_child) = {
            let latched = store.read(id)?;
            let page = Page::new(&latched);
            let lower = self.child_range(store, page, first, range)?.lower;
            let upper = self.child_range(store, page, last, range)?.upper;
            (KeyRange { lower, upper }, child_of(page, last)?)
        };
        let left = match bounds.lower.is_empty() {
            true => None,
            false => Some(self.leaf_before(store, &bounds.lower, |page| page.id())?),
        };
        let right = Tree { root: last_child, ..*self }.last_leaf(store, |page| page.right())?;
        let mut parent = store.latch(id)?;
        let mut left = left.map(|left| store.latch(left)).transpose()?;
        let page = Page::new(&parent);
        let (lower, upper) = slot_fences(page, slots.clone());
        let (root, level) = if first == last {
            (last_child, page.level() - 1)
        } else {
            let (root, _above) = self.copy_to_new_page(store, page, slots.clone(), &lower, upper.as_deref())?;
            (root, page.level())
        };
        let detached = DetachedSubtree { root, level, lower: bounds.lower, upper: bounds.upper };
        before(Removal::Subtree(&detached))?;
        let (empty, leaf) = self.create_empty(store, page.level() - 1, &lower, upper.as_deref(), right)?;
        let record = child_record(empty);
        let replace = PageOp::Replace { slot: slot_u16(page, first)?, record: Record::inline(&record) };
        let remove = PageOp::Remove { from: slot_u16(page, first + 1)?, to: slot_u16(page, last + 1)? };
        self.must_fit(store, &mut parent, &replace)?;
        if first < last {
            self.must_fit(store, &mut parent, &remove)?;
        }
        if let Some(left) = &mut left {
            self.must_fit(store, left, &PageOp::SetRight { right: leaf })?;
        }
        Ok(detached)
    }

    /// Copies entries of a page to a new page of the same level with these fences. Returns its id and its latch.
    fn copy_to_new_page<'s, S: PageWrite>(
        &self,
        store: &'s S,
        page: Page<'_>,
        slots: std::ops::Range<usize>,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Result<(PageId, S::Mut<'s>)> {
        let (id, mut copy) = store.create()?;
        let spec = self.spec(id, page.level(), lower, upper, PageId::NONE);
        let mut builder = PageBuilder::new(store.page_size(), &spec);
        if !builder.push_entries(page, slots, None) {
            return Err(Error::corrupt(page.id(), "its entries do not fit in a page"));
        }
        self.format_page(store, &mut copy, builder.finish())?;
        Ok((id, copy))
    }

    /// Detaches the whole tree: moves the content of the root to a new page and makes the root an empty leaf.
    fn detach_all<S: PageWrite>(
        &self,
        store: &S,
        before: &mut impl FnMut(Removal<'_>) -> Result<()>,
    ) -> Result<DetachedSubtree> {
        let mut latched = store.latch(self.root)?;
        let page = Page::new(&latched);
        let (id, _copy) = self.copy_to_new_page(store, page, 0..page.count(), &[], None)?;
        let detached = DetachedSubtree { root: id, level: page.level(), lower: Vec::new(), upper: None };
        before(Removal::Subtree(&detached))?;
        self.format(store, &mut latched)?;
        Ok(detached)
    }

    /// Creates a subtree without entries. Its root has the level `level`. Returns the root and the leaf.
    fn create_empty<S: PageWrite>(
        &self,
        store: &S,
        level: u8,
        lower: &[u8],
        upper: Option<&[u8]>,
        right: PageId,
    ) -> Result<(PageId, PageId)> {
        let (leaf, mut latched) = store.create()?;
        let spec = self.spec(leaf, 0, lower, upper, right);
        self.format_page(store, &mut latched, PageBuilder::new(store.page_size(), &spec).finish())?;
        drop(latched);
        let mut top = leaf;
        for level in 1..=level {
            let (id, mut latched) = store.create()?;
            let spec = self.spec(id, level, lower, upper, PageId::NONE);
            let mut builder = PageBuilder::new(store.page_size(), &spec);
            if !builder.push(lower, Record::inline(&child_record(top))) {
                return Err(Error::corrupt(id, "one child does not fit in a page"));
            }
            self.format_page(store, &mut latched, builder.finish())?;
            top = id;
        }
        Ok((top, leaf))
    }

    /// Removes the entries of one leaf that are in the range. In a leaf that keeps its keys out of line, they become a
    /// subtree, because otherwise many pages of the key heap would change. If this is not possible, or if entries own
    /// pages, at most [`ENTRIES_PER_STEP`] of these are removed. Returns true if there may be more.
    fn trim<S: PageWrite>(
        &self,
        store: &S,
        target: LeafTarget<'_>,
        keys: &KeyRange,
        removed: &mut RemovedRange,
        before: &mut impl FnMut(Removal<'_>) -> Result<()>,
    ) -> Result<bool> {
        let id = self.leaf_at(store, target, |page| page.id())?;
        let mut leaf = store.latch(id)?;
        let page = Page::new(&leaf);
        let (Ok(from) | Err(from)) = self.locate(store, page, &keys.lower)?;
        let to = match &keys.upper {
            Some(to) => self.locate(store, page, to)?.unwrap_or_else(|slot| slot),
            None => page.count(),
        };
        if from >= to {
            return Ok(false);
        }
        let remove = PageOp::Remove { from: slot_u16(page, from)?, to: slot_u16(page, to)? };
        let out_of_line = self.resolver(page).is_some();
        if out_of_line && let Some(bounds) = within(page, keys, store.page_size()) {
            let detached = self.copy_entries(store, page, from..to, bounds)?;
            before(Removal::Subtree(&detached))?;
            self.must_fit(store, &mut leaf, &remove)?;
            removed.detached.push(detached);
            return Ok(false);
        }
        let next = match out_of_line {
            true => Some(to.min(from + ENTRIES_PER_STEP)),
            false => part_end(page, from..to, store.page_size()),
        };
        let (to, more) = (next.unwrap_or(to), next.is_some());
        let remove = PageOp::Remove { from: slot_u16(page, from)?, to: slot_u16(page, to)? };
        let (mut key, mut owned, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        let mut window = KeyWindow::default();
        for slot in from..to {
            window.key_into(page, slot, &mut key);
            if self.is_owner(store, page, key.len()) {
                owned.push(self.owned_by(store, page, slot)?);
                self.full_key(store, page, slot, &mut key)?;
            }
            before(Removal::Entry { key: &key, record: page.record(slot) })?;
            whole.push(key.clone());
        }
        let done = store.apply(&mut leaf, &remove)?;
        drop(leaf);
        removed.entries += whole.len() as u64;
        if !done {
            // A layout may need more space for fewer keys. Then each entry is removed separately, and the leaf is split
            // if needed.
            for key in &whole {
                self.remove(store, key, |_| Ok(()))?;
            }
            return Ok(more);
        }
        for owned in owned {
            self.free_owned(store, owned)?;
        }
        Ok(more)
    }

    /// Copies some entries of a leaf to a new leaf, which no page refers to.
    fn copy_entries<S: PageWrite>(
        &self,
        store: &S,
        page: Page<'_>,
        entries: std::ops::Range<usize>,
        bounds: KeyRange,
    ) -> Result<DetachedSubtree> {
        let (lower, upper) = fences(page);
        let (id, mut copy) = self.copy_to_new_page(store, page, 0..page.count(), &lower, upper.as_deref())?;
        // The entries at the end are removed first: the removal at the front sets the part of the first remaining
        // entry.
        for gone in [entries.end..page.count(), 0..entries.start] {
            let remove = PageOp::Remove { from: slot_u16(page, gone.start)?, to: slot_u16(page, gone.end)? };
            self.must_fit(store, &mut copy, &remove)?;
        }
        Ok(DetachedSubtree { root: id, level: 0, lower: bounds.lower, upper: bounds.upper })
    }
}

/// The end of the next step, if it does not have all these entries. The leaf has its keys itself.
fn part_end(page: Page<'_>, mut entries: std::ops::Range<usize>, page_size: usize) -> Option<usize> {
    let inline = limits::max_inline_key(page_size);
    let mut long = page.first_longer(entries.start, inline);
    let mut owning = 0;
    entries.find(|slot| {
        let is_long = long == Some(*slot);
        if is_long {
            long = page.first_longer(slot + 1, inline);
        }
        owning += usize::from(is_long || page.record(*slot).large);
        owning > ENTRIES_PER_STEP
    })
}

/// The part of a range of keys that a leaf covers, if the fences of the leaf are whole keys.
fn within(page: Page<'_>, keys: &KeyRange, page_size: usize) -> Option<KeyRange> {
    let (lower, upper) = fences(page);
    if [Some(&lower), upper.as_ref()].into_iter().flatten().any(|fence| is_long(fence.len(), page_size)) {
        return None;
    }
    Some(KeyRange { lower, upper }.within(keys))
}

/// For an inner page: key 0 counts as less than all keys, whatever a list of fixed-length keys stores for it.
fn above_first(found: std::result::Result<usize, usize>) -> std::result::Result<usize, usize> {
    if found == Ok(0) { Err(1) } else { found }
}

/// The fences around consecutive slots of an inner page, as images.
fn slot_fences(page: Page<'_>, slots: std::ops::Range<usize>) -> (Vec<u8>, Option<Vec<u8>>) {
    let (mut lower, mut upper) = fences(page);
    if slots.start > 0 {
        page.key_into(slots.start, &mut lower);
    }
    if slots.end < page.count() {
        let mut key = Vec::new();
        page.key_into(slots.end, &mut key);
        upper = Some(key);
    }
    (lower, upper)
}

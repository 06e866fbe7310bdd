//! Removes a range: subtrees that lie whole in the range are detached, and entries at its edges are removed one by one,
//! or detached in a leaf of their own where their keys are in the key heap. Freeing the detached subtrees must not be
//! in this file.
//!
//! In each inner page at the range's edges the covered children are one run of slots. A fresh, empty child takes
//! their place and their range, so that no neighbour's fences have to change; merging does away with it afterwards.

use super::edit::{child_record, peek, slot_u16};
use super::long_key::is_long;
use super::search::{Range, Target, child_of};
use super::split::fences;
use super::{KeyRange, PageRead, PageWrite, Tree};
use crate::base::{Error, PageId, Result, limits};
use crate::page::{KeyWindow, Page, PageBuilder, PageOp, Record};
use std::collections::VecDeque;

/// So many entries that have pages of their own, or whose keys are in as many pages of the key heap at the most, go in one part of a
/// removal.
const APART: usize = 12;

/// A subtree that nothing leads to any more. It stays readable as a tree of that root for keys within its bounds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DetachedSubtree {
    /// Its root.
    pub root: PageId,
    /// The root's level; 0: a single leaf.
    pub level: u8,
    /// No key of it is below this one.
    pub lower: Vec<u8>,
    /// All keys of it are below this one; `None`: it reached to the end of the tree.
    pub upper: Option<Vec<u8>>,
}

/// Something that is about to be removed by [`Tree::remove_range`].
#[derive(Clone, Copy, Debug)]
pub enum Removal<'a> {
    /// An entry at an edge.
    Entry {
        /// Its whole key.
        key: &'a [u8],
        /// Its record; a large one's run is the caller's to free.
        record: Record<'a>,
    },
    /// A subtree with all that is in it.
    Subtree(&'a DetachedSubtree),
}

/// What [`Tree::remove_range`] did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RemovedRange {
    /// Entries removed one by one.
    pub entries: u64,
    /// Subtrees detached whole, not freed.
    pub detached: Vec<DetachedSubtree>,
}

/// How a range lies in an inner page.
struct Overlap {
    /// Slots of the children that it covers whole.
    covered: std::ops::Range<usize>,
    /// Slots of the children that it begins or ends in.
    partial: Vec<usize>,
}

/// The removal of a range of keys in parts, each of which changes few pages and leaves a valid tree. Only the one writer
/// may change the tree between them, and nobody else.
#[derive(Debug)]
pub struct RangeRemoval {
    keys: KeyRange,
    next: Part,
    /// Keys on the way to which pages may have become thin.
    thin: VecDeque<Vec<u8>>,
}

/// What a removal does next.
#[derive(Debug)]
enum Part {
    Begin,
    /// These inner pages, with their levels and ranges, may have children that the range covers whole.
    Detach(Vec<(PageId, u8, Range)>),
    /// The leaf where the range begins.
    TrimFirst,
    /// The leaf where it ends.
    TrimLast,
    Rebalance,
}

impl RangeRemoval {
    /// The removal of all entries of a range of keys.
    pub fn new(keys: KeyRange) -> RangeRemoval {
        RangeRemoval { keys, next: Part::Begin, thin: VecDeque::new() }
    }

    /// Removes the next part from `tree` and adds what it was to `removed`; false: nothing is left to do, and nothing has been
    /// done. `before` is called as by [`Tree::remove_range`].
    pub fn step<S: PageWrite>(
        &mut self,
        tree: &Tree,
        store: &S,
        removed: &mut RemovedRange,
        before: &mut impl FnMut(Removal<'_>) -> Result<()>,
    ) -> Result<bool> {
        let known = removed.detached.len();
        self.next = match std::mem::replace(&mut self.next, Part::Rebalance) {
            Part::Begin if self.keys.is_empty() => return Ok(false),
            Part::Begin => {
                self.thin.push_back(self.keys.lower.clone());
                let level = peek(store, tree.root, |page| page.level())?;
                if level > 0 && self.keys.lower.is_empty() && self.keys.upper.is_none() {
                    removed.detached.push(tree.detach_all(store, before)?);
                    Part::TrimFirst
                } else {
                    Part::Detach(vec![(tree.root, level, Range::default())])
                }
            }
            Part::Detach(mut waiting) => {
                let done = tree.detach_covered(store, &self.keys, &mut waiting, removed, before)?;
                if done { Part::TrimFirst } else { Part::Detach(waiting) }
            }
            Part::TrimFirst => {
                let more = tree.trim(store, Target::Covering(&self.keys.lower), &self.keys, removed, before)?;
                if more { Part::TrimFirst } else { Part::TrimLast }
            }
            Part::TrimLast => {
                let end = self.keys.upper.as_deref().map_or(Target::Last, Target::Before);
                if tree.trim(store, end, &self.keys, removed, before)? {
                    Part::TrimLast
                } else {
                    self.thin.extend(self.keys.upper.clone());
                    Part::Rebalance
                }
            }
            Part::Rebalance => {
                let Some(key) = self.thin.pop_front() else { return Ok(false) };
                tree.rebalance(store, &key)?;
                Part::Rebalance
            }
        };
        self.thin.extend(removed.detached.iter().skip(known).map(|subtree| subtree.lower.clone()));
        Ok(true)
    }
}

impl Tree {
    /// Removes all entries of a range of keys; [`RangeRemoval`] does so in parts.
    ///
    /// `before` is called with each entry and each subtree before it is removed or detached, under the exclusive latch
    /// of the page that leads to it; not for entries of detached subtrees. The pages of those stay as they are until
    /// [`Tree::free_subtree`].
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

    /// Detaches the children of the last of these inner pages that the range covers whole; those that it begins or ends in
    /// wait then. True: none is left.
    fn detach_covered<S: PageWrite>(
        &self,
        store: &S,
        keys: &KeyRange,
        waiting: &mut Vec<(PageId, u8, Range)>,
        removed: &mut RemovedRange,
        before: &mut impl FnMut(Removal<'_>) -> Result<()>,
    ) -> Result<bool> {
        let Some((id, level, range)) = waiting.pop() else { return Ok(true) };
        if level == 0 {
            return Ok(false);
        }
        let covered = {
            let latched = store.read(id)?;
            let page = Page::new(&latched);
            self.check_page(page, id, level)?;
            let overlap = self.overlap(store, page, &range, keys)?;
            for slot in overlap.partial {
                waiting.push((child_of(page, slot)?, level - 1, self.child_range(store, page, slot, &range)?));
            }
            overlap.covered
        };
        if !covered.is_empty() {
            removed.detached.push(self.detach(store, id, covered, &range, before)?);
        }
        Ok(false)
    }

    /// The levels of the inner pages of which [`Tree::remove_range`] would detach children, as the tree is now.
    pub fn detaching_levels<S: PageRead>(&self, store: &S, keys: &KeyRange) -> Result<Vec<u8>> {
        let mut levels = Vec::new();
        let level = peek(store, self.root, |page| page.level())?;
        let mut waiting = vec![(self.root, level, Range::default())];
        while let Some((id, level, range)) = waiting.pop().filter(|_| !keys.is_empty()) {
            if level == 0 {
                continue;
            }
            let latched = store.read(id)?;
            let page = Page::new(&latched);
            self.check_page(page, id, level)?;
            let overlap = self.overlap(store, page, &range, keys)?;
            if !overlap.covered.is_empty() {
                levels.push(level);
            }
            for slot in overlap.partial {
                waiting.push((child_of(page, slot)?, level - 1, self.child_range(store, page, slot, &range)?));
            }
        }
        Ok(levels)
    }

    fn overlap<S: PageRead>(&self, store: &S, page: Page<'_>, range: &Range, keys: &KeyRange) -> Result<Overlap> {
        let mut overlap = Overlap { covered: 0..page.count(), partial: Vec::new() };
        if keys.lower > range.lower {
            let found = above_first(self.locate(store, page, &keys.lower)?);
            let (Ok(slot) | Err(slot)) = found;
            overlap.covered.start = slot.max(1);
            if found.is_err() {
                overlap.partial.push(slot.max(1) - 1);
            }
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
        range: &Range,
        before: &mut impl FnMut(Removal<'_>) -> Result<()>,
    ) -> Result<DetachedSubtree> {
        let (first, last) = (slots.start, slots.end.saturating_sub(1));
        let (bounds, last_child) = {
            let latched = store.read(id)?;
            let page = Page::new(&latched);
            let lower = self.child_range(store, page, first, range)?.lower;
            let upper = self.child_range(store, page, last, range)?.upper;
            (Range { lower, upper }, child_of(page, last)?)
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
            let (root, mut above) = store.create()?;
            let spec = self.spec(root, page.level(), &lower, upper.as_deref(), PageId::NONE);
            let mut builder = PageBuilder::new(store.page_size(), &spec);
            if !builder.push_entries(page, slots.clone(), None) {
                return Err(Error::corrupt(id, "some of its entries do not fit in a page"));
            }
            self.format_page(store, &mut above, builder.finish())?;
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

    /// Detaches everything: the root's content goes to a page of its own, the root becomes an empty leaf.
    fn detach_all<S: PageWrite>(
        &self,
        store: &S,
        before: &mut impl FnMut(Removal<'_>) -> Result<()>,
    ) -> Result<DetachedSubtree> {
        let mut latched = store.latch(self.root)?;
        let page = Page::new(&latched);
        let (id, mut copy) = store.create()?;
        let spec = self.spec(id, page.level(), &[], None, PageId::NONE);
        let mut builder = PageBuilder::new(store.page_size(), &spec);
        if !builder.push_entries(page, 0..page.count(), None) {
            return Err(Error::corrupt(self.root, "its entries do not fit in a page"));
        }
        self.format_page(store, &mut copy, builder.finish())?;
        let detached = DetachedSubtree { root: id, level: page.level(), lower: Vec::new(), upper: None };
        before(Removal::Subtree(&detached))?;
        self.format(store, &mut latched)?;
        Ok(detached)
    }

    /// Creates a subtree without entries whose top is at `level`; returns the top and the leaf.
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

    /// Removes the entries of one leaf that are in the range; of one that keeps its keys out of line they become a subtree of their own,
    /// because they would have to be taken out of many pages. Where that cannot be, or they have pages of their own, [`APART`] of these
    /// go, and true says that there may be more.
    fn trim<S: PageWrite>(
        &self,
        store: &S,
        target: Target<'_>,
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
            true => Some(to.min(from + APART)),
            false => part_end(page, from..to, store.page_size()),
        };
        let (to, more) = (next.unwrap_or(to), next.is_some());
        let remove = PageOp::Remove { from: slot_u16(page, from)?, to: slot_u16(page, to)? };
        let (mut key, mut owned, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        let mut window = KeyWindow::default();
        for slot in from..to {
            window.key_into(page, slot, &mut key);
            if out_of_line || is_long(key.len(), store.page_size()) {
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
            // A layout may need more room for fewer keys: then each goes alone, and the leaf is split as need be.
            for key in &whole {
                self.remove(store, key, |_| Ok(()))?;
            }
            return Ok(more);
        }
        for owned in owned {
            self.give_back(store, owned)?;
        }
        Ok(more)
    }

    /// Some entries of a leaf in a leaf of their own, which nothing leads to.
    fn copy_entries<S: PageWrite>(
        &self,
        store: &S,
        page: Page<'_>,
        entries: std::ops::Range<usize>,
        bounds: KeyRange,
    ) -> Result<DetachedSubtree> {
        let (lower, upper) = fences(page);
        let (id, mut copy) = store.create()?;
        let spec = self.spec(id, 0, &lower, upper.as_deref(), PageId::NONE);
        let mut builder = PageBuilder::new(store.page_size(), &spec);
        if !builder.push_entries(page, 0..page.count(), None) {
            return Err(Error::corrupt(page.id(), "its entries do not fit in a page"));
        }
        self.format_page(store, &mut copy, builder.finish())?;
        // From the end: what is removed last says which part the first entry that stays has then.
        for gone in [entries.end..page.count(), 0..entries.start] {
            let remove = PageOp::Remove { from: slot_u16(page, gone.start)?, to: slot_u16(page, gone.end)? };
            self.must_fit(store, &mut copy, &remove)?;
        }
        Ok(DetachedSubtree { root: id, level: 0, lower: bounds.lower, upper: bounds.upper })
    }
}

/// Where the next part ends of the entries of a leaf that has its keys itself, if it is not all of them.
fn part_end(page: Page<'_>, mut entries: std::ops::Range<usize>, page_size: usize) -> Option<usize> {
    let inline = limits::max_inline_key(page_size);
    let mut long = page.first_longer(entries.start, inline);
    let mut apart = 0;
    entries.find(|slot| {
        let is_long = long == Some(*slot);
        if is_long {
            long = page.first_longer(slot + 1, inline);
        }
        apart += usize::from(is_long || page.record(*slot).large);
        apart > APART
    })
}

/// What of a range of keys a leaf covers, if it knows its bounds whole.
fn within(page: Page<'_>, keys: &KeyRange, page_size: usize) -> Option<KeyRange> {
    let (lower, upper) = fences(page);
    if [Some(&lower), upper.as_ref()].into_iter().flatten().any(|fence| is_long(fence.len(), page_size)) {
        return None;
    }
    Some(KeyRange { lower, upper }.within(keys))
}

/// Of an inner page: its key 0 counts as less than all, whatever a list of fixed-length keys keeps in its place.
fn above_first(found: std::result::Result<usize, usize>) -> std::result::Result<usize, usize> {
    if found == Ok(0) { Err(1) } else { found }
}

/// The fences around a run of slots of an inner page, as images.
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

//! A copy of a leaf, made under its latch, with everything that a cursor needs to walk the leaf and to go on from it:
//! whole keys, and the range of keys that the leaf covers. Of a leaf that keeps its keys out of line the copy is a
//! part, with the range of that part. Merging with other versions must not be in this file.

use super::long_key::is_long;
use super::search::{Range, Target};
use super::{PageRead, Tree};
use crate::base::{Error, Lsn, Result, limits};
use crate::page::{KeyWindow, Page, Record, RecordListKind};
use std::ops::Range as Slots;

/// A copy of a leaf, reusable for one leaf after another without allocating anew.
#[derive(Clone, Debug, Default)]
pub struct LeafCopy {
    page: Vec<u8>,
    /// Whole keys of the slots whose key is long, in order of slots: their runs may be freed once the latch is gone.
    long: Vec<(usize, Vec<u8>)>,
    /// Of a leaf that keeps its keys out of line: the slots that were taken, which count from 0 here. The window has their whole keys,
    /// the range is theirs.
    part: Option<Slots<usize>>,
    range: Range,
    window: KeyWindow,
    /// A buffer for the next fence.
    spare: Vec<u8>,
    /// No entry has a record.
    bare: bool,
}

/// How many entries are taken of a leaf that keeps its keys out of line: each has to be read from the key heap.
const PART: usize = 32;

impl LeafCopy {
    /// No leaf yet: no entries, the empty key's range.
    pub fn new() -> LeafCopy {
        LeafCopy::default()
    }

    /// Forgets the leaf, but not the memory that it took.
    pub fn clear(&mut self) {
        self.page.clear();
        self.long.clear();
        self.part = None;
        self.range.lower.clear();
        self.spare = self.range.upper.take().unwrap_or_else(|| std::mem::take(&mut self.spare));
        self.window.clear();
    }

    /// Bytes of memory that it has.
    pub fn room(&self) -> usize {
        let fences = self.range.upper.as_ref().map_or(0, Vec::capacity) + self.range.lower.capacity();
        self.page.capacity() + fences + self.spare.capacity() + self.window.room()
    }

    /// Copies the leaf that `target` names. Of a detached subtree, which must hold the target's key, the outer leaves may
    /// have no bound where the subtree has one: the caller keeps within the subtree's.
    pub fn load<S: PageRead>(&mut self, tree: &Tree, store: &S, target: Target<'_>) -> Result<()> {
        let leaf = tree.descend(store, target)?;
        let page = Page::new(&leaf);
        store.prefetch_place_of(page.right());
        let page_size = store.page_size();
        let mut upper = self.range.upper.take().unwrap_or_else(|| std::mem::take(&mut self.spare));
        let has_upper = page.upper_fence_into(&mut upper);
        if is_long(page.lower_fence().len(), page_size) || is_long(upper.len(), page_size) {
            drop(leaf);
            return self.load_between_separators(tree, store, target);
        }
        self.range.lower.clear();
        self.range.lower.extend_from_slice(page.lower_fence());
        self.range.upper = has_upper.then_some(upper);
        self.copy(tree, store, page, target)
    }

    /// Copies the leaf to the right of the copied one instead, without a descent; false, and nothing is changed, where
    /// it takes one to find it.
    ///
    /// The right link may be old: the page behind it counts only if it says itself that it is the leaf of this tree that
    /// begins where the copied one ends. If it has been freed since the copy was made it may still say so, and has then all
    /// that happened to its keys up to that moment: the caller must not care for changes later than the copy, and must
    /// know that the page's id has not been used again.
    pub fn load_right<S: PageRead>(&mut self, tree: &Tree, store: &S) -> Result<bool> {
        let (right, page_size) = (self.page().right(), store.page_size());
        let Some(upper) = self.range.upper.as_deref().filter(|_| !right.is_none()) else { return Ok(false) };
        // A page that is not there any more is no error: nothing leads to it.
        let Ok(leaf) = store.read(right) else { return Ok(false) };
        let page = Page::new(&leaf);
        store.prefetch_place_of(page.right());
        if tree.check_page(page, right, 0).is_err() || page.lower_fence() != upper || is_long(upper.len(), page_size) {
            return Ok(false);
        }
        // The runs of its long keys may have gone with it.
        if page.first_longer(0, limits::max_inline_key(page_size)).is_some() {
            return Ok(false);
        }
        let mut next = std::mem::take(&mut self.spare);
        let bounded = page.upper_fence_into(&mut next);
        if bounded && (is_long(next.len(), page_size) || next.as_slice() <= upper) {
            self.spare = next;
            return Ok(false);
        }
        std::mem::swap(&mut self.range.lower, self.range.upper.get_or_insert_default());
        self.spare = std::mem::replace(&mut self.range.upper, bounded.then_some(next)).unwrap_or_default();
        self.window.clear();
        self.take(page);
        Ok(true)
    }

    /// Where a fence is a long key's image, its run belongs to a separator further up: goes down again and takes the
    /// whole keys from the separators themselves, while their pages are latched.
    #[cold]
    fn load_between_separators<S: PageRead>(&mut self, tree: &Tree, store: &S, target: Target<'_>) -> Result<()> {
        let mut range = Range::default();
        let leaf = tree.descend_noting(store, target, |page, slot| {
            range = tree.child_range(store, page, slot, &range)?;
            Ok(())
        })?;
        self.range = range;
        self.copy(tree, store, Page::new(&leaf), target)
    }

    fn copy<S: PageRead>(&mut self, tree: &Tree, store: &S, page: Page<'_>, target: Target<'_>) -> Result<()> {
        // So a cursor that goes on from one leaf's range to the next never stands still.
        if !self.range.is_for(target) {
            return Err(Error::corrupt(page.id(), "its fences are not those that its parent says"));
        }
        self.window.clear();
        self.take(page);
        if tree.resolver(page).is_some() {
            let copied = self.copy_part(tree, store, page, target);
            if copied.is_err() {
                self.window.clear();
            }
            return copied;
        }
        let inline = limits::max_inline_key(store.page_size());
        let mut slot = 0;
        while let Some(found) = page.first_longer(slot, inline) {
            let mut key = Vec::new();
            tree.full_key(store, page, found, &mut key)?;
            self.long.push((found, key));
            slot = found + 1;
        }
        Ok(())
    }

    /// Reads the whole keys of the entries around `target`, and makes their range that of the copy.
    #[cold]
    fn copy_part<S: PageRead>(&mut self, tree: &Tree, store: &S, page: Page<'_>, target: Target<'_>) -> Result<()> {
        let count = page.count();
        let at = |key| tree.locate(store, page, key).map(|found| found.unwrap_or_else(|slot| slot));
        let (from, to) = match target {
            Target::First => (0, PART.min(count)),
            Target::Last => (count.saturating_sub(PART), count),
            Target::Covering(key) => at(key).map(|from| (from, (from + PART).min(count)))?,
            Target::Before(key) => at(key).map(|to| (to.saturating_sub(PART), to))?,
        };
        let mut key = Vec::new();
        for slot in from..to {
            tree.full_key(store, page, slot, &mut key)?;
            let rises = slot == from || self.window.get(slot - from - 1) < key.as_slice();
            if !rises || !self.range.is_for(Target::Covering(&key)) {
                return Err(Error::corrupt(page.id(), format!("the key of slot {slot} is out of order")));
            }
            self.window.push(&key);
        }
        if from > 0 {
            self.range.lower = match target {
                Target::Covering(key) => key.to_vec(),
                _ => self.window.get(0).to_vec(),
            };
        }
        if to < count {
            self.range.upper = Some(match target {
                Target::Before(key) => key.to_vec(),
                _ => {
                    tree.full_key(store, page, to, &mut key)?;
                    key
                }
            });
        }
        // Keys that are out of order just outside would be met again and again.
        let proceeds = from == to || self.range.upper.as_ref().is_none_or(|upper| self.range.lower < *upper);
        if !proceeds || !self.range.is_for(target) {
            return Err(Error::corrupt(page.id(), "keys of its heap are out of order"));
        }
        self.part = Some(from..to);
        Ok(())
    }

    #[inline]
    fn take(&mut self, page: Page<'_>) {
        self.page.clear();
        self.page.extend_from_slice(page.bytes());
        self.long.clear();
        self.part = None;
        self.bare = page.records() == RecordListKind::None;
    }

    /// The page as it was copied, whole. Its keys are images; [`LeafCopy::key_into`] gives whole ones.
    pub fn page(&self) -> Page<'_> {
        Page::new(&self.page)
    }

    /// The LSN of the leaf's last operation when it was copied.
    pub fn lsn(&self) -> Lsn {
        self.page().lsn()
    }

    /// The number of entries; of a leaf that keeps its keys out of line those that were taken.
    pub fn count(&self) -> usize {
        self.part.as_ref().map_or_else(|| self.page().count(), Slots::len)
    }

    /// Replaces `out` by the whole key of `slot`; empty where there is no such slot.
    pub fn key_into(&mut self, slot: usize, out: &mut Vec<u8>) {
        self.fetch(slot);
        out.clear();
        out.extend_from_slice(self.key(slot));
    }

    /// Makes the keys of some slots from `slot` on ready for [`LeafCopy::key`]; returns the slot behind them.
    #[inline]
    pub fn fetch(&mut self, slot: usize) -> usize {
        if let Some(part) = &self.part {
            return part.len();
        }
        self.window.fetch(Page::new(&self.page), slot)
    }

    /// The whole key of a slot that has been fetched; empty for any other.
    #[inline]
    pub fn key(&self, slot: usize) -> &[u8] {
        match self.long_key(slot) {
            Some(key) => key,
            None => self.window.get(slot),
        }
    }

    #[inline]
    fn long_key(&self, slot: usize) -> Option<&[u8]> {
        if self.long.is_empty() {
            return None;
        }
        let at = self.long.binary_search_by_key(&slot, |(slot, _)| *slot).ok()?;
        self.long.get(at).map(|(_, key)| key.as_slice())
    }

    /// The record of `slot`; an empty one where there is no such slot.
    #[inline]
    pub fn record(&self, slot: usize) -> Record<'_> {
        let first = self.part.as_ref().map_or(0, |part| part.start);
        if self.bare { Record::default() } else { self.page().record(first + slot) }
    }

    /// `Ok(slot)` of the entry of `key`, or `Err(slot)` of the first one above it.
    pub fn search(&self, key: &[u8]) -> std::result::Result<usize, usize> {
        if self.long.is_empty() && self.part.is_none() {
            return self.page().search(key);
        }
        let mut found = Vec::new();
        let (mut low, mut high) = (0, self.count());
        while low < high {
            let middle = low.midpoint(high);
            let there = match self.long_key(middle) {
                Some(key) => key,
                None if self.part.is_some() => self.window.get(middle),
                None => {
                    self.page().key_into(middle, &mut found);
                    &found
                }
            };
            match there.cmp(key) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// No key of the leaf's range is below this one. [`Target::Before`] it is the leaf to the left; the empty key has
    /// none.
    pub fn lower(&self) -> &[u8] {
        &self.range.lower
    }

    /// All keys of the leaf's range are below this one; `None` for the rightmost leaf. [`Target::Covering`] it is the
    /// leaf to the right.
    pub fn upper(&self) -> Option<&[u8]> {
        self.range.upper.as_deref()
    }
}

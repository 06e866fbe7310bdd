//! A copy of a leaf, made under its latch, with all that a cursor needs to iterate over the leaf and to continue after
//! it: whole keys, and the range of keys that the leaf covers. For a leaf that keeps its keys out of line, the copy is
//! a part of the leaf, with the range of that part.

use super::attempts::Attempts;
use super::long_key::is_long;
use super::search::{Descent, LeafTarget, wrong_fences};
use super::{KeyRange, PageRead, Tree};
use crate::base::{Error, Lsn, Result, limits};
use crate::page::{KeyWindow, Page, Record, RecordListKind};
use std::ops::Range as Slots;

/// A copy of a leaf. Its memory is reused for the next leaf.
#[derive(Clone, Debug, Default)]
pub struct LeafCopy {
    /// The copied page. The bytes between its two lists have no meaning. It is empty before the first copy.
    page: Vec<u8>,
    /// The memory of `page` while no page is copied.
    page_memory: Vec<u8>,
    /// The whole keys of the slots with long keys, in the order of the slots. They are copied because their runs may be
    /// freed after the latch is released.
    long: Vec<(usize, Vec<u8>)>,
    /// For a leaf that keeps its keys out of line: the slots that were copied. Slot numbers of the copy begin with 0.
    /// `window` has their whole keys, and `range` is their range.
    part: Option<Slots<usize>>,
    range: KeyRange,
    window: KeyWindow,
    /// A buffer for the next upper fence.
    spare: Vec<u8>,
    /// True if entries have no records.
    no_records: bool,
}

/// The number of entries that are copied of a leaf that keeps its keys out of line. Each key has to be read from the
/// key heap.
const PART: usize = 32;

impl LeafCopy {
    /// An empty copy: no entries, and the range of all keys.
    pub fn new() -> LeafCopy {
        LeafCopy::default()
    }

    /// Removes the leaf but keeps the memory.
    pub fn clear(&mut self) {
        self.swap_memory(false);
        self.long.clear();
        self.part = None;
        self.range.lower.clear();
        self.spare = self.range.upper.take().unwrap_or_else(|| std::mem::take(&mut self.spare));
        self.window.clear();
    }

    /// The bytes of memory of the copy.
    pub fn room(&self) -> usize {
        let fences = self.range.upper.as_ref().map_or(0, Vec::capacity) + self.range.lower.capacity();
        self.page.capacity() + self.page_memory.capacity() + fences + self.spare.capacity() + self.window.room()
    }

    /// Copies the leaf that `target` selects. In a detached subtree, which must contain the key of the target, the
    /// outer leaves may have no bound where the subtree has one, so the caller must also check the bounds of the
    /// subtree.
    pub fn load<S: PageRead>(&mut self, tree: &Tree, store: &S, target: LeafTarget<'_>) -> Result<()> {
        let (attempts, page_size) = (Attempts::new(store), store.page_size());
        loop {
            let leaf = tree.descend_in(&attempts, target, |_| Ok(()))?;
            let page = Page::new(&leaf);
            store.prefetch_place_of(page.right());
            let mut upper = self.range.upper.take().unwrap_or_else(|| std::mem::take(&mut self.spare));
            let has_upper = page.upper_fence_into(&mut upper);
            if is_long(page.lower_fence().len(), page_size) || is_long(upper.len(), page_size) {
                drop(leaf);
                return self.load_between_separators(tree, &attempts, target);
            }
            self.range.lower.clear();
            self.range.lower.extend_from_slice(page.lower_fence());
            self.range.upper = has_upper.then_some(upper);
            match self.copy(tree, &attempts, page, target) {
                Ok(()) => return Ok(()),
                Err(error) => attempts.again(leaf, error)?,
            }
        }
    }

    /// Copies the leaf to the right of the copied leaf, without a descent. Returns false and changes nothing if a
    /// descent is needed to find it.
    ///
    /// The right link may be out of date. The page that it refers to is used only if it is a leaf of this tree that
    /// begins at the upper fence of the copied leaf. If the page was freed after the copy was made, it may still look
    /// like that, with all changes of its keys up to that moment. So the caller must not need changes later than the
    /// copy, and must know that the page id has not been used again.
    pub fn load_right<S: PageRead>(&mut self, tree: &Tree, store: &S) -> Result<bool> {
        let (right, page_size) = (self.page().right(), store.page_size());
        let Some(upper) = self.range.upper.as_deref().filter(|_| !right.is_none()) else { return Ok(false) };
        // A missing page is not an error, because the right link may be out of date.
        let Ok(leaf) = store.read(right) else { return Ok(false) };
        let page = Page::new(&leaf);
        store.prefetch_place_of(page.right());
        if tree.check_page(page, right, 0).is_err() || page.lower_fence() != upper || is_long(upper.len(), page_size) {
            return Ok(false);
        }
        // The runs of its long keys may have been freed with it.
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

    /// If a fence is the image of a long key, its run belongs to a separator in an inner page. Descends again and reads
    /// the whole keys from the separators, while their pages are latched.
    #[cold]
    fn load_between_separators<S: PageRead>(
        &mut self,
        tree: &Tree,
        attempts: &Attempts<'_, S>,
        target: LeafTarget<'_>,
    ) -> Result<()> {
        loop {
            let mut range = KeyRange::default();
            let leaf = tree.descend_in(attempts, target, |event| {
                range = match event {
                    Descent::Begins => KeyRange::default(),
                    Descent::Passes(page, slot) => tree.child_range(attempts, page, slot, &range)?,
                };
                Ok(())
            })?;
            self.range = range;
            match self.copy(tree, attempts, Page::new(&leaf), target) {
                Ok(()) => return Ok(()),
                Err(error) => attempts.again(leaf, error)?,
            }
        }
    }

    fn copy<S: PageRead>(
        &mut self,
        tree: &Tree,
        attempts: &Attempts<'_, S>,
        page: Page<'_>,
        target: LeafTarget<'_>,
    ) -> Result<()> {
        // Without this check, a cursor that continues at the end of a leaf's range might loop.
        if !self.range.is_for(target) {
            return Err(wrong_fences(page));
        }
        self.window.clear();
        self.take(page);
        if tree.resolver(page).is_some() {
            let copied = self.copy_part(tree, attempts, page, target);
            if copied.is_err() {
                self.window.clear();
            }
            return copied;
        }
        let inline = limits::max_inline_key(attempts.page_size());
        let mut slot = 0;
        while let Some(found) = page.first_longer(slot, inline) {
            let mut key = Vec::new();
            attempts.note(tree.full_key(attempts, page, found, &mut key))?;
            self.long.push((found, key));
            slot = found + 1;
        }
        if slot > 0 { attempts.complete() } else { Ok(()) }
    }

    /// Reads the whole keys of the entries around `target`, and sets the range of the copy to their range.
    #[cold]
    fn copy_part<S: PageRead>(
        &mut self,
        tree: &Tree,
        attempts: &Attempts<'_, S>,
        page: Page<'_>,
        target: LeafTarget<'_>,
    ) -> Result<()> {
        let count = page.count();
        let at = |key| tree.locate(attempts, page, key).map(|found| found.unwrap_or_else(|slot| slot));
        let (from, to) = match target {
            LeafTarget::First => (0, PART.min(count)),
            LeafTarget::Last => (count.saturating_sub(PART), count),
            LeafTarget::Covering(key) => at(key).map(|from| (from, (from + PART).min(count)))?,
            LeafTarget::Before(key) => at(key).map(|to| (to.saturating_sub(PART), to))?,
        };
        let mut key = Vec::new();
        for slot in from..to {
            if !attempts.note(tree.full_key(attempts, page, slot, &mut key))? || attempts.misses() {
                continue;
            }
            let rises = slot == from || self.window.get(slot - from - 1) < key.as_slice();
            if !rises || !self.range.is_for(LeafTarget::Covering(&key)) {
                return Err(Error::corrupt(page.id(), format!("the key of slot {slot} is out of order")));
            }
            self.window.push(&key);
        }
        let ends_at_key = to < count && !matches!(target, LeafTarget::Before(_));
        if ends_at_key {
            attempts.note(tree.full_key(attempts, page, to, &mut key))?;
        }
        attempts.complete()?;
        if from > 0 {
            self.range.lower = match target {
                LeafTarget::Covering(key) => key.to_vec(),
                _ => self.window.get(0).to_vec(),
            };
        }
        if to < count {
            self.range.upper = Some(match target {
                LeafTarget::Before(key) => key.to_vec(),
                _ => key,
            });
        }
        // A cursor would read the same keys again and again if keys just outside the part were out of order.
        let proceeds = from == to || self.range.upper.as_ref().is_none_or(|upper| self.range.lower < *upper);
        if !proceeds || !self.range.is_for(target) {
            return Err(Error::corrupt(page.id(), "keys of its heap are out of order"));
        }
        self.part = Some(from..to);
        Ok(())
    }

    /// Makes the memory of the page the page itself, or the reverse.
    #[inline]
    fn swap_memory(&mut self, has_page: bool) {
        if self.page.is_empty() == has_page {
            std::mem::swap(&mut self.page, &mut self.page_memory);
        }
    }

    #[inline]
    fn take(&mut self, page: Page<'_>) {
        self.swap_memory(true);
        page.copy_into(&mut self.page);
        self.long.clear();
        self.part = None;
        self.no_records = page.records() == RecordListKind::None;
    }

    /// The copied page, without the free bytes between its two lists. Its keys are images; [`LeafCopy::key_into`] gives
    /// whole keys.
    pub fn page(&self) -> Page<'_> {
        Page::new(&self.page)
    }

    /// The LSN of the last operation on the leaf before it was copied.
    pub fn lsn(&self) -> Lsn {
        self.page().lsn()
    }

    /// The number of entries. For a leaf that keeps its keys out of line, the number of those that were copied.
    pub fn count(&self) -> usize {
        self.part.as_ref().map_or_else(|| self.page().count(), Slots::len)
    }

    /// Replaces `out` by the whole key of `slot`. It is empty if there is no such slot.
    pub fn key_into(&mut self, slot: usize, out: &mut Vec<u8>) {
        self.fetch(slot);
        out.clear();
        out.extend_from_slice(self.key(slot));
    }

    /// Prepares the keys of some slots from `slot` on for [`LeafCopy::key`]. Returns the slot after them.
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

    /// The record of `slot`; empty if there is no such slot.
    #[inline]
    pub fn record(&self, slot: usize) -> Record<'_> {
        let first = self.part.as_ref().map_or(0, |part| part.start);
        if self.no_records { Record::default() } else { self.page().record(first + slot) }
    }

    /// `Ok(slot)` of the entry of `key`, or `Err(slot)` of the first entry with a greater key.
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

    /// The lower bound of the leaf's range. [`LeafTarget::Before`] with this key is the leaf to the left. The leftmost
    /// leaf has the empty key.
    pub fn lower(&self) -> &[u8] {
        &self.range.lower
    }

    /// The upper bound of the leaf's range: all its keys are less. `None` for the rightmost leaf.
    /// [`LeafTarget::Covering`] with this key is the leaf to the right.
    pub fn upper(&self) -> Option<&[u8]> {
        self.range.upper.as_deref()
    }
}

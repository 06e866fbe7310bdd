//! Verification: reads every page of a tree and reports all problems, and how its bytes are used. It never changes a
//! page and does not stop at the first problem: a page that cannot be read costs its key range.

use super::key_heap::{shared_with_lower, wrong_part};
use super::long_key::is_long;
use super::read_ahead::most_ahead;
use super::search::{MAX_LEVEL, child_of};
use super::split::fences;
use super::{DetachedSubtree, KeyRange, PageRead, Tree};
use crate::base::{Error, PageId, Result};
use crate::page::{KeyWindow, Page, Record};
use std::collections::{BTreeMap, HashSet};

/// An item that [`Tree::verify`] reaches.
#[derive(Clone, Copy, Debug)]
pub enum Visit<'a> {
    /// A leaf, an inner page or a page of a long key's run.
    Page(PageId),
    /// A page of the key heap, reported once, at the end. Several trees of a table, also detached ones, may refer to
    /// it.
    Heap {
        /// The page.
        page: PageId,
        /// The number of its keys that belong to this tree.
        keys: u64,
        /// The number of all its keys.
        of: u64,
    },
    /// A large record. The layer above checks its run.
    Large {
        /// The leaf with the record.
        leaf: PageId,
        /// The whole key.
        key: &'a [u8],
        /// The record.
        record: Record<'a>,
    },
}

/// A problem in a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The page.
    pub page: PageId,
    /// A description of the problem.
    pub what: String,
    /// The lower bound of the affected keys.
    pub lower: Vec<u8>,
    /// The upper bound of the affected keys: all are less. `None` if there is no bound.
    pub upper: Option<Vec<u8>>,
}

/// The use of bytes in the pages of one level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LevelStats {
    /// The number of pages.
    pub pages: u64,
    /// The number of entries.
    pub entries: u64,
    /// All bytes in use.
    pub used_bytes: u64,
    /// Bytes of headers and fences.
    pub front_bytes: u64,
    /// Bytes of all key images, uncompressed and without slots.
    pub raw_key_bytes: u64,
    /// Bytes of the key lists, slots included.
    pub key_list_bytes: u64,
    /// Bytes in the key lists that are bytes of keys. The rest of the lists is slots, lengths and the like.
    pub kept_key_bytes: u64,
    /// Bytes of the record lists, slots included.
    pub record_list_bytes: u64,
    /// Bytes of the records in leaves, without slots. Large records are not counted here but in
    /// [`TreeStats::large_value_bytes`].
    pub raw_record_bytes: u64,
}

/// The result of [`Tree::verify`].
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TreeStats {
    /// The levels, leaves first.
    pub levels: Vec<LevelStats>,
    /// The number of pages in runs of long keys.
    pub run_pages: u64,
    /// The number of pages of the key heap, for leaves that keep their keys there.
    pub heap_pages: u64,
    /// All bytes in use in these pages.
    pub heap_used_bytes: u64,
    /// The number of large records.
    pub large_records: u64,
    /// Bytes of the large values. A tree does not know them: 0 unless the layer above sets it.
    pub large_value_bytes: u64,
    /// Bytes of the places of all these pages in the file. A tree does not know them: 0 in memory, or unless the layer
    /// above sets it.
    pub stored_bytes: u64,
    /// All problems; empty for a sound tree.
    pub problems: Vec<Problem>,
}

impl TreeStats {
    /// The number of entries in the leaves.
    pub fn entries(&self) -> u64 {
        self.levels.first().map_or(0, |leaves| leaves.entries)
    }
}

/// A page to visit, with the level and the range that its parent gives it.
struct Expected {
    id: PageId,
    level: u8,
    range: KeyRange,
    /// Its fences as images; `None` if unknown.
    lower: Option<Vec<u8>>,
    upper: Option<Option<Vec<u8>>>,
}

struct TreeWalk<'v, S> {
    tree: &'v Tree,
    store: &'v S,
    visit: &'v mut dyn FnMut(Visit<'_>),
    seen: HashSet<PageId>,
    stats: TreeStats,
    waiting: Vec<Expected>,
    /// How many pages at the end of `waiting` have been hinted.
    hinted: usize,
    /// The pages of the key heap that leaves refer to, and the number of references.
    heap: BTreeMap<PageId, u64>,
    /// The leaf before and its right link; `None` if it could not be read.
    previous: Option<(PageId, PageId)>,
}

impl Tree {
    /// Reads all pages and checks their structure, the order of keys, fences against the separators of the parents,
    /// levels, right links, runs of long keys, and that no page is reached twice. `visit` is called with every page
    /// that is reached and every large record.
    ///
    /// # Errors
    /// Only if the root cannot be read at all, and [`Error::NotBuilt`], which tells nothing of the pages. All other
    /// problems are in the result.
    pub fn verify<S: PageRead>(&self, store: &S, visit: &mut dyn FnMut(Visit<'_>)) -> Result<TreeStats> {
        self.walk(store, KeyRange::default(), (Some(Vec::new()), Some(None)), visit)
    }

    /// Like [`Tree::verify`], for a detached subtree of this tree.
    pub fn verify_subtree<S: PageRead>(
        &self,
        store: &S,
        subtree: &DetachedSubtree,
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Result<TreeStats> {
        let range = KeyRange::between(&subtree.lower, subtree.upper.as_deref());
        Tree { root: subtree.root, ..*self }.walk(store, range, (None, None), visit)
    }

    fn walk<S: PageRead>(
        &self,
        store: &S,
        range: KeyRange,
        (lower, upper): (Option<Vec<u8>>, Option<Option<Vec<u8>>>),
        visit: &mut dyn FnMut(Visit<'_>),
    ) -> Result<TreeStats> {
        let level = Page::new(&store.read(self.root)?).level();
        if level > MAX_LEVEL {
            return Err(Error::corrupt(self.root, format!("a root of level {level}")));
        }
        let open_end = range.upper.is_none() && upper.is_some();
        let stats = TreeStats { levels: vec![LevelStats::default(); usize::from(level) + 1], ..TreeStats::default() };
        let waiting = vec![Expected { id: self.root, level, range, lower, upper }];
        let seen = HashSet::new();
        let mut walk = TreeWalk {
            tree: self,
            store,
            visit,
            seen,
            stats,
            waiting,
            hinted: 0,
            heap: BTreeMap::new(),
            previous: None,
        };
        while let Some(expected) = walk.next() {
            if let Err(error) = walk.page(&expected) {
                if matches!(error, Error::NotBuilt { .. }) {
                    return Err(error);
                }
                walk.previous = None;
                walk.problem(&expected, &error);
            }
        }
        walk.heap();
        if let Some((id, right)) = walk.previous.filter(|(_, right)| open_end && !right.is_none()) {
            let what = format!("the last leaf has a right link to page {right}");
            walk.stats.problems.push(Problem { page: id, what, lower: Vec::new(), upper: None });
        }
        Ok(walk.stats)
    }
}

impl<S: PageRead> TreeWalk<'_, S> {
    fn problem(&mut self, at: &Expected, error: &Error) {
        let (page, what) = match error {
            Error::Corrupt { page, what } => (*page, what.clone()),
            other => (at.id, other.to_string()),
        };
        let KeyRange { lower, upper } = at.range.clone();
        // If one page is lost, many keys of a leaf may be lost with it. They are one problem.
        if self
            .stats
            .problems
            .last()
            .is_some_and(|last| last.page == page && last.lower == lower && last.upper == upper)
        {
            return;
        }
        self.stats.problems.push(Problem { page, what, lower, upper });
    }

    fn reach(&mut self, id: PageId) -> Result<()> {
        reach_once(&mut self.seen, id)?;
        (self.visit)(Visit::Page(id));
        Ok(())
    }

    /// Checks a page. Returns an error if the page cannot be used; smaller problems are added to the result.
    fn page(&mut self, expected: &Expected) -> Result<()> {
        self.reach(expected.id)?;
        let store = self.store;
        let latched = store.read(expected.id)?;
        let page = Page::check(&latched, expected.id)?;
        self.tree.check_page(page, expected.id, expected.level)?;
        self.fences(page, expected);
        self.count(page, expected.level);
        self.keys(page, expected);
        if expected.level == 0 {
            self.leaf(page, expected);
            return Ok(());
        }
        self.children(page, expected)
    }

    fn fences(&mut self, page: Page<'_>, expected: &Expected) {
        let (lower, upper) = fences(page);
        if expected.lower.as_ref().is_some_and(|fence| *fence != lower) {
            self.problem(expected, &Error::corrupt(page.id(), "its lower fence is not its parent's separator"));
        }
        if expected.upper.as_ref().is_some_and(|fence| *fence != upper) {
            self.problem(expected, &Error::corrupt(page.id(), "its upper fence is not its parent's separator"));
        }
    }

    fn count(&mut self, page: Page<'_>, level: u8) {
        let front = page.front();
        let records = page.record_list_bytes();
        let small = (0..if level == 0 { page.count() } else { 0 }).map(|slot| page.record(slot));
        let raw_records: usize = small.filter(|record| !record.large).map(|record| record.bytes.len()).sum();
        if let Some(stats) = self.stats.levels.get_mut(usize::from(level)) {
            stats.pages += 1;
            stats.entries += page.count() as u64;
            stats.used_bytes += page.used() as u64;
            stats.front_bytes += front as u64;
            stats.raw_key_bytes += page.raw_key_bytes() as u64;
            stats.key_list_bytes += page.used().saturating_sub(front + records) as u64;
            stats.kept_key_bytes += page.kept_key_bytes() as u64;
            stats.record_list_bytes += records as u64;
            stats.raw_record_bytes += raw_records as u64;
        }
    }

    /// Counts a key image that is not in the page itself.
    fn count_out_of_line(&mut self, len: usize) {
        if let Some(stats) = self.stats.levels.first_mut() {
            stats.raw_key_bytes += len as u64;
        }
    }

    /// Visits the pages of the key heap that leaves refer to.
    fn heap(&mut self) {
        for (id, keys) in std::mem::take(&mut self.heap) {
            let everywhere = Expected { id, level: 0, range: KeyRange::default(), lower: None, upper: None };
            if self.seen.contains(&id) {
                self.problem(&everywhere, &Error::corrupt(id, "it is a page of the key heap and something else"));
                continue;
            }
            let store = self.store;
            let read = store.read(id).and_then(|latched| {
                let page = Page::check(&latched, id)?;
                Ok((page.used(), page.count()))
            });
            match read {
                Ok((used, of)) => {
                    self.stats.heap_pages += 1;
                    self.stats.heap_used_bytes += used as u64;
                    (self.visit)(Visit::Heap { page: id, keys, of: of as u64 });
                }
                // The lost keys of this page are reported already.
                Err(_) => (self.visit)(Visit::Heap { page: id, keys, of: keys }),
            }
        }
    }

    /// Checks that the whole keys are in order and within the range, and visits their runs.
    fn keys(&mut self, page: Page<'_>, expected: &Expected) {
        let (mut key, mut last) = (Vec::new(), Vec::new());
        let mut window = KeyWindow::default();
        let first = usize::from(page.is_inner());
        let mut after_unknown = false;
        for slot in first..page.count() {
            let read = match page.key_place(slot) {
                Some(place) => {
                    *self.heap.entry(place.page).or_default() += 1;
                    let read = self.tree.image_into(self.store, page, slot, &mut key);
                    self.count_out_of_line(key.len());
                    read
                }
                None => {
                    window.key_into(page, slot, &mut key);
                    Ok(())
                }
            };
            if let Err(error) = read.and_then(|()| self.run(page, &mut key)) {
                self.problem(expected, &error);
                after_unknown = true;
                continue;
            }
            let above = if slot == first { key >= expected.range.lower } else { key > last };
            if !above || expected.range.upper.as_ref().is_some_and(|upper| key >= *upper) {
                self.problem(expected, &Error::corrupt(page.id(), format!("the key at slot {slot} is out of order")));
            }
            let before = if slot == 0 { shared_with_lower(page, self.store.page_size()) } else { &last };
            if !std::mem::take(&mut after_unknown) && !page.part_is(slot, before, &key) {
                self.problem(expected, &wrong_part(page.id(), slot));
            }
            std::mem::swap(&mut key, &mut last);
        }
    }

    /// Replaces the image of a key by the whole key, and visits its run if it has one.
    fn run(&mut self, page: Page<'_>, key: &mut Vec<u8>) -> Result<()> {
        if is_long(key.len(), self.store.page_size()) {
            for id in self.tree.run_pages(self.store, page.id(), key)? {
                self.reach(id)?;
                self.stats.run_pages += 1;
            }
            self.tree.resolve_image(self.store, page, key)?;
        }
        Ok(())
    }

    /// The next page to visit. Hints the pages after it if none is hinted.
    fn next(&mut self) -> Option<Expected> {
        if self.hinted == 0 {
            self.hinted = most_ahead(self.store.page_size()).min(self.waiting.len());
            self.store.will_read(self.waiting.iter().rev().take(self.hinted).map(|expected| expected.id));
        }
        self.hinted = self.hinted.saturating_sub(1);
        self.waiting.pop()
    }

    fn leaf(&mut self, page: Page<'_>, expected: &Expected) {
        if let Some((left, right)) = self.previous.filter(|(_, right)| *right != page.id()) {
            let what = format!("its right link leads to page {right}, not to page {}", page.id());
            self.problem(expected, &Error::corrupt(left, what));
        }
        self.previous = Some((page.id(), page.right()));
        let mut key = Vec::new();
        for slot in 0..page.count() {
            let record = page.record(slot);
            if record.large {
                self.stats.large_records += 1;
                // If the key cannot be read, which is reported already, the value cannot be read either.
                if self.tree.full_key(self.store, page, slot, &mut key).is_ok() {
                    (self.visit)(Visit::Large { leaf: page.id(), key: &key, record });
                }
            }
        }
    }

    fn children(&mut self, page: Page<'_>, expected: &Expected) -> Result<()> {
        let (own_lower, own_upper) = fences(page);
        // The children come before the pages that were hinted.
        self.hinted = 0;
        // The first child is taken from the stack first, so that leaves are visited in order.
        for slot in (0..page.count()).rev() {
            let image = |slot: usize| {
                let mut image = Vec::new();
                page.key_into(slot, &mut image);
                image
            };
            let id = child_of(page, slot)?;
            let range = match self.tree.child_range(self.store, page, slot, &expected.range) {
                Ok(range) => range,
                // The run of a separator is damaged, which is reported already. The range of the page is known.
                Err(_) => expected.range.clone(),
            };
            let lower = if slot == 0 { own_lower.clone() } else { image(slot) };
            // A detached subtree is freed from its end. So its last child was not the last one when its fence was made.
            let upper = match slot + 1 < page.count() {
                true => Some(Some(image(slot + 1))),
                false => expected.upper.as_ref().map(|_| own_upper.clone()),
            };
            let level = expected.level - 1;
            self.waiting.push(Expected { id, level, range, lower: Some(lower), upper });
        }
        Ok(())
    }
}

/// Adds a page to the reached pages. Returns an error if it was reached before.
pub(super) fn reach_once(seen: &mut HashSet<PageId>, id: PageId) -> Result<()> {
    if seen.insert(id) { Ok(()) } else { Err(Error::corrupt(id, "it is reached twice")) }
}

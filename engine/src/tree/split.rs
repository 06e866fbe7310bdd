//! Splitting: a full page becomes two pages under its parent; the content of a full root moves down to two new pages.
//! Each split is one step that leaves a valid tree. If the parent has no room for the separator, the parent is split
//! instead, and the caller starts again.

use super::edit::{child_record, peek, slot_u16};
use super::insert::MAX_SPLITS;
use super::long_key::{is_long, trial_image};
use super::search::{MAX_LEVEL, PathStep};
use super::{PageRead, PageWrite, Tree};
use crate::base::{Error, PageId, Result, bytes, limits};
use crate::page::{Page, PageBuilder, PageOp, PageSpec, Record, choose_split, would_insert};

/// The entry that a split makes room for.
#[derive(Clone, Copy)]
pub(super) struct PendingInsert<'a> {
    /// The slot where it will be inserted.
    pub(super) slot: usize,
    /// The image of the key.
    pub(super) image: &'a [u8],
    /// The whole key. Unused in an inner page, which is never cut at the pending entry.
    pub(super) key: &'a [u8],
    pub(super) record_bytes: usize,
}

/// The position where a page is split.
struct SplitPoint {
    left: usize,
    separator: Separator,
}

enum Separator {
    /// A whole key. It gets a run if it is long.
    New(Vec<u8>),
    /// The image of a key of an inner page. It moves up and keeps its run.
    Moved(Vec<u8>),
}

impl Tree {
    /// Makes room in the leaf that covers `key`, or in one of the pages above it. The caller starts again.
    pub(super) fn split_leaf<S: PageWrite>(
        &self,
        store: &S,
        key: &[u8],
        pending: Option<PendingInsert<'_>>,
    ) -> Result<()> {
        let (path, leaf) = self.path_to(store, key)?;
        self.split_page(store, &path, leaf, pending)
    }

    /// True if the leaf `id` is the one that covers `key`, has more than one entry, and has its keys itself. Reads all
    /// keys that the split may need.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn can_split_leaf<S: PageRead>(&self, store: &S, id: PageId, key: &[u8]) -> Result<bool> {
        if self.path_to(store, key)?.1 != id {
            return Ok(false);
        }
        let latched = store.read(id)?;
        let page = Page::new(&latched);
        if page.count() < 2 || self.resolver(page).is_some() {
            return Ok(false);
        }
        self.read_ambiguous_keys(store, page).map(|()| true)
    }

    /// Splits the leaf `id` in two, if it is the leaf that covers `key` and has more than one entry. Returns false if
    /// it is not.
    ///
    /// # Errors
    /// The errors of the store.
    pub fn split_leaf_at<S: PageWrite>(&self, store: &S, id: PageId, key: &[u8]) -> Result<bool> {
        for _ in 0..MAX_SPLITS {
            let (path, leaf) = self.path_to(store, key)?;
            let count = peek(store, leaf, |page| page.count())?;
            if leaf != id || count < 2 {
                return Ok(false);
            }
            self.split_page(store, &path, leaf, None)?;
            if path.is_empty() || peek(store, leaf, |page| page.count())? < count {
                return Ok(true);
            }
        }
        Err(Error::corrupt(self.root, "splitting its pages does not split a leaf"))
    }

    fn split_page<S: PageWrite>(
        &self,
        store: &S,
        path: &[PathStep],
        id: PageId,
        pending: Option<PendingInsert<'_>>,
    ) -> Result<()> {
        let Some((&PathStep { id: parent_id, slot }, above)) = path.split_last() else {
            return self.split_root(store, pending);
        };
        let cut = self.choose_cut(store, id, pending)?;
        let mut parent = store.latch(parent_id)?;
        let mut left = store.latch(id)?;
        let long;
        let trial = match &cut.separator {
            Separator::New(key) if is_long(key.len(), store.page_size()) => {
                long = trial_image(key, store.page_size());
                &long
            }
            Separator::New(image) | Separator::Moved(image) => image,
        };
        let at = slot_u16(Page::new(&parent), slot + 1)?;
        let record = child_record(id);
        if !would_insert(Page::new(&parent), slot + 1, trial, Record::inline(&record))? {
            drop(left);
            drop(parent);
            let pending = PendingInsert { slot: slot + 1, image: trial, key: &[], record_bytes: record.len() };
            return self.split_page(store, above, parent_id, Some(pending));
        }
        let separator = self.store_separator(store, cut.separator)?;
        let (right_id, mut right) = store.create()?;
        let page = Page::new(&left);
        let (lower, upper) = fences(page);
        let spec = self.spec(right_id, page.level(), &separator, upper.as_deref(), page.right());
        let packed = half(store.page_size(), &spec, page, cut.left..page.count())?;
        let keep = PageOp::Keep {
            from: 0,
            to: slot_u16(page, cut.left)?,
            lower: &lower,
            upper: Some(&separator),
            right: if page.is_leaf() { right_id } else { PageId::NONE },
        };
        self.format_page(store, &mut right, packed)?;
        self.must_fit(store, &mut left, &keep)?;
        let record = child_record(right_id);
        let insert = PageOp::Insert { slot: at, key: &separator, record: Record::inline(&record) };
        self.must_fit(store, &mut parent, &insert)
    }

    fn split_root<S: PageWrite>(&self, store: &S, pending: Option<PendingInsert<'_>>) -> Result<()> {
        let cut = self.choose_cut(store, self.root, pending)?;
        let mut root = store.latch(self.root)?;
        let level = Page::new(&root).level();
        if level >= MAX_LEVEL {
            return Err(Error::corrupt(self.root, format!("a tree of {level} levels")));
        }
        let separator = self.store_separator(store, cut.separator)?;
        let (left_id, mut left) = store.create()?;
        let (right_id, mut right) = store.create()?;
        let page = Page::new(&root);
        let (lower, upper) = fences(page);
        let sibling = if page.is_leaf() { right_id } else { PageId::NONE };
        let spec = self.spec(left_id, level, &lower, Some(&separator), sibling);
        let left_packed = half(store.page_size(), &spec, page, 0..cut.left)?;
        let spec = self.spec(right_id, level, &separator, upper.as_deref(), page.right());
        let right_packed = half(store.page_size(), &spec, page, cut.left..page.count())?;
        let spec = self.spec(self.root, level + 1, &lower, upper.as_deref(), PageId::NONE);
        let mut above = PageBuilder::new(store.page_size(), &spec);
        let both = above.push(&lower, Record::inline(&child_record(left_id)))
            && above.push(&separator, Record::inline(&child_record(right_id)));
        if !both {
            return Err(Error::corrupt(self.root, "two children do not fit in a root"));
        }
        self.format_page(store, &mut left, left_packed)?;
        self.format_page(store, &mut right, right_packed)?;
        self.format_page(store, &mut root, above.finish())
    }

    /// Chooses the position of a split, and the separator. The caller holds no latch: runs of keys are read here, and a
    /// corrupt run may refer to any page.
    fn choose_cut<S: PageRead>(&self, store: &S, id: PageId, pending: Option<PendingInsert<'_>>) -> Result<SplitPoint> {
        let latched = store.read(id)?;
        let page = Page::new(&latched);
        let entry = pending.map(|p| (p.slot, p.image, p.record_bytes));
        let rule = self.layout.separators;
        let split = choose_split(page, entry, if entry.is_some() { rule } else { rule.for_room() })?;
        if page.is_inner() {
            return Ok(SplitPoint { left: split.left_count, separator: Separator::Moved(split.separator) });
        }
        if !split.long {
            return Ok(SplitPoint { left: split.left_count, separator: Separator::New(split.separator) });
        }
        // For a long separator, the shortest one is used whatever the rule is, because a longer one would only have a
        // longer run.
        let pending = pending.filter(|p| p.slot == split.left_count);
        let key_at = |slot: usize, is_pending: bool, is_whole: bool| -> Result<Vec<u8>> {
            let mut key = Vec::new();
            match pending.filter(|_| is_pending) {
                Some(pending) => key.extend_from_slice(if is_whole { pending.key } else { pending.image }),
                None if is_whole => self.full_key(store, page, slot, &mut key)?,
                None => page.key_into(slot, &mut key),
            }
            Ok(key)
        };
        let around = |is_whole| -> Result<(Vec<u8>, Vec<u8>)> {
            let last = key_at(split.left_count.saturating_sub(1), split.pending_left == Some(true), is_whole)?;
            Ok((last, key_at(split.left_count, split.pending_left == Some(false), is_whole)?))
        };
        if self.resolver(page).is_none() {
            let (last, mut first) = around(false)?;
            let common = bytes::common_prefix(&last, &first);
            if common < limits::long_key_head(store.page_size()) {
                first.truncate(common + 1);
                return Ok(SplitPoint { left: split.left_count, separator: Separator::New(first) });
            }
        }
        // The images of the keys around the cut are the same. Only their runs or the key heap can distinguish them.
        let (last, mut first) = around(true)?;
        if !split.whole || is_long(first.len(), store.page_size()) {
            first.truncate(bytes::common_prefix(&last, &first) + 1);
        }
        Ok(SplitPoint { left: split.left_count, separator: Separator::New(first) })
    }

    /// Reads the long keys that a split of this leaf may have to compare completely, so that a read error occurs before
    /// the split. These are the keys whose head in the leaf is equal to the head of an adjacent key. The caller holds
    /// the latch of the leaf. For a leaf that stores its keys out of line, [`Tree::read_heap_for`] does this.
    pub fn read_ambiguous_keys<S: PageRead>(&self, store: &S, page: Page<'_>) -> Result<()> {
        let (head, inline) = (limits::long_key_head(store.page_size()), limits::max_inline_key(store.page_size()));
        let mut next = if self.resolver(page).is_none() { page.first_longer(0, inline) } else { None };
        let (mut key, mut beside, mut whole) = (Vec::new(), Vec::new(), Vec::new());
        while let Some(slot) = next {
            page.key_into(slot, &mut key);
            let mut is_alike = |slot: Option<usize>| {
                let beside_it = slot.filter(|slot| *slot < page.count()).map(|slot| page.key_into(slot, &mut beside));
                beside_it.is_some() && bytes::common_prefix(&key, &beside) >= head
            };
            if is_alike(slot.checked_sub(1)) || is_alike(Some(slot + 1)) {
                self.full_key(store, page, slot, &mut whole)?;
            }
            next = page.first_longer(slot + 1, inline);
        }
        Ok(())
    }

    fn store_separator<S: PageWrite>(&self, store: &S, separator: Separator) -> Result<Vec<u8>> {
        match separator {
            Separator::New(key) if is_long(key.len(), store.page_size()) => self.store_key(store, &key),
            Separator::New(image) | Separator::Moved(image) => Ok(image),
        }
    }
}

/// Both fences of a page, as images.
pub(super) fn fences(page: Page<'_>) -> (Vec<u8>, Option<Vec<u8>>) {
    let mut upper = Vec::new();
    let has_upper = page.upper_fence_into(&mut upper);
    (page.lower_fence().to_vec(), has_upper.then_some(upper))
}

/// The packed content of a page with some entries of another page.
fn half(page_size: usize, spec: &PageSpec<'_>, page: Page<'_>, entries: std::ops::Range<usize>) -> Result<Vec<u8>> {
    let mut builder = PageBuilder::new(page_size, spec);
    if builder.push_entries(page, entries, None) {
        return Ok(builder.finish());
    }
    Err(Error::corrupt(page.id(), "half of its entries do not fit in a page"))
}

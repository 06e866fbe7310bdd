//! The key heap: pages for the keys of leaves that keep only parts of their keys. This file searches such leaves,
//! chooses the place of a new key, and frees the place when the entry is removed.
//!
//! Every entry owns one key of a heap page. Heap pages belong to no leaf: after splits, several leaves refer to the
//! same page. A new key goes to the page of a neighbour or to the leaf's open page, if there is room, so that the keys
//! of a leaf are in few pages. A heap page without keys is freed.
//!
//! Latches: heap pages are latched after all other pages. A thread that holds one takes no other latch. It holds the
//! latch of the leaf that refers to it, except when it only reads the page from the device (see `attempts`).

use super::attempts::Attempts;
use super::long_key::is_long;
use super::search::LeafTarget;
use super::{KeyRange, PageRead, PageWrite, Tree};
use crate::base::{Error, Lsn, PageId, Result, bytes, limits};
use crate::page::{
    KeyListKind, KeyPlace, Page, PageOp, Record, heap_number, heap_page_builder, out_of_line_image, would_insert,
};
use std::collections::HashSet;

/// The pages and places that an entry owns outside its page. They are freed with the entry.
pub(super) struct Owned {
    place: Option<KeyPlace>,
    run: Vec<PageId>,
}

/// The most pages of the key heap that freeing the entries of one leaf changes at once. All pages of a batch stay in
/// the cache until it ends.
const FREED_HEAP_PAGES: usize = 12;

/// The entries of a leaf, up to the last one, that are freed at once.
pub(super) struct LastEntries {
    /// The slot of the first of them.
    pub(super) from: usize,
    /// The pages and places that they own outside the leaf.
    pub(super) owned: Vec<Owned>,
    /// True if their keys are in the key heap.
    pub(super) changes_heap: bool,
}

/// The key heap of a table, which resolves the keys of leaves that keep only parts of them.
#[derive(Clone, Copy)]
pub(super) struct KeyHeap<'t>(&'t Tree);

impl Tree {
    /// The key heap that resolves the keys of such a list; `None` if the list has its keys itself. The other functions
    /// of the tree ask this one, not the list.
    #[inline(always)]
    pub(super) fn resolver_of(&self, list: KeyListKind) -> Option<KeyHeap<'_>> {
        list.keys_are_out_of_line().then_some(KeyHeap(self))
    }

    /// The key heap that resolves the keys of this page; `None` if the page has its keys itself.
    #[inline(always)]
    pub(super) fn resolver(&self, page: Page<'_>) -> Option<KeyHeap<'_>> {
        self.resolver_of(page.keys())
    }

    /// True if the leaves keep only parts of their keys. Then a change may read and change pages of the key heap, and
    /// the parts in a leaf are not whole keys.
    #[inline(always)]
    pub fn keys_are_out_of_line(&self) -> bool {
        self.resolver_of(self.layout.leaf).is_some()
    }

    /// The number of entries of the leaf that begins at `from`, and its upper fence, if its keys are out of line and
    /// `key_range` continues after it. No key has to be read then.
    pub fn count_unread<S: PageRead>(
        &self,
        store: &S,
        key_range: &KeyRange,
        from: &[u8],
    ) -> Result<Option<(u64, Vec<u8>)>> {
        if !self.keys_are_out_of_line() {
            return Ok(None);
        }
        self.leaf_for(store, from, |page| {
            let mut upper = Vec::new();
            let whole = page.lower_fence() == from && page.upper_fence_into(&mut upper);
            let known = from.len().max(upper.len()) <= limits::max_inline_key(store.page_size());
            let inside = upper.as_slice() > from && key_range.is_above(&upper);
            let counts = whole && inside && known && self.resolver(page).is_some();
            counts.then_some((page.count() as u64, upper))
        })
    }

    /// The image of a key of a page, from the page or from the key heap. The caller holds the latch of the page.
    pub(super) fn image_into<S: PageRead>(
        &self,
        store: &S,
        page: Page<'_>,
        slot: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        if self.resolver(page).is_none() {
            page.key_into(slot, out);
            return Ok(());
        }
        out.clear();
        let place = page.sound_key_place(slot)?;
        let latched = self.heap_page(store, page.id(), place.page)?;
        let heap = Page::new(&latched);
        let (_, image) = heap.heap_key(place.number).ok_or_else(|| no_such_key(place))?;
        // Numbers are used again. If the leaf and the heap page are of different ages, this would be the key of another
        // entry.
        let whole = !is_long(image.len(), store.page_size());
        let known = if whole { image } else { bytes::slice(image, 0, limits::long_key_head(store.page_size())) };
        if !page.part_shows(slot, known, whole) {
            return Err(wrong_part(page.id(), slot));
        }
        out.extend_from_slice(image);
        Ok(())
    }

    /// Latches a heap page that the leaf refers to. The caller holds the latch of the leaf.
    fn heap_page<'s, S: PageRead>(&self, store: &'s S, leaf: PageId, id: PageId) -> Result<S::Ref<'s>> {
        check_not_itself(leaf, id)?;
        let latched = store.read(id)?;
        self.check_heap_page(Page::new(&latched), id)?;
        Ok(latched)
    }

    fn check_heap_page(&self, page: Page<'_>, id: PageId) -> Result<()> {
        if page.is_heap() && page.table() == self.table && page.id() == id {
            return Ok(());
        }
        let what = format!("expected a page of the key heap of table {}, found a {:?} page", self.table, page.kind());
        Err(Error::corrupt(id, what))
    }

    /// If the keys are out of line, reads the keys that a change at `key` may need, so that all errors occur before the
    /// change. If a leaf has fewer than `room` free bytes, it may be split at any entry; `room` is 0 for a removal.
    /// Returns true if all keys of the leaf have been read.
    pub fn read_heap_for<S: PageRead>(&self, store: &S, key: &[u8], room: usize) -> Result<bool> {
        let leaf = self.descend(store, LeafTarget::Covering(key))?;
        let page = Page::new(&leaf);
        if self.resolver(page).is_none() {
            return Ok(true);
        }
        let all = page.free() < room;
        let near = match self.locate(store, page, key)? {
            _ if all => 0..page.count(),
            Ok(slot) => slot..slot + 1,
            Err(_) if room == 0 => 0..0,
            Err(slot) => slot.saturating_sub(1)..(slot + 1).min(page.count()),
        };
        let mut whole = Vec::new();
        for slot in near {
            self.full_key(store, page, slot, &mut whole)?;
        }
        match page.open_heap_page() {
            Some(open) if room > 0 => self.heap_page(store, page.id(), open).map(|_| all),
            _ => Ok(all),
        }
    }

    /// Calls `each` with the entries of the leaf that covers `key`, in order. For an entry whose key cannot be read, it
    /// gets the error. Returns the LSN of the leaf and the range from `key` to its upper fence. The range is `None` if
    /// the fence is a long key, because the page does not have all of it.
    pub fn leaf_entries<S: PageRead>(
        &self,
        store: &S,
        key: &[u8],
        mut each: impl FnMut(Result<&[u8]>, Record<'_>),
    ) -> Result<(Lsn, Option<KeyRange>)> {
        let attempts = Attempts::new(store);
        loop {
            let leaf = self.descend_in(&attempts, LeafTarget::Covering(key), |_| Ok(()))?;
            let page = Page::new(&leaf);
            let mut keys = Vec::with_capacity(page.count());
            for slot in 0..page.count() {
                let mut key = Vec::new();
                keys.push(self.full_key(&attempts, page, slot, &mut key).map(|()| key));
                if attempts.misses() && !attempts.gathers() {
                    break;
                }
            }
            if let Err(error) = attempts.complete() {
                attempts.again(leaf, error)?;
                continue;
            }
            for (slot, key) in keys.into_iter().enumerate() {
                match key {
                    Ok(key) => each(Ok(&key), page.record(slot)),
                    Err(error) => each(Err(error), page.record(slot)),
                }
            }
            let mut upper = Vec::new();
            let upper = page.upper_fence_into(&mut upper).then_some(upper);
            let known = upper.as_ref().is_none_or(|upper| !is_long(upper.len(), store.page_size()));
            return Ok((page.lsn(), known.then_some(KeyRange { lower: key.to_vec(), upper })));
        }
    }

    /// The whole key before `slot` of a leaf. For slot 0, the known part of the lower fence.
    fn key_before<S: PageRead>(&self, store: &S, leaf: Page<'_>, slot: usize) -> Result<Vec<u8>> {
        let mut before = Vec::new();
        match slot.checked_sub(1) {
            Some(left) => self.full_key(store, leaf, left, &mut before)?,
            None => before.extend_from_slice(shared_with_lower(leaf, store.page_size())),
        }
        Ok(before)
    }

    fn put_in_heap<S: PageWrite>(&self, store: &S, leaf: Page<'_>, slot: usize, key: &[u8]) -> Result<KeyPlace> {
        let image = self.store_key(store, key)?;
        let neighbours = [slot.checked_sub(1), Some(slot)].into_iter().flatten();
        let beside = neighbours.filter_map(|slot| leaf.key_place(slot)).map(|place| place.page);
        let mut full = PageId::NONE;
        for id in beside.chain(leaf.open_heap_page()) {
            if id == full {
                continue;
            }
            if let Some(place) = self.add_to_heap_page(store, leaf.id(), id, &image)? {
                return Ok(place);
            }
            full = id;
        }
        let (id, mut page) = store.create()?;
        let mut builder = heap_page_builder(store.page_size(), id, self.table);
        if !builder.push(&heap_number(0), Record::inline(&image)) {
            return Err(too_long(id));
        }
        self.format_page(store, &mut page, builder.finish())?;
        Ok(KeyPlace { page: id, number: 0 })
    }

    /// Adds an image to a heap page. Returns `None` if there is no room.
    fn add_to_heap_page<S: PageWrite>(
        &self,
        store: &S,
        leaf: PageId,
        id: PageId,
        image: &[u8],
    ) -> Result<Option<KeyPlace>> {
        check_not_itself(leaf, id)?;
        let mut latched = store.latch(id)?;
        let page = Page::new(&latched);
        self.check_heap_page(page, id)?;
        let Some((slot, number)) = page.free_number() else { return Ok(None) };
        let Ok(slot) = u16::try_from(slot) else { return Ok(None) };
        let op = PageOp::Insert { slot, key: &heap_number(number), record: Record::inline(image) };
        Ok(store.apply(&mut latched, &op)?.then_some(KeyPlace { page: id, number }))
    }

    /// True if an entry owns pages, or a key, outside its page. `key_len` is the length of its key or of the image of
    /// its key.
    pub(super) fn is_owner<S: PageRead>(&self, store: &S, page: Page<'_>, key_len: usize) -> bool {
        is_long(key_len, store.page_size()) || self.resolver(page).is_some()
    }

    /// Returns the pages and keys outside its page that the entry of `slot` owns. The caller holds the latch of the
    /// page. All pages that may be damaged are read here.
    pub(super) fn owned_by<S: PageRead>(&self, store: &S, page: Page<'_>, slot: usize) -> Result<Owned> {
        let mut image = Vec::new();
        self.image_into(store, page, slot, &mut image)?;
        Ok(Owned { place: page.key_place(slot), run: self.run_pages(store, page.id(), &image)? })
    }

    /// The entries of a latched leaf that are freed at once: all, or the last ones if their keys are in too many pages
    /// of the key heap.
    pub(super) fn entries_to_free<S: PageRead>(&self, store: &S, page: Page<'_>) -> Result<LastEntries> {
        if let Some(heap) = self.resolver(page) {
            let (from, owned) = heap.last_owned(store, page, FREED_HEAP_PAGES)?;
            return Ok(LastEntries { from, owned, changes_heap: true });
        }
        let (mut owned, mut next, inline) = (Vec::new(), 0, limits::max_inline_key(store.page_size()));
        while let Some(slot) = page.first_longer(next, inline) {
            owned.push(self.owned_by(store, page, slot)?);
            next = slot + 1;
        }
        Ok(LastEntries { from: 0, owned, changes_heap: false })
    }

    /// Frees what a removed entry owned. Returns the number of freed pages.
    pub(super) fn free_owned<S: PageWrite>(&self, store: &S, owned: Owned) -> Result<usize> {
        let mut freed = owned.run.len();
        for page in owned.run {
            store.free(page)?;
        }
        let Some(place) = owned.place else { return Ok(freed) };
        let mut latched = store.latch(place.page)?;
        let page = Page::new(&latched);
        self.check_heap_page(page, place.page)?;
        let (slot, _) = page.heap_key(place.number).ok_or_else(|| no_such_key(place))?;
        let from = u16::try_from(slot).map_err(|_| no_such_key(place))?;
        self.must_fit(store, &mut latched, &PageOp::Remove { from, to: from.saturating_add(1) })?;
        let empty = Page::new(&latched).count() == 0;
        drop(latched);
        if empty {
            store.free(place.page)?;
            freed += 1;
        }
        Ok(freed)
    }

    /// If the keys of two neighbouring leaves are out of line: the image that the first entry of the right leaf gets if
    /// both are joined. The leaves are latched one after the other, because a damaged leaf may refer to the other one.
    pub(super) fn joined_image<S: PageRead>(&self, store: &S, left: PageId, right: PageId) -> Result<Option<Vec<u8>>> {
        let before = {
            let latched = store.read(left)?;
            let left = Page::new(&latched);
            if self.resolver(left).is_none() {
                return Ok(None);
            }
            self.key_before(store, left, left.count())?
        };
        let latched = store.read(right)?;
        let right = Page::new(&latched);
        let Some(place) = right.key_place(0) else { return Ok(None) };
        let mut first = Vec::new();
        self.full_key(store, right, 0, &mut first)?;
        Ok(Some(out_of_line_image(right.keys(), &before, &first, None, place)))
    }
}

impl KeyHeap<'_> {
    /// [`Tree::locate`] in a leaf with keys out of line.
    #[cold]
    pub(super) fn locate<S: PageRead>(
        self,
        store: &S,
        page: Page<'_>,
        key: &[u8],
    ) -> Result<std::result::Result<usize, usize>> {
        let lower = shared_with_lower(page, store.page_size());
        if key < lower {
            return Ok(Err(0));
        }
        let found = page.search_out_of_line(lower, key, |slot| {
            let mut there = Vec::new();
            self.0.full_key(store, page, slot, &mut there).map(|()| there)
        })?;
        found.ok_or_else(|| Error::corrupt(page.id(), "not a page of partial keys"))
    }

    /// The image for an insertion of `key` at `slot` of a leaf with keys out of line. If the entry fits in the leaf,
    /// the key is added to the heap. Otherwise nothing changes, and the returned image does not fit either.
    pub(super) fn image_for<S: PageWrite>(
        self,
        store: &S,
        leaf: Page<'_>,
        slot: usize,
        key: &[u8],
        record: Record<'_>,
    ) -> Result<Vec<u8>> {
        let mut next = Vec::new();
        let before = self.0.key_before(store, leaf, slot)?;
        let has_next = slot < leaf.count();
        if has_next {
            self.0.full_key(store, leaf, slot, &mut next)?;
        }
        let next = has_next.then_some(next.as_slice());
        let trial = out_of_line_image(leaf.keys(), &before, key, next, KeyPlace::NONE);
        if !would_insert(leaf, slot, &trial, record)? {
            return Ok(trial);
        }
        let place = self.0.put_in_heap(store, leaf, slot, key)?;
        Ok(out_of_line_image(leaf.keys(), &before, key, next, place))
    }

    /// The last entries of a latched leaf with keys in at most `pages` pages of the key heap: their first slot, and
    /// what they own outside the leaf.
    pub(super) fn last_owned<S: PageRead>(
        self,
        store: &S,
        page: Page<'_>,
        pages: usize,
    ) -> Result<(usize, Vec<Owned>)> {
        let (mut owned, mut from) = (Vec::new(), page.count());
        let (mut places, mut heap) = (HashSet::new(), HashSet::new());
        while let Some(slot) = from.checked_sub(1) {
            let place = page.key_place(slot);
            heap.extend(place.map(|place| place.page));
            if heap.len() > pages.max(1) {
                break;
            }
            if place.is_some_and(|place| !places.insert(place)) {
                return Err(Error::corrupt(page.id(), format!("the key of slot {slot} has the place of another key")));
            }
            owned.push(self.0.owned_by(store, page, slot)?);
            from = slot;
        }
        Ok((from, owned))
    }
}

/// The part of a leaf's lower fence that consists of bytes of a key. A long fence has the reference to its run after
/// it.
pub(super) fn shared_with_lower(page: Page<'_>, page_size: usize) -> &[u8] {
    let lower = page.lower_fence();
    let whole = if is_long(lower.len(), page_size) { limits::long_key_head(page_size) } else { lower.len() };
    bytes::slice(lower, 0, whole)
}

/// Checks that the heap page of a key is not the leaf itself.
fn check_not_itself(leaf: PageId, heap: PageId) -> Result<()> {
    if heap == leaf {
        return Err(Error::corrupt(leaf, "it refers to itself as the heap page of a key"));
    }
    Ok(())
}

/// The error of a key that is longer than an empty page of the heap.
pub(super) fn too_long(page: PageId) -> Error {
    Error::corrupt(page, "one key does not fit in a page")
}

/// The error for a part in a leaf that is not the part of its key.
pub(super) fn wrong_part(leaf: PageId, slot: usize) -> Error {
    Error::corrupt(leaf, format!("the part at slot {slot} does not match the key"))
}

fn no_such_key(place: KeyPlace) -> Error {
    Error::corrupt(place.page, format!("it has no key {}, but a leaf refers to it", place.number))
}

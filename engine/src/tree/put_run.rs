//! Puts many entries: the new entries of one leaf become one operation on it. The other entries are put one by one,
//! with the functions in `insert`.

use super::edit::slot_u16;
use super::insert::{Start, check_entry};
use super::long_key::is_long;
use super::many::LeafHint;
use super::{PageWrite, Tree};
use crate::base::{PageId, Result, limits};
use crate::page::{NewEntry, Page, Record};

/// The maximum number of entries that are offered to a leaf at once. Without a limit, all following entries would be
/// searched again for each leaf that they fill.
const MAX_AT_ONCE: usize = 4096;

/// An entry to put, with its place as for [`Tree::put_with_hint`].
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The record.
    pub record: Record<'a>,
    /// The place that the writer found.
    pub hint: LeafHint,
}

impl Put<'_> {
    /// True if the next entry may also be new in the same leaf.
    fn may_share_leaf_with(&self, next: &Put<'_>) -> bool {
        self.hint.leaf == next.hint.leaf && !self.hint.there && !next.hint.there
    }
}

impl Tree {
    /// Puts as many of `puts`, from the first on, as are new and belong in the leaf of the first. `puts` must be sorted
    /// by key. Returns their number. If there are fewer than two, nothing changes and the result is 0; the caller then
    /// puts the first with [`Tree::put_with_hint`].
    ///
    /// `before` is called once, with the entries that will be put, before the leaf changes and under its exclusive
    /// latch. If it returns an error, nothing changes.
    ///
    /// # Errors
    /// The same as for [`Tree::put`].
    pub fn put_run<'p, S: PageWrite>(
        &self,
        store: &S,
        puts: impl Iterator<Item = Put<'p>>,
        before: impl FnOnce(&[NewEntry<'p>]) -> Result<()>,
    ) -> Result<usize> {
        let mut puts = puts.peekable();
        let Some(first) = puts.next() else { return Ok(0) };
        let is_run = puts.peek().is_some_and(|next| first.may_share_leaf_with(next));
        if !is_run || !self.is_whole_in(self.layout.leaf, first.key.len(), store.page_size()) {
            return Ok(0);
        }
        let (mut leaf, found) = self.latch_with_hint(store, first.hint, first.key)?;
        let Err(slot) = found else { return Ok(0) };
        let entries = self.new_here(store, Page::new(&leaf), slot, std::iter::once(first).chain(puts))?;
        if entries.len() < 2 {
            return Ok(0);
        }
        before(&entries)?;
        let done = store.insert_run(&mut leaf, &entries)?;
        let id = Page::new(&leaf).id();
        drop(leaf);
        self.put_rest(store, id, entries.get(done..).unwrap_or_default())?;
        Ok(entries.len())
    }

    /// Puts entries, which are sorted, after all others of the leaf of the first one. `hint` is the place of all of
    /// them. Returns false and changes nothing if they do not belong there, or if this is not certain; the caller then
    /// puts each with [`Tree::put_with_hint`].
    ///
    /// Only loads in key order need this function: 1,000,000 keys in a list of integers in memory take 32 ns each with
    /// it, and 70 ns without it (operation `insert-in-order` of `duramen-bench integers`).
    ///
    /// `before` is called once, before the leaf changes and under its exclusive latch. If it returns an error, nothing
    /// changes.
    ///
    /// # Errors
    /// The same as for [`Tree::put`].
    pub fn append_run<'p, S: PageWrite>(
        &self,
        store: &S,
        hint: LeafHint,
        entries: impl Iterator<Item = (&'p [u8], Record<'p>)>,
        before: impl FnOnce() -> Result<()>,
    ) -> Result<bool> {
        let page_size = store.page_size();
        let mut entries: Vec<NewEntry<'p>> =
            entries.map(|(key, record)| NewEntry { slot: hint.slot, key, record }).collect();
        let (Some(&first), Some(&last)) = (entries.first(), entries.last()) else { return Ok(true) };
        if !entries.iter().all(|entry| self.is_whole_in(self.layout.leaf, entry.key.len(), page_size)) {
            return Ok(false);
        }
        entries.iter().try_for_each(|entry| check_entry(page_size, entry.key, entry.record))?;
        let (mut leaf, found) = self.latch_with_hint(store, hint, first.key)?;
        let page = Page::new(&leaf);
        if found != Err(page.count()) || !page.below_upper(last.key) {
            return Ok(false);
        }
        let slot = slot_u16(page, page.count())?;
        if slot != hint.slot {
            entries.iter_mut().for_each(|entry| entry.slot = slot);
        }
        before()?;
        let done = store.insert_run(&mut leaf, entries.get(..MAX_AT_ONCE).unwrap_or(&entries))?;
        let id = Page::new(&leaf).id();
        drop(leaf);
        self.put_rest(store, id, entries.get(done..).unwrap_or_default())?;
        Ok(true)
    }

    /// The first of `puts`, at most [`MAX_AT_ONCE`], that are new and that the leaf covers. The first of them belongs
    /// at `slot`.
    fn new_here<'p, S: PageWrite>(
        &self,
        store: &S,
        leaf: Page<'_>,
        slot: usize,
        puts: impl Iterator<Item = Put<'p>>,
    ) -> Result<Vec<NewEntry<'p>>> {
        let page_size = store.page_size();
        let mut entries: Vec<NewEntry<'p>> = Vec::new();
        let mut last = slot;
        for put in puts.take(MAX_AT_ONCE) {
            check_entry(page_size, put.key, put.record)?;
            let place = if entries.is_empty() { Some(slot) } else { new_place(leaf, &put, last, page_size) };
            let Some(slot) = place else { break };
            entries.push(NewEntry { slot: slot_u16(leaf, slot)?, key: put.key, record: put.record });
            last = slot;
        }
        Ok(entries)
    }

    /// Puts entries that did not fit in their leaf `id`. The first one splits the leaf, and following entries are put
    /// together.
    fn put_rest<S: PageWrite>(&self, store: &S, mut id: PageId, mut rest: &[NewEntry<'_>]) -> Result<()> {
        while let Some((first, others)) = rest.split_first() {
            self.put_from(store, Start::LeafOrSibling(id), first.key, first.record, |_| Ok(()))?;
            rest = others;
            let Some(next) = rest.first() else { break };
            let (mut leaf, found) = self.latch_from(store, Start::LeafOrSibling(id), next.key)?;
            id = Page::new(&leaf).id();
            let Err(slot) = found else { continue };
            let puts = rest.iter().map(|entry| Put { key: entry.key, record: entry.record, hint: LeafHint::NONE });
            let entries = self.new_here(store, Page::new(&leaf), slot, puts)?;
            let done = store.insert_run(&mut leaf, &entries)?;
            rest = rest.get(done..).unwrap_or_default();
        }
        Ok(())
    }
}

/// The slot of a new key. The key before it belongs at slot `last`. `None` if the key exists, belongs to another leaf,
/// or needs a full search.
fn new_place(leaf: Page<'_>, put: &Put<'_>, last: usize, page_size: usize) -> Option<usize> {
    if is_long(put.key.len(), page_size) {
        // The run of the key must be written first.
        return None;
    }
    if put.hint.leaf == leaf.id() && put.hint.lsn == leaf.lsn() {
        return put.hint.found().err();
    }
    if put.key.len() > limits::long_key_head(page_size) || !leaf.below_upper(put.key) {
        return None;
    }
    // The keys are sorted: if the key before belongs after the last entry, so does this one.
    if last == leaf.count() { Some(last) } else { leaf.search(put.key).err() }
}

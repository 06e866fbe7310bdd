//! Putting many entries: those that are new and go to one leaf become one operation on it. What is written before, and how
//! entries go in one by one, is `insert`'s affair.

use super::edit::slot_u16;
use super::insert::{Start, check_entry};
use super::long_key::is_long;
use super::many::LeafHint;
use super::{PageWrite, Tree};
use crate::base::{PageId, Result, limits};
use crate::page::{NewEntry, Page, Record};

/// So many entries are offered to a leaf at once: all that follow may be its, and looking at them again for each leaf that they
/// fill would take ever longer.
const PIECE: usize = 4096;

/// An entry to put, and where its place is, as for [`Tree::put_with_hint`].
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// The key.
    pub key: &'a [u8],
    /// The record.
    pub record: Record<'a>,
    /// Where its place was when the writer looked.
    pub hint: LeafHint,
}

impl Put<'_> {
    /// True if the next one may well be new in the same leaf.
    fn may_go_with(&self, next: &Put<'_>) -> bool {
        self.hint.leaf == next.hint.leaf && !self.hint.there && !next.hint.there
    }
}

impl Tree {
    /// Puts as many of `puts`, which are in the order of their keys, as are new and go to the leaf of the first; returns how
    /// many. None are put, and nothing has happened, where that would not be two at least: then the first is for
    /// [`Tree::put_with_hint`].
    ///
    /// `before` is called once, with what will be put, before the leaf changes and under its exclusive latch; an error from it
    /// leaves everything as it was.
    ///
    /// # Errors
    /// As [`Tree::put`].
    pub fn put_run<'p, S: PageWrite>(
        &self,
        store: &S,
        puts: impl Iterator<Item = Put<'p>>,
        before: impl FnOnce(&[NewEntry<'p>]) -> Result<()>,
    ) -> Result<usize> {
        let mut puts = puts.peekable();
        let Some(first) = puts.next() else { return Ok(0) };
        if self.keys_are_out_of_line()
            || !puts.peek().is_some_and(|next| first.may_go_with(next))
            || is_long(first.key.len(), store.page_size())
        {
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

    /// Puts entries, which are in order, behind all others of the leaf of the first, where their places were `hint`; false, and
    /// nothing has happened, where they do not belong there, or may not: then each is for [`Tree::put_with_hint`].
    ///
    /// `before` is called once, before the leaf changes and under its exclusive latch; an error from it leaves everything as it
    /// was.
    ///
    /// # Errors
    /// As [`Tree::put`].
    pub fn put_behind<'p, S: PageWrite>(
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
        let short = |entry: &NewEntry<'_>| entry.key.len() <= limits::long_key_head(page_size);
        if self.keys_are_out_of_line() || !entries.iter().all(short) {
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
        let done = store.insert_run(&mut leaf, entries.get(..PIECE).unwrap_or(&entries))?;
        let id = Page::new(&leaf).id();
        drop(leaf);
        self.put_rest(store, id, entries.get(done..).unwrap_or_default())?;
        Ok(true)
    }

    /// The first of `puts`, [`PIECE`] at the most, that are new and that the leaf covers; the very first of them at `slot`.
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
        for put in puts.take(PIECE) {
            check_entry(page_size, put.key, put.record)?;
            let place = if entries.is_empty() { Some(slot) } else { new_place(leaf, &put, last, page_size) };
            let Some(slot) = place else { break };
            entries.push(NewEntry { slot: slot_u16(leaf, slot)?, key: put.key, record: put.record });
            last = slot;
        }
        Ok(entries)
    }

    /// Puts entries that found no room in their leaf, `id`: the first of them splits it, then others follow together.
    fn put_rest<S: PageWrite>(&self, store: &S, mut id: PageId, mut rest: &[NewEntry<'_>]) -> Result<()> {
        while let Some((first, others)) = rest.split_first() {
            self.put_from(store, Start::Beside(id), first.key, first.record, |_| Ok(()))?;
            rest = others;
            let Some(next) = rest.first() else { break };
            let (mut leaf, found) = self.latch_from(store, Start::Beside(id), next.key)?;
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

/// The slot where a key goes whose neighbour before it goes to `last`; `None` where it is there, or one of another leaf, or that
/// takes more than a look.
fn new_place(leaf: Page<'_>, put: &Put<'_>, last: usize, page_size: usize) -> Option<usize> {
    if is_long(put.key.len(), page_size) {
        // Its run is to be written first.
        return None;
    }
    if put.hint.leaf == leaf.id() && put.hint.lsn == leaf.lsn() {
        return put.hint.found().err();
    }
    if put.key.len() > limits::long_key_head(page_size) || !leaf.below_upper(put.key) {
        return None;
    }
    // The keys are in order: what is behind the last entry stays there.
    if last == leaf.count() { Some(last) } else { leaf.search(put.key).err() }
}

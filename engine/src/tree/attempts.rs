//! The attempts of one search. A search reads the keys that are stored outside of a page while it holds the latch of
//! that page. If a page of these keys is not in memory, the search releases the latch, reads that page, and begins
//! again.

use super::PageRead;
use super::long_key::{max_run_pages, run_after};
use crate::base::{Error, PageId, Result};
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// How often a search begins again because its path has changed while it waited for a device, or because a page that it
/// has read has been evicted. After that it keeps its latch while it waits.
const RESTARTS: usize = 8;

/// How often a search begins again because it needs pages that it has not read before, without counting this as one of
/// the [`RESTARTS`]. Few searches need as many.
const READS: usize = 64;

/// The pages of a store for one search, which may hold a latch when it reads one. If a page is not in memory,
/// [`PageRead::read`] notes it and returns an error, and [`Attempts::again`] then reads it without a latch. Only if
/// [`Attempts::keeps_latch`] is true does `read` wait for the device.
pub(super) struct Attempts<'s, S> {
    store: &'s S,
    restarts: Cell<usize>,
    reads: Cell<usize>,
    /// The pages that were not in memory and have been read since.
    known: RefCell<Vec<PageId>>,
    /// The pages that this attempt needs and that are not in memory.
    missing: RefCell<Vec<PageId>>,
}

impl<'s, S: PageRead> Attempts<'s, S> {
    #[inline(always)]
    pub(super) fn new(store: &'s S) -> Attempts<'s, S> {
        let (known, missing) = (RefCell::default(), RefCell::default());
        Attempts { store, restarts: Cell::new(0), reads: Cell::new(0), known, missing }
    }

    /// The store, for reads without a latch.
    #[inline(always)]
    pub(super) fn store(&self) -> &'s S {
        self.store
    }

    /// True if this attempt keeps its latches while it waits.
    #[inline(always)]
    pub(super) fn keeps_latch(&self) -> bool {
        self.restarts.get() >= RESTARTS
    }

    /// Counts an attempt that failed because the path has changed.
    pub(super) fn count(&self) {
        self.restarts.set(self.restarts.get() + 1);
    }

    /// If `error` is that a page is not in memory: releases the latch, reads the pages that are missing, and returns;
    /// the search begins again. Returns any other error.
    #[cold]
    #[inline(never)]
    pub(super) fn again(&self, latched: S::Ref<'s>, error: Error) -> Result<()> {
        let missing = self.missing.take();
        if missing.is_empty() {
            return Err(error);
        }
        drop(latched);
        // If a page that was read is missing again, the cache is too small for this search, or other threads use all of
        // it.
        let is_lost = missing.iter().any(|id| self.known.borrow().contains(id));
        self.reads.set(self.reads.get() + 1);
        if is_lost || self.reads.get() > READS {
            self.count();
        }
        self.store.will_read(missing.iter().copied());
        for id in &missing {
            if self.read_chain(*id, !is_lost).is_err() {
                // If the page is still needed, the next attempt gets the error.
                self.restarts.set(RESTARTS);
            }
        }
        self.known.borrow_mut().extend(missing);
        Ok(())
    }

    /// Reads a page. If it belongs to the run of a long key and `whole` is true, reads the rest of the run too.
    fn read_chain(&self, first: PageId, whole: bool) -> Result<()> {
        let mut next = run_after(&self.store.read(first)?);
        let most = if whole { max_run_pages(self.store.page_size()) } else { 0 };
        for _ in 0..most {
            let Some(id) = next else { break };
            // The run may have been freed meanwhile, so an error has no meaning here.
            let Ok(page) = self.store.read(id) else { break };
            next = run_after(&page);
            drop(page);
            self.known.borrow_mut().push(id);
        }
        Ok(())
    }

    /// True if this attempt needs pages that are not in memory.
    pub(super) fn misses(&self) -> bool {
        !self.missing.borrow().is_empty()
    }

    /// True if this attempt looks for all missing pages before it ends, so that they are read together. Only the first
    /// attempts do: in a small cache, the pages of many keys would evict each other.
    pub(super) fn gathers(&self) -> bool {
        self.restarts.get() == 0
    }

    /// If a key could not be read because a page is not in memory, returns false: the caller goes on to other keys that
    /// it needs, so that their pages are read together, and then calls [`Attempts::complete`].
    pub(super) fn note(&self, read: Result<()>) -> Result<bool> {
        match read {
            Ok(()) => Ok(true),
            Err(_) if self.misses() && self.gathers() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// An error if a key could not be read because a page is not in memory.
    pub(super) fn complete(&self) -> Result<()> {
        if self.misses() { Err(not_in_memory()) } else { Ok(()) }
    }

    #[cold]
    fn miss(&self, id: PageId) -> Error {
        let mut missing = self.missing.borrow_mut();
        if !missing.contains(&id) {
            missing.push(id);
        }
        not_in_memory()
    }
}

/// [`Attempts::again`] replaces this error, so no caller of the tree gets it.
fn not_in_memory() -> Error {
    Error::CacheFull { frames: 0 }
}

impl<'s, S: PageRead> PageRead for Attempts<'s, S> {
    type Ref<'a>
        = S::Ref<'s>
    where
        Self: 'a;

    #[inline(always)]
    fn page_size(&self) -> usize {
        self.store.page_size()
    }

    fn read(&self, id: PageId) -> Result<S::Ref<'s>> {
        match self.store.fetch(id) {
            Some(page) => Ok(page),
            None if self.keeps_latch() => self.store.read(id),
            None => Err(self.miss(id)),
        }
    }

    fn frees(&self) -> u64 {
        self.store.frees()
    }

    #[inline(always)]
    fn fetch(&self, id: PageId) -> Option<S::Ref<'s>> {
        self.store.fetch(id)
    }

    #[inline(always)]
    fn fetch_parts(&self, id: PageId, parts: [Range<usize>; 2]) -> Option<S::Ref<'s>> {
        self.store.fetch_parts(id, parts)
    }

    #[inline(always)]
    fn prefetch_place_of(&self, id: PageId) {
        self.store.prefetch_place_of(id);
    }

    #[inline(always)]
    fn prefetch(&self, id: PageId) -> bool {
        self.store.prefetch(id)
    }

    #[inline(always)]
    fn will_read(&self, pages: impl Iterator<Item = PageId>) {
        self.store.will_read(pages);
    }
}

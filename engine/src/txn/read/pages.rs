//! Read access to the pages of an open database.

use crate::base::{PageId, Result};
use crate::page::Page;
use crate::store::{FrameDistance, ReadGuard};
use crate::tree::PageRead;
use crate::txn::engine::Engine;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The pages in the pool, for the readers of trees.
#[derive(Clone, Copy)]
pub(crate) struct Pages<'e>(&'e Engine);

impl PageRead for Pages<'_> {
    type Ref<'a>
        = ReadGuard<'a>
    where
        Self: 'a;

    fn page_size(&self) -> usize {
        self.0.pool.page_size()
    }

    #[inline]
    fn read(&self, id: PageId) -> Result<ReadGuard<'_>> {
        self.0.pool.read(id)
    }

    fn frees(&self) -> u64 {
        self.0.frees.load(Ordering::Acquire)
    }

    #[inline]
    fn fetch(&self, id: PageId) -> Option<ReadGuard<'_>> {
        self.0.pool.fetch(id)
    }

    #[inline]
    fn fetch_parts(&self, id: PageId, parts: [Range<usize>; 2]) -> Option<ReadGuard<'_>> {
        self.0.pool.fetch_parts(id, parts)
    }

    #[inline]
    fn prefetch_place_of(&self, id: PageId) {
        self.0.pool.prefetch_place_of(id);
    }

    #[inline]
    fn prefetch(&self, id: PageId) -> bool {
        self.0.pool.prefetch(id)
    }

    fn will_read(&self, pages: impl Iterator<Item = PageId>) {
        self.0.pool.will_read(pages);
    }
}

impl Engine {
    /// The pages, for the readers of trees.
    #[inline]
    pub(crate) fn pages(&self) -> Pages<'_> {
        Pages(self)
    }

    /// Bytes of a page.
    pub(crate) fn page_size(&self) -> usize {
        self.pool.page_size()
    }

    /// Reads a page under a shared latch.
    pub(crate) fn read_page(&self, id: PageId) -> Result<ReadGuard<'_>> {
        self.pool.read(id)
    }

    /// True if the page is in the cache or in the file.
    pub(crate) fn page_exists(&self, id: PageId) -> bool {
        self.pool.exists(id)
    }

    /// A prefetch of the page to the right of this one: of the same parts of it.
    pub(crate) fn read_ahead(&self, page: Page<'_>) -> Option<FrameDistance> {
        self.pool.ahead(page.bytes(), page.right())
    }

    /// Drops a page from the cache, because a new version was written to the store past the cache.
    pub(crate) fn forget_page(&self, id: PageId) {
        self.pool.forget(id);
    }
}

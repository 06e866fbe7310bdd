//! The interface through which the tree reads, latches, creates, changes and frees pages.

use crate::base::{PageId, Result};
use crate::page::{NewEntry, PageOp};
use std::ops::{Deref, Range};

/// Pages to read. Several threads may read at the same time.
pub trait PageRead {
    /// A page under its shared latch. The latch is released when this is dropped.
    type Ref<'a>: Deref<Target = [u8]>
    where
        Self: 'a;

    /// The size of every page, in bytes.
    fn page_size(&self) -> usize;

    /// Takes the shared latch of a page. Returns an error if the page was never allocated, if its bytes are corrupt, or
    /// if the device failed.
    fn read(&self, id: PageId) -> Result<Self::Ref<'_>>;

    /// A counter. When a page is freed, the counter is raised before the tree changes further. A freed page keeps its
    /// content and its LSN for a while. So only this counter shows whether a page that is read again is still a page of
    /// the tree.
    fn frees(&self) -> u64;

    /// Takes the shared latch of a page that is in memory. Returns `None` if it must be read from a device, or if
    /// another thread is reading it: then release all latches before [`PageRead::read`], which waits for the device.
    /// The page is probably not in the caches of the processor, so its first bytes are prefetched together.
    #[inline(always)]
    fn fetch(&self, id: PageId) -> Option<Self::Ref<'_>> {
        self.read(id).ok()
    }

    /// Like [`PageRead::fetch`], if it is known which parts of the page will be read. These parts are prefetched.
    #[inline(always)]
    fn fetch_parts(&self, id: PageId, parts: [Range<usize>; 2]) -> Option<Self::Ref<'_>> {
        let _ = parts;
        self.fetch(id)
    }

    /// Hints that `id` may be prefetched soon, so that the store can fetch what it needs to find the page.
    #[inline(always)]
    fn prefetch_place_of(&self, id: PageId) {
        let _ = id;
    }

    /// Hints that `id` will be read next, so that its first bytes can be fetched. Returns false if the page has to be
    /// read from a device.
    #[inline(always)]
    fn prefetch(&self, id: PageId) -> bool {
        let _ = id;
        true
    }

    /// Hints that these pages will be read soon, so that those that are not in memory can be read together.
    #[inline(always)]
    fn will_read(&self, pages: impl Iterator<Item = PageId>) {
        let _ = pages;
    }
}

/// Pages to change. There is one writer; readers run beside it.
pub trait PageWrite: PageRead {
    /// A page under its exclusive latch. The latch is released when this is dropped.
    type Mut<'a>: Deref<Target = [u8]>
    where
        Self: 'a;

    /// Takes the exclusive latch of a page.
    fn latch(&self, id: PageId) -> Result<Self::Mut<'_>>;

    /// Allocates a page and takes its exclusive latch. Its content is undefined until a [`PageOp::Format`].
    fn create(&self) -> Result<(PageId, Self::Mut<'_>)>;

    /// Applies an operation to a latched page and logs it. `Ok(false)`: it does not fit, the page is unchanged and
    /// nothing was logged.
    fn apply(&self, page: &mut Self::Mut<'_>, op: &PageOp<'_>) -> Result<bool>;

    /// Inserts as many of these entries into a latched leaf as fit, from the first on, and logs them as one operation.
    /// Returns their number.
    fn insert_run(&self, page: &mut Self::Mut<'_>, entries: &[NewEntry<'_>]) -> Result<usize>;

    /// Frees a page. No page may refer to it, and the caller must hold no latch on it.
    fn free(&self, id: PageId) -> Result<()>;
}

//! The interface through which the tree reads, latches, creates, changes and frees pages. The place of a page, the
//! cache and the log must not be in this file.

use crate::base::{PageId, Result};
use crate::page::{NewEntry, PageOp};
use std::ops::{Deref, Range};

/// Pages to read. Several threads may read at once.
pub trait PageRead {
    /// A page under its shared latch, which is held until this is dropped.
    type Ref<'a>: Deref<Target = [u8]>
    where
        Self: 'a;

    /// The size of every page, in bytes.
    fn page_size(&self) -> usize;

    /// Takes a page's shared latch. An error where the page cannot be had: it was never allocated, its bytes are
    /// corrupt, or the device failed.
    fn read(&self, id: PageId) -> Result<Self::Ref<'_>>;

    /// As [`PageRead::read`], of a page that is probably far from the processor: its first bytes are asked for all at once.
    #[inline(always)]
    fn fetch(&self, id: PageId) -> Result<Self::Ref<'_>> {
        self.read(id)
    }

    /// As [`PageRead::fetch`], where what will be wanted of the page is known: its beginning and another part.
    #[inline(always)]
    fn fetch_parts(&self, id: PageId, parts: [Range<usize>; 2]) -> Result<Self::Ref<'_>> {
        let _ = parts;
        self.fetch(id)
    }

    /// Says that `id` may be prefetched soon, so that what is needed to find it may be fetched meanwhile.
    #[inline(always)]
    fn prefetch_place_of(&self, id: PageId) {
        let _ = id;
    }

    /// Says that `id` will be read next, so that its first bytes may be fetched meanwhile. False if the page has to be read
    /// from a device.
    #[inline(always)]
    fn prefetch(&self, id: PageId) -> bool {
        let _ = id;
        true
    }

    /// Hints that these pages will be read soon, so that those that are on a device can be read together.
    #[inline(always)]
    fn will_read(&self, pages: impl Iterator<Item = PageId>) {
        let _ = pages;
    }
}

/// Pages to change. There is one writer; readers run beside it.
pub trait PageWrite: PageRead {
    /// A page under its exclusive latch, which is held until this is dropped.
    type Mut<'a>: Deref<Target = [u8]>
    where
        Self: 'a;

    /// Takes a page's exclusive latch.
    fn latch(&self, id: PageId) -> Result<Self::Mut<'_>>;

    /// Allocates a page and takes its exclusive latch. Its content is undefined until a [`PageOp::Format`].
    fn create(&self) -> Result<(PageId, Self::Mut<'_>)>;

    /// Applies an operation to a latched page and logs it. `Ok(false)`: it does not fit, the page is unchanged and
    /// nothing was logged.
    fn apply(&self, page: &mut Self::Mut<'_>, op: &PageOp<'_>) -> Result<bool>;

    /// Inserts as many of these entries into a latched leaf as fit, from the first on, and logs them as one operation;
    /// returns how many.
    fn insert_run(&self, page: &mut Self::Mut<'_>, entries: &[NewEntry<'_>]) -> Result<usize>;

    /// Gives a page back. Nothing leads to it any more and the caller holds no latch on it.
    fn free(&self, id: PageId) -> Result<()>;
}

//! A frame: room for one page in memory with its latch and what eviction and flushing note about it; and the guards
//! through which a page is seen. Which page is in which frame is the pool's business.

use crate::base::{Lsn, PageId};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(64))]
struct CacheLine([u8; 64]);

/// The bytes of one page, aligned to a cache line.
pub struct PageBuffer(Box<[CacheLine]>);

impl PageBuffer {
    fn none() -> PageBuffer {
        PageBuffer(Box::new([]))
    }

    /// A page of zeros; `page_size` is a multiple of 64.
    pub fn zeroed(page_size: usize) -> PageBuffer {
        let lines = page_size / size_of::<CacheLine>();
        // Zeroed by the system where it can be; if that fails the ordinary way reports what memory is short of.
        let fresh = <[CacheLine]>::new_box_zeroed_with_elems(lines);
        PageBuffer(fresh.unwrap_or_else(|_| vec![CacheLine([0; 64]); lines].into_boxed_slice()))
    }
}

impl Deref for PageBuffer {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl DerefMut for PageBuffer {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.0.as_mut_bytes()
    }
}

/// The id of a frame that holds no page. No page has it.
pub(super) const NO_PAGE: u32 = u32::MAX;
/// The rec LSN of a frame whose page is as the store has it.
pub(super) const CLEAN: u64 = u64::MAX;

/// One frame, in a cache line of its own.
#[repr(align(64))]
pub(super) struct Frame {
    pub(super) latch: RwLock<PageBuffer>,
    /// The page in it; changed only under the exclusive latch.
    pub(super) id: AtomicU32,
    /// Not evicted while this is not 0; raised only under a latch.
    pub(super) pins: AtomicU32,
    /// LSN of the first change that the store does not have (the rec LSN), or [`CLEAN`]. Lowered under the exclusive
    /// latch by changes, set to [`CLEAN`] under a latch by those who write the page out.
    pub(super) rec: AtomicU64,
    /// Used since the clock hand last passed.
    pub(super) referenced: AtomicBool,
    /// A copy of it is on its way to the store: it must be neither evicted nor given to another page.
    pub(super) writing: AtomicBool,
}

impl Frame {
    /// An empty frame that has no memory for a page yet.
    pub(super) fn empty() -> Frame {
        Frame {
            latch: RwLock::new(PageBuffer::none()),
            id: AtomicU32::new(NO_PAGE),
            pins: AtomicU32::new(0),
            rec: AtomicU64::new(CLEAN),
            referenced: AtomicBool::new(false),
            writing: AtomicBool::new(false),
        }
    }

    /// True if it holds this page; certain only under a latch.
    #[inline(always)]
    pub(super) fn holds(&self, id: PageId) -> bool {
        self.id.load(Ordering::Relaxed) == id.0
    }

    /// Notes that the page is in use. The line is written only when that is news, so that readers on other cores
    /// keep it.
    #[inline(always)]
    pub(super) fn touch(&self) {
        if !self.referenced.load(Ordering::Relaxed) {
            self.referenced.store(true, Ordering::Relaxed);
        }
    }

    /// Notes a change at `lsn` that the store does not have; `dirty` counts the frames that have any.
    pub(super) fn mark_dirty(&self, lsn: Lsn, dirty: &AtomicU64) {
        if self.rec.load(Ordering::Relaxed) > lsn.0 {
            // A failed write may be putting the old value back at the same time: the smaller one must win.
            let before = self.rec.fetch_min(lsn.0, Ordering::AcqRel);
            dirty.fetch_add(u64::from(before == CLEAN), Ordering::Relaxed);
        }
    }

    /// Notes that the store has everything, or that nobody needs it any more.
    pub(super) fn mark_clean(&self, dirty: &AtomicU64) {
        let before = self.rec.swap(CLEAN, Ordering::AcqRel);
        dirty.fetch_sub(u64::from(before != CLEAN), Ordering::Relaxed);
    }
}

/// A page under its shared latch.
pub struct ReadGuard<'a> {
    pub(super) page: RwLockReadGuard<'a, PageBuffer>,
}

impl Deref for ReadGuard<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.page
    }
}

/// A page under its exclusive latch.
pub struct WriteGuard<'a> {
    pub(super) page: RwLockWriteGuard<'a, PageBuffer>,
    pub(super) frame: &'a Frame,
    /// The pool's count of changed pages.
    pub(super) dirty: &'a AtomicU64,
}

impl WriteGuard<'_> {
    /// The page's id.
    pub fn id(&self) -> PageId {
        PageId(self.frame.id.load(Ordering::Relaxed))
    }

    /// To be called with each change: `lsn` is the LSN of the operation that made it.
    pub fn mark_dirty(&mut self, lsn: Lsn) {
        self.frame.mark_dirty(lsn, self.dirty);
    }
}

impl Deref for WriteGuard<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        &self.page
    }
}

impl DerefMut for WriteGuard<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.page
    }
}

/// Keeps a page in memory, without latching it, until dropped.
pub struct Pin<'a> {
    pub(super) frame: &'a Frame,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.frame.pins.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_fits_a_cache_line_and_a_page_begins_on_one() {
        assert_eq!(size_of::<Frame>(), 64);
        let page = PageBuffer::zeroed(4096);
        assert_eq!(page.len(), 4096);
        assert_eq!(page.as_ptr() as usize % 64, 0);
    }

    #[test]
    fn the_first_change_counts() {
        let (frame, dirty) = (Frame::empty(), AtomicU64::new(0));
        for lsn in [7, 9, 8] {
            frame.mark_dirty(Lsn(lsn), &dirty);
        }
        assert_eq!((frame.rec.load(Ordering::Relaxed), dirty.load(Ordering::Relaxed)), (7, 1));
        frame.mark_clean(&dirty);
        frame.mark_clean(&dirty);
        assert_eq!(dirty.load(Ordering::Relaxed), 0);
    }
}

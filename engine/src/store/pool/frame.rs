//! A frame: memory for one page, with its latch and the fields for eviction and flushing; and the guards through which
//! a page is read and changed.

use crate::base::{Lsn, PageId};
use crate::store::ChangedParts;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use zerocopy::IntoBytes;

/// The id of a frame that holds no page. No page has it.
pub(super) const NO_PAGE: u32 = u32::MAX;
/// The rec LSN of a frame whose page is the same in the store.
pub(super) const CLEAN: u64 = u64::MAX;

/// How long a thread waits for a latch before it looks whether the frame still holds the page.
pub(super) const LATCH_WAIT: Duration = Duration::from_millis(1);

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;
/// Padding before the latch, so that the page after the latch begins on a cache line.
const UNUSED: usize = LINE - size_of::<usize>() - 20 - 8 * ChangedParts::WORDS;

/// A cache line, and right after it the page. So the address of the frame is also that of the page, and the processor
/// often fetches both together.
#[repr(C, align(64))]
pub(super) struct Frame<W: ?Sized = [u64]> {
    /// The page in it; changed only under the exclusive latch.
    pub(super) id: AtomicU32,
    /// The page is not evicted while this is not 0. Raised only under a latch.
    pub(super) pins: AtomicU32,
    /// LSN of the first change that the store does not have (the rec LSN), or [`CLEAN`]. A change lowers it under the
    /// exclusive latch; writing the page sets it to [`CLEAN`] under a latch.
    pub(super) rec: AtomicU64,
    /// The parts in which the page differs from its base, if its store needs to know. A change sets it under the
    /// exclusive latch; writing the page sets it under a latch.
    changed: [AtomicU64; ChangedParts::WORDS],
    /// The page was used since the clock hand last passed.
    pub(super) referenced: AtomicBool,
    /// A flush is writing a copy of the page: the frame must not be reused.
    pub(super) writing: AtomicBool,
    /// The page is being read from the store, under the exclusive latch.
    pub(super) loading: AtomicBool,
    /// The frame is in the free list.
    pub(super) is_free: AtomicBool,
    unused: [u8; UNUSED],
    pub(super) latch: RwLock<W>,
}

impl<const WORDS: usize> Frame<[u64; WORDS]> {
    /// A frame without a page, its bytes zero.
    pub(super) fn empty() -> Frame<[u64; WORDS]> {
        Frame {
            id: AtomicU32::new(NO_PAGE),
            pins: AtomicU32::new(0),
            rec: AtomicU64::new(CLEAN),
            changed: [const { AtomicU64::new(0) }; ChangedParts::WORDS],
            referenced: AtomicBool::new(false),
            writing: AtomicBool::new(false),
            loading: AtomicBool::new(false),
            is_free: AtomicBool::new(false),
            unused: [0; UNUSED],
            latch: RwLock::new([0; WORDS]),
        }
    }
}

impl Frame {
    /// Its address; its page is [`LINE`] bytes after it. For prefetching only.
    #[inline(always)]
    pub(super) fn address(&self) -> usize {
        std::ptr::from_ref(self).cast::<u8>().addr()
    }

    /// True if it holds this page; certain only under a latch.
    #[inline(always)]
    pub(super) fn holds(&self, id: PageId) -> bool {
        self.id.load(Ordering::Relaxed) == id.0
    }

    /// The page under its shared latch, if the frame still holds it.
    #[inline(always)]
    pub(super) fn read(&self, id: PageId) -> Option<ReadGuard<'_>> {
        let page = match self.latch.try_read() {
            Some(page) => page,
            None => self.wait_while_held(id, || self.latch.try_read_for(LATCH_WAIT))?,
        };
        self.in_use(id, page)
    }

    /// The same, for a thread that holds the latch of another page: it does not wait for long. A damaged page can refer
    /// to a page whose latch is held by a thread that waits for this one.
    #[cold]
    pub(super) fn read_soon(&self, id: PageId) -> Option<ReadGuard<'_>> {
        self.in_use(id, self.latch.try_read_for(LATCH_WAIT)?)
    }

    #[inline(always)]
    fn in_use<'f>(&self, id: PageId, page: RwLockReadGuard<'f, [u64]>) -> Option<ReadGuard<'f>> {
        self.holds(id).then(|| {
            self.touch();
            ReadGuard { page }
        })
    }

    /// The page under its exclusive latch, if the frame still holds it.
    #[inline(always)]
    pub(super) fn write(&self, id: PageId) -> Option<RwLockWriteGuard<'_, [u64]>> {
        let page = match self.latch.try_write() {
            Some(page) => page,
            None => self.wait_while_held(id, || self.latch.try_write_for(LATCH_WAIT))?,
        };
        self.holds(id).then_some(page)
    }

    /// Tries to take the latch until the frame holds another page. A thread that holds latches may look for a page in a
    /// frame that has got another page meanwhile. The thread that holds the latch of that page may wait for one of
    /// these latches.
    #[cold]
    fn wait_while_held<G>(&self, id: PageId, latch: impl Fn() -> Option<G>) -> Option<G> {
        loop {
            match latch() {
                Some(page) => return Some(page),
                None if self.holds(id) => {}
                None => return None,
            }
        }
    }

    /// Notes that the page is in use. It writes only if that was not noted before, so that the cache line stays shared
    /// between cores.
    #[inline(always)]
    pub(super) fn touch(&self) {
        if !self.referenced.load(Ordering::Relaxed) {
            self.referenced.store(true, Ordering::Relaxed);
        }
    }

    /// Notes a change at `lsn` that the store does not have; `dirty` counts images: see [`super::Pool::dirty_pages`].
    pub(super) fn mark_dirty(&self, lsn: Lsn, dirty: &AtomicU64) {
        if self.rec.load(Ordering::Relaxed) > lsn.0 {
            // A failed write may be putting the old value back at the same time: the smaller one must win.
            let before = self.rec.fetch_min(lsn.0, Ordering::AcqRel);
            dirty.fetch_add(u64::from(before == CLEAN), Ordering::Relaxed);
        }
    }

    /// Sets where the page differs from its base.
    pub(super) fn set_changed(&self, changed: ChangedParts) {
        self.take_changed();
        self.add_changed(changed);
    }

    /// Adds to where the page differs from its base.
    pub(super) fn add_changed(&self, changed: ChangedParts) {
        for (word, bits) in self.changed.iter().zip(changed.0) {
            if bits != 0 {
                word.fetch_or(bits, Ordering::AcqRel);
            }
        }
    }

    /// Where the page differs from its base.
    fn changed(&self) -> ChangedParts {
        ChangedParts(self.changed.each_ref().map(|word| word.load(Ordering::Acquire)))
    }

    /// Returns where the page differs from its base, and resets it: the page as it is becomes the base.
    pub(super) fn take_changed(&self) -> ChangedParts {
        // A load takes less time than a swap, and most pages that are evicted have no changes.
        let take =
            |word: &AtomicU64| if word.load(Ordering::Acquire) == 0 { 0 } else { word.swap(0, Ordering::AcqRel) };
        ChangedParts(self.changed.each_ref().map(take))
    }

    /// Notes that the page is copied in order to be written. `dirty` still counts it: the copy needs a place until the
    /// store has it. Call it under the latch, for a page with changes.
    pub(super) fn mark_copied(&self) {
        self.rec.store(CLEAN, Ordering::Release);
    }

    /// Notes that the store has all changes, or that they are not needed.
    pub(super) fn mark_clean(&self, dirty: &AtomicU64) {
        if self.rec.load(Ordering::Acquire) != CLEAN && self.rec.swap(CLEAN, Ordering::AcqRel) != CLEAN {
            dirty.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A page under its shared latch.
pub struct ReadGuard<'a> {
    pub(super) page: RwLockReadGuard<'a, [u64]>,
}

impl Deref for ReadGuard<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.page.as_bytes()
    }
}

/// A frame under its exclusive latch, for the pool itself.
pub(super) struct LatchedFrame<'a> {
    pub(super) page: RwLockWriteGuard<'a, [u64]>,
    pub(super) frame: &'a Frame,
}

impl LatchedFrame<'_> {
    /// The id of the page in it.
    pub(super) fn id(&self) -> PageId {
        PageId(self.frame.id.load(Ordering::Relaxed))
    }

    /// The page's bytes.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        self.page.as_mut_bytes()
    }
}

/// A page under its exclusive latch.
pub struct WriteGuard<'a> {
    page: RwLockWriteGuard<'a, [u64]>,
    frame: &'a Frame,
    /// The pool's count of images that the store does not have.
    dirty: &'a AtomicU64,
    /// The page when it was latched, if its store needs to know the changes. All changes go through this guard, so none
    /// is missed.
    before: Option<Box<[u64]>>,
}

impl<'a> WriteGuard<'a> {
    /// A guard for changes. `max_changed_bytes` is that of the [store](crate::store::StoreWrites::max_changed_bytes).
    #[inline(always)]
    pub(super) fn new(
        latched: LatchedFrame<'a>,
        dirty: &'a AtomicU64,
        max_changed_bytes: Option<usize>,
    ) -> WriteGuard<'a> {
        let LatchedFrame { page, frame } = latched;
        let before = max_changed_bytes.and_then(|most| WriteGuard::copy(&page, frame, most));
        WriteGuard { page, frame, dirty, before }
    }

    /// A copy of the page, unless so much of it has changed that its store will write the whole page.
    #[cold]
    #[inline(never)]
    fn copy(page: &[u64], frame: &Frame, max_changed_bytes: usize) -> Option<Box<[u64]>> {
        if frame.changed().min_bytes(page.as_bytes().len()) > max_changed_bytes {
            frame.add_changed(ChangedParts::ALL);
            return None;
        }
        Some(Box::from(page))
    }

    #[cold]
    #[inline(never)]
    fn note_changes(&self, before: &[u64]) {
        self.frame.add_changed(ChangedParts::between(before.as_bytes(), self.page.as_bytes()));
    }
}

impl Drop for WriteGuard<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            self.note_changes(&before);
        }
    }
}

impl WriteGuard<'_> {
    /// The page's id.
    pub fn id(&self) -> PageId {
        PageId(self.frame.id.load(Ordering::Relaxed))
    }

    /// The page gets new contents, which do not depend on its image: the store then writes the whole page.
    pub fn forget_base(&mut self) {
        self.frame.add_changed(ChangedParts::ALL);
    }

    /// Call it after each change. `lsn` is the LSN of the operation.
    pub fn mark_dirty(&mut self, lsn: Lsn) {
        self.frame.mark_dirty(lsn, self.dirty);
    }
}

impl Deref for WriteGuard<'_> {
    type Target = [u8];
    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.page.as_bytes()
    }
}

impl DerefMut for WriteGuard<'_> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u8] {
        self.page.as_mut_bytes()
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
    fn a_frame_is_a_cache_line_and_its_page_begins_on_the_next() {
        assert_eq!(size_of::<Frame<[u64; 512]>>(), LINE + 4096);
        let frame: Box<Frame> = Box::new(Frame::<[u64; 512]>::empty());
        let page = ReadGuard { page: frame.latch.read() };
        assert_eq!(page.len(), 4096);
        assert_eq!((page.as_ptr().addr(), frame.address() % LINE), (frame.address() + LINE, 0));
    }

    #[test]
    fn the_first_change_counts() {
        let frame: &Frame = &Frame::<[u64; 32]>::empty();
        let dirty = AtomicU64::new(0);
        for lsn in [7, 9, 8] {
            frame.mark_dirty(Lsn(lsn), &dirty);
        }
        assert_eq!((frame.rec.load(Ordering::Relaxed), dirty.load(Ordering::Relaxed)), (7, 1));
        frame.mark_clean(&dirty);
        frame.mark_clean(&dirty);
        assert_eq!(dirty.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_page_is_copied_until_its_store_will_write_it_as_a_whole() {
        let frame: &Frame = &Frame::<[u64; 1024]>::empty();
        let (dirty, most) = (AtomicU64::new(0), 10 * ChangedParts::segment(8192));
        let change = |at: usize| {
            let mut page = WriteGuard::new(LatchedFrame { page: frame.latch.write(), frame }, &dirty, Some(most));
            page[at] ^= 1;
            page.before.is_some()
        };
        let copies = (0..20).take_while(|segment| change(segment * 32 + 20)).count();
        assert_eq!(copies, 13, "12 segments may have 10 times the length of one");
        assert_eq!(frame.take_changed(), ChangedParts::ALL);
        assert!(change(500), "the base is another one");
        let mut expected = ChangedParts::NONE;
        expected.add(500..501, 8192);
        assert_eq!(frame.take_changed(), expected);
    }

    #[test]
    fn nobody_waits_for_a_latch_of_another_page() {
        let frame: &Frame = &Frame::<[u64; 64]>::empty();
        frame.id.store(7, Ordering::Relaxed);
        let (held, other) = (PageId(7), PageId(8));
        let latch = frame.latch.write();
        assert!(frame.read(other).is_none() && frame.write(other).is_none());
        assert!(frame.read_soon(held).is_none(), "a thread that holds another latch waits for a short time only");
        drop(latch);
        assert!(frame.read(held).is_some() && frame.write(held).is_some() && frame.read_soon(held).is_some());
        assert!(frame.read(other).is_none() && frame.write(other).is_none() && frame.read_soon(other).is_none());
    }

    #[test]
    fn a_thread_waits_for_the_latch_of_a_page_that_stays_in_its_frame() {
        let frame: &Frame = &Frame::<[u64; 64]>::empty();
        frame.id.store(7, Ordering::Relaxed);
        let latch = frame.latch.write();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| frame.read(PageId(7)).is_some());
            let writer = scope.spawn(|| frame.write(PageId(7)).is_some());
            std::thread::sleep(5 * LATCH_WAIT);
            drop(latch);
            assert!(reader.join().unwrap() && writer.join().unwrap());
        });
    }
}

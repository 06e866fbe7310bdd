//! The buffer pool: it finds the frame of a page, and reads a missing page into a frame. `evict` chooses the frames to
//! reuse, `free_frames` keeps frames ready for that, `flush` writes pages, and `log_sync` syncs the log before pages
//! are written.
//!
//! The pool uses array translation: an array from page id to frame instead of a hash table. The page of a frame changes
//! only under the frame's exclusive latch. So a thread that holds the latch and finds the right page id in the frame
//! has the page. If the page is missing, the thread takes a frame, latches it and enters it in the array before it
//! reads. Other threads that need the page wait for that latch.
//!
//! The pool of an in-memory database has no array: the frame number of each page is its id.

mod evict;
mod flush;
pub(super) mod frame;
mod frames;
mod free_frames;
mod growable_array;
mod huge;
mod log_sync;
pub(super) mod prefetch;

use crate::base::limits::PAGE_FRONT;
use crate::base::watermark::Watermark;
use crate::base::{Error, PageId, Result};
use crate::store::{ChangedParts, PageStore};
use flush::{Flusher, WriteGroups};
use frame::{Frame, LINE, LatchedFrame, NO_PAGE, Pin, ReadGuard, WriteGuard};
use frames::Frames;
use free_frames::{FreeFrame, FreeFrames};
use growable_array::GrowableArray;
use log_sync::LogSyncs;
use parking_lot::{Condvar, Mutex, RwLockWriteGuard};
use prefetch::FrameDistance;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;
use zerocopy::FromZeros;

/// The store that the pool reads and writes pages in, and the log that must be durable before a page is written.
pub struct Backing {
    /// The store that pages are read from and written to.
    pub store: Arc<dyn PageStore>,
    /// How much of the log is appended and durable.
    pub watermark: Arc<dyn Watermark>,
}

/// Counts of the pool since it was created, and its sizes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PoolStats {
    /// Pages read from the store.
    pub misses: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Pages written to the store.
    pub writes: u64,
    /// Pages in memory.
    pub resident: u64,
    /// Bytes of all frames and of the array that translates page ids.
    pub bytes: u64,
}

/// The fields that change with each miss and each write. They have cache lines of their own, so that a thread that
/// misses a page does not delay threads that only read other fields of the pool. The counts of statistics need no order
/// among each other.
#[derive(Default)]
#[repr(align(128))]
struct PoolCounters {
    /// Pages in memory.
    resident: AtomicU64,
    /// The position of the clock hand. It only grows; the remainder is the frame.
    hand: AtomicU64,
    /// Images that the store does not have: see [`Pool::dirty_pages`].
    dirty: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
    writes: AtomicU64,
}

/// The buffer pool.
pub struct Pool {
    page_size: usize,
    /// From page id to frame index + 1; 0: not in memory. Not used without a store.
    translation: GrowableArray<AtomicU32>,
    frames: Frames,
    /// The most frames that there can be.
    capacity: u32,
    /// Inner pages are evicted only if no other page can be.
    keeps_inner: bool,
    /// That of the store: see [`StoreWrites::max_changed_bytes`](super::StoreWrites::max_changed_bytes).
    max_changed_bytes: Option<usize>,
    /// Frames that have memory; without a store the highest page id so far + 1.
    used: AtomicU32,
    /// Frames with memory that can be reused at once; none without a store.
    free_frames: FreeFrames,
    /// The syncs of the log before pages are written.
    log_syncs: LogSyncs,
    backing: Option<Backing>,
    flusher: Mutex<Flusher>,
    /// The groups of pages that are being written, and what is notified when one ends.
    writing: (Mutex<WriteGroups>, Condvar),
    counters: PoolCounters,
}

impl Pool {
    /// A pool of `frames` pages (at least 4) before a store.
    pub fn new(frames: usize, backing: Backing) -> Pool {
        let capacity = u32::try_from(frames).unwrap_or(NO_PAGE - 1).clamp(4, NO_PAGE - 1);
        Pool::assemble(backing.store.file().page_size(), capacity, Some(backing))
    }

    /// The pool of an in-memory database: it grows and evicts nothing.
    pub fn in_memory(page_size: usize) -> Pool {
        Pool::assemble(page_size, NO_PAGE - 1, None)
    }

    /// Sets whether inner pages are evicted only if no other page can be. Otherwise they are evicted as all pages are,
    /// when they have not been used for long.
    #[must_use]
    pub fn keeping_inner(self, keeps_inner: bool) -> Pool {
        Pool { keeps_inner, ..self }
    }

    fn assemble(page_size: usize, capacity: u32, backing: Option<Backing>) -> Pool {
        Pool {
            page_size,
            translation: GrowableArray::new(unmapped),
            frames: Frames::new(page_size, capacity, backing.is_some()),
            capacity,
            keeps_inner: false,
            max_changed_bytes: backing.as_ref().and_then(|backing| backing.store.max_changed_bytes()),
            used: AtomicU32::new(0),
            free_frames: FreeFrames::default(),
            log_syncs: LogSyncs::default(),
            backing,
            flusher: Mutex::new(Flusher::default()),
            writing: (Mutex::default(), Condvar::new()),
            counters: PoolCounters::default(),
        }
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// How many frames there can be.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// The frame of a page, if it has one. Only a latch makes sure that the frame still holds the page.
    #[inline(always)]
    fn place_of(&self, id: PageId) -> Option<&Frame> {
        if self.backing.is_none() {
            return self.frames.get(id.0);
        }
        let entry = self.translation.get(id.0)?.load(Ordering::Acquire);
        self.frames.get(entry.checked_sub(1)?)
    }

    /// The frame of a page that is in memory, or was a moment ago.
    #[inline(always)]
    fn frame_of(&self, id: PageId) -> Option<&Frame> {
        self.place_of(id).filter(|frame| self.backing.is_some() || frame.holds(id))
    }

    /// A page under its shared latch. Waits while another thread changes it or reads it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the store has no such page or a damaged one, [`Error::CacheFull`] if no frame can be
    /// evicted, and errors of the device.
    #[inline]
    pub fn read(&self, id: PageId) -> Result<ReadGuard<'_>> {
        match self.place_of(id).and_then(|frame| frame.read(id)) {
            Some(page) => Ok(page),
            None => self.read_missing(id),
        }
    }

    /// A page under its shared latch, after [`Pool::prefetch`]. `None` if the page is not in memory, is being read by
    /// another thread, or is latched for long: [`Pool::read`] would wait.
    #[inline]
    pub fn fetch(&self, id: PageId) -> Option<ReadGuard<'_>> {
        self.fetch_parts(id, [0..PAGE_FRONT, 0..0])
    }

    /// As [`Pool::fetch`], if the caller knows which bytes of the page it will read. They must contain the page's
    /// beginning. All are prefetched before the latch is taken.
    #[inline(always)]
    pub fn fetch_parts(&self, id: PageId, parts: [Range<usize>; 2]) -> Option<ReadGuard<'_>> {
        let frame = self.place_of(id)?;
        prefetch::line(frame.address());
        parts.into_iter().for_each(|part| self.prefetch_part(frame, part));
        match frame.latch.try_read() {
            Some(page) => frame.holds(id).then(|| {
                frame.touch();
                ReadGuard { page }
            }),
            None if frame.loading.load(Ordering::Acquire) => None,
            None => frame.read_soon(id),
        }
    }

    /// Repeats only if another thread has evicted or loaded the page in between.
    #[cold]
    #[inline(never)]
    fn read_missing(&self, id: PageId) -> Result<ReadGuard<'_>> {
        loop {
            match self.frame_of(id) {
                Some(frame) => {
                    if let Some(page) = frame.read(id) {
                        return Ok(page);
                    }
                }
                None => {
                    if let Some(loaded) = self.load(id, LoadMode::Stored)? {
                        return Ok(ReadGuard { page: RwLockWriteGuard::downgrade(loaded.page) });
                    }
                }
            }
        }
    }

    /// A page under its exclusive latch; errors as for [`Pool::read`].
    pub fn latch(&self, id: PageId) -> Result<WriteGuard<'_>> {
        loop {
            match self.frame_of(id) {
                Some(frame) => {
                    if let Some(page) = frame.write(id) {
                        frame.touch();
                        return Ok(WriteGuard::new(
                            LatchedFrame { page, frame },
                            &self.counters.dirty,
                            self.max_changed_bytes,
                        ));
                    }
                }
                None => {
                    if let Some(loaded) = self.load(id, LoadMode::Stored)? {
                        return Ok(WriteGuard::new(loaded, &self.counters.dirty, self.max_changed_bytes));
                    }
                }
            }
        }
    }

    /// A page of zeros under its exclusive latch, to be formatted by the caller. The store is not read. A page of that
    /// id in memory is overwritten.
    pub fn create(&self, id: PageId) -> Result<WriteGuard<'_>> {
        loop {
            let latched = match self.latch_settled(id) {
                Some(mut latched) => {
                    latched.frame.mark_clean(&self.counters.dirty);
                    latched.frame.touch();
                    latched.frame.set_changed(ChangedParts::ALL);
                    latched.bytes().fill(0);
                    latched
                }
                None => match self.load(id, LoadMode::New)? {
                    Some(latched) => latched,
                    None => continue,
                },
            };
            return Ok(WriteGuard::new(latched, &self.counters.dirty, None));
        }
    }

    /// True if a page is in memory now.
    pub fn is_resident(&self, id: PageId) -> bool {
        self.frame_of(id).is_some_and(|frame| frame.holds(id))
    }

    /// The pages that are in memory now, in order.
    pub fn residents(&self) -> Vec<PageId> {
        let used = self.used.load(Ordering::Relaxed);
        let ids = (0..used).filter_map(|index| Some(self.frames.get(index)?.id.load(Ordering::Relaxed)));
        let mut ids: Vec<PageId> = ids.filter(|id| *id != NO_PAGE).map(PageId).collect();
        ids.sort_unstable();
        ids
    }

    /// True if a page has content, in memory or in the store.
    pub fn exists(&self, id: PageId) -> bool {
        self.is_resident(id) || self.backing.as_ref().is_some_and(|backing| backing.store.exists(id))
    }

    /// How many images the store does not have: those of pages with changes, and those that are being written now. A
    /// page that was changed again while it is being written counts twice.
    pub fn dirty_pages(&self) -> u64 {
        // With the end of a write: if a page is not counted any more, its place was taken before.
        self.counters.dirty.load(Ordering::Acquire)
    }

    /// Keeps a page in memory, reading it in if need be, until the pin is dropped.
    pub fn pin(&self, id: PageId) -> Result<Pin<'_>> {
        loop {
            let page = self.read(id)?;
            if let Some(pin) = self.pin_latched(id, &page) {
                return Ok(pin);
            }
        }
    }

    /// Like [`Pool::pin`], for a page whose latch is held. `None` if the page is no longer found under its id.
    pub fn pin_latched(&self, id: PageId, _page: &ReadGuard<'_>) -> Option<Pin<'_>> {
        let frame = self.frame_of(id).filter(|frame| frame.holds(id))?;
        // The latch that is held keeps the page in this frame.
        frame.pins.fetch_add(1, Ordering::Acquire);
        Some(Pin { frame })
    }

    /// Removes a page that has been freed from memory, changed or not. Returns once no flush is writing the page, so
    /// that [`StoreWrites::drop_page`] may follow.
    pub fn forget(&self, id: PageId) {
        if let Some(guard) = self.latch_settled(id) {
            self.give_up(guard);
        }
    }

    /// Latches a page in memory once no flush is writing it; `None` if it is not in memory.
    fn latch_settled(&self, id: PageId) -> Option<LatchedFrame<'_>> {
        loop {
            let frame = self.frame_of(id)?;
            let Some(page) = frame.write(id) else { continue };
            if !frame.writing.load(Ordering::Acquire) {
                return Some(LatchedFrame { page, frame });
            }
            drop(page);
            self.await_written();
        }
    }

    /// Waits for a flush to end, but at most a millisecond.
    fn await_written(&self) {
        let mut writing = self.writing.0.lock();
        self.writing.1.wait_for(&mut writing, Duration::from_millis(1));
    }

    /// Prefetches the entry of the translation array that [`Pool::prefetch`] will need.
    #[inline]
    pub fn prefetch_place_of(&self, id: PageId) {
        if self.backing.is_some()
            && let Some(entry) = self.translation.get(id.0)
        {
            prefetch::line(std::ptr::from_ref(entry).addr());
        }
    }

    /// Prefetches the latch and the first cache lines of a page, without waiting. False if the page is not in memory.
    #[inline]
    pub fn prefetch(&self, id: PageId) -> bool {
        let Some(frame) = self.place_of(id) else { return false };
        prefetch::line(frame.address());
        self.prefetch_part(frame, 0..PAGE_FRONT);
        true
    }

    /// Hints to the store that it will be asked for these pages soon. Pages that are in memory are left out.
    pub fn will_read(&self, pages: impl Iterator<Item = PageId>) {
        let Some(backing) = &self.backing else { return };
        if !backing.store.file().disk().wants_hints() {
            return;
        }
        let missing: Vec<PageId> = pages.filter(|id| self.place_of(*id).is_none()).collect();
        // A single page gains nothing: it is read at once.
        if missing.len() > 1 {
            backing.store.will_read(&missing);
        }
    }

    /// For prefetching parts of page `id` at the same offsets as in `page`; `None` if page `id` is not in memory.
    #[inline]
    pub fn ahead(&self, page: &[u8], id: PageId) -> Option<FrameDistance> {
        let frame = self.place_of(id)?;
        Some(FrameDistance::between(page.as_ptr().addr(), frame.address().wrapping_add(LINE)))
    }

    /// Prefetches bytes of a frame's page.
    #[inline(always)]
    fn prefetch_part(&self, frame: &Frame, part: Range<usize>) {
        let page = frame.address().wrapping_add(LINE);
        for at in (part.start & !(LINE - 1)..part.end.min(self.page_size)).step_by(LINE) {
            prefetch::line(page.wrapping_add(at));
        }
    }

    /// Reads a page into a new frame for it. `None` if another thread has loaded the page meanwhile.
    fn load(&self, id: PageId, wanted: LoadMode) -> Result<Option<LatchedFrame<'_>>> {
        // Before the array grows: an id from a damaged page could make it too large for the memory.
        let is_known = || self.backing.is_some() && self.translation.get(id.0).is_some();
        let may_be_stored = || self.backing.as_ref().is_some_and(|backing| backing.store.may_exist(id));
        if wanted == LoadMode::Stored && !is_known() && !may_be_stored() {
            // Another thread may have created it meanwhile.
            return if self.is_resident(id) { Ok(None) } else { Err(no_such_page(id)) };
        }
        let taken = if self.backing.is_some() { self.take_any(id)? } else { self.take_own(id)? };
        let Some(mut guard) = taken else { return Ok(None) };
        guard.frame.id.store(id.0, Ordering::Relaxed);
        guard.frame.touch();
        self.counters.resident.fetch_add(1, Ordering::Relaxed);
        let result = match &self.backing {
            Some(backing) if wanted != LoadMode::New => {
                self.counters.misses.fetch_add(1, Ordering::Relaxed);
                guard.frame.loading.store(true, Ordering::Release);
                let read = backing.store.read(id, guard.bytes());
                guard.frame.loading.store(false, Ordering::Release);
                read
            }
            _ => Ok(None),
        };
        match result {
            Ok(Some(changed)) => {
                guard.frame.set_changed(changed);
                Ok(Some(guard))
            }
            Ok(None) if wanted != LoadMode::Stored => {
                guard.frame.set_changed(ChangedParts::ALL);
                guard.bytes().fill(0);
                Ok(Some(guard))
            }
            failed => {
                self.give_up(guard);
                Err(failed.err().unwrap_or_else(|| Error::corrupt(id, "the store has no image of it")))
            }
        }
    }

    /// A frame for a page, exclusively latched and entered in the array. `None` if another thread has entered one.
    fn take_any(&self, id: PageId) -> Result<Option<LatchedFrame<'_>>> {
        let entry = self.translation.grow(id.0).filter(|_| id.0 != NO_PAGE).ok_or_else(|| no_such_page(id))?;
        let (index, guard) = self.victim()?;
        if entry.compare_exchange(0, index + 1, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return Ok(Some(guard));
        }
        drop(guard);
        self.free_frames.add_free([index]);
        Ok(None)
    }

    /// The frame whose number is the page id, exclusively latched. `None` if another thread has created the page.
    fn take_own(&self, id: PageId) -> Result<Option<LatchedFrame<'_>>> {
        let frame = if id.0 < self.capacity { self.frames.grow(id.0) } else { None };
        let frame = frame.ok_or(Error::CacheFull { frames: self.capacity() })?;
        self.used.fetch_max(id.0 + 1, Ordering::Relaxed);
        let page = frame.latch.write();
        Ok((!frame.holds(id)).then_some(LatchedFrame { page, frame }))
    }

    /// A frame without a page, exclusively latched.
    fn victim(&self) -> Result<(u32, LatchedFrame<'_>)> {
        let fresh = || {
            let more = |used: u32| (used < self.capacity).then_some(used + 1);
            self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
        };
        let taken = self.take_free_frame().or_else(|| fresh().map(FreeFrame::Free));
        let index = match taken.or_else(|| self.take_from_own_step()) {
            Some(FreeFrame::Evicted(index, guard)) => return Ok((index, guard)),
            Some(FreeFrame::Free(index)) => index,
            None => return self.evict(),
        };
        let frame = self.frames.grow(index).ok_or(Error::CacheFull { frames: self.capacity() })?;
        // Another thread can hold this latch only for a short time: it looked for the page that was here before.
        let page = frame.latch.write();
        Ok((index, LatchedFrame { page, frame }))
    }

    /// Removes the page from a frame. Returns the frame's index if any page can use the frame.
    fn unmap(&self, guard: &LatchedFrame<'_>) -> Option<u32> {
        let id = guard.id();
        guard.frame.mark_clean(&self.counters.dirty);
        guard.frame.referenced.store(false, Ordering::Relaxed);
        guard.frame.id.store(NO_PAGE, Ordering::Relaxed);
        self.counters.resident.fetch_sub(1, Ordering::Relaxed);
        // Without a store there is no entry.
        self.translation.get(id.0)?.swap(0, Ordering::AcqRel).checked_sub(1)
    }

    fn give_up(&self, guard: LatchedFrame<'_>) {
        let index = self.unmap(&guard);
        drop(guard);
        self.free_frames.add_free(index);
    }

    /// Its counts and sizes.
    pub fn stats(&self) -> PoolStats {
        let used = self.used.load(Ordering::Relaxed);
        PoolStats {
            misses: self.counters.misses.load(Ordering::Relaxed),
            evictions: self.counters.evictions.load(Ordering::Relaxed),
            writes: self.counters.writes.load(Ordering::Relaxed),
            resident: self.counters.resident.load(Ordering::Relaxed),
            bytes: (self.frames.bytes(used) + self.translation.bytes()) as u64,
        }
    }
}

/// The content that a page gets if it is not in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoadMode {
    /// The content of the image in the store.
    Stored,
    /// Zeros: the page is new, and the store is not asked.
    New,
}

fn no_such_page(id: PageId) -> Error {
    Error::corrupt(id, "the page does not exist")
}

/// A chunk of the translation array. The system zeroes it on first use, so that unused parts take no memory.
fn unmapped(len: usize) -> Box<[AtomicU32]> {
    let fresh = <[AtomicU32]>::new_box_zeroed_with_elems(len);
    fresh.unwrap_or_else(|_| (0..len).map(|_| AtomicU32::new(0)).collect())
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("capacity", &self.capacity).field("stats", &self.stats()).finish_non_exhaustive()
    }
}

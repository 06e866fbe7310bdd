//! Writes changed pages that stay in memory: for the free list, and for checkpoints. The caller decides when.
//!
//! A page is copied under its shared latch, and the copy is written without a latch. Meanwhile the frame is marked as
//! being written: it is not evicted, it is not written by another thread, and freeing its page waits. So no older image
//! replaces a newer one in the page table.
//!
//! A page has no changes as soon as it is copied. So a flush that must be complete waits for the groups that other
//! threads are writing, and begins again if one of them fails. [`Pool::dirty_pages`] counts the page until the store
//! has the copy, so that no commit is promised its place.

use super::frame::{CLEAN, Frame, LATCH_WAIT, NO_PAGE, ReadGuard};
use super::{Backing, Pool};
use crate::base::{Error, Lsn, PageId, Result};
use crate::page::Page;
use crate::store::{Base, ChangedParts};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes of pages that are written together.
const GROUP: usize = 1 << 20;
/// How long a checkpoint waits for a batch that is being applied.
const BATCH_WAIT: Duration = Duration::from_secs(60);

/// Buffers of a flush, which are reused.
#[derive(Default)]
pub(super) struct Flusher {
    candidates: Vec<(PageId, u32)>,
}

/// The groups that are being written now.
#[derive(Default)]
pub(super) struct WriteGroups {
    /// How many groups have been begun.
    begun: u64,
    /// The numbers of those that have not ended.
    groups: Vec<u64>,
    /// How many groups have failed.
    failed: u64,
}

/// The result for the pages of one group.
#[derive(Clone, Copy, Default)]
pub(super) struct FlushOutcome {
    /// Still to be written: they belong to an unfinished batch, or another thread has them latched or is writing them.
    pub(super) left: usize,
}

/// A page whose frame is marked as being written.
struct BatchPage<'p> {
    frame: &'p Frame,
    /// Its first change.
    rec: u64,
    changed: ChangedParts,
    base: Base,
}

/// Pages whose frames are marked as being written. Dropping it removes the marks, even after a panic, because a thread
/// that frees such a page waits for that.
struct WriteBatch<'p> {
    pool: &'p Pool,
    /// The number of the group.
    number: u64,
    pages: Vec<BatchPage<'p>>,
    /// The store has them.
    written: bool,
}

impl<'p> WriteBatch<'p> {
    fn begin(pool: &'p Pool, pages: usize) -> WriteBatch<'p> {
        let mut writing = pool.writing.0.lock();
        writing.begun += 1;
        let number = writing.begun;
        writing.groups.push(number);
        WriteBatch { pool, number, pages: Vec::with_capacity(pages), written: false }
    }
}

impl Drop for WriteBatch<'_> {
    fn drop(&mut self) {
        for BatchPage { frame, rec, changed, base } in &self.pages {
            if !self.written {
                frame.mark_dirty(Lsn(*rec), &self.pool.counters.dirty);
            }
            if !self.written || *base == Base::Stays {
                frame.add_changed(*changed);
            }
            frame.writing.store(false, Ordering::Release);
        }
        // Not before: until now the copies needed places, beside those of pages that were changed again.
        self.pool.counters.dirty.fetch_sub(self.pages.len() as u64, Ordering::Release);
        let mut writing = self.pool.writing.0.lock();
        writing.groups.retain(|number| *number != self.number);
        writing.failed += u64::from(!self.written);
        drop(writing);
        self.pool.writing.1.notify_all();
    }
}

impl Pool {
    /// Writes every page whose first change that the store lacks is before `lsn`. Waits for a batch that is being
    /// applied to end, if such a page is part of it: call it from no thread that the batch waits for.
    pub fn flush_before(&self, lsn: Lsn) -> Result<()> {
        self.flush_before_while(lsn, || Ok(()))
    }

    /// The same, as long as `goes_on` returns no error. A batch that has failed leaves pages that are never written.
    pub fn flush_before_while(&self, lsn: Lsn, goes_on: impl Fn() -> Result<()>) -> Result<()> {
        let (mut left, mut since) = (usize::MAX, Instant::now());
        loop {
            goes_on()?;
            match self.flush_step(lsn)? {
                0 => return Ok(()),
                fewer if fewer < left => (left, since) = (fewer, Instant::now()),
                _ if since.elapsed() > BATCH_WAIT => {
                    return Err(Error::Poisoned { cause: "a batch was started and not finished".into() });
                }
                _ => {}
            }
            std::thread::sleep(LATCH_WAIT);
        }
    }

    /// One attempt of [`Pool::flush_before`] that waits for no batch: returns how many pages are left because they
    /// belong to one that is still being applied, or because another thread kept them latched or was writing them. It
    /// waits for the groups that other threads are writing; if one of them fails, its pages are left.
    pub fn flush_step(&self, lsn: Lsn) -> Result<usize> {
        let Some(backing) = &self.backing else { return Ok(0) };
        let mut guard = self.flusher.lock();
        let flusher = &mut *guard;
        flusher.candidates.clear();
        let failed = self.writing.0.lock().failed;
        self.gather(flusher, lsn);
        let groups = self.writing.0.lock().groups.clone();
        let mut left = 0;
        for group in flusher.candidates.chunks(self.group_pages()) {
            left += self.write_group(backing, group, lsn, Lsn::MAX)?.left;
        }
        Ok(left + self.await_groups(&groups, failed))
    }

    /// Waits until these groups have ended. Returns how many groups have failed, of which `failed` are known.
    fn await_groups(&self, groups: &[u64], failed: u64) -> usize {
        let mut writing = self.writing.0.lock();
        while writing.groups.iter().any(|number| groups.contains(number)) {
            self.writing.1.wait(&mut writing);
        }
        usize::from(writing.failed > failed)
    }

    /// How many pages are written together.
    pub(super) fn group_pages(&self) -> usize {
        (GROUP / self.page_size()).max(1)
    }

    /// Adds the changed pages whose rec LSN is before `before`, and sorts all by page id: new places are given out in
    /// the order of writing, and neighbours in the tree often have neighbouring ids.
    fn gather(&self, flusher: &mut Flusher, before: Lsn) {
        for index in 0..self.capacity.min(self.used.load(Ordering::Acquire)) {
            let Some(frame) = self.frames.get(index) else { continue };
            let (id, rec) = (frame.id.load(Ordering::Relaxed), frame.rec.load(Ordering::Acquire));
            if id != NO_PAGE && rec != CLEAN && rec < before.0 {
                flusher.candidates.push((PageId(id), index));
            }
        }
        flusher.candidates.sort_unstable();
    }

    /// Writes those of these pages that still have a first change before `before`, and an LSN before `until`.
    pub(super) fn write_group(
        &self,
        backing: &Backing,
        group: &[(PageId, u32)],
        before: Lsn,
        until: Lsn,
    ) -> Result<FlushOutcome> {
        let mut outcome = FlushOutcome::default();
        let mut batch = WriteBatch::begin(self, group.len());
        let mut newest = Lsn::ZERO;
        let mut writer = backing.store.writer();
        for &(id, index) in group {
            let Some(frame) = self.frames.get(index) else { continue };
            let Some(page) = frame.latch.try_read_for(LATCH_WAIT).map(|page| ReadGuard { page }) else {
                outcome.left += 1;
                continue;
            };
            if !frame.holds(id) {
                continue;
            }
            if frame.writing.swap(true, Ordering::AcqRel) {
                outcome.left += 1;
                continue;
            }
            let (rec, lsn) = (frame.rec.load(Ordering::Acquire), Page::new(&page).lsn());
            let is_clean = rec == CLEAN || rec >= before.0;
            if is_clean || lsn >= backing.watermark.appended() || lsn >= until {
                outcome.left += usize::from(!is_clean);
                frame.writing.store(false, Ordering::Release);
                continue;
            }
            let changed = frame.take_changed();
            // A later change, under the exclusive latch, makes it dirty again.
            frame.mark_copied();
            batch.pages.push(BatchPage { frame, rec, changed, base: Base::Stays });
            let base = writer.push(id, &page, changed);
            if let Some(page) = batch.pages.last_mut() {
                page.base = base;
            }
            newest = newest.max(lsn);
        }
        if !batch.pages.is_empty() {
            if newest >= backing.watermark.durable() {
                backing.watermark.make_durable(backing.watermark.appended())?;
            }
            writer.write()?;
        }
        batch.written = true;
        self.counters.writes.fetch_add(batch.pages.len() as u64, Ordering::Relaxed);
        Ok(outcome)
    }
}

//! Writes changed pages that stay in memory: for the background cleaner, and for checkpoints. The caller decides when.
//!
//! A page is copied under its shared latch, and the copy is written without a latch. Meanwhile the frame is marked as being
//! written: it is not evicted, and freeing its page waits, so that no older image replaces a newer one in the page table.
//! One flush runs at a time.

use super::frame::{CLEAN, Frame, NO_PAGE, ReadGuard};
use super::{Backing, Pool};
use crate::base::{Error, Lsn, PageId, Result};
use crate::page::Page;
use crate::store::{Base, ChangedParts};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Bytes of pages that are written together.
const GROUP: usize = 1 << 20;
/// How long to wait for a latch while other pages are marked as being written.
const LATCH_WAIT: Duration = Duration::from_millis(1);
/// How long a checkpoint waits for a batch that is being applied to come to its end.
const BATCH_WAIT: Duration = Duration::from_secs(60);

/// Buffers of a flush, which are reused.
#[derive(Default)]
pub(super) struct Flusher {
    candidates: Vec<(PageId, u32)>,
}

/// The result for the pages of one group.
#[derive(Clone, Copy, Default)]
struct Outcome {
    written: usize,
    /// Still to be written: they belong to an unfinished batch, or another thread has them latched.
    left: usize,
}

/// A frame that is marked as being written.
struct Claim<'p> {
    frame: &'p Frame,
    /// Its first change.
    rec: u64,
    changed: ChangedParts,
    base: Base,
}

/// Frames that are marked as being written. Dropping it removes the marks, even after a panic, because a thread that frees
/// such a page waits for that.
struct Claimed<'p> {
    pool: &'p Pool,
    frames: Vec<Claim<'p>>,
    /// The store has them.
    written: bool,
}

impl Drop for Claimed<'_> {
    fn drop(&mut self) {
        for Claim { frame, rec, changed, base } in &self.frames {
            if !self.written {
                frame.mark_dirty(Lsn(*rec), &self.pool.dirty);
            }
            if !self.written || *base == Base::Stays {
                frame.add_changed(*changed);
            }
            frame.writing.store(false, Ordering::Release);
        }
        drop(self.pool.written.0.lock());
        self.pool.written.1.notify_all();
    }
}

impl Pool {
    /// Writes every page whose first change that the store lacks is before `lsn`. Waits for a batch that is being
    /// applied to end, if such a page is part of it: call it from no thread that the batch waits for.
    pub fn flush_before(&self, lsn: Lsn) -> Result<()> {
        let start = Instant::now();
        while self.flush_step(lsn)? > 0 {
            if start.elapsed() > BATCH_WAIT {
                return Err(Error::Poisoned { cause: "a batch has been begun and not ended".into() });
            }
            std::thread::sleep(LATCH_WAIT);
        }
        Ok(())
    }

    /// One attempt of [`Pool::flush_before`] that waits for no batch: returns how many pages are left because they belong
    /// to one that is still being applied, or because another thread kept them latched.
    pub fn flush_step(&self, lsn: Lsn) -> Result<usize> {
        let Some(backing) = &self.backing else { return Ok(0) };
        let mut guard = self.flusher.lock();
        let flusher = &mut *guard;
        flusher.candidates.clear();
        self.gather(flusher, 0..self.capacity, lsn, usize::MAX);
        let mut left = 0;
        for group in flusher.candidates.chunks((GROUP / self.page_size()).max(1)) {
            left += self.write_group(backing, group, lsn, Lsn::MAX)?.left;
        }
        Ok(left)
    }

    /// The cleaner: writes up to `max` changed pages that the clock comes to next and whose log is durable, so that eviction
    /// finds clean pages. Returns how many it has written.
    pub fn clean_step(&self, max: usize) -> Result<usize> {
        let Some(backing) = &self.backing else { return Ok(0) };
        let mut guard = self.flusher.lock();
        let flusher = &mut *guard;
        flusher.candidates.clear();
        let hand = self.hand.load(Ordering::Relaxed) % u64::from(self.capacity);
        let hand = u32::try_from(hand).unwrap_or(0);
        self.gather(flusher, hand..self.capacity, Lsn::MAX, max);
        self.gather(flusher, 0..hand, Lsn::MAX, max);
        let durable = backing.watermark.durable();
        let mut written = 0;
        for group in flusher.candidates.chunks((GROUP / self.page_size()).max(1)) {
            written += self.write_group(backing, group, Lsn::MAX, durable)?.written;
        }
        Ok(written)
    }

    /// Adds the changed pages in these frames whose rec LSN is before `before`, up to `max` in all, and sorts all by
    /// page id: new places are given out in the order of writing, and neighbours in the tree often have
    /// neighbouring ids.
    fn gather(&self, flusher: &mut Flusher, frames: std::ops::Range<u32>, before: Lsn, max: usize) {
        for index in frames.start..frames.end.min(self.used.load(Ordering::Acquire)) {
            let Some(frame) = self.frames.get(index) else { continue };
            if flusher.candidates.len() >= max {
                break;
            }
            let (id, rec) = (frame.id.load(Ordering::Relaxed), frame.rec.load(Ordering::Acquire));
            if id != NO_PAGE && rec != CLEAN && rec < before.0 {
                flusher.candidates.push((PageId(id), index));
            }
        }
        flusher.candidates.sort_unstable();
    }

    /// Writes those of these pages that still have a first change before `before`, and an LSN before `until`.
    fn write_group(&self, backing: &Backing, group: &[(PageId, u32)], before: Lsn, until: Lsn) -> Result<Outcome> {
        let mut outcome = Outcome::default();
        let mut claimed = Claimed { pool: self, frames: Vec::with_capacity(group.len()), written: false };
        let mut newest = Lsn::ZERO;
        let mut writer = backing.store.writer();
        for &(id, index) in group {
            let Some(frame) = self.frames.get(index) else { continue };
            let Some(page) = frame.latch.try_read_for(LATCH_WAIT).map(|page| ReadGuard { page }) else {
                outcome.left += 1;
                continue;
            };
            let rec = frame.rec.load(Ordering::Acquire);
            if !frame.holds(id) || rec == CLEAN || rec >= before.0 {
                continue;
            }
            let lsn = Page::new(&page).lsn();
            if lsn >= backing.watermark.appended() || lsn >= until {
                outcome.left += 1;
                continue;
            }
            let changed = frame.take_changed();
            let base = writer.push(id, &page, changed);
            newest = newest.max(lsn);
            // A later change, under the exclusive latch, makes it dirty again.
            frame.writing.store(true, Ordering::Release);
            frame.mark_clean(&self.dirty);
            claimed.frames.push(Claim { frame, rec, changed, base });
        }
        if !claimed.frames.is_empty() {
            if newest >= backing.watermark.durable() {
                backing.watermark.make_durable(backing.watermark.appended())?;
            }
            writer.write()?;
        }
        claimed.written = true;
        outcome.written = claimed.frames.len();
        self.counters.writes.fetch_add(outcome.written as u64, Ordering::Relaxed);
        Ok(outcome)
    }
}

//! Eviction, if the free list has no frame and none could be added: a clock over the frames chooses the page to evict.
//! It only tries to take latches, for a millisecond at most, so that a thread that holds latches never waits here until
//! another thread releases one. It compresses and writes a changed page without a latch; other threads read and change
//! the page meanwhile. Then the page is evicted only if it is still unchanged and not in use.
//!
//! Clean pages are evicted first; then changed pages whose log is durable; then, after one sync of the log, any whose
//! batch is in the log. A page of the batch that is being applied is never written. A pool that keeps inner pages
//! evicts one only after it has gone through all frames several times and found no other page.

use super::frame::{CLEAN, Frame, LINE, LatchedFrame, NO_PAGE};
use super::{Backing, Pool, prefetch};
use crate::base::{Error, Lsn, PageId, Result};
use crate::page::Page;
use std::sync::atomic::Ordering;
use zerocopy::IntoBytes;

/// How many changed pages a search passes over to find a clean one, and how many more to find one whose log is durable.
const PASS_FOR_CLEAN: usize = 16;
const PASS_FOR_DURABLE: usize = 64;
/// A frame is prefetched this number of frames before the hand reaches it.
const SWEEP_PREFETCH: u64 = 8;
/// How often the whole pool is searched while other threads use all frames that could be evicted. A search beside a
/// write does not count, unless an error has occurred.
const ROUNDS: usize = 200;
/// The limit of rounds after a failed write or sync. The search then finds a frame only if another thread frees one.
/// The limit is lower because each later read of a page that is not in the cache may wait this long for nothing.
const ROUNDS_AFTER_ERROR: usize = 20;

/// How often a search goes through all frames: once to clear the reference bits, then often enough to pass over the
/// changed pages above.
const TURNS: usize = 5;
/// In this many turns inner pages are passed over, if the pool keeps them.
const SPARING: usize = 4;

/// The counts of one search.
#[derive(Default)]
struct Sweep {
    /// Frames looked at.
    looked: usize,
    /// Changed pages passed over.
    passed: usize,
    /// Another thread was using a frame: it may release it soon.
    busy: bool,
    /// Another thread was writing a page: its frame can be evicted afterwards.
    is_writing: bool,
    /// Why the log could not be made durable. From then on pages that wait for it are passed over.
    log_error: Option<Error>,
    /// Why a changed page could not be written. From then on only clean pages are evicted.
    error: Option<Error>,
}

impl Sweep {
    fn has_failed(&self) -> bool {
        self.error.is_some() || self.log_error.is_some()
    }
}

impl Pool {
    /// Evicts a page and returns its frame.
    pub(super) fn evict(&self) -> Result<(u32, LatchedFrame<'_>)> {
        let full = Error::CacheFull { frames: self.capacity() };
        let Some(backing) = &self.backing else { return Err(full) };
        let (mut round, mut sweep) = (0, Sweep::default());
        while round < if sweep.has_failed() { ROUNDS_AFTER_ERROR } else { ROUNDS } {
            // After a failed write or sync, the search does not try it again.
            sweep = Sweep { error: sweep.error, log_error: sweep.log_error, ..Sweep::default() };
            for _ in 0..TURNS * self.capacity() {
                if let Some(taken) = self.try_next(backing, &mut sweep) {
                    return Ok(taken);
                }
            }
            if sweep.is_writing {
                // However long the device takes: the writing thread needs no latch of this one. After an error, that
                // write probably fails, too.
                self.await_written();
                round += usize::from(sweep.has_failed());
                continue;
            }
            if !sweep.busy {
                break;
            }
            if round < 10 {
                std::thread::yield_now();
            } else {
                self.await_written();
            }
            round += 1;
        }
        Err(sweep.error.or(sweep.log_error).unwrap_or(full))
    }

    /// The position of the hand of the clock.
    #[cfg(test)]
    pub(in crate::store) fn hand(&self) -> u64 {
        self.counters.hand.load(Ordering::Relaxed)
    }

    /// The next frame that the hand of the clock comes to, with its number.
    pub(super) fn next_frame(&self) -> Option<(u32, &Frame)> {
        let turn = self.counters.hand.fetch_add(1, Ordering::Relaxed);
        let frame_at = |turn: u64| u32::try_from(turn % u64::from(self.capacity)).ok();
        frame_at(turn + SWEEP_PREFETCH).into_iter().for_each(|index| self.prefetch_frame(index));
        let index = frame_at(turn)?;
        Some((index, self.frames.get(index)?))
    }

    /// Prefetches the latch of a frame and the header of its page.
    #[inline]
    pub(super) fn prefetch_frame(&self, index: u32) {
        if let Some(frame) = self.frames.get(index) {
            prefetch::line(frame.address());
            prefetch::line(frame.address().wrapping_add(LINE));
        }
    }

    fn try_next(&self, backing: &Backing, sweep: &mut Sweep) -> Option<(u32, LatchedFrame<'_>)> {
        sweep.looked += 1;
        let (index, frame) = self.next_frame()?;
        if frame.id.load(Ordering::Relaxed) == NO_PAGE {
            return None;
        }
        if frame.pins.load(Ordering::Relaxed) > 0 {
            sweep.busy = true;
            return None;
        }
        if frame.referenced.load(Ordering::Relaxed) {
            frame.referenced.store(false, Ordering::Relaxed);
            return None;
        }
        let Some(page) = frame.latch.try_write() else {
            sweep.busy = true;
            return None;
        };
        let guard = LatchedFrame { page, frame };
        if guard.id().0 == NO_PAGE {
            return None;
        }
        if self.keeps_inner
            && sweep.looked <= SPARING * self.capacity()
            && Page::new(guard.page.as_bytes()).refers_to_pages()
        {
            return None;
        }
        let is_writing = frame.writing.load(Ordering::Acquire);
        if frame.pins.load(Ordering::Acquire) > 0 || is_writing {
            (sweep.busy, sweep.is_writing) = (true, sweep.is_writing || is_writing);
            return None;
        }
        if frame.rec.load(Ordering::Acquire) != CLEAN {
            let (id, lsn) = (guard.id(), Page::new(guard.page.as_bytes()).lsn());
            drop(guard);
            self.write_victim(backing, (id, index), lsn, sweep).then_some(())?;
            let evicted = self.evict_clean(frame, false);
            sweep.busy |= evicted.is_none();
            return evicted;
        }
        let index = self.unmap(&guard)?;
        self.counters.evictions.fetch_add(1, Ordering::Relaxed);
        Some((index, guard))
    }

    /// Writes a changed page so that its frame can be reused; false if another page should be evicted instead.
    fn write_victim(&self, backing: &Backing, victim: (PageId, u32), lsn: Lsn, sweep: &mut Sweep) -> bool {
        let half = (self.capacity() / 2).max(1);
        let (clean, durable) = (PASS_FOR_CLEAN.min(half), PASS_FOR_DURABLE.min(half));
        sweep.passed += 1;
        if sweep.error.is_some() || sweep.passed <= clean {
            return false;
        }
        let appended = backing.watermark.appended();
        if lsn >= appended {
            sweep.busy = true;
            return false;
        }
        let waits = lsn >= backing.watermark.durable();
        if waits && (sweep.log_error.is_some() || sweep.passed <= clean + durable) {
            return false;
        }
        if waits {
            match backing.watermark.make_durable(appended) {
                Ok(true) => backing.store.file().count_forced_log_sync(),
                Ok(false) => {}
                Err(error) => {
                    sweep.log_error = Some(error);
                    return false;
                }
            }
        }
        match self.write_group(backing, &[victim], Lsn::MAX, backing.watermark.durable()) {
            Ok(outcome) => {
                sweep.busy |= outcome.left > 0;
                outcome.left == 0
            }
            Err(error) => {
                sweep.error = Some(error);
                false
            }
        }
    }
}

//! Syncs of the log ahead of the writes of dirty pages. A page is written only if its log is durable, so the log is
//! synced before the hand of the clock comes to pages that were changed since the last sync.
//!
//! One thread can do this for all: it calls [`Pool::await_log_sync`] and [`Pool::sync_log_ahead`]. Then the writers ask
//! it for a sync after a quarter of a turn of the hand, in a small cache after a whole turn, and write other pages
//! meanwhile. A writer syncs the log itself if nothing else can be written, and without this thread also after each
//! turn of the hand, when the free list is full.

use super::{Backing, Pool};
use crate::base::Result;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, Ordering};

/// The thread is asked for a sync when the hand has passed the frames of the cache divided by this number.
const ASK_DIVISOR: u32 = 4;
/// The hand passes at least so many frames before, or all frames: each sync writes a block of the log.
const MIN_PASSED: u32 = 1024;

/// Whether the thread is there, and is needed.
#[derive(Default)]
struct SyncDemand {
    has_thread: bool,
    asked: bool,
    closed: bool,
}

/// The state of the syncs of a pool.
#[derive(Default)]
pub(super) struct LogSyncs {
    demand: Mutex<SyncDemand>,
    wake: Condvar,
    /// The position of the hand when the log was synced last, or when the thread was asked for it.
    hand: AtomicU64,
}

impl LogSyncs {
    /// Wakes the thread. False if there is none.
    fn ask(&self) -> bool {
        let mut demand = self.demand.lock();
        demand.asked |= demand.has_thread;
        self.wake.notify_one();
        demand.has_thread
    }

    pub(super) fn close(&self) {
        self.demand.lock().closed = true;
        self.wake.notify_all();
    }
}

impl Pool {
    /// Waits until the writers need a durable log. False once [`Pool::end_demand`] was called. For the thread that
    /// calls [`Pool::sync_log_ahead`].
    pub fn await_log_sync(&self) -> bool {
        let mut demand = self.log_syncs.demand.lock();
        demand.has_thread = true;
        self.log_syncs.wake.wait_while(&mut demand, |demand| !demand.asked && !demand.closed);
        demand.asked = false;
        !demand.closed
    }

    /// Makes the log durable.
    pub fn sync_log_ahead(&self) -> Result<()> {
        let Some(backing) = &self.backing else { return Ok(()) };
        self.sync_log(backing).map(drop)
    }

    /// Asks the thread for a sync, if the hand has passed enough frames since the last one.
    pub(super) fn ask_for_log_sync(&self) {
        let frames = (self.capacity / ASK_DIVISOR).max(self.capacity.min(MIN_PASSED));
        if self.has_passed(frames) && self.log_syncs.ask() {
            self.note_log_sync();
        }
    }

    /// Makes the log durable if the hand has passed all frames since that was done last, or since the thread was asked
    /// for it. So most pages that the hand comes to have changes that are durable in the log, and can be written.
    pub(super) fn sync_log_after_a_turn(&self, backing: &Backing) -> Result<()> {
        if self.has_passed(self.capacity) {
            self.sync_log(backing)?;
        }
        Ok(())
    }

    /// Makes the log durable. False if it was.
    pub(super) fn sync_log(&self, backing: &Backing) -> Result<bool> {
        self.note_log_sync();
        let appended = backing.watermark.appended();
        if backing.watermark.durable() >= appended {
            return Ok(false);
        }
        if backing.watermark.make_durable(appended)? {
            backing.store.file().count_forced_log_sync();
        }
        Ok(true)
    }

    /// True if the hand has passed this number of frames since the last sync.
    fn has_passed(&self, frames: u32) -> bool {
        let hand = self.counters.hand.load(Ordering::Relaxed);
        hand.saturating_sub(self.log_syncs.hand.load(Ordering::Relaxed)) >= u64::from(frames)
    }

    fn note_log_sync(&self) {
        self.log_syncs.hand.store(self.counters.hand.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

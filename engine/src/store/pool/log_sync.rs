//! Syncs the log before dirty pages are written. A page is written only if its log is durable. The log is synced early,
//! so that the hand of the clock finds few dirty pages whose log is not durable.
//!
//! A thread can sync the log for all writers: it calls [`Pool::await_log_sync`] and [`Pool::sync_log_ahead`]. The
//! writers ask it for a sync when the hand has passed enough frames since the last sync or request: a quarter of the
//! frames, but at least [`MIN_PASSED`] frames, or all frames of a smaller cache. They continue to write other pages.
//!
//! A writer syncs the log itself in two cases: it can add no frame to the free list because pages wait for the log; or
//! it can add too few, and the hand has passed all frames. Without the thread there is a third case: the free list is
//! full, and the hand has passed all frames.

use super::{Backing, Pool};
use crate::base::Result;
use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicU64, Ordering};

/// A writer asks for a sync after the hand has passed the number of all frames divided by this.
const ASK_DIVISOR: u32 = 4;
/// The least number of frames between two requests, if the cache has so many. Each sync writes at least one block of
/// the log, so syncs must not be too frequent.
const MIN_PASSED: u32 = 1024;

/// Whether there is a thread, whether it was asked for a sync, and whether it must end.
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
    /// The position of the hand when the log was synced last, or when the thread was asked for a sync.
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
        demand.has_thread = !demand.closed;
        !demand.closed
    }

    /// Makes the log durable.
    pub fn sync_log_ahead(&self) -> Result<()> {
        let Some(backing) = &self.backing else { return Ok(()) };
        self.sync_log(backing)
    }

    /// Asks the thread for a sync, if the hand has passed enough frames since the last sync or request.
    pub(super) fn ask_for_log_sync(&self) {
        let frames = (self.capacity / ASK_DIVISOR).max(self.capacity.min(MIN_PASSED));
        if self.has_passed(frames) && self.log_syncs.ask() {
            self.note_log_sync();
        }
    }

    /// Makes the log durable if the hand has passed all frames since the last sync or request. So most pages that the
    /// hand comes to have changes that are durable in the log, and can be written.
    pub(super) fn sync_log_after_a_turn(&self, backing: &Backing) -> Result<()> {
        if self.has_passed(self.capacity) {
            self.sync_log(backing)?;
        }
        Ok(())
    }

    /// Makes the log durable.
    pub(super) fn sync_log(&self, backing: &Backing) -> Result<()> {
        self.note_log_sync();
        let appended = backing.watermark.appended();
        if backing.watermark.durable() < appended && backing.watermark.make_durable(appended)? {
            backing.store.file().count_forced_log_sync();
        }
        Ok(())
    }

    /// True if the hand has passed this number of frames since the last sync or request.
    fn has_passed(&self, frames: u32) -> bool {
        let hand = self.counters.hand.load(Ordering::Relaxed);
        hand.saturating_sub(self.log_syncs.hand.load(Ordering::Relaxed)) >= u64::from(frames)
    }

    fn note_log_sync(&self) {
        self.log_syncs.hand.store(self.counters.hand.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

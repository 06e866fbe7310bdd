//! How much work a recovery would have, and the bounds of that work.
//!
//! A set of page ids counts the pages that a recovery would change. Pages that change during a checkpoint count for the
//! next redo point, too.

use super::space::page_set::PageSet;
use crate::base::PageId;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A checkpoint is due when a recovery would read this number of bytes of log, or of pages. Commits wait at twice as
/// much.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RedoBounds {
    pub(crate) bytes: u64,
    pub(crate) pages: u64,
}

impl RedoBounds {
    /// No bounds.
    pub(crate) const NONE: RedoBounds = RedoBounds { bytes: u64::MAX, pages: u64::MAX };
}

/// The amount of log and pages that a recovery would read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct RedoAmount {
    /// Bytes of the log since the redo point, padding included.
    pub(super) bytes: u64,
    /// Distinct pages that the log changes since the redo point.
    pub(super) pages: u64,
}

impl RedoAmount {
    /// True if it is at least `times` times one of the bounds.
    pub(super) fn reaches(self, bounds: RedoBounds, times: u64) -> bool {
        self.bytes >= bounds.bytes.saturating_mul(times) || self.pages >= bounds.pages.saturating_mul(times)
    }
}

/// The work since a redo point.
#[derive(Debug, Default)]
struct WorkSince {
    /// The number of bytes that the log had written at that time, less the bytes of earlier logs, which a recovery has
    /// read and which are still needed. Negative numbers wrap around.
    start: u64,
    pages: PageSet,
}

/// The work since the redo point of the superblock, and since the next redo point.
#[derive(Debug, Default)]
struct RedoWorkState {
    redo: WorkSince,
    /// While a checkpoint is being taken: pages that are changed meanwhile count for both.
    next: Option<WorkSince>,
}

/// Counts the work of a recovery. Positions are those of [`Log::written`](crate::log::Log::written).
#[derive(Debug, Default)]
pub(super) struct RedoWork {
    state: Mutex<RedoWorkState>,
    /// The start and the number of pages of `redo` after the last change, because each commit reads them twice. For a
    /// moment, one of them may belong to the old redo point and the other to the new one; then a checkpoint begins a
    /// little too early or too late.
    start: AtomicU64,
    pages: AtomicU64,
}

impl RedoWork {
    /// The work that a recovery has just done. It counts until the first checkpoint is durable.
    pub(super) fn of_recovery(bytes: u64, pages: PageSet) -> RedoWork {
        let work = RedoWork::default();
        let redo = WorkSince { start: 0u64.wrapping_sub(bytes), pages };
        work.publish(&redo);
        work.state.lock().redo = redo;
        work
    }

    fn publish(&self, redo: &WorkSince) {
        self.start.store(redo.start, Ordering::Relaxed);
        self.pages.store(redo.pages.len(), Ordering::Relaxed);
    }

    /// A batch has changed these pages. Call it under the apply lock, before the batch is in the log.
    pub(super) fn note(&self, pages: &[PageId]) {
        let mut state = self.state.lock();
        let RedoWorkState { redo, next } = &mut *state;
        for since in std::iter::once(&mut *redo).chain(next) {
            pages.iter().for_each(|id| since.pages.insert(*id));
        }
        self.publish(redo);
    }

    /// A checkpoint begins, whose redo point is at this position. Call it under the apply lock. A checkpoint that has
    /// begun and failed does not count.
    pub(super) fn begin(&self, position: u64) {
        self.state.lock().next = Some(WorkSince { start: position, ..WorkSince::default() });
    }

    /// The redo point of the checkpoint that was begun is durable.
    pub(super) fn finish(&self) {
        let mut state = self.state.lock();
        if let Some(next) = state.next.take() {
            state.redo = next;
            self.publish(&state.redo);
        }
    }

    /// The amount that a recovery would read now.
    pub(super) fn amount(&self, position: u64) -> RedoAmount {
        let bytes = position.wrapping_sub(self.start.load(Ordering::Relaxed)).cast_signed();
        RedoAmount { bytes: bytes.max(0).cast_unsigned(), pages: self.pages.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(range: std::ops::Range<u32>) -> Vec<PageId> {
        range.map(PageId).collect()
    }

    #[test]
    fn pages_changed_during_a_checkpoint_count_after_it() {
        let work = RedoWork::of_recovery(100, PageSet::default());
        work.note(&ids(0..10));
        assert_eq!(work.amount(50), RedoAmount { bytes: 150, pages: 10 });
        work.begin(60);
        work.note(&ids(5..7));
        assert_eq!(work.amount(70), RedoAmount { bytes: 170, pages: 10 });
        // It has failed; the next one succeeds.
        work.begin(80);
        work.note(&ids(9..12));
        work.finish();
        assert_eq!(work.amount(85), RedoAmount { bytes: 5, pages: 3 });
        work.note(&ids(11..13));
        assert_eq!(work.amount(90), RedoAmount { bytes: 10, pages: 4 });
    }

    #[test]
    fn either_bound_is_reached_alone() {
        let bounds = RedoBounds { bytes: 10, pages: 3 };
        let reaches = |bytes, pages, times| RedoAmount { bytes, pages }.reaches(bounds, times);
        assert!(!reaches(9, 2, 1) && reaches(10, 0, 1) && reaches(0, 3, 1));
        assert!(!reaches(19, 5, 2) && reaches(20, 0, 2) && reaches(0, 6, 2));
        assert!(!RedoAmount { bytes: 1 << 40, pages: 1 << 40 }.reaches(RedoBounds::NONE, 2));
    }
}

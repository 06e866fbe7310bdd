//! Closes gaps in the file: moves images from its end to lower places and truncates it. The caller chooses how far: a
//! compaction closes all gaps, a close only the gaps that are worth their writes.

use crate::base::Result;
use crate::store::StoreStats;
use crate::txn::checkpoint::Segments;
use crate::txn::engine::Engine;

/// Pages moved between two checkpoints.
const MOVE_PAGES: u64 = 4096;
/// Moving a page may free the place that another page needs, so there are several rounds. More rounds than this gain
/// nothing.
const MOST_ROUNDS: usize = 64;
/// Free bytes that are not worth a checkpoint.
const SMALL_FREE: u64 = 256 << 10;

/// The limits of the work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShrinkLimits {
    /// Free bytes that may stay in the file.
    most: u64,
    /// Bytes that may be written to move images.
    moves: u64,
}

impl ShrinkLimits {
    /// The limits for closing a database, and for a full device: at most a sixteenth of the file stays free, and at
    /// most as many bytes are written as this handle has written before.
    pub(in crate::txn) fn worth_while(stats: &StoreStats) -> ShrinkLimits {
        ShrinkLimits { most: (stats.live_bytes / 16).max(SMALL_FREE), moves: stats.written_bytes }
    }
}

impl Engine {
    /// Closes gaps within the limits of `gaps`. Call it after a checkpoint; it ends with one. The caller must hold the
    /// writer lock or be alone, because a transaction has the places of pages that it has written outside the log.
    pub(in crate::txn) fn shrink_within(&self, limits: ShrinkLimits) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let mut left = limits.moves;
        for _ in 0..MOST_ROUNDS {
            store.shrink(self.pool.dirty_pages())?;
            let stats = store.stats();
            if stats.free_bytes <= limits.most {
                break;
            }
            let image = (stats.live_bytes / stats.pages.max(1)).max(1);
            // Half of the free places stay for what waits to be written and for the checkpoint itself: the device may have
            // no more.
            let waiting = self.pool.dirty_pages() * 2 * self.pool.page_size() as u64;
            let pages = (left.min(stats.free_bytes.saturating_sub(waiting) / 2) / image).min(MOVE_PAGES);
            let pages = usize::try_from(pages).unwrap_or(0);
            let moved = store.relocate(pages)?;
            left = left.saturating_sub(moved as u64 * image);
            if moved == 0 {
                break;
            }
            self.checkpoint()?;
        }
        Ok(())
    }
    /// Closes all gaps. The caller must hold the writer lock.
    pub(crate) fn shrink_fully(&self) -> Result<()> {
        self.shrink_within(ShrinkLimits { most: 0, moves: u64::MAX })
    }

    /// Takes a checkpoint. If the device has no space for the next log segment, it closes gaps in the file to free
    /// some, unless a transaction is open, which may have the places of pages.
    pub(crate) fn checkpoint_with_room(&self) -> Result<()> {
        if self.checkpoint()? == Segments::Stuck
            && let Some(_writer) = self.writer.try_lock()
        {
            self.make_room(true)?;
        }
        Ok(())
    }

    /// Takes a checkpoint, which frees old log segments and the places of replaced pages, and closes gaps in the file so
    /// that the device has space for the log. The caller must hold the writer lock, and must have no places of pages if
    /// these are `movable`. If not, only the free end of the file is cut off.
    pub(crate) fn make_room(&self, movable: bool) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        // A reservation of earlier commits must not keep the log in its old segment.
        self.log()?.give_up_reservation();
        self.checkpoint()?;
        let limits = ShrinkLimits::worth_while(&store.stats());
        self.shrink_within(ShrinkLimits { moves: if movable { limits.moves } else { 0 }, ..limits })?;
        self.checkpoint()?;
        self.reserve_relief()
    }
}

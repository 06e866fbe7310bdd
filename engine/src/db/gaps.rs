//! Closes gaps in the file: moves images from its end to lower places and truncates it. The caller chooses how far: a
//! compaction closes all gaps, a close only the gaps that are worth their writes.

use super::shared::Shared;
use crate::base::Result;
use crate::store::StoreStats;

/// Pages moved between two checkpoints.
const MOVE_PAGES: u64 = 4096;
/// Moving a page down may free the place that another one needs: more rounds than this gain nothing.
const MOST_ROUNDS: usize = 64;
/// Free bytes that no close spends a checkpoint on.
const SMALL_GAPS: u64 = 256 << 10;

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gaps {
    /// Free bytes that may stay in the file.
    pub(super) most: u64,
    /// Bytes that may be written for it.
    pub(super) moves: u64,
}

impl Gaps {
    /// What closing a database does, and a full device asks for while it is open: at most a sixteenth of it stays free, and of what this
    /// handle has written no byte is written more than once again, so that it never costs more than the work before.
    pub(super) fn worth_while(stats: &StoreStats) -> Gaps {
        Gaps { most: (stats.live_bytes / 16).max(SMALL_GAPS), moves: stats.written_bytes }
    }
}

impl Shared {
    /// Closes gaps as far as `gaps` says. Call it after a checkpoint; it ends with one. The caller holds the writer's
    /// lock, or is alone: a transaction knows the places of pages that it has written outside the log.
    pub(super) fn close_gaps(&self, gaps: Gaps) -> Result<()> {
        let Some(store) = &self.engine.store else { return Ok(()) };
        let mut left = gaps.moves;
        for _ in 0..MOST_ROUNDS {
            store.shrink(self.engine.pool.dirty_pages())?;
            let stats = store.stats();
            if stats.free_bytes <= gaps.most {
                break;
            }
            let image = (stats.live_bytes / stats.pages.max(1)).max(1);
            // Half of the free places stay for what waits to be written and for the checkpoint itself: the device may have
            // no more.
            let waiting = self.engine.pool.dirty_pages() * 2 * self.engine.pool.page_size() as u64;
            let pages = (left.min(stats.free_bytes.saturating_sub(waiting) / 2) / image).min(MOVE_PAGES);
            let pages = usize::try_from(pages).unwrap_or(0);
            let moved = store.relocate(&store.tail_pages(pages))?;
            left = left.saturating_sub(moved as u64 * image);
            if moved == 0 {
                break;
            }
            self.engine.checkpoint()?;
        }
        Ok(())
    }
}

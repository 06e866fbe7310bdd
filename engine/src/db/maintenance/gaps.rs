//! Closes gaps in the file: moves images from its end to lower places and truncates it. The caller chooses how far: a
//! compaction closes all gaps, a close only the gaps that are worth their writes.

use crate::base::Result;
use crate::db::shared::Shared;
use crate::store::StoreStats;

/// Pages moved between two checkpoints.
const MOVE_PAGES: u64 = 4096;
/// Moving a page may free the place that another page needs, so there are several rounds. More rounds than this gain
/// nothing.
const MOST_ROUNDS: usize = 64;
/// Free bytes that are not worth a checkpoint.
const SMALL_GAPS: u64 = 256 << 10;

/// The limits of the work.
#[derive(Clone, Copy, Debug)]
pub(in crate::db) struct Gaps {
    /// Free bytes that may stay in the file.
    pub(in crate::db) most: u64,
    /// Bytes that may be written to move images.
    pub(in crate::db) moves: u64,
}

impl Gaps {
    /// The limits for closing a database, and for a full device: at most a sixteenth of the file stays free, and at
    /// most as many bytes are written as this handle has written before.
    pub(in crate::db) fn worth_while(stats: &StoreStats) -> Gaps {
        Gaps { most: (stats.live_bytes / 16).max(SMALL_GAPS), moves: stats.written_bytes }
    }
}

impl Shared {
    /// Closes gaps within the limits of `gaps`. Call it after a checkpoint; it ends with one. The caller must hold the
    /// writer lock or be alone, because a transaction has the places of pages that it has written outside the log.
    pub(in crate::db) fn close_gaps(&self, gaps: Gaps) -> Result<()> {
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
            let moved = store.relocate(pages)?;
            left = left.saturating_sub(moved as u64 * image);
            if moved == 0 {
                break;
            }
            self.engine.checkpoint()?;
        }
        Ok(())
    }
}

//! Makes the file smaller: moves images from its end to free places nearer its start, and truncates it. The caller
//! chooses how far: a compaction uses all free places, a close only those that are worth the writes, and a checkpoint
//! moves a few images of a file that is much too long.

use crate::base::{Error, Result};
use crate::store::{PageStore, StoreStats};
use crate::txn::checkpoint::LogRotation;
use crate::txn::engine::Engine;
use std::time::Duration;

/// Pages moved between two checkpoints.
const MOVE_PAGES: u64 = 4096;
/// Moving an image may free the place that another image needs, so there are several rounds. More rounds than this gain
/// nothing.
const MAX_ROUNDS: usize = 64;
/// Free bytes that are not worth a checkpoint.
const SMALL_FREE: u64 = 256 << 10;

/// While the database is open, pages are moved only if the file is longer than this part (7/4) of the live images, plus
/// [`SMALL_OPEN`] bytes. Superseded places and the free ones between images need about this length.
const OPEN_LENGTH: (u64, u64) = (7, 4);
const SMALL_OPEN: u64 = 4 << 20;
/// Bytes of images that are moved while writing transactions wait.
const STEP_BYTES: u64 = 1 << 20;
/// After a checkpoint, images of at most the live bytes divided by this are moved, rounded up to a multiple of
/// [`STEP_BYTES`]. These are few bytes in comparison with the writes that make a checkpoint of the places due, an
/// eighth of the live bytes.
const MOVED_DIVISOR: u64 = 128;
/// How long a checkpoint waits for a writing transaction, before it moves images.
const WAIT: Duration = Duration::from_millis(1);

/// How far to shrink the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShrinkLimits {
    /// Free bytes that may stay in the file.
    max_free: u64,
    /// Bytes that may be written to move images.
    max_moved: u64,
}

impl ShrinkLimits {
    /// The limits for closing a database, and for a full device: at most a sixteenth of the file stays free, and at
    /// most as many bytes are written as this handle has written before.
    pub(in crate::txn) fn worth_while(stats: &StoreStats) -> ShrinkLimits {
        ShrinkLimits { max_free: (stats.live_bytes / 16).max(SMALL_FREE), max_moved: stats.written_bytes }
    }
}

impl Engine {
    /// Shrinks the file within `limits`. Call it after a checkpoint; it ends with one. The caller must hold the writer
    /// lock or be the only user, because an open transaction keeps the places of pages that it has written outside the
    /// log. `progress` gets the free bytes that have left the file, and those that it had at first.
    pub(in crate::txn) fn shrink_within(&self, limits: ShrinkLimits, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let mut left = limits.max_moved;
        let (free_before, mut shrunk) = (store.stats().free_bytes, 0);
        for _ in 0..MAX_ROUNDS {
            store.shrink(self.pool.dirty_pages())?;
            let stats = store.stats();
            shrunk = shrunk.max(free_before.saturating_sub(stats.free_bytes));
            if free_before > 0 {
                progress(shrunk, free_before);
            }
            if stats.free_bytes <= limits.max_free {
                break;
            }
            let image = (stats.live_bytes / stats.pages.max(1)).max(1);
            // Half of the free space stays for dirty pages and for the checkpoint itself: the device may have no more
            // space.
            let waiting = self.pool.dirty_pages() * 2 * self.pool.page_size() as u64;
            let pages = (left.min(stats.free_bytes.saturating_sub(waiting) / 2) / image).min(MOVE_PAGES);
            let pages = usize::try_from(pages).unwrap_or(0);
            let moved = store.relocate(stats.used_bytes(), pages)?;
            left = left.saturating_sub(moved as u64 * image);
            if moved == 0 {
                break;
            }
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Moves some images away from the end of the file, if the file is much longer than they need. Later checkpoints
    /// truncate it. Call it after a checkpoint; it stops when a writing transaction is open.
    pub(in crate::txn) fn move_end(&self, store: &dyn PageStore) {
        let stats = store.stats();
        let from = stats.live_bytes / OPEN_LENGTH.1 * OPEN_LENGTH.0 + SMALL_OPEN;
        if stats.file_bytes <= from {
            return;
        }
        let image = (stats.live_bytes / stats.pages.max(1)).max(1);
        let images = STEP_BYTES / image;
        for _ in 0..(stats.live_bytes / MOVED_DIVISOR).div_ceil(STEP_BYTES) {
            let Some(_writer) = self.writer.try_lock_for(WAIT) else { return };
            // The old places are free only after the next checkpoint. Until then the dirty pages need other places.
            let moved = self.ensure_room(images, 0).and_then(|()| {
                let most = usize::try_from(images).unwrap_or(0);
                store.relocate(from, most)
            });
            match moved {
                Ok(0) | Err(Error::Full { .. }) => return,
                Ok(_) => {}
                // The store finds either the old or the new image of each page, and both have the same content.
                Err(cause) => {
                    tracing::warn!(%cause, "the file stays longer than it must be");
                    return;
                }
            }
        }
    }

    /// Shrinks the file as far as possible. The caller must hold the writer lock. `progress`: as of `shrink_within`.
    pub(crate) fn shrink_fully(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
        self.shrink_within(ShrinkLimits { max_free: 0, max_moved: u64::MAX }, progress)
    }

    /// Takes a checkpoint. If the device has no space for the next log segment, it shrinks the file to free some,
    /// unless a transaction is open, which may keep places of pages.
    pub(crate) fn checkpoint_with_room(&self) -> Result<()> {
        if self.checkpoint()? == LogRotation::Stuck
            && let Some(_writer) = self.writer.try_lock()
        {
            self.make_room(true)?;
        }
        Ok(())
    }

    /// Takes a checkpoint, which frees old log segments and the places of replaced pages, and shrinks the file so that
    /// the device has space for the log. The spare files of the log are removed. The caller must hold the writer lock.
    /// `movable` says that the caller keeps no places of pages, so that images can move. Otherwise only the free end of
    /// the file is cut off.
    pub(crate) fn make_room(&self, movable: bool) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        // A reservation of earlier commits must not keep the log in its old segment.
        self.log()?.give_up_reservation();
        self.without_spare_segments(|| {
            self.checkpoint()?;
            let limits = ShrinkLimits::worth_while(&store.stats());
            let max_moved = if movable { limits.max_moved } else { 0 };
            self.shrink_within(ShrinkLimits { max_moved, ..limits }, &mut |_, _| ())?;
            self.checkpoint().map(drop)
        })?;
        self.reserve_for_removals()
    }
}

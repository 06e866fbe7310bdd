//! Forgetting before-images that no snapshot can ask for, in bounded pieces, and the limit of those that are kept.

use super::{HeldBack, Pruned};
use crate::base::{Error, Lsn, Result};
use crate::txn::engine::Engine;
use crate::txn::large;

/// Events that pruning looks at under one hold of the versions' lock.
const PIECE: usize = 1024;
/// Pieces of what closed snapshots leave behind that a commit forgets at the most.
const COMMIT_PIECES: usize = 2;
/// Pieces of it that the thread forgets that closes the snapshot.
const CLOSE_PIECES: usize = 32;
/// Bytes of memory for a detached subtree that is not yet freed.
const DETACHED_BYTES: usize = 64;

impl Engine {
    /// Opens a snapshot of what is visible.
    pub(crate) fn open_snapshot(&self) -> Lsn {
        self.snapshots.open()
    }

    /// Throws away what no snapshot can ask for any more: before-images, and the pages of large values among them. Of
    /// what snapshots that have closed leave behind it takes a bounded piece.
    pub(crate) fn prune(&self) {
        self.prune_pieces(COMMIT_PIECES);
    }

    /// The same to the end.
    pub(crate) fn prune_all(&self) {
        self.prune_pieces(usize::MAX);
    }

    /// Closes a snapshot and throws away a bounded piece of what was kept for it; true if more is left.
    pub(crate) fn close_snapshot(&self, lsn: Lsn) -> bool {
        self.snapshots.close(lsn) && self.versions.is_holding() && !self.prune_pieces(CLOSE_PIECES)
    }

    /// Prunes piece by piece, at least `pieces` of them and all that lies in runs; false if anything is left to forget.
    fn prune_pieces(&self, pieces: usize) -> bool {
        let mut count = 0usize;
        loop {
            count = count.saturating_add(1);
            let Pruned { gone, sorted, done } = self.versions.prune(&self.snapshots, PIECE);
            for record in gone.larges() {
                // That it can be read was found out when the event was filed.
                if let Ok(pages) = large::pages(self, &record.bytes) {
                    self.release_pages(&pages.collect::<Vec<_>>());
                }
            }
            if done || (sorted && count >= pieces) {
                return done;
            }
        }
    }

    /// Called before each commit. Removes old versions that no snapshot needs, and fails if the others have more than
    /// `limit` bytes.
    pub(crate) fn prune_before_commit(&self, limit: usize) -> Result<()> {
        self.prune();
        let held = |subtrees: usize| {
            let mut held = self.versions.held_back();
            held.bytes += subtrees * DETACHED_BYTES;
            (self.snapshots.count() > 0 && held.bytes > limit).then_some(held)
        };
        // To begin with all subtrees that wait, which is quickly known. Some may only not be freed yet.
        if !self.versions.is_holding() || held(self.detached.lock().len()).is_none() {
            return Ok(());
        }
        self.prune_all();
        let Some(HeldBack { events, bytes, .. }) = held(self.held_subtrees()) else { return Ok(()) };
        let snapshot = self.snapshots.oldest();
        let seconds = self.versions.holding_since(snapshot).map_or(0, |since| since.elapsed().as_secs());
        Err(Error::HeldBack { changes: events, bytes, limit, snapshot, seconds })
    }
}

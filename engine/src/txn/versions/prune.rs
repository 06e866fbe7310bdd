//! Removes before-images that no snapshot can need, in bounded pieces, and limits the size of the others.

use super::{HeldBack, Pruned};
use crate::base::{Error, Lsn, Result};
use crate::txn::engine::Engine;
use crate::txn::large;

/// How many events pruning examines under one lock of the versions.
const PIECE: usize = 1024;
/// The number of pieces that a commit removes of the before-images that were kept for closed snapshots.
const COMMIT_PIECES: usize = 2;
/// The number of these pieces that a thread removes when it closes a snapshot.
const CLOSE_PIECES: usize = 32;
/// Bytes of memory for a detached subtree that is not yet freed.
const DETACHED_BYTES: usize = 64;

impl Engine {
    /// Opens a snapshot at the visible LSN.
    pub(crate) fn open_snapshot(&self) -> Lsn {
        self.snapshots.open()
    }

    /// Removes before-images that no snapshot can need, and the pages of large values among them. It removes a bounded
    /// part of the before-images that were kept for closed snapshots.
    pub(crate) fn prune(&self) {
        self.prune_pieces(COMMIT_PIECES);
    }

    /// Removes all before-images that no snapshot can need.
    pub(crate) fn prune_all(&self) {
        self.prune_pieces(usize::MAX);
    }

    /// Closes a snapshot and removes a bounded part of the versions kept for it. Returns true if more are left.
    pub(crate) fn close_snapshot(&self, lsn: Lsn) -> bool {
        self.snapshots.close(lsn) && self.versions.is_holding() && !self.prune_pieces(CLOSE_PIECES)
    }

    /// Prunes in pieces: at least `pieces` of them, and until all runs are processed. Returns false if something is
    /// left to remove.
    fn prune_pieces(&self, pieces: usize) -> bool {
        let mut count = 0usize;
        loop {
            count = count.saturating_add(1);
            let Pruned { removed, assigned, done } = self.versions.prune(&self.snapshots, PIECE);
            for record in removed.larges() {
                // The record was checked when the event was added.
                if let Ok(pages) = large::pages(self, &record.bytes) {
                    self.release_pages(&pages.collect::<Vec<_>>());
                }
            }
            if done || (assigned && count >= pieces) {
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
        // First a quick check that counts all detached subtrees, also those that no snapshot needs.
        if !self.versions.is_holding() || held(self.detached.len()).is_none() {
            return Ok(());
        }
        self.prune_all();
        let Some(HeldBack { events, bytes, .. }) = held(self.held_subtrees()) else { return Ok(()) };
        let snapshot = self.snapshots.oldest();
        let seconds = self.versions.holding_since(snapshot).map_or(0, |since| since.elapsed().as_secs());
        Err(Error::HeldBack { changes: events, bytes, limit, snapshot, seconds })
    }
}

//! Large transactions: the log gets all steps as one logical record. Then the steps are applied in pieces, each of
//! which is a batch.
//!
//! The number of pages that a step changes is known only after it is applied. A piece therefore ends when it has
//! changed a quarter of the pool, or has many bytes. Pieces end between steps, and within the removal of a range.
//!
//! Each batch has a progress mark. Recovery continues after the steps that the last mark counts, so that each step is
//! applied once.

use super::applier::Applier;
use super::steps::Step;
use super::{CATALOG_ROOT, removal_of};
use crate::base::{Error, Lsn, Result};
use crate::log::BatchBuffer;
use crate::tree::{LeafHint, RangeRemoval, Tree};
use crate::txn::engine::Engine;
use crate::txn::redo::logical::{self, LogicalTransaction};
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;

/// The number of log bytes at which a piece ends.
const PIECE_LOG: usize = 16 << 20;

/// The progress of a large transaction.
struct PieceProgress {
    /// The number of steps that are done.
    done: u64,
    /// The range that the next step removes, if a part of it is already removed.
    removal: Option<RangeRemoval>,
    /// The LSN of the version events of all pieces, for [`Applier::with_events`].
    events: Option<Lsn>,
    /// True if a recovery completes the transaction. Nothing has read the leaves before.
    is_recovery: bool,
}

impl Engine {
    /// Commits a transaction that needs too many pages, or too many bytes, for one batch. `between` is the apply lock:
    /// it prevents checkpoints until `unfinished` protects the logical record.
    pub(super) fn commit_large<'a>(
        &self,
        steps: impl Iterator<Item = Step<'a>> + Clone,
        catalog: &Tree,
        between: MutexGuard<'_, Lsn>,
    ) -> Result<Lsn> {
        self.make_ids_known()?;
        let start = logical::write(self.log()?, steps.clone())?;
        self.unfinished.store(start.0, Ordering::Release);
        drop(between);
        let events = Some(start.plus(1));
        self.apply_pieces(steps, PieceProgress { done: 0, removal: None, events, is_recovery: false }, catalog)
    }

    /// Applies the steps of a large transaction that recovery found unfinished.
    pub(crate) fn finish_large(&self, transaction: &LogicalTransaction, catalog: &Tree) -> Result<Lsn> {
        self.unfinished.store(transaction.start.0, Ordering::Release);
        // The space that the transaction had reserved was released. Without a new reservation there may still be enough
        // space.
        match self.log()?.reserve(3 * transaction.bytes()) {
            Err(Error::Full { .. }) => {}
            reserved => reserved?,
        }
        let steps = transaction.steps().skip(transaction.done);
        // There are no readers yet.
        let progress = PieceProgress { done: transaction.done as u64, removal: None, events: None, is_recovery: true };
        self.apply_pieces(steps, progress, catalog)
    }

    /// Applies the remaining steps of a large transaction.
    fn apply_pieces<'a>(
        &self,
        mut steps: impl Iterator<Item = Step<'a>> + Clone,
        mut progress: PieceProgress,
        catalog: &Tree,
    ) -> Result<Lsn> {
        loop {
            let (end, last) = self.apply_piece(&mut steps, &mut progress, catalog)?;
            if !last {
                continue;
            }
            // This amount of log space is not needed again soon. As long as it is reserved, a checkpoint could not
            // begin a segment with space for the reservation.
            if let Err(cause) = self.log()?.give_back_reservation().and_then(|()| self.reserve_for_removals()) {
                tracing::warn!(%cause, "the log keeps space that it does not need");
            }
            self.unfinished.store(u64::MAX, Ordering::Release);
            return Ok(end);
        }
    }

    /// Applies the next steps as one batch. Returns the end of the batch, and whether it was the last.
    fn apply_piece<'a>(
        &self,
        steps: &mut (impl Iterator<Item = Step<'a>> + Clone),
        progress: &mut PieceProgress,
        catalog: &Tree,
    ) -> Result<(Lsn, bool)> {
        let mut clock = self.apply.lock();
        let applied =
            self.poison_on_panic("it applied a piece of a commit", || self.apply_some(steps, progress, catalog));
        let (end, last) = applied.inspect_err(|cause| self.poison(cause))?;
        *clock = end;
        Ok((end, last))
    }

    fn apply_some<'a>(
        &self,
        steps: &mut (impl Iterator<Item = Step<'a>> + Clone),
        progress: &mut PieceProgress,
        catalog: &Tree,
    ) -> Result<(Lsn, bool)> {
        let log = self.log()?;
        let start = log.next_lsn();
        let applier = Applier::new(self, start, BatchBuffer::new()).with_events(progress.events);
        let max_pages = (self.pool.capacity() / 4).max(1);
        let max_log = PIECE_LOG.min(log.max_payload() / 8);
        let mut last = false;
        while !last && applier.pages() < max_pages && applier.len() < max_log {
            last = !self.apply_next(&applier, steps, progress, catalog)?;
        }
        // The progress record is in the same batch as the changes. Otherwise recovery could apply an addition again.
        applier.progress(progress.done, last);
        Ok((self.append_batch(applier.finish(), start)?, last))
    }

    /// Applies the next step, or several puts together, or a part of a range removal. Returns false if there is no step
    /// left.
    fn apply_next<'a>(
        &self,
        applier: &Applier<'_>,
        steps: &mut (impl Iterator<Item = Step<'a>> + Clone),
        progress: &mut PieceProgress,
        catalog: &Tree,
    ) -> Result<bool> {
        if progress.is_recovery
            && let Some(step) = steps.clone().next()
            && self.lose_step(applier, &step)?
        {
            steps.next();
            progress.done += 1;
            return Ok(true);
        }
        // The hints are not valid: an earlier piece may have freed pages whose ids are used again.
        let together = self.apply_run(applier, steps.clone(), self.pool.page_size(), |_| LeafHint::NONE)?;
        if together > 0 {
            steps.nth(together - 1);
            progress.done += together as u64;
            return Ok(true);
        }
        let Some(step) = steps.clone().next() else { return Ok(false) };
        if let Step::Clear { tree, lower, upper } = step {
            let removal = progress.removal.get_or_insert_with(|| removal_of(lower, upper));
            if self.clear_part(applier, catalog, tree, removal)? {
                return Ok(true);
            }
            progress.removal = None;
        } else {
            self.apply_step(applier, &step, LeafHint::NONE, catalog)?;
        }
        steps.next();
        progress.done += 1;
        Ok(true)
    }

    /// Returns true if this step must be skipped, because the leaf of its key or a page above the leaf is corrupt. The
    /// change of the step is lost, as the operations that redo skips are lost. If the page is still corrupt, it is
    /// replaced, so that its old content cannot be read later. Other errors, for example of the device, are returned.
    fn lose_step(&self, applier: &Applier<'_>, step: &Step<'_>) -> Result<bool> {
        let Some((tree, key)) = step.target().filter(|(tree, _)| tree.root != CATALOG_ROOT) else { return Ok(false) };
        let Err(cause) = tree.leaf_for(&self.pages(), key, |_| ()) else { return Ok(false) };
        let Error::Corrupt { page, .. } = cause else { return Err(cause) };
        tracing::warn!(%cause, table = %tree.table, "a change of an unfinished transaction is lost");
        // A device that can read the page again some day must not return its old content.
        if matches!(self.pool.read(page), Err(Error::Corrupt { .. })) {
            applier.replace_lost(page, tree.table)?;
        }
        Ok(true)
    }
}

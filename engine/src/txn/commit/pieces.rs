//! Large transactions: the log gets the steps whole, then they are applied piece by piece, each piece a batch of its own.
//!
//! How many pages a step changes shows when it is carried out: a piece ends when it has changed as many as the pool can
//! well spare, or has come to many bytes. Pieces end between steps, and within the removal of a range.

use super::applier::Applier;
use super::removal_of;
use super::steps::Step;
use crate::base::{Error, Lsn, Result};
use crate::log::BatchBuffer;
use crate::tree::{LeafHint, RangeRemoval, Tree};
use crate::txn::engine::Engine;
use crate::txn::redo::logical::{self, LogicalTransaction};
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;

/// Log bytes with which a piece ends.
const PIECE_LOG: usize = 16 << 20;

/// How far a large transaction has come.
struct Progress {
    /// Steps that are done.
    done: u64,
    /// The range that is being removed by the step after them.
    removal: Option<RangeRemoval>,
    /// The LSN of the version events of all pieces; see [`Applier::with_events`].
    events: Option<Lsn>,
}

impl Engine {
    /// A transaction that needs too much of the pool at once, or would be too long a batch. `between` keeps checkpoints from
    /// beginning before its record is known to be needed.
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
        self.apply_pieces(steps, Progress { done: 0, removal: None, events: Some(start.plus(1)) }, catalog)
    }

    /// Applies what recovery found unfinished of a large transaction.
    pub(crate) fn finish_large(&self, transaction: &LogicalTransaction, catalog: &Tree) -> Result<Lsn> {
        self.unfinished.store(transaction.start.0, Ordering::Release);
        // The room that the transaction had set aside is the device's again. Without it there may be enough all the same.
        match self.log()?.reserve(3 * transaction.bytes()) {
            Err(Error::Full { .. }) => {}
            reserved => reserved?,
        }
        let steps = transaction.steps().skip(transaction.done);
        // Nobody reads yet.
        let progress = Progress { done: transaction.done as u64, removal: None, events: None };
        self.apply_pieces(steps, progress, catalog)
    }

    /// Applies the steps that are left of a large transaction.
    fn apply_pieces<'a>(
        &self,
        mut steps: impl Iterator<Item = Step<'a>> + Clone,
        mut progress: Progress,
        catalog: &Tree,
    ) -> Result<Lsn> {
        loop {
            let (end, last) = self.apply_piece(&mut steps, &mut progress, catalog)?;
            if !last {
                continue;
            }
            // So much is not needed again soon. Until it is given back no checkpoint may begin a segment with room for it.
            if let Err(cause) = self.log()?.give_back_reservation().and_then(|()| self.reserve_relief()) {
                tracing::warn!(%cause, "the log keeps room that it does not need");
            }
            self.unfinished.store(u64::MAX, Ordering::Release);
            return Ok(end);
        }
    }

    /// Applies the next steps as one batch. Returns the batch's end, and whether no step is left.
    fn apply_piece<'a>(
        &self,
        steps: &mut (impl Iterator<Item = Step<'a>> + Clone),
        progress: &mut Progress,
        catalog: &Tree,
    ) -> Result<(Lsn, bool)> {
        let mut clock = self.apply.lock();
        let applied = self.whole("it applied a piece of a commit", || self.apply_some(steps, progress, catalog));
        let (end, last) = applied.inspect_err(|cause| self.poison(cause))?;
        *clock = end;
        Ok((end, last))
    }

    fn apply_some<'a>(
        &self,
        steps: &mut (impl Iterator<Item = Step<'a>> + Clone),
        progress: &mut Progress,
        catalog: &Tree,
    ) -> Result<(Lsn, bool)> {
        let log = self.log()?;
        let start = log.next_lsn();
        let applier = Applier::new(self, start, BatchBuffer::new()).with_events(progress.events);
        let most_pages = (self.pool.capacity() / 4).max(1);
        let most_log = PIECE_LOG.min(log.most_payload() / 8);
        let mut last = false;
        while !last && applier.pages() < most_pages && applier.len() < most_log {
            last = !self.apply_next(&applier, steps, progress, catalog)?;
        }
        applier.progress(progress.done, last);
        Ok((self.append_batch(applier.finish(), start)?, last))
    }

    /// Applies the next step, or some that go together, or a part of one; false when there is none.
    fn apply_next<'a>(
        &self,
        applier: &Applier<'_>,
        steps: &mut (impl Iterator<Item = Step<'a>> + Clone),
        progress: &mut Progress,
        catalog: &Tree,
    ) -> Result<bool> {
        // Where a key's place was says nothing: an earlier piece may have freed pages whose ids are taken again.
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
}

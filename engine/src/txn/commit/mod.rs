//! Commit: turns the steps of a transaction into page changes and one batch in the log. A large transaction becomes one
//! logical record and several batches.
//!
//! What can fail without harm is done first: reading and pinning the leaves, and reserving space in the log and the
//! file. A failure after the first change stops all writing. This includes an error of reading an allocation map or
//! another page that is not pinned.
//!
//! One descent for each key finds its leaf and its slot, and counts the entries that are added and removed. If only the
//! number of entries of a table has changed, an operation adds the difference to the number in its catalog record.
//! Otherwise the whole catalog record is written, if it has changed.

pub(super) mod applier;
pub(super) mod count;
pub(super) mod entry_delta;
pub(super) mod pieces;
pub(super) mod point_writes;
pub(super) mod reservation;
pub(super) mod steps;
pub(super) mod write_arrays;
pub(super) mod write_set;

use super::engine::Engine;
use super::large;
use super::redo::record::OPERATIONS;
use super::space::reclaim::{LargeValues, PendingSubtree};
use super::versions::detached_ranges::Detached;
use crate::base::{Error, Lsn, PageId, Result, TableId};
use crate::log::BatchBuffer;
use crate::page::Record;
use crate::tree::{KeyRange, LeafHint, Put, RangeRemoval, Removal, RemovedRange, Tree};
use applier::{Applier, FinishedBatch};
use reservation::{PinnedReservation, Reservation, ReservationEstimate};
use steps::{Step, Steps, StreamedSteps};

/// The root page of the catalog. It never changes.
pub(crate) const CATALOG_ROOT: PageId = PageId(1);
/// The first byte of catalog keys that name detached subtrees. The root page id follows, big-endian.
pub(crate) const DETACHED_PREFIX: u8 = 1;

/// First byte of the catalog keys of dictionaries. They are the only ones with large records.
pub(crate) const DICTIONARY_PREFIX: u8 = 3;

/// Log bytes of a commit besides its keys and records: for pages that split, and the catalog.
const COMMIT_LOG: usize = 256 << 10;
/// A transaction with more log bytes takes a checkpoint first.
const LONG: usize = 64 << 20;
/// Log bytes and pages that are reserved for transactions that only remove.
const REMOVAL_LOG: usize = 1 << 20;
pub(super) const REMOVAL_PAGES: usize = 32;

/// How many steps ahead leaves are prefetched.
const AHEAD: usize = 4;

impl Engine {
    /// Commits the steps of a transaction. The caller holds the writer's lock and releases it after this returns.
    /// [`Engine::settle`] then waits for the device. `loaded` is the number of bytes of keys and values of bulk loads,
    /// which are not in the steps.
    pub(crate) fn commit(&self, steps: &Steps<'_>, catalog: &Tree, loaded: u64) -> Result<Lsn> {
        self.wait_for_due_checkpoint();
        self.check_poison()?;
        if !self.is_logged() {
            return self.apply_batch(steps, catalog).inspect_err(|cause| self.poison(cause));
        }
        let PinnedReservation { reservation, pins } = ReservationEstimate::take(self, catalog, steps.iter())?;
        if pins.is_none() && reservation.log + reservation.logical > LONG {
            self.shorten_log()?;
        }
        // No checkpoint may begin a new segment between this reservation and the logical record of a large transaction.
        let between_batches = pins.is_none().then(|| self.apply.lock());
        if let Err(refused) = self.reserve_room(&reservation, pins.is_none()) {
            // The log may have reserved its part before the file failed. Give it back, so that others can use it.
            if pins.is_none() {
                self.log()?.give_back_reservation()?;
                self.reserve_for_removals()?;
            }
            return Err(refused);
        }
        if steps.collected.iter().any(|step| matches!(step, Step::Adopt { place: Some(_), .. }))
            && let Some(store) = &self.store
        {
            // After a failed sync the store takes no more checkpoints, so the log could only grow.
            store.file().sync().inspect_err(|cause| self.poison(cause))?;
        }
        let outcome = match between_batches {
            None => self.apply_batch(steps, catalog),
            Some(between) => self.poison_on_panic("it applied a large transaction", || {
                self.commit_large(steps.iter(), catalog, between)
            }),
        };
        drop(pins);
        if let (Ok(_), Some(store)) = (&outcome, &self.store) {
            store.file().count_user_bytes(reservation.user + loaded);
        }
        outcome.inspect_err(|cause| self.poison(cause))
    }

    /// Takes a checkpoint, if there is space for it. This frees old log segments and the places of replaced pages.
    pub(super) fn shorten_log(&self) -> Result<()> {
        self.log()?.give_up_reservation();
        self.without_spare_segments(|| match self.checkpoint() {
            // There may still be enough space.
            Err(Error::Full { .. }) => Ok(()),
            taken => taken.map(drop),
        })?;
        self.reserve_for_removals()
    }

    /// Reserves the space that the log and, at the next checkpoint, the file will need, so that neither is full after
    /// pages have changed. If the transaction adds data, some space must be left for transactions that only remove: on
    /// a full device they free space.
    fn reserve_room(&self, reservation: &Reservation, large: bool) -> Result<()> {
        let (log, images) = if reservation.adds { (REMOVAL_LOG, REMOVAL_PAGES) } else { (0, 0) };
        let logical = if large { reservation.logical } else { 0 };
        self.log()?.reserve(reservation.log + logical + COMMIT_LOG + log)?;
        let pages = (reservation.images + images) as u64;
        self.ensure_room(pages, pages)
    }

    /// Reserves again the log space for transactions that only remove, if there is enough.
    pub(crate) fn reserve_for_removals(&self) -> Result<()> {
        match self.log()?.reserve(REMOVAL_LOG + COMMIT_LOG) {
            Err(Error::Full { .. }) => Ok(()),
            reserved => reserved,
        }
    }

    /// Applies steps as one batch and appends it to the log. Returns the batch's end.
    fn apply_batch(&self, steps: &Steps<'_>, catalog: &Tree) -> Result<Lsn> {
        let mut clock = self.apply.lock();
        let start = if self.is_logged() { self.log()?.next_lsn() } else { *clock };
        let end = self.poison_on_panic("it applied a commit", || {
            let applier = Applier::new(self, start, BatchBuffer::new());
            self.apply_steps(&applier, steps.collected.iter().copied(), catalog)?;
            steps.streamed.iter().try_for_each(|steps| self.apply_streamed(&applier, steps, catalog))?;
            self.apply_steps(&applier, steps.catalog.iter().copied(), catalog)?;
            self.append_batch(applier.finish(), start)
        });
        *clock = end.inspect_err(|cause| self.poison(cause))?;
        Ok(*clock)
    }

    fn apply_steps<'a>(
        &self,
        applier: &Applier<'_>,
        mut steps: impl Iterator<Item = Step<'a>> + Clone,
        catalog: &Tree,
    ) -> Result<()> {
        let hint = |step: &Step<'_>| {
            let hint = Some(step.hint()).filter(|hint| !applier.has_freed(hint.leaf));
            hint.unwrap_or(LeafHint::NONE)
        };
        let mut ahead = steps.clone().skip(AHEAD);
        loop {
            if let Some(next) = ahead.next().map(|step| step.hint().leaf).filter(|next| !next.is_none()) {
                self.pool.prefetch(next);
            }
            let done = self.apply_run(applier, steps.clone(), usize::MAX, hint)?;
            if done == 0 {
                let Some(step) = steps.next() else { return Ok(()) };
                self.apply_step(applier, &step, hint(&step), catalog)?;
            } else {
                steps.nth(done - 1);
                if done > 1 {
                    ahead.nth(done - 2);
                }
            }
        }
    }

    /// Applies writes that share a hint. If all of them are new entries after the last one of the leaf, this is one
    /// operation on the leaf.
    fn apply_streamed(&self, applier: &Applier<'_>, steps: &StreamedSteps<'_>, catalog: &Tree) -> Result<()> {
        let StreamedSteps { tree, ref writes, hint } = *steps;
        if !hint.leaf.is_none()
            && !applier.has_freed(hint.leaf)
            && let Some(entries) = writes.uniform_records()
        {
            let before = || {
                if applier.needs_versions() {
                    self.versions.add_new(tree.table, applier.event_lsn(), entries.clone().map(|(key, _)| key));
                }
                Ok(())
            };
            let records = entries.clone().map(|(key, bytes)| (key, Record::inline(bytes)));
            if tree.append_run(applier, hint, records, before)? {
                return Ok(());
            }
        }
        self.apply_steps(applier, StreamedSteps { hint: LeafHint::NONE, ..steps.clone() }, catalog)
    }

    /// Makes sure that recovery accepts the page ids in the log. Called before each batch.
    pub(super) fn make_ids_known(&self) -> Result<()> {
        let high = self.ids.lock().high();
        self.store.as_ref().map_or(Ok(()), |store| store.file().raise_high_water(high))
    }

    /// Appends a finished batch to the log and releases the pages that it freed. Returns the end of the batch.
    pub(crate) fn append_batch(&self, finished: FinishedBatch, start: Lsn) -> Result<Lsn> {
        let FinishedBatch { mut batch, ops, changed, freed } = finished;
        let end = match self.log.get() {
            Some(log) => {
                self.make_ids_known()?;
                self.redo_work.note(&changed);
                log.append_buffer(OPERATIONS, &mut batch)?
            }
            None => start.plus(ops + 2),
        };
        self.release_pages(&freed);
        Ok(end)
    }

    /// Applies the first of these steps together if they put several new entries in one leaf. Their keys and records
    /// have at most `max_bytes` bytes. Returns the number of steps applied.
    pub(super) fn apply_run<'s>(
        &self,
        applier: &Applier<'_>,
        mut steps: impl Iterator<Item = Step<'s>>,
        max_bytes: usize,
        hint: impl Fn(&Step<'s>) -> LeafHint,
    ) -> Result<usize> {
        let Some(first @ Step::Put { tree, .. }) = steps.next() else { return Ok(0) };
        let mut bytes = 0;
        let puts = std::iter::once(first).chain(steps).map_while(|step| match step {
            Step::Put { tree: of, key, record, .. } if of.root == tree.root => {
                bytes += key.len() + record.bytes.len();
                (bytes <= max_bytes).then(|| Put { key, record, hint: hint(&step) })
            }
            _ => None,
        });
        tree.put_run(applier, puts, |entries| {
            if applier.needs_versions() {
                self.versions.add_new(tree.table, applier.event_lsn(), entries.iter().map(|entry| entry.key));
            }
            Ok(())
        })
    }

    /// Applies one step. `hint` is a former place of the key, in a leaf that is still in the tree.
    pub(super) fn apply_step(
        &self,
        applier: &Applier<'_>,
        step: &Step<'_>,
        hint: LeafHint,
        catalog: &Tree,
    ) -> Result<()> {
        match *step {
            Step::Adopt { page, place } => applier.adopt(page, place),
            Step::Create { tree } => {
                let mut page = applier.adopt_for_format(tree.root)?;
                tree.format(applier, &mut page)
            }
            Step::Drop { tree, large_values } => self.add_detached(applier, catalog, tree, large_values),
            Step::Clear { tree, lower, upper } => {
                let mut removal = removal_of(lower, upper);
                while self.clear_part(applier, catalog, tree, &mut removal)? {}
                Ok(())
            }
            Step::Put { tree, key, record, .. } => {
                let before = |old: Option<Record<'_>>| self.note_before(applier, tree.table, key, old);
                tree.put_with_hint(applier, hint, key, record, before).map(drop)
            }
            Step::AddToRecord { tree, key, offset, delta } => {
                let before = |old: Record<'_>| self.note_before(applier, tree.table, key, Some(old));
                tree.add_to_record(applier, key, offset, delta, before)
            }
            Step::Remove { tree, key, .. } => {
                let before = |old: Record<'_>| self.note_before(applier, tree.table, key, Some(old));
                tree.remove_with_hint(applier, hint, key, before).map(drop)
            }
        }
    }

    /// Stores a before-image. If the old value is large, frees its run; its page ids are released together with the
    /// version event. The run of a damaged record is not freed.
    pub(crate) fn note_before(
        &self,
        applier: &Applier<'_>,
        table: TableId,
        key: &[u8],
        old: Option<Record<'_>>,
    ) -> Result<()> {
        let large = old.filter(|old| old.large);
        let run = large.map_or(Ok(None), |old| large::run_to_remove(self, old.bytes))?;
        if !applier.needs_versions() {
            return run.map_or(Ok(()), |run| run.free_now(self, applier));
        }
        let damaged = large.filter(|_| run.is_none()).map(|old| large::damaged_record(table, old.bytes));
        let damaged = damaged.as_ref().map(|bytes| Record { bytes, large: true });
        self.versions.add(table, key, applier.event_lsn(), damaged.or(old));
        run.map_or(Ok(()), |run| run.free_later(self, applier))
    }

    /// Removes the next part of a range. Returns false if nothing is left of it.
    pub(super) fn clear_part(
        &self,
        applier: &Applier<'_>,
        catalog: &Tree,
        tree: &Tree,
        removal: &mut RangeRemoval,
    ) -> Result<bool> {
        let mut before = |removal: Removal<'_>| match removal {
            Removal::Entry { key, record } => self.note_before(applier, tree.table, key, Some(record)),
            Removal::Subtree(subtree) => {
                let detached = Detached {
                    lsn: applier.event_lsn(),
                    root: subtree.root,
                    lower: subtree.lower.clone(),
                    upper: subtree.upper.clone(),
                };
                if applier.needs_versions() {
                    self.versions.add_detached(tree.table, detached);
                }
                Ok(())
            }
        };
        let mut removed = RemovedRange::default();
        let more = removal.step(tree, applier, &mut removed, &mut before)?;
        for subtree in &removed.detached {
            self.add_detached(applier, catalog, &Tree { root: subtree.root, ..*tree }, LargeValues::Free)?;
        }
        Ok(more)
    }

    /// Adds a detached subtree to the catalog and to the subtrees that are to be freed.
    fn add_detached(
        &self,
        applier: &Applier<'_>,
        catalog: &Tree,
        subtree: &Tree,
        large_values: LargeValues,
    ) -> Result<()> {
        let [a, b, c, d] = subtree.table.0.to_le_bytes();
        let record = Record { bytes: &[a, b, c, d, large_values as u8], large: false };
        let key = detached_key(subtree.root);
        let before = |old: Option<Record<'_>>| self.note_before(applier, catalog.table, &key, old);
        catalog.put(applier, &key, record, before)?;
        let pending = PendingSubtree { since: applier.event_lsn(), table: subtree.table, large_values };
        self.detached.change(|all| all.insert((pending.since, subtree.root), pending));
        Ok(())
    }
}

/// A removal of the keys from `lower` to below `upper`.
pub(super) fn removal_of(lower: &[u8], upper: Option<&[u8]>) -> RangeRemoval {
    RangeRemoval::new(KeyRange::between(lower, upper))
}

/// The catalog key of a detached subtree.
pub(crate) fn detached_key(root: PageId) -> [u8; 5] {
    let [a, b, c, d] = root.0.to_be_bytes();
    [DETACHED_PREFIX, a, b, c, d]
}

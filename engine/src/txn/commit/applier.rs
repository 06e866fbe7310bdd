//! The applier, the only way to change pages. It applies operations to pages in the pool and collects their records, so
//! the batch in the log and the pages in memory always agree.
//!
//! An applier exists for one batch, under the engine's apply lock. It makes no decisions: the tree calls its
//! operations.

use crate::base::{Error, Lsn, PageId, Result, TableId};
use crate::log::{BatchBuffer, Log};
use crate::page::{NewEntry, Page, PageOp, apply, insert_run, map_page, run_page};
use crate::store::{PlaceBytes, ReadGuard, WriteGuard};
use crate::tree::{PageRead, PageWrite};
use crate::txn::engine::Engine;
use crate::txn::redo::record::{LogRecord, encode_operation};
use crate::txn::space::page_ids::ids_per_map;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::sync::atomic::Ordering;

/// Applies the page operations of one batch and collects their log records.
pub(crate) struct Applier<'e> {
    engine: &'e Engine,
    start: Lsn,
    /// The LSN of version events. `None`: no snapshot can need them.
    events: Option<Lsn>,
    batch: RefCell<BatchBuffer>,
    /// The number of operations in an in-memory database, which has no log.
    unlogged_ops: Cell<usize>,
    /// Pages that this batch has changed, some of them more than once.
    changed: RefCell<Vec<PageId>>,
    freed: RefCell<HashSet<PageId>>,
}

impl<'e> Applier<'e> {
    /// An applier for the batch that begins at `start`.
    pub(crate) fn new(engine: &'e Engine, start: Lsn, batch: BatchBuffer) -> Applier<'e> {
        Applier {
            engine,
            start,
            events: Some(start.plus(1)),
            batch: RefCell::new(batch),
            unlogged_ops: Cell::new(0),
            changed: RefCell::default(),
            freed: RefCell::default(),
        }
    }

    /// True if this batch has freed this page of a tree. The id is not used again before the batch ends, and until then
    /// the page keeps its content.
    pub(crate) fn has_freed(&self, id: PageId) -> bool {
        let freed = self.freed.borrow();
        !freed.is_empty() && freed.contains(&id)
    }

    /// How many pages the batch has changed. They stay in the pool until the batch ends.
    pub(in crate::txn) fn pages(&self) -> usize {
        self.changed.borrow().len()
    }

    /// Bytes of the batch so far.
    pub(in crate::txn) fn len(&self) -> usize {
        self.batch.borrow().len()
    }

    /// Sets the LSN of version events, which all pieces of a large transaction share. `None`: no snapshot can need the
    /// events.
    pub(super) fn with_events(self, events: Option<Lsn>) -> Applier<'e> {
        Applier { events, ..self }
    }

    /// The LSN of the version events of this batch. It is greater than every snapshot before the batch, and less than
    /// the end of the batch. No snapshot begins between the pieces of a large transaction.
    pub(crate) fn event_lsn(&self) -> Lsn {
        self.events.unwrap_or(self.start)
    }

    /// True if a snapshot may need before-images of the entries that this batch changes.
    pub(super) fn needs_versions(&self) -> bool {
        self.events.is_some()
    }

    fn next_lsn(&self) -> Lsn {
        if self.engine.is_logged() {
            Log::op_lsn(self.start, self.batch.borrow().len())
        } else {
            self.start.plus(1 + self.unlogged_ops.get())
        }
    }

    fn record(&self, record: &LogRecord<'_>) {
        if self.engine.is_logged() {
            record.encode(self.batch.borrow_mut().out());
        }
    }

    /// Adds an applied operation to the batch. `before` is the LSN of the page before the operation.
    fn note(&self, page: &mut WriteGuard<'_>, op: &PageOp<'_>, lsn: Lsn, before: Lsn) {
        let checked = Page::check_changed(page, page.id());
        debug_assert!(checked.is_ok(), "{checked:?} after {op:?}");
        // A page that was written outside the log may have the LSN at which this batch begins.
        if before <= self.start {
            self.changed.borrow_mut().push(page.id());
        }
        if self.engine.is_logged() {
            encode_operation(page.id(), op, self.batch.borrow_mut().out());
        } else {
            self.unlogged_ops.set(self.unlogged_ops.get() + 1);
        }
        page.mark_dirty(lsn);
    }

    /// Marks a page that was written outside the log as allocated, and logs its place.
    pub(crate) fn adopt(&self, id: PageId, place: Option<PlaceBytes>) -> Result<()> {
        self.set_allocated(id)?;
        if let Some(place) = place {
            self.record(&LogRecord::Place { page: id, place });
        }
        Ok(())
    }

    /// Logs how many steps of a large transaction are done.
    pub(crate) fn progress(&self, done: u64, last: bool) {
        self.record(&LogRecord::Progress { done, last });
    }

    /// Marks a reserved page as allocated and latches it for its first content.
    pub(crate) fn adopt_for_format(&self, id: PageId) -> Result<WriteGuard<'e>> {
        self.set_allocated(id)?;
        self.engine.pool.create(id)
    }

    /// Replaces a page of a tree that cannot be read. The new page belongs to no tree, so reading it as a page of one
    /// remains an error.
    pub(super) fn replace_lost(&self, id: PageId, table: TableId) -> Result<()> {
        let mut page = self.engine.pool.create(id)?;
        self.apply(&mut page, &PageOp::Format { packed: run_page(id, table, PageId::NONE, &[]).into() }).map(drop)
    }

    /// Marks the pages of a run as free, with one logged operation for each allocation map. Does not release the ids:
    /// older snapshots may still read the run.
    pub(crate) fn free_later(&self, ids: impl Iterator<Item = PageId>) -> Result<()> {
        let mut ids = ids.peekable();
        while let Some(first) = ids.next() {
            let (map, _) = self.map_of(first);
            let mut last = first;
            while let Some(next) = ids.next_if(|next| next.0 == last.0 + 1 && self.map_of(*next).0 == map) {
                last = next;
            }
            self.clear_allocated(first, last.0 - first.0 + 1)?;
        }
        Ok(())
    }

    /// Releases the ids of pages that are marked as free, when the batch ends.
    pub(crate) fn release(&self, ids: impl Iterator<Item = PageId>) {
        self.freed.borrow_mut().extend(ids);
    }

    /// Ends the batch. Returns its records and the freed pages.
    pub(crate) fn finish(self) -> FinishedBatch {
        let mut freed: Vec<PageId> = self.freed.into_inner().into_iter().collect();
        // The order of a hash set must not influence later operations.
        freed.sort_unstable();
        let (batch, changed) = (self.batch.into_inner(), self.changed.into_inner());
        FinishedBatch { ops: self.unlogged_ops.get(), batch, changed, freed }
    }

    fn map_of(&self, id: PageId) -> (PageId, u32) {
        let per_map = ids_per_map(self.engine.pool.page_size());
        (PageId(id.0 - id.0 % per_map), id.0 % per_map)
    }

    fn set_allocated(&self, id: PageId) -> Result<()> {
        if !self.engine.is_logged() {
            return Ok(());
        }
        let (map, bit) = self.map_of(id);
        let known = self.engine.maps_known(map);
        if !known {
            let mut page = self.engine.pool.create(map)?;
            let packed = map_page(self.engine.pool.page_size(), map);
            self.apply(&mut page, &PageOp::Format { packed: packed.into() })?;
            self.apply(&mut page, &PageOp::SetBits { from: 0, count: 1 })?;
            self.engine.map_created(map);
        }
        let mut page = self.engine.pool.latch(map)?;
        self.apply(&mut page, &PageOp::SetBits { from: bit, count: 1 })?;
        Ok(())
    }

    /// Marks pages in one allocation map as free.
    fn clear_allocated(&self, first: PageId, count: u32) -> Result<()> {
        if !self.engine.is_logged() {
            return Ok(());
        }
        if first.0.saturating_add(count) > self.engine.ids.lock().high() {
            return Err(Error::corrupt(first, "a page to be freed does not exist"));
        }
        let (map, bit) = self.map_of(first);
        let mut page = self.engine.pool.latch(map)?;
        self.apply(&mut page, &PageOp::ClearBits { from: bit, count })?;
        Ok(())
    }
}

/// The result of an applier.
pub(crate) struct FinishedBatch {
    pub(crate) batch: BatchBuffer,
    pub(crate) ops: usize,
    pub(crate) changed: Vec<PageId>,
    pub(crate) freed: Vec<PageId>,
}

impl PageRead for Applier<'_> {
    type Ref<'a>
        = ReadGuard<'a>
    where
        Self: 'a;

    fn page_size(&self) -> usize {
        self.engine.pool.page_size()
    }

    #[inline]
    fn read(&self, id: PageId) -> Result<ReadGuard<'_>> {
        self.engine.pool.read(id)
    }

    fn frees(&self) -> u64 {
        self.engine.frees.load(Ordering::Acquire)
    }

    #[inline]
    fn fetch(&self, id: PageId) -> Option<ReadGuard<'_>> {
        self.engine.pool.fetch(id)
    }

    #[inline]
    fn prefetch(&self, id: PageId) -> bool {
        self.engine.pool.prefetch(id)
    }
}

impl PageWrite for Applier<'_> {
    type Mut<'a>
        = WriteGuard<'a>
    where
        Self: 'a;

    fn latch(&self, id: PageId) -> Result<WriteGuard<'_>> {
        self.engine.pool.latch(id)
    }

    fn create(&self) -> Result<(PageId, WriteGuard<'_>)> {
        let id = self.engine.ids.lock().take()?;
        Ok((id, self.adopt_for_format(id)?))
    }

    fn apply(&self, page: &mut WriteGuard<'_>, op: &PageOp<'_>) -> Result<bool> {
        let (lsn, before) = (self.next_lsn(), Page::new(page).lsn());
        if !apply(page, op, lsn)? {
            return Ok(false);
        }
        self.note(page, op, lsn, before);
        Ok(true)
    }

    fn insert_run(&self, page: &mut WriteGuard<'_>, entries: &[NewEntry<'_>]) -> Result<usize> {
        let (lsn, before) = (self.next_lsn(), Page::new(page).lsn());
        let done = insert_run(page, entries, lsn)?;
        if done > 0 {
            let entries = entries.get(..done).unwrap_or(entries).into();
            self.note(page, &PageOp::InsertRun { entries }, lsn, before);
        }
        Ok(done)
    }

    fn free(&self, id: PageId) -> Result<()> {
        self.clear_allocated(id, 1)?;
        self.freed.borrow_mut().insert(id);
        self.engine.frees.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

//! Redo: brings the pages of the last checkpoint up to the end of the log, with the same code that changed them the
//! first time.
//!
//! A page needs an operation iff its LSN is smaller. Redo reads no page but the operation's own. What the page table
//! of the checkpoint knew already (everything before its LSN) is skipped: places of pages, and pages freed since.

pub(super) mod layout;
pub(super) mod logical;
pub(super) mod record;

use super::space::id_ranges::IdRanges;
use super::space::page_ids::ids_per_map;
use super::space::page_set::PageSet;
use crate::base::{Error, Lsn, PageId, Result};
use crate::log::{Batch, Log, LogReader};
use crate::page::{self, Page, PageOp};
use crate::store::{ID_SLACK, PageStore, PlaceBytes, Pool, WriteGuard};
use crate::txn::stats::Recovery;
use logical::{LogicalTransaction, Pieces};
use record::{LOGICAL, OPERATIONS, Record};
use std::collections::BTreeSet;
use std::time::Duration;

/// Limits of what redo reads of the log before it applies it: pages that are changed, and bytes.
const AHEAD_PAGES: usize = 256;
const AHEAD_BYTES: usize = 1 << 20;

/// What redo found.
#[derive(Debug, Default)]
pub(crate) struct Redone {
    /// The end of the log.
    pub(crate) end: Lsn,
    /// A large transaction that is not applied to its end.
    pub(crate) unfinished: Option<LogicalTransaction>,
    /// One past the greatest page id the log speaks of.
    pub(crate) high: u32,
    /// Pages that the log has freed, where their ids must not be used again before the next checkpoint.
    pub(crate) freed: IdRanges,
    /// Bytes of the log that it has read.
    pub(crate) log_bytes: u64,
    /// Pages that it has read or made.
    pub(crate) pages: PageSet,
    /// Operations applied and skipped.
    pub(crate) applied: u64,
    pub(crate) skipped: u64,
}

impl Redone {
    /// Nothing to redo: the log begins at `lsn`.
    pub(crate) fn at(lsn: Lsn) -> Redone {
        Redone { end: lsn, ..Redone::default() }
    }

    /// The work that it was, and how long that took.
    pub(crate) fn recovery(&self, time: Duration) -> Recovery {
        let Redone { log_bytes, applied, skipped, .. } = *self;
        Recovery { log_bytes, pages: self.pages.len(), applied, skipped, time }
    }
}

/// Replays the log onto the pages of the last checkpoint.
pub(crate) struct Redo<'a> {
    pool: &'a Pool,
    store: &'a dyn PageStore,
    table_lsn: Lsn,
    /// No page from here on is believed.
    limit: u32,
    pieces: Pieces,
    /// Pages that could not be read: their operations are lost with them, the rest of the database is not.
    broken: BTreeSet<PageId>,
    found: Redone,
}

impl<'a> Redo<'a> {
    /// Redo onto `pool`, whose store stands as of the checkpoint that froze its page table at `table_lsn` and knew of no
    /// page from `high_water` on.
    pub(crate) fn new(pool: &'a Pool, store: &'a dyn PageStore, table_lsn: Lsn, high_water: u32) -> Redo<'a> {
        let limit = high_water.saturating_add(ID_SLACK);
        let (pieces, broken, found) = (Pieces::default(), BTreeSet::new(), Redone::default());
        Redo { pool, store, table_lsn, limit, pieces, broken, found }
    }

    /// The same, without the changes of pages that [`Redo::first_pass`] has found to be freed.
    pub(crate) fn without(mut self, freed: IdRanges) -> Redo<'a> {
        self.found.freed = freed;
        self
    }

    /// The first pass. The store reserves the places that place records name, and learns where the log ends. Returns the
    /// pages that the log frees, if the store does not use ids again before the redo point is beyond their free. Such a store
    /// may have images of these pages that are older than the redo point: freed pages are not written.
    pub(crate) fn first_pass(store: &dyn PageStore, table_lsn: Lsn, reader: &mut LogReader) -> Result<IdRanges> {
        let (mut pieces, mut freed) = (Pieces::default(), IdRanges::default());
        while let Some(batch) = reader.next()? {
            if batch.kind == LOGICAL {
                if let Some(transaction) = pieces.push(&batch.payload, batch.start)?
                    && batch.end > table_lsn
                {
                    transaction.places().try_for_each(|(_, place)| store.reserve(place, batch.start))?;
                }
                continue;
            }
            let mut input = batch.payload.as_slice();
            while !input.is_empty() {
                let lsn = Log::op_lsn(batch.start, batch.payload.len() - input.len());
                match Record::decode(&mut input, lsn)? {
                    Record::Place { place, .. } if lsn >= table_lsn => store.reserve(place, lsn)?,
                    Record::Operation { page, op: PageOp::ClearBits { from, count } }
                        if !store.reuses_ids_at_once() =>
                    {
                        let first = page.0.saturating_add(from);
                        freed.add(first..first.saturating_add(count));
                    }
                    Record::Operation { page, op: PageOp::SetBits { from, count } } if !store.reuses_ids_at_once() => {
                        let first = page.0.saturating_add(from);
                        if let Some(id) = freed.first_of(first..first.saturating_add(count)) {
                            let what =
                                format!("it uses page {id} again, which it has freed: a later superblock is lost");
                            return Err(Error::CorruptLog { lsn, what });
                        }
                    }
                    _ => {}
                }
            }
        }
        store.note_log_end(reader.end_state().lsn)?;
        Ok(freed)
    }

    /// Replays every batch that `reader` gives. It takes several batches at once, so that the pages that they change can
    /// be read from the device together.
    pub(crate) fn run(mut self, reader: &mut LogReader) -> Result<Redone> {
        self.found.end = reader.end_state().lsn;
        loop {
            let (mut batches, mut pages, mut bytes) = (Vec::new(), BTreeSet::new(), 0);
            while pages.len() < AHEAD_PAGES
                && bytes < AHEAD_BYTES
                && let Some(batch) = reader.next()?
            {
                changed_pages(&batch, &mut pages);
                bytes += batch.payload.len();
                batches.push(batch);
            }
            if batches.is_empty() {
                self.found.log_bytes = reader.bytes();
                return Ok(self.found);
            }
            self.pool.will_read(pages.into_iter());
            batches.iter().try_for_each(|batch| self.batch(batch))?;
        }
    }

    fn batch(&mut self, batch: &Batch) -> Result<()> {
        match batch.kind {
            OPERATIONS => self.operations(batch)?,
            LOGICAL => self.logical_piece(batch)?,
            other => {
                let what = format!("a batch of the unknown kind {other}");
                return Err(Error::CorruptLog { lsn: batch.start, what });
            }
        }
        self.found.end = batch.end;
        Ok(())
    }

    fn operations(&mut self, batch: &Batch) -> Result<()> {
        let mut input = batch.payload.as_slice();
        while !input.is_empty() {
            let lsn = Log::op_lsn(batch.start, batch.payload.len() - input.len());
            match Record::decode(&mut input, lsn)? {
                Record::Operation { page, op } => self.operation(page, &op, lsn)?,
                Record::Place { page, place } => {
                    self.note_page(page, lsn)?;
                    if self.found.freed.contains(page) {
                        continue;
                    }
                    if lsn >= self.table_lsn && self.store.install(page, place, lsn)? {
                        self.pool.forget(page);
                    }
                }
                Record::Progress { done, last } => {
                    if last {
                        self.found.unfinished = None;
                    } else if let Some(unfinished) = &mut self.found.unfinished {
                        let steps = unfinished.len();
                        unfinished.done =
                            usize::try_from(done).ok().filter(|done| *done <= steps).ok_or_else(|| {
                                let what = format!("{done} of the {steps} steps of a transaction are said to be done");
                                Error::CorruptLog { lsn, what }
                            })?;
                    }
                }
            }
        }
        Ok(())
    }

    fn logical_piece(&mut self, batch: &Batch) -> Result<()> {
        if let Some(transaction) = self.pieces.push(&batch.payload, batch.start)? {
            transaction.named().try_for_each(|page| self.note_page(page, batch.start))?;
            if batch.end > self.table_lsn {
                let is_kept = |(page, _): &(PageId, PlaceBytes)| !self.found.freed.contains(*page);
                for (page, place) in transaction.places().filter(is_kept) {
                    self.store.install(page, place, batch.start)?;
                }
            }
            self.found.unfinished = Some(transaction);
        }
        Ok(())
    }

    /// Notes that the log names a page. One that there cannot be must not make anything grow.
    fn note_page(&mut self, page: PageId, lsn: Lsn) -> Result<()> {
        if page.0 >= self.limit {
            let what = format!("it names page {page}, and there is none from page {} on", self.limit);
            return Err(Error::CorruptLog { lsn, what });
        }
        self.found.high = self.found.high.max(page.0 + 1);
        Ok(())
    }

    fn operation(&mut self, id: PageId, op: &PageOp<'_>, lsn: Lsn) -> Result<()> {
        self.note_page(id, lsn)?;
        if self.found.freed.contains(id) {
            self.found.skipped += 1;
            return Ok(());
        }
        self.store.note_in_log(id);
        if matches!(op, PageOp::Format { .. }) {
            self.broken.remove(&id);
        } else if self.broken.contains(&id) {
            return Ok(());
        }
        self.apply(id, op, lsn)?;
        match *op {
            PageOp::SetBits { from, count } | PageOp::ClearBits { from, count } => {
                let per_map = ids_per_map(self.pool.page_size());
                if !id.0.is_multiple_of(per_map) || count == 0 || from.saturating_add(count) > per_map {
                    return Err(Error::CorruptLog { lsn, what: format!("an operation that does not fit map {id}") });
                }
                match op {
                    PageOp::ClearBits { .. } => self.freed(id, from, count, lsn),
                    _ => self.note_page(PageId(id.0.saturating_add(from).saturating_add(count - 1)), lsn)?,
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn apply(&mut self, id: PageId, op: &PageOp<'_>, lsn: Lsn) -> Result<()> {
        let is_format = matches!(op, PageOp::Format { .. });
        let known = match self.latch(id) {
            Ok(known) => known,
            // Nothing of the page is needed: what is there may be the torn rest of a page that no commit has had.
            Err(Error::Corrupt { .. }) if is_format => None,
            Err(error) if self.costs_a_page(&error) => {
                tracing::warn!(page = %id, %error, "page cannot be read, its operations are skipped");
                if !is_format {
                    self.broken.insert(id);
                    return Ok(());
                }
                None
            }
            Err(other) => return Err(other),
        };
        let mut page = match known {
            Some(page) => page,
            None if is_format => self.pool.create(id)?,
            // Freed before the page table was frozen: whoever takes the id next formats it.
            None if lsn < self.table_lsn => {
                self.found.skipped += 1;
                return Ok(());
            }
            None if self.store.is_rescued() => {
                self.broken.insert(id);
                return Ok(());
            }
            None => {
                let what = format!("page {id} has an operation but no content");
                return Err(Error::CorruptLog { lsn, what });
            }
        };
        self.found.pages.insert(id);
        if Page::new(&page).lsn() >= lsn {
            self.found.skipped += 1;
            return Ok(());
        }
        let applied = page::apply(&mut page, op, lsn).and_then(|fits| {
            // Other pages were checked when they were read; content that comes from the log has not been.
            if fits && is_format {
                Page::check(&page, id)?;
            }
            Ok(fits)
        });
        let fits = match applied {
            Err(Error::Corrupt { .. }) if self.store.is_rescued() => false,
            applied => applied?,
        };
        if fits {
            page.mark_dirty(lsn);
            self.found.applied += 1;
            return Ok(());
        }
        drop(page);
        if !self.store.is_rescued() {
            return Err(Error::CorruptLog { lsn, what: format!("an operation that does not fit page {id}") });
        }
        self.set_aside(id);
        Ok(())
    }

    /// In a rescue, an older state of a page may have been found than the one that the log goes on from. What has been done
    /// to it so far may have hit other entries than it should: better none than wrong ones. The rest of the log is not to
    /// suffer for it.
    fn set_aside(&mut self, id: PageId) {
        tracing::warn!(page = %id, "an older page than the log goes on from is given up");
        self.broken.insert(id);
        self.pool.forget(id);
        self.store.drop_page(id);
    }

    /// Whether an error is about one page. A device that fails may do better another time, but not where only what is left is
    /// asked for.
    fn costs_a_page(&self, error: &Error) -> bool {
        matches!(error, Error::Corrupt { .. }) || self.store.is_rescued() && matches!(error, Error::Io { .. })
    }

    /// A page's latch; `None` if it has no content.
    fn latch(&self, id: PageId) -> Result<Option<WriteGuard<'a>>> {
        if !self.pool.is_resident(id) && !self.store.may_exist(id) {
            return Ok(None);
        }
        match self.pool.latch(id) {
            // Only the attempt to read it has shown that.
            Err(Error::Corrupt { .. }) if !self.store.exists(id) => Ok(None),
            latched => latched.map(Some),
        }
    }

    /// Pages freed by the log: dropped unless what is there is newer.
    fn freed(&self, map: PageId, from: u32, count: u32, lsn: Lsn) {
        for id in (from..from.saturating_add(count)).map(|bit| PageId(map.0.saturating_add(bit))) {
            let stale =
                || self.pool.is_resident(id) && self.pool.read(id).is_ok_and(|page| Page::new(&page).lsn() < lsn);
            if lsn >= self.table_lsn || stale() {
                self.pool.forget(id);
                self.store.drop_page(id);
            }
        }
    }
}

/// Adds the pages that a batch changes: redo also reads a page before it formats it. A record that cannot be decoded ends
/// the batch: redo reports that.
fn changed_pages(batch: &Batch, pages: &mut BTreeSet<PageId>) {
    let mut input = if batch.kind == OPERATIONS { batch.payload.as_slice() } else { &[] };
    while !input.is_empty() {
        match Record::decode(&mut input, batch.start) {
            Ok(Record::Operation { page, .. }) => drop(pages.insert(page)),
            Ok(Record::Place { .. } | Record::Progress { .. }) => {}
            Err(_) => return,
        }
    }
}

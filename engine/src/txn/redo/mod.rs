//! Redo: brings the pages of the last checkpoint up to the end of the log, with the same code that changed them at
//! commit.
//!
//! A page needs an operation if and only if its LSN is smaller than the operation's. Redo reads no page except those of
//! the operations. It skips records that the store's state of the checkpoint already contains (all before the
//! store LSN): places of pages, and freed pages.
//!
//! Redo reads up to 1 MiB of log and hints which pages it changes, so that the device reads up to 256 pages together.

pub(super) mod layout;
pub(super) mod logical;
pub(super) mod record;

use super::space::id_ranges::IdRanges;
use super::space::page_ids::ids_per_map;
use super::space::page_set::PageSet;
use crate::base::{Error, Lsn, PageId, Result};
use crate::log::{Batch, Log, LogReader};
use crate::page::{Page, PageOp, apply};
use crate::store::{ID_SLACK, PageStore, PlaceBytes, Pool, WriteGuard};
use crate::txn::stats::Recovery;
use logical::{LogicalReader, LogicalTransaction};
use record::{LOGICAL, LogRecord, OPERATIONS};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

/// The limits of the part of the log that redo reads before it applies it: the number of changed pages, and bytes.
const AHEAD_PAGES: usize = 256;
const AHEAD_BYTES: usize = 1 << 20;

/// The results of redo.
#[derive(Debug, Default)]
pub(crate) struct RedoResult {
    /// The end of the log.
    pub(crate) end: Lsn,
    /// A large transaction that is not completely applied.
    pub(crate) unfinished: Option<LogicalTransaction>,
    /// One more than the greatest page id in the log.
    pub(crate) high: u32,
    /// Pages that the log has freed, if their ids must not be used again before the next checkpoint.
    pub(crate) freed: IdRanges,
    /// Bytes of the log that redo has read.
    pub(crate) log_bytes: u64,
    /// Pages that redo has read or created.
    pub(crate) pages: PageSet,
    /// Allocation maps that were created after the checkpoint.
    pub(crate) new_maps: u32,
    /// An allocation map that the log names has no content.
    pub(crate) lost_map: Option<PageId>,
    /// The numbers of operations that were applied and skipped.
    pub(crate) applied: u64,
    pub(crate) skipped: u64,
}

impl RedoResult {
    /// Returns the result if there is nothing to redo: the log begins at `lsn`.
    pub(crate) fn at(lsn: Lsn) -> RedoResult {
        RedoResult { end: lsn, ..RedoResult::default() }
    }

    /// Returns the work of the recovery, which took `time`.
    pub(crate) fn recovery(&self, time: Duration) -> Recovery {
        let RedoResult { log_bytes, applied, skipped, .. } = *self;
        Recovery { log_bytes, pages: self.pages.len(), applied, skipped, time }
    }
}

/// Replays the log onto the pages of the last checkpoint.
pub(crate) struct Redo<'a> {
    pool: &'a Pool,
    store: &'a dyn PageStore,
    store_lsn: Lsn,
    /// The log must not refer to pages from here on.
    limit: u32,
    pieces: LogicalReader,
    /// Pages that could not be read. Their operations are lost with them, but not the rest of the database.
    broken: BTreeSet<PageId>,
    /// Pages without content that the log changes, with the first such operation. An earlier recovery that was cut off
    /// may have emptied a page that it could not read. That costs nothing if a later record formats or frees the page.
    missing: BTreeMap<PageId, Lsn>,
    /// The store was opened with [`store::open_damaged`](crate::store::open_damaged): what does not fit is left out.
    is_rescue: bool,
    found: RedoResult,
}

impl<'a> Redo<'a> {
    /// Redo onto `pool`. Its store has the state that a checkpoint froze at `store_lsn`. That state has no page
    /// from `high_water` on.
    pub(crate) fn new(pool: &'a Pool, store: &'a dyn PageStore, store_lsn: Lsn, high_water: u32) -> Redo<'a> {
        let limit = limit_of(high_water);
        let (pieces, found) = (LogicalReader::default(), RedoResult::default());
        let (broken, missing) = (BTreeSet::new(), BTreeMap::new());
        Redo { pool, store, store_lsn, limit, pieces, broken, missing, is_rescue: false, found }
    }

    /// Leaves out the pages that cannot be read or do not fit the log, and their operations.
    pub(crate) fn of_damaged(self) -> Redo<'a> {
        Redo { is_rescue: true, ..self }
    }

    /// Skips the changes of pages that are freed later, which [`Redo::first_pass`] returns.
    pub(crate) fn without(mut self, freed: IdRanges) -> Redo<'a> {
        self.found.freed = freed;
        self
    }

    /// Does the first pass. The store reserves the places in place records. Returns the pages that the log frees, if
    /// the store does not use ids again before the redo point is beyond the operation that frees them. Such a store may
    /// have images of these pages that are older than the redo point, because freed pages are not written.
    pub(crate) fn first_pass(
        store: &dyn PageStore,
        store_lsn: Lsn,
        high_water: u32,
        reader: &mut LogReader,
    ) -> Result<IdRanges> {
        let (mut pieces, mut freed) = (LogicalReader::default(), IdRanges::default());
        let (page_size, limit) = (store.file().page_size(), limit_of(high_water));
        while let Some(batch) = reader.next()? {
            if batch.kind == LOGICAL {
                if let Some(transaction) = pieces.push(&batch.payload, batch.start)?
                    && batch.end > store_lsn
                {
                    transaction.places().try_for_each(|(_, place)| store.reserve(place, batch.start))?;
                }
                continue;
            }
            let mut input = batch.payload.as_slice();
            while !input.is_empty() {
                let lsn = Log::op_lsn(batch.start, batch.payload.len() - input.len());
                match LogRecord::decode(&mut input, lsn)? {
                    LogRecord::Place { place, .. } if lsn >= store_lsn => store.reserve(place, lsn)?,
                    LogRecord::Operation { page, op: PageOp::ClearBits { from, count } }
                        if !store.file().kind().reuses_ids() =>
                    {
                        freed.add(ids_of_bits(page, from, count, page_size, limit, lsn)?);
                    }
                    LogRecord::Operation { page, op: PageOp::SetBits { from, count } }
                        if !store.file().kind().reuses_ids() =>
                    {
                        let taken = ids_of_bits(page, from, count, page_size, limit, lsn)?;
                        if let Some(id) = freed.first_of(taken) {
                            let what = format!("it reuses page {id}, which it frees: a newer superblock is lost");
                            return Err(Error::CorruptLog { lsn, what });
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(freed)
    }

    /// Replays every batch of `reader`. Takes several batches at once, so that the pages that they change are read from
    /// the device together. Calls `progress` with the bytes of the log that have been applied. The caller reports the
    /// end.
    pub(crate) fn run(mut self, reader: &mut LogReader, progress: &mut dyn FnMut(u64)) -> Result<RedoResult> {
        self.found.end = reader.end_state().lsn;
        loop {
            let applied = reader.bytes();
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
                self.check_missing()?;
                self.check_broken()?;
                self.found.log_bytes = reader.bytes();
                return Ok(self.found);
            }
            progress(applied);
            self.pool.will_read(pages.into_iter());
            batches.iter().try_for_each(|batch| self.batch(batch))?;
        }
    }

    /// Fails if the log changes a page that does not exist, and no later record formats or frees it.
    fn check_missing(&self) -> Result<()> {
        match self.missing.first_key_value() {
            Some((id, lsn)) => {
                let what = format!("it changes page {id}, which does not exist");
                Err(Error::CorruptLog { lsn: *lsn, what })
            }
            None => Ok(()),
        }
    }

    /// The page gets new content, or none: it does not matter what it had.
    fn forget_loss(&mut self, id: PageId) {
        self.broken.remove(&id);
        self.missing.remove(&id);
    }

    /// Fails unless each page that could not be read is still damaged or missing. The operations of such a page were
    /// skipped, so if it can be read later, its content is an old one. After the error the log stays, and another
    /// recovery can apply them. A damaged page is dropped, because a device that can read it again some day must not
    /// return its old content.
    fn check_broken(&self) -> Result<()> {
        for id in self.broken.iter().copied().filter(|_| !self.is_rescue) {
            match self.latch(id) {
                Ok(None) => {}
                Err(Error::Corrupt { .. }) => {
                    self.pool.forget(id);
                    self.store.drop_page(id)?;
                    self.store.discard_page(id);
                }
                Ok(Some(_)) => {
                    let what = "recovery could not read it, and then could: the device is not reliable";
                    return Err(Error::corrupt(id, what));
                }
                Err(other) => return Err(other),
            }
        }
        Ok(())
    }

    fn batch(&mut self, batch: &Batch) -> Result<()> {
        match batch.kind {
            OPERATIONS => self.operations(batch)?,
            LOGICAL => self.logical_piece(batch)?,
            other => {
                let what = format!("a batch has the unknown kind {other}");
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
            match LogRecord::decode(&mut input, lsn)? {
                LogRecord::Operation { page, op } => self.operation(page, &op, lsn)?,
                LogRecord::Place { page, place } => {
                    self.note_page(page, lsn)?;
                    if self.found.freed.contains(page) {
                        continue;
                    }
                    if lsn >= self.store_lsn {
                        self.install(page, place, lsn)?;
                    }
                }
                LogRecord::Progress { done, last } => {
                    if last {
                        self.found.unfinished = None;
                    } else if let Some(unfinished) = &mut self.found.unfinished {
                        let steps = unfinished.len();
                        unfinished.done =
                            usize::try_from(done).ok().filter(|done| *done <= steps).ok_or_else(|| {
                                let what = format!("a transaction of {steps} steps has {done} steps done");
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
            if batch.end > self.store_lsn {
                for (page, place) in transaction.places() {
                    if !self.found.freed.contains(page) {
                        self.install(page, place, batch.start)?;
                    }
                }
            }
            self.found.unfinished = Some(transaction);
        }
        Ok(())
    }

    /// Installs the place of a page that was written outside the log. The pool may have what the id was used for
    /// before.
    fn install(&mut self, page: PageId, place: PlaceBytes, lsn: Lsn) -> Result<()> {
        if self.store.install(page, place, lsn)? {
            self.forget_loss(page);
            self.pool.forget(page);
        }
        Ok(())
    }

    /// Notes a page id of the log. An id that cannot exist is an error, so that it cannot make any structure grow.
    fn note_page(&mut self, page: PageId, lsn: Lsn) -> Result<()> {
        if page.0 >= self.limit {
            return Err(beyond_limit(page, self.limit, lsn));
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
        let is_map = id.0.is_multiple_of(ids_per_map(self.pool.page_size()));
        if is_map && lsn >= self.store_lsn && matches!(op, PageOp::Format { .. }) {
            self.found.new_maps += 1;
        }
        if matches!(op, PageOp::Format { .. }) {
            self.forget_loss(id);
        } else if self.broken.contains(&id) || self.missing.contains_key(&id) {
            return Ok(());
        }
        self.apply(id, op, lsn)?;
        match *op {
            PageOp::SetBits { from, count } | PageOp::ClearBits { from, count } => {
                let ids = ids_of_bits(id, from, count, self.pool.page_size(), self.limit, lsn)?;
                match op {
                    PageOp::ClearBits { .. } => self.freed(ids, lsn)?,
                    _ => self.note_page(PageId(ids.end - 1), lsn)?,
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
            // A format replaces the whole page. The present content may be a torn write of a page that no commit has
            // used.
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
            None => {
                self.skip_missing(id, op, lsn);
                return Ok(());
            }
        };
        self.found.pages.insert(id);
        if Page::new(&page).lsn() >= lsn {
            self.found.skipped += 1;
            return Ok(());
        }
        if is_format {
            // The image may belong to a page that no commit has used. If the sync of that image failed, only the file
            // cache may have it. A later generation then counts it as synced, so it must not be the base of a delta.
            page.forget_base();
        }
        let applied = apply(&mut page, op, lsn).and_then(|fits| {
            // Other pages were checked when they were read; content that comes from the log has not been.
            if fits && is_format {
                Page::check(&page, id)?;
            } else {
                Page::check_changed(&page, id)?;
            }
            Ok(fits)
        });
        let fits = match applied {
            Err(Error::Corrupt { .. }) if self.is_rescue => false,
            applied => applied?,
        };
        if fits {
            page.mark_dirty(lsn);
            self.found.applied += 1;
            return Ok(());
        }
        drop(page);
        if !self.is_rescue {
            return Err(not_applicable(id, lsn));
        }
        self.set_aside(id)
    }

    /// Skips an operation of a page that has no content.
    fn skip_missing(&mut self, id: PageId, op: &PageOp<'_>, lsn: Lsn) {
        if matches!(op, PageOp::SetBits { .. } | PageOp::ClearBits { .. }) {
            // Maps are never freed: this one is lost. The database can be read without it.
            self.found.lost_map = Some(id);
            self.broken.insert(id);
        } else if lsn < self.store_lsn {
            // The page was freed before the checkpoint began. If its id is used again, a format comes first.
            self.found.skipped += 1;
        } else if self.is_rescue {
            self.broken.insert(id);
        } else {
            self.missing.insert(id, lsn);
        }
    }

    /// Discards a page whose state does not fit the log. In a rescue the page that was found may be older than the
    /// state that the log continues from. The changes so far may then have affected the wrong entries. The page is
    /// discarded rather than kept with wrong entries, and redo continues with the rest of the log.
    fn set_aside(&mut self, id: PageId) -> Result<()> {
        tracing::warn!(page = %id, "page is older than the state that the log continues from; it is dropped");
        self.broken.insert(id);
        self.pool.forget(id);
        self.store.drop_page(id)
    }

    /// Returns true if the error affects only one page. An I/O error may be temporary, so it counts only in a rescue,
    /// which takes the pages that it can read.
    fn costs_a_page(&self, error: &Error) -> bool {
        matches!(error, Error::Corrupt { .. }) || self.is_rescue && matches!(error, Error::Io { .. })
    }

    /// Returns a page's latch; `None` if the page has no content.
    fn latch(&self, id: PageId) -> Result<Option<WriteGuard<'a>>> {
        if !self.pool.is_resident(id) && !self.store.may_exist(id) {
            return Ok(None);
        }
        match self.pool.latch(id) {
            // Only the attempt to read the page shows that it does not exist.
            Err(Error::Corrupt { .. }) if !self.store.exists(id) => Ok(None),
            latched => latched.map(Some),
        }
    }

    /// Drops pages that the log frees, unless their present content is newer. The store's state of the checkpoint does
    /// not have them if they were freed before it, but redo may have created them again, and the pool may have evicted
    /// them.
    fn freed(&mut self, ids: Range<u32>, lsn: Lsn) -> Result<()> {
        for id in ids.map(PageId) {
            let is_known = || self.pool.is_resident(id) || self.found.pages.contains(id) && self.store.may_exist(id);
            let stale = || is_known() && self.pool.read(id).is_ok_and(|page| Page::new(&page).lsn() < lsn);
            if lsn >= self.store_lsn || stale() {
                self.forget_loss(id);
                self.pool.forget(id);
                self.store.drop_page(id)?;
            }
        }
        Ok(())
    }
}

/// The log must not refer to pages from here on, if the store's state of the checkpoint has no page from `high_water`
/// on.
fn limit_of(high_water: u32) -> u32 {
    high_water.saturating_add(ID_SLACK)
}

/// The error of a record with a page id that cannot exist.
fn beyond_limit(page: PageId, limit: u32, lsn: Lsn) -> Error {
    Error::CorruptLog { lsn, what: format!("it refers to page {page}, but page ids are below {limit}") }
}

/// The pages of some bits of an allocation map; at least one. An error if they are not bits of one map, or if their ids
/// cannot exist. So a record costs no more memory and time than a map has bits.
fn ids_of_bits(map: PageId, from: u32, count: u32, page_size: usize, limit: u32, lsn: Lsn) -> Result<Range<u32>> {
    let per_map = ids_per_map(page_size);
    if !map.0.is_multiple_of(per_map) || count == 0 || from.saturating_add(count) > per_map {
        return Err(not_applicable(map, lsn));
    }
    let first = map.0.saturating_add(from);
    let end = first.saturating_add(count);
    match end > limit {
        true => Err(beyond_limit(PageId(end - 1), limit, lsn)),
        false => Ok(first..end),
    }
}

/// The error of an operation that its page does not allow.
fn not_applicable(id: PageId, lsn: Lsn) -> Error {
    Error::CorruptLog { lsn, what: format!("an operation cannot be applied to page {id}") }
}

/// Adds the pages that a batch changes. Formatted pages are included, because redo reads a page before it formats it. A
/// record that cannot be decoded ends the batch, and redo reports it.
fn changed_pages(batch: &Batch, pages: &mut BTreeSet<PageId>) {
    let mut input = if batch.kind == OPERATIONS { batch.payload.as_slice() } else { &[] };
    while !input.is_empty() {
        match LogRecord::decode(&mut input, batch.start) {
            Ok(LogRecord::Operation { page, .. }) => drop(pages.insert(page)),
            Ok(LogRecord::Place { .. } | LogRecord::Progress { .. }) => {}
            Err(_) => return,
        }
    }
}

//! Large values: runs of pages outside the tree and outside the log.
//!
//! A run's pages have consecutive ids (skipping those of allocation maps), so that freeing one needs no reading; each
//! also names the next. They are written and synced before the batch that points to them. The record that stands for
//! the value in the tree is `first page u32 | length u32 | checksum u32`.

use crate::base::checksum::chained;
use crate::base::limits::{LARGE_RECORD, MAX_VALUE, PAGE_HEADER};
use crate::base::{Error, Lsn, PageId, Result, TableId, bytes};
use crate::page::{self, Page, PageOp};
use crate::store::PlaceBytes;
use crate::tree::Tree;
use crate::txn::commit::RELIEF_PAGES;
use crate::txn::commit::applier::Applier;
use crate::txn::engine::Engine;
use crate::txn::space::page_ids::{PageIds, ids_per_map};
use crate::txn::versions::OwnedRecord;
use std::io::{ErrorKind, Read};

/// Bytes of what stands for a damaged large record; see [`damaged_record`].
const DAMAGED_RECORD: usize = 8;

/// A large record, decoded.
#[derive(Clone, Copy)]
struct Run {
    first: PageId,
    len: usize,
    checksum: u32,
}

impl Run {
    fn decode(record: &[u8]) -> Result<Run> {
        let first = PageId(bytes::get_u32(record, 0));
        let page = if first.is_none() { PageId::UNKNOWN } else { first };
        if record.len() == DAMAGED_RECORD {
            let what =
                format!("a large value of table number {} is lost: its record was damaged", bytes::get_u32(record, 4));
            return Err(Error::corrupt(page, what));
        }
        if record.len() != LARGE_RECORD || first.is_none() {
            return Err(Error::corrupt(page, "a large record that is no pointer to a run"));
        }
        let len = bytes::get_u32(record, 4) as usize;
        Ok(Run { first, len, checksum: bytes::get_u32(record, 8) })
    }

    fn pages(&self, page_size: usize) -> impl Iterator<Item = PageId> + use<> {
        let count = self.len.div_ceil(page::run_capacity(page_size)).max(1);
        PageIds::run(page_size, self.first).take(count)
    }

    /// True if its pages are what they must be, as far as can be known without reading them: they are taken, and their images are as
    /// long as the run's.
    fn is_sound(&self, engine: &Engine) -> Result<bool> {
        let Some(store) = &engine.store else { return Ok(true) };
        let (page_size, high) = (engine.pool.page_size(), engine.ids.lock().high());
        let per_map = ids_per_map(page_size);
        if self.first.0.is_multiple_of(per_map) {
            return Ok(false);
        }
        let (mut left, mut map) = (self.len, None);
        for id in self.pages(page_size) {
            if id.0 >= high {
                return Ok(false);
            }
            let own = PageId(id.0 - id.0 % per_map);
            if map.as_ref().is_none_or(|(at, _)| *at != own) {
                // One latch at a time.
                drop(map.take());
                map = Some((own, engine.pool.read(own)?));
            }
            let taken = map.as_ref().is_some_and(|(_, page)| Page::new(page).bit(id.0 % per_map));
            let payload = left.min(page::run_capacity(page_size));
            if !taken || !store.may_be(id, PAGE_HEADER + payload) {
                return Ok(false);
            }
            left -= payload;
        }
        Ok(true)
    }
}

/// Writes `len` bytes from `input` to a new run. Its pages are added to `adopted`; they become part of the database
/// when the transaction commits.
///
/// # Errors
/// [`Error::ValueTooLong`]; [`Error::Full`]; errors of `input`.
pub(crate) fn write(
    engine: &Engine,
    adopted: &mut Vec<(PageId, Option<PlaceBytes>)>,
    table: TableId,
    len: u64,
    input: &mut dyn Read,
) -> Result<OwnedRecord> {
    let too_long = || Error::ValueTooLong { len, max: MAX_VALUE };
    let length = u32::try_from(len).map_err(|_| too_long())?;
    let page_size = engine.pool.page_size();
    let capacity = page::run_capacity(page_size);
    let count = (length as usize).div_ceil(capacity).max(1);
    let first = engine.ids.lock().take_run(count)?;
    let start = adopted.len();
    let written = write_run(engine, adopted, table, length, (first, count), input);
    if written.is_err() {
        // The transaction may commit without this value: its pages must not be left to it.
        let pages: Vec<PageId> = adopted.drain(start..).map(|(page, _)| page).collect();
        engine.release_pages(&pages);
    }
    written
}

/// Fills `buf` from what a value is read from.
pub(crate) fn read_input(input: &mut dyn Read, buf: &mut [u8]) -> Result<()> {
    input.read_exact(buf).map_err(|source| {
        let source = match source.kind() {
            kind @ ErrorKind::UnexpectedEof => {
                std::io::Error::new(kind, "it ended before it gave as many bytes as the value was said to have")
            }
            _ => source,
        };
        Error::Io { action: "cannot read", path: "the input of a large value".into(), source }
    })
}

fn write_run(
    engine: &Engine,
    adopted: &mut Vec<(PageId, Option<PlaceBytes>)>,
    table: TableId,
    length: u32,
    (first, count): (PageId, usize),
    input: &mut dyn Read,
) -> Result<OwnedRecord> {
    let page_size = engine.pool.page_size();
    let capacity = page::run_capacity(page_size);
    let start = adopted.len();
    let mut checksum = 0;
    let mut rest = length as usize;
    let mut payload = vec![0; capacity.min(rest)];
    let mut ids = PageIds::run(page_size, first).take(count).peekable();
    adopted.extend(PageIds::run(page_size, first).take(count).map(|id| (id, None)));
    let mut place = start;
    while let Some(id) = ids.next() {
        payload.truncate(rest);
        read_input(input, &mut payload)?;
        rest -= payload.len();
        checksum = chained(checksum, &payload);
        let right = ids.peek().copied().unwrap_or(PageId::NONE);
        let written = write_page(engine, id, &page::run_page(id, table, right, &payload))?;
        if let Some(adopted) = adopted.get_mut(place) {
            adopted.1 = written;
        }
        place += 1;
    }
    let mut record = [0; LARGE_RECORD];
    bytes::put_u32(&mut record, 0, first.0);
    bytes::put_u32(&mut record, 4, length);
    bytes::put_u32(&mut record, 8, checksum);
    Ok(OwnedRecord { bytes: record.as_slice().into(), large: true })
}

/// Writes a page outside the log: to the store, or to the pool of an in-memory database.
///
/// Its LSN is the log's end, which is beyond every operation on what had the id before: redo, coming by those, must
/// leave the page alone.
pub(crate) fn write_page(engine: &Engine, id: PageId, packed: &[u8]) -> Result<Option<PlaceBytes>> {
    match &engine.store {
        Some(store) => {
            let mut packed = packed.to_vec();
            page::set_lsn(&mut packed, engine.log()?.next_lsn());
            // What the changed pages have been promised stays theirs.
            let ensure_room = || store.ensure_room(engine.pool.dirty_pages() + RELIEF_PAGES as u64 + 1);
            match ensure_room() {
                Err(Error::Full { .. }) => engine.shorten_log().and_then(|()| ensure_room())?,
                ensured => ensured?,
            }
            store.write_unlogged(id, &packed).map(Some)
        }
        None => {
            let mut page = engine.pool.create(id)?;
            page::apply(&mut page, &PageOp::Format { packed: packed.into() }, Lsn::ZERO)?;
            Ok(None)
        }
    }
}

/// Takes back a run that this transaction has written itself and does not want any more.
pub(crate) fn unwrite(engine: &Engine, adopted: &mut Vec<(PageId, Option<PlaceBytes>)>, record: &[u8]) {
    let Ok(run) = Run::decode(record) else { return };
    let pages: Vec<PageId> = run.pages(engine.pool.page_size()).collect();
    if let (Some(first), Some(last)) = (pages.first(), pages.last()) {
        adopted.retain(|(page, _)| page < first || page > last);
    }
    engine.release_pages(&pages);
}

/// What stands for a damaged large record as a before-image: the page and the table that its error names, and no run
/// that could be freed.
pub(crate) fn damaged_record(table: TableId, record: &[u8]) -> [u8; DAMAGED_RECORD] {
    let mut damaged = [0; DAMAGED_RECORD];
    bytes::put_u32(&mut damaged, 0, bytes::get_u32(record, 0));
    bytes::put_u32(&mut damaged, 4, table.0);
    damaged
}

/// The run of a large record that leads to what it must.
pub(crate) struct SoundRun(Run);

/// The run of a large record. `None` where the record is damaged: to free what it leads to would free the pages of somebody
/// else, so its run stays taken.
///
/// # Errors
/// Those of reading allocation maps.
pub(crate) fn sound_run(engine: &Engine, record: &[u8]) -> Result<Option<SoundRun>> {
    let run = match Run::decode(record) {
        Ok(run) => run,
        Err(cause) => {
            tracing::warn!(%cause, "the run of a damaged large record stays taken");
            return Ok(None);
        }
    };
    if !run.is_sound(engine)? {
        tracing::warn!(page = %run.first, "a damaged large record leads to pages that are not its run; that stays taken");
        return Ok(None);
    }
    Ok(Some(SoundRun(run)))
}

impl SoundRun {
    /// Marks its pages as free. Snapshots may still read them: their ids are let go with the event that has the record.
    pub(crate) fn free_later(&self, engine: &Engine, applier: &Applier<'_>) -> Result<()> {
        applier.free_later(self.0.pages(engine.pool.page_size()))
    }

    /// Frees its pages, which no snapshot can read.
    pub(crate) fn free_now(&self, engine: &Engine, applier: &Applier<'_>) -> Result<()> {
        self.free_later(engine, applier)?;
        applier.let_go(self.0.pages(engine.pool.page_size()));
        Ok(())
    }
}

/// The pages of a run.
pub(crate) fn pages(engine: &Engine, record: &[u8]) -> Result<impl Iterator<Item = PageId> + use<>> {
    Ok(Run::decode(record)?.pages(engine.pool.page_size()))
}

/// The length in bytes of the value that a large record stands for.
pub(crate) fn len(record: &[u8]) -> Result<u64> {
    Ok(Run::decode(record)?.len as u64)
}

/// Reads a run to its end, for its checksum only.
pub(crate) fn check(engine: &Engine, record: &[u8]) -> Result<()> {
    let mut reader = RunReader::new(engine, Run::decode(record)?);
    while reader.fill()? {
        reader.at = reader.page_payload().len();
    }
    Ok(())
}

/// Reads a run whole and checks it.
pub(crate) fn read(engine: &Engine, record: &[u8]) -> Result<Vec<u8>> {
    let run = Run::decode(record)?;
    // The length is from a page: memory is taken as the pages come, not on its word.
    let mut value = Vec::with_capacity(run.len.min(1 << 20));
    let mut reader = RunReader::new(engine, run);
    while reader.fill()? {
        value.extend_from_slice(reader.page_payload());
        reader.at = reader.page_payload().len();
    }
    Ok(value)
}

/// A large value, read as a stream, a page at a time.
pub(crate) struct RunReader<'e> {
    engine: &'e Engine,
    run: Run,
    pages: Box<dyn Iterator<Item = PageId> + Send>,
    page: Vec<u8>,
    at: usize,
    left: usize,
    checksum: u32,
}

impl<'e> RunReader<'e> {
    /// A reader of the value that a large record stands for.
    pub(crate) fn open(engine: &'e Engine, record: &[u8]) -> Result<RunReader<'e>> {
        Ok(RunReader::new(engine, Run::decode(record)?))
    }

    fn new(engine: &'e Engine, run: Run) -> RunReader<'e> {
        let pages = Box::new(run.pages(engine.pool.page_size()));
        RunReader { engine, run, pages, page: Vec::new(), at: 0, left: run.len, checksum: 0 }
    }

    /// The value's length in bytes.
    pub(crate) fn len(&self) -> u64 {
        self.run.len as u64
    }

    fn page_payload(&self) -> &[u8] {
        Page::new(&self.page).payload()
    }

    /// Makes sure that there are bytes to give; false at the end.
    fn fill(&mut self) -> Result<bool> {
        if self.at < self.page_payload().len() {
            return Ok(true);
        }
        if self.left == 0 {
            return Ok(false);
        }
        let bad = |page, what: &str| Err(Error::corrupt(page, format!("a large value {what}")));
        let Some(id) = self.pages.next() else { return bad(self.run.first, "longer than its run") };
        self.page.resize(self.engine.pool.page_size(), 0);
        match &self.engine.store {
            Some(store) if store.read(id, &mut self.page)?.is_none() => return bad(id, "misses this page"),
            Some(_) => {}
            None => self.page.copy_from_slice(&self.engine.pool.read(id)?),
        }
        self.at = 0;
        let payload = Page::new(&self.page).payload();
        if payload.is_empty() || payload.len() > self.left {
            return bad(id, "has another length than its run");
        }
        self.left -= payload.len();
        self.checksum = chained(self.checksum, payload);
        if self.left == 0 && self.checksum != self.run.checksum {
            return bad(self.run.first, "does not have its checksum");
        }
        Ok(true)
    }
}

impl Read for RunReader<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        if !self.fill().map_err(std::io::Error::other)? {
            return Ok(0);
        }
        let from = self.page_payload().get(self.at..).unwrap_or_default();
        let count = from.len().min(buf.len());
        let (Some(to), Some(from)) = (buf.get_mut(..count), from.get(..count)) else { return Ok(0) };
        to.copy_from_slice(from);
        self.at += count;
        Ok(count)
    }
}

/// Hands the value that `key` has at `snapshot` to `f`, large or not.
#[inline]
pub(crate) fn get_at<R>(
    engine: &Engine,
    tree: &Tree,
    key: &[u8],
    snapshot: Lsn,
    f: impl FnOnce(&[u8]) -> R,
) -> Result<Option<R>> {
    let mut f = Some(f);
    let mut large = None;
    let found = engine.get_at(tree, key, snapshot, |record| match record {
        Some(record) if record.large => {
            large = Some(record.bytes.to_vec());
            None
        }
        Some(record) => f.take().map(|f| f(record.bytes)),
        None => None,
    })?;
    match (large, f) {
        (Some(record), Some(f)) => Ok(Some(f(&read(engine, &record)?))),
        _ => Ok(found),
    }
}

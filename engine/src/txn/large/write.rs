//! Writes large values, and removes those that a transaction no longer needs.

use super::LargeRecord;
use crate::base::checksum::chained;
use crate::base::limits::{LARGE_RECORD, MAX_VALUE};
use crate::base::{Error, PageId, Result, TableId, bytes};
use crate::page::{run_capacity, run_page};
use crate::store::PlaceBytes;
use crate::txn::engine::Engine;
use crate::txn::space::page_ids::PageIds;
use crate::txn::space::unlogged::UNLOGGED_BATCH;
use crate::txn::versions::OwnedRecord;
use parking_lot::Mutex;
use std::io::{ErrorKind, Read};

/// The pages of a run that is being written. If the run is not completed, also because `input` panics, they are
/// released: the transaction may commit without this value, so it must not keep the pages.
struct NewRun<'e> {
    engine: &'e Engine,
    pages: Vec<(PageId, Option<PlaceBytes>)>,
}

impl Drop for NewRun<'_> {
    fn drop(&mut self) {
        let pages: Vec<PageId> = self.pages.drain(..).map(|(page, _)| page).collect();
        self.engine.release_pages(&pages);
    }
}

/// Writes `len` bytes from `input` to a new run. Its pages are added to `adopted`; they become part of the database
/// when the transaction commits. `adopted` is not locked while `input` is read.
///
/// # Errors
/// [`Error::ValueTooLong`]; [`Error::Full`]; errors of `input`.
pub(crate) fn write(
    engine: &Engine,
    adopted: &Mutex<Vec<(PageId, Option<PlaceBytes>)>>,
    table: TableId,
    len: u64,
    input: &mut dyn Read,
) -> Result<OwnedRecord> {
    let too_long = || Error::ValueTooLong { len, max: MAX_VALUE };
    let length = u32::try_from(len).map_err(|_| too_long())?;
    let page_size = engine.pool.page_size();
    let capacity = run_capacity(page_size);
    let count = (length as usize).div_ceil(capacity).max(1);
    let first = engine.ids.lock().take_run(count)?;
    let mut run = NewRun { engine, pages: PageIds::run(page_size, first).take(count).map(|id| (id, None)).collect() };
    let record = write_run(&mut run, table, length, input)?;
    adopted.lock().append(&mut run.pages);
    Ok(record)
}

/// Fills `buf` from the input of a large value. If the input is a value of a database, an error of the engine is
/// returned unchanged.
pub(crate) fn read_input(input: &mut dyn Read, buf: &mut [u8]) -> Result<()> {
    input.read_exact(buf).map_err(|source| {
        let source = match source.downcast::<Error>() {
            Ok(error) => return error,
            Err(source) => source,
        };
        let source = match source.kind() {
            kind @ ErrorKind::UnexpectedEof => {
                std::io::Error::new(kind, "the input ended before the given length of the value")
            }
            _ => source,
        };
        Error::Io { action: "cannot read", path: "the input of a large value".into(), source }
    })
}

fn write_run(run: &mut NewRun<'_>, table: TableId, length: u32, input: &mut dyn Read) -> Result<OwnedRecord> {
    let page_size = run.engine.pool.page_size();
    let capacity = run_capacity(page_size);
    let mut checksum = 0;
    let mut rest = length as usize;
    let mut payload = vec![0; capacity.min(rest)];
    let ids: Vec<PageId> = run.pages.iter().map(|(id, _)| *id).collect();
    let first = ids.first().copied().unwrap_or(PageId::NONE);
    let (mut ids, mut places, mut waiting) = (ids.into_iter().peekable(), 0.., Vec::new());
    while let Some(id) = ids.next() {
        payload.truncate(rest);
        read_input(input, &mut payload)?;
        rest -= payload.len();
        checksum = chained(checksum, &payload);
        let right = ids.peek().copied().unwrap_or(PageId::NONE);
        waiting.push((id, run_page(id, table, right, &payload)));
        if right.is_none() || waiting.len() * page_size >= UNLOGGED_BATCH {
            for (written, page) in run.engine.write_unlogged(&mut waiting)?.into_iter().zip(&mut places) {
                if let Some(page) = run.pages.get_mut(page) {
                    page.1 = written;
                }
            }
            waiting.clear();
        }
    }
    let mut record = [0; LARGE_RECORD];
    bytes::put_u32(&mut record, 0, first.0);
    bytes::put_u32(&mut record, 4, length);
    bytes::put_u32(&mut record, 8, checksum);
    Ok(OwnedRecord { bytes: record.as_slice().into(), large: true })
}

/// Removes a run that this transaction has written and no longer needs.
pub(crate) fn discard_run(engine: &Engine, adopted: &mut Vec<(PageId, Option<PlaceBytes>)>, record: &[u8]) {
    let Ok(run) = LargeRecord::decode(record) else { return };
    let pages: Vec<PageId> = run.pages(engine.pool.page_size()).collect();
    if let (Some(first), Some(last)) = (pages.first(), pages.last()) {
        adopted.retain(|(page, _)| page < first || page > last);
    }
    engine.release_pages(&pages);
}

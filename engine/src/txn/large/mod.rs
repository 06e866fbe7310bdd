//! Large values: runs of pages outside the tree and outside the log.
//!
//! The pages of a run have consecutive ids (without those of allocation maps), so freeing a run needs no reads. Each
//! page also names the next one. The pages are written and synced before the batch that points to them. The record in
//! the tree is `first page u32 | length u32 | checksum u32`.

mod free;
mod read;
mod write;

use super::engine::Engine;
use super::space::page_ids::PageIds;
use crate::base::limits::LARGE_RECORD;
use crate::base::{Error, PageId, Result, TableId, bytes};
use crate::page::{Record, run_capacity};
pub(super) use free::{run_to_remove, sound_run};
pub(crate) use read::{RunReader, check, read};
pub(crate) use write::{discard_run, read_input, write};

/// Length of a [`damaged_record`].
const DAMAGED_RECORD: usize = 8;

/// A large record, decoded.
#[derive(Clone, Copy)]
struct LargeRecord {
    first: PageId,
    len: usize,
    checksum: u32,
}

impl LargeRecord {
    fn decode(record: &[u8]) -> Result<LargeRecord> {
        let first = PageId(bytes::get_u32(record, 0));
        let page = if first.is_none() { PageId::UNKNOWN } else { first };
        if record.len() == DAMAGED_RECORD {
            let what =
                format!("a large value of table number {} is lost: its record was damaged", bytes::get_u32(record, 4));
            return Err(Error::corrupt(page, what));
        }
        if record.len() != LARGE_RECORD || first.is_none() {
            return Err(Error::corrupt(page, "a large record does not point to a run"));
        }
        let len = bytes::get_u32(record, 4) as usize;
        Ok(LargeRecord { first, len, checksum: bytes::get_u32(record, 8) })
    }

    fn pages(&self, page_size: usize) -> impl Iterator<Item = PageId> + use<> {
        let count = self.len.div_ceil(run_capacity(page_size)).max(1);
        PageIds::run(page_size, self.first).take(count)
    }
}

/// The before-image of a damaged large record. It has the page and the table for the error message, and no run that
/// could be freed.
pub(super) fn damaged_record(table: TableId, record: &[u8]) -> [u8; DAMAGED_RECORD] {
    let mut damaged = [0; DAMAGED_RECORD];
    bytes::put_u32(&mut damaged, 0, bytes::get_u32(record, 0));
    bytes::put_u32(&mut damaged, 4, table.0);
    damaged
}

/// The pages of a run.
pub(crate) fn pages(engine: &Engine, record: &[u8]) -> Result<impl Iterator<Item = PageId> + use<>> {
    Ok(LargeRecord::decode(record)?.pages(engine.pool.page_size()))
}

/// The length in bytes of the value of a record. For a damaged large record, whose length is unknown, it is 0.
pub(super) fn value_len(record: Record<'_>) -> u64 {
    if record.large { len(record.bytes).unwrap_or(0) } else { record.bytes.len() as u64 }
}

/// The first page of a large value.
pub(crate) fn first(record: &[u8]) -> Result<PageId> {
    Ok(LargeRecord::decode(record)?.first)
}

/// The length in bytes of a large value.
pub(crate) fn len(record: &[u8]) -> Result<u64> {
    Ok(LargeRecord::decode(record)?.len as u64)
}

//! The records of a batch: this layer's content of the log, which the log treats as opaque bytes.
//!
//! | kind of batch | payload |
//! |---|---|
//! | [`OPERATIONS`] | records, one after another |
//! | [`LOGICAL`] | a piece of a large transaction, see `logical.rs` |
//!
//! | tag | record |
//! |---|---|
//! | 1 | page id u32, then the page operation |
//! | 2 | page id u32, place of a page written outside the log: its length u8 and its bytes, which the store decodes |
//! | 3 | progress of a large transaction: number of steps done varint, 1 if that was the last step |

use crate::base::bytes::take;
use crate::base::{Error, Lsn, PageId, Result, varint};
use crate::page::PageOp;
use crate::store::PlaceBytes;

/// A batch of records.
pub(crate) const OPERATIONS: u8 = 1;
/// A piece of a large transaction's writes.
pub(crate) const LOGICAL: u8 = 2;

const TAG_OPERATION: u8 = 1;
const TAG_PLACE: u8 = 2;
const TAG_PROGRESS: u8 = 3;

/// One record, decoded.
#[derive(Debug)]
pub(crate) enum LogRecord<'a> {
    /// A change of one page.
    Operation { page: PageId, op: PageOp<'a> },
    /// The place of a page that was written outside the log.
    Place { page: PageId, place: PlaceBytes },
    /// The number of applied steps of a large transaction.
    Progress { done: u64, last: bool },
}

impl LogRecord<'_> {
    /// Appends the bytes of the record.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        match self {
            LogRecord::Operation { page, op } => encode_operation(*page, op, out),
            LogRecord::Place { page, place } => {
                out.push(TAG_PLACE);
                out.extend_from_slice(&page.0.to_le_bytes());
                place.encode(out);
            }
            LogRecord::Progress { done, last } => {
                out.push(TAG_PROGRESS);
                varint::push(out, *done);
                out.push(u8::from(*last));
            }
        }
    }

    /// Decodes one record at the front of a batch's payload and advances `input` after it.
    pub(crate) fn decode<'a>(input: &mut &'a [u8], lsn: Lsn) -> Result<LogRecord<'a>> {
        let bad = |what: &str| Error::CorruptLog { lsn, what: format!("a record {what}") };
        let tag = take(input, 1).and_then(<[u8]>::first).copied().ok_or_else(|| bad("without a tag"))?;
        let mut page_id = || {
            let bytes = take(input, 4).and_then(|bytes| bytes.try_into().ok())?;
            Some(PageId(u32::from_le_bytes(bytes)))
        };
        let truncated = |what: &str| bad(&format!("with a truncated {what}"));
        match tag {
            TAG_OPERATION => {
                let page = page_id().ok_or_else(|| truncated("page id"))?;
                Ok(LogRecord::Operation { page, op: PageOp::decode(input)? })
            }
            TAG_PLACE => {
                let page = page_id().ok_or_else(|| truncated("page id"))?;
                let place = PlaceBytes::take(input).ok_or_else(|| bad("with a malformed place"))?;
                Ok(LogRecord::Place { page, place })
            }
            TAG_PROGRESS => {
                let done = varint::take(input).ok_or_else(|| truncated("progress"))?;
                let last = take(input, 1).and_then(<[u8]>::first).ok_or_else(|| truncated("progress"))?;
                Ok(LogRecord::Progress { done, last: *last == 1 })
            }
            other => Err(bad(&format!("has the unknown tag {other}"))),
        }
    }
}

/// Appends the record of a page operation.
pub(crate) fn encode_operation(page: PageId, op: &PageOp<'_>, out: &mut Vec<u8>) {
    out.push(TAG_OPERATION);
    out.extend_from_slice(&page.0.to_le_bytes());
    op.encode(out);
}

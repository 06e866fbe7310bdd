//! The fixed-size record list: records of one length, without slots. Record i of size s ends i * s bytes before the
//! size field. The size field is a u16, the last field of the page. An empty list takes no bytes; the first record sets
//! the size.

use super::RecordState;
use crate::base::bytes;
use crate::page::check::cannot_hold;
use std::ops::Range;

/// Bytes of the size field.
const FIELD: usize = 2;

#[inline(always)]
fn stride(list: &[u8]) -> usize {
    list.last_chunk().map_or(0, |field| usize::from(u16::from_le_bytes(*field)))
}

/// Returns where the record of `slot` is; `None` if there is no such slot.
pub(super) fn range(list: &[u8], slot: usize) -> Option<Range<usize>> {
    let stride = stride(list);
    let from = list.len().checked_sub(FIELD + (slot + 1) * stride)?;
    Some(from..from + stride)
}

/// Returns the record of `slot` in a list of records of `stride` bytes; an empty slice if there is no such slot.
#[inline(always)]
pub(super) fn get_sized(list: &[u8], slot: usize, stride: usize) -> &[u8] {
    match list.len().checked_sub(FIELD + (slot + 1) * stride) {
        Some(from) => bytes::slice(list, from, from + stride),
        None => &[],
    }
}

#[inline(always)]
pub(super) fn get(list: &[u8], slot: usize) -> &[u8] {
    get_sized(list, slot, stride(list))
}

pub(super) fn check(list: &[u8], count: usize) -> Result<(), String> {
    let stride = stride(list);
    let expected = if count == 0 { 0 } else { FIELD + count * stride };
    if list.len() == expected {
        return Ok(());
    }
    Err(cannot_hold(list.len(), count, format_args!("records of {stride} bytes")))
}

/// Refuses a record whose length differs from that of the list's records.
pub(super) fn check_length(list: &[u8], record: &[u8]) -> Result<(), String> {
    let stride = stride(list);
    if record.len() == stride {
        return Ok(());
    }
    Err(format!("a record of {} bytes does not belong in a list of records of {stride}", record.len()))
}

pub(super) fn bytes_with(list: &[u8], state: RecordState, record: &[u8]) -> Result<usize, String> {
    if state.count > 0 {
        check_length(list, record)?;
    }
    Ok(FIELD + (state.count + 1) * record.len())
}

pub(super) fn insert(list: &mut [u8], state: RecordState, slot: usize, record: &[u8]) {
    let end = list.len() - FIELD.min(list.len());
    bytes::put_u16(list, end, bytes::u16_of(record.len()));
    let (above, below) = (end.saturating_sub(slot * record.len()), end.saturating_sub(state.count * record.len()));
    bytes::shift(list, below, above, below.saturating_sub(record.len()));
    bytes::put(list, above.saturating_sub(record.len()), record);
}

pub(super) fn replace(list: &mut [u8], slot: usize, record: &[u8]) {
    if let Some(at) = list.len().checked_sub(FIELD + (slot + 1) * record.len()) {
        bytes::put(list, at, record);
    }
}

pub(super) fn remove(list: &mut [u8], state: RecordState, from: usize, to: usize) -> usize {
    let stride = stride(list);
    let (len, left) = (list.len(), state.count - (to - from));
    let new = if left == 0 { 0 } else { FIELD + left * stride };
    let end = len.saturating_sub(FIELD);
    let (low, high) = (end.saturating_sub(state.count * stride), end.saturating_sub(to * stride));
    bytes::shift(list, low, high, low + (to - from) * stride);
    bytes::zero(list, 0, len.saturating_sub(new));
    new
}

/// A fixed-size record list under construction.
pub(crate) struct FixedRecordsBuilder {
    stride: usize,
    count: usize,
    /// The records in slot order; the finished list has them in reverse order.
    records: Vec<u8>,
}

impl FixedRecordsBuilder {
    /// Begins a list for a page of up to `bytes` bytes, most of which are keys.
    pub(super) fn new(bytes: usize) -> FixedRecordsBuilder {
        FixedRecordsBuilder { stride: 0, count: 0, records: Vec::with_capacity(bytes / 4) }
    }

    pub(super) fn bytes(&self) -> usize {
        if self.count == 0 { 0 } else { FIELD + self.records.len() }
    }

    pub(super) fn bytes_with(&self, record: &[u8]) -> Option<usize> {
        (self.count == 0 || record.len() == self.stride).then(|| FIELD + (self.count + 1) * record.len())
    }

    pub(super) fn push(&mut self, record: &[u8]) {
        self.stride = record.len();
        self.count += 1;
        self.records.extend_from_slice(record);
    }

    pub(super) fn finish(self, out: &mut Vec<u8>) {
        if self.count > 0 {
            for record in self.records.rchunks(self.stride.max(1)) {
                out.extend_from_slice(record);
            }
            out.extend_from_slice(&bytes::u16_of(self.stride).to_le_bytes());
        }
    }
}

//! The end of the current segment: writes, padding, and the space ahead of them.

use super::segment::{SEGMENT_HEADER, SegmentHeader};
use super::{DEVICE_BLOCK, LogShape};
use crate::base::{Error, Lsn, Result};
use crate::io::{Disk, WriteKind};
use std::sync::Arc;

/// Space is reserved in steps of this many bytes, if the device has it.
const RESERVE_STEP: u64 = 1 << 20;

/// The most zeros that are written ahead of the batches.
const FILL_STEP: u64 = 1 << 20;

/// The end of the current segment, and the segments before it.
#[derive(Debug)]
pub(super) struct Tail {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) header: SegmentHeader,
    /// The file offset of the next batch.
    pub(super) offset: u64,
    /// The checksum of the last batch.
    pub(super) chain: u32,
    /// Space is reserved up to this file offset: writes before it do not fail on a full device.
    reserved: u64,
    /// The file offset up to which the last caller of [`Log::reserve`] relies on the reservation.
    pub(super) promised: u64,
    pub(super) old_segments: Vec<OldSegment>,
    /// The end of the previous segment, until it and the header of this one are durable.
    pub(super) previous: Option<Box<Tail>>,
    /// The length of the file. After `offset` are zeros, or old bytes of an earlier segment.
    filled: u64,
    /// A buffer for a batch and the zeros after it.
    blocks: Vec<u8>,
}

/// A segment that gets no more batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct OldSegment {
    pub(super) number: u32,
    pub(super) end: Lsn,
    /// Bytes up to the end of its last batch; 0 if this log did not begin it.
    pub(super) len: u64,
    /// Its header, if this log began it.
    pub(super) begun: Option<SegmentHeader>,
    /// The recovery found it without a header.
    pub(super) cut: bool,
}

impl Tail {
    /// The end of a segment without batches. All of the first `filled` bytes of its file are allocated.
    pub(super) fn new(disk: Arc<dyn Disk>, header: SegmentHeader, filled: u64, old_segments: Vec<OldSegment>) -> Tail {
        let (chain, offset, blocks) = (header.chain, SEGMENT_HEADER, Vec::new());
        Tail {
            disk,
            header,
            offset,
            chain,
            reserved: filled,
            promised: 0,
            old_segments,
            previous: None,
            filled: filled.max(offset),
            blocks,
        }
    }

    /// Writes a batch at the end. In a sparse log the rest of its last block is written, too.
    ///
    /// A sync after a write that makes the file longer also has to write its length. Therefore such a write adds zeros,
    /// up to [`FILL_STEP`] of them, if there is reserved space for them and `are_synced_often`. A sparse log does not,
    /// because it would then write those blocks twice.
    pub(super) fn write(&mut self, batch: &[u8], are_synced_often: bool) -> Result<()> {
        let end = self.offset.saturating_add(batch.len() as u64);
        if self.header.shape == LogShape::Sparse {
            return self.write_up_to(batch, end.next_multiple_of(DEVICE_BLOCK));
        }
        if end > self.filled && are_synced_often {
            let ahead = end.saturating_add(end.min(FILL_STEP)).min(self.reserved);
            match self.write_up_to(batch, end.max(ahead.saturating_sub(ahead % DEVICE_BLOCK))) {
                // The file system does not keep reserved space. The batch alone may fit.
                Err(Error::Full { .. }) => {}
                written => return written,
            }
        }
        self.write_up_to(batch, end)
    }

    /// Writes a batch at the end and zeros after it, up to the file offset `whole`.
    fn write_up_to(&mut self, batch: &[u8], whole: u64) -> Result<()> {
        let end = self.offset.saturating_add(batch.len() as u64);
        let zeros = usize::try_from(whole.saturating_sub(end)).unwrap_or(0);
        if zeros == 0 {
            self.disk.write_as(WriteKind::Log, self.offset, batch)?;
        } else {
            self.blocks.clear();
            self.blocks.extend_from_slice(batch);
            self.blocks.resize(batch.len().saturating_add(zeros), 0);
            self.disk.write_as(WriteKind::Log, self.offset, &self.blocks)?;
        }
        self.offset = end;
        self.filled = self.filled.max(whole);
        Ok(())
    }

    /// Ends the bytes of the flush that begins: later batches belong to the next flush. A sparse log continues in the
    /// next block. It continues in the same block if the padding needs reserved space and the device has no other
    /// space. Returns the length of the padding.
    pub(super) fn end_flush(&mut self) -> u64 {
        let next = self.offset.next_multiple_of(DEVICE_BLOCK);
        if self.header.shape == LogShape::Packed || next == self.offset {
            return 0;
        }
        if self.promised > self.offset {
            let left = self.promised.saturating_sub(self.offset);
            if self.reserve_up_to(next.saturating_add(left)).is_err() {
                return 0;
            }
            self.promised = next.saturating_add(left);
        }
        next.saturating_sub(std::mem::replace(&mut self.offset, next))
    }

    /// Frees the space that is reserved after the end of the file.
    pub(super) fn give_back_reserved(&mut self) -> Result<()> {
        self.give_back_after(self.filled)
    }

    /// Frees the space after the file offset `end`, which is not before the end of the batches.
    pub(super) fn give_back_after(&mut self, end: u64) -> Result<()> {
        let end = end.max(self.offset);
        if self.reserved.max(self.filled) > end {
            self.reserved = end;
            self.filled = self.filled.min(end);
            self.disk.resize(self.filled)?;
        }
        Ok(())
    }

    /// Frees the space after the end of the log and after the reserved part of the file, if it is large.
    pub(super) fn give_back_rest(&mut self) -> Result<()> {
        let end = self.offset.max(self.promised).saturating_add(RESERVE_STEP);
        if self.filled > end { self.give_back_after(end) } else { Ok(()) }
    }

    pub(super) fn reserve(&mut self, bytes: u64) -> Result<()> {
        let end = self.offset.saturating_add(bytes);
        self.reserve_up_to(end)?;
        self.promised = end;
        Ok(())
    }

    fn reserve_up_to(&mut self, end: u64) -> Result<()> {
        if end > self.reserved {
            let generous = end.checked_next_multiple_of(RESERVE_STEP).unwrap_or(end);
            self.reserved = match self.disk.reserve(generous) {
                Err(Error::Full { .. }) => self.disk.reserve(end).map(|()| end)?,
                other => other.map(|()| generous)?,
            };
        }
        Ok(())
    }
}

//! Decides what the first invalid batch means: a torn tail, which was never acknowledged, or damage to acknowledged
//! batches.
//!
//! Each batch contains the durable LSN that was known when it was written. A valid header after the first invalid
//! batch, with a durable LSN beyond that batch, proves that the invalid batch had been synced. Batches that were never
//! synced cannot prove this of each other. Nothing in this file can prove it for the last durable batches, because no
//! later batch confirms them; the `known_durable` of [`super::read`] covers these.

use super::LogShape;
use super::batch::{BATCH_HEADER, BatchHeader};
use super::segment::{SEGMENT_HEADER, SegmentHeader};
use super::window::FileWindow;
use crate::base::{Lsn, Result, bytes};

const STEP: u64 = 64 * 1024;

/// The batch that should start at `lsn` is invalid. Searches a segment from `offset` on for a batch header whose
/// durable LSN is beyond `lsn`, and returns the start LSN of that later batch. Tries every byte offset once.
pub(super) fn find_later(
    window: &mut FileWindow,
    segment: &SegmentHeader,
    seed: u32,
    offset: u64,
    lsn: Lsn,
) -> Result<Option<Lsn>> {
    let mut at = offset;
    loop {
        let len = window.size().saturating_sub(at).min(STEP);
        if len < BATCH_HEADER as u64 {
            return Ok(None);
        }
        let block = window.get(at, usize::try_from(len).unwrap_or(0))?.unwrap_or_default();
        for (place, header) in (at..).zip(block.windows(BATCH_HEADER)) {
            let start = bytes::get_u64(header, 0);
            let furthest = segment.start.0.saturating_add(place.saturating_sub(SEGMENT_HEADER));
            let fits = match segment.shape {
                LogShape::Packed => start == furthest,
                LogShape::Sparse => start > lsn.0 && start <= furthest,
            };
            if fits && knows_beyond(header, segment.epoch, seed, lsn) {
                return Ok(Some(Lsn(start)));
            }
        }
        at = at.saturating_add(len).saturating_sub(BATCH_HEADER as u64 - 1);
    }
}

fn knows_beyond(header: &[u8], epoch: u32, seed: u32, lsn: Lsn) -> bool {
    BatchHeader::decode(header, seed).is_some_and(|header| header.epoch == epoch && header.durable > lsn)
}

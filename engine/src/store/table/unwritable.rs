//! Places that cannot be written. The allocator would choose the same lowest place again and again, so no checkpoint
//! could end. Such a place stays in use as long as the file is open, and the write is tried at other places.

use super::allocator::Fit;
use super::image::ImageBatch;
use super::place::{Extent, GRAIN};
use super::{BLOCK_GRAINS, TableStore};
use crate::base::{Error, Result};
use crate::io::WriteKind;

/// How often a write is tried. A recovery flushes once, so the first error must not end it.
const MAX_TRIES: u32 = 4;

/// The maximum number of grains that stay in use. If every write fails, the file must not grow with each of them.
const MAX_UNWRITABLE: u64 = (16 << 20) / GRAIN as u64;

impl TableStore {
    /// Takes places for images of `sizes` grains each, and writes the images there. On an error no place is taken.
    pub(super) fn write_to_new_places(&self, batch: &mut ImageBatch, sizes: &[u32]) -> Result<()> {
        self.with_other_places(|| {
            batch.set_places(&self.take_places(sizes, Fit::Next)?);
            let written = self.write_runs(WriteKind::Page, batch.runs());
            written.inspect_err(|_| self.release_unused(batch.locations().map(|(_, at)| at.place.extent())))
        })
    }

    /// Calls `write` again if a write fails. It must take new places each time, and must not sync.
    pub(super) fn with_other_places<R>(&self, mut write: impl FnMut() -> Result<R>) -> Result<R> {
        let mut tries = 1;
        loop {
            match write() {
                Err(error @ Error::Io { .. }) if tries < MAX_TRIES => {
                    tracing::warn!(%error, "a write of the file has failed; it is tried at another place");
                    tries += 1;
                }
                done => return done,
            }
        }
    }

    /// Notes that these bytes could not be written. What is free in the same blocks is not used either.
    pub(super) fn note_unwritable(&self, extent: Extent, error: &Error) {
        let mut space = self.space.lock();
        let noted: u64 = space.unwritable.iter().map(|extent| extent.grains).sum();
        if !matches!(error, Error::Io { .. }) || noted + extent.grains > MAX_UNWRITABLE {
            return;
        }
        space.unwritable.push(extent);
        let block = u64::from(BLOCK_GRAINS);
        let before = extent.first / block * block..extent.first;
        for first in before.chain(extent.end()..extent.end().next_multiple_of(block)) {
            if space.allocator.claim(Extent { first, grains: 1 }) {
                self.note_taken(&space, 1);
            }
        }
    }

    /// Frees places to which a write has failed, except for those that cannot be written.
    pub(super) fn release_unused(&self, places: impl Iterator<Item = Extent>) {
        let mut space = self.space.lock();
        for place in places {
            let is_noted = |bad: &Extent| bad.first <= place.first && place.end() <= bad.end();
            if !space.unwritable.iter().any(is_noted) {
                space.allocator.release(place);
            }
        }
    }
}

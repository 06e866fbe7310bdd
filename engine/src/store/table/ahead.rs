//! After a flush, writes the changed chunks of the page table at once, and not only at the next checkpoint. Recovery
//! does not need them: the superblock names the chunks of the last checkpoint. The next checkpoint takes over those
//! that have not changed again.
//!
//! Only [`Builder::persist_table`](crate::Builder::persist_table) turns this on, for comparisons of write
//! amplification. Images and chunks then take whole blocks of 4 KiB.

use super::allocator::Fit;
use super::encoding::{CHUNK_BYTES, CHUNK_PAGES};
use super::place::{Extent, Location, Place, grains_of};
use super::{BLOCK_GRAINS, TableStore};
use crate::base::checksum::checksum;
use crate::base::{PageId, Result};
use crate::io::{BLOCK, WriteKind};

impl TableStore {
    /// Writes the chunks that have these pages. If that fails, the next checkpoint writes them.
    pub(super) fn write_chunks_of(&self, pages: impl Iterator<Item = PageId>) {
        let mut chunks: Vec<usize> = pages.map(|id| id.0 as usize / CHUNK_PAGES).collect();
        chunks.sort_unstable();
        chunks.dedup();
        for index in chunks {
            if let Err(cause) = self.write_chunk(index) {
                tracing::debug!(%cause, index, "cannot write a part of the page table; the next checkpoint writes it");
                return;
            }
        }
    }

    /// Writes a chunk with zeros to the end of its block.
    fn write_chunk(&self, index: usize) -> Result<()> {
        let Some((bytes, version)) = self.state.lock().table.encode(index) else { return Ok(()) };
        let firsts = self.take_places(&[BLOCK_GRAINS], Fit::Lowest)?;
        let Some(first) = firsts.first().copied() else { return Ok(()) };
        let crc = checksum(&bytes);
        let mut block = bytes.into_vec();
        block.resize(BLOCK, 0);
        let written = self.write_runs(WriteKind::Table, std::iter::once((first, block.as_slice())));
        let grains = grains_of(CHUNK_BYTES);
        let location = Place::new(first, grains).map(|place| Location { place, crc });
        let kept = written.is_ok() && location.is_some_and(|at| self.state.lock().table.set_ahead(index, version, at));
        let kept_grains = if kept { grains } else { 0 };
        let unused = Extent { first: first + kept_grains, grains: u64::from(BLOCK_GRAINS) - kept_grains };
        self.release_unused(std::iter::once(unused));
        written
    }
}

//! Reads chunks of the page table when they are needed.
//!
//! The lock of the page table is not held while the device works. So an operation that needs a chunk that is not in
//! memory starts again after the chunk has been read.
//!
//! A third of the chunks stays in memory, 16 MiB of them, or 1/32 of the size of the cache, whichever is greatest; and
//! always those that have changed.

use super::encoding::{CHUNK_BYTES, CHUNK_PAGES, corrupt, corrupt_for, each_in_chunk};
use super::load::{EntryLimits, describe_chunk, describe_damage, log_damage, pages_of};
use super::page_table::{Missing, PageEntry};
use super::place::{Extent, Location, Place};
use super::space::Space;
use super::{PageTableState, TableStore};
use crate::base::checksum::checksum;
use crate::base::{Error, PageId, Result};
use std::ops::Range;

/// An error of the page table as one of a page whose place it hides.
fn of_page(id: PageId, error: Error) -> Error {
    match error {
        Error::CorruptMeta { why, .. } => corrupt_for(id, &why),
        other => other,
    }
}

impl TableStore {
    /// Calls `look` under the lock of the page table. If `look` misses a chunk, it must not have changed anything: the
    /// chunk is read, and `look` is called again.
    pub(super) fn with_chunks<R>(&self, mut look: impl FnMut(&mut PageTableState) -> Result<R, Missing>) -> Result<R> {
        loop {
            let looked = look(&mut self.state.lock());
            match looked {
                Ok(found) => return Ok(found),
                Err(missing) => self.load_chunk(missing)?,
            }
        }
    }

    /// The entry of a page in the page table; `None` without an image.
    pub(super) fn entry(&self, id: PageId) -> Result<Option<PageEntry>> {
        self.with_chunks(|state| state.table.get(id)).map_err(|error| of_page(id, error))
    }

    /// The location of a page's image; `None` without one.
    pub(crate) fn location(&self, id: PageId) -> Result<Option<Location>> {
        Ok(self.entry(id)?.map(|entry| entry.location))
    }

    /// Brings the chunks of these pages into memory.
    pub(super) fn load_chunks_of(&self, pages: impl Iterator<Item = PageId>) -> Result<()> {
        let mut last = None;
        for id in pages {
            let index = id.0 as usize / CHUNK_PAGES;
            if last.replace(index) != Some(index) {
                self.with_chunks(|state| state.table.check_present(id))?;
            }
        }
        Ok(())
    }

    /// Calls `visit` with the pages from `from` to before `to` that have an image, and with their places, chunk by
    /// chunk.
    pub(super) fn each_page(&self, from: PageId, to: PageId, mut visit: impl FnMut(PageId, Place)) -> Result<()> {
        for index in self.chunks_between(from, to) {
            for (id, place) in self.with_chunks(|state| state.table.pages_of(index))? {
                if (from.0..to.0).contains(&id.0) {
                    visit(id, place);
                }
            }
        }
        Ok(())
    }

    /// The pages from `from` to before `to` that have an image. If the opening has decoded the chunks, this reads none
    /// until the first checkpoint.
    pub(super) fn known_pages(&self, from: PageId, to: PageId) -> Result<Vec<PageId>> {
        let mut pages = Vec::new();
        for index in self.chunks_between(from, to) {
            pages.extend(self.with_chunks(|state| state.table.known_of(index))?);
        }
        pages.retain(|id| (from.0..to.0).contains(&id.0));
        Ok(pages)
    }

    /// The chunks that have pages from `from` to before `to`.
    fn chunks_between(&self, from: PageId, to: PageId) -> Range<usize> {
        let end = (to.0 as usize).div_ceil(CHUNK_PAGES).min(self.state.lock().table.chunks());
        from.0 as usize / CHUNK_PAGES..end
    }

    /// Reads a chunk, unless another thread has read it meanwhile.
    fn load_chunk(&self, missing: Missing) -> Result<()> {
        let mut bytes = vec![0; CHUNK_BYTES];
        let read = self.file.disk().read_at(missing.location.place.offset(), &mut bytes);
        let is_sound = checksum(&bytes) == missing.location.crc;
        let mut state = self.state.lock();
        if !state.table.misses(missing) {
            return Ok(());
        }
        read?;
        let chunks = missing.index..missing.index + 1;
        let decoded =
            if is_sound { self.decode(state.high_water, &chunks, &bytes) } else { Err(describe_damage(&chunks)) };
        match decoded {
            Ok(locations) => {
                state.table.load(missing, locations.into_iter());
                Ok(())
            }
            Err(why) => {
                let known = self.found_damage.lock().replace(why.clone());
                if known.as_ref() != Some(&why) {
                    log_damage(&why);
                }
                Err(corrupt(why))
            }
        }
    }

    /// The locations in a chunk and their numbers in it, or what is wrong with it.
    fn decode(&self, high_water: u32, chunk: &Range<usize>, bytes: &[u8]) -> Result<Vec<(usize, Location)>, String> {
        let (first, _) = pages_of(chunk);
        let limits = EntryLimits { high_water, longest_image: self.longest_image() };
        let mut locations = Vec::with_capacity(CHUNK_PAGES);
        // Places side by side, and the page that has the last of them. They are looked up together, which takes less
        // time.
        let mut runs: Vec<(Extent, PageId)> = Vec::new();
        let decoded = each_in_chunk(bytes, |slot, location| {
            let (id, extent) = (limits.check(first + slot, location)?, location.place.extent());
            match runs.last_mut().filter(|(run, _)| run.end() == extent.first) {
                Some((run, last)) => (run.grains, *last) = (run.grains + extent.grains, id),
                None => runs.push((extent, id)),
            }
            locations.push((slot, location));
            Ok(())
        });
        match decoded.and_then(|()| check_runs(&self.space.lock(), &mut runs)) {
            Ok(()) => Ok(locations),
            Err(Error::CorruptMeta { why, .. }) => Err(describe_chunk(chunk.start, &why)),
            Err(other) => Err(other.to_string()),
        }
    }
}

/// Checks the places of the images of one chunk. Every run of places must be in use in the free map, and no two runs
/// may overlap. Otherwise a write could overwrite the image of another page of the chunk, or free its place. Only
/// `check_places` finds a place that another chunk, or the page table itself, also uses.
fn check_runs(space: &Space, runs: &mut [(Extent, PageId)]) -> Result<()> {
    let wrong =
        |page: PageId, what: &str| Err(corrupt(format!("the place of page {page}, or the place next to it, {what}")));
    if let Some((_, page)) = runs.iter().find(|(run, _)| !space.allocator.is_used(*run)) {
        return wrong(*page, "is free in the free map");
    }
    runs.sort_unstable();
    let shared = runs.windows(2).find_map(|pair| match pair {
        [(one, _), (next, page)] if one.end() > next.first => Some(*page),
        _ => None,
    });
    shared.map_or(Ok(()), |page| wrong(page, "overlaps the place of another page"))
}

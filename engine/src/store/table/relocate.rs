//! Moves images towards the front of the file, and truncates the file. The layers above decide the steps of a
//! compaction.

use super::encoding::{CHUNK_BYTES, GROUP_CHUNKS};
use super::page_table::PageEntry;
use super::place::{Extent, GRAIN, Location, Place, grains_of};
use super::{PageTableState, ReadBuffer, TableStore};
use crate::base::{PageId, Result};
use crate::io::WriteKind;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::Ordering;

/// The most pages that one search of the page table returns. They are enough for several rounds of a compaction,
/// because a search reads the whole page table.
const GATHERED: usize = 1 << 18;

impl TableStore {
    /// Up to `most` pages with the highest places, the highest first. Pages inside the length that the file would have
    /// without free runs are left out.
    fn tail_pages(&self, most: usize) -> Result<Vec<PageId>> {
        let dense = self.space.lock().allocator.used();
        let mut highest = BinaryHeap::new();
        self.each_page(PageId(0), PageId(u32::MAX), |id, place| {
            if place.first() >= dense {
                highest.push(Reverse((place.first(), id)));
                if highest.len() > most {
                    highest.pop();
                }
            }
        })?;
        Ok(highest.into_sorted_vec().into_iter().map(|Reverse((_, id))| id).collect())
    }

    /// Moves the highest images to lower places. The next checkpoint also rewrites each chunk of the page table
    /// whose place is beyond the length of a file without free runs. A page does not move if no lower place is free for
    /// it. The places that become empty are free after the next checkpoint.
    ///
    /// `tail` has pages that an earlier call has found and not moved, the highest first. If none of them can move, the
    /// page table is searched again.
    pub(super) fn relocate(&self, tail: &mut Vec<PageId>, most: usize) -> Result<usize> {
        let mut moved = self.move_first(tail, most)?;
        if moved == 0 && most > 0 {
            *tail = self.tail_pages(GATHERED.max(most))?;
            moved = self.move_first(tail, most)?;
        }
        self.move_chunks()?;
        Ok(moved)
    }

    /// Moves the images of up to `most` of these pages. Removes from `tail` those that have moved or need not move.
    fn move_first(&self, tail: &mut Vec<PageId>, most: usize) -> Result<usize> {
        let dense = self.space.lock().allocator.used();
        let mut buffer = ReadBuffer::default();
        let (mut seen, mut moved, mut stay) = (0, 0, Vec::new());
        for &id in &*tail {
            if moved + stay.len() >= most {
                break;
            }
            seen += 1;
            if let Some(at) = self.location(id)?.filter(|at| at.place.first() >= dense) {
                // An image that is damaged stays: moving it would only hide what is wrong with it.
                let is_moved =
                    self.read_image(id, at, &mut buffer).is_ok() && self.move_image(id, at, &buffer.image)?;
                if is_moved {
                    moved += 1;
                } else {
                    stay.push(id);
                }
            }
        }
        tail.splice(..seen, stay);
        Ok(moved)
    }

    /// Allocates a place of the same length before `place`.
    fn take_lower(&self, place: Place) -> Option<Extent> {
        let mut space = self.space.lock();
        let lower = space.allocator.allocate_below(place.grains(), place.first());
        self.note_taken(&space, 1);
        lower
    }

    fn move_image(&self, id: PageId, at: Location, image: &[u8]) -> Result<bool> {
        let lower = self.take_lower(at.place);
        let Some(place) = lower.and_then(|extent| Place::new(extent.first, extent.grains)) else { return Ok(false) };
        let location = Location { place, crc: at.crc };
        let enter = |state: &mut PageTableState| {
            let unmoved = state.table.get(id)?.is_some_and(|entry| entry.location == at);
            let entry = Some(PageEntry { location, fresh: true, checked: false });
            if unmoved { state.replace(id, entry).map(Some) } else { Ok(None) }
        };
        let written = self.write_runs(WriteKind::Page, std::iter::once((place.first(), image)));
        let moved = written.and_then(|()| self.with_chunks(enter));
        match &moved {
            Ok(Some(replaced)) => self.free(replaced),
            _ => self.space.lock().allocator.release(place.extent()),
        }
        moved.map(|replaced| replaced.is_some())
    }

    /// Makes the next checkpoint write chunks and groups that are too far back to new places. It writes a group if one
    /// of the group's chunks is marked.
    fn move_chunks(&self) -> Result<()> {
        for index in self.chunks_to_move() {
            self.with_chunks(|state| state.table.mark_changed(index))?;
        }
        Ok(())
    }

    fn chunks_to_move(&self) -> Vec<usize> {
        let dense = self.space.lock().allocator.used() + grains_of(CHUNK_BYTES);
        let state = self.state.lock();
        let is_behind = |location: Option<Location>| location.is_some_and(|location| location.place.first() >= dense);
        let chunks = (0..state.table.chunks()).filter(|index| is_behind(state.table.chunk_location(*index)));
        let groups = (0..).zip(state.table.groups()).filter(|(_, group)| is_behind(**group));
        let of_groups = groups.filter_map(|(group, _)| {
            let first = state.table.chunk_locations_of(group).iter().position(Option::is_some)?;
            Some(group * GROUP_CHUNKS + first)
        });
        chunks.chain(of_groups).collect()
    }

    /// Truncates the file after its last used grain, but leaves room for this number of images. Places that wait for a
    /// checkpoint count as used.
    pub(super) fn shrink(&self, images: u64) -> Result<()> {
        let mut len = self.len.lock();
        let chunks = self.state.lock().table.chunks();
        let mut space = self.space.lock();
        let room = if images == 0 { 0 } else { self.places_for(chunks, images) * self.longest_image() };
        let end = (space.allocator.end() + room) * GRAIN as u64;
        if end < *len {
            space.allocator.trim();
            self.free_places.store(0, Ordering::Relaxed);
            drop(space);
            // A place allocated after this is beyond `end`, and its writer waits for the lock of `len`.
            self.file.disk().resize(end)?;
            *len = end;
        }
        Ok(())
    }
}

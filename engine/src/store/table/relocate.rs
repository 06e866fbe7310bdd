//! Moves images towards the front of the file, and truncates the file. The layers above decide the steps of a compaction.

use super::encoding::{CHUNK_BYTES, GROUP_CHUNKS};
use super::page_table::Entry;
use super::place::{GRAIN, Location, Place, grains_of};
use super::{ReadBuffer, TableStore};
use crate::base::{PageId, Result};
use crate::io::WriteKind;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

impl TableStore {
    /// Up to `most` pages with the highest places, the highest first. Pages inside the length that the file would have without
    /// free runs are left out.
    fn tail_pages(&self, most: usize) -> Vec<PageId> {
        let state = self.state.lock();
        let dense = state.allocator.used();
        let mut highest = BinaryHeap::new();
        state.table.each(|id, place| {
            if place.first() >= dense {
                highest.push(Reverse((place.first(), id)));
                if highest.len() > most {
                    highest.pop();
                }
            }
        });
        highest.into_sorted_vec().into_iter().map(|Reverse((_, id))| id).collect()
    }

    /// Moves the highest images to lower places. Makes the next checkpoint write the chunks of the page table again that are
    /// beyond the length of a file without free runs. A page that does not move has the lowest place that there is for it. The
    /// places that become empty are free after the next checkpoint.
    pub(super) fn relocate(&self, most: usize) -> Result<usize> {
        let mut buffer = ReadBuffer::default();
        let mut moved = 0;
        for id in self.tail_pages(most) {
            if let Some(at) = self.location(id) {
                // An image that is damaged stays: moving it would only hide what is wrong with it.
                if self.read_image(id, at, &mut buffer).is_ok() {
                    moved += usize::from(self.move_image(id, at, &buffer.image)?);
                }
            }
        }
        self.move_chunks();
        Ok(moved)
    }

    fn move_image(&self, id: PageId, at: Location, image: &[u8]) -> Result<bool> {
        let lower = self.state.lock().allocator.allocate_below(at.place.grains(), at.place.first());
        let Some(place) = lower.and_then(|extent| Place::new(extent.first, extent.grains)) else { return Ok(false) };
        let written = self.write_runs(WriteKind::Page, std::iter::once((place.first(), image)));
        let mut state = self.state.lock();
        let unmoved = state.table.get(id).is_some_and(|entry| entry.location == at);
        if written.is_ok() && unmoved {
            let location = Location { place, crc: at.crc };
            state.supersede(id, Some(Entry { location, fresh: true, checked: false }));
        } else {
            state.allocator.release(place.extent());
        }
        written.map(|()| unmoved)
    }

    /// A group moves with its chunks, of which one is enough.
    fn move_chunks(&self) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let dense = state.allocator.used() + grains_of(CHUNK_BYTES);
        let is_behind = |home: Option<Location>| home.is_some_and(|home| home.place.first() >= dense);
        for index in 0..state.table.chunks() {
            if is_behind(state.table.home(index)) {
                state.table.mark_changed(index);
            }
        }
        for group in 0..state.table.groups().len() {
            let first = state.table.homes_of(group).iter().position(Option::is_some);
            if let Some(first) = first.filter(|_| is_behind(state.table.groups().get(group).copied().flatten())) {
                state.table.mark_changed(group * GROUP_CHUNKS + first);
            }
        }
    }

    /// Truncates the file after its last used grain, but leaves room for this number of images. Places that wait for a
    /// checkpoint count as used.
    pub(super) fn shrink(&self, images: u64) -> Result<()> {
        let mut len = self.len.lock();
        let mut state = self.state.lock();
        let room = if images == 0 { 0 } else { self.places_for(&state, images) * self.longest_image() };
        let end = (state.allocator.end() + room) * GRAIN as u64;
        if end < *len {
            state.allocator.trim();
            drop(state);
            // A place allocated after this is beyond `end`, and its writer waits for the lock of `len`.
            self.file.disk().resize(end)?;
            *len = end;
        }
        Ok(())
    }
}

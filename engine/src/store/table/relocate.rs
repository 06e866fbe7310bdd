//! Moves images towards the front of the file, and truncates the file. The layers above decide the steps of a
//! compaction.

use super::encoding::{CHUNK_BYTES, GROUP_CHUNKS};
use super::page_table::PageEntry;
use super::place::{Extent, GRAIN, Location, Place, grains_of};
use super::region::REGION;
use super::rescue::images_in;
use super::space::Space;
use super::{PageTableState, TableStore};
use crate::base::bytes::slice;
use crate::base::{PageId, Result};
use crate::io::{WriteKind, read_readable_parts};
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;

/// A relocation may read this number of regions more than twice as many as the images to be moved fill. Without them,
/// a small relocation might find no image that can move.
const EXTRA_REGIONS: u64 = 4;
/// The limit of moved chunks of the page table is never less than this number.
const MIN_CHUNKS: usize = 256;

/// A checkpoint cuts off the free end of the file if the end has at least the bytes of the file divided by
/// `CUT_DIVISOR`, and at least `MIN_CUT` bytes. Smaller ends are not worth the change of the file's length, which the
/// next sync must write.
const CUT_DIVISOR: u64 = 32;
const MIN_CUT: u64 = 4 << 20;

/// When the file is truncated, free places stay at its end beside the promised room, so that the file need not grow
/// again at once. They take the bytes of the file divided by `SPARE_DIVISOR`, but there are at least `MIN_SPARE` of
/// them. That is enough for a transaction that only removes entries.
const SPARE_DIVISOR: u64 = 64;
pub(super) const MIN_SPARE: u64 = 64;

impl TableStore {
    /// Moves up to `most` images from byte `from` of the file on, the highest first, to lower places. The next
    /// checkpoint also moves chunks and groups of the page table that are there, for at most `most` or [`MIN_CHUNKS`]
    /// chunks, whichever is more. A page does not move if no lower place is free for it. The places that become empty
    /// are free after the next checkpoint.
    ///
    /// Each image contains its page id. So this reads the file from its end, and no more of the page table than the
    /// entries of the pages that are there. It reads at most twice the bytes of `most` longest images, and
    /// [`EXTRA_REGIONS`], even if fewer images can move.
    pub(super) fn relocate(&self, from: u64, most: usize) -> Result<usize> {
        let first = from / GRAIN as u64;
        let (mut moved, mut piece) = (0, Vec::new());
        for part in self.used_regions(first, most) {
            if moved >= most {
                break;
            }
            moved += self.move_from(part, first, most - moved, &mut piece)?;
        }
        self.move_chunks(first, most)?;
        Ok(moved)
    }

    /// The last regions of the file that have a used grain at `first` or after it, the last one first: at most
    /// [`EXTRA_REGIONS`] more than twice as many as `most` images fill.
    fn used_regions(&self, first: u64, most: usize) -> Vec<Extent> {
        let len = *self.len.lock() / GRAIN as u64;
        let region = u64::from(REGION);
        let enough = EXTRA_REGIONS + most as u64 * self.longest_image() * 2 / region;
        let space = self.space.lock();
        let regions = space.allocator.regions_from(first / region).rev().map(|index| index * region);
        let parts = regions.map(|start| Extent { first: start, grains: region.min(len.saturating_sub(start)) });
        parts.take(usize::try_from(enough).unwrap_or(usize::MAX)).collect()
    }

    /// Moves up to `most` images of a part of the file, the highest first: those at grain `first` or after it.
    fn move_from(&self, part: Extent, first: u64, most: usize, piece: &mut Vec<u8>) -> Result<usize> {
        piece.resize(usize::try_from(part.len()).unwrap_or(0), 0);
        // An image that cannot be read cannot move. Reading the page reports it.
        read_readable_parts(self.file.disk(), part.offset(), piece);
        let found: Vec<(PageId, Location)> =
            images_in(piece, part.offset(), self.file.page_size()).map(|(id, at, _)| (id, at)).collect();
        let mut moved = 0;
        for (id, at) in found.into_iter().rev().filter(|(_, at)| at.place.first() >= first) {
            if moved >= most {
                break;
            }
            if !self.space.lock().allocator.is_used(at.place.extent()) {
                continue;
            }
            // The page may have another image, and the place may be longer than its image.
            let is_here = |now: &Location| now.place.first() == at.place.first() && now.crc == at.crc;
            let Some(at) = self.location(id)?.filter(is_here) else { continue };
            let start = usize::try_from(at.place.offset() - part.offset()).unwrap_or(usize::MAX);
            let image = slice(piece, start, start.saturating_add(at.place.len()));
            if image.len() == at.place.len() && self.move_image(id, at, image)? {
                moved += 1;
            }
        }
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
            Ok(Some(change)) => self.free(change),
            _ => self.release_unused(std::iter::once(place.extent())),
        }
        moved.map(|change| change.is_some())
    }

    /// Marks chunks, so that the next checkpoint writes them and their groups to new places: the chunks from grain
    /// `first` on, and one chunk of each group that is there. It marks at most `most` or [`MIN_CHUNKS`] chunks,
    /// whichever is more.
    fn move_chunks(&self, first: u64, most: usize) -> Result<()> {
        for index in self.chunks_from(first + grains_of(CHUNK_BYTES)).into_iter().take(most.max(MIN_CHUNKS)) {
            self.with_chunks(|state| state.table.mark_changed(index))?;
        }
        Ok(())
    }

    fn chunks_from(&self, first: u64) -> Vec<usize> {
        let state = self.state.lock();
        let is_after = |location: Option<Location>| location.is_some_and(|location| location.place.first() >= first);
        let chunks = (0..state.table.chunks()).filter(|index| is_after(state.table.chunk_location(*index)));
        let groups = (0..).zip(state.table.groups()).filter(|(_, group)| is_after(**group));
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
        let chunks = self.state.lock().chunk_counts();
        let mut space = self.space.lock();
        let places = if images == 0 { 0 } else { self.places_for(chunks, images) };
        let end = space.allocator.end_with(places) * GRAIN as u64;
        if end < *len {
            self.free_places.store(0, Ordering::Relaxed);
            self.truncate(&mut len, space, end)?;
        }
        Ok(())
    }

    /// Truncates the file if a large part at its end is free, but leaves the room that commits were promised. Call it
    /// after a checkpoint. Commits may run.
    pub(super) fn cut_free_end(&self) {
        let most = self.most_promised.swap(0, Ordering::Relaxed).max(self.promised.load(Ordering::Relaxed));
        if most == 0 {
            // No commit has asked for room yet: a recovery may be running.
            return;
        }
        let mut len = self.len.lock();
        let chunks = self.state.lock().chunk_counts();
        let mut space = self.space.lock();
        let spare = (*len / SPARE_DIVISOR / GRAIN as u64 / self.longest_image()).max(MIN_SPARE);
        let end = space.allocator.end_with(self.places_for(chunks, most) + spare);
        if *len < end * GRAIN as u64 + (*len / CUT_DIVISOR).max(MIN_CUT) {
            return;
        }
        let places = space.allocator.longest_places(end);
        self.free_places.store(places, Ordering::SeqCst);
        // A commit may have found more places before: see `ensure_room`.
        if self.places_for(chunks, self.promised.load(Ordering::SeqCst)) > places {
            return;
        }
        if let Err(cause) = self.truncate(&mut len, space, end * GRAIN as u64) {
            tracing::warn!(%cause, path = %self.file.path().display(), "the free end of the file could not be cut off");
        }
    }

    /// Makes the file `end` bytes long. Nothing after that may be in use.
    fn truncate(&self, len: &mut u64, mut space: MutexGuard<'_, Space>, end: u64) -> Result<()> {
        space.allocator.trim();
        drop(space);
        // A place that is allocated from here on may be beyond `end`: its writer waits for the lock of `len`.
        self.file.disk().resize(end)?;
        self.cannot_grow.store(false, Ordering::Relaxed);
        *len = end;
        Ok(())
    }
}

//! The space of the file: the free map, and the places that are free after a checkpoint.

use super::allocator::PlaceAllocator;
use super::image::IMAGE_HEADER;
use super::page_table::PageEntry;
use super::place::{Extent, Location, grains_of};
use std::collections::BTreeMap;

/// The state that the lock of the space guards. A thread that takes this lock and the lock of the page table takes the
/// latter first.
pub(super) struct Space {
    pub(super) allocator: PlaceAllocator,
    /// Superseded since the last checkpoint began.
    pub(super) freed_at_next_checkpoint: Vec<Extent>,
    /// Grains of these.
    pub(super) superseded: u64,
    /// Superseded before the last checkpoint began, which is not durable yet.
    pub(super) freed_at_this_checkpoint: Vec<Extent>,
    /// Places that records of the log name and that are not installed yet; only during recovery.
    pub(super) reserved: BTreeMap<u64, Extent>,
    /// Could not be written. They stay in use as long as the file is open.
    pub(super) unwritable: Vec<Extent>,
}

/// The change of an entry of the page table.
pub(super) struct EntryChange {
    /// The entry before it.
    pub(super) old: Option<PageEntry>,
    /// The new entry.
    pub(super) new: Option<PageEntry>,
    /// The location at which the chunk of the entry was written ahead of the next checkpoint.
    pub(super) ahead: Option<Location>,
}

impl Space {
    /// The space of a file in which nothing is used yet.
    pub(super) fn new(page_size: usize) -> Space {
        let longest_image = u32::try_from(grains_of(page_size + IMAGE_HEADER)).unwrap_or(u32::MAX);
        Space {
            allocator: PlaceAllocator::new(longest_image),
            freed_at_next_checkpoint: Vec::new(),
            superseded: 0,
            freed_at_this_checkpoint: Vec::new(),
            reserved: BTreeMap::new(),
            unwritable: Vec::new(),
        }
    }

    /// Frees the place that a new entry has replaced, as early as is safe.
    pub(super) fn free(&mut self, change: &EntryChange) {
        if let Some(ahead) = change.ahead {
            self.allocator.release(ahead.place.extent());
        }
        let Some(old) = change.old else { return };
        let place = old.location.place;
        match old.fresh {
            _ if change.new.is_some_and(|new| new.location.place == place) => {}
            true => self.allocator.release(place.extent()),
            false => {
                self.superseded += place.grains();
                self.freed_at_next_checkpoint.push(place.extent());
            }
        }
    }

    /// The superseded places wait for the checkpoint that begins now. Call it under the lock under which the page table
    /// is captured: a place that is superseded after the capture must wait for the next checkpoint.
    pub(super) fn begin_checkpoint(&mut self) {
        self.freed_at_this_checkpoint.append(&mut self.freed_at_next_checkpoint);
        self.freed_at_this_checkpoint.extend(std::mem::take(&mut self.reserved).into_values());
        self.superseded = 0;
    }
}

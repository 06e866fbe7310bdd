//! Space in the file. The file grows only with space reserved on the device for its whole length, so that no write into
//! it fails on a full device. Places are allocated inside the file; the allocator chooses them.

use super::allocator::Fit;
use super::encoding::{CHUNK_BYTES, CHUNK_PAGES, GROUP_BYTES, GROUP_CHUNKS};
use super::image::IMAGE_HEADER;
use super::place::{Extent, GRAIN, Location, grains_of};
use super::region::REGION;
use super::space::Space;
use super::{ChunkCounts, TableStore};
use crate::base::{Error, Result};
use crate::store::compress::{DICTIONARY_BYTES, POLICY_BYTES};
use std::sync::atomic::Ordering;

/// The file grows by its length divided by [`GROWTH_DIVISOR`], but by at least and at most these numbers of bytes.
const GROWTH: std::ops::RangeInclusive<u64> = 1 << 20..=64 << 20;
const GROWTH_DIVISOR: u64 = 32;

/// Bytes of the file in a region of the free map.
const REGION_LEN: u64 = REGION as u64 * GRAIN as u64;

/// Threads that write a chunk of the page table at the same time, at the most; more find less room than was promised.
const MAX_THREADS: u64 = 64;

impl TableStore {
    fn full(&self) -> Error {
        Error::Full { path: self.file.path().to_owned() }
    }

    /// Grains of the longest image.
    pub(super) fn longest_image(&self) -> u64 {
        grains_of(self.file.page_size() + IMAGE_HEADER)
    }

    /// Makes the file exactly so long that `extent` is in it, or leaves it as it is if it is longer.
    pub(super) fn reach(&self, extent: Extent) -> Result<()> {
        let mut len = self.len.lock();
        let needed = extent.offset() + extent.len();
        if *len < needed {
            self.file.disk().reserve(needed)?;
            self.file.disk().resize(needed)?;
            *len = needed;
        }
        Ok(())
    }

    /// Makes the file at least this long, with space on the device for all of it.
    fn grow(&self, needed: u64) -> Result<()> {
        let mut len = self.len.lock();
        if *len < needed {
            // Whole regions, so that `longest_places` has no part of a region to look at.
            let generous =
                (needed + (*len / GROWTH_DIVISOR).clamp(*GROWTH.start(), *GROWTH.end())).next_multiple_of(REGION_LEN);
            let reserved = match self.file.disk().reserve(generous) {
                Err(Error::Full { .. }) => self.file.disk().reserve(needed).map(|()| needed),
                reserved => reserved.map(|()| generous),
            };
            self.cannot_grow.store(matches!(reserved, Err(Error::Full { .. })), Ordering::Relaxed);
            let target = reserved?;
            self.file.disk().resize(target)?;
            *len = target;
        }
        Ok(())
    }

    /// Makes sure that the file has room for this number of images of any length, and for the page table after them.
    /// The file grows if it must.
    ///
    /// # Errors
    /// [`Error::Full`]; nothing is reserved then.
    pub(super) fn ensure_room(&self, images: u64) -> Result<()> {
        self.most_promised.fetch_max(images, Ordering::Relaxed);
        // Each commit comes here. Most find enough places without the lock, which the writers of pages use. The promise
        // is stored before the places are read, and `cut_free_end` stores the places before it reads the promise. So
        // one of the two sees the other.
        self.promised.store(images, Ordering::SeqCst);
        if self.places_for(self.chunk_counts(), images) <= self.free_places.load(Ordering::SeqCst) {
            return Ok(());
        }
        loop {
            let (len, missing) = {
                // The file must not be truncated between the count and its storing.
                let len = self.len.lock();
                let chunks = {
                    let state = self.state.lock();
                    self.pass_on_counts(&state);
                    state.chunk_counts()
                };
                let mut space = self.space.lock();
                let free = space.allocator.longest_places(*len / GRAIN as u64);
                self.free_places.store(free, Ordering::Relaxed);
                (*len, self.places_for(chunks, images).saturating_sub(free))
            };
            if missing == 0 {
                return Ok(());
            }
            // A place must not cross the border of two regions, so one round may not be enough.
            self.grow(len + missing * self.longest_image() * GRAIN as u64)?;
        }
    }

    /// Notes that places were allocated that take at most this number of places of the greatest length, if each begins
    /// where a free run begins. The caller still has the lock under which it has allocated them.
    pub(super) fn note_taken(&self, _: &Space, places: u64) {
        let places = places * self.most_lost();
        let left = self.free_places.load(Ordering::Relaxed).saturating_sub(places);
        self.free_places.store(left, Ordering::Relaxed);
    }

    /// The most places of the greatest length that one allocation of at most that length uses up. One that begins at a
    /// multiple of a block can leave too little on both sides.
    fn most_lost(&self) -> u64 {
        if self.persists.load(Ordering::Relaxed) { 2 } else { 1 }
    }

    /// The places needed for this number of images of the greatest length, and for the page table after them, which has
    /// these numbers of chunks now.
    pub(super) fn places_for(&self, ChunkCounts { all, unwritten }: ChunkCounts, images: u64) -> u64 {
        let chunks = all as u64 + images / CHUNK_PAGES as u64 + 1;
        // Each image may be of another chunk. The images of the other chunks are written already.
        let most_written = unwritten as u64 + images;
        let policies = self.compression.policy_count() * POLICY_BYTES;
        let dictionaries = self.compression.dictionaries().len() * DICTIONARY_BYTES;
        let groups = chunks.div_ceil(GROUP_CHUNKS as u64);
        let directory = (groups * Location::BYTES as u64 + (policies + dictionaries) as u64).div_ceil(GRAIN as u64);
        let longest_place = self.longest_image();
        let in_place = |bytes| (longest_place / grains_of(bytes)).max(1);
        let (chunks_in_place, groups_in_place, others) = match self.persists.load(Ordering::Relaxed) {
            // Chunks are written one by one, some by several threads at once.
            true => (1, 1, MAX_THREADS),
            false => (in_place(CHUNK_BYTES), in_place(GROUP_BYTES), 0),
        };
        let table =
            chunks.min(most_written).div_ceil(chunks_in_place) + groups.min(most_written).div_ceil(groups_in_place);
        (images + table + directory.div_ceil(longest_place) + others) * self.most_lost()
    }

    /// Allocates places for images of `sizes` grains each (at most a region each) inside the file, which grows if it
    /// can; otherwise its free runs are filled one by one. Returns the first grains. On an error nothing is allocated.
    pub(super) fn take_places(&self, sizes: &[u32], fit: Fit) -> Result<Vec<u64>> {
        let mut firsts = Vec::with_capacity(sizes.len());
        // On a full device another run beyond the end would only fail again.
        let end = if self.cannot_grow.load(Ordering::Relaxed) { *self.len.lock() / GRAIN as u64 } else { u64::MAX };
        while let Some(rest) = sizes.get(firsts.len()..).filter(|rest| !rest.is_empty()) {
            // The lock is released after each run, so that reads and commits do not wait for the whole batch.
            let mut space = self.space.lock();
            let allocated = space.allocator.allocate_run(rest, fit, end, &mut firsts);
            self.note_taken(&space, (rest.len() + firsts.len()).saturating_sub(sizes.len()) as u64);
            drop(space);
            if !allocated {
                self.give_back(&firsts, sizes);
                return Err(self.full());
            }
        }
        let end = firsts.iter().zip(sizes).map(|(first, size)| first + u64::from(*size)).max().unwrap_or(0);
        let Err(error) = self.grow(end * GRAIN as u64) else { return Ok(firsts) };
        self.give_back(&firsts, sizes);
        if !matches!(error, Error::Full { .. }) {
            return Err(error);
        }
        firsts.clear();
        for &size in sizes {
            let Some(extent) = self.take_free_run(u64::from(size)) else {
                self.give_back(&firsts, sizes);
                return Err(error);
            };
            firsts.push(extent.first);
        }
        Ok(firsts)
    }

    /// Allocates `grains` in one piece, maybe beyond the end of the file. `None` if the file cannot be so long.
    pub(super) fn allocate(&self, grains: u64) -> Option<Extent> {
        let mut space = self.space.lock();
        let extent = space.allocator.allocate(grains);
        self.note_taken(&space, grains.div_ceil(self.longest_image()));
        extent
    }

    /// Allocates `grains` in one piece inside the file, in the same way as [`TableStore::take_places`].
    pub(super) fn take_extent(&self, grains: u64) -> Result<Extent> {
        let extent = self.allocate(grains).ok_or_else(|| self.full())?;
        let Err(error) = self.grow(extent.end() * GRAIN as u64) else { return Ok(extent) };
        self.space.lock().allocator.release(extent);
        match error {
            Error::Full { .. } => self.take_free_run(grains).ok_or(error),
            other => Err(other),
        }
    }

    /// The lowest free run of that length inside the file as it is.
    fn take_free_run(&self, grains: u64) -> Option<Extent> {
        let end = *self.len.lock() / GRAIN as u64;
        let allocator = &mut self.space.lock().allocator;
        self.free_places.store(0, Ordering::Relaxed);
        allocator.allocate_below(grains, end).or_else(|| allocator.allocate_unaligned_below(grains, end))
    }

    fn give_back(&self, firsts: &[u64], sizes: &[u32]) {
        let mut space = self.space.lock();
        for (&first, &size) in firsts.iter().zip(sizes) {
            space.allocator.release(Extent { first, grains: u64::from(size) });
        }
    }
}

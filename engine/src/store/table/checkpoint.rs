//! Making the page table durable: freeze it, write what changed to new places, swap the superblock. When to do so, and
//! what must have been flushed before, is for the layers above.
//!
//! What the last durable superblock reaches is never overwritten: a place superseded since then is in quarantine, and
//! leaves it only when a later superblock is durable. A checkpoint that fails half way changes nothing of that: what
//! it captured is captured again by the next, and if it is unknown which superblock the device has, then both page
//! tables stay whole.

use super::page_table::{CHUNK_BYTES, CHUNK_PAGES, Captured, encode_directory};
use super::place::{Extent, GRAIN, Location, Place, grains_of};
use super::{State, TableStore};
use crate::base::checksum::checksum;
use crate::base::{Error, Result};
use crate::store::superblock::{Meta, SUPERBLOCK, Superblock};
use std::sync::atomic::Ordering;

/// The page table as it was at a freeze: the chunks that changed since the last durable checkpoint.
pub struct Frozen {
    chunks: Vec<Captured>,
    freeze: u64,
}

/// What one checkpoint has written.
struct Written {
    /// The new places of the captured chunks, in their order; `None` for those without any image.
    homes: Vec<Option<Location>>,
    directory: Extent,
    directory_len: u64,
    directory_crc: u32,
}

impl TableStore {
    /// Captures the page table as it is now; call it between two batches. It copies the changed chunks (3 KiB for 256
    /// pages) and writes nothing. Only the newest freeze can be finished.
    pub fn freeze(&self) -> Frozen {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        for index in std::mem::take(&mut state.captured) {
            state.table.mark_changed(index);
        }
        let chunks = state.table.capture();
        state.captured = chunks.iter().map(|chunk| chunk.index).collect();
        state.frozen.append(&mut state.quarantine);
        state.frozen.extend(std::mem::take(&mut state.reserved).into_values());
        state.freezes += 1;
        Frozen { chunks, freeze: state.freezes }
    }

    /// Makes a frozen page table durable, with `meta` as the superblock's: writes chunks and directory, syncs (all
    /// images written before are durable then, too), writes the superblock, syncs, and lets the places go that were
    /// superseded before the freeze.
    ///
    /// On an error the last durable checkpoint stands and a new freeze may be tried, unless a sync failed.
    pub fn finish(&self, frozen: Frozen, meta: Meta) -> Result<()> {
        let mut current = self.current.lock();
        self.check_failed()?;
        if self.state.lock().freezes != frozen.freeze {
            return Err(Error::Poisoned { cause: "a checkpoint was overtaken by a newer one".into() });
        }
        let mut taken = Vec::new();
        let written = self.write_table(&frozen, &mut taken).and_then(|written| {
            self.sync()?;
            Ok(written)
        });
        let written = match written {
            Ok(written) => written,
            Err(error) => {
                let mut state = self.state.lock();
                taken.into_iter().for_each(|extent| state.allocator.release(extent));
                return Err(error);
            }
        };
        let next = Superblock {
            meta,
            sequence: 0,
            directory_first: written.directory.first,
            directory_len: written.directory_len,
            directory_crc: written.directory_crc,
        };
        let before = current.superblock.directory();
        if let Err(error) = self.write_superblock(&mut current, next) {
            // The device may have it or not: nothing may overwrite what it leads to.
            self.state.lock().quarantine.append(&mut taken);
            return Err(error);
        }
        self.conclude(&frozen, &written, before);
        Ok(())
    }

    /// Writes a superblock over the page table that is durable already: to mark a clean database as in use, or the
    /// other way round. Returns once it is durable.
    pub fn write_meta(&self, meta: Meta) -> Result<()> {
        let mut current = self.current.lock();
        self.check_failed()?;
        let next = Superblock { meta, ..current.superblock };
        self.write_superblock(&mut current, next)
    }

    /// Makes the superblock that was chosen at opening durable. Call it before anything else is written.
    ///
    /// It may be in the system's cache alone: the process that wrote it was killed before it had synced, or its sync has
    /// failed, and then no sync will write it any more. So it is written again, with the same bytes, to its own slot, and
    /// synced. What it leads to is durable: that was synced before it was written. Until this returns the device may
    /// choose the other superblock, so nothing that one leads to may be overwritten, nor its slot, nor its log removed.
    pub fn secure(&self) -> Result<()> {
        let current = self.current.lock();
        self.check_failed()?;
        self.disk.write_at((current.slot * SUPERBLOCK) as u64, &current.superblock.encode())?;
        self.sync()
    }

    /// Sees to it that both superblocks know of every page below `high`, as far as the log, which is going to name them,
    /// needs that: see [`ID_SLACK`](crate::store::superblock::ID_SLACK).
    ///
    /// # Errors
    /// Errors of writing: the log must not name them then.
    pub fn make_known(&self, high: u32) -> Result<()> {
        while high > self.ids_known() {
            let mut current = self.current.lock();
            self.check_failed()?;
            self.raised.fetch_max(high, Ordering::AcqRel);
            let next = current.superblock;
            self.write_superblock(&mut current, next)?;
        }
        Ok(())
    }

    /// Writes to the slot whose superblock is the older one.
    fn write_superblock(&self, current: &mut super::Current, mut next: Superblock) -> Result<()> {
        let slot = 1 - current.slot.min(1);
        // A checkpoint has read the high water before it came here.
        next.meta.high_water = next.meta.high_water.max(self.raised.load(Ordering::Acquire));
        // The sequence moves on even if this fails: the next try goes to the same slot and must outdo this one.
        current.superblock.sequence += 1;
        let next = Superblock { sequence: current.superblock.sequence, ..next };
        self.disk.write_at((slot * SUPERBLOCK) as u64, &next.encode())?;
        self.sync()?;
        let both = next.meta.high_water.min(current.superblock.meta.high_water);
        self.high_water.store(both, Ordering::Release);
        current.superblock = next;
        current.slot = slot;
        current.other_damaged = false;
        Ok(())
    }

    /// Writes the captured chunks and a directory that leads to them; `taken` are the places used.
    fn write_table(&self, frozen: &Frozen, taken: &mut Vec<Extent>) -> Result<Written> {
        let grains = grains_of(CHUNK_BYTES);
        let count = frozen.chunks.iter().filter(|chunk| chunk.bytes.is_some()).count();
        let firsts = self.take_places(&vec![u32::try_from(grains).unwrap_or(u32::MAX); count])?;
        taken.extend(firsts.iter().map(|&first| Extent { first, grains }));
        let mut firsts = firsts.into_iter();
        let homes: Vec<Option<Location>> = frozen
            .chunks
            .iter()
            .map(|chunk| {
                let bytes = chunk.bytes.as_deref()?;
                Some(Location { place: Place::new(firsts.next()?, grains)?, crc: checksum(bytes) })
            })
            .collect();
        let mut padded = directory(&self.state.lock(), frozen, &homes);
        let (directory_len, directory_crc) = (padded.len() as u64, checksum(&padded));
        let mut directory = Extent::default();
        if !padded.is_empty() {
            directory = self.take_extent(grains_of(padded.len()))?;
            taken.push(directory);
        }
        padded.resize(padded.len().next_multiple_of(GRAIN), 0);
        let images = frozen
            .chunks
            .iter()
            .zip(&homes)
            .filter_map(|(chunk, home)| Some((home.as_ref()?.place.first(), chunk.bytes.as_deref()?)));
        let last = (!padded.is_empty()).then_some((directory.first, padded.as_slice()));
        self.write_runs(images.chain(last))?;
        Ok(Written { homes, directory, directory_len, directory_crc })
    }

    /// After the superblock is durable: the new homes count, what only the old table reached is free.
    fn conclude(&self, frozen: &Frozen, written: &Written, directory: Extent) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let mut free = std::mem::take(&mut state.frozen);
        for (chunk, &home) in frozen.chunks.iter().zip(&written.homes) {
            let old = state.table.set_home(chunk.index, home);
            free.extend(old.map(|old| old.place.extent()));
        }
        free.push(directory);
        for extent in free.into_iter().filter(|extent| extent.grains > 0) {
            state.allocator.release(extent);
        }
        state.captured.clear();
    }
}

/// The directory that a checkpoint will write: the new homes where chunks were captured, the old ones elsewhere.
fn directory(state: &State, frozen: &Frozen, new: &[Option<Location>]) -> Vec<u8> {
    let mut homes: Vec<Option<Location>> = (0..state.table.chunks()).map(|index| state.table.home(index)).collect();
    for (chunk, &home) in frozen.chunks.iter().zip(new) {
        if let Some(slot) = homes.get_mut(chunk.index) {
            *slot = home;
        }
    }
    encode_directory(&homes)
}

impl std::fmt::Debug for Frozen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frozen({} chunks of {CHUNK_PAGES} pages)", self.chunks.len())
    }
}

//! Makes the page table durable: checkpoints it, writes the changed chunks and their groups to new places, and writes a
//! superblock that refers to them. The layers above decide when, and flush pages first.
//!
//! Nothing that the last durable superblock refers to is overwritten: a place that is superseded after it stays in use
//! until both superblocks are later ones. This holds for a checkpoint that fails halfway, too: the next one captures
//! the same chunks again. If it is unknown which superblock the device has, both page tables stay intact.

use super::TableStore;
use super::allocator::Fit;
use super::directory::Directory;
use super::encoding::{CHUNK_BYTES, GROUP_CHUNKS, encode_directory, encode_group};
use super::page_table::ChunkSnapshot;
use super::place::{Extent, GRAIN, Location, Place, grains_of};
use crate::base::Result;
use crate::base::bytes::{must_fit, u32_of};
use crate::base::checksum::checksum;
use crate::io::WriteKind;
use crate::store::CheckpointToken;
use crate::store::compress::{encode_dictionaries, encode_policies};
use crate::store::superblock::Meta;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The places that one checkpoint has written.
struct WrittenPlaces {
    /// The new places of the captured chunks, in their order; `None` for those without any image.
    locations: Vec<Option<Location>>,
    /// The new places of the groups that these chunks are in; `None` for those without any chunk.
    groups: Vec<(usize, Option<Location>)>,
    directory: Directory,
}

/// Bytes of the page table or of the free map that are written together, at the most, where they are side by side.
pub(super) const MAX_TOGETHER: usize = 1 << 20;

/// Places that are freed under one lock.
const FREED_TOGETHER: usize = 16;

impl TableStore {
    /// Captures the page table: copies the changed chunks (3 KiB for 256 pages).
    pub(super) fn begin_checkpoint(&self) -> CheckpointToken {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        for chunk in std::mem::take(&mut state.captured).iter() {
            let marked = state.table.mark_changed(chunk.index);
            debug_assert!(marked.is_ok(), "a captured chunk stays in memory");
        }
        state.captured = Arc::new(state.table.capture());
        // Under the lock of the page table, so that no entry changes between the capture and this.
        let mut space = self.space.lock();
        space.begin_checkpoint();
        self.superseded.store(0, Ordering::Relaxed);
        state.checkpoints += 1;
        CheckpointToken(state.checkpoints)
    }

    /// Writes chunks, groups and directory, syncs (which also makes all images before them durable), writes the
    /// superblock, syncs, does the same with the other superblock, and frees the places that were superseded before the
    /// checkpoint began.
    pub(super) fn finish_table(&self, token: CheckpointToken, meta: Meta) -> Result<()> {
        let mut update = self.file.begin_update()?;
        let captured = {
            let state = self.state.lock();
            token.check_newest(state.checkpoints)?;
            state.captured.clone()
        };
        let mut taken = Vec::new();
        let written = self.with_other_places(|| {
            let written = self.write_table(&captured, &mut taken);
            written.inspect_err(|_| self.release_unused(taken.drain(..)))
        })?;
        if let Err(error) = self.file.sync() {
            self.release_unused(taken.into_iter());
            return Err(error);
        }
        let before = Directory::decode(update.store_header())?;
        if let Err(error) = update.write(meta, written.directory.encode()) {
            // It is unknown whether the device has it: nothing that it refers to may be overwritten.
            self.space.lock().freed_at_next_checkpoint.append(&mut taken);
            return Err(error);
        }
        let copied = update.write(meta, written.directory.encode());
        let mut free = self.set_locations(&captured, &written, update.meta().high_water);
        free.push(before.extent());
        free.extend(before.map.map(|map| map.extent()));
        free.retain(|extent| extent.grains > 0);
        match copied {
            Ok(()) => self.release(&free),
            // The older superblock may still be valid: its places wait for the next checkpoint.
            Err(_) => self.space.lock().freed_at_next_checkpoint.append(&mut free),
        }
        drop(update);
        self.cut_free_end();
        copied
    }

    /// Writes the captured chunks, the groups that they are in, and a directory. `taken` becomes the places used.
    fn write_table(&self, captured: &[ChunkSnapshot], taken: &mut Vec<Extent>) -> Result<WrittenPlaces> {
        let ahead: Vec<Option<Location>> = {
            let mut state = self.state.lock();
            captured.iter().map(|chunk| state.table.take_ahead(chunk.index, chunk.version)).collect()
        };
        taken.extend(ahead.iter().flatten().map(|location| location.place.extent()));
        let locations = self.place_chunks(captured, &ahead, taken)?;
        let groups = self.place_groups(captured, &locations, taken)?;
        let (directory, padded) = self.place_directory(&groups, taken)?;
        let chunks = captured
            .iter()
            .zip(&locations)
            .zip(&ahead)
            .filter(|(_, ahead)| ahead.is_none())
            .filter_map(|((chunk, location), _)| Some((location.as_ref()?.place.first(), chunk.bytes.as_deref()?)));
        let groups_written =
            groups.iter().filter_map(|group| Some((group.location?.place.first(), group.bytes.as_slice())));
        let last = (!padded.is_empty()).then_some((directory.first, padded.as_slice()));
        self.write_together(chunks.chain(groups_written).chain(last))?;
        let groups = groups.into_iter().map(|group| (group.index, group.location)).collect();
        Ok(WrittenPlaces { locations, groups, directory })
    }

    /// Takes places for the captured chunks that are not written `ahead`. Returns the new places of all.
    fn place_chunks(
        &self,
        captured: &[ChunkSnapshot],
        ahead: &[Option<Location>],
        taken: &mut Vec<Extent>,
    ) -> Result<Vec<Option<Location>>> {
        let is_left = |(chunk, ahead): &(&ChunkSnapshot, &Option<Location>)| chunk.bytes.is_some() && ahead.is_none();
        let sizes = captured.iter().zip(ahead).filter(is_left).map(|_| CHUNK_BYTES);
        let mut places = self.take_places_of(sizes, taken)?.into_iter();
        let locations = captured.iter().zip(ahead).map(|(chunk, &ahead)| {
            let bytes = chunk.bytes.as_deref()?;
            ahead.or_else(|| Some(Location { place: places.next()?, crc: checksum(bytes) }))
        });
        Ok(locations.collect())
    }

    /// Encodes the groups that the captured chunks are in, with the new places of these chunks, and takes places for
    /// them.
    fn place_groups(
        &self,
        captured: &[ChunkSnapshot],
        locations: &[Option<Location>],
        taken: &mut Vec<Extent>,
    ) -> Result<Vec<ChunkGroup>> {
        let group_of = |chunk: &ChunkSnapshot| chunk.index / GROUP_CHUNKS;
        let mut locations = locations.iter();
        let mut groups = Vec::new();
        {
            let state = self.state.lock();
            for chunks in captured.chunk_by(|one, next| group_of(one) == group_of(next)) {
                let Some(index) = chunks.first().map(group_of) else { continue };
                let mut all = state.table.chunk_locations_of(index);
                for (chunk, &location) in chunks.iter().zip(&mut locations) {
                    let slot = all.get_mut(chunk.index % GROUP_CHUNKS);
                    must_fit(slot.is_some());
                    if let Some(slot) = slot {
                        *slot = location;
                    }
                }
                groups.push(ChunkGroup { index, bytes: encode_group(&all), location: None });
            }
        }
        let sizes = groups.iter().map(|group| group.bytes.len()).filter(|&len| len > 0);
        let mut places = self.take_places_of(sizes, taken)?.into_iter();
        for group in groups.iter_mut().filter(|group| !group.bytes.is_empty()) {
            group.location = places.next().map(|place| Location { place, crc: checksum(&group.bytes) });
        }
        Ok(groups)
    }

    /// Encodes the directory with the new places of groups, and takes a place for it. Returns its bytes, too, with
    /// zeros to the end of its last grain.
    fn place_directory(&self, groups: &[ChunkGroup], taken: &mut Vec<Extent>) -> Result<(Directory, Vec<u8>)> {
        let mut all = self.state.lock().table.groups().to_vec();
        for group in groups {
            if all.len() <= group.index {
                all.resize(group.index + 1, None);
            }
            let slot = all.get_mut(group.index);
            must_fit(slot.is_some());
            if let Some(slot) = slot {
                *slot = group.location;
            }
        }
        let mut bytes = encode_directory(&all);
        let (policies, places) = (self.compression.policies(), self.compression.dictionary_places());
        bytes.extend(encode_policies(&policies));
        bytes.extend(encode_dictionaries(&places));
        let (policies, dictionaries) = (u32_of(policies.len()), u32_of(places.len()));
        let (len, crc) = (bytes.len() as u64, checksum(&bytes));
        let mut directory = Directory { first: 0, len, crc, policies, dictionaries, map: None };
        if !bytes.is_empty() {
            let extent = self.take_extent(grains_of(bytes.len()))?;
            taken.push(extent);
            directory.first = extent.first;
        }
        bytes.resize(bytes.len().next_multiple_of(GRAIN), 0);
        Ok((directory, bytes))
    }

    /// Takes places of these lengths in bytes, as far as possible side by side. `taken` becomes them, too.
    fn take_places_of(&self, sizes: impl Iterator<Item = usize>, taken: &mut Vec<Extent>) -> Result<Vec<Place>> {
        let sizes: Vec<u32> = sizes.map(|len| u32_of(grains_of(len))).collect();
        let firsts = self.take_places(&sizes, Fit::Lowest)?;
        let extents = firsts.iter().zip(sizes).map(|(&first, grains)| Extent { first, grains: u64::from(grains) });
        let places = extents.clone().filter_map(|extent| Place::new(extent.first, extent.grains)).collect();
        taken.extend(extents);
        Ok(places)
    }

    /// Writes pieces of the page table, each at its first grain. Pieces side by side are one write, up to a limit.
    fn write_together<'a>(&self, pieces: impl Iterator<Item = (u64, &'a [u8])>) -> Result<()> {
        let mut run: (u64, Vec<u8>) = (0, Vec::new());
        let write =
            |run: &(u64, Vec<u8>)| self.write_runs(WriteKind::Table, std::iter::once((run.0, run.1.as_slice())));
        for (first, bytes) in pieces {
            let is_next = first == run.0 + grains_of(run.1.len()) && run.1.len() + bytes.len() <= MAX_TOGETHER;
            if !is_next || run.1.is_empty() {
                if !run.1.is_empty() {
                    write(&run)?;
                }
                run.0 = first;
                run.1.clear();
            }
            run.1.extend_from_slice(bytes);
        }
        if run.1.is_empty() { Ok(()) } else { write(&run) }
    }

    /// Frees these places. The lock is released between parts of them, so that reads and commits wait only for a part.
    fn release(&self, places: &[Extent]) {
        for part in places.chunks(FREED_TOGETHER) {
            let mut space = self.space.lock();
            part.iter().for_each(|extent| space.allocator.release(*extent));
        }
    }

    /// After the superblock is durable: sets the new locations of chunks and groups, and removes unchanged chunks from
    /// memory. Returns the places of images, chunks and groups that only the old table used.
    fn set_locations(&self, captured: &[ChunkSnapshot], written: &WrittenPlaces, high_water: u32) -> Vec<Extent> {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.high_water = state.high_water.max(high_water);
        let mut free = std::mem::take(&mut self.space.lock().freed_at_this_checkpoint);
        for (chunk, &location) in captured.iter().zip(&written.locations) {
            let old = state.table.set_durable(chunk.index, location);
            free.extend(old.map(|old| old.place.extent()));
        }
        for &(group, location) in &written.groups {
            let old = state.table.set_group(group, location);
            free.extend(old.map(|old| old.place.extent()));
        }
        state.captured = Arc::default();
        state.table.captured_are_durable(captured.len());
        free
    }
}

/// A group of chunks as a checkpoint writes it.
struct ChunkGroup {
    index: usize,
    /// Empty without any chunk.
    bytes: Vec<u8>,
    location: Option<Location>,
}

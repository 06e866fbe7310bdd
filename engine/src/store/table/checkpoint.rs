//! Makes the page table durable: freezes it, writes the changed chunks to new places, and writes a superblock that refers
//! to them. The layers above decide when, and flush pages first.
//!
//! Nothing that the last durable superblock refers to is overwritten: a place that is superseded after it is in quarantine
//! until a later superblock is durable. This holds for a checkpoint that fails halfway, too: the next one captures the same
//! chunks again. If it is unknown which superblock the device has, both page tables stay intact.

use super::directory::Directory;
use super::page_table::{CHUNK_BYTES, Captured, encode_directory};
use super::place::{Extent, GRAIN, Location, Place, grains_of};
use super::{State, TableStore};
use crate::base::checksum::checksum;
use crate::base::{Error, Result};
use crate::io::WriteKind;
use crate::store::Frozen;
use crate::store::compress::{encode_dictionaries, encode_policies};
use crate::store::superblock::Meta;
use std::sync::Arc;

/// The places that one checkpoint has written.
struct Written {
    /// The new places of the captured chunks, in their order; `None` for those without any image.
    homes: Vec<Option<Location>>,
    directory: Directory,
}

impl TableStore {
    /// Captures the page table: copies the changed chunks (3 KiB for 256 pages).
    pub(super) fn freeze(&self) -> Frozen {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        for chunk in std::mem::take(&mut state.captured).iter() {
            state.table.mark_changed(chunk.index);
        }
        state.captured = Arc::new(state.table.capture());
        state.frozen.append(&mut state.quarantine);
        state.superseded = 0;
        self.pass_on_counts(state);
        state.frozen.extend(std::mem::take(&mut state.reserved).into_values());
        state.freezes += 1;
        Frozen(state.freezes)
    }

    /// Writes chunks and directory, syncs (which also makes all images before them durable), writes the superblock, syncs, and
    /// frees the places that were superseded before the freeze. If the redo point stays, both superblocks are written.
    pub(super) fn finish(&self, frozen: Frozen, meta: Meta) -> Result<()> {
        let mut change = self.file.change()?;
        let captured = {
            let state = self.state.lock();
            if state.freezes != frozen.0 {
                return Err(Error::Poisoned { cause: "a checkpoint was overtaken by a newer one".into() });
            }
            state.captured.clone()
        };
        let mut taken = Vec::new();
        let written = self.write_table(&captured, &mut taken).and_then(|written| {
            self.file.sync()?;
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
        let (before, keeps_log) = (Directory::decode(change.own())?, change.meta().redo == meta.redo);
        if let Err(error) = change.write(meta, written.directory.encode()) {
            // It is unknown whether the device has it: nothing that it refers to may be overwritten.
            self.state.lock().quarantine.append(&mut taken);
            return Err(error);
        }
        // The log of the older superblock stays. So if the newer one were lost, nothing would tell that places of the older
        // one are used again.
        let copied = if keeps_log { change.write(meta, written.directory.encode()) } else { Ok(()) };
        self.conclude(&captured, &written, before.extent());
        copied
    }

    /// Writes the captured chunks and a directory of them. `taken` becomes the places used.
    fn write_table(&self, captured: &[Captured], taken: &mut Vec<Extent>) -> Result<Written> {
        let grains = grains_of(CHUNK_BYTES);
        let ahead: Vec<Option<Location>> = {
            let mut state = self.state.lock();
            captured.iter().map(|chunk| state.table.take_ahead(chunk.index, chunk.version)).collect()
        };
        taken.extend(ahead.iter().flatten().map(|location| location.place.extent()));
        let is_left = |(chunk, ahead): &(&Captured, &Option<Location>)| chunk.bytes.is_some() && ahead.is_none();
        let count = captured.iter().zip(&ahead).filter(is_left).count();
        let firsts = self.take_places(&vec![u32::try_from(grains).unwrap_or(u32::MAX); count])?;
        taken.extend(firsts.iter().map(|&first| Extent { first, grains }));
        let mut firsts = firsts.into_iter();
        let homes: Vec<Option<Location>> = captured
            .iter()
            .zip(&ahead)
            .map(|(chunk, &ahead)| {
                let bytes = chunk.bytes.as_deref()?;
                ahead.or_else(|| Some(Location { place: Place::new(firsts.next()?, grains)?, crc: checksum(bytes) }))
            })
            .collect();
        let mut padded = directory(&self.state.lock(), captured, &homes);
        let (policies, dictionaries) = {
            let (policies, places) = (self.compression.policies(), self.compression.dictionary_places());
            padded.extend(encode_policies(&policies));
            padded.extend(encode_dictionaries(&places));
            let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
            (count(policies.len()), count(places.len()))
        };
        let (len, crc) = (padded.len() as u64, checksum(&padded));
        let mut directory = Directory { first: 0, len, crc, policies, dictionaries };
        if !padded.is_empty() {
            let extent = self.take_extent(grains_of(padded.len()))?;
            taken.push(extent);
            directory.first = extent.first;
        }
        padded.resize(padded.len().next_multiple_of(GRAIN), 0);
        let images = captured
            .iter()
            .zip(&homes)
            .zip(&ahead)
            .filter(|(_, ahead)| ahead.is_none())
            .filter_map(|((chunk, home), _)| Some((home.as_ref()?.place.first(), chunk.bytes.as_deref()?)));
        let last = (!padded.is_empty()).then_some((directory.first, padded.as_slice()));
        self.write_runs(WriteKind::Table, images.chain(last))?;
        Ok(Written { homes, directory })
    }

    /// After the superblock is durable: sets the new homes, and frees the places that only the old table used.
    fn conclude(&self, captured: &[Captured], written: &Written, directory: Extent) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        let mut free = std::mem::take(&mut state.frozen);
        for (chunk, &home) in captured.iter().zip(&written.homes) {
            let old = state.table.set_home(chunk.index, home);
            free.extend(old.map(|old| old.place.extent()));
        }
        free.push(directory);
        for extent in free.into_iter().filter(|extent| extent.grains > 0) {
            state.allocator.release(extent);
        }
        state.captured = Arc::default();
    }
}

/// The directory of a checkpoint: the new homes of the captured chunks, the old homes of the others.
fn directory(state: &State, captured: &[Captured], new: &[Option<Location>]) -> Vec<u8> {
    let mut homes: Vec<Option<Location>> = (0..state.table.chunks()).map(|index| state.table.home(index)).collect();
    for (chunk, &home) in captured.iter().zip(new) {
        if let Some(slot) = homes.get_mut(chunk.index) {
            *slot = home;
        }
    }
    encode_directory(&homes)
}

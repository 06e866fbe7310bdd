//! The map: the states of all pages, which a close writes after the last page area. With it the next process knows
//! which slot and which deltas of a page are valid before it reads them. So it reads one slot area instead of the whole
//! page area, and it finds a write that the device has lost.
//!
//! The map consists of blocks of 4 KiB. A process reads a block when it first needs the state of one of its pages.
//!
//! | bytes of a block | field |
//! |---|---|
//! | 0..4 | CRC-32C of the rest of the block |
//! | 4..8 | low 32 bits of the database's id |
//! | 8..12 | generation of the close |
//! | 12..16 | first page |
//! | 16.. | 2040 states of pages: see `states`; 0: unknown |
//!
//! The superblock says how many pages the map has, and so where it is. A map is valid while the superblock says that
//! the database is closed. No page is written where a superblock has a map: [`ShadowStore::make_way`] removes it
//! before. So bytes of a map are never taken for a page area.

use super::ShadowStore;
use super::slot::Geometry;
use super::states::{ImageState, PageState};
use super::store_header::StoreHeader;
use crate::base::bytes::{get_u16, get_u32, put_u16, put_u32, slice};
use crate::base::checksum::checksum;
use crate::base::{Error, PageId, Result};
use crate::io::{BLOCK, WriteKind};
use crate::store::superblock::Meta;
use std::ops::Range;

const HEADER: usize = 16;
/// Pages in a block.
const PAGES: u32 = 2040;
const _: () = assert!(HEADER + 2 * PAGES as usize == BLOCK);
/// Blocks that are written or read together.
const TOGETHER: usize = 256;

/// The fields of the superblock that describe a map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SlotMapPlace {
    /// It has the states of the pages before this one.
    pub(super) pages: u32,
    /// The generation of the close that wrote it.
    pub(super) generation: u32,
}

impl SlotMapPlace {
    fn blocks(self) -> usize {
        self.pages.div_ceil(PAGES) as usize
    }

    /// Bytes of a file that ends with this map.
    pub(super) fn file_len(self, geometry: &Geometry) -> u64 {
        self.range(geometry, 0..self.blocks()).end
    }

    /// The range of the file that has some of its blocks.
    fn range(self, geometry: &Geometry, blocks: Range<usize>) -> Range<u64> {
        let start = geometry.area_of(PageId(self.pages)).start;
        start + (blocks.start * BLOCK) as u64..start + (blocks.end * BLOCK) as u64
    }
}

/// The map in the file.
#[derive(Debug)]
pub(super) struct Map {
    place: SlotMapPlace,
    /// The blocks that were read; `None` if the map is not valid.
    read: Option<Vec<bool>>,
}

impl Map {
    /// A map that is not valid, or not yet known to be.
    pub(super) fn at(place: SlotMapPlace) -> Map {
        Map { place, read: None }
    }

    /// The block of a page, if it is valid and was not read.
    fn unread_block(&self, id: PageId) -> Option<usize> {
        let block = (id.0 / PAGES) as usize;
        let was_read = *self.read.as_ref()?.get(block)?;
        (!was_read && id.0 < self.place.pages).then_some(block)
    }
}

impl ShadowStore {
    /// The database was closed and not changed since: from now on the map is used.
    pub(super) fn use_map(&self) {
        if let Some(map) = &mut self.state.lock().map {
            map.read = Some(vec![false; map.place.blocks()]);
        }
    }

    /// The state of a page. It is read from the map if it is not known otherwise.
    pub(super) fn state_of(&self, id: PageId) -> PageState {
        let block = {
            let state = self.state.lock();
            let known = state.pages.get(id);
            match state.map.as_ref().and_then(|map| map.unread_block(id)) {
                Some(block) if known.image() == ImageState::Unknown => block,
                _ => return known,
            }
        };
        self.read_map(block..block + 1);
        self.state.lock().pages.get(id)
    }

    /// Reads the blocks of the map that were not read. Returns the first and the last page of each damaged one.
    pub(super) fn read_whole_map(&self) -> Vec<(PageId, PageId)> {
        let next = |from: usize| {
            let state = self.state.lock();
            let read = state.map.as_ref()?.read.as_ref()?;
            let start = from + read.get(from..)?.iter().position(|was_read| !was_read)?;
            let unread = read.get(start..)?.iter().take(TOGETHER).take_while(|was_read| !**was_read).count();
            Some(start..start + unread)
        };
        let (mut from, mut damaged) = (0, Vec::new());
        while let Some(blocks) = next(from) {
            from = blocks.end;
            damaged.extend(self.read_map(blocks));
        }
        damaged
    }

    /// Reads some blocks of the map. The states of a damaged block stay unknown. Returns the first and the last page of
    /// each damaged block.
    fn read_map(&self, blocks: Range<usize>) -> Vec<(PageId, PageId)> {
        let mut damaged = Vec::new();
        let Some(place) = self.state.lock().map.as_ref().map(|map| map.place) else { return damaged };
        self.with_buffer(|bytes| {
            let result = self.read_part(place.range(&self.geometry, blocks.clone()), bytes);
            let mut guard = self.state.lock();
            let state = &mut *guard;
            let Some(read) = state.map.as_mut().and_then(|map| map.read.as_mut()) else { return };
            for (block, index) in bytes.chunks_exact(BLOCK).zip(blocks) {
                let Some(was_read) = read.get_mut(index) else { return };
                if std::mem::replace(was_read, true) {
                    continue;
                }
                let first = u32::try_from(index).unwrap_or(u32::MAX).saturating_mul(PAGES);
                if result.is_err() || !is_sound(&self.geometry, block, place.generation, first) {
                    let (first, last) = (PageId(first), PageId(first.saturating_add(PAGES).min(place.pages) - 1));
                    tracing::warn!(%first, %last, "the map of these pages is damaged: both slots of each are read");
                    damaged.push((first, last));
                    continue;
                }
                for (id, at) in (first..place.pages).zip((HEADER..BLOCK).step_by(2)) {
                    state.pages.adopt(PageId(id), PageState::of_map(get_u16(block, at)));
                }
            }
        });
        damaged
    }

    /// Removes the map, if there is one where these pages will be written.
    pub(super) fn make_way(&self, mut ids: impl Iterator<Item = PageId>) -> Result<()> {
        let is_behind = |map: &Map| ids.any(|id| id.0 >= map.place.pages);
        if !self.state.lock().map.as_ref().is_some_and(is_behind) {
            return Ok(());
        }
        self.read_whole_map();
        let mut update = self.file.begin_update()?;
        let Some(place) = self.state.lock().map.as_ref().map(|map| map.place) else { return Ok(()) };
        let len = self.room.lock().len();
        for first in (0..place.blocks()).step_by(TOGETHER) {
            let range = place.range(&self.geometry, first..place.blocks().min(first + TOGETHER));
            if range.start < len {
                self.clear_as(WriteKind::Table, range.start..range.end.min(len))?;
            }
        }
        self.file.sync()?;
        // Both: if one superblock is damaged later, the other one must not have a map in the place of pages.
        for _ in 0..2 {
            let header = StoreHeader { map: None, ..StoreHeader::decode(update.store_header())? };
            update.write_store_header(header.encode())?;
        }
        self.state.lock().map = None;
        Ok(())
    }

    /// True if the map in the file is valid and has the states that the pages have now.
    pub(super) fn has_valid_map(&self) -> bool {
        let state = self.state.lock();
        state.map.as_ref().is_some_and(|map| map.read.is_some()) && !state.pages.have_changed()
    }

    /// Writes the map, and then the superblocks of a closed database. Call it after a checkpoint. No page is written
    /// after it.
    pub(super) fn close(&self, meta: Meta) -> Result<()> {
        let map = match self.has_valid_map() {
            true => self.state.lock().map.as_ref().map(|map| map.place),
            false => self.write_map()?,
        };
        let mut update = self.file.begin_update()?;
        // Both superblocks: a closed database has no log, so damage to a single one must not make it unreadable.
        for _ in 0..2 {
            let header = StoreHeader { map, ..StoreHeader::decode(update.store_header())? };
            update.write(meta, header.encode())?;
        }
        Ok(())
    }

    /// Writes the map; `None` if the device has no space for it.
    fn write_map(&self) -> Result<Option<SlotMapPlace>> {
        self.read_whole_map();
        let generation = *self.generation.read();
        let place = {
            let mut state = self.state.lock();
            let place = SlotMapPlace { pages: state.pages.len(), generation };
            state.map = Some(Map::at(place));
            place
        };
        {
            let mut update = self.file.begin_update()?;
            let header = StoreHeader::decode(update.store_header())?;
            if header.map.is_none_or(|old| old.pages != place.pages) {
                update.write_store_header(StoreHeader { map: Some(place), ..header }.encode())?;
            }
        }
        let written = (0..place.blocks())
            .step_by(TOGETHER)
            .try_for_each(|first| self.write_blocks(place, first..place.blocks().min(first + TOGETHER)));
        let map = match written {
            Err(Error::Full { .. }) => {
                tracing::warn!(
                    "the device has no space for the map of the pages: the next process reads both slots of each"
                );
                None
            }
            written => written.map(|()| Some(place))?,
        };
        let end = map.map_or(0, SlotMapPlace::blocks);
        self.cut(place.range(&self.geometry, 0..end).end)?;
        self.file.sync()?;
        Ok(map)
    }

    /// Writes some blocks of the map.
    fn write_blocks(&self, place: SlotMapPlace, blocks: Range<usize>) -> Result<()> {
        self.with_buffer(|bytes| {
            bytes.clear();
            bytes.resize(blocks.len() * BLOCK, 0);
            {
                let state = self.state.lock();
                for (block, index) in bytes.chunks_exact_mut(BLOCK).zip(blocks.clone()) {
                    let first = u32::try_from(index).unwrap_or(u32::MAX).saturating_mul(PAGES);
                    for (id, at) in (first..place.pages).zip((HEADER..BLOCK).step_by(2)) {
                        put_u16(block, at, state.pages.get(PageId(id)).for_map());
                    }
                    seal(&self.geometry, block, place.generation, first);
                }
            }
            self.put(WriteKind::Table, place.range(&self.geometry, blocks).start, bytes)
        })
    }
}

/// Fills in the header of a block.
fn seal(geometry: &Geometry, block: &mut [u8], generation: u32, first: u32) {
    put_u32(block, 4, geometry.database());
    put_u32(block, 8, generation);
    put_u32(block, 12, first);
    reseal(block);
}

/// Writes the checksum of a block.
pub(super) fn reseal(block: &mut [u8]) {
    let crc = checksum(slice(block, 4, BLOCK));
    put_u32(block, 0, crc);
}

/// True if a block was written by that close for these pages.
fn is_sound(geometry: &Geometry, block: &[u8], generation: u32, first: u32) -> bool {
    (get_u32(block, 4), get_u32(block, 8), get_u32(block, 12)) == (geometry.database(), generation, first)
        && checksum(slice(block, 4, BLOCK)) == get_u32(block, 0)
}

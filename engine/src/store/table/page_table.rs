//! The page table in memory: the place and the checksum of each page's image, and where chunks and groups of chunks
//! are.
//!
//! A chunk that is not in memory is [`Missing`]: the caller reads it, and asks again. A page of a chunk in memory takes
//! 12 bytes. A part of the chunks stays in memory. The chunks that were used least recently leave it first. Work for a
//! checkpoint is proportional to the chunks that have changed: they are in a list.

use super::encoding::{CHUNK_BYTES, CHUNK_PAGES, GROUP_CHUNKS};
use super::place::{Location, Place};
use crate::base::PageId;
use crate::base::bytes::{must_fit, put_u32, put_u64};
use std::cell::Cell;
use std::collections::HashMap;

/// In memory only: the image was written since the last checkpoint began, and no log record contains its place. So the
/// place is free as soon as the image is superseded.
const FRESH: u64 = 1 << 63;
/// In memory only: this process has written the image or has checked the page in it.
const CHECKED: u64 = 1 << 62;
/// All bits that are in memory only.
const MARKS: u64 = FRESH | CHECKED;

/// One of this many chunks may stay in memory.
const KEPT_DIVISOR: usize = 3;
/// Chunks that stay in memory in any case: 16 MiB of them.
const MIN_KEPT: usize = (16 << 20) / CHUNK_BYTES;
/// The maximum number of chunks that are considered when one is read, to find some that can leave the memory.
const MAX_LOOKS: usize = 1024;
/// The chunks that are considered for each chunk that a checkpoint has written. One of [`KEPT_DIVISOR`] chunks is in
/// memory. It is considered twice before it leaves: the first time only clears its reference bit.
const LOOKS_AT_CHECKPOINT: usize = 2 * KEPT_DIVISOR;

/// The entry of a page that has an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PageEntry {
    pub(crate) location: Location,
    pub(crate) fresh: bool,
    /// This process has written the image or has checked the page in it. An image with the right checksum then needs no
    /// other check.
    pub(crate) checked: bool,
}

/// A chunk in memory.
struct Chunk {
    places: [u64; CHUNK_PAGES],
    crcs: [u32; CHUNK_PAGES],
    /// The chunk is in the list of changed chunks.
    changed: bool,
    /// A checkpoint has captured it that is not durable yet.
    pending: bool,
    /// The reference bit: it was used since the last time that it was considered for removal from memory.
    referenced: Cell<bool>,
    /// The version of the content: each change of an entry gives a new one. Two different contents never have the same
    /// version, even if the chunk left the memory and was read again between them.
    version: u64,
    /// The location at which its current content was written ahead of the next checkpoint.
    ahead: Option<Location>,
}

/// A chunk in the file and in memory.
#[derive(Default)]
struct ChunkSlot {
    /// Its location in the last durable checkpoint.
    location: Option<Location>,
    /// The chunk, if it is in memory. Without it, the chunk is as it was in the last durable checkpoint.
    chunk: Option<Box<Chunk>>,
}

/// A chunk that must be read first: it is not in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Missing {
    pub(crate) index: usize,
    pub(crate) location: Location,
}

/// A chunk as a checkpoint will write it.
pub(crate) struct ChunkSnapshot {
    pub(crate) index: usize,
    pub(crate) version: u64,
    /// `None`: none of its pages has an image.
    pub(crate) bytes: Option<Box<[u8]>>,
}

/// Which pages of a chunk have an image.
#[derive(Clone, Copy, Default)]
pub(crate) struct WithImage([u64; CHUNK_PAGES / 64]);

impl WithImage {
    pub(crate) fn add(&mut self, slot: usize) {
        let word = self.0.get_mut(slot / 64);
        must_fit(word.is_some());
        if let Some(word) = word {
            *word |= 1 << (slot % 64);
        }
    }

    fn has(&self, slot: usize) -> bool {
        self.0.get(slot / 64).is_some_and(|word| word & 1 << (slot % 64) != 0)
    }
}

/// The page table in memory.
pub(crate) struct PageTable {
    chunks: Vec<ChunkSlot>,
    /// The locations of groups of chunks in the last durable checkpoint.
    groups: Vec<Option<Location>>,
    /// The chunks that have changed since the last capture.
    changed: Vec<usize>,
    /// The greatest version of a chunk so far.
    version: u64,
    /// An entry was set since the last capture.
    edited: bool,
    /// How many chunks are in memory.
    kept: usize,
    /// At least this many chunks may stay in memory.
    min_kept: usize,
    /// The chunk that was last considered for removal from memory.
    hand: usize,
    pages: u64,
    live: u64,
    /// Which pages have an image, for each chunk that the opening has decoded. It is valid for chunks that are not in
    /// memory. Empty after a checkpoint, and if the opening has decoded no chunk.
    opened: HashMap<usize, WithImage>,
}

impl Default for PageTable {
    fn default() -> PageTable {
        PageTable {
            chunks: Vec::new(),
            groups: Vec::new(),
            changed: Vec::new(),
            version: 0,
            edited: false,
            kept: 0,
            min_kept: MIN_KEPT,
            hand: 0,
            pages: 0,
            live: 0,
            opened: HashMap::new(),
        }
    }
}

fn split(id: PageId) -> (usize, usize) {
    (id.0 as usize / CHUNK_PAGES, id.0 as usize % CHUNK_PAGES)
}

impl PageTable {
    /// How many pages have an image.
    pub(crate) fn pages(&self) -> u64 {
        self.pages
    }

    /// Grains of all images.
    pub(crate) fn live(&self) -> u64 {
        self.live
    }

    /// How many chunks there are, empty ones among them.
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.len()
    }

    /// The number of chunks that have changed since the last capture.
    pub(crate) fn changed_chunks(&self) -> usize {
        self.changed.len()
    }

    /// The chunk at `index`, if it is in memory; `None` if none of its pages has an image.
    fn chunk(&self, index: usize) -> Result<Option<&Chunk>, Missing> {
        match self.chunks.get(index) {
            Some(ChunkSlot { chunk: Some(chunk), .. }) => {
                chunk.referenced.set(true);
                Ok(Some(chunk))
            }
            Some(&ChunkSlot { location: Some(location), chunk: None }) => Err(Missing { index, location }),
            _ => Ok(None),
        }
    }

    /// The slot of the chunk at `index`.
    fn slot(&mut self, index: usize) -> Option<&mut ChunkSlot> {
        if self.chunks.len() <= index {
            self.chunks.resize_with(index + 1, ChunkSlot::default);
        }
        self.chunks.get_mut(index)
    }

    /// The chunk at `index`, if it is in memory.
    fn in_memory(&mut self, index: usize) -> Option<&mut Chunk> {
        self.chunks.get_mut(index)?.chunk.as_deref_mut()
    }

    /// An error if the chunk of a page is not in memory.
    pub(crate) fn check_present(&self, id: PageId) -> Result<(), Missing> {
        self.chunk(split(id).0).map(|_| ())
    }

    /// The entry of a page; `None` without an image.
    pub(crate) fn get(&self, id: PageId) -> Result<Option<PageEntry>, Missing> {
        let (index, slot) = split(id);
        Ok(self.chunk(index)?.and_then(|chunk| chunk.entry(slot)))
    }

    /// Sets or empties the entry of a page and returns the one before.
    pub(crate) fn set(&mut self, id: PageId, new: Option<PageEntry>) -> Result<Option<PageEntry>, Missing> {
        let old = self.get(id)?;
        if old != new {
            let (index, slot) = split(id);
            self.version += 1;
            let version = self.version;
            self.kept += usize::from(self.in_memory(index).is_none());
            if let Some(of) = self.slot(index) {
                let chunk = of.chunk.get_or_insert_with(|| Box::new(Chunk::new(version)));
                chunk.version = version;
                chunk.put(slot, new);
            }
            let grains = |entry: Option<PageEntry>| entry.map_or(0, |entry| entry.location.place.grains());
            // A free map may have counted too few.
            self.live = (self.live + grains(new)).saturating_sub(grains(old));
            self.pages = (self.pages + u64::from(new.is_some())).saturating_sub(u64::from(old.is_some()));
            self.mark_changed(index)?;
            self.edited = true;
        }
        Ok(old)
    }

    /// Notes that the page in the image at `location` is sound, if the page still has this image.
    pub(crate) fn note_checked(&mut self, id: PageId, location: Location) {
        let (index, slot) = split(id);
        if let Ok(Some(PageEntry { location: now, .. })) = self.get(id)
            && now == location
            && let Some(chunk) = self.in_memory(index)
            && let Some(place) = chunk.places.get_mut(slot)
        {
            *place |= CHECKED;
        }
    }

    /// Copies the chunks that have changed since the last capture. Their entries are not fresh afterwards.
    pub(crate) fn capture(&mut self) -> Vec<ChunkSnapshot> {
        self.edited = false;
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        let mut captured = Vec::with_capacity(changed.len());
        for index in changed {
            if let Some(chunk) = self.in_memory(index) {
                chunk.changed = false;
                chunk.pending = true;
                captured.push(ChunkSnapshot { index, version: chunk.version, bytes: chunk.capture() });
            }
        }
        captured
    }

    /// True if an entry was set since the last capture.
    pub(crate) fn is_edited(&self) -> bool {
        self.edited
    }

    /// Makes the next capture take a chunk, as after a checkpoint that failed, or to have it moved.
    pub(crate) fn mark_changed(&mut self, index: usize) -> Result<(), Missing> {
        self.chunk(index)?;
        if let Some(chunk) = self.in_memory(index)
            && !std::mem::replace(&mut chunk.changed, true)
        {
            self.changed.push(index);
        }
        Ok(())
    }

    /// The bytes of a chunk in memory and its version; `None` where none of its pages has an image.
    pub(crate) fn encode(&self, index: usize) -> Option<(Box<[u8]>, u64)> {
        let chunk = self.chunk(index).ok()??;
        Some((chunk.encode()?, chunk.version))
    }

    /// Notes where a chunk was written ahead of the next checkpoint; false if it has changed since or has such a place.
    pub(crate) fn set_ahead(&mut self, index: usize, version: u64, location: Location) -> bool {
        match self.in_memory(index) {
            Some(chunk) if chunk.version == version && chunk.ahead.is_none() => {
                chunk.ahead = Some(location);
                true
            }
            _ => false,
        }
    }

    /// Takes the location at which a chunk of this version was written ahead of the next checkpoint.
    pub(crate) fn take_ahead(&mut self, index: usize, version: u64) -> Option<Location> {
        self.in_memory(index).filter(|chunk| chunk.version == version)?.ahead.take()
    }

    /// The location at which a chunk was written ahead of the next checkpoint.
    #[cfg(test)]
    pub(crate) fn ahead(&self, index: usize) -> Option<Location> {
        self.chunks.get(index)?.chunk.as_deref()?.ahead
    }

    /// The same of the chunk that a page is in, whatever its version.
    pub(crate) fn take_ahead_of(&mut self, id: PageId) -> Option<Location> {
        self.in_memory(split(id).0)?.ahead.take()
    }

    /// The location of a chunk in the last durable checkpoint.
    pub(crate) fn chunk_location(&self, index: usize) -> Option<Location> {
        self.chunks.get(index)?.location
    }

    /// A checkpoint that has captured a chunk is durable. Sets the location of the chunk and returns the one before.
    pub(crate) fn set_durable(&mut self, index: usize, location: Option<Location>) -> Option<Location> {
        if let Some(chunk) = self.in_memory(index) {
            chunk.pending = false;
        }
        self.set_chunk_location(index, location)
    }

    /// Sets the location of a chunk and returns the one before.
    pub(crate) fn set_chunk_location(&mut self, index: usize, location: Option<Location>) -> Option<Location> {
        std::mem::replace(&mut self.slot(index)?.location, location)
    }

    /// The locations of the chunks of a group in the last durable checkpoint.
    pub(crate) fn chunk_locations_of(&self, group: usize) -> Vec<Option<Location>> {
        (group * GROUP_CHUNKS..).take(GROUP_CHUNKS).map(|index| self.chunk_location(index)).collect()
    }

    /// The locations of all groups in the last durable checkpoint.
    pub(crate) fn groups(&self) -> &[Option<Location>] {
        &self.groups
    }

    /// Sets the location of a group and returns the one before.
    pub(crate) fn set_group(&mut self, group: usize, location: Option<Location>) -> Option<Location> {
        if self.groups.len() <= group {
            self.groups.resize(group + 1, None);
        }
        self.groups.get_mut(group).and_then(|slot| std::mem::replace(slot, location))
    }

    /// Counts pages, and grains of their images, in chunks that are not in memory.
    pub(crate) fn count(&mut self, pages: u64, live: u64) {
        (self.pages, self.live) = (self.pages.saturating_add(pages), self.live.saturating_add(live));
    }

    /// Notes that a chunk with this number of pages, and of grains of images, is in the last durable checkpoint.
    pub(crate) fn add_chunk_location(
        &mut self,
        index: usize,
        location: Location,
        (pages, live): (u64, u64),
        with_image: WithImage,
    ) {
        self.set_chunk_location(index, Some(location));
        self.count(pages, live);
        self.opened.insert(index, with_image);
    }

    /// True if one more chunk may stay in memory in any case.
    pub(crate) fn has_room(&self) -> bool {
        self.kept < self.min_kept
    }

    /// True if this chunk is still to be read.
    pub(crate) fn misses(&self, missing: Missing) -> bool {
        self.chunk(missing.index).is_err_and(|now| now == missing)
    }

    /// Brings a chunk into memory that was read and that it still [`misses`](PageTable::misses). The chunk has been
    /// counted before.
    pub(crate) fn load(&mut self, missing: Missing, locations: impl Iterator<Item = (usize, Location)>) {
        debug_assert!(self.misses(missing), "a chunk in memory may be newer than the one that was read");
        self.version += 1;
        let mut chunk = Box::new(Chunk::new(self.version));
        for (slot, location) in locations {
            chunk.put(slot, Some(PageEntry { location, fresh: false, checked: false }));
        }
        if let Some(slot) = self.slot(missing.index) {
            slot.chunk = Some(chunk);
            self.kept += 1;
        }
        self.make_room(missing.index, MAX_LOOKS.min(self.chunks.len()));
    }

    /// Notes that a checkpoint that has captured this number of chunks is durable: all chunks that have not changed
    /// since can leave the memory.
    pub(crate) fn captured_are_durable(&mut self, captured: usize) {
        self.opened = HashMap::new();
        let looks = MAX_LOOKS + LOOKS_AT_CHECKPOINT * captured;
        self.make_room(usize::MAX, looks.min(2 * self.chunks.len()));
    }

    /// From now on at least this number of bytes of chunks stays in memory.
    pub(crate) fn keep_bytes(&mut self, bytes: usize) {
        self.min_kept = self.min_kept.max(bytes / CHUNK_BYTES);
    }

    /// From now on at least this number of chunks stays in memory.
    pub(crate) fn keep(&mut self, least: usize) {
        self.min_kept = least;
        self.make_room(usize::MAX, MAX_LOOKS.min(self.chunks.len()));
    }

    /// Removes chunks from memory that have not changed since the last durable checkpoint. Considers up to `looks`
    /// chunks. The chunk at `index` stays, and so does a chunk that was used since it was last considered. So an
    /// operation that needs several chunks can have all of them in memory.
    fn make_room(&mut self, index: usize, looks: usize) {
        let most = self.min_kept.max(self.chunks.len() / KEPT_DIVISOR);
        let mut looks = 0..looks;
        while self.kept > most && looks.next().is_some() {
            self.hand = if self.hand + 1 < self.chunks.len() { self.hand + 1 } else { 0 };
            let Some(slot) = self.chunks.get_mut(self.hand).filter(|_| self.hand != index) else { continue };
            let can_leave = |chunk: &Chunk| {
                let is_durable = !chunk.changed && !chunk.pending && chunk.ahead.is_none();
                is_durable && !chunk.referenced.replace(false)
            };
            if slot.chunk.as_deref().is_some_and(can_leave) {
                slot.chunk = None;
                self.kept -= 1;
            }
        }
    }

    /// The pages of a chunk that have an image. A chunk that an opening has decoded need not be in memory.
    pub(crate) fn known_of(&self, index: usize) -> Result<Vec<PageId>, Missing> {
        let missing = match self.pages_of(index) {
            Ok(pages) => return Ok(pages.into_iter().map(|(id, _)| id).collect()),
            Err(missing) => missing,
        };
        let of_chunk = self.opened.get(&index).ok_or(missing)?;
        let ids = (0..CHUNK_PAGES).filter(|slot| of_chunk.has(*slot));
        Ok(ids.filter_map(|slot| u32::try_from(index * CHUNK_PAGES + slot).ok()).map(PageId).collect())
    }

    /// The pages of a chunk that have an image, and the places of these.
    pub(crate) fn pages_of(&self, index: usize) -> Result<Vec<(PageId, Place)>, Missing> {
        let Some(chunk) = self.chunk(index)? else { return Ok(Vec::new()) };
        let pages = (0..CHUNK_PAGES).filter_map(|slot| {
            let id = u32::try_from(index * CHUNK_PAGES + slot).ok()?;
            Some((PageId(id), chunk.entry(slot)?.location.place))
        });
        Ok(pages.collect())
    }
}

impl Chunk {
    fn new(version: u64) -> Chunk {
        Chunk {
            places: [0; CHUNK_PAGES],
            crcs: [0; CHUNK_PAGES],
            changed: false,
            pending: false,
            referenced: Cell::new(true),
            version,
            ahead: None,
        }
    }

    fn entry(&self, slot: usize) -> Option<PageEntry> {
        let (place, crc) = (*self.places.get(slot)?, *self.crcs.get(slot)?);
        let location = Location { place: Place::from_bits(place & !MARKS)?, crc };
        Some(PageEntry { location, fresh: place & FRESH != 0, checked: place & CHECKED != 0 })
    }

    fn put(&mut self, slot: usize, new: Option<PageEntry>) {
        let entry = self.places.get_mut(slot).zip(self.crcs.get_mut(slot));
        must_fit(entry.is_some());
        if let Some((place, crc)) = entry {
            *place = new.map_or(0, |entry| {
                let mark = |is_set, mark| if is_set { mark } else { 0 };
                entry.location.place.bits() | mark(entry.fresh, FRESH) | mark(entry.checked, CHECKED)
            });
            *crc = new.map_or(0, |entry| entry.location.crc);
        }
    }

    /// Its bytes. Its entries are not fresh afterwards.
    fn capture(&mut self) -> Option<Box<[u8]>> {
        self.places.iter_mut().for_each(|place| *place &= !FRESH);
        self.encode()
    }

    /// Its bytes; `None` if none of its pages has an image.
    fn encode(&self) -> Option<Box<[u8]>> {
        let mut bytes = vec![0; CHUNK_BYTES];
        let mut any = false;
        let fields = bytes.chunks_exact_mut(Location::BYTES);
        for ((place, crc), field) in self.places.iter().zip(&self.crcs).zip(fields) {
            any |= *place != 0;
            put_u64(field, 0, *place & !MARKS);
            put_u32(field, 8, *crc);
        }
        any.then(|| bytes.into_boxed_slice())
    }
}

//! The page table in memory: the place and the checksum of each page's image, and where chunks and groups of chunks are.
//! This file must not allocate places or access the device.
//!
//! A page takes 12 bytes. Work for a checkpoint is proportional to the chunks that have changed: they are in a list.

use super::encoding::{CHUNK_BYTES, CHUNK_PAGES, GROUP_CHUNKS, corrupt, decode_chunk};
use super::place::{Location, Place};
use crate::base::bytes::{put_u32, put_u64};
use crate::base::{PageId, Result};

/// In memory only: the image was written since the last freeze, and no log record contains its place. So the place is free
/// as soon as the image is superseded.
const FRESH: u64 = 1 << 63;
/// In memory only: this process has written the image or has checked the page in it.
const CHECKED: u64 = 1 << 62;
/// All bits that are in memory only.
const MARKS: u64 = FRESH | CHECKED;

/// The entry of a page that has an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) location: Location,
    pub(crate) fresh: bool,
    /// This process has written the image or has checked the page in it. An image with the right checksum then needs no
    /// other check.
    pub(crate) checked: bool,
}

struct Chunk {
    places: [u64; CHUNK_PAGES],
    crcs: [u32; CHUNK_PAGES],
    /// Its location in the last durable checkpoint.
    home: Option<Location>,
    /// The chunk is in the list of changed chunks.
    changed: bool,
    /// One more at each change of an entry.
    version: u64,
    /// Where it was written, as it is now, ahead of the next checkpoint.
    ahead: Option<Location>,
}

/// A chunk as a checkpoint will write it.
pub(crate) struct Captured {
    pub(crate) index: usize,
    pub(crate) version: u64,
    /// `None`: none of its pages has an image.
    pub(crate) bytes: Option<Box<[u8]>>,
}

/// The page table in memory.
#[derive(Default)]
pub(crate) struct PageTable {
    chunks: Vec<Option<Box<Chunk>>>,
    /// Where groups of chunks are in the last durable checkpoint.
    groups: Vec<Option<Location>>,
    /// The chunks that have changed since the last capture.
    changed: Vec<usize>,
    pages: u64,
    live: u64,
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

    /// The entry of a page; `None` without an image.
    pub(crate) fn get(&self, id: PageId) -> Option<Entry> {
        let (index, slot) = split(id);
        let chunk = self.chunks.get(index)?.as_deref()?;
        entry(*chunk.places.get(slot)?, *chunk.crcs.get(slot)?)
    }

    /// Sets or empties the entry of a page and returns the one before.
    pub(crate) fn set(&mut self, id: PageId, new: Option<Entry>) -> Option<Entry> {
        let old = self.get(id);
        if old != new {
            let (index, _) = split(id);
            let chunk = self.chunk(index)?;
            chunk.version += 1;
            self.mark_changed(index);
            self.put(id, old, new);
        }
        old
    }

    /// Replaces the entry `old` of a page. Its chunk does not count as changed.
    fn put(&mut self, id: PageId, old: Option<Entry>, new: Option<Entry>) -> Option<()> {
        let (index, slot) = split(id);
        let chunk = self.chunk(index)?;
        *chunk.places.get_mut(slot)? = new.map_or(0, |entry| {
            let mark = |is_set, mark| if is_set { mark } else { 0 };
            entry.location.place.bits() | mark(entry.fresh, FRESH) | mark(entry.checked, CHECKED)
        });
        *chunk.crcs.get_mut(slot)? = new.map_or(0, |entry| entry.location.crc);
        let grains = |entry: Option<Entry>| entry.map_or(0, |entry| entry.location.place.grains());
        self.live = self.live + grains(new) - grains(old);
        self.pages = self.pages + u64::from(new.is_some()) - u64::from(old.is_some());
        Some(())
    }

    /// Notes that the page in the image at `location` is sound, if the page still has this image.
    pub(crate) fn note_checked(&mut self, id: PageId, location: Location) {
        let (index, slot) = split(id);
        if self.get(id).is_some_and(|entry| entry.location == location)
            && let Some(Some(chunk)) = self.chunks.get_mut(index)
            && let Some(place) = chunk.places.get_mut(slot)
        {
            *place |= CHECKED;
        }
    }

    /// The chunk at `index`, made if need be.
    fn chunk(&mut self, index: usize) -> Option<&mut Chunk> {
        if self.chunks.len() <= index {
            self.chunks.resize_with(index + 1, || None);
        }
        let chunk = self.chunks.get_mut(index)?.get_or_insert_with(|| {
            Box::new(Chunk {
                places: [0; CHUNK_PAGES],
                crcs: [0; CHUNK_PAGES],
                home: None,
                changed: false,
                version: 0,
                ahead: None,
            })
        });
        Some(chunk)
    }

    /// Copies the chunks that have changed since the last capture. Their entries are not fresh afterwards.
    pub(crate) fn capture(&mut self) -> Vec<Captured> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.sort_unstable();
        let mut captured = Vec::with_capacity(changed.len());
        for index in changed {
            if let Some(Some(chunk)) = self.chunks.get_mut(index) {
                chunk.changed = false;
                captured.push(Captured { index, version: chunk.version, bytes: capture_chunk(chunk) });
            }
        }
        captured
    }

    /// Makes the next capture take a chunk, as after a checkpoint that failed, or to have it moved.
    pub(crate) fn mark_changed(&mut self, index: usize) {
        if let Some(Some(chunk)) = self.chunks.get_mut(index)
            && !std::mem::replace(&mut chunk.changed, true)
        {
            self.changed.push(index);
        }
    }

    /// The bytes of a chunk and its version; `None` where none of its pages has an image.
    pub(crate) fn encode(&self, index: usize) -> Option<(Box<[u8]>, u64)> {
        let chunk = self.chunks.get(index)?.as_deref()?;
        Some((encode_chunk(chunk)?, chunk.version))
    }

    /// Notes where a chunk was written ahead of the next checkpoint; false if it has changed since or has such a place.
    pub(crate) fn set_ahead(&mut self, index: usize, version: u64, location: Location) -> bool {
        match self.chunks.get_mut(index) {
            Some(Some(chunk)) if chunk.version == version && chunk.ahead.is_none() => {
                chunk.ahead = Some(location);
                true
            }
            _ => false,
        }
    }

    /// Where a chunk of this version was written ahead of the next checkpoint. The chunk forgets it.
    pub(crate) fn take_ahead(&mut self, index: usize, version: u64) -> Option<Location> {
        let chunk = self.chunks.get_mut(index)?.as_deref_mut().filter(|chunk| chunk.version == version)?;
        chunk.ahead.take()
    }

    /// Where a chunk was written ahead of the next checkpoint.
    #[cfg(test)]
    pub(crate) fn ahead(&self, index: usize) -> Option<Location> {
        self.chunks.get(index)?.as_deref()?.ahead
    }

    /// The same of the chunk that a page is in, whatever its version.
    pub(crate) fn take_ahead_of(&mut self, id: PageId) -> Option<Location> {
        self.chunks.get_mut(split(id).0)?.as_deref_mut()?.ahead.take()
    }

    /// The location of a chunk in the last durable checkpoint.
    pub(crate) fn home(&self, index: usize) -> Option<Location> {
        self.chunks.get(index)?.as_deref()?.home
    }

    /// Sets the location of a chunk and returns the one before.
    pub(crate) fn set_home(&mut self, index: usize, home: Option<Location>) -> Option<Location> {
        std::mem::replace(&mut self.chunk(index)?.home, home)
    }

    /// The locations of the chunks of a group in the last durable checkpoint.
    pub(crate) fn homes_of(&self, group: usize) -> Vec<Option<Location>> {
        (group * GROUP_CHUNKS..).take(GROUP_CHUNKS).map(|index| self.home(index)).collect()
    }

    /// The locations of all groups in the last durable checkpoint.
    pub(crate) fn groups(&self) -> &[Option<Location>] {
        &self.groups
    }

    /// Sets the location of a group and returns the one before.
    pub(crate) fn set_group(&mut self, group: usize, home: Option<Location>) -> Option<Location> {
        if self.groups.len() <= group {
            self.groups.resize(group + 1, None);
        }
        self.groups.get_mut(group).and_then(|slot| std::mem::replace(slot, home))
    }

    /// Loads a chunk that was read from the device. `load` is called with each page that has an image.
    pub(crate) fn load_chunk(
        &mut self,
        index: usize,
        home: Location,
        bytes: &[u8],
        mut load: impl FnMut(PageId, Location) -> Result<()>,
    ) -> Result<()> {
        let first = index * CHUNK_PAGES;
        for (slot, location) in decode_chunk(bytes)?.into_iter().enumerate() {
            let Some(location) = location else { continue };
            let id = PageId(u32::try_from(first + slot).map_err(|_| corrupt("it has too many chunks".into()))?);
            load(id, location)?;
            self.put(id, None, Some(Entry { location, fresh: false, checked: false }));
        }
        if let Some(chunk) = self.chunk(index) {
            chunk.home = Some(home);
        }
        Ok(())
    }

    /// Calls `visit` with every page that has an image.
    pub(crate) fn each(&self, visit: impl FnMut(PageId, Place)) {
        self.each_between(PageId(0), PageId(u32::MAX), visit);
    }

    /// The same of the pages from `from` to before `to`.
    pub(crate) fn each_between(&self, from: PageId, to: PageId, mut visit: impl FnMut(PageId, Place)) {
        let (first, last) = (split(from).0, split(to).0);
        for (index, chunk) in self.chunks.iter().enumerate().take(last + 1).skip(first) {
            let Some(chunk) = chunk.as_deref() else { continue };
            for (slot, (&place, &crc)) in chunk.places.iter().zip(&chunk.crcs).enumerate() {
                if let (Some(entry), Ok(id)) = (entry(place, crc), u32::try_from(index * CHUNK_PAGES + slot))
                    && (from.0..to.0).contains(&id)
                {
                    visit(PageId(id), entry.location.place);
                }
            }
        }
    }
}

fn entry(place: u64, crc: u32) -> Option<Entry> {
    let location = Location { place: Place::from_bits(place & !MARKS)?, crc };
    Some(Entry { location, fresh: place & FRESH != 0, checked: place & CHECKED != 0 })
}

fn capture_chunk(chunk: &mut Chunk) -> Option<Box<[u8]>> {
    chunk.places.iter_mut().for_each(|place| *place &= !FRESH);
    encode_chunk(chunk)
}

fn encode_chunk(chunk: &Chunk) -> Option<Box<[u8]>> {
    let mut bytes = vec![0; CHUNK_BYTES];
    let mut any = false;
    let fields = bytes.chunks_exact_mut(Location::BYTES);
    for ((place, crc), field) in chunk.places.iter().zip(&chunk.crcs).zip(fields) {
        any |= *place != 0;
        put_u64(field, 0, *place & !MARKS);
        put_u32(field, 8, *crc);
    }
    any.then(|| bytes.into_boxed_slice())
}

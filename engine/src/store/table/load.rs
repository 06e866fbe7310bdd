//! Loads the page table, the policies of tables and the places of dictionaries when a file is opened.

use super::allocator::PlaceAllocator;
use super::directory::Directory;
use super::encoding::{
    CHUNK_BYTES, CHUNK_PAGES, GROUP_BYTES, GROUP_CHUNKS, corrupt, decode_directory, decode_group, each_in_chunk,
};
use super::free_map::{self, FreeMap};
use super::image::IMAGE_HEADER;
use super::page_table::{Missing, WithImage};
use super::place::{Extent, FIRST_GRAIN, GRAIN, Location, grains_of};
use super::space::Space;
use super::{PageTableState, TableParts};
use crate::base::checksum::{chained, checksum};
use crate::base::{PageId, Result};
use crate::io::Disk;
use crate::store::compress::{DictionaryPlace, POLICY_BYTES, Policies, decode_dictionaries, decode_policies};
use crate::store::file::DatabaseFile;
use std::ops::Range;

/// Bytes of policies that are read together.
const POLICIES_TOGETHER: u64 = 4096 * POLICY_BYTES as u64;

/// The first and the last page of chunks.
pub(super) fn pages_of(chunks: &Range<usize>) -> (usize, usize) {
    (chunks.start * CHUNK_PAGES, chunks.end * CHUNK_PAGES - 1)
}

/// The message for a damaged chunk of the page table.
pub(super) fn describe_chunk(chunk: usize, why: &str) -> String {
    let (first, last) = pages_of(&(chunk..chunk + 1));
    format!("its chunk {chunk}, of pages {first} to {last}, is damaged: {why}")
}

/// The message for chunks of the page table that cannot be read.
pub(super) fn describe_damage(chunks: &Range<usize>) -> String {
    let (first, last) = pages_of(chunks);
    match chunks.len() {
        1 => describe_chunk(chunks.start, "wrong checksum"),
        _ => format!(
            "the group of its chunks {} to {}, of pages {first} to {last}, is damaged",
            chunks.start,
            chunks.end - 1
        ),
    }
}

/// The message for an image that is too long for a page.
pub(super) fn longer_than_a_page(image: &str) -> String {
    format!("{image} is longer than a page")
}

/// The limits that each entry of the page table must keep.
#[derive(Clone, Copy)]
pub(super) struct EntryLimits {
    /// No page has this id or a greater one.
    pub(super) high_water: u32,
    /// The length of the longest image, in grains.
    pub(super) longest_image: u64,
}

impl EntryLimits {
    /// The id of the page with this number. An error if there is no such page, or if
    /// its image is longer than the longest image.
    pub(super) fn check(self, page: usize, location: Location) -> Result<PageId> {
        let EntryLimits { high_water, longest_image } = self;
        let id = PageId(u32::try_from(page).unwrap_or(u32::MAX));
        if id.0 >= high_water {
            return Err(corrupt(format!("it has page {id}, but all page ids are below {high_water}")));
        }
        if location.place.grains() > longest_image {
            return Err(corrupt(longer_than_a_page(&format!("the image of page {id}"))));
        }
        Ok(id)
    }
}

/// How a page table is read, and which damage to it is an error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Every damage is an error, except for a chunk with a wrong checksum.
    All,
    /// The same damage is an error. The places in use are those of the free map, and no chunk is decoded.
    Mapped,
    /// Damaged parts are left out.
    Readable,
}

/// Writes damage of the page table to the log of the program.
pub(super) fn log_damage(what: &str) {
    tracing::error!(what, "a part of the page table is damaged");
}

/// Checks that `extent` is not beyond the end of the file.
pub(super) fn check_end(file_end: u64, extent: Extent, what: impl Fn() -> String) -> Result<()> {
    match extent.end() > file_end {
        true => Err(corrupt(format!("the file is truncated: {} lies beyond its end", what()))),
        false => Ok(()),
    }
}

/// Takes a place that the page table names, unless it is beyond the end of the file or another's.
fn claim(allocator: &mut PlaceAllocator, file_end: u64, extent: Extent, what: impl Fn() -> String) -> Result<()> {
    // Before claiming: the free map is as large as what is claimed.
    check_end(file_end, extent, &what)?;
    if !allocator.claim(extent) {
        return Err(corrupt(format!("the place of {} is in use", what())));
    }
    Ok(())
}

/// The places of images side by side. They are taken together, which takes less time than one by one.
#[derive(Default)]
struct ImageRun {
    extent: Extent,
    images: Vec<(PageId, Extent)>,
}

impl ImageRun {
    /// Adds an image. If it does not begin where the run ends, takes the run first and begins another one.
    fn add(&mut self, allocator: &mut PlaceAllocator, id: PageId, image: Extent) -> Result<()> {
        let taken = if image.first == self.extent.end() { Ok(()) } else { self.take(allocator) };
        if self.images.is_empty() {
            self.extent = Extent { first: image.first, grains: 0 };
        }
        self.extent.grains += image.grains;
        self.images.push((id, image));
        taken
    }

    /// Takes the places. If something else is there, the error names the first page of which that is true; the others
    /// get their places.
    fn take(&mut self, allocator: &mut PlaceAllocator) -> Result<()> {
        if self.images.is_empty() || allocator.claim(self.extent) {
            self.images.clear();
            return Ok(());
        }
        let mut taken = Ok(());
        for (id, image) in self.images.drain(..) {
            let one = claim(allocator, u64::MAX, image, || format!("page {id}"));
            taken = taken.and(one);
        }
        taken
    }
}

/// The other results of loading a page table.
#[derive(Default)]
pub(super) struct Loaded {
    /// The chunks that are damaged, or whose group is.
    pub(super) damaged: Vec<Range<usize>>,
    pub(super) policies: Policies,
    pub(super) dictionaries: Vec<DictionaryPlace>,
}

/// The source that a page table is loaded from.
pub(super) struct TableSource<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) page_size: usize,
    /// No page has this id or a greater one.
    pub(super) high_water: u32,
    pub(super) directory: Directory,
}

impl TableSource<'_> {
    /// The valid superblock of a file.
    pub(super) fn of(file: &DatabaseFile) -> Result<TableSource<'_>> {
        let (disk, high_water) = (file.disk(), file.meta().high_water);
        Ok(TableSource {
            disk,
            page_size: file.page_size(),
            high_water,
            directory: Directory::decode(&file.store_header())?,
        })
    }

    /// The length of the file in grains.
    pub(super) fn end(&self) -> Result<u64> {
        Ok(self.disk.size()? / GRAIN as u64)
    }
}

/// Reads the directory, all groups and all chunks, and takes every place that they name. With a free map the places are
/// known, and no chunk is decoded. If the map is damaged or does not fit, it is not used.
pub(super) fn open_table(source: &TableSource<'_>, parts: &mut TableParts) -> Result<Loaded> {
    if source.directory.map.is_some() {
        match load_table(source, parts, Reading::Mapped) {
            Ok(loaded) => return Ok(loaded),
            Err(cause) => tracing::warn!(%cause, "the free map is not used: all of the page table is read"),
        }
        *parts = TableParts::new(source.page_size);
    }
    load_table(source, parts, Reading::All)
}

/// The same in a given way.
pub(super) fn load_table(source: &TableSource<'_>, parts: &mut TableParts, reading: Reading) -> Result<Loaded> {
    let &TableSource { disk, page_size, high_water, directory } = source;
    parts.state.high_water = high_water;
    if directory.len == 0 {
        return Ok(Loaded::default());
    }
    let end = source.end()?;
    if let (Reading::Mapped, Some(place)) = (reading, directory.map) {
        let longest = parts.space.allocator.longest_place();
        let FreeMap { allocator, pages, live } = free_map::read(disk, place, end, longest)?;
        parts.space.allocator = allocator;
        parts.state.table.count(pages, live);
    }
    let limits = EntryLimits { high_water, longest_image: grains_of(page_size + IMAGE_HEADER) };
    let mut loader = Loader { disk, end, limits, reading, parts, grains: 0, bytes: Vec::new() };
    let (groups, mut loaded) = loader.load_directory(&directory)?;
    for (index, location) in groups.into_iter().enumerate() {
        if let Some(location) = location {
            loader.load_group(index, location, &mut loaded.damaged)?;
        }
    }
    loader.check_counts()?;
    if let Some(map) = directory.map {
        let taken = claim(&mut loader.parts.space.allocator, end, map.extent(), || "its free map".into());
        loader.or_nothing(taken, ())?;
    }
    Ok(loaded)
}

/// Reads the directory piece by piece.
struct DirectoryReader<'a> {
    disk: &'a dyn Disk,
    /// Byte offset of the next piece.
    at: u64,
    /// The checksum of all pieces so far.
    crc: u32,
    bytes: Vec<u8>,
}

impl DirectoryReader<'_> {
    fn read(&mut self, len: u64) -> Result<&[u8]> {
        self.bytes.resize(usize::try_from(len).unwrap_or(0), 0);
        self.disk.read_at(self.at, &mut self.bytes)?;
        self.at += len;
        self.crc = chained(self.crc, &self.bytes);
        Ok(&self.bytes)
    }

    /// Reads the policies, which are in the order of their tables. A hole of the file holds no two of them in order, so
    /// a number of policies costs no more memory than the file has bytes.
    fn read_policies(&mut self, mut left: u64) -> Result<Policies> {
        let (mut policies, mut last) = (Policies::new(), None);
        while left > 0 {
            let len = left.min(POLICIES_TOGETHER);
            for (table, policy) in decode_policies(self.read(len)?).map_err(corrupt)? {
                if last.is_some_and(|last| table.0 <= last) {
                    return Err(corrupt(format!(
                        "the policies in its directory are not in order at table {}",
                        table.0
                    )));
                }
                last = Some(table.0);
                policies.insert(table, policy);
            }
            left -= len;
        }
        Ok(policies)
    }
}

/// The state of loading groups and chunks.
struct Loader<'a> {
    disk: &'a dyn Disk,
    /// The end of the file, in grains.
    end: u64,
    limits: EntryLimits,
    reading: Reading,
    parts: &'a mut TableParts,
    /// Grains of the directory, groups and chunks.
    grains: u64,
    bytes: Vec<u8>,
}

impl Loader<'_> {
    /// Returns `nothing` instead of an error, if damaged parts are left out.
    fn or_nothing<T>(&self, found: Result<T>, nothing: T) -> Result<T> {
        match self.reading {
            Reading::All | Reading::Mapped => found,
            Reading::Readable => Ok(found.unwrap_or(nothing)),
        }
    }

    /// Takes the place of a part of the page table.
    fn take(&mut self, extent: Extent, what: impl Fn() -> String) -> Result<()> {
        self.grains += extent.grains;
        if self.reading != Reading::Mapped {
            return claim(&mut self.parts.space.allocator, self.end, extent, what);
        }
        check_end(self.end, extent, &what)?;
        match self.parts.space.allocator.is_used(extent) {
            true => Ok(()),
            false => Err(corrupt(format!("the place of {} is free in the free map", what()))),
        }
    }

    /// Fails if a free map was used that has not as many grains as the page table.
    fn check_counts(&self) -> Result<()> {
        let (named, used) =
            (FIRST_GRAIN + self.grains + self.parts.state.table.live(), self.parts.space.allocator.used());
        match self.reading {
            Reading::Mapped if named != used => {
                Err(corrupt(format!("its free map counts {used} grains, the page table {named}")))
            }
            _ => Ok(()),
        }
    }

    /// Reads the directory: the locations of groups, the policies and the places of dictionaries.
    fn load_directory(&mut self, directory: &Directory) -> Result<(Vec<Option<Location>>, Loaded)> {
        let high_water = self.limits.high_water;
        let chunks = (high_water as usize).div_ceil(CHUNK_PAGES);
        if directory.groups_len() > (chunks.div_ceil(GROUP_CHUNKS) * Location::BYTES) as u64 {
            return Err(corrupt(format!("its directory covers more than {high_water} pages")));
        }
        self.take(directory.extent(), || "its directory".into())?;
        let mut reader =
            DirectoryReader { disk: self.disk, at: directory.extent().offset(), crc: 0, bytes: Vec::new() };
        let groups = reader.read(directory.groups_len())?.to_vec();
        let policies = reader.read_policies(directory.policies_len())?;
        let dictionaries = decode_dictionaries(reader.read(directory.dictionaries_len())?);
        if reader.crc != directory.crc {
            return Err(corrupt("its directory has a wrong checksum".into()));
        }
        Ok((decode_directory(&groups)?, Loaded { damaged: Vec::new(), policies, dictionaries }))
    }

    /// Reads a group, whose location is in the directory, and its chunks.
    fn load_group(&mut self, index: usize, location: Location, damaged: &mut Vec<Range<usize>>) -> Result<()> {
        let first = index * GROUP_CHUNKS;
        let chunks = (self.limits.high_water as usize).div_ceil(CHUNK_PAGES);
        let read = self.read_group(index, location);
        let Some(locations) = self.or_nothing(read.map(Some), None)? else {
            let lost = first..(first + GROUP_CHUNKS).min(chunks);
            log_damage(&describe_damage(&lost));
            damaged.push(lost);
            return Ok(());
        };
        self.parts.state.table.set_group(index, Some(location));
        for (index, location) in (first..).zip(locations) {
            let Some(location) = location else { continue };
            if index >= chunks {
                let high_water = self.limits.high_water;
                return Err(corrupt(format!("its chunk {index} is beyond the last page of {high_water}")));
            }
            let sound = self.read_chunk(index, location);
            if self.or_nothing(sound, false)? {
                self.load_chunk(index, location)?;
            } else {
                let lost = index..index + 1;
                log_damage(&describe_damage(&lost));
                damaged.push(lost);
            }
        }
        Ok(())
    }

    /// Takes the place of a group, and reads it.
    fn read_group(&mut self, index: usize, location: Location) -> Result<Vec<Option<Location>>> {
        let len = location.place.len();
        if len > GROUP_BYTES {
            return Err(corrupt(format!("its group {index} of chunks has {len} bytes")));
        }
        let what = || format!("its group {index} of chunks");
        self.take(location.place.extent(), what)?;
        self.bytes.resize(len, 0);
        self.disk.read_at(location.place.offset(), &mut self.bytes)?;
        if checksum(&self.bytes) != location.crc {
            return Err(corrupt(format!("its group {index} of chunks has a wrong checksum")));
        }
        decode_group(&self.bytes)
    }

    /// Takes the place of a chunk, and reads it; false if its checksum is wrong.
    fn read_chunk(&mut self, index: usize, location: Location) -> Result<bool> {
        if location.place.len() != CHUNK_BYTES {
            return Err(corrupt(format!("its chunk {index} has {} bytes", location.place.len())));
        }
        self.take(location.place.extent(), || format!("its chunk {index}"))?;
        self.bytes.resize(CHUNK_BYTES, 0);
        self.disk.read_at(location.place.offset(), &mut self.bytes)?;
        Ok(checksum(&self.bytes) == location.crc)
    }

    /// Counts the pages of the chunk that was read, and takes their places. The chunk stays in memory if there is room
    /// for it, and always if damaged parts are left out.
    fn load_chunk(&mut self, index: usize, location: Location) -> Result<()> {
        let Loader { end, limits, reading, .. } = *self;
        if reading == Reading::Mapped {
            self.parts.state.table.set_chunk_location(index, Some(location));
            return Ok(());
        }
        let TableParts { state: PageTableState { table, .. }, space: Space { allocator, .. } } = &mut *self.parts;
        // Reading a page reports it.
        let or_left_out = |taken: Result<()>| if reading == Reading::Readable { Ok(()) } else { taken };
        let is_kept = reading == Reading::Readable || table.has_room();
        let (mut run, mut kept, mut with_image) = (ImageRun::default(), Vec::new(), WithImage::default());
        let (mut pages, mut live) = (0, 0);
        each_in_chunk(&self.bytes, |slot, location| {
            let id = limits.check(index * CHUNK_PAGES + slot, location)?;
            (pages, live) = (pages + 1, live + location.place.grains());
            with_image.add(slot);
            if is_kept {
                kept.push((slot, location));
            }
            let extent = location.place.extent();
            let reaches = check_end(end, extent, || format!("page {id}"));
            or_left_out(reaches.and_then(|()| run.add(allocator, id, extent)))
        })?;
        or_left_out(run.take(allocator))?;
        table.add_chunk_location(index, location, (pages, live), with_image);
        if is_kept {
            table.load(Missing { index, location }, kept.into_iter());
        }
        Ok(())
    }
}

//! Loads the page table, the policies of tables and the places of dictionaries when a file is opened.

use super::directory::Directory;
use super::image::IMAGE_HEADER;
use super::page_table::{CHUNK_BYTES, CHUNK_PAGES, decode_directory};
use super::place::{Extent, GRAIN, Location, grains_of};
use super::{PlaceAllocator, State};
use crate::base::checksum::checksum;
use crate::base::{Error, PageId, Result};
use crate::io::Disk;
use crate::store::compress::{DictionaryPlace, Policies, decode_dictionaries, decode_policies};
use crate::store::file::DatabaseFile;

pub(super) fn corrupt(why: String) -> Error {
    Error::CorruptMeta { what: "the page table", why }
}

/// The message for a chunk of the page table whose checksum is wrong.
pub(super) fn describe_damage(chunk: usize) -> String {
    let first = chunk * CHUNK_PAGES;
    format!("its chunk {chunk}, of pages {first} to {}, has a wrong checksum", first + CHUNK_PAGES - 1)
}

/// Which damage to a page table is an error.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// Any, except for a chunk with a wrong checksum.
    All,
    /// None: damaged parts are left out.
    WhatIsLeft,
}

fn check_end(file_end: u64, extent: Extent, what: impl Fn() -> String) -> Result<()> {
    match extent.end() > file_end {
        true => Err(corrupt(format!("the file is cut short: {} lies beyond its end", what()))),
        false => Ok(()),
    }
}

/// Takes a place that the page table names, unless it is beyond the end of the file or another's.
fn claim(allocator: &mut PlaceAllocator, file_end: u64, extent: Extent, what: impl Fn() -> String) -> Result<()> {
    // Before claiming: the free map is as large as what is claimed.
    check_end(file_end, extent, &what)?;
    if !allocator.claim(extent) {
        return Err(corrupt(format!("{} lies where something else is", what())));
    }
    Ok(())
}

/// The places of images side by side. They are taken together, which takes less time than one by one.
#[derive(Default)]
struct Run {
    extent: Extent,
    images: Vec<(PageId, Extent)>,
}

impl Run {
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

    /// Takes the places. If something else is there, the error names the first page of which that is true; the others get
    /// their places.
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

/// What was read beside the page table.
#[derive(Default)]
pub(super) struct Loaded {
    /// The chunks that are damaged.
    pub(super) damaged: Vec<usize>,
    pub(super) policies: Policies,
    pub(super) dictionaries: Vec<DictionaryPlace>,
}

/// Reads the directory and all chunks, and takes every place that they name.
pub(super) fn load_table(file: &DatabaseFile, state: &mut State, reading: Reading) -> Result<Loaded> {
    let (disk, directory) = (file.disk(), Directory::decode(&file.own())?);
    let mut loaded = Loaded::default();
    if directory.len == 0 {
        return Ok(loaded);
    }
    let (end, lenient) = (disk.size()? / GRAIN as u64, reading == Reading::WhatIsLeft);
    let high_water = file.meta().high_water;
    if directory.chunks_len() > u64::from(high_water).div_ceil(CHUNK_PAGES as u64) * Location::BYTES as u64 {
        return Err(corrupt(format!("its directory is of more pages than the {high_water} that there are")));
    }
    claim(&mut state.allocator, end, directory.extent(), || "its directory".into())?;
    let mut bytes = vec![0; usize::try_from(directory.len).unwrap_or(0)];
    disk.read_at(directory.extent().offset(), &mut bytes)?;
    if checksum(&bytes) != directory.crc {
        return Err(corrupt("its directory has a wrong checksum".into()));
    }
    let most = grains_of(file.page_size() + IMAGE_HEADER);
    let mut chunk = vec![0; CHUNK_BYTES];
    let part = |len: u64| usize::try_from(len).unwrap_or(0).min(bytes.len());
    let (chunks, rest) = bytes.split_at(part(directory.chunks_len()));
    let (policies, dictionaries) = rest.split_at(rest.len().saturating_sub(part(directory.dictionaries_len())));
    loaded.dictionaries = decode_dictionaries(dictionaries);
    loaded.policies = decode_policies(policies).map_err(corrupt)?.into_iter().collect();
    for (index, home) in decode_directory(chunks)?.into_iter().enumerate() {
        let Some(home) = home else { continue };
        let State { table, allocator, .. } = state;
        // Reading a page reports it.
        let or_lenient = |taken: Result<()>| taken.or_else(|error| if lenient { Ok(()) } else { Err(error) });
        let mut run = Run::default();
        let sound = read_chunk(disk, end, index, home, allocator, &mut chunk);
        if !sound.or_else(|error| if lenient { Ok(false) } else { Err(error) })? {
            tracing::error!(what = describe_damage(index), "a part of the page table is damaged");
            loaded.damaged.push(index);
            continue;
        }
        table.load_chunk(index, home, &chunk, |id, location| {
            if id.0 >= high_water {
                return Err(corrupt(format!("page {id} is none of the {high_water} that there are")));
            }
            if location.place.grains() > most {
                return Err(corrupt(format!("the image of page {id} is longer than a page")));
            }
            let extent = location.place.extent();
            let reaches = check_end(end, extent, || format!("page {id}"));
            or_lenient(reaches.and_then(|()| run.add(allocator, id, extent)))
        })?;
        or_lenient(run.take(allocator))?;
    }
    Ok(loaded)
}

/// Reads a chunk of the page table; false if its checksum is wrong.
fn read_chunk(
    disk: &dyn Disk,
    file_end: u64,
    index: usize,
    home: Location,
    allocator: &mut PlaceAllocator,
    chunk: &mut [u8],
) -> Result<bool> {
    if home.place.len() != CHUNK_BYTES {
        return Err(corrupt(format!("its chunk {index} has {} bytes", home.place.len())));
    }
    claim(allocator, file_end, home.place.extent(), || format!("its chunk {index}"))?;
    disk.read_at(home.place.offset(), chunk)?;
    Ok(checksum(chunk) == home.crc)
}

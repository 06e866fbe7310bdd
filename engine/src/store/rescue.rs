//! Opening a file whose superblocks or page table are damaged: each image says which page it is, so that what the page
//! table does not tell is found by looking at the whole file. What a page means must never be known here.
//!
//! Of the images of one page the one with the greatest LSN counts. It is the newest, unless that one is damaged: then an
//! older one is found, which is why a page table that is sound is always believed, and this only asked about the rest.

use super::image::{IMAGE_HEADER, sound_image};
use super::page_table::{CHUNK_PAGES, Entry};
use super::place::{FIRST_GRAIN, GRAIN, Location, Place};
use super::region::REGION;
use super::superblock::{self, Meta, SUPERBLOCK, Superblock};
use super::table_store::{Current, Reading, State, TableStore, describe_damage, load_table};
use crate::base::limits::MAX_PAGE_SIZE;
use crate::base::{Error, Lsn, PageId, Result, bytes};
use crate::io::{Disk, read_what_can_be};
use crate::page::map_page_size;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Bytes that are read at once: no image crosses their borders.
const PIECE: usize = REGION as usize * GRAIN;
const _: () = assert!(2 * SUPERBLOCK as u64 == FIRST_GRAIN * GRAIN as u64);

/// A sound image that was found in the file.
pub struct FoundImage<'a> {
    /// The page that it says it is.
    pub page: PageId,
    /// Its LSN.
    pub lsn: Lsn,
    /// Where it is.
    pub location: Location,
    /// The packed page in it.
    pub packed: &'a [u8],
}

/// A store that was opened for what is left of it.
pub struct RescuedStore {
    /// The store.
    pub store: TableStore,
    /// What the superblock says, or where there is none what may be so.
    pub meta: Meta,
    /// The superblock may be an older one: the other is damaged.
    pub outdated: bool,
    /// Pages were found by their images alone: of some, the newest may be lost.
    pub guessed: bool,
    /// Every page id is smaller.
    pub ids_end: u32,
    /// No LSN of a page that was found is greater, and none of `meta`.
    pub last: Lsn,
    /// What was damaged, in words.
    pub damage: Vec<String>,
}

/// Whether the page table is asked where pages are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trust {
    /// As far as it is sound.
    Table,
    /// No: it may be an old one. The newest image of each page counts.
    Images,
}

impl TableStore {
    /// Opens a file as far as it can be read, to read it. `page_size` counts where neither a superblock nor an
    /// allocation map says it.
    ///
    /// # Errors
    /// [`Error::FormatVersion`]; [`Error::NotADatabase`] where there is no superblock and no image either; what the
    /// device says.
    pub fn open_damaged(disk: Arc<dyn Disk>, path: &Path, page_size: usize, trust: Trust) -> Result<RescuedStore> {
        let size = disk.size()?;
        let mut front = vec![0; usize::try_from(size.min(2 * SUPERBLOCK as u64)).unwrap_or(0)];
        read_what_can_be(&*disk, 0, &mut front);
        let mut damage = Vec::new();
        let chosen = match superblock::choose(&front, path) {
            Err(error @ (Error::CorruptMeta { .. } | Error::NotADatabase { .. })) => Err(error),
            Err(error @ Error::FormatVersion { .. }) if !superblock::is_of_another_version(&front) => Err(error),
            chosen => Ok(chosen?),
        };
        let (superblock, slot) = match &chosen {
            Ok(chosen) => *chosen,
            Err(_) => (Superblock::without_table(told_page_size(&*disk)?.unwrap_or(page_size)), 0),
        };
        let mut state = State::new(superblock.meta.page_size);
        let (mut outdated, mut guessed) = (false, false);
        // The chunks that are missing; `None`: all of them.
        let missing = match &chosen {
            Err(error) => {
                damage.push(told(error));
                None
            }
            Ok(_) => {
                let other = 1 - slot.min(1);
                outdated = !superblock::is_sound(&front, other);
                if outdated {
                    damage.push(format!("superblock {other}: it has not its checksum"));
                }
                match load_table(&*disk, size, &superblock, &mut state, Reading::WhatIsLeft) {
                    Ok(damaged) => {
                        damage
                            .extend(damaged.iter().map(|chunk| format!("the page table: {}", describe_damage(*chunk))));
                        Some(damaged)
                    }
                    Err(error) => {
                        damage.push(told(&error));
                        state = State::new(superblock.meta.page_size);
                        None
                    }
                }
            }
        };
        let missing = missing.filter(|_| trust == Trust::Table);
        let (mut ids_end, mut last) = (superblock.meta.high_water, superblock.meta.last);
        if missing.as_ref().is_none_or(|chunks| !chunks.is_empty()) {
            guessed = true;
            let found = newest_images(&*disk, superblock.meta.page_size)?;
            if let (Err(error @ Error::NotADatabase { .. }), true) = (chosen, found.is_empty()) {
                return Err(error);
            }
            if missing.is_none() {
                state = State::new(superblock.meta.page_size);
            }
            for (page, lsn) in adopt(&mut state, missing.as_deref(), found) {
                ids_end = ids_end.max(page.0.saturating_add(1));
                last = last.max(Lsn(lsn.0.saturating_add(1)));
            }
        }
        let current = Current { superblock, slot, other_damaged: false };
        let mut store = TableStore::assemble(disk, path, state, current)?;
        store.rescued = true;
        Ok(RescuedStore { store, meta: superblock.meta, outdated, guessed, ids_end, last, damage })
    }

    /// Every page that has an image, in order.
    pub fn pages(&self) -> Vec<PageId> {
        let mut pages = Vec::new();
        self.state.lock().table.each(|page, _| pages.push(page));
        pages
    }

    /// Calls `visit` with every sound image in the file: those that count, and old ones that nothing has overwritten yet.
    pub fn each_image(&self, visit: impl FnMut(FoundImage<'_>)) -> Result<()> {
        each_image(&*self.disk, self.page_size, visit)
    }
}

/// An error without the advice that comes with it.
fn told(error: &Error) -> String {
    match error {
        Error::CorruptMeta { what, why } => format!("{what}: {why}"),
        Error::NotADatabase { what, .. } => format!("the superblock: {what}"),
        other => other.to_string(),
    }
}

/// The newest image of each page.
fn newest_images(disk: &dyn Disk, page_size: usize) -> Result<BTreeMap<PageId, (Lsn, Location)>> {
    let mut found = BTreeMap::new();
    // A database has never had many more ids than its file has had room for pages; a greater one is another file's.
    let most = (disk.size()? / GRAIN as u64).saturating_mul(64).saturating_add(1 << 16);
    each_image(disk, page_size, |image| {
        if u64::from(image.page.0) >= most {
            return;
        }
        let newest = found.entry(image.page).or_insert((image.lsn, image.location));
        if image.lsn >= newest.0 {
            *newest = (image.lsn, image.location);
        }
    })?;
    Ok(found)
}

/// Puts the pages of the chunks that are missing into the page table, and gives them.
fn adopt(state: &mut State, missing: Option<&[usize]>, found: BTreeMap<PageId, (Lsn, Location)>) -> Vec<(PageId, Lsn)> {
    let mut adopted = Vec::new();
    for (page, (lsn, location)) in found {
        let chunk = page.0 as usize / CHUNK_PAGES;
        let wanted = missing.is_none_or(|missing| missing.contains(&chunk));
        if wanted && state.allocator.claim(location.place.extent()) {
            state.table.set(page, Some(Entry { location, fresh: false }));
            adopted.push((page, lsn));
        }
    }
    adopted
}

/// The page size that an allocation map tells: the first page of every database is one.
fn told_page_size(disk: &dyn Disk) -> Result<Option<usize>> {
    let mut told = None;
    each_image(disk, MAX_PAGE_SIZE, |image| told = told.or(map_page_size(image.packed)))?;
    Ok(told)
}

/// Whether there are images where a database begins: a file without superblocks that is one all the same.
pub(super) fn begins_with_images(disk: &dyn Disk) -> Result<bool> {
    let len = usize::try_from(disk.size()?).unwrap_or(usize::MAX).min(PIECE);
    let mut piece = vec![0; len];
    read_what_can_be(disk, 0, &mut piece);
    let grains = (2 * SUPERBLOCK..len).step_by(GRAIN);
    Ok(grains.into_iter().any(|at| sound_image(bytes::slice(&piece, at, len), MAX_PAGE_SIZE).is_some()))
}

/// Calls `visit` with every sound image in the file, in the order of their places.
fn each_image(disk: &dyn Disk, page_size: usize, mut visit: impl FnMut(FoundImage<'_>)) -> Result<()> {
    let size = disk.size()?;
    let mut piece = vec![0; PIECE];
    let mut offset = 0;
    while offset < size {
        let len = usize::try_from(size - offset).unwrap_or(usize::MAX).min(PIECE);
        let Some(piece) = piece.get_mut(..len) else { break };
        read_what_can_be(disk, offset, piece);
        let mut at = if offset == 0 { 2 * SUPERBLOCK } else { 0 };
        while at < len {
            let grain = (offset + at as u64) / GRAIN as u64;
            let image = sound_image(bytes::slice(piece, at, len), page_size);
            let found = image.and_then(|(page, crc, packed)| {
                let grains = (IMAGE_HEADER + packed.len()).div_ceil(GRAIN);
                let location = Location { place: Place::new(grain, grains as u64)?, crc };
                let lsn = Lsn(bytes::get_u64(packed, 0));
                Some((FoundImage { page, lsn, location, packed }, grains))
            });
            at += GRAIN * found.as_ref().map_or(1, |(_, grains)| *grains);
            if let Some((image, _)) = found {
                visit(image);
            }
        }
        offset += PIECE as u64;
    }
    Ok(())
}

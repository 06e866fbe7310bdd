//! Opening a file whose superblocks or page table are damaged: each image says which page it is, so that what the page
//! table does not tell is found by looking at the whole file. What a page means must never be known here.
//!
//! Of the images of one page the one with the greatest LSN counts. It is the newest, unless that one is damaged: then an
//! older one is found, which is why a page table that is sound is always believed, and this only asked about the rest.

use super::image::{IMAGE_HEADER, sound_image};
use super::page_table::{CHUNK_PAGES, Entry};
use super::place::{FIRST_GRAIN, GRAIN, Location, Place, grains_of};
use super::region::REGION;
use super::{Current, Reading, State, TableStore, load_table};
use crate::base::limits::MAX_PAGE_SIZE;
use crate::base::{Damage, Error, Lsn, PageId, Result, bytes};
use crate::io::{Disk, read_what_can_be};
use crate::page::map_page_size;
use crate::store::superblock::{self, Meta, SUPERBLOCK, Superblock};
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
    /// Which superblock that is.
    pub superblock: Believed,
    /// Pages were found by their images alone: of some, the newest may be lost.
    pub guessed: bool,
    /// Every page id is smaller.
    pub ids_end: u32,
    /// No LSN of a page that was found is greater, and none of `meta`.
    pub last: Lsn,
    /// What was damaged.
    pub damage: Vec<Damage>,
}

/// Which superblock of a damaged file is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Believed {
    /// The newer one of two.
    Newest,
    /// The only one: the other is damaged, and may have been newer.
    Only,
    /// None: both are damaged.
    None,
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
        let (mut damage, mut images, mut missing) = (Vec::new(), None, None);
        let (superblock, slot, believed, mut state) = match chosen(&front, path)? {
            Ok((superblock, slot)) => {
                let other = 1 - slot.min(1);
                let sound = superblock::is_sound(&front, other);
                damage.extend((!sound).then_some(Damage::Superblock { slot: other }));
                let mut state = State::new(superblock.meta.page_size);
                if trust == Trust::Table {
                    missing = load_what_is_left(&*disk, size, &superblock, &mut state, &mut damage);
                }
                (superblock, slot, if sound { Believed::Newest } else { Believed::Only }, state)
            }
            Err(cause) => {
                let found = Images::find(&*disk, MAX_PAGE_SIZE)?;
                if let (Error::NotADatabase { .. }, true) = (&cause, found.newest.is_empty()) {
                    return Err(cause);
                }
                let page_size = found.page_size.unwrap_or(page_size);
                images = Some(found.of_pages(page_size));
                damage.push(Damage::Superblocks { cause: without_path(cause) });
                (Superblock::without_table(page_size), 0, Believed::None, State::new(page_size))
            }
        };
        let (mut ids_end, mut last) = (superblock.meta.high_water, superblock.meta.last);
        let guessed = missing.as_ref().is_none_or(|chunks| !chunks.is_empty());
        if guessed {
            let images = images.map_or_else(|| Images::find(&*disk, superblock.meta.page_size), Ok)?;
            for (page, lsn) in adopt(&mut state, missing.as_deref(), images.newest) {
                ids_end = ids_end.max(page.0.saturating_add(1));
                last = last.max(Lsn(lsn.0.saturating_add(1)));
            }
        }
        let current = Current { superblock, slot, other_damaged: false };
        let mut store = TableStore::assemble(disk, path, state, current)?;
        store.rescued = true;
        Ok(RescuedStore { store, meta: superblock.meta, superblock: believed, guessed, ids_end, last, damage })
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

/// The superblock that counts and its slot, or why there is none. Another version's is an error of the whole.
fn chosen(front: &[u8], path: &Path) -> Result<Result<(Superblock, usize)>> {
    match superblock::choose(front, path) {
        Err(error @ (Error::CorruptMeta { .. } | Error::NotADatabase { .. })) => Ok(Err(error)),
        Err(error @ Error::FormatVersion { .. }) if !superblock::is_of_another_version(front) => Ok(Err(error)),
        chosen => chosen.map(Ok),
    }
}

/// A file with images in it is a database, whatever its superblocks have become.
fn without_path(error: Error) -> Error {
    match error {
        Error::NotADatabase { what, .. } => Error::CorruptMeta { what: "the superblock", why: what },
        other => other,
    }
}

/// Loads what can be read of the page table; gives the chunks that are missing, `None`: all of them.
fn load_what_is_left(
    disk: &dyn Disk,
    size: u64,
    superblock: &Superblock,
    state: &mut State,
    damage: &mut Vec<Damage>,
) -> Option<Vec<usize>> {
    match load_table(disk, size, superblock, state, Reading::WhatIsLeft) {
        Ok(missing) => {
            let id = |page: usize| PageId(u32::try_from(page).unwrap_or(u32::MAX));
            damage.extend(missing.iter().map(|chunk| {
                let first = chunk * CHUNK_PAGES;
                Damage::PageTablePart { first: id(first), last: id(first + CHUNK_PAGES - 1) }
            }));
            Some(missing)
        }
        Err(cause) => {
            damage.push(Damage::PageTable { cause });
            *state = State::new(superblock.meta.page_size);
            None
        }
    }
}

/// What one look at the whole file finds.
#[derive(Default)]
struct Images {
    /// The newest image of each page.
    newest: BTreeMap<PageId, (Lsn, Location)>,
    /// The page size that an allocation map tells: the first page of every database is one.
    page_size: Option<usize>,
}

impl Images {
    /// Of pages of at most `longest` bytes.
    fn find(disk: &dyn Disk, longest: usize) -> Result<Images> {
        let mut found = Images::default();
        // A database has never had many more ids than its file has had room for pages; a greater one is another file's.
        let most = (disk.size()? / GRAIN as u64).saturating_mul(64).saturating_add(1 << 16);
        each_image(disk, longest, |image| {
            found.page_size = found.page_size.or_else(|| map_page_size(image.packed));
            if u64::from(image.page.0) >= most {
                return;
            }
            let newest = found.newest.entry(image.page).or_insert((image.lsn, image.location));
            if image.lsn >= newest.0 {
                *newest = (image.lsn, image.location);
            }
        })?;
        Ok(found)
    }

    /// Without those that no page of that size has.
    fn of_pages(mut self, page_size: usize) -> Images {
        let most = grains_of(page_size + IMAGE_HEADER);
        self.newest.retain(|_, (_, location)| location.place.grains() <= most);
        self
    }
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

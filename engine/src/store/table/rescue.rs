//! Opens a file whose superblocks or page table are damaged. Each image contains its page id, so a search through the
//! whole file finds the pages that the page table does not name.
//!
//! If a page has several images, the one with the greatest LSN is taken. That is an older one if the newest image is
//! damaged. So the sound parts of a page table are always used, and images are searched for the other pages only. If
//! images with this LSN have different contents, the page counts as lost.

use super::encoding::CHUNK_PAGES;
use super::image::{IMAGE_HEADER, ImageContent, sound_image};
use super::load::{Loaded, Reading, TableSource, load_table, pages_of};
use super::page_table::PageEntry;
use super::place::{GRAIN, Location, Place, grains_of};
use super::region::REGION;
use super::{TableParts, TableStore};
use crate::base::checksum::checksum;
use crate::base::limits::MAX_PAGE_SIZE;
use crate::base::{Damage, Error, Lsn, PageId, Result, bytes};
use crate::io::{Disk, read_readable_parts};
use crate::page::map_page_size;
use crate::store::compress::{Coders, DecompressError, Dictionaries, DictionaryPlace, Find, FoundParts, Policies};
use crate::store::rescue::{PIECE, UnknownFile, without_path};
use crate::store::superblock::{CurrentSuperblock, FRONT};
use crate::store::{DatabaseFile, FoundImage, PageSource, RescuedStore, StoreKind, SuperblockChoice};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::Arc;

// No image crosses the border of a region.
const _: () = assert!(PIECE == REGION as usize * GRAIN);

impl TableStore {
    /// Opens a file that has a superblock.
    pub(super) fn rescue_known(
        file: DatabaseFile,
        superblock: SuperblockChoice,
        source: PageSource,
        mut damage: Vec<Damage>,
    ) -> Result<RescuedStore> {
        let mut parts = TableParts::new(file.page_size());
        let mut places = Vec::new();
        let missing = match source {
            PageSource::Structures => load_remaining(&file, &mut parts, &mut places, &mut damage),
            PageSource::Images => None,
        };
        let images = match &missing {
            Some(chunks) if chunks.is_empty() => None,
            _ => Some(Images::find(file.disk(), file.page_size())?),
        };
        TableStore::rescued(file, superblock, parts, (missing, places), images, damage)
    }

    /// Opens a file without a superblock. The file may be no database at all: then the error is the cause.
    pub(in crate::store) fn rescue_unknown(file: UnknownFile<'_>) -> Result<RescuedStore> {
        let UnknownFile { disk, path, page_size, cause } = file;
        let found = Images::find(&*disk, MAX_PAGE_SIZE)?;
        if let (Error::NotADatabase { .. }, true) = (&cause, found.newest.is_empty()) {
            return Err(cause);
        }
        let page_size = found.page_size.unwrap_or(page_size);
        let damage = vec![Damage::Superblocks { cause: without_path(cause) }];
        let file = DatabaseFile::of(disk, path, CurrentSuperblock::unknown(StoreKind::Table, page_size));
        let (parts, images) = (TableParts::new(page_size), found.of_pages(page_size));
        TableStore::rescued(file, SuperblockChoice::None, parts, (None, Vec::new()), Some(images), damage)
    }

    /// Completes the page table from `images`: the pages of the `missing` chunks, or all pages if `missing` is `None`.
    fn rescued(
        file: DatabaseFile,
        superblock: SuperblockChoice,
        mut parts: TableParts,
        (missing, dictionaries): (Option<Vec<Range<usize>>>, Vec<DictionaryPlace>),
        images: Option<Images>,
        damage: Vec<Damage>,
    ) -> Result<RescuedStore> {
        let (meta, guessed) = (file.meta(), images.is_some());
        let (mut ids_end, mut last) = (meta.high_water, meta.last);
        let Images { newest, dictionaries: found, .. } = images.unwrap_or_default();
        for (page, lsn) in adopt(&mut parts, missing.as_deref(), newest) {
            ids_end = ids_end.max(page.0.saturating_add(1));
            last = last.max(Lsn(lsn.0.saturating_add(1)));
        }
        let store = TableStore::assemble(file, parts, Policies::new(), found)?;
        store.load_dictionaries(&dictionaries, true)?;
        let store = Arc::new(TableStore { rescued: true, ..store });
        Ok(RescuedStore { store, meta, superblock, guessed, ids_end, last, damage })
    }
}

/// Loads the readable parts of the page table. Returns the missing chunks; `None` if all are missing.
fn load_remaining(
    file: &DatabaseFile,
    parts: &mut TableParts,
    places: &mut Vec<DictionaryPlace>,
    damage: &mut Vec<Damage>,
) -> Option<Vec<Range<usize>>> {
    // The chunks were read already, and what is wrong with one of them was left out.
    parts.state.table.keep(usize::MAX);
    match TableSource::of(file).and_then(|source| load_table(&source, parts, Reading::Readable)) {
        Ok(Loaded { damaged: missing, dictionaries, .. }) => {
            *places = dictionaries;
            let id = |page: usize| PageId(u32::try_from(page).unwrap_or(u32::MAX));
            damage.extend(missing.iter().map(|chunks| {
                let (first, last) = pages_of(chunks);
                Damage::PageTablePart { first: id(first), last: id(last) }
            }));
            Some(missing)
        }
        Err(cause) => {
            damage.push(Damage::PageTable { cause });
            *parts = TableParts::new(file.page_size());
            None
        }
    }
}

/// The image of a page with the greatest LSN.
struct NewestImage {
    lsn: Lsn,
    /// `None` if images with this LSN have different contents. A transaction that is dropped, and the one after it, can
    /// write such images outside the log, and nothing tells which one is valid.
    location: Option<Location>,
    /// The checksum of the packed page.
    content: u32,
}

impl NewestImage {
    /// Takes another image of the page into account.
    fn add(&mut self, other: NewestImage) {
        match other.lsn.cmp(&self.lsn) {
            Ordering::Greater => *self = other,
            Ordering::Equal if other.content != self.content => self.location = None,
            Ordering::Equal | Ordering::Less => {}
        }
    }
}

/// The result of a search through the whole file.
#[derive(Default)]
struct Images {
    /// The newest image of each page.
    newest: BTreeMap<PageId, NewestImage>,
    /// The page size in an allocation map. The first page of every database is an allocation map.
    page_size: Option<usize>,
    /// The dictionaries in the pages, if an image needs one.
    dictionaries: Dictionaries,
}

impl Images {
    /// Searches for images of pages of at most `longest` bytes.
    fn find(disk: &dyn Disk, longest: usize) -> Result<Images> {
        let (mut found, mut parts) = (Images::default(), FoundParts::default());
        let is_incomplete = found.search(disk, longest, |image| parts.note(image))?;
        if is_incomplete && parts.add_to(&found.dictionaries) {
            found.search(disk, longest, |_| ())?;
        }
        Ok(found)
    }

    /// Searches the file once. Returns true if an image needs a dictionary that is not known.
    fn search(&mut self, disk: &dyn Disk, longest: usize, mut visit: impl FnMut(&FoundImage<'_>)) -> Result<bool> {
        let Images { newest, page_size, dictionaries } = self;
        // A database never has many more ids than its file has room for pages. A greater id is from another file.
        let most = (disk.size()? / GRAIN as u64).saturating_mul(64).saturating_add(1 << 16);
        each_image(disk, longest, &|id| dictionaries.get(id), |image, location| {
            *page_size = page_size.or_else(|| map_page_size(image.packed));
            if u64::from(image.page.0) >= most {
                return;
            }
            visit(&image);
            let content = checksum(image.packed);
            let found = NewestImage { lsn: image.lsn, location: Some(location), content };
            match newest.entry(image.page) {
                Entry::Vacant(place) => drop(place.insert(found)),
                Entry::Occupied(mut known) => known.get_mut().add(found),
            }
        })
    }

    /// The same images, without those that are too long for pages of that size.
    fn of_pages(mut self, page_size: usize) -> Images {
        let most = grains_of(page_size + IMAGE_HEADER);
        self.newest.retain(|_, image| image.location.is_none_or(|location| location.place.grains() <= most));
        self
    }
}

/// Enters the pages of the missing chunks in the page table, and returns them.
fn adopt(
    parts: &mut TableParts,
    missing: Option<&[Range<usize>]>,
    found: BTreeMap<PageId, NewestImage>,
) -> Vec<(PageId, Lsn)> {
    let mut adopted = Vec::new();
    for (page, NewestImage { lsn, location, .. }) in found {
        let Some(location) = location else { continue };
        let chunk = page.0 as usize / CHUNK_PAGES;
        let wanted = missing.is_none_or(|missing| missing.iter().any(|chunks| chunks.contains(&chunk)));
        let entry = Some(PageEntry { location, fresh: false, checked: false });
        // The other chunks are in memory.
        if wanted && parts.space.allocator.claim(location.place.extent()) && parts.state.table.set(page, entry).is_ok()
        {
            adopted.push((page, lsn));
        }
    }
    adopted
}

/// True if there is an image in a part of the file, which begins between pieces and is no longer than one.
pub(super) fn has_image(disk: &dyn Disk, part: Range<u64>) -> bool {
    let len = usize::try_from(part.end - part.start).unwrap_or(PIECE).min(PIECE);
    let mut piece = vec![0; len];
    read_readable_parts(disk, part.start, &mut piece);
    let mut grains = (if part.start == 0 { FRONT } else { 0 }..len).step_by(GRAIN);
    grains.any(|at| sound_image(bytes::slice(&piece, at, len), MAX_PAGE_SIZE).is_some())
}

/// The sound images in a piece of the file that begins at `offset`, in the order of their places. A place that is
/// longer than its image is found with the length of the image.
pub(super) fn images_in(
    piece: &[u8],
    offset: u64,
    page_size: usize,
) -> impl Iterator<Item = (PageId, Location, ImageContent<'_>)> {
    let mut at = if offset == 0 { FRONT } else { 0 };
    std::iter::from_fn(move || {
        while at < piece.len() {
            let grain = (offset + at as u64) / GRAIN as u64;
            let image = sound_image(bytes::slice(piece, at, piece.len()), page_size);
            let found = image.and_then(|(page, crc, content)| {
                let place = Place::new(grain, grains_of(IMAGE_HEADER + content.bytes.len()))?;
                Some((page, Location { place, crc }, content))
            });
            at += found.as_ref().map_or(GRAIN, |(_, location, _)| location.place.len());
            if found.is_some() {
                return found;
            }
        }
        None
    })
}

/// Calls `visit` with every sound image in the file, in the order of their places. Returns true if some are left out
/// because `find` does not find the dictionaries that they need.
pub(super) fn each_image(
    disk: &dyn Disk,
    page_size: usize,
    find: Find<'_>,
    mut visit: impl FnMut(FoundImage<'_>, Location),
) -> Result<bool> {
    let size = disk.size()?;
    let (mut coders, mut unpacked) = (Coders::default(), Vec::new());
    let mut piece = vec![0; PIECE];
    let (mut offset, mut is_incomplete) = (0, false);
    while offset < size {
        let len = usize::try_from(size - offset).unwrap_or(usize::MAX).min(PIECE);
        let Some(piece) = piece.get_mut(..len) else { break };
        read_readable_parts(disk, offset, piece);
        for (page, location, content) in images_in(piece, offset, page_size) {
            match content.packed(&mut coders, find, page_size, &mut unpacked) {
                Ok(packed) => {
                    let lsn = Lsn(bytes::get_u64(packed, 0));
                    visit(FoundImage { page, lsn, packed }, location);
                }
                Err(DecompressError::NoDictionary(_)) => is_incomplete = true,
                Err(DecompressError::Damaged) => {}
                Err(error) => return Err(error.of_page(page)),
            }
        }
        offset += PIECE as u64;
    }
    Ok(is_incomplete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_images_with_one_lsn_and_different_contents_none_is_used() {
        let image = |lsn, grain, content| {
            let location = Place::new(grain, 1).map(|place| Location { place, crc: 0 });
            NewestImage { lsn: Lsn(lsn), location, content }
        };
        let newest = |images: &[(u64, u64, u32)]| {
            let mut images = images.iter().map(|&(lsn, grain, content)| image(lsn, grain, content));
            let mut newest = images.next().unwrap();
            images.for_each(|image| newest.add(image));
            newest.location.map(|at| at.place.first())
        };
        assert_eq!(newest(&[(5, 100, 1), (4, 101, 2), (6, 102, 3), (5, 103, 4)]), Some(102));
        assert_eq!(newest(&[(5, 100, 1), (5, 101, 1)]), Some(100), "a copy of the same image");
        assert_eq!(newest(&[(5, 100, 1), (5, 101, 2)]), None);
        assert_eq!(newest(&[(5, 100, 1), (5, 101, 2), (5, 102, 1), (4, 103, 3)]), None);
        assert_eq!(newest(&[(5, 100, 1), (5, 101, 2), (6, 102, 3)]), Some(102));
    }
}

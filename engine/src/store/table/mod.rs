//! The `table` page store: reads a page's image from its place and writes new images to new places.
//!
//! `checkpoint` decides what is durable. The buffer pool decides when a page is written, and keeps the write-ahead
//! rule. One lock guards the page table and another one the space of the file, so that a read does not wait while
//! places are allocated. Neither is held during I/O.
//!
//! A page is written without its free middle, as an **image** (`image`), always to a new place. No image that the last
//! checkpoint can reach is overwritten. The **page table** (`page_table`, `chunks`) maps page ids to places and
//! checksums. A checkpoint writes the chunks of 256 pages that have changed, their groups of 128 chunks, and a
//! directory of all groups. The **free map** (`allocator`, `free_map`, `closed`) says which places are free, and
//! `space` which ones will be free after a checkpoint.

mod ahead;
mod allocator;
mod checkpoint;
mod chunks;
mod closed;
mod directory;
mod encoding;
mod free_map;
pub(super) mod fuzzing;
mod image;
mod load;
mod page_table;
mod place;
mod read;
mod region;
mod relocate;
mod rescue;
mod room;
mod space;
#[cfg(test)]
mod tests;
mod unwritable;
mod write;

use super::changed::ChangedParts;
use super::compress::{Dictionaries, DictionaryId, DictionaryPlace, PageCompression, Policies, load_dictionaries};
use super::file::DatabaseFile;
use super::kinds::StoreFormat;
use super::page_store::{
    CheckpointToken, FoundImage, PageStore, PageWriter, StoreCheckpoints, StoreCompression, StoreReads, StoreRedo,
    StoreRoom, StoreSetup, StoreStats, StoreSurvey, StoreWrites,
};
use super::place_bytes::{PlaceBytes, no_place};
use super::rescue::{OpenUnknown, PageSource, RescuedStore, SuperblockChoice, UnknownFile};
use super::superblock::{FRONT, Meta};
use crate::base::{Damage, Error, Lsn, PageId, Result};
use crate::io::{BLOCK, Disk, WriteKind};
use encoding::{CHUNK_PAGES, corrupt};
use image::{IMAGE_HEADER, ImageBatch};
use load::{Loaded, TableSource, describe_damage, open_table};
use page_table::{ChunkSnapshot, Missing, PageEntry, PageTable};
use parking_lot::Mutex;
use place::{Extent, FIRST_GRAIN, GRAIN, Location, grains_of};
use read::ReadBuffer;
use rescue::{each_image, has_image};
use space::{EntryChange, Space};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool, AtomicU64, AtomicUsize};
use write::{Purpose, too_long};

const _: () = assert!(FRONT as u64 == FIRST_GRAIN * GRAIN as u64);

/// Grains of a block.
#[allow(clippy::cast_possible_truncation)] // 8
const BLOCK_GRAINS: u32 = (BLOCK / GRAIN) as u32;

/// Grains between two images that are read together: so few take less time than another request.
const CLOSE: u64 = 32;

/// The state that the lock of the page table guards. Each miss takes the lock, so it has cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct PageTableState {
    pub(super) table: PageTable,
    /// Chunks captured when the last checkpoint began, as long as it is not durable.
    captured: Arc<Vec<ChunkSnapshot>>,
    /// No page of the last durable checkpoint has this id or a greater one.
    high_water: u32,
    /// How many checkpoints have been begun.
    checkpoints: u64,
}

/// Numbers of chunks of the page table.
#[derive(Clone, Copy, Debug)]
struct ChunkCounts {
    all: usize,
    /// The chunks that the running checkpoint and the next one write.
    unwritten: usize,
}

impl PageTableState {
    fn chunk_counts(&self) -> ChunkCounts {
        ChunkCounts { all: self.table.chunks(), unwritten: self.table.changed_chunks() + self.captured.len() }
    }

    /// Sets a page's entry. The caller passes the result to [`Space::free`]. Without the page's chunk nothing is
    /// changed.
    fn replace(&mut self, id: PageId, new: Option<PageEntry>) -> Result<EntryChange, Missing> {
        self.table.check_present(id)?;
        Ok(EntryChange { ahead: self.table.take_ahead_of(id), old: self.table.set(id, new)?, new })
    }
}

/// A page table and the space of its file, before each has its lock.
pub(super) struct TableParts {
    state: PageTableState,
    space: Space,
}

impl TableParts {
    /// The parts of an empty file.
    pub(super) fn new(page_size: usize) -> TableParts {
        TableParts { state: PageTableState::default(), space: Space::new(page_size) }
    }
}

/// The page store.
pub(crate) struct TableStore {
    file: DatabaseFile,
    pub(super) state: Mutex<PageTableState>,
    space: Mutex<Space>,
    /// The file's length in bytes; locked while the file grows or shrinks. It is locked before the page table and the
    /// space.
    len: Mutex<u64>,
    /// The device was full when the file was to grow last.
    cannot_grow: AtomicBool,
    /// Buffers for reading, which are reused.
    buffers: Mutex<Vec<ReadBuffer>>,
    /// Buffers for writing, which are reused.
    batches: Mutex<Vec<ImageBatch>>,
    written: AtomicU64,
    /// Counts of grains. Readers use them without a lock; a thread that changes what they count stores them afterwards.
    superseded: AtomicU64,
    live: AtomicU64,
    /// [`PageTableState::chunk_counts`], kept in the same way.
    chunks: AtomicUsize,
    unwritten_chunks: AtomicUsize,
    /// A lower bound of the images of the greatest length that still have room in the file.
    /// [`StoreRoom::ensure_room`] counts them, and each allocation subtracts the places that it may have taken. Changed
    /// under the lock of the space only.
    free_places: AtomicU64,
    /// The images for which [`StoreRoom::ensure_room`] was called last, and the most since the last checkpoint. Each
    /// call covers the dirty pages, and the callers exclude each other. So the last promise covers what is left of the
    /// earlier ones.
    promised: AtomicU64,
    most_promised: AtomicU64,
    compression: PageCompression,
    /// The last session closed the database, and nothing was written since.
    closed: AtomicBool,
    /// Each flush writes the chunks of the page table that it changes.
    persists: AtomicBool,
    /// The part of the page table that could not be read at opening: its pages are lost, and their places are unknown.
    damage: Option<String>,
    /// A part that could not be read later: its pages are lost, and their places are in use.
    found_damage: Mutex<Option<String>>,
    rescued: bool,
}

impl std::fmt::Debug for TableStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableStore").field("file", &self.file).field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl StoreFormat for TableStore {
    /// A fill with which images end at a grain's end: a few bytes more would take a whole grain more.
    fn best_fill(page_size: usize, fill: f32) -> f32 {
        let (page, grain, header) = (page_size as f32, GRAIN as f32, IMAGE_HEADER as f32);
        let whole = ((page * fill.clamp(0.1, 1.0) + header) / grain).floor() * grain - header;
        (whole / page).max(fill * 0.8)
    }

    /// A damaged chunk of the page table costs its 256 pages, see [`StoreSurvey::damage`].
    ///
    /// # Errors
    /// [`Error::CorruptMeta`] where the directory of the page table or a group of its chunks is damaged, where the file
    /// is truncated, or, unless a free map is used, where two pages lie at one place: then
    /// [`StoreSurvey::check_places`] finds them.
    fn open(file: DatabaseFile) -> Result<TableStore> {
        let mut parts = TableParts::new(file.page_size());
        let Loaded { damaged, policies, dictionaries } = open_table(&TableSource::of(&file)?, &mut parts)?;
        let damage = damaged.first().map(describe_damage);
        let store = TableStore::assemble(file, parts, policies, Dictionaries::default())?;
        store.load_dictionaries(&dictionaries, false)?;
        Ok(TableStore { damage, ..store })
    }

    fn rescue(
        file: DatabaseFile,
        superblock: SuperblockChoice,
        source: PageSource,
        damage: Vec<Damage>,
    ) -> Result<RescuedStore> {
        TableStore::rescue_known(file, superblock, source, damage)
    }

    fn find(disk: &dyn Disk, part: Range<u64>) -> Option<OpenUnknown> {
        has_image(disk, part).then_some(Box::new(TableStore::rescue_unknown))
    }

    fn rescue_without_pages(file: UnknownFile<'_>) -> Result<RescuedStore> {
        TableStore::rescue_unknown(file)
    }
}

impl TableStore {
    /// Reads dictionaries. Images of other pages may be read only after it.
    fn load_dictionaries(&self, places: &[DictionaryPlace], is_rescue: bool) -> Result<()> {
        let read = |id, page: &mut [u8]| self.read_newest(id, page);
        load_dictionaries(self.compression.dictionaries(), places, self.file.page_size(), is_rescue, read)
    }

    fn assemble(
        file: DatabaseFile,
        TableParts { state, space }: TableParts,
        policies: Policies,
        dictionaries: Dictionaries,
    ) -> Result<TableStore> {
        let len = file.disk().size()?;
        let compression = PageCompression::new(image::places(file.page_size()), policies, dictionaries);
        Ok(TableStore {
            file,
            state: Mutex::new(state),
            space: Mutex::new(space),
            len: Mutex::new(len),
            cannot_grow: AtomicBool::new(false),
            buffers: Mutex::default(),
            batches: Mutex::default(),
            written: AtomicU64::new(0),
            superseded: AtomicU64::new(0),
            live: AtomicU64::new(0),
            chunks: AtomicUsize::new(0),
            unwritten_chunks: AtomicUsize::new(0),
            free_places: AtomicU64::new(0),
            promised: AtomicU64::new(0),
            most_promised: AtomicU64::new(0),
            compression,
            closed: AtomicBool::new(false),
            persists: AtomicBool::new(false),
            damage: None,
            found_damage: Mutex::default(),
            rescued: false,
        })
    }

    /// Sets a page's entry, and frees its old place as early as is safe. True: it had an entry before.
    fn supersede(&self, id: PageId, new: Option<PageEntry>) -> Result<bool> {
        let change = self.with_chunks(|state| {
            let change = state.replace(id, new)?;
            self.pass_on_counts(state);
            Ok(change)
        })?;
        self.free(&change);
        Ok(change.old.is_some())
    }

    /// Frees what a new entry of the page table has replaced.
    fn free(&self, change: &EntryChange) {
        let mut space = self.space.lock();
        space.free(change);
        self.superseded.store(space.superseded, atomic::Ordering::Relaxed);
    }

    /// Passes on the counts of the page table.
    fn pass_on_counts(&self, state: &PageTableState) {
        self.live.store(state.table.live(), atomic::Ordering::Relaxed);
        let ChunkCounts { all, unwritten } = state.chunk_counts();
        self.chunks.store(all, atomic::Ordering::Relaxed);
        self.unwritten_chunks.store(unwritten, atomic::Ordering::Relaxed);
    }

    /// The counts that were passed on last.
    fn chunk_counts(&self) -> ChunkCounts {
        let load = |count: &AtomicUsize| count.load(atomic::Ordering::Relaxed);
        ChunkCounts { all: load(&self.chunks), unwritten: load(&self.unwritten_chunks) }
    }

    /// Writes runs of bytes at their grains, which have been taken.
    fn write_runs<'a>(&self, kind: WriteKind, runs: impl Iterator<Item = (u64, &'a [u8])>) -> Result<()> {
        for (first, bytes) in runs {
            let extent = Extent { first, grains: grains_of(bytes.len()) };
            let written = self.file.disk().write_as(kind, extent.offset(), bytes);
            written.inspect_err(|error| self.note_unwritable(extent, error))?;
            self.written.fetch_add(bytes.len() as u64, atomic::Ordering::Relaxed);
        }
        Ok(())
    }

    /// Whether a place is inside the file.
    fn reaches(&self, location: Location) -> bool {
        location.place.extent().end() <= *self.len.lock() / GRAIN as u64
    }

    /// The location in a log record. `None` in a rescue of a truncated file, if the location is beyond its end.
    fn location_of(&self, place: PlaceBytes, lsn: Lsn) -> Result<Option<Location>> {
        match Location::decode(&place).filter(|_| place.len() == Location::BYTES) {
            None => Err(no_place(lsn)),
            // The image was on the device before its place was in the log: a place beyond the end of the file is wrong.
            Some(location) if self.reaches(location) => Ok(Some(location)),
            Some(_) if self.rescued => Ok(None),
            Some(Location { place, .. }) => {
                let what = format!("it puts a page at byte {}, beyond the end of the file", place.offset());
                Err(Error::CorruptLog { lsn, what })
            }
        }
    }
}

impl PageStore for TableStore {
    /// With a persisted table, images and chunks have blocks of their own, so no write repeats bytes of a neighbour.
    fn set_up(&self, StoreSetup { persist_table, memory }: StoreSetup) {
        if persist_table {
            self.persists.store(true, atomic::Ordering::Relaxed);
            self.space.lock().allocator.align_to(BLOCK_GRAINS);
        }
        self.state.lock().table.keep_bytes(memory);
    }
}

impl StoreReads for TableStore {
    /// True also if the page table cannot be read: reading the page then returns the error.
    fn exists(&self, id: PageId) -> bool {
        self.location(id).map_or(true, |at| at.is_some())
    }

    fn read(&self, id: PageId, page: &mut [u8]) -> Result<Option<ChangedParts>> {
        self.read_newest(id, page).map(|found| found.then_some(ChangedParts::NONE))
    }

    /// Images side by side are one request. Chunks of the page table that are not in memory are read.
    fn will_read(&self, pages: &[PageId]) {
        // Reading a page reports what is wrong.
        let extent = |id: &PageId| Some(self.location(*id).ok()??.place.extent());
        let mut extents: Vec<Extent> = pages.iter().filter_map(extent).collect();
        extents.sort_unstable();
        for run in extents.chunk_by(|before, next| next.first <= before.end().saturating_add(CLOSE)) {
            if let [first, ..] = run
                && let [.., last] = run
            {
                self.file.disk().will_read(first.offset(), last.offset() - first.offset() + last.len());
            }
        }
    }

    fn has_length(&self, id: PageId, packed: usize) -> Option<bool> {
        match self.location(id) {
            Ok(None) => Some(false),
            // A place may also be shorter, for a compressed image, or longer, for a target.
            Ok(Some(at)) => (at.place.grains() == grains_of(IMAGE_HEADER + packed)).then_some(true),
            Err(_) => None,
        }
    }

    fn pages(&self) -> Result<Vec<PageId>> {
        let mut pages = Vec::new();
        self.each_page(PageId::NONE, PageId(u32::MAX), |page, _| pages.push(page))?;
        Ok(pages)
    }

    fn ids_end(&self) -> u32 {
        u32::try_from(self.state.lock().table.chunks() * CHUNK_PAGES).unwrap_or(u32::MAX)
    }

    /// An empty list if the database was closed: then no page waits to be dropped. So no chunk is read.
    fn known_between(&self, from: PageId, to: PageId) -> Result<Vec<PageId>> {
        match self.closed.load(atomic::Ordering::Relaxed) {
            true => Ok(Vec::new()),
            false => self.known_pages(from, to),
        }
    }
}

impl StoreWrites for TableStore {
    fn writer(&self) -> Box<dyn PageWriter + '_> {
        Box::new(self.image_writer())
    }

    fn write_unlogged(&self, pages: &[(PageId, Vec<u8>)]) -> Result<Vec<PlaceBytes>> {
        let mut writer = self.image_writer();
        let page_size = self.file.page_size();
        pages.iter().for_each(|(id, packed)| writer.images.push_packed(*id, packed, page_size));
        self.write_batch(&mut writer.images, Purpose::Unlogged)?;
        let places: Vec<PlaceBytes> =
            writer.images.locations().filter_map(|(_, location)| PlaceBytes::new(&location.encode())).collect();
        match pages.first() {
            Some((id, _)) if places.len() < pages.len() => Err(too_long(*id)),
            _ => Ok(places),
        }
    }

    /// Its place is used again as soon as that is safe.
    fn drop_page(&self, id: PageId) -> Result<()> {
        self.supersede(id, None).map(drop)
    }
}

impl StoreCheckpoints for TableStore {
    fn file(&self) -> &DatabaseFile {
        &self.file
    }

    fn superseded(&self) -> (u64, u64) {
        let bytes = |grains: &AtomicU64| grains.load(atomic::Ordering::Relaxed) * GRAIN as u64;
        (bytes(&self.superseded), bytes(&self.live))
    }

    fn close(&self, meta: Meta) -> Result<()> {
        TableStore::close(self, meta)
    }

    fn use_closed_state(&self) {
        self.closed.store(true, atomic::Ordering::Relaxed);
    }

    fn begin_checkpoint(&self) -> CheckpointToken {
        TableStore::begin_checkpoint(self)
    }

    fn finish(&self, token: CheckpointToken, meta: Meta) -> Result<()> {
        self.finish_table(token, meta)
    }
}

impl StoreRedo for TableStore {
    fn reserve(&self, place: PlaceBytes, lsn: Lsn) -> Result<()> {
        let Some(location) = self.location_of(place, lsn)? else { return Ok(()) };
        let extent = location.place.extent();
        let mut space = self.space.lock();
        self.free_places.store(0, atomic::Ordering::Relaxed);
        if space.allocator.claim(extent) {
            space.reserved.insert(extent.first, extent);
        }
        Ok(())
    }

    fn install(&self, id: PageId, place: PlaceBytes, lsn: Lsn) -> Result<bool> {
        let Some(location) = self.location_of(place, lsn)? else { return Ok(false) };
        let extent = location.place.extent();
        if self.with_chunks(|state| state.table.get(id))?.is_some_and(|entry| entry.location == location) {
            return Ok(true);
        }
        let is_free = {
            let mut space = self.space.lock();
            self.free_places.store(0, atomic::Ordering::Relaxed);
            space.reserved.remove(&extent.first) == Some(extent) || space.allocator.claim(extent)
        };
        // In a rescue, the image that was found there may be this one.
        if !is_free && !self.rescued {
            let what = format!("the log has page {id} at grain {}, which is in use", extent.first);
            return Err(corrupt(what));
        }
        self.supersede(id, Some(PageEntry { location, fresh: false, checked: false }))?;
        Ok(true)
    }
}

impl StoreRoom for TableStore {
    fn ensure_room(&self, pages: u64) -> Result<()> {
        TableStore::ensure_room(self, pages)
    }

    fn relocate(&self, from: u64, most: usize) -> Result<usize> {
        TableStore::relocate(self, from, most)
    }

    fn shrink(&self, pages: u64) -> Result<()> {
        TableStore::shrink(self, pages)
    }
}

impl StoreCompression for TableStore {
    fn compression(&self) -> Option<&PageCompression> {
        Some(&self.compression)
    }

    fn dictionary_of(&self, id: PageId) -> Result<Option<DictionaryId>> {
        TableStore::dictionary_of(self, id)
    }
}

impl StoreSurvey for TableStore {
    fn check_places(&self) -> Result<()> {
        TableStore::check_places(self)
    }

    fn place_bytes(&self, id: PageId) -> Option<u64> {
        self.location(id).ok().flatten().map(|at| at.place.len() as u64)
    }

    fn damage(&self) -> Option<Error> {
        self.damage.clone().or_else(|| self.found_damage.lock().clone()).map(corrupt)
    }

    fn survey(&self, visit: &mut dyn FnMut(FoundImage<'_>)) -> Result<()> {
        each_image(self.file.disk(), self.file.page_size(), &self.compression.find(), |image, _| visit(image)).map(drop)
    }

    fn stats(&self) -> StoreStats {
        let len = *self.len.lock();
        let (live, pages) = {
            let state = self.state.lock();
            (state.table.live(), state.table.pages())
        };
        let (used, grain) = (self.space.lock().allocator.used(), GRAIN as u64);
        StoreStats {
            file_bytes: len,
            live_bytes: live * grain,
            free_bytes: len.saturating_sub(used * grain),
            other_bytes: used.saturating_sub(live + FIRST_GRAIN) * grain,
            pages,
            written_bytes: self.written.load(atomic::Ordering::Relaxed),
            delta: None,
        }
    }
}

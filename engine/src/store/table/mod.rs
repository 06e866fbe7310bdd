//! The `table` page store: reads a page's image from its place and writes new images to new places.
//!
//! `checkpoint` decides what is durable. The buffer pool decides when a page is written, and keeps the write-ahead
//! rule. One lock guards the page table and the free map together. It is never held during I/O.
//!
//! A page is written without its free middle, as an **image** (`image`), always to a new place. No image that the last
//! checkpoint can reach is overwritten. The **page table** (`page_table`, `chunks`) maps page ids to places and
//! checksums. A checkpoint writes the chunks of 256 pages that have changed, their groups of 128 chunks, and a
//! directory of all groups. The **free map** (`allocator`, `free_map`, `closed`) says which places are free.

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
#[cfg(test)]
mod tests;

use super::changed::ChangedParts;
use super::compress::{Dictionaries, DictionaryId, DictionaryPlace, PageCompression, Policies, load_dictionaries};
use super::file::DatabaseFile;
use super::kinds::StoreFormat;
use super::rescue::{Believed, OpenUnknown, RescuedStore, Trust};
use super::seam::{Base, FoundImage, Frozen, PageStore, PageWriter, PlaceBytes, StoreStats};
use super::superblock::{FRONT, Meta};
use crate::base::{Damage, Error, Lsn, PageId, Result};
use crate::io::{BLOCK, Disk, WriteKind};
use allocator::PlaceAllocator;
use encoding::{CHUNK_PAGES, corrupt};
use image::{IMAGE_HEADER, ImageBatch};
use load::{Loaded, Source, describe_damage, open_table};
use page_table::{Captured, Entry, Missing, PageTable};
use parking_lot::Mutex;
use place::{Extent, FIRST_GRAIN, GRAIN, Location, grains_of};
use read::ReadBuffer;
use rescue::{each_image, has_image};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{self, AtomicBool, AtomicU64};

const _: () = assert!(FRONT as u64 == FIRST_GRAIN * GRAIN as u64);

/// Grains of a block.
#[allow(clippy::cast_possible_truncation)] // 8
const BLOCK_GRAINS: u32 = (BLOCK / GRAIN) as u32;

/// Grains between two images that are read together: so few take less time than another request.
const CLOSE: u64 = 32;

/// Why images are written: whether log records name their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Purpose {
    /// An ordinary flush: redo rebuilds the page if the image is lost, so that nothing needs to know its place before
    /// the next checkpoint.
    Flush,
    /// A page written outside the log: a record of the log will name its place, which must last until a checkpoint.
    Unlogged,
}

/// Everything that the lock guards.
pub(super) struct State {
    pub(super) table: PageTable,
    pub(super) allocator: PlaceAllocator,
    /// Superseded since the last freeze.
    pub(super) quarantine: Vec<Extent>,
    /// Grains of these.
    superseded: u64,
    /// Superseded before the last freeze, whose checkpoint is not durable yet.
    pub(super) frozen: Vec<Extent>,
    /// Places that records of the log name and that are not installed yet; only during recovery.
    pub(super) reserved: BTreeMap<u64, Extent>,
    /// Chunks captured by the last freeze, as long as its checkpoint is not durable.
    captured: Arc<Vec<Captured>>,
    /// No page of the last durable checkpoint has this id or a greater one.
    high_water: u32,
    /// How often the table was frozen.
    freezes: u64,
}

impl State {
    fn new(page_size: usize) -> State {
        let longest_image = u32::try_from(grains_of(page_size + IMAGE_HEADER)).unwrap_or(u32::MAX);
        State {
            table: PageTable::default(),
            allocator: PlaceAllocator::new(longest_image),
            quarantine: Vec::new(),
            superseded: 0,
            frozen: Vec::new(),
            reserved: BTreeMap::new(),
            captured: Arc::default(),
            high_water: 0,
            freezes: 0,
        }
    }

    /// Sets a page's entry. Frees its old place as early as is safe. Without the page's chunk nothing is changed.
    fn supersede(&mut self, id: PageId, new: Option<Entry>) -> Result<(), Missing> {
        self.table.check_present(id)?;
        if let Some(stale) = self.table.take_ahead_of(id) {
            self.allocator.release(stale.place.extent());
        }
        if let Some(old) = self.table.set(id, new)? {
            let same = new.is_some_and(|new| new.location.place == old.location.place);
            match old.fresh {
                _ if same => {}
                true => self.allocator.release(old.location.place.extent()),
                false => {
                    self.superseded += old.location.place.grains();
                    self.quarantine.push(old.location.place.extent());
                }
            }
        }
        Ok(())
    }
}

/// The page store.
pub(crate) struct TableStore {
    file: DatabaseFile,
    pub(super) state: Mutex<State>,
    /// The file's length in bytes; held while it grows or shrinks.
    len: Mutex<u64>,
    /// Buffers for reading, which are reused.
    buffers: Mutex<Vec<ReadBuffer>>,
    /// Buffers for writing, which are reused.
    batches: Mutex<Vec<ImageBatch>>,
    written: AtomicU64,
    /// The state's counts of grains, as far as writers have passed them on.
    superseded: AtomicU64,
    live: AtomicU64,
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
    /// A damaged chunk of the page table costs its 256 pages, see [`PageStore::damage`].
    ///
    /// # Errors
    /// [`Error::CorruptMeta`] where the directory of the page table or a group of its chunks is damaged, where the file
    /// is cut short, or, unless a free map is used, where two pages lie at one place: then [`PageStore::check_places`]
    /// finds them.
    fn open(file: DatabaseFile) -> Result<TableStore> {
        let mut state = State::new(file.page_size());
        let Loaded { damaged, policies, dictionaries } = open_table(&Source::of(&file)?, &mut state)?;
        let damage = damaged.first().map(describe_damage);
        let store = TableStore::assemble(file, state, policies, Dictionaries::default())?;
        store.load_dictionaries(&dictionaries);
        Ok(TableStore { damage, ..store })
    }

    fn rescue(file: DatabaseFile, believed: Believed, trust: Trust, damage: Vec<Damage>) -> Result<RescuedStore> {
        TableStore::rescue_known(file, believed, trust, damage)
    }

    fn find(disk: &dyn Disk, part: Range<u64>) -> Option<OpenUnknown> {
        has_image(disk, part).then_some(Box::new(TableStore::rescue_unknown))
    }
}

impl TableStore {
    /// Reads dictionaries. Images of other pages may be read only after it.
    fn load_dictionaries(&self, places: &[DictionaryPlace]) {
        let read = |id, page: &mut [u8]| self.read_newest(id, page);
        load_dictionaries(self.compression.dictionaries(), places, self.file.page_size(), read);
    }

    fn assemble(
        file: DatabaseFile,
        state: State,
        policies: Policies,
        dictionaries: Dictionaries,
    ) -> Result<TableStore> {
        let len = file.disk().size()?;
        let compression = PageCompression::new(image::places(file.page_size()), policies, dictionaries);
        Ok(TableStore {
            file,
            state: Mutex::new(state),
            len: Mutex::new(len),
            buffers: Mutex::default(),
            batches: Mutex::default(),
            written: AtomicU64::new(0),
            superseded: AtomicU64::new(0),
            live: AtomicU64::new(0),
            compression,
            closed: AtomicBool::new(false),
            persists: AtomicBool::new(false),
            damage: None,
            found_damage: Mutex::default(),
            rescued: false,
        })
    }

    fn image_writer(&self) -> ImageWriter<'_> {
        let images = self.batches.lock().pop().unwrap_or_default();
        ImageWriter { store: self, images }
    }

    /// Writes images to new places, side by side as far as possible, and enters these in the page table. Nothing is
    /// synced. On an error no page of the batch has moved.
    fn write_batch(&self, batch: &mut ImageBatch, purpose: Purpose) -> Result<()> {
        let unit = if self.persists.load(atomic::Ordering::Relaxed) { BLOCK } else { GRAIN };
        let _dictionaries_stay = self.compression.begin_batch();
        batch.seal(&self.compression, self.file.page_size(), unit);
        let most = self.longest_image();
        let mut sizes = Vec::with_capacity(batch.len());
        for (id, grains) in batch.sizes() {
            if u64::from(grains) > most {
                return Err(Error::corrupt(id, "its image is longer than a page"));
            }
            sizes.push(grains);
        }
        self.load_chunks_of(batch.sizes().map(|(id, _)| id))?;
        batch.set_places(&self.take_places(&sizes)?);
        let written =
            self.write_runs(WriteKind::Page, batch.runs()).and_then(|()| self.enter(batch.locations(), purpose));
        if let Err(error) = written {
            let mut state = self.state.lock();
            batch.locations().for_each(|(_, location)| state.allocator.release(location.place.extent()));
            return Err(error);
        }
        self.compression.note_to_be_split(batch.to_be_split());
        if purpose == Purpose::Flush && self.persists.load(atomic::Ordering::Relaxed) {
            self.write_chunks_of(batch.locations().map(|(id, _)| id));
        }
        Ok(())
    }

    /// Enters images in the page table: all of them, or none after an error.
    fn enter(&self, images: impl Iterator<Item = (PageId, Location)> + Clone, purpose: Purpose) -> Result<()> {
        self.with_chunks(|state| {
            images.clone().try_for_each(|(id, _)| state.table.check_present(id))?;
            for (id, location) in images.clone() {
                let entry = Entry { location, fresh: purpose == Purpose::Flush, checked: true };
                state.supersede(id, Some(entry))?;
            }
            self.pass_on_counts(state);
            Ok(())
        })
    }

    /// Makes the counts visible to [`PageStore::superseded`].
    fn pass_on_counts(&self, state: &State) {
        self.superseded.store(state.superseded, atomic::Ordering::Relaxed);
        self.live.store(state.table.live(), atomic::Ordering::Relaxed);
    }

    /// Writes runs of bytes at their grains, which have been taken.
    fn write_runs<'a>(&self, kind: WriteKind, runs: impl Iterator<Item = (u64, &'a [u8])>) -> Result<()> {
        for (first, bytes) in runs {
            let extent = Extent { first, grains: grains_of(bytes.len()) };
            self.file.disk().write_as(kind, extent.offset(), bytes)?;
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
        let corrupt = |what| Err(Error::CorruptLog { lsn, what });
        match Location::decode(&place).filter(|_| place.len() == Location::BYTES) {
            None => corrupt("a record with a place that cannot be one".to_owned()),
            // The image was on the device before its place was in the log: a place beyond the end of the file is wrong.
            Some(location) if self.reaches(location) => Ok(Some(location)),
            Some(_) if self.rescued => Ok(None),
            Some(Location { place, .. }) => {
                corrupt(format!("it puts a page at byte {}, beyond the end of the file", place.offset()))
            }
        }
    }
}

impl PageStore for TableStore {
    fn file(&self) -> &DatabaseFile {
        &self.file
    }

    /// True also if that cannot be known: reading the page says why.
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

    fn compression(&self) -> Option<&PageCompression> {
        Some(&self.compression)
    }

    fn writer(&self) -> Box<dyn PageWriter + '_> {
        Box::new(self.image_writer())
    }

    fn write_unlogged(&self, pages: &[(PageId, Vec<u8>)]) -> Result<Vec<PlaceBytes>> {
        let mut writer = self.image_writer();
        pages.iter().for_each(|(id, packed)| writer.images.push_packed(*id, packed));
        self.write_batch(&mut writer.images, Purpose::Unlogged)?;
        let places: Vec<PlaceBytes> =
            writer.images.locations().filter_map(|(_, location)| PlaceBytes::new(&location.encode())).collect();
        match pages.first() {
            Some((id, _)) if places.len() < pages.len() => Err(Error::corrupt(*id, "its image is longer than a page")),
            _ => Ok(places),
        }
    }

    /// Its place is used again as soon as that is safe.
    fn drop_page(&self, id: PageId) -> Result<()> {
        self.with_chunks(|state| {
            state.supersede(id, None)?;
            self.pass_on_counts(state);
            Ok(())
        })
    }

    fn superseded(&self) -> (u64, u64) {
        let bytes = |grains: &AtomicU64| grains.load(atomic::Ordering::Relaxed) * GRAIN as u64;
        (bytes(&self.superseded), bytes(&self.live))
    }

    fn pages_between(&self, from: PageId, to: PageId) -> Result<Vec<PageId>> {
        let mut pages = Vec::new();
        self.each_page(from, to, |page, _| pages.push(page))?;
        Ok(pages)
    }

    /// An empty list if the database was closed: then no page waits to be dropped. So no chunk is read.
    fn known_between(&self, from: PageId, to: PageId) -> Result<Vec<PageId>> {
        match self.closed.load(atomic::Ordering::Relaxed) {
            true => Ok(Vec::new()),
            false => self.known_pages(from, to),
        }
    }

    fn close(&self, meta: Meta) -> Result<()> {
        TableStore::close(self, meta)
    }

    fn check_places(&self) -> Result<()> {
        TableStore::check_places(self)
    }

    fn give_memory(&self, bytes: usize) {
        self.state.lock().table.keep_bytes(bytes);
    }

    fn use_closed_state(&self) {
        self.closed.store(true, atomic::Ordering::Relaxed);
    }

    fn ids_end(&self) -> u32 {
        u32::try_from(self.state.lock().table.chunks() * CHUNK_PAGES).unwrap_or(u32::MAX)
    }

    fn freeze(&self) -> Frozen {
        TableStore::freeze(self)
    }

    fn finish(&self, frozen: Frozen, meta: Meta) -> Result<()> {
        TableStore::finish(self, frozen, meta)
    }

    fn reserve(&self, place: PlaceBytes, lsn: Lsn) -> Result<()> {
        let Some(location) = self.location_of(place, lsn)? else { return Ok(()) };
        let extent = location.place.extent();
        let mut state = self.state.lock();
        if state.allocator.claim(extent) {
            state.reserved.insert(extent.first, extent);
        }
        Ok(())
    }

    fn install(&self, id: PageId, place: PlaceBytes, lsn: Lsn) -> Result<bool> {
        let Some(location) = self.location_of(place, lsn)? else { return Ok(false) };
        let extent = location.place.extent();
        let is_free = self.with_chunks(|state| {
            if state.table.get(id)?.is_some_and(|entry| entry.location == location) {
                return Ok(true);
            }
            let taken = state.reserved.remove(&extent.first) != Some(extent) && !state.allocator.claim(extent);
            // In a rescue, the image that was found there may be this one.
            if taken && !self.rescued {
                return Ok(false);
            }
            state.supersede(id, Some(Entry { location, fresh: false, checked: false }))?;
            Ok(true)
        })?;
        match is_free {
            true => Ok(true),
            false => Err(corrupt(format!("the log puts page {id} at grain {}, where something else is", extent.first))),
        }
    }

    fn ensure_room(&self, pages: u64) -> Result<()> {
        TableStore::ensure_room(self, pages)
    }

    fn relocate(&self, tail: &mut Vec<PageId>, most: usize) -> Result<usize> {
        TableStore::relocate(self, tail, most)
    }

    fn shrink(&self, pages: u64) -> Result<()> {
        TableStore::shrink(self, pages)
    }

    /// Images and chunks then have blocks of 4 KiB of their own, as the pages of the paper's baseline have: a write
    /// does not write bytes of its neighbours again.
    fn persist_table(&self) {
        self.persists.store(true, atomic::Ordering::Relaxed);
        self.state.lock().allocator.align_to(BLOCK_GRAINS);
    }

    /// A fill with which images end at a grain's end: a few bytes more would take a whole grain more.
    fn best_fill(&self, fill: f32) -> f32 {
        let (page, grain, header) = (self.file.page_size() as f32, GRAIN as f32, IMAGE_HEADER as f32);
        let whole = ((page * fill.clamp(0.1, 1.0) + header) / grain).floor() * grain - header;
        (whole / page).max(fill * 0.8)
    }

    fn place_bytes(&self, id: PageId) -> Option<u64> {
        self.location(id).ok().flatten().map(|at| at.place.len() as u64)
    }

    fn dictionary_of(&self, id: PageId) -> Result<Option<DictionaryId>> {
        TableStore::dictionary_of(self, id)
    }

    fn damage(&self) -> Option<Error> {
        self.damage.clone().or_else(|| self.found_damage.lock().clone()).map(corrupt)
    }

    fn is_rescued(&self) -> bool {
        self.rescued
    }

    fn survey(&self, visit: &mut dyn FnMut(FoundImage<'_>)) -> Result<()> {
        each_image(self.file.disk(), self.file.page_size(), &self.compression.find(), |image, _| visit(image)).map(drop)
    }

    fn stats(&self) -> StoreStats {
        let len = *self.len.lock();
        let state = self.state.lock();
        let live = state.table.live();
        let grain = GRAIN as u64;
        StoreStats {
            file_bytes: len,
            live_bytes: live * grain,
            free_bytes: len.saturating_sub(state.allocator.used() * grain),
            other_bytes: state.allocator.used().saturating_sub(live + FIRST_GRAIN) * grain,
            pages: state.table.pages(),
            written_bytes: self.written.load(atomic::Ordering::Relaxed),
        }
    }
}

/// Images that are being put together.
struct ImageWriter<'s> {
    store: &'s TableStore,
    images: ImageBatch,
}

impl PageWriter for ImageWriter<'_> {
    fn push(&mut self, id: PageId, page: &[u8], _changed: ChangedParts) -> Base {
        self.images.push(id, page);
        Base::Moves
    }

    fn write(mut self: Box<Self>) -> Result<()> {
        self.store.write_batch(&mut self.images, Purpose::Flush)
    }
}

impl Drop for ImageWriter<'_> {
    fn drop(&mut self) {
        let mut images = std::mem::take(&mut self.images);
        images.clear();
        self.store.batches.lock().push(images);
    }
}

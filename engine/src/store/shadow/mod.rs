//! The `shadow` page store. Each page has two slots at a fixed position. The store writes the two slots in turn and has
//! no page table. When a page is first read, the store reads both slots and finds which one is valid.
//!
//! A slot has a whole page, or the compressed page in its last blocks. The blocks before these are trimmed.
//!
//! Between the slots of a page are its delta blocks. If few parts of a page have changed since its slot was written and
//! synced, the store writes these parts to a delta block, and not the whole page. A read applies them to the slot.
//!
//! The store writes a page to the slot that does not hold its last synced image. So a write that is cut off loses
//! nothing that a sync has made durable. Once the new image is synced, the store trims the old one: a drive that
//! compresses then keeps one image a page. `checkpoint` decides when an image is durable.
//!
//! A recovery does not know whether a sync has made the newest image or delta of a page durable. If none has, the page
//! needs what was there before. If one has, this may have been overwritten. So the recovery writes the image or the
//! delta again, and overwrites neither before a sync.
//!
//! The id of a freed page is used again only after a checkpoint whose redo point is beyond the free: see
//! [`StoreFormat::REUSES_IDS`]. In a file the store trims the slots of several pages together.

mod chain;
mod checkpoint;
mod choice;
mod delta;
#[cfg(test)]
mod failed_write_tests;
pub(super) mod fuzzing;
mod log_ends;
mod map;
mod read;
#[cfg(test)]
mod recovery_tests;
mod rescue;
mod room;
mod short;
mod slot;
mod slot_area;
mod states;
mod store_header;
#[cfg(test)]
mod tests;
mod write;

use super::changed::ChangedParts;
use super::compress::{Coders, Dictionaries, DictionaryId, PageCompression, Places, Policies};
use super::file::DatabaseFile;
use super::kinds::StoreFormat;
use super::options::DeltaBlocks;
use super::page_store::{
    CheckpointToken, FoundImage, PageStore, PageWriter, StoreCheckpoints, StoreCompression, StoreReads, StoreRedo,
    StoreRoom, StoreStats, StoreSurvey, StoreWrites,
};
use super::place_bytes::{PlaceBytes, no_place};
use super::rescue::{OpenUnknown, PageSource, RescuedStore, SuperblockChoice};
use super::superblock::{ID_SLACK, Meta};
use crate::base::{Damage, Error, Lsn, PageId, Result, limits};
use crate::io::{BLOCK, Disk, WriteKind};
use crate::page::Page;
use choice::KnownPage;
use log_ends::RecoveredLogEnds;
use map::Map;
use parking_lot::{Mutex, RwLock};
use rescue::find_geometry;
use room::Room;
use slot::{Geometry, SlotIndex};
use states::{ImageState, PageCount, PageStates};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use store_header::{StoreHeader, header_of_new};

/// Everything that the lock guards. It is never held while the device works.
#[derive(Debug)]
struct ShadowState {
    pages: PageStates,
    /// The map in the file. No page after the pages of the map may be written.
    map: Option<Map>,
    /// Pages written since the last sync began.
    unsynced: Vec<PageId>,
    /// Pages that have something to be trimmed, some of them more than once.
    trims: Vec<PageId>,
    /// Unsynced pages whose images nothing may overwrite before a sync: an unfinished checkpoint counts them as synced,
    /// or a recovery has written them again.
    protected: HashSet<PageId>,
    /// Pages whose last write failed: a sync does not make what is in their slot or delta block sound.
    failed: HashSet<PageId>,
    /// Those of them that may have a part of a delta in a block.
    failed_deltas: HashSet<PageId>,
    /// Pages whose areas must be corrected before the next write, because the device was full when they were read. The
    /// area contains an image or a delta that may not be durable, or a torn write that a later opening would report as
    /// damage. The value is what the store knew about the page when it was read.
    unsound: HashMap<PageId, KnownPage>,
    /// Pages that redo changes.
    in_log: HashSet<PageId>,
    /// Those of them that it could not read. Their slots must not be read again.
    unreadable: Vec<PageId>,
    /// Places that redo has read from the log: each page has an image with this LSN or a greater one.
    placed: HashMap<PageId, Lsn>,
    /// The LSN at which redo begins.
    redo: Lsn,
    /// The generation at opening, and the end of the log that was redone: the changes that the log has lost.
    lost: Option<(u32, Lsn)>,
    log_ends: RecoveredLogEnds,
    /// Any sound image is accepted.
    accepts_any: bool,
    /// Images of earlier generations are synced.
    synced_generation: u32,
    /// How many checkpoints have been begun.
    checkpoints: u64,
}

impl ShadowState {
    /// The facts about a page that the store knows without reading its slots.
    fn known_of(&self, id: PageId) -> KnownPage {
        KnownPage {
            generation: self.synced_generation,
            in_log: self.in_log.contains(&id),
            redo: self.redo,
            lost: self.lost,
            log_ends: self.log_ends,
            accepts_any: self.accepts_any,
        }
    }

    /// Sorts the pages that have something to be trimmed, and leaves out those that have been written again since.
    fn sort_trims(&mut self) {
        let ShadowState { trims, pages, .. } = self;
        trims.sort_unstable();
        trims.dedup();
        trims.retain(|id| pages.get(*id).waits_for_trim());
    }

    /// Nothing may overwrite a page before a sync.
    fn protect(&mut self, id: PageId) {
        self.unsynced.push(id);
        self.protected.insert(id);
    }

    /// A page's image is durable.
    fn note_synced(&mut self, id: PageId) {
        self.protected.remove(&id);
        let now = self.pages.get(id);
        if now.image() == ImageState::Present && !self.failed.contains(&id) {
            let synced = now.synced();
            self.pages.set(id, synced);
            if synced.waits_for_trim() {
                self.trims.push(id);
            }
        }
    }
}

/// The coders and buffers for the compression and decompression of a page.
#[derive(Debug, Default)]
struct CompressionBuffers {
    coders: Coders,
    packed: Vec<u8>,
    compressed: Vec<u8>,
    page: Vec<u8>,
}

/// The page store.
pub(super) struct ShadowStore {
    file: DatabaseFile,
    geometry: Geometry,
    state: Mutex<ShadowState>,
    /// The generation of new images. A thread that writes an image holds the read lock. A thread that must exclude all
    /// writes of images holds the write lock.
    generation: RwLock<u32>,
    /// Held while images are made durable.
    syncing: Mutex<()>,
    room: Mutex<Room>,
    /// Buffers for slots, which are reused.
    buffers: Mutex<Vec<Vec<u8>>>,
    /// Coders and buffers for compression, which are reused.
    compression_buffers: Mutex<Vec<CompressionBuffers>>,
    compression: PageCompression,
    written: AtomicU64,
    /// The option that was set when the database was created.
    chosen_delta: DeltaBlocks,
    /// How changes are written on this disk.
    delta: DeltaBlocks,
    rescued: bool,
}

impl std::fmt::Debug for ShadowStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShadowStore").field("file", &self.file).field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl StoreFormat for ShadowStore {
    const TRAILER: usize = limits::SLOT_TRAILER;
    const REUSES_IDS: bool = false;

    /// An image is whole blocks of the drive, so an image of one block cannot become shorter.
    fn compresses(page_size: usize) -> bool {
        page_size > BLOCK
    }

    fn header_of_new(delta: DeltaBlocks, disk: &dyn Disk) -> Vec<u8> {
        header_of_new(delta, disk)
    }

    /// Reads only the length of the file.
    ///
    /// # Errors
    /// [`Error::CorruptMeta`] if the superblock is damaged, or if a closed file was truncated.
    fn open(file: DatabaseFile) -> Result<ShadowStore> {
        let header = StoreHeader::decode(&file.store_header())?;
        let geometry = Geometry::new(file.page_size(), header.deltas, file.meta().database_id);
        let (len, whole) = (file.disk().size()?, header.map.map_or(0, |map| map.file_len(&geometry)));
        if file.meta().clean && len < whole {
            let why = format!("it was closed with {whole} bytes and has {len}: it was truncated");
            return Err(Error::CorruptMeta { what: "the file", why });
        }
        // A long file with few blocks must not cost memory.
        let room = geometry.pages(file.disk().size()?).min(file.meta().high_water.saturating_add(ID_SLACK));
        let pages = header.map.map_or(room, |map| room.min(map.pages));
        let store = ShadowStore::with_geometry(file, geometry, pages)?;
        store.load_dictionaries(&header.dictionaries, false)?;
        Ok(store)
    }

    fn rescue(
        file: DatabaseFile,
        superblock: SuperblockChoice,
        source: PageSource,
        damage: Vec<Damage>,
    ) -> Result<RescuedStore> {
        ShadowStore::rescue_known(file, superblock, source, damage)
    }

    fn find(disk: &dyn Disk, part: Range<u64>) -> Option<OpenUnknown> {
        let geometry = find_geometry(disk, part)?;
        Some(Box::new(move |file| ShadowStore::rescue_unknown(file, geometry)))
    }
}

impl ShadowStore {
    /// The store of a file that has room for this number of pages.
    fn with_geometry(file: DatabaseFile, geometry: Geometry, room: u32) -> Result<ShadowStore> {
        let len = file.disk().size()?;
        let header = StoreHeader::decode(&file.store_header())?;
        let delta = header.usable_on(file.disk());
        let state = ShadowState {
            pages: PageStates::unknown(room, geometry.blocks(), header.count),
            map: header.map.map(Map::at),
            unsynced: Vec::new(),
            trims: Vec::new(),
            protected: HashSet::new(),
            failed: HashSet::new(),
            failed_deltas: HashSet::new(),
            unsound: HashMap::new(),
            in_log: HashSet::new(),
            unreadable: Vec::new(),
            placed: HashMap::new(),
            redo: file.meta().redo,
            lost: None,
            log_ends: header.log_ends,
            accepts_any: false,
            synced_generation: header.generation,
            checkpoints: 0,
        };
        Ok(ShadowStore {
            file,
            geometry,
            state: Mutex::new(state),
            generation: RwLock::new(header.generation.max(header.log_ends.generation())),
            syncing: Mutex::default(),
            room: Mutex::new(Room::new(len)),
            buffers: Mutex::default(),
            compression_buffers: Mutex::default(),
            compression: PageCompression::new(
                places(&geometry),
                header.policies.into_iter().collect::<Policies>(),
                Dictionaries::default(),
            ),
            written: AtomicU64::new(0),
            chosen_delta: header.delta,
            delta,
            rescued: false,
        })
    }

    /// Writes bytes at a place of the file. On a full device the room that was set aside is used.
    fn put(&self, kind: WriteKind, offset: u64, bytes: &[u8]) -> Result<()> {
        // This comes before the write, so that no other thread cuts off the bytes that the write adds.
        self.room.lock().note_written(offset + bytes.len() as u64);
        let written = match self.file.disk().write_as(kind, offset, bytes) {
            Err(full @ Error::Full { .. }) => {
                if !self.use_reserve()? {
                    return Err(full);
                }
                self.file.disk().write_as(kind, offset, bytes)
            }
            written => written,
        };
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        written
    }
}

impl PageStore for ShadowStore {}

impl StoreReads for ShadowStore {
    /// Also true if the slots are damaged or cannot be read, because the page may have an image.
    fn exists(&self, id: PageId) -> bool {
        self.with_page(|page| self.resolve(id, page).map_or(true, |(state, _)| state.image() == ImageState::Present))
    }

    fn may_exist(&self, id: PageId) -> bool {
        matches!(self.state.lock().pages.get(id).image(), ImageState::Present | ImageState::Unknown)
    }

    fn read(&self, id: PageId, page: &mut [u8]) -> Result<Option<ChangedParts>> {
        loop {
            let (state, changed) = self.resolve(id, page)?;
            if state.image() != ImageState::Present {
                return Ok(None);
            }
            if let Some(changed) = changed {
                Page::check(page, id)?;
                self.state.lock().pages.note_checked(id, state);
                return Ok(Some(changed));
            }
            if let Some(parts) = self.read_beside_writers(id, state, || self.read_image(id, state, page))? {
                return Ok(Some(parts));
            }
        }
    }

    fn will_read(&self, pages: &[PageId]) {
        for id in pages {
            let state = self.state_of(*id);
            let part = match state.image() {
                ImageState::Present => self.needed(*id, state),
                ImageState::Unknown => self.geometry.area_of(*id),
                ImageState::Absent | ImageState::Dropped => continue,
            };
            self.file.disk().will_read(part.start, part.end - part.start);
        }
    }

    /// Looks into the slots of all pages that are not known yet.
    fn pages(&self) -> Result<Vec<PageId>> {
        Ok((0..self.ids_end()).map(PageId).filter(|id| self.exists(*id)).collect())
    }

    fn ids_end(&self) -> u32 {
        self.state.lock().pages.len()
    }

    /// Always empty: the store reads the slots of a free page only when it writes that page.
    fn known_between(&self, _from: PageId, _to: PageId) -> Result<Vec<PageId>> {
        Ok(Vec::new())
    }
}

impl StoreWrites for ShadowStore {
    fn max_changed_bytes(&self) -> Option<usize> {
        (self.geometry.deltas() > 0).then_some(self.delta.threshold.into())
    }

    fn writer(&self) -> Box<dyn PageWriter + '_> {
        Box::new(write::SlotWriter::new(self))
    }

    fn write_unlogged(&self, pages: &[(PageId, Vec<u8>)]) -> Result<Vec<PlaceBytes>> {
        ShadowStore::write_unlogged(self, pages)
    }

    /// Its slots stay as they are.
    fn drop_page(&self, id: PageId) -> Result<()> {
        let mut state = self.state.lock();
        let dropped = state.pages.get(id).dropped();
        state.pages.set(id, dropped);
        Ok(())
    }

    /// Its slots are trimmed by the next checkpoint, unless the page is written before. The checkpoint of a recovery
    /// empties them at once if the recovery could not read the page.
    fn discard_page(&self, id: PageId) {
        let mut state = self.state.lock();
        let discarded = state.pages.get(id).discarded();
        state.pages.set(id, discarded);
        if state.in_log.contains(&id) {
            state.unreadable.push(id);
        }
        state.trims.push(id);
    }
}

impl StoreCheckpoints for ShadowStore {
    fn file(&self) -> &DatabaseFile {
        &self.file
    }

    fn begin_checkpoint(&self) -> CheckpointToken {
        let mut state = self.state.lock();
        state.checkpoints += 1;
        CheckpointToken(state.checkpoints)
    }

    fn finish(&self, token: CheckpointToken, meta: Meta) -> Result<()> {
        ShadowStore::finish(self, token, meta)
    }

    fn close(&self, meta: Meta) -> Result<()> {
        ShadowStore::close(self, meta)
    }

    fn use_closed_state(&self) {
        self.use_map();
    }
}

impl StoreRedo for ShadowStore {
    fn note_in_log(&self, id: PageId) {
        self.state.lock().in_log.insert(id);
    }

    /// Writes a superblock, so that later processes reject the same images as this one.
    fn note_log_end(&self, end: Lsn) -> Result<()> {
        let log_ends = {
            let mut generation = self.generation.write();
            let mut guard = self.state.lock();
            let state = &mut *guard;
            state.lost = Some((state.synced_generation, end));
            *generation = state.log_ends.add(*generation, end);
            state.log_ends
        };
        if self.rescued {
            return Ok(());
        }
        let mut update = self.file.begin_update()?;
        let header = StoreHeader { log_ends, ..StoreHeader::decode(update.store_header())? };
        update.write_store_header(header.encode())
    }

    fn reserve(&self, place: PlaceBytes, lsn: Lsn) -> Result<()> {
        write::decode_place(place).map(|_| ()).ok_or_else(|| no_place(lsn))
    }

    fn install(&self, id: PageId, place: PlaceBytes, lsn: Lsn) -> Result<bool> {
        ShadowStore::install(self, id, place, lsn)
    }
}

impl StoreRoom for ShadowStore {
    fn most_pages(&self) -> u32 {
        self.file.disk().capacity().map_or(u32::MAX, |capacity| self.geometry.whole_pages(capacity))
    }

    fn ensure_room(&self, pages: u64) -> Result<()> {
        ShadowStore::ensure_room(self, pages)
    }

    fn shrink(&self, _pages: u64) -> Result<()> {
        ShadowStore::shrink(self)
    }
}

impl StoreCompression for ShadowStore {
    /// A slot of one block is never shorter.
    fn compression(&self) -> Option<&PageCompression> {
        (self.geometry.blocks() > 1).then_some(&self.compression)
    }

    fn dictionary_of(&self, id: PageId) -> Result<Option<DictionaryId>> {
        ShadowStore::dictionary_of(self, id)
    }
}

impl StoreSurvey for ShadowStore {
    fn survey(&self, visit: &mut dyn FnMut(FoundImage<'_>)) -> Result<()> {
        for id in (0..self.ids_end()).map(PageId) {
            for slot_index in [SlotIndex::First, SlotIndex::Second] {
                self.survey_slot(id, slot_index, visit)?;
            }
        }
        Ok(())
    }

    fn delta_bytes(&self) -> u64 {
        ShadowStore::delta_bytes(self)
    }

    fn place_bytes(&self, id: PageId) -> Option<u64> {
        let (state, _) = self.with_page(|page| self.resolve(id, page)).ok()?;
        if state.image() != ImageState::Present {
            return None;
        }
        let blocks = self.blocks_of(id, state).unwrap_or(self.geometry.blocks());
        Some((blocks * BLOCK) as u64)
    }

    fn stats(&self) -> StoreStats {
        let len = self.room.lock().len();
        let PageCount { pages, spared } = self.state.lock().pages.count();
        let live = (pages * self.geometry.slot() as u64).saturating_sub(spared * BLOCK as u64);
        let front = super::superblock::FRONT as u64;
        StoreStats {
            file_bytes: len,
            live_bytes: live,
            free_bytes: len.saturating_sub(front + pages * self.geometry.area()),
            other_bytes: (pages * self.geometry.area()).saturating_sub(live),
            pages,
            written_bytes: self.written.load(Ordering::Relaxed),
            delta: Some(self.chosen_delta),
        }
    }
}

/// The places of pages with this geometry.
fn places(geometry: &Geometry) -> Places {
    let header = short::HEADER + limits::SLOT_TRAILER;
    Places { unit: BLOCK, header, whole: geometry.slot(), fixed: true }
}

const _: () = assert!(super::superblock::FRONT.is_multiple_of(BLOCK));

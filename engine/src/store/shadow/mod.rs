//! The `shadow` page store. Each page has two slots at a fixed position. The store writes the two slots in turn and has
//! no page table. When a page is first read, the store reads both slots and finds which one counts.
//!
//! The store writes a page to the slot that does not hold its last synced image. So a write that is cut off loses
//! nothing that a sync has made durable. Once the new image is synced, the store trims the old one: a drive that
//! compresses then keeps one image a page. `checkpoint` decides when an image is durable. How pages change, and the
//! write-ahead rule, must not be in this folder.

mod checkpoint;
mod choice;
mod rescue;
mod room;
mod slot;
mod states;
mod write;

pub(super) use rescue::find_geometry;
pub(super) use slot::Geometry;

use super::changed::ChangedParts;
use super::file::DatabaseFile;
use super::seam::{FoundImage, Frozen, PageStore, PageWriter, PlaceBytes, StoreStats};
use super::superblock::{ID_SLACK, Meta};
use crate::base::bytes::{get_u32, get_u64};
use crate::base::{Error, Lsn, PageId, Result};
use crate::io::{BLOCK, WriteKind};
use crate::page::Page;
use choice::{Choice, Known, Other, choose};
use parking_lot::{Mutex, RwLock};
use room::Room;
use slot::{Content, Side};
use states::{Kind, PageState, PageStates};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the store keeps in the superblock: `generation u32 | zero u32 | pages u64`.
#[derive(Clone, Copy, Default, Debug)]
struct Own {
    /// Images of earlier generations are synced.
    generation: u32,
    /// Pages that had an image.
    pages: u64,
}

impl Own {
    fn decode(bytes: &[u8]) -> Own {
        Own { generation: get_u32(bytes, 0), pages: get_u64(bytes, 8) }
    }

    fn encode(self) -> Vec<u8> {
        [&self.generation.to_le_bytes()[..], &[0; 4], &self.pages.to_le_bytes()].concat()
    }
}

/// Everything that the lock guards. It is never held while the device works.
#[derive(Debug)]
struct State {
    pages: PageStates,
    /// Pages written since the last sync began.
    unsynced: Vec<PageId>,
    /// Pages that have something to be trimmed, some of them more than once.
    trims: Vec<PageId>,
    /// Unsynced pages that an unfinished checkpoint counts as synced. Nothing may overwrite their images before a sync.
    frozen: HashSet<PageId>,
    /// Pages that redo changes.
    in_log: HashSet<PageId>,
    /// Places that redo has read from the log: each page has an image with this LSN or a greater one.
    placed: HashMap<PageId, Lsn>,
    /// Where redo begins.
    redo: Lsn,
    /// See [`Known::lost`].
    lost: Option<(u32, Lsn)>,
    /// Any sound image is believed.
    lenient: bool,
    /// Images of earlier generations are synced.
    synced_generation: u32,
    /// How often a checkpoint was begun.
    freezes: u64,
}

impl State {
    /// What is known of a page beside its slots.
    fn known_of(&self, id: PageId) -> Known {
        Known {
            generation: self.synced_generation,
            in_log: self.in_log.contains(&id),
            redo: self.redo,
            lost: self.lost,
            lenient: self.lenient,
        }
    }

    /// A page's image is durable.
    fn note_synced(&mut self, id: PageId) {
        self.frozen.remove(&id);
        let now = self.pages.get(id);
        if now.kind() == Kind::Present {
            self.pages.set(id, now.synced());
            self.trims.push(id);
        }
    }
}

/// The page store.
pub(super) struct ShadowStore {
    file: DatabaseFile,
    geometry: Geometry,
    state: Mutex<State>,
    /// The generation of new images. A thread that writes an image holds the read lock. A thread that must exclude all
    /// writes of images holds the write lock.
    generation: RwLock<u32>,
    /// Held while images are made durable.
    syncing: Mutex<()>,
    room: Mutex<Room>,
    /// For slots, used again and again.
    buffers: Mutex<Vec<Vec<u8>>>,
    written: AtomicU64,
    rescued: bool,
}

impl std::fmt::Debug for ShadowStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ShadowStore").field("file", &self.file).field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl ShadowStore {
    /// Opens what is in the file. Nothing is read but its length.
    pub(super) fn open(file: DatabaseFile) -> Result<ShadowStore> {
        let geometry = Geometry::new(file.page_size(), 0, file.meta().database_id);
        // A long file with few blocks must not cost memory.
        let room = geometry.pages(file.disk().size()?).min(file.meta().high_water.saturating_add(ID_SLACK));
        ShadowStore::with_geometry(file, geometry, room)
    }

    /// The store of a file that has room for so many pages.
    fn with_geometry(file: DatabaseFile, geometry: Geometry, room: u32) -> Result<ShadowStore> {
        let len = file.disk().size()?;
        let own = Own::decode(&file.own());
        let state = State {
            pages: PageStates::unknown(room, own.pages),
            unsynced: Vec::new(),
            trims: Vec::new(),
            frozen: HashSet::new(),
            in_log: HashSet::new(),
            placed: HashMap::new(),
            redo: file.meta().redo,
            lost: None,
            lenient: false,
            synced_generation: own.generation,
            freezes: 0,
        };
        Ok(ShadowStore {
            file,
            geometry,
            state: Mutex::new(state),
            generation: RwLock::new(own.generation),
            syncing: Mutex::default(),
            room: Mutex::new(Room::new(len)),
            buffers: Mutex::default(),
            written: AtomicU64::new(0),
            rescued: false,
        })
    }

    fn with_buffer<R>(&self, work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let mut buffer = self.buffers.lock().pop().unwrap_or_default();
        let done = work(&mut buffer);
        self.buffers.lock().push(buffer);
        done
    }

    /// Reads a slot, zeros where the file ends before.
    fn read_slot(&self, id: PageId, side: Side, slot: &mut Vec<u8>) -> Result<()> {
        slot.clear();
        slot.resize(self.geometry.slot(), 0);
        let offset = self.geometry.offset(id, side);
        let len = self.file.disk().size()?.saturating_sub(offset).min(slot.len() as u64);
        let there = usize::try_from(len).unwrap_or(0);
        self.file.disk().read_at(offset, slot.get_mut(..there).unwrap_or_default())
    }

    /// What is known of a page; its slots are read if nothing is.
    fn resolve(&self, id: PageId) -> Result<PageState> {
        let (known, about) = {
            let state = self.state.lock();
            (state.pages.get(id), state.known_of(id))
        };
        if known.kind() != Kind::Unknown {
            return Ok(known);
        }
        self.with_buffer(|buffer| {
            let found = self.look(id, about, buffer)?;
            if found.unsynced && about.in_log && !self.rescued {
                return self.write_again(id, about, buffer);
            }
            Ok(self.learn(id, found))
        })
    }

    /// Writes an image again, with the same bytes, if it may not be durable. After a failed sync the image may be only
    /// in the system's cache, and no later sync would write it.
    fn write_again(&self, id: PageId, about: Known, buffer: &mut Vec<u8>) -> Result<PageState> {
        // Another thread may have written an image since the slots were read. No thread may write one from here on.
        let _no_image_is_written = self.generation.write();
        let known = self.state.lock().pages.get(id);
        if known.kind() != Kind::Unknown {
            return Ok(known);
        }
        let found = self.look(id, about, buffer)?;
        if found.state.kind() == Kind::Present {
            let side = found.state.side();
            self.read_slot(id, side, buffer)?;
            self.put(self.geometry.offset(id, side), buffer)?;
            if found.other == Other::Spoilt {
                self.clear(id, side.other(), buffer)?;
            }
            self.state.lock().unsynced.push(id);
        }
        Ok(self.learn(id, found))
    }

    /// Sets the state that was found in the slots, unless another thread has set the state of the page meanwhile.
    fn learn(&self, id: PageId, found: Choice) -> PageState {
        let mut state = self.state.lock();
        let now = state.pages.learn(id, found.state);
        if now.waits_for_trim() {
            state.trims.push(id);
        }
        now
    }

    /// Looks into both slots.
    fn look(&self, id: PageId, about: Known, buffer: &mut Vec<u8>) -> Result<Choice> {
        let mut contents = [Content::Empty; 2];
        for (content, side) in contents.iter_mut().zip([Side::First, Side::Second]) {
            self.read_slot(id, side, buffer)?;
            *content = self.geometry.look(buffer, id);
        }
        let mut found = choose(contents[0], contents[1], about).map_err(|what| Error::corrupt(id, what))?;
        let Some(least) = self.state.lock().placed.get(&id).copied() else { return Ok(found) };
        let has_at_least = |is_side: bool| {
            contents.iter().any(|content| {
                matches!(content, Content::Image { stamp, lsn }
                    if *lsn >= least && (stamp.turn == found.state.turn()) == is_side)
            })
        };
        if !has_at_least(true) {
            return Err(Error::corrupt(id, "the image that was written outside the log is lost"));
        }
        if !has_at_least(false) {
            // The log needs this image. The image in the other slot belongs to an earlier page with the same id.
            found.state = PageState::present(found.state.side(), found.state.turn(), true);
            found.other = Other::Spoilt;
        }
        Ok(found)
    }

    /// Reads the image that counts into `page`.
    fn read_image(&self, id: PageId, state: PageState, page: &mut [u8]) -> Result<()> {
        self.with_buffer(|buffer| {
            self.read_slot(id, state.side(), buffer)?;
            match self.geometry.look(buffer, id) {
                Content::Image { stamp, .. } if stamp.turn == state.turn() => {}
                Content::Image { .. } => return Err(Error::corrupt(id, "the image that was written last is lost")),
                _ => return Err(Error::corrupt(id, "its image does not match its checksum")),
            }
            page.copy_from_slice(buffer.get(..page.len()).unwrap_or_default());
            Page::check(page, id).map(|_| ())
        })
    }

    /// Writes bytes at a place of the file. On a full device the room that was set aside is used.
    fn put(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        // This comes before the write, so that no other thread cuts off the bytes that the write adds.
        self.room.lock().note_written(offset + bytes.len() as u64);
        let written = match self.file.disk().write_as(WriteKind::Page, offset, bytes) {
            Err(full @ Error::Full { .. }) => {
                if !self.use_reserve()? {
                    return Err(full);
                }
                self.file.disk().write_as(WriteKind::Page, offset, bytes)
            }
            written => written,
        };
        self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        written
    }
}

impl PageStore for ShadowStore {
    fn file(&self) -> &DatabaseFile {
        &self.file
    }

    /// Also true if the slots are damaged or cannot be read, because the page may have an image.
    fn exists(&self, id: PageId) -> bool {
        self.resolve(id).map_or(true, |state| state.kind() == Kind::Present)
    }

    fn read(&self, id: PageId, page: &mut [u8]) -> Result<Option<ChangedParts>> {
        loop {
            let state = self.resolve(id)?;
            if state.kind() != Kind::Present {
                return Ok(None);
            }
            let read = self.read_image(id, state, page);
            // The page may have been written meanwhile: only then is there another try.
            let now = self.state.lock().pages.get(id);
            if read.is_ok() || (now.side(), now.turn()) == (state.side(), state.turn()) {
                return read.map(|()| Some(ChangedParts::ALL));
            }
        }
    }

    fn reuses_ids_at_once(&self) -> bool {
        false
    }

    fn note_in_log(&self, id: PageId) {
        self.state.lock().in_log.insert(id);
    }

    fn note_log_end(&self, end: Lsn) {
        let mut state = self.state.lock();
        state.lost = Some((state.synced_generation, end));
    }

    fn writer(&self) -> Box<dyn PageWriter + '_> {
        Box::new(write::SlotWriter::new(self))
    }

    fn write_unlogged(&self, id: PageId, packed: &[u8]) -> Result<PlaceBytes> {
        ShadowStore::write_unlogged(self, id, packed)
    }

    /// Its slots stay as they are.
    fn drop_page(&self, id: PageId) {
        let mut state = self.state.lock();
        let dropped = state.pages.get(id).dropped();
        state.pages.set(id, dropped);
    }

    /// Its slots are trimmed by the next checkpoint, unless the page is written before.
    fn discard_page(&self, id: PageId) {
        let mut state = self.state.lock();
        let discarded = state.pages.get(id).discarded();
        state.pages.set(id, discarded);
        state.trims.push(id);
    }

    /// Looks into the slots of all pages that are not known yet.
    fn pages_between(&self, from: PageId, to: PageId) -> Vec<PageId> {
        let end = to.0.min(self.state.lock().pages.len());
        (from.0..end).map(PageId).filter(|id| self.exists(*id)).collect()
    }

    /// Always empty: the store reads the slots of a free page only when it writes that page.
    fn known_between(&self, _from: PageId, _to: PageId) -> Vec<PageId> {
        Vec::new()
    }

    fn ids_end(&self) -> u32 {
        self.state.lock().pages.len()
    }

    fn freeze(&self) -> Frozen {
        let mut state = self.state.lock();
        state.freezes += 1;
        Frozen(state.freezes)
    }

    fn finish(&self, frozen: Frozen, meta: Meta) -> Result<()> {
        ShadowStore::finish(self, frozen, meta)
    }

    fn reserve(&self, place: PlaceBytes, lsn: Lsn) -> Result<()> {
        write::decode_place(place).map(|_| ()).ok_or_else(|| write::no_place(lsn))
    }

    fn install(&self, id: PageId, place: PlaceBytes, lsn: Lsn) -> Result<bool> {
        ShadowStore::install(self, id, place, lsn)
    }

    fn ensure_room(&self, pages: u64) -> Result<()> {
        ShadowStore::ensure_room(self, pages)
    }

    fn shrink(&self, _pages: u64) -> Result<()> {
        ShadowStore::shrink(self)
    }

    fn is_rescued(&self) -> bool {
        self.rescued
    }

    fn survey(&self, visit: &mut dyn FnMut(FoundImage<'_>)) -> Result<()> {
        let (mut slot, mut packed) = (Vec::new(), Vec::new());
        for id in (0..self.ids_end()).map(PageId) {
            for side in [Side::First, Side::Second] {
                if self.read_slot(id, side, &mut slot).is_err() {
                    continue;
                }
                let Content::Image { lsn, .. } = self.geometry.look(&slot, id) else { continue };
                let page = slot.get(..self.geometry.page()).unwrap_or_default();
                if Page::check(page, id).is_ok() {
                    packed.clear();
                    Page::new(page).packed_into(&mut packed);
                    visit(FoundImage { page: id, lsn, packed: &packed });
                }
            }
        }
        Ok(())
    }

    fn stats(&self) -> StoreStats {
        let len = self.room.lock().len();
        let pages = self.state.lock().pages.pages();
        let live = pages * self.geometry.slot() as u64;
        let front = super::superblock::FRONT as u64;
        StoreStats {
            file_bytes: len,
            live_bytes: live,
            free_bytes: len.saturating_sub(front + pages * self.geometry.cell()),
            other_bytes: pages * (self.geometry.cell() - self.geometry.slot() as u64),
            pages,
            written_bytes: self.written.load(Ordering::Relaxed),
            delta_bytes: 0,
        }
    }
}

const _: () = assert!(super::superblock::FRONT.is_multiple_of(BLOCK));

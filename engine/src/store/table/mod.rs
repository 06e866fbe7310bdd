//! The `table` page store: reads a page's image from its place and writes new images to new places.
//!
//! What is durable is decided in `checkpoint`; when a page must be written, and the write-ahead rule, are the buffer
//! pool's. One lock guards the page table and the free map together; it is never held while the device works.

mod allocator;
pub(super) mod checkpoint;
pub mod image;
pub(super) mod page_table;
pub(super) mod place;
mod region;
mod relocate;
pub(super) mod rescue;
mod room;

use crate::base::checksum::checksum;
use crate::base::{Error, PageId, Result};
use crate::io::Disk;
use crate::page::{Page, unpack};
use crate::store::superblock::{self, ID_SLACK, Meta, SUPERBLOCK, Superblock};
use crate::store::syncs::Syncs;
use allocator::PlaceAllocator;
use image::{IMAGE_HEADER, ImageBatch, open_image};
use page_table::{CHUNK_BYTES, CHUNK_PAGES, Entry, PageTable, decode_directory};
use parking_lot::Mutex;
use place::{Extent, FIRST_GRAIN, GRAIN, Location, grains_of};
use rescue::begins_with_images;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Whether log records name the places of the images being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WriteKind {
    /// An ordinary flush: redo rebuilds the page if the image is lost, so that nothing needs to know its place before
    /// the next checkpoint.
    Flush,
    /// A page written outside the log: a location record will name its place, which must last until a checkpoint.
    Unlogged,
}

/// What the store holds, in bytes and pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreStats {
    /// Length of the file.
    pub file_bytes: u64,
    /// Images that the page table leads to.
    pub live_bytes: u64,
    /// Places that may be given out at once, inside the file.
    pub free_bytes: u64,
    /// Superseded places that wait for a checkpoint, and the page table itself.
    pub other_bytes: u64,
    /// Pages that have an image.
    pub pages: u64,
    /// Bytes written since the store was opened.
    pub written_bytes: u64,
}

/// Everything that the lock guards.
pub(super) struct State {
    pub(super) table: PageTable,
    pub(super) allocator: PlaceAllocator,
    /// Superseded since the last freeze.
    pub(super) quarantine: Vec<Extent>,
    /// Superseded before the last freeze, whose checkpoint is not durable yet.
    pub(super) frozen: Vec<Extent>,
    /// Places that the log's location records name and that are not installed yet; only during recovery.
    pub(super) reserved: BTreeMap<u64, Extent>,
    /// Chunks captured by a freeze whose checkpoint is not durable yet.
    pub(super) captured: Vec<usize>,
    /// How often the table was frozen.
    pub(super) freezes: u64,
}

impl State {
    pub(super) fn new(page_size: usize) -> State {
        let longest_image = u32::try_from(grains_of(page_size + IMAGE_HEADER)).unwrap_or(u32::MAX);
        State {
            table: PageTable::default(),
            allocator: PlaceAllocator::new(longest_image),
            quarantine: Vec::new(),
            frozen: Vec::new(),
            reserved: BTreeMap::new(),
            captured: Vec::new(),
            freezes: 0,
        }
    }

    /// Sets a page's entry and lets the place that it had go as early as is safe.
    pub(super) fn supersede(&mut self, id: PageId, new: Option<Entry>) {
        if let Some(old) = self.table.set(id, new) {
            let same = new.is_some_and(|new| new.location.place == old.location.place);
            match old.fresh {
                _ if same => {}
                true => self.allocator.release(old.location.place.extent()),
                false => self.quarantine.push(old.location.place.extent()),
            }
        }
    }
}

/// What the superblocks say now and where the next one goes.
pub(super) struct Current {
    pub(super) superblock: Superblock,
    pub(super) slot: usize,
    /// The other slot was damaged when the file was opened, and has not been written since.
    pub(super) other_damaged: bool,
}

/// The page store. All methods may be called from several threads; what must not overlap is said at each.
pub struct TableStore {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) path: PathBuf,
    pub(super) page_size: usize,
    pub(super) state: Mutex<State>,
    /// Held during a whole checkpoint or superblock write.
    pub(super) current: Mutex<Current>,
    /// The file's length in bytes; held while it grows or shrinks.
    pub(super) len: Mutex<u64>,
    buffers: Mutex<Vec<Vec<u8>>>,
    written: AtomicU64,
    /// Both superblocks have at least this high water; 0 as long as one is not known.
    pub(super) high_water: AtomicU32,
    /// What [`TableStore::make_known`] was asked for: no later superblock may have less.
    pub(super) raised: AtomicU32,
    /// What of the page table could not be read: its pages are lost, and where they lie is unknown.
    damage: Option<String>,
    /// It is opened for what is left of it: what is damaged is left out, and what is found is believed.
    pub(super) rescued: bool,
    syncs: Syncs,
}

impl std::fmt::Debug for TableStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableStore").field("path", &self.path).field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl TableStore {
    /// Makes an empty store of an empty file and returns once it is durable. `path` is for messages only.
    pub fn create(disk: Arc<dyn Disk>, path: &Path, meta: Meta) -> Result<TableStore> {
        crate::base::limits::check_page_size(meta.page_size, false)?;
        let first = Superblock { meta, sequence: 1, directory_first: 0, directory_len: 0, directory_crc: 0 };
        let second = Superblock { sequence: 2, ..first };
        disk.write_at(0, &[first.encode(), second.encode()].concat())?;
        disk.sync()?;
        let current = Current { superblock: second, slot: 1, other_damaged: false };
        TableStore::assemble(disk, path, State::new(meta.page_size), current)
    }

    /// Opens what is in the file. Nothing is written.
    ///
    /// A damaged chunk of the page table costs its 256 pages, see [`TableStore::damage`].
    ///
    /// Errors: those of [`superblock::choose`]; [`Error::CorruptMeta`] where the directory of the page table is damaged,
    /// where two pages lie at one place, or where the file is cut short.
    pub fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<(TableStore, Meta)> {
        let front = TableStore::front(&*disk)?;
        let (superblock, slot) = match superblock::choose(&front, path) {
            Err(Error::NotADatabase { .. }) if begins_with_images(&*disk)? => {
                let why = "both copies are overwritten".to_owned();
                return Err(Error::CorruptMeta { what: "the superblock", why });
            }
            chosen => chosen?,
        };
        let mut state = State::new(superblock.meta.page_size);
        let damaged = load_table(&*disk, disk.size()?, &superblock, &mut state, Reading::All)?;
        let damage = damaged.first().map(|chunk| describe_damage(*chunk));
        let other_damaged = !superblock::is_sound(&front, 1 - slot.min(1));
        let store = TableStore::assemble(disk, path, state, Current { superblock, slot, other_damaged })?;
        Ok((TableStore { damage, ..store }, superblock.meta))
    }

    /// The bytes of the superblocks, as far as the file has them.
    fn front(disk: &dyn Disk) -> Result<Vec<u8>> {
        let mut front = vec![0; usize::try_from(disk.size()?.min(2 * SUPERBLOCK as u64)).unwrap_or(0)];
        disk.read_at(0, &mut front)?;
        Ok(front)
    }

    /// The page table is damaged in a part: pages can be read, but none must be written, since nothing says where the
    /// images of the lost part lie.
    pub fn damage(&self) -> Option<Error> {
        self.damage.clone().map(corrupt)
    }

    /// It is opened for what is left of it.
    pub(crate) fn is_rescued(&self) -> bool {
        self.rescued
    }

    /// Which of the two superblocks is damaged, if one is: the other one counts. The next superblock to be written takes
    /// its place.
    pub fn damaged_superblock(&self) -> Option<usize> {
        let current = self.current.lock();
        current.other_damaged.then(|| 1 - current.slot.min(1))
    }

    pub(super) fn assemble(disk: Arc<dyn Disk>, path: &Path, state: State, current: Current) -> Result<TableStore> {
        let len = disk.size()?;
        Ok(TableStore {
            disk,
            path: path.to_owned(),
            page_size: current.superblock.meta.page_size,
            state: Mutex::new(state),
            current: Mutex::new(current),
            len: Mutex::new(len),
            buffers: Mutex::new(Vec::new()),
            written: AtomicU64::new(0),
            high_water: AtomicU32::new(0),
            raised: AtomicU32::new(0),
            damage: None,
            rescued: false,
            syncs: Syncs::default(),
        })
    }

    /// Bytes of a page.
    pub fn page_size(&self) -> usize {
        self.page_size
    }

    /// What the superblock says now. Waits for a checkpoint that is being finished.
    pub fn meta(&self) -> Meta {
        self.current.lock().superblock.meta
    }

    /// Where a page's image is; `None` without one.
    pub fn location(&self, id: PageId) -> Option<Location> {
        self.state.lock().table.get(id).map(|entry| entry.location)
    }

    /// Reads a page into `page`, which has the length of a page. `false`: it has no image, `page` is untouched.
    ///
    /// Errors: [`Error::Corrupt`] where the image is not the one that was written or holds no sound page.
    pub fn read(&self, id: PageId, page: &mut [u8]) -> Result<bool> {
        let mut buffer = self.buffers.lock().pop().unwrap_or_default();
        let result = self.read_with(id, page, &mut buffer);
        self.buffers.lock().push(buffer);
        result
    }

    fn read_with(&self, id: PageId, page: &mut [u8], buffer: &mut Vec<u8>) -> Result<bool> {
        let mut location = self.location(id);
        while let Some(at) = location {
            let result = self.read_image(id, at, buffer).and_then(|packed| {
                unpack(packed, page).map_err(|error| name(id, error))?;
                Page::check(page, id).map_err(|error| name(id, error)).map(|_| ())
            });
            // The page may have moved meanwhile and its old place been used again: only then is there another try.
            location = self.location(id);
            if result.is_ok() || location == Some(at) {
                return result.map(|()| true);
            }
        }
        match &self.damage {
            Some(what) => Err(Error::corrupt(id, format!("the page table is damaged: {what}"))),
            None => Ok(false),
        }
    }

    /// Reads the image at `at` and returns the packed page in it.
    pub(super) fn read_image<'a>(&self, id: PageId, at: Location, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        buffer.resize(at.place.len(), 0);
        self.disk.read_at(at.place.offset(), buffer)?;
        open_image(buffer, id, at.crc)
    }

    /// Writes the image of one page; see [`TableStore::write_batch`].
    pub fn write(&self, id: PageId, page: &[u8]) -> Result<()> {
        let mut batch = ImageBatch::new();
        batch.push(id, page);
        self.write_batch(&mut batch, WriteKind::Flush)
    }

    /// Writes a packed page outside the log; its location belongs in a log record before which [`TableStore::sync`] has
    /// been called.
    pub fn write_unlogged(&self, id: PageId, packed: &[u8]) -> Result<Location> {
        let mut batch = ImageBatch::new();
        batch.push_packed(id, packed);
        self.write_batch(&mut batch, WriteKind::Unlogged)?;
        let location = batch.locations().next();
        location.map(|(_, location)| location).ok_or_else(|| Error::corrupt(id, "its image is longer than a page"))
    }

    /// Writes images to new places, next to one another as far as possible, and leads the page table to them; nothing
    /// is synced. The log must be durable beyond the pages' LSNs. Of two writes of one page, and of a write and
    /// [`TableStore::drop_page`] of the same page, the later to return wins: the caller keeps them apart.
    ///
    /// On an error no page of the batch has moved.
    pub fn write_batch(&self, batch: &mut ImageBatch, kind: WriteKind) -> Result<()> {
        let most = self.longest_image();
        let mut sizes = Vec::with_capacity(batch.len());
        for (id, grains) in batch.sizes() {
            if u64::from(grains) > most {
                return Err(Error::corrupt(id, "its image is longer than a page"));
            }
            sizes.push(grains);
        }
        batch.set_places(&self.take_places(&sizes)?);
        let written = self.write_runs(batch.runs());
        let mut state = self.state.lock();
        for (id, location) in batch.locations() {
            match &written {
                Ok(()) => {
                    let entry = Entry { location, fresh: kind == WriteKind::Flush };
                    state.supersede(id, Some(entry));
                }
                Err(_) => state.allocator.release(location.place.extent()),
            }
        }
        written
    }

    /// Writes stretches of bytes at their grains, which have been taken.
    pub(super) fn write_runs<'a>(&self, runs: impl Iterator<Item = (u64, &'a [u8])>) -> Result<()> {
        for (first, bytes) in runs {
            let extent = Extent { first, grains: grains_of(bytes.len()) };
            self.disk.write_at(extent.offset(), bytes)?;
            self.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// The log may name pages below this one; from there on [`TableStore::make_known`] must be called before.
    pub fn ids_known(&self) -> u32 {
        self.high_water.load(Ordering::Acquire).saturating_add(ID_SLACK)
    }

    /// Whether a place is inside the file.
    pub fn reaches(&self, location: Location) -> bool {
        location.place.extent().end() <= *self.len.lock() / GRAIN as u64
    }

    /// Redo of a location record: the page's image is at `location`. [`Error::CorruptMeta`] where that place is
    /// another's.
    pub fn install(&self, id: PageId, location: Location) -> Result<()> {
        let mut state = self.state.lock();
        if state.table.get(id).is_some_and(|entry| entry.location == location) {
            return Ok(());
        }
        let extent = location.place.extent();
        let taken = state.reserved.remove(&extent.first) != Some(extent) && !state.allocator.claim(extent);
        // In a rescue, the image that was found there may be this one.
        if taken && !self.rescued {
            let why = format!("the log puts page {id} at grain {}, where something else is", extent.first);
            return Err(Error::CorruptMeta { what: "the page table", why });
        }
        state.supersede(id, Some(Entry { location, fresh: false }));
        Ok(())
    }

    /// Keeps the place of a location record that redo has yet to come to from being given out. Recovery calls it for
    /// every such record at or past the table LSN before it writes its first page; what is never installed is free
    /// again after the next checkpoint.
    pub fn reserve(&self, location: Location) {
        let extent = location.place.extent();
        let mut state = self.state.lock();
        if state.allocator.claim(extent) {
            state.reserved.insert(extent.first, extent);
        }
    }

    /// The pages with ids from `from` to before `to` that have an image, in order.
    pub fn pages_between(&self, from: PageId, to: PageId) -> Vec<PageId> {
        let mut pages = Vec::new();
        self.state.lock().table.each_between(from, to, |page, _| pages.push(page));
        pages
    }

    /// Empties the entry of a page that has been freed; its place is used again as soon as that is safe.
    pub fn drop_page(&self, id: PageId) {
        self.state.lock().supersede(id, None);
    }

    /// The page table has no page with this id or a greater one.
    pub fn ids_end(&self) -> u32 {
        u32::try_from(self.state.lock().table.chunks() * CHUNK_PAGES).unwrap_or(u32::MAX)
    }

    /// Returns once all that was written before the call is durable. After a failure nothing can be made durable any more:
    /// this and every later call gives [`Error::Poisoned`].
    pub fn sync(&self) -> Result<()> {
        self.syncs.sync(&*self.disk)
    }

    /// Refuses once a sync has failed.
    pub(crate) fn check_failed(&self) -> Result<()> {
        self.syncs.check()
    }

    /// What it holds now.
    pub fn stats(&self) -> StoreStats {
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
            written_bytes: self.written.load(Ordering::Relaxed),
        }
    }
}

/// Bytes that claim to be another page are told by the id that was asked for.
fn name(id: PageId, error: Error) -> Error {
    match error {
        Error::Corrupt { what, .. } => Error::Corrupt { page: id, what },
        other => other,
    }
}

fn corrupt(why: String) -> Error {
    Error::CorruptMeta { what: "the page table", why }
}

/// What is wrong with a chunk of the page table that has not its checksum.
fn describe_damage(chunk: usize) -> String {
    let first = chunk * CHUNK_PAGES;
    format!("its chunk {chunk}, of pages {first} to {}, has not its checksum", first + CHUNK_PAGES - 1)
}

/// How much of a page table must be sound.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// All, but for the checksums of chunks.
    All,
    /// What is not is left out.
    WhatIsLeft,
}

/// Takes a place that the page table names, unless it is beyond the end of the file or another's.
fn claim(allocator: &mut PlaceAllocator, file_end: u64, extent: Extent, what: impl Fn() -> String) -> Result<()> {
    // Before claiming: the free map is as large as what is claimed.
    if extent.end() > file_end {
        return Err(corrupt(format!("the file is cut short: {} lies beyond its end", what())));
    }
    if !allocator.claim(extent) {
        return Err(corrupt(format!("{} lies where something else is", what())));
    }
    Ok(())
}

/// Reads the directory and all chunks, and takes every place that they name. Gives the chunks that are damaged.
pub(super) fn load_table(
    disk: &dyn Disk,
    size: u64,
    superblock: &Superblock,
    state: &mut State,
    reading: Reading,
) -> Result<Vec<usize>> {
    let extent = superblock.directory();
    let mut damaged = Vec::new();
    if extent.grains == 0 {
        return Ok(damaged);
    }
    let (end, lenient) = (size / GRAIN as u64, reading == Reading::WhatIsLeft);
    let high_water = superblock.meta.high_water;
    if superblock.directory_len > u64::from(high_water).div_ceil(CHUNK_PAGES as u64) * Location::BYTES as u64 {
        return Err(corrupt(format!("its directory is of more pages than the {high_water} that there are")));
    }
    claim(&mut state.allocator, end, extent, || "its directory".into())?;
    let mut bytes = vec![0; usize::try_from(superblock.directory_len).unwrap_or(0)];
    disk.read_at(extent.offset(), &mut bytes)?;
    if checksum(&bytes) != superblock.directory_crc {
        return Err(corrupt("its directory has not its checksum".into()));
    }
    let most = grains_of(superblock.meta.page_size + IMAGE_HEADER);
    let mut chunk = vec![0; CHUNK_BYTES];
    for (index, home) in decode_directory(&bytes)?.into_iter().enumerate() {
        let Some(home) = home else { continue };
        let State { table, allocator, .. } = state;
        let sound = read_chunk(disk, end, index, home, allocator, &mut chunk);
        if !sound.or_else(|error| if lenient { Ok(false) } else { Err(error) })? {
            tracing::error!(what = describe_damage(index), "a part of the page table is damaged");
            damaged.push(index);
            continue;
        }
        table.load_chunk(index, home, &chunk, |id, location| {
            if id.0 >= high_water {
                return Err(corrupt(format!("page {id} is none of the {high_water} that there are")));
            }
            if location.place.grains() > most {
                return Err(corrupt(format!("the image of page {id} is longer than a page")));
            }
            let claimed = claim(allocator, end, location.place.extent(), || format!("page {id}"));
            // Reading the page will tell.
            claimed.or_else(|error| if lenient { Ok(()) } else { Err(error) })
        })?;
    }
    Ok(damaged)
}

/// Reads a chunk of the page table; false where it has not its checksum.
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

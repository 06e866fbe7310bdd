//! [`PageStore`], the trait between the buffer pool and a page store. It joins one trait for each subject:
//!
//! * [`StoreReads`]: which pages have an image, and reading them.
//! * [`StoreWrites`]: writing pages, and dropping those that have been freed.
//! * [`StoreCheckpoints`]: the durable state, and how the next opening finds it.
//! * [`StoreRedo`]: the places in log records, and what else recovery finds in the log.
//! * [`StoreRoom`]: space on the device.
//! * [`StoreCompression`]: compression of pages.
//! * [`StoreSurvey`]: checks, rescue and statistics.
//!
//! A store keeps pages by their ids. Only the store knows where it writes them: a place is bytes that no other layer
//! reads ([`PlaceBytes`]). The layers above decide when a page is written and which pages are free, and make the log
//! durable first.
//!
//! Every store promises:
//!
//! * A read returns the image that was written last, or [`Error::Corrupt`].
//! * A write that fails leaves the page as it was.
//! * At opening, each page that the last checkpoint had exists, with the image that it had then or a later one. So the
//!   image of a page that has been dropped stays until the next checkpoint is durable.
//!
//! All methods may be called from several threads. The caller never writes a page twice at the same time, nor calls
//! [`StoreWrites::drop_page`] for a page that is being written.

use super::changed::ChangedParts;
use super::file::DatabaseFile;
use super::options::DeltaBlocks;
use super::place_bytes::PlaceBytes;
use super::superblock::Meta;
use super::{DictionaryId, PageCompression};
use crate::base::{Error, Lsn, PageId, Result};

/// A checkpoint that [`StoreCheckpoints::begin_checkpoint`] has begun.
#[derive(Debug)]
pub struct CheckpointToken(pub(super) u64);

impl CheckpointToken {
    /// Returns an error if the store has begun a newer checkpoint, whose number is `newest`.
    pub(super) fn check_newest(&self, newest: u64) -> Result<()> {
        if self.0 == newest {
            return Ok(());
        }
        Err(Error::Poisoned { cause: "a checkpoint was overtaken by a newer one".into() })
    }
}

/// The size of a store's parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreStats {
    /// Length of the file.
    pub file_bytes: u64,
    /// Images that are the newest of their pages.
    pub live_bytes: u64,
    /// Bytes inside the file that can be written at once.
    pub free_bytes: u64,
    /// The rest: superseded images that wait for a checkpoint, and the store's own structures.
    pub other_bytes: u64,
    /// Pages that have an image.
    pub pages: u64,
    /// Bytes written since the store was opened.
    pub written_bytes: u64,
    /// How small changes of pages are written, if the store has delta blocks.
    pub delta: Option<DeltaBlocks>,
}

impl StoreStats {
    /// Bytes of the file that are in use: its length, if it had no free places.
    pub fn used_bytes(&self) -> u64 {
        self.file_bytes - self.free_bytes
    }
}

/// A sound image that was found in the file.
pub struct FoundImage<'a> {
    /// The page id in it.
    pub page: PageId,
    /// Its LSN.
    pub lsn: Lsn,
    /// The packed page in it.
    pub packed: &'a [u8],
}

/// Which image of a page is its base after a successful write. [`ChangedParts`] counts from the base.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// The image that is being written.
    Moves,
    /// The same image as before: the store writes only the differences from it.
    Stays,
}

/// Collects pages and writes them together. If it is dropped before [`PageWriter::write`], it writes nothing.
pub trait PageWriter {
    /// Adds a page, whose bytes are copied. `changed` covers every byte that differs from the page's base, except the
    /// LSN, if the store [wants to know](StoreWrites::max_changed_bytes).
    fn push(&mut self, id: PageId, page: &[u8], changed: ChangedParts) -> Base;

    /// Writes them all; nothing is synced. The log must be durable beyond the pages' LSNs. On an error no page has
    /// changed.
    fn write(self: Box<Self>) -> Result<()>;
}

/// A page store. The documentation of the module says what every store promises.
pub trait PageStore:
    StoreReads
    + StoreWrites
    + StoreCheckpoints
    + StoreRedo
    + StoreRoom
    + StoreCompression
    + StoreSurvey
    + Send
    + Sync
    + std::fmt::Debug
{
    /// Sets what does not last beyond this opening. Call it before anything is written.
    fn set_up(&self, setup: StoreSetup) {
        let _ = setup;
    }
}

impl dyn PageStore + '_ {
    /// Writes one page, all of it.
    pub fn write(&self, id: PageId, page: &[u8]) -> Result<()> {
        let mut writer = self.writer();
        writer.push(id, page, ChangedParts::ALL);
        writer.write()
    }
}

/// The settings of a store that do not last beyond an opening of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreSetup {
    /// The store writes what it needs to find a page after each flush of the page, and not only at checkpoints. A store
    /// that needs nothing to find its pages ignores it.
    pub persist_table: bool,
    /// Bytes of memory beside the cache, for the parts of the page table or map that the store would otherwise read
    /// again to find pages.
    pub memory: usize,
}

/// Which pages have an image, and reading them.
pub trait StoreReads {
    /// Whether a page has an image. True if that cannot be known: then reading the page is an error.
    fn exists(&self, id: PageId) -> bool;

    /// False if a page certainly has no image. No page is read.
    fn may_exist(&self, id: PageId) -> bool {
        self.exists(id)
    }

    /// Reads a page into `page`, which has the length of a page, and returns where it differs from its base. `None` if
    /// the page has no image; `page` is then unchanged.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the image is not the one that was written or holds no sound page.
    fn read(&self, id: PageId, page: &mut [u8]) -> Result<Option<ChangedParts>>;

    /// Hints that these pages will be read soon, so that the device can begin to read them all. It changes no result.
    fn will_read(&self, pages: &[PageId]) {
        let _ = pages;
    }

    /// Whether a page has this length when packed, as far as its place tells. `None`: it must be read to know that. The
    /// page is not read.
    fn has_length(&self, id: PageId, packed: usize) -> Option<bool> {
        let _ = packed;
        if self.may_exist(id) { None } else { Some(false) }
    }

    /// No page has this id or a greater one.
    fn ids_end(&self) -> u32;

    /// All pages that have an image, in order.
    ///
    /// # Errors
    /// Errors of reading, if it cannot be known which pages these are.
    fn pages(&self) -> Result<Vec<PageId>>;

    /// The pages with ids from `from` to before `to` that have an image, in order, but only those that the store finds
    /// without reading pages, and only if a transaction that did not commit may have written them.
    fn known_between(&self, from: PageId, to: PageId) -> Result<Vec<PageId>> {
        let mut pages = self.pages()?;
        pages.retain(|id| (from..to).contains(id));
        Ok(pages)
    }
}

/// Writing pages, and dropping those that have been freed.
pub trait StoreWrites {
    /// The store needs the changed parts of a page only if they have at most this number of bytes. `None`: it never
    /// needs them. The pool copies a page before each change and compares, until more bytes than this have changed.
    /// Then the whole page counts as changed.
    fn max_changed_bytes(&self) -> Option<usize> {
        None
    }

    /// Begins to write pages together.
    fn writer(&self) -> Box<dyn PageWriter + '_>;

    /// Writes packed pages outside the log, in order and side by side if the store has the room, and returns their
    /// places for log records. The file must be synced before such a record is written. A place stays valid until a
    /// checkpoint. After an error the caller frees all of the pages.
    fn write_unlogged(&self, pages: &[(PageId, Vec<u8>)]) -> Result<Vec<PlaceBytes>>;

    /// Drops a page that has been freed: it then has no image.
    ///
    /// # Errors
    /// Errors of reading, if the store has to find its place first. The page keeps its image then.
    fn drop_page(&self, id: PageId) -> Result<()>;

    /// Discards a dropped page that neither a reader nor a recovery needs. Only stores that do not reuse ids at once
    /// need this call.
    fn discard_page(&self, id: PageId) {
        let _ = id;
    }
}

/// The durable state, and how the next opening finds it.
pub trait StoreCheckpoints {
    /// The file, with superblocks and syncs.
    fn file(&self) -> &DatabaseFile;

    /// Begins a checkpoint: notes the present state. Call it between two batches. It writes nothing. Only the newest
    /// checkpoint can be finished.
    fn begin_checkpoint(&self) -> CheckpointToken;

    /// Bytes of images that have been superseded since the last checkpoint began and wait for a checkpoint, and bytes
    /// of the images that are the newest of their pages. It costs two loads. A store that frees superseded images by
    /// itself returns zeros.
    fn superseded(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Makes the state that was noted and all images written before it durable, with `meta` in both superblocks. The
    /// caller removes log only after that, because until then the older superblock needs it. Frees everything that only
    /// the checkpoint before refers to.
    ///
    /// After an error the last durable checkpoint is still valid, and a new one may be begun unless a sync failed.
    fn finish(&self, token: CheckpointToken, meta: Meta) -> Result<()>;

    /// Marks the file as closed: both superblocks get `meta`. Call it after a checkpoint. Nothing may be written after
    /// it.
    fn close(&self, meta: Meta) -> Result<()> {
        // Both superblocks: a closed database has no log, so damage to a single one must not make it unreadable.
        self.file().write_meta(meta)?;
        self.file().write_meta(meta)
    }

    /// Uses the state that the store wrote when the database was closed. Call it only if nothing was written since, and
    /// before anything is written.
    fn use_closed_state(&self) {}
}

/// The places in log records, and what else recovery finds in the log.
pub trait StoreRedo {
    /// Reserves the place in a log record at `lsn`, so that no other page is written there. Recovery calls it for every
    /// such record at or after the store LSN before it writes its first page. A place that is never installed is free
    /// again after the next checkpoint.
    ///
    /// # Errors
    /// [`Error::CorruptLog`] where there is no such place.
    fn reserve(&self, place: PlaceBytes, lsn: Lsn) -> Result<()>;

    /// Redo of a log record at `lsn`: the page's image is at `place`. False in a rescue if the image is lost.
    ///
    /// # Errors
    /// [`Error::CorruptMeta`] where that place belongs to another page, [`Error::CorruptLog`] where there is no such
    /// place.
    fn install(&self, id: PageId, place: PlaceBytes, lsn: Lsn) -> Result<bool>;

    /// Notes that redo has read a change of a page: a power cut may have torn the last write of its image.
    fn note_in_log(&self, id: PageId) {
        let _ = id;
    }

    /// Notes the end of the log, before redo reads a page: no page of the database has a later change.
    ///
    /// # Errors
    /// Errors of writing, if the store has to keep it.
    fn note_log_end(&self, end: Lsn) -> Result<()> {
        let _ = end;
        Ok(())
    }
}

/// Space on the device.
pub trait StoreRoom {
    /// All page ids must be smaller. It is less than the greatest number only if the file is on a disk of fixed size
    /// and the position of a page follows from its id.
    fn most_pages(&self) -> u32 {
        u32::MAX
    }

    /// Reserves space on the device for writing this number of pages, of any content, and for a checkpoint after them.
    ///
    /// # Errors
    /// [`Error::Full`]; nothing is reserved then.
    fn ensure_room(&self, pages: u64) -> Result<()>;

    /// Moves up to `most` pages from byte `from` of the file on, the last ones first, to free places before them.
    /// Returns how many have moved. The old places are free after the next checkpoint. [`StoreRoom::shrink`] then
    /// truncates the file. Without that call, a later checkpoint truncates it if a large part at its end is free. No
    /// transaction that has written pages outside the log may be open.
    fn relocate(&self, from: u64, most: usize) -> Result<usize> {
        let _ = (from, most);
        Ok(0)
    }

    /// Truncates the unused end of the file, but leaves room for this number of pages.
    fn shrink(&self, pages: u64) -> Result<()> {
        let _ = pages;
        Ok(())
    }
}

/// Compression of pages.
pub trait StoreCompression {
    /// The policies of tables and what compression has done; `None` if the store does not compress pages.
    fn compression(&self) -> Option<&PageCompression> {
        None
    }

    /// The dictionary that the image of a page names. Only the image that was written last is read.
    ///
    /// # Errors
    /// Errors of reading, also where it cannot be known because the image is damaged.
    fn dictionary_of(&self, id: PageId) -> Result<Option<DictionaryId>> {
        let _ = id;
        Ok(None)
    }
}

/// Checks, rescue and statistics.
pub trait StoreSurvey {
    /// The damage to the store's own structures. Pages can be read, but must not be written.
    fn damage(&self) -> Option<Error> {
        None
    }

    /// Checks the durable structures with which the store finds pages: no two pages may have the same place, and what
    /// the store keeps twice must agree. No checkpoint can end while this runs.
    ///
    /// # Errors
    /// [`Error::CorruptMeta`] if they do not agree; errors of reading.
    fn check_places(&self) -> Result<()> {
        Ok(())
    }

    /// Calls `visit` with every sound image in the file: the newest ones, and old ones that are not yet overwritten.
    fn survey(&self, visit: &mut dyn FnMut(FoundImage<'_>)) -> Result<()>;

    /// Bytes of the place of a page in the file; `None` if the store has no image of it.
    fn place_bytes(&self, id: PageId) -> Option<u64>;

    /// Bytes of changes in the valid delta blocks of all pages: an estimate from a sample of them, which is read.
    fn delta_bytes(&self) -> u64 {
        0
    }

    /// Its sizes now.
    fn stats(&self) -> StoreStats;
}

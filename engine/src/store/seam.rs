//! The seam between the buffer pool, with all that is above it, and a page store.
//!
//! A store keeps pages by their ids. Where it writes them, and what it notes about that, is known to the store alone: a
//! place is bytes that nobody else reads ([`PlaceBytes`]). The layers above decide when a page is written, that the log
//! is ahead of it, and which pages are free.
//!
//! Every store promises:
//!
//! * A read returns the image that was written last, or [`Error::Corrupt`].
//! * A write that fails leaves the page as it was.
//! * At opening, each page that the last checkpoint had exists, with the image that it had then or a later one. So the
//!   image of a page that has been dropped stays until the next checkpoint is durable.
//!
//! All methods may be called from several threads. Of two writes of one page, and of a write and
//! [`PageStore::drop_page`] of the same page, the later to return wins: the caller keeps them apart.

use super::changed::Changed;
use super::file::DatabaseFile;
use super::superblock::Meta;
use crate::base::bytes::take;
use crate::base::{Error, Lsn, PageId, Result};
use std::ops::Deref;

/// The page stores that there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StoreKind {
    /// Copy on write with a page table: `table`.
    #[default]
    Table,
    /// One slot a page, for the tests of the seam.
    #[cfg(test)]
    Slots,
}

impl StoreKind {
    /// Its number in the superblock.
    pub fn tag(self) -> u32 {
        match self {
            StoreKind::Table => 1,
            #[cfg(test)]
            StoreKind::Slots => u32::MAX,
        }
    }

    /// The store of that number.
    pub fn of_tag(tag: u32) -> Option<StoreKind> {
        let all = [
            StoreKind::Table,
            #[cfg(test)]
            StoreKind::Slots,
        ];
        all.into_iter().find(|kind| kind.tag() == tag)
    }
}

/// Where a page is that was written outside the log: what the log carries of it and only the store can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PlaceBytes {
    len: u8,
    bytes: [u8; PlaceBytes::MAX],
}

impl PlaceBytes {
    /// The most bytes that a place can have.
    pub const MAX: usize = 15;

    /// A place of these bytes; `None` where they are more than [`PlaceBytes::MAX`].
    pub fn new(place: &[u8]) -> Option<PlaceBytes> {
        let mut bytes = [0; PlaceBytes::MAX];
        bytes.get_mut(..place.len())?.copy_from_slice(place);
        Some(PlaceBytes { len: u8::try_from(place.len()).ok()?, bytes })
    }

    /// Appends it to what goes to the log: its length, then its bytes.
    pub fn encode(self, out: &mut Vec<u8>) {
        out.push(self.len);
        out.extend_from_slice(&self);
    }

    /// Takes what [`PlaceBytes::encode`] wrote off the front of `input`; `None` for anything else.
    pub fn take(input: &mut &[u8]) -> Option<PlaceBytes> {
        let len = take(input, 1)?.first().copied()?;
        PlaceBytes::new(take(input, usize::from(len))?)
    }
}

impl Deref for PlaceBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}

/// A moment between two batches, as [`PageStore::freeze`] has noted it.
#[derive(Debug)]
pub struct Frozen(pub(super) u64);

/// What a store holds, in bytes and pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StoreStats {
    /// Length of the file.
    pub file_bytes: u64,
    /// Images that count.
    pub live_bytes: u64,
    /// Bytes inside the file that may be written to at once.
    pub free_bytes: u64,
    /// All the rest: superseded images that wait for a checkpoint, and what the store notes for itself.
    pub other_bytes: u64,
    /// Pages that have an image.
    pub pages: u64,
    /// Bytes written since the store was opened.
    pub written_bytes: u64,
}

/// A sound image that was found in the file.
pub struct FoundImage<'a> {
    /// The page that it says it is.
    pub page: PageId,
    /// Its LSN.
    pub lsn: Lsn,
    /// The packed page in it.
    pub packed: &'a [u8],
}

/// Which image of a page is its base, from which [`Changed`] counts, once a write has succeeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// The image that is being written.
    Moves,
    /// The same as before: the store writes only what differs from it.
    Stays,
}

/// Pages to be written together. Dropped before [`PageWriter::write`], it writes nothing.
pub trait PageWriter {
    /// Adds a page, whose bytes are copied. `changed` covers every byte that differs from the page's base, if the store
    /// [wants to know](PageStore::wants_changes).
    fn push(&mut self, id: PageId, page: &[u8], changed: Changed) -> Base;

    /// Writes them all; nothing is synced. The log must be durable beyond the pages' LSNs. On an error no page has changed.
    fn write(self: Box<Self>) -> Result<()>;
}

/// A page store; see the module's documentation for what all of them promise.
pub trait PageStore: Send + Sync + std::fmt::Debug {
    /// The file, with superblocks and syncs.
    fn file(&self) -> &DatabaseFile;

    /// Whether a page has an image.
    fn exists(&self, id: PageId) -> bool;

    /// Whether the pool tells which parts of a page have changed. It then copies each page before a change, to compare.
    fn wants_changes(&self) -> bool {
        false
    }

    /// Reads a page into `page`, which has the length of a page, and says where it differs from its base. `None`: it has
    /// no image, `page` is untouched.
    ///
    /// # Errors
    /// [`Error::Corrupt`] where the image is not the one that was written or holds no sound page.
    fn read(&self, id: PageId, page: &mut [u8]) -> Result<Option<Changed>>;

    /// Hints that these pages will be read soon, so that the device can begin to read them all. It changes no result.
    fn will_read(&self, pages: &[PageId]) {
        let _ = pages;
    }

    /// Whether a page can be one of so many packed bytes, as far as that is known without reading it.
    fn may_be(&self, id: PageId, packed: usize) -> bool {
        let _ = packed;
        self.exists(id)
    }

    /// Begins to write pages together.
    fn writer(&self) -> Box<dyn PageWriter + '_>;

    /// Writes one page, all of it.
    fn write(&self, id: PageId, page: &[u8]) -> Result<()> {
        let mut writer = self.writer();
        writer.push(id, page, Changed::ALL);
        writer.write()
    }

    /// Writes a packed page outside the log. Its place belongs in a log record before which the file has been synced, and
    /// lasts until a checkpoint.
    fn write_unlogged(&self, id: PageId, packed: &[u8]) -> Result<PlaceBytes>;

    /// Forgets a page that has been freed. Its id may be used again at once.
    fn drop_page(&self, id: PageId);

    /// The pages with ids from `from` to before `to` that have an image, in order.
    fn pages_between(&self, from: PageId, to: PageId) -> Vec<PageId>;

    /// No page has this id or a greater one.
    fn ids_end(&self) -> u32;

    /// Begins a checkpoint: notes what there is as of now. Call it between two batches. It writes nothing. Only the newest
    /// freeze can be finished.
    fn freeze(&self) -> Frozen;

    /// Makes durable what was frozen, and all images written before, with `meta` as the superblock's; lets go of what only
    /// the checkpoint before led to.
    ///
    /// On an error the last durable checkpoint stands and a new freeze may be tried, unless a sync failed.
    fn finish(&self, frozen: Frozen, meta: Meta) -> Result<()>;

    /// Keeps the place of a log record at `lsn` that redo has yet to come to from being given out. Recovery calls it for
    /// every such record at or past the table LSN before it writes its first page; what is never installed is free again
    /// after the next checkpoint.
    ///
    /// # Errors
    /// [`Error::CorruptLog`] where there is no such place.
    fn reserve(&self, place: PlaceBytes, lsn: Lsn) -> Result<()>;

    /// Redo of a log record at `lsn`: the page's image is at `place`. `false`: it is lost, and all that is left is wanted.
    ///
    /// # Errors
    /// [`Error::CorruptMeta`] where that place is another's, [`Error::CorruptLog`] where there is no such place.
    fn install(&self, id: PageId, place: PlaceBytes, lsn: Lsn) -> Result<bool>;

    /// Makes sure that so many pages, whatever is in them, can be written without the device running full, and a checkpoint
    /// after them.
    ///
    /// # Errors
    /// [`Error::Full`]; nothing is promised then.
    fn ensure_room(&self, pages: u64) -> Result<()>;

    /// Moves up to `most` pages towards the front of the file; returns how many have moved. After the next checkpoint
    /// [`PageStore::shrink`] cuts the file.
    fn relocate(&self, most: usize) -> Result<usize> {
        let _ = most;
        Ok(0)
    }

    /// Cuts off the end of the file that nothing uses, but leaves room for so many pages.
    fn shrink(&self, pages: u64) -> Result<()> {
        let _ = pages;
        Ok(())
    }

    /// How far a bulk load best fills its pages where `fill`, a part of 1, is asked for.
    fn best_fill(&self, fill: f32) -> f32 {
        fill
    }

    /// What is damaged of what the store notes for itself: pages can be read, but none must be written.
    fn damage(&self) -> Option<Error> {
        None
    }

    /// It was opened for what is left of it: what is damaged is left out, and what is found is believed.
    fn is_rescued(&self) -> bool {
        false
    }

    /// Calls `visit` with every sound image in the file: those that count, and old ones that nothing has overwritten yet.
    fn survey(&self, visit: &mut dyn FnMut(FoundImage<'_>)) -> Result<()>;

    /// What it holds now.
    fn stats(&self) -> StoreStats;
}

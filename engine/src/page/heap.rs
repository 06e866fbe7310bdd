//! Pages of the key heap: they hold the whole keys of leaves that keep only parts of their keys. This file has the
//! format of such a page and of a leaf's reference to a key in it.
//!
//! A heap page has the layout of a leaf without fences: a fixed-length key list of numbers (u16, big-endian, rising)
//! and a variable record list of the keys, as images. All operations on entries apply to it.

use super::builder::{PageBuilder, PageSpec};
use super::header::PageKind;
use super::keys::{KeyListKind, KeyPlace, OutOfLine, no_place};
use super::records::RecordListKind;
use super::view::Page;
use crate::base::{Error, PageId, TableId, bytes};

/// Returns the bytes of a key's number.
pub fn heap_number(number: u16) -> [u8; 2] {
    number.to_be_bytes()
}

/// Begins the content of a heap page of `table`. The caller adds the keys one by one, with the numbers 0, 1, 2 and so
/// on.
pub fn heap_page_builder(page_size: usize, id: PageId, table: TableId) -> PageBuilder {
    let spec = PageSpec {
        id,
        table,
        kind: PageKind::Heap,
        level: 0,
        keys: KeyListKind::NUMBERS,
        records: RecordListKind::Variable,
        lower: &[],
        upper: None,
        right: PageId::NONE,
    };
    PageBuilder::new(page_size, &spec)
}

impl<'a> Page<'a> {
    /// Returns true for a page of the key heap.
    #[inline(always)]
    pub fn is_heap(&self) -> bool {
        self.kind() == PageKind::Heap
    }

    /// For a heap page: returns the slot and the image of the key with that number.
    pub fn heap_key(&self, number: u16) -> Option<(usize, &'a [u8])> {
        let slot = self.search(&heap_number(number)).ok().filter(|_| self.is_heap())?;
        Some((slot, self.record(slot).bytes))
    }

    /// For a heap page: returns the lowest unused number, and the slot of a new key with that number.
    pub fn free_number(&self) -> Option<(usize, u16)> {
        let (mut low, mut high) = (0, self.count());
        let mut key = Vec::new();
        // Numbers rise: up to some slot each number equals its slot, and after that slot each is higher.
        while low < high {
            let middle = low.midpoint(high);
            self.key_into(middle, &mut key);
            if u16::try_from(middle).is_ok_and(|number| key == heap_number(number)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some((low, u16::try_from(low).ok()?))
    }

    #[inline(always)]
    fn out_of_line(&self) -> Option<OutOfLine<'a>> {
        self.key_list().out_of_line()
    }

    /// For a leaf that keeps its keys out of line: returns the place of the key of `slot`.
    pub fn key_place(&self, slot: usize) -> Option<KeyPlace> {
        self.out_of_line().map(|list| list.place(slot)).filter(|place| !place.page.is_none())
    }

    /// [`Page::key_place`] of an entry that must have one.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it has none.
    pub fn sound_key_place(&self, slot: usize) -> Result<KeyPlace, Error> {
        self.key_place(slot).ok_or_else(|| Error::corrupt(self.id(), no_place(slot)))
    }

    /// For a leaf that keeps its keys out of line: returns the heap page that most likely has room for a new key, if
    /// there is one.
    pub fn open_heap_page(&self) -> Option<PageId> {
        self.out_of_line()?.open()
    }

    /// Returns false only for a leaf that keeps its keys out of line, if its part of the key of `slot` cannot belong to
    /// a key that begins with `known`. `whole`: `known` is the whole key.
    pub fn part_shows(&self, slot: usize, known: &[u8], whole: bool) -> bool {
        self.out_of_line().is_none_or(|list| list.part_shows(slot, known, whole))
    }

    /// Returns true if the part at `slot` is the right one for `key`, and for every page that does not keep its keys
    /// out of line. `before` is the key before it, or the bytes that `key` shares with the lower fence.
    pub fn part_is(&self, slot: usize, before: &[u8], key: &[u8]) -> bool {
        self.out_of_line().is_none_or(|list| list.part_is(slot, before, key))
    }

    /// Searches a leaf that keeps its keys out of line, as [`Page::search`] does. `read` reads a whole key; at most one
    /// is read. Returns `None` for any other page. `lower` is the first bytes of the lower fence; `key` is not below
    /// the fence.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn search_out_of_line<K: AsRef<[u8]>, E>(
        &self,
        lower: &[u8],
        key: &[u8],
        read: impl FnMut(usize) -> Result<K, E>,
    ) -> Result<Option<Result<usize, usize>>, E> {
        self.out_of_line().map(|list| list.search_with(lower, key, read)).transpose()
    }
}

/// Returns the key image of an insertion into a leaf that keeps its keys out of line. The image consists of the part of
/// `key`, its place, and the part of the next key if there is one. `before` is the key before it, or the bytes that
/// `key` is known to share with the lower fence.
pub fn out_of_line_image(
    keys: KeyListKind,
    before: &[u8],
    key: &[u8],
    next: Option<&[u8]>,
    place: KeyPlace,
) -> Vec<u8> {
    keys.image(before, key, next, place)
}

/// Decodes the image of an insertion: how many bytes its key shares with the key before it, and how many the key after
/// it shares with its key.
pub(super) fn shared_by(keys: KeyListKind, image: &[u8]) -> (usize, usize) {
    let next = keys.entry_bytes(0);
    (usize::from(bytes::get_u16(image, 0)), usize::from(bytes::get_u16(image, next)))
}

//! Pages of the key heap: they hold the whole keys of leaves that keep only parts of their keys. This file has the
//! format of such a page and of the reference that a leaf has to a key in it. The choice of a heap page for a key must
//! not be in this file.
//!
//! A heap page is laid out as a leaf without fences: a fixed-length key list of numbers (u16, big-endian, rising) and a
//! variable record list of the keys, as images. All operations on entries work on it.

use super::builder::{PageBuilder, PageSpec};
use super::header::PageKind;
use super::keys::{KeyListKind, KeyPlace, OutOfLine};
use super::records::RecordListKind;
use super::view::Page;
use crate::base::{PageId, TableId, bytes};

/// The bytes of a key's number.
pub fn heap_number(number: u16) -> [u8; 2] {
    number.to_be_bytes()
}

/// Builds the content of a heap page of `table`, key by key: their numbers are 0, 1, 2 and so on.
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
    /// True for a page of the key heap.
    #[inline(always)]
    pub fn is_heap(&self) -> bool {
        self.kind() == PageKind::Heap
    }

    /// Of a heap page: the slot and the image of the key of that number.
    pub fn heap_key(&self, number: u16) -> Option<(usize, &'a [u8])> {
        let slot = self.search(&heap_number(number)).ok().filter(|_| self.is_heap())?;
        Some((slot, self.record(slot).bytes))
    }

    /// Of a heap page: the lowest number that no key has, and the slot of a new key of that number.
    pub fn free_number(&self) -> Option<(usize, u16)> {
        let (mut low, mut high) = (0, self.count());
        let mut key = Vec::new();
        // Numbers rise, so up to some slot they are the slots' own and behind it they are higher.
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

    /// Of a leaf that keeps its keys out of line: where the key of `slot` is.
    pub fn key_place(&self, slot: usize) -> Option<KeyPlace> {
        self.out_of_line().map(|list| list.place(slot)).filter(|place| !place.page.is_none())
    }

    /// Of a leaf that keeps its keys out of line: the heap page where a new key most likely finds room, if there is one.
    pub fn open_heap_page(&self) -> Option<PageId> {
        self.out_of_line()?.open()
    }

    /// False of a leaf that keeps its keys out of line where its part of the key of `slot` is not one of a key that begins with `known`;
    /// `whole`: that is all of the key.
    pub fn part_shows(&self, slot: usize, known: &[u8], whole: bool) -> bool {
        self.out_of_line().is_none_or(|list| list.part_shows(slot, known, whole))
    }

    /// True of any page but a leaf that keeps its keys out of line and does not have the right part of `key` at `slot`. `before` is the
    /// key before it or what it shares with the lower fence.
    pub fn part_is(&self, slot: usize, before: &[u8], key: &[u8]) -> bool {
        self.out_of_line().is_none_or(|list| list.part_is(slot, before, key))
    }

    /// As [`Page::search`], of a leaf that keeps its keys out of line; `read` reads a whole key, at most one. `None` for any other
    /// page. `lower`: the first bytes of the lower fence, which `key` is not below.
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

/// The key image of an insertion into a leaf that keeps its keys out of line: the part of `key` behind `before`, which is the key
/// before it or what it is known to share with the lower fence, where it is, and the part of the key behind it, if there is one.
pub fn out_of_line_image(
    keys: KeyListKind,
    before: &[u8],
    key: &[u8],
    next: Option<&[u8]>,
    place: KeyPlace,
) -> Vec<u8> {
    keys.image(before, key, next, place)
}

/// What an image of an insertion says: how many bytes its key shares with the one before, and those of the one behind with it.
pub(super) fn shared_by(keys: KeyListKind, image: &[u8]) -> (usize, usize) {
    let next = keys.entry_bytes(0);
    (usize::from(bytes::get_u16(image, 0)), usize::from(bytes::get_u16(image, next)))
}

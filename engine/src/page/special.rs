//! Pages that are not tree pages: runs (large values, whole long keys) and allocation maps.
//!
//! A run page has its payload in the place of a tree page's key list, directly after the header. The length of the
//! payload is in the size field of that list; `right` is the run's next page. An allocation map is a page whose record
//! list is the last `page_size / 2` bytes; bit i is bit `i % 8` of byte `i / 8`. Neither has fences, entries or layout
//! tags.

use super::header::{self, PageKind};
use super::view::Page;
use crate::base::limits::PAGE_HEADER;
use crate::base::{PageId, TableId, bytes, limits};

/// Returns the most payload bytes that a run page holds.
pub fn run_capacity(page_size: usize) -> usize {
    page_size.saturating_sub(PAGE_HEADER)
}

/// Returns the number of bits of an allocation map.
pub fn map_bits(page_size: usize) -> u32 {
    u32::try_from(page_size * 4).unwrap_or(u32::MAX)
}

fn front(id: PageId, table: TableId, kind: PageKind, right: PageId) -> Vec<u8> {
    let mut page = vec![0; PAGE_HEADER];
    bytes::put_u32(&mut page, header::ID, id.0);
    bytes::put_u32(&mut page, header::TABLE, table.0);
    header::set_right(&mut page, right);
    bytes::put_u8(&mut page, header::KIND, kind as u8);
    page
}

/// Returns the packed content of a run page. `payload` has at most [`run_capacity`] bytes; `right` is the run's next
/// page.
pub fn run_page(id: PageId, table: TableId, right: PageId, payload: &[u8]) -> Vec<u8> {
    let mut page = front(id, table, PageKind::Run, right);
    page.extend_from_slice(payload);
    header::set_lists(&mut page, 0, payload.len(), 0);
    page
}

/// Returns the packed content of an allocation map with all bits clear, for pages of `page_size` bytes.
pub fn map_page(page_size: usize, id: PageId) -> Vec<u8> {
    let mut page = front(id, TableId::CATALOG, PageKind::Map, PageId::NONE);
    page.resize(PAGE_HEADER + page_size / 2, 0);
    header::set_lists(&mut page, 0, 0, page_size / 2);
    page
}

/// Returns the page size of the database that this packed allocation map belongs to; `None` if the page is not a map.
pub fn map_page_size(packed: &[u8]) -> Option<usize> {
    let page = Page::new(packed);
    Some(2 * page.bits().len()).filter(|size| page.kind() == PageKind::Map && limits::is_page_len(*size))
}

impl<'a> Page<'a> {
    /// For a run page: returns its payload.
    pub fn payload(&self) -> &'a [u8] {
        if self.kind() == PageKind::Run { self.key_bytes() } else { &[] }
    }

    /// For an allocation map: returns the bytes that hold its bits.
    pub fn bits(&self) -> &'a [u8] {
        if self.kind() == PageKind::Map { self.record_bytes() } else { &[] }
    }

    /// For an allocation map: returns bit `index`; false outside the map.
    pub fn bit(&self, index: u32) -> bool {
        let byte = usize::try_from(index / 8).ok().and_then(|at| self.bits().get(at));
        byte.is_some_and(|byte| byte >> (index % 8) & 1 == 1)
    }

    /// For an allocation map: returns the first clear bit from `from` on.
    pub fn first_clear(&self, from: u32) -> Option<u32> {
        let mut index = from;
        let end = u32::try_from(self.bits().len() * 8).unwrap_or(u32::MAX);
        while index < end {
            let byte = bytes::get_u8(self.bits(), usize::try_from(index / 8).ok()?) | !(0xFF << (index % 8));
            if byte != 0xFF {
                return Some(index - index % 8 + byte.trailing_ones());
            }
            index = index - index % 8 + 8;
        }
        None
    }
}

/// Sets or clears the bits `[from, from + count)`. Returns false and changes nothing if some of them are outside the
/// map.
pub(super) fn put_bits(page: &mut [u8], from: u32, count: u32, set: bool) -> bool {
    let bits = Page::new(page).bits().len();
    let inside = from.checked_add(count).is_some_and(|end| u64::from(end) <= 8 * bits as u64);
    let at = page.len() - bits;
    let (true, Some(bits)) = (inside, page.get_mut(at..)) else { return false };
    for index in from..from + count {
        let byte = usize::try_from(index / 8).ok().and_then(|at| bits.get_mut(at));
        bytes::must_fit(byte.is_some());
        if let Some(byte) = byte {
            let bit = 1 << (index % 8);
            *byte = if set { *byte | bit } else { *byte & !bit };
        }
    }
    true
}

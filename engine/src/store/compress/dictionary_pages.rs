//! Reads dictionaries from their pages: from the places that a store's own bytes name, and in a rescue from the pages
//! that were found.

use super::Dictionaries;
use super::dictionary::{Dictionary, DictionaryPlace, MAX_BYTES, id_in};
use crate::base::{Error, Lsn, PageId, Result, TableId};
use crate::page::Page;
use crate::store::FoundImage;
use std::collections::{BTreeSet, HashMap};

/// Reads the dictionaries at these places, or the second copy where the first is damaged. If both copies of one are
/// damaged, the pages whose images name it cannot be read, and the others can. `read` reads a page; false if there is
/// none.
///
/// # Errors
/// Returns the error of the device if a copy cannot be read and the other copy is not sound either. The error may be
/// temporary, so the copy does not count as damaged: recovery would skip the operations of all pages that need the
/// dictionary. With `is_rescue` it counts as damaged.
pub(in crate::store) fn load(
    dictionaries: &Dictionaries,
    places: &[DictionaryPlace],
    page_size: usize,
    is_rescue: bool,
    mut read: impl FnMut(PageId, &mut [u8]) -> Result<bool>,
) -> Result<()> {
    let mut page = vec![0; page_size];
    for place in places {
        let mut failed = None;
        // The device may return wrong bytes once, so each copy is read twice before it counts as damaged.
        let dictionary =
            place.firsts.iter().chain(&place.firsts).find_map(|first| match read_copy(*first, &mut page, &mut read) {
                Ok(found) => found.filter(|found| found.id() == place.id),
                Err(error) => {
                    tracing::error!(dictionary = %place.id, %error, "a copy of a dictionary cannot be read");
                    if !matches!(error, Error::Corrupt { .. }) {
                        failed = Some(error);
                    }
                    None
                }
            });
        if let (None, Some(error), false) = (&dictionary, failed, is_rescue) {
            return Err(error);
        }
        if dictionary.is_none() {
            tracing::error!(dictionary = %place.id, "a dictionary is missing: pages that need it cannot be read");
        }
        dictionaries.add_named(*place, dictionary);
    }
    Ok(())
}

/// Reads the dictionary whose pages begin at `first`.
fn read_copy(
    first: PageId,
    page: &mut [u8],
    read: &mut impl FnMut(PageId, &mut [u8]) -> Result<bool>,
) -> Result<Option<Dictionary>> {
    let (mut bytes, mut next) = (Vec::new(), first);
    while !next.is_none() {
        if !read(next, page)? {
            return Err(Error::corrupt(next, "it is missing, and has a part of a dictionary"));
        }
        let Some(part) = DictionaryPart::of(Page::new(page)) else { return Ok(None) };
        bytes.extend_from_slice(part.payload);
        next = part.right;
        if bytes.len() > 2 * MAX_BYTES {
            return Ok(None);
        }
    }
    Ok(Dictionary::open(&bytes))
}

/// A page of a dictionary.
struct DictionaryPart<'a> {
    payload: &'a [u8],
    right: PageId,
}

impl<'a> DictionaryPart<'a> {
    /// The part of a dictionary in a page; `None` if it cannot be a page of a dictionary.
    fn of(page: Page<'a>) -> Option<DictionaryPart<'a>> {
        // Only pages of runs have a payload.
        let is_one = page.table() == TableId::CATALOG && !page.payload().is_empty();
        is_one.then(|| DictionaryPart { payload: page.payload(), right: page.right() })
    }
}

/// The maximum number of bytes of pages that a rescue keeps to find dictionaries among them. The dictionaries that a
/// database has at one time take at most 14 MiB, and there may be old ones in free space. A hostile file may have pages
/// that take far more memory than space in the file.
const MAX_KEPT: usize = 128 << 20;

/// Pages that may have parts of dictionaries, found one by one.
#[derive(Debug, Default)]
pub(in crate::store) struct FoundParts {
    pages: HashMap<PageId, FoundPart>,
    /// The same pages, the oldest images first.
    by_age: BTreeSet<(Lsn, PageId)>,
    /// The bytes of their payloads.
    bytes: usize,
}

#[derive(Debug)]
struct FoundPart {
    lsn: Lsn,
    right: PageId,
    payload: Box<[u8]>,
}

impl FoundParts {
    /// Keeps a page if it may have a part of a dictionary. If there are several images of a page, the newest one
    /// counts. If the pages have too many bytes, those with the oldest images are left out.
    pub(in crate::store) fn note(&mut self, image: &FoundImage<'_>) {
        let Some(part) = DictionaryPart::of(Page::new(image.packed)) else { return };
        if self.pages.get(&image.page).is_some_and(|known| image.lsn < known.lsn) {
            return;
        }
        self.forget(image.page);
        let found = FoundPart { lsn: image.lsn, right: part.right, payload: part.payload.into() };
        self.bytes += found.payload.len();
        self.by_age.insert((found.lsn, image.page));
        self.pages.insert(image.page, found);
        while let Some((_, oldest)) = self.by_age.first().copied().filter(|_| self.bytes > MAX_KEPT) {
            self.forget(oldest);
        }
    }

    fn forget(&mut self, page: PageId) {
        if let Some(known) = self.pages.remove(&page) {
            self.by_age.remove(&(known.lsn, page));
            self.bytes -= known.payload.len();
        }
    }

    /// Adds the dictionaries that are whole; of several with one id, the one that was written last. Returns true if
    /// there are some.
    pub(in crate::store) fn add_to(&self, dictionaries: &Dictionaries) -> bool {
        let is_begin = |page: &PageId| self.pages.get(page).is_some_and(|found| id_in(&found.payload).is_some());
        let mut any = false;
        // The first one that is added stays.
        for (_, first) in self.by_age.iter().rev().filter(|(_, page)| is_begin(page)) {
            if let Some(dictionary) = self.joined(*first) {
                dictionaries.add_found(dictionary);
                any = true;
            }
        }
        any
    }

    fn joined(&self, first: PageId) -> Option<Dictionary> {
        let (mut bytes, mut next) = (Vec::new(), first);
        while !next.is_none() && bytes.len() <= 2 * MAX_BYTES {
            let found = self.pages.get(&next)?;
            bytes.extend_from_slice(&found.payload);
            next = found.right;
        }
        Dictionary::open(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::dictionary::{DictionaryId, sealed_dictionary};
    use super::*;
    use crate::page::{map_page, run_page, unpack};

    const PAGE: usize = 4096;

    /// The packed pages of a dictionary, from page `first` on.
    fn pages(id: u32, first: u32, len: usize) -> Vec<(PageId, Vec<u8>)> {
        let trained = [&0xEC30_A437_u32.to_le_bytes()[..], &vec![7; len]].concat();
        let sealed = sealed_dictionary(DictionaryId(id), &trained);
        let parts: Vec<&[u8]> = sealed.chunks(4000).collect();
        let page = |(at, part): (u32, &&[u8])| {
            let is_last = at as usize + 1 == parts.len();
            let right = if is_last { PageId::NONE } else { PageId(first + at + 1) };
            (PageId(first + at), run_page(PageId(first + at), TableId::CATALOG, right, part))
        };
        (0..).zip(&parts).map(page).collect()
    }

    fn place(id: u32, firsts: [u32; 2]) -> DictionaryPlace {
        DictionaryPlace { id: DictionaryId(id), table: TableId(9), firsts: firsts.map(PageId) }
    }

    /// The numbers that are readable of those that were loaded.
    fn loaded(pages: &[(PageId, Vec<u8>)], places: &[DictionaryPlace]) -> Vec<u32> {
        let dictionaries = Dictionaries::default();
        load(&dictionaries, places, PAGE, false, |id, page| match pages.iter().find(|(of, _)| *of == id) {
            Some((_, packed)) => unpack(packed, page).map(|()| true),
            None => Ok(false),
        })
        .unwrap();
        assert_eq!(dictionaries.places(), places, "no place is forgotten");
        places.iter().map(|place| place.id).filter(|id| dictionaries.get(*id).is_some()).map(|id| id.0).collect()
    }

    #[test]
    fn a_dictionary_is_read_from_either_copy_and_anything_else_is_none() {
        let (mut all, copy) = (pages(7, 100, 30_000), pages(7, 200, 30_000));
        all.extend(copy);
        assert_eq!(loaded(&all, &[place(7, [100, 200])]), [7]);
        assert_eq!(loaded(&all, &[place(7, [300, 200])]), [7], "the first copy is missing");
        assert_eq!(loaded(&all, &[place(7, [101, 200])]), [7], "it begins elsewhere");
        assert_eq!(loaded(&all, &[place(8, [100, 200])]), [], "another number");
        assert_eq!(loaded(&all, &[place(7, [101, 207]), place(9, [0, u32::MAX])]), []);
        let mut short = all.clone();
        short.retain(|(id, _)| ![PageId(103), PageId(207)].contains(id));
        assert_eq!(loaded(&short, &[place(7, [100, 200])]), []);
        // A run that never ends, one of nothing, a page of another table, and a page of another kind.
        let part = |id, table, right, payload: &[u8]| (PageId(id), run_page(PageId(id), table, PageId(right), payload));
        let hostile = [
            part(1, TableId::CATALOG, 1, &[7; 4000]),
            part(2, TableId::CATALOG, 2, &[]),
            part(3, TableId(1), 0, &all[0].1[38..]),
            (PageId(4), map_page(PAGE, PageId(4))),
        ];
        for first in 1..=4 {
            assert_eq!(loaded(&hostile, &[place(7, [first, first])]), []);
        }
        let large = pages(7, 100, MAX_BYTES);
        assert_eq!(loaded(&large, &[place(7, [100, 100])]), []);
    }

    #[test]
    fn dictionaries_are_found_among_pages_and_the_newest_image_counts() {
        let find = |images: &[(u64, &(PageId, Vec<u8>))]| {
            let (mut parts, dictionaries) = (FoundParts::default(), Dictionaries::default());
            for (lsn, (page, packed)) in images {
                parts.note(&FoundImage { page: *page, lsn: Lsn(*lsn), packed });
            }
            let any = parts.add_to(&dictionaries);
            assert_eq!(dictionaries.places(), [], "the store's own bytes do not name them");
            [7, 8].map(|id| dictionaries.get(DictionaryId(id)).is_some()).map(|found| found && any)
        };
        let (seven, eight) = (pages(7, 100, 9000), pages(8, 101, 9000));
        let of =
            |lsn: u64, pages| -> Vec<(u64, &(PageId, Vec<u8>))> { Vec::from_iter(std::iter::repeat(lsn).zip(pages)) };
        assert_eq!(find(&of(5, &seven)), [true, false]);
        assert_eq!(find(&[of(5, &seven), of(4, &eight)].concat()), [true, false]);
        assert_eq!(find(&[of(5, &seven), of(6, &eight)].concat()), [false, true]);
        assert_eq!(find(&of(5, &seven)[1..]), [false, false]);
        assert_eq!(find(&of(5, &seven)[..2]), [false, false]);
    }

    #[test]
    fn of_two_dictionaries_with_one_id_the_one_that_was_written_last_is_found() {
        let (old, new) = (pages(7, 300, 9000), pages(7, 100, 8000));
        // The order of the pages in memory differs from time to time.
        for _ in 0..32 {
            for (old_lsn, new_lsn, len) in [(5, 9, 8004), (9, 5, 9004)] {
                let (mut parts, dictionaries) = (FoundParts::default(), Dictionaries::default());
                for (lsn, pages) in [(old_lsn, &old), (new_lsn, &new)] {
                    for (page, packed) in pages {
                        parts.note(&FoundImage { page: *page, lsn: Lsn(lsn), packed });
                    }
                }
                assert!(parts.add_to(&dictionaries));
                assert_eq!(dictionaries.get(DictionaryId(7)).unwrap().bytes.len(), len);
            }
        }
    }

    #[test]
    fn a_rescue_keeps_a_bounded_number_of_bytes_and_the_newest_pages() {
        const LEN: usize = 60_000;
        let (mut parts, dictionaries) = (FoundParts::default(), Dictionaries::default());
        let mut note = |lsn, page, packed: &[u8]| {
            parts.note(&FoundImage { page, lsn: Lsn(lsn), packed });
            let kept: usize = parts.pages.values().map(|found| found.payload.len()).sum();
            assert!(kept == parts.bytes && kept <= MAX_KEPT && parts.by_age.len() == parts.pages.len());
        };
        let [old, new] = [pages(7, 100, 9000), pages(8, 200, 9000)];
        old.iter().for_each(|(page, packed)| note(3, *page, packed));
        let other = run_page(PageId(1), TableId::CATALOG, PageId::NONE, &vec![7; LEN]);
        let count = u32::try_from(MAX_KEPT / LEN + 100).unwrap();
        (0..count).for_each(|at| note(4, PageId(1000 + at), &other));
        // Newer images of the same pages.
        (0..count).for_each(|at| note(5, PageId(1000 + at), &other));
        new.iter().for_each(|(page, packed)| note(6, *page, packed));
        assert!(parts.bytes > MAX_KEPT - 2 * LEN);
        assert!(parts.add_to(&dictionaries));
        assert_eq!([7, 8].map(|id| dictionaries.get(DictionaryId(id)).is_some()), [false, true]);
    }
}

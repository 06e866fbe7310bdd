//! Reads dictionaries from their pages: from the places that a store's own bytes name, and in a rescue from the pages
//! that were found.

use super::Dictionaries;
use super::dictionary::{Dictionary, DictionaryPlace, MOST_BYTES, id_in};
use crate::base::{Error, Lsn, PageId, Result, TableId};
use crate::page::Page;
use crate::store::FoundImage;
use std::collections::HashMap;

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
        if bytes.len() > 2 * MOST_BYTES {
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

/// Pages that may have parts of dictionaries, found one by one.
#[derive(Debug, Default)]
pub(in crate::store) struct FoundParts(HashMap<PageId, (Lsn, PageId, Vec<u8>)>);

impl FoundParts {
    /// Keeps a page if it may have a part of a dictionary. If there are several images of a page, the newest one
    /// counts.
    pub(in crate::store) fn note(&mut self, image: &FoundImage<'_>) {
        let Some(part) = DictionaryPart::of(Page::new(image.packed)) else { return };
        let newest = self.0.get(&image.page).map(|(lsn, ..)| *lsn);
        if newest.is_none_or(|newest| image.lsn >= newest) {
            self.0.insert(image.page, (image.lsn, part.right, part.payload.to_vec()));
        }
    }

    /// Adds the dictionaries that are whole; of several with one id, the one that was written last. Returns true if
    /// there are some.
    pub(in crate::store) fn add_to(&self, dictionaries: &Dictionaries) -> bool {
        let begins = self.0.iter().filter(|(_, (_, _, payload))| id_in(payload).is_some());
        let mut begins: Vec<(Lsn, PageId)> = begins.map(|(first, (lsn, ..))| (*lsn, *first)).collect();
        begins.sort_unstable();
        let mut any = false;
        // The first one that is added stays.
        for dictionary in begins.iter().rev().filter_map(|(_, first)| self.joined(*first)) {
            dictionaries.add_found(dictionary);
            any = true;
        }
        any
    }

    fn joined(&self, first: PageId) -> Option<Dictionary> {
        let (mut bytes, mut next) = (Vec::new(), first);
        while !next.is_none() && bytes.len() <= 2 * MOST_BYTES {
            let (_, right, payload) = self.0.get(&next)?;
            bytes.extend_from_slice(payload);
            next = *right;
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
        let large = pages(7, 100, MOST_BYTES);
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
}

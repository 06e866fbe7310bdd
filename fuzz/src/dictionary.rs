//! Dictionaries of Zstandard: frames that name one, and one for the histories of the page stores.

use crate::store::TABLE;
use duramen::Error;
use duramen::base::{PageId, TableId, bytes};
use duramen::page::{Page, run_page, unpack};
use duramen::store::{Compression, DictionaryId, DictionaryPlace, Meta, PagePolicy, PageStore, fuzzing};
use std::sync::OnceLock;

/// The dictionary of a history.
const ID: DictionaryId = DictionaryId(9);

/// Bytes of a dictionary on each of its pages. A history has a dictionary with several pages.
const PART: usize = 2000;

/// Pages of the two copies of a dictionary, at most.
pub const PAGES: u32 = 8;

/// The number in the dictionaries that [`frame`] makes.
const OTHER: DictionaryId = DictionaryId(7);

/// Text that has words in common with that of other versions.
pub fn text(version: u64, len: usize) -> Vec<u8> {
    let mut state = version.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut text = Vec::with_capacity(len + 16);
    while text.len() < len {
        state = state.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(1);
        let word = (state >> 33) % 300;
        text.extend(format!("{:x} ", (word + 1).wrapping_mul(0x1000_0000_01B3)).as_bytes());
    }
    text.truncate(len);
    text
}

/// A sound page of such text.
pub fn page_of_text(id: u32, version: u64, len: usize, page_size: usize) -> Vec<u8> {
    let mut page = vec![0; page_size];
    unpack(&run_page(PageId(id), TABLE, PageId::NONE, &text(version, len)), &mut page).expect("it fits");
    bytes::put_u64(&mut page, 0, version);
    page
}

/// A dictionary that was trained on such text.
pub fn trained() -> &'static [u8] {
    static TRAINED: OnceLock<Vec<u8>> = OnceLock::new();
    TRAINED.get_or_init(|| {
        let samples: Vec<u8> = (1000..1200).flat_map(|version| text(version, 1000)).collect();
        fuzzing::trained(&samples, &[1000; 200], 3 * PART).expect("there are enough samples")
    })
}

/// Puts a dictionary into a store, in pages from `first` on, lets the store compress with it, and writes a page that
/// needs it after them. Calls `written` for each of these pages.
pub fn install(store: &dyn PageStore, meta: Meta, first: u32, mut written: impl FnMut(u32, Vec<u8>)) {
    let sealed = fuzzing::sealed(ID, trained());
    let parts: Vec<&[u8]> = sealed.chunks(PART).collect();
    let count = u32::try_from(parts.len()).expect("they are few");
    assert!(2 * count <= PAGES);
    let firsts = [PageId(first), PageId(first + count)];
    for start in firsts {
        for (at, part) in (0..).zip(&parts) {
            let (id, is_last) = (PageId(start.0 + at), at + 1 == count);
            let right = if is_last { PageId::NONE } else { PageId(id.0 + 1) };
            let mut page = vec![0; meta.page_size];
            unpack(&run_page(id, TableId::CATALOG, right, part), &mut page).expect("it fits");
            bytes::put_u64(&mut page, 0, 1);
            store.write(id, &page).expect("memory does not fail");
            written(id.0, page);
        }
    }
    let place = DictionaryPlace { id: ID, table: TABLE, firsts };
    let compression = store.compression().expect("it compresses");
    assert!(fuzzing::add_dictionary(compression, place, &sealed));
    for _ in 0..2 {
        store.finish(store.begin_checkpoint(), meta).expect("memory does not fail");
    }
    fuzzing::activate(compression, place);
    let policy = PagePolicy { compression: Compression::Zstd(3), dictionary: true, ..PagePolicy::default() };
    compression.set_policy(TABLE, policy);
    let id = first + PAGES;
    let page = page_of_text(id, 2, meta.page_size * 3 / 4, meta.page_size);
    store.write(PageId(id), &page).expect("memory does not fail");
    assert_eq!(store.dictionary_of(PageId(id)).expect("it was just written"), Some(ID));
    written(id, page);
}

/// Takes `data` as the length of a dictionary (u16), the dictionary without its number and checksum, and a frame. Opens
/// the frame with this dictionary, whose number and checksum are made right. True if the frame has a page.
pub fn frame(data: &[u8]) -> bool {
    let mut input = data;
    let Some(len) = bytes::take(&mut input, 2) else { return false };
    let len = usize::from(bytes::get_u16(len, 0)).min(input.len());
    let sealed = fuzzing::sealed(OTHER, &at_least_a_header(bytes::take(&mut input, len).unwrap_or_default()));
    match fuzzing::open_frame(&sealed, input, PageId(5), crate::store::PAGE_SIZE) {
        Ok(packed) => Page::new(&packed).id() == PageId(5),
        Err(Error::Corrupt { page: PageId(5), .. }) => false,
        Err(other) => panic!("{other}"),
    }
}

/// A dictionary is never shorter than its number.
fn at_least_a_header(trained: &[u8]) -> Vec<u8> {
    let mut bytes = trained.to_vec();
    bytes.resize(bytes.len().max(8), 0);
    bytes
}

/// An input of [`frame`]: a dictionary, and a page that was compressed with it.
pub fn input() -> Vec<u8> {
    let packed = run_page(PageId(5), TABLE, PageId::NONE, &text(5, 1500));
    let frame = fuzzing::frame(&fuzzing::sealed(OTHER, trained()), &packed).expect("it is a dictionary");
    let len = u16::try_from(trained().len()).expect("it is short");
    [&len.to_le_bytes()[..], trained(), &frame].concat()
}

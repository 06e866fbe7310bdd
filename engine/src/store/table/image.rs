//! Images: a page as it is in the file, with a header and a checksum.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 4 | CRC-32C of everything after it, zeros up to a whole grain included |
//! | 4 | 4 | page id |
//! | 8 | 4 | bytes from 16 on that are the packed page, compressed or not |
//! | 12 | 1 | encoding: 0 the packed page as it is, 1 LZ4 (one block), 2 Zstandard (one frame), 3 zlib |
//! | 13 | 3 | "IMG" |
//! | 16 | | the packed page, which begins with its LSN; then zeros up to a whole grain |
//!
//! If the content is not compressed, the zeros that fill the last grain are between the two lists of the packed page,
//! unless the content would then be longer than a page. So after a read of the place into the last bytes of the memory
//! for the page, the records are in their positions.
//!
//! A compressed image takes fewer grains than the packed page would. With
//! [`Target::Bytes`](crate::store::Target::Bytes) a place may be longer than its image. The rest of the place is zeros,
//! which the checksum does not cover.
//!
//! The page table has the checksum, too. So a sound image that is not the one written last is detected, after a lost or
//! misdirected write. The checksum in the header serves to read a file without its page table.

use super::place::{GRAIN, Location, Place, grains_of};
use crate::base::bytes::{get_u32, put_u32, range_mut, slice, u32_of};
use crate::base::checksum::checksum;
use crate::base::{Error, PageId, Result};
use crate::page::Page;
use crate::store::compress::{Coders, DecompressError, Encoding, Find, Job, PageCompression, Places, Prepared};

/// Bytes of an image's header.
pub(crate) const IMAGE_HEADER: usize = 16;
const PAGE: usize = 4;
const LENGTH: usize = 8;
const MARK: usize = 12;

fn mark(encoding: Encoding) -> u32 {
    u32::from_le_bytes([encoding as u8, b'I', b'M', b'G'])
}

/// The encoding that the mark of an image names.
fn encoding_of(mark: u32) -> Option<Encoding> {
    let [encoding, rest @ ..] = mark.to_le_bytes();
    if rest == *b"IMG" { Encoding::of_byte(encoding) } else { None }
}

/// The packed page in an image, as the image has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ImageContent<'a> {
    pub(crate) encoding: Encoding,
    pub(crate) bytes: &'a [u8],
}

impl<'a> ImageContent<'a> {
    pub(crate) fn is_compressed(self) -> bool {
        self.encoding != Encoding::Plain
    }

    /// The packed page. If it is compressed, `out` gets it; no page has more than `page_size` bytes.
    pub(crate) fn packed(
        self,
        coders: &mut Coders,
        find: Find<'_>,
        page_size: usize,
        out: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], DecompressError> {
        if self.is_compressed() { self.decompress(coders, find, page_size, out) } else { Ok(self.bytes) }
    }

    /// The packed page in `out`, for a compressed one.
    pub(crate) fn decompress<'b>(
        self,
        coders: &mut Coders,
        find: Find<'_>,
        page_size: usize,
        out: &'b mut Vec<u8>,
    ) -> Result<&'b [u8], DecompressError> {
        out.resize(page_size, 0);
        let len = coders.decompress(self.encoding, self.bytes, find, out)?;
        out.get(..len).ok_or(DecompressError::Damaged)
    }
}

/// The content of an image that should have the checksum `crc` and the page id `page`; [`Error::Corrupt`] if it has
/// not.
pub(crate) fn open_image(image: &[u8], page: PageId, crc: u32) -> Result<ImageContent<'_>> {
    let corrupt = |what: &str| Err(Error::corrupt(page, what));
    let stored = get_u32(image, 0);
    let end = image_len(get_u32(image, LENGTH) as usize).min(image.len());
    if stored != checksum(slice(image, 4, end)) || image.len() < IMAGE_HEADER {
        return corrupt("its image has a wrong checksum");
    }
    if get_u32(image, PAGE) != page.0 {
        return corrupt(&format!("there is page {} at its place", get_u32(image, PAGE)));
    }
    if stored != crc {
        return corrupt("there is an older image at its place: the last write was lost");
    }
    let Some(encoding) = encoding_of(get_u32(image, MARK)) else {
        return corrupt("its image has an unknown encoding");
    };
    match image.get(IMAGE_HEADER..).and_then(|rest| rest.get(..get_u32(image, LENGTH) as usize)) {
        Some(bytes) => Ok(ImageContent { encoding, bytes }),
        None => corrupt("its image is shorter than it says"),
    }
}

/// The page id, the checksum and the content of the image at the front of `bytes`; `None` if there is no image. This
/// finds images without a page table.
pub(crate) fn sound_image(bytes: &[u8], page_size: usize) -> Option<(PageId, u32, ImageContent<'_>)> {
    let header = bytes.get(..IMAGE_HEADER).filter(|header| encoding_of(get_u32(header, MARK)).is_some())?;
    let len = Some(get_u32(header, LENGTH) as usize).filter(|len| *len <= page_size)?;
    let image = bytes.get(..image_len(len))?;
    let (page, crc) = (PageId(get_u32(header, PAGE)), get_u32(header, 0));
    open_image(image, page, crc).ok().map(|content| (page, crc, content))
}

#[derive(Debug)]
struct BatchedImage {
    page: PageId,
    /// The start of the image in the buffer.
    start: usize,
    /// Bytes of its content.
    len: usize,
    grains: u32,
    crc: u32,
    first: u64,
    prepared: Prepared,
}

impl BatchedImage {
    /// Fills in the header of the image, which is in these bytes of the batch.
    fn fill_in_header(&mut self, bytes: &mut [u8]) {
        let image = range_mut(bytes, self.start..self.start + image_len(self.len));
        put_u32(image, PAGE, self.page.0);
        put_u32(image, LENGTH, u32_of(self.len));
        put_u32(image, MARK, mark(self.prepared.encoding));
        self.crc = checksum(slice(image, 4, image.len()));
        put_u32(image, 0, self.crc);
    }
}

/// Bytes of an image with a content of `len` bytes.
fn image_len(len: usize) -> usize {
    (IMAGE_HEADER + len).next_multiple_of(GRAIN)
}

/// Bytes of the content of an image that is not compressed, for a packed page of `len` bytes: all of its grains, unless
/// that is more than a page.
fn content_len(len: usize, page_size: usize) -> usize {
    let whole = image_len(len) - IMAGE_HEADER;
    if whole <= page_size { whole } else { len }
}

/// The places of images of pages of that size.
pub(super) fn places(page_size: usize) -> Places {
    Places { unit: GRAIN, header: IMAGE_HEADER, whole: page_size, fixed: false }
}

/// The next multiple of `unit`, unless no place may be so long.
fn rounded(place: usize, unit: usize, page_size: usize) -> usize {
    let rounded = place.next_multiple_of(unit);
    if rounded <= image_len(page_size) { rounded } else { place }
}

/// Images to be written together, one after another in a buffer that is reused. They are complete after
/// [`ImageBatch::seal`].
#[derive(Debug, Default)]
pub(crate) struct ImageBatch {
    bytes: Vec<u8>,
    entries: Vec<BatchedImage>,
    /// A buffer for sealed images, and then for the content of `bytes`.
    sealed: Vec<u8>,
    /// Buffers for compressed pages, one for each image.
    compressed: Vec<Vec<u8>>,
}

impl ImageBatch {
    /// Adds the image of a page.
    pub(crate) fn push(&mut self, id: PageId, page: &[u8]) {
        self.push_packed(id, page, page.len());
    }

    /// Adds the image of a page that is packed already; `page_size` is the length of the page.
    pub(crate) fn push_packed(&mut self, page: PageId, packed: &[u8], page_size: usize) {
        let start = self.bytes.len();
        self.bytes.resize(start + IMAGE_HEADER, 0);
        Page::new(packed).packed_with_zeros_into(|len| content_len(len, page_size), &mut self.bytes);
        let len = self.bytes.len() - start - IMAGE_HEADER;
        self.bytes.resize(start + image_len(len), 0);
        self.entries.push(BatchedImage { page, start, len, grains: 0, crc: 0, first: 0, prepared: Prepared::NOT_YET });
    }

    /// Compresses the pages with the policies of their tables, gives each image the length of its place, a multiple of
    /// `unit`, and fills in the headers. Images stay where they are if none is compressed and none gets a longer place.
    /// It takes time: call it when no page is latched.
    pub(crate) fn seal(&mut self, compression: &PageCompression, page_size: usize, unit: usize) {
        let ImageBatch { bytes, sealed, entries, compressed } = self;
        if compressed.len() < entries.len() {
            compressed.resize_with(entries.len(), Vec::new);
        }
        let packed =
            |entry: &BatchedImage| slice(bytes, entry.start + IMAGE_HEADER, entry.start + IMAGE_HEADER + entry.len);
        let mut jobs: Vec<Job<'_>> =
            entries.iter().zip(compressed).map(|(entry, out)| Job::new(packed(entry), out)).collect();
        compression.prepare_all(&mut jobs);
        let place = |job: &Job<'_>| rounded(job.prepared.place, unit, page_size);
        let stays = |(entry, job): (&BatchedImage, &Job<'_>)| job.is_plain() && place(job) == image_len(entry.len);
        let all_stay = entries.iter().zip(&jobs).all(stays);
        sealed.clear();
        for (entry, job) in entries.iter_mut().zip(&jobs) {
            entry.prepared = job.prepared;
            entry.grains = u32_of(grains_of(place(job)));
            if !all_stay {
                let content = job.content();
                (entry.start, entry.len) = (sealed.len(), content.len());
                sealed.resize(entry.start + IMAGE_HEADER, 0);
                sealed.extend_from_slice(content);
                sealed.resize(entry.start + place(job), 0);
            }
        }
        drop(jobs);
        if !all_stay {
            std::mem::swap(bytes, sealed);
        }
        entries.iter_mut().for_each(|entry| entry.fill_in_header(bytes));
    }

    /// How many images it has.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Empties it; the buffer stays.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    /// For each image: was its page given to a coder when it was sealed?
    pub(crate) fn tried(&self) -> impl Iterator<Item = bool> + '_ {
        self.entries.iter().map(|entry| entry.prepared.was_tried)
    }

    /// The page and the location of each image, once they have been written.
    pub(crate) fn locations(&self) -> impl Iterator<Item = (PageId, Location)> + Clone + '_ {
        self.entries.iter().filter_map(|entry| {
            let place = Place::new(entry.first, u64::from(entry.grains))?;
            Some((entry.page, Location { place, crc: entry.crc }))
        })
    }

    /// The pages that missed their targets and are to be split.
    pub(crate) fn to_be_split(&self) -> impl Iterator<Item = PageId> + '_ {
        self.entries.iter().filter(|entry| entry.prepared.is_to_be_split).map(|entry| entry.page)
    }

    /// The page of each image and its length in grains.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (PageId, u32)> + '_ {
        self.entries.iter().map(|entry| (entry.page, entry.grains))
    }

    pub(crate) fn set_places(&mut self, firsts: &[u64]) {
        for (entry, &first) in self.entries.iter_mut().zip(firsts) {
            entry.first = first;
        }
    }

    /// The parts of the buffer that are written to the file in one piece each: (first grain, bytes).
    pub(crate) fn runs(&self) -> impl Iterator<Item = (u64, &[u8])> + '_ {
        self.entries.chunk_by(|a, b| a.first + u64::from(a.grains) == b.first).filter_map(|run| {
            let (first, last) = (run.first()?, run.last()?);
            Some((first.first, self.bytes.get(first.start..last.start + last.grains as usize * GRAIN)?))
        })
    }
}

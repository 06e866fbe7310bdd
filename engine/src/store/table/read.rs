//! Reads a page from its image. The page table names the newest image.
//!
//! An image that fits into the memory of its page is read into that memory and unpacked there, without a buffer. If it
//! is compressed, it is decompressed from there into a buffer, and unpacked from the buffer into the page.

use super::TableStore;
use super::encoding::corrupt_for;
use super::image::{IMAGE_HEADER, ImageContent, open_image};
use super::page_table::PageEntry;
use super::place::Location;
use crate::base::{PageId, Result, bytes};
use crate::page::{Page, unpack, unpack_within};
use crate::store::compress::{Coders, DictionaryId, dictionary_of};
use crate::store::name;
use std::time::Instant;

/// The buffers and coders for reading a page whose image is compressed or does not fit into the page.
#[derive(Debug, Default)]
pub(super) struct ReadBuffer {
    pub(super) image: Vec<u8>,
    packed: Vec<u8>,
    coders: Coders,
}

impl TableStore {
    /// Reads the newest image of a page into `page`. False if the page has no image.
    pub(super) fn read_newest(&self, id: PageId, page: &mut [u8]) -> Result<bool> {
        let mut entry = self.entry(id)?;
        while let Some(PageEntry { location: at, checked, .. }) = entry {
            match self.read_from(id, at, checked, page) {
                Ok(()) if checked => return Ok(true),
                Ok(()) => {
                    self.state.lock().table.note_checked(id, at);
                    return Ok(true);
                }
                Err(error) => {
                    // The page may have moved meanwhile and its old place been used again: only then is there another
                    // try.
                    entry = self.entry(id)?;
                    if entry.is_some_and(|now| now.location == at) {
                        return Err(error);
                    }
                }
            }
        }
        match &self.damage {
            Some(what) => Err(corrupt_for(id, what)),
            None => Ok(false),
        }
    }

    /// Reads the image at `at` into `page`. The page is checked unless it is `checked` already.
    fn read_from(&self, id: PageId, at: Location, checked: bool, page: &mut [u8]) -> Result<()> {
        if at.place.len() <= page.len() {
            self.read_within(id, at, page)?;
        } else {
            self.with_buffer(|buffer| {
                let packed = self.read_image(id, at, buffer)?;
                unpack(packed, page).map_err(|error| name(id, error))
            })?;
        }
        if !checked {
            Page::check(page, id)?;
        }
        Ok(())
    }

    /// Reads an image into the last bytes of the memory for its page, and unpacks it there. The records of most images
    /// are then already in their positions.
    fn read_within(&self, id: PageId, at: Location, page: &mut [u8]) -> Result<()> {
        let start = page.len().saturating_sub(at.place.len());
        let image = page.get_mut(start..).unwrap_or_default();
        self.file.disk().read_at(at.place.offset(), image)?;
        let content = open_image(image, id, at.crc)?;
        let (encoding, start) = (content.encoding, start + IMAGE_HEADER);
        let end = start + content.bytes.len();
        if !content.is_compressed() {
            return unpack_within(page, start..end).map_err(|error| name(id, error));
        }
        self.with_buffer(|ReadBuffer { packed, coders, .. }| {
            let content = ImageContent { encoding, bytes: bytes::slice(page, start, end) };
            let packed = self.decompressed(id, content, coders, packed)?;
            unpack(packed, page).map_err(|error| name(id, error))
        })
    }

    /// Reads the image at `at` and returns the packed page in it.
    pub(super) fn read_image<'a>(&self, id: PageId, at: Location, buffer: &'a mut ReadBuffer) -> Result<&'a [u8]> {
        let ReadBuffer { image, packed, coders } = buffer;
        image.resize(at.place.len(), 0);
        self.file.disk().read_at(at.place.offset(), image)?;
        let content = open_image(image, id, at.crc)?;
        if content.is_compressed() { self.decompressed(id, content, coders, packed) } else { Ok(content.bytes) }
    }

    /// The packed page in a compressed image.
    fn decompressed<'a>(
        &self,
        id: PageId,
        content: ImageContent<'_>,
        coders: &mut Coders,
        out: &'a mut Vec<u8>,
    ) -> Result<&'a [u8]> {
        let started = Instant::now();
        let packed = content.decompress(coders, &self.compression.find(), self.file.page_size(), out);
        self.compression.note_decompressed(started);
        packed.map_err(|undone| undone.of_page(id))
    }

    /// The dictionary that the newest image of a page names.
    pub(super) fn dictionary_of(&self, id: PageId) -> Result<Option<DictionaryId>> {
        while let Some(at) = self.location(id)? {
            let named = self.with_buffer(|ReadBuffer { image, .. }| {
                image.resize(at.place.len(), 0);
                self.file.disk().read_at(at.place.offset(), image)?;
                let ImageContent { encoding, bytes } = open_image(image, id, at.crc)?;
                Ok(dictionary_of(encoding, bytes))
            });
            // If the page has moved meanwhile, the bytes read may be those of another page: then there is another try.
            if named.is_ok() || self.location(id)? == Some(at) {
                return named;
            }
        }
        Ok(None)
    }

    fn with_buffer<R>(&self, f: impl FnOnce(&mut ReadBuffer) -> R) -> R {
        let mut buffer = self.buffers.lock().pop().unwrap_or_default();
        let result = f(&mut buffer);
        self.buffers.lock().push(buffer);
        result
    }
}

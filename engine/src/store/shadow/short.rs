//! A short image: the packed page, compressed or not, in the last blocks of a slot. The blocks before it are not
//! needed, and may have bytes of older images. `choice` decides whether an image is valid.
//!
//! The trailer of such a slot has [`SHORT`] in its byte 9, and these bytes are in front of it:
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | LSN of the page |
//! | 8..12 | page id |
//! | 12..14 | bytes of the content |
//! | 14 | blocks of the image, fewer than those of the slot |
//! | 15 | encoding: 0 the packed page as it is, 1 LZ4 (one block), 2 Zstandard (one frame), 3 zlib |
//!
//! They are in the same sector as the trailer, so a torn write has written both or neither. The content is at the front
//! of the image; then come zeros. The checksum in the trailer covers the image, and no block before it.

use super::slot::Geometry;
use crate::base::bytes::{
    get_u8, get_u16, get_u32, get_u64, put, put_u8, put_u16, put_u32, put_u64, slice, u8_of, u16_of, zero,
};
use crate::base::{Lsn, PageId};
use crate::io::BLOCK;
use crate::store::compress::Encoding;

/// A bit in byte 9 of a trailer.
pub(super) const SHORT: u8 = 128;
/// Bytes of the header of a short image, in front of the trailer.
pub(super) const HEADER: usize = 16;

const PAGE: usize = 8;
const LENGTH: usize = 12;
const BLOCKS: usize = 14;
const ENCODING: usize = 15;

/// The fields in front of the trailer of a slot with a short image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ShortImageHeader {
    pub(super) page: PageId,
    pub(super) lsn: Lsn,
    /// Bytes of the content.
    len: usize,
    blocks: usize,
    encoding: Option<Encoding>,
}

impl Geometry {
    /// The header of the short image in a slot whose trailer has [`SHORT`].
    pub(super) fn short_header(&self, slot: &[u8]) -> ShortImageHeader {
        let bytes = slice(slot, self.page() - HEADER, self.page());
        ShortImageHeader {
            page: PageId(get_u32(bytes, PAGE)),
            lsn: Lsn(get_u64(bytes, 0)),
            len: get_u16(bytes, LENGTH).into(),
            blocks: get_u8(bytes, BLOCKS).into(),
            encoding: Encoding::of_byte(get_u8(bytes, ENCODING)),
        }
    }

    /// The start of the image in a slot with this header; `None` if no image has such a header.
    pub(super) fn short_start(&self, header: ShortImageHeader) -> Option<usize> {
        let is_one = header.encoding.is_some() && header.blocks > 0 && header.blocks * BLOCK < self.slot();
        let start = self.slot().checked_sub(header.blocks * BLOCK).filter(|_| is_one)?;
        (start + header.len <= self.page() - HEADER).then_some(start)
    }

    /// The encoding and the content of the sound image in `slot`; `None` if it is a whole page.
    pub(super) fn short_content<'a>(&self, slot: &'a [u8]) -> Option<(Encoding, &'a [u8])> {
        if !self.is_short(slot) {
            return None;
        }
        let header = self.short_header(slot);
        let start = self.short_start(header)?;
        Some((header.encoding?, slice(slot, start, start + header.len)))
    }

    /// Puts a short image of this number of blocks into a slot; [`Geometry::seal`] completes it. The content must have
    /// room in it.
    pub(super) fn put_short(&self, slot: &mut [u8], page: PageId, lsn: Lsn, content: (Encoding, &[u8]), blocks: usize) {
        let ((encoding, content), at) = (content, self.page() - HEADER);
        let start = self.slot() - blocks * BLOCK;
        assert!(start > 0 && start + content.len() <= at, "{} bytes in {blocks} blocks", content.len());
        put(slot, start, content);
        zero(slot, start + content.len(), at);
        put_u64(slot, at, lsn.0);
        put_u32(slot, at + PAGE, page.0);
        put_u16(slot, at + LENGTH, u16_of(content.len()));
        put_u8(slot, at + BLOCKS, u8_of(blocks));
        put_u8(slot, at + ENCODING, encoding as u8);
    }
}

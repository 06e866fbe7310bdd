//! The decoders of this store for bytes that nobody has checked, as the fuzz targets call them. Nothing else may use this.

use super::encoding::{decode_chunk, decode_directory, decode_group};
use super::image;
use crate::base::{PageId, Result};
use crate::store::compress::Coders;

/// Decodes `bytes` as the directory, as a group and as a chunk of a page table, and encodes the locations again. Empty if the
/// bytes are none of them.
pub fn page_table(bytes: &[u8]) -> Vec<Vec<u8>> {
    let decoded = [decode_directory(bytes), decode_group(bytes), decode_chunk(bytes)].into_iter().flatten();
    decoded
        .map(|locations| {
            let mut again: Vec<u8> =
                locations.into_iter().flat_map(|at| at.map_or([0; 12], |at| at.encode())).collect();
            // Only a group ends with more bytes, which are zeros.
            again.resize(bytes.len(), 0);
            again
        })
        .collect()
}

/// The packed page in an image that should have this page id and checksum, of pages of this size.
///
/// # Errors
/// [`crate::Error::Corrupt`].
pub fn open_image(bytes: &[u8], page: PageId, crc: u32, page_size: usize) -> Result<Vec<u8>> {
    let (mut coders, mut out) = (Coders::default(), Vec::new());
    let packed = image::open_image(bytes, page, crc)?.packed(&mut coders, &|_| None, page_size, &mut out);
    packed.map(<[u8]>::to_vec).map_err(|undone| undone.of_page(page))
}

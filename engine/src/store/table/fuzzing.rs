//! The decoders of this store, for the fuzz targets. They take unchecked bytes. Only the fuzz targets use this file.

use super::directory::FreeMapPlace;
use super::encoding::{decode_chunk, decode_directory, decode_group};
use super::place::FIRST_GRAIN;
use super::{free_map, image};
use crate::base::checksum::checksum;
use crate::base::{PageId, Result};
use crate::io::{Disk, MemoryDisk};
use crate::store::compress::Coders;

/// Grains of the file that a free map is of.
const MAX_FILE_GRAINS: u64 = 1 << 20;

/// Decodes `bytes` as the directory, as a group and as a chunk of a page table, and encodes the locations again; and
/// the same as a free map. Empty if the bytes are none of them.
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
        .chain(free_map_again(bytes))
        .collect()
}

fn free_map_again(bytes: &[u8]) -> Option<Vec<u8>> {
    let (place, disk) =
        (FreeMapPlace { first: FIRST_GRAIN, len: bytes.len() as u64, crc: checksum(bytes) }, MemoryDisk::new());
    disk.write_at(place.extent().offset(), bytes).ok()?;
    let map = free_map::read(&disk, place, MAX_FILE_GRAINS, 17).ok()?;
    Some(free_map::encode(&map.allocator, map.pages, map.live))
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

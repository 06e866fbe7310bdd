//! The bytes of the page table: chunks, groups of chunks, and the directory of the groups.
//!
//! A chunk is 256 locations of 12 bytes, one for each page (zeros: no image). A group is up to 128 such locations, one
//! for each chunk (zeros: no chunk), and ends with a whole grain. The directory has one for each group (zeros: no
//! group).

use super::place::{GRAIN, Location};
use crate::base::bytes::get_u64;
use crate::base::{Error, PageId, Result};

/// Pages of a chunk.
pub(crate) const CHUNK_PAGES: usize = 256;
/// Bytes of a chunk on the device.
pub(crate) const CHUNK_BYTES: usize = CHUNK_PAGES * Location::BYTES;
/// Chunks of a group.
pub(crate) const GROUP_CHUNKS: usize = 128;
/// The most bytes of a group on the device.
pub(crate) const GROUP_BYTES: usize = GROUP_CHUNKS * Location::BYTES;
/// The maximum number of groups of a directory: page ids have 32 bits.
const MAX_GROUPS: usize = 1 << 17;

const _: () = assert!(MAX_GROUPS * GROUP_CHUNKS * CHUNK_PAGES == 1 << 32);
const _: () = assert!(GROUP_BYTES.is_multiple_of(GRAIN) && CHUNK_BYTES.is_multiple_of(GRAIN));

pub(super) fn corrupt(why: String) -> Error {
    Error::CorruptMeta { what: "the page table", why }
}

/// The error of a page whose place is in a damaged part of the page table.
pub(super) fn corrupt_for(id: PageId, why: &str) -> Error {
    Error::corrupt(id, format!("the page table is damaged: {why}"))
}

/// The location in the field of a chunk, group or directory, the one with number `at`.
fn decode_location(at: usize, field: &[u8]) -> Result<Option<Location>> {
    match Location::decode(field) {
        None if field.iter().all(|&byte| byte == 0) => Ok(None),
        None => Err(corrupt(format!("its entry {at} is not a valid place: {:#x}", get_u64(field, 0)))),
        location => Ok(location),
    }
}

fn decode_locations(bytes: &[u8]) -> Result<Vec<Option<Location>>> {
    bytes.chunks_exact(Location::BYTES).enumerate().map(|(at, field)| decode_location(at, field)).collect()
}

fn encode_locations(locations: &[Option<Location>]) -> Vec<u8> {
    let used = locations.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let used = locations.iter().take(used);
    used.flat_map(|location| location.map_or([0; Location::BYTES], Location::encode)).collect()
}

/// Decodes the locations in a chunk, one for each of its 256 pages; [`Error::CorruptMeta`] if the bytes are no chunk.
pub(crate) fn decode_chunk(bytes: &[u8]) -> Result<Vec<Option<Location>>> {
    let mut locations = vec![None; CHUNK_PAGES];
    each_in_chunk(bytes, |slot, location| {
        if let Some(field) = locations.get_mut(slot) {
            *field = Some(location);
        }
        Ok(())
    })?;
    Ok(locations)
}

/// Calls `visit` with the locations in a chunk and their numbers in it.
pub(super) fn each_in_chunk(bytes: &[u8], mut visit: impl FnMut(usize, Location) -> Result<()>) -> Result<()> {
    if bytes.len() != CHUNK_BYTES {
        return Err(corrupt(format!("a chunk has {} bytes", bytes.len())));
    }
    for (slot, field) in bytes.chunks_exact(Location::BYTES).enumerate() {
        if let Some(location) = decode_location(slot, field)? {
            visit(slot, location)?;
        }
    }
    Ok(())
}

/// Decodes the locations of the chunks in a group; [`Error::CorruptMeta`] if the bytes are no group.
pub(crate) fn decode_group(bytes: &[u8]) -> Result<Vec<Option<Location>>> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(GRAIN) || bytes.len() > GROUP_BYTES {
        return Err(corrupt(format!("a group of chunks has {} bytes", bytes.len())));
    }
    if bytes.chunks_exact(Location::BYTES).remainder().iter().any(|&byte| byte != 0) {
        return Err(corrupt("a group of chunks does not end with zeros".into()));
    }
    decode_locations(bytes)
}

/// The bytes of a group of at most 128 chunks, with zeros to the end of its last grain. Empty if there is no chunk.
pub(crate) fn encode_group(locations: &[Option<Location>]) -> Vec<u8> {
    let mut bytes = encode_locations(locations);
    bytes.resize(bytes.len().next_multiple_of(GRAIN), 0);
    bytes
}

/// Decodes the locations of the groups in a directory; [`Error::CorruptMeta`] if the bytes are no directory.
pub(crate) fn decode_directory(bytes: &[u8]) -> Result<Vec<Option<Location>>> {
    if !bytes.len().is_multiple_of(Location::BYTES) || bytes.len() > MAX_GROUPS * Location::BYTES {
        return Err(corrupt(format!("its directory has {} bytes", bytes.len())));
    }
    decode_locations(bytes)
}

/// The bytes of a directory of these groups.
pub(crate) fn encode_directory(groups: &[Option<Location>]) -> Vec<u8> {
    encode_locations(groups)
}

#[cfg(test)]
mod tests {
    use super::super::place::Place;
    use super::*;

    #[test]
    fn a_group_comes_back_and_takes_the_grains_up_to_its_last_chunk() {
        let location = |first| Some(Location { place: Place::new(first, 6).unwrap(), crc: 7 });
        for (chunks, grains) in [(1, 1), (42, 1), (43, 2), (85, 2), (86, 3), (128, 3)] {
            let mut locations = vec![None; GROUP_CHUNKS];
            locations[chunks - 1] = location(chunks as u64 * 100);
            let bytes = encode_group(&locations);
            assert_eq!(bytes.len(), grains * GRAIN, "{chunks} chunks");
            let mut decoded = decode_group(&bytes).unwrap();
            decoded.resize(GROUP_CHUNKS, None);
            assert_eq!(decoded, locations);
        }
        assert!(encode_group(&[None; GROUP_CHUNKS]).is_empty());
        for len in [0, 12, GRAIN + 12, GROUP_BYTES + GRAIN] {
            assert!(decode_group(&vec![0; len]).is_err(), "{len} bytes");
        }
    }
}

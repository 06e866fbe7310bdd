//! The free map in the file: which grains are in use. A close writes it, so that the next opening need not decode the
//! chunks of the page table.
//!
//! The superblock of a close has the place of the map beside the place of the directory. The superblock of a checkpoint
//! names no map. The map has the grains of the superblocks, and of the directory, groups, chunks and images of that
//! page table, but not its own grains.
//!
//! | at | bytes | field |
//! |---|---|---|
//! | 0 | 8 | pages that have an image |
//! | 8 | 8 | grains of their images |
//! | 16 | 8 | r: regions of 2048 grains, up to the last one with a used grain |
//! | 24 | 2 each | used grains of each region |
//! | | | zeros to a multiple of 8 bytes |
//! | | 256 each | bitmaps of the regions that have both used and free grains, in their order |

use super::allocator::PlaceAllocator;
use super::directory::FreeMapPlace;
use super::encoding::corrupt;
use super::load::check_end;
use super::place::{Extent, FIRST_GRAIN};
use super::region::{REGION, REGION_BYTES, Region};
use crate::base::Result;
use crate::base::bytes::{get_u16, get_u64, u16_of};
use crate::base::checksum::chained;
use crate::io::Disk;

/// Bytes before the counts of the regions.
const HEAD: usize = 24;
/// Bitmaps that are read together.
const TOGETHER: usize = 4096;

/// The free map, and what the page table has altogether.
pub(super) struct FreeMap {
    pub(super) allocator: PlaceAllocator,
    /// Pages that have an image.
    pub(super) pages: u64,
    /// Grains of their images.
    pub(super) live: u64,
}

/// Bytes of the head and of the counts of this number of regions.
fn counts_end(regions: usize) -> usize {
    (HEAD + 2 * regions).next_multiple_of(8)
}

/// The bytes of the map.
pub(super) fn encode(allocator: &PlaceAllocator, pages: u64, live: u64) -> Vec<u8> {
    let (mut counts, mut bitmaps) = (Vec::new(), Vec::new());
    for (index, region) in allocator.regions() {
        counts.resize(index, 0);
        counts.push(REGION - region.free());
        if region.free() > 0 {
            region.encode(&mut bitmaps);
        }
    }
    let mut bytes = [pages, live, counts.len() as u64].map(u64::to_le_bytes).concat();
    bytes.extend(counts.iter().flat_map(|count| u16_of(*count as usize).to_le_bytes()));
    bytes.resize(counts_end(counts.len()), 0);
    bytes.append(&mut bitmaps);
    bytes
}

/// Reads the map of a file of `end` grains.
pub(super) fn read(disk: &dyn Disk, place: FreeMapPlace, end: u64, longest_place: u32) -> Result<FreeMap> {
    check_end(end, place.extent(), || "its free map".into())?;
    let wrong = |what: &str| Err(corrupt(format!("its free map {what}")));
    let mut reader = Reader { disk, at: place.extent().offset(), left: place.len, crc: 0, bytes: Vec::new() };
    let head = reader.take(HEAD)?;
    let [pages, live, regions] = [0, 8, 16].map(|at| get_u64(head, at));
    if pages > live || live > end {
        return wrong("has more images than the file has room for");
    }
    if regions > end.div_ceil(u64::from(REGION)) {
        return wrong("is of more regions than the file has");
    }
    let regions = usize::try_from(regions).unwrap_or(0);
    let counts = reader.take(counts_end(regions) - HEAD)?;
    let padding = counts.iter().skip(2 * regions).any(|byte| *byte != 0);
    let counts: Vec<u32> = (0..regions).map(|index| get_u16(counts, 2 * index).into()).collect();
    if padding || counts.last() == Some(&0) {
        return wrong("does not end with a region that is used");
    }
    let is_partial = |count: &u32| (1..REGION).contains(count);
    let mut partial = counts.iter().filter(|count| is_partial(count)).count();
    if reader.left != (partial * REGION_BYTES) as u64 {
        return wrong(&format!("has {} bytes of bitmaps for {partial} regions", reader.left));
    }
    let (mut found, mut piece) = (Vec::with_capacity(regions), Vec::new().into_iter());
    for (index, &count) in counts.iter().enumerate() {
        let region = match count {
            0 => continue,
            REGION => Region::full(),
            _ => {
                if piece.len() == 0 {
                    let together = partial.min(TOGETHER);
                    partial -= together;
                    let bytes = reader.take(together * REGION_BYTES)?;
                    piece = bytes.chunks_exact(REGION_BYTES).map(Region::decode).collect::<Vec<_>>().into_iter();
                }
                piece.next().unwrap_or_else(Region::new)
            }
        };
        if REGION - region.free() != count {
            return wrong(&format!("has another count of region {index} than its bitmap"));
        }
        found.push((index, region));
    }
    if reader.crc != place.crc {
        return wrong("has a wrong checksum");
    }
    let allocator = PlaceAllocator::of_regions(longest_place, found.into_iter());
    if allocator.end() > end || !allocator.is_used(Extent { first: 0, grains: FIRST_GRAIN }) {
        return wrong("does not fit the file");
    }
    Ok(FreeMap { allocator, pages, live })
}

/// Reads the map piece by piece.
struct Reader<'a> {
    disk: &'a dyn Disk,
    /// Byte offset of the next piece.
    at: u64,
    /// Bytes from there to the end of the map.
    left: u64,
    /// The checksum of all pieces so far.
    crc: u32,
    bytes: Vec<u8>,
}

impl Reader<'_> {
    fn take(&mut self, len: usize) -> Result<&[u8]> {
        if len as u64 > self.left {
            return Err(corrupt("its free map is shorter than it says".into()));
        }
        self.bytes.resize(len, 0);
        self.disk.read_at(self.at, &mut self.bytes)?;
        (self.at, self.left) = (self.at + len as u64, self.left - len as u64);
        self.crc = chained(self.crc, &self.bytes);
        Ok(&self.bytes)
    }
}

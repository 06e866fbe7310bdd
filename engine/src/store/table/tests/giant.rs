//! A database file of any size that takes little memory: its page table follows from a formula, and only what a test
//! writes is kept.
//!
//! From the second region of the file on, each region has the places of 128 pages, by turns 17 and 14 grains long.
//! Every second region has a chunk of the page table after them. The groups of chunks, the directory and the free map
//! are after the last region.

use crate::base::Result;
use crate::base::checksum::{chained, checksum};
use crate::io::{BLOCK, Disk, WriteKind, parts};
use crate::store::superblock::Meta;
use crate::store::table::directory::{Directory, FreeMapPlace};
use crate::store::table::encoding::{CHUNK_BYTES, CHUNK_PAGES, GROUP_CHUNKS, encode_directory, encode_group};
use crate::store::table::place::{Extent, FIRST_GRAIN, GRAIN, Location, Place, grains_of};
use crate::store::table::region::{REGION, REGION_BYTES, Region};
use crate::store::{DatabaseFile, StoreKind};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Pages of a region.
const REGION_PAGES: u32 = 128;
/// Grains of two pages side by side, and of the first of them.
const PAIR: (u32, u32) = (31, 17);
/// Grain of a chunk in its region.
const CHUNK_AT: u32 = PAIR.0 * REGION_PAGES / 2;

/// The file.
pub(super) struct GiantDisk {
    pages: u32,
    /// Those that were written.
    blocks: Mutex<BTreeMap<u64, Box<[u8; BLOCK]>>>,
    map: OnceLock<GiantMap>,
    len: Mutex<u64>,
}

impl std::fmt::Debug for GiantDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GiantDisk").field("pages", &self.pages).finish_non_exhaustive()
    }
}

fn grain_of_region(region: u64, at: u32) -> u64 {
    region * u64::from(REGION) + u64::from(at)
}

impl GiantDisk {
    /// A closed database of so many pages, a multiple of 256. Each has a place, which no test may read before it has
    /// written the page. It may have a free map.
    pub(super) fn new(meta: Meta, pages: u32, has_map: bool) -> Arc<GiantDisk> {
        assert!((pages as usize).is_multiple_of(CHUNK_PAGES));
        let end = grain_of_region(1 + u64::from(pages / REGION_PAGES), 0);
        let len = Mutex::new(end * GRAIN as u64);
        let disk = Arc::new(GiantDisk { pages, blocks: Mutex::default(), map: OnceLock::new(), len });
        let first_behind = end;
        let locations: Vec<Option<Location>> = (0..pages as usize / CHUNK_PAGES)
            .map(|index| {
                Some(Location { place: GiantDisk::chunk_place(index), crc: checksum(&GiantDisk::chunk(index)) })
            })
            .collect();
        let mut end = end;
        let mut add = |bytes: &[u8]| {
            disk.write_at(end * GRAIN as u64, bytes).unwrap();
            let first = end;
            end += grains_of(bytes.len());
            (first, checksum(bytes))
        };
        let groups: Vec<Option<Location>> = locations
            .chunks(GROUP_CHUNKS)
            .map(|locations| {
                let bytes = encode_group(locations);
                let (first, crc) = add(&bytes);
                Some(Location { place: Place::new(first, grains_of(bytes.len())).unwrap(), crc })
            })
            .collect();
        let bytes = encode_directory(&groups);
        let (first, crc) = add(&bytes);
        let mut directory = Directory { first, len: bytes.len() as u64, crc, ..Directory::default() };
        let behind = Extent { first: first_behind, grains: end - first_behind };
        disk.resize(behind.end() * GRAIN as u64).unwrap();
        if has_map {
            let map = GiantMap::new(pages, behind);
            directory.map = Some(map.place);
            disk.resize(map.place.extent().end() * GRAIN as u64).unwrap();
            assert!(disk.map.set(map).is_ok());
        }
        let file = DatabaseFile::create(StoreKind::Table.into(), disk.clone(), Path::new("db"), meta).unwrap();
        file.begin_update().unwrap().write(meta, directory.encode()).unwrap();
        file.write_meta(meta).unwrap();
        disk
    }

    /// The place of a chunk.
    pub(super) fn chunk_place(index: usize) -> Place {
        Place::new(grain_of_region(1 + 2 * index as u64, CHUNK_AT), grains_of(CHUNK_BYTES)).unwrap()
    }

    /// The location of a page before the test writes it.
    pub(super) fn location(page: u32) -> Location {
        let within = page % REGION_PAGES;
        let (at, grains) = match within % 2 {
            0 => (within / 2 * PAIR.0, PAIR.1),
            _ => (within / 2 * PAIR.0 + PAIR.1, PAIR.0 - PAIR.1),
        };
        let first = grain_of_region(1 + u64::from(page / REGION_PAGES), at);
        Location { place: Place::new(first, u64::from(grains)).unwrap(), crc: page.wrapping_mul(0x9e37_79b9) }
    }

    fn chunk(index: usize) -> Vec<u8> {
        let first = u32::try_from(index * CHUNK_PAGES).unwrap();
        (first..).take(CHUNK_PAGES).flat_map(|page| GiantDisk::location(page).encode()).collect()
    }

    /// A block as it was before the test wrote it.
    fn block(&self, number: u64) -> Box<[u8; BLOCK]> {
        let mut block = Box::new([0; BLOCK]);
        let at = number * (BLOCK / GRAIN) as u64;
        let region = at / u64::from(REGION);
        let index = usize::try_from(region.wrapping_sub(1) / 2).unwrap();
        if region % 2 == 1 && at == grain_of_region(region, CHUNK_AT) && index < self.pages as usize / CHUNK_PAGES {
            block[..CHUNK_BYTES].copy_from_slice(&GiantDisk::chunk(index));
        }
        let from = number * BLOCK as u64;
        if let Some(map) = self.map.get()
            && let Some(at) = from.checked_sub(map.place.extent().offset()).filter(|at| *at < map.place.len)
        {
            let len = BLOCK.min((map.place.len - at) as usize);
            map.copy(at as usize, &mut block[..len]);
        }
        block
    }

    /// Reads all that an opening reads, to find what the disk takes for it.
    pub(super) fn read_all(&self) {
        let mut bytes = vec![0; 1 << 20];
        for index in 0..self.pages as usize / CHUNK_PAGES {
            self.read_at(GiantDisk::chunk_place(index).offset(), &mut bytes[..CHUNK_BYTES]).unwrap();
        }
        if let Some(place) = self.map.get().map(|map| map.place) {
            for at in (0..place.len).step_by(bytes.len()) {
                let len = bytes.len().min((place.len - at) as usize);
                self.read_at(place.extent().offset() + at, &mut bytes[..len]).unwrap();
            }
        }
    }
}

/// The free map, which follows from a formula, too.
struct GiantMap {
    place: FreeMapPlace,
    /// Its bytes before the bitmaps.
    head: Vec<u8>,
    /// The bitmaps of the first region, of one with pages, and of one with pages and a chunk.
    regions: [Vec<u8>; 3],
    with_pages: usize,
    /// The bitmap of the last region.
    last: Vec<u8>,
}

impl GiantMap {
    /// The map of a file with this number of pages. `behind` is the extent of the groups and the directory after them.
    fn new(pages: u32, behind: Extent) -> GiantMap {
        let bitmap = |used: Range<u32>| {
            let (mut region, mut bytes) = (Region::new(), Vec::new());
            assert!(region.mark(used.start, used.len() as u32, true));
            region.encode(&mut bytes);
            bytes
        };
        let chunk = CHUNK_AT..CHUNK_AT + grains_of(CHUNK_BYTES) as u32;
        let counts = [FIRST_GRAIN as u32, chunk.start, chunk.end];
        let with_pages = (pages / REGION_PAGES) as usize;
        let whole = (behind.grains / u64::from(REGION)) as usize;
        let rest = (behind.grains % u64::from(REGION)) as u32;
        let mut of_regions: Vec<u32> = (0..=with_pages).map(|region| counts[GiantMap::kind(region)]).collect();
        of_regions.extend(std::iter::repeat_n(REGION, whole));
        of_regions.push(rest);
        let live = u64::from(pages / 2 * PAIR.0);
        let mut head = [u64::from(pages), live, of_regions.len() as u64].map(u64::to_le_bytes).concat();
        head.extend(of_regions.iter().flat_map(|count| (*count as u16).to_le_bytes()));
        head.resize(head.len().next_multiple_of(8), 0);
        let len = (head.len() + (with_pages + 2) * REGION_BYTES) as u64;
        let first = behind.end().next_multiple_of((BLOCK / GRAIN) as u64);
        let (regions, last) = (counts.map(|used| bitmap(0..used)), bitmap(0..rest));
        let mut map = GiantMap { place: FreeMapPlace { first, len, crc: 0 }, head, regions, with_pages, last };
        let mut piece = vec![0; 1 << 20];
        for at in (0..len as usize).step_by(piece.len()) {
            let some = piece.len().min(len as usize - at);
            map.copy(at, &mut piece[..some]);
            map.place.crc = chained(map.place.crc, &piece[..some]);
        }
        map
    }

    /// Which bitmap a region has.
    fn kind(region: usize) -> usize {
        if region == 0 { 0 } else { 1 + region % 2 }
    }

    /// Copies its bytes from `at` on.
    fn copy(&self, mut at: usize, mut to: &mut [u8]) {
        while !to.is_empty() {
            let from = match at.checked_sub(self.head.len()) {
                None => &self.head[at..],
                Some(at) => {
                    let region = at / REGION_BYTES;
                    let last = region > self.with_pages;
                    let bitmap = if last { &self.last } else { &self.regions[GiantMap::kind(region)] };
                    &bitmap[at % REGION_BYTES..]
                }
            };
            let len = from.len().min(to.len());
            let (now, later) = to.split_at_mut(len);
            now.copy_from_slice(&from[..len]);
            (at, to) = (at + len, later);
        }
    }
}

impl Disk for GiantDisk {
    fn size(&self) -> Result<u64> {
        Ok(*self.len.lock())
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        assert!(offset + buf.len() as u64 <= *self.len.lock(), "read beyond the end");
        for part in parts(offset, buf.len()) {
            let (to, within) = (&mut buf[part.at..part.at + part.len], part.start..part.start + part.len);
            match self.blocks.lock().get(&part.block) {
                Some(block) => to.copy_from_slice(&block[within]),
                None => to.copy_from_slice(&self.block(part.block)[within]),
            }
        }
        Ok(())
    }
    fn write_as(&self, _kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        for part in parts(offset, buf.len()) {
            let mut blocks = self.blocks.lock();
            let block = blocks.entry(part.block).or_insert_with(|| self.block(part.block));
            block[part.start..part.start + part.len].copy_from_slice(&buf[part.at..part.at + part.len]);
        }
        let mut len = self.len.lock();
        *len = (*len).max(offset + buf.len() as u64);
        Ok(())
    }
    fn sync(&self) -> Result<()> {
        Ok(())
    }
    fn trim(&self, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }
    fn resize(&self, len: u64) -> Result<()> {
        *self.len.lock() = len;
        Ok(())
    }
    fn reserve_range(&self, _range: Range<u64>) -> Result<()> {
        Ok(())
    }
    fn allocated(&self) -> Result<u64> {
        self.size()
    }
}

/// Pages of the database that is measured: 1/64 of 1 TiB of pages of 8 KiB, or all with `DURAMEN_SCALE=full`.
pub(super) fn pages() -> u32 {
    let full = 1 << 27;
    if std::env::var("DURAMEN_SCALE").is_ok_and(|scale| scale == "full") { full } else { full / 64 }
}

/// Runs the test of this name in a process of its own, so that nothing else takes memory: `body` is called there.
pub(super) fn in_own_process(name: &str, body: impl FnOnce()) {
    const CHILD: &str = "DURAMEN_SCALE_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.arg(name).env(CHILD, "1").env("RUST_TEST_NOCAPTURE", "1").output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    println!("{text}");
    assert!(output.status.success() && text.contains("1 passed"), "the process failed");
}

/// The resources that a process has used so far.
#[derive(Clone, Copy)]
pub(super) struct Used {
    /// Bytes of memory.
    pub(super) memory: i64,
    /// Nanoseconds of processor time of this thread.
    pub(super) processor: u64,
}

impl Used {
    /// So far.
    pub(super) fn now() -> Used {
        let field = |file: &str, at: usize| {
            let text = std::fs::read_to_string(file).unwrap();
            text.split_whitespace().nth(at).unwrap().parse::<u64>().unwrap()
        };
        let memory = i64::try_from(field("/proc/self/statm", 1) * 4096).unwrap();
        Used { memory, processor: field("/proc/thread-self/schedstat", 0) }
    }

    /// Since then: bytes for each of the pages, and seconds.
    pub(super) fn since(self, pages: u32) -> (f64, f64) {
        let now = Used::now();
        ((now.memory - self.memory) as f64 / f64::from(pages), (now.processor - self.processor) as f64 / 1e9)
    }
}

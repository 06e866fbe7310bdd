//! What the store keeps in the superblock.
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | generation: images and deltas of earlier generations are synced |
//! | 4 | delta blocks between the slots of a page |
//! | 5 | delta blocks that a page can have at a time: [`DeltaBlocks::blocks`] |
//! | 6..8 | bytes of a segment |
//! | 8..16 | pages that have an image |
//! | 16..18 | threshold |
//! | 18..20 | zero |
//! | 20..24 | pages in the map; 0: there is no map |
//! | 24..28 | generation of the close that wrote the map |
//! | 28.. | [`Cuts`], each `generation u32 | end u64` |

use super::cuts::Cuts;
use super::map::MapPlace;
use crate::base::bytes::{get_u8, get_u16, get_u32, get_u64};
use crate::base::{Error, Result};
use crate::io::Disk;
use crate::store::DeltaBlocks;

/// The bytes in the superblock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Own {
    /// Images and deltas of earlier generations are synced.
    pub(super) generation: u32,
    /// Pages that had an image.
    pub(super) pages: u64,
    /// Delta blocks between the slots of a page.
    pub(super) deltas: u8,
    /// What was chosen when the database was created.
    pub(super) delta: DeltaBlocks,
    /// Where the map is. It is valid if the superblock says that the database is closed.
    pub(super) map: Option<MapPlace>,
    pub(super) cuts: Cuts,
}

/// The bytes for a new database.
pub(in crate::store) fn own_of_new(delta: DeltaBlocks, disk: &dyn Disk) -> Vec<u8> {
    // A block must not be overwritten before the next cumulative delta is synced, unless writes of blocks are atomic.
    let deltas = if delta.blocks == 1 && !disk.writes_blocks_whole() { 2 } else { delta.blocks };
    Own { generation: 0, pages: 0, deltas, delta, map: None, cuts: Cuts::NONE }.encode()
}

impl Own {
    pub(super) fn decode(bytes: &[u8]) -> Result<Own> {
        let delta = DeltaBlocks { threshold: get_u16(bytes, 16), segment: get_u16(bytes, 6), blocks: get_u8(bytes, 5) };
        let cuts = Cuts::decode(bytes.get(28..).unwrap_or_default());
        let map = match get_u32(bytes, 20) {
            0 => None,
            pages => Some(MapPlace { pages, generation: get_u32(bytes, 24) }),
        };
        let own =
            Own { generation: get_u32(bytes, 0), pages: get_u64(bytes, 8), deltas: get_u8(bytes, 4), delta, map, cuts };
        let is_right = delta.check().is_ok() && (delta.blocks..=DeltaBlocks::MOST).contains(&own.deltas);
        if is_right {
            return Ok(own);
        }
        let why = format!("it names delta blocks {delta} in cells with {} of them", own.deltas);
        Err(Error::CorruptMeta { what: "the superblock", why })
    }

    pub(super) fn encode(self) -> Vec<u8> {
        let Own { generation, pages, deltas, delta, map, cuts } = self;
        let mut bytes = generation.to_le_bytes().to_vec();
        bytes.extend([deltas, delta.blocks]);
        bytes.extend(delta.segment.to_le_bytes());
        bytes.extend(pages.to_le_bytes());
        bytes.extend(delta.threshold.to_le_bytes());
        bytes.resize(20, 0);
        let MapPlace { pages, generation } = map.unwrap_or(MapPlace { pages: 0, generation: 0 });
        bytes.extend(pages.to_le_bytes());
        bytes.extend(generation.to_le_bytes());
        bytes.extend(cuts.encode());
        bytes
    }

    /// The delta blocks that can be written. If there is one for each page, each write overwrites it: that needs a disk
    /// whose writes of blocks are atomic.
    pub(super) fn usable_on(&self, disk: &dyn Disk) -> DeltaBlocks {
        if self.deltas == 1 && !disk.writes_blocks_whole() {
            tracing::warn!(
                "pages are written whole: the disk does not write blocks of 4 KiB atomically, as it did before"
            );
            return DeltaBlocks::OFF;
        }
        self.delta
    }
}

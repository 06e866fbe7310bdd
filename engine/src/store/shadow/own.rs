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
//! | 28..412 | [`Cuts`], each `generation u32 | end u64` |
//! | 412..420 | blocks of slots that short images do not need: an estimate |
//! | 420.. | policies of tables, each the table id, a u32, and 4 bytes; no more than have room |

use super::cuts::{CUTS, Cuts};
use super::map::MapPlace;
use super::states::PageCount;
use crate::base::bytes::{get_u8, get_u16, get_u32, get_u64};
use crate::base::{Error, Result, TableId};
use crate::io::Disk;
use crate::store::compress::{POLICY_BYTES, decode_policies, encode_policies};
use crate::store::superblock::MAX_OWN;
use crate::store::{DeltaBlocks, PagePolicy};

const CUTS_AT: usize = 28;
const SPARED: usize = CUTS_AT + CUTS;
const POLICIES: usize = SPARED + 8;
/// The most policies that have room. A recovery does not compress the pages of other tables before it can read the catalog.
const MOST_POLICIES: usize = (MAX_OWN - POLICIES) / POLICY_BYTES;

/// The bytes in the superblock.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// Images and deltas of earlier generations are synced.
    pub(super) generation: u32,
    /// Pages that had an image.
    pub(super) count: PageCount,
    /// Delta blocks between the slots of a page.
    pub(super) deltas: u8,
    /// What was chosen when the database was created.
    pub(super) delta: DeltaBlocks,
    /// Where the map is. It is valid if the superblock says that the database is closed.
    pub(super) map: Option<MapPlace>,
    pub(super) cuts: Cuts,
    pub(super) policies: Vec<(TableId, PagePolicy)>,
}

/// The bytes for a new database.
pub(in crate::store) fn own_of_new(delta: DeltaBlocks, disk: &dyn Disk) -> Vec<u8> {
    // A block must not be overwritten before the next cumulative delta is synced, unless writes of blocks are atomic.
    let deltas = if delta.blocks == 1 && !disk.writes_blocks_whole() { 2 } else { delta.blocks };
    let count = PageCount::default();
    Own { generation: 0, count, deltas, delta, map: None, cuts: Cuts::NONE, policies: Vec::new() }.encode()
}

impl Own {
    pub(super) fn decode(bytes: &[u8]) -> Result<Own> {
        let delta = DeltaBlocks { threshold: get_u16(bytes, 16), segment: get_u16(bytes, 6), blocks: get_u8(bytes, 5) };
        let cuts = Cuts::decode(bytes.get(CUTS_AT..).unwrap_or_default());
        let corrupt = |why| Error::CorruptMeta { what: "the superblock", why };
        let policies = decode_policies(bytes.get(POLICIES..).unwrap_or_default()).map_err(corrupt)?;
        let count = PageCount { pages: get_u64(bytes, 8), spared: get_u64(bytes, SPARED) };
        let map = match get_u32(bytes, 20) {
            0 => None,
            pages => Some(MapPlace { pages, generation: get_u32(bytes, 24) }),
        };
        let own = Own { generation: get_u32(bytes, 0), count, deltas: get_u8(bytes, 4), delta, map, cuts, policies };
        let is_right = delta.check().is_ok() && (delta.blocks..=DeltaBlocks::MOST).contains(&own.deltas);
        if is_right {
            return Ok(own);
        }
        Err(corrupt(format!("it names delta blocks {delta} in cells with {} of them", own.deltas)))
    }

    pub(super) fn encode(self) -> Vec<u8> {
        let Own { generation, count, deltas, delta, map, cuts, policies } = self;
        let mut bytes = generation.to_le_bytes().to_vec();
        bytes.extend([deltas, delta.blocks]);
        bytes.extend(delta.segment.to_le_bytes());
        bytes.extend(count.pages.to_le_bytes());
        bytes.extend(delta.threshold.to_le_bytes());
        bytes.resize(20, 0);
        let MapPlace { pages, generation } = map.unwrap_or(MapPlace { pages: 0, generation: 0 });
        bytes.extend(pages.to_le_bytes());
        bytes.extend(generation.to_le_bytes());
        bytes.extend(cuts.encode());
        bytes.extend(count.spared.to_le_bytes());
        bytes.extend(encode_policies(policies.get(..MOST_POLICIES).unwrap_or(&policies)));
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

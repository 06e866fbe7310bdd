//! The store's own bytes in the superblock.
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | generation: images and deltas of earlier generations are synced |
//! | 4 | delta blocks between the slots of a page |
//! | 5 | delta blocks that a page can have at a time: [`DeltaBlocks::blocks`] |
//! | 6..8 | bytes of a segment |
//! | 8..16 | pages that have an image |
//! | 16..18 | threshold |
//! | 18..20 | d: dictionaries |
//! | 20..24 | pages in the map; 0: there is no map |
//! | 24..28 | generation of the close that wrote the map |
//! | 28..412 | [`RecoveredLogEnds`], each `generation u32 | end u64` |
//! | 412..420 | blocks of slots that short images do not need: an estimate |
//! | 420.. | places of the dictionaries, 16 bytes each |
//! | 420 + 16 d.. | policies of tables, each the table id, a u32, and 4 bytes; no more than have room |

use super::log_ends::{LOG_ENDS_BYTES, RecoveredLogEnds};
use super::map::SlotMapPlace;
use super::states::PageCount;
use crate::base::bytes::{get_u8, get_u16, get_u32, get_u64, u16_of};
use crate::base::{Error, Result, TableId};
use crate::io::Disk;
use crate::store::compress::{
    DICTIONARY_BYTES, POLICY_BYTES, decode_dictionaries, decode_policies, encode_dictionaries, encode_policies,
};
use crate::store::superblock::MAX_STORE_HEADER;
use crate::store::{DeltaBlocks, DictionaryPlace, MAX_DICTIONARIES, PagePolicy};

const LOG_ENDS_AT: usize = 28;
const SPARED: usize = LOG_ENDS_AT + LOG_ENDS_BYTES;
const DICTIONARIES: usize = SPARED + 8;

/// The position of the policies after this number of dictionaries.
fn policies_at(dictionaries: usize) -> usize {
    DICTIONARIES + dictionaries * DICTIONARY_BYTES
}

/// The most policies that have room. A recovery does not compress the pages of other tables before it can read the
/// catalog.
fn most_policies(dictionaries: usize) -> usize {
    MAX_STORE_HEADER.saturating_sub(policies_at(dictionaries)) / POLICY_BYTES
}

const _: () = assert!(DICTIONARIES + MAX_DICTIONARIES * DICTIONARY_BYTES < MAX_STORE_HEADER);

/// The bytes in the superblock.
#[derive(Clone, Debug)]
pub(super) struct StoreHeader {
    /// Images and deltas of earlier generations are synced.
    pub(super) generation: u32,
    /// Pages that had an image.
    pub(super) count: PageCount,
    /// Delta blocks between the slots of a page.
    pub(super) deltas: u8,
    /// The option that was set when the database was created.
    pub(super) delta: DeltaBlocks,
    /// The place of the map. The map is valid if the superblock says that the database is closed.
    pub(super) map: Option<SlotMapPlace>,
    pub(super) log_ends: RecoveredLogEnds,
    pub(super) dictionaries: Vec<DictionaryPlace>,
    pub(super) policies: Vec<(TableId, PagePolicy)>,
}

/// The bytes for a new database.
pub(super) fn header_of_new(delta: DeltaBlocks, disk: &dyn Disk) -> Vec<u8> {
    // A block must not be overwritten before the next cumulative delta is synced, unless writes of blocks are atomic.
    let deltas = if delta.blocks == 1 && !disk.writes_blocks_whole() { 2 } else { delta.blocks };
    let count = PageCount::default();
    let (dictionaries, policies) = (Vec::new(), Vec::new());
    StoreHeader {
        generation: 0,
        count,
        deltas,
        delta,
        map: None,
        log_ends: RecoveredLogEnds::NONE,
        dictionaries,
        policies,
    }
    .encode()
}

impl StoreHeader {
    pub(super) fn decode(bytes: &[u8]) -> Result<StoreHeader> {
        let delta = DeltaBlocks { threshold: get_u16(bytes, 16), segment: get_u16(bytes, 6), blocks: get_u8(bytes, 5) };
        let log_ends = RecoveredLogEnds::decode(bytes.get(LOG_ENDS_AT..).unwrap_or_default());
        let corrupt = |why| Error::CorruptMeta { what: "the superblock", why };
        let named = usize::from(get_u16(bytes, 18));
        let end = policies_at(named);
        if named > MAX_DICTIONARIES || named > 0 && bytes.len() < end {
            return Err(corrupt(format!("it names {named} dictionaries")));
        }
        let dictionaries = decode_dictionaries(bytes.get(DICTIONARIES..end).unwrap_or_default());
        let policies = decode_policies(bytes.get(end..).unwrap_or_default()).map_err(corrupt)?;
        let count = PageCount { pages: get_u64(bytes, 8), spared: get_u64(bytes, SPARED) };
        let map = match get_u32(bytes, 20) {
            0 => None,
            pages => Some(SlotMapPlace { pages, generation: get_u32(bytes, 24) }),
        };
        let (generation, deltas) = (get_u32(bytes, 0), get_u8(bytes, 4));
        let header = StoreHeader { generation, count, deltas, delta, map, log_ends, dictionaries, policies };
        let is_right = delta.check().is_ok() && (delta.blocks..=DeltaBlocks::MOST).contains(&header.deltas);
        if is_right {
            return Ok(header);
        }
        Err(corrupt(format!("it names delta blocks {delta} in page areas with {} of them", header.deltas)))
    }

    pub(super) fn encode(self) -> Vec<u8> {
        let StoreHeader { generation, count, deltas, delta, map, log_ends, dictionaries, policies } = self;
        let mut bytes = generation.to_le_bytes().to_vec();
        bytes.extend([deltas, delta.blocks]);
        bytes.extend(delta.segment.to_le_bytes());
        bytes.extend(count.pages.to_le_bytes());
        bytes.extend(delta.threshold.to_le_bytes());
        bytes.extend(u16_of(dictionaries.len()).to_le_bytes());
        let SlotMapPlace { pages, generation } = map.unwrap_or(SlotMapPlace { pages: 0, generation: 0 });
        bytes.extend(pages.to_le_bytes());
        bytes.extend(generation.to_le_bytes());
        bytes.extend(log_ends.encode());
        bytes.extend(count.spared.to_le_bytes());
        bytes.extend(encode_dictionaries(&dictionaries));
        bytes.extend(encode_policies(policies.get(..most_policies(dictionaries.len())).unwrap_or(&policies)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::PageId;
    use crate::io::{MemoryVolume, OpenMode, Volume};
    use crate::store::DictionaryId;

    fn header(dictionaries: u32, policies: u32) -> StoreHeader {
        let of_new = StoreHeader::decode(&header_of_new(
            DeltaBlocks::default(),
            &*MemoryVolume::new().open("f", OpenMode::CreateNew).unwrap(),
        ))
        .unwrap();
        let place = |id: u32| DictionaryPlace {
            id: DictionaryId(id),
            table: TableId(id + 1),
            firsts: [PageId(id + 2), PageId(id + 3)],
        };
        let policy = |id: u32| (TableId(id), PagePolicy { dictionary: true, ..PagePolicy::default() });
        StoreHeader {
            dictionaries: (0..dictionaries).map(place).collect(),
            policies: (0..policies).map(policy).collect(),
            ..of_new
        }
    }

    #[test]
    fn dictionaries_and_policies_come_back_and_dictionaries_always_have_room() {
        for (dictionaries, policies) in [(0, 0), (0, 3), (1, 0), (2, 5), (64, 1000)] {
            let header = header(dictionaries, policies);
            let bytes = header.clone().encode();
            assert!(bytes.len() <= MAX_STORE_HEADER);
            let again = StoreHeader::decode(&bytes).unwrap();
            assert_eq!(again.dictionaries, header.dictionaries);
            let kept = most_policies(header.dictionaries.len()).min(header.policies.len());
            assert_eq!(again.policies, header.policies[..kept]);
        }
    }

    #[test]
    fn more_dictionaries_than_there_are_bytes_for_is_damage() {
        let bytes = header(2, 1).encode();
        for count in [3, 4, 65, u16::MAX] {
            let mut wrong = bytes.clone();
            wrong[18..20].copy_from_slice(&count.to_le_bytes());
            assert!(matches!(StoreHeader::decode(&wrong), Err(Error::CorruptMeta { .. })), "{count}");
        }
    }
}

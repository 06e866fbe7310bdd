//! The table store's own bytes in the superblock: the place of the directory of the page table. The directory has the
//! places of the groups of chunks, then the policies of tables and the places of dictionaries.

use super::place::{Extent, FIRST_GRAIN, MAX_GRAINS, grains_of};
use crate::base::bytes::{get_u32, get_u64};
use crate::base::{Error, Result};
use crate::store::compress::{DICTIONARY_BYTES, MAX_DICTIONARIES, POLICY_BYTES};

/// Bytes of a [`Directory`] in a superblock: without dictionaries, with them, and with a free map.
const BYTES: [usize; 3] = [24, 28, 48];

/// The place of the directory; all zeros while there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Directory {
    /// Its first grain.
    pub(crate) first: u64,
    /// Its length in bytes.
    pub(crate) len: u64,
    /// Its CRC-32C.
    pub(crate) crc: u32,
    /// The policies in it.
    pub(crate) policies: u32,
    /// The dictionaries in it.
    pub(crate) dictionaries: u32,
    /// The free map that belongs to it, after a close.
    pub(crate) map: Option<FreeMapPlace>,
}

/// The place of the free map.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FreeMapPlace {
    /// Its first grain.
    pub(crate) first: u64,
    /// Its length in bytes.
    pub(crate) len: u64,
    /// Its CRC-32C.
    pub(crate) crc: u32,
}

impl FreeMapPlace {
    /// Its grains.
    pub(crate) fn extent(&self) -> Extent {
        extent(self.first, self.len)
    }
}

fn extent(first: u64, len: u64) -> Extent {
    Extent { first, grains: grains_of(usize::try_from(len).unwrap_or(usize::MAX)) }
}

impl Directory {
    /// Its bytes for the superblock.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Directory { first, len, crc, policies, dictionaries, map } = self;
        let mut bytes =
            [&first.to_le_bytes()[..], &len.to_le_bytes(), &crc.to_le_bytes(), &policies.to_le_bytes()].concat();
        if *dictionaries > 0 || map.is_some() {
            bytes.extend(dictionaries.to_le_bytes());
        }
        if let Some(FreeMapPlace { first, len, crc }) = map {
            bytes.extend([&first.to_le_bytes()[..], &len.to_le_bytes(), &crc.to_le_bytes()].concat());
        }
        bytes
    }

    /// Reads what [`Directory::encode`] wrote; no bytes at all are those of a new database.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Directory> {
        let corrupt = |why: String| Err(Error::CorruptMeta { what: "the page table", why });
        if bytes.is_empty() {
            return Ok(Directory::default());
        }
        if !BYTES.contains(&bytes.len()) {
            return corrupt(format!("the superblock has {} bytes of it", bytes.len()));
        }
        let directory = Directory {
            first: get_u64(bytes, 0),
            len: get_u64(bytes, 8),
            crc: get_u32(bytes, 16),
            policies: get_u32(bytes, 20),
            dictionaries: get_u32(bytes, 24),
            map: (bytes.len() == BYTES[2]).then(|| FreeMapPlace {
                first: get_u64(bytes, 28),
                len: get_u64(bytes, 36),
                crc: get_u32(bytes, 44),
            }),
        };
        let Directory { first, len, map, .. } = directory;
        let is_place = |first, len| (FIRST_GRAIN..MAX_GRAINS).contains(&first) && len > 0;
        let none = first == 0 && len == 0;
        if !none && !is_place(first, len) {
            return corrupt(format!("its directory has {len} bytes at grain {first}"));
        }
        if let Some(FreeMapPlace { first, len, .. }) = map.filter(|map| none || !is_place(map.first, map.len)) {
            return corrupt(format!("its free map has {len} bytes at grain {first}"));
        }
        if directory.dictionaries as usize > MAX_DICTIONARIES {
            return corrupt(format!("it names {} dictionaries", directory.dictionaries));
        }
        if directory.policies_len() + directory.dictionaries_len() > len {
            let Directory { policies, dictionaries, .. } = directory;
            let what = format!("{policies} policies and {dictionaries} dictionaries");
            return corrupt(format!("its directory of {len} bytes has {what}"));
        }
        Ok(directory)
    }

    /// Bytes of the locations of groups, which are at its start.
    pub(crate) fn groups_len(&self) -> u64 {
        self.len.saturating_sub(self.policies_len() + self.dictionaries_len())
    }

    /// Bytes of the places of dictionaries, which are at its end.
    pub(crate) fn dictionaries_len(&self) -> u64 {
        u64::from(self.dictionaries) * DICTIONARY_BYTES as u64
    }

    /// Bytes of the policies, which are between the two.
    pub(crate) fn policies_len(&self) -> u64 {
        u64::from(self.policies) * POLICY_BYTES as u64
    }

    /// Its grains.
    pub(crate) fn extent(&self) -> Extent {
        extent(self.first, self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_read_back_with_its_optional_parts() {
        let directory =
            Directory { first: 99, len: 24 + 8 * 3 + 16 * 2, crc: 7, policies: 3, dictionaries: 2, map: None };
        assert_eq!(Directory::decode(&directory.encode()).unwrap(), directory);
        assert_eq!((directory.groups_len(), directory.dictionaries_len()), (24, 32));
        let without = Directory { dictionaries: 0, ..directory };
        assert_eq!(without.encode().len(), 24, "as before there were dictionaries");
        assert_eq!(Directory::decode(&without.encode()).unwrap(), without);
        let map = Some(FreeMapPlace { first: 300, len: 999, crc: 8 });
        for dictionaries in [0, 2] {
            let closed = Directory { dictionaries, map, ..directory };
            assert_eq!(closed.encode().len(), 48);
            assert_eq!(Directory::decode(&closed.encode()).unwrap(), closed);
        }
        for (first, len) in [(300, 0), (FIRST_GRAIN - 1, 9), (MAX_GRAINS, 9)] {
            let wrong = Directory { map: Some(FreeMapPlace { first, len, crc: 8 }), ..directory };
            assert!(Directory::decode(&wrong.encode()).is_err(), "a map of {len} bytes at {first}");
        }
        for (policies, dictionaries) in [(8, 2), (3, 5), (0, 65), (0, u32::MAX), (u32::MAX, 64)] {
            let wrong = Directory { policies, dictionaries, ..directory };
            assert!(Directory::decode(&wrong.encode()).is_err(), "{policies} and {dictionaries}");
        }
        assert!(Directory::decode(&directory.encode()[..27]).is_err());
    }
}

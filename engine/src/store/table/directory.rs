//! What the superblock keeps for the table store: where the page table's directory is. The directory is the locations of the
//! groups of chunks, and after them the policies of tables and the places of dictionaries.

use super::place::{Extent, FIRST_GRAIN, MAX_GRAINS, grains_of};
use crate::base::bytes::{get_u32, get_u64};
use crate::base::{Error, Result};
use crate::store::compress::{DICTIONARY_BYTES, MOST_DICTIONARIES, POLICY_BYTES};

/// Bytes of it in a superblock without dictionaries, and with them.
const BYTES: [usize; 2] = [24, 28];

/// Where the directory is; all zeros while there is none.
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
}

impl Directory {
    /// Its bytes for the superblock.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Directory { first, len, crc, policies, dictionaries } = self;
        let mut bytes =
            [&first.to_le_bytes()[..], &len.to_le_bytes(), &crc.to_le_bytes(), &policies.to_le_bytes()].concat();
        if *dictionaries > 0 {
            bytes.extend(dictionaries.to_le_bytes());
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
        };
        let Directory { first, len, .. } = directory;
        let none = first == 0 && len == 0;
        if !none && (!(FIRST_GRAIN..MAX_GRAINS).contains(&first) || len == 0) {
            return corrupt(format!("its directory has {len} bytes at grain {first}"));
        }
        if directory.dictionaries as usize > MOST_DICTIONARIES {
            return corrupt(format!("it names {} dictionaries", directory.dictionaries));
        }
        if directory.policies_len() + directory.dictionaries_len() > len {
            let Directory { policies, dictionaries, .. } = directory;
            let what = format!("{policies} policies and {dictionaries} dictionaries");
            return corrupt(format!("its directory of {len} bytes has {what}"));
        }
        Ok(directory)
    }

    /// Bytes of the locations of groups.
    pub(crate) fn groups_len(&self) -> u64 {
        self.len.saturating_sub(self.policies_len() + self.dictionaries_len())
    }

    /// Bytes of the places of dictionaries, which are at its end.
    pub(crate) fn dictionaries_len(&self) -> u64 {
        u64::from(self.dictionaries) * DICTIONARY_BYTES as u64
    }

    fn policies_len(&self) -> u64 {
        u64::from(self.policies) * POLICY_BYTES as u64
    }

    /// Its grains.
    pub(crate) fn extent(&self) -> Extent {
        Extent { first: self.first, grains: grains_of(usize::try_from(self.len).unwrap_or(usize::MAX)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_comes_back_and_has_room_for_what_it_names() {
        let directory = Directory { first: 99, len: 24 + 8 * 3 + 16 * 2, crc: 7, policies: 3, dictionaries: 2 };
        assert_eq!(Directory::decode(&directory.encode()).unwrap(), directory);
        assert_eq!((directory.groups_len(), directory.dictionaries_len()), (24, 32));
        let without = Directory { dictionaries: 0, ..directory };
        assert_eq!(without.encode().len(), 24, "as before there were dictionaries");
        assert_eq!(Directory::decode(&without.encode()).unwrap(), without);
        for (policies, dictionaries) in [(8, 2), (3, 5), (0, 65), (0, u32::MAX), (u32::MAX, 64)] {
            let wrong = Directory { policies, dictionaries, ..directory };
            assert!(Directory::decode(&wrong.encode()).is_err(), "{policies} and {dictionaries}");
        }
        assert!(Directory::decode(&directory.encode()[..27]).is_err());
    }
}

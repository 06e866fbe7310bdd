//! What the superblock keeps for the table store: where the page table's directory is. The directory is the locations of the
//! chunks, and after them the policies of tables.

use super::place::{Extent, FIRST_GRAIN, MAX_GRAINS, grains_of};
use crate::base::bytes::{get_u32, get_u64};
use crate::base::{Error, Result};
use crate::store::compress::POLICY_BYTES;

/// Bytes of it in a superblock.
const BYTES: usize = 24;

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
}

impl Directory {
    /// Its bytes for the superblock.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let Directory { first, len, crc, policies } = self;
        [&first.to_le_bytes()[..], &len.to_le_bytes(), &crc.to_le_bytes(), &policies.to_le_bytes()].concat()
    }

    /// Reads what [`Directory::encode`] wrote; no bytes at all are those of a new database.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Directory> {
        let corrupt = |why: String| Err(Error::CorruptMeta { what: "the page table", why });
        if bytes.is_empty() {
            return Ok(Directory::default());
        }
        if bytes.len() != BYTES {
            return corrupt(format!("the superblock has {} bytes of it", bytes.len()));
        }
        let directory = Directory {
            first: get_u64(bytes, 0),
            len: get_u64(bytes, 8),
            crc: get_u32(bytes, 16),
            policies: get_u32(bytes, 20),
        };
        let Directory { first, len, .. } = directory;
        let none = first == 0 && len == 0;
        if !none && (!(FIRST_GRAIN..MAX_GRAINS).contains(&first) || len == 0) {
            return corrupt(format!("its directory has {len} bytes at grain {first}"));
        }
        if directory.policies_len() > len {
            return corrupt(format!("its directory of {len} bytes has {} policies", directory.policies));
        }
        Ok(directory)
    }

    /// Bytes of the locations of chunks.
    pub(crate) fn chunks_len(&self) -> u64 {
        self.len.saturating_sub(self.policies_len())
    }

    fn policies_len(&self) -> u64 {
        u64::from(self.policies) * POLICY_BYTES as u64
    }

    /// Its grains.
    pub(crate) fn extent(&self) -> Extent {
        Extent { first: self.first, grains: grains_of(usize::try_from(self.len).unwrap_or(usize::MAX)) }
    }
}

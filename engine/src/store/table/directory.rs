//! What the superblock keeps for the table store: where the page table's directory is. The directory is the locations of the
//! chunks, and after them the policies of tables.

use super::place::{Extent, FIRST_GRAIN, MAX_GRAINS, grains_of};
use crate::base::bytes::{get_u32, get_u64};
use crate::base::{Error, Result, TableId};
use crate::store::PagePolicy;
use std::collections::HashMap;

/// Bytes of it in a superblock.
const BYTES: usize = 24;

/// Bytes of a policy: table id u32, [`PagePolicy`].
pub(crate) const POLICY_BYTES: usize = 4 + PagePolicy::BYTES;

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

/// The policies of tables in a directory, in the order of their ids.
pub(crate) fn encode_policies(policies: &HashMap<TableId, PagePolicy>) -> Vec<u8> {
    let mut sorted: Vec<_> = policies.iter().collect();
    sorted.sort_unstable_by_key(|(table, _)| table.0);
    sorted.into_iter().flat_map(|(table, policy)| [table.0.to_le_bytes(), policy.to_bytes()]).flatten().collect()
}

/// Decodes what [`encode_policies`] wrote.
pub(crate) fn decode_policies(bytes: &[u8]) -> Result<HashMap<TableId, PagePolicy>> {
    let policy = |bytes: &[u8]| {
        let (table, policy) = (get_u32(bytes, 0), get_u32(bytes, 4).to_le_bytes());
        PagePolicy::of_bytes(policy).map(|policy| (TableId(table), policy)).ok_or_else(|| Error::CorruptMeta {
            what: "the page table",
            why: format!("the policy of table {table} is damaged"),
        })
    };
    bytes.chunks(POLICY_BYTES).map(policy).collect()
}

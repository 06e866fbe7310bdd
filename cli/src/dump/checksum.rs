//! The checksum of a table in a dump.

use crc_fast::{CrcAlgorithm, Digest};

/// The CRC-32C of all bytes that were added.
pub(super) struct Checksum(Digest);

impl Checksum {
    /// Nothing was added.
    pub(super) fn new() -> Checksum {
        Checksum(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Adds bytes.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum as a dump has it.
    pub(super) fn to_bytes(&self) -> [u8; 4] {
        let [a, b, c, d, ..] = self.0.finalize().to_le_bytes();
        [a, b, c, d]
    }
}

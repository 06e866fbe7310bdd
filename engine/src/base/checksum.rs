//! CRC-32C, the only checksum of the engine. It uses the vector instructions of the machine if there are some.

use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};

/// The checksum of `bytes`.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32_iscsi(bytes)
}

/// The checksum of `before` followed by `bytes`, where `seed` is the checksum of `before`.
pub fn chained(seed: u32, bytes: &[u8]) -> u32 {
    let mut digest = Digest::new_with_init_state(CrcAlgorithm::Crc32Iscsi, u64::from(!seed));
    digest.update(bytes);
    lower_half(digest.finalize())
}

/// A checksum of 32 bits that the library returns with 64.
#[allow(clippy::cast_possible_truncation)] // its upper half is 0
fn lower_half(checksum: u64) -> u32 {
    checksum as u32
}

#[cfg(test)]
mod tests {
    use super::{chained, checksum};
    use proptest::prelude::*;

    /// The definition: one bit after the other, with the reversed polynomial of CRC-32C.
    fn by_bits(seed: u32, bytes: &[u8]) -> u32 {
        let step = |crc: u32| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
        !bytes.iter().fold(!seed, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
    }

    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!((checksum(b"123456789"), checksum(b"")), (0xe306_9283, 0));
    }

    proptest! {
        #[test]
        fn every_length_and_position_has_the_checksum_of_the_definition(
            bytes in proptest::collection::vec(any::<u8>(), 0..5000), from in 0usize..64, cut in any::<usize>(),
        ) {
            let bytes = &bytes[from.min(bytes.len())..];
            prop_assert_eq!(checksum(bytes), by_bits(0, bytes));
            let (head, tail) = bytes.split_at(cut % (bytes.len() + 1));
            prop_assert_eq!(chained(checksum(head), tail), checksum(bytes));
        }
    }
}

//! CRC-32C, the only checksum of the engine. It uses the machine's instruction if there is one.

/// The checksum of `bytes`.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// The checksum of `before` followed by `bytes`, where `seed` is the checksum of `before`.
pub fn chained(seed: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(seed, bytes)
}

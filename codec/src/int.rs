//! The two key types, `u32` and `u64`.
//!
//! Scalar code computes in `u64`, modulo the size of the key type.

mod sealed {
    pub trait Sealed {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
}

/// A key type: `u32` or `u64`. Signed keys are mapped to these by flipping the sign bit.
pub trait Int:
    Copy
    + Ord
    + Default
    + core::fmt::Debug
    + core::hash::Hash
    + Send
    + Sync
    + 'static
    + sealed::Sealed
    + crate::frame::FrameKernels
    + crate::lanes::LaneKernels
    + crate::gaps::GapKernels
    + crate::plain::PlainKernels
{
    /// The number of bits of a key.
    const BITS: u32;
    /// The number of bytes of a key.
    const BYTES: usize;
    /// The largest key.
    const MAX: Self;
    /// The key as `u64`.
    fn widen(self) -> u64;
    /// The low bits of `wide`.
    fn narrow(wide: u64) -> Self;
    /// The bytes of a key.
    type Bytes: Copy;
    /// The key with these little-endian bytes.
    fn from_le(bytes: Self::Bytes) -> Self;
    /// The slice as an array of the bytes of keys. Bytes after the last whole key are left out.
    fn chunks(bytes: &[u8]) -> &[Self::Bytes];
    /// The key in lane `lane % (64 / BYTES)` of the 64 bytes with the number `word`.
    fn word_in(bytes: &[u8], word: usize, lane: usize) -> Option<Self>;
}

impl Int for u32 {
    type Bytes = [u8; 4];
    const BITS: u32 = 32;
    const BYTES: usize = 4;
    const MAX: u32 = u32::MAX;

    #[inline(always)]
    fn widen(self) -> u64 {
        u64::from(self)
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "truncation is what it is for")]
    fn narrow(wide: u64) -> u32 {
        wide as u32
    }

    #[inline(always)]
    fn from_le(bytes: [u8; 4]) -> u32 {
        u32::from_le_bytes(bytes)
    }

    #[inline(always)]
    fn chunks(bytes: &[u8]) -> &[[u8; 4]] {
        bytes.as_chunks().0
    }

    #[inline(always)]
    #[allow(clippy::indexing_slicing, reason = "modulo the lanes")]
    fn word_in(bytes: &[u8], word: usize, lane: usize) -> Option<u32> {
        let lanes: &[[u8; 4]; 16] = Self::chunks(bytes).as_chunks().0.get(word)?;
        Some(u32::from_le_bytes(lanes[lane % 16]))
    }
}

impl Int for u64 {
    type Bytes = [u8; 8];
    const BITS: u32 = 64;
    const BYTES: usize = 8;
    const MAX: u64 = u64::MAX;

    #[inline(always)]
    fn widen(self) -> u64 {
        self
    }

    #[inline(always)]
    fn narrow(wide: u64) -> u64 {
        wide
    }

    #[inline(always)]
    fn from_le(bytes: [u8; 8]) -> u64 {
        u64::from_le_bytes(bytes)
    }

    #[inline(always)]
    fn chunks(bytes: &[u8]) -> &[[u8; 8]] {
        bytes.as_chunks().0
    }

    #[inline(always)]
    #[allow(clippy::indexing_slicing, reason = "modulo the lanes")]
    fn word_in(bytes: &[u8], word: usize, lane: usize) -> Option<u64> {
        let lanes: &[[u8; 8]; 8] = Self::chunks(bytes).as_chunks().0.get(word)?;
        Some(u64::from_le_bytes(lanes[lane % 8]))
    }
}

/// The sum of the keys, which are at most as many as a block can have.
#[inline(always)]
pub(crate) fn total<T: Int>(keys: impl Iterator<Item = T> + Clone) -> u128 {
    if T::BITS == 32 {
        return u128::from(keys.map(T::widen).sum::<u64>());
    }
    // The halves are added separately: neither sum overflows, and the compiler vectorizes both.
    let low: u64 = keys.clone().map(|key| key.widen() & 0xFFFF_FFFF).sum();
    let high: u64 = keys.map(|key| key.widen() >> 32).sum();
    u128::from(low) + (u128::from(high) << 32)
}

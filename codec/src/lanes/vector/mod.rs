//! A vector of lanes of any size: the operations that the kernels of lane streams need, for SSE4, AVX2 and AVX-512 and
//! both key types.
//!
//! Every function is `#[inline(always)]`, so it is compiled inside the `#[target_feature]` function of `kernels.rs`
//! that calls it, and never as a separate function.

use core::mem::MaybeUninit;

use crate::Int;

/// The operations that differ in nothing but the intrinsics' names.
macro_rules! common {
    ($loadu:ident $storeu:ident $and:ident $or:ident $add:ident $sub:ident) => {
        #[inline(always)]
        unsafe fn load(from: *const u8) -> Self {
            // SAFETY: guaranteed by the trait's contract.
            Self(unsafe { $loadu(from.cast()) })
        }
        #[inline(always)]
        unsafe fn store(self, to: *mut Self::Key) {
            // SAFETY: guaranteed by the trait's contract.
            unsafe { $storeu(to.cast(), self.0) }
        }
        #[inline(always)]
        unsafe fn and(self, other: Self) -> Self {
            // SAFETY: guaranteed by the trait's contract.
            Self(unsafe { $and(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn or(self, other: Self) -> Self {
            // SAFETY: guaranteed by the trait's contract.
            Self(unsafe { $or(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: guaranteed by the trait's contract.
            Self(unsafe { $add(self.0, other.0) })
        }
        #[inline(always)]
        unsafe fn sub(self, other: Self) -> Self {
            // SAFETY: guaranteed by the trait's contract.
            Self(unsafe { $sub(self.0, other.0) })
        }
    };
}

mod avx2;
mod avx512;
mod sse;

pub(crate) use self::avx2::{Avx2x32, Avx2x64};
pub(crate) use self::avx512::{Avx512x32, Avx512x64};
pub(crate) use self::sse::{Sse32, Sse64};

/// A vector of `LANES` keys.
///
/// # Safety
/// Every function needs the processor features of the vector's level. `load`, `load_bytes`, `store` and `store_bytes`
/// need `LANES` keys at the pointer that are readable or writable, at any alignment; `load_bytes` and `store_bytes`
/// need `LANES` bytes.
pub(crate) unsafe trait Vector: Copy {
    type Key: Int;
    const LANES: usize;

    unsafe fn splat(key: Self::Key) -> Self;
    unsafe fn load(from: *const u8) -> Self;
    /// Loads one byte for each lane, zero-extended.
    unsafe fn load_bytes(from: *const u8) -> Self;
    unsafe fn store(self, to: *mut Self::Key);
    /// Stores the low byte of every lane, without space between the bytes.
    #[allow(clippy::cast_possible_truncation, reason = "it keeps only the low byte on purpose")]
    #[inline(always)]
    unsafe fn store_bytes(self, to: *mut u8) {
        let mut keys = MaybeUninit::<[Self::Key; 16]>::uninit();
        let keys = keys.as_mut_ptr().cast::<Self::Key>();
        // SAFETY: guaranteed by the caller; a vector has at most 16 lanes.
        unsafe {
            self.store(keys);
            for lane in 0..Self::LANES {
                to.add(lane).write(keys.add(lane).read().widen() as u8);
            }
        }
    }
    /// Shifts every lane. A shift by the bits of a key gives zero.
    unsafe fn shr(self, by: u32) -> Self;
    unsafe fn shl(self, by: u32) -> Self;
    unsafe fn and(self, other: Self) -> Self;
    unsafe fn or(self, other: Self) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn sub(self, other: Self) -> Self;
    /// `self + (field & mask) + 1`.
    #[inline(always)]
    unsafe fn step(self, field: Self, mask: Self) -> Self {
        // SAFETY: guaranteed by the caller.
        unsafe { self.add(field.and(mask)).add(Self::splat(Self::Key::narrow(1))) }
    }
    /// One bit for each lane, lane 0 in the lowest bit: unsigned `self < other`.
    unsafe fn less(self, other: Self) -> u32;
    /// Lane `i` becomes the sum of lanes `0..=i`.
    unsafe fn prefix_sums(self) -> Self;
    /// Moves every lane up by one. Lane 0 becomes the last lane of `before`.
    unsafe fn behind(self, before: Self) -> Self;
    /// Copies the last lane to every lane.
    unsafe fn last(self) -> Self;
    /// The sum of all lanes.
    unsafe fn total(self) -> u128;
    /// Transposes `ROWS` vectors in place, as a matrix. The lanes are in the order that `store_columns` needs.
    unsafe fn transpose(rows: *mut Self);

    /// The number of rows that `store_columns` stores at once.
    const ROWS: usize = Self::LANES;

    /// Stores `ROWS` vectors by column, lane 0 first, without space between the lanes. Overwrites `rows`.
    #[inline(always)]
    unsafe fn store_runs(rows: *mut Self, to: *mut Self::Key) {
        // SAFETY: guaranteed by the caller: `ROWS` rows, and room for their keys.
        unsafe { Self::store_columns(rows, to, Self::ROWS) }
    }

    /// Stores `ROWS` vectors by column: the keys of lane `i` from `to + i * stride` on, lane 0 first. Overwrites
    /// `rows`.
    #[inline(always)]
    unsafe fn store_columns(rows: *mut Self, to: *mut Self::Key, stride: usize) {
        // SAFETY: guaranteed by the caller: `ROWS` rows, and room for the last lane's keys.
        unsafe {
            Self::transpose(rows);
            for lane in 0..Self::LANES {
                rows.add(lane).read().store(to.add(lane * stride));
            }
        }
    }
}

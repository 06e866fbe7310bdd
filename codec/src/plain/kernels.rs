//! The only vector kernel of plain blocks: it counts the keys of an array that are less than another key.

use super::PlainKernels;
use crate::Level;
use crate::lanes::vector::{Avx2x32, Avx2x64, Avx512x32, Avx512x64, Sse32, Sse64, Vector};

/// # Safety
/// The machine must have the vector's level. The keys fill whole vectors of 64 bytes, and there are at most 64.
#[inline(always)]
unsafe fn below<V: Vector>(keys: &[u8], key: V::Key) -> usize {
    let mut mask = 0u64;
    // SAFETY: guaranteed by the caller.
    unsafe {
        let key = V::splat(key);
        for n in 0..keys.len() / size_of::<V>() {
            let is_below = V::load(keys.as_ptr().add(n * size_of::<V>())).less(key);
            mask |= u64::from(is_below) << (n * V::LANES);
        }
    }
    mask.count_ones() as usize
}

macro_rules! kernels {
    ($key:ty, $sse:ident $avx2:ident $avx512:ident, $($level:ident $function:ident $vector:ty,)*) => {
        $(
            compiled_for! { $level,
                #[inline]
                unsafe fn $function(keys: &[u8], key: $key) -> usize {
                    // SAFETY: guaranteed by the caller.
                    unsafe { below::<$vector>(keys, key) }
                }
            }
        )*

        impl PlainKernels for $key {
            #[inline(always)]
            fn below(level: Level, keys: &[u8], key: Self) -> Option<usize> {
                assert!(keys.len().is_multiple_of(64) && keys.len() <= 64 * size_of::<$key>());
                // SAFETY: a `Level` is always one that this machine has, and the assertion checks the length.
                Some(unsafe {
                    match level {
                        Level::Scalar => return None,
                        Level::Sse4 => $sse(keys, key),
                        Level::Avx2 => $avx2(keys, key),
                        Level::Avx512 | Level::Vbmi => $avx512(keys, key),
                    }
                })
            }
        }
    };
}

kernels!(u32, sse32 avx2x32 avx512x32, Sse4 sse32 Sse32, Avx2 avx2x32 Avx2x32, Avx512 avx512x32 Avx512x32,);
kernels!(u64, sse64 avx2x64 avx512x64, Sse4 sse64 Sse64, Avx2 avx2x64 Avx2x64, Avx512 avx512x64 Avx512x64,);

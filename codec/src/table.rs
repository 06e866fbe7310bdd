//! A table of the functions for reading operations, by level and codec. A call is one indirect jump into code that was
//! compiled for this machine, scalar parts included.

use core::marker::PhantomData;

use crate::bp128::Bp128;
use crate::frame::For;
use crate::gaps::Gapped;
use crate::plain::Plain;
use crate::scheme::{Scheme, body};
use crate::simd_for::SimdFor;
use crate::stream_vbyte::StreamVByte;
use crate::varint_gb::VarIntGb;
use crate::vbyte::{MaskedVByte, VByte};
use crate::{Block, Buffer, Codec, Error, Found, Int, Level, Result};

type Decode<T> = unsafe fn(&Block<T>, &[u8], &mut Buffer<T>) -> Result<()>;

/// The reading operations of one codec at one level.
///
/// # Safety
/// To call one, the machine must have the level.
pub(crate) struct Operations<T> {
    pub(crate) decode: Decode<T>,
    pub(crate) select: unsafe fn(&Block<T>, &[u8], usize) -> Result<T>,
    pub(crate) lower_bound: unsafe fn(&Block<T>, &[u8], T) -> Result<Found>,
    pub(crate) sum: unsafe fn(&Block<T>, &[u8]) -> Result<u128>,
}

impl<T: Int> Operations<T> {
    /// The operations of `codec` at `level`.
    #[inline(always)]
    #[allow(clippy::indexing_slicing, reason = "both tables have an entry for every discriminant")]
    pub(crate) fn of(level: Level, codec: Codec) -> &'static Operations<T> {
        &Table::<T>::LEVELS[level as usize][codec as usize]
    }
}

struct Table<T>(PhantomData<T>);

// The discriminants are indexes of the table.
#[allow(clippy::indexing_slicing, reason = "done by the compiler, which would refuse one that fails")]
const _: () = {
    let mut at = 0;
    while at < Codec::ALL.len() {
        assert!(Codec::ALL[at] as usize == at);
        at += 1;
    }
};

#[cfg(target_arch = "x86_64")]
impl<T: Int> Table<T> {
    const LEVELS: &'static [[Operations<T>; Codec::ALL.len()]; 5] = &[
        operations_at!(scalar),
        operations_at!(sse4),
        operations_at!(avx2),
        operations_at!(avx512),
        operations_at!(vbmi),
    ];
}

#[cfg(not(target_arch = "x86_64"))]
impl<T: Int> Table<T> {
    const LEVELS: &'static [[Operations<T>; Codec::ALL.len()]; 5] = &[
        operations_at!(scalar),
        operations_at!(scalar),
        operations_at!(scalar),
        operations_at!(scalar),
        operations_at!(scalar),
    ];
}

/// The functions of one level.
macro_rules! level {
    ($module:ident, $level:ident) => {
        mod $module {
            use super::*;

            compiled_for! { $level,
                fn decode<T: Int, S: Scheme<T>>(block: &Block<T>, bytes: &[u8], out: &mut Buffer<T>) -> Result<()> {
                    super::decode::<T, S>(Level::$level, block, bytes, out)
                }

                fn select<T: Int, S: Scheme<T>>(block: &Block<T>, bytes: &[u8], index: usize) -> Result<T> {
                    match peek::<T, S>(block, bytes, index) {
                        Some(key) => Ok(key),
                        None => pick::<T, S>(block, bytes, index),
                    }
                }

                /// A separate function, so that the fast path does not pay for it.
                #[inline(never)]
                fn pick<T: Int, S: Scheme<T>>(block: &Block<T>, bytes: &[u8], index: usize) -> Result<T> {
                    super::select::<T, S>(Level::$level, block, bytes, index)
                }

                fn lower_bound<T: Int, S: Scheme<T>>(block: &Block<T>, bytes: &[u8], key: T) -> Result<Found> {
                    match find::<T, S>(Level::$level, block, bytes, key) {
                        Some(found) => Ok(found),
                        None => search::<T, S>(block, bytes, key),
                    }
                }

                /// A separate function, so that the fast path does not pay for it.
                #[inline(never)]
                fn search<T: Int, S: Scheme<T>>(block: &Block<T>, bytes: &[u8], key: T) -> Result<Found> {
                    super::lower_bound::<T, S>(Level::$level, block, bytes, key)
                }

                fn sum<T: Int, S: Scheme<T>>(block: &Block<T>, bytes: &[u8]) -> Result<u128> {
                    super::sum::<T, S>(Level::$level, block, bytes)
                }
            }

            pub(super) const fn operations<T: Int, S: Scheme<T>>() -> Operations<T> {
                Operations {
                    decode: decode::<T, S>,
                    select: select::<T, S>,
                    lower_bound: lower_bound::<T, S>,
                    sum: sum::<T, S>,
                }
            }
        }
    };
}

level!(scalar, Scalar);
#[cfg(target_arch = "x86_64")]
level!(sse4, Sse4);
#[cfg(target_arch = "x86_64")]
level!(avx2, Avx2);
#[cfg(target_arch = "x86_64")]
level!(avx512, Avx512);
#[cfg(target_arch = "x86_64")]
level!(vbmi, Vbmi);

#[inline(always)]
fn decode<T: Int, S: Scheme<T>>(level: Level, block: &Block<T>, bytes: &[u8], out: &mut Buffer<T>) -> Result<()> {
    let body = body::<T, S>(block, bytes)?;
    if block.count == 0 { Ok(()) } else { S::decode(level, block, body, out) }
}

#[inline(always)]
fn peek<T: Int, S: Scheme<T>>(block: &Block<T>, bytes: &[u8], index: usize) -> Option<T> {
    if 0 < index && index < usize::from(block.count) { S::peek(block, bytes, index) } else { None }
}

#[inline(always)]
fn select<T: Int, S: Scheme<T>>(level: Level, block: &Block<T>, bytes: &[u8], index: usize) -> Result<T> {
    if index >= usize::from(block.count) {
        return Err(Error::OutOfRange);
    }
    if index == 0 {
        return Ok(block.first);
    }
    S::select(level, block, body::<T, S>(block, bytes)?, index)
}

/// Searches for `key`, if there is a fast way to do so.
#[inline(always)]
pub(crate) fn find<T: Int, S: Scheme<T>>(level: Level, block: &Block<T>, bytes: &[u8], key: T) -> Option<Found> {
    if block.first < key && key <= block.last { S::find(level, block, bytes, key) } else { None }
}

#[inline(always)]
fn lower_bound<T: Int, S: Scheme<T>>(level: Level, block: &Block<T>, bytes: &[u8], key: T) -> Result<Found> {
    let body = body::<T, S>(block, bytes)?;
    let count = usize::from(block.count);
    if count == 0 || key <= block.first {
        return Ok(Found { index: 0, exact: count > 0 && key == block.first });
    }
    if key > block.last {
        return Ok(Found { index: count, exact: false });
    }
    // Only a hostile descriptor has one key and `first < last`.
    if count == 1 {
        return Err(Error::Corrupt("one key, but two bounds"));
    }
    S::lower_bound(level, block, body, key)
}

#[inline(always)]
fn sum<T: Int, S: Scheme<T>>(level: Level, block: &Block<T>, bytes: &[u8]) -> Result<u128> {
    let body = body::<T, S>(block, bytes)?;
    if block.count == 0 { Ok(0) } else { S::sum(level, block, body) }
}

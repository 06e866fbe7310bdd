//! Sorted-integer block codecs, slice to slice.
//!
//! A *block* is up to [`MAX_BLOCK`] strictly increasing `u32` or `u64` keys in one codec's bytes, described by a
//! [`Block`] that the caller keeps (in a key list: the block index). [`Codec`] names the codec and has every
//! operation; each works on the compressed bytes. The byte layouts, with worked examples, are in
//! `docs/layouts/integers.md`.
//!
//! No pages, no I/O and no allocation belong here. Bytes and descriptors are not trusted: whatever they hold, an
//! operation gives a result or an [`Error`] and stays inside the slice. A result is only as meaningful as the bytes;
//! [`Codec::check`] says whether they are what an encoder could have written.
//!
//! ```
//! use duramen_codec::{Block, Codec, MAX_BLOCK};
//!
//! let mut bytes = [0u8; 64];
//! let mut block: Block<u32> = Codec::Bp128.encode(&[500, 521, 531, 574], &mut bytes)?;
//! assert_eq!(Codec::Bp128.lower_bound(&block, &bytes, 530)?.index, 2);
//! Codec::Bp128.append(&mut block, &mut bytes, 580)?;
//! let mut out = [0u32; MAX_BLOCK];
//! assert_eq!(Codec::Bp128.decode(&block, &bytes, &mut out)?, [500, 521, 531, 574, 580]);
//! assert_eq!(Codec::Bp128.sum(&block, &bytes)?, 2706);
//! # Ok::<(), duramen_codec::Error>(())
//! ```
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::cast_possible_truncation
    )
)]

#[macro_use]
mod level;

#[cfg(target_arch = "x86_64")]
mod avx512;
mod bits;
mod block;
mod bp128;
#[macro_use]
mod codec;
mod error;
mod frame;
mod gaps;
mod guess;
mod int;
mod lanes;
mod plain;
mod scheme;
mod simd_for;
mod stream_vbyte;
mod table;
mod varint_gb;
mod vbyte;

pub use block::{Block, Buffer, Edit, Found, MAX_BLOCK};
pub use codec::{Codec, UnknownCodec};
pub use error::{Error, Result};
pub use int::Int;
pub use level::Level;

#[cfg(test)]
mod tests;

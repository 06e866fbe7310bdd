//! Codecs for blocks of sorted integers, from slice to slice.
//!
//! A *block* is up to [`MAX_BLOCK`] strictly increasing `u32` or `u64` keys, encoded by one codec, with a [`Block`]
//! descriptor that the caller keeps (in a key list: in the block index). [`Codec`] names the codec and has all
//! operations, which work on the compressed bytes. `docs/layouts/integers.md` describes the byte layouts, with worked
//! examples.
//!
//! The crate allocates nothing, and does no I/O. Bytes and descriptors are not trusted: whatever their content, an
//! operation returns a result or an [`Error`] and stays inside the slice. If the bytes are not those of an encoder, the
//! result has no meaning; [`Codec::check`] tests this. A write that does not fit is never left out. If bytes can cause
//! it, the operation returns an error; if only a bug in this crate can cause it, the operation panics.
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

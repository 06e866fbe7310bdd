//! Blocks of LZ4, in safe code. The format is that of `lz4_Block_format.md`.
//!
//! Pages often have runs of one byte or of a few: padding, and integers with leading zeros. The decoder writes a run
//! many bytes at a time, and the encoder makes one sequence of it.

mod decode;
mod encode;
#[cfg(test)]
mod tests;

pub(super) use decode::decompress;
pub(super) use encode::Lz4Encoder;

/// The minimum number of bytes of a match.
const MIN_MATCH: usize = 4;
/// A length in a token that says that more of it follows.
const MORE: usize = 15;

/// The bytes at `at`; `None` if there are too few.
#[inline(always)]
fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// Copies `N` bytes, of which the caller may need only the first ones. False, and nothing is copied, if `from` has
/// fewer than `N` bytes there or `to` has no room for `N`.
#[inline(always)]
fn copied<const N: usize>(from: &[u8], at: usize, to: &mut [u8], pos: usize) -> bool {
    let source = from.get(at..).and_then(|rest| rest.first_chunk::<N>());
    let target = to.get_mut(pos..).and_then(|rest| rest.first_chunk_mut::<N>());
    match (source, target) {
        (Some(source), Some(target)) => {
            *target = *source;
            true
        }
        _ => false,
    }
}

/// Copies `len` literals. The bytes after them in `to` may be overwritten.
#[inline(always)]
fn copy_literals(from: &[u8], at: usize, to: &mut [u8], pos: usize, len: usize) -> Option<()> {
    // A copy whose length is a constant takes less time than one of exactly `len` bytes.
    let is_done = match len {
        0..=16 => copied::<16>(from, at, to, pos),
        17..=64 => copied::<64>(from, at, to, pos),
        _ => false,
    };
    if !is_done {
        let literals = from.get(at..at.checked_add(len)?)?;
        to.get_mut(pos..pos.checked_add(len)?)?.copy_from_slice(literals);
    }
    Some(())
}

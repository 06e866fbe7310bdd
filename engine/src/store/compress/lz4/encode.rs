//! Compresses a block: at each position the encoder looks up where the next four bytes occurred last.

use super::{MIN_MATCH, MORE, array, copy_literals};
use crate::base::bytes::common_prefix;
use std::ops::Range;

const ENTRIES: usize = 1 << ENTRY_BITS;
const ENTRY_BITS: u32 = 12;
/// The last match of a block begins at least this number of bytes before its end.
const LAST_MATCH: usize = 12;
/// The last bytes of a block are literals.
const LAST_LITERALS: usize = 5;
/// Each time the count of positions without a match has grown by this number, the encoder goes forward by one byte more
/// at each step.
const MISSES_OF_STEP: usize = 32;
/// A match reduces the count of positions without a match by this number, not below 0. If random bytes and others
/// alternate, the rest of the count grows. So after some time the encoder looks at about this many positions in a part
/// of random bytes.
const MISSES_OF_MATCH: usize = 16;

/// The memory of the encoder, for one block after another.
pub(in crate::store::compress) struct Lz4Encoder {
    /// The last position of four bytes with this hash, modulo 2^16: no match may be further away.
    seen: Box<[u16; ENTRIES]>,
}

impl Default for Lz4Encoder {
    fn default() -> Lz4Encoder {
        Lz4Encoder { seen: Box::new([0; ENTRIES]) }
    }
}

impl Lz4Encoder {
    /// Compresses `bytes` into the front of `out`, and returns the length of the block. The bytes after it in `out` may
    /// be overwritten. `None` if the block has no room. The same bytes always give the same block.
    pub(in crate::store::compress) fn compress(&mut self, bytes: &[u8], out: &mut [u8]) -> Option<usize> {
        self.seen.fill(0);
        let (mut at, mut pos, mut begin, mut misses) = (1, 0, 0, 0);
        while let Some((found, offset)) = self.next_match(bytes, at, &mut misses) {
            let before = common_before(bytes, begin, found, offset);
            let start = found - before;
            let more = before + common_after(bytes, found + MIN_MATCH, offset);
            pos = put_literals(out, pos, bytes, begin..start, more)?;
            pos = put_match(out, pos, offset, more)?;
            begin = start + MIN_MATCH + more;
            at = begin;
            self.note(bytes, at - 2);
        }
        put_literals(out, pos, bytes, begin..bytes.len(), 0)
    }

    /// The next position with four bytes that there were before, and how far before.
    #[inline(always)]
    fn next_match(&mut self, bytes: &[u8], mut at: usize, misses: &mut usize) -> Option<(usize, usize)> {
        *misses = misses.saturating_sub(MISSES_OF_MATCH);
        loop {
            // The byte before, and the bytes up to the end of the block that are needed.
            let near: [u8; 1 + LAST_MATCH] = array(bytes, at - 1)?;
            let eight = u64::from_le_bytes(*near.first_chunk()?);
            let (word, before) = (low_word(eight >> 8), low_word(eight));
            if word == before {
                return Some((at, 1));
            }
            let seen = self.seen.get_mut(hash(word))?;
            let offset = low_half(at).wrapping_sub(*seen);
            *seen = low_half(at);
            let offset = usize::from(offset);
            if offset > 0 && at.checked_sub(offset).and_then(|from| array(bytes, from)) == Some(word.to_le_bytes()) {
                return Some((at, offset));
            }
            at += 1 + *misses / MISSES_OF_STEP;
            *misses += 1;
        }
    }

    /// Notes `at` as the last position of its four bytes, unless these are four equal bytes: the noted position stays
    /// at the beginning of their run, so that a later run of this byte matches from there.
    #[inline(always)]
    fn note(&mut self, bytes: &[u8], at: usize) {
        if let Some(word) = array(bytes, at).map(u32::from_le_bytes)
            && word != word.rotate_left(8)
            && let Some(seen) = self.seen.get_mut(hash(word))
        {
            *seen = low_half(at);
        }
    }
}

#[inline(always)]
fn hash(word: u32) -> usize {
    (word.wrapping_mul(2_654_435_761) >> (u32::BITS - ENTRY_BITS)) as usize
}

#[allow(clippy::cast_possible_truncation)] // the low bits are meant
#[inline(always)]
fn low_word(bytes: u64) -> u32 {
    bytes as u32
}

#[allow(clippy::cast_possible_truncation)] // the low bits are meant
#[inline(always)]
fn low_half(position: usize) -> u16 {
    position as u16
}

/// How many bytes before `at`, and from `begin` on, are equal to those `offset` before.
#[inline(always)]
fn common_before(bytes: &[u8], begin: usize, at: usize, offset: usize) -> usize {
    let ours = bytes.get(begin..at).unwrap_or_default().iter().rev();
    let others = bytes.get(..at - offset).unwrap_or_default().iter().rev();
    ours.zip(others).take_while(|(a, b)| a == b).count()
}

/// How many bytes from `at` on are equal to those `offset` before. The last literals do not count.
#[inline(always)]
fn common_after(bytes: &[u8], at: usize, offset: usize) -> usize {
    let end = bytes.len().saturating_sub(LAST_LITERALS);
    let ours = bytes.get(at..end).unwrap_or_default();
    let others = bytes.get(at - offset..).unwrap_or_default();
    common_prefix(ours, others)
}

/// Writes the token of a sequence, and its literals. Its match has [`MIN_MATCH`] and `more` bytes.
#[inline(always)]
fn put_literals(out: &mut [u8], pos: usize, bytes: &[u8], literals: Range<usize>, more: usize) -> Option<usize> {
    let len = literals.len();
    put_byte(out, pos, (len.min(MORE) << 4) | more.min(MORE))?;
    let pos = put_rest(out, pos + 1, len)?;
    copy_literals(bytes, literals.start, out, pos, len)?;
    Some(pos + len)
}

/// Writes the rest of a sequence.
#[inline(always)]
fn put_match(out: &mut [u8], pos: usize, offset: usize, more: usize) -> Option<usize> {
    let field: &mut [u8; 2] = out.get_mut(pos..)?.first_chunk_mut()?;
    *field = low_half(offset).to_le_bytes();
    put_rest(out, pos + 2, more)
}

/// Writes what of a length does not fit its token.
#[inline(always)]
fn put_rest(out: &mut [u8], mut pos: usize, len: usize) -> Option<usize> {
    if let Some(mut rest) = len.checked_sub(MORE) {
        while rest >= 255 {
            put_byte(out, pos, 255)?;
            (pos, rest) = (pos + 1, rest - 255);
        }
        put_byte(out, pos, rest)?;
        pos += 1;
    }
    Some(pos)
}

/// Writes a number below 256.
#[allow(clippy::cast_possible_truncation)] // `byte` is below 256
#[inline(always)]
fn put_byte(out: &mut [u8], pos: usize, byte: usize) -> Option<()> {
    *out.get_mut(pos)? = byte as u8;
    Some(())
}

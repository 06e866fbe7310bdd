//! Decompresses a block. Any bytes are safe.

use super::{MIN_MATCH, MORE, array, copy_literals};

/// Bytes that are written at a time.
const WIDE: usize = 32;
/// Bytes that are copied for a short match. The longest one has 18.
const SHORT: usize = 18;

/// Decompresses `block` into the front of `out`, and returns how many bytes there are. The bytes after them in `out`
/// may be overwritten. `None` if the block is damaged, or if its bytes have no room.
pub(in crate::store::compress) fn decompress(block: &[u8], out: &mut [u8]) -> Option<usize> {
    let (mut at, mut pos) = (0, 0);
    loop {
        let token = usize::from(*block.get(at)?);
        at += 1;
        let (mut literals, mut len) = (token >> 4, (token & 15) + MIN_MATCH);
        if let Some(offset) = short_sequence(block, at, out, pos, token) {
            at += literals + 2;
            pos += literals;
            copy_match(out, pos, offset, len)?;
            pos += len;
            continue;
        }
        if literals == MORE {
            literals += more(block, &mut at)?;
        }
        copy_literals(block, at, out, pos, literals)?;
        at += literals;
        pos += literals;
        if at == block.len() {
            return Some(pos);
        }
        let offset = usize::from(u16::from_le_bytes(array(block, at)?));
        at += 2;
        if len == MORE + MIN_MATCH {
            len += more(block, &mut at)?;
        }
        copy_match(out, pos, offset, len)?;
        pos += len;
    }
}

/// Copies the literals of a sequence whose lengths are both in the token, and returns the offset of its match. `None`,
/// and nothing is copied, if it is no such sequence or too near the end of either buffer.
#[inline(always)]
fn short_sequence(block: &[u8], at: usize, out: &mut [u8], pos: usize, token: usize) -> Option<usize> {
    let literals = token >> 4;
    if literals == MORE || token & 15 == MORE {
        return None;
    }
    let near: &[u8; 18] = block.get(at..)?.first_chunk()?;
    let target: &mut [u8; 16] = out.get_mut(pos..)?.first_chunk_mut()?;
    *target = *near.first_chunk()?;
    array(near, literals).map(|offset| usize::from(u16::from_le_bytes(offset)))
}

/// The rest of a length that does not fit its token.
#[inline]
fn more(block: &[u8], at: &mut usize) -> Option<usize> {
    let mut sum = 0;
    loop {
        let byte = *block.get(*at)?;
        *at += 1;
        sum += usize::from(byte);
        if byte != u8::MAX {
            return Some(sum);
        }
    }
}

/// Writes `len` bytes at `pos`, equal to those `offset` bytes before, some of which this may write itself.
#[inline(always)]
fn copy_match(out: &mut [u8], pos: usize, offset: usize, len: usize) -> Option<()> {
    let from = pos.checked_sub(offset).filter(|_| offset > 0)?;
    let room = out.len().checked_sub(pos).filter(|room| *room >= len)?;
    if offset < len {
        return repeat(out, pos, offset, len);
    }
    // A copy whose length is a constant takes less time than one of exactly `len` bytes.
    match len {
        0..=SHORT if room >= SHORT => out.copy_within(from..from + SHORT, pos),
        0..=64 if room >= 64 => out.copy_within(from..from + 64, pos),
        _ => out.copy_within(from..from + len, pos),
    }
    Some(())
}

/// Repeats the `offset` bytes before `pos` until there are `len` bytes, more than `offset`. They have room.
#[inline]
fn repeat(out: &mut [u8], pos: usize, offset: usize, len: usize) -> Option<()> {
    let from = pos - offset;
    let unit = match offset {
        1 => u64::from(*out.get(from)?) * 0x0101_0101_0101_0101,
        2 => u64::from(u16::from_le_bytes(array(out, from)?)) * 0x0001_0001_0001_0001,
        4 => u64::from(u32::from_le_bytes(array(out, from)?)) * 0x0000_0001_0000_0001,
        8 => u64::from_le_bytes(array(out, from)?),
        _ => {
            double(out, from, offset, offset + len);
            return Some(());
        }
    };
    let mut wide = [0; WIDE];
    wide.chunks_exact_mut(8).for_each(|part| part.copy_from_slice(&unit.to_le_bytes()));
    let (wides, rest) = out.get_mut(pos..)?.as_chunks_mut::<WIDE>();
    let (whole, left) = (len / WIDE, len % WIDE);
    wides.iter_mut().take(whole).for_each(|part| *part = wide);
    match wides.get_mut(whole) {
        // The bytes after the match are overwritten.
        Some(part) if left > 0 => *part = wide,
        Some(_) => {}
        None => rest.get_mut(..left)?.copy_from_slice(wide.get(..left)?),
    }
    Some(())
}

/// Repeats the first `done` bytes from `from` on until there are `len`.
fn double(out: &mut [u8], from: usize, mut done: usize, len: usize) {
    while done < len {
        let step = done.min(len - done);
        out.copy_within(from..from + step, from + done);
        done += step;
    }
}

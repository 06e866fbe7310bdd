//! Splits a request at the boundaries of device blocks.

/// The size of a device block in bytes. A file in memory allocates, locks and trims whole blocks.
pub(crate) const BLOCK: usize = 4096;

/// The size of a sector in bytes: the least that a device writes as a whole.
pub(crate) const SECTOR: usize = 512;

/// The part of a request that lies in one block.
pub(crate) struct BlockPart {
    /// The number of the block.
    pub(crate) block: u64,
    /// The offset in the block.
    pub(crate) start: usize,
    /// The offset in the request's buffer.
    pub(crate) at: usize,
    pub(crate) len: usize,
}

/// Splits the `len` bytes at `offset` at the boundaries of blocks.
pub(crate) fn parts(offset: u64, len: usize) -> impl Iterator<Item = BlockPart> {
    let start = usize::try_from(offset % BLOCK as u64).unwrap_or_default();
    let mut next = BlockPart { block: offset / BLOCK as u64, start, at: 0, len: len.min(BLOCK - start) };
    std::iter::from_fn(move || {
        if next.len == 0 {
            return None;
        }
        let at = next.at + next.len;
        let following = BlockPart { block: next.block.saturating_add(1), start: 0, at, len: (len - at).min(BLOCK) };
        Some(std::mem::replace(&mut next, following))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_side_by_side_each_in_its_block() {
        for (offset, len, blocks) in [(0, 0, 0), (4095, 1, 1), (4095, 2, 2), (5000, 9000, 3), (8192, 4096, 1)] {
            let (mut at, mut count) = (0, 0);
            for part in parts(offset, len) {
                assert_eq!((part.at, part.block * 4096 + part.start as u64), (at, offset + at as u64));
                assert!(part.len > 0 && part.start + part.len <= BLOCK);
                (at, count) = (at + part.len, count + 1);
            }
            assert_eq!((at, count), (len, blocks), "{len} at {offset}");
        }
    }
}

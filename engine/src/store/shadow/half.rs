//! The bytes of one slot of a page and of the delta blocks beside it, as they are in the file.

use super::slot::Side;
use crate::base::bytes::slice;
use crate::io::BLOCK;

/// A slot with all delta blocks beside it, or the first ones. Those of the second slot are in front of it, the first
/// one next to the slot.
#[derive(Clone, Copy)]
pub(super) struct Half<'a> {
    bytes: &'a [u8],
    side: Side,
    /// Bytes of the slot.
    slot: usize,
}

impl<'a> Half<'a> {
    /// `bytes` has the slot of that side and delta blocks.
    pub(super) fn new(bytes: &'a [u8], side: Side, slot: usize) -> Half<'a> {
        Half { bytes, side, slot }
    }

    /// The same, from the bytes of a whole cell.
    pub(super) fn of_cell(cell: &'a [u8], side: Side, slot: usize) -> Half<'a> {
        let end = cell.len().saturating_sub(slot);
        match side {
            Side::First => Half::new(slice(cell, 0, end), side, slot),
            Side::Second => Half::new(slice(cell, slot.min(end), cell.len()), side, slot),
        }
    }

    /// The slot.
    pub(super) fn slot(self) -> &'a [u8] {
        match self.side {
            Side::First => slice(self.bytes, 0, self.slot),
            Side::Second => slice(self.bytes, self.bytes.len().saturating_sub(self.slot), self.bytes.len()),
        }
    }

    /// How many delta blocks there are.
    pub(super) fn count(self) -> usize {
        self.bytes.len().saturating_sub(self.slot) / BLOCK
    }

    /// A delta block.
    pub(super) fn block(self, index: usize) -> &'a [u8] {
        let start = match self.side {
            Side::First => self.slot + index * BLOCK,
            Side::Second => self.bytes.len().saturating_sub(self.slot + (index + 1) * BLOCK),
        };
        slice(self.bytes, start, start + BLOCK)
    }

    /// The delta blocks, from the one next to the slot on.
    pub(super) fn blocks(self) -> impl Iterator<Item = &'a [u8]> {
        (0..self.count()).map(move |index| self.block(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delta_blocks_are_counted_from_the_slot_on() {
        let (slot, blocks) = (2 * BLOCK, 3);
        let cell: Vec<u8> = (0..2 * slot + blocks * BLOCK).map(|at| (at / BLOCK) as u8).collect();
        for (side, slot_is, blocks_are) in [(Side::First, [0, 1], [2, 3, 4]), (Side::Second, [5, 6], [4, 3, 2])] {
            let half = Half::of_cell(&cell, side, slot);
            assert_eq!((half.slot().len(), half.count()), (slot, blocks));
            assert_eq!([half.slot()[0], half.slot()[slot - 1]], slot_is);
            assert_eq!(half.blocks().map(|block| block[0]).collect::<Vec<_>>(), blocks_are);
        }
    }
}

//! A slot area: the bytes of one slot of a page and of the delta blocks beside it, as they are in the file.

use super::slot::SlotIndex;
use crate::base::bytes::slice;
use crate::io::BLOCK;

/// A slot with all delta blocks beside it, or the first ones. Those of the second slot are in front of it, the first
/// one next to the slot.
#[derive(Clone, Copy)]
pub(super) struct SlotArea<'a> {
    bytes: &'a [u8],
    slot_index: SlotIndex,
    /// Bytes of the slot.
    slot: usize,
}

impl<'a> SlotArea<'a> {
    /// `bytes` has the slot with this index and delta blocks.
    pub(super) fn new(bytes: &'a [u8], slot_index: SlotIndex, slot: usize) -> SlotArea<'a> {
        SlotArea { bytes, slot_index, slot }
    }

    /// The same, from the bytes of a whole page area.
    pub(super) fn of_page_area(area: &'a [u8], slot_index: SlotIndex, slot: usize) -> SlotArea<'a> {
        let end = area.len().saturating_sub(slot);
        match slot_index {
            SlotIndex::First => SlotArea::new(slice(area, 0, end), slot_index, slot),
            SlotIndex::Second => SlotArea::new(slice(area, slot.min(end), area.len()), slot_index, slot),
        }
    }

    /// The slot.
    pub(super) fn slot(self) -> &'a [u8] {
        match self.slot_index {
            SlotIndex::First => slice(self.bytes, 0, self.slot),
            SlotIndex::Second => slice(self.bytes, self.bytes.len().saturating_sub(self.slot), self.bytes.len()),
        }
    }

    /// How many delta blocks there are.
    pub(super) fn count(self) -> usize {
        self.bytes.len().saturating_sub(self.slot) / BLOCK
    }

    /// A delta block.
    pub(super) fn block(self, index: usize) -> &'a [u8] {
        let start = match self.slot_index {
            SlotIndex::First => self.slot + index * BLOCK,
            SlotIndex::Second => self.bytes.len().saturating_sub(self.slot + (index + 1) * BLOCK),
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
        let area: Vec<u8> = (0..2 * slot + blocks * BLOCK).map(|at| (at / BLOCK) as u8).collect();
        for (slot_index, slot_is, blocks_are) in
            [(SlotIndex::First, [0, 1], [2, 3, 4]), (SlotIndex::Second, [5, 6], [4, 3, 2])]
        {
            let slot_area = SlotArea::of_page_area(&area, slot_index, slot);
            assert_eq!((slot_area.slot().len(), slot_area.count()), (slot, blocks));
            assert_eq!([slot_area.slot()[0], slot_area.slot()[slot - 1]], slot_is);
            assert_eq!(slot_area.blocks().map(|block| block[0]).collect::<Vec<_>>(), blocks_are);
        }
    }
}

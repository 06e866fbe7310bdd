//! Decides which delta blocks of a page are valid, and applies them.
//!
//! A delta is valid if it was written for this image of the slot and for exactly the deltas before it: its checksum of
//! the resulting page must be right. So a chain ends at the first delta that was not written, even if later ones were.
//!
//! A delta is written only beside an image that is durable. So a sound delta of an image newer than that in the slot
//! shows that the newer image is damaged, that its write was lost, or that the log has lost its changes.

use super::choice::KnownPage;
use super::delta::{DeltaBlock, DeltaFields, Order, is_first, is_next};
use super::slot::{Geometry, ImageStamp};
use super::slot_area::SlotArea;
use super::states::ValidDeltas;
use crate::base::bytes::{are_zero, slice};
use crate::base::{Lsn, PageId};
use crate::io::SECTOR;
use crate::store::ChangedParts;

/// The image in the slot that the deltas change.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeltaBase {
    pub(super) stamp: ImageStamp,
    pub(super) lsn: Lsn,
}

/// The result of reading the delta blocks of a page.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// The valid deltas.
    pub(super) valid: ValidDeltas,
    /// Blocks of valid deltas that no sync may have made durable yet.
    pub(super) unsynced: Vec<usize>,
    /// Blocks that must be cleared: later they would be taken for damage, or for a valid delta.
    pub(super) invalid: Vec<usize>,
    /// A block has a delta, or the front of the slot has bytes, that are not needed.
    pub(super) superseded: bool,
    /// The parts in which the page differs from the image in the slot, if all deltas are cumulative.
    pub(super) parts: ChangedParts,
}

impl Chain {
    /// The result for a page without an image.
    pub(super) fn without_base(geometry: &Geometry, id: PageId, slot_area: SlotArea<'_>) -> Chain {
        let mut chain = Chain::default();
        for (index, block) in slot_area.blocks().enumerate() {
            match geometry.look_delta(block, id) {
                DeltaBlock::Empty => {}
                DeltaBlock::Sound(_) => chain.superseded = true,
                DeltaBlock::Damaged(_) => chain.invalid.push(index),
            }
        }
        chain
    }

    /// Applies the valid deltas beside `base` to `page`, which has the image in the slot. An error says what is wrong.
    pub(super) fn apply(
        geometry: &Geometry,
        id: PageId,
        slot_area: SlotArea<'_>,
        base: DeltaBase,
        known: &KnownPage,
        page: &mut [u8],
    ) -> Result<Chain, String> {
        if slot_area.count() == 0 {
            return Ok(Chain::default());
        }
        let blocks: Vec<DeltaBlock> = slot_area.blocks().map(|block| geometry.look_delta(block, id)).collect();
        let mut walk = ChainWalk { geometry, slot_area, base, known, blocks: &blocks, page, before: Vec::new() };
        let mut chain = Chain::default();
        if !walk.apply_cumulative(&mut chain)? {
            walk.apply_all(&mut chain);
            walk.check_overwritten()?;
        }
        walk.check_others(&mut chain)?;
        Ok(chain)
    }
}

/// The message for a part of a page area, such as an image, that the device has damaged.
pub(super) fn wrong_checksum(part: &str) -> String {
    format!("{part} does not match its checksum")
}

/// The message for a part of a page area, such as an image, in whose place the device has an older one.
pub(super) fn last_is_lost(part: &str) -> String {
    format!("the {part} that was written last is lost")
}

/// Applies the deltas of a page whose state is known. Returns the parts in which the page differs from the image in the
/// slot, if the delta is cumulative. The content of the other blocks does not matter. An error says what is wrong.
pub(super) fn apply_valid(
    geometry: &Geometry,
    id: PageId,
    slot_area: SlotArea<'_>,
    base: DeltaBase,
    valid: ValidDeltas,
    page: &mut [u8],
) -> Result<ChangedParts, String> {
    let mut parts = ChangedParts::NONE;
    for (index, order) in valid.in_order(slot_area.count()) {
        let DeltaBlock::Sound(delta) = geometry.look_delta(slot_area.block(index), id) else {
            return Err(wrong_checksum(&format!("delta block {index}")));
        };
        let is_last = delta.order == order && is_ours(&delta, base);
        let applied = if is_last { geometry.apply_delta(slot_area.block(index), page) } else { None };
        let applied = applied.ok_or_else(|| last_is_lost("delta block"))?;
        if matches!(order, Order::Cumulative(_)) {
            parts = applied;
        }
    }
    Ok(parts)
}

/// True if the fields of the delta say that it was written for this image.
fn is_ours(delta: &DeltaFields, base: DeltaBase) -> bool {
    delta.stamp.sequence == base.stamp.sequence
        && delta.stamp.generation >= base.stamp.generation
        && delta.lsn >= base.lsn
}

struct ChainWalk<'a> {
    geometry: &'a Geometry,
    slot_area: SlotArea<'a>,
    base: DeltaBase,
    known: &'a KnownPage,
    blocks: &'a [DeltaBlock],
    page: &'a mut [u8],
    /// The page before a delta that may not belong to it.
    before: Vec<u8>,
}

impl ChainWalk<'_> {
    fn is_ours(&self, delta: &DeltaFields) -> bool {
        is_ours(delta, self.base)
    }

    fn is_unsynced(&self, delta: &DeltaFields) -> bool {
        delta.stamp.generation >= self.known.generation
    }

    /// A delta that may be valid.
    fn sound(&self, index: usize) -> Option<DeltaFields> {
        match self.blocks.get(index) {
            Some(DeltaBlock::Sound(delta)) if self.is_ours(delta) && !self.known.has_lost(delta.stamp, delta.lsn) => {
                Some(*delta)
            }
            _ => None,
        }
    }

    /// Applies a delta if it belongs to the page.
    fn apply(&mut self, index: usize) -> Option<ChangedParts> {
        self.before.clear();
        self.before.extend_from_slice(self.page);
        let applied = self.geometry.apply_delta(self.slot_area.block(index), self.page);
        if applied.is_none() {
            self.page.copy_from_slice(&self.before);
        }
        applied
    }

    /// Applies the newest cumulative delta; false if there is none.
    fn apply_cumulative(&mut self, chain: &mut Chain) -> Result<bool, String> {
        let mut newest: Option<(usize, DeltaFields, u8)> = None;
        for index in 0..self.slot_area.count().min(2) {
            let Some(delta) = self.sound(index) else { continue };
            let Order::Cumulative(number) = delta.order else { continue };
            if newest.is_none_or(|(_, _, other)| is_next(other, number)) {
                newest = Some((index, delta, number));
            }
        }
        let Some((index, delta, number)) = newest else { return Ok(false) };
        let parts = self.apply(index).ok_or("its delta block belongs to another image")?;
        chain.valid = ValidDeltas::Cumulative(number);
        chain.parts = parts;
        if self.is_unsynced(&delta) {
            chain.unsynced.push(index);
        }
        Ok(true)
    }

    /// Applies a chain of deltas.
    fn apply_all(&mut self, chain: &mut Chain) {
        for index in 0..self.blocks.len() {
            let Some(delta) = self.sound(index) else { return };
            let next = u8::try_from(index).unwrap_or(u8::MAX);
            if delta.order != Order::After(next) || self.apply(index).is_none() {
                return;
            }
            chain.valid = ValidDeltas::Chain(next + 1);
            if self.is_unsynced(&delta) {
                chain.unsynced.push(index);
            }
        }
    }

    /// Called if no cumulative delta is valid. Fails if a delta that is invalidated, because the log has lost its
    /// change, may have overwritten a durable delta: then the image in the slot may lack durable changes. The first
    /// delta of an image overwrites no delta, so it is no error.
    fn check_overwritten(&self) -> Result<(), String> {
        let invalidated = |block: &DeltaBlock| match block {
            DeltaBlock::Sound(delta) if self.is_ours(delta) && self.known.has_lost(delta.stamp, delta.lsn) => {
                match delta.order {
                    Order::Cumulative(number) => Some(is_first(number)),
                    Order::After(_) => None,
                }
            }
            _ => None,
        };
        let mut firsts = self.blocks.iter().filter_map(invalidated).peekable();
        if firsts.peek().is_some() && !firsts.any(|is_first| is_first) && !self.known.accepts_any {
            return Err("its delta block has a change that the log has lost".into());
        }
        Ok(())
    }

    /// True if a sound delta belongs to a newer image than the one in the slot. A delta is written only beside an image
    /// that is durable. So the newer image is damaged, or its write was lost, or it is invalidated.
    fn is_of_newer_image(&self, delta: &DeltaFields) -> bool {
        let DeltaBase { stamp, lsn } = self.base;
        delta.stamp.sequence == ImageStamp::next_sequence(stamp.sequence)
            && delta.stamp.generation >= stamp.generation
            && delta.lsn >= lsn
    }

    /// True if a delta of a newer image may have overwritten a delta of the image in the slot. A delta of this image in
    /// a block follows deltas of this image in all blocks before, and they were written before the newer image.
    fn may_have_overwritten(&self, index: usize, delta: &DeltaFields, valid: ValidDeltas) -> bool {
        let Some(before) = index.checked_sub(1) else { return true };
        match self.blocks.get(before) {
            Some(DeltaBlock::Damaged(torn)) => !self.may_be_torn_later(before, torn, delta, valid),
            _ => self.sound(before).is_some_and(|before| before.stamp.generation <= delta.stamp.generation),
        }
    }

    /// True if a damaged block may be a delta that a process was writing after the newer image of `delta` was lost: the
    /// block was empty before, or its header is of a later process.
    fn may_be_torn_later(&self, index: usize, torn: &DeltaFields, delta: &DeltaFields, valid: ValidDeltas) -> bool {
        self.may_be_torn(index, torn, valid)
            && (self.begins_with_zeros(index) || torn.stamp.generation > delta.stamp.generation)
    }

    fn begins_with_zeros(&self, index: usize) -> bool {
        are_zero(slice(self.slot_area.block(index), 0, SECTOR))
    }

    /// True if a sound delta shows that the page has lost changes that are before the end of the log. If the newer
    /// image of the delta is invalidated, only deltas that this image had before may be lost.
    fn shows_loss(&self, index: usize, delta: &DeltaFields, valid: ValidDeltas) -> bool {
        self.is_of_newer_image(delta)
            && (!self.known.has_lost(delta.stamp, delta.lsn) || self.may_have_overwritten(index, delta, valid))
            && !self.known.accepts_any
    }

    /// Looks at the blocks whose deltas are not valid. A delta that a sync has made durable is valid, unless newer ones
    /// replace it.
    fn check_others(&self, chain: &mut Chain) -> Result<(), String> {
        for (index, block) in self.blocks.iter().enumerate() {
            match block {
                DeltaBlock::Empty => {}
                DeltaBlock::Sound(delta) if self.shows_loss(index, delta, chain.valid) => {
                    return Err(format!("delta block {index} belongs to a newer image, which is lost"));
                }
                DeltaBlock::Sound(delta) if self.known.has_lost(delta.stamp, delta.lsn) => chain.invalid.push(index),
                DeltaBlock::Sound(delta) if chain.valid.may_contain(index) && self.is_ours(delta) => {}
                DeltaBlock::Sound(delta) if self.is_ours(delta) => {
                    match self.is_unsynced(delta) || self.known.accepts_any {
                        true => chain.invalid.push(index),
                        false => return Err(format!("delta block {index} follows a delta block that is lost")),
                    }
                }
                DeltaBlock::Sound(_) => chain.superseded = true,
                DeltaBlock::Damaged(_) if self.known.accepts_any => {}
                DeltaBlock::Damaged(delta) if self.may_be_torn(index, delta, chain.valid) => chain.invalid.push(index),
                DeltaBlock::Damaged(_) => return Err(format!("delta block {index} is damaged")),
            }
        }
        Ok(())
    }

    /// True if a damaged block may be a delta whose write was cut off. Its first sector, with the header, is then
    /// zeros, that of an older delta, or that of the delta that was being written. Nothing that a sync has made durable
    /// and that is newer than the deltas in use looks like that.
    fn may_be_torn(&self, index: usize, delta: &DeltaFields, valid: ValidDeltas) -> bool {
        let is_zeros = self.begins_with_zeros(index);
        let is_invalidated = self.known.has_lost(delta.stamp, delta.lsn);
        let DeltaBase { stamp, lsn } = self.base;
        let is_of_older_image = (delta.stamp.sequence != stamp.sequence || delta.stamp.generation < stamp.generation)
            && delta.stamp.generation <= stamp.generation
            && (delta.lsn <= lsn || is_invalidated);
        let is_replaced = self.is_ours(delta) && valid.replaces(delta.order);
        let is_in_place = match delta.order {
            Order::After(before) => usize::from(before) == index,
            Order::Cumulative(_) => index < 2,
        };
        let was_being_written =
            delta.stamp.sequence == stamp.sequence && self.known.may_be_unsynced(delta.stamp, delta.lsn) && is_in_place;
        self.known.is_recovering() && (is_zeros || is_of_older_image || is_replaced || was_being_written)
    }
}

#[cfg(test)]
mod tests {
    use super::super::delta::Segments;
    use super::super::log_ends::RecoveredLogEnds;
    use super::super::slot::SlotIndex;
    use super::*;
    use crate::io::BLOCK;
    use crate::store::tests::sample_of;

    const ID: PageId = PageId(3);
    const BASE: DeltaBase = DeltaBase { stamp: ImageStamp { sequence: 9, rewrites: 0, generation: 4 }, lsn: Lsn(100) };
    /// Generations before 6 are synced.
    const KNOWN: KnownPage = KnownPage {
        generation: 6,
        in_log: true,
        redo: Lsn(1),
        lost: None,
        log_ends: RecoveredLogEnds::NONE,
        accepts_any: false,
    };
    const CLOSED: KnownPage = KnownPage { in_log: false, ..KNOWN };

    /// A slot with four delta blocks, and the page after each delta.
    struct TestArea {
        geometry: Geometry,
        bytes: Vec<u8>,
        pages: Vec<Vec<u8>>,
    }

    impl TestArea {
        fn new() -> TestArea {
            let geometry = Geometry::new(4096 - 16, 4, 99);
            let page = sample_of(geometry.page(), ID.0, BASE.lsn.0, 5);
            TestArea { geometry, bytes: vec![0; geometry.slot() + 4 * BLOCK], pages: vec![page] }
        }

        /// Writes a delta from the page `from` to the next page into a block.
        fn write(&mut self, index: usize, from: usize, generation: u32, order: Order) {
            let mut page = self.pages.last().unwrap().clone();
            page[0] += 1;
            page[200 + 40 * self.pages.len()] ^= 1;
            let changed = ChangedParts::between(&self.pages[from], &page);
            let segments = Segments::of(changed, page.len(), 16);
            let start = self.geometry.slot() + index * BLOCK;
            let block = &mut self.bytes[start..start + BLOCK];
            block.fill(0);
            self.geometry.fill_delta(block, &page, &segments);
            self.geometry.seal_delta(block, ID, ImageStamp { generation, ..BASE.stamp }, order);
            self.pages.push(page);
        }

        /// Writes a delta of the image after this one into a block.
        fn write_newer(&mut self, index: usize, generation: u32) {
            self.write(index, self.pages.len() - 1, generation, Order::After(0));
            let start = self.geometry.slot() + index * BLOCK;
            let stamp = ImageStamp { sequence: BASE.stamp.sequence + 1, rewrites: 0, generation };
            self.geometry.seal_delta(&mut self.bytes[start..start + BLOCK], ID, stamp, Order::After(0));
        }

        /// A chain of deltas of these generations.
        fn chain(generations: &[u32]) -> TestArea {
            let mut area = TestArea::new();
            for (index, generation) in generations.iter().enumerate() {
                area.write(index, index, *generation, Order::After(index as u8));
            }
            area
        }

        fn damage(&mut self, index: usize, at: usize) {
            self.bytes[self.geometry.slot() + index * BLOCK + at] ^= 0x10;
        }

        fn clear(&mut self, index: usize) {
            let start = self.geometry.slot() + index * BLOCK;
            self.bytes[start..start + BLOCK].fill(0);
        }

        /// Reads the deltas. Returns the valid ones, the blocks to write again, and the blocks to clear. Checks that
        /// the result is the page of that number.
        fn found(&self, known: KnownPage, page: usize) -> (ValidDeltas, Vec<usize>, Vec<usize>) {
            let mut read = self.pages[0].clone();
            let slot_area = SlotArea::new(&self.bytes, SlotIndex::First, self.geometry.slot());
            let chain = Chain::apply(&self.geometry, ID, slot_area, BASE, &known, &mut read).unwrap();
            assert!(read == self.pages[page], "{chain:?}");
            (chain.valid, chain.unsynced, chain.invalid)
        }

        fn is_refused(&self, known: KnownPage) -> bool {
            let slot_area = SlotArea::new(&self.bytes, SlotIndex::First, self.geometry.slot());
            Chain::apply(&self.geometry, ID, slot_area, BASE, &known, &mut self.pages[0].clone()).is_err()
        }
    }

    #[test]
    fn a_chain_is_applied_to_its_end_and_reports_deltas_that_may_not_be_durable() {
        assert_eq!(TestArea::new().found(CLOSED, 0), (ValidDeltas::None, vec![], vec![]));
        assert_eq!(TestArea::chain(&[4, 5, 6, 6]).found(CLOSED, 4), (ValidDeltas::Chain(4), vec![2, 3], vec![]));
    }

    #[test]
    fn a_torn_end_is_cleared_and_a_damaged_end_refused() {
        for at in [0, 300, 2000] {
            let mut area = TestArea::chain(&[5, 6, 6]);
            area.damage(2, at);
            assert_eq!(area.found(KNOWN, 2), (ValidDeltas::Chain(2), vec![1], vec![2]), "byte {at}");
            assert!(area.is_refused(CLOSED), "byte {at}");
        }
        // Its first sector was not written.
        let mut area = TestArea::chain(&[5, 6, 6]);
        let start = area.geometry.slot() + 2 * BLOCK;
        area.bytes[start..start + SECTOR].fill(0);
        area.bytes[start + SECTOR] = 1;
        assert_eq!(area.found(KNOWN, 2), (ValidDeltas::Chain(2), vec![1], vec![2]));
        // It says that a sync has made it durable.
        let mut area = TestArea::chain(&[5, 5]);
        area.damage(1, 300);
        assert!(area.is_refused(KNOWN));
    }

    #[test]
    fn deltas_after_a_lost_delta_are_not_valid() {
        let mut area = TestArea::chain(&[5, 6, 6, 6]);
        area.clear(1);
        assert_eq!(area.found(KNOWN, 1), (ValidDeltas::Chain(1), vec![], vec![2, 3]));
        // A delta that a sync has made durable follows only others that are durable.
        let mut area = TestArea::chain(&[5, 5, 5]);
        area.clear(1);
        assert!(area.is_refused(KNOWN) && area.is_refused(CLOSED));
        // The lost delta is written again: the old ones after it do not fit.
        let mut area = TestArea::chain(&[5, 6, 6]);
        area.write(1, 1, 6, Order::After(1));
        assert_eq!(area.found(KNOWN, 4), (ValidDeltas::Chain(2), vec![1], vec![2]));
    }

    #[test]
    fn deltas_of_another_image_are_not_valid() {
        let mut area = TestArea::chain(&[5]);
        let slot_area = SlotArea::new(&area.bytes, SlotIndex::First, area.geometry.slot());
        let mut page = area.pages[0].clone();
        for base in [
            DeltaBase { stamp: ImageStamp { sequence: 10, ..BASE.stamp }, ..BASE },
            DeltaBase { stamp: ImageStamp { generation: 6, ..BASE.stamp }, ..BASE },
            DeltaBase { lsn: Lsn(105), ..BASE },
        ] {
            let chain = Chain::apply(&area.geometry, ID, slot_area, base, &CLOSED, &mut page).unwrap();
            assert_eq!(
                (chain.valid, chain.superseded, page == area.pages[0]),
                (ValidDeltas::None, true, true),
                "{base:?}"
            );
        }
        // It says that it belongs to the image, and does not.
        area.pages[0][500] ^= 1;
        assert!(area.is_refused(CLOSED));
    }

    #[test]
    fn the_newest_cumulative_delta_is_valid() {
        let mut area = TestArea::new();
        for (number, generation) in [(0, 5), (1, 5), (2, 5), (3, 5), (4, 6)] {
            area.write(usize::from(number) % 2, 0, generation, Order::Cumulative(number));
        }
        assert_eq!(area.found(CLOSED, 5), (ValidDeltas::Cumulative(4), vec![0], vec![]));
        let mut torn = TestArea { bytes: area.bytes.clone(), pages: area.pages.clone(), ..area };
        torn.damage(0, 300);
        assert_eq!(torn.found(KNOWN, 4), (ValidDeltas::Cumulative(3), vec![], vec![0]));
        assert!(torn.is_refused(CLOSED));
        // The older one is not needed. If it is damaged, the store cannot know which of the two is newer.
        area.damage(1, 300);
        assert_eq!(area.found(KNOWN, 5), (ValidDeltas::Cumulative(4), vec![0], vec![1]));
        assert!(area.is_refused(CLOSED));
        let mut synced = TestArea::new();
        synced.write(0, 0, 5, Order::Cumulative(0));
        synced.write(1, 0, 5, Order::Cumulative(1));
        synced.damage(1, 300);
        assert!(synced.is_refused(KNOWN));
    }

    #[test]
    fn a_flipped_bit_in_the_header_of_a_durable_delta_is_damage() {
        // Redo begins after the delta, and the log has lost its end.
        let before_redo = KnownPage { redo: Lsn(1000), ..KNOWN };
        let lost = KnownPage { in_log: false, lost: Some((6, Lsn(150))), ..before_redo };
        let mut cumulative = TestArea::new();
        cumulative.write(0, 0, 5, Order::Cumulative(0));
        cumulative.write(1, 0, 5, Order::Cumulative(1));
        for (mut area, last) in [(TestArea::chain(&[5, 5]), 1), (cumulative, 1)] {
            for bit in 0..8 * 48 {
                let at = area.geometry.slot() + last * BLOCK + bit / 8;
                area.bytes[at] ^= 1 << (bit % 8);
                for known in [before_redo, lost, CLOSED] {
                    assert!(area.is_refused(known), "bit {bit}, {known:?}");
                }
                area.bytes[at] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn an_image_that_may_be_older_than_the_checkpoint_is_refused() {
        let lost = KnownPage { lost: Some((6, Lsn(101))), ..KNOWN };
        // Two durable deltas were overwritten by two that the log has lost.
        let mut area = TestArea::new();
        for (number, generation) in [(0, 5), (1, 5), (2, 6), (3, 6)] {
            area.write(usize::from(number) % 2, 0, generation, Order::Cumulative(number));
        }
        assert!(area.is_refused(lost));
        // No delta was durable before these.
        let mut area = TestArea::new();
        area.write(2, 0, 6, Order::Cumulative(8));
        let (slot, block) = (area.geometry.slot(), area.geometry.slot() + 2 * BLOCK);
        area.bytes.copy_within(block..block + BLOCK, slot);
        area.clear(2);
        assert_eq!(
            area.found(KnownPage { lost: Some((6, Lsn(100))), ..KNOWN }, 0),
            (ValidDeltas::None, vec![], vec![0])
        );
    }

    #[test]
    fn an_image_is_refused_beside_a_delta_of_a_newer_one_that_is_not_there() {
        for durable in [&[][..], &[5], &[5, 5, 5]] {
            let mut area = TestArea::chain(durable);
            area.write_newer(3, 6);
            assert!(area.is_refused(KNOWN) && area.is_refused(CLOSED), "{durable:?}");
            area.found(KnownPage { accepts_any: true, ..KNOWN }, durable.len());
        }
        // The delta is older than the image.
        let mut area = TestArea::chain(&[5]);
        area.write_newer(3, BASE.stamp.generation - 1);
        assert_eq!(area.found(KNOWN, 1), (ValidDeltas::Chain(1), vec![], vec![]));
    }

    #[test]
    fn an_image_is_accepted_beside_an_invalidated_delta_only_if_its_own_deltas_are_there() {
        let lost = |end| KnownPage { lost: Some((6, Lsn(end))), ..KNOWN };
        let newer = |durable: &[u32], blocks: &[usize]| {
            let mut area = TestArea::chain(durable);
            blocks.iter().for_each(|index| area.write_newer(*index, 6));
            area
        };
        assert_eq!(newer(&[], &[3]).found(lost(100), 0), (ValidDeltas::None, vec![], vec![3]));
        assert_eq!(newer(&[5, 5], &[3]).found(lost(102), 2), (ValidDeltas::Chain(2), vec![], vec![3]));
        // The invalidated deltas may have overwritten one of the image.
        assert!(newer(&[5, 5, 5], &[3]).is_refused(lost(103)));
        assert!(newer(&[5, 5], &[3, 2]).is_refused(lost(102)));
        assert!(newer(&[], &[3, 2, 1, 0]).is_refused(lost(100)));
        let mut damaged = newer(&[5, 5, 6], &[3]);
        damaged.damage(2, 300);
        assert!(damaged.is_refused(lost(103)));
        // A later process has written the delta in front of the invalidated one.
        assert_eq!(newer(&[5, 5, 300], &[3]).found(lost(103), 3), (ValidDeltas::Chain(3), vec![2], vec![3]));
        let mut torn = newer(&[5, 5, 200], &[3]);
        torn.damage(2, 300);
        assert_eq!(torn.found(lost(103), 2), (ValidDeltas::Chain(2), vec![], vec![2, 3]));
    }

    #[test]
    fn only_the_deltas_in_use_are_applied_to_a_known_page() {
        let mut area = TestArea::new();
        for (number, generation) in [(0, 5), (1, 6)] {
            area.write(usize::from(number) % 2, 0, generation, Order::Cumulative(number));
        }
        let read = |valid| {
            let mut page = area.pages[0].clone();
            let slot_area = SlotArea::new(&area.bytes, SlotIndex::First, area.geometry.slot());
            apply_valid(&area.geometry, ID, slot_area, BASE, valid, &mut page).map(|_| page)
        };
        assert!(
            read(ValidDeltas::None).unwrap() == area.pages[0]
                && read(ValidDeltas::Cumulative(0)).unwrap() == area.pages[1]
        );
        assert!(read(ValidDeltas::Cumulative(1)).unwrap() == area.pages[2]);
        assert!(read(ValidDeltas::Cumulative(2)).is_err() && read(ValidDeltas::Chain(1)).is_err());
    }

    #[test]
    fn a_change_that_the_log_has_lost_is_not_valid() {
        let known = KnownPage { lost: Some((6, Lsn(101))), ..KNOWN };
        assert_eq!(TestArea::chain(&[6, 6, 6]).found(known, 1), (ValidDeltas::Chain(1), vec![0], vec![1, 2]));
        let mut area = TestArea::new();
        area.write(0, 0, 6, Order::Cumulative(0));
        area.write(1, 0, 6, Order::Cumulative(1));
        assert_eq!(area.found(known, 1), (ValidDeltas::Cumulative(0), vec![0], vec![1]));
    }
}

//! A delta block: 4 KiB beside a slot, with the segments of the page that have changed. `chain` decides which delta
//! blocks are valid.
//!
//! | bytes | field |
//! |---|---|
//! | 0..4 | CRC-32C of 8 bytes that are not in the block, and of the rest of the block |
//! | 4..8 | CRC-32C of the whole page that results |
//! | 8..12 | generation |
//! | 12 | sequence number of the slot |
//! | 13 | index in the chain; of a cumulative delta 128 and its number |
//! | 14 | log2 of the bytes of a segment |
//! | 15 | zero |
//! | 16.. | a bit for each segment of the page; the LSN of the page; the segments whose bits are set, in order; zeros |
//!
//! The 8 bytes that are not in the block are the low 32 bits of the database's id and the page id. The first segment
//! leaves out the LSN of the page, which always changes.
//!
//! A **cumulative** delta has all changes since the slot was written. The deltas of a **chain** each have the changes
//! since the delta before.

use super::slot::{Geometry, ImageStamp, SEQUENCES};
use crate::base::bytes::{
    are_zero, copy, get_u8, get_u32, get_u64, must_fit, put_u8, put_u32, range_mut, slice, u8_of,
};
use crate::base::checksum::{chained, checksum};
use crate::base::{Lsn, PageId};
use crate::io::BLOCK;
use crate::store::ChangedParts;
use std::ops::Range;

const RESULT: usize = 4;
const GENERATION: usize = 8;
const SEQUENCE: usize = 12;
const ORDER: usize = 13;
const SEGMENT_LOG: usize = 14;
const ZERO: usize = 15;
const BITS: usize = 16;
const CUMULATIVE: u8 = 128;

/// A bit of the number of a cumulative delta. It changes when a delta that is not synced is overwritten by the next
/// one. The other bits order the deltas of an image: the first one has 0, and later ones have 1 to 4 in turn.
pub(super) const REWRITTEN: u8 = 8;
const LAST: u8 = 4;

/// The number of the cumulative delta after a synced one.
pub(super) fn next_number(number: u8) -> u8 {
    number % REWRITTEN % LAST + 1
}

/// True if `next` is the number of a cumulative delta after one with `number`.
pub(super) fn is_next(number: u8, next: u8) -> bool {
    next % REWRITTEN == next_number(number)
}

/// True if no delta was durable before this one.
pub(super) fn is_first(number: u8) -> bool {
    number.is_multiple_of(REWRITTEN)
}

/// True if a cumulative delta may have this number.
pub(super) fn is_number(number: u8) -> bool {
    number < 2 * REWRITTEN && number % REWRITTEN <= LAST
}

/// The base that a delta is applied to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// The slot and all deltas before this one. The field is their number.
    After(u8),
    /// The slot alone. [`is_next`] tells which of two is the newer one.
    Cumulative(u8),
}

/// The fields of a delta block with the right checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct DeltaFields {
    /// The sequence number of its slot, and the generation when it was written.
    pub(super) stamp: ImageStamp,
    pub(super) order: Order,
    /// The LSN of the page that results.
    pub(super) lsn: Lsn,
}

/// The content of a delta block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DeltaBlock {
    /// Zeros.
    Empty,
    Sound(DeltaFields),
    /// No sound delta. The fields are read from the block and may be wrong.
    Damaged(DeltaFields),
}

/// The segments of a page that go into a delta block.
pub(super) struct Segments {
    bits: [u8; ChangedParts::SEGMENTS / 8],
    len: usize,
    page: usize,
}

impl Segments {
    /// The segments of `len` bytes that have a change.
    pub(super) fn of(changed: ChangedParts, page: usize, len: usize) -> Segments {
        let mut segments =
            Segments { bits: [0; ChangedParts::SEGMENTS / 8], len: len.max(ChangedParts::segment(page)), page };
        for range in changed.ranges(page) {
            let segment = range.start / segments.len;
            let byte = segments.bits.get_mut(segment / 8);
            must_fit(byte.is_some());
            if let Some(byte) = byte {
                *byte |= 1 << (segment % 8);
            }
        }
        segments
    }

    /// The segments that a delta block names; `None` if it names impossible ones.
    fn named(block: &[u8], page: usize) -> Option<Segments> {
        let len = 1usize.checked_shl(get_u8(block, SEGMENT_LOG).into())?;
        if len < ChangedParts::segment(page) || len > page {
            return None;
        }
        let mut segments = Segments { bits: [0; ChangedParts::SEGMENTS / 8], len, page };
        let named = slice(block, BITS, BITS + segments.bytes_of_bits());
        segments.bits.get_mut(..named.len())?.copy_from_slice(named);
        (segments.end() <= BLOCK).then_some(segments)
    }

    fn bytes_of_bits(&self) -> usize {
        self.page.div_ceil(self.len).div_ceil(8)
    }

    /// The bytes of the page that are in the delta block.
    fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let is_set = |segment: &usize| get_u8(&self.bits, segment / 8) >> (segment % 8) & 1 == 1;
        let segments = (0..self.page.div_ceil(self.len)).filter(is_set);
        let bytes = segments.map(|segment| {
            let end = ((segment + 1) * self.len).min(self.page);
            (segment * self.len).max(ChangedParts::LSN)..end
        });
        std::iter::once(0..ChangedParts::LSN).chain(bytes)
    }

    /// Bytes of the page in the delta block.
    pub(super) fn bytes(&self) -> usize {
        self.ranges().map(|range| range.len()).sum()
    }

    /// The end of the delta in its block.
    pub(super) fn end(&self) -> usize {
        BITS + self.bytes_of_bits() + self.bytes()
    }
}

impl Geometry {
    /// Fills `block`, which is zeros, with these segments of `page`; [`Geometry::seal_delta`] completes it.
    pub(super) fn fill_delta(&self, block: &mut [u8], page: &[u8], segments: &Segments) {
        put_u32(block, RESULT, checksum(page));
        put_u8(block, SEGMENT_LOG, u8_of(segments.len.ilog2() as usize));
        let mut at = BITS + segments.bytes_of_bits();
        copy(range_mut(block, BITS..at), slice(&segments.bits, 0, segments.bytes_of_bits()));
        for range in segments.ranges() {
            let end = at + range.len();
            copy(range_mut(block, at..end), slice(page, range.start, range.end));
            at = end;
        }
    }

    /// Completes a delta block of page `id`.
    pub(super) fn seal_delta(&self, block: &mut [u8], id: PageId, stamp: ImageStamp, order: Order) {
        put_u32(block, GENERATION, stamp.generation);
        put_u8(block, SEQUENCE, stamp.sequence);
        let order = match order {
            Order::After(index) => index,
            Order::Cumulative(number) => CUMULATIVE | number,
        };
        put_u8(block, ORDER, order);
        let crc = self.delta_checksum(block, id);
        put_u32(block, 0, crc);
    }

    /// Says what is in `block`, which should be a delta block of page `id`.
    pub(super) fn look_delta(&self, block: &[u8], id: PageId) -> DeltaBlock {
        if are_zero(block) {
            return DeltaBlock::Empty;
        }
        let stamp =
            ImageStamp { sequence: get_u8(block, SEQUENCE), rewrites: 0, generation: get_u32(block, GENERATION) };
        let order = match get_u8(block, ORDER) {
            number if number & CUMULATIVE != 0 => Order::Cumulative(number & !CUMULATIVE),
            index => Order::After(index),
        };
        let segments = Segments::named(block, self.page());
        let at = BITS + segments.as_ref().map_or(0, Segments::bytes_of_bits);
        let delta = DeltaFields { stamp, order, lsn: Lsn(get_u64(block, at)) };
        let is_sound = self.delta_checksum(block, id) == get_u32(block, 0)
            && segments.is_some()
            && stamp.sequence < SEQUENCES
            && !matches!(order, Order::Cumulative(number) if !is_number(number))
            && get_u8(block, ZERO) == 0;
        if is_sound { DeltaBlock::Sound(delta) } else { DeltaBlock::Damaged(delta) }
    }

    /// Applies a sound delta to a page, and returns the parts of the page that were in the delta. `None` if the result
    /// is not what was written: the delta belongs to another image of the page.
    pub(super) fn apply_delta(&self, block: &[u8], page: &mut [u8]) -> Option<ChangedParts> {
        let segments = Segments::named(block, page.len())?;
        let mut at = BITS + segments.bytes_of_bits();
        let mut parts = ChangedParts::NONE;
        for range in segments.ranges() {
            let end = at + range.len();
            page.get_mut(range.clone())?.copy_from_slice(block.get(at..end)?);
            if range.start >= ChangedParts::LSN {
                parts.add(range, page.len());
            }
            at = end;
        }
        (checksum(page) == get_u32(block, RESULT)).then_some(parts)
    }

    /// Bytes of the page in a sound block.
    pub(super) fn delta_bytes(&self, block: &[u8]) -> usize {
        Segments::named(block, self.page()).map_or(0, |segments| segments.bytes())
    }

    /// The checksum of all that it covers: the ids of database and page, and the block.
    pub(super) fn delta_checksum(&self, block: &[u8], id: PageId) -> u32 {
        let database = checksum(&self.database().to_le_bytes());
        chained(chained(database, &id.0.to_le_bytes()), slice(block, RESULT, BLOCK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::sample_of;
    use proptest::prelude::*;

    const ID: PageId = PageId(7);

    fn geometry(slot: usize) -> Geometry {
        Geometry::new(slot - 16, 4, 99)
    }

    proptest! {
        #[test]
        fn a_delta_makes_the_page_that_was_written_from_the_page_before(
            shift in 12u32..=16, segment_shift in 4u32..=8, hits in proptest::collection::vec((8usize..1 << 16, 1u8..), 0..20),
        ) {
            let geometry = geometry(1 << shift);
            let before = sample_of(geometry.page(), ID.0, 10, 3);
            let mut after = before.clone();
            after[0] = 11;
            hits.iter().for_each(|(at, mask)| after[8 + at % (before.len() - 8)] ^= mask);
            let changed = ChangedParts::between(&before, &after);
            let segments = Segments::of(changed, after.len(), 1 << segment_shift);
            prop_assume!(segments.end() <= BLOCK);
            let mut block = vec![0; BLOCK];
            geometry.fill_delta(&mut block, &after, &segments);
            let (stamp, order) = (ImageStamp { sequence: 3, rewrites: 0, generation: 5 }, Order::After(2));
            geometry.seal_delta(&mut block, ID, stamp, order);
            let sound = DeltaBlock::Sound(DeltaFields { stamp, order, lsn: Lsn(11) });
            prop_assert_eq!(geometry.look_delta(&block, ID), sound);
            prop_assert_eq!(geometry.delta_bytes(&block), segments.bytes());
            prop_assert!(block[segments.end()..].iter().all(|byte| *byte == 0));
            let mut page = before.clone();
            let parts = geometry.apply_delta(&block, &mut page).unwrap();
            prop_assert_eq!(&page, &after);
            let covered = parts.ranges(page.len()).collect::<Vec<_>>();
            for range in changed.ranges(page.len()) {
                prop_assert!(covered.iter().any(|part| part.start <= range.start && range.end <= part.end));
            }
            // Nor does it belong to another page, to another database, or to another image of this page.
            prop_assert!(matches!(geometry.look_delta(&block, PageId(8)), DeltaBlock::Damaged(_)));
            let other = Geometry::new(geometry.page(), 4, 98);
            prop_assert!(matches!(other.look_delta(&block, ID), DeltaBlock::Damaged(_)));
            let mut another = before;
            *another.last_mut().unwrap() ^= 1;
            let is_replaced = covered.iter().any(|part| part.end == page.len());
            prop_assert_eq!(geometry.apply_delta(&block, &mut another).is_some(), is_replaced);
        }

        #[test]
        fn hostile_bytes_under_a_right_checksum_are_refused_or_applied(
            front in proptest::collection::vec(any::<u8>(), 64), log in 0u8..20, slot_shift in 12u32..=16,
        ) {
            let geometry = geometry(1 << slot_shift);
            let mut block = vec![0xff; BLOCK];
            block[..64].copy_from_slice(&front);
            block[SEGMENT_LOG] = log;
            block[ZERO] = 0;
            let crc = geometry.delta_checksum(&block, ID);
            put_u32(&mut block, 0, crc);
            let mut page = vec![0; geometry.page()];
            let is_sound = matches!(geometry.look_delta(&block, ID), DeltaBlock::Sound(_));
            prop_assert!(!is_sound || Segments::named(&block, geometry.page()).unwrap().end() <= BLOCK);
            geometry.apply_delta(&block, &mut page);
        }

        #[test]
        fn a_flipped_bit_is_found(at in 0..BLOCK, bit in 0u8..8) {
            let geometry = geometry(4096);
            let page = sample_of(geometry.page(), ID.0, 10, 3);
            let mut block = vec![0; BLOCK];
            geometry.fill_delta(&mut block, &page, &Segments::of(ChangedParts([5, 0, 0, 0]), page.len(), 32));
            let stamp = ImageStamp { sequence: 0, rewrites: 0, generation: 0 };
            geometry.seal_delta(&mut block, ID, stamp, Order::Cumulative(1));
            block[at] ^= 1 << bit;
            prop_assert!(matches!(geometry.look_delta(&block, ID), DeltaBlock::Damaged(_)));
        }
    }
}

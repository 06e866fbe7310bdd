//! The state of each page, in memory: two bytes a page, and one more for the blocks of its image once a page is
//! compressed.
//!
//! The bits of the two bytes:
//!
//! * 0..2: image: 0 unknown, 1 absent, 2 present, 3 dropped: absent, and nothing is known of its slots.
//! * 2: the slot that was written last.
//! * 3: page present: its last write, of the slot or of a delta block, is synced; otherwise: a recovery may need its
//!   slots.
//! * 4: a slot or a delta block of the page is not needed and waits to be trimmed.
//! * 5..10: the valid deltas: 0 none; 1 to 16 a chain of this length; 17 to 19 none, and the image has 1 to 3 rewrites;
//!   20 to 24 a cumulative delta with this number less 20; 25 to 29 one that was rewritten, with 8 and this number less
//!   25; 30 none, and nothing but the image was ever written for the page.
//! * 10..16: sequence number of the image that was written last.

use super::delta::{Order, REWRITTEN, is_next};
use super::slot::{ImageStamp, REWRITES, SEQUENCES, SlotIndex};
use crate::base::PageId;
use crate::base::bytes::must_fit;

const SECOND: u16 = 1 << 2;
const SYNCED: u16 = 1 << 3;
const HELD: u16 = 1 << 3;
const TRIM: u16 = 1 << 4;
const DELTAS: u32 = 5;
const DELTA_BITS: u16 = 31 << DELTAS;
const CHAIN: u16 = 16;
const CUMULATIVE: u16 = 20;
const REWRITTEN_CUMULATIVE: u16 = 25;
const ALONE: u16 = 30;
const SEQUENCE: u32 = 10;

/// Whether a page has an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ImageState {
    /// Its slots have not been read yet.
    Unknown = 0,
    /// It has none.
    Absent = 1,
    /// It has one.
    Present = 2,
    /// It has none, and its slots have not been read.
    Dropped = 3,
}

/// The valid deltas of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum ValidDeltas {
    #[default]
    None,
    /// A chain in this number of first blocks.
    Chain(u8),
    /// The cumulative delta with this number.
    Cumulative(u8),
}

impl ValidDeltas {
    /// True if the block may have a delta of this image that is valid or was valid. For cumulative deltas these are
    /// blocks 0 and 1: one has the valid delta, and the other may have the delta before it.
    pub(super) fn may_contain(self, block: usize) -> bool {
        match self {
            ValidDeltas::None => false,
            ValidDeltas::Chain(count) => block < usize::from(count),
            ValidDeltas::Cumulative(_) => block < 2,
        }
    }

    /// True if the delta in that block is valid. A page has `most` delta blocks.
    pub(super) fn is_valid_in(self, block: usize, most: usize) -> bool {
        match self {
            ValidDeltas::None => false,
            ValidDeltas::Chain(count) => block < usize::from(count),
            ValidDeltas::Cumulative(number) => block == ValidDeltas::cumulative_block(number, most),
        }
    }

    /// The block of a cumulative delta.
    pub(super) fn cumulative_block(number: u8, most: usize) -> usize {
        usize::from(number).checked_rem(most.min(2)).unwrap_or(0)
    }

    /// The number of blocks that must be read to have the valid deltas. A page has `most` delta blocks.
    pub(super) fn blocks(self, most: usize) -> usize {
        match self {
            ValidDeltas::None => 0,
            ValidDeltas::Chain(count) => usize::from(count).min(most),
            ValidDeltas::Cumulative(_) => most.min(2),
        }
    }

    /// The blocks of these deltas with their orders, in the order in which they are applied. A page has `most` delta
    /// blocks.
    pub(super) fn in_order(self, most: usize) -> impl Iterator<Item = (usize, Order)> {
        let (chain, cumulative) = match self {
            ValidDeltas::None => (0, None),
            ValidDeltas::Chain(count) => (count, None),
            ValidDeltas::Cumulative(number) => {
                (0, Some((ValidDeltas::cumulative_block(number, most), Order::Cumulative(number))))
            }
        };
        (0..chain).map(|index| (usize::from(index), Order::After(index))).chain(cumulative)
    }

    /// True if these deltas contain a durable delta with this order.
    pub(super) fn replaces(self, order: Order) -> bool {
        match (self, order) {
            (ValidDeltas::Cumulative(number), Order::Cumulative(before)) => is_next(before, number),
            _ => false,
        }
    }
}

/// The state of a page, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PageState {
    bits: u16,
    /// Blocks of the image in the slot that was written last; 0: not known.
    blocks: u8,
    /// The structure of the page has been checked since its last write.
    checked: bool,
}

impl PageState {
    /// A page without an image in either slot.
    pub(super) const EMPTY: PageState =
        PageState::of(ImageState::Absent as u16 | SECOND | ((SEQUENCES as u16 - 1) << SEQUENCE));

    /// A page whose slots have not been read.
    pub(super) const UNKNOWN: PageState = PageState::of(ImageState::Unknown as u16);

    const fn of(bits: u16) -> PageState {
        PageState { bits, blocks: 0, checked: false }
    }

    fn with(self, bits: u16) -> PageState {
        PageState { bits, ..self }
    }

    /// A page whose image with that sequence number and that number of rewrites is in that slot.
    pub(super) fn present(slot_index: SlotIndex, stamp: ImageStamp, synced: bool) -> PageState {
        let mut bits = ImageState::Present as u16 | u16::from(stamp.sequence % SEQUENCES) << SEQUENCE;
        bits |= match stamp.rewrites % REWRITES {
            0 => 0,
            rewrites => (CHAIN + u16::from(rewrites)) << DELTAS,
        };
        bits |= if slot_index == SlotIndex::Second { SECOND } else { 0 };
        bits |= if synced { SYNCED } else { 0 };
        PageState::of(bits)
    }

    /// The same page, with an image of this number of blocks.
    pub(super) fn with_blocks(self, blocks: usize) -> PageState {
        PageState { blocks: u8::try_from(blocks).unwrap_or(0), ..self }
    }

    /// The blocks of its image, if they are known.
    pub(super) fn blocks(self) -> Option<usize> {
        (self.image() == ImageState::Present && self.blocks > 0).then(|| self.blocks.into())
    }

    /// True if the structure of the page has been checked since its last write, or if this process has written it. Then
    /// the checksum alone shows that a page which is read is sound.
    pub(super) fn is_checked(self) -> bool {
        self.checked
    }

    /// The same page: nothing but this image, the first one, was ever written for it, and the rest takes no space.
    pub(super) fn alone(self) -> PageState {
        self.with(self.bits & !DELTA_BITS | ALONE << DELTAS)
    }

    /// The state that a map has.
    pub(super) fn of_map(bits: u16) -> PageState {
        PageState::of(PageState::of(bits).for_map())
    }

    /// Its bits in a map. The map has the state as unknown if it is not certain after a close, or if something is still
    /// to be trimmed.
    pub(super) fn for_map(self) -> u16 {
        match self.image() {
            ImageState::Present if self.is_synced() && !self.waits_for_trim() => self.bits,
            ImageState::Absent if self.bits & (HELD | TRIM) == 0 => self.bits,
            _ => PageState::UNKNOWN.bits,
        }
    }

    pub(super) fn image(self) -> ImageState {
        match self.bits & 3 {
            0 => ImageState::Unknown,
            1 => ImageState::Absent,
            2 => ImageState::Present,
            _ => ImageState::Dropped,
        }
    }

    /// The slot that was written last.
    pub(super) fn slot_index(self) -> SlotIndex {
        if self.bits & SECOND == 0 { SlotIndex::First } else { SlotIndex::Second }
    }

    /// The sequence number of the image that was written last.
    pub(super) fn sequence(self) -> u8 {
        (self.bits >> SEQUENCE).to_le_bytes()[0] % SEQUENCES
    }

    pub(super) fn is_synced(self) -> bool {
        self.bits & SYNCED != 0
    }

    pub(super) fn waits_for_trim(self) -> bool {
        self.bits & TRIM != 0
    }

    /// The valid deltas.
    pub(super) fn valid_deltas(self) -> ValidDeltas {
        match (self.bits & DELTA_BITS) >> DELTAS {
            0 => ValidDeltas::None,
            count @ 1..=CHAIN => ValidDeltas::Chain(count.to_le_bytes()[0]),
            code @ CUMULATIVE..REWRITTEN_CUMULATIVE => ValidDeltas::Cumulative((code - CUMULATIVE).to_le_bytes()[0]),
            code @ REWRITTEN_CUMULATIVE..ALONE => {
                ValidDeltas::Cumulative((code - REWRITTEN_CUMULATIVE).to_le_bytes()[0] | REWRITTEN)
            }
            _ => ValidDeltas::None,
        }
    }

    /// Rewrites of the image in the slot; unknown if there are deltas.
    pub(super) fn rewrites(self) -> u8 {
        match (self.bits & DELTA_BITS) >> DELTAS {
            code if code > CHAIN && code < CUMULATIVE => (code - CHAIN).to_le_bytes()[0],
            _ => 0,
        }
    }

    /// True if nothing but the number of blocks differs.
    pub(super) fn is_like(self, other: PageState) -> bool {
        self.bits == other.bits
    }

    /// The bits that the last write of the page has set. They are equal for two states that differ only by a sync or a
    /// trim.
    pub(super) fn written(self) -> u16 {
        self.bits & !(SYNCED | TRIM)
    }

    /// True if the image in the slot is synced. A delta is written only then.
    pub(super) fn has_synced_slot(self) -> bool {
        self.is_synced() || self.valid_deltas() != ValidDeltas::None
    }

    /// The same page with other deltas, the last of which is not synced.
    pub(super) fn with_delta(self, valid: ValidDeltas) -> PageState {
        let bits = match valid {
            ValidDeltas::None => 0,
            ValidDeltas::Chain(count) => u16::from(count),
            ValidDeltas::Cumulative(number) if number < REWRITTEN => CUMULATIVE + u16::from(number),
            ValidDeltas::Cumulative(number) => REWRITTEN_CUMULATIVE + u16::from(number - REWRITTEN),
        };
        self.with(self.bits & !(DELTA_BITS | SYNCED) | bits << DELTAS)
    }

    /// The same page, with its last write synced. The content of the other slot is then not needed.
    pub(super) fn synced(self) -> PageState {
        match self.valid_deltas() {
            ValidDeltas::None if self.bits & DELTA_BITS == ALONE << DELTAS => self.with(self.bits | SYNCED),
            ValidDeltas::None => self.with(self.bits | SYNCED).with_trim(),
            _ => self.with(self.bits | SYNCED),
        }
    }

    /// The same page, with something that is to be trimmed.
    pub(super) fn with_trim(self) -> PageState {
        self.with(self.bits | TRIM)
    }

    /// The same page without an image.
    pub(super) fn dropped(self) -> PageState {
        let image = match self.image() {
            ImageState::Unknown | ImageState::Dropped => ImageState::Dropped,
            ImageState::Absent | ImageState::Present => ImageState::Absent,
        };
        PageState::of(self.bits & !(3 | TRIM | DELTA_BITS) | image as u16 | HELD)
    }

    /// The same page, dropped, with slots that are not needed.
    pub(super) fn discarded(self) -> PageState {
        PageState::of(self.dropped().bits & !HELD | TRIM)
    }

    /// The same page when nothing waits to be trimmed.
    pub(super) fn trimmed(self) -> PageState {
        self.with(self.bits & !TRIM)
    }

    /// The slot of the next image, its sequence number and its rewrites. The next image overwrites an image that no
    /// sync has made durable; otherwise it goes to the other slot.
    pub(super) fn target(self) -> (SlotIndex, u8, u8) {
        if self.image() == ImageState::Present && !self.has_synced_slot() {
            return (self.slot_index(), self.sequence(), (self.rewrites() + 1) % REWRITES);
        }
        (self.slot_index().other(), ImageStamp::next_sequence(self.sequence()), 0)
    }
}

/// The states of all pages.
#[derive(Debug, Default)]
pub(super) struct PageStates {
    /// Zeros where nothing is known, which take no memory before they are written.
    states: Vec<u16>,
    /// Blocks of images; 0 or missing: not known. There are none before a page is compressed.
    blocks: Vec<u8>,
    /// A bit for each page that is [checked](PageState::is_checked); those after the end are not.
    checked: Vec<u64>,
    /// Blocks of a slot.
    slot_blocks: u8,
    pages: PageCount,
    /// A state has changed since the map was written.
    changed: bool,
}

/// How many pages have an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct PageCount {
    /// Pages that have an image, unknown ones among them.
    pub(super) pages: u64,
    /// Blocks of their slots that short images do not need. An estimate where the image of a page was not read.
    pub(super) spared: u64,
}

impl PageCount {
    /// Blocks that the image of a page does not need.
    fn spared_of(self, state: PageState, slot_blocks: u8) -> u64 {
        match state.image() {
            ImageState::Absent | ImageState::Dropped => 0,
            ImageState::Present if state.blocks > 0 => slot_blocks.saturating_sub(state.blocks).into(),
            ImageState::Present | ImageState::Unknown => {
                (self.spared + self.pages / 2).checked_div(self.pages).unwrap_or(0)
            }
        }
    }
}

impl PageStates {
    /// The states for a file that has room for `room` pages, in slots of `slot_blocks` blocks.
    pub(super) fn unknown(room: u32, slot_blocks: usize, pages: PageCount) -> PageStates {
        PageStates {
            states: vec![0; room as usize],
            blocks: Vec::new(),
            checked: Vec::new(),
            slot_blocks: u8::try_from(slot_blocks).unwrap_or(0),
            pages,
            changed: false,
        }
    }

    /// A page beyond all that the file has is empty.
    pub(super) fn get(&self, id: PageId) -> PageState {
        let bits = self.states.get(id.0 as usize).copied();
        let blocks = self.blocks.get(id.0 as usize).copied().unwrap_or(0);
        bits.map_or(PageState::EMPTY, |bits| PageState { bits, blocks, checked: self.is_checked(id) })
    }

    fn is_checked(&self, id: PageId) -> bool {
        self.checked.get(id.0 as usize / 64).is_some_and(|word| word >> (id.0 % 64) & 1 == 1)
    }

    /// Notes that the structure of a page with this state is sound.
    pub(super) fn note_checked(&mut self, id: PageId, state: PageState) {
        let word = id.0 as usize / 64;
        if self.get(id).written() != state.written() {
            return;
        }
        if self.checked.len() <= word {
            self.checked.resize(word + 1, 0);
        }
        if let Some(word) = self.checked.get_mut(word) {
            *word |= 1 << (id.0 % 64);
        }
    }

    /// Sets the state of the page.
    pub(super) fn set(&mut self, id: PageId, state: PageState) {
        let is_there = |state: PageState| matches!(state.image(), ImageState::Present | ImageState::Unknown);
        let before = self.get(id);
        let spared = self.pages.spared_of(before, self.slot_blocks);
        self.pages.spared = self.pages.spared.saturating_sub(spared)
            + match state.image() {
                ImageState::Present => self.pages.spared_of(state, self.slot_blocks),
                _ => 0,
            };
        match (is_there(before), is_there(state)) {
            (false, true) => self.pages.pages += 1,
            (true, false) => self.pages.pages = self.pages.pages.saturating_sub(1),
            _ => {}
        }
        self.put(id, state);
    }

    /// Notes how many blocks the image of a page has, which is as this state says.
    pub(super) fn note_blocks(&mut self, id: PageId, state: PageState, blocks: usize) {
        if self.get(id).written() == state.written() {
            self.put_blocks(id, state.with_blocks(blocks).blocks);
        }
    }

    /// Sets the state of a page that was unknown, unless it is known by now. Returns the known state.
    pub(super) fn note_found(&mut self, id: PageId, found: PageState) -> PageState {
        match self.get(id) {
            known if known.image() != ImageState::Unknown => known,
            _ => {
                self.put(id, found);
                found
            }
        }
    }

    /// Sets the state that the map has of a page, unless another one is known.
    pub(super) fn adopt(&mut self, id: PageId, state: PageState) {
        if let Some(old) = self.states.get_mut(id.0 as usize)
            && PageState::of(*old).image() == ImageState::Unknown
        {
            *old = state.bits;
        }
    }

    /// True if a state has changed since the map was written.
    pub(super) fn have_changed(&self) -> bool {
        self.changed
    }

    fn put(&mut self, id: PageId, state: PageState) {
        let at = id.0 as usize;
        if self.states.len() <= at {
            self.states.resize(at + 1, PageState::EMPTY.bits);
        }
        let old = self.states.get_mut(at);
        must_fit(old.is_some());
        if let Some(old) = old {
            let is_same_image = PageState::of(*old).written() == state.written();
            self.changed |= *old != state.bits;
            *old = state.bits;
            if !is_same_image && let Some(word) = self.checked.get_mut(at / 64) {
                *word &= !(1 << (id.0 % 64));
            }
        }
        self.put_blocks(id, state.blocks);
    }

    /// Whole images take no memory as long as there are no others.
    fn put_blocks(&mut self, id: PageId, blocks: u8) {
        let at = id.0 as usize;
        if self.blocks.is_empty() && (blocks == 0 || blocks >= self.slot_blocks) {
            return;
        }
        if self.blocks.len() <= at {
            self.blocks.resize(self.states.len(), 0);
        }
        let old = self.blocks.get_mut(at);
        must_fit(old.is_some());
        if let Some(old) = old {
            *old = blocks;
        }
    }

    /// Removes the pages at the end that are not needed. Returns how many are left.
    pub(super) fn trim_end(&mut self) -> u32 {
        let is_there = |bits: &u16| match PageState::of(*bits).image() {
            ImageState::Present | ImageState::Unknown => true,
            ImageState::Absent | ImageState::Dropped => bits & HELD != 0,
        };
        let left = self.states.iter().rposition(is_there).map_or(0, |last| last + 1);
        self.changed |= left < self.states.len();
        self.states.truncate(left);
        self.blocks.truncate(left);
        self.len()
    }

    /// One past the greatest id that has a state.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.states.len()).unwrap_or(u32::MAX)
    }

    /// How many pages have an image.
    pub(super) fn count(&self) -> PageCount {
        self.pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn present(slot_index: SlotIndex, sequence: u8, synced: bool) -> PageState {
        PageState::present(slot_index, ImageStamp { sequence, rewrites: 0, generation: 0 }, synced)
    }

    #[test]
    fn a_page_stays_checked_until_its_next_write() {
        let mut states = PageStates::unknown(0, 2, PageCount::default());
        let id = PageId(130);
        let written = present(SlotIndex::First, 0, false);
        let mut note = |set: PageState, checked: PageState| {
            states.set(id, set);
            states.note_checked(id, checked);
            states.get(id).is_checked()
        };
        assert!(!note(written, present(SlotIndex::First, 1, false)), "another image was checked");
        assert!(note(written, written));
        for same in [written.synced(), written.synced().trimmed(), written.with_trim()] {
            assert!(note(same, PageState::EMPTY), "a sync and a trim do not change the page: {same:?}");
        }
        let (rewrites, generation) = (1, 0);
        let rewritten = PageState::present(SlotIndex::First, ImageStamp { sequence: 0, rewrites, generation }, false);
        let others =
            [present(SlotIndex::Second, 1, true), written.with_delta(ValidDeltas::Chain(1)), written.dropped()];
        for other in others.into_iter().chain([rewritten]) {
            assert!(note(written, written) && !note(other, PageState::EMPTY), "{other:?}");
        }
        assert!(!states.get(PageId(131)).is_checked() && !states.get(PageId(2)).is_checked());
    }

    #[test]
    fn a_synced_image_is_followed_by_one_in_the_other_slot() {
        let first = PageState::EMPTY;
        assert_eq!((first.image(), first.target()), (ImageState::Absent, (SlotIndex::First, 0, 0)));
        let written = present(SlotIndex::First, 0, false);
        assert_eq!(written.target(), (SlotIndex::First, 0, 1));
        assert_eq!(written.synced().target(), (SlotIndex::Second, 1, 0));
        let last = present(SlotIndex::Second, SEQUENCES - 1, true);
        assert_eq!((last.sequence(), last.target()), (SEQUENCES - 1, (SlotIndex::First, 0, 0)));
    }

    #[test]
    fn a_page_with_a_single_image_has_nothing_to_trim() {
        let alone = present(SlotIndex::First, 0, false).alone();
        assert_eq!((alone.valid_deltas(), alone.rewrites(), alone.has_synced_slot()), (ValidDeltas::None, 0, false));
        assert_eq!(alone.target(), (SlotIndex::First, 0, 1));
        let synced = alone.synced();
        assert!(synced.is_synced() && !synced.waits_for_trim());
        assert_eq!(PageState::of_map(synced.for_map()), synced);
        assert_eq!((synced.has_synced_slot(), synced.target()), (true, (SlotIndex::Second, 1, 0)));
        // A delta is beside the image; the next image is in the other slot, and then there is something to trim.
        let with_delta = synced.with_delta(ValidDeltas::Chain(1));
        assert_eq!(with_delta.valid_deltas(), ValidDeltas::Chain(1));
        assert!(present(SlotIndex::Second, 1, false).synced().waits_for_trim());
    }

    #[test]
    fn a_dropped_page_keeps_its_sequence_if_that_is_known() {
        let dropped = present(SlotIndex::Second, 7, true).dropped();
        assert_eq!(
            (dropped.image(), dropped.target(), dropped.waits_for_trim()),
            (ImageState::Absent, (SlotIndex::First, 8, 0), false)
        );
        assert_eq!(PageState::UNKNOWN.dropped().image(), ImageState::Dropped);
        let discarded = dropped.discarded();
        assert_eq!((discarded.waits_for_trim(), discarded.trimmed().target()), (true, dropped.target()));
        let mut states = PageStates::default();
        states.set(PageId(1), dropped);
        assert_eq!(states.trim_end(), 2, "a recovery may need it");
        states.set(PageId(1), discarded);
        assert_eq!(states.trim_end(), 0);
    }

    #[test]
    fn pages_with_an_image_are_counted() {
        let mut states = PageStates::unknown(3, 1, PageCount { pages: 2, spared: 0 });
        states.note_found(PageId(0), present(SlotIndex::First, 0, true));
        states.note_found(PageId(1), PageState::EMPTY);
        states.set(PageId(1), present(SlotIndex::First, 0, false));
        states.set(PageId(5), present(SlotIndex::First, 0, false));
        assert_eq!((states.count().pages, states.len(), states.get(PageId(2)).image()), (4, 6, ImageState::Unknown));
        assert_eq!((states.get(PageId(3)), states.get(PageId(99))), (PageState::EMPTY, PageState::EMPTY));
        states.set(PageId(0), states.get(PageId(0)).dropped());
        states.set(PageId(2), PageState::UNKNOWN.dropped());
        assert_eq!(states.count().pages, 2);
    }
}

//! A slot: a page and the trailer after it, and where the two slots of a page are. A compressed page is in the last
//! blocks of a slot: see `short`. `choice` decides which of the slots is valid.
//!
//! | bytes of the trailer | field |
//! |---|---|
//! | 0..4 | CRC-32C of the page, or of the short image, and of the rest of the trailer |
//! | 4..8 | generation: see [`ImageStamp`] |
//! | 8 | sequence number |
//! | 9 | log2 of the bytes of a slot; 128 is added for a short image |
//! | 10 | delta blocks between the slots |
//! | 11 | rewrites |
//! | 12..16 | the low 32 bits of the database's id |

use super::short::SHORT;
use super::states::PageState;
use crate::base::bytes::{are_zero, get_u8, get_u32, put_u8, put_u32, slice, u8_of};
use crate::base::checksum::checksum;
use crate::base::limits::{SLOT_TRAILER, check_page_size};
use crate::base::{Lsn, PageId};
use crate::io::{BLOCK, SECTOR};
use crate::page::Page;
use crate::store::superblock::FRONT;
use std::ops::Range;

const GENERATION: usize = 4;
const SEQUENCE: usize = 8;
const SLOT_LOG: usize = 9;
const DELTAS: usize = 10;
const REWRITES_AT: usize = 11;
const DATABASE: usize = 12;

/// Sequence numbers are counted modulo this.
pub(super) const SEQUENCES: u8 = 64;

/// Rewrites are counted modulo this.
pub(super) const REWRITES: u8 = 4;

/// One of the two slots of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlotIndex {
    First,
    Second,
}

impl SlotIndex {
    pub(super) fn other(self) -> SlotIndex {
        match self {
            SlotIndex::First => SlotIndex::Second,
            SlotIndex::Second => SlotIndex::First,
        }
    }
}

/// The fields that order the images of a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ImageStamp {
    /// One more, modulo [`SEQUENCES`], than that of the image in the other slot at the time of writing.
    pub(super) sequence: u8,
    /// How often an image of this sequence number was overwritten before a sync made it durable, modulo [`REWRITES`].
    /// Deltas have 0.
    pub(super) rewrites: u8,
    /// How many checkpoints had begun their last sync of pages. Images of a generation before the superblock's are
    /// synced.
    pub(super) generation: u32,
}

impl ImageStamp {
    /// The sequence number of the image that is written after this one.
    pub(super) fn next_sequence(sequence: u8) -> u8 {
        (sequence + 1) % SEQUENCES
    }
}

/// The content of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SlotContent {
    /// Zeros.
    Empty,
    /// A sound image of the page.
    Image { stamp: ImageStamp, lsn: Lsn },
    /// The rest of a slot that was being trimmed: its first and its last block are gone.
    Trimmed,
    /// No sound image of the page. `named` is read from the trailer, if it is one of this database, and `lsn` from the
    /// header, if the header is that of the page. `is_foreign`: header or trailer is neither zeros nor that of an image
    /// of the page.
    Damaged { named: Option<ImageStamp>, lsn: Option<Lsn>, is_foreign: bool },
}

/// The positions of slots, and the fields that all trailers have in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::store) struct Geometry {
    /// Bytes of a page.
    page: usize,
    /// Delta blocks between the slots.
    deltas: u8,
    /// Low bits of the database's id.
    database: u32,
}

impl Geometry {
    pub(super) fn new(page_size: usize, deltas: u8, database_id: u128) -> Geometry {
        #[allow(clippy::cast_possible_truncation)] // the low bits are meant
        let database = database_id as u32;
        Geometry { page: page_size, deltas, database }
    }

    /// The geometry that the trailer at the end of a block names, if it may be a trailer.
    pub(super) fn of_trailer(block: &[u8]) -> Option<Geometry> {
        let trailer = slice(block, block.len().checked_sub(SLOT_TRAILER)?, block.len());
        let slot = 1usize.checked_shl((get_u8(trailer, SLOT_LOG) & !SHORT).into())?;
        check_page_size(slot, false).ok()?;
        let is_one = get_u8(trailer, REWRITES_AT) < REWRITES && get_u8(trailer, SEQUENCE) < SEQUENCES;
        is_one.then(|| Geometry {
            page: slot - SLOT_TRAILER,
            deltas: get_u8(trailer, DELTAS),
            database: get_u32(trailer, DATABASE),
        })
    }

    /// The page that has a slot which begins there.
    pub(super) fn page_at(&self, start: u64) -> Option<PageId> {
        let id = PageId(u32::try_from(start.checked_sub(FRONT as u64)? / self.area()).ok()?);
        [SlotIndex::First, SlotIndex::Second]
            .iter()
            .any(|slot_index| self.offset(id, *slot_index) == start)
            .then_some(id)
    }

    /// Bytes of a page.
    pub(in crate::store) fn page(&self) -> usize {
        self.page
    }

    /// Bytes of a slot: a power of two.
    pub(super) fn slot(&self) -> usize {
        self.page + SLOT_TRAILER
    }

    /// Low bits of the database's id.
    pub(super) fn database(&self) -> u32 {
        self.database
    }

    /// Blocks of a slot.
    pub(super) fn blocks(&self) -> usize {
        self.slot() / BLOCK
    }

    /// Delta blocks of a page.
    pub(super) fn deltas(&self) -> usize {
        self.deltas.into()
    }

    /// Bytes of a page area.
    pub(super) fn area(&self) -> u64 {
        (2 * self.slot() + usize::from(self.deltas) * BLOCK) as u64
    }

    /// The area of a page in the file.
    pub(super) fn area_of(&self, id: PageId) -> Range<u64> {
        let start = FRONT as u64 + u64::from(id.0) * self.area();
        start..start + self.area()
    }

    /// The position of a slot in the file.
    pub(super) fn offset(&self, id: PageId, slot_index: SlotIndex) -> u64 {
        self.slot_area(id, slot_index, 0).start
    }

    /// The slot area in the file that has the first `blocks` delta blocks.
    pub(super) fn slot_area(&self, id: PageId, slot_index: SlotIndex, blocks: usize) -> Range<u64> {
        let (area, len) = (self.area_of(id), (self.slot() + blocks.min(self.deltas()) * BLOCK) as u64);
        match slot_index {
            SlotIndex::First => area.start..area.start + len,
            SlotIndex::Second => area.end - len..area.end,
        }
    }

    /// The position of a delta block in the file.
    pub(super) fn delta_offset(&self, id: PageId, slot_index: SlotIndex, index: usize) -> u64 {
        let slot_area = self.slot_area(id, slot_index, index + 1);
        match slot_index {
            SlotIndex::First => slot_area.end - BLOCK as u64,
            SlotIndex::Second => slot_area.start,
        }
    }

    /// The blocks of the slot of a page that its image does not need.
    pub(super) fn unused(&self, id: PageId, state: PageState) -> Range<u64> {
        let start = self.offset(id, state.slot_index());
        let blocks = state.blocks().map_or(0, |blocks| self.blocks().saturating_sub(blocks));
        start..start + (blocks * BLOCK) as u64
    }

    /// How many pages a file of that length can have.
    pub(super) fn pages(&self, file_bytes: u64) -> u32 {
        u32::try_from(file_bytes.saturating_sub(FRONT as u64).div_ceil(self.area())).unwrap_or(u32::MAX)
    }

    /// How many page areas fit in a file of this length.
    pub(super) fn whole_pages(&self, file_bytes: u64) -> u32 {
        u32::try_from(file_bytes.saturating_sub(FRONT as u64) / self.area()).unwrap_or(u32::MAX)
    }

    /// True if the trailer of the slot says that its image is a short one.
    pub(super) fn is_short(&self, slot: &[u8]) -> bool {
        get_u8(slot, self.page + SLOT_LOG) & SHORT != 0
    }

    /// The blocks of the sound image in `slot`.
    pub(super) fn image_blocks(&self, slot: &[u8]) -> usize {
        (self.slot() - self.image_start(slot)) / BLOCK
    }

    /// The start of the image in `slot`.
    pub(super) fn image_start(&self, slot: &[u8]) -> usize {
        let short = self.is_short(slot).then(|| self.short_start(self.short_header(slot)));
        short.flatten().unwrap_or(0)
    }

    /// Writes the trailer after the page or the short image in `slot`.
    pub(super) fn seal(&self, slot: &mut [u8], stamp: ImageStamp, is_short: bool) {
        let log = self.slot_log() | if is_short { SHORT } else { 0 };
        let Some(trailer) = slot.get_mut(self.page..) else { return };
        put_u32(trailer, GENERATION, stamp.generation);
        put_u8(trailer, SEQUENCE, stamp.sequence);
        put_u8(trailer, SLOT_LOG, log);
        put_u8(trailer, DELTAS, self.deltas);
        put_u8(trailer, REWRITES_AT, stamp.rewrites);
        put_u32(trailer, DATABASE, self.database);
        let crc = self.checksum(slot);
        put_u32(slot, self.page, crc);
    }

    /// Says what is in `slot`, which should be one of page `id`.
    pub(super) fn look(&self, slot: &[u8], id: PageId) -> SlotContent {
        let block = |at: usize| slice(slot, at, at + BLOCK);
        if are_zero(block(0)) && are_zero(block(self.slot() - BLOCK)) {
            return if are_zero(slot) { SlotContent::Empty } else { SlotContent::Trimmed };
        }
        let trailer = slice(slot, self.page, self.slot());
        let stamp = ImageStamp {
            sequence: get_u8(trailer, SEQUENCE),
            rewrites: get_u8(trailer, REWRITES_AT),
            generation: get_u32(trailer, GENERATION),
        };
        let is_ours = get_u32(trailer, DATABASE) == self.database
            && get_u8(trailer, SLOT_LOG) & !SHORT == self.slot_log()
            && get_u8(trailer, DELTAS) == self.deltas
            && stamp.rewrites < REWRITES
            && stamp.sequence < SEQUENCES;
        let is_sound = |is_own_page| is_ours && is_own_page && self.checksum(slot) == get_u32(trailer, 0);
        let named = is_ours.then_some(stamp);
        if is_ours && self.is_short(slot) {
            let header = self.short_header(slot);
            let is_own_page = header.page == id;
            if is_sound(is_own_page) && self.short_start(header).is_some() {
                return SlotContent::Image { stamp, lsn: header.lsn };
            }
            return SlotContent::Damaged { named, lsn: is_own_page.then_some(header.lsn), is_foreign: !is_own_page };
        }
        let page = Page::new(slice(slot, 0, self.page));
        let is_own_page = page.id() == id;
        if is_sound(is_own_page) {
            return SlotContent::Image { stamp, lsn: page.lsn() };
        }
        let is_foreign = !is_own_page && !are_zero(slice(slot, 0, SECTOR)) || !is_ours && !are_zero(trailer);
        SlotContent::Damaged { named, lsn: is_own_page.then(|| page.lsn()), is_foreign }
    }

    /// The checksum of all that it covers: the image and the rest of the trailer.
    pub(super) fn checksum(&self, slot: &[u8]) -> u32 {
        let page = checksum(slice(slot, self.image_start(slot), self.page));
        crate::base::checksum::chained(page, slice(slot, self.page + GENERATION, self.slot()))
    }

    fn slot_log(&self) -> u8 {
        u8_of(self.slot().ilog2() as usize)
    }
}

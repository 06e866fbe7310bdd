//! Writes slots and delta blocks. Also makes the places that log records have for pages written outside the log.

use super::choice::KnownPage;
use super::delta::{Order, REWRITTEN, Segments, next_number};
use super::slot::{ImageStamp, SlotIndex};
use super::states::{ImageState, PageState, ValidDeltas};
use super::{CompressionBuffers, ShadowStore};
use crate::base::bytes::{are_zero, range_mut};
use crate::base::{Error, Lsn, PageId, Result};
use crate::io::{BLOCK, WriteKind};
use crate::page::{Page, unpack};
use crate::store::compress::Encoding;
use crate::store::page_store::{Base, PageWriter};
use crate::store::place_bytes::{PlaceBytes, no_place};
use crate::store::{ChangedParts, StoreReads};
use std::ops::{Range, RangeInclusive};

/// The store syncs when one page in 32 is not synced, but not with fewer pages than the start of this range, and always
/// with more than its end. Then it can trim the images that these pages replace, and write delta blocks beside the new
/// ones.
const SYNC_PAGES: RangeInclusive<u64> = 64..=1024;

/// A page to be written.
struct QueuedPage {
    id: PageId,
    /// Its slot, or its delta block, in the buffer.
    bytes: Range<usize>,
    is_delta: bool,
    /// Blocks at the end of the slot that have a short image; `None`: the slot has the whole page.
    short: Option<usize>,
    /// True if a coder has tried to compress the page, with or without success.
    was_tried: bool,
    /// It missed the target of its table and is to be split.
    is_to_be_split: bool,
}

impl QueuedPage {
    /// A whole page.
    fn whole(id: PageId, bytes: Range<usize>) -> QueuedPage {
        QueuedPage { id, bytes, is_delta: false, short: None, was_tried: false, is_to_be_split: false }
    }
}

/// Pages to be written together.
pub(super) struct SlotWriter<'s> {
    store: &'s ShadowStore,
    parts: Vec<QueuedPage>,
    /// Slots and delta blocks, one after the other. The fields that identify the write are filled in later.
    bytes: Vec<u8>,
}

impl<'s> SlotWriter<'s> {
    pub(super) fn new(store: &'s ShadowStore) -> SlotWriter<'s> {
        let mut bytes = store.buffers.lock().pop().unwrap_or_default();
        bytes.clear();
        SlotWriter { store, parts: Vec::new(), bytes }
    }
}

impl PageWriter for SlotWriter<'_> {
    fn push(&mut self, id: PageId, page: &[u8], changed: ChangedParts) -> Base {
        let geometry = &self.store.geometry;
        let start = self.bytes.len();
        let delta = self.store.segments_for_delta(id, changed);
        if let Some((segments, base)) = delta {
            self.bytes.resize(start + BLOCK, 0);
            geometry.fill_delta(self.bytes.get_mut(start..).unwrap_or_default(), page, &segments);
            let bytes = start..start + BLOCK;
            self.parts.push(QueuedPage { is_delta: true, ..QueuedPage::whole(id, bytes) });
            return base;
        }
        self.bytes.extend_from_slice(page);
        self.bytes.resize(start + geometry.slot(), 0);
        self.parts.push(QueuedPage::whole(id, start..self.bytes.len()));
        Base::Moves
    }

    fn write(mut self: Box<Self>) -> Result<()> {
        {
            let _dictionaries_stay = self.store.compression.begin_batch();
            self.store.compress_parts(&mut self.parts, &mut self.bytes);
            self.store.write_parts(&self.parts, &mut self.bytes, false)?;
        }
        self.store.sync_if_many()
    }
}

impl Drop for SlotWriter<'_> {
    fn drop(&mut self) {
        self.store.buffers.lock().push(std::mem::take(&mut self.bytes));
    }
}

impl ShadowStore {
    /// The segments of a page that go into a delta block, and what is the base of the page after that; `None` if the
    /// page is to be written whole.
    fn segments_for_delta(&self, id: PageId, changed: ChangedParts) -> Option<(Segments, Base)> {
        let now = {
            let state = self.state.lock();
            // A write of this page has failed, and may have left a newer image in the other slot. A whole image
            // replaces it.
            if state.failed.contains(&id) {
                return None;
            }
            state.pages.get(id)
        };
        let (valid, ..) = self.next_delta(now)?;
        let segments = Segments::of(changed, self.geometry.page(), self.delta.segment.into());
        let base = if matches!(valid, ValidDeltas::Cumulative(_)) { Base::Stays } else { Base::Moves };
        let is_small = segments.bytes() <= self.delta.threshold.into();
        (is_small && segments.end() <= BLOCK && self.room.lock().allows_deltas()).then_some((segments, base))
    }

    /// The deltas of a page after the next one, and the order and the block of that one. `None`: the page must be
    /// written whole.
    fn next_delta(&self, now: PageState) -> Option<(ValidDeltas, Order, usize)> {
        if now.image() != ImageState::Present || !now.has_synced_slot() {
            return None;
        }
        let cumulative = |number: u8| {
            let block = ValidDeltas::cumulative_block(number, self.geometry.deltas());
            (ValidDeltas::Cumulative(number), Order::Cumulative(number), block)
        };
        match (now.valid_deltas(), self.delta.blocks) {
            (_, 0) => None,
            (ValidDeltas::None, 1) => Some(cumulative(0)),
            (ValidDeltas::Cumulative(number), 1) if now.is_synced() => Some(cumulative(next_number(number))),
            (ValidDeltas::Cumulative(number), 1) => Some(cumulative(number ^ REWRITTEN)),
            (ValidDeltas::None, _) => Some((ValidDeltas::Chain(1), Order::After(0), 0)),
            (ValidDeltas::Chain(count), most) if count < most => {
                Some((ValidDeltas::Chain(count + 1), Order::After(count), count.into()))
            }
            _ => None,
        }
    }

    /// Compresses the pages that are to be written whole, as the policies of their tables say. It takes time: call it
    /// when no page is latched.
    fn compress_parts(&self, parts: &mut [QueuedPage], bytes: &mut [u8]) {
        if self.compression.policy_count() == 0 || self.geometry.blocks() == 1 {
            return;
        }
        let mut rest = bytes;
        let mut slots = Vec::with_capacity(parts.len());
        for part in parts {
            let (slot, after) = std::mem::take(&mut rest).split_at_mut(part.bytes.len());
            rest = after;
            if !part.is_delta && self.compression.compresses(Page::new(slot).table()) {
                slots.push((part, slot));
            }
        }
        self.compression.each(&mut slots, |some| {
            self.with_compression_buffers(|buffers| {
                some.iter_mut().for_each(|(part, slot)| self.compress_part(part, slot, buffers))
            });
        });
    }

    /// Makes a whole page in a slot a short image, if it then needs fewer blocks.
    fn compress_part(&self, part: &mut QueuedPage, slot: &mut [u8], buffers: &mut CompressionBuffers) {
        let CompressionBuffers { coders, packed, compressed, page: again } = buffers;
        let Some(bytes) = slot.get(..self.geometry.page()) else { return };
        let page = Page::new(bytes);
        packed.clear();
        page.packed_into(packed);
        let lsn = page.lsn();
        let prepared = self.compression.prepare(coders, packed, compressed);
        (part.was_tried, part.is_to_be_split) = (prepared.was_tried, prepared.is_to_be_split);
        if prepared.place >= self.geometry.slot() {
            return;
        }
        // A delta needs the page that it was made from, to the last byte.
        again.resize(bytes.len(), 0);
        if unpack(packed, again).is_err() || again != bytes {
            tracing::error!(page = %part.id, "the free bytes of a page are not zeros: it is written without compression");
            return;
        }
        let content = if prepared.encoding == Encoding::Plain { packed } else { compressed };
        let blocks = prepared.place / BLOCK;
        self.geometry.put_short(slot, part.id, lsn, (prepared.encoding, content), blocks);
        part.short = Some(blocks);
    }

    /// Completes slots and delta blocks and writes them. On an error each page that has a synced image keeps it, with
    /// its deltas. Any other page may have its old image, the new one or none, until the page is written again. `kept`:
    /// later writes must not overwrite the images, even before a sync.
    fn write_parts(&self, parts: &[QueuedPage], bytes: &mut [u8], kept: bool) -> Result<()> {
        self.make_way(parts.iter().map(|part| part.id))?;
        let generation = self.generation.read();
        self.mend_unsound(parts.iter().map(|part| part.id))?;
        self.settle(parts.iter().map(|part| part.id))?;
        for part in parts {
            let bytes = range_mut(bytes, part.bytes.clone());
            let before = self.state_of(part.id);
            let written = match part.is_delta {
                true => self.write_delta(part.id, before, bytes, *generation),
                false => self.write_slot(part, before, bytes, *generation, kept),
            };
            let mut state = self.state.lock();
            match written {
                Ok(now) => {
                    if part.was_tried && state.pages.get(part.id).image() == ImageState::Present {
                        self.compression.note_recompressed(1);
                    }
                    state.failed.remove(&part.id);
                    state.failed_deltas.remove(&part.id);
                    state.pages.set(part.id, now);
                    state.pages.note_checked(part.id, now);
                    state.unsynced.push(part.id);
                }
                Err(error) => {
                    // This write may have damaged an image. A sync that ended during the write has counted this image
                    // as synced.
                    state.pages.set(part.id, before);
                    state.failed.insert(part.id);
                    if part.is_delta {
                        state.failed_deltas.insert(part.id);
                    }
                    return Err(error);
                }
            }
        }
        self.compression.note_to_be_split(parts.iter().filter(|part| part.is_to_be_split).map(|part| part.id));
        Ok(())
    }

    /// Writes a slot of a page in the state `now`; returns the state of the page with it.
    fn write_slot(
        &self,
        part: &QueuedPage,
        now: PageState,
        slot: &mut [u8],
        generation: u32,
        kept: bool,
    ) -> Result<PageState> {
        let (slot_index, sequence, rewrites) = self.target(part.id, now)?;
        let is_first = now == PageState::EMPTY;
        let stamp = ImageStamp { sequence, rewrites, generation };
        self.geometry.seal(slot, stamp, part.short.is_some());
        let blocks = part.short.unwrap_or(self.geometry.blocks());
        let (start, end) = (slot.len() - blocks * BLOCK, slot.len());
        let image = range_mut(slot, start..end);
        self.put(WriteKind::Page, self.geometry.offset(part.id, slot_index) + start as u64, image)?;
        let written = PageState::present(slot_index, stamp, kept).with_blocks(blocks);
        Ok(if is_first && self.room.lock().leaves_holes() { written.alone() } else { written })
    }

    /// Writes a delta block of a page in the state `now`; returns the state of the page with it.
    fn write_delta(&self, id: PageId, now: PageState, block: &mut [u8], generation: u32) -> Result<PageState> {
        // Nothing but a sync has changed the state since the page was pushed, and after it a delta is still possible.
        let (valid, order, index) =
            self.next_delta(now).ok_or_else(|| Error::corrupt(id, "it has no image for a delta"))?;
        self.geometry.seal_delta(block, id, ImageStamp { sequence: now.sequence(), rewrites: 0, generation }, order);
        self.put(WriteKind::Delta, self.geometry.delta_offset(id, now.slot_index(), index), block)?;
        Ok(now.with_delta(valid))
    }

    /// The slot of the next image of a page, its sequence number and its rewrites.
    fn target(&self, id: PageId, now: PageState) -> Result<(SlotIndex, u8, u8)> {
        match now.image() {
            ImageState::Absent | ImageState::Present => Ok(now.target()),
            ImageState::Unknown | ImageState::Dropped => self.find_target(id),
        }
    }

    /// [`ShadowStore::target`] of a page that has no valid image, and whose area has not been read. Other content of
    /// the area must not look like damage later.
    #[cold]
    fn find_target(&self, id: PageId) -> Result<(SlotIndex, u8, u8)> {
        let about = KnownPage { in_log: true, ..self.state.lock().known_of(id) };
        // After a failed sync and a crash, the device may have other bytes than reads show.
        if about.lost.is_none()
            && let Ok(found) = self.with_page(|page| self.with_buffer(|area| self.look(id, about, area, page)))
            && !found.has_invalid()
        {
            return Ok(found.choice.state.synced().target());
        }
        self.empty(self.geometry.area_of(id))?;
        Ok(PageState::EMPTY.target())
    }

    /// Makes a page area read as zeros. It trims the area before it writes zeros: zeros take space on a device that may
    /// be full, and [`ShadowStore::ensure_room`] counts one slot for a page.
    pub(super) fn empty(&self, area: Range<u64>) -> Result<()> {
        if self.trim_to_zeros(area.clone())? { Ok(()) } else { self.clear(area) }
    }

    /// Writes zeros over slots or delta blocks. On a full device, where zeros may take space, it trims them.
    pub(super) fn clear_or_trim(&self, part: Range<u64>) -> Result<()> {
        match self.clear(part.clone()) {
            Err(full @ Error::Full { .. }) => {
                if self.trim_to_zeros(part)? {
                    Ok(())
                } else {
                    Err(full)
                }
            }
            cleared => cleared,
        }
    }

    /// Trims slots or delta blocks; true if they then read as zeros.
    fn trim_to_zeros(&self, part: Range<u64>) -> Result<bool> {
        self.trim(part.clone());
        self.with_buffer(|bytes| {
            self.read_part(part, bytes)?;
            Ok(are_zero(bytes))
        })
    }

    /// Writes zeros over slots or delta blocks.
    fn clear(&self, part: Range<u64>) -> Result<()> {
        self.clear_as(WriteKind::Page, part)
    }

    /// Writes zeros over a part of the file that fits in memory.
    pub(super) fn clear_as(&self, kind: WriteKind, part: Range<u64>) -> Result<()> {
        self.with_buffer(|zeros| {
            zeros.clear();
            // A part that is not cleared would leave bytes that a later read takes for valid ones.
            let len = part.end.checked_sub(part.start).and_then(|len| usize::try_from(len).ok());
            assert!(len.is_some(), "zeros for the bytes {part:?}");
            zeros.resize(len.unwrap_or(0), 0);
            self.put(kind, part.start, zeros)
        })
    }

    /// Syncs where many pages are not synced.
    fn sync_if_many(&self) -> Result<()> {
        {
            let state = self.state.lock();
            let many = (state.pages.count().pages / 32).clamp(*SYNC_PAGES.start(), *SYNC_PAGES.end());
            if (state.unsynced.len() as u64) < many {
                return Ok(());
            }
        }
        self.sync_images()
    }

    /// Writes packed pages outside the log. They are not written over: records of the log will count on them.
    pub(super) fn write_unlogged(&self, pages: &[(PageId, Vec<u8>)]) -> Result<Vec<PlaceBytes>> {
        self.with_buffer(|slots| {
            let slot = self.geometry.slot();
            slots.clear();
            slots.resize(pages.len() * slot, 0);
            for ((_, packed), bytes) in pages.iter().zip(slots.chunks_exact_mut(slot)) {
                unpack(packed, bytes.get_mut(..self.geometry.page()).unwrap_or_default())?;
            }
            let part = |(at, (id, _)): (usize, &(PageId, Vec<u8>))| QueuedPage::whole(*id, at * slot..(at + 1) * slot);
            let mut parts: Vec<QueuedPage> = pages.iter().enumerate().map(part).collect();
            let _dictionaries_stay = self.compression.begin_batch();
            self.compress_parts(&mut parts, slots);
            self.write_parts(&parts, slots, true)
        })?;
        Ok(pages.iter().map(|(_, packed)| encode_place(Page::new(packed).lsn())).collect())
    }

    /// Redo of a record that names a place: the image was synced before the record was written, and later ones may
    /// follow.
    pub(super) fn install(&self, id: PageId, place: PlaceBytes, lsn: Lsn) -> Result<bool> {
        let least = decode_place(place).ok_or_else(|| no_place(lsn))?;
        if id.0 >= self.ids_end() {
            if self.rescued {
                return Ok(false);
            }
            let what = format!("it puts page {id} beyond the end of the file");
            return Err(Error::CorruptLog { lsn, what });
        }
        let mut state = self.state.lock();
        state.in_log.insert(id);
        state.placed.insert(id, least);
        state.pages.set(id, PageState::UNKNOWN);
        Ok(true)
    }
}

/// A place for the log: the page has an image with this LSN or a greater one.
fn encode_place(lsn: Lsn) -> PlaceBytes {
    PlaceBytes::new(&lsn.0.to_le_bytes()).unwrap_or(PlaceBytes::EMPTY)
}

/// Reads what [`encode_place`] wrote; `None` for anything else.
pub(super) fn decode_place(place: PlaceBytes) -> Option<Lsn> {
    (*place).try_into().ok().map(u64::from_le_bytes).map(Lsn)
}

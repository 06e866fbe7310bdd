//! Reads pages. The first read of a page finds which slot and which deltas of it are valid.

use super::chain::{self, Chain, DeltaBase};
use super::choice::{Choice, KnownPage, Other, choose};
use super::slot::{ImageStamp, SlotContent, SlotIndex};
use super::slot_area::SlotArea;
use super::states::{ImageState, PageState, ValidDeltas};
use super::{CompressionBuffers, ShadowStore};
use crate::base::bytes::{are_zero, range_mut};
use crate::base::{Error, Lsn, PageId, Result};
use crate::io::{BLOCK, WriteKind};
use crate::page::{Page, unpack};
use crate::store::ChangedParts;
use crate::store::compress::{
    DecompressError, DictionaryId, DictionaryPlace, Encoding, dictionary_of, load_dictionaries,
};
use crate::store::name;
use std::io::ErrorKind;
use std::ops::Range;
use std::time::Instant;

/// Pages whose deltas are read for an estimate of their bytes.
const SAMPLE: u32 = 256;

/// The result of reading the area of a page.
pub(super) struct FoundArea {
    pub(super) choice: Choice,
    /// Blocks of the valid image.
    blocks: usize,
    pub(super) chain: Chain,
}

impl FoundArea {
    /// The state of the page.
    pub(super) fn state(&self) -> PageState {
        let mut state = self.choice.state.with_blocks(self.blocks);
        if self.chain.valid != ValidDeltas::None {
            state = state.with_delta(self.chain.valid);
            // A delta is written only when the image in the slot is synced.
            state = if self.chain.unsynced.is_empty() { state.synced() } else { state };
        }
        let needs_older = self.choice.unsynced && self.chain.valid == ValidDeltas::None;
        if self.chain.superseded && !needs_older { state.with_trim() } else { state }
    }

    /// True if something in the area must be written again before the page can be trusted.
    fn must_be_written(&self) -> bool {
        self.choice.unsynced || !self.chain.unsynced.is_empty() || self.has_invalid()
    }

    /// True if something in the area would be taken for damage later.
    pub(super) fn has_invalid(&self) -> bool {
        self.choice.other == Other::Invalid || !self.chain.invalid.is_empty()
    }
}

fn wrong_checksum(id: PageId) -> Error {
    Error::corrupt(id, chain::wrong_checksum("its image"))
}

impl ShadowStore {
    pub(super) fn with_buffer<R>(&self, work: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let mut buffer = self.buffers.lock().pop().unwrap_or_default();
        let done = work(&mut buffer);
        self.buffers.lock().push(buffer);
        done
    }

    /// A buffer of the length of a page.
    pub(super) fn with_page<R>(&self, work: impl FnOnce(&mut [u8]) -> R) -> R {
        self.with_buffer(|buffer| {
            buffer.clear();
            buffer.resize(self.geometry.page(), 0);
            work(buffer)
        })
    }

    /// Reads a part of the file, zeros where the file ends before.
    pub(super) fn read_part(&self, part: Range<u64>, buffer: &mut Vec<u8>) -> Result<()> {
        self.read_part_of(part.clone(), part, buffer)
    }

    /// The same, with zeros in front of `needed`, which ends where the part ends.
    fn read_part_of(&self, part: Range<u64>, needed: Range<u64>, buffer: &mut Vec<u8>) -> Result<()> {
        let len = |range: Range<u64>| usize::try_from(range.end - range.start).unwrap_or(0);
        let (front, whole) = (len(part.start..needed.start), len(part));
        buffer.resize(whole, 0);
        range_mut(buffer, 0..front).fill(0);
        let read = self.file.disk().read_at(needed.start, range_mut(buffer, front..whole));
        if !matches!(&read, Err(Error::Io { source, .. }) if source.kind() == ErrorKind::UnexpectedEof) {
            return read;
        }
        // Few reads are at the end of the file, so only they ask for its length.
        let end = front + len(needed.start..self.file.disk().size()?.clamp(needed.start, needed.end));
        range_mut(buffer, end..whole).fill(0);
        self.file.disk().read_at(needed.start, range_mut(buffer, front..end))
    }

    /// Makes `page` the page in a slot with a sound image of this LSN.
    pub(super) fn open_slot(&self, id: PageId, slot: &[u8], lsn: Lsn, page: &mut [u8]) -> Result<()> {
        let Some((encoding, content)) = self.geometry.short_content(slot) else {
            page.copy_from_slice(slot.get(..page.len()).unwrap_or_default());
            return Ok(());
        };
        self.with_compression_buffers(|buffers| {
            let packed = if encoding == Encoding::Plain {
                Some(content)
            } else {
                let started = Instant::now();
                buffers.packed.resize(page.len(), 0);
                let len = buffers.coders.decompress(encoding, content, &self.compression.find(), &mut buffers.packed);
                self.compression.note_decompressed(started);
                buffers.packed.get(..len.map_err(|error| error.of_page(id))?)
            };
            let packed = packed.ok_or_else(|| DecompressError::Damaged.of_page(id))?;
            unpack(packed, page).map_err(|error| name(id, error))?;
            let found = Page::new(page);
            match (found.id(), found.lsn()) == (id, lsn) {
                true => Ok(()),
                false => Err(Error::corrupt(id, "its image has another page or another LSN than its slot says")),
            }
        })
    }

    /// Buffers and coders for compression.
    pub(super) fn with_compression_buffers<R>(&self, work: impl FnOnce(&mut CompressionBuffers) -> R) -> R {
        let mut buffers = self.compression_buffers.lock().pop().unwrap_or_default();
        let done = work(&mut buffers);
        self.compression_buffers.lock().push(buffers);
        done
    }

    /// Returns the state of a page. If the state is unknown, it reads the area of the page, and the page into `page`.
    /// Then it also returns the parts in which the page differs from its base, if they are certain.
    pub(super) fn resolve(&self, id: PageId, page: &mut [u8]) -> Result<(PageState, Option<ChangedParts>)> {
        let known = self.state_of(id);
        if known.image() != ImageState::Unknown {
            return Ok((known, None));
        }
        let about = self.state.lock().known_of(id);
        self.with_buffer(|area| {
            let found = self.look(id, about, area, page)?;
            if found.must_be_written() && about.is_recovering() && !self.rescued {
                return Ok((self.write_again(id, about, area, page)?, None));
            }
            let now = self.note_found(id, found.state());
            Ok((now, (now.is_like(found.state()) && now.image() == ImageState::Present).then_some(found.chain.parts)))
        })
    }

    /// Writes the image and the deltas of a page again, with the same bytes, if they may not be durable. After a failed
    /// sync they may be only in the system's cache, and no later sync would write them.
    ///
    /// They may be durable as well. Then the process that has died may have overwritten what they replace, and a cut
    /// during a write over them would leave nothing. So the page is protected: a sync comes before its next write. It
    /// also makes the zeros over invalid deltas durable.
    ///
    /// If the device has no room, the next write of the page and the next checkpoint try again: see `unsound`.
    fn write_again(&self, id: PageId, about: KnownPage, area: &mut Vec<u8>, page: &mut [u8]) -> Result<PageState> {
        // Another thread may have written an image since the slots were read. No thread may write one from here on.
        let _no_image_is_written = self.generation.write();
        let known = self.state.lock().pages.get(id);
        if known.image() != ImageState::Unknown {
            return Ok(known);
        }
        let found = self.look(id, about, area, page)?;
        let is_present = found.state().image() == ImageState::Present;
        if is_present {
            match self.make_sound(id, &found, area) {
                Err(cause @ Error::Full { .. }) => {
                    tracing::warn!(%cause, page = %id, "a page that was read is written again later");
                    self.state.lock().unsound.insert(id, about);
                }
                made => made?,
            }
        }
        let now = self.note_found(id, found.state());
        if is_present {
            // After the state is set, so that a sync that ends meanwhile does not count the page and forget it.
            self.state.lock().protect(id);
        }
        Ok(now)
    }

    /// Corrects the areas of those pages in `ids` that could not be corrected when they were read, because the device
    /// was full. The caller must call this before it overwrites the pages, while no other thread writes them. The pages
    /// become protected: a sync must come before the next write.
    pub(super) fn mend_unsound(&self, ids: impl Iterator<Item = PageId>) -> Result<()> {
        if self.state.lock().unsound.is_empty() {
            return Ok(());
        }
        for id in ids {
            let Some(about) = self.state.lock().unsound.get(&id).copied() else { continue };
            // If the page was dropped, its next write looks at its area.
            let is_present = self.state.lock().pages.get(id).image() == ImageState::Present;
            if is_present {
                self.with_page(|page| {
                    self.with_buffer(|area| {
                        let found = self.look(id, about, area, page)?;
                        self.make_sound(id, &found, area)
                    })
                })?;
            }
            let mut state = self.state.lock();
            state.unsound.remove(&id);
            if is_present {
                state.protect(id);
            }
        }
        Ok(())
    }

    /// Writes again what may not be durable in the area of a page, and clears what would be taken for damage later.
    fn make_sound(&self, id: PageId, found: &FoundArea, area: &[u8]) -> Result<()> {
        let slot_index = found.state().slot_index();
        let slot_area = SlotArea::of_page_area(area, slot_index, self.geometry.slot());
        if found.choice.unsynced {
            let start = self.geometry.image_start(slot_area.slot());
            let image = slot_area.slot().get(start..).unwrap_or_default();
            self.put(WriteKind::Page, self.geometry.offset(id, slot_index) + start as u64, image)?;
        }
        for &index in &found.chain.unsynced {
            self.put(WriteKind::Delta, self.geometry.delta_offset(id, slot_index, index), slot_area.block(index))?;
        }
        if found.choice.other == Other::Invalid {
            self.clear_or_trim(self.geometry.slot_area(id, slot_index.other(), 0))?;
        }
        for &index in &found.chain.invalid {
            let start = self.geometry.delta_offset(id, slot_index, index);
            self.clear_or_trim(start..start + BLOCK as u64)?;
        }
        Ok(())
    }

    /// Sets the state that was found in the area, unless another thread has set the state of the page meanwhile.
    fn note_found(&self, id: PageId, found: PageState) -> PageState {
        let mut state = self.state.lock();
        let now = state.pages.note_found(id, found);
        if now.waits_for_trim() {
            state.trims.push(id);
        }
        now
    }

    /// Reads the area of a page and finds what is valid in it. `page` becomes the page, if there is one.
    pub(super) fn look(&self, id: PageId, about: KnownPage, area: &mut Vec<u8>, page: &mut [u8]) -> Result<FoundArea> {
        self.read_part(self.geometry.area_of(id), area)?;
        let of_slot = |slot_index| SlotArea::of_page_area(area, slot_index, self.geometry.slot());
        let (first, second) = (of_slot(SlotIndex::First), of_slot(SlotIndex::Second));
        let contents = [first, second].map(|slot_area| self.geometry.look(slot_area.slot(), id));
        let [in_first, in_second] = contents;
        let mut choice = choose(in_first, in_second, about).map_err(|what| Error::corrupt(id, what))?;
        self.check_placed(id, contents, &mut choice)?;
        let (slot_area, content) = match choice.state.slot_index() {
            SlotIndex::First => (first, in_first),
            SlotIndex::Second => (second, in_second),
        };
        let blocks = self.geometry.image_blocks(slot_area.slot());
        let front = slot_area.slot().get(..slot_area.slot().len() - blocks * BLOCK).unwrap_or_default();
        let is_front_superseded = !are_zero(front);
        let mut chain = match content {
            SlotContent::Image { stamp, lsn } if choice.state.image() == ImageState::Present => {
                self.open_slot(id, slot_area.slot(), lsn, page)?;
                let base = DeltaBase { stamp, lsn };
                Chain::apply(&self.geometry, id, slot_area, base, &about, page)
                    .map_err(|what| Error::corrupt(id, what))?
            }
            _ => Chain::without_base(&self.geometry, id, slot_area),
        };
        chain.superseded |= is_front_superseded;
        Ok(FoundArea { choice, blocks, chain })
    }

    /// Redo may have read a place of the page from the log: then one of the images has that LSN or a greater one.
    fn check_placed(&self, id: PageId, contents: [SlotContent; 2], choice: &mut Choice) -> Result<()> {
        let Some(least) = self.state.lock().placed.get(&id).copied() else { return Ok(()) };
        let has_at_least = |is_chosen: bool| {
            contents.iter().any(|content| {
                matches!(content, SlotContent::Image { stamp, lsn }
                    if *lsn >= least && (stamp.sequence == choice.state.sequence()) == is_chosen)
            })
        };
        if !has_at_least(true) {
            return Err(Error::corrupt(id, "the image that was written outside the log is lost"));
        }
        if !has_at_least(false) && choice.other != Other::Empty {
            // The log needs this image. The image in the other slot belongs to an earlier page with the same id.
            choice.state = choice.state.synced().trimmed();
            choice.other = Other::Invalid;
        }
        Ok(())
    }

    /// Bytes of segments in the valid deltas of all pages, estimated from a sample of the pages.
    pub(super) fn delta_bytes(&self) -> u64 {
        let pages = self.state.lock().pages.len();
        let every = pages.div_ceil(SAMPLE).max(1);
        let sample = (0..pages).step_by(every as usize).map(PageId);
        let bytes = sample.clone().map(|id| self.delta_bytes_of(id).unwrap_or(0)).sum::<u64>();
        let sampled = u64::from(pages.div_ceil(every));
        (bytes * u64::from(pages)).checked_div(sampled).unwrap_or(0)
    }

    /// Bytes of segments in the valid deltas of a page.
    fn delta_bytes_of(&self, id: PageId) -> Result<u64> {
        let (now, _) = self.with_page(|page| self.resolve(id, page))?;
        if now.image() != ImageState::Present {
            return Ok(0);
        }
        self.with_buffer(|bytes| {
            let most = self.geometry.deltas();
            self.read_part(self.geometry.slot_area(id, now.slot_index(), now.valid_deltas().blocks(most)), bytes)?;
            let slot_area = SlotArea::new(bytes, now.slot_index(), self.geometry.slot());
            let is_valid = |index: &usize| now.valid_deltas().is_valid_in(*index, most);
            let bytes =
                (0..slot_area.count()).filter(is_valid).map(|index| self.geometry.delta_bytes(slot_area.block(index)));
            Ok(bytes.map(|bytes| bytes as u64).sum())
        })
    }

    /// The part of the file that a read of a page with this state needs.
    pub(super) fn needed(&self, id: PageId, state: PageState) -> Range<u64> {
        let slot_area =
            self.geometry.slot_area(id, state.slot_index(), state.valid_deltas().blocks(self.geometry.deltas()));
        let unused = self.geometry.unused(id, state);
        if unused.start == slot_area.start { unused.end..slot_area.end } else { slot_area }
    }

    /// Reads a page that has this state into `page`. Returns where it differs from its base. The structure of a page is
    /// checked only once: see [`PageState::is_checked`].
    pub(super) fn read_image(&self, id: PageId, state: PageState, page: &mut [u8]) -> Result<ChangedParts> {
        self.with_buffer(|bytes| {
            let slot_area =
                self.geometry.slot_area(id, state.slot_index(), state.valid_deltas().blocks(self.geometry.deltas()));
            self.read_part_of(slot_area, self.needed(id, state), bytes)?;
            let slot_area = SlotArea::new(bytes, state.slot_index(), self.geometry.slot());
            // The checksum of the page in a delta block covers the slot, too.
            let is_last = |stamp: ImageStamp| {
                stamp.sequence == state.sequence()
                    && (state.valid_deltas() != ValidDeltas::None || stamp.rewrites == state.rewrites())
            };
            let (base, lsn) = match self.geometry.look(slot_area.slot(), id) {
                SlotContent::Image { stamp, lsn } if is_last(stamp) => (DeltaBase { stamp, lsn }, lsn),
                SlotContent::Image { .. } => return Err(Error::corrupt(id, chain::last_is_lost("image"))),
                _ => return Err(wrong_checksum(id)),
            };
            self.open_slot(id, slot_area.slot(), lsn, page)?;
            let parts = chain::apply_valid(&self.geometry, id, slot_area, base, state.valid_deltas(), page)
                .map_err(|what| Error::corrupt(id, what))?;
            if state.blocks().is_none() {
                self.state.lock().pages.note_blocks(id, state, self.geometry.image_blocks(slot_area.slot()));
            }
            if !state.is_checked() {
                Page::check(page, id)?;
                self.state.lock().pages.note_checked(id, state);
            }
            Ok(parts)
        })
    }

    /// Calls `read` for a page that had this state. At the same time another thread may overwrite the bytes that `read`
    /// reads. So if `read` reports damage, it is called again while no thread writes an image, and only the second
    /// result counts. Returns `None` if the page has been written since it had this state.
    pub(super) fn read_beside_writers<T>(
        &self,
        id: PageId,
        state: PageState,
        mut read: impl FnMut() -> Result<T>,
    ) -> Result<Option<T>> {
        let was_written = || self.state.lock().pages.get(id).written() != state.written();
        match read() {
            Err(Error::Corrupt { .. }) => {}
            Err(_) if was_written() => return Ok(None),
            done => return done.map(Some),
        }
        let _no_image_is_written = self.generation.write();
        if was_written() { Ok(None) } else { read().map(Some) }
    }

    /// Reads dictionaries. Nothing is noted of their pages: it is too early to know which of their images are valid
    /// after a crash. Those of a dictionary that the superblock names are the same before and after a recovery.
    pub(super) fn load_dictionaries(&self, places: &[DictionaryPlace], is_rescue: bool) -> Result<()> {
        load_dictionaries(self.compression.dictionaries(), places, self.geometry.page(), is_rescue, |id, page| {
            let about = self.state.lock().known_of(id);
            let found = self.with_buffer(|area| self.look(id, about, area, page))?;
            let is_present = found.choice.state.image() == ImageState::Present;
            Ok(is_present && Page::check(page, id).is_ok())
        })
    }

    /// The dictionary that the image of a page names.
    pub(super) fn dictionary_of(&self, id: PageId) -> Result<Option<DictionaryId>> {
        loop {
            let (state, _) = self.with_page(|page| self.resolve(id, page))?;
            if state.image() != ImageState::Present {
                return Ok(None);
            }
            if let Some(named) = self.read_beside_writers(id, state, || self.dictionary_in(id, state))? {
                return Ok(named);
            }
        }
    }

    /// The dictionary that the image of a page with this state names.
    fn dictionary_in(&self, id: PageId, state: PageState) -> Result<Option<DictionaryId>> {
        self.with_buffer(|bytes| {
            self.read_part(self.geometry.slot_area(id, state.slot_index(), 0), bytes)?;
            match self.geometry.look(bytes, id) {
                SlotContent::Image { stamp, .. } if stamp.sequence == state.sequence() => {
                    let content = self.geometry.short_content(bytes);
                    Ok(content.and_then(|(encoding, content)| dictionary_of(encoding, content)))
                }
                _ => Err(wrong_checksum(id)),
            }
        })
    }

    /// The blocks of the image of a page that has this state; `None` if the page has none or cannot be read.
    pub(super) fn blocks_of(&self, id: PageId, state: PageState) -> Option<usize> {
        let known = || self.state.lock().pages.get(id).blocks();
        let read = || self.with_page(|page| self.read_image(id, state, page)).ok().and_then(|_| known());
        state.blocks().or_else(read)
    }
}

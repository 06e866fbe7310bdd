//! Writing images into slots, and what the log carries of a page that was written outside it.

use super::ShadowStore;
use super::choice::{Known, Other};
use super::slot::{Side, Stamp};
use super::states::{Kind, PageState};
use crate::base::{Error, Lsn, PageId, Result};
use crate::page::{Page, unpack};
use crate::store::seam::{Base, PageWriter, PlaceBytes};
use crate::store::{ChangedParts, PageStore};

/// The store syncs when this many pages are not synced. Then it can trim the images that these pages replace.
const SYNC_PAGES: usize = 1024;

/// Pages to be written together.
pub(super) struct SlotWriter<'s> {
    store: &'s ShadowStore,
    ids: Vec<PageId>,
    /// Their slots, one after the other; the trailers are still to be written.
    slots: Vec<u8>,
}

impl<'s> SlotWriter<'s> {
    pub(super) fn new(store: &'s ShadowStore) -> SlotWriter<'s> {
        let mut slots = store.buffers.lock().pop().unwrap_or_default();
        slots.clear();
        SlotWriter { store, ids: Vec::new(), slots }
    }
}

impl PageWriter for SlotWriter<'_> {
    fn push(&mut self, id: PageId, page: &[u8], _changed: ChangedParts) -> Base {
        self.ids.push(id);
        self.slots.extend_from_slice(page);
        self.slots.resize(self.ids.len() * self.store.geometry.slot(), 0);
        Base::Moves
    }

    fn write(mut self: Box<Self>) -> Result<()> {
        let len = self.store.geometry.slot();
        let mut slots: Vec<_> = self.ids.iter().copied().zip(self.slots.chunks_mut(len)).collect();
        self.store.write_slots(&mut slots, false)?;
        self.store.sync_if_many()
    }
}

impl Drop for SlotWriter<'_> {
    fn drop(&mut self) {
        self.store.buffers.lock().push(std::mem::take(&mut self.slots));
    }
}

impl ShadowStore {
    /// Fills in the trailers of the slots and writes the slots. On an error each page that has a synced image keeps it.
    /// Any other page may have its old image, the new one or none, until the page is written again.
    /// `kept`: later writes must not overwrite the images, even before a sync.
    fn write_slots(&self, slots: &mut [(PageId, &mut [u8])], kept: bool) -> Result<()> {
        let generation = self.generation.read();
        self.settle(slots.iter().map(|(id, _)| *id))?;
        let mut written = Vec::with_capacity(slots.len());
        for (id, slot) in slots {
            let (side, turn) = self.target(*id)?;
            self.geometry.seal(slot, Stamp { turn, generation: *generation });
            self.put(self.geometry.offset(*id, side), slot)?;
            written.push((*id, PageState::present(side, turn, kept)));
        }
        let mut state = self.state.lock();
        for (id, now) in written {
            state.pages.set(id, now);
            state.unsynced.push(id);
        }
        Ok(())
    }

    /// Where the next image of a page goes, and its turn.
    fn target(&self, id: PageId) -> Result<(Side, u8)> {
        let known = self.state.lock().pages.get(id);
        match known.kind() {
            Kind::Absent | Kind::Present => Ok(known.target()),
            Kind::Unknown | Kind::Dropped => self.find_target(id),
        }
    }

    /// The same, from the slots of a page that has no image that counts. What else is in them must not be taken for
    /// damage later.
    #[cold]
    fn find_target(&self, id: PageId) -> Result<(Side, u8)> {
        self.with_buffer(|buffer| {
            let about = Known { in_log: true, ..self.state.lock().known_of(id) };
            // After a failed sync and a crash, the device may have other bytes than reads show.
            if about.lost.is_none()
                && let Ok(found) = self.look(id, about, buffer)
                && found.other != Other::Spoilt
            {
                return Ok(found.state.synced().target());
            }
            // Neither slot is needed.
            [Side::First, Side::Second].into_iter().try_for_each(|side| self.clear(id, side, buffer))?;
            Ok(PageState::EMPTY.target())
        })
    }

    /// Writes zeros to a slot.
    pub(super) fn clear(&self, id: PageId, side: Side, buffer: &mut Vec<u8>) -> Result<()> {
        buffer.clear();
        buffer.resize(self.geometry.slot(), 0);
        self.put(self.geometry.offset(id, side), buffer)
    }

    /// Syncs where many pages are not synced.
    fn sync_if_many(&self) -> Result<()> {
        if self.state.lock().unsynced.len() < SYNC_PAGES {
            return Ok(());
        }
        self.sync_images()
    }

    /// Writes a packed page outside the log. It is not written over: a record of the log will count on it.
    pub(super) fn write_unlogged(&self, id: PageId, packed: &[u8]) -> Result<PlaceBytes> {
        self.with_buffer(|slot| {
            slot.clear();
            slot.resize(self.geometry.slot(), 0);
            let (page, _) = slot.split_at_mut(self.geometry.page());
            unpack(packed, page)?;
            self.write_slots(&mut [(id, slot.as_mut_slice())], true)
        })?;
        Ok(encode_place(Page::new(packed).lsn()))
    }

    /// Redo of a record that names a place: the image was synced before the record was written, and later ones may follow.
    pub(super) fn install(&self, id: PageId, place: PlaceBytes, lsn: Lsn) -> Result<bool> {
        let least = decode_place(place).ok_or_else(|| no_place(lsn))?;
        if id.0 >= self.ids_end() {
            if self.is_rescued() {
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

pub(super) fn no_place(lsn: Lsn) -> Error {
    Error::CorruptLog { lsn, what: "a record with a place that cannot be one".into() }
}

//! Writing images into slots, and what the log carries of a page that was written outside it.

use super::ShadowStore;
use super::choice::Known;
use super::slot::{Side, Stamp, TURNS};
use super::states::{Kind, PageState};
use crate::base::bytes::get_u8;
use crate::base::{Error, Lsn, PageId, Result};
use crate::page::unpack;
use crate::store::seam::{Base, PageWriter, PlaceBytes};
use crate::store::{ChangedParts, PageStore};

/// After so many pages a sync makes them durable, so that what they replace can be trimmed.
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
        let slots = self.ids.iter().copied().zip(self.slots.chunks_mut(len));
        self.store.write_slots(slots)?;
        self.store.sync_if_many()
    }
}

impl Drop for SlotWriter<'_> {
    fn drop(&mut self) {
        self.store.buffers.lock().push(std::mem::take(&mut self.slots));
    }
}

impl ShadowStore {
    /// Writes slots, whose trailers are filled in. On an error the pages keep their images, but for those whose images no
    /// sync had made durable: of such a page the old image, the new one or none may be there until it is written again.
    fn write_slots<'a>(&self, slots: impl Iterator<Item = (PageId, &'a mut [u8])>) -> Result<()> {
        let generation = self.generation.read();
        let mut written = Vec::new();
        for (id, slot) in slots {
            let (side, turn) = self.target(id)?;
            self.geometry.seal(slot, Stamp { turn, generation: *generation });
            self.put(self.geometry.offset(id, side), slot)?;
            written.push((id, PageState::present(side, turn, false)));
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
            let about = Known { generation: self.state.lock().synced_generation, in_log: true };
            let found = self.look(id, about, buffer);
            if let Ok(found) = &found
                && !found.spoilt
            {
                return Ok(found.state.synced().target());
            }
            // Neither slot is needed.
            buffer.clear();
            buffer.resize(self.geometry.slot(), 0);
            for side in [Side::First, Side::Second] {
                self.put(self.geometry.offset(id, side), buffer)?;
            }
            Ok(PageState::EMPTY.target())
        })
    }

    /// Syncs where many pages are not synced.
    fn sync_if_many(&self) -> Result<()> {
        if self.state.lock().unsynced.len() < SYNC_PAGES {
            return Ok(());
        }
        self.sync_images()
    }

    /// Writes a packed page outside the log.
    pub(super) fn write_unlogged(&self, id: PageId, packed: &[u8]) -> Result<PlaceBytes> {
        self.with_buffer(|slot| {
            slot.clear();
            slot.resize(self.geometry.slot(), 0);
            let (page, _) = slot.split_at_mut(self.geometry.page());
            unpack(packed, page)?;
            self.write_slots([(id, slot.as_mut_slice())].into_iter())
        })?;
        let state = self.state.lock().pages.get(id);
        Ok(encode_place(state.side(), state.turn()))
    }

    /// Redo of a record that names a place: the image was synced before the record was written.
    pub(super) fn install(&self, id: PageId, place: PlaceBytes, lsn: Lsn) -> Result<bool> {
        let (side, turn) = decode_place(place).ok_or_else(|| no_place(lsn))?;
        if id.0 >= self.ids_end() {
            if self.is_rescued() {
                return Ok(false);
            }
            let what = format!("it puts page {id} beyond the end of the file");
            return Err(Error::CorruptLog { lsn, what });
        }
        self.state.lock().pages.set(id, PageState::present(side, turn, true));
        Ok(true)
    }
}

/// A place for the log: `side u8 | turn u8`.
fn encode_place(side: Side, turn: u8) -> PlaceBytes {
    PlaceBytes::new(&[u8::from(side == Side::Second), turn]).unwrap_or(PlaceBytes::EMPTY)
}

/// Reads what [`encode_place`] wrote; `None` for anything else.
pub(super) fn decode_place(place: PlaceBytes) -> Option<(Side, u8)> {
    let side = match get_u8(&place, 0) {
        0 => Side::First,
        1 => Side::Second,
        _ => return None,
    };
    let turn = get_u8(&place, 1);
    (place.len() == 2 && turn < TURNS).then_some((side, turn))
}

pub(super) fn no_place(lsn: Lsn) -> Error {
    Error::CorruptLog { lsn, what: "a record with a place that cannot be one".into() }
}

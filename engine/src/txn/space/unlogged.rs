//! Pages that are written outside the log: those of bulk loads and of large values. A commit makes them part of the
//! database.

use crate::base::watermark::Watermark;
use crate::base::{Error, Lsn, PageId, Result};
use crate::page::{PageOp, apply, set_lsn};
use crate::store::PlaceBytes;
use crate::txn::commit::REMOVAL_PAGES;
use crate::txn::engine::Engine;

/// Bytes of such pages that are best written together.
pub(crate) const UNLOGGED_BATCH: usize = 1 << 20;

impl Engine {
    /// Writes packed pages to the store, or to the pool of an in-memory database. Returns their places, in order.
    ///
    /// The LSN of a page is greater than that of every logged operation on an earlier page with this id, so redo does
    /// not change the new page. If the id may have been freed after the redo point, that LSN is the end of the log.
    /// Otherwise it is the end of the durable log: if the page is not committed and stays in the file, its LSN must not
    /// be one that the log uses again after a crash.
    pub(crate) fn write_unlogged(&self, pages: &mut [(PageId, Vec<u8>)]) -> Result<Vec<Option<PlaceBytes>>> {
        let Some(store) = &self.store else {
            for (id, packed) in &*pages {
                let mut page = self.pool.create(*id)?;
                apply(&mut page, &PageOp::Format { packed: packed.into() }, Lsn::ZERO)?;
            }
            return Ok(vec![None; pages.len()]);
        };
        let log = self.log()?;
        let lsn = if store.file().kind().reuses_ids() { log.next_lsn() } else { log.durable() };
        pages.iter_mut().for_each(|(_, packed)| set_lsn(packed, lsn));
        // Two threads can write for one transaction. If both were promised the same room, they would use that of the
        // dirty pages.
        let _room = self.unlogged_room.lock();
        // The space that is reserved for dirty pages must stay free.
        let can_be_stored = pages.iter().all(|(id, _)| id.0 < store.most_pages());
        let ensure_room = || match can_be_stored {
            true => self.ensure_room((REMOVAL_PAGES + pages.len()) as u64, REMOVAL_PAGES as u64),
            false => Err(Error::Full { path: store.file().path().to_owned() }),
        };
        match ensure_room() {
            Err(Error::Full { .. }) => self.shorten_log().and_then(|()| ensure_room())?,
            ensured => ensured?,
        }
        Ok(store.write_unlogged(pages)?.into_iter().map(Some).collect())
    }

    /// How full a bulk load should make pages. In a file the store may change `fill`.
    pub(crate) fn best_fill(&self, fill: f32) -> f32 {
        self.store.as_ref().map_or(fill, |store| store.file().kind().best_fill(self.page_size(), fill))
    }
}

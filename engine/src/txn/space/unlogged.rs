//! Pages that are written outside the log, those of bulk loads and of large values. A commit makes them part of the
//! database.

use crate::base::watermark::Watermark;
use crate::base::{Error, Lsn, PageId, Result};
use crate::page::{self, PageOp};
use crate::store::PlaceBytes;
use crate::txn::commit::RELIEF_PAGES;
use crate::txn::engine::Engine;

impl Engine {
    /// Writes a page to the store, or to the pool of an in-memory database.
    ///
    /// Its LSN is beyond every operation on an earlier page of this id: redo must leave the new page alone. If the id was freed
    /// after the redo point that is the log's end. Otherwise it is the end of the durable log: if the page is never committed,
    /// and stays in the file, the LSN must not be one that the log gives again after a crash.
    pub(crate) fn write_unlogged(&self, id: PageId, packed: &[u8]) -> Result<Option<PlaceBytes>> {
        let Some(store) = &self.store else {
            let mut page = self.pool.create(id)?;
            page::apply(&mut page, &PageOp::Format { packed: packed.into() }, Lsn::ZERO)?;
            return Ok(None);
        };
        let mut packed = packed.to_vec();
        let log = self.log()?;
        page::set_lsn(&mut packed, if store.reuses_ids_at_once() { log.next_lsn() } else { log.durable() });
        // The room for dirty pages stays theirs.
        let ensure_room = || store.ensure_room(self.pool.dirty_pages() + RELIEF_PAGES as u64 + 1);
        match ensure_room() {
            Err(Error::Full { .. }) => self.shorten_log().and_then(|()| ensure_room())?,
            ensured => ensured?,
        }
        store.write_unlogged(id, &packed).map(Some)
    }

    /// How full a bulk load should make pages: `fill`, or, in a file, what the store makes of it.
    pub(crate) fn best_fill(&self, fill: f32) -> f32 {
        self.store.as_ref().map_or(fill, |store| store.best_fill(fill))
    }
}

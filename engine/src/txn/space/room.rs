//! Room for the pages that a batch will write.

use crate::base::{Error, Result};
use crate::txn::engine::Engine;

impl Engine {
    /// Reserves space in the file for all dirty pages and for `pages` other pages, of which `new` may be new.
    ///
    /// # Errors
    /// [`Error::Full`]; nothing is reserved then.
    pub(in crate::txn) fn ensure_room(&self, pages: u64, new: u64) -> Result<()> {
        let Some(store) = &self.store else { return Ok(()) };
        let most = store.most_pages();
        if most < u32::MAX {
            let ids = self.ids.lock();
            let unused = u64::from(most.saturating_sub(ids.high()));
            // The first page after the high-water mark may be an allocation map.
            if new > 0 && unused < new + 1 && unused + ids.free_count() < new + 1 {
                return Err(Error::Full { path: store.file().path().to_owned() });
            }
        }
        store.ensure_room(self.pool.dirty_pages() + pages)
    }
}

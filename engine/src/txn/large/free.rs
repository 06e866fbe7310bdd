//! Frees runs, after a check that the large record points to a run.

use super::LargeRecord;
use crate::base::limits::PAGE_HEADER;
use crate::base::{Error, PageId, Result};
use crate::page::{Page, PageKind, run_capacity};
use crate::store::PageStore;
use crate::txn::commit::applier::Applier;
use crate::txn::engine::Engine;
use crate::txn::space::page_ids::ids_per_map;

impl LargeRecord {
    /// True if the pages of the run are in use and have the lengths that the run needs. A page is read only if the
    /// store cannot tell its length.
    fn is_sound(&self, engine: &Engine) -> Result<bool> {
        let Some(store) = &engine.store else { return Ok(true) };
        let (page_size, high) = (engine.pool.page_size(), engine.ids.lock().high());
        let per_map = ids_per_map(page_size);
        if self.first.0.is_multiple_of(per_map) {
            return Ok(false);
        }
        let (mut left, mut map, mut page) = (self.len, None, vec![0; page_size]);
        let mut ids = self.pages(page_size).peekable();
        while let Some(id) = ids.next() {
            if id.0 >= high {
                return Ok(false);
            }
            let own = PageId(id.0 - id.0 % per_map);
            if map.as_ref().is_none_or(|(at, _)| *at != own) {
                // Release the latch of the last map before the next one is latched.
                drop(map.take());
                map = Some((own, engine.pool.read(own)?));
            }
            let taken = map.as_ref().is_some_and(|(_, page)| Page::new(page).bit(id.0 % per_map));
            let payload = left.min(run_capacity(page_size));
            let right = ids.peek().copied().unwrap_or(PageId::NONE);
            let is_right = match store.has_length(id, PAGE_HEADER + payload) {
                _ if !taken => false,
                Some(is_right) => is_right,
                None => is_part_of_run(&**store, id, right, payload, &mut page)?,
            };
            if !is_right {
                return Ok(false);
            }
            left -= payload;
        }
        Ok(true)
    }
}

/// Reads a page. True if it is a page of a run with this payload, and `right` is the next one.
fn is_part_of_run(store: &dyn PageStore, id: PageId, right: PageId, payload: usize, page: &mut [u8]) -> Result<bool> {
    // One wrong read must not count as damage: the whole run would stay in use for ever.
    let read = match store.read(id, page) {
        Err(error) if error.is_of_a_page() => store.read(id, page),
        read => read,
    };
    match read {
        Ok(None) | Err(Error::Corrupt { .. }) => Ok(false),
        Ok(Some(_)) => {
            let page = Page::new(page);
            Ok(page.kind() == PageKind::Run && page.right() == right && page.payload().len() == payload)
        }
        Err(error) => Err(error),
    }
}

/// The run of a large value that a commit removes. `None` also if this device or this build cannot read a page of
/// it: the commit must not fail for that. Then the pages stay in use, and `verify` reports them.
pub(crate) fn run_to_remove(engine: &Engine, record: &[u8]) -> Result<Option<SoundRun>> {
    sound_run(engine, record).or_else(|cause| match cause.is_of_a_page() {
        true => {
            tracing::warn!(%cause, "a large value is removed, and its pages stay in use");
            Ok(None)
        }
        false => Err(cause),
    })
}

/// A run that was checked and can be freed.
pub(crate) struct SoundRun(LargeRecord);

/// The run of a large record, or `None` if the record is damaged. A damaged record may point to pages that belong to
/// something else, so its run is not freed.
///
/// # Errors
/// Those of reading allocation maps. Of a page of the run: errors of the device, and [`Error::NotBuilt`].
pub(crate) fn sound_run(engine: &Engine, record: &[u8]) -> Result<Option<SoundRun>> {
    let run = match LargeRecord::decode(record) {
        Ok(run) => run,
        Err(cause) => {
            tracing::warn!(%cause, "the run of a damaged large record is not freed");
            return Ok(None);
        }
    };
    if !run.is_sound(engine)? {
        tracing::warn!(page = %run.first, "a damaged large record points to pages that are not its run; the run is not freed");
        return Ok(None);
    }
    Ok(Some(SoundRun(run)))
}

impl SoundRun {
    /// Marks its pages as free. Snapshots may still read them, so their ids are released together with the version
    /// event that has the record.
    pub(crate) fn free_later(&self, engine: &Engine, applier: &Applier<'_>) -> Result<()> {
        applier.free_later(self.0.pages(engine.pool.page_size()))
    }

    /// Frees its pages. No snapshot can read them.
    pub(crate) fn free_now(&self, engine: &Engine, applier: &Applier<'_>) -> Result<()> {
        self.free_later(engine, applier)?;
        applier.release(self.0.pages(engine.pool.page_size()));
        Ok(())
    }
}

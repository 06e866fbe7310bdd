//! Allocation maps, which store durably which pages are in use; taking and releasing page ids.

use super::id_ranges::IdRanges;
use super::page_ids::ids_per_map;
use crate::base::watermark::Watermark;
use crate::base::{Error, Lsn, PageId, Result};
use crate::page::Page;
use crate::txn::engine::Engine;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

impl Engine {
    pub(crate) fn maps_known(&self, map: PageId) -> bool {
        self.maps.lock().contains(&map)
    }

    pub(crate) fn map_created(&self, map: PageId) {
        self.maps.lock().insert(map);
    }

    /// All allocation map pages.
    pub(crate) fn map_pages(&self) -> Vec<PageId> {
        self.maps.lock().iter().copied().collect()
    }

    /// How many allocation map pages there are.
    pub(crate) fn map_count(&self) -> usize {
        self.maps.lock().len()
    }

    /// The pages that are in use according to an allocation map.
    pub(crate) fn taken_pages(&self, map: PageId) -> Result<Vec<PageId>> {
        let page = self.pool.read(map)?;
        let page = Page::new(&page);
        let ids = (0..ids_per_map(self.page_size())).filter(|bit| page.bit(*bit));
        Ok(ids.map(|bit| PageId(map.0 + bit)).collect())
    }

    /// Takes a free page id.
    pub(crate) fn take_page_id(&self) -> Result<PageId> {
        self.ids.lock().take()
    }

    /// Takes `count` page ids that no transaction uses until the database is opened again.
    #[cfg(test)]
    pub(crate) fn skip_page_ids(&self, count: u32) -> Result<()> {
        self.ids.lock().take_run(count as usize).map(drop)
    }

    /// One more than the highest page id ever taken.
    pub(crate) fn ids_end(&self) -> u32 {
        self.ids.lock().high()
    }

    /// Drops the content of freed pages. Their ids can be taken again when the store permits it. A page that the store
    /// cannot drop keeps its id and its place until a later checkpoint, which tries again.
    pub(crate) fn release_pages(&self, pages: &[PageId]) {
        // Most commits free no page.
        if pages.is_empty() {
            return;
        }
        self.frees.fetch_add(1, Ordering::AcqRel);
        let at_once = self.store.as_ref().is_none_or(|store| store.file().kind().reuses_ids());
        let (mut free, mut later, mut has_failed) = (Vec::new(), Vec::new(), false);
        for &id in pages {
            self.pool.forget(id);
            let mut is_free = at_once;
            if let Some(store) = &self.store {
                if let Err(cause) = store.drop_page(id) {
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::warn!(%cause, page = %id, "cannot drop a freed page; later checkpoints try again");
                    }
                    is_free = false;
                }
                // A reader that followed an old link may have read the page again before the store dropped it. Remove
                // this copy from the pool: the next page with this id may be written to the store past the pool.
                self.pool.forget(id);
            }
            if is_free { &mut free } else { &mut later }.push(id);
        }
        if !later.is_empty()
            && let Some(log) = self.log.get()
        {
            self.add_pending_frees(log.appended(), later.into_iter());
        }
        let mut ids = self.ids.lock();
        free.into_iter().for_each(|id| ids.give_back(id));
    }

    /// Withholds ids that records before `end` have freed, until the redo point of a checkpoint is `end` or later.
    pub(crate) fn add_pending_frees(&self, end: Lsn, pages: impl Iterator<Item = PageId>) {
        self.pending_frees.add(end, pages);
    }

    /// Makes the ids available that were freed before `redo`, the new redo point.
    pub(in crate::txn) fn release_pending_frees(&self, redo: Lsn) {
        let Some(store) = &self.store else { return };
        let ids = self.pending_frees.take_before(redo);
        if store.file().kind().reuses_ids() {
            // The ids are here because the store could not drop these pages. Drop them again.
            return self.release_pages(&ids);
        }
        for id in ids {
            store.discard_page(id);
            self.ids.lock().give_back(id);
        }
    }

    /// Reads from the allocation maps which page ids are free. Drops pages that are in no map: they were written by
    /// transactions that did not commit. The pages in `reserved` belong to a large transaction that recovery will
    /// complete. The ids in `pending_frees` must not be used yet. A damaged map stops all writing. `missing` is the
    /// error if maps are missing. Then the engine does not know which ids of a map without an image are in use.
    pub(crate) fn load_maps(
        &self,
        high: u32,
        reserved: &BTreeSet<PageId>,
        pending_frees: &IdRanges,
        missing: Option<&Error>,
    ) -> Result<()> {
        if let Some(missing) = missing {
            self.poison(missing);
        }
        let per_map = ids_per_map(self.page_size());
        let residents = self.pool.residents();
        for map in (0..high).step_by(per_map as usize).map(PageId) {
            let end = PageId(high.min(map.0.saturating_add(per_map)));
            let known = match self.pool.exists(map).then(|| self.pool.read(map)).transpose() {
                Err(Error::Corrupt { page, what }) => {
                    self.map_created(map);
                    self.poison(&map_damaged(page, &what));
                    continue;
                }
                known => known?,
            };
            match known {
                Some(_) => self.map_created(map),
                None if missing.is_some() => continue,
                None => {}
            }
            let is_free = |id: PageId| {
                let taken = known.as_ref().is_some_and(|page| Page::new(page).bit(id.0 - map.0));
                id > map && !taken && !reserved.contains(&id) && !pending_frees.contains(id)
            };
            let [from, to] = [map, end].map(|border| residents.partition_point(|id| *id < border));
            let of_map = residents.get(from..to).unwrap_or_default().iter().copied();
            let stored = self.store.as_ref().map(|store| store.known_between(map, end)).transpose()?;
            for id in stored.into_iter().flatten().chain(of_map).filter(|id| is_free(*id)) {
                self.pool.forget(id);
                if let Some(store) = &self.store {
                    store.drop_page(id)?;
                }
            }
            let all = known.is_none() && reserved.range(map..end).next().is_none();
            self.give_back_of_map(map, end, all, is_free);
        }
        Ok(())
    }

    /// Makes the free ids of a map available. `all` is true if none of its ids is in use.
    fn give_back_of_map(&self, map: PageId, end: PageId, all: bool, is_free: impl Fn(PageId) -> bool) {
        let mut ids = self.ids.lock();
        let first = map.0 + 1;
        if all {
            return ids.give_back_run(PageId(first), end.0.saturating_sub(first));
        }
        let (mut start, mut count) = (first, 0);
        for id in first..end.0 {
            if is_free(PageId(id)) {
                count += 1;
                continue;
            }
            ids.give_back_run(PageId(start), count);
            (start, count) = (id + 1, 0);
        }
        ids.give_back_run(PageId(start), count);
    }
}

/// The error with which a damaged allocation map stops all writing.
pub(crate) fn map_damaged(map: PageId, what: &str) -> Error {
    let costs = "no entry is lost, and all tables can be copied to a new database";
    Error::CorruptMeta { what: "the allocation map", why: format!("page {map}: {what} ({costs})") }
}

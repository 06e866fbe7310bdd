//! The simplest page store: one fixed slot a page, written in place. A torn write damages a page. It is for tests of
//! the layers above the trait `PageStore`.

use crate::base::bytes::get_u64;
use crate::base::{Damage, Error, Lsn, PageId, Result};
use crate::io::WriteKind;
use crate::page::{Page, unpack};
use crate::store::kinds::StoreFormat;
use crate::store::superblock::{FRONT, Meta};
use crate::store::{
    Base, ChangedParts, CheckpointToken, DatabaseFile, FoundImage, PageSource, PageStore, PageWriter, PlaceBytes,
    RescuedStore, StoreCheckpoints, StoreCompression, StoreReads, StoreRedo, StoreRoom, StoreStats, StoreSurvey,
    StoreWrites, SuperblockChoice,
};
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// True while this thread cannot drop pages.
    pub(crate) static DROPS_FAIL: Cell<bool> = const { Cell::new(false) };
}

#[derive(Debug, Default)]
struct SlotState {
    pages: BTreeMap<PageId, Vec<u8>>,
    /// The images with which these pages are compared to find their changes.
    bases: BTreeMap<PageId, Vec<u8>>,
    /// Dropped since the last checkpoint began, and before it: their slots are emptied by a checkpoint.
    dropped: BTreeSet<PageId>,
    freed_at_this_checkpoint: BTreeSet<PageId>,
    checkpoints: u64,
}

#[derive(Debug)]
pub(in crate::store) struct SlotStore {
    file: DatabaseFile,
    state: Mutex<SlotState>,
    written: AtomicU64,
}

impl StoreFormat for SlotStore {
    fn open(file: DatabaseFile) -> Result<SlotStore> {
        let header = file.store_header();
        let mut state = SlotState { checkpoints: get_u64(&header, 0), ..SlotState::default() };
        let len = file.page_size() as u64;
        let slots = file.disk().size()?.saturating_sub(FRONT as u64) / len;
        for id in (0..slots as u32).map(PageId) {
            let mut page = vec![0; len as usize];
            file.disk().read_at(slot(&file, id), &mut page)?;
            if page.iter().any(|byte| *byte != 0) {
                assert_eq!(Page::new(&page).id(), id);
                state.bases.insert(id, page.clone());
                state.pages.insert(id, page);
            }
        }
        Ok(SlotStore { file, state: Mutex::new(state), written: AtomicU64::new(0) })
    }

    fn rescue(file: DatabaseFile, _: SuperblockChoice, _: PageSource, _: Vec<Damage>) -> Result<RescuedStore> {
        Err(Error::NotFound { path: file.path().to_owned() })
    }
}

impl SlotStore {
    fn put(&self, id: PageId, page: &[u8]) -> Result<()> {
        self.file.disk().write_as(WriteKind::Page, slot(&self.file, id), page)?;
        self.written.fetch_add(page.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn keep(&self, id: PageId, page: Vec<u8>, base: Base) {
        let mut state = self.state.lock();
        state.dropped.remove(&id);
        if base == Base::Moves {
            state.bases.insert(id, page.clone());
        }
        state.pages.insert(id, page);
    }
}

fn slot(file: &DatabaseFile, id: PageId) -> u64 {
    FRONT as u64 + u64::from(id.0) * file.page_size() as u64
}

struct SlotWriter<'s> {
    store: &'s SlotStore,
    pages: Vec<(PageId, Vec<u8>, Base)>,
}

impl PageWriter for SlotWriter<'_> {
    /// Checks that no change was missed. Half of the images count as changes to an older one.
    fn push(&mut self, id: PageId, page: &[u8], changed: ChangedParts) -> Base {
        let state = self.store.state.lock();
        let base = match state.bases.get(&id) {
            None => {
                assert_eq!(changed, ChangedParts::ALL, "page {id} has no base");
                Base::Moves
            }
            Some(base) => {
                let mut rebuilt = base.clone();
                rebuilt[..ChangedParts::LSN].copy_from_slice(&page[..ChangedParts::LSN]);
                for range in changed.ranges(page.len()) {
                    rebuilt[range.clone()].copy_from_slice(&page[range]);
                }
                assert!(rebuilt == page, "a change of page {id} was missed");
                if Page::new(page).lsn().0.is_multiple_of(2) { Base::Moves } else { Base::Stays }
            }
        };
        self.pages.push((id, page.to_vec(), base));
        base
    }

    fn write(self: Box<Self>) -> Result<()> {
        let written = self.pages.iter().try_for_each(|(id, page, _)| self.store.put(*id, page));
        if let Err(error) = written {
            let state = self.store.state.lock();
            let old = self.pages.iter().filter_map(|(id, ..)| Some((id, state.pages.get(id)?)));
            old.for_each(|(id, page)| self.store.put(*id, page).unwrap());
            return Err(error);
        }
        self.pages.into_iter().for_each(|(id, page, base)| self.store.keep(id, page, base));
        Ok(())
    }
}

impl PageStore for SlotStore {}

impl StoreReads for SlotStore {
    fn exists(&self, id: PageId) -> bool {
        self.state.lock().pages.contains_key(&id)
    }

    fn read(&self, id: PageId, page: &mut [u8]) -> Result<Option<ChangedParts>> {
        let state = self.state.lock();
        let Some(expected) = state.pages.get(&id) else { return Ok(None) };
        self.file.disk().read_at(slot(&self.file, id), page)?;
        if page != expected {
            return Err(Error::corrupt(id, "it is not what was written"));
        }
        Ok(Some(state.bases.get(&id).map_or(ChangedParts::ALL, |base| ChangedParts::between(base, page))))
    }

    fn pages(&self) -> Result<Vec<PageId>> {
        Ok(self.state.lock().pages.keys().copied().collect())
    }

    fn ids_end(&self) -> u32 {
        self.state.lock().pages.last_key_value().map_or(0, |(id, _)| id.0 + 1)
    }
}

impl StoreWrites for SlotStore {
    fn max_changed_bytes(&self) -> Option<usize> {
        Some(usize::MAX)
    }

    fn writer(&self) -> Box<dyn PageWriter + '_> {
        Box::new(SlotWriter { store: self, pages: Vec::new() })
    }

    fn write_unlogged(&self, pages: &[(PageId, Vec<u8>)]) -> Result<Vec<PlaceBytes>> {
        let write = |(id, packed): &(PageId, Vec<u8>)| {
            let mut page = vec![0; self.file.page_size()];
            unpack(packed, &mut page)?;
            (self as &dyn PageStore).write(*id, &page)?;
            Ok(PlaceBytes::new(&[]).unwrap())
        };
        pages.iter().map(write).collect()
    }

    fn drop_page(&self, id: PageId) -> Result<()> {
        if DROPS_FAIL.get() {
            return Err(Error::corrupt(id, "a test"));
        }
        let mut state = self.state.lock();
        state.bases.remove(&id);
        if state.pages.remove(&id).is_some() {
            state.dropped.insert(id);
        }
        Ok(())
    }
}

impl StoreCheckpoints for SlotStore {
    fn file(&self) -> &DatabaseFile {
        &self.file
    }

    fn begin_checkpoint(&self) -> CheckpointToken {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        state.freed_at_this_checkpoint.append(&mut state.dropped);
        state.checkpoints += 1;
        CheckpointToken(state.checkpoints)
    }

    fn finish(&self, token: CheckpointToken, meta: Meta) -> Result<()> {
        let mut update = self.file.begin_update()?;
        if self.state.lock().checkpoints != token.0 {
            return Err(Error::Poisoned { cause: "a checkpoint was overtaken by a newer one".into() });
        }
        self.file.sync()?;
        update.write(meta, token.0.to_le_bytes().to_vec())?;
        let mut state = self.state.lock();
        let gone: Vec<PageId> = std::mem::take(&mut state.freed_at_this_checkpoint).into_iter().collect();
        let gone = gone.into_iter().filter(|id| !state.pages.contains_key(id) && !state.dropped.contains(id));
        // A failure leaves pages that nobody knows, which the next opening drops.
        gone.for_each(|id| drop(self.put(id, &vec![0; self.file.page_size()])));
        Ok(())
    }
}

impl StoreRedo for SlotStore {
    fn reserve(&self, place: PlaceBytes, lsn: Lsn) -> Result<()> {
        if place.is_empty() { Ok(()) } else { Err(Error::CorruptLog { lsn, what: "a place".into() }) }
    }

    /// Unless the page was dropped, it is where it was written; redo of what came before may have done that.
    fn install(&self, id: PageId, place: PlaceBytes, lsn: Lsn) -> Result<bool> {
        self.reserve(place, lsn)?;
        let mut page = vec![0; self.file.page_size()];
        self.file.disk().read_at(slot(&self.file, id), &mut page)?;
        self.keep(id, page, Base::Moves);
        Ok(true)
    }
}

impl StoreRoom for SlotStore {
    fn ensure_room(&self, _pages: u64) -> Result<()> {
        Ok(())
    }
}

impl StoreCompression for SlotStore {}

impl StoreSurvey for SlotStore {
    fn survey(&self, visit: &mut dyn FnMut(FoundImage<'_>)) -> Result<()> {
        for (id, page) in &self.state.lock().pages {
            let mut packed = Vec::new();
            Page::new(page).packed_into(&mut packed);
            visit(FoundImage { page: *id, lsn: Page::new(page).lsn(), packed: &packed });
        }
        Ok(())
    }

    fn place_bytes(&self, id: PageId) -> Option<u64> {
        self.exists(id).then_some(self.file.page_size() as u64)
    }

    fn stats(&self) -> StoreStats {
        let pages = self.state.lock().pages.len() as u64;
        StoreStats {
            file_bytes: self.file.disk().size().unwrap(),
            live_bytes: pages * self.file.page_size() as u64,
            pages,
            written_bytes: self.written.load(Ordering::Relaxed),
            ..StoreStats::default()
        }
    }
}

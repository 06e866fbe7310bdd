//! Tests of what a recovery takes for the page if durable deltas were overwritten before the process died, and of
//! recoveries that are cut.

use super::states::ValidDeltas;
use super::tests::{ID, store_on, store_with};
use super::*;
use crate::io::{MemoryDisk, SECTOR};
use crate::store::StoreKind;
use crate::store::tests::{disk, meta_of, sample_of};
use std::path::Path;
use std::sync::Arc;

/// The end of a log that has lost nothing.
const WHOLE: Lsn = Lsn(1000);

/// A page whose last checkpoint has all of its deltas.
struct Life {
    disk: Arc<dyn Disk>,
    store: ShadowStore,
    page: Vec<u8>,
    parts: ChangedParts,
}

impl Life {
    /// A page with a synced image, without deltas.
    fn begin(blocks: u8) -> Life {
        let disk: Arc<dyn Disk> = disk();
        let (store, page) = store_with(disk.clone(), DeltaBlocks { threshold: 3000, segment: 32, blocks });
        Life { disk, store, page, parts: ChangedParts::NONE }
    }

    fn lsn(&self) -> Lsn {
        Page::new(&self.page).lsn()
    }

    /// Writes the page with a change that takes several sectors of a delta block, but for the last 20 pages whole.
    fn change(&mut self) -> ValidDeltas {
        let before = self.page.clone();
        self.page[0] += 1;
        self.page[1000..2500].iter_mut().step_by(16).for_each(|byte| *byte = byte.wrapping_add(2));
        let now = ChangedParts::between(&before, &self.page);
        self.parts.0.iter_mut().zip(now.0).for_each(|(word, bits)| *word |= bits);
        let mut writer = self.store.writer();
        if writer.push(ID, &self.page, self.parts) == crate::store::Base::Moves {
            self.parts = ChangedParts::NONE;
        }
        writer.write().unwrap();
        self.store.state_of(ID).valid_deltas()
    }

    fn change_durably(&mut self) -> ValidDeltas {
        let valid = self.change();
        self.store.sync_images().unwrap();
        valid
    }

    /// A checkpoint that has all changes so far.
    fn checkpoint(&self) {
        let meta = Meta { redo: Lsn(self.lsn().0 + 1), ..meta_of(StoreKind::Shadow) };
        self.store.finish(self.store.begin_checkpoint(), meta).unwrap();
    }

    /// Writes the page whole.
    fn rewrite_durably(&mut self) {
        self.page[0] += 1;
        self.store.write(ID, &self.page).unwrap();
        self.parts = ChangedParts::NONE;
        self.store.sync_images().unwrap();
    }

    /// The bytes of the slot that was written last.
    fn slot(&self) -> Range<u64> {
        self.store.geometry.slot_area(ID, self.store.state_of(ID).slot_index(), 0)
    }

    /// The next process, which reads the same bytes with a change made by `damage`, and finds this end of the log.
    fn recover(&self, end: Lsn, damage: impl FnOnce(&dyn Disk)) -> Result<Vec<u8>> {
        let copy = copy_of(&*self.disk);
        damage(&*copy);
        let store = open(&copy, end);
        let mut page = vec![0; self.page.len()];
        store.read(ID, &mut page).map(|found| found.map(|_| page).unwrap_or_default())
    }
}

pub(super) fn copy_of(disk: &dyn Disk) -> Arc<dyn Disk> {
    let mut bytes = vec![0; usize::try_from(disk.size().unwrap()).unwrap()];
    disk.read_at(0, &mut bytes).unwrap();
    let copy = MemoryDisk::new();
    copy.write_at(0, &bytes).unwrap();
    Arc::new(copy)
}

/// A store whose log ends there and changes the page.
pub(super) fn open(disk: &Arc<dyn Disk>, end: Lsn) -> ShadowStore {
    let store = ShadowStore::open(DatabaseFile::open(disk.clone(), Path::new("db")).unwrap()).unwrap();
    store.note_log_end(end).unwrap();
    store.note_in_log(ID);
    store
}

#[test]
fn a_delta_of_a_newer_image_shows_that_the_image_was_durable() {
    for blocks in [1, 2, 4] {
        let mut life = Life::begin(blocks);
        // The last one is in the block that is next to the other slot.
        let deltas = usize::from(blocks.max(2));
        (0..deltas).for_each(|_| assert_ne!(life.change_durably(), ValidDeltas::None));
        life.checkpoint();
        life.rewrite_durably();
        life.change();
        let slot = life.slot();
        assert!(life.recover(WHOLE, |_| {}).unwrap() == life.page);
        let is_refused = |damage: &dyn Fn(&dyn Disk)| {
            let result = life.recover(WHOLE, damage);
            assert!(matches!(result, Err(Error::Corrupt { page: ID, .. })), "{blocks}: an older page is read");
        };
        for at in [0, 8, 1000, slot.end - slot.start - 12, slot.end - slot.start - 1] {
            is_refused(&|disk| {
                let mut byte = [0];
                disk.read_at(slot.start + at, &mut byte).unwrap();
                disk.write_at(slot.start + at, &[byte[0] ^ 1]).unwrap();
            });
        }
        // The write of the image was lost.
        is_refused(&|disk| disk.write_at(slot.start, &vec![0; life.store.geometry.slot()]).unwrap());
    }
}

#[test]
fn a_page_is_not_read_without_deltas_that_changes_beyond_the_end_of_the_log_have_overwritten() {
    for blocks in [1, 2, 4] {
        for deltas in 0..=usize::from(blocks.max(2)) {
            let mut life = Life::begin(blocks);
            (0..deltas).for_each(|_| assert_ne!(life.change_durably(), ValidDeltas::None));
            life.checkpoint();
            let (before, end) = (life.page.clone(), life.lsn());
            life.rewrite_durably();
            life.change();
            let result = life.recover(end, |_| {});
            // The invalidated delta may have overwritten the last one.
            match deltas + 1 < usize::from(blocks.max(2)) {
                true => assert!(result.unwrap() == before, "{blocks}, {deltas}"),
                false => assert!(matches!(result, Err(Error::Corrupt { page: ID, .. })), "{blocks}, {deltas}"),
            }
        }
    }
}

/// Which sectors of a block a torn write has written.
type Tear = fn(usize) -> bool;
const TEARS: [Tear; 4] =
    [|sector| sector == 0, |sector| sector > 0, |sector| sector % 2 == 0, |sector| sector % 2 == 1];

/// A copy of `before` in which the writes of `after` are torn.
fn torn(before: &dyn Disk, after: &dyn Disk, tear: Tear) -> Arc<dyn Disk> {
    let copy = copy_of(before);
    let mut sector = [0; SECTOR];
    for at in (0..after.size().unwrap()).step_by(SECTOR) {
        if tear(usize::try_from(at).unwrap() % BLOCK / SECTOR) {
            after.read_at(at, &mut sector).unwrap();
            copy.write_at(at, &sector).unwrap();
        }
    }
    copy
}

/// Makes a last small change of a page, which a cut tears. Cuts the next write of the page by the recovery, too.
fn cut_twice(life: &mut Life, is_whole: bool) {
    let before = copy_of(&*life.disk);
    let durable = life.page.clone();
    life.change();
    for first in TEARS {
        let cut = torn(&*before, &*life.disk, first);
        let mut page = vec![0; durable.len()];
        let store = open(&cut, WHOLE);
        let parts = store.read(ID, &mut page).unwrap().unwrap();
        assert!(page == durable, "the change that was torn is lost");
        let found = copy_of(&*cut);
        let mut next = Life { disk: cut, store, page, parts };
        match is_whole {
            true => next.rewrite_durably(),
            false => drop(next.change()),
        }
        for second in TEARS {
            let cut = torn(&*found, &*next.disk, second);
            let mut page = vec![0; durable.len()];
            assert!(open(&cut, WHOLE).read(ID, &mut page).unwrap().is_some());
            assert!(page == durable, "an older page is read");
        }
        assert!(next.recover(WHOLE, |_| {}).unwrap() == next.page);
    }
}

#[test]
fn a_recovery_overwrites_no_delta_that_may_have_been_durable() {
    for is_whole in [false, true] {
        for deltas in 1..7 {
            let mut life = Life::begin(1);
            (0..deltas).for_each(|_| assert_ne!(life.change_durably(), ValidDeltas::None));
            life.checkpoint();
            // The log has this change. The next one is written over the delta of the checkpoint.
            assert_ne!(life.change_durably(), ValidDeltas::None);
            cut_twice(&mut life, is_whole);
        }
    }
}

#[test]
fn a_recovery_overwrites_no_image_that_may_have_been_durable() {
    for (blocks, is_whole) in [(1, false), (1, true), (2, false), (2, true), (4, false), (4, true)] {
        let mut life = Life::begin(blocks);
        (0..blocks.max(2)).for_each(|_| assert_ne!(life.change_durably(), ValidDeltas::None));
        life.checkpoint();
        // The log has this change. The next one is written over a delta of the checkpoint.
        life.rewrite_durably();
        cut_twice(&mut life, is_whole);
    }
}

#[test]
fn a_recovery_syncs_once_before_it_overwrites_all_that_it_has_read() {
    let disk = disk();
    let (store, page) = store_on(disk.clone(), 1);
    let ids = || (20..30).map(PageId);
    let with = |id: PageId, lsn| sample_of(page.len(), id.0, lsn, 10);
    for lsn in [11, 12] {
        ids().for_each(|id| store.write(id, &with(id, lsn)).unwrap());
        store.sync_images().unwrap();
    }
    drop(store);
    let store = ShadowStore::open(DatabaseFile::open(disk.clone(), Path::new("db")).unwrap()).unwrap();
    store.note_log_end(WHOLE).unwrap();
    let mut read = vec![0; page.len()];
    for id in ids() {
        store.note_in_log(id);
        assert!(store.read(id, &mut read).unwrap().is_some() && read == with(id, 12));
    }
    let begun = disk.syncs();
    let syncs_after_writing = |ids: &mut dyn Iterator<Item = PageId>, lsn| {
        ids.for_each(|id| store.write(id, &with(id, lsn)).unwrap());
        disk.syncs() - begun
    };
    assert_eq!(syncs_after_writing(&mut (50..52).map(PageId), 13), 0, "pages that the recovery has not read");
    assert_eq!(syncs_after_writing(&mut ids(), 13), 1);
    assert_eq!(syncs_after_writing(&mut ids(), 14), 1, "pages that it has written since");
}

//! When deltas are written and where, and what a recovery does with torn ones: what a power cut shows only now and then.

use super::delta::Order;
use super::slot::Stamp;
use super::states::{PageState, Used};
use super::*;
use crate::io::Disk;
use crate::store::seam::Base;
use crate::store::tests::{disk, meta_of, sample_of};
use crate::store::{StoreKind, StoreOptions};
use std::path::Path;
use std::sync::Arc;

const ID: PageId = PageId(5);
/// The sample page of this seed is nearly full.
const SEED: u64 = 40;

/// A store of these delta blocks that has page [`ID`], synced; and the page.
fn store_of(blocks: u8) -> (ShadowStore, Vec<u8>) {
    store_on(disk(), blocks)
}

fn store_on(disk: Arc<dyn Disk>, blocks: u8) -> (ShadowStore, Vec<u8>) {
    let delta = DeltaBlocks { threshold: 500, segment: 32, blocks };
    let options = StoreOptions { kind: StoreKind::Shadow, delta };
    let file = DatabaseFile::create(options, disk, Path::new("db"), meta_of(StoreKind::Shadow)).unwrap();
    let store = ShadowStore::open(file).unwrap();
    let page = sample_of(store.geometry.page(), ID.0, 10, SEED);
    store.write(ID, &page).unwrap();
    store.sync_images().unwrap();
    (store, page)
}

impl ShadowStore {
    fn state_of(&self, id: PageId) -> PageState {
        self.state.lock().pages.get(id)
    }

    /// Writes the page with a small change, which adds to `changed`.
    fn change(&self, page: &mut [u8], changed: &mut ChangedParts) -> Used {
        let before = page.to_vec();
        let lsn = page[0];
        page[0] = lsn + 1;
        page[100 + 64 * usize::from(lsn % 16)] ^= 1;
        let now = ChangedParts::between(&before, page);
        changed.0.iter_mut().zip(now.0).for_each(|(word, bits)| *word |= bits);
        let mut writer = self.writer();
        if writer.push(ID, page, *changed) == Base::Moves {
            *changed = ChangedParts::NONE;
        }
        writer.write().unwrap();
        let mut read = vec![0; page.len()];
        // Segments of a delta may be longer.
        let found = self.read(ID, &mut read).unwrap().unwrap();
        assert!(changed.0.iter().zip(found.0).all(|(word, found)| word & !found == 0));
        assert_eq!(*changed == ChangedParts::NONE, found == ChangedParts::NONE);
        assert!(read == page);
        self.state_of(ID).used()
    }
}

#[test]
fn a_chain_begins_beside_a_synced_slot_and_ends_with_the_next_slot() {
    let (store, mut page) = store_of(2);
    let mut changed = ChangedParts::NONE;
    let side = store.state_of(ID).side();
    for used in [Used::Chain(1), Used::Chain(2), Used::None, Used::None] {
        assert_eq!(store.change(&mut page, &mut changed), used);
    }
    // The slot that was written last is not synced: the deltas beside the other one are needed.
    assert_ne!(store.state_of(ID).side(), side);
    let mut half = Vec::new();
    store.read_part(store.geometry.half(ID, side, 2), &mut half).unwrap();
    assert!(half.iter().rev().take(100).all(|byte| *byte == 0) && half[store.geometry.slot()] != 0);
    store.sync_images().unwrap();
    assert_eq!(store.change(&mut page, &mut changed), Used::Chain(1));
}

#[test]
fn a_cumulative_delta_is_written_over_the_last_one_only_if_that_is_not_synced() {
    let (store, mut page) = store_of(1);
    let mut changed = ChangedParts::NONE;
    let numbers = [(0, false), (0, true), (1, false), (1, true), (2, true), (3, true), (0, false)];
    for (number, is_synced) in numbers {
        assert_eq!(store.change(&mut page, &mut changed), Used::Cumulative(number));
        if is_synced {
            store.sync_images().unwrap();
        }
    }
    // More changes than the threshold: the page is written whole, and has no delta until that is synced.
    while store.change(&mut page, &mut changed) != Used::None {}
    assert_eq!(store.change(&mut page, &mut changed), Used::None);
    store.sync_images().unwrap();
    assert_eq!(store.change(&mut page, &mut changed), Used::Cumulative(0));
}

#[test]
fn a_recovery_clears_a_torn_delta_and_writes_again_what_it_believes() {
    let disk = disk();
    let (store, mut page) = store_on(disk.clone(), 4);
    let mut changed = ChangedParts::NONE;
    store.change(&mut page, &mut changed);
    let whole = page.clone();
    let side = store.state_of(ID).side();
    let offset = |index| store.geometry.delta_offset(ID, side, index);
    let mut torn = vec![7; BLOCK];
    store.geometry.seal_delta(&mut torn, PageId(6), Stamp { turn: 0, generation: 0 }, Order::After(1));
    store.put(WriteKind::Delta, offset(1), &torn).unwrap();
    let mut first = vec![0; BLOCK];
    store.file.disk().read_at(offset(0), &mut first).unwrap();

    let reopened = || ShadowStore::open(DatabaseFile::open(disk.clone(), Path::new("db")).unwrap()).unwrap();
    assert!(matches!(reopened().read(ID, &mut page), Err(Error::Corrupt { .. })), "nothing can have torn it");
    let recovering = reopened();
    recovering.note_in_log(ID);
    let before = recovering.stats().written_bytes;
    recovering.read(ID, &mut page).unwrap();
    assert!(page == whole && recovering.state_of(ID).used() == Used::Chain(1));
    // The delta that counts, and zeros.
    assert_eq!(recovering.stats().written_bytes - before, 2 * BLOCK as u64);
    assert_eq!(recovering.state.lock().unsynced, [ID]);
    assert!(reopened().read(ID, &mut page).unwrap().is_some() && page == whole);
}

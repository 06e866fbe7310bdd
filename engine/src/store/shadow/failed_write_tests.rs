//! Tests of what the device has, and what the store knows of it, after a write of a page has failed.

use super::recovery_tests::{copy_of, open};
use super::tests::{ID, store_on, store_with};
use super::*;
use crate::store::StoreKind;
use crate::store::tests::{disk, meta_of, sample_of};
use std::path::Path;

/// A small change of a page; raises its LSN.
fn change(page: &mut [u8], parts: &mut ChangedParts) {
    let before = page.to_vec();
    page[0] += 1;
    page[200] ^= 1;
    let now = ChangedParts::between(&before, page);
    parts.0.iter_mut().zip(now.0).for_each(|(word, bits)| *word |= bits);
}

#[test]
fn after_a_failed_write_to_the_other_slot_the_page_is_written_whole() {
    for reaches in [true, false] {
        let disk = disk();
        let (store, mut page) = store_on(disk.clone(), 4);
        // The next checkpoint trims no slot: fewer than an eighth of the pages then have one to be trimmed.
        (20..40).for_each(|id| store.write(PageId(id), &sample_of(page.len(), id, 10, 1)).unwrap());
        store.finish(store.begin_checkpoint(), meta_of(StoreKind::Shadow)).unwrap();
        page[0] += 1;
        store.write(ID, &page).unwrap();
        let mut parts = ChangedParts::NONE;
        change(&mut page, &mut parts);
        // The image is not synced when the page is queued, and it is when the page is written.
        let mut writer = store.writer();
        writer.push(ID, &page, parts);
        store.sync_images().unwrap();
        disk.break_next(reaches);
        assert!(matches!(writer.write(), Err(Error::Io { .. })));
        change(&mut page, &mut parts);
        let mut writer = store.writer();
        writer.push(ID, &page, parts);
        writer.write().unwrap();
        store.finish(store.begin_checkpoint(), meta_of(StoreKind::Shadow)).unwrap();
        drop(store);

        let killed = ShadowStore::open(DatabaseFile::open(disk, Path::new("db")).unwrap()).unwrap();
        let mut read = vec![0; page.len()];
        assert!(killed.read(ID, &mut read).unwrap().is_some());
        assert_eq!(read[0], page[0], "an older image of the page is read");
        assert!(read == page);
    }
}

#[test]
fn a_sync_beside_a_failed_write_over_its_image_does_not_count_for_it() {
    let disk = disk();
    let (store, mut page) = store_on(disk.clone(), 4);
    page[0] += 1;
    store.write(ID, &page).unwrap();
    page[0] += 1;
    let [held] = disk.hold();
    disk.break_next(false);
    std::thread::scope(|scope| {
        let write = scope.spawn(|| store.write(ID, &page));
        disk.await_held(0);
        store.sync_images().unwrap();
        held.wait();
        assert!(matches!(write.join().unwrap(), Err(Error::Io { .. })));
    });
    assert!(!store.state_of(ID).is_synced());
    assert!(store.finish(store.begin_checkpoint(), meta_of(StoreKind::Shadow)).is_err(), "the log is still needed");
    store.write(ID, &page).unwrap();
    store.finish(store.begin_checkpoint(), meta_of(StoreKind::Shadow)).unwrap();
    assert!(store.state_of(ID).is_synced());
}

#[test]
fn no_checkpoint_ends_while_a_block_may_have_a_part_of_a_delta() {
    for (blocks, bytes) in [(1, 512), (1, 2048), (2, 512), (4, 2048)] {
        let disk = disk();
        let delta = DeltaBlocks { threshold: 4000, segment: 32, blocks };
        let (store, mut page) = store_with(disk.clone(), delta);
        let mut parts = ChangedParts::NONE;
        let mut write_change = |page: &mut [u8]| {
            let before = page.to_vec();
            page[0] += 1;
            page[500..2500].iter_mut().step_by(16).for_each(|byte| *byte = byte.wrapping_add(2));
            let now = ChangedParts::between(&before, page);
            parts.0.iter_mut().zip(now.0).for_each(|(word, bits)| *word |= bits);
            let mut writer = store.writer();
            writer.push(ID, page, parts);
            writer.write()
        };
        write_change(&mut page).unwrap();
        // The next change is after the redo point.
        let meta = Meta { redo: Lsn(u64::from(page[0]) + 1), ..meta_of(StoreKind::Shadow) };
        store.finish(store.begin_checkpoint(), meta).unwrap();
        let checkpointed = page.clone();
        disk.break_next_after(bytes);
        assert!(matches!(write_change(&mut page), Err(Error::Io { .. })));
        let refused = store.finish(store.begin_checkpoint(), meta);
        assert!(matches!(refused, Err(Error::Poisoned { .. })), "{blocks}, {bytes}: the log is still needed");

        let reread = || {
            let mut read = vec![0; page.len()];
            open(&copy_of(&*disk), Lsn(1000)).read(ID, &mut read).unwrap().map(|_| read)
        };
        assert!(reread().unwrap() == checkpointed);
        // The next checkpoint writes the page first.
        let mut again = page.clone();
        write_change(&mut again).unwrap();
        store.finish(store.begin_checkpoint(), meta).unwrap();
        assert!(reread().unwrap() == again);
    }
}

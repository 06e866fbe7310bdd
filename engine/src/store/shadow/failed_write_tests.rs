//! Tests of what the device has, and what the store knows of it, after a write of a page has failed.

use super::recovery_tests::{copy_of, open};
use super::tests::{ID, store_on, store_with};
use super::*;
use crate::base::bytes::are_zero;
use crate::io::SECTOR;
use crate::store::StoreKind;
use crate::store::tests::{disk, meta_of, sample_of};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

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

/// A disk that, once it is full, has no room for zeros in place of what was trimmed or never written.
#[derive(Debug)]
struct FullDisk {
    disk: Arc<dyn Disk>,
    is_full: AtomicBool,
    trims: bool,
}

impl Disk for FullDisk {
    fn size(&self) -> Result<u64> {
        self.disk.size()
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.disk.read_at(offset, buf)
    }
    fn write_as(&self, kind: WriteKind, offset: u64, buf: &[u8]) -> Result<()> {
        match self.is_full.load(Ordering::SeqCst) && are_zero(buf) {
            true => Err(Error::Full { path: "db".into() }),
            false => self.disk.write_as(kind, offset, buf),
        }
    }
    fn sync(&self) -> Result<()> {
        self.disk.sync()
    }
    fn trim(&self, offset: u64, len: u64) -> Result<()> {
        if self.trims { self.disk.trim(offset, len) } else { Ok(()) }
    }
    fn resize(&self, len: u64) -> Result<()> {
        self.disk.resize(len)
    }
    fn reserve_range(&self, range: Range<u64>) -> Result<()> {
        self.disk.reserve_range(range)
    }
    fn allocated(&self) -> Result<u64> {
        self.disk.allocated()
    }
}

/// A process tears a write of the page to the other slot, or one of a delta. The next one, on a full device, reads the
/// page.
fn read_torn_page_on_a_full_device(trims: bool, in_slot: bool) {
    let disk: Arc<dyn Disk> = disk();
    let (store, page) = store_on(disk.clone(), 4);
    store.finish(store.begin_checkpoint(), meta_of(StoreKind::Shadow)).unwrap();
    let slot_index = store.state_of(ID).slot_index();
    let torn = match in_slot {
        true => store.geometry.offset(ID, slot_index.other()),
        false => store.geometry.delta_offset(ID, slot_index, 0),
    };
    drop(store);
    // The first sector, with the header, is still zeros.
    disk.write_at(torn + SECTOR as u64, &[7; SECTOR]).unwrap();
    let is_cleared = || {
        let mut bytes = [0; BLOCK];
        disk.read_at(torn, &mut bytes).unwrap();
        are_zero(&bytes)
    };
    let full = Arc::new(FullDisk { disk: disk.clone(), is_full: AtomicBool::new(true), trims });
    let device: Arc<dyn Disk> = full.clone();
    let store = open(&device, Lsn(1000));
    let mut read = vec![0; page.len()];
    for _ in 0..2 {
        assert!(store.read(ID, &mut read).unwrap().is_some() && read == page);
    }
    assert_eq!(is_cleared(), trims);
    let checkpoint = || store.finish(store.begin_checkpoint(), meta_of(StoreKind::Shadow));
    if !trims {
        // Later the torn write would be taken for damage.
        assert!(matches!(checkpoint(), Err(Error::Full { .. })));
        assert!(matches!(store.write(ID, &page), Err(Error::Full { .. })));
        full.is_full.store(false, Ordering::SeqCst);
    }
    checkpoint().unwrap();
    assert!(is_cleared());
    let later = ShadowStore::open(DatabaseFile::open(device.clone(), Path::new("db")).unwrap()).unwrap();
    assert!(later.read(ID, &mut read).unwrap().is_some() && read == page);
}

#[test]
fn a_page_with_a_torn_write_is_read_on_a_full_device_and_cleared_once_that_is_possible() {
    for (trims, in_slot) in [(true, true), (true, false), (false, true), (false, false)] {
        read_torn_page_on_a_full_device(trims, in_slot);
    }
}

/// The zeros may not be durable when the page is written.
#[test]
fn a_page_that_was_not_cleared_on_a_full_device_is_cleared_and_synced_before_it_is_written() {
    let disk = disk();
    let (store, mut page) = store_on(disk.clone(), 4);
    store.finish(store.begin_checkpoint(), meta_of(StoreKind::Shadow)).unwrap();
    let torn = store.geometry.delta_offset(ID, store.state_of(ID).slot_index(), 1);
    drop(store);
    disk.write_at(torn + SECTOR as u64, &[7; SECTOR]).unwrap();
    let full = Arc::new(FullDisk { disk: disk.clone(), is_full: AtomicBool::new(true), trims: false });
    let device: Arc<dyn Disk> = full.clone();
    let store = open(&device, Lsn(1000));
    assert!(store.read(ID, &mut vec![0; page.len()]).unwrap().is_some());
    store.sync_images().unwrap();
    full.is_full.store(false, Ordering::SeqCst);
    let before = disk.syncs();
    page[0] += 1;
    store.write(ID, &page).unwrap();
    let mut bytes = [0; BLOCK];
    disk.read_at(torn, &mut bytes).unwrap();
    assert!(are_zero(&bytes) && disk.syncs() == before + 1);
    store.write(ID, &page).unwrap();
    assert_eq!(disk.syncs(), before + 1);
}

//! Tests of when and where deltas are written, of torn deltas in a recovery, and of when the map is written, used and
//! removed. Random power cuts reach these cases only rarely.

use super::delta::Order;
use super::map::SlotMapPlace;
use super::slot::ImageStamp;
use super::states::ValidDeltas;
use super::*;
use crate::base::TableId;
use crate::base::bytes::{put_u8, put_u32};
use crate::io::{FileVolume, OpenMode, SECTOR, Volume};
use crate::store::compress::Encoding;
use crate::store::page_store::Base;
use crate::store::tests::{SAMPLE_TABLE, disk, meta_of, sample_of};
use crate::store::{Compression, PagePolicy, StoreKind, StoreOptions, Target};
use std::path::Path;
use std::sync::Arc;

pub(super) const ID: PageId = PageId(5);
/// The sample page of this seed is nearly full.
const SEED: u64 = 40;

/// A store of these delta blocks that has page [`ID`], synced; and the page.
fn store_of(blocks: u8) -> (ShadowStore, Vec<u8>) {
    store_on(disk(), blocks)
}

pub(super) fn store_on(disk: Arc<dyn Disk>, blocks: u8) -> (ShadowStore, Vec<u8>) {
    store_with(disk, DeltaBlocks { threshold: 500, segment: 32, blocks })
}

pub(super) fn store_with(disk: Arc<dyn Disk>, delta: DeltaBlocks) -> (ShadowStore, Vec<u8>) {
    let options = StoreOptions { kind: StoreKind::Shadow, delta };
    let file = DatabaseFile::create(options, disk, Path::new("db"), meta_of(StoreKind::Shadow)).unwrap();
    let store = ShadowStore::open(file).unwrap();
    let page = sample_of(store.geometry.page(), ID.0, 10, SEED);
    store.write(ID, &page).unwrap();
    store.sync_images().unwrap();
    (store, page)
}

impl ShadowStore {
    /// Writes one page, all of it.
    pub(super) fn write(&self, id: PageId, page: &[u8]) -> Result<()> {
        (self as &dyn PageStore).write(id, page)
    }

    /// Writes the page with a small change, which adds to `changed`.
    fn change(&self, page: &mut [u8], changed: &mut ChangedParts) -> ValidDeltas {
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
        self.state_of(ID).valid_deltas()
    }
}

#[test]
fn a_chain_begins_beside_a_synced_slot_and_ends_with_the_next_slot() {
    let (store, mut page) = store_of(2);
    let mut changed = ChangedParts::NONE;
    let slot_index = store.state_of(ID).slot_index();
    for valid in [ValidDeltas::Chain(1), ValidDeltas::Chain(2), ValidDeltas::None, ValidDeltas::None] {
        assert_eq!(store.change(&mut page, &mut changed), valid);
    }
    // The slot that was written last is not synced: the deltas beside the other one are needed.
    assert_ne!(store.state_of(ID).slot_index(), slot_index);
    let mut slot_area = Vec::new();
    store.read_part(store.geometry.slot_area(ID, slot_index, 2), &mut slot_area).unwrap();
    assert!(slot_area.iter().rev().take(100).all(|byte| *byte == 0) && slot_area[store.geometry.slot()] != 0);
    store.sync_images().unwrap();
    assert_eq!(store.change(&mut page, &mut changed), ValidDeltas::Chain(1));
}

#[test]
fn a_delta_has_no_more_bytes_of_the_page_than_the_threshold() {
    // Each change is in a segment of its own, and 8 bytes are the LSN.
    for (threshold, most) in [(8 + 13 * 32, 13), (8 + 14 * 32 - 1, 13), (8 + 14 * 32, 14)] {
        let (store, mut page) = store_with(disk(), DeltaBlocks { threshold, segment: 32, blocks: 1 });
        let mut changed = ChangedParts::NONE;
        let deltas = (0..).take_while(|_| store.change(&mut page, &mut changed) != ValidDeltas::None).count();
        assert_eq!(deltas, most, "{threshold}");
    }
}

#[test]
fn a_cumulative_delta_is_written_over_the_last_one_only_if_that_is_not_synced() {
    let (store, mut page) = store_of(1);
    let mut changed = ChangedParts::NONE;
    // 8 is added to the number of a delta that has overwritten one.
    let numbers = [(0, false), (8, true), (1, false), (9, true), (2, true), (3, true), (4, true), (1, false)];
    for (number, is_synced) in numbers {
        assert_eq!(store.change(&mut page, &mut changed), ValidDeltas::Cumulative(number));
        if is_synced {
            store.sync_images().unwrap();
        }
    }
    // More changes than the threshold: the page is written whole, and has no delta until that is synced.
    while store.change(&mut page, &mut changed) != ValidDeltas::None {}
    assert_eq!(store.change(&mut page, &mut changed), ValidDeltas::None);
    store.sync_images().unwrap();
    assert_eq!(store.change(&mut page, &mut changed), ValidDeltas::Cumulative(0));
}

#[test]
fn a_recovery_clears_a_torn_delta_and_rewrites_the_accepted_image() {
    let disk = disk();
    let (store, mut page) = store_on(disk.clone(), 4);
    let mut changed = ChangedParts::NONE;
    store.change(&mut page, &mut changed);
    let whole = page.clone();
    let slot_index = store.state_of(ID).slot_index();
    let offset = |index| store.geometry.delta_offset(ID, slot_index, index);
    let mut torn = vec![7; BLOCK];
    store.geometry.seal_delta(
        &mut torn,
        PageId(6),
        ImageStamp { sequence: 0, rewrites: 0, generation: 0 },
        Order::After(1),
    );
    store.put(WriteKind::Delta, offset(1), &torn).unwrap();
    let mut first = vec![0; BLOCK];
    store.file.disk().read_at(offset(0), &mut first).unwrap();

    let reopened = || ShadowStore::open(DatabaseFile::open(disk.clone(), Path::new("db")).unwrap()).unwrap();
    assert!(matches!(reopened().read(ID, &mut page), Err(Error::Corrupt { .. })), "nothing can have torn it");
    let recovering = reopened();
    recovering.note_in_log(ID);
    let before = recovering.stats().written_bytes;
    recovering.read(ID, &mut page).unwrap();
    assert!(page == whole && recovering.state_of(ID).valid_deltas() == ValidDeltas::Chain(1));
    // The slot, the valid delta, and zeros.
    assert_eq!(recovering.stats().written_bytes - before, 3 * BLOCK as u64);
    assert_eq!(recovering.state.lock().unsynced, [ID]);
    assert!(reopened().read(ID, &mut page).unwrap().is_some() && page == whole);
}

/// Opens a store whose database was closed.
fn open_closed(disk: &Arc<dyn Disk>) -> ShadowStore {
    let store = ShadowStore::open(DatabaseFile::open(disk.clone(), Path::new("db")).unwrap()).unwrap();
    store.use_map();
    store
}

/// Takes a checkpoint and closes the store. Returns what the map then says of itself.
fn close(store: &ShadowStore) -> Option<SlotMapPlace> {
    let meta = Meta { clean: true, ..meta_of(StoreKind::Shadow) };
    store.finish(store.begin_checkpoint(), meta).unwrap();
    store.shrink().unwrap();
    store.close(meta).unwrap();
    StoreHeader::decode(&store.file.store_header()).unwrap().map
}

/// A closed store with 3,000 pages, two blocks of a map.
fn closed() -> (Arc<dyn Disk>, SlotMapPlace) {
    let disk: Arc<dyn Disk> = disk();
    let (store, _) = store_on(disk.clone(), 1);
    for id in 0..3000 {
        store.write(PageId(id), &sample_of(store.geometry.page(), id, 10, 3)).unwrap();
    }
    let map = close(&store).unwrap();
    assert_eq!(map.pages, 3000);
    (disk, map)
}

#[test]
fn a_map_is_written_again_only_if_a_page_has_changed() {
    let (disk, map) = closed();
    let len = disk.size().unwrap();
    let store = open_closed(&disk);
    assert!(store.state.lock().pages.get(PageId(7)).image() == ImageState::Unknown);
    assert_eq!(store.state_of(PageId(7)).image(), ImageState::Present);
    assert_eq!((close(&store), disk.size().unwrap()), (Some(map), len));

    let store = open_closed(&disk);
    let page = sample_of(store.geometry.page(), 7, 11, 4);
    store.write(PageId(7), &page).unwrap();
    let changed = close(&store).unwrap();
    assert!(changed.pages == map.pages && changed.generation > map.generation);
    assert_eq!(disk.size().unwrap(), len);
    let mut read = vec![0; page.len()];
    assert!(open_closed(&disk).read(PageId(7), &mut read).unwrap().is_some() && read == page);
}

#[test]
fn without_a_block_of_the_map_both_slots_are_read() {
    let (disk, map) = closed();
    let store = open_closed(&disk);
    let second_block = store.geometry.area_of(PageId(map.pages)).start + BLOCK as u64;
    disk.write_at(second_block + 100, &[1]).unwrap();
    let known = |id| store.state_of(PageId(id)).image();
    assert_eq!(
        (known(2039), known(2040), known(2999)),
        (ImageState::Present, ImageState::Unknown, ImageState::Unknown)
    );
    let mut page = vec![0; store.geometry.page()];
    assert!(store.read(PageId(2999), &mut page).unwrap().is_some());
    assert_eq!(known(2999), ImageState::Present);
}

#[test]
fn no_page_is_written_where_a_superblock_has_a_map() {
    let (disk, map) = closed();
    let store = open_closed(&disk);
    store.file.write_meta(meta_of(StoreKind::Shadow)).unwrap();
    let page = sample_of(store.geometry.page(), map.pages, 11, 3);
    store.write(PageId(map.pages), &page).unwrap();
    assert_eq!(store.state_of(PageId(2500)).image(), ImageState::Present, "the map was read before it was removed");
    for damaged in [0, super::super::superblock::SUPERBLOCK] {
        let copy: Arc<dyn Disk> = Arc::new(crate::io::MemoryDisk::new());
        let mut bytes = vec![0; usize::try_from(disk.size().unwrap()).unwrap()];
        disk.read_at(0, &mut bytes).unwrap();
        bytes[damaged + 100] ^= 1;
        copy.write_at(0, &bytes).unwrap();
        let store = ShadowStore::open(DatabaseFile::open(copy, Path::new("db")).unwrap()).unwrap();
        store.note_in_log(PageId(map.pages));
        let mut read = vec![0; page.len()];
        assert!(store.read(PageId(map.pages), &mut read).unwrap().is_some() && read == page);
        assert!(store.read(PageId(map.pages + 1), &mut read).unwrap().is_none(), "bytes of the map");
    }
}

/// The bytes that were there may have been the newest image.
#[test]
fn bytes_of_something_else_in_a_slot_are_damage() {
    for (at, what) in [(0, "the header of another page"), (1, "the trailer of another page")] {
        let disk: Arc<dyn Disk> = disk();
        let (store, page) = store_on(disk.clone(), 0);
        let other = store.state_of(ID).slot_index().other();
        let foreign = sample_of(store.geometry.page(), ID.0 + 1, 10, SEED);
        let (start, end) = (store.geometry.offset(ID, other), store.geometry.slot() as u64);
        match at {
            0 => disk.write_at(start, &foreign).unwrap(),
            _ => disk.write_at(start + end - BLOCK as u64, &[7; BLOCK]).unwrap(),
        }
        let reopened = ShadowStore::open(DatabaseFile::open(disk.clone(), Path::new("db")).unwrap()).unwrap();
        let mut read = vec![0; page.len()];
        let result = reopened.read(ID, &mut read);
        assert!(matches!(result, Err(Error::Corrupt { page, .. }) if page == ID), "{what}: {result:?}");
    }
}

#[test]
fn new_pages_leave_holes_and_the_reserve_stays_beyond_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let (volume, name) = FileVolume::for_file(&folder.path().join("db")).unwrap();
    let (store, page) = store_on(volume.open(&name, OpenMode::CreateNew).unwrap(), 2);
    let disk = store.file.disk();
    let takes = || disk.allocated().unwrap();
    store.ensure_room(10).unwrap();
    let before = takes();
    for id in 100..1100 {
        store.ensure_room(10).unwrap();
        store.write(PageId(id), &sample_of(page.len(), id, 20, SEED)).unwrap();
        assert!(store.room.lock().leaves_holes());
    }
    let slots = 1000 * store.geometry.slot() as u64;
    let grown = takes() - before;
    // A sixteenth of the file or 1 MiB is reserved.
    assert!((slots..slots + (2 << 20)).contains(&grown), "{grown} bytes for {slots}");
    store.sync_images().unwrap();
    assert!((100..1100).all(|id| !store.state_of(PageId(id)).waits_for_trim()));
    let len = disk.size().unwrap();
    store.shrink().unwrap();
    assert_eq!(disk.size().unwrap(), len);
    assert!(takes() < slots + (1 << 20), "the reserve stays");
    // A full device gets it back.
    store.ensure_room(10).unwrap();
    let reserved = takes();
    assert!(store.use_reserve().unwrap() && !store.use_reserve().unwrap());
    assert!(takes() < reserved);
    // Also for the write of a page beyond the end of the file.
    store.ensure_room(10).unwrap();
    store.room.lock().note_written(len + store.geometry.slot() as u64);
    assert!(store.use_reserve().unwrap());
    assert!(takes() < reserved);
}

#[test]
fn no_delta_is_written_while_the_device_is_full() {
    let (store, mut page) = store_of(4);
    let mut changed = ChangedParts::NONE;
    assert_eq!(store.change(&mut page, &mut changed), ValidDeltas::Chain(1));
    store.use_reserve().unwrap();
    assert_eq!(store.change(&mut page, &mut changed), ValidDeltas::None);
    store.sync_images().unwrap();
    assert_eq!(store.change(&mut page, &mut changed), ValidDeltas::None);
    store.sync_images().unwrap();
    store.ensure_room(1).unwrap();
    assert_eq!(store.change(&mut page, &mut changed), ValidDeltas::Chain(1));
}

#[test]
fn files_get_holes_once_an_eighth_of_the_pages_have_something_to_trim_or_the_device_was_full() {
    let (store, page) = store_of(2);
    let mut lsn = 20;
    let mut checkpoint_after = |pages: Range<u32>| {
        for id in pages {
            lsn += 1;
            store.write(PageId(id), &sample_of(page.len(), id, lsn, SEED)).unwrap();
        }
        store.finish(store.begin_checkpoint(), meta_of(StoreKind::Shadow)).unwrap();
        (0..32).filter(|id| store.state_of(PageId(*id)).waits_for_trim()).collect::<Vec<u32>>()
    };
    assert_eq!(checkpoint_after(0..32), []);
    assert_eq!(checkpoint_after(3..5), [3, 4]);
    // Pages that are written again count once.
    assert_eq!(checkpoint_after(4..6), [3, 4, 5]);
    assert_eq!(checkpoint_after(0..1), []);
    assert_eq!(checkpoint_after(7..8), [7]);
    store.room.lock().full = true;
    assert_eq!(checkpoint_after(0..0), []);
}

/// Bytes of a slot of four blocks.
const LARGE: usize = 4 * BLOCK;

/// A store with slots of four blocks. Its pages are compressed so.
fn compressing(disk: Arc<dyn Disk>, compression: Compression, target: Target) -> ShadowStore {
    let delta = DeltaBlocks { threshold: 500, segment: 64, blocks: 2 };
    let meta = Meta { page_size: LARGE - 16, ..meta_of(StoreKind::Shadow) };
    let options = StoreOptions { kind: StoreKind::Shadow, delta };
    let store = ShadowStore::open(DatabaseFile::create(options, disk, Path::new("db"), meta).unwrap()).unwrap();
    store.compression.set_policy(SAMPLE_TABLE, PagePolicy { compression, target, ..PagePolicy::default() });
    store
}

fn open_large(disk: &Arc<dyn Disk>) -> ShadowStore {
    ShadowStore::open(DatabaseFile::open(disk.clone(), Path::new("db")).unwrap()).unwrap()
}

/// A page that is nearly full, and of which so many bytes do not become smaller.
fn mixed(lsn: u64, noise: usize) -> Vec<u8> {
    let mut page = (1..).map(|seed| sample_of(LARGE - 16, ID.0, lsn, seed)).find(|page| page[15_900] > 0).unwrap();
    fastrand::Rng::with_seed(lsn).fill(&mut page[100..100 + noise]);
    page
}

/// The bytes of a slot in the file.
fn slot_of(store: &ShadowStore, slot_index: SlotIndex) -> Vec<u8> {
    let mut bytes = Vec::new();
    store.read_part(store.geometry.slot_area(ID, slot_index, 0), &mut bytes).unwrap();
    bytes
}

#[test]
fn a_page_takes_as_many_blocks_as_it_needs_and_the_rest_of_the_slot_is_trimmed() {
    for (compression, target, noise, blocks) in [
        (Compression::Lz4, Target::Fit, 0, 1),
        (Compression::Zlib(6), Target::Fit, 6000, 2),
        (Compression::Lz4, Target::Fit, 10_000, 3),
        (Compression::Lz4, Target::Fit, 15_000, 4),
        (Compression::None, Target::Fit, 0, 4),
        (Compression::Lz4, Target::Bytes(1024), 0, 1),
        (Compression::Lz4, Target::Bytes(8192), 0, 2),
        (Compression::Lz4, Target::Bytes(8192), 10_000, 4),
    ] {
        let what = format!("{compression} {target} {noise}");
        let disk: Arc<dyn Disk> = disk();
        let store = compressing(disk.clone(), compression, target);
        let bytes = (blocks * BLOCK) as u64;
        // Each slot has a whole page first.
        for lsn in [10, 11] {
            store.compression.set_policy(SAMPLE_TABLE, PagePolicy::default());
            store.write(ID, &mixed(lsn, 0)).unwrap();
            store.sync_images().unwrap();
        }
        store.compression.set_policy(SAMPLE_TABLE, PagePolicy { compression, target, ..PagePolicy::default() });
        for lsn in [12, 13] {
            let before = store.stats().written_bytes;
            let page = mixed(lsn, noise);
            store.write(ID, &page).unwrap();
            assert_eq!(store.stats().written_bytes - before, bytes, "{what}");
            let slot_index = store.state_of(ID).slot_index();
            store.finish(store.begin_checkpoint(), store.file.meta()).unwrap();
            let slot = slot_of(&store, slot_index);
            assert!(slot[..LARGE - blocks * BLOCK].iter().all(|byte| *byte == 0), "{what}");
            assert!(slot_of(&store, slot_index.other()).iter().all(|byte| *byte == 0), "{what}");
            assert_eq!((store.stats().live_bytes, store.place_bytes(ID)), (bytes, Some(bytes)), "{what}");
            let mut read = vec![0; page.len()];
            assert!(store.read(ID, &mut read).unwrap().is_some() && read == page, "{what}");
            // Another process finds the same.
            let again = open_large(&disk);
            assert_eq!((again.stats().live_bytes, again.place_bytes(ID)), (bytes, Some(bytes)), "{what}");
            assert!(again.read(ID, &mut read).unwrap().is_some() && read == page, "{what}");
        }
    }
}

/// The image is compressed, and the deltas are those of the page.
#[test]
fn deltas_are_written_beside_a_compressed_page() {
    let disk: Arc<dyn Disk> = disk();
    let store = compressing(disk.clone(), Compression::Lz4, Target::Fit);
    let mut page = mixed(10, 3000);
    store.write(ID, &page).unwrap();
    store.sync_images().unwrap();
    let mut changed = ChangedParts::NONE;
    for valid in [ValidDeltas::Chain(1), ValidDeltas::Chain(2), ValidDeltas::None] {
        assert_eq!(store.change(&mut page, &mut changed), valid);
        assert_eq!(store.state_of(ID).blocks(), Some(1));
        let mut read = vec![0; page.len()];
        assert!(open_large(&disk).read(ID, &mut read).unwrap().is_some() && read == page);
    }
}

#[test]
fn policies_are_kept_in_the_superblock_as_far_as_there_is_room() {
    let disk: Arc<dyn Disk> = disk();
    let store = compressing(disk.clone(), Compression::Zstd(7), Target::Bytes(4096));
    let policy = store.compression.policies();
    store.finish(store.begin_checkpoint(), store.file.meta()).unwrap();
    assert_eq!(open_large(&disk).compression.policies(), policy);
    for table in 100..2000 {
        store.compression.set_policy(TableId(table), policy[0].1);
    }
    store.finish(store.begin_checkpoint(), store.file.meta()).unwrap();
    let kept = open_large(&disk).compression.policies();
    assert!(kept.len() > 300 && kept[..] == store.compression.policies()[..kept.len()]);
}

/// Another thread writes the page over its image, and has written a part of it.
#[test]
fn an_image_that_is_being_written_is_not_taken_for_damage() {
    let disk: Arc<dyn Disk> = disk();
    let store = compressing(disk.clone(), Compression::Lz4, Target::Fit);
    let page = mixed(10, 15_000);
    store.write(ID, &page).unwrap();
    let start = store.geometry.offset(ID, store.state_of(ID).slot_index());
    let mut whole = vec![0; BLOCK];
    disk.read_at(start, &mut whole).unwrap();
    let mut read = vec![0; page.len()];
    let reads: [&mut (dyn FnMut() -> Result<()> + Send); 2] =
        [&mut || store.dictionary_of(ID).map(drop), &mut || store.read(ID, &mut read).map(drop)];
    for read in reads {
        let image_is_written = store.generation.read();
        disk.write_at(start, &[7; SECTOR]).unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(read);
            // It waits for the write, or has ended.
            let begun = std::time::Instant::now();
            while !reader.is_finished() && begun.elapsed().as_millis() < 200 {
                std::thread::yield_now();
            }
            disk.write_at(start, &whole).unwrap();
            drop(image_is_written);
            reader.join().unwrap().unwrap();
        });
    }
    disk.write_at(start, &[7; SECTOR]).unwrap();
    assert!(matches!(store.dictionary_of(ID), Err(Error::Corrupt { page: ID, .. })), "no thread writes it");
}

/// Any bytes in a slot with a valid checksum give the page or a typed error.
#[test]
fn hostile_short_images_are_refused() {
    let disk: Arc<dyn Disk> = disk();
    let store = compressing(disk.clone(), Compression::Lz4, Target::Fit);
    let page = mixed(10, 3000);
    store.write(ID, &page).unwrap();
    store.finish(store.begin_checkpoint(), store.file.meta()).unwrap();
    let (slot_index, geometry) = (store.state_of(ID).slot_index(), store.geometry);
    let sound = slot_of(&store, slot_index);
    let header = LARGE - 32;
    let read_with = |slot: &mut [u8]| {
        let crc = geometry.checksum(slot);
        put_u32(slot, geometry.page(), crc);
        disk.write_at(geometry.offset(ID, slot_index), slot).unwrap();
        let mut read = vec![0; page.len()];
        let result = open_large(&disk).read(ID, &mut read);
        assert!(matches!(&result, Ok(Some(_)) | Err(Error::Corrupt { page: ID, .. })), "{result:?}");
        result.is_ok() && read == page
    };
    assert!(read_with(&mut sound.clone()));
    for at in header..header + 16 {
        for value in [0, 1, 2, 3, 4, 127, 128, 255] {
            let mut slot = sound.clone();
            put_u8(&mut slot, at, value);
            assert!(!read_with(&mut slot) || slot == sound, "byte {at}: {value}");
        }
    }
    let mut coders = Coders::default();
    let (mut packed, mut content) = (Vec::new(), Vec::new());
    Page::new(&page).packed_into(&mut packed);
    for compression in [Compression::Lz4, Compression::Zstd(3), Compression::Zlib(6)] {
        let try_content = |encoding: Encoding, content: &[u8], lsn: u64| {
            let mut slot = vec![0; LARGE];
            geometry.put_short(&mut slot, ID, Lsn(lsn), (encoding, content), 3);
            geometry.seal(&mut slot, ImageStamp { sequence: 0, rewrites: 0, generation: 0 }, true);
            read_with(&mut slot)
        };
        let encoding = coders.compress(compression, None, &packed, packed.len(), &mut content).unwrap();
        assert!(try_content(encoding, &content, 10));
        assert!(!try_content(encoding, &content, 11), "another LSN");
        for cut in (0..content.len()).step_by(7) {
            assert!(!try_content(encoding, &content[..cut], 10), "{compression}, cut to {cut}");
        }
        coders.compress(compression, None, &vec![0; 1 << 20], 12_000, &mut content).unwrap();
        assert!(!try_content(encoding, &content, 10), "a bomb");
    }
    assert!(!read_with(&mut [sound[..header].to_vec(), vec![0xff; 16], sound[header + 16..].to_vec()].concat()));
}

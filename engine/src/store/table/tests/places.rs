//! Tests of the places that log records name, and that each grain has exactly one use.

use super::*;
use crate::base::TableId;
use crate::page::{PageOp, apply, map_page, run_page, unpack};
use crate::store::table::page_table::WithImage;
use crate::store::tests::model::{ModelRun, Step, Subject};
use crate::store::{Compression, Overflow, PagePolicy, Target};

impl Subject for TableStore {
    const KIND: StoreKind = StoreKind::Table;
    const REOPENS_AT_CHECKPOINT: bool = true;

    fn of(file: DatabaseFile) -> Result<TableStore> {
        let store = TableStore::open(file)?;
        // Chunks leave the memory and are read again.
        leave_memory(&mut store.state.lock());
        Ok(store)
    }

    /// Every used grain has exactly one use, and no more places are noted as free than there are.
    fn check(&self) {
        let directory = Directory::decode(&self.file.store_header()).unwrap();
        self.state.lock().table.keep(usize::MAX);
        self.load_all();
        let len = *self.len.lock();
        let mut state = self.state.lock();
        let mut extents = vec![Extent { first: 0, grains: FIRST_GRAIN }, directory.extent()];
        each_place(&state, |_, place| extents.push(place.extent()));
        extents.extend(
            (0..state.table.chunks()).filter_map(|index| state.table.chunk_location(index)).map(|at| at.place.extent()),
        );
        extents.extend(state.table.groups().iter().flatten().map(|at| at.place.extent()));
        extents
            .extend((0..state.table.chunks()).filter_map(|index| state.table.ahead(index)).map(|at| at.place.extent()));
        let mut space = self.space.lock();
        extents.extend(
            space.freed_at_next_checkpoint.iter().chain(&space.freed_at_this_checkpoint).chain(space.reserved.values()),
        );
        extents.extend(directory.map.map(|map| map.extent()));
        extents.sort_unstable();
        for pair in extents.windows(2) {
            assert!(pair[0].end() <= pair[1].first || pair[0].grains == 0, "{pair:?} overlap");
        }
        assert_eq!(extents.iter().map(|extent| extent.grains).sum::<u64>(), space.allocator.used());
        assert!(extents.iter().all(|extent| space.allocator.is_used(*extent)));
        assert!(!space.allocator.has_released_twice());
        let free = space.allocator.longest_places(len / GRAIN as u64);
        let noted = self.free_places.swap(free, atomic::Ordering::Relaxed);
        assert!(noted <= free, "{noted} of {free} places");
        leave_memory(&mut state);
        drop((state, space));
        self.check_places().unwrap();
    }
}

/// All chunks leave the memory that can, but one.
pub(super) fn leave_memory(state: &mut PageTableState) {
    // The first call clears the reference bits, the second removes the chunks.
    (0..2).for_each(|_| state.table.keep(1));
}

/// Calls `visit` with every page that has an image, once all chunks are in memory.
fn each_place(state: &PageTableState, mut visit: impl FnMut(PageId, place::Place)) {
    for index in 0..state.table.chunks() {
        state.table.pages_of(index).unwrap().into_iter().for_each(|(id, place)| visit(id, place));
    }
}

impl TableStore {
    /// Brings all chunks of the page table into memory.
    fn load_all(&self) {
        self.each_page(PageId(0), PageId(u32::MAX), |_, _| ()).unwrap();
    }
}

fn place(location: Location) -> PlaceBytes {
    PlaceBytes::new(&location.encode()).unwrap()
}

#[test]
fn places_in_the_log_are_redone_and_kept() {
    let mut run = ModelRun::<TableStore>::new();
    run.step(&Step::Write((0..50).collect()));
    run.step(&Step::BeginCheckpoint);
    run.step(&Step::Finish);
    let mut places = Vec::new();
    for id in 100..150 {
        run.step(&Step::Unlogged(id));
        places.push((PageId(id), place(run.store.location(PageId(id)).unwrap().unwrap())));
    }
    let expected = run.pages.clone();
    run.store = open(&run.disk).unwrap();
    for (_, place) in &places {
        run.store.reserve(*place, Lsn(1)).unwrap();
    }
    // Pages that redo writes out before it comes to the records.
    run.step(&Step::Write((0..50).collect()));
    for (id, place) in &places {
        assert!(run.store.install(*id, *place, Lsn(1)).unwrap());
        assert!(run.store.install(*id, *place, Lsn(1)).unwrap());
    }
    run.store.check();
    let found = run.all();
    assert!(expected.range(100..).all(|(id, page)| found.get(id) == Some(page)));
    let elsewhere = place(run.store.location(PageId(0)).unwrap().unwrap());
    assert!(matches!(run.store.install(PageId(1), elsewhere, Lsn(1)), Err(Error::CorruptMeta { .. })));
}

#[test]
fn a_reserved_place_that_nobody_installs_is_free_after_a_checkpoint() {
    let mut run = ModelRun::<TableStore>::new();
    run.step(&Step::Unlogged(5));
    let place = place(run.store.location(PageId(5)).unwrap().unwrap());
    run.store = open(&run.disk).unwrap();
    let before = run.store.stats();
    run.store.reserve(place, Lsn(1)).unwrap();
    assert!(run.store.stats().free_bytes < before.free_bytes);
    run.store.finish(run.store.begin_checkpoint(), meta()).unwrap();
    assert_eq!(run.store.stats().free_bytes, before.free_bytes);
}

#[test]
fn images_and_chunks_have_blocks_of_their_own_where_the_page_table_is_persisted() {
    let disk = disk();
    let store = create(&disk);
    store.set_up(StoreSetup { persist_table: true, ..StoreSetup::default() });
    for round in 1..6u64 {
        for id in 0..40 {
            store.write(PageId(id), &sample(id, round, u64::from(id) + 40 * round)).unwrap();
        }
        store.finish(store.begin_checkpoint(), meta()).unwrap();
        store.write(PageId(3), &sample(3, round, round)).unwrap();
        store.load_all();
        let state = store.state.lock();
        let longest = grains_of(PAGE_SIZE + IMAGE_HEADER);
        let is_alone = |place: place::Place| {
            place.first().is_multiple_of(BLOCK_GRAINS.into())
                && (place.grains().is_multiple_of(BLOCK_GRAINS.into()) || place.grains() == longest)
        };
        each_place(&state, |id, place| assert!(is_alone(place), "{id}: {place:?}"));
        let chunk = state.table.ahead(0).unwrap().place;
        assert!(chunk.first().is_multiple_of(BLOCK_GRAINS.into()));
        let mut rest = vec![1; BLOCK - chunk.len()];
        disk.read_at(chunk.offset() + chunk.len() as u64, &mut rest).unwrap();
        assert!(rest.iter().all(|byte| *byte == 0));
    }
    store.check();
}

#[test]
fn the_file_grows_by_whole_regions_as_long_as_the_device_has_room_for_them() {
    const MIB: u64 = 1 << 20;
    let disk = disk();
    let store = create(&disk);
    let images = |bytes: u64| bytes / (store.longest_image() * GRAIN as u64);
    for wanted in [1, 3 * MIB, 40 * MIB] {
        store.ensure_room(images(wanted).max(1)).unwrap();
        let len = disk.size().unwrap();
        assert!(len.is_multiple_of(MIB) && (wanted..wanted + wanted / 8 + 3 * MIB).contains(&len), "{wanted}: {len}");
        assert_eq!(store.stats().file_bytes, len);
    }
    let len = disk.size().unwrap();
    // Room for a few more images, and not for a whole region.
    disk.set_room(len + MIB / 2);
    let mut fitting = images(40 * MIB);
    while disk.size().unwrap() == len {
        fitting += 1;
        store.ensure_room(fitting).unwrap();
    }
    let (grown, refused) = (disk.size().unwrap(), store.ensure_room(images(len + 2 * MIB)));
    assert!(grown > len && grown <= len + MIB / 2 && !grown.is_multiple_of(MIB), "{grown}");
    assert!(matches!(refused, Err(Error::Full { .. })));
    assert_eq!(disk.size().unwrap(), grown);
    for id in 0..u32::try_from(fitting).unwrap() {
        store.write(PageId(id), &sample(id, 1, 0)).unwrap();
    }
    assert_eq!(disk.size().unwrap(), grown, "what was promised had room");
    store.check();
}

#[test]
fn a_place_that_is_none_or_beyond_the_file_is_damage_of_the_log() {
    let store = create(&disk());
    let far = place(Location { place: place::Place::new(1 << 39, 9).unwrap(), crc: 1 });
    for bytes in
        [PlaceBytes::new(&[]).unwrap(), PlaceBytes::new(&[0; 12]).unwrap(), PlaceBytes::new(&[7; 15]).unwrap(), far]
    {
        assert!(matches!(store.reserve(bytes, Lsn(9)), Err(Error::CorruptLog { lsn: Lsn(9), .. })));
        assert!(matches!(store.install(PageId(1), bytes, Lsn(9)), Err(Error::CorruptLog { lsn: Lsn(9), .. })));
    }
}

#[test]
fn policies_are_kept_with_the_page_table() {
    let disk = disk();
    let store = create(&disk);
    let policy = PagePolicy {
        compression: Compression::Lz4,
        target: Target::Bytes(1024),
        overflow: Overflow::Split,
        dictionary: false,
    };
    store.compression().unwrap().set_policy(SAMPLE_TABLE, policy);
    store.compression().unwrap().set_policy(TableId(9), policy);
    store.compression().unwrap().set_policy(TableId(9), PagePolicy::default());
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    let store = open(&disk).unwrap();
    assert_eq!(store.compression.policies(), [(SAMPLE_TABLE, policy)]);
    let page = sample(1, 5, 0);
    store.write(PageId(1), &page).unwrap();
    assert_eq!(store.location(PageId(1)).unwrap().unwrap().place.len(), 1024);
    store.compression().unwrap().replace_policies([]);
    store.write(PageId(1), &page).unwrap();
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    assert_eq!(open(&disk).unwrap().compression.policies(), []);
}

#[test]
fn a_place_is_as_long_as_the_target_or_as_a_page() {
    let store = create(&disk());
    let place = |target, compression, page: &[u8]| {
        store
            .compression()
            .unwrap()
            .set_policy(SAMPLE_TABLE, PagePolicy { compression, target, ..PagePolicy::default() });
        store.write(PageId(1), page).unwrap();
        let mut read = vec![0; PAGE_SIZE];
        assert!(store.read(PageId(1), &mut read).unwrap().is_some() && read == page);
        store.location(PageId(1)).unwrap().unwrap().place.len()
    };
    let payload = |len: usize, byte: fn(usize) -> u8| {
        let payload: Vec<u8> = (0..len).map(byte).collect();
        let mut page = vec![0; PAGE_SIZE];
        unpack(&run_page(PageId(1), SAMPLE_TABLE, PageId::NONE, &payload), &mut page).unwrap();
        page
    };
    let (even, noise) = (payload(3000, |_| 7), payload(3000, |at| ((at * at * 2_654_435_761) >> 13) as u8));
    for (target, compression, content, expected) in [
        (Target::Bytes(2048), Compression::Zlib(6), &even, 2048),
        (Target::Bytes(1024), Compression::Zlib(6), &even, 1024),
        (Target::Bytes(2048), Compression::Zlib(6), &noise, PAGE_SIZE),
        (Target::Bytes(2048), Compression::None, &even, PAGE_SIZE),
        (Target::Fit, Compression::Zlib(6), &even, 512),
        (Target::Fit, Compression::None, &even, 3072),
    ] {
        assert_eq!(place(target, compression, content), expected, "{target} {compression}");
    }
}

#[test]
fn the_mark_of_a_checked_page_lasts_until_its_image_changes_and_is_not_written() {
    let location = |first, crc| Location { place: place::Place::new(first, 3).unwrap(), crc };
    let (old, new) = (location(20, 7), location(40, 8));
    let mut table = PageTable::default();
    table.set(PageId(5), Some(PageEntry { location: old, fresh: false, checked: false })).unwrap();
    table.note_checked(PageId(5), new);
    assert!(!table.get(PageId(5)).unwrap().unwrap().checked, "another image was checked");
    table.note_checked(PageId(5), old);
    assert_eq!(table.get(PageId(5)).unwrap(), Some(PageEntry { location: old, fresh: false, checked: true }));
    let (bytes, _) = table.encode(0).unwrap();
    let mut again = PageTable::default();
    again.add_chunk_location(0, old, (1, 3), WithImage::default());
    let missing = again.get(PageId(5)).unwrap_err();
    let mut locations = Vec::new();
    let entered = encoding::each_in_chunk(&bytes, |slot, location| {
        locations.push((slot, location));
        Ok(())
    });
    entered.unwrap();
    again.load(missing, locations.into_iter());
    assert_eq!(again.get(PageId(5)).unwrap(), Some(PageEntry { location: old, fresh: false, checked: false }));
    assert_eq!(table.capture().len(), 1);
    assert!(table.get(PageId(5)).unwrap().unwrap().checked, "a checkpoint forgets what was checked");
}

#[test]
fn the_records_of_a_page_end_where_the_place_of_its_image_ends() {
    let store = create(&disk());
    let image_of = |page: &[u8]| {
        store.write(PageId(1), page).unwrap();
        let mut read = vec![0xAA; PAGE_SIZE];
        assert!(store.read(PageId(1), &mut read).unwrap().is_some() && read == page);
        let place = store.location(PageId(1)).unwrap().unwrap().place;
        let mut image = vec![0; place.len()];
        store.file().disk().read_at(place.offset(), &mut image).unwrap();
        image
    };
    // The records of an allocation map are its bits.
    let mut page = vec![0; PAGE_SIZE];
    unpack(&map_page(PAGE_SIZE, PageId(1)), &mut page).unwrap();
    apply(&mut page, &PageOp::SetBits { from: 0, count: 4 * PAGE_SIZE as u32 }, Lsn(9)).unwrap();
    let image = image_of(&page);
    assert!(image.len() < PAGE_SIZE && image.ends_with(&[0xFF; PAGE_SIZE / 2]));
    // The image of a full page does not fit into the page.
    let header = run_page(PageId(1), SAMPLE_TABLE, PageId::NONE, &[]).len();
    for (free, place) in [(0, PAGE_SIZE + 512), (15, PAGE_SIZE + 512), (16, PAGE_SIZE), (17, PAGE_SIZE)] {
        let payload = vec![7; PAGE_SIZE - header - free];
        unpack(&run_page(PageId(1), SAMPLE_TABLE, PageId::NONE, &payload), &mut page).unwrap();
        assert_eq!(image_of(&page).len(), place, "{free}");
    }
}

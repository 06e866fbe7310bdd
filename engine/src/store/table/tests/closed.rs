//! The free map of a closed file: it agrees with all chunks, it is not used if it is damaged, and the next checkpoint
//! does not name it.

use super::*;
use crate::base::bytes::{get_u16, get_u64};
use crate::store::table::encoding::{CHUNK_BYTES, encode_group};
use crate::store::table::load::{Loaded, Reading, load_table};
use crate::store::table::page_table::Missing;
use crate::store::table::region::{REGION, REGION_BYTES};
use proptest::prelude::*;
use std::collections::BTreeMap;

const PAGES: u32 = 700;

/// A file that was closed after a few checkpoints.
fn closed() -> Arc<Failing> {
    let disk = disk();
    let store = create(&disk);
    for round in 1..4 {
        (0..PAGES).filter(|id| id % 5 < 4).for_each(|id| store.write(PageId(id), &page(id, round)).unwrap());
        (0..PAGES).step_by(7).for_each(|id| store.drop_page(PageId(id)).unwrap());
        store.finish(store.begin_checkpoint(), meta()).unwrap();
    }
    store.shrink(0).unwrap();
    store.close(Meta { clean: true, ..meta() }).unwrap();
    disk
}

fn page(id: u32, round: u64) -> Vec<u8> {
    sample(id, round, u64::from(id % 7))
}

fn map_of(disk: &Arc<Failing>) -> Option<FreeMapPlace> {
    let file = DatabaseFile::open(disk.clone(), Path::new("db")).unwrap();
    Directory::decode(&file.store_header()).unwrap().map
}

fn bytes_of(disk: &Arc<Failing>, map: FreeMapPlace) -> Vec<u8> {
    let mut bytes = vec![0; map.len as usize];
    disk.read_at(map.extent().offset(), &mut bytes).unwrap();
    bytes
}

/// The page table, loaded with the free map or without it.
fn load(disk: &Arc<Failing>, reading: Reading) -> Result<(TableParts, Loaded)> {
    let file = DatabaseFile::open(disk.clone(), Path::new("db"))?;
    let mut parts = TableParts::new(PAGE_SIZE);
    let loaded = load_table(&TableSource::of(&file)?, &mut parts, reading)?;
    Ok((parts, loaded))
}

fn reads_all(store: &TableStore) {
    let mut found = vec![0; PAGE_SIZE];
    for id in 0..PAGES {
        let expected = id % 5 < 4 && id % 7 != 0;
        assert_eq!(store.read(PageId(id), &mut found).unwrap().is_some(), expected, "page {id}");
        assert!(!expected || found == page(id, 3), "page {id}");
    }
}

#[test]
fn the_free_map_agrees_with_all_chunks_and_decodes_none() {
    let disk = closed();
    let (mapped, _) = load(&disk, Reading::Mapped).unwrap();
    let (all, _) = load(&disk, Reading::All).unwrap();
    assert!(mapped.space.allocator.regions().eq(all.space.allocator.regions()));
    let of_table =
        |TableParts { state, space }: &TableParts| (state.table.pages(), state.table.live(), space.allocator.used());
    assert_eq!(of_table(&mapped), of_table(&all));
    let store = open(&disk).unwrap();
    assert!(matches!(store.state.lock().table.get(PageId(1)), Err(Missing { index: 0, .. })));
    store.use_closed_state();
    assert_eq!(store.known_between(PageId(0), PageId(PAGES)).unwrap(), []);
    store.check_places().unwrap();
    reads_all(&store);
    store.check_places().unwrap();
}

#[test]
fn the_next_checkpoint_drops_the_free_map_and_frees_its_grains() {
    let disk = closed();
    let map = map_of(&disk).unwrap();
    let store = open(&disk).unwrap();
    store.file().write_meta(meta()).unwrap();
    assert_eq!(map_of(&disk), Some(map), "nothing has changed yet");
    store.write(PageId(3), &page(3, 3)).unwrap();
    assert!(store.space.lock().allocator.is_used(map.extent()));
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    assert_eq!(map_of(&disk), None);
    assert!(!store.space.lock().allocator.is_used(map.extent()));
    store.check_places().unwrap();
    drop(store);
    reads_all(&open(&disk).unwrap());
}

#[test]
fn a_close_after_unsaved_changes_writes_no_free_map() {
    let disk = closed();
    let store = open(&disk).unwrap();
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    store.write(PageId(3), &page(3, 3)).unwrap();
    store.close(Meta { clean: true, ..meta() }).unwrap();
    assert_eq!(map_of(&disk), None);
    reads_all(&open(&disk).unwrap());
}

#[test]
fn a_second_close_keeps_the_free_map() {
    let disk = closed();
    let map = map_of(&disk);
    let store = open(&disk).unwrap();
    store.close(Meta { clean: true, ..meta() }).unwrap();
    assert_eq!(map_of(&disk), map);
    load(&disk, Reading::Mapped).unwrap();
}

#[test]
fn a_free_map_with_a_flipped_bit_is_not_used() {
    let disk = closed();
    let map = map_of(&disk).unwrap();
    let bytes = bytes_of(&disk, map);
    for at in (0..bytes.len()).step_by(13) {
        disk.write_at(map.extent().offset() + at as u64, &[bytes[at] ^ 1 << (at % 8)]).unwrap();
        assert!(matches!(load(&disk, Reading::Mapped), Err(Error::CorruptMeta { .. })), "byte {at}");
        let store = open(&disk).unwrap();
        assert!(store.damage().is_none());
        assert!(store.check_places().is_err(), "a check finds it");
        if at % 5 == 0 {
            reads_all(&store);
        }
        disk.write_at(map.extent().offset() + at as u64, &bytes[at..=at]).unwrap();
    }
}

/// Writes another map with the right checksum.
fn replace(disk: &Arc<Failing>, change: impl FnOnce(&mut Vec<u8>)) {
    let place = map_of(disk).unwrap();
    let mut bytes = bytes_of(disk, place);
    change(&mut bytes);
    let file = DatabaseFile::open(disk.clone(), Path::new("db")).unwrap();
    let directory = Directory::decode(&file.store_header()).unwrap();
    disk.write_at(place.extent().offset(), &bytes).unwrap();
    let map = Some(FreeMapPlace { len: bytes.len() as u64, crc: checksum(&bytes), ..place });
    file.begin_update().unwrap().write(meta(), Directory { map, ..directory }.encode()).unwrap();
}

/// Makes a used grain free, and a free one of its region used, so that all counts of the map stay right. False if the
/// region of the grain has no free one.
fn move_a_grain(bytes: &mut [u8], grain: u64, map: Extent) -> bool {
    let (region, at) = ((grain / u64::from(REGION)) as usize, (grain % u64::from(REGION)) as usize);
    let is_partial = |region: &usize| (1..REGION as u16).contains(&get_u16(bytes, 24 + 2 * region));
    if !is_partial(&region) {
        return false;
    }
    let counts_end = (24 + 2 * get_u64(bytes, 16) as usize).next_multiple_of(8);
    let before = (0..region).filter(is_partial).count();
    let bitmap = &mut bytes[counts_end + before * REGION_BYTES..][..REGION_BYTES];
    let of_map = |at: usize| (map.first..map.end()).contains(&((region * REGION as usize + at) as u64));
    let is_free = |at: &usize| bitmap[at / 8] & 1 << (at % 8) == 0 && !of_map(*at);
    let free = (0..REGION as usize).rev().find(is_free).unwrap();
    for at in [at, free] {
        bitmap[at / 8] ^= 1 << (at % 8);
    }
    true
}

#[test]
fn a_map_of_another_page_table_is_refused_or_found_when_the_chunk_is_read() {
    // One more page; one more grain of images; one more region; one more used grain in the first region.
    for at in [0, 8, 16, 24] {
        let disk = closed();
        replace(&disk, |bytes| bytes[at] ^= 1);
        match (at, load(&disk, Reading::Mapped)) {
            // Opening does not compare the number of pages. Only a check does.
            (0, Ok(_)) => assert!(open(&disk).unwrap().check_places().is_err()),
            (1.., Err(Error::CorruptMeta { .. })) => {}
            (_, other) => panic!("byte {at}: {:?}", other.map(drop)),
        }
        let disk = closed();
        replace(&disk, |bytes| bytes[at..at + 8].fill(0xFF));
        match load(&disk, Reading::Mapped) {
            Err(Error::CorruptMeta { .. }) => {}
            other => panic!("greatest number at byte {at}: {:?}", other.map(drop)),
        }
        reads_all(&open(&disk).unwrap());
    }
}

#[test]
fn a_chunk_with_pages_in_free_grains_is_damage_when_it_is_read() {
    let disk = closed();
    let grains: Vec<u64> = {
        let store = open(&disk).unwrap();
        (0..PAGES).filter_map(|id| Some(store.location(PageId(id)).unwrap()?.place.first())).collect()
    };
    let map = map_of(&disk).unwrap().extent();
    // So that each grain of a region is in the file.
    disk.resize(disk.size().unwrap().next_multiple_of(1 << 20)).unwrap();
    replace(&disk, |bytes| assert!(grains.iter().any(|&grain| move_a_grain(bytes, grain, map))));
    let store = open(&disk).unwrap();
    assert!(store.damage().is_none() && store.check_places().is_err());
    let mut found = vec![0; PAGE_SIZE];
    let mut lost = Vec::new();
    for id in 0..PAGES {
        if let Err(error) = store.read(PageId(id), &mut found) {
            assert!(
                matches!(&error, Error::Corrupt { what, .. } if what.contains("is free in the free map")),
                "{error}"
            );
            lost.push(id);
        }
    }
    assert_eq!(lost.len(), CHUNK_PAGES.min(PAGES as usize - lost[0] as usize), "those of one chunk");
    assert!(store.damage().is_some());
    let id = PageId(lost[0]);
    assert!(store.exists(id) && store.has_length(id, 100).is_none() && store.place_bytes(id).is_none());
    assert!(matches!(store.write(id, &page(id.0, 9)), Err(Error::CorruptMeta { .. })));
    assert!(matches!(store.drop_page(id), Err(Error::CorruptMeta { .. })));
    assert!(matches!(store.pages(), Err(Error::CorruptMeta { .. })));
    let used = store.space.lock().allocator.used();
    assert_eq!(
        used,
        load(&disk, Reading::Mapped).unwrap().0.space.allocator.used(),
        "a write that fails keeps no place"
    );
}

#[test]
fn a_map_that_lies_beyond_the_end_or_over_a_chunk_is_damage() {
    let disk = closed();
    let file = DatabaseFile::open(disk.clone(), Path::new("db")).unwrap();
    let directory = Directory::decode(&file.store_header()).unwrap();
    let place = directory.map.unwrap();
    let beyond = FreeMapPlace { first: disk.size().unwrap() / GRAIN as u64, ..place };
    for map in [beyond, FreeMapPlace { first: directory.first, ..place }, FreeMapPlace { len: u64::MAX, ..place }] {
        file.begin_update().unwrap().write(meta(), Directory { map: Some(map), ..directory }.encode()).unwrap();
        assert!(matches!(open(&disk).map(|_| ()), Err(Error::CorruptMeta { .. })), "{map:?}");
    }
}

#[test]
fn a_close_with_unnamed_grains_in_use_writes_no_free_map() {
    let disk = disk();
    let store = create(&disk);
    (0..PAGES).for_each(|id| store.write(PageId(id), &page(id, 3)).unwrap());
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    store.space.lock().allocator.allocate(1).unwrap();
    store.close(Meta { clean: true, ..meta() }).unwrap();
    assert_eq!(map_of(&disk), None);
    assert!(open(&disk).unwrap().read(PageId(1), &mut vec![0; PAGE_SIZE]).unwrap().is_some());
}

/// Changes the first chunk of the page table. The checksums of the chunk, of its group and of the directory are made
/// right again, and the map stays as it was.
fn rewrite_chunk(disk: &Arc<Failing>, change: impl FnOnce(&mut [u8])) {
    let (TableParts { state, .. }, _) = load(disk, Reading::All).unwrap();
    let (location, group) = (state.table.chunk_location(0).unwrap(), state.table.groups()[0].unwrap());
    let file = DatabaseFile::open(disk.clone(), Path::new("db")).unwrap();
    let directory = Directory::decode(&file.store_header()).unwrap();
    let mut chunk = vec![0; CHUNK_BYTES];
    disk.read_at(location.place.offset(), &mut chunk).unwrap();
    change(&mut chunk);
    disk.write_at(location.place.offset(), &chunk).unwrap();
    let mut locations = state.table.chunk_locations_of(0);
    locations[0] = Some(Location { crc: checksum(&chunk), ..location });
    let locations = encode_group(&locations);
    disk.write_at(group.place.offset(), &locations).unwrap();
    let groups = Location { crc: checksum(&locations), ..group }.encode();
    disk.write_at(directory.extent().offset(), &groups).unwrap();
    let directory = Directory { crc: checksum(&groups), ..directory };
    file.begin_update().unwrap().write(meta(), directory.encode()).unwrap();
}

/// Asserts that reads of these pages fail with an error that contains `why`, and that writes of them fail, too.
fn assert_refused(disk: &Arc<Failing>, pages: std::ops::Range<u32>, why: &str) {
    let store = open(disk).unwrap();
    assert!(store.damage().is_none(), "no chunk is decoded");
    let used = store.space.lock().allocator.used();
    let mut found = vec![0; PAGE_SIZE];
    for id in 0..PAGES {
        let (read, is_lost) = (store.read(PageId(id), &mut found), pages.contains(&id));
        match read {
            Err(Error::Corrupt { what, .. }) => assert!(is_lost && what.contains(why), "page {id}: {what}"),
            Ok(is_there) => assert!(!is_lost && (is_there.is_none() || found == page(id, 3)), "page {id}"),
            Err(other) => panic!("page {id}: {other}"),
        }
    }
    assert!(store.damage().is_some() && store.check_places().is_err());
    let id = PageId(pages.start);
    assert!(matches!(store.write(id, &page(id.0, 9)), Err(Error::CorruptMeta { .. })));
    assert!(matches!(store.drop_page(id), Err(Error::CorruptMeta { .. })));
    assert_eq!(store.space.lock().allocator.used(), used, "nothing is freed");
}

#[test]
fn a_chunk_with_two_pages_at_one_place_is_damage_when_it_is_read() {
    for (from, to) in [(1, 2), (2, 1), (3, 251), (251, 6), (8, 5)] {
        let disk = closed();
        rewrite_chunk(&disk, |chunk| {
            chunk.copy_within(from * Location::BYTES..(from + 1) * Location::BYTES, to * Location::BYTES);
        });
        assert_refused(&disk, 0..256, "overlaps the place of another page");
    }
    // The last grain of one image is the first of the next.
    let disk = closed();
    rewrite_chunk(&disk, |chunk| {
        let field = |id: usize| id * Location::BYTES..(id + 1) * Location::BYTES;
        let at = Location::decode(&chunk[field(6)]).unwrap();
        let place = place::Place::new(at.place.first() + at.place.grains() - 1, 1).unwrap();
        chunk[field(5)].copy_from_slice(&Location { place, ..at }.encode());
    });
    assert_refused(&disk, 0..256, "overlaps the place of another page");
}

#[test]
fn a_chunk_with_a_page_that_does_not_exist_is_damage_when_it_is_read() {
    let disk = closed();
    let file = DatabaseFile::open(disk.clone(), Path::new("db")).unwrap();
    let directory = file.store_header();
    file.begin_update().unwrap().write(Meta { high_water: 600, ..meta() }, directory).unwrap();
    drop(file);
    assert_refused(&disk, 512..PAGES, "all page ids are below 600");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    /// The checksums of the chunk, of its group and of the directory are made right again, and the map is as it was.
    #[test]
    fn a_free_map_that_contradicts_the_chunks_is_harmless(
        hits in proptest::collection::vec((0..CHUNK_BYTES, any::<u8>()), 0..6),
        copies in proptest::collection::vec((0..CHUNK_PAGES, 0..CHUNK_PAGES), 0..6),
    ) {
        let disk = closed();
        rewrite_chunk(&disk, |chunk| {
            for (from, to) in copies {
                chunk.copy_within(from * Location::BYTES..(from + 1) * Location::BYTES, to * Location::BYTES);
            }
            hits.iter().for_each(|&(at, byte)| chunk[at] = byte);
        });
        // Pages of the changed chunk may be missing, or all of them may be damaged. A page that can be read has the
        // content that was written last. Pages of other chunks are unchanged.
        let (changed, others) = (0..CHUNK_PAGES as u32, CHUNK_PAGES as u32..PAGES);
        let store = open(&disk).unwrap();
        let mut found = vec![0; PAGE_SIZE];
        let mut expected: BTreeMap<u32, Vec<u8>> =
            (0..PAGES).filter(|id| id % 5 < 4 && id % 7 != 0).map(|id| (id, page(id, 3))).collect();
        let mut check = |expected: &BTreeMap<u32, Vec<u8>>| {
            for id in 0..PAGES {
                match store.read(PageId(id), &mut found) {
                    Ok(Some(_)) => assert_eq!(Some(&found), expected.get(&id), "page {id}"),
                    Ok(None) => assert!(changed.contains(&id) || !expected.contains_key(&id), "page {id} is lost"),
                    Err(error) => assert!(changed.contains(&id), "page {id}: {error}"),
                }
            }
        };
        check(&expected);
        for id in (0..PAGES).step_by(3) {
            let written = store.write(PageId(id), &page(id, 9));
            assert!(written.is_ok() || changed.contains(&id), "page {id}: {written:?}");
            if written.is_ok() {
                expected.insert(id, page(id, 9));
            }
        }
        for id in (0..PAGES).step_by(4) {
            let dropped = store.drop_page(PageId(id));
            assert!(dropped.is_ok() || changed.contains(&id), "page {id}: {dropped:?}");
            if dropped.is_ok() {
                expected.remove(&id);
            }
        }
        check(&expected);
        store.finish(store.begin_checkpoint(), meta()).unwrap();
        check(&expected);
        others.clone().for_each(|id| store.drop_page(PageId(id)).unwrap());
        changed.clone().for_each(|id| drop(store.drop_page(PageId(id))));
        store.finish(store.begin_checkpoint(), meta()).unwrap();
        store.close(meta()).unwrap();
        match open(&disk) {
            Ok(store) => {
                let mut left = Vec::new();
                store.each_page(PageId(others.start), PageId(PAGES), |id, _| left.push(id)).unwrap();
                prop_assert_eq!(left, []);
            }
            Err(error) => prop_assert!(matches!(error, Error::CorruptMeta { .. }), "{}", error),
        }
    }
}

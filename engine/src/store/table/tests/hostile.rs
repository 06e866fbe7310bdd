//! Damaged files: every flipped bit, every cut, gives a typed error or the pages as they were, and never a panic.

use super::*;
use crate::base::TableId;
use crate::store::table::encoding::{GROUP_CHUNKS, encode_group};
use crate::store::{Compression, PagePolicy, PageSource, Target, open_damaged};
use proptest::prelude::*;

const PAGES: u32 = 300;

/// A file with one checkpoint, and its pages.
fn file() -> (Vec<u8>, Vec<Vec<u8>>) {
    let disk = disk();
    let store = create(&disk);
    let pages: Vec<Vec<u8>> = (0..PAGES).map(|id| sample(id, 5, u64::from(id % 7))).collect();
    let compressions = [Compression::None, Compression::Lz4, Compression::Zstd(3), Compression::Zlib(6)];
    for (id, page) in (0..).zip(&pages) {
        let target = if id % 3 == 0 { Target::Bytes(1024) } else { Target::Fit };
        let policy =
            PagePolicy { compression: compressions[id as usize % compressions.len()], target, ..PagePolicy::default() };
        store.compression().unwrap().set_policy(SAMPLE_TABLE, policy);
        store.write(PageId(id), page).unwrap();
    }
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    // Now both superblocks lead to this checkpoint.
    store.file().write_meta(meta()).unwrap();
    store.shrink(0).unwrap();
    let mut bytes = vec![0; disk.size().unwrap() as usize];
    disk.read_at(0, &mut bytes).unwrap();
    (bytes, pages)
}

fn open_bytes(bytes: &[u8]) -> Result<TableStore> {
    let disk = disk();
    disk.write_at(0, bytes)?;
    open(&disk)
}

/// Opens and reads everything; counts the pages that are lost, but those of a chunk of the page table as one. Whatever
/// is read must be as it was written.
fn read_all(bytes: &[u8], pages: &[Vec<u8>]) -> Result<usize> {
    let store = open_bytes(bytes)?;
    let chunk = if store.damage().is_some() { CHUNK_PAGES } else { 1 };
    let mut lost = 0usize;
    let mut page = vec![0; PAGE_SIZE];
    for (id, expected) in (0..).zip(pages) {
        match store.read(PageId(id), &mut page) {
            Ok(found) => assert!(found.is_some() && &page == expected, "page {id} is not what was written"),
            Err(Error::Corrupt { page, .. }) => {
                assert_eq!(page, PageId(id));
                lost += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    Ok(lost.div_ceil(chunk))
}

#[test]
fn a_flipped_byte_anywhere_costs_a_page_or_a_chunk_or_is_a_typed_error() {
    let (bytes, pages) = file();
    assert_eq!(read_all(&bytes, &pages).unwrap(), 0);
    for at in (0..bytes.len()).step_by(251) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        match read_all(&damaged, &pages) {
            Ok(lost) => assert!(lost <= 1, "byte {at} costs {lost} pages"),
            Err(Error::CorruptMeta { .. } | Error::NotADatabase { .. } | Error::FormatVersion { .. }) => {}
            Err(error) => panic!("byte {at}: {error}"),
        }
    }
}

#[test]
fn a_file_cut_short_anywhere_is_a_typed_error() {
    let (bytes, pages) = file();
    for len in (0..bytes.len()).step_by(1021).chain([1, 8, 12, 4095, 4096, 4097, 8191, 8192, bytes.len() - 1]) {
        match read_all(&bytes[..len], &pages) {
            Err(Error::CorruptMeta { .. } | Error::NotADatabase { .. }) => {}
            other => panic!("cut to {len}: {other:?}"),
        }
    }
}

#[test]
fn an_image_in_another_place_and_an_older_image_are_found() {
    let disk = disk();
    let store = create(&disk);
    let mut page = vec![0; PAGE_SIZE];
    let image = |at: Location| {
        let mut image = vec![0; at.place.len()];
        disk.read_at(at.place.offset(), &mut image).unwrap();
        image
    };
    store.write(PageId(1), &sample(1, 1, 3)).unwrap();
    store.write(PageId(2), &sample(2, 2, 3)).unwrap();
    let first = store.location(PageId(1)).unwrap().unwrap();
    let second = store.location(PageId(2)).unwrap().unwrap();
    let older = image(first);
    disk.write_at(second.place.offset(), &older).unwrap();
    let found = store.read(PageId(2), &mut page);
    assert!(matches!(&found, Err(Error::Corrupt { page: PageId(2), what }) if what.contains("page 1")), "{found:?}");
    // A write that never reached the device leaves an older image of the same page where the new one should be.
    store.write(PageId(1), &sample(1, 9, 3)).unwrap();
    let at = store.location(PageId(1)).unwrap().unwrap();
    disk.write_at(at.place.offset(), &older).unwrap();
    let found = store.read(PageId(1), &mut page);
    assert!(matches!(&found, Err(Error::Corrupt { what, .. }) if what.contains("lost")), "{found:?}");
}

#[test]
fn two_pages_at_one_place_are_refused() {
    let disk = disk();
    let store = create(&disk);
    store.write(PageId(1), &sample(1, 1, 3)).unwrap();
    store.write(PageId(2), &sample(2, 1, 4)).unwrap();
    {
        let mut state = store.state.lock();
        let mut entry = state.table.get(PageId(1)).unwrap().unwrap();
        entry.fresh = false;
        state.table.set(PageId(2), Some(entry)).unwrap();
    }
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    let found = open(&disk).map(|_| ());
    assert!(matches!(&found, Err(Error::CorruptMeta { why, .. }) if why.contains("page 2")), "{found:?}");
}

#[test]
fn a_place_far_beyond_the_file_takes_no_memory() {
    let disk = disk();
    let store = create(&disk);
    let far = Location { place: place::Place::new(1 << 39, 9).unwrap(), crc: 1 };
    let entry = PageEntry { location: far, fresh: false, checked: false };
    store.state.lock().table.set(PageId(1), Some(entry)).unwrap();
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    let found = open(&disk).map(|_| ());
    assert!(matches!(&found, Err(Error::CorruptMeta { why, .. }) if why.contains("beyond")), "{found:?}");
}

/// Policies are read in pieces of 4096.
#[test]
fn policies_that_are_not_in_the_order_of_their_tables_are_refused() {
    let policies = |tables: &[u32]| {
        let policy = PagePolicy { compression: Compression::Lz4, ..PagePolicy::default() };
        let named: Vec<_> = tables.iter().map(|table| (TableId(*table), policy)).collect();
        crate::store::compress::encode_policies(&named)
    };
    let read = |tables: &[u32]| {
        let bytes = &policies(tables)[..];
        let disk = disk();
        let store = create(&disk);
        store.finish(store.begin_checkpoint(), meta()).unwrap();
        let first = disk.size().unwrap().div_ceil(GRAIN as u64);
        disk.write_at(first * GRAIN as u64, bytes).unwrap();
        disk.resize(disk.size().unwrap().next_multiple_of(GRAIN as u64)).unwrap();
        let (len, policies) = (bytes.len() as u64, tables.len() as u32);
        let directory = Directory { first, len, crc: checksum(bytes), policies, dictionaries: 0, map: None };
        store.file.begin_update().unwrap().write(meta(), directory.encode()).unwrap();
        drop(store);
        open(&disk).map(|store| store.compression().unwrap().policy_count())
    };
    let many: Vec<u32> = (1..10_000).collect();
    assert_eq!(read(&many).unwrap(), 9999);
    let twice: Vec<u32> = (1..=4096).chain(4096..5000).collect();
    for tables in [&[0, 0][..], &[1, 2, 2], &[1, 3, 2], &twice] {
        let found = read(tables);
        assert!(matches!(&found, Err(Error::CorruptMeta { why, .. }) if why.contains("order")), "{found:?}");
    }
}

#[test]
fn a_damaged_group_of_chunks_is_refused_and_a_rescue_finds_its_pages() {
    let disk = disk();
    let store = create(&disk);
    let last = (GROUP_CHUNKS * CHUNK_PAGES) as u32;
    let ids = [1, last - 1, last, last + 300];
    ids.iter().for_each(|&id| store.write(PageId(id), &sample(id, 5, 3)).unwrap());
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    store.file.write_meta(meta()).unwrap();
    let groups: Vec<Location> = store.state.lock().table.groups().iter().copied().map(Option::unwrap).collect();
    assert_eq!(groups.iter().map(|group| group.place.grains()).collect::<Vec<_>>(), [3, 1]);
    drop(store);
    let mut byte = [0];
    disk.read_at(groups[1].place.offset(), &mut byte).unwrap();
    disk.write_at(groups[1].place.offset(), &[byte[0] ^ 1]).unwrap();

    let found = open(&disk).map(|_| ());
    assert!(matches!(&found, Err(Error::CorruptMeta { why, .. }) if why.contains("group 1")), "{found:?}");
    let rescued = open_damaged(disk, Path::new("db"), PAGE_SIZE, PageSource::Structures).unwrap();
    let high = meta().high_water.next_multiple_of(CHUNK_PAGES as u32).min(2 * last);
    let lost = |damage: &Damage| matches!(damage, Damage::PageTablePart { first, last: end } if (first.0, end.0) == (last, high - 1));
    assert!(rescued.damage.iter().any(lost), "{:?}", rescued.damage);
    let mut page = vec![0; PAGE_SIZE];
    for id in ids {
        assert!(rescued.store.read(PageId(id), &mut page).unwrap().is_some() && page == sample(id, 5, 3), "page {id}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn damaged_fields_with_valid_checksums_cause_no_panic(
        hits in proptest::collection::vec((0usize..1 << 20, any::<u8>()), 0..8),
        of_group in proptest::collection::vec((0usize..36, any::<u8>()), 0..4),
    ) {
        // The file's own checksums are made right again: only what the fields say can save the reader.
        let disk = disk();
        let store = create(&disk);
        for id in 0..40 {
            store.write(PageId(id), &sample(id, 5, u64::from(id % 7))).unwrap();
        }
        store.finish(store.begin_checkpoint(), meta()).unwrap();
        let location = store.state.lock().table.chunk_location(0).unwrap();
        let group = store.state.lock().table.groups()[0].unwrap();
        let mut directory = Directory::decode(&store.file.store_header()).unwrap();
        let mut chunk = vec![0; location.place.len()];
        disk.read_at(location.place.offset(), &mut chunk).unwrap();
        for (at, byte) in hits {
            let len = chunk.len();
            chunk[at % len] = byte;
        }
        disk.write_at(location.place.offset(), &chunk).unwrap();
        let mut locations = encode_group(&[Some(Location { crc: checksum(&chunk), ..location })]);
        of_group.iter().for_each(|&(at, byte)| locations[at] = byte);
        disk.write_at(group.place.offset(), &locations).unwrap();
        let fixed = Location { crc: checksum(&locations), ..group }.encode();
        disk.write_at(directory.extent().offset(), &fixed).unwrap();
        directory.crc = checksum(&fixed);
        store.file.begin_update().unwrap().write(meta(), directory.encode()).unwrap();
        if let Ok(store) = open(&disk) {
            let mut page = vec![0; PAGE_SIZE];
            for id in 0..256 {
                let _ = store.read(PageId(id), &mut page);
            }
        }
    }
}

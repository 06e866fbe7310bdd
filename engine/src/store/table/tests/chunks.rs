//! Chunks of the page table are read when they are needed, and leave memory again.

use super::*;

const PAGES: u32 = 700;

/// A file with a checkpoint.
fn file() -> Arc<Failing> {
    let disk = disk();
    let store = create(&disk);
    (0..PAGES).for_each(|id| store.write(PageId(id), &page(id, 3)).unwrap());
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    disk
}

fn page(id: u32, round: u64) -> Vec<u8> {
    sample(id, round, u64::from(id % 7))
}

#[test]
fn a_database_that_was_closed_has_no_page_to_be_dropped() {
    let disk = file();
    let store = open(&disk).unwrap();
    assert_eq!(store.known_between(PageId(0), PageId(PAGES)).unwrap().len(), PAGES as usize);
    store.use_closed_state();
    assert_eq!(store.known_between(PageId(0), PageId(PAGES)).unwrap(), []);
}

#[test]
fn an_opening_without_a_free_map_keeps_chunks_and_knows_all_pages() {
    let disk = file();
    let store = open(&disk).unwrap();
    let in_memory = || [1, 300, 600].map(|id| store.state.lock().table.check_present(PageId(id)).is_ok());
    assert_eq!(in_memory(), [true; 3]);
    let forget = || (0..2).for_each(|_| store.state.lock().table.keep(0));
    forget();
    store.drop_page(PageId(300)).unwrap();
    store.write(PageId(PAGES), &page(PAGES, 3)).unwrap();
    forget();
    let expected: Vec<PageId> = (0..=PAGES).filter(|id| *id != 300).map(PageId).collect();
    let known = || store.known_between(PageId(0), PageId(PAGES + 1)).unwrap();
    assert_eq!((known(), in_memory()), (expected.clone(), [false, true, true]), "a chunk that has changed stays");
    assert_eq!(store.known_between(PageId(9), PageId(11)).unwrap(), [PageId(9), PageId(10)]);
    assert_eq!(in_memory(), [false, true, true]);
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    forget();
    store.drop_page(PageId(3)).unwrap();
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    forget();
    assert_eq!(known(), expected.into_iter().filter(|id| *id != PageId(3)).collect::<Vec<_>>());
}

#[test]
fn chunks_of_a_database_that_grows_are_read_again() {
    let disk = disk();
    let store = create(&disk);
    let mut found = vec![0; PAGE_SIZE];
    for pages in [300, PAGES] {
        (0..pages).for_each(|id| store.write(PageId(id), &page(id, 3)).unwrap());
        store.finish(store.begin_checkpoint(), Meta { high_water: pages, ..meta() }).unwrap();
        places::leave_memory(&mut store.state.lock());
        for id in 0..pages {
            assert!(store.read(PageId(id), &mut found).unwrap().is_some() && found == page(id, 3), "page {id}");
        }
    }
    assert!(store.damage().is_none());
}

#[test]
fn a_chunk_that_is_damaged_after_the_opening_costs_its_pages() {
    let disk = file();
    let store = open(&disk).unwrap();
    (0..2).for_each(|_| store.state.lock().table.keep(0));
    let location = store.state.lock().table.chunk_location(1).unwrap();
    let mut byte = [0];
    disk.read_at(location.place.offset() + 9, &mut byte).unwrap();
    disk.write_at(location.place.offset() + 9, &[byte[0] ^ 1]).unwrap();
    let used = store.space.lock().allocator.used();
    let mut found = vec![0; PAGE_SIZE];
    for id in 0..PAGES {
        match store.read(PageId(id), &mut found) {
            Ok(Some(_)) => assert!(id / 256 != 1 && found == page(id, 3), "page {id}"),
            Err(Error::Corrupt { what, .. }) => assert!(id / 256 == 1 && what.contains("pages 256 to 511"), "{what}"),
            other => panic!("{id}: {other:?}"),
        }
    }
    assert!(store.damage().is_some());
    let id = PageId(300);
    assert!(store.exists(id) && store.has_length(id, 100).is_none() && store.place_bytes(id).is_none());
    assert!(matches!(store.write(id, &page(id.0, 9)), Err(Error::CorruptMeta { .. })));
    assert!(matches!(store.drop_page(id), Err(Error::CorruptMeta { .. })));
    assert!(matches!(store.pages(), Err(Error::CorruptMeta { .. })));
    assert_eq!(store.space.lock().allocator.used(), used, "a write that fails keeps no place");
}

#[test]
fn a_batch_gets_all_of_its_chunks_and_chunks_that_were_captured_stay() {
    let disk = file();
    let store = open(&disk).unwrap();
    places::leave_memory(&mut store.state.lock());
    let ids = [1, 300, 600, 2, 301, 601];
    let mut writer = store.writer();
    for id in ids {
        writer.push(PageId(id), &page(id, 9), ChangedParts::ALL);
    }
    writer.write().unwrap();
    let token = store.begin_checkpoint();
    places::leave_memory(&mut store.state.lock());
    let is_new = |store: &TableStore| {
        let mut found = vec![0; PAGE_SIZE];
        ids.iter().all(|&id| store.read(PageId(id), &mut found).unwrap().is_some() && found == page(id, 9))
    };
    assert!(is_new(&store));
    store.finish(token, meta()).unwrap();
    places::leave_memory(&mut store.state.lock());
    let is_missing = |id| store.state.lock().table.check_present(PageId(id)).is_err();
    assert_eq!([1, 300, 600].into_iter().filter(|id| is_missing(*id)).count(), 2);
    assert!(is_new(&store) && is_new(&open(&disk).unwrap()));
}

#[test]
fn chunks_within_the_memory_limit_stay_in_memory() {
    let disk = file();
    let missing_after = |chunks: usize| {
        let store = open(&disk).unwrap();
        places::leave_memory(&mut store.state.lock());
        store.set_up(StoreSetup { memory: chunks * encoding::CHUNK_BYTES, ..StoreSetup::default() });
        for id in [1, 300, 600].repeat(3) {
            store.read(PageId(id), &mut [0; PAGE_SIZE]).unwrap().unwrap();
        }
        let state = store.state.lock();
        [1, 300, 600].into_iter().filter(|id| state.table.check_present(PageId(*id)).is_err()).count()
    };
    assert!(missing_after(0) > 0 && missing_after(3) == 0);
}

#[test]
fn a_round_of_a_compaction_reads_only_the_chunks_of_the_pages_that_move() {
    let disk = file();
    let store = open(&disk).unwrap();
    let checkpoint = |store: &TableStore| store.finish(store.begin_checkpoint(), meta()).unwrap();
    (10..550).for_each(|id| store.drop_page(PageId(id)).unwrap());
    checkpoint(&store);
    // From here on no chunk of the page table has to move.
    assert_eq!(store.relocate(store.stats().used_bytes(), 0).unwrap(), 0);
    checkpoint(&store);
    drop(store);
    let moves = |most, expected| {
        // With its free map, an opening keeps no chunks.
        let store = open(&disk).unwrap();
        checkpoint(&store);
        store.close(meta()).unwrap();
        let store = open(&disk).unwrap();
        let moved = store.relocate(store.stats().used_bytes(), most).unwrap();
        let in_memory = [1, 600].map(|id| store.state.lock().table.check_present(PageId(id)).is_ok());
        assert_eq!((moved, in_memory), expected);
        checkpoint(&store);
    };
    moves(0, (0, [false, false]));
    moves(5, (5, [false, true]));
    moves(5, (5, [false, true]));
    let (store, mut found) = (open(&disk).unwrap(), vec![0; PAGE_SIZE]);
    for id in (0..10).chain(550..PAGES) {
        assert!(store.read(PageId(id), &mut found).unwrap().is_some() && found == page(id, 3), "page {id}");
    }
}

//! Tests of the free end of the file, which a checkpoint cuts off.

use super::*;
use crate::base::bytes;
use crate::store::tests::model::Subject;

fn checkpoint(store: &TableStore) {
    store.finish(store.begin_checkpoint(), meta()).unwrap();
}

/// The seed, among a few, of the page whose image is longest.
fn longest_seed() -> u64 {
    let length = |seed: &u64| sample(1, 1, *seed).iter().filter(|byte| **byte != 0).count();
    (0..500).max_by_key(length).unwrap()
}

#[test]
fn a_checkpoint_cuts_off_a_free_end_and_leaves_the_promised_room() {
    let disk = disk();
    let store = create(&disk);
    (0..4000).for_each(|id| store.write(PageId(id), &sample(id, 1, u64::from(id))).unwrap());
    checkpoint(&store);
    let full = disk.size().unwrap();
    (50..4000).for_each(|id| store.drop_page(PageId(id)).unwrap());
    checkpoint(&store);
    assert_eq!(disk.size().unwrap(), full, "a recovery may need the room");
    store.ensure_room(400).unwrap();
    // A part of the page table is at the end of the file.
    store.relocate(store.stats().used_bytes(), 10).unwrap();
    (0..2).for_each(|_| checkpoint(&store));
    let cut = disk.size().unwrap();
    assert!(cut < full / 2, "{cut} of {full}");
    assert_eq!(store.stats().file_bytes, cut);
    let chunks = store.state.lock().chunk_counts();
    let free = store.space.lock().allocator.longest_places(cut / GRAIN as u64);
    assert!(free >= store.places_for(chunks, 400) + relocate::MIN_SPARE, "{free} places");
    disk.set_room(cut);
    let seed = longest_seed();
    (5000..5400).for_each(|id| store.write(PageId(id), &sample(id, 1, seed)).unwrap());
    checkpoint(&store);
    assert_eq!(disk.size().unwrap(), cut, "what was promised had room");
    store.check();
    let (store, mut found) = (open(&disk).unwrap(), vec![0; PAGE_SIZE]);
    for id in (0..50).chain(5000..5400) {
        assert!(store.read(PageId(id), &mut found).unwrap().is_some(), "page {id}");
    }
}

#[test]
fn a_free_end_that_is_small_stays() {
    let disk = disk();
    let store = create(&disk);
    (0..4000).for_each(|id| store.write(PageId(id), &sample(id, 1, u64::from(id))).unwrap());
    checkpoint(&store);
    store.ensure_room(10).unwrap();
    let full = disk.size().unwrap();
    (3700..4000).for_each(|id| store.drop_page(PageId(id)).unwrap());
    (0..3).for_each(|_| checkpoint(&store));
    assert_eq!(disk.size().unwrap(), full);
}

#[test]
fn room_that_was_promised_is_there_while_checkpoints_cut_the_file() {
    const MAX_IMAGES: u64 = 4000;
    let disk = disk();
    let store = create(&disk);
    store.write(PageId(1), &sample(1, 1, 1)).unwrap();
    let (done, cuts) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(atomic::Ordering::Relaxed) {
                let before = store.stats().file_bytes;
                checkpoint(&store);
                cuts.fetch_add(u64::from(store.stats().file_bytes < before), atomic::Ordering::Relaxed);
            }
        });
        // On a busy machine the other thread makes few checkpoints in 2,000 rounds.
        let is_enough = |round: u64| round >= 2000 && cuts.load(atomic::Ordering::Relaxed) > 10;
        for round in (0..1_000_000).take_while(|round| !is_enough(*round)) {
            // Three small promises let a checkpoint forget the large one.
            let images = if round.is_multiple_of(4) { MAX_IMAGES } else { 10 };
            store.ensure_room(images).unwrap();
            let len = store.len.lock();
            let free = store.space.lock().allocator.longest_places(*len / GRAIN as u64);
            assert!(free >= images, "{free} places for {images} images");
            drop(len);
            std::thread::yield_now();
        }
        done.store(true, atomic::Ordering::Relaxed);
    });
    let cuts = cuts.into_inner();
    assert!(cuts > 10, "{cuts} cuts");
    store.check();
}

#[test]
fn promised_room_is_enough_if_places_begin_at_blocks() {
    let disk = disk();
    let store = create(&disk);
    store.set_up(StoreSetup { persist_table: true, ..StoreSetup::default() });
    let seed = longest_seed();
    let write = |id| store.write(PageId(id), &sample(id, 1, seed));
    (0..600).for_each(|id| write(id).unwrap());
    checkpoint(&store);
    // Each gap between the other images has room for more images than can begin at a block in it.
    (0..600).filter(|id| id % 3 != 0).for_each(|id| store.drop_page(PageId(id)).unwrap());
    (0..2).for_each(|_| checkpoint(&store));
    let len = disk.size().unwrap();
    disk.set_room(len);
    let most = (1..).find(|images| store.ensure_room(*images).is_err()).unwrap() - 1;
    store.ensure_room(most).unwrap();
    assert!(most > 200, "{most}");
    (1000..1000 + u32::try_from(most).unwrap()).for_each(|id| write(id).unwrap());
    checkpoint(&store);
    assert_eq!(disk.size().unwrap(), len);
    store.check();
}

/// Pages of many chunks are written one by one, as evictions do, each with room for itself.
#[test]
fn a_full_device_has_room_for_the_chunks_of_pages_that_are_written_already() {
    let disk = disk();
    let store = create(&disk);
    let page = |number: u32| PageId(number * bytes::u32_of(CHUNK_PAGES) + 1);
    let mut written = 0;
    loop {
        if written == 150 {
            disk.set_room(disk.size().unwrap());
        }
        match store.ensure_room(1) {
            Ok(()) => store.write(page(written), &sample(page(written).0, 1, 7)).unwrap(),
            Err(Error::Full { .. }) => break,
            Err(other) => panic!("{other}"),
        }
        written += 1;
    }
    assert!((150..390).contains(&written), "{written} pages");
    checkpoint(&store);
    store.check();
    let (store, mut found) = (open(&disk).unwrap(), vec![0; PAGE_SIZE]);
    for number in 0..written {
        assert!(store.read(page(number), &mut found).unwrap().is_some(), "page {}", page(number));
    }
}

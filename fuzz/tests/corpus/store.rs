//! Replays the corpus of the page store's fuzz targets, whole and in every cut and flip.

use crate::{put, replay, seeds};
use duramen::base::{PageId, TableId, bytes};
use duramen::io::{Disk, MemoryDisk};
use duramen::page::run_page;
use duramen::store::{self, Meta, StoreKind};
use duramen_fuzz::store::{PAGE_SIZE, damage_store, image, meta, page, page_table, read_store, superblock};
use std::path::Path;
use std::sync::Arc;

#[test]
fn superblocks_cut_and_flipped_anywhere_are_safe_to_read() {
    assert!(seeds("superblock").iter().any(|seed| superblock(seed)));
    replay("superblock", 1, superblock);
}

#[test]
fn page_tables_cut_and_flipped_anywhere_are_safe_to_read() {
    assert!(seeds("page_table").iter().any(|seed| page_table(seed)));
    replay("page_table", 1, page_table);
}

#[test]
fn images_cut_and_flipped_anywhere_are_safe_to_read() {
    assert!(seeds("image").iter().any(|seed| image(seed)));
    replay("image", 1, image);
}

#[test]
fn files_cut_and_flipped_anywhere_are_safe_to_read_and_to_go_on_with() {
    assert!(seeds("read_store").iter().any(|seed| read_store(seed) >= 5));
    replay("read_store", 37, read_store);
}

#[test]
fn histories_with_damage_never_give_a_wrong_page() {
    assert!(seeds("damage_store").iter().any(|seed| damage_store(seed) >= 3));
    replay("damage_store", 1, damage_store);
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(128))]
    #[test]
    fn random_histories_with_damage_never_give_a_wrong_page(
        history in proptest::collection::vec(0u8..255, 0..40),
        damage in proptest::collection::vec((0u16..32_768, proptest::prelude::any::<u8>()), 0..4),
    ) {
        let mut data = history;
        data.push(255);
        for (at, mask) in damage {
            data.extend([0, (at >> 8) as u8, at as u8, mask]);
        }
        damage_store(&data);
    }
}

/// Writes the corpus anew after a change of the format: `cargo test -p duramen-fuzz -- --ignored`.
#[test]
#[ignore = "changes the corpus"]
fn write_store_corpus() {
    let disk = Arc::new(MemoryDisk::new());
    let store = store::create(StoreKind::Table, disk.clone(), Path::new("fuzz"), meta()).unwrap();
    let file = || {
        let mut bytes = vec![0; disk.size().unwrap() as usize];
        disk.read_at(0, &mut bytes).unwrap();
        bytes
    };
    put("read_store", "empty", &file());
    for id in [0, 1, 2, 301, 600] {
        store.write(PageId(id), &page(id, 5, id as usize, PAGE_SIZE)).unwrap();
    }
    let mut packed = run_page(PageId(300), TableId(1), PageId::NONE, &[5; 300]);
    bytes::put_u64(&mut packed, 0, 5);
    // A location: the first grain in 40 bits, the number of grains, and the checksum.
    let location = store.write_unlogged(&[(PageId(300), packed)]).unwrap()[0];
    let place = bytes::get_u64(&location, 0);
    let (offset, len) = ((place & ((1 << 40) - 1)) as usize * 512, (place >> 40) as usize * 512);
    store.finish(store.begin_checkpoint(), meta()).unwrap();
    store.file().write_meta(meta()).unwrap();
    store.shrink(0).unwrap();
    let whole = file();
    put("read_store", "pages", &whole);
    store.close(Meta { clean: true, ..meta() }).unwrap();
    let closed = file();
    put("read_store", "closed", &closed);
    // The superblock has the place of the free map: its first grain and its length.
    let [first, map_len] = [28, 36].map(|at| bytes::get_u64(&closed, 84 + at) as usize);
    put("page_table", "free_map", &closed[first * 512..][..map_len]);
    put("superblock", "both", &whole[..8192]);
    put("superblock", "first", &whole[..4096]);
    let image = &whole[offset..][..len];
    put("image", "sound", &[&300u32.to_le_bytes(), &location[8..12], image].concat());
    put("image", "older", &[&300u32.to_le_bytes(), &[1; 4], image].concat());
    put("page_table", "directory", &location.repeat(3));
    let mut group = location.repeat(3);
    group.resize(512, 0);
    put("page_table", "group", &group);
    let chunk: Vec<u8> =
        (0..256).flat_map(|slot| if slot % 3 == 0 { location.to_vec() } else { vec![0; 12] }).collect();
    put("page_table", "chunk", &chunk);
    let mut history: Vec<u8> = (1..16).chain([245]).chain(40..60).chain([203, 245, 7, 8, 255]).collect();
    put("damage_store", "undamaged", &history);
    history.extend([0, 0x10, 0x20, 4, 0, 0x24, 0x09, 1]);
    put("damage_store", "superblock-and-image", &history);
    put("damage_store", "no-checkpoint", &[1, 2, 3, 255, 0, 0, 9, 1]);
    // A dictionary, pages that need it, and damage to both of its copies.
    put(
        "damage_store",
        "dictionary",
        &[230, 142, 146, 150, 245, 154, 158, 245, 142, 255, 0, 0x21, 0, 4, 0, 0x41, 0, 4],
    );
}
